/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_GROWTH_H
#define HPS_GROWTH_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct hps_conn;
struct sock;

/*
 * A reader that larger receives wait for is looked at so often: did it read anything? It is
 * doubled each time that it did not, as often as that.
 */
#define HPS_GROWTH_WAIT		msecs_to_jiffies(20)
#define HPS_GROWTH_VAIN_MAX	5

/**
 * enum hps_growth_state - what becomes of a reason to grow
 * @HPS_GROWTH_OPEN: there may be more to grow to
 * @HPS_GROWTH_WAITING: larger receives have no room yet: no more credits are granted until
 *	they have
 * @HPS_GROWTH_DONE: there was no more to grow to within SO_RCVBUF
 * @HPS_GROWTH_CRAMPED: nor is there, and the peer ran dry: SO_RCVBUF may grow
 */
enum hps_growth_state {
	HPS_GROWTH_OPEN,
	HPS_GROWTH_WAITING,
	HPS_GROWTH_DONE,
	HPS_GROWTH_CRAMPED,
};

/**
 * struct hps_growth - how the receives of a link grow, see growth.c
 * @state: enum hps_growth_state
 * @full: the peer has filled a receive of the present size: a reason for larger ones.
 *	That for more of them is hps_credit.dry
 * @lately: a reader that is waited for has read since that was last looked at
 * @vain: how often one of the present size was waited for in vain, %HPS_GROWTH_VAIN_MAX
 *	at most
 * @read: something was read since the work last found the peer stuck, or it has not yet
 * @room: no more credits are granted than so many less the unread buffers; U16_MAX, which
 *	no window exceeds, if not WAITING
 * @retry: a reader was waited for in vain, and is not again before this place in the
 *	stream
 * @work: hps_growth_work(), holds a reference on the connection
 *
 * Guarded by hps_conn.lock, but for @read, which is by the socket lock. @state changes only
 * with the socket locked as well, or while the receives shrink, when nobody acts on it.
 */
struct hps_growth {
	u8 state;
	bool full;
	bool lately;
	u8 vain;
	bool read;
	u16 room;
	u64 retry;
	struct delayed_work work;
};

/* The one way to change the state; @room is U16_MAX but for HPS_GROWTH_WAITING. */
static inline void hps_growth_set(struct hps_growth *growth, u8 state, u16 room)
{
	WRITE_ONCE(growth->state, state);
	growth->room = room;
}

/*
 * How long a reader may take until it reads on, jiffies: one that is waited for, or one that
 * need not be where there is no more to grow to.
 */
static inline unsigned long hps_growth_patience(const struct hps_growth *growth)
{
	switch (growth->state) {
	case HPS_GROWTH_OPEN:
		return 0;
	case HPS_GROWTH_WAITING:
		return HPS_GROWTH_WAIT << growth->vain;
	default:
		return HPS_GROWTH_WAIT;
	}
}

void hps_growth_init(struct hps_growth *growth);
void hps_growth_read(struct hps_conn *conn, struct sock *sk);
void hps_growth_later(struct hps_conn *conn);

#endif /* HPS_GROWTH_H */
