/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONN_H
#define HPS_CONN_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "addr.h"
#include "buf.h"
#include "record.h"
#include "transport.h"

struct hps_net;

/* What is known of the peer's urgent byte; HPS_URGENT_NONE is 0. */
enum hps_urgent {
	HPS_URGENT_NONE,
	HPS_URGENT_AHEAD,	/* it was announced */
	HPS_URGENT_HERE,	/* it can be read */
	HPS_URGENT_READ,	/* it was, apart from the stream */
};

/* Does somebody fetch what the receive queue has at the peer? HPS_FETCH_IDLE is 0. */
enum hps_fetching {
	HPS_FETCH_IDLE,
	HPS_FETCH_BUSY,
	HPS_FETCH_WANTED,	/* and a reader waits for that to end */
};

/**
 * struct hps_conn - a connection, with or without a socket
 * @lock: guards everything here but what is said to be constant
 * @ref: see conn.c
 * @ops: constant
 * @hn: counters; constant
 * @net: namespace, held by the transport until the end; constant
 * @state: TCP state, changed by hps_conn_set_state() alone
 * @fin_queued: FIN follows the data that is queued
 * @fin_sent: FIN is posted
 * @fin_acked: the peer has all our data and FIN
 * @fin_rcvd: the peer's FIN came; no data may follow
 * @finack_owed: the peer's FIN is to be answered
 * @resetting: an orphan that will be reset when the peer has what was sent
 * @shut: the transport was told to end
 * @ended: hps_conn_end() was called
 * @orphan: the program closed the socket
 * @counted: where in hps_net.orphans, enum hps_orphan
 * @records: the stream is one of records, SOCK_SEQPACKET; constant
 * @tries: attempts to connect that may fail one after the other, as this one failed in a
 *	way that may pass
 * @err: why the connection ended, positive errno, 0 for in good order
 * @deferred: passive: established, but TCP_DEFER_ACCEPT waits for data
 * @confirmed: a message of ours was delivered
 * @user_timeout: TCP_USER_TIMEOUT in jiffies, 0 for none
 * @user_mss: TCP_MAXSEG, 0 for none; constant
 * @dif: interface index; set when established
 * @sk: the socket, referenced, from attach to detach
 * @listener: passive, until accepted: the listening socket, referenced
 * @accept_node: in a queue of @listener, under its lock
 * @rcu: once the last reference is gone: poll() looks at a connection without one, but not
 *	at queues, and may take @lock
 * @local: our end; constant once established
 * @peer: the other end; constant once established
 * @rxq: received data in order
 * @rx_avail: bytes in @rxq not read yet; a reader takes off without the lock
 * @rx_drop: bytes at the head of @rxq that nobody will read, not in @rx_avail
 * @rx_read: bytes of the stream that were read. Readers count, and while one waits with
 *	memory that is shown, which is while @rxq is empty, completions do
 * @rx_remote: buffers in @rxq with bytes that are still at the peer
 * @rx_cancel: offers that the peer takes back: the last so many of these, or all, if
 *	fewer are left unread
 * @fetching: somebody reads at the peer what @rxq has, without the socket's lock, and no
 *	other may take anything from there: enum hps_fetching. Written under that lock
 * @fetched: what the work of fetch.c has read, and whoever has the socket's lock next is to
 *	put in @rxq, which ends @fetching; or NULL. Charged, and empty if that failed
 * @rx_framing: where in a record the next byte is that comes in
 * @rx_record: where in a record the next byte is that will be read; the readers'
 * @rx_records: ends of records in @rxq that their sender finished
 * @rx_aborted: ends of records in @rxq that their sender gave up
 * @rx_parted: some of the record that @rx_record is in was given to a program; the
 *	readers'
 * @rx_faulted: the rest of that record goes unread, as its reader's memory was bad; the
 *	readers'
 * @rx_stamp: when bytes last came to memory that was shown
 * @invite_pause: how often a reader only waited the last time that it was shown in vain
 * @invite_skip: how often it still will
 * @invites: it is worth it; these three are the readers'
 * @rx_follows: more follows at once what came last, as the peer says; set before DATA is
 *	queued, and cleared after
 * @rx_lost: the transport is gone, and what @rx_remote counts cannot be read any more
 * @rx_urgent: enum hps_urgent, see urgent.c
 * @rx_urgent_byte: a copy of the urgent byte, from HPS_URGENT_HERE on
 * @rx_show_max: bytes of memory that can be shown to the peer in one piece, 0 if none
 * @rx_urgent_at: the place of the urgent byte in the stream
 * @txq: buffers with bytes to post or room to fill, in order
 * @tx_flight: full buffers, posted, not completed, in order
 * @tx_spare: buffers that were delivered, for what comes next; charged as the others
 * @tx_notes: see zerocopy.c
 * @tx_gathers: buffers of pages queued, modulo 2^32
 * @tx_gathers_done: how many of @tx_gathers are done with, modulo 2^32
 * @tx_unsent: bytes filled in and not posted
 * @tx_unacked: bytes posted and not completed
 * @tx_lost: bytes posted of which it is not known whether the peer has them, unless it
 *	has all that we sent (@fin_acked)
 * @tx_msg_max: payload of one message, bytes; set when established
 * @tx_least: a buffer with room for less counts as full; constant
 * @tx_head: where the head of the record is that will be queued next, behind the end of
 *	that buffer, or NULL; the senders'
 * @tx_lend_max: bytes that can be lent in one piece, 0 if none; set when established
 * @lend_pause: how many sends were copied the last time that lent pages were written
 *	early, less what is forgotten since
 * @lend_skip: how many sends will still be copied before another is lent
 * @lend_proven: the program did not write to the last send that was lent too early
 * @lend_trial: one send is lent, to see whether that is so
 * @holds: sends of protected pages that are lent
 * @tx_waited: sources that a send waits for, see wait.c
 * @tx_turn: one send has the queue for itself, to wait for sources or in the middle of a
 *	record: no other queues anything, and no FIN is sent
 * @tx_hold: sources are being taken back (cancel.c); nothing of the stream is posted
 * @tx_back: bytes that were taken back
 * @tx_call: where in the stream the bytes of the last call begin, modulo 2^32
 * @rx_cpu: instead, until accept(): which processor had the last of the peer
 * @tx_call_len: how many they are, those included that it has not queued yet; 0 if they
 *	are held back
 * @tx_urgent: one of the bytes to post is urgent
 * @tx_urgent_told: the peer was told that an urgent byte will come
 * @tx_urgent_at: the place of that byte in the stream
 * @told: a call has returned the error that is to be reported
 * @reported: the program was told that the connection is over
 * @tx_blocked: the transport takes no DATA, or is busy; it calls hps_stream_push() when it
 *	may, or is less so
 * @tx_combining: that is why: the last bytes wait for more, which may go with them
 * @tx_late: the transport has completed nothing for too long, see probe.c; it is looked
 *	at once more
 * @probe_far: @probe is armed for long and may be late, as nothing is under way
 * @probe_late: @probe was late when it ran last, as this computer had stood still, and what
 *	was under way was given that time
 * @tx_corked: as many of the last bytes to post are held back until they fill a message;
 *	those before them are not. It may be more than there are
 * @done_bytes: completed bytes the socket's accounts do not know of yet
 * @done_mem: memory of freed send buffers, likewise
 * @done_rx: memory of receives that are not needed any more, likewise
 * @opening_timer: ends the handshake, or what TCP_DEFER_ACCEPT waits for
 * @cork_timer: has what is corked sent
 * @idle_timer: ends an orphan, or has it reset; frees the spare buffers of one that is not,
 *	HPS_SPARE_KEEP after @progress.
 *	These three hold a reference while pending
 * @probe: timer of probe.c, holds a reference while pending
 * @collect: work of fetch.c, holds a reference while queued
 * @heard: jiffies when the peer was last heard of; of one in a queue that is not
 *	established, when it came there
 * @watched: the peer's silence counts from here on if that is later than @heard, jiffies
 * @progress: jiffies when the peer last took data, or, if it has taken all since, when
 *	there was data for it again; as @watched, later by the time that this
 *	computer stood still
 * @tx_last: jiffies when DATA was last posted
 * @tx_moved: jiffies when the transport last completed something, or, if it has completed
 *	all since, when something was posted again; later when @tx_late
 * @rx_last: jiffies when DATA was last received
 * @tx_msgs: data messages posted
 * @rx_msgs: data messages received
 * @tx_bytes: bytes posted
 * @rx_bytes: bytes received
 */
