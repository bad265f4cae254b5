// SPDX-License-Identifier: GPL-2.0
/*
 * A connection over a queue pair: made, established, torn down.
 *
 * Each link has receives of its own rather than a share in one SRQ per device.
 * The bound that makes credits safe is the same either way (as many receives as
 * credits granted), so an SRQ would save no memory; and ib_drain_qp() on a
 * queue pair with an SRQ waits for an event that Soft-iWARP never raises, while
 * without that wait a completion of a queue pair that is gone could be taken
 * for one of its successor.
 *
 * Teardown runs in a work item, whatever begins it: an error, the peer's
 * disconnect, a violation, close, device removal. It is the only place that
 * destroys, in this order:
 *
 *   1. disconnect: the peer learns of it, the queue pair goes to error;
 *   2. drain: every completion has been handled, nothing more can come;
 *   3. destroy the cm_id's queue pair and the cm_id, so that no handler runs;
 *   4. unmap all buffers; what was received and not read keeps its memory;
 *   5. leave the device, which may then be removed;
 *   6. hps_conn_end(), where the socket learns of it.
 *
 * Step 6 comes after the drain because what the peer sent before it
 * disconnected is still to be read.
 */
#include <linux/slab.h>

#include "cm.h"
#include "device.h"
#include "link.h"
#include "net.h"
#include "param.h"
#include "sock.h"

#include <linux/hpsock.h>

/* Messages in flight at most; a power of two, as the ring is indexed modulo. */
#define HPS_SQ_SIZE	64

static void hps_link_free(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	kvfree(link->slots);
	kfree_rcu(link, conn.rcu);
}

static void hps_link_unmap_list(struct list_head *list)
{
	struct hps_buf *buf;

	list_for_each_entry(buf, list, list)
		hps_buf_unmap(buf);
}

/* Nothing is posted any more: take all memory from the device. */
static void hps_link_unmap(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	hps_receives_unmap(link);
	hps_link_unmap_list(&conn->txq);
	hps_link_unmap_list(&conn->tx_flight);
	if (link->hdrs)
		hps_buf_free(link->hdrs);
	link->hdrs = NULL;
	spin_unlock_bh(&conn->lock);
}

static void hps_link_teardown(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link, teardown);

	if (link->id) {
		/* A handler that runs is the last to look at the link. */
		rdma_lock_handler(link->id);
		rdma_unlock_handler(link->id);
		cancel_work_sync(&link->attempt);
	}
	if (link->id && link->id->qp) {
		rdma_disconnect(link->id);
		ib_drain_qp(link->id->qp);
		rdma_destroy_qp(link->id);
	}
	if (link->id)
		rdma_destroy_id(link->id);
	link->id = NULL;
	if (link->cq)
		ib_cq_pool_put(link->cq, link->nr_cqe);
	link->cq = NULL;
	hps_link_unmap(link);
	hps_device_leave(link);
	hps_conn_end(&link->conn);
	put_net(link->conn.net);
	hps_conn_put(&link->conn);
}

static void hps_link_shut(struct hps_conn *conn)
{
	queue_work(hps_wq, &hps_link(conn)->teardown);
}

/**
 * hps_link_hold_device - keep the device of a link from leaving
 * @link: not locked
 *
 * Context: any. Return: the device, for hps_device_put(), or NULL if the link is
 * ending.
 */
struct hps_device *hps_link_hold_device(struct hps_link *link)
{
	struct hps_device *dev = NULL;

	spin_lock_bh(&link->conn.lock);
	if (!link->conn.shut) {
		dev = link->dev;
		hps_device_get(dev);
	}
	spin_unlock_bh(&link->conn.lock);
	return dev;
}

static struct hps_buf *hps_link_tx_buf(struct hps_conn *conn, u32 size)
{
	struct hps_device *dev = hps_link_hold_device(hps_link(conn));
	struct hps_buf *buf;

	if (!dev)
		return NULL;
	buf = hps_buf_alloc(dev->ibdev, size, DMA_TO_DEVICE,
			    GFP_KERNEL | __GFP_NOWARN);
	if (!buf)
		goto put;
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
put:
	hps_device_put(dev);
	return buf;
}

static void hps_link_info(struct hps_conn *conn, struct hpsock_info *info)
{
	struct hps_link *link = hps_link(conn);

	info->tx_credits = hps_credit_left(&link->credit);
	info->rx_window = link->credit.window;
	info->tx_msg_size = conn->tx_msg_max;
	info->rx_msg_size = link->rx_size - sizeof(struct hps_hdr);
	info->credit_stalls = link->stalls;
	if (link->dev)
		strscpy(info->device, dev_name(&link->dev->ibdev->dev),
			sizeof(info->device));
}

static const struct hps_transport hps_rdma = {
	.id		= HPSOCK_TRANSPORT_RDMA,
	.connect	= hps_cm_connect,
	.tx_buf		= hps_link_tx_buf,
	.send		= hps_msg_send,
	.send_fin	= hps_msg_send_fin,
	.send_finack	= hps_msg_send_finack,
	.tx_idle	= hps_msg_tx_idle,
	.probe		= hps_msg_probe,
	.consumed	= hps_receives_consumed,
	.rx_full	= hps_receives_full,
	.grow		= hps_receives_grow,
	.rx_mem		= hps_receives_mem,
	.shut		= hps_link_shut,
	.info		= hps_link_info,
	.free		= hps_link_free,
};

