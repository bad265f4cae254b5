// SPDX-License-Identifier: GPL-2.0
/*
 * Is the peer still there? A queue pair notices a dead peer only by what it
 * sends, so something has to be sent to one that was not heard of for a while
 * and has nothing under way to it, if the program
 *
 *   - has data queued for it that waits for a credit, which may never come; this
 *     is TCP's zero window probe;
 *   - asked for SO_KEEPALIVE.
 *
 * A probe is what the transport can send without taking anything at the other
 * end. How often it is repeated before the peer counts as dead is the
 * transport's business (the queue pair's timeout and retry count), so TCP_KEEPINTVL
 * and TCP_KEEPCNT have no effect.
 */
#include <net/tcp.h>

#include "compat.h"
#include "conn.h"
#include "net.h"
#include "sock.h"

/* Silence after which a peer that data waits for is probed. */
#define HPS_PROBE_STALLED	(5 * HZ)

/**
 * hps_probe_idle - silence after which SO_KEEPALIVE probes
 * @sk: the socket
 *
 * Context: any. Return: jiffies.
 */
unsigned int hps_probe_idle(const struct sock *sk)
{
	return READ_ONCE(hps_sk(sk)->keepidle) ?:
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_time);
}

/* Jiffies of silence that the connection bears, 0 for any. */
static unsigned int hps_probe_patience(const struct hps_conn *conn)
{
	if (conn->shut || conn->state == TCP_CLOSE || conn->state == TCP_SYN_SENT ||
	    conn->state == TCP_SYN_RECV)
		return 0;
	if (conn->tx_unsent)
		return HPS_PROBE_STALLED;
	if (conn->sk && !conn->orphan && sock_flag(conn->sk, SOCK_KEEPOPEN))
		return hps_probe_idle(conn->sk);
	return 0;
}

static void hps_probe_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, probe);
	unsigned long silence, wait;

	spin_lock(&conn->lock);
	wait = hps_probe_patience(conn);
	silence = jiffies - conn->heard;
	if (wait && silence < wait) {
		wait -= silence;
	} else if (wait && conn->ops->tx_idle(conn)) {
		hps_stat_inc(conn->hn, PROBE);
		conn->ops->probe(conn);
	}
	if (wait && !mod_timer(&conn->probe, jiffies + wait))
		hps_conn_get(conn);
	spin_unlock(&conn->lock);
	hps_conn_put(conn);
}

/**
 * hps_probe_init - prepare a new connection
 * @conn: the connection
 *
 * Context: any.
 */
void hps_probe_init(struct hps_conn *conn)
{
	timer_setup(&conn->probe, hps_probe_timer, 0);
}

/**
 * hps_probe_arm - there may be a reason to probe now
 * @conn: locked
 *
 * Cheap if there was one before. Silence counts from when the peer was last heard
 * of; an unfounded call costs one run of the timer.
 */
void hps_probe_arm(struct hps_conn *conn)
{
	unsigned int wait;

	if (timer_pending(&conn->probe))
		return;
	wait = hps_probe_patience(conn);
	if (wait && !mod_timer(&conn->probe, jiffies + wait))
		hps_conn_get(conn);
}

/**
 * hps_probe_cancel - the connection has ended
 * @conn: not locked, shut
 *
 * Context: process, may sleep.
 */
void hps_probe_cancel(struct hps_conn *conn)
{
	if (timer_delete_sync(&conn->probe))
		hps_conn_put(conn);
}

/**
 * hps_probe_changed - SO_KEEPALIVE or the time it waits was changed
 * @sk: the socket, locked
 *
 * Context: process.
 */
void hps_probe_changed(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!conn)
		return;
	spin_lock_bh(&conn->lock);
	/* At once, to count anew from what is there. */
	if (!conn->ended && !mod_timer(&conn->probe, jiffies))
		hps_conn_get(conn);
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_keepalive - proto.keepalive: SO_KEEPALIVE is about to be set
 * @sk: the socket, locked
 * @val: to what
 *
 * Context: process.
 */
void hps_keepalive(struct sock *sk, int val)
{
	sock_valbool_flag(sk, SOCK_KEEPOPEN, val);
	hps_probe_changed(sk);
}
