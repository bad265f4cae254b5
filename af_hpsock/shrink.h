/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SHRINK_H
#define HPS_SHRINK_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "work.h"

struct hps_link;

/**
 * enum hps_shrink_state - how far the receives of a link have shrunk
 * @HPS_SHRINK_REST: as far as they will
 * @HPS_SHRINK_ASKED: SHRINK was sent
 * @HPS_SHRINK_PADDED: the peer has heard of it, and uses up those that are posted
 */
enum hps_shrink_state {
	HPS_SHRINK_REST,
	HPS_SHRINK_ASKED,
	HPS_SHRINK_PADDED,
};

/**
 * struct hps_shrink - how the receives of a link shrink, see shrink.c
 * @link: the link, which has this once its receives have grown, until it is freed
 * @state: enum hps_shrink_state
 * @size: bytes of what there will be
 * @window: and credits
 * @pads: PAD that are still to come; at first as many as are posted at most
 * @owed: bytes of receives that the socket was not charged for, and will not be uncharged
 * @pressed_until: jiffies; memory is short until then, and the link need not be idle for long
 * @list: struct hps_receive of @size, of which the link makes no use before PADDED
 * @node: in hps_shrink_links, as long as there may be anything to shrink
 * @work: hps_shrink_work(), holds a reference on the connection
 *
 * Guarded by hps_conn.lock, but for @pressed_until and @node. @state changes from REST only with
 * the socket locked as well.
 */
struct hps_shrink {
	struct hps_link *link;
	u8 state;
	u32 size;
	u32 window;
	u32 pads;
	u32 owed;
	unsigned long pressed_until;
	struct list_head list;
	struct list_head node;
	struct delayed_work work;
};

/* Was the peer asked, and is not through? Any context; @shrink may be NULL. */
static inline bool hps_shrinking(const struct hps_shrink *shrink)
{
	return shrink && READ_ONCE(shrink->state) != HPS_SHRINK_REST;
}

/* Has it begun to send PAD? @shrink may be NULL. */
static inline bool hps_shrink_padded(const struct hps_shrink *shrink)
{
	return shrink && shrink->state == HPS_SHRINK_PADDED;
}

/* The one way to change the state. */
static inline void hps_shrink_set(struct hps_shrink *shrink, u8 state)
{
	WRITE_ONCE(shrink->state, state);
}

/* hps_shrink_pressed() */
extern struct work_struct hps_shrink_pressure;

/* There is not enough memory for receives. */
static inline void hps_shrink_press(void)
{
	queue_work(hps_program_wq, &hps_shrink_pressure);
}

void hps_shrink_plan(struct hps_link *link);
void hps_shrink_end(struct hps_link *link);

#endif /* HPS_SHRINK_H */
