// SPDX-License-Identifier: GPL-2.0
/*
 * A queue pair without a device: what is posted is written down, and completes when the
 * test says so. So each message of a connection can be looked at, and comes, or does
 * not, at the one moment that a test is about.
 */
#include <net/sock.h>
#include <net/tcp_states.h>

#include "fake.h"
#include "fake_link.h"
#include "unit.h"

#include "dma.h"
#include "msg.h"
#include "conn_life.h"
#include "net.h"
#include "rdma.h"
#include "receives.h"
#include "recv.h"
#include "rendezvous.h"
#include "sock.h"
#include "source.h"
#include "target.h"
#include "transport.h"
#include "work.h"

static struct fake_link *fake_of(struct hps_conn *conn)
{
	return container_of(conn->ops, struct fake_link, ops);
}

static struct fake_link *fake_of_qp(struct ib_qp *qp)
{
	return container_of(qp, struct fake_link, qp);
}

/* What the device would be asked for. */
static void fake_note(struct fake_link *fake, struct fake_posted *post,
		      const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		fake->valid |= BIT(reg_wr(wr)->mr - fake->mrs);
		post->rkey = reg_wr(wr)->key;
		post->access = reg_wr(wr)->access;
		break;
	case IB_WR_RDMA_WRITE:
		post->rkey = rdma_wr(wr)->rkey;
		post->remote = rdma_wr(wr)->remote_addr;
		/* The address is for the device, by a key: nothing is there for anybody else. */
		if (wr->num_sge)
			post->sge = wr->sg_list[0];
		break;
	case IB_WR_RDMA_READ:
		post->rkey = rdma_wr(wr)->rkey;
		post->remote = rdma_wr(wr)->remote_addr;
		post->sge = wr->sg_list[0];
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		post->rkey = atomic_wr(wr)->rkey;
		post->remote = atomic_wr(wr)->remote_addr;
		post->compare = atomic_wr(wr)->compare_add;
		post->swap = atomic_wr(wr)->swap;
		post->sge = wr->sg_list[0];
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		post->rkey = wr->ex.invalidate_rkey;
		fallthrough;
	default:
		if (wr->num_sge)
			memcpy(&post->head, (void *)(uintptr_t)wr->sg_list[0].addr,
			       min_t(u32, sizeof(post->head), wr->sg_list[0].length));
	}
}

static int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct fake_link *fake = fake_of_qp(qp);
	struct fake_posted *post = &fake->sends[fake->nr_sends];

	if (mock_fails(MOCK_POST_SEND) || fake->nr_sends == FAKE_POSTS)
		return -ENOMEM;
	memset(post, 0, sizeof(*post));
	post->cqe = wr->wr_cqe;
	post->opcode = wr->opcode;
	post->signaled = wr->send_flags & IB_SEND_SIGNALED;
	fake_note(fake, post, wr);
	fake->nr_sends++;
	return 0;
}

static int fake_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct fake_link *fake = fake_of_qp(qp);
	struct fake_posted *post = &fake->receives[fake->nr_receives];

	if (mock_fails(MOCK_POST_RECV) || fake->nr_receives == FAKE_POSTS)
		return -ENOMEM;
	post->cqe = wr->wr_cqe;
	post->addr = (void *)(uintptr_t)wr->sg_list[0].addr;
	post->size = wr->sg_list[wr->num_sge - 1].length;
	post->room = post->size;
	if (wr->num_sge > 1) {
		post->payload = (void *)(uintptr_t)wr->sg_list[1].addr;
	} else {
		post->payload = post->addr + sizeof(struct hps_hdr);
		post->room -= sizeof(struct hps_hdr);
	}
	fake->nr_receives++;
	return 0;
}

static int fake_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			  unsigned int *off)
{
	mr->iova = sg_dma_address(sg);
	return nents;
}

static void fake_invalidate(struct fake_link *fake, u32 rkey)
{
	u32 i;

	for (i = 0; i < FAKE_KEYS; i++)
		if (fake->mrs[i].rkey == rkey)
			fake->valid &= ~BIT(i);
}

/* Take off the first. */
static struct fake_posted fake_pop(struct fake_posted *posts, u32 *nr)
{
	struct fake_posted first = posts[0];

