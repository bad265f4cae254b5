// SPDX-License-Identifier: GPL-2.0
/*
 * Messages received: checked, and each handed to whom it concerns.
 *
 * Who owns a receive buffer: the queue pair while it is posted; hps_msg_rx()
 * from its completion on; the connection's receive queue if it was DATA, until
 * consumed() brings it back to receives.c. One that holds no DATA goes there at
 * once.
 */
#include <net/tcp_states.h>

#include "cancel.h"
#include "conn_rx.h"
#include "conn_tx.h"
#include "fetch.h"
#include "link.h"
#include "msg.h"
#include "msg_rx.h"
#include "net.h"
#include "post.h"
#include "receives.h"
#include "source.h"
#include "stream.h"
#include "target.h"
#include "urgent.h"

/* The peer broke the protocol: end this connection, and say how. */
static void hps_msg_violation(struct hps_link *link, enum hps_stat stat)
{
	hps_stat_inc(link->conn.hn, stat);
	hps_conn_shut(&link->conn, EPROTO);
}

/* Between SRCCANCEL and our CANCELACK? */
static bool hps_msg_cancelling(const struct hps_link *link)
{
	return link->conn.rx_cancel || link->rx_cancelled;
}

/* Is it time for a message of the stream? False ends the connection. */
static bool hps_msg_streams(struct hps_link *link)
{
	if (hps_credit_received(&link->credit)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_OVERRUN);
		return false;
	}
	if (hps_msg_cancelling(link)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SOURCE);
		return false;
	}
	/* From the first PAD on all of them come before anything else. */
	if (unlikely(hps_shrink_padded(link->shrink))) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_BUFFERS);
		return false;
	}
	return true;
}

/* Handlers return whether the buffer was kept. */
static bool hps_msg_rx_stream(struct hps_link *link, struct hps_buf *buf,
			      u32 start, u32 end, int urgent)
{
	bool more = hps_receive_head(buf)->flags & HPS_FLAG_MORE;
	struct hps_conn *conn = &link->conn;

	if (!hps_msg_streams(link))
		return false;
	hps_target_over(link);
	hps_stat_inc(conn->hn, HPS_STAT_RX_MSGS);
	hps_stat_add(conn->hn, HPS_STAT_RX_BYTES, end - start);
	hps_receives_hold(link, buf);
	buf->start = start;
	buf->end = end;
	if (more)
		WRITE_ONCE(conn->rx_follows, true);
	if (!hps_conn_rx_data(conn, buf, hps_credit_tight(&link->credit),
			      urgent)) {
		if (!more)
			/* Pairs with hps_recv_rest(). */
			smp_store_release(&conn->rx_follows, false);
		return true;
	}
	hps_receives_hold_more(&link->receives, -1);
	hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
	return false;
}

static bool hps_msg_rx_data(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_hdr *hdr = hps_receive_head(buf);
	u32 start = hps_receive_start(buf), len = buf->end - start;
	int urgent = -1;

	if (hdr->flags & HPS_FLAG_URGENT) {
		urgent = be16_to_cpu(hdr->urgent);
		if (urgent >= len) {
			hps_msg_violation(link, HPS_STAT_VIOLATION_URGENT);
			return false;
		}
	}
	return hps_msg_rx_stream(link, buf, start, buf->end, urgent);
}

/*
 * An urgent byte comes in DATA. Readers stop there, and may leave it out, which nobody can
 * while bytes are fetched, or written to where a reader waits. False ends the connection.
 */
static bool hps_msg_ordinary(struct hps_link *link, u32 len)
{
	if (likely(!hps_urgent_among(&link->conn, len)))
		return true;
	hps_msg_violation(link, HPS_STAT_VIOLATION_URGENT);
	return false;
}

