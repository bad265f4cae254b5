// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: posted, completed, received, checked.
 *
 * Sends complete in order, so one completion retires every slot up to its own,
 * and most sends ask for none. DATA leaves HPS_CTRL_SLOTS of the send queue to
 * the messages that need no credit.
 *
 * Who owns a receive buffer: the queue pair while it is posted; hps_msg_rx()
 * from its completion on; the connection's receive queue if it was DATA, until
 * consumed() brings it back to receives.c. One that holds no DATA goes there at
 * once.
 */
#include <net/tcp_states.h>

#include "conn.h"
#include "link.h"
#include "net.h"
#include "param.h"

/* Our messages are no larger, whatever the peer has buffers for. */
#define HPS_TX_MAX	65536

/* The peer broke the protocol: end this connection, and say how. */
#define hps_msg_violation(link, what)					\
do {									\
	struct hps_link *__link = (link);				\
									\
	hps_stat_inc(__link->conn.hn, VIOLATION_##what);		\
	hps_conn_shut(&__link->conn, EPROTO);				\
} while (0)

/* A completion with an error: the queue pair is finished. */
static void hps_msg_error(struct hps_link *link, const struct ib_wc *wc)
{
	struct hps_conn *conn = &link->conn;
	int err = 0;

	if (conn->shut)
		return;
	switch (wc->status) {
	case IB_WC_WR_FLUSH_ERR:
		/* Follows another error, a disconnect or, early, a rejection. */
		if (!link->established)
			return;
		if (conn->state != TCP_CLOSE)
			hps_stat_inc(conn->hn, RESET_RCVD);
		break;
	case IB_WC_RETRY_EXC_ERR:
		hps_stat_inc(conn->hn, RETRY_EXCEEDED);
		err = ETIMEDOUT;
		break;
	case IB_WC_RNR_RETRY_EXC_ERR:
		hps_stat_inc(conn->hn, RNR_EXCEEDED);
		break;
	default:
		hps_stat_inc(conn->hn, WC_ERROR);
		break;
	}
	hps_conn_shut(conn, err);
}

static void hps_msg_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_slot *slot = container_of(wc->wr_cqe, struct hps_slot, cqe);
	struct hps_link *link = slot->link;
	struct hps_conn *conn = &link->conn;
	struct hps_slot *done;

	spin_lock_bh(&conn->lock);
	if (wc->status == IB_WC_SUCCESS)
		conn->heard = jiffies;
	else
		hps_msg_error(link, wc);
	do {
		if (WARN_ON_ONCE(link->sq_tail == link->sq_head))
			break;
		done = &link->slots[link->sq_tail++ % link->sq_size];
		if (done->buf)
			hps_conn_tx_done(conn, done->buf, done->len);
	} while (done != slot);
	hps_conn_tx_idle(conn);
	hps_msg_credit(link);
	spin_unlock_bh(&conn->lock);
}

static u32 hps_msg_slots_free(const struct hps_link *link)
{
	return link->sq_size - (link->sq_head - link->sq_tail);
}

/*
 * Must this send ask for a completion? The last one always: SIOCOUTQ and a
 * lingering close have to learn that everything was delivered. Likewise the one
 * that takes the last slot or credit, as there may be no other for long.
 */
static bool hps_msg_signal(struct hps_link *link, u32 len)
{
	struct sock *sk = link->conn.sk;

	link->unsignaled++;
	link->unsignaled_bytes += len;
	if (len && len < link->conn.tx_unsent && sk &&
	    hps_msg_slots_free(link) > HPS_CTRL_SLOTS + 1 &&
	    hps_credit_left(&link->credit) > 1 &&
	    link->unsignaled < READ_ONCE(hps_signal_every) &&
	    link->unsignaled_bytes < READ_ONCE(sk->sk_sndbuf) / 4)
		return false;
	link->unsignaled = 0;
	link->unsignaled_bytes = 0;
	return true;
}

