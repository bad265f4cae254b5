// SPDX-License-Identifier: GPL-2.0
/*
 * AF_HPSOCK: high performance sockets over RDMA.
 *
 * Data walks one way: a program's call comes in by family.c, is carried out on
 * a socket, whose bytes are in a connection, which a transport carries
 * (transport.h). What comes in walks back the same way.
 *
 *   socket       sock.c, addr.c, port.c (who has which), bind.c, connect.c,
 *                listen.c, send.c, recv.c, splice.c, close.c, poll.c, sockopt.c
 *                with options_*.c
 *   connection   conn.c, stream.c (sending), urgent.c, probe.c (is the peer there?)
 *   transport    over RDMA: link.c, cm.c, msg.c, receives.c, credit.c, device.c
 *   beside them  net.c (a namespace's), buf.c and mem.c (memory), protect.c (pages
 *                of programs), param.c (tunables), proc.c and stats.c (/proc/net)
 *
 * conn.c has the life cycle, the lock order and the reference rule.
 */
#include <linux/module.h>
#include <linux/workqueue.h>

#include "device.h"
#include "family.h"
#include "link.h"
#include "net.h"
#include "protect.h"
#include "sock.h"
#include "work.h"

struct workqueue_struct *hps_wq;
struct workqueue_struct *hps_teardown_wq;

static int __init hps_init(void)
{
	int err = -ENOMEM;

	hps_protect_init();
	hps_wq = alloc_workqueue("hpsock", WQ_UNBOUND, 0);
	if (!hps_wq)
		return err;
	hps_teardown_wq = alloc_workqueue("hpsock_teardown", WQ_UNBOUND, 0);
	if (!hps_teardown_wq)
		goto destroy_wq;
	err = hps_link_init();
	if (err)
		goto destroy_teardown_wq;
	err = hps_net_register();
	if (err)
		goto exit_link;
	err = hps_sock_register();
	if (err)
		goto unregister_net;
	err = hps_device_register();
	if (err)
		goto unregister_sock;
	err = hps_family_register();
	if (err)
		goto unregister_device;
	return 0;

unregister_device:
	hps_device_unregister();
unregister_sock:
	hps_sock_unregister();
unregister_net:
	hps_net_unregister();
exit_link:
	hps_link_exit();
destroy_teardown_wq:
	destroy_workqueue(hps_teardown_wq);
destroy_wq:
	destroy_workqueue(hps_wq);
	return err;
}

/* Sockets hold the module, so none is left; connections may still be ending. */
static void __exit hps_exit(void)
{
	hps_family_unregister();
	hps_device_unregister();
	destroy_workqueue(hps_teardown_wq);
	destroy_workqueue(hps_wq);
	hps_sock_unregister();
	hps_net_unregister();
	hps_link_exit();
}

module_init(hps_init);
module_exit(hps_exit);

MODULE_DESCRIPTION("AF_HPSOCK: high performance sockets over RDMA");
MODULE_AUTHOR("The hpsock maintainers");
MODULE_LICENSE("GPL");
