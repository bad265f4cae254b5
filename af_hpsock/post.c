// SPDX-License-Identifier: GPL-2.0
/*
 * The send queue: messages, and what else the device is asked for, in slots.
 *
 * A slot is taken when something is posted and free again when that has completed, in the
 * same order. Most messages ask for no completion; a later one tells of them. Who
 * completes them is msg.c, which has hps_slot.cqe point there.
 */

#include "conn_tx.h"
#include "dma.h"
#include "key.h"
#include "net.h"
#include "param.h"
#include "post.h"
#include "probe.h"
#include "target.h"

/*
 * May the last bytes that there are go without a completion? The device takes a request
 * more readily than it tells of its end, and a program that sends a little and waits for
 * an answer does not look. hps_msg_ask() finds out when somebody does, and in any case
 * soon. Pages of others are to be given back at once.
 */
static bool hps_post_silent(struct hps_link *link, const struct hps_buf *buf)
{
	const struct hps_conn *conn = &link->conn;

	return !buf->gather && conn->confirmed && !conn->fin_queued &&
	       !conn->resetting;
}

/*
 * Must this send ask for a completion? What is no DATA does, so that FIN, which a
 * lingering close waits for, tells of all before it. Likewise what takes the last slot or
 * credit, as there may be no other for long. On iWARP each: Soft-iWARP sends what asks for
 * none from where it is, and says that it is done when TCP still has to send the page,
 * which would be filled anew meanwhile.
 */
static bool hps_post_signal(struct hps_link *link, const struct hps_buf *buf,
			    u32 len)
{
	struct sock *sk = link->conn.sk;

	return !len || !sk || link->iwarp ||
	       (len >= link->conn.tx_unsent && !hps_post_silent(link, buf)) ||
	       hps_post_slots_free(link) <= HPS_CTRL_SLOTS + 1 ||
	       hps_credit_left(&link->credit) <= 1 ||
	       link->unsignaled + 1 >= hps_tuned(&link->tuning, HPS_TUNE_SIGNAL_EVERY) ||
	       link->unsignaled_bytes + len >= READ_ONCE(sk->sk_sndbuf) / 4;
}

/*
 * One completion at a time is timed, see hps_msg_timed(): of what the peer's device answers.
 * Keys are made and invalidated by ours alone.
 */
static void hps_post_time(struct hps_link *link, const struct ib_send_wr *wr, u32 index)
{
	if (link->timed || wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV)
		return;
	link->timed = index + 1;
	link->timed_from = hps_post_clock();
}

/* As hps_post_wr(), but it is the caller who knows what an error means. */
static int hps_post_try(struct hps_link *link, struct ib_send_wr *wr,
			struct hps_buf *buf, u32 len)
{
	struct hps_slot *slot = &link->slots[link->sq_next];
	int err;

	slot->buf = buf;
	slot->len = len;
	wr->wr_cqe = &slot->cqe;
	err = ib_post_send(link->id->qp, wr, NULL);
	if (err)
		return err;
	link->sq_next = (link->sq_next + 1) % HPS_SQ_SIZE;
	if (!link->sq_used++)
		hps_probe_under_way(&link->conn);
	if (wr->send_flags & IB_SEND_SIGNALED) {
		hps_post_time(link, wr, slot->index);
		link->unsignaled = 0;
		link->unsignaled_bytes = 0;
	} else {
		link->unsignaled++;
		link->unsignaled_bytes += len;
	}
	return 0;
}

/**
 * hps_post_wr - post in the next slot, of which there is one
 * @link: locked
 * @wr: the request, complete but for wr_cqe
 * @buf: as hps_slot.buf
 * @len: as hps_slot.len
 *
 * Return: 0, or what ib_post_send() says, the connection being shut.
 */
int hps_post_wr(struct hps_link *link, struct ib_send_wr *wr,
		struct hps_buf *buf, u32 len)
{
	int err;

	lockdep_assert_held(&link->conn.lock);
	err = hps_post_try(link, wr, buf, len);
	if (err) {
		hps_stat_inc(link->conn.hn, HPS_STAT_WC_ERROR);
		hps_conn_shut(&link->conn, 0);
	}
	return err;
}

/**
 * hps_post_slot - as hps_post_wr(), and ask for a completion if it is time to
 * @link: locked
 * @wr: the request
 * @buf: as hps_slot.buf
 * @len: as hps_slot.len
 *
 * Return: as hps_post_wr().
 */