struct hps_conn {
	spinlock_t lock;	/* order: conn.c */
	struct kref ref;
	const struct hps_transport *ops;
	struct hps_net *hn;
	struct net *net;

	u8 state;
	bool fin_queued;
	bool fin_sent;
	bool fin_acked;
	bool fin_rcvd;
	bool finack_owed;
	bool resetting;
	bool records;
	bool shut;
	bool ended;
	bool orphan;
	u8 counted;
	u8 tries;
	bool tx_blocked;
	bool told;
	bool reported;
	bool deferred;
	bool confirmed;
	u16 user_mss;
	unsigned int user_timeout;
	int dif;
	int err;

	struct sock *sk;
	struct sock *listener;
	union {
		struct list_head accept_node;
		struct rcu_head rcu;
	};
	struct hps_addr local;
	struct hps_addr peer;

	struct list_head rxq;
	atomic_t rx_avail;
	u32 rx_drop;
	u64 rx_read;
	u32 rx_remote;
	u32 rx_cancel;
	struct hps_buf *fetched;
	struct hps_framing rx_framing;
	struct hps_framing rx_record;
	atomic_t rx_records;
	atomic_t rx_aborted;
	ktime_t rx_stamp;
	u16 invite_pause;
	u16 invite_skip;
	bool invites;
	u8 fetching;
	bool rx_parted;
	bool rx_faulted;
	bool rx_lost;
	bool rx_follows;
	u8 rx_urgent;
	u8 rx_urgent_byte;
	u32 rx_show_max;
	u64 rx_urgent_at;

