/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PROBE_H
#define HPS_PROBE_H

#include "conn.h"

/* Silence after which a peer that data waits for is probed, or the device is looked at. */
#define HPS_PROBE_STALLED	(5 * HZ)

void hps_probe_init(struct hps_conn *conn);
void hps_probe_watch(struct hps_conn *conn);
void hps_probe_arm(struct hps_conn *conn);
void hps_probe_cancel(struct hps_conn *conn);
unsigned int hps_probe_idle(const struct sock *sk);
unsigned int hps_probe_interval(const struct sock *sk);
unsigned int hps_probe_count(const struct sock *sk);
void hps_probe_changed(struct sock *sk);
void hps_keepalive(struct sock *sk, int val);

/**
 * hps_probe_moved - the transport has completed something
 * @conn: locked
 */
static inline void hps_probe_moved(struct hps_conn *conn)
{
	conn->tx_moved = jiffies;
	conn->tx_late = false;
}

/**
 * hps_probe_look - have the timer look after the connection
 * @conn: locked
 * @wait: in so many jiffies at the latest; what is later than %HPS_PROBE_STALLED need not be
 *	exact
 *
 * A timer that was armed for long may be late by an eighth of that, and timer_reduce() leaves
 * it alone once it is about to be due.
 */
static inline void hps_probe_look(struct hps_conn *conn, unsigned long wait)
{
	struct timer_list *probe = &conn->probe;
	bool far = wait > HPS_PROBE_STALLED;
	int pending;

	if (unlikely(conn->probe_far && !far))
		pending = mod_timer(probe, jiffies + wait);
	else
		pending = timer_reduce(probe, jiffies + wait);
	if (!pending)
		hps_conn_get(conn);
	conn->probe_far = far && (conn->probe_far || !pending);
}

/**
 * hps_probe_under_way - something was posted, nothing having been under way before
 * @conn: locked
 *
 * Somebody is to look whether it arrives. The timer mostly runs already.
 */
static inline void hps_probe_under_way(struct hps_conn *conn)
{
	hps_probe_moved(conn);
	if (!conn->shut)
		hps_probe_look(conn, HPS_PROBE_STALLED);
}

#endif /* HPS_PROBE_H */
