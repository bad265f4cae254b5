// SPDX-License-Identifier: GPL-2.0
/*
 * The floor: what kernel verbs do with nothing above them.
 *
 * Loading makes a reliable connection by rdma_cm from the one address to the other,
 * with both ends here. Then
 *
 *	echo OP SIZE COUNT >/sys/module/floor/parameters/run
 *	cat /sys/module/floor/parameters/result
 *
 * sends that many messages and prints, of the OPs
 *
 *	send, write	10^6 bytes/s in one direction, until the last has been received
 *	sendlat		us one way, half of a message there and back, from one
 *			completion handler to the other: nobody is woken up
 *	writelat	the same with RDMA Write and an empty Send behind it
 *
 * An RDMA Write says nothing to the other end, so an empty Send follows the last. The
 * sender sees how many receives the other end has, by a variable, where a protocol
 * would need messages. All messages come from and go to the same memory.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define FLOOR_PORT	11028
#define FLOOR_DEPTH	64		/* messages under way */
#define FLOOR_SIGNAL	8		/* of which one asks for a completion */
#define FLOOR_MAX	SZ_1M		/* bytes of a message */
#define FLOOR_WAIT	(120 * HZ)
#define FLOOR_SETUP	(10 * HZ)

static char *from = "10.3.0.1";
module_param(from, charp, 0444);
MODULE_PARM_DESC(from, "address of the end that sends");

static char *to = "10.3.0.2";
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "address of the end that receives");

/*
 * One end of the connection. The counters are written by completion handlers of this
 * end, of which one runs at a time; posted by whoever posts.
 */
struct floor_end {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cqe sent;		/* FLOOR_SIGNAL more */
	struct ib_cqe silent;		/* only errors are of interest */
	struct ib_cqe received;
	void *buf;
	u64 dma;
	struct floor_end *peer;
	struct completion ready;	/* or err is set */
	u32 n_posted;
	u32 n_sent;
	u32 n_received;
	int err;
};

struct floor_op {
	const char *name;
	bool write;
	bool latency;
};

static const struct floor_op floor_ops[] = {
	{ "send" }, { "write", .write = true },
	{ "sendlat", .latency = true }, { "writelat", .write = true, .latency = true },
};

static struct floor_end floor_client, floor_server;
static struct rdma_cm_id *floor_listener;
static DECLARE_WAIT_QUEUE_HEAD(floor_wait);
static DEFINE_MUTEX(floor_lock);	/* one run at a time */

static bool floor_connected;

/* The run. */
static const struct floor_op *floor_op;
static u32 floor_size;
static u32 floor_count;
static u64 floor_tenths;		/* the result in tenths, or of latency in hundredths */

static void floor_fail(struct floor_end *end, int err)
{
	end->err = err;
	complete_all(&end->ready);
	wake_up(&floor_wait);
}

static bool floor_failed(void)
{
	return READ_ONCE(floor_client.err) || READ_ONCE(floor_server.err);
}

static int floor_post_receive(struct floor_end *end)
{
	struct ib_sge sge = {
		.addr = end->dma,
		.length = FLOOR_MAX,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &end->received,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(end->id->qp, &wr, NULL);
}

/* @size 0 is a Send of nothing. */
static int floor_post(struct floor_end *end, bool write, u32 size, bool signal)
{
	struct ib_sge sge = {
		.addr = end->dma,
		.length = size,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = signal ? &end->sent : &end->silent,
		.wr.sg_list = &sge,
		.wr.num_sge = size ? 1 : 0,
		.wr.opcode = write ? IB_WR_RDMA_WRITE : IB_WR_SEND,
		.wr.send_flags = signal ? IB_SEND_SIGNALED : 0,
		.remote_addr = end->peer->dma,
		.rkey = end->peer->pd->unsafe_global_rkey,
	};

	return ib_post_send(end->id->qp, &wr.wr, NULL);
}

/* The n-th message of a run of latency, which the other end hears of. */
static int floor_say(struct floor_end *end)
{
	bool signal = ++end->n_posted % FLOOR_SIGNAL == 0;
	int err;

	if (!floor_op->write)
		return floor_post(end, false, floor_size, signal);
	err = floor_post(end, true, floor_size, false);
	return err ?: floor_post(end, false, 0, signal);
}

static void floor_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_end *end = container_of(wc->wr_cqe, struct floor_end, sent);

	if (wc->status != IB_WC_SUCCESS) {
		floor_fail(end, -EIO);
		return;
	}
	WRITE_ONCE(end->n_sent, end->n_sent + FLOOR_SIGNAL);
	wake_up(&floor_wait);
}

static void floor_silent(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		floor_fail(container_of(wc->wr_cqe, struct floor_end, silent), -EIO);
}