int hps_post_slot(struct hps_link *link, struct ib_send_wr *wr,
		  struct hps_buf *buf, u32 len)
{
	if (hps_post_signal(link, buf, len))
		wr->send_flags |= IB_SEND_SIGNALED;
	return hps_post_wr(link, wr, buf, len);
}

/* The device takes the bytes along with the request: no DMA, no keys. */
static void hps_post_sge_inline(struct ib_sge *sge, void *data, u32 len)
{
	sge->addr = (uintptr_t)data;
	sge->length = len;
	sge->lkey = 0;
}

static void hps_post_sge(struct hps_link *link, struct ib_sge *sge, u64 addr, u32 len)
{
	sge->addr = addr;
	sge->length = len;
	sge->lkey = link->id->qp->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(link->hdrs->ibdev, addr, len, DMA_TO_DEVICE);
}

/* Payload from buf->start on; returns how many elements that takes. */
static u32 hps_post_sges(struct hps_link *link, struct ib_sge *sge,
			 const struct hps_buf *buf, u32 len)
{
	const struct hps_gather *gather = buf->gather;
	u32 skip = buf->start, nr = 0, i;

	if (!gather) {
		hps_post_sge(link, sge, hps_dma(buf)->addr + skip, len);
		return 1;
	}
	/* Mapped when they were queued, and not written since. */
	for (i = 0; len; i++) {
		u32 n = gather->frag[i].len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n = min(n - skip, len);
		sge[nr].addr = gather->frag[i].dma + skip;
		sge[nr].length = n;
		sge[nr].lkey = link->id->qp->pd->local_dma_lkey;
		nr++;
		len -= n;
		skip = 0;
	}
	return nr;
}

/**
 * hps_post_message - post a message in the next slot, of which there is one
 * @link: locked
 * @out: the message
 *
 * Return: 0, or what ib_post_send() says, the connection being shut.
 */
int hps_post_message(struct hps_link *link, const struct hps_outgoing *out)
{
	u32 index = link->sq_next, size = sizeof(struct hps_hdr) + out->size;
	struct hps_head *head = (struct hps_head *)link->hdrs->buf.data + index;
	struct hps_hdr *hdr = &head->hdr;
	struct ib_sge sge[HPS_GATHER_MAX + 1];
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 1,
	};
	int err;

	lockdep_assert_held(&link->conn.lock);
	hdr->type = out->type;
	hdr->flags = link->rx_urgents ? HPS_FLAG_HEARD : 0;
	if (link->targets && link->targets->seen)
		hdr->flags |= HPS_FLAG_SINK;
	if (out->more)
		hdr->flags |= HPS_FLAG_MORE;
	hdr->urgent = cpu_to_be16(out->at);
	if (out->urgent) {
		hdr->flags |= HPS_FLAG_URGENT;
		hdr->urgent = cpu_to_be16(out->urgent - 1);
	}
	hdr->len = cpu_to_be32(out->size + out->len);
	hdr->seq = cpu_to_be32(link->tx_seq);
	hdr->credit = cpu_to_be32(hps_credit_tell(&link->credit));
	memcpy(head->payload, out->payload, out->size);
	if (size + out->len <= link->inline_max &&
	    !(out->len && out->buf->gather)) {
		wr.send_flags = IB_SEND_INLINE;
		hps_post_sge_inline(&sge[0], head, size);
		if (out->len)
			hps_post_sge_inline(&sge[wr.num_sge++],
					    out->buf->data + out->buf->start,
					    out->len);
	} else {
		hps_post_sge(link, &sge[0],
			     link->hdrs->addr + index * sizeof(*head), size);
		if (out->len)
			wr.num_sge += hps_post_sges(link, &sge[1], out->buf,
						    out->len);
	}

	/* Soft-iWARP ends the connection over it; the peer sees to it itself. */
	if (out->revokes && !link->iwarp) {
		wr.opcode = IB_WR_SEND_WITH_INV;
		wr.ex.invalidate_rkey = out->revokes;
	}
	err = hps_post_slot(link, &wr, out->buf, out->len);
	if (err)
		return err;
	link->rx_heard = link->rx_urgents;
	if (link->targets)
		link->targets->seen_told = link->targets->seen;
	if (++link->tx_seq == link->tx_from && link->tx_resize)
		hps_post_resize(link);
	return 0;
}

/**
 * hps_post_resize - the next message goes into a receive of tx_size
 * @link: locked
 */
void hps_post_resize(struct hps_link *link)
{
	u32 max = min_t(u32, link->tx_size - sizeof(struct hps_hdr), HPS_TX_MAX);

	lockdep_assert_held(&link->conn.lock);
	link->tx_resize = false;
	if (link->conn.user_mss)
		max = min_t(u32, max, link->conn.user_mss);
	hps_conn_tx_resize(&link->conn, max);
}