	memmove(posts, posts + 1, --*nr * sizeof(*posts));
	return first;
}

/**
 * fake_lend - pages are to be sent that are not copied; they are queued
 * @fake: the connection, with a socket
 * @size: bytes
 *
 * Return: their buffer.
 */
struct hps_buf *fake_lend(struct fake_link *fake, u32 size)
{
	struct hps_conn *conn = &fake->link->conn;
	struct hps_lent *lent = kzalloc(sizeof(*lent), GFP_KERNEL);
	bool queued;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(fake->test, lent);
	hps_conn_get(conn);
	get_net(conn->net);
	lent->conn = conn;
	lent->mem.len = size;
	lent->mem.pages = kvcalloc(DIV_ROUND_UP(size, PAGE_SIZE), sizeof(*lent->mem.pages),
				   GFP_KERNEL);
	for (i = 0; lent->mem.pages && i < DIV_ROUND_UP(size, PAGE_SIZE); i++) {
		lent->mem.pages[i] = alloc_page(GFP_KERNEL);
		if (!lent->mem.pages[i])
			break;
		lent->mem.nr++;
	}
	lock_sock(conn->sk);
	queued = lent->mem.nr == DIV_ROUND_UP(size, PAGE_SIZE) &&
		 conn->ops->tx_lend(conn, lent);
	if (queued)
		sk_wmem_queued_add(conn->sk, size);
	release_sock(conn->sk);
	if (!queued)
		hps_lent_put(lent);
	KUNIT_ASSERT_TRUE(fake->test, queued);
	return list_last_entry(&conn->txq, struct hps_buf, list);
}

