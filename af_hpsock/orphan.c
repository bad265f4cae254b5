// SPDX-License-Identifier: GPL-2.0
/*
 * How many connections go on without a program. They hold a queue pair and memory that no
 * limit of their program's counts any more, so there is one for a namespace. As in TCP it
 * is one for those that still deliver (tcp_max_orphans) and another for those that only
 * wait for the peer (tcp_max_tw_buckets): any peer can have many wait by not closing, and
 * that shall not be at the cost of a program that closes with something to deliver.
 */
#include "conn.h"
#include "net.h"
#include "orphan.h"
#include "param.h"

static enum hps_orphan hps_orphan_kind(const struct hps_conn *conn)
{
	/* A handshake has three seconds (hps_conn_reset()), and had a place in a backlog. */
	if (!conn->orphan || conn->shut || hps_conn_opening(conn))
		return HPS_ORPHAN_NONE;
	return conn->state == TCP_FIN_WAIT2 ? HPS_ORPHAN_WAITING : HPS_ORPHAN_SENDING;
}

/**
 * hps_orphan_count - count a connection as what it is now
 * @conn: locked; to be called when it has become an orphan, comes to FIN_WAIT2, or is shut
 *
 * Context: any.
 * Return: false if there is one too many of these now.
 */
bool hps_orphan_count(struct hps_conn *conn)
{
	enum hps_orphan kind = hps_orphan_kind(conn);
	atomic_t *orphans = conn->hn->orphans;
	bool few = true;

	lockdep_assert_held(&conn->lock);
	if (kind == conn->counted)
		return true;
	if (kind)
		few = atomic_inc_return(&orphans[kind]) <= READ_ONCE(hps_orphan_max);
	/* After that: see hps_orphan_read(). */
	if (conn->counted)
		atomic_dec(&orphans[conn->counted]);
	conn->counted = kind;
	return few;
}

/**
 * hps_orphan_read - how many there are
 * @hn: the namespace
 *
 * Context: any.
 * Return: a snapshot.
 */
int hps_orphan_read(const struct hps_net *hn)
{
	int sending = atomic_read(&hn->orphans[HPS_ORPHAN_SENDING]);

	/* One that comes to wait meanwhile is counted twice, not left out. */
	smp_rmb();
	return sending + atomic_read(&hn->orphans[HPS_ORPHAN_WAITING]);
}