/**
 * hps_post_control - post a message that costs no credit
 * @link: locked
 * @out: the message, without bytes of the program
 *
 * Return: 0, -EAGAIN without a slot and when the connection is ending, or as
 * hps_post_message().
 */
int hps_post_control(struct hps_link *link, const struct hps_outgoing *out)
{
	lockdep_assert_held(&link->conn.lock);
	if (link->conn.shut || !hps_post_slots_free(link))
		return -EAGAIN;
	return hps_post_message(link, out);
}

/* REG_MR of @key */
static struct ib_reg_wr hps_post_reg(const struct hps_link *link,
				     const struct hps_key *key, int access,
				     int flags)
{
	return (struct ib_reg_wr){
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = link->iwarp || link->keys_alone ?
				 IB_SEND_SIGNALED : flags,
		.mr = key->mr,
		.key = key->mr->rkey,
		.access = access,
	};
}

/**
 * hps_post_register - post REG_MR, which makes a key valid
 * @link: locked, with a free slot
 * @key: made; an error shows in the completion of what is posted behind it
 * @access: IB_ACCESS_*
 * @flags: IB_SEND_SIGNALED for a completion of its own, or 0
 *
 * Return: as hps_post_message().
 */
int hps_post_register(struct hps_link *link, const struct hps_key *key,
		      int access, int flags)
{
	struct ib_reg_wr wr = hps_post_reg(link, key, access, flags);

	lockdep_assert_held(&link->conn.lock);
	return hps_post_wr(link, &wr.wr, NULL, 0);
}

/**
 * hps_post_register_try - likewise, of a key that the device may refuse to make
 * @link: locked, with a free slot
 * @key: made
 * @access: IB_ACCESS_*
 *
 * Return: 0, or what ib_post_send() says; the connection goes on.
 */
int hps_post_register_try(struct hps_link *link, const struct hps_key *key,
			  int access)
{
	struct ib_reg_wr wr = hps_post_reg(link, key, access, 0);

	lockdep_assert_held(&link->conn.lock);
	return hps_post_try(link, &wr.wr, NULL, 0);
}

/**
 * hps_post_invalidate - post LOCAL_INV, after which a key is good for nothing
 * @link: locked
 * @key: valid
 * @buf: what is delivered when that has completed, or NULL
 * @len: its bytes
 *
 * Return: as hps_post_control().
 */
int hps_post_invalidate(struct hps_link *link, const struct hps_key *key,
			struct hps_buf *buf, u32 len)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = key->mr->rkey,
		.send_flags = IB_SEND_SIGNALED,
	};

	lockdep_assert_held(&link->conn.lock);
	if (link->conn.shut || !hps_post_slots_free(link))
		return -EAGAIN;
	return hps_post_wr(link, &wr, buf, len);
}

/**
 * hps_post_probe - post what the device of the peer answers, and is no message
 * @link: locked, established
 *
 * An RDMA Write of no bytes needs no receive and no memory at the other end
 * (InfiniBand C9-88, RFC 5040 section 5.2), and is acknowledged all the same.
 * On iWARP only TCP knows of that, and ends the connection when its time is up. An RDMA
 * Read of no bytes would be answered by the peer, but Soft-iWARP answers one that comes
 * while it sends with what it sent before, and either end takes that for an error.
 *
 * None is posted while there are reads: they are answered as well. And a Soft-RoCE that is
 * asked once more for the beginning of a read whose answer got lost takes it for one of no
 * bytes if that is what a write behind it was, and refuses it.
 *
 * Return: true if it was posted.
 */
bool hps_post_probe(struct hps_link *link)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };

	lockdep_assert_held(&link->conn.lock);
	return !link->reading && hps_post_slots_free(link) &&
	       !hps_post_slot(link, &wr.wr, NULL, 0);
}

/**
 * hps_post_ask - ask for the completions that nobody asked for
 * @link: locked
 *
 * While there are reads nobody is: their end has hps_msg_ask_soon() called.
 */
void hps_post_ask(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	if (link->unsignaled && !link->conn.shut)
		hps_post_probe(link);
}

/**
 * hps_post_alone - has all that was posted completed, so that the device can repeat nothing?
 * @link: locked
 *
 * If not, a probe sees to it that a completion comes, and with it another try.
 *
 * Return: true if it has.
 */
bool hps_post_alone(struct hps_link *link)
{
	hps_post_ask(link);
	return !link->sq_used && !link->reading;
}
