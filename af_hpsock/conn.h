/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONN_H
#define HPS_CONN_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <net/sock.h>

#include "addr.h"
#include "buf.h"
#include "transport.h"

struct hps_net;

/**
 * struct hps_conn - a connection, with or without a socket
 * @lock: guards everything here but what is said to be constant
 * @ref: see conn.c
 * @rcu: poll() looks at a connection without a lock
 * @ops: constant
 * @hn: counters; constant
 * @net: namespace, held by the transport until the end; constant
 * @state: TCP state, changed by hps_conn_set_state() alone
 * @fin_queued: FIN follows the data that is queued
 * @fin_sent: FIN is posted
 * @fin_acked: the peer has all our data and FIN
 * @fin_rcvd: the peer's FIN came; no data may follow
 * @finack_owed: the peer's FIN is to be answered
 * @shut: the transport was told to end
 * @ended: the transport is gone
 * @orphan: the program closed the socket
 * @tries: attempts to connect that may be made in all, as this one failed in a
 *	way that may pass
 * @err: why the connection ended, positive errno, 0 for in good order
 * @sk: the socket, referenced, from attach to detach
 * @listener: passive, until accepted: the listening socket, referenced
 * @accept_node: in a queue of @listener, under its lock
 * @local: our end; constant once established
 * @peer: the other end; constant once established
 * @rxq: received data in order
 * @rx_avail: bytes in @rxq not read yet
 * @txq: buffers with bytes to post or room to fill, in order
 * @tx_flight: full buffers, posted, not completed, in order
 * @tx_unsent: bytes filled in and not posted
 * @tx_unacked: bytes posted and not completed
 * @tx_msg_max: payload of one message, bytes; set when established
 * @reported: the program was told that it is over
 * @corked: hold back what does not fill a message
 * @done_bytes: completed bytes the socket's accounts do not know of yet
 * @done_mem: memory of freed send buffers, likewise
 * @timer: handshake, cork or orphan timer, holds a reference while pending
 * @probe: see probe.c, likewise
 * @heard: jiffies when the peer was last heard of
 * @tx_msgs: data messages posted
 * @rx_msgs: data messages received
 * @tx_bytes: bytes posted
 * @rx_bytes: bytes received
 */
struct hps_conn {
	spinlock_t lock;	/* order: conn.c */
	struct kref ref;
	struct rcu_head rcu;
	const struct hps_transport *ops;
	struct hps_net *hn;
	struct net *net;

	u8 state;
	bool fin_queued;
	bool fin_sent;
	bool fin_acked;
	bool fin_rcvd;
	bool finack_owed;
	bool shut;
	bool ended;
	bool orphan;
	u8 tries;
	bool corked;
	bool reported;
	int err;

	struct sock *sk;
	struct sock *listener;
	struct list_head accept_node;
	struct hps_addr local;
	struct hps_addr peer;

	struct list_head rxq;
	u32 rx_avail;

	struct list_head txq;
	struct list_head tx_flight;
	u32 tx_unsent;
	u32 tx_unacked;
	u32 tx_msg_max;
	atomic_t done_bytes;
	atomic_t done_mem;

	struct timer_list timer;
	struct timer_list probe;
	unsigned long heard;
	u64 tx_msgs;
	u64 rx_msgs;
	u64 tx_bytes;
	u64 rx_bytes;
};

void hps_conn_init(struct hps_conn *conn, const struct hps_transport *ops,
		   struct net *net);
void hps_conn_get(struct hps_conn *conn);
void hps_conn_put(struct hps_conn *conn);

int hps_conn_attach(struct hps_conn *conn, struct sock *sk);
void hps_conn_orphan(struct hps_conn *conn);
void hps_conn_drop(struct hps_conn *conn);
void hps_conn_shut(struct hps_conn *conn, int err);
int hps_conn_why(struct hps_conn *conn);
void hps_conn_set_state(struct hps_conn *conn, int expected, u8 state);
void hps_conn_arm(struct hps_conn *conn, unsigned long delay);
unsigned long hps_conn_open_time(u8 retries);
void hps_conn_limit_opening(struct hps_conn *conn, unsigned long end);

/* What a transport tells; see transport.h for the other direction. */
void hps_conn_established(struct hps_conn *conn);
int hps_conn_rx_data(struct hps_conn *conn, struct hps_buf *buf, bool tight);
int hps_conn_rx_fin(struct hps_conn *conn);
int hps_conn_rx_finack(struct hps_conn *conn);
void hps_conn_tx_done(struct hps_conn *conn, struct hps_buf *buf, u32 len);
void hps_conn_tx_idle(struct hps_conn *conn);
void hps_conn_end(struct hps_conn *conn);

/* probe.c: is the peer there? */
void hps_probe_init(struct hps_conn *conn);
void hps_probe_arm(struct hps_conn *conn);
void hps_probe_cancel(struct hps_conn *conn);

/* stream.c: from the send queue to the transport */
void hps_stream_push(struct hps_conn *conn);
void hps_stream_fin(struct hps_conn *conn);

#endif /* HPS_CONN_H */
