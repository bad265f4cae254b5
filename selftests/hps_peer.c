// SPDX-License-Identifier: GPL-2.0
/* The other end of a connection, in user space. */
#define HPS_NO_HARNESS
#include "hps_peer.h"

#define SEND_SLOT (PEER_RECVS * PEER_SLOT)
#define SHARED (SEND_SLOT + PEER_SLOT)
#define WORD (SHARED + PEER_SHARED)

/*
 * A neighbour that answers within the call that asks it is noticed only when
 * this time is over: it is asked again if that was not enough.
 */
#define RESOLVE_MS 1000

/* What the other end may do to memory that is shared */
#define SHARED_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* One port for IPv4, and the next for IPv6. */
int peer_service_port(int af)
{
	FILE *f = fopen("/sys/module/hpsock/parameters/service_port", "r");
	int port = 327;

	if (f) {
		if (fscanf(f, "%d", &port) != 1)
			port = 0;
		fclose(f);
	}
	return port + (af == AF_INET6);
}

/* Where a host is reached that has sockets which listen. */
struct hps_addr peer_service_at(struct hps_addr host)
{
	return hps_at(host, peer_service_port(host.sa.sa_family));
}

/* What an end that means well says. */
void peer_hello(struct peer *peer, int src_port, int dst_port)
{
	struct hps_hello *hello = &peer->hello;

	memset(hello, 0, sizeof(*hello));
	hello->magic = htonl(HPS_MAGIC);
	hello->version = HPS_VERSION;
	hello->type = SOCK_STREAM;
	hello->src_port = htons(src_port);
	hello->dst_port = htons(dst_port);
	hello->credits = htons(PEER_RECVS / 4);
	hello->window = htons(PEER_RECVS / 2);
	hello->buf_size = htonl(16384);
	hello->ctrl_slots = htons(HPS_CTRL_SLOTS);
}

static struct rdma_event_channel *make_events(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();

	if (events)
		hps_nonblock(events->fd, true);
	return events;
}

/* The next event, which is acknowledged before it is returned. */
static int next_event(struct peer *peer, struct rdma_cm_event *copy, void *data, uint8_t *len)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param *conn;

	if (!hps_wait(peer->events->fd, POLLIN)) {
		errno = ETIME;
		return -1;
	}
	if (rdma_get_cm_event(peer->events, &event))
		return -1;
	*copy = *event;
	conn = &copy->param.conn;
	memset(data, 0, 256);
	*len = conn->private_data ? conn->private_data_len : 0;
	memcpy(data, conn->private_data, *len);
	rdma_ack_cm_event(event);
	return 0;
}

static int expect(struct peer *peer, int want)
{
	struct rdma_cm_event event;
	uint8_t data[256], len;

	if (next_event(peer, &event, data, &len))
		return -1;
	if (event.event == (enum rdma_cm_event_type)want)
		return 0;
	errno = event.status < 0 ? -event.status : EPROTO;
	return -1;
}

static int post_receive(struct peer *peer, uint64_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->mem + slot * PEER_SLOT, .length = PEER_SLOT,
		.lkey = peer->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(peer->id->qp, &wr, &bad);
	return errno ? -1 : 0;
}

/* A queue pair with its receives posted. */
static int make_qp(struct peer *peer)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 16, .max_recv_wr = PEER_RECVS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	int i;

	peer->slot = -1;
	peer->pd = ibv_alloc_pd(peer->id->verbs);
	peer->mem = calloc(1, WORD + sizeof(struct hps_shown));
	peer->send_cq = ibv_create_cq(peer->id->verbs, 16, NULL, NULL, 0);
	peer->recv_cq = ibv_create_cq(peer->id->verbs, PEER_RECVS, NULL, NULL, 0);
	if (!peer->pd || !peer->mem || !peer->send_cq || !peer->recv_cq)
		return -1;
	peer->mr = ibv_reg_mr(peer->pd, peer->mem, SHARED + PEER_SHARED, IBV_ACCESS_LOCAL_WRITE |
			      (hps_siw() ? SHARED_ACCESS : IBV_ACCESS_MW_BIND));
	attr.send_cq = peer->send_cq;
	attr.recv_cq = peer->recv_cq;
	if (!peer->mr || rdma_create_qp(peer->id, peer->pd, &attr))
		return -1;
	for (i = 0; i < PEER_RECVS; i++)
		if (post_receive(peer, i))
			return -1;
	return 0;
}

