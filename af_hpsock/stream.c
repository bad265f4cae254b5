// SPDX-License-Identifier: GPL-2.0
/*
 * The sending half of a stream: from the queue of bytes to messages.
 *
 * The queue has two levels. A program's bytes go into the last buffer of txq,
 * packed, whatever the sizes of its writes; from there each message takes as
 * many as are there and fit. So small writes go out one message each while
 * there are credits, and combine by themselves when there are none.
 */
#include <net/tcp_states.h>

#include "conn.h"
#include "net.h"
#include "sock.h"

#define HPS_CORK_MAX	msecs_to_jiffies(200)

/* TCP_CORK and MSG_MORE hold back what does not fill a message, for a while. */
static bool hps_stream_corked(struct hps_conn *conn)
{
	if (!conn->corked || conn->fin_queued ||
	    conn->tx_unsent >= conn->tx_msg_max)
		return false;
	if (!timer_pending(&conn->timer))
		hps_conn_arm(conn, HPS_CORK_MAX);
	return true;
}

static int hps_stream_push_data(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;
	int err;

	list_for_each_entry_safe(buf, next, &conn->txq, list) {
		while (buf->start != buf->end) {
			u32 len = min(buf->end - buf->start, conn->tx_msg_max);

			if (hps_stream_corked(conn))
				return -EAGAIN;
			err = conn->ops->send(conn, buf, len);
			if (err)
				return err;
			buf->start += len;
			conn->tx_unsent -= len;
			conn->tx_unacked += len;
			conn->tx_msgs++;
			conn->tx_bytes += len;
		}
		if (buf->end == buf->size && !buf->busy)
			list_move_tail(&buf->list, &conn->tx_flight);
	}
	return 0;
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
	if (conn->shut || conn->state == TCP_SYN_SENT ||
	    conn->state == TCP_SYN_RECV)
		return;
	if (conn->finack_owed && !conn->ops->send_finack(conn))
		conn->finack_owed = false;
	if (hps_stream_push_data(conn)) {
		hps_probe_arm(conn);
		return;
	}
	if (conn->fin_queued && !conn->fin_sent && !conn->ops->send_fin(conn))
		conn->fin_sent = true;
}

/**
 * hps_stream_fin - end our direction behind the data that is queued
 * @conn: locked, ESTABLISHED or CLOSE_WAIT
 */
void hps_stream_fin(struct hps_conn *conn)
{
	conn->fin_queued = true;
	hps_conn_set_state(conn, TCPF_ESTABLISHED | TCPF_CLOSE_WAIT,
			   conn->state == TCP_ESTABLISHED ? TCP_FIN_WAIT1 :
							    TCP_LAST_ACK);
	hps_stream_push(conn);
}
