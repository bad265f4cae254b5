// SPDX-License-Identifier: GPL-2.0
/*
 * Is the peer still there? A queue pair notices a dead peer only by what it
 * sends, so something has to be sent to one that was not heard of for a while
 * and has nothing under way to it, if the program
 *
 *   - has data for it that waits for a credit, or to be read where it is, which may never
 *     come; this is TCP's zero window probe;
 *   - asked for SO_KEEPALIVE.
 *
 * A probe is what the transport can send without taking anything at the other
 * end. The transport repeats it by itself (the queue pair's timeout and retry
 * count) and may give up first; TCP_KEEPINTVL times TCP_KEEPCNT, or
 * TCP_USER_TIMEOUT, bounds how long an answer is waited for. The latter also
 * bounds how long a peer that answers may take none of the data there is for it.
 * Nor is it waited for ever for a device that forgets to repeat and to give up: while
 * anything is under way somebody looks.
 */
#include <net/tcp.h>

#include "compat.h"
#include "conn.h"
#include "net.h"
#include "probe.h"
#include "sock.h"

/*
 * A device that works gives up before. Soft-RoCE before 6.5 may do neither that nor repeat
 * once a message could not be sent while others were under way: its link is down.
 */
#define HPS_PROBE_LOST		(60 * HZ)

/*
 * The timer is no later by itself when it is armed for seconds: this computer stood still, as
 * a guest that is moved does.
 */
#define HPS_PROBE_LATE		HZ

/**
 * hps_probe_idle - silence after which SO_KEEPALIVE probes
 * @sk: the socket
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned int hps_probe_idle(const struct sock *sk)
{
	return READ_ONCE(hps_sk(sk)->keepidle) ?:
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_time);
}

/**
 * hps_probe_interval - TCP_KEEPINTVL of a socket
 * @sk: the socket
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned int hps_probe_interval(const struct sock *sk)
{
	return READ_ONCE(hps_sk(sk)->keepintvl) ?:
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_intvl);
}

/**
 * hps_probe_count - TCP_KEEPCNT of a socket
 * @sk: the socket
 *
 * Context: any.
 * Return: a number of probes.
 */
unsigned int hps_probe_count(const struct sock *sk)
{
	return READ_ONCE(hps_sk(sk)->keepcnt) ?:
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_probes);
}

/* Does SO_KEEPALIVE count? */
static bool hps_probe_keeps(const struct hps_conn *conn)
{
	return conn->sk && !conn->orphan && sock_flag(conn->sk, SOCK_KEEPOPEN);
}

/*
 * Jiffies of silence after which the connection probes, or looks after what is under way; 0
 * for never. SO_KEEPALIVE's time may be over soon after a probe was answered.
 */
static unsigned int hps_probe_patience(struct hps_conn *conn)
{
	unsigned int idle;

	if (conn->tx_unsent || conn->tx_unacked)
		return HPS_PROBE_STALLED;
	idle = hps_probe_keeps(conn) ? hps_probe_idle(conn->sk) : 0;
	if (conn->ops->tx_idle(conn))
		return idle;
	return idle ? min_t(unsigned int, idle, HPS_PROBE_STALLED) : HPS_PROBE_STALLED;
}

/* Since when the peer is silent; not for longer than @idle when it was asked. */
static unsigned long hps_probe_since(const struct hps_conn *conn, unsigned long idle)
{
	unsigned long since = conn->tx_moved - idle;

	if (time_after(conn->heard, since))
		since = conn->heard;
	return time_after(conn->watched, since) ? conn->watched : since;
}

/*
 * When the peer counts as gone, 0 for never: TCP_USER_TIMEOUT after it last took
 * of the data there is for it; without data, when probes were not answered for
 * as long as TCP would repeat them, or for TCP_USER_TIMEOUT. Where nothing is under way,
 * there is nothing that was not answered.
 */
static unsigned long hps_probe_deadline(struct hps_conn *conn)
{
	unsigned long idle, interval, limit = conn->user_timeout;

	if (conn->tx_unsent || conn->tx_unacked)
		return limit ? (conn->progress + limit) ?: 1 : 0;
	if (!hps_probe_keeps(conn) || conn->ops->tx_idle(conn))
		return 0;
	idle = hps_probe_idle(conn->sk);
	interval = hps_probe_interval(conn->sk);
	if (!limit)
		limit = idle + interval * hps_probe_count(conn->sk);
	return (hps_probe_since(conn, idle) + max(limit, idle + interval)) ?: 1;
}

/* Jiffies from now, 0 if that is past. */
static unsigned long hps_probe_left(unsigned long when)
{
	return time_after(when, jiffies) ? when - jiffies : 0;
}

/* Jiffies until there is something to do, 0 for at once, -1 for never. */
static long hps_probe_wait(struct hps_conn *conn)
{
	unsigned long wait = LONG_MAX, when;

	if (conn->shut || hps_conn_opening(conn))
		return -1;
	/* All has been said, but FINACK may be under way. */
	if (conn->state == TCP_CLOSE && conn->ops->tx_idle(conn))
		return -1;
	when = hps_probe_patience(conn);
	if (when)
		wait = hps_probe_left(conn->heard + when);
	when = hps_probe_deadline(conn);
	if (when)
		wait = min(wait, hps_probe_left(when));
	return wait == LONG_MAX ? -1 : wait;
}