static void conn_param(const struct peer *peer, struct rdma_conn_param *param,
		       const void *data, size_t len)
{
	*param = (struct rdma_conn_param){
		.private_data = data, .private_data_len = len,
		.responder_resources = peer->shallow == PEER_NOT_ASKED ? 0 : 4,
		.initiator_depth = peer->shallow == PEER_ASKS_NOT ? 0 : 4,
		.retry_count = 7, .rnr_retry_count = 6,
	};
}

static void begin(struct peer *peer)
{
	peer->told = ntohs(peer->hello.credits);
	peer->granted = ntohs(peer->theirs.credits);
}

static int resolve(struct peer *peer, struct hps_addr from, struct hps_addr to)
{
	int64_t end = hps_now() + hps_deadline();

	peer->events = make_events();
	if (!peer->events || rdma_create_id(peer->events, &peer->id, NULL, RDMA_PS_TCP))
		return -1;
	do {
		if (rdma_resolve_addr(peer->id, &from.sa, &to.sa, RESOLVE_MS))
			return -1;
		if (!expect(peer, RDMA_CM_EVENT_ADDR_RESOLVED))
			break;
	} while (errno == ETIMEDOUT && hps_now() < end);
	if (rdma_resolve_route(peer->id, hps_deadline()))
		return -1;
	return expect(peer, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/*
 * Connect, and leave it to the caller to send the first message. -1 and ECONNREFUSED
 * when rejected, the reason in peer->reason.
 */
int peer_connect(struct peer *peer, struct hps_addr from, struct hps_addr to,
		 const void *hello, size_t len)
{
	struct rdma_conn_param param;
	struct rdma_cm_event event;
	struct hps_reject rej;
	uint8_t data[256], n;

	if (resolve(peer, from, to) || make_qp(peer))
		return -1;
	conn_param(peer, &param, hello, len);
	if (rdma_connect(peer->id, &param) || next_event(peer, &event, data, &n))
		return -1;
	if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
		memcpy(&peer->theirs, data, sizeof(peer->theirs));
		begin(peer);
		return 0;
	}
	peer->reason = -1;
	peer->version = -1;
	errno = ENETUNREACH;
	if (event.event != RDMA_CM_EVENT_REJECTED)
		return -1;
	memcpy(&rej, data, sizeof(rej));
	if (n >= sizeof(rej) && ntohl(rej.magic) == HPS_MAGIC) {
		peer->reason = rej.reason;
		peer->version = rej.version;
	}
	errno = ECONNREFUSED;
	return -1;
}

/*
 * Was it rejected for this reason? Soft-iWARP does not read what comes in one segment with
 * the end of the stream, so there it may be that no reason was heard of.
 */
bool peer_told(const struct peer *peer, int reason)
{
	return peer->reason == reason || (peer->reason < 0 && hps_siw());
}

/* Connect to a listening socket with the hello in peer->hello. */
int peer_dial(struct peer *peer, const struct hps *t, const struct hps_addr *at)
{
	if (!peer->hello.magic)
		peer_hello(peer, 40000, hps_port(at));
	if (peer_connect(peer, t->a, peer_service_at(*at), &peer->hello,
			 sizeof(peer->hello)))
		return -1;
	return peer_send(peer, HPS_MSG_CREDIT, NULL, 0);
}

/* As peer_dial(), but the answer is not answered: without a queue pair no RTU goes out. */
int peer_dial_half(struct peer *peer, const struct hps *t, const struct hps_addr *at)
{
	struct rdma_conn_param param;

	peer_hello(peer, 40000, hps_port(at));
	if (resolve(peer, t->a, peer_service_at(*at)))
		return -1;
	conn_param(peer, &param, &peer->hello, sizeof(peer->hello));
	param.qp_num = 0x4711;
	if (rdma_connect(peer->id, &param))
		return -1;
	return expect(peer, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

int peer_listen(struct peer *peer, struct hps_addr at)
{
	at = peer_service_at(at);
	peer->events = make_events();
	if (!peer->events || rdma_create_id(peer->events, &peer->listen_id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(peer->listen_id, &at.sa) || rdma_listen(peer->listen_id, 4))
		return -1;
	return 0;
}

/* Wait for a request; the hello that came with it is in peer->theirs. */
int peer_request(struct peer *peer)
{
	struct rdma_cm_event event;
	uint8_t data[256], len;

	if (next_event(peer, &event, data, &len))
		return -1;
	if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		errno = EPROTO;
		return -1;
	}
	memcpy(&peer->theirs, data, sizeof(peer->theirs));
	peer->id = event.id;
	return 0;
}

int peer_accept(struct peer *peer, const void *hello, size_t len)
{
	struct rdma_conn_param param;

	if (make_qp(peer))
		return -1;
	conn_param(peer, &param, hello, len);
	begin(peer);
	return rdma_accept(peer->id, &param);
}

/* Wait until the other end has said that it knows. */
int peer_established(struct peer *peer)
{
	struct rdma_cm_event event;
	uint8_t data[256], len;

	if (next_event(peer, &event, data, &len))
		return -1;
	errno = EPROTO;
	return event.event == RDMA_CM_EVENT_ESTABLISHED ? 0 : -1;
}

int peer_reject(struct peer *peer, const void *data, size_t len)
{
	int ret = rdma_reject(peer->id, data, len);

	rdma_destroy_id(peer->id);
	peer->id = NULL;
	return ret;
}

/*
 * Wait until we are told that the connection is over: by a rejection, if the
 * other end had not heard yet that it had begun.
 */
static bool gone(struct peer *peer, bool block)
{
	struct rdma_cm_event event;
	uint8_t data[256], len;

	do {
		if (peer->gone || next_event(peer, &event, data, &len))
			break;
		peer->gone = event.event == RDMA_CM_EVENT_DISCONNECTED ||
			     event.event == RDMA_CM_EVENT_REJECTED;
	} while (event.event == RDMA_CM_EVENT_ESTABLISHED && block);
	return peer->gone;
}

/* Wait for the completion of what was posted; 0 as peer_raw(). */
static int sent(struct peer *peer)
{
	int64_t end = hps_now() + hps_deadline();
	struct ibv_wc wc;

	while (!ibv_poll_cq(peer->send_cq, 1, &wc)) {
		errno = ETIME;
		if (hps_now() > end)
			return -1;
		if (hps_poll(peer->events->fd, POLLIN, 0) && gone(peer, false))
			return 0;
		usleep(20);
	}
	if (wc.status == IBV_WC_SUCCESS || gone(peer, true))
		return 0;
	errno = ECONNRESET;
	return -1;
}

/*
 * Any bytes as a message; 0 once the other end's device has it, or once that
 * end has left, which it may do before its device says so, or ours.
 */
int peer_raw(struct peer *peer, const void *msg, size_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->mem + SEND_SLOT, .length = len, .lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	memcpy(peer->mem + SEND_SLOT, msg, len);
	errno = ibv_post_send(peer->id->qp, &wr, &bad);
	return errno ? -1 : sent(peer);
}

/* A message as it should be. */
int peer_send(struct peer *peer, int type, const void *data, uint32_t len)
{
	uint8_t msg[PEER_SLOT];
	struct hps_hdr *hdr = (struct hps_hdr *)msg;

	*hdr = (struct hps_hdr){
		.type = type, .flags = peer->flags,
		.urgent = htons(type == HPS_MSG_SINKAVAIL ? peer->at : peer->urgent),
		.len = htonl(len), .seq = htonl(peer->tx_seq++),
		.credit = htonl(peer->told),
	};
	if (len)
		memcpy(msg + sizeof(*hdr), data, len);
	if (type == HPS_MSG_DATA || type == HPS_MSG_SRCAVAIL || type == HPS_MSG_SHRINK ||
	    type == HPS_MSG_PAD || type == HPS_MSG_WRITTEN)
		peer->tx_used++;
	return peer_raw(peer, msg, sizeof(*hdr) + len);
}

/* From one of their messages on, our receives have this size. */
int peer_buffers(struct peer *peer, uint32_t from, uint32_t size)
{
	struct hps_buffers buffers = { .from = htonl(from), .size = htonl(size) };

	peer->rx_from = from;
	peer->rx_size = size;
	return peer_send(peer, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
}

/* From their next message on they have this size, and they use up those that we have. */
int peer_shrink(struct peer *peer, uint32_t size, uint32_t pads)
{
	struct hps_smaller smaller = { .size = htonl(size), .pads = htonl(pads) };

	peer->pads = pads;
	peer->rx_shrunk = size;
	return peer_send(peer, HPS_MSG_SHRINK, &smaller, sizeof(smaller));
}

/* In the place of @len bytes. */
int peer_srcavail(struct peer *peer, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct hps_srcavail src = {
		.addr = htobe64(addr), .rkey = htonl(rkey), .len = htonl(len),
	};

	return peer_send(peer, HPS_MSG_SRCAVAIL, &src, sizeof(src));
}

/* The last @count offers are taken back. */
int peer_srccancel(struct peer *peer, uint32_t count)
{
	struct hps_srccancel cancel = { .count = htonl(count) };

	return peer_send(peer, HPS_MSG_SRCCANCEL, &cancel, sizeof(cancel));
}

/* Of the first of those that they take back we had read so much. */
int peer_cancelack(struct peer *peer, uint32_t done)
{
	struct hps_cancelack ack = { .done = htonl(done) };

	return peer_send(peer, HPS_MSG_CANCELACK, &ack, sizeof(ack));
}

uint8_t *peer_shared(struct peer *peer)
{
	return peer->mem + SHARED;
}

/*
 * A key with which the other end reaches what is shared; 0 without. It is one that its
 * messages can invalidate, which those of Soft-iWARP do not do.
 */
uint32_t peer_share(struct peer *peer)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw.bind_info = {
			.mr = peer->mr, .addr = (uintptr_t)peer_shared(peer),
			.length = PEER_SHARED, .mw_access_flags = SHARED_ACCESS,
		},
	}, *bad;

	if (hps_siw())
		return peer->mr->rkey;
	if (!peer->window)
		peer->window = ibv_alloc_mw(peer->pd, IBV_MW_TYPE_2);
	if (!peer->window)
		return 0;
	wr.bind_mw.mw = peer->window;
	wr.bind_mw.rkey = ibv_inc_rkey(peer->window->rkey);
	if (ibv_post_send(peer->id->qp, &wr, &bad) || sent(peer))
		return 0;
	peer->window->rkey = wr.bind_mw.rkey;
	return wr.bind_mw.rkey;
}

/* The first @len bytes that are shared are the next ones of the stream. */
int peer_lend(struct peer *peer, uint32_t len)
{
	uint32_t rkey = peer_share(peer);

	return rkey ? peer_srcavail(peer, (uintptr_t)peer_shared(peer), rkey, len) : -1;
}

/* What comes next may be written to some memory, if they have sent no more meanwhile. */
int peer_sinkavail(struct peer *peer, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct hps_sinkavail sink = {
		.addr = htobe64(addr), .rkey = htonl(rkey), .len = htonl(len),
	};

	peer->at = peer->rx_data;
	peer->sinks = !peer->sinks;
	return peer_send(peer, HPS_MSG_SINKAVAIL, &sink, sizeof(sink));
}

/* To the first @len bytes that are shared. */
int peer_show(struct peer *peer, uint32_t len)
{
	uint32_t rkey = peer_share(peer);

	return rkey ? peer_sinkavail(peer, (uintptr_t)peer_shared(peer), rkey, len) : -1;
}

/* At @addr is our word, once on a connection. */
int peer_word_at(struct peer *peer, uint64_t addr, uint32_t rkey)
{
	struct hps_word word = { .addr = htobe64(addr), .rkey = htonl(rkey) };

	peer->sinks = !peer->sinks;
	return peer_send(peer, HPS_MSG_WORD, &word, sizeof(word));
}

/* There is one. */
int peer_word(struct peer *peer)
{
	if (!peer->word)
		peer->word = ibv_reg_mr(peer->pd, peer->mem + WORD, sizeof(struct hps_shown),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC);
	return peer->word ? peer_word_at(peer, (uintptr_t)peer->mem + WORD, peer->word->rkey) : -1;
}

struct hps_shown *peer_shown(struct peer *peer)
{
	return (void *)(peer->mem + WORD);
}

/* What comes next may be written to the first @len bytes that are shared. */
int peer_waits(struct peer *peer, uint32_t len)
{
	struct hps_shown *shown = peer_shown(peer);
	uint32_t rkey = peer_share(peer);

	shown->sink = (struct hps_sinkavail){
		.addr = htobe64((uintptr_t)peer_shared(peer)), .rkey = htonl(rkey),
		.len = htonl(len),
	};
	__atomic_store_n(&shown->word, HPS_WORD_WAITS | peer->rx_data, __ATOMIC_RELEASE);
	return rkey ? 0 : -1;
}

/* If the word there is @from it is zero now. */
bool peer_swaps(struct peer *peer, uint64_t addr, uint32_t rkey, uint64_t from)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->mem + SEND_SLOT, .length = sizeof(from),
		.lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .sg_list = &sge, .num_sge = 1,
		.wr.atomic = {
			.remote_addr = addr, .rkey = rkey, .compare_add = from, .swap = 0,
		},
	}, *bad;
	uint64_t was;

	memset(peer->mem + SEND_SLOT, 0, sizeof(was));
	errno = ibv_post_send(peer->id->qp, &wr, &bad);
	if (errno || sent(peer))
		return false;
	memcpy(&was, peer->mem + SEND_SLOT, sizeof(was));
	return was == from;
}