static bool hps_msg_rx_srcavail(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_srcavail *src = hps_receive_payload(buf);
	u64 addr = be64_to_cpu(src->addr);
	u32 len = be32_to_cpu(src->len);

	if (!link->reads || !len || len > HPS_SOURCE_MAX || addr + len < addr) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SOURCE);
		return false;
	}
	if (!hps_msg_ordinary(link, len))
		return false;
	buf->remote = true;
	/* What it lends it can write as well, if no framing says what follows. */
	if (link->peer_writes && !link->conn.records)
		WRITE_ONCE(link->conn.rx_show_max, hps_link_key_max(link));
	return hps_msg_rx_stream(link, buf, 0, len, -1);
}

static bool hps_msg_rx_written(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_written *written = hps_receive_payload(buf);
	u32 len = be32_to_cpu(written->len);

	if (!hps_msg_streams(link) || !hps_msg_ordinary(link, len))
		return false;
	if (hps_target_written(link, len)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
		return false;
	}
	hps_stat_inc(link->conn.hn, HPS_STAT_RX_MSGS);
	hps_stat_add(link->conn.hn, HPS_STAT_RX_BYTES, len);
	link->conn.rx_stamp = buf->stamp;
	WRITE_ONCE(link->conn.rx_follows, false);
	hps_conn_rx_written(&link->conn, len);
	hps_receives_spent(link, buf);
	return true;
}

static bool hps_msg_rx_sinkavail(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_hdr *hdr = hps_receive_head(buf);

	if (hps_target_offered(link, be16_to_cpu(hdr->urgent),
			       hps_receive_payload(buf)))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
	return false;
}

static bool hps_msg_rx_word(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_target_word(link, hps_receive_payload(buf)))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
	return false;
}

static bool hps_msg_rx_sinkcancel(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_target_taken_back(link))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
	return false;
}

static bool hps_msg_rx_sinkack(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_target_acked(link))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
	return false;
}

/*
 * The peer has read what it was offered first, and so many in all. One that keeps to the
 * protocol has invalidated the key by the same message.
 */
static int hps_msg_rx_read(struct hps_link *link, u32 total)
{
	struct hps_source *source;

	if (total != link->tx_read_total + 1 || !link->tx_offers)
		return -EPROTO;
	link->tx_read_total++;
	link->tx_offers--;
	source = list_first_entry(&link->tx_sources, struct hps_source, node);
	if (link->rx_revoked == source->key.mr->rkey) {
		list_del_init(&source->node);
		hps_source_revoked(link, source);
		hps_conn_tx_done(&link->conn, &source->dma.buf,
				 source->dma.buf.size);
	} else {
		list_move_tail(&source->node, &link->tx_read);
		hps_source_revoke_all(link);
	}
	return 0;
}

static bool hps_msg_rx_readdone(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_readdone *read = hps_receive_payload(buf);

	if (hps_msg_rx_read(link, be32_to_cpu(read->total)))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SOURCE);
	else
		hps_conn_tx_advanced(&link->conn);
	return false;
}

static bool hps_msg_rx_srccancel(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_srccancel *cancel = hps_receive_payload(buf);
	struct hps_conn *conn = &link->conn;

	if (conn->fin_rcvd || conn->records) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
		return false;
	}
	/* One at a time. */
	if (!cancel->count || !link->reads || hps_msg_cancelling(link)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SOURCE);
		return false;
	}
	WRITE_ONCE(conn->rx_cancel, be32_to_cpu(cancel->count));
	hps_fetch_back(conn);
	return false;
}

static bool hps_msg_rx_cancelack(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_cancelack *ack = hps_receive_payload(buf);

	if (hps_cancel_acked(link, be32_to_cpu(ack->done)))
		hps_msg_violation(link, HPS_STAT_VIOLATION_SOURCE);
	else
		hps_conn_tx_advanced(&link->conn);
	return false;
}

static bool hps_msg_rx_credit(struct hps_link *link, struct hps_buf *buf)
{
	return false;
}