/* Post in the next slot, of which there is one. */
static int hps_msg_post_slot(struct hps_link *link, struct ib_send_wr *wr,
			     struct hps_buf *buf, u32 len)
{
	struct hps_slot *slot = &link->slots[link->sq_head % link->sq_size];
	int err;

	slot->cqe.done = hps_msg_sent;
	slot->buf = buf;
	slot->len = len;
	wr->wr_cqe = &slot->cqe;
	if (hps_msg_signal(link, len))
		wr->send_flags = IB_SEND_SIGNALED;
	err = ib_post_send(link->id->qp, wr, NULL);
	if (err) {
		hps_stat_inc(link->conn.hn, WC_ERROR);
		hps_conn_shut(&link->conn, 0);
		return err;
	}
	link->sq_head++;
	return 0;
}

static int hps_msg_post(struct hps_link *link, u8 type, struct hps_buf *buf,
			u32 len)
{
	u32 index = link->sq_head % link->sq_size, size = sizeof(struct hps_hdr);
	struct hps_head *head = (struct hps_head *)link->hdrs->data + index;
	struct hps_hdr *hdr = &head->hdr;
	struct ib_device *ibdev = link->hdrs->ibdev;
	struct ib_send_wr wr = {};
	struct ib_sge sge[2];
	int err;

	hdr->type = type;
	hdr->flags = 0;
	hdr->pad = 0;
	hdr->len = cpu_to_be32(len);
	hdr->seq = cpu_to_be32(link->tx_seq);
	hdr->credit = cpu_to_be32(hps_credit_tell(&link->credit));
	if (type == HPS_MSG_BUFFERS) {
		hdr->len = cpu_to_be32(sizeof(head->buffers));
		head->buffers.from = cpu_to_be32(link->rx_from);
		head->buffers.size = cpu_to_be32(link->rx_size);
		size = sizeof(*head);
	}
	sge[0].addr = link->hdrs->dma + index * sizeof(*head);
	sge[0].length = size;
	sge[0].lkey = link->id->qp->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(ibdev, sge[0].addr, size, DMA_TO_DEVICE);
	if (len) {
		sge[1].addr = buf->dma + buf->start;
		sge[1].length = len;
		sge[1].lkey = sge[0].lkey;
		ib_dma_sync_single_for_device(ibdev, sge[1].addr, len,
					      DMA_TO_DEVICE);
	}

	wr.sg_list = sge;
	wr.num_sge = len ? 2 : 1;
	wr.opcode = IB_WR_SEND;
	err = hps_msg_post_slot(link, &wr, buf, len);
	if (err)
		return err;
	if (++link->tx_seq == link->tx_from && link->tx_resize)
		hps_msg_resize(link);
	return 0;
}

/**
 * hps_msg_resize - the next message goes into a receive of tx_size
 * @link: locked
 */
void hps_msg_resize(struct hps_link *link)
{
	u32 size = min_t(u32, link->tx_size, HPS_TX_MAX);

	link->tx_resize = false;
	/* A writer looks at it without the lock. */
	WRITE_ONCE(link->conn.tx_msg_max, size - sizeof(struct hps_hdr));
}

/* A message without payload and without credit. */
static int hps_msg_control(struct hps_link *link, u8 type)
{
	if (link->conn.shut || !hps_msg_slots_free(link) || link->gated)
		return -EAGAIN;
	return hps_msg_post(link, type, NULL, 0);
}

/**
 * hps_msg_send - hps_transport.send
 * @conn: locked, established
 * @buf: the bytes, from start on
 * @len: how many, at most hps_conn.tx_msg_max
 *
 * Return: 0, -EAGAIN, or what ib_post_send() says, the connection being shut.
 */
