// SPDX-License-Identifier: GPL-2.0
/*
 * rdma_cm: how connections come about.
 *
 * All connections of a namespace come in at two rdma_cm ports, see service.c. The
 * ports that programs use travel in the hello, in the private data of REQ and REP.
 *
 *   initiator                           responder
 *   resolve address, route
 *   queue pair, receives (hps_cm_attempt_work())
 *   REQ + hello            ----->       somebody listens, backlog has room
 *                                       queue pair, receives
 *                          <-----       REP + hello, or REJ + reason
 *   established            ----->       established (by the first message)
 *
 * The responder waits for a message, as nothing may be accepted that is not
 * established at the other end. RTU does not say that: rdma_cm sends it before it
 * tells the initiator's handler. On iWARP, where nothing says it, the responder may
 * also not send before the initiator has.
 *
 * Handlers run under the cm_id's handler mutex, in process context. One that
 * finds its connection shut does nothing, so that after taking that mutex once
 * the teardown has the cm_id to itself.
 */
#include <linux/cred.h>
#include <linux/in.h>
#include <rdma/ib_cm.h>
#include <net/ip.h>
#include <net/tcp_states.h>

#include "asker.h"
#include "cm.h"
#include "device.h"
#include "link.h"
#include "msg.h"
#include "net.h"
#include "param.h"
#include "port.h"
#include "queue.h"
#include "rdma.h"
#include "read.h"
#include "record.h"
#include "retry.h"
#include "service.h"
#include "sock.h"
#include "work.h"

#define HPS_RESOLVE_MS	100	/* first try, doubled for each of the next */
#define HPS_RESOLVE_MAX	1600	/* last try; 3.1 s in all, as long as TCP's */
#define HPS_ROUTE_MS	3000
#define HPS_RETRY	6	/* Soft-RoCE takes 7 for ever */
#define HPS_RNR_RETRY	6	/* never needed, see credit.c; 7 is for ever */
#define HPS_TRIES_FEW	6	/* 1.5 s, see retry.c */

/* @err: negative errno, or 0 as for hps_conn_shut() */
static void hps_cm_fail(struct hps_link *link, int err)
{
	spin_lock_bh(&link->conn.lock);
	hps_conn_shut(&link->conn, -err);
	spin_unlock_bh(&link->conn.lock);
}

static u8 hps_cm_type(const struct hps_link *link)
{
	return link->conn.records ? SOCK_SEQPACKET : SOCK_STREAM;
}

static void hps_cm_fill_hello(struct hps_link *link,
			      struct hps_hello *hello)
{
	const struct hps_credit *credit = &link->credit;

	memset(hello, 0, sizeof(*hello));
	hello->magic = cpu_to_be32(HPS_MAGIC);
	hello->version = HPS_VERSION;
	hello->type = hps_cm_type(link);
	hello->src_port = cpu_to_be16(link->conn.local.port);
	hello->dst_port = cpu_to_be16(link->conn.peer.port);
	hello->credits = cpu_to_be16(credit->rx_told);
	hello->window = cpu_to_be16(credit->window_max);
	hello->buf_size = cpu_to_be32(hps_receives_capacity(&link->receives,
							    link->receives.size));
	hello->ctrl_slots = cpu_to_be16(HPS_CTRL_SLOTS);
	link->reads = hps_link_reads(link);
	link->swaps = hps_link_swaps(link);
	hello->features = cpu_to_be64(HPS_FEATURE_SHRINK | HPS_FEATURE_WRITE |
				      (link->reads ? HPS_FEATURE_READ : 0) |
				      (link->swaps ? HPS_FEATURE_SWAP : 0));
}

/* Returns 0 or an enum hps_rej_reason. */
static int hps_cm_check_hello(const struct hps_hello *hello, u8 len)
{
	u32 window, size;

	if (!hello || len < sizeof(*hello) ||
	    be32_to_cpu(hello->magic) != HPS_MAGIC ||
	    hello->version != HPS_VERSION)
		return HPS_REJ_VERSION;
	window = be16_to_cpu(hello->window);
	size = be32_to_cpu(hello->buf_size);
	if ((hello->type != SOCK_STREAM && hello->type != SOCK_SEQPACKET) ||
	    window < HPS_WINDOW_MIN ||
	    window > HPS_WINDOW_MAX || !hello->credits ||
	    be16_to_cpu(hello->credits) > window ||
	    !hello->src_port || size < HPS_BUF_MIN || size > HPS_BUF_MAX ||
	    be16_to_cpu(hello->ctrl_slots) < HPS_CTRL_SLOTS)
		return HPS_REJ_INVALID;
	return 0;
}