static bool hps_msg_rx_fin(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_msg_cancelling(link) || hps_conn_rx_fin(&link->conn))
		hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
	hps_target_over(link);
	return false;
}

static bool hps_msg_rx_finack(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_conn_rx_finack(&link->conn))
		hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
	return false;
}

static bool hps_msg_rx_buffers(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_buffers *buffers = hps_receive_payload(buf);
	u32 from = be32_to_cpu(buffers->from), size = be32_to_cpu(buffers->size);

	/* One step at a time. */
	if (size < HPS_BUF_MIN || size > HPS_BUF_MAX ||
	    link->tx_resize) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_BUFFERS);
		return false;
	}
	link->tx_size = size;
	link->tx_from = from;
	link->tx_resize = true;
	/* Credits may have come before this did. */
	if ((s32)(from - link->tx_seq) <= 0)
		hps_post_resize(link);
	return false;
}

/* What costs a credit and is not of the stream; false ends the connection. */
static bool hps_msg_spent(struct hps_link *link)
{
	if (!hps_credit_spent(&link->credit))
		return true;
	hps_msg_violation(link, HPS_STAT_VIOLATION_OVERRUN);
	return false;
}

static bool hps_msg_rx_shrink(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_smaller *smaller = hps_receive_payload(buf);
	u32 size = be32_to_cpu(smaller->size), pads = be32_to_cpu(smaller->pads);

	if (!hps_msg_spent(link))
		return false;
	/* One at a time; never larger, which would be true only from some message on. */
	if (size < HPS_BUF_MIN || size > link->tx_size || !pads ||
	    pads > HPS_PADS_MAX || link->tx_pads) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_BUFFERS);
		return false;
	}
	link->tx_size = size;
	link->tx_pads = pads;
	hps_post_resize(link);
	hps_receives_spent(link, buf);
	return true;
}

static bool hps_msg_rx_pad(struct hps_link *link, struct hps_buf *buf)
{
	if (!hps_msg_spent(link))
		return false;
	if (hps_receives_padded(link)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_BUFFERS);
		return false;
	}
	hps_receives_spent(link, buf);
	return true;
}

static bool hps_msg_rx_urgent(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_urgent_ahead *urgent = hps_receive_payload(buf);
	u32 ahead = be32_to_cpu(urgent->ahead);

	/* One at a time. */
	if (ahead > INT_MAX || link->rx_urgents != link->rx_heard) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_URGENT);
		return false;
	}
	link->rx_urgents = !link->rx_urgents;
	if (hps_conn_rx_urgent(&link->conn, ahead))
		hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
	return false;
}

static const struct {
	bool (*rx)(struct hps_link *link, struct hps_buf *buf);
	u32 min;
	u32 max;
} hps_msg_types[] = {
	[HPS_MSG_DATA]	  = { hps_msg_rx_data, 1, U32_MAX },
	[HPS_MSG_CREDIT]  = { hps_msg_rx_credit },
	[HPS_MSG_FIN]	  = { hps_msg_rx_fin },
	[HPS_MSG_FINACK]  = { hps_msg_rx_finack },
	[HPS_MSG_BUFFERS] = { hps_msg_rx_buffers, sizeof(struct hps_buffers),
			      sizeof(struct hps_buffers) },
	[HPS_MSG_URGENT]  = { hps_msg_rx_urgent,
			      sizeof(struct hps_urgent_ahead),
			      sizeof(struct hps_urgent_ahead) },
	[HPS_MSG_SRCAVAIL] = { hps_msg_rx_srcavail, sizeof(struct hps_srcavail),
			       sizeof(struct hps_srcavail) },
	[HPS_MSG_READDONE] = { hps_msg_rx_readdone, sizeof(struct hps_readdone),
			       sizeof(struct hps_readdone) },
	[HPS_MSG_SRCCANCEL] = { hps_msg_rx_srccancel,
				sizeof(struct hps_srccancel),
				sizeof(struct hps_srccancel) },
	[HPS_MSG_CANCELACK] = { hps_msg_rx_cancelack,
				sizeof(struct hps_cancelack),
				sizeof(struct hps_cancelack) },
	[HPS_MSG_SHRINK] = { hps_msg_rx_shrink, sizeof(struct hps_smaller),
			     sizeof(struct hps_smaller) },
	[HPS_MSG_PAD]	 = { hps_msg_rx_pad },
	[HPS_MSG_SINKAVAIL] = { hps_msg_rx_sinkavail,
				sizeof(struct hps_sinkavail),
				sizeof(struct hps_sinkavail) },
	[HPS_MSG_WRITTEN] = { hps_msg_rx_written, sizeof(struct hps_written),
			      sizeof(struct hps_written) },
	[HPS_MSG_SINKCANCEL] = { hps_msg_rx_sinkcancel },
	[HPS_MSG_SINKACK] = { hps_msg_rx_sinkack },
	[HPS_MSG_WORD]	 = { hps_msg_rx_word, sizeof(struct hps_word),
			     sizeof(struct hps_word) },
};