int hps_msg_send(struct hps_conn *conn, struct hps_buf *buf, u32 len)
{
	struct hps_link *link = hps_link(conn);
	int err;

	if (conn->shut || link->gated ||
	    hps_msg_slots_free(link) <= HPS_CTRL_SLOTS)
		return -EAGAIN;
	if (!hps_credit_left(&link->credit)) {
		if (!link->stalled) {
			link->stalled = true;
			link->stalls++;
			hps_stat_inc(conn->hn, CREDIT_STALL);
		}
		return -EAGAIN;
	}
	err = hps_msg_post(link, HPS_MSG_DATA, buf, len);
	if (err)
		return err;
	link->stalled = false;
	link->credit.tx_used++;
	hps_stat_inc(conn->hn, TX_MSGS);
	hps_stat_add(conn->hn, TX_BYTES, len);
	return 0;
}

/**
 * hps_msg_send_fin - hps_transport.send_fin
 * @conn: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_send_fin(struct hps_conn *conn)
{
	return hps_msg_control(hps_link(conn), HPS_MSG_FIN);
}

/**
 * hps_msg_send_finack - hps_transport.send_finack
 * @conn: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_send_finack(struct hps_conn *conn)
{
	return hps_msg_control(hps_link(conn), HPS_MSG_FINACK);
}

/**
 * hps_msg_tx_idle - hps_transport.tx_idle
 * @conn: locked
 */
bool hps_msg_tx_idle(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	return link->sq_head == link->sq_tail;
}

/**
 * hps_msg_probe - hps_transport.probe
 * @conn: locked, established
 *
 * An RDMA Write of no bytes needs no receive and no memory at the other end
 * (InfiniBand C9-88, RFC 5040 section 5.2), and is acknowledged all the same.
 * On iWARP only TCP knows of that, and ends the connection when its time is up.
 */
void hps_msg_probe(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };

	if (hps_msg_slots_free(link) && !link->gated)
		hps_msg_post_slot(link, &wr.wr, NULL, 0);
}

/**
 * hps_msg_credit - tell the peer of receives if it is time to
 * @link: locked
 *
 * When no slot is free this comes by again with the next completion. Who has
 * sent FIN has no use for more.
 */
void hps_msg_credit(struct hps_link *link)
{
	bool urgent = hps_credit_dry(&link->credit);

	if (!link->established || link->conn.fin_rcvd)
		return;
	if (link->rx_tell) {
		if (!hps_msg_control(link, HPS_MSG_BUFFERS))
			link->rx_tell = false;
		return;
	}
	if (!hps_credit_due(&link->credit))
		return;
	if (hps_msg_control(link, HPS_MSG_CREDIT))
		return;
	hps_stat_inc(link->conn.hn, CREDIT_TX);
	if (urgent)
		hps_stat_inc(link->conn.hn, CREDIT_URGENT);
}

/**
 * hps_msg_first - iWARP's initiator has to send first
 * @link: locked, just established
 */
void hps_msg_first(struct hps_link *link)
{
	hps_msg_control(link, HPS_MSG_CREDIT);
}

static void hps_msg_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_buf *buf = container_of(wc->wr_cqe, struct hps_buf, cqe);
	struct hps_link *link = buf->link;
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	if (wc->status != IB_WC_SUCCESS) {
		hps_msg_error(link, wc);
		goto unlock;
	}
	ib_dma_sync_single_for_cpu(buf->ibdev, buf->dma, wc->byte_len,
				   DMA_FROM_DEVICE);
	buf->end = wc->byte_len;
	if (link->established)
		hps_msg_rx(link, buf);
	else
		list_add_tail(&buf->list, &link->early);
unlock:
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_msg_post_receive - let the device have a receive buffer
 * @link: locked
 * @buf: in no queue
 *
 * Return: 0 or what ib_post_recv() says.
 */
int hps_msg_post_receive(struct hps_link *link, struct hps_buf *buf)
{
	struct ib_recv_wr wr = {};
	struct ib_sge sge;

	sge.addr = buf->dma;
	sge.length = buf->size;
	sge.lkey = link->id->qp->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(buf->ibdev, buf->dma, buf->size,
				      DMA_FROM_DEVICE);
	buf->cqe.done = hps_msg_received;
	wr.wr_cqe = &buf->cqe;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	return ib_post_recv(link->id->qp, &wr, NULL);
}

