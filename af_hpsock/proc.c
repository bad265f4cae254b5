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
		rx = atomic_read(&conn->rx_avail);
		tx = READ_ONCE(conn->tx_unsent) + READ_ONCE(conn->tx_unacked);
	}
	rcu_read_unlock();
	seq_printf(seq, "%pI6c %u %pI6c %u %u %u %u %u %lu\n",
		   &hsk->local.ip, hsk->local.port, &hsk->peer.ip,
		   hsk->peer.port, sk->sk_state, rx, tx,
		   from_kuid_munged(seq_user_ns(seq), sock_i_uid(sk)),
		   sock_i_ino(sk));
}

/* Start at a hash chain, go on where the last read ended. */
static void *hps_proc_start(struct seq_file *seq, loff_t *pos)
{
	struct hps_net *hn = hps_net(seq_file_net(seq));

	if (!*pos)
		return SEQ_START_TOKEN;
	return *pos <= ARRAY_SIZE(hn->ports) ? &hn->ports[*pos - 1] : NULL;
}

static void *hps_proc_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	return hps_proc_start(seq, pos);
}

static void hps_proc_stop(struct seq_file *seq, void *v)
{
}

static int hps_proc_show(struct seq_file *seq, void *v)
{
	struct hps_net *hn = hps_net(seq_file_net(seq));
	struct hlist_head *head = v;
	struct hps_sock *hsk;

	if (v == SEQ_START_TOKEN) {
		seq_puts(seq, "local port peer port state rx_queue tx_queue uid inode\n");
		return 0;
	}
	spin_lock_bh(&hn->port_lock);
	hlist_for_each_entry(hsk, head, port_node)
		hps_proc_sock(seq, hsk);
	spin_unlock_bh(&hn->port_lock);
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
 * Context: process, may sleep. Return: 0 or -ENOMEM.
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
