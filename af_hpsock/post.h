/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_POST_H
#define HPS_POST_H

#include <linux/sched/clock.h>
#include "link.h"
#include "wire.h"

struct hps_buf;
struct hps_key;

/* Payload of our messages at most, whatever the peer has buffers for. */
#define HPS_TX_MAX	65536

/* What goes out with a message apart from bytes of the program. */
struct hps_head {
	struct hps_hdr hdr;
	union {
		u8 payload[16];			/* by the type of the message: */
		struct hps_buffers buffers;	/* in BUFFERS */
		struct hps_smaller smaller;	/* in SHRINK */
		struct hps_urgent_ahead urgent;	/* in URGENT */
		struct hps_srcavail source;	/* in SRCAVAIL */
		struct hps_readdone read;	/* in READDONE */
		struct hps_srccancel cancel;	/* in SRCCANCEL */
		struct hps_cancelack ack;	/* in CANCELACK */
		struct hps_sinkavail sink;	/* in SINKAVAIL */
		struct hps_word word;		/* in WORD */
		struct hps_written written;	/* in WRITTEN */
	};
};

/**
 * struct hps_outgoing - a message to be posted
 * @type: enum hps_msg_type
 * @payload: what follows the header, a structure of wire.h, or NULL
 * @size: its length
 * @buf: has bytes of the program from hps_buf.start on, or is what is known to be delivered
 *	when the message has completed; or NULL
 * @len: how many of these bytes
 * @urgent: which of them is urgent counting from 1, or 0
 * @at: what is in hps_hdr.urgent otherwise
 * @more: bytes of the stream are to follow soon
 * @revokes: key of the peer's that it invalidates, or 0
 */
struct hps_outgoing {
	u8 type;
	const void *payload;
	u32 size;
	struct hps_buf *buf;
	u32 len;
	u32 urgent;
	u16 at;
	bool more;
	u32 revokes;
};

/* What completions are timed by: 1,024 ns, modulo an hour. */
static inline u32 hps_post_clock(void)
{
	return local_clock() >> 10;
}

/* Slots of the send queue that are free; the link is locked. */
static inline u32 hps_post_slots_free(const struct hps_link *link)
{
	return HPS_SQ_SIZE - link->sq_used;
}

int hps_post_wr(struct hps_link *link, struct ib_send_wr *wr,
		struct hps_buf *buf, u32 len);
int hps_post_slot(struct hps_link *link, struct ib_send_wr *wr,
		  struct hps_buf *buf, u32 len);
int hps_post_message(struct hps_link *link, const struct hps_outgoing *out);
int hps_post_control(struct hps_link *link, const struct hps_outgoing *out);
int hps_post_register(struct hps_link *link, const struct hps_key *key,
		      int access, int flags);
int hps_post_register_try(struct hps_link *link, const struct hps_key *key,
			  int access);
int hps_post_invalidate(struct hps_link *link, const struct hps_key *key,
			struct hps_buf *buf, u32 len);
bool hps_post_probe(struct hps_link *link);
void hps_post_ask(struct hps_link *link);
bool hps_post_alone(struct hps_link *link);
void hps_post_resize(struct hps_link *link);

#endif /* HPS_POST_H */
