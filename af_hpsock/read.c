// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA Reads of what the peer offered with SRCAVAIL, straight to where the bytes are
 * wanted. A reader waits for them; that always ends, as a queue pair completes or
 * flushes whatever was posted. There is one reader at a time (recv.c), so the room
 * that hps_rdma_create_qp() reserves in the send queue, HPS_READS requests of
 * rdma_rw, is all his.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/rw.h>

#include "conn.h"
#include "device.h"
#include "link.h"
#include "msg.h"
#include "net.h"
#include "probe.h"
#include "read.h"
#include "stream.h"

/* Bytes of one: what is sent to the peer meanwhile waits behind it. */
#define HPS_READ_MAX	(256 << 10)

/* No request takes as long. */
#define HPS_READ_TIMEOUT	(30 * HZ)

/* One request. */
struct hps_read {
	struct ib_cqe cqe;
	struct hps_reads *all;
	struct rdma_rw_ctx ctx;
	u32 nents;
	u32 len;
	bool failed;
	struct scatterlist sg[HPS_READ_SGES];
};

/* Those of one reader: a ring. */
struct hps_reads {
	struct hps_link *link;
	struct hps_pages *sink;
	struct completion some;	/* as many as the reader wants have completed */
	u32 want;		/* hps_conn.lock: which that is, as head counts */
	u32 done;		/* hps_conn.lock: those that have; they do so in order */
	u64 addr;		/* at the peer, of the first byte */
	u32 rkey;
	u32 posted;		/* bytes */
	u32 sges;		/* elements that a request may have */
	u32 sge_max;		/* bytes of one */
	u32 head;
	u32 tail;
	struct hps_read read[HPS_READS];
};

/* While there were reads, completions could not be asked for, nor a key be made. */
static void hps_read_none(struct hps_link *link)
{
	hps_msg_ask_soon(link);
	if (link->keys_alone)
		hps_stream_push(&link->conn);
}

static void hps_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_read *read = container_of(wc->wr_cqe, struct hps_read, cqe);
	struct hps_reads *reads = read->all;
	struct hps_link *link = reads->link;

	spin_lock_bh(&link->conn.lock);
	if (wc->status == IB_WC_SUCCESS) {
		WRITE_ONCE(link->conn.heard, jiffies);
		hps_probe_moved(&link->conn);
	} else {
		read->failed = true;
		hps_msg_error(link, wc);
	}
	WRITE_ONCE(link->reading, link->reading - 1);
	if (!link->reading && !link->conn.shut)
		hps_read_none(link);
	/* The reader may be gone with all of it afterwards. */
	if (++reads->done == reads->want)
		complete(&reads->some);
	spin_unlock_bh(&link->conn.lock);
}

/* Returns the last element if it can go on in @page, as in a huge page it does. */
static struct scatterlist *hps_read_adjacent(const struct hps_reads *reads,
					     struct hps_read *read,
					     const struct page *page, u32 len)
{
	struct scatterlist *last;

	if (!read->nents)
		return NULL;
	last = &read->sg[read->nents - 1];
	if (sg_phys(last) + last->length != page_to_phys(page) ||
	    last->length + len > reads->sge_max)
		return NULL;
	return last;
}

/* The next pages of the sink. */
static void hps_read_fill(struct hps_reads *reads, struct hps_read *read)
{
	const struct hps_pages *sink = reads->sink;
	u32 at = sink->off + reads->posted;
	u32 left = min_t(u32, sink->len - reads->posted, HPS_READ_MAX), n;

	sg_init_table(read->sg, reads->sges);
	read->nents = 0;
	for (read->len = 0; left; read->len += n, at += n, left -= n) {
		struct page *page = sink->pages[at >> PAGE_SHIFT];
		struct scatterlist *last;

		n = min_t(u32, left, PAGE_SIZE - offset_in_page(at));
		last = hps_read_adjacent(reads, read, page, n);
		if (last)
			last->length += n;
		else if (read->nents < reads->sges)
			sg_set_page(&read->sg[read->nents++], page, n,
				    offset_in_page(at));
		else
			break;
	}
	sg_mark_end(&read->sg[read->nents - 1]);
}

static void hps_read_unmap(struct hps_reads *reads, struct hps_read *read)
{
	const struct rdma_cm_id *id = reads->link->id;

	rdma_rw_ctx_destroy(&read->ctx, id->qp, id->port_num, read->sg,
			    read->nents, DMA_FROM_DEVICE);
}