/* Has the peer our last URGENT? False if it claims one that it was not sent. */
static bool hps_msg_heard(struct hps_link *link, const struct hps_hdr *hdr)
{
	if (!!(hdr->flags & HPS_FLAG_HEARD) != link->tx_urgents)
		return link->tx_waits;
	link->tx_waits = false;
	return true;
}

/* Likewise our last SINKAVAIL, or WORD. */
static bool hps_msg_heard_sink(struct hps_link *link, const struct hps_hdr *hdr)
{
	struct hps_targets *targets = link->targets;
	bool heard = hdr->flags & HPS_FLAG_SINK;

	if (likely(!targets))
		return !heard;
	if (heard != targets->told)
		return targets->waits;
	targets->waits = false;
	return true;
}

/* What holds for messages of every type; false ends the connection. */
static bool hps_msg_check(struct hps_link *link, const struct hps_buf *buf, u32 len)
{
	const struct hps_hdr *hdr = hps_receive_head(buf);
	u32 payload;

	if (len < sizeof(*hdr)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_LENGTH);
		return false;
	}
	if (hdr->type >= ARRAY_SIZE(hps_msg_types) ||
	    !hps_msg_types[hdr->type].rx) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_TYPE);
		return false;
	}
	payload = len - sizeof(*hdr);
	if (be32_to_cpu(hdr->len) != payload ||
	    payload < hps_msg_types[hdr->type].min ||
	    payload > hps_msg_types[hdr->type].max) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_LENGTH);
		return false;
	}
	if (be32_to_cpu(hdr->seq) != link->rx_seq) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SEQ);
		return false;
	}
	link->rx_seq++;
	if (hps_credit_granted(&link->credit, be32_to_cpu(hdr->credit))) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_CREDIT);
		return false;
	}
	if (!hps_msg_heard(link, hdr)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_URGENT);
		return false;
	}
	if (!hps_msg_heard_sink(link, hdr)) {
		hps_msg_violation(link, HPS_STAT_VIOLATION_SINK);
		return false;
	}
	return true;
}

/*
 * A message of @len bytes came in. The link is established and locked.
 *
 * Also what came before an end that was begun here is still delivered: the
 * peer's data counts, only its protocol is not answered any more. Not so once
 * the program was told of the end: what it would read has a gap by then.
 */
static void hps_msg_rx(struct hps_link *link, struct hps_buf *buf, u32 len)
{
	const struct hps_hdr *hdr = hps_receive_head(buf);

	lockdep_assert_held(&link->conn.lock);
	if (link->conn.reported ||
	    (link->conn.shut && link->conn.err == EPROTO))
		return;
	if (!hps_msg_check(link, buf, len))
		return;
	buf->end = hps_receive_start(buf) + len - sizeof(*hdr);
	WRITE_ONCE(link->conn.heard, jiffies);
	if (!hps_msg_types[hdr->type].rx(link, buf))
		hps_receives_again(link, buf);
	hps_msg_pad(link);
	hps_stream_push(&link->conn);
	hps_msg_credit(link);
}