static int write_by(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey, int opcode)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer_shared(peer), .length = len, .lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	}, *bad;

	errno = ibv_post_send(peer->id->qp, &wr, &bad);
	return errno ? -1 : sent(peer);
}

/* RDMA Write of the first @len bytes that are shared; 0 once it is acknowledged. */
int peer_write(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey)
{
	return write_by(peer, len, addr, rkey, IBV_WR_RDMA_WRITE);
}

/* The same with Immediate, which takes a receive. */
int peer_write_imm(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey)
{
	return write_by(peer, len, addr, rkey, IBV_WR_RDMA_WRITE_WITH_IMM);
}

/* RDMA Read of no more than a message; what was read is there until the next is sent. */
const uint8_t *peer_read(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->mem + SEND_SLOT, .length = len, .lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	}, *bad;

	memset(peer->mem + SEND_SLOT, 0, len);
	errno = ibv_post_send(peer->id->qp, &wr, &bad);
	return errno || sent(peer) ? NULL : peer->mem + SEND_SLOT;
}

int peer_written(struct peer *peer, uint32_t len)
{
	struct hps_written written = { .len = htonl(len) };

	return peer_send(peer, HPS_MSG_WRITTEN, &written, sizeof(written));
}

/* After so many bytes comes an urgent one. */
int peer_urgent(struct peer *peer, uint32_t ahead)
{
	struct hps_urgent_ahead urgent = { .ahead = htonl(ahead) };

	peer->urgents = !peer->urgents;
	return peer_send(peer, HPS_MSG_URGENT, &urgent, sizeof(urgent));
}