static void floor_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_end *end = container_of(wc->wr_cqe, struct floor_end, received);
	u32 n = end->n_received + 1;
	int err;

	if (wc->status != IB_WC_SUCCESS) {
		floor_fail(end, -EIO);
		return;
	}
	err = floor_post_receive(end);
	/* There and back; the client counts. */
	if (!err && floor_op->latency && (end == &floor_server || n < floor_count))
		err = floor_say(end);
	if (err)
		floor_fail(end, err);
	WRITE_ONCE(end->n_received, n);
	if (!floor_op->latency || n == floor_count)
		wake_up(&floor_wait);
}

static int floor_open(struct floor_end *end)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap.max_send_wr = 2 * FLOOR_DEPTH,
		.cap.max_recv_wr = FLOOR_DEPTH + 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
	};
	struct ib_device *ibdev = end->id->device;
	int err;

	end->buf = kzalloc(FLOOR_MAX, GFP_KERNEL);
	if (!end->buf)
		return -ENOMEM;
	/* The other end is ours, and only soft devices are in the way. */
	end->pd = ib_alloc_pd(ibdev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->dma = ib_dma_map_single(ibdev, end->buf, FLOOR_MAX, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ibdev, end->dma)) {
		end->dma = 0;
		return -ENOMEM;
	}
	end->cq = ib_alloc_cq_any(ibdev, end, 4 * FLOOR_DEPTH, IB_POLL_SOFTIRQ);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	err = rdma_create_qp(end->id, end->pd, &attr);
	for (int i = 0; !err && i < FLOOR_DEPTH; i++)
		err = floor_post_receive(end);
	return err;
}

/* Whatever there is of it. */
static void floor_close(struct floor_end *end)
{
	if (!end->id)
		return;
	if (end->id->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->id->qp);
		rdma_destroy_qp(end->id);
	}
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (end->dma)
		ib_dma_unmap_single(end->id->device, end->dma, FLOOR_MAX,
				    DMA_BIDIRECTIONAL);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	rdma_destroy_id(end->id);
	kfree(end->buf);
}

static struct rdma_conn_param floor_param = {
	.retry_count = 7,
	.rnr_retry_count = 7,
};

/* A connection comes in; the first is ours. */
static int floor_accept(struct rdma_cm_id *id)
{
	struct floor_end *end = &floor_server;
	int err;

	if (end->id)
		return -EBUSY;
	end->id = id;
	id->context = end;
	err = floor_open(end);
	if (!err)
		err = rdma_accept(id, &floor_param);
	if (err)
		floor_fail(end, err);
	/* The id stays, floor_close() takes it. */
	return 0;
}

static int floor_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct floor_end *end = id->context;
	int err = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, 2000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = floor_open(end);
		if (!err)
			err = rdma_connect_locked(id, &floor_param);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return floor_accept(id);
	case RDMA_CM_EVENT_ESTABLISHED:
		complete_all(&end->ready);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		err = event->status < 0 ? event->status : -ECONNREFUSED;
		break;
	}
	if (err)
		floor_fail(end, err);
	return 0;
}

static void floor_init_end(struct floor_end *end, struct floor_end *peer)
{
	init_completion(&end->ready);
	end->sent.done = floor_sent;
	end->silent.done = floor_silent;
	end->received.done = floor_received;
	end->peer = peer;
}

static struct rdma_cm_id *floor_new_id(void *context)
{
	return rdma_create_id(&init_net, floor_event, context, RDMA_PS_TCP, IB_QPT_RC);
}

static int floor_address(struct sockaddr_storage *at, const char *text, u16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)at;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	return in4_pton(text, -1, (u8 *)&in->sin_addr, -1, NULL) ? 0 : -EINVAL;
}

static int floor_connect(void)
{
	struct sockaddr_storage src = {}, dst = {};
	int err;

	err = floor_address(&src, from, 0) ?: floor_address(&dst, to, FLOOR_PORT);
	if (err)
		return err;
	floor_listener = floor_new_id(&floor_server);
	if (IS_ERR(floor_listener))
		return PTR_ERR(floor_listener);
	err = rdma_bind_addr(floor_listener, (struct sockaddr *)&dst);
	if (!err)
		err = rdma_listen(floor_listener, 1);
	if (err)
		return err;
	floor_client.id = floor_new_id(&floor_client);
	if (IS_ERR(floor_client.id)) {
		err = PTR_ERR(floor_client.id);
		floor_client.id = NULL;
		return err;
	}
	err = rdma_resolve_addr(floor_client.id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, 2000);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&floor_client.ready, FLOOR_SETUP) ||
	    !wait_for_completion_timeout(&floor_server.ready, FLOOR_SETUP))
		return -ETIMEDOUT;
	return floor_client.err ?: floor_server.err;
}

static void floor_disconnect(void)
{
	if (!IS_ERR_OR_NULL(floor_listener))
		rdma_destroy_id(floor_listener);
	floor_close(&floor_client);
	floor_close(&floor_server);
}

