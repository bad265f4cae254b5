/* SPDX-License-Identifier: GPL-2.0 */
/* A device that a test completes by hand, and a connection over it. */
#ifndef FAKE_LINK_H
#define FAKE_LINK_H

#include <kunit/test.h>

#include "device.h"
#include "lent.h"
#include "link.h"
#include "msg.h"
#include "post.h"
#include "stats.h"

#define FAKE_POSTS	128

/* Memory regions that the device has. */
#define FAKE_KEYS	8

/**
 * struct fake_posted - what was posted and not completed
 * @cqe: to be called
 * @opcode: of a send
 * @signaled: it asked for a completion
 * @head: of a send, the header and what follows it
 * @rkey: that it makes valid or invalid, or writes with
 * @access: of REG_MR, what the peer may do
 * @sge: of an RDMA Write, from where; of an RDMA Read or an atomic, where to
 * @remote: and at the peer
 * @compare: of an atomic, what it is swapped for @swap
 * @swap: see there
 * @addr: of a receive: where the header goes
 * @payload: where that goes which follows it
 * @room: bytes for that
 * @size: bytes of the buffer, which may hold both
 */
struct fake_posted {
	struct ib_cqe *cqe;
	enum ib_wr_opcode opcode;
	bool signaled;
	struct hps_head head;
	u32 rkey;
	int access;
	struct ib_sge sge;
	u64 remote;
	u64 compare;
	u64 swap;
	void *addr;
	void *payload;
	u32 room;
	u32 size;
};

/**
 * struct fake_link - a connection over a device that writes down
 * @link: the connection, established; on the device by what follows
 * @test: which it is for
 * @ibdev: the device: memory is used by its kernel address
 * @qp: its queue pair
 * @pd: and that one's domain
 * @mrs: its memory regions; link->mrs and, the second half, link->tx_mrs have those that are
 *	not in use
 * @valid: of which the key is good for something, bit by bit; REG_MR counts at once, what
 *	invalidates it when it has completed
 * @id: rdma_cm's, of which only these are to be had
 * @dev: the module's
 * @ops: the transport of RDMA, but for the two ends
 * @free: the real one
 * @sends: in order; @nr_sends of them
 * @receives: likewise
 * @shut: how often it was told to end
 * @ended: the teardown was here
 * @freed: the last reference is gone
 * @attached: the other reference is a socket's
 */
struct fake_link {
	struct hps_link *link;
	struct kunit *test;
	struct ib_device ibdev;
	struct ib_qp qp;
	struct ib_pd pd;
	struct ib_mr mrs[FAKE_KEYS];
	u32 valid;
	struct rdma_cm_id id;
	struct hps_device dev;
	struct hps_transport ops;
	void (*free)(struct hps_conn *conn);
	struct fake_posted sends[FAKE_POSTS];
	u32 nr_sends;
	struct fake_posted receives[FAKE_POSTS];
	u32 nr_receives;
	int shut;
	bool ended;
	bool freed;
	bool attached;
};

/* Bytes that do not fill a receive of 1 KiB, nor are joined to as many before them. */
#define FAKE_SMALL	600

/* The one rule of receives.c. */
#define FAKE_EXPECT_POSTED(test, fake)					\
	KUNIT_EXPECT_EQ(test, (fake)->nr_receives,			\
			(fake)->link->credit.rx_ready -			\
			(fake)->link->credit.rx_used +			\
			HPS_CTRL_SLOTS + (fake)->link->receives.extra)

/* What a call says with the connection locked. */
#define FAKE_LINK_LOCKED(fake, call) ({					\
	int __ret;							\
									\
	spin_lock_bh(&(fake)->link->conn.lock);				\
	__ret = (call);							\
	spin_unlock_bh(&(fake)->link->conn.lock);			\
	__ret;								\
})

struct fake_posted *fake_link_sent(struct fake_link *fake, u8 type);
struct fake_posted *fake_link_posted(struct fake_link *fake, enum ib_wr_opcode opcode);
u32 fake_link_sized(struct fake_link *fake, u32 size);
struct fake_link *fake_link_start(struct kunit *test);
struct fake_link *fake_link(struct kunit *test);
struct sock *fake_link_attach(struct fake_link *fake);
void fake_link_end(struct fake_link *fake);
bool fake_show(struct fake_link *fake, u32 off, u32 len);
int fake_expect(struct fake_link *fake);
struct hps_buf *fake_lend(struct fake_link *fake, u32 size);
int fake_send(struct fake_link *fake, struct hps_buf *buf, u32 len, int urgent);
struct hps_hdr *fake_head(struct fake_link *fake, u32 i);
void fake_sent(struct fake_link *fake, enum ib_wc_status status);
void fake_sent_all(struct fake_link *fake);
struct hps_hdr *fake_arriving(struct fake_link *fake, u8 type, const void *payload, u32 len);
void fake_arrive(struct fake_link *fake, u32 len);
void fake_arrive_revoking(struct fake_link *fake, u32 len, u32 rkey);
void fake_arrive_written(struct fake_link *fake, u32 len);
void fake_message(struct fake_link *fake, u8 type, const void *payload, u32 len);
void fake_data(struct fake_link *fake, u32 len);
void fake_read(struct fake_link *fake);
u64 fake_counter(struct fake_link *fake, enum hps_stat stat);

#endif /* FAKE_LINK_H */