/* The longest payload they promise to take as our next message. */
uint32_t peer_room(struct peer *peer)
{
	uint32_t size = ntohl(peer->theirs.buf_size);

	if (peer->tx_size && (int32_t)(peer->tx_seq - peer->tx_from) >= 0)
		size = peer->tx_size;
	return (size < PEER_SLOT ? size : PEER_SLOT) - sizeof(struct hps_hdr);
}

/* Bytes of our receive for their next message. */
static uint32_t receive_size(const struct peer *peer)
{
	if (peer->rx_size && (int32_t)(peer->rx_seq - peer->rx_from) >= 0)
		return peer->rx_size;
	return ntohl(peer->hello.buf_size);
}

static int take_buffers(struct peer *peer, const struct peer_msg *msg)
{
	const struct hps_buffers *buffers = (const void *)msg->data;

	if (msg->len != sizeof(*buffers) || ntohl(buffers->size) <= peer->tx_size)
		return -1;
	/* A second step before the first was reached. */
	if (peer->tx_size && (int32_t)(peer->tx_seq - peer->tx_from) < 0)
		return -1;
	peer->tx_from = ntohl(buffers->from);
	peer->tx_size = ntohl(buffers->size);
	return 0;
}

/*
 * Wait so long for a message, and check what the protocol promises of it.
 * errno is EPROTO if it breaks the promise, ETIME if none comes.
 */