/* Handlers return whether the buffer was kept. */
static bool hps_msg_rx_data(struct hps_link *link, struct hps_buf *buf)
{
	struct hps_conn *conn = &link->conn;
	u32 len = buf->end - sizeof(struct hps_hdr);

	if (hps_credit_received(&link->credit)) {
		hps_msg_violation(link, OVERRUN);
		return false;
	}
	hps_stat_inc(conn->hn, RX_MSGS);
	hps_stat_add(conn->hn, RX_BYTES, len);
	hps_receives_hold(link, buf);
	buf->start = sizeof(struct hps_hdr);
	if (!hps_conn_rx_data(conn, buf, hps_credit_tight(&link->credit)))
		return true;
	link->rx_held--;
	hps_msg_violation(link, STATE);
	return false;
}

static bool hps_msg_rx_credit(struct hps_link *link, struct hps_buf *buf)
{
	return false;
}

static bool hps_msg_rx_fin(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_conn_rx_fin(&link->conn))
		hps_msg_violation(link, STATE);
	return false;
}

static bool hps_msg_rx_finack(struct hps_link *link, struct hps_buf *buf)
{
	if (hps_conn_rx_finack(&link->conn))
		hps_msg_violation(link, STATE);
	return false;
}

static bool hps_msg_rx_buffers(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_buffers *buffers = buf->data + sizeof(struct hps_hdr);
	u32 from = be32_to_cpu(buffers->from), size = be32_to_cpu(buffers->size);

	/* One step at a time. */
	if (size < HPS_BUF_MIN || size > HPS_BUF_MAX ||
	    link->tx_resize) {
		hps_msg_violation(link, BUFFERS);
		return false;
	}
	link->tx_size = size;
	link->tx_from = from;
	link->tx_resize = true;
	/* Credits may have come before this did. */
	if ((s32)(from - link->tx_seq) <= 0)
		hps_msg_resize(link);
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
};

/* What holds for messages of every type; false ends the connection. */
static bool hps_msg_check(struct hps_link *link, const struct hps_buf *buf)
{
	const struct hps_hdr *hdr = buf->data;
	u32 payload;

	if (buf->end < sizeof(*hdr)) {
		hps_msg_violation(link, LENGTH);
		return false;
	}
	if (hdr->type >= ARRAY_SIZE(hps_msg_types) ||
	    !hps_msg_types[hdr->type].rx) {
		hps_msg_violation(link, TYPE);
		return false;
	}
	payload = buf->end - sizeof(*hdr);
	if (be32_to_cpu(hdr->len) != payload ||
	    payload < hps_msg_types[hdr->type].min ||
	    payload > hps_msg_types[hdr->type].max) {
		hps_msg_violation(link, LENGTH);
		return false;
	}
	if (be32_to_cpu(hdr->seq) != link->rx_seq) {
		hps_msg_violation(link, SEQ);
		return false;
	}
	link->rx_seq++;
	if (hps_credit_granted(&link->credit, be32_to_cpu(hdr->credit))) {
		hps_msg_violation(link, CREDIT);
		return false;
	}
	return true;
}

/**
 * hps_msg_rx - a message came in
 * @link: locked, established
 * @buf: holds it up to end; ownership passes
 *
 * Also what came before an end that was begun here is still delivered: the
 * peer's data counts, only its protocol is not answered any more. Not so once
 * the program was told of the end: what it would read has a gap by then.
 */
void hps_msg_rx(struct hps_link *link, struct hps_buf *buf)
{
	const struct hps_hdr *hdr = buf->data;

	if (link->conn.reported ||
	    (link->conn.shut && link->conn.err == EPROTO))
		return;
	if (!hps_msg_check(link, buf))
		return;
	link->gated = false;
	link->conn.heard = jiffies;
	if (!hps_msg_types[hdr->type].rx(link, buf))
		hps_receives_again(link, buf);
	hps_stream_push(&link->conn);
	hps_msg_credit(link);
}
