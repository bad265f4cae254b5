// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA as a transport: connections over queue pairs, made and torn down.
 *
 * Each link has receives of its own rather than a share in one SRQ per device.
 * The bound that makes credits safe is the same either way (as many receives as
 * credits granted), so an SRQ would save no memory; and ib_drain_qp() on a
 * queue pair with an SRQ waits for an event that Soft-iWARP never raises, while
 * without that wait a completion of a queue pair that is gone could be taken
 * for one of its successor.
 *
 * Teardown runs in a work item, whatever begins it: an error, the peer's
 * disconnect, a violation, close, device removal. Nothing else destroys, and
 * it does so in this order:
 *
 *   0. on iWARP, come again when the peer has answered the attempt to connect, see
 *      asker.c;
 *   1. have the attempt to connect give up, and wait for it and for a handler of rdma_cm
 *      that runs: they are the last;
 *   2. disconnect: the peer learns of it, the queue pair goes to error;
 *   3. drain: every completion has been handled, nothing more can come;
 *   4. wait for those who are about to use queue pair or device; destroy the keys, the
 *      queue pair and the cm_id. On Soft-RoCE the queue pair waits, and is reset after the id;
 *   5. stop what else may run: work that would grow or shrink, the timer for credits. Work
 *      that runs already finds the connection shut and has a reference;
 *   6. unmap all buffers; what was received and not read keeps its memory;
 *   7. hps_conn_end(), where the socket learns of it;
 *   8. give back the memory of heads and the completion queue, leave the device, which may
 *      then be removed.
 *
 * Step 7 comes after the drain because what the peer sent before it
 * disconnected is still to be read. On Soft-RoCE the queue pair is destroyed between the
 * last two, a grace period later, by a second work item, see hps_qp_touched_late(). Who
 * removes the device, or unloads the module, waits for that.
 */
#include <rdma/rdma_cm.h>

#include "asker.h"
#include "cancel.h"
#include "cm.h"
#include "compat.h"
#include "compat_verbs.h"
#include "conn_life.h"
#include "device.h"
#include "dma.h"
#include "key.h"
#include "lent.h"
#include "link.h"
#include "msg.h"
#include "param.h"
#include "post.h"
#include "rdma.h"
#include "read.h"
#include "receives.h"
#include "rendezvous.h"
#include "service.h"
#include "sock.h"
#include "source.h"
#include "target.h"
#include "transport.h"
#include "work.h"
#include "zerocopy.h"

#include <linux/hpsock.h>

static void hps_rdma_unmap_list(struct list_head *list)
{
	struct hps_buf *buf;

	list_for_each_entry(buf, list, list)
		hps_dma_unmap(buf);
}

/*
 * Nothing is posted any more: take all memory from the device but what a message's head is
 * sent from, which goes with the queue pair.
 */
static void hps_rdma_unmap(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	hps_receives_unmap(link);
	hps_zerocopy_end(conn);
	hps_rdma_unmap_list(&conn->txq);
	hps_rdma_unmap_list(&conn->tx_flight);
	hps_rdma_unmap_list(&conn->tx_spare);
	spin_unlock_bh(&conn->lock);
}

/*
 * A Soft-iWARP that is told to disconnect while it sends nothing forgets of the Reads that
 * are under way, and never completes them (siw_qp_nextstate_from_rts()). An error does.
 */
static void hps_rdma_fail_reads(struct hps_link *link)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (link->iwarp && READ_ONCE(link->reading))
		ib_modify_qp(link->id->qp, &attr, IB_QP_STATE);
}

/*
 * A key is valid until it is destroyed, for the device's other queue pairs; so no memory is
 * given back before that.
 */
static void hps_rdma_end_keys(struct hps_link *link)
{
	hps_source_put_keys(link);
	hps_target_put_key(link);
	hps_rendezvous_put_key(link);
	hps_key_destroy(link);
	hps_source_end(link);
	hps_target_end(link);
	hps_rendezvous_end(link);
}

/* Nothing is left but what the queue pair needed. */
static void hps_rdma_leave(struct hps_link *link)
{
	if (link->hdrs)
		hps_buf_free(&link->hdrs->buf);
	link->hdrs = NULL;
	if (link->cq)
		ib_cq_pool_put(link->cq, link->nr_cqe);
	link->cq = NULL;
	hps_device_leave(link);
	put_net(link->conn.net);
	hps_conn_put(&link->conn);
}

