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
 * hps_probe_under_way - something was posted, nothing having been under way before
 * @conn: locked
 *
 * Somebody is to look whether it arrives. The timer mostly runs already.
 */
static inline void hps_probe_under_way(struct hps_conn *conn)
{
	hps_probe_moved(conn);
	if (!conn->shut && !timer_reduce(&conn->probe, jiffies + HPS_PROBE_STALLED))
		hps_conn_get(conn);
}

#endif /* HPS_PROBE_H */