/* What the peer lets us send. */
static void hps_cm_take_hello(struct hps_link *link,
			      const struct hps_hello *hello)
{
	link->tx_size = be32_to_cpu(hello->buf_size);
	hps_credit_hello(&link->credit, be16_to_cpu(hello->credits),
			 be16_to_cpu(hello->window));
	link->peer_reads = be64_to_cpu(hello->features) & HPS_FEATURE_READ;
	link->peer_pads = be64_to_cpu(hello->features) & HPS_FEATURE_SHRINK;
	link->peer_writes = be64_to_cpu(hello->features) & HPS_FEATURE_WRITE;
	link->peer_swaps = be64_to_cpu(hello->features) & HPS_FEATURE_SWAP;
}

static void hps_cm_param(struct rdma_conn_param *param,
			 const struct hps_hello *hello,
			 const struct ib_device_attr *attrs)
{
	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = hello ? sizeof(*hello) : 0;
	param->retry_count = HPS_RETRY;
	param->rnr_retry_count = HPS_RNR_RETRY;
	param->responder_resources = min(attrs->max_qp_rd_atom, HPS_READS);
	param->initiator_depth = min(attrs->max_qp_init_rd_atom, HPS_READS);
}

/* As many RDMA Reads at a time as both ends have resources for. */
static void hps_cm_limit(struct rdma_conn_param *param,
			 const struct rdma_conn_param *asked)
{
	param->responder_resources = min(param->responder_resources,
					 asked->responder_resources);
	param->initiator_depth = min(param->initiator_depth,
				     asked->initiator_depth);
}

/*
 * What both ends have resources for is known: @param is as the queue pair has it, and the
 * peer's has the same the other way round. Without any there is neither RDMA Read nor
 * atomic. Our device executes what the peer asks, so it has to have atomics as well.
 */
static void hps_cm_limited(struct hps_link *link,
			   const struct rdma_conn_param *param)
{
	link->reads &= param->initiator_depth > 0;
	link->peer_reads &= param->responder_resources > 0;
	link->asks = link->swaps && link->peer_swaps && param->initiator_depth;
	link->is_asked = link->swaps && link->peer_swaps &&
			 param->responder_resources;
}

/*
 * The responder has answered: with what it has, or less if we have. Of iWARP each device
 * tells something else then, or nothing, and sees to it itself.
 */
static void hps_cm_answered(struct hps_link *link,
			    const struct rdma_conn_param *answer)
{
	struct rdma_conn_param param;

	hps_cm_param(&param, NULL, &link->id->device->attrs);
	hps_cm_limited(link, link->iwarp ? &param : answer);
}

/* As hps_cm_fail(); @tries as hps_conn.tries. */
static void hps_cm_fail_attempt_locked(struct hps_link *link, int err, u8 tries)
{
	lockdep_assert_held(&link->conn.lock);
	if (!link->conn.shut)
		link->conn.tries = tries;
	hps_conn_shut(&link->conn, -err);
}

static void hps_cm_fail_attempt(struct hps_link *link, int err, u8 tries)
{
	spin_lock_bh(&link->conn.lock);
	hps_cm_fail_attempt_locked(link, err, tries);
	spin_unlock_bh(&link->conn.lock);
}

/*
 * On iWARP rdma_cm's choice of a local port may be one that TCP uses, or has not done with
 * (TIME_WAIT), whose ports it does not know; TCP's words are EADDRINUSE and EADDRNOTAVAIL.
 * Another attempt has another.
 */
static void hps_cm_fail_connect(struct hps_link *link, int err)
{
	bool port = err == -EADDRINUSE || err == -EADDRNOTAVAIL;

	hps_cm_fail_attempt(link, err, port ? HPS_TRIES_FEW : 0);
}

/* An address or a route could not be resolved: say it in TCP's words. */
static int hps_cm_errno(int status)
{
	switch (status) {
	case -ENODEV:		/* no RDMA device on the way */
	case -EADDRNOTAVAIL:
		return -ENETUNREACH;
	case -ETIMEDOUT:	/* no answer from the neighbour */
		return -EHOSTUNREACH;
	default:
		return status < 0 ? status : -EHOSTUNREACH;
	}
}