static void hps_rdma_untouched(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link, teardown);

	/* Once more, for what was being received the first time. */
	hps_qp_close(link->late.qp);
	ib_destroy_qp(link->late.qp);
	hps_rdma_leave(link);
}

static void hps_rdma_untouched_rcu(struct rcu_head *rcu)
{
	struct hps_link *link = container_of(rcu, struct hps_link, late.rcu);

	INIT_WORK(&link->teardown, hps_rdma_untouched);
	queue_work(hps_teardown_wq, &link->teardown);
}

static void hps_rdma_teardown(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link, teardown);
	struct ib_qp *late = NULL;

	if (hps_asker_await(link))
		return;
	if (link->id)
		hps_cm_stop(link);
	if (link->id && link->id->qp) {
		hps_rdma_fail_reads(link);
		rdma_disconnect(link->id);
		ib_drain_qp(link->id->qp);
	}
	wait_var_event(&link->users, !atomic_read(&link->users));
	if (link->id && link->id->qp) {
		hps_rdma_end_keys(link);
		if (hps_qp_touched_late(link->id->qp->device))
			late = link->id->qp;
		else
			rdma_destroy_qp(link->id);
	}
	if (link->id) {
		/*
		 * A device that goes while the address is asked for has rdma_cm cancel
		 * the request, which may not have been made yet, and forget of it.
		 */
		rdma_addr_cancel(&link->id->route.addr.dev_addr);
		rdma_destroy_id(link->id);
	}
	link->id = NULL;
	/* Not before: the id could bring it up again. */
	if (late)
		hps_qp_close(late);
	if (cancel_delayed_work(&link->growth.work))
		hps_conn_put(&link->conn);
	hps_shrink_end(link);
	hps_msg_end(link);
	hps_rdma_unmap(link);
	hps_conn_end(&link->conn);
	if (late) {
		link->late.qp = late;
		call_rcu_hurry(&link->late.rcu, hps_rdma_untouched_rcu);
	} else {
		hps_rdma_leave(link);
	}
}

static void hps_rdma_shut(struct hps_conn *conn)
{
	queue_work(hps_teardown_wq, &hps_link(conn)->teardown);
}

static struct hps_buf *hps_rdma_tx_buf(struct hps_conn *conn, u32 size)
{
	struct hps_link *link = hps_link(conn);
	struct hps_buf *buf;

	if (!hps_link_enter(link))
		return NULL;
	buf = hps_dma_new(sizeof(struct hps_dma), link->dev->ibdev, size,
			  DMA_TO_DEVICE, GFP_KERNEL | __GFP_NOWARN);
	if (!buf)
		goto leave;
	spin_lock_bh(&conn->lock);
	if (!conn->shut) {
		buf->busy = true;
		list_add_tail(&buf->list, &conn->txq);
	}
	spin_unlock_bh(&conn->lock);
	if (list_empty(&buf->list)) {
		hps_buf_free(buf);
		buf = NULL;
	}
leave:
	hps_link_leave(link);
	return buf;
}

static u32 hps_rdma_gather_max(struct hps_conn *conn)
{
	return READ_ONCE(hps_link(conn)->gather_max);
}

static bool hps_rdma_tx_gather(struct hps_conn *conn,
			       struct hps_gather *gather)
{
	struct hps_link *link = hps_link(conn);
	struct hps_dma *dma;
	bool queued = false;

	if (!hps_link_enter(link))
		return false;
	dma = hps_dma_gather(link->dev->ibdev, gather);
	if (!dma)
		goto leave;
	spin_lock_bh(&conn->lock);
	queued = !conn->shut;
	if (queued)
		hps_zerocopy_queue(conn, &dma->buf);
	spin_unlock_bh(&conn->lock);
	if (!queued)
		hps_dma_ungather(dma);
leave:
	hps_link_leave(link);
	return queued;
}

static bool hps_rdma_tx_lend(struct hps_conn *conn, struct hps_lent *lent)
{
	struct hps_link *link = hps_link(conn);
	struct hps_source *source = NULL;

	if (!hps_link_enter(link))
		return false;
	if (!hps_target_expect(link))
		source = hps_source_new(link, lent);
	if (source) {
		spin_lock_bh(&conn->lock);
		WRITE_ONCE(link->tx_lent, link->tx_lent + 1);
		if (lent->waited)
			WRITE_ONCE(conn->tx_waited, conn->tx_waited + 1);
		hps_zerocopy_queue(conn, &source->dma.buf);
		spin_unlock_bh(&conn->lock);
	}
	hps_link_leave(link);
	return source;
}

