/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CREDIT_H
#define HPS_CREDIT_H

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/types.h>

/**
 * struct hps_credit - both directions of a connection's flow control
 * @tx_granted: credits the peer has granted since the beginning
 * @tx_used: credits used, one for each DATA, SRCAVAIL, WRITTEN, SHRINK or
 *	PAD posted
 * @tx_max: the peer never has more than this outstanding
 * @rx_ready: receives for these made available since the beginning
 * @rx_told: of these, how many the peer has been told of
 * @rx_used: how many of these were received
 * @window: rx_ready - rx_used when all that was read has been reposted; it may be more
 *	after @window became less, until the peer has used what it had
 * @window_max: what @window may grow to
 * @dry: the peer has used all it knew of since this was last cleared
 * @tx_fresh: credits left when the peer had just granted some
 *
 * The totals since the beginning count modulo 2^32. Guarded by hps_conn.lock, and written
 * here and in credit.c alone; those that hps_receives_full() reads without the lock, at
 * once.
 */
struct hps_credit {
	u32 tx_granted;
	u32 tx_used;
	u32 tx_max;
	u32 rx_ready;
	u32 rx_told;
	u32 rx_used;
	u32 window;
	u32 window_max;
	bool dry;
	u16 tx_fresh;
};

/* Credits left to send with. */
static inline u32 hps_credit_left(const struct hps_credit *credit)
{
	return credit->tx_granted - credit->tx_used;
}

/* A message that costs one was posted. */
static inline void hps_credit_use(struct hps_credit *credit)
{
	WARN_ON_ONCE(!hps_credit_left(credit));	/* I4 */
	credit->tx_used++;
}

/* A receive for one more was posted, of which the peer is to be told. */
static inline void hps_credit_ready(struct hps_credit *credit)
{
	WRITE_ONCE(credit->rx_ready, credit->rx_ready + 1);
}

/* Say that the peer has run dry, or that all has been done about it. */
static inline void hps_credit_set_dry(struct hps_credit *credit, bool dry)
{
	WRITE_ONCE(credit->dry, dry);
}

/* There is memory for so many from now on. */
static inline void hps_credit_set_window(struct hps_credit *credit, u32 window)
{
	WRITE_ONCE(credit->window, window);
	hps_credit_set_dry(credit, false);
}

void hps_credit_init(struct hps_credit *credit, u32 max);
void hps_credit_begin(struct hps_credit *credit, u32 window);
void hps_credit_hello(struct hps_credit *credit, u32 credits, u32 max);

int hps_credit_granted(struct hps_credit *credit, u32 total);
int hps_credit_spent(struct hps_credit *credit);
int hps_credit_received(struct hps_credit *credit);
bool hps_credit_behind(const struct hps_credit *credit, u32 least);
bool hps_credit_tight(const struct hps_credit *credit);
bool hps_credit_due(const struct hps_credit *credit, bool unread);
bool hps_credit_late(const struct hps_credit *credit);
bool hps_credit_dry(const struct hps_credit *credit);
u32 hps_credit_tell(struct hps_credit *credit);

#endif /* HPS_CREDIT_H */