/*
 * The link joins its device before it asks for a route. rdma_cm, when a device goes,
 * tells our handler and only then cancels the query for a route, by way of
 * rdma_cm_id.device; a teardown that the handler began may have destroyed the id by
 * then. But ib_core removes a device from its clients in the opposite order of their
 * registration, so from us before it does from rdma_cm, and hps_device_remove() waits
 * for the teardown of all that joined. Nor is there a query where that is over, as
 * joining fails then. In its other states an id can be destroyed at any time: what
 * rdma_cm then cancels, or does not, needs no device.
 */
static void hps_cm_addr_resolved(struct hps_link *link,
				 struct rdma_cm_event *event)
{
	int err = hps_device_join(link->id->device, link);

	if (!err)
		err = rdma_resolve_route(link->id, HPS_ROUTE_MS);
	if (err)
		hps_cm_fail(link, hps_cm_errno(err));
}

static void hps_cm_route_resolved(struct hps_link *link,
				  struct rdma_cm_event *event)
{
	struct hps_conn *conn = &link->conn;
	struct hps_addr local;

	hps_addr_from_rdma(&local, &link->id->route.addr.src_addr);
	spin_lock_bh(&conn->lock);
	conn->local.ip = local.ip;
	conn->local.scope = local.scope;
	spin_unlock_bh(&conn->lock);
	link->routed = true;
	queue_work(hps_connect_wq, &link->attempt);
}

/* Send the request. Returns 0 or a negative errno. */
static int hps_cm_ask(struct hps_link *link)
{
	struct rdma_conn_param param;
	struct hps_hello hello;

	hps_cm_fill_hello(link, &hello);
	hps_cm_param(&param, &hello, &link->id->device->attrs);
	return rdma_connect(link->id, &param);
}

/* The same by a thread of its own, to which nobody listens. */
static int hps_cm_ask_or_fail(struct hps_link *link)
{
	int err = hps_cm_ask(link);

	if (err)
		hps_cm_fail_connect(link, err);
	return err;
}

/**
 * hps_cm_stop - the attempt to connect, if there is one, gives up
 * @link: shut, so that no attempt begins any more
 *
 * Context: process, sleeps.
 */
void hps_cm_stop(struct hps_link *link)
{
	cancel_work_sync(&link->attempt);
	hps_asker_end(link, true);
	/* A handler that runs is the last to look at the link, and to begin an attempt. */
	rdma_lock_handler(link->id);
	rdma_unlock_handler(link->id);
	cancel_work_sync(&link->attempt);
}

/* Returns 0 or a negative errno. */
static int hps_cm_start(struct hps_link *link)
{
	int err = hps_rdma_setup(link, link->id);

	if (err)
		return err;
	return link->iwarp ? hps_asker_begin(link, hps_cm_ask_or_fail) : hps_cm_ask(link);
}

/* Returns 0 or a negative errno in TCP's words. */
static int hps_cm_resolve(struct hps_link *link)
{
	const struct hps_conn *conn = &link->conn;
	bool bound = !hps_addr_any(&conn->local.ip);
	struct sockaddr_storage src, dst;
	u16 port;
	int err;

	hps_addr_to_rdma(&conn->local, 0, &src);
	port = hps_service_port_of(ipv6_addr_v4mapped(&conn->peer.ip) ? AF_INET : AF_INET6);
	hps_addr_to_rdma(&conn->peer, port, &dst);
	err = rdma_resolve_addr(link->id,
				bound ? (struct sockaddr *)&src : NULL,
				(struct sockaddr *)&dst, link->resolve_ms);
	/* rdma_cm has no port left for that peer, or an address of IPv6 is not ours. */
	if (err == -EADDRNOTAVAIL)
		return err;
	return err ? hps_cm_errno(err) : 0;
}

/**
 * hps_cm_attempt_work - what an attempt to connect must not do in a handler
 * @work: hps_link.attempt
 *
 * Once there is a route, build the queue pair and connect: one thread runs all
 * handlers of rdma_cm, and hardware takes its time over a queue pair. Before,
 * try again to resolve the address, which would first wait for the handler that
 * asks for it.
 *
 * Context: process, may sleep.
 */
