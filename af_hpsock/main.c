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
 *   connection   conn.c, stream.c (sending), record.c (messages in a stream), urgent.c,
 *                fetch.c (bytes that are still at the peer), lent.c (pages that the peer
 *                reads), wait.c (sends that wait for that), zerocopy.c (pages that the
 *                program leaves alone), probe.c (is the peer there?)
 *   transport    over RDMA: link.c, cm.c, msg.c, receives.c, credit.c, device.c,
 *                source.c (what is offered to the peer), cancel.c (and taken back),
 *                read.c (RDMA Reads)
 *   beside them  net.c (a namespace's), buf.c, mem.c and share.c (memory), protect.c
 *                (pages of programs), param.c (tunables), sysctl.c (those of a
 *                namespace), proc.c and stats.c (/proc/net)
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

struct workqueue_struct *hps_connect_wq;
struct workqueue_struct *hps_program_wq;
struct workqueue_struct *hps_teardown_wq;

static const struct {
	struct workqueue_struct **wq;
	const char *name;
} hps_queues[] = {
	{ &hps_connect_wq, "hpsock_connect" },
	{ &hps_program_wq, "hpsock_program" },
	{ &hps_teardown_wq, "hpsock_teardown" },
};

/* A teardown waits for no other work, so nothing is left of them in any order. */
static void hps_queues_destroy(void)
{
	int i;

	for (i = ARRAY_SIZE(hps_queues) - 1; i >= 0; i--)
		if (*hps_queues[i].wq)
			destroy_workqueue(*hps_queues[i].wq);
}

static int __init hps_queues_create(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hps_queues); i++) {
		*hps_queues[i].wq = alloc_workqueue("%s", WQ_UNBOUND, 0,
						    hps_queues[i].name);
		if (!*hps_queues[i].wq) {
			hps_queues_destroy();
			return -ENOMEM;
		}
	}
	return 0;
}

static int __init hps_init(void)
{
	int err;

	hps_protect_init();
	err = hps_queues_create();
	if (err)
		return err;
	err = hps_link_init();
	if (err)
		goto destroy_queues;
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
destroy_queues:
	hps_queues_destroy();
	return err;
}

/* Sockets hold the module, so none is left; connections may still be ending. */
static void __exit hps_exit(void)
{
	hps_family_unregister();
	hps_device_unregister();
	hps_queues_destroy();
	hps_sock_unregister();
	hps_net_unregister();
	hps_link_exit();
}

module_init(hps_init);
module_exit(hps_exit);

MODULE_DESCRIPTION("AF_HPSOCK: high performance sockets over RDMA");
MODULE_AUTHOR("The hpsock maintainers");
MODULE_LICENSE("GPL");
