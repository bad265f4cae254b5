// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/net/hpsock: a line for every socket that holds a port.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "net.h"
#include "proc.h"
#include "sock.h"

static void hps_proc_sock(struct seq_file *seq, struct hps_sock *hsk)
{
	struct sock *sk = &hsk->inet.sk;
	struct hps_conn *conn;
	u32 rx = 0, tx = 0;

	rcu_read_lock();
	conn = rcu_dereference(hsk->conn);
	if (conn) {
		rx = hps_conn_avail(conn);
		tx = READ_ONCE(conn->tx_unsent) + hps_conn_tx_open(conn);
	}
	rcu_read_unlock();
	seq_printf(seq, "%pI6c %u %pI6c %u %u %u %u %u %lu\n",
		   &hsk->local.ip, hsk->local.port, &hsk->peer.ip,
		   hsk->peer.port, sk->sk_state, rx, tx,
		   from_kuid_munged(seq_user_ns(seq), sock_i_uid(sk)),
		   sock_i_ino(sk));
}

/*
 * A place in the file: 0 is the line of titles, and what is above 1 is a chain of
 * hps_net.socks and a socket's number in it. The lock is held from start to stop, which
 * is for as many lines as a page has.
 */
static loff_t hps_proc_pos(u32 chain, u32 n)
{
	return 1 + ((loff_t)chain << 32 | n);
}

/* The socket at a place, or the first one behind it. */
static void *hps_proc_find(struct hps_net *hn, loff_t *pos)
{
	u32 chain = (*pos - 1) >> 32, n = *pos - 1;
	struct hps_sock *hsk;

	for (; chain < ARRAY_SIZE(hn->socks); chain++, n = 0) {
		*pos = hps_proc_pos(chain, n);
		hlist_for_each_entry(hsk, &hn->socks[chain], sock_node)
			if (!n--)
				return hsk;
	}
	*pos = hps_proc_pos(chain, 0);
	return NULL;
}

static void *hps_proc_start(struct seq_file *seq, loff_t *pos)
	__acquires(&hps_net(seq_file_net(seq))->port_lock)
{
	struct hps_net *hn = hps_net(seq_file_net(seq));

	spin_lock_bh(&hn->port_lock);
	return *pos ? hps_proc_find(hn, pos) : SEQ_START_TOKEN;
}

static void *hps_proc_next(struct seq_file *seq, void *v, loff_t *pos)
{
	struct hps_net *hn = hps_net(seq_file_net(seq));
	struct hlist_node *next;

	if (v == SEQ_START_TOKEN) {
		*pos = hps_proc_pos(0, 0);
		return hps_proc_find(hn, pos);
	}
	++*pos;
	/* A chain may be long: all that listen at one port with SO_REUSEPORT are in one. */
	next = ((struct hps_sock *)v)->sock_node.next;
	if (next)
		return hlist_entry(next, struct hps_sock, sock_node);
	*pos = hps_proc_pos(((*pos - 1) >> 32) + 1, 0);
	return hps_proc_find(hn, pos);
}

static void hps_proc_stop(struct seq_file *seq, void *v)
	__releases(&hps_net(seq_file_net(seq))->port_lock)
{
	spin_unlock_bh(&hps_net(seq_file_net(seq))->port_lock);
}

static int hps_proc_show(struct seq_file *seq, void *v)
{
	if (v == SEQ_START_TOKEN)
		seq_puts(seq, "local port peer port state rx_queue tx_queue uid inode\n");
	else
		hps_proc_sock(seq, v);
	return 0;
}

static const struct seq_operations hps_proc_ops = {
	.start = hps_proc_start,
	.next = hps_proc_next,
	.stop = hps_proc_stop,
	.show = hps_proc_show,
};

/**
 * hps_proc_net_init - make the file of a namespace
 * @net: the namespace
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int hps_proc_net_init(struct net *net)
{
	if (!proc_create_net("hpsock", 0444, net->proc_net, &hps_proc_ops,
			     sizeof(struct seq_net_private)))
		return -ENOMEM;
	return 0;
}

/**
 * hps_proc_net_exit - undo hps_proc_net_init()
 * @net: the namespace
 *
 * Context: process, may sleep.
 */
void hps_proc_net_exit(struct net *net)
{
	remove_proc_entry("hpsock", net->proc_net);
}