void hps_cm_attempt_work(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link, attempt);
	int err;

	if (READ_ONCE(link->conn.shut))
		return;
	err = link->routed ? hps_cm_start(link) : hps_cm_resolve(link);
	if (err == -EAGAIN)
		hps_cm_fail_attempt(link, -ETIMEDOUT, HPS_TRIES_ANY);
	else if (err)
		hps_cm_fail_connect(link, err);
}

/*
 * An answer that comes before ib_core has put the request on its list goes
 * unnoticed until the request times out. So the time is spent in short tries.
 */
static void hps_cm_addr_error(struct hps_link *link,
			      struct rdma_cm_event *event)
{
	int err = hps_cm_errno(event->status);

	if (event->status == -ETIMEDOUT &&
	    link->resolve_ms < HPS_RESOLVE_MAX) {
		link->resolve_ms *= 2;
		queue_work(hps_connect_wq, &link->attempt);
		return;
	}
	hps_cm_fail(link, err);
}

static void hps_cm_unresolved(struct hps_link *link,
			      struct rdma_cm_event *event)
{
	hps_cm_fail(link, hps_cm_errno(event->status));
}

static void hps_cm_unreachable(struct hps_link *link,
			       struct rdma_cm_event *event)
{
	hps_cm_fail_attempt(link, -ETIMEDOUT, HPS_TRIES_ANY);
}

static void hps_cm_connect_error(struct hps_link *link,
				 struct rdma_cm_event *event)
{
	hps_cm_fail_connect(link, event->status < 0 ? event->status :
			    -ECONNRESET);
}

/*
 * Rejected without words of ours. Either nobody has a service port open; or
 * the connection manager itself could not (a stale connection, no resources),
 * which may pass. If rdma_accept() fails it leaves us no words: that looks as if the
 * consumer had refused, so that a stranger who did is asked again, too. So is who resets
 * on iWARP, which is all that is left of our words if the end of the stream overtakes them.
 */
static u8 hps_cm_foreign_tries(const struct hps_link *link, int status)
{
	if (rdma_protocol_iwarp(link->id->device, link->id->port_num))
		return status == -ECONNREFUSED ? 0 : HPS_TRIES_FEW;
	return status == IB_CM_REJ_INVALID_SERVICE_ID ? 0 : HPS_TRIES_FEW;
}

static void hps_cm_rejected(struct hps_link *link, struct rdma_cm_event *event)
{
	static const struct {
		int err;
		u8 tries;
	} reasons[] = {
		[HPS_REJ_REFUSED] = { -ECONNREFUSED },
		[HPS_REJ_BUSY] = { -ETIMEDOUT, HPS_TRIES_ANY },
		[HPS_REJ_VERSION] = { -EPROTO },
		[HPS_REJ_INVALID] = { -EPROTO },
		[HPS_REJ_NOMEM] = { -ETIMEDOUT, HPS_TRIES_ANY },
	};
	const struct hps_reject *rej = event->param.conn.private_data;
	int err = -ECONNREFUSED;
	bool ours;

	ours = rej && event->param.conn.private_data_len >= sizeof(*rej) &&
	       be32_to_cpu(rej->magic) == HPS_MAGIC &&
	       rej->reason < ARRAY_SIZE(reasons) && reasons[rej->reason].err;
	if (ours)
		err = reasons[rej->reason].err;
	spin_lock_bh(&link->conn.lock);
	if (link->established)
		/* The responder gave up before it knew that we were ready. */
		hps_conn_shut(&link->conn, 0);
	else
		hps_cm_fail_attempt_locked(link, err, ours ? reasons[rej->reason].tries :
					   hps_cm_foreign_tries(link, event->status));
	spin_unlock_bh(&link->conn.lock);
}

static void hps_cm_established(struct hps_link *link,
			       struct rdma_cm_event *event)
{
	const struct hps_hello *hello = event->param.conn.private_data;
	bool initiator;

	spin_lock_bh(&link->conn.lock);
	initiator = link->conn.state == TCP_SYN_SENT;
	spin_unlock_bh(&link->conn.lock);
	/* The responder had the hello with the request, and waits for a message. */
	if (!initiator)
		return;
	/* It has asked. What is left of it takes more memory than the connection. */
	hps_asker_end(link, false);
	if (hps_cm_check_hello(hello, event->param.conn.private_data_len) ||
	    hello->type != hps_cm_type(link)) {
		hps_stat_inc(link->conn.hn, HPS_STAT_VIOLATION_HELLO);
		hps_cm_fail(link, -EPROTO);
		return;
	}
	spin_lock_bh(&link->conn.lock);
	hps_cm_take_hello(link, hello);
	hps_cm_answered(link, &event->param.conn);
	hps_msg_established(link);
	spin_unlock_bh(&link->conn.lock);
}