int peer_receive(struct peer *peer, struct peer_msg *msg, int ms)
{
	int64_t end = hps_now() + ms;
	const struct hps_hdr *hdr;
	struct ibv_wc wc;

	if (peer->slot >= 0)
		post_receive(peer, peer->slot);
	peer->slot = -1;
	while (!ibv_poll_cq(peer->recv_cq, 1, &wc)) {
		errno = ETIME;
		if (hps_now() >= end)
			return -1;
		usleep(50);
	}
	errno = ECONNRESET;
	if (wc.status != IBV_WC_SUCCESS)
		return -1;
	peer->slot = wc.wr_id;
	hdr = (void *)(peer->mem + wc.wr_id * PEER_SLOT);
	errno = EPROTO;
	if (wc.byte_len < sizeof(*hdr) || wc.byte_len > receive_size(peer))
		return -1;
	msg->hdr = *hdr;
	msg->hdr.len = ntohl(hdr->len);
	msg->hdr.seq = ntohl(hdr->seq);
	msg->hdr.credit = ntohl(hdr->credit);
	msg->data = (const uint8_t *)(hdr + 1);
	msg->len = wc.byte_len - sizeof(*hdr);
	msg->hdr.urgent = ntohs(hdr->urgent);
	if (msg->hdr.flags & HPS_FLAG_MORE && msg->hdr.type != HPS_MSG_DATA &&
	    msg->hdr.type != HPS_MSG_SRCAVAIL)
		return -1;
	if (msg->hdr.flags & ~(HPS_FLAG_URGENT | HPS_FLAG_HEARD | HPS_FLAG_SINK | HPS_FLAG_MORE) ||
	    (msg->hdr.flags & HPS_FLAG_URGENT ? msg->hdr.urgent >= msg->len :
	     msg->hdr.type == HPS_MSG_SINKAVAIL ? msg->hdr.urgent != (uint16_t)peer->tx_used :
	     msg->hdr.urgent) ||
	    msg->hdr.len != msg->len || msg->hdr.seq != peer->rx_seq++ ||
	    (int32_t)(msg->hdr.credit - peer->granted) < 0 ||
	    msg->hdr.credit - peer->tx_used > ntohs(peer->theirs.window))
		return -1;
	peer->granted = msg->hdr.credit;
	if (msg->hdr.type == HPS_MSG_DATA) {
		if (!msg->len || peer->pads || peer->rx_data++ == peer->told)
			return -1;
	} else if (msg->hdr.type == HPS_MSG_BUFFERS) {
		return take_buffers(peer, msg);
	} else if (msg->hdr.type == HPS_MSG_SRCAVAIL) {
		if (msg->len != sizeof(struct hps_srcavail) || peer->pads ||
		    peer->rx_data++ == peer->told)
			return -1;
	} else if (msg->hdr.type == HPS_MSG_SHRINK) {
		if (msg->len != sizeof(struct hps_smaller) || peer->rx_data++ == peer->told)
			return -1;
	} else if (msg->hdr.type == HPS_MSG_PAD) {
		if (msg->len || !peer->pads || peer->rx_data++ == peer->told)
			return -1;
		/* By the first they say that they know. */
		if (peer->rx_shrunk) {
			peer->rx_size = peer->rx_shrunk;
			peer->rx_from = msg->hdr.seq;
			peer->rx_shrunk = 0;
		}
		peer->pads--;
	} else if (msg->hdr.type == HPS_MSG_WRITTEN) {
		if (msg->len != sizeof(struct hps_written) || peer->pads ||
		    peer->rx_data++ == peer->told)
			return -1;
	} else if (msg->hdr.type == HPS_MSG_SINKAVAIL) {
		/* From here on it was heard of. */
		peer->flags ^= HPS_FLAG_SINK;
		return msg->len == sizeof(struct hps_sinkavail) ? 0 : -1;
	} else if (msg->hdr.type == HPS_MSG_WORD) {
		peer->flags ^= HPS_FLAG_SINK;
		return msg->len == sizeof(struct hps_word) ? 0 : -1;
	} else if (msg->hdr.type == HPS_MSG_READDONE) {
		return msg->len == sizeof(struct hps_readdone) ? 0 : -1;
	} else if (msg->hdr.type == HPS_MSG_SRCCANCEL) {
		return msg->len == sizeof(struct hps_srccancel) ? 0 : -1;
	} else if (msg->hdr.type == HPS_MSG_CANCELACK) {
		return msg->len == sizeof(struct hps_cancelack) ? 0 : -1;
	} else if (msg->hdr.type == HPS_MSG_URGENT) {
		return msg->len == sizeof(struct hps_urgent_ahead) ? 0 : -1;
	} else if (msg->len) {
		return -1;
	}
	return 0;
}

bool peer_gone(struct peer *peer)
{
	return gone(peer, true);
}

void peer_disconnect(struct peer *peer)
{
	rdma_disconnect(peer->id);
}

void peer_free(struct peer *peer)
{
	/* Before the queue pair that it is bound to: Soft-RoCE waits for it in vain. */
	if (peer->window)
		ibv_dealloc_mw(peer->window);
	if (peer->id) {
		if (peer->id->qp)
			rdma_destroy_qp(peer->id);
		rdma_destroy_id(peer->id);
	}
	if (peer->listen_id)
		rdma_destroy_id(peer->listen_id);
	if (peer->mr)
		ibv_dereg_mr(peer->mr);
	if (peer->word)
		ibv_dereg_mr(peer->word);
	if (peer->send_cq)
		ibv_destroy_cq(peer->send_cq);
	if (peer->recv_cq)
		ibv_destroy_cq(peer->recv_cq);
	if (peer->pd)
		ibv_dealloc_pd(peer->pd);
	if (peer->events)
		rdma_destroy_event_channel(peer->events);
	free(peer->mem);
	memset(peer, 0, sizeof(*peer));
}