static void hps_rdma_info(struct hps_conn *conn, struct hpsock_info *info)
{
	struct hps_link *link = hps_link(conn);

	info->tx_credits = hps_credit_left(&link->credit);
	info->rx_window = link->credit.window;
	info->tx_msg_size = conn->tx_msg_max;
	info->rx_msg_size = hps_receives_capacity(&link->receives, link->receives.size) -
			    sizeof(struct hps_hdr);
	info->credit_stalls = link->stalls;
	if (link->dev && !conn->ended)
		strscpy(info->device, dev_name(&link->dev->ibdev->dev),
			sizeof(info->device));
}

static const struct hps_transport hps_rdma_ops = {
	.id		= HPSOCK_TRANSPORT_RDMA,
	.create		= hps_rdma_create,
	.listen		= hps_service_listen,
	.unlisten	= hps_service_unlisten,
	.connect	= hps_cm_connect,
	.tx_buf		= hps_rdma_tx_buf,
	.gather_max	= hps_rdma_gather_max,
	.tx_gather	= hps_rdma_tx_gather,
	.tx_lend	= hps_rdma_tx_lend,
	.offer		= hps_msg_offer,
	.cancel		= hps_cancel,
	.cancelled	= hps_cancel_answer,
	.read		= hps_read,
	.show		= hps_target_show,
	.shown		= hps_target_shown,
	.withdraw	= hps_target_withdraw,
	.tx_busy	= hps_msg_busy,
	.send		= hps_msg_send,
	.urgent		= hps_msg_urgent,
	.send_fin	= hps_msg_send_fin,
	.send_finack	= hps_msg_send_finack,
	.tx_idle	= hps_msg_tx_idle,
	.ask		= hps_msg_ask,
	.probe		= hps_msg_probe,
	.consumed	= hps_receives_consumed,
	.rx_full	= hps_receives_full,
	.grow		= hps_growth_read,
	.grow_later	= hps_growth_later,
	.rx_mem		= hps_receives_mem,
	.shut		= hps_rdma_shut,
	.info		= hps_rdma_info,
	.free		= hps_link_free,
};

/* What it begins with, by the tunables and SO_RCVBUF of its socket. */
static void hps_rdma_tune(struct hps_link *link, const struct sock *sk)
{
	hps_tune_copy(&link->tuning, &hps_sk(sk)->tuning);
	link->tx_offers_max = hps_tuned(&link->tuning, HPS_TUNE_ZCOPY_OUTSTANDING);
	hps_receives_init(&link->receives, hps_receives_first_size(link));
	hps_credit_init(&link->credit, hps_tuned(&link->tuning, HPS_TUNE_WINDOW));
	hps_credit_begin(&link->credit, hps_receives_first_window(link, sk));
}

/**
 * hps_rdma_create - a connection over a queue pair that is not there yet
 * @sk: who makes it, or listens: has the namespace, the user that its memory counts for,
 *	and the values of tunables
 *
 * Two references: the transport's, which its teardown drops, and the caller's. The
 * transport also holds the namespace, which neither a cm_id nor a socket does to
 * the very end.
 *
 * Context: process, may sleep.
 * Return: the connection or NULL.
 */
struct hps_conn *hps_rdma_create(const struct sock *sk)
{
	struct hps_link *link = hps_link_alloc(sk);

	if (!link)
		return NULL;
	hps_conn_init(&link->conn, &hps_rdma_ops, get_net(sock_net(sk)));
	hps_conn_get(&link->conn);
	hps_msg_init(link);
	INIT_LIST_HEAD(&link->dev_node);
	INIT_LIST_HEAD(&link->mrs);
	INIT_LIST_HEAD(&link->tx_mrs);
	INIT_LIST_HEAD(&link->tx_sources);
	INIT_LIST_HEAD(&link->tx_read);
	INIT_WORK(&link->teardown, hps_rdma_teardown);
	INIT_WORK(&link->attempt, hps_cm_attempt_work);
	hps_growth_init(&link->growth);
	hps_rdma_tune(link, sk);
	return &link->conn;
}

/**
 * hps_rdma_discard - give back a connection that nothing was done with
 * @conn: as hps_rdma_create() returned it; both references go
 *
 * Context: any.
 */
void hps_rdma_discard(struct hps_conn *conn)
{
	put_net(conn->net);
	hps_conn_put(conn);
	hps_conn_put(conn);
}

