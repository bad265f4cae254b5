// SPDX-License-Identifier: GPL-2.0
/*
 * struct proto: what the core asks of every protocol, and the limits of all sockets.
 */
#include <linux/swap.h>
#include <net/sock.h>

#include "close.h"
#include "compat.h"
#include "conn.h"
#include "connect.h"
#include "fetch.h"
#include "probe.h"
#include "proto.h"
#include "retry.h"
#include "sock.h"
#include "sockopt.h"
#include "transport.h"

static atomic_long_t hps_memory_allocated;
static DEFINE_PER_CPU(int, hps_memory_per_cpu_fw_alloc);
static struct percpu_counter hps_sockets_allocated;
static unsigned long hps_memory_pressure;
static long hps_sysctl_mem[3];
static int hps_sysctl_wmem[3] = { SOCK_MIN_SNDBUF, 512 << 10, 4 << 20 };
static int hps_sysctl_rmem[3] = { SOCK_MIN_RCVBUF, 512 << 10, 4 << 20 };

/* proto.init: hps_sock_alloc() made it, and nobody else knows it. */
static int hps_proto_init(struct sock *sk)
{
	hps_opt_init(sk);
	hps_connect_init(sk);
	return 0;
}

/*
 * What was held up by SO_RCVBUF is looked at again when that has become larger: by an option,
 * of which the core tells nobody.
 */
static void hps_proto_rcvbuf(struct sock *sk, struct hps_conn *conn)
{
	struct hps_sock *hsk = hps_sk(sk);
	u32 limit = hps_sock_rcv_limit(sk), seen = hsk->rcv_seen;

	hsk->rcv_seen = limit;
	if (unlikely(limit > seen) && conn)
		conn->ops->grow_later(conn);
}

/* proto.release_cb: the lock becomes free; its inner spin lock is held. */
static void hps_proto_release_cb(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_conn *conn = rcu_dereference_protected(hsk->conn, true);
	u8 later = hsk->later;

	hps_sock_reap(sk);
	hps_proto_rcvbuf(sk, conn);
	if (likely(!later))
		return;
	hsk->later = 0;
	if (later & HPS_LATER_CONNECT)
		hps_retry_later(sk);
	if (conn && later & HPS_LATER_COLLECT)
		hps_fetch_later(conn);
	if (conn && later & HPS_LATER_GROW)
		conn->ops->grow_later(conn);
}

/* TCP_NOTSENT_LOWAT, as tcp_stream_memory_free() has it. */
static bool hps_proto_memory_free(const struct sock *sk, int wake)
{
	struct hps_conn *conn;
	u32 unsent = 0;

	rcu_read_lock();
	conn = rcu_dereference(hps_sk(sk)->conn);
	if (conn)
		unsent = READ_ONCE(conn->tx_unsent);
	rcu_read_unlock();
	return unsent << wake < hps_sk_notsent_lowat(sk);
}

/* sk_leave_memory_pressure() by itself clears it. */
static void hps_proto_enter_pressure(struct sock *sk)
{
	if (!READ_ONCE(hps_memory_pressure))
		WRITE_ONCE(hps_memory_pressure, 1);
}

struct proto hps_prot = {
	.name			= "HPSOCK",
	.owner			= THIS_MODULE,
	.close			= hps_close,
	.disconnect		= hps_disconnect,
	.init			= hps_proto_init,
	.release_cb		= hps_proto_release_cb,
	.keepalive		= hps_keepalive,
	.stream_memory_free	= hps_proto_memory_free,
	.enter_memory_pressure	= hps_proto_enter_pressure,
	.memory_allocated	= &hps_memory_allocated,
	.per_cpu_fw_alloc	= &hps_memory_per_cpu_fw_alloc,
	.memory_pressure	= &hps_memory_pressure,
	.sockets_allocated	= &hps_sockets_allocated,
	.sysctl_mem		= hps_sysctl_mem,
	.sysctl_wmem		= hps_sysctl_wmem,
	.sysctl_rmem		= hps_sysctl_rmem,
	.obj_size		= sizeof(struct hps_sock),
	HPS_PROTO_COMPAT
};

/**
 * hps_proto_register - make sockets possible
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int hps_proto_register(void)
{
	/* In pages, as tcp_mem: an eighth is pressure, three sixteenths are the limit. */
	unsigned long limit = max(nr_free_buffer_pages() / 8, 128UL);
	int err;

	hps_sysctl_mem[0] = limit / 4 * 3;
	hps_sysctl_mem[1] = limit;
	hps_sysctl_mem[2] = hps_sysctl_mem[0] * 2;
	err = percpu_counter_init(&hps_sockets_allocated, 0, GFP_KERNEL);
	if (err)
		return err;
	err = proto_register(&hps_prot, 1);
	if (err)
		percpu_counter_destroy(&hps_sockets_allocated);
	return err;
}

/**
 * hps_proto_unregister - undo hps_proto_register(), when no socket is left
 *
 * Context: process, may sleep.
 */
void hps_proto_unregister(void)
{
	proto_unregister(&hps_prot);
	percpu_counter_destroy(&hps_sockets_allocated);
}