/* Room for FLOOR_SIGNAL more, here and at the other end. */
static bool floor_room(const struct floor_end *end)
{
	u32 max = FLOOR_DEPTH - FLOOR_SIGNAL;

	return end->n_posted - READ_ONCE(end->n_sent) <= max &&
	       (floor_op->write ||
		end->n_posted - READ_ONCE(end->peer->n_received) <= max);
}

static bool floor_wait_until(bool (*done)(const struct floor_end *end))
{
	return wait_event_timeout(floor_wait, done(&floor_client) || floor_failed(),
				  FLOOR_WAIT) && !floor_failed();
}

static bool floor_all_received(const struct floor_end *end)
{
	const struct floor_end *last = floor_op->latency ? end : end->peer;
	u32 count = floor_op->write && !floor_op->latency ? 1 : floor_count;

	return READ_ONCE(last->n_received) == count;
}

static int floor_stream(struct floor_end *end)
{
	int err = 0;

	while (!err && end->n_posted < floor_count) {
		if (!floor_wait_until(floor_room))
			return -EIO;
		for (int i = 1; !err && i <= FLOOR_SIGNAL; i++)
			err = floor_post(end, floor_op->write, floor_size,
					 i == FLOOR_SIGNAL);
		end->n_posted += FLOOR_SIGNAL;
	}
	if (!err && floor_op->write)
		err = floor_post(end, false, 0, false);
	return err;
}

/* All of the last run has been completed, as far as it asks for that. */
static bool floor_quiet(const struct floor_end *end)
{
	return READ_ONCE(end->n_sent) == round_down(end->n_posted, FLOOR_SIGNAL);
}

static int floor_run(const struct floor_op *op, u32 size, u32 count)
{
	ktime_t t0;
	u64 ns;
	int err;

	/* Not as a parameter of insmod. */
	if (!floor_connected)
		return -ENOTCONN;
	if (floor_failed())
		return -EIO;
	floor_op = op;
	floor_size = size;
	floor_count = round_up(count, FLOOR_SIGNAL);
	floor_client.n_posted = 0;
	floor_client.n_sent = 0;
	floor_client.n_received = 0;
	floor_server.n_posted = 0;
	floor_server.n_sent = 0;
	floor_server.n_received = 0;
	t0 = ktime_get();
	err = op->latency ? floor_say(&floor_client) : floor_stream(&floor_client);
	if (err)
		return err;
	if (!floor_wait_until(floor_all_received))
		return -EIO;
	ns = ktime_to_ns(ktime_sub(ktime_get(), t0));
	if (op->latency)
		floor_tenths = div64_u64(ns, 20ULL * floor_count);
	else
		floor_tenths = div64_u64(10000ULL * size * floor_count, ns);
	/* The counters are the next run's. */
	return wait_event_timeout(floor_wait, (floor_quiet(&floor_client) &&
					       floor_quiet(&floor_server)) ||
				  floor_failed(), FLOOR_WAIT) ? 0 : -EIO;
}

static int floor_run_set(const char *val, const struct kernel_param *kp)
{
	char name[16];
	u32 size, count;
	int i, err = -EINVAL;

	if (sscanf(val, "%15s %u %u", name, &size, &count) != 3 || !size ||
	    size > FLOOR_MAX || !count || count > U32_MAX / 2)
		return -EINVAL;
	mutex_lock(&floor_lock);
	for (i = 0; i < ARRAY_SIZE(floor_ops); i++)
		if (!strcmp(name, floor_ops[i].name))
			err = floor_run(&floor_ops[i], size, count);
	mutex_unlock(&floor_lock);
	return err;
}

static const struct kernel_param_ops floor_run_ops = {
	.set = floor_run_set,
};
module_param_cb(run, &floor_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "OP SIZE COUNT");

static int floor_result_get(char *buf, const struct kernel_param *kp)
{
	u32 unit = floor_op && floor_op->latency ? 100 : 10;

	return sysfs_emit(buf, "%llu.%0*llu\n", floor_tenths / unit,
			  unit == 100 ? 2 : 1, floor_tenths % unit);
}

static const struct kernel_param_ops floor_result_ops = {
	.get = floor_result_get,
};
module_param_cb(result, &floor_result_ops, NULL, 0444);
MODULE_PARM_DESC(result, "10^6 bytes/s, or us one way");

static int __init floor_init(void)
{
	int err;

	floor_init_end(&floor_client, &floor_server);
	floor_init_end(&floor_server, &floor_client);
	err = floor_connect();
	if (err)
		floor_disconnect();
	else
		floor_connected = true;
	return err;
}

static void __exit floor_exit(void)
{
	floor_disconnect();
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_DESCRIPTION("What kernel verbs do with nothing above them");
MODULE_LICENSE("GPL");
