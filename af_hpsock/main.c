// SPDX-License-Identifier: GPL-2.0
/*
 * AF_HPSOCK: high performance sockets over RDMA.
 *
 * Data walks one way: a program's call comes in by family.c, is carried out on
 * a socket, whose bytes are in a connection, which a transport carries
 * (transport.h). What comes in walks back the same way.
 *
 *   socket       family.c and proto.c (the tables by which the kernel calls), sock.c,
 *                addr.c, port.c (who has which), bind.c, connect.c with retry.c,
 *                listen.c with queue.c, send.c, recv.c, splice.c, close.c, poll.c,
 *                sockopt.c with options_*.c
 *   connection   conn.c, conn_life.c (its beginning and its end), orphan.c (how many go
 *                on without a program), conn_rx.c and conn_tx.c (what the transport
 *                tells), stream.c (sending), record.c (messages in a stream), urgent.c,
 *                fetch.c (bytes that are still at the peer), invite.c (readers that let
 *                the peer write to their memory), lent.c (pages that the peer reads),
 *                wait.c (sends that wait for that), zerocopy.c (pages that the program
 *                leaves alone), probe.c (is the peer there?), buf.c (bytes on their way),
 *                transport.c (which there are)
 *   transport    over RDMA: rdma.c, link.c (a connection's), cm.c (the handshake),
 *                asker.c (who asks for it on iWARP), service.c (where it comes in),
 *                post.c (the send queue), msg.c and msg_rx.c, receives.c with growth.c
 *                and shrink.c, credit.c, device.c, dma.c, key.c (to memory of programs),
 *                source.c (what is offered to the peer), cancel.c (and taken back),
 *                read.c (RDMA Reads), target.c (where the peer writes), rendezvous.c
 *                (where it asks for that)
 *   beside them  net.c (a namespace's), mem.c (how much memory), share.c (whose it is),
 *                protect.c (pages of programs) with page_table.c, page_run.c and
 *                protect_selftest.c, param.c (tunables), sysctl.c (those of a namespace),
 *                proc.c and stats.c (/proc/net)
 *
 * A connection calls its transport by struct hps_transport alone, and no file of another
 * room sees the verbs; checks/layers has that checked.
 *
 * conn.c has the life cycle, the lock order and the reference rule.
 */
#include <linux/module.h>
#include <linux/workqueue.h>

#include "device.h"
#include "family.h"
#include "net.h"
#include "protect.h"
#include "proto.h"
#include "rdma.h"
#include "work.h"

struct workqueue_struct *hps_connect_wq;
struct workqueue_struct *hps_program_wq;
struct workqueue_struct *hps_fetch_wq;
struct workqueue_struct *hps_teardown_wq;

static const struct {
	struct workqueue_struct **wq;
	const char *name;
} hps_queues[] = {
	{ &hps_connect_wq, "hpsock_connect" },
	{ &hps_program_wq, "hpsock_program" },
	{ &hps_fetch_wq, "hpsock_fetch" },
	{ &hps_teardown_wq, "hpsock_teardown" },
};

/*
 * A teardown waits for no other work, so nothing is left of them in any order. One that is
 * still to be queued, by RCU, has a link on a device, and all devices are gone.
 */
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
	err = hps_rdma_init();
	if (err)
		goto destroy_queues;
	err = hps_net_register();
	if (err)
		goto exit_rdma;
	err = hps_proto_register();
	if (err)
		goto unregister_net;
	err = hps_device_register();
	if (err)
		goto unregister_proto;
	err = hps_family_register();
	if (err)
		goto unregister_device;
	return 0;

unregister_device:
	hps_device_unregister();
unregister_proto:
	hps_proto_unregister();
unregister_net:
	hps_net_unregister();
exit_rdma:
	hps_rdma_exit();
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
	hps_proto_unregister();
	hps_net_unregister();
	hps_rdma_exit();
}

module_init(hps_init);
module_exit(hps_exit);

MODULE_DESCRIPTION("AF_HPSOCK: high performance sockets over RDMA");
MODULE_AUTHOR("The hpsock maintainers");
MODULE_LICENSE("GPL");