static void hps_cm_disconnected(struct hps_link *link,
				struct rdma_cm_event *event)
{
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	/*
	 * It came too late to say so, but an initiator that disconnects was
	 * established. One that gives up does the same on iWARP.
	 */
	if (conn->state == TCP_SYN_RECV &&
	    !rdma_protocol_iwarp(link->id->device, link->id->port_num))
		hps_msg_established(link);
	if (conn->state != TCP_CLOSE)
		hps_stat_inc(conn->hn, HPS_STAT_RESET_RCVD);
	hps_conn_shut(conn, 0);
	spin_unlock_bh(&conn->lock);
}

/* hps_device_remove() has those that joined; this one's address was being resolved. */
static void hps_cm_device_removal(struct hps_link *link,
				  struct rdma_cm_event *event)
{
	hps_cm_fail(link, -ENETDOWN);
}

static void (*const hps_cm_events[])(struct hps_link *link,
				     struct rdma_cm_event *event) = {
	[RDMA_CM_EVENT_ADDR_RESOLVED]	= hps_cm_addr_resolved,
	[RDMA_CM_EVENT_ADDR_ERROR]	= hps_cm_addr_error,
	[RDMA_CM_EVENT_ROUTE_RESOLVED]	= hps_cm_route_resolved,
	[RDMA_CM_EVENT_ROUTE_ERROR]	= hps_cm_unresolved,
	[RDMA_CM_EVENT_CONNECT_ERROR]	= hps_cm_connect_error,
	[RDMA_CM_EVENT_UNREACHABLE]	= hps_cm_unreachable,
	[RDMA_CM_EVENT_REJECTED]	= hps_cm_rejected,
	[RDMA_CM_EVENT_ESTABLISHED]	= hps_cm_established,
	[RDMA_CM_EVENT_DISCONNECTED]	= hps_cm_disconnected,
	[RDMA_CM_EVENT_DEVICE_REMOVAL]	= hps_cm_device_removal,
};

/*
 * Is nothing more to be heard from the peer, in answer to a request? The events before are
 * about address and route, and those behind about anything: the address of a bond may change
 * meanwhile.
 */
static bool hps_cm_answers(enum rdma_cm_event_type event)
{
	return event >= RDMA_CM_EVENT_CONNECT_RESPONSE && event <= RDMA_CM_EVENT_DEVICE_REMOVAL;
}

static int hps_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct hps_link *link = id->context;

	if (hps_cm_answers(event->event))
		hps_asker_heard(link);
	if (READ_ONCE(link->conn.shut))
		return 0;
	if (event->event < ARRAY_SIZE(hps_cm_events) &&
	    hps_cm_events[event->event])
		hps_cm_events[event->event](link, event);
	return 0;
}

/*
 * SO_BINDTODEVICE and IP_TOS, or IPV6_TCLASS. The other end answers in the class
 * it is asked in. Without one an administrator's default counts, see rdma_cm's
 * default_roce_tos.
 */
static void hps_cm_apply_options(struct hps_link *link, const struct sock *sk)
{
	u8 tos = ipv6_addr_v4mapped(&link->conn.peer.ip) ?
		 inet_sk(sk)->tos : hps_sk(sk)->inet6.tclass;

	link->id->route.addr.dev_addr.bound_dev_if = sk->sk_bound_dev_if;
	if (tos)
		rdma_set_service_type(link->id, tos);
}

/**
 * hps_cm_as_kernel - call with the kernel's credentials
 * @fn: what to call, in the namespace of the process
 * @arg: its argument
 *
 * rdma_cm, and Soft-iWARP's TCP below it, ask whether the current process may have a
 * port below 1024. Which of them the module has is its own affair: any user's listen()
 * may be the first.
 *
 * Context: process, may sleep.
 * Return: what @fn returns, or -ENOMEM.
 */
