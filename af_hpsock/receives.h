/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RECEIVES_H
#define HPS_RECEIVES_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "dma.h"
#include "wire.h"

struct hps_conn;
struct hps_link;
struct hps_share;
struct sock;

/**
 * struct hps_receive - a buffer for what comes in
 * @dma: the buffer, first
 * @cqe: completion of the receive posted on it
 * @link: whose it is
 * @all: in hps_receives.all; in no list once the link has let go of it
 */
struct hps_receive {
	struct hps_dma dma;
	struct ib_cqe cqe;
	struct hps_link *link;
	struct list_head all;
};

static_assert(offsetof(struct hps_receive, dma) == 0);

static inline struct hps_receive *hps_receive(const struct hps_buf *buf)
{
	return container_of(buf, struct hps_receive, dma.buf);
}

/**
 * struct hps_receive_apart - one whose message header goes elsewhere
 * @receive: the buffer, first, for what follows the header
 * @head: the header, in memory of its own; gone once the buffer is unmapped
 * @addr: where that is for the device
 */
struct hps_receive_apart {
	struct hps_receive receive;
	struct hps_hdr *head;
	u64 addr;
};

static_assert(offsetof(struct hps_receive_apart, receive) == 0);

static inline struct hps_receive_apart *hps_receive_apart(const struct hps_receive *rx)
{
	return container_of(rx, struct hps_receive_apart, receive);
}

/* The header of the message that a buffer is for. */
static inline struct hps_hdr *hps_receive_head(const struct hps_buf *buf)
{
	const struct hps_receive *rx = hps_receive(buf);

	return rx->dma.apart ? hps_receive_apart(rx)->head : buf->data;
}

/* Where in the buffer that begins which follows the header. */
static inline u32 hps_receive_start(const struct hps_buf *buf)
{
	return hps_receive(buf)->dma.apart ? 0 : sizeof(struct hps_hdr);
}

static inline void *hps_receive_payload(const struct hps_buf *buf)
{
	return buf->data + hps_receive_start(buf);
}

/**
 * struct hps_receives - the receives of a link
 * @all: every struct hps_receive, wherever it is
 * @spare: buffers of @size to be posted
 * @read: buffers whose SRCAVAIL was read and the peer is to be told of
 * @share: whose memory; constant
 * @reserved: bytes of @all, taken of @share
 * @first: those that the connection began with
 * @size: bytes of the buffers that are posted now
 * @count: buffers of @size, wherever they are
 * @from: number of the first message that such a buffer is for
 * @posted: how many since the beginning
 * @held: buffers with DATA that nobody has read
 * @extra: how many are posted for what comes once something was lent
 * @tell: the peer is to hear of @from and @size
 * @telling: it is being told of those in @read
 * @apart: the device can put a header elsewhere than what follows; constant
 *
 * Guarded by hps_conn.lock.
 */
struct hps_receives {
	struct list_head all;
	struct list_head spare;
	struct list_head read;
	struct hps_share *share;
	u64 reserved;
	u64 first;
	u32 size;
	u32 count;
	u32 from;
	u32 posted;
	u16 held;
	u16 extra;
	bool tell;
	bool telling;
	bool apart;
};

/*
 * Receives of a page or more have all of it for what follows the header. So a program's
 * write of a power of two, 64 KiB for one, fills a message and leaves no rest.
 */
static inline bool hps_receives_apart(const struct hps_receives *receives, u32 size)
{
	return receives->apart && size >= PAGE_SIZE;
}

/* Bytes of the longest message that receives of @size can take, header included. */
static inline u32 hps_receives_capacity(const struct hps_receives *receives, u32 size)
{
	return size + (hps_receives_apart(receives, size) ? sizeof(struct hps_hdr) : 0);
}

/* hps_growth_read() looks without the lock. */
static inline void hps_receives_hold_more(struct hps_receives *receives, int more)
{
	WRITE_ONCE(receives->held, receives->held + more);
}

void hps_receives_init(struct hps_receives *receives, u32 size);
u32 hps_receives_first_size(const struct hps_link *link);
u32 hps_receives_first_window(const struct hps_link *link, const struct sock *sk);
int hps_receives_setup(struct hps_link *link, struct ib_device *ibdev);
void hps_receives_again(struct hps_link *link, struct hps_buf *buf);
void hps_receives_spent(struct hps_link *link, struct hps_buf *buf);
void hps_receives_hold(struct hps_link *link, const struct hps_buf *buf);
void hps_receives_consumed(struct hps_conn *conn, struct hps_buf *buf);
bool hps_receives_full(struct hps_conn *conn);
u32 hps_receives_mem(struct hps_conn *conn);
void hps_receives_read(struct hps_link *link);
int hps_receives_extra(struct hps_link *link, struct sock *sk, u32 count);
u32 hps_receives_used(const struct hps_link *link);
void hps_receives_plan_growth(struct hps_link *link);
void hps_receives_resume(struct hps_link *link);
bool hps_receives_enlarge(struct hps_link *link, struct sock *sk,
			  u32 size, u32 window);
int hps_receives_shrink(struct hps_link *link, u32 size, u32 window);
int hps_receives_padded(struct hps_link *link);
void hps_receives_unmap(struct hps_link *link);

#endif /* HPS_RECEIVES_H */