static const struct hps_pages *fake_pages(struct kunit *test, u32 off, u32 len)
{
	struct hps_pages *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);
	u8 *data;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	mem->off = off;
	mem->len = len;
	mem->nr = DIV_ROUND_UP(off + len, PAGE_SIZE);
	data = kunit_kzalloc(test, mem->nr * PAGE_SIZE, GFP_KERNEL);
	mem->pages = kunit_kcalloc(test, mem->nr, sizeof(*mem->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_ASSERT_NOT_NULL(test, mem->pages);
	for (i = 0; i < mem->nr; i++)
		mem->pages[i] = virt_to_page(data + i * PAGE_SIZE);
	return mem;
}

/**
 * fake_show - a reader comes, and finds nothing to read
 * @fake: the connection, with a socket
 * @off: where in its first page its memory begins
 * @len: bytes of it
 *
 * Return: as hps_target_show().
 */
bool fake_show(struct fake_link *fake, u32 off, u32 len)
{
	const struct hps_pages *mem = fake_pages(fake->test, off, len);
	struct hps_conn *conn = &fake->link->conn;
	bool ret;

	lock_sock(conn->sk);
	ret = hps_target_show(conn, mem);
	release_sock(conn->sk);
	return ret;
}

/**
 * fake_expect - it has what it needs to lend something, so that the peer may show memory
 * @fake: the connection, with a socket
 *
 * Return: as hps_target_expect().
 */
int fake_expect(struct fake_link *fake)
{
	struct sock *sk = fake->link->conn.sk;
	int ret;

	lock_sock(sk);
	ret = hps_target_expect(fake->link);
	release_sock(sk);
	return ret;
}

/**
 * fake_send - as stream.c does
 * @fake: the connection
 * @buf: what to send of
 * @len: bytes
 * @urgent: which of them is, or -1
 */
int fake_send(struct fake_link *fake, struct hps_buf *buf, u32 len, int urgent)
{
	int err = FAKE_LINK_LOCKED(fake, hps_msg_send(&fake->link->conn, buf, len, urgent));

	if (!err) {
		buf->start += len;
		fake->link->conn.tx_unsent -= len;
		fake->link->conn.tx_unacked += len;
		fake->link->conn.tx_bytes += len;
	}
	return err;
}

/**
 * fake_head - the header of a send that has not completed
 * @fake: the connection
 * @i: which
 */
struct hps_hdr *fake_head(struct fake_link *fake, u32 i)
{
	KUNIT_ASSERT_GT(fake->test, fake->nr_sends, i);
	return &fake->sends[i].head.hdr;
}

/**
 * fake_sent - the sends up to the first that asked for a completion are done
 * @fake: the connection, with one
 * @status: of that completion
 */
void fake_sent(struct fake_link *fake, enum ib_wc_status status)
{
	struct ib_wc wc = { .status = status };
	struct fake_posted post;

	do {
		KUNIT_ASSERT_GT(fake->test, fake->nr_sends, 0);
		post = fake_pop(fake->sends, &fake->nr_sends);
		if (post.opcode == IB_WR_LOCAL_INV && status == IB_WC_SUCCESS)
			fake_invalidate(fake, post.rkey);
	} while (!post.signaled);
	wc.wr_cqe = post.cqe;
	post.cqe->done(NULL, &wc);
}

/**
 * fake_sent_all - all sends are done, and what they lead to
 * @fake: the connection
 */
void fake_sent_all(struct fake_link *fake)
{
	u32 n;

	/* What is posted anew with each completion would never come to an end. */
	for (n = 0; fake->nr_sends && n < FAKE_POSTS; n++)
		fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(fake->test, fake->nr_sends, 0);
}

/**
 * fake_arriving - write a message into the first receive
 * @fake: the connection, with a receive
 * @type: HPS_MSG_*
 * @payload: what follows the header, or NULL for zeroes
 * @len: bytes of it
 *
 * Return: its header, which is right, for who wants it to be wrong. The peer has heard of
 * all that we sent.
 */
struct hps_hdr *fake_arriving(struct fake_link *fake, u8 type, const void *payload, u32 len)
{
	struct hps_hdr *hdr = fake->receives[0].addr;
	struct hps_link *link = fake->link;

	KUNIT_ASSERT_GT(fake->test, fake->nr_receives, 0);
	KUNIT_ASSERT_GE(fake->test, fake->receives[0].room, len);
	memset(hdr, 0, sizeof(*hdr));
	memset(fake->receives[0].payload, 0, len);
	hdr->type = type;
	hdr->flags = link->tx_urgents ? HPS_FLAG_HEARD : 0;
	if (link->targets && link->targets->told)
		hdr->flags |= HPS_FLAG_SINK;
	hdr->len = cpu_to_be32(len);
	hdr->seq = cpu_to_be32(link->rx_seq);
	hdr->credit = cpu_to_be32(link->credit.tx_granted);
	if (payload)
		memcpy(fake->receives[0].payload, payload, len);
	return hdr;
}

/**
 * fake_arrive_revoking - the first receive is complete, by a Send with Invalidate
 * @fake: the connection
 * @len: bytes, header included
 * @rkey: the key that is not valid any more, or 0 for a plain Send
 */
void fake_arrive_revoking(struct fake_link *fake, u32 len, u32 rkey)
{
	struct fake_posted post = fake_pop(fake->receives, &fake->nr_receives);
	struct ib_wc wc = { .wr_cqe = post.cqe, .opcode = IB_WC_RECV, .byte_len = len };

	if (rkey) {
		fake_invalidate(fake, rkey);
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = rkey;
	}
	post.cqe->done(NULL, &wc);
}

/**
 * fake_arrive_written - the first receive is complete, by an RDMA Write with Immediate
 * @fake: the connection
 * @len: bytes, which are elsewhere
 */
void fake_arrive_written(struct fake_link *fake, u32 len)
{
	struct fake_posted post = fake_pop(fake->receives, &fake->nr_receives);
	struct ib_wc wc = {
		.wr_cqe = post.cqe, .opcode = IB_WC_RECV_RDMA_WITH_IMM, .byte_len = len,
	};

	post.cqe->done(NULL, &wc);
}

/**
 * fake_arrive - the first receive is complete
 * @fake: the connection
 * @len: bytes, header included
 */
void fake_arrive(struct fake_link *fake, u32 len)
{
	fake_arrive_revoking(fake, len, 0);
}

/**
 * fake_message - a message comes in
 * @fake: the connection, with a receive
 * @type: HPS_MSG_*
 * @payload: what follows the header, or NULL for zeroes
 * @len: bytes of it
 */
void fake_message(struct fake_link *fake, u8 type, const void *payload, u32 len)
{
	fake_arriving(fake, type, payload, len);
	fake_arrive(fake, sizeof(struct hps_hdr) + len);
}

/**
 * fake_data - DATA comes in
 * @fake: the connection, with a receive
 * @len: bytes of the stream, or 0 for as many as the receive has room for
 */
void fake_data(struct fake_link *fake, u32 len)
{
	fake_message(fake, HPS_MSG_DATA, NULL,
		     len ?: fake->receives[0].room);
}

/**
 * fake_read - the program reads the first buffer
 * @fake: the connection, with one
 */
void fake_read(struct fake_link *fake)
{
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *buf;

	spin_lock_bh(&conn->lock);
	buf = list_first_entry_or_null(&conn->rxq, struct hps_buf, list);
	if (buf) {
		atomic_sub(buf->end - buf->start, &conn->rx_avail);
		hps_recv_take(conn, buf, buf->end - buf->start);
	}
	spin_unlock_bh(&conn->lock);
	KUNIT_EXPECT_NOT_NULL(fake->test, buf);
}

/**
 * fake_counter - of the namespace
 * @fake: the connection
 * @stat: which
 */
u64 fake_counter(struct fake_link *fake, enum hps_stat stat)
{
	return hps_stat_read(fake->link->conn.hn, stat);
}

/*
 * What was offered is fetched without a reader when it has waited for long, as it may if
 * the machine is busy. This device reads nothing.
 */
static int fake_read_nothing(struct hps_conn *conn, struct hps_buf *buf,
			     struct hps_pages *sink)
{
	return -ENOMEM;
}

static void fake_shut(struct hps_conn *conn)
{
	fake_of(conn)->shut++;
}

static void fake_free(struct hps_conn *conn)
{
	struct fake_link *fake = fake_of(conn);

	fake->freed = true;
	fake->free(conn);
}

/**
 * fake_link_end - what the teardown does when the queue pair is gone
 * @fake: the connection, where this was not called yet
 */
void fake_link_end(struct fake_link *fake)
{
	struct hps_link *link = fake->link;

	spin_lock_bh(&link->conn.lock);
	link->conn.shut = true;
	spin_unlock_bh(&link->conn.lock);
	/* It is drained. */
	hps_source_put_keys(link);
	hps_target_put_key(link);
	hps_rendezvous_put_key(link);
	KUNIT_EXPECT_EQ_MSG(fake->test, fake->qp.mrs_used, 0, "a key is left");
	/* The device destroys the keys. */
	fake->valid = 0;
	hps_source_end(link);
	hps_target_end(link);
	hps_rendezvous_end(link);
	link->id = NULL;
	fake->ended = true;
	link->teardown.func(&link->teardown);
}

static void fake_link_release(void *data)
{
	struct fake_link *fake = data;
	struct hps_conn *conn = &fake->link->conn;

	if (!fake->ended)
		fake_link_end(fake);
	if (!fake->attached)
		hps_conn_put(conn);
	/* Its work may just run. */
	flush_workqueue(hps_program_wq);
	flush_workqueue(hps_fetch_wq);
	KUNIT_EXPECT_TRUE_MSG(fake->test, fake->freed, "a reference is left");
}

static void fake_device(struct fake_link *fake)
{
	fake->ibdev.ops.post_send = fake_post_send;
	fake->ibdev.ops.post_recv = fake_post_recv;
	fake->ibdev.ops.map_mr_sg = fake_map_mr_sg;
	fake->pd.device = &fake->ibdev;
	fake->qp.device = &fake->ibdev;
	fake->qp.pd = &fake->pd;
	spin_lock_init(&fake->qp.mr_lock);
	fake->id.device = &fake->ibdev;
	fake->id.qp = &fake->qp;
	fake->dev.ibdev = &fake->ibdev;
	fake->dev.pd = &fake->pd;
	spin_lock_init(&fake->dev.lock);
	INIT_LIST_HEAD(&fake->dev.links);
	refcount_set(&fake->dev.ref, 2);
	init_completion(&fake->dev.gone);
}

/* As if all of them had been in use at a time. */
static void fake_keys(struct fake_link *fake)
{
	u32 i;

	for (i = 0; i < FAKE_KEYS; i++) {
		fake->mrs[i].device = &fake->ibdev;
		fake->mrs[i].rkey = (i + 1) << 8;
		fake->mrs[i].lkey = fake->mrs[i].rkey;
		list_add_tail(&fake->mrs[i].qp_entry, i < FAKE_KEYS / 2 ?
			      &fake->link->mrs : &fake->link->tx_mrs);
	}
	fake->link->tx_regions = FAKE_KEYS - FAKE_KEYS / 2;
}

/**
 * fake_link - a connection that is established, until the end of the test
 * @test: which it is for, and what then fails if a reference or a key is left
 *
 * It has four credits of the peer's 32, whose receives are of 1 KiB, and no receives
 * of its own yet.
 */
struct fake_link *fake_link(struct kunit *test)
{
	struct fake_link *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	struct hps_conn *conn;
	struct hps_link *link;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->test = test;
	fake_device(fake);
	conn = hps_rdma_create(fake_sock(test, SOCK_STREAM));
	KUNIT_ASSERT_NOT_NULL(test, conn);
	link = hps_link(conn);
	fake->link = link;
	fake->ops = *conn->ops;
	fake->free = conn->ops->free;
	fake->ops.read = fake_read_nothing;
	fake->ops.shut = fake_shut;
	fake->ops.free = fake_free;
	conn->ops = &fake->ops;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_link_release, fake), 0);
	link->hdrs = hps_dma_new(sizeof(*link->hdrs), &fake->ibdev,
				 HPS_SQ_SIZE * sizeof(struct hps_head), DMA_TO_DEVICE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, link->hdrs);
	link->id = &fake->id;
	link->dev = &fake->dev;
	fake_keys(fake);
	list_add_tail(&link->dev_node, &fake->dev.links);
	link->credit.tx_granted = 4;
	link->credit.tx_max = 32;
	link->tx_size = 1024;
	link->receives.apart = true;
	conn->state = TCP_ESTABLISHED;
	conn->confirmed = true;
	link->established = true;
	spin_lock_bh(&conn->lock);
	hps_post_resize(link);
	spin_unlock_bh(&conn->lock);
	return fake;
}