int hps_cm_as_kernel(int (*fn)(void *arg), void *arg)
{
	struct cred *cred = prepare_kernel_cred(&init_task);
	const struct cred *old;
	int err;

	if (!cred)
		return -ENOMEM;
	old = override_creds(cred);
	err = fn(arg);
	revert_creds(old);
	put_cred(cred);
	return err;
}

/* A local port of rdma_cm. @arg: the link */
static int hps_cm_bind(void *arg)
{
	struct hps_link *link = arg;
	struct hps_addr local = link->conn.local;
	struct sockaddr_storage src;
	int err;

	/* Any address, in the family of the peer's */
	if (hps_addr_any(&local.ip)) {
		if (ipv6_addr_v4mapped(&link->conn.peer.ip))
			ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &local.ip);
		else
			local.ip = in6addr_any;
	}
	hps_addr_to_rdma(&local, local.port, &src);
	err = rdma_set_reuseaddr(link->id, 1);
	if (!err)
		err = rdma_bind_addr(link->id, (struct sockaddr *)&src);
	return err == -EADDRNOTAVAIL ? -EADDRINUSE : err;
}

/*
 * A program that was given a port below 1024 shows it to its peer. Only who may bind to
 * one of rdma_cm's can do the same, and the peer believes no other: hps_cm_proven().
 */
static int hps_cm_prove(struct hps_link *link)
{
	struct rdma_dev_addr *dev_addr = &link->id->route.addr.dev_addr;
	const struct hps_addr *peer = &link->conn.peer;

	if (link->conn.local.port >= PROT_SOCK)
		return 0;
	/* With one of these the connection would keep all listeners out until it ends. */
	if (link->conn.local.port == hps_service_port_of(AF_INET) ||
	    link->conn.local.port == hps_service_port_of(AF_INET6))
		return -EADDRINUSE;
	/* What rdma_cm does for who leaves the local address to it. */
	if (ipv6_addr_type(&peer->ip) & IPV6_ADDR_LINKLOCAL)
		dev_addr->bound_dev_if = peer->scope;
	return hps_cm_as_kernel(hps_cm_bind, link);
}

/**
 * hps_cm_connect - hps_transport.connect
 * @conn: TCP_SYN_SENT, local, peer and sk set, the socket locked
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int hps_cm_connect(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(conn->net, hps_cm_event, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	link->id = id;
	/* A handler may run once the id has a device, and the teardown must leave us the id. */
	atomic_inc(&link->users);
	hps_cm_apply_options(link, conn->sk);
	link->resolve_ms = HPS_RESOLVE_MS;
	err = hps_cm_prove(link);
	err = err ? hps_cm_errno(err) : hps_cm_resolve(link);
	/* An id whose device went is in a state in which nothing can be asked of it. */
	if (err && READ_ONCE(conn->shut))
		err = -ENETDOWN;
	hps_link_leave(link);
	return err;
}

static const int hps_cm_reject_stats[] = {
	[HPS_REJ_REFUSED] = HPS_STAT_REJECT_REFUSED,
	[HPS_REJ_BUSY] = HPS_STAT_REJECT_BUSY,
	[HPS_REJ_VERSION] = HPS_STAT_REJECT_VERSION,
	[HPS_REJ_INVALID] = HPS_STAT_REJECT_INVALID,
	[HPS_REJ_NOMEM] = HPS_STAT_REJECT_NOMEM,
};

static void hps_cm_reject(struct rdma_cm_id *id, struct hps_net *hn, u8 reason)
{
	struct hps_reject rej = {
		.magic = cpu_to_be32(HPS_MAGIC),
		.version = HPS_VERSION,
		.reason = reason,
	};

	this_cpu_inc(hn->stats->count[hps_cm_reject_stats[reason]]);
	rdma_reject(id, &rej, sizeof(rej), IB_CM_REJ_CONSUMER_DEFINED);
}

/*
 * A connection for a request, with a place in the backlog. From then on the
 * cm_id is the link's, and is destroyed by its teardown.
 */