	struct list_head txq;
	struct list_head tx_flight;
	struct list_head tx_spare;
	struct list_head tx_notes;
	u32 tx_gathers;
	u32 tx_gathers_done;
	u32 tx_unsent;
	u32 tx_corked;
	u32 tx_unacked;
	u32 tx_lost;
	u32 tx_msg_max;
	u32 tx_least;
	u32 tx_lend_max;
	union {
		u32 tx_call;
		u32 rx_cpu;
	};
	struct hps_buf *tx_head;
	u16 lend_pause;
	u16 lend_skip;
	u32 tx_waited;
	u32 tx_back;
	bool tx_turn;
	bool tx_hold;
	bool lend_proven;
	bool lend_trial;
	bool tx_urgent;
	bool tx_urgent_told;
	bool tx_combining;
	u8 tx_late:1;
	u8 probe_far:1;
	u8 probe_late:1;
	u32 tx_call_len;
	u64 tx_urgent_at;
	atomic_t holds;
	atomic_t done_bytes;
	atomic_t done_mem;
	atomic_t done_rx;

	struct timer_list opening_timer;
	struct timer_list cork_timer;
	struct timer_list idle_timer;
	struct timer_list probe;
	struct delayed_work collect;
	unsigned long heard;
	unsigned long watched;
	unsigned long progress;
	unsigned long tx_last;
	unsigned long tx_moved;
	unsigned long rx_last;
	u64 tx_msgs;
	u64 rx_msgs;
	u64 tx_bytes;
	u64 rx_bytes;
};

/* Is a send buffer full, for what the stream consists of? */
static inline bool hps_conn_filled(const struct hps_conn *conn,
				   const struct hps_buf *buf)
{
	return buf->full || buf->size - buf->end < conn->tx_least;
}

/* Bytes that were posted and the peer may not have. A snapshot, without the lock. */
static inline u32 hps_conn_tx_open(const struct hps_conn *conn)
{
	u32 lost = READ_ONCE(conn->fin_acked) ? 0 : READ_ONCE(conn->tx_lost);

	return READ_ONCE(conn->tx_unacked) + lost;
}

/*
 * Will more of the same call be sent soon behind the next @len bytes? Of the calls before the
 * last one nobody knows where each ends, but all their bytes are in the queue. Locked.
 */
static inline bool hps_conn_tx_follows(const struct hps_conn *conn, u32 len)
{
	s32 done = (u32)conn->tx_bytes + len - conn->tx_call;

	if (done < 0)
		return len < conn->tx_unsent && !conn->tx_corked && !conn->records;
	return done && (u32)done < conn->tx_call_len;
}

/* Is the handshake under way? */
static inline bool hps_conn_opening(const struct hps_conn *conn)
{
	return conn->state == TCP_SYN_SENT || conn->state == TCP_SYN_RECV;
}

/*
 * How many bytes can be read? A snapshot, without the lock. Those of a message that is
 * joined to the one before may be read a moment before they are counted.
 */
static inline u32 hps_conn_avail(const struct hps_conn *conn)
{
	return max(atomic_read(&conn->rx_avail), 0);
}

/* Where in the stream is the next byte to be read? Likewise a snapshot. */
static inline u64 hps_conn_read_pos(const struct hps_conn *conn)
{
	u64 pos = READ_ONCE(conn->rx_read);

	/* Pairs with hps_recv_drop(): nobody takes it for farther on, at an urgent byte. */
	smp_rmb();
	return pos + READ_ONCE(conn->rx_drop);
}

/* Is the next byte to be read the urgent one? Likewise a snapshot. */
static inline bool hps_urgent_next(const struct hps_conn *conn)
{
	u64 pos;

	if (likely(!READ_ONCE(conn->rx_urgent)))
		return false;
	pos = hps_conn_read_pos(conn);
	/* Pairs with hps_urgent_expect(): who sees a byte passed over sees because of which. */
	smp_rmb();
	return READ_ONCE(conn->rx_urgent_at) == pos;
}

void hps_conn_get(struct hps_conn *conn);
void hps_conn_put(struct hps_conn *conn);
struct sock *hps_conn_sock(struct hps_conn *conn);
void hps_conn_shut(struct hps_conn *conn, int err);
void hps_conn_set_state(struct hps_conn *conn, int expected, u8 state);
void hps_conn_wake(struct hps_conn *conn);
void hps_conn_arm(struct hps_conn *conn, struct timer_list *timer,
		  unsigned long delay);
void hps_conn_disarm(struct hps_conn *conn, struct timer_list *timer);
unsigned long hps_conn_retry_time(u8 retries);
void hps_conn_limit_opening(struct hps_conn *conn, unsigned long end);
u32 hps_conn_mtu(const struct hps_conn *conn);

#endif /* HPS_CONN_H */