/**
 * hps_link_create - a connection over a queue pair that is not there yet
 * @net: the namespace
 * @rcvbuf: SO_RCVBUF, limits the window
 *
 * Two references: the transport's, which its end drops, and the caller's. The
 * transport also holds the namespace, which neither a cm_id nor a socket does to
 * the very end.
 *
 * Context: process, may sleep. Return: the connection or NULL.
 */
struct hps_conn *hps_link_create(struct net *net, int rcvbuf)
{
	struct hps_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	struct hps_credit *credit;

	if (!link)
		return NULL;
	hps_conn_init(&link->conn, &hps_rdma, get_net(net));
	hps_conn_get(&link->conn);
	INIT_LIST_HEAD(&link->dev_node);
	INIT_LIST_HEAD(&link->early);
	INIT_LIST_HEAD(&link->rx_all);
	INIT_LIST_HEAD(&link->rx_spare);
	INIT_WORK(&link->teardown, hps_link_teardown);
	INIT_WORK(&link->attempt, hps_cm_attempt_work);
	INIT_WORK(&link->grow, hps_receives_work);
	link->rx_size = min(READ_ONCE(hps_buf_first), READ_ONCE(hps_buf_size));
	credit = &link->credit;
	credit->window_max = READ_ONCE(hps_window);
	credit->window = clamp_t(u32, rcvbuf / link->rx_size, HPS_WINDOW_MIN,
				 min(credit->window_max, READ_ONCE(hps_quota)));
	credit->rx_ready = credit->window;
	credit->rx_told = credit->window;
	return &link->conn;
}

/**
 * hps_link_discard - give back a connection that nothing was done with
 * @conn: as hps_link_create() returned it; both references go
 *
 * Context: any.
 */
void hps_link_discard(struct hps_conn *conn)
{
	put_net(conn->net);
	hps_conn_put(conn);
	hps_conn_put(conn);
}

static void hps_link_qp_event(struct ib_event *event, void *context)
{
	struct hps_link *link = context;

	/* A message may overtake the last step of the handshake. */
	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(link->id, event->event);
}

/**
 * hps_link_setup - queue pair, completions and receives, once the device is
 *	known
 * @link: not on a device yet
 * @id: rdma_cm's, with a device
 *
 * What was made is left to the teardown if this fails.
 *
 * Context: process, may sleep. Return: 0 or a negative errno.
 */
int hps_link_setup(struct hps_link *link, struct rdma_cm_id *id)
{
	const struct ib_device_attr *attrs = &id->device->attrs;
	struct ib_qp_init_attr init = {};
	u32 rq_size, i;
	int err;

	err = hps_device_join(id->device, link);
	if (err)
		return err;

	rq_size = link->credit.window_max + HPS_CTRL_SLOTS;
	link->sq_size = HPS_SQ_SIZE;
	/* One more each for the drain. */
	if (max(rq_size, link->sq_size) + 1 > attrs->max_qp_wr)
		return -EOPNOTSUPP;
	link->slots = kvcalloc(link->sq_size, sizeof(*link->slots),
			       GFP_KERNEL);
	link->hdrs = hps_buf_alloc(id->device,
				   link->sq_size * sizeof(struct hps_head),
				   DMA_TO_DEVICE, GFP_KERNEL);
	if (!link->slots || !link->hdrs)
		return -ENOMEM;
	for (i = 0; i < link->sq_size; i++)
		link->slots[i].link = link;

	link->nr_cqe = rq_size + link->sq_size + 2;
	link->cq = ib_cq_pool_get(id->device, link->nr_cqe, -1,
				  IB_POLL_SOFTIRQ);
	if (IS_ERR(link->cq)) {
		err = PTR_ERR(link->cq);
		link->cq = NULL;
		return err;
	}
	init.event_handler = hps_link_qp_event;
	init.qp_context = link;
	init.send_cq = link->cq;
	init.recv_cq = link->cq;
	init.cap.max_send_wr = link->sq_size + 1;
	init.cap.max_recv_wr = rq_size + 1;
	init.cap.max_send_sge = 2;
	init.cap.max_recv_sge = 1;
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = IB_QPT_RC;
	err = rdma_create_qp(id, link->dev->pd, &init);
	return err ?: hps_receives_setup(link, id->device);
}

/**
 * hps_link_established - both hellos are known, let messages through
 * @link: not locked; tx_size and the peer's credits are set
 *
 * Context: process, from rdma_cm's handler.
 */
void hps_link_established(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;
	struct hps_buf *buf, *next;
	bool initiator;

	spin_lock_bh(&conn->lock);
	if (conn->shut || link->established)
		goto unlock;
	initiator = conn->state == TCP_SYN_SENT;
	hps_msg_resize(link);
	link->established = true;
	hps_conn_established(conn);
	if (initiator && rdma_protocol_iwarp(link->id->device,
					     link->id->port_num))
		hps_msg_first(link);
	list_for_each_entry_safe(buf, next, &link->early, list) {
		list_del_init(&buf->list);
		hps_msg_rx(link, buf);
	}
unlock:
	spin_unlock_bh(&conn->lock);
}