static struct hps_link *hps_cm_admit(struct rdma_cm_id *id,
				     struct sock *listener,
				     const struct hps_hello *hello,
				     const struct hps_addr *local,
				     const struct hps_addr *peer, u8 *reason)
{
	struct hps_conn *conn;
	struct hps_link *link;
	u8 retries;
	int err;

	*reason = HPS_REJ_NOMEM;
	conn = hps_rdma_create(listener);
	if (!conn)
		return NULL;
	link = hps_link(conn);
	hps_record_init(conn, listener->sk_type);
	conn->state = TCP_SYN_RECV;
	conn->local = *local;
	conn->local.port = be16_to_cpu(hello->dst_port);
	conn->local.v6 = hps_sock_v6(listener);
	conn->peer = *peer;
	conn->peer.v6 = conn->local.v6;
	conn->user_mss = READ_ONCE(hps_sk(listener)->user_mss);
	hps_cm_take_hello(link, hello);
	link->id = id;
	err = hps_queue_reserve(listener, conn);
	if (err == -EAGAIN && hps_queue_make_room(listener))
		err = hps_queue_reserve(listener, conn);
	if (!err) {
		retries = READ_ONCE(conn->net->ipv4.sysctl_tcp_synack_retries);
		hps_conn_limit_opening(conn, jiffies +
				       hps_conn_retry_time(retries));
		return link;
	}
	*reason = err == -EAGAIN ? HPS_REJ_BUSY : HPS_REJ_REFUSED;
	link->id = NULL;
	hps_rdma_discard(conn);
	return NULL;
}

/*
 * The hello names any port of the peer. Those below 1024 are believed only if rdma_cm's
 * port is the same: an ordinary user's program may speak this protocol as well.
 */
static bool hps_cm_proven(const struct rdma_cm_id *id,
			  const struct hps_hello *hello)
{
	const struct sockaddr_storage *dst = &id->route.addr.dst_addr;

	/* The port is at the same place in both families. */
	return be16_to_cpu(hello->src_port) >= PROT_SOCK ||
	       ((const struct sockaddr_in *)dst)->sin_port == hello->src_port;
}

/**
 * hps_cm_request - a request came in at a service port
 * @id: made for it by rdma_cm
 * @event: with the hello
 * @hn: the namespace
 *
 * Context: process, a handler of rdma_cm.
 * Return: 0 if @id was taken over, or -ECONNREFUSED.
 */
int hps_cm_request(struct rdma_cm_id *id, struct rdma_cm_event *event,
		   struct hps_net *hn)
{
	const struct rdma_dev_addr *dev_addr = &id->route.addr.dev_addr;
	const struct hps_hello *hello = event->param.conn.private_data;
	struct rdma_conn_param param;
	struct hps_hello answer;
	struct hps_addr local, peer;
	struct sock *listener;
	struct hps_link *link;
	u8 reason;
	int err;

	reason = hps_cm_check_hello(hello, event->param.conn.private_data_len);
	if (!reason && !hps_cm_proven(id, hello))
		reason = HPS_REJ_INVALID;
	if (reason)
		goto reject;
	hps_addr_from_rdma(&local, &id->route.addr.src_addr);
	hps_addr_from_rdma(&peer, &id->route.addr.dst_addr);
	hps_addr_on_link(&local, dev_addr->bound_dev_if);
	hps_addr_on_link(&peer, dev_addr->bound_dev_if);
	peer.port = be16_to_cpu(hello->src_port);
	reason = HPS_REJ_REFUSED;
	if (!hps_net_enabled(dev_addr->net))
		goto reject;
	listener = hps_port_listener(dev_addr->net, &local.ip,
				     be16_to_cpu(hello->dst_port), hello->type,
				     dev_addr->bound_dev_if, &peer);
	if (!listener)
		goto reject;
	link = hps_cm_admit(id, listener, hello, &local, &peer, &reason);
	sock_put(listener);
	if (!link)
		goto reject;

	id->context = link;
	id->event_handler = hps_cm_event;
	err = hps_device_join(id->device, link);
	if (!err)
		err = hps_rdma_setup(link, id);
	if (!err) {
		hps_cm_fill_hello(link, &answer);
		hps_cm_param(&param, &answer, &id->device->attrs);
		if (!link->iwarp)
			hps_cm_limit(&param, &event->param.conn);
		hps_cm_limited(link, &param);
		err = rdma_accept(id, &param);
	}
	if (err) {
		/* After rdma_accept() it only counts: see hps_cm_foreign_tries(). */
		hps_cm_reject(id, hn, HPS_REJ_NOMEM);
		hps_cm_fail(link, err);
	}
	return 0;

reject:
	hps_cm_reject(id, hn, reason);
	return -ECONNREFUSED;
}