/* It is time: for the end, or for a probe. Returns when to come again, or -1. */
static long hps_probe_act(struct hps_conn *conn)
{
	unsigned int patience = hps_probe_patience(conn);
	unsigned long deadline = hps_probe_deadline(conn), wait = LONG_MAX;

	if (deadline && !hps_probe_left(deadline)) {
		hps_stat_inc(conn->hn, HPS_STAT_PEER_TIMEOUT);
		hps_conn_shut(conn, ETIMEDOUT);
		return -1;
	}
	if (patience && !hps_probe_left(conn->heard + patience)) {
		/* What is under way is acknowledged by the peer as a probe would be. */
		if (conn->ops->tx_idle(conn) && conn->ops->probe(conn))
			hps_stat_inc(conn->hn, HPS_STAT_PROBE);
		/* The probe is under way now, and looked after. */
		wait = hps_probe_patience(conn);
		deadline = hps_probe_deadline(conn);
	} else if (patience) {
		wait = hps_probe_left(conn->heard + patience);
	}
	if (deadline)
		wait = min(wait, hps_probe_left(deadline));
	return wait == LONG_MAX ? -1 : wait;
}

/*
 * Has the device forgotten what is under way, so that it reports neither its delivery nor an
 * error? TCP would try for as long at most. The clock may have jumped, as that of a guest
 * does: what has completed meanwhile gets some seconds to be told.
 */
static bool hps_probe_forgotten(struct hps_conn *conn)
{
	u8 retries = READ_ONCE(conn->net->ipv4.sysctl_tcp_retries2);
	unsigned long limit = max_t(unsigned long, hps_conn_retry_time(retries),
				    HPS_PROBE_LOST);

	if (conn->shut || conn->ops->tx_idle(conn) ||
	    hps_probe_left(conn->tx_moved + limit))
		return false;
	if (conn->tx_late)
		return true;
	conn->tx_late = true;
	conn->tx_moved = jiffies - limit + HPS_PROBE_STALLED;
	return false;
}

/* @when, so many jiffies later, but not after now. */
static unsigned long hps_probe_later(unsigned long when, unsigned long late)
{
	return jiffies - when > late ? when + late : jiffies;
}

/*
 * The peer could not be heard of for so many jiffies, as the timer was late, and they do not
 * count. While nothing is under way to the peer, it is given no time that could count, and
 * false is returned.
 */
static bool hps_probe_late(struct hps_conn *conn, unsigned long late)
{
	unsigned long since;

	if (conn->tx_unsent || conn->tx_unacked) {
		conn->progress = hps_probe_later(conn->progress, late);
		return true;
	}
	if (!hps_probe_keeps(conn) || conn->ops->tx_idle(conn))
		return false;
	since = hps_probe_since(conn, hps_probe_idle(conn->sk));
	conn->watched = hps_probe_later(since, late);
	return true;
}

static void hps_probe_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, probe);
	/* It may be armed again while the lock is waited for. */
	unsigned long due = READ_ONCE(t->expires);
	bool late;
	long wait;

	spin_lock(&conn->lock);
	late = !conn->probe_far && time_after(jiffies, due + HPS_PROBE_LATE);
	/*
	 * Was it due at the very end, what the peer did meanwhile has not been told yet. That
	 * takes no second, and it gets one, but no other if the timer is late again.
	 */
	if (late)
		late = hps_probe_late(conn, jiffies - due +
					    (conn->probe_late ? 0 : HPS_PROBE_LATE));
	conn->probe_late = late;
	if (hps_probe_forgotten(conn)) {
		hps_stat_inc(conn->hn, HPS_STAT_TX_FORGOTTEN);
		hps_conn_shut(conn, ETIMEDOUT);
	}
	wait = hps_probe_wait(conn);
	if (!wait)
		wait = hps_probe_act(conn);
	if (wait >= 0)
		hps_probe_look(conn, wait);
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
	conn->watched = jiffies;
}

/**
 * hps_probe_watch - SO_KEEPALIVE, or one of its times, counts from now on
 * @conn: locked
 *
 * How long the peer was silent before that does not matter, as nobody asked: the first
 * probe is sent at once, and the time for its answer begins now.
 */
void hps_probe_watch(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	/* A probe or a message is under way, whose time goes on. */
	if (!conn->ops->tx_idle(conn))
		return;
	conn->watched = jiffies;
	if (hps_probe_keeps(conn))
		conn->watched -= hps_probe_idle(conn->sk);
}

/**
 * hps_probe_arm - there may be a reason to probe, or for an end to wait, now
 * @conn: locked
 *
 * An unfounded call costs one run of the timer.
 */
void hps_probe_arm(struct hps_conn *conn)
{
	long wait = hps_probe_wait(conn);

	lockdep_assert_held(&conn->lock);
	if (wait >= 0)
		hps_probe_look(conn, wait);
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
 * hps_probe_changed - SO_KEEPALIVE or a time that counts here was changed
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
	conn->user_timeout = msecs_to_jiffies(hps_sk(sk)->user_timeout);
	hps_probe_watch(conn);
	/* At once, to count anew from what is there. */
	if (!conn->ended)
		hps_probe_look(conn, 0);
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