/* The processor is to see what came in. */
static void hps_msg_rx_sync(const struct hps_receive *rx, u32 len)
{
	u32 head = rx->dma.apart ? min_t(u32, len, sizeof(struct hps_hdr)) : 0;

	if (head)
		ib_dma_sync_single_for_cpu(rx->dma.ibdev, hps_receive_apart(rx)->addr,
					   head, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_cpu(rx->dma.ibdev, rx->dma.addr, len - head,
				   DMA_FROM_DEVICE);
}

/*
 * Is what completed a receive a message in it? The peer's RDMA Write with Immediate takes one
 * as well, and puts its bytes elsewhere: what a header would be read from is any memory.
 */
static bool hps_msg_rx_received(struct hps_link *link, const struct hps_buf *buf,
				const struct ib_wc *wc)
{
	bool message = wc->opcode == IB_WC_RECV;

	if (message && wc->byte_len <= hps_receives_capacity(&link->receives, buf->size))
		return true;
	/* One of them ends the connection. */
	if (!link->conn.shut)
		hps_msg_violation(link, message ? HPS_STAT_VIOLATION_LENGTH :
						  HPS_STAT_VIOLATION_TYPE);
	return false;
}

static void hps_msg_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_receive *rx = container_of(wc->wr_cqe, struct hps_receive,
					      cqe);
	struct hps_buf *buf = &rx->dma.buf;
	struct hps_link *link = rx->link;
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	if (wc->status != IB_WC_SUCCESS) {
		hps_msg_error(link, wc);
		goto unlock;
	}
	if (unlikely(!hps_msg_rx_received(link, buf, wc)))
		goto unlock;
	hps_msg_rx_sync(rx, wc->byte_len);
	buf->remote = false;
	link->rx_revoked = wc->wc_flags & IB_WC_WITH_INVALIDATE ?
			   wc->ex.invalidate_rkey : 0;
	buf->stamp = ktime_get_real();
	if (conn->state == TCP_SYN_RECV)
		hps_msg_established(link);
	if (link->established)
		hps_msg_rx(link, buf, wc->byte_len);
	else if (!conn->shut)
		hps_msg_violation(link, HPS_STAT_VIOLATION_STATE);
unlock:
	spin_unlock_bh(&conn->lock);
}

static void hps_msg_rx_sge(struct hps_receive *rx, struct ib_sge *sge, u64 addr, u32 len)
{
	sge->addr = addr;
	sge->length = len;
	sge->lkey = rx->link->id->qp->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(rx->dma.ibdev, addr, len, DMA_FROM_DEVICE);
}

/**
 * hps_msg_rx_post - let the device have a receive buffer
 * @link: locked
 * @buf: in no queue
 *
 * Return: 0 or what ib_post_recv() says.
 */
int hps_msg_rx_post(struct hps_link *link, struct hps_buf *buf)
{
	struct hps_receive *rx = hps_receive(buf);
	struct ib_recv_wr wr = {};
	struct ib_sge sge[2];

	lockdep_assert_held(&link->conn.lock);
	if (rx->dma.apart)
		hps_msg_rx_sge(rx, &sge[wr.num_sge++], hps_receive_apart(rx)->addr,
			       sizeof(struct hps_hdr));
	hps_msg_rx_sge(rx, &sge[wr.num_sge++], rx->dma.addr, buf->size);
	rx->cqe.done = hps_msg_rx_done;
	wr.wr_cqe = &rx->cqe;
	wr.sg_list = sge;
	return ib_post_recv(link->id->qp, &wr, NULL);
}
