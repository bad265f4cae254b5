// SPDX-License-Identifier: GPL-2.0
/*
 * The sending half of a stream: from the queue of bytes to messages.
 *
 * The queue has two levels. A program's bytes go into the last buffer of txq,
 * packed, whatever the sizes of its writes; from there each message takes as
 * many as are there and fit. So small writes go out one message each while
 * little is under way, and combine by themselves when there is more or credits
 * are missing.
 */
#include <net/tcp_states.h>

#include "conn.h"
#include "net.h"
#include "probe.h"
#include "sock.h"
#include "stream.h"
#include "urgent.h"

#define HPS_CORK_MAX	msecs_to_jiffies(200)

/* TCP_CORK and MSG_MORE hold back what does not fill a message, for a while. */
static bool hps_stream_corked(struct hps_conn *conn)
{
	if (!conn->tx_corked || conn->tx_unsent > conn->tx_corked || conn->fin_queued ||
	    conn->tx_urgent || conn->tx_unsent >= conn->tx_msg_max)
		return false;
	if (!timer_pending(&conn->cork_timer))
		hps_conn_arm(conn, &conn->cork_timer, HPS_CORK_MAX);
	return true;
}

/* Can a message with all of @buf not become longer? */
static bool hps_stream_whole(const struct hps_conn *conn, const struct hps_buf *buf)
{
	return hps_conn_filled(conn, buf) || !list_is_last(&buf->list, &conn->txq);
}

/*
 * A message that may still become longer waits while the transport is busy, with TCP_NODELAY
 * or without, much as tcp_should_autocork() has it: SOVIA's combining, but with a completion
 * that is due soon in place of a timer.
 */
static bool hps_stream_combines(struct hps_conn *conn, const struct hps_buf *buf)
{
	if (conn->tx_unsent >= conn->tx_msg_max || conn->fin_queued || conn->resetting ||
	    conn->tx_urgent || hps_stream_whole(conn, buf) || !conn->ops->tx_busy(conn))
		return false;
	conn->tx_blocked = true;
	conn->tx_combining = true;
	return true;
}

/* Post one message. Returns what the transport says, and in @len how many bytes it has. */
static int hps_stream_send(struct hps_conn *conn, struct hps_buf *buf, u32 *len)
{
	int urgent, err;

	*len = buf->end - buf->start;
	if (buf->lent) {
		err = conn->ops->offer(conn, buf);
		/* Its message is sent soon, but when it is read is the peer's affair. */
		if (!err)
			hps_probe_arm(conn);
		return err;
	}
	*len = min(*len, conn->tx_msg_max);
	urgent = hps_urgent_offset(conn, *len);
	err = conn->ops->send(conn, buf, *len, urgent);
	if (!err && urgent >= 0)
		conn->tx_urgent = false;
	return err;
}

static int hps_stream_push_data(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;
	u32 len;
	int err;

	if (unlikely(conn->tx_hold))
		return -EAGAIN;
	list_for_each_entry_safe(buf, next, &conn->txq, list) {
		while (buf->start != buf->end) {
			if (hps_stream_corked(conn) || hps_stream_combines(conn, buf))
				return -EAGAIN;
			err = hps_stream_send(conn, buf, &len);
			if (err) {
				conn->tx_blocked = true;
				hps_urgent_tell(conn);
				return err;
			}
			buf->start += len;
			/* What is held back after it has all the time that there is. */
			if (unlikely(conn->tx_corked))
				hps_conn_disarm(conn, &conn->cork_timer);
			conn->tx_last = jiffies;
			if (!conn->tx_unacked)
				conn->progress = jiffies;
			WRITE_ONCE(conn->tx_unsent, conn->tx_unsent - len);
			WRITE_ONCE(conn->tx_unacked, conn->tx_unacked + len);
			conn->tx_msgs++;
			WRITE_ONCE(conn->tx_bytes, conn->tx_bytes + len);
		}
		if (hps_conn_filled(conn, buf) && !buf->busy)
			list_move_tail(&buf->list, &conn->tx_flight);
	}
	return 0;
}

/**
 * hps_stream_queued - there is more in the last buffer of the queue
 * @conn: locked
 * @len: bytes
 */
void hps_stream_queued(struct hps_conn *conn, u32 len)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->tx_unsent && !conn->tx_unacked)
		conn->progress = jiffies;
	WRITE_ONCE(conn->tx_unsent, conn->tx_unsent + len);
}

/**
 * hps_stream_more - bytes were queued: hand them to the transport if it may take them
 * @conn: locked
 * @len: how many
 */
void hps_stream_more(struct hps_conn *conn, u32 len)
{
	u32 unsent = conn->tx_unsent;

	lockdep_assert_held(&conn->lock);
	/* What cannot become longer any more does not wait for that. */
	if (!conn->tx_blocked || conn->tx_urgent ||
	    (unsent >= conn->tx_msg_max && unsent - len < conn->tx_msg_max) ||
	    (conn->tx_combining && !list_empty(&conn->txq) &&
	     hps_stream_whole(conn, list_first_entry(&conn->txq, struct hps_buf, list))))
		hps_stream_push(conn);
}

/**
 * hps_stream_push - hand to the transport whatever it takes
 * @conn: locked
 *
 * To be called whenever there is something to send, a credit or a slot that
 * was not there before.
 */
void hps_stream_push(struct hps_conn *conn)
{
	u32 unsent = conn->tx_unsent;
	int err;

	lockdep_assert_held(&conn->lock);
	if (conn->shut || hps_conn_opening(conn))
		return;
	conn->tx_blocked = false;
	conn->tx_combining = false;
	/* After FINACK the peer may go, so bytes that are still there have to be read first. */
	if (conn->finack_owed && !conn->rx_remote && !conn->resetting &&
	    !conn->ops->send_finack(conn))
		conn->finack_owed = false;
	err = hps_stream_push_data(conn);
	if (conn->tx_unsent != unsent && conn->sk)
		hps_sock_less_unsent(conn->sk);
	if (err) {
		hps_probe_arm(conn);
		return;
	}
	if (conn->user_timeout && conn->tx_unacked)
		hps_probe_arm(conn);
	if (conn->fin_queued && !conn->fin_sent && !conn->tx_turn &&
	    !conn->ops->send_fin(conn)) {
		conn->fin_sent = true;
		if (conn->sk)
			WRITE_ONCE(hps_sk(conn->sk)->fin_sent, true);
	}
}

/**
 * hps_stream_uncork - nothing that is in the queue is held back any more
 * @conn: locked; the caller has another reference
 */
void hps_stream_uncork(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->tx_corked)
		return;
	conn->tx_corked = 0;
	hps_conn_disarm(conn, &conn->cork_timer);
}

/**
 * hps_stream_flush - as hps_stream_push(), also what is corked
 * @conn: locked
 */
void hps_stream_flush(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	hps_stream_uncork(conn);
	hps_stream_push(conn);
}

/**
 * hps_stream_fin - end our direction behind the data that is queued
 * @conn: locked, ESTABLISHED or CLOSE_WAIT
 */
void hps_stream_fin(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->fin_queued = true;
	hps_conn_set_state(conn, TCPF_ESTABLISHED | TCPF_CLOSE_WAIT,
			   conn->state == TCP_ESTABLISHED ? TCP_FIN_WAIT1 :
							    TCP_LAST_ACK);
	hps_stream_push(conn);
}