/* Returns 0, or a negative errno if no more can be posted. */
static int hps_read_post(struct hps_reads *reads)
{
	struct hps_read *read = &reads->read[reads->head % HPS_READS];
	struct hps_link *link = reads->link;
	struct rdma_cm_id *id = link->id;
	struct ib_send_wr *wr;
	int err;

	read->all = reads;
	read->failed = false;
	read->cqe.done = hps_read_done;
	hps_read_fill(reads, read);
	err = rdma_rw_ctx_init(&read->ctx, id->qp, id->port_num, read->sg,
			       read->nents, 0, reads->addr + reads->posted,
			       reads->rkey, DMA_FROM_DEVICE);
	if (err < 0)
		return err;
	wr = rdma_rw_ctx_wrs(&read->ctx, id->qp, id->port_num, &read->cqe, NULL);
	spin_lock_bh(&link->conn.lock);
	err = link->conn.shut ? -ECONNRESET : ib_post_send(id->qp, wr, NULL);
	if (!err)
		WRITE_ONCE(link->reading, link->reading + 1);
	spin_unlock_bh(&link->conn.lock);
	if (err) {
		hps_read_unmap(reads, read);
		return err;
	}
	reads->head++;
	reads->posted += read->len;
	return 0;
}

/* The queue pair's own timeouts should have ended this long ago. */
static void hps_read_stalled(struct hps_link *link)
{
	spin_lock_bh(&link->conn.lock);
	hps_stat_inc(link->conn.hn, HPS_STAT_READ_STALLED);
	hps_conn_shut(&link->conn, ETIMEDOUT);
	spin_unlock_bh(&link->conn.lock);
}

/* Sleep until those before @want have completed: once, however many they are. */
static void hps_read_wait(struct hps_reads *reads, u32 want)
{
	struct hps_link *link = reads->link;
	bool all;

	spin_lock_bh(&link->conn.lock);
	all = (s32)(reads->done - want) >= 0;
	reads->want = want;
	spin_unlock_bh(&link->conn.lock);
	if (all || wait_for_completion_timeout(&reads->some, HPS_READ_TIMEOUT))
		return;
	hps_read_stalled(link);
	wait_for_completion(&reads->some);
}

/* The oldest has completed. Returns the bytes that it brought, 0 if it failed. */
static u32 hps_read_take(struct hps_reads *reads)
{
	struct hps_read *read = &reads->read[reads->tail++ % HPS_READS];

	hps_read_unmap(reads, read);
	return read->failed ? 0 : read->len;
}

/*
 * Returns how many bytes have come, from the first one on. Without memory the rest
 * is left for another time. While one half of the ring is awaited the device has
 * the other one.
 */
static u32 hps_read_all(struct hps_reads *reads)
{
	bool failed = false, stop = false;
	u32 done = 0, want, n;

	do {
		while (!stop && reads->head - reads->tail < HPS_READS)
			stop = reads->posted == reads->sink->len ||
			       hps_read_post(reads);
		want = stop ? reads->head : reads->tail + HPS_READS / 2;
		hps_read_wait(reads, want);
		while (reads->tail != want) {
			n = hps_read_take(reads);
			failed |= !n;
			if (!failed)
				done += n;
		}
		stop |= failed;
	} while (!stop || reads->head != reads->tail);
	return done;
}

/*
 * Where are the bytes? As long as there is a socket, only its readers take a buffer off the
 * queue, and one of them is here. What would be read of a connection that was parted from its
 * socket is nobody's.
 */
static bool hps_read_locate(struct hps_reads *reads, const struct hps_buf *buf)
{
	struct hps_conn *conn = &reads->link->conn;
	const struct hps_srcavail *src;
	bool there;

	spin_lock_bh(&conn->lock);
	there = conn->sk;
	if (there) {
		src = hps_receive_payload(buf);
		reads->addr = be64_to_cpu(src->addr) + buf->start;
		reads->rkey = be32_to_cpu(src->rkey);
	}
	spin_unlock_bh(&conn->lock);
	return there;
}

/**
 * hps_read - hps_transport.read
 * @conn: the connection, not locked
 * @buf: where the bytes were offered, from start on; it may be gone if @conn has no socket
 * @sink: where to, no longer than what there is of them
 *
 * Context: process, sleeps; the only reader of the connection.
 * Return: how many bytes have come, perhaps fewer than @sink has room for; -ENOMEM,
 * or -ECONNRESET on a connection that is ending, or was parted from its socket.
 */
int hps_read(struct hps_conn *conn, struct hps_buf *buf, struct hps_pages *sink)
{
	struct hps_link *link = hps_link(conn);
	struct hps_reads *reads;
	bool there;
	u32 done = 0;

	if (!hps_link_enter(link))
		return -ECONNRESET;
	reads = kzalloc(sizeof(*reads), GFP_KERNEL);
	if (!reads) {
		hps_link_leave(link);
		return -ENOMEM;
	}
	reads->link = link;
	reads->sink = sink;
	reads->sges = link->read_sges;
	reads->sge_max = ib_dma_max_seg_size(link->dev->ibdev);
	init_completion(&reads->some);
	there = hps_read_locate(reads, buf);
	if (there)
		done = hps_read_all(reads);
	kfree(reads);
	hps_link_leave(link);
	if (done)
		return done;
	return !there || READ_ONCE(conn->shut) ? -ECONNRESET : -ENOMEM;
}