/**
 * fake_link_sent - a message that was sent and did not complete
 * @fake: the connection
 * @type: HPS_MSG_*
 *
 * Return: the first one, or NULL.
 */
struct fake_posted *fake_link_sent(struct fake_link *fake, u8 type)
{
	u32 i;

	for (i = 0; i < fake->nr_sends; i++)
		if (fake->sends[i].head.hdr.type == type)
			return &fake->sends[i];
	return NULL;
}

/**
 * fake_link_posted - a request that was posted and did not complete
 * @fake: the connection
 * @opcode: of what kind
 *
 * Return: the first one, or NULL.
 */
struct fake_posted *fake_link_posted(struct fake_link *fake, enum ib_wr_opcode opcode)
{
	u32 i;

	for (i = 0; i < fake->nr_sends; i++)
		if (fake->sends[i].opcode == opcode)
			return &fake->sends[i];
	return NULL;
}

/**
 * fake_link_sized - how many receives have this size?
 * @fake: the connection
 * @size: bytes
 */
u32 fake_link_sized(struct fake_link *fake, u32 size)
{
	u32 i, n = 0;

	for (i = 0; i < fake->nr_receives; i++)
		n += fake->receives[i].size == size;
	return n;
}

/**
 * fake_link_start - as fake_link(), with the receives that it starts with
 * @test: which it is for
 */
struct fake_link *fake_link_start(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);

	KUNIT_ASSERT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
	return fake;
}

/**
 * fake_link_attach - give it a socket
 * @fake: the connection, without one
 */
struct sock *fake_link_attach(struct fake_link *fake)
{
	struct sock *sk = fake_sock(fake->test, SOCK_STREAM);

	lock_sock(sk);
	hps_conn_attach(&fake->link->conn, sk);
	release_sock(sk);
	fake->attached = true;
	return sk;
}