static void hps_rdma_qp_event(struct ib_event *event, void *context)
{
	struct hps_link *link = context;

	/*
	 * A message may overtake the last step of the handshake. Soft-RoCE, whose queue pair may
	 * outlive the id, tells of nothing of the kind.
	 */
	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(link->id, event->event);
}

/* As rdma_rw needs no more than one request of the device then. */
static u32 hps_rdma_read_sges(const struct hps_link *link,
			      const struct rdma_cm_id *id)
{
	if (link->iwarp)
		return id->device->attrs.max_fast_reg_page_list_len;
	return id->qp->max_read_sge;
}

static int hps_rdma_create_qp(struct hps_link *link, struct rdma_cm_id *id,
			      u32 rq_size)
{
	const u32 sges = min_t(u32, id->device->attrs.max_send_sge,
			       HPS_GATHER_MAX + 1);
	const u32 inline_max = sizeof(struct hps_hdr) +
			       hps_tuned(&link->tuning, HPS_TUNE_INLINE_MAX);
	struct ib_qp_init_attr init = {
		.event_handler = hps_rdma_qp_event,
		.qp_context = link,
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.cap.max_send_wr = HPS_SQ_SIZE + 1,
		.cap.max_recv_wr = rq_size + 1,
		.cap.max_send_sge = sges,
		.cap.max_recv_sge = 1 + link->receives.apart,
		.cap.max_inline_data = inline_max,
		.cap.max_rdma_ctxs = HPS_READS,
		.port_num = id->port_num,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int err;

	err = rdma_create_qp(id, link->dev->pd, &init);
	if (err) {
		/* How much a device takes inline is not among its attributes. */
		init.cap.max_inline_data = 0;
		err = rdma_create_qp(id, link->dev->pd, &init);
	}
	link->inline_max = min(init.cap.max_inline_data, inline_max);
	/* The header takes one. */
	WRITE_ONCE(link->gather_max, sges - 1);
	if (!err)
		link->read_sges = min_t(u32, HPS_READ_SGES,
					hps_rdma_read_sges(link, id));
	return err;
}

/**
 * hps_rdma_setup - queue pair, completions and receives
 * @link: on a device
 * @id: rdma_cm's, with that device
 *
 * What was made is left to the teardown if this fails.
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int hps_rdma_setup(struct hps_link *link, struct rdma_cm_id *id)
{
	const struct ib_device_attr *attrs = &id->device->attrs;
	u32 rq_size;
	int err;

	link->iwarp = rdma_protocol_iwarp(id->device, id->port_num);
	/* hps_rdma_info() may look. */
	spin_lock_bh(&link->conn.lock);
	link->receives.apart = attrs->max_recv_sge > 1;
	spin_unlock_bh(&link->conn.lock);
	link->keys_alone = hps_keys_repeated(id->device);
	rq_size = link->credit.window_max + HPS_CTRL_SLOTS +
		  link->tx_offers_max + 1 + HPS_TARGET_RECEIVES + 1;
	/* One more each for the drain. */
	if (max_t(u32, rq_size, HPS_SQ_SIZE) + 1 > attrs->max_qp_wr)
		return -EOPNOTSUPP;
	link->hdrs = hps_dma_new(sizeof(*link->hdrs), id->device,
				 HPS_SQ_SIZE * sizeof(struct hps_head),
				 DMA_TO_DEVICE, GFP_KERNEL);
	if (!link->hdrs)
		return -ENOMEM;

	/* A read may be three requests (a key, for iWARP); the drain adds two. */
	link->nr_cqe = rq_size + HPS_SQ_SIZE + 3 * HPS_READS + 2;
	link->cq = ib_cq_pool_get(id->device, link->nr_cqe, -1,
				  IB_POLL_SOFTIRQ);
	if (IS_ERR(link->cq)) {
		err = PTR_ERR(link->cq);
		link->cq = NULL;
		return err;
	}
	err = hps_rdma_create_qp(link, id, rq_size);
	return err ?: hps_receives_setup(link, id->device);
}

/**
 * hps_rdma_init - before the first socket
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int __init hps_rdma_init(void)
{
	hps_transport_register(&hps_rdma_ops);
	return hps_link_init();
}

/**
 * hps_rdma_exit - when no socket is left, and no work
 *
 * Context: process, may sleep.
 */
void hps_rdma_exit(void)
{
	hps_link_exit();
}
