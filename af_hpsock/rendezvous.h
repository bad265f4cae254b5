/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RENDEZVOUS_H
#define HPS_RENDEZVOUS_H

#include <linux/types.h>

#include "key.h"

struct hps_dma;
struct hps_link;
struct hps_shown;
struct hps_sinkavail;
struct hps_word;

/* No number of messages */
#define HPS_RENDEZVOUS_NEVER	U64_MAX

/**
 * struct hps_rendezvous - the words at which readers and senders meet, one in either
 *	direction
 * @memory: ours, with what is shown behind the word; NULL before any is
 * @key: for it
 * @told: the peer knows it
 * @refused: the device makes no key for it
 * @spent_at: it was last set for what comes after so many messages with a credit
 * @peer_told: the peer has sent WORD: we know its word
 * @peer_addr: where that is
 * @peer_rkey: the key for it
 * @answer: where the device puts what it finds there
 * @slot: of the send queue, of the RDMA Read of an answer that is awaited; HPS_SQ_SIZE if
 *	none is
 * @asked_at: that is about what follows so many messages with a credit
 * @recalled: the peer has taken back meanwhile what it shows
 * @over_at: the word is not to be asked, any more, about what follows so many
 *
 * Guarded by hps_conn.lock. @spent_at and @over_at are %HPS_RENDEZVOUS_NEVER to begin with.
 */
struct hps_rendezvous {
	struct hps_shown *memory;
	struct hps_key key;
	bool told;
	bool refused;
	u64 spent_at;
	bool peer_told;
	u64 peer_addr;
	u32 peer_rkey;
	struct hps_dma *answer;
	u32 slot;
	u32 asked_at;
	bool recalled;
	u64 over_at;
};

int hps_rendezvous_expect(struct hps_link *link);
int hps_rendezvous_prepare(struct hps_link *link);
bool hps_rendezvous_used(const struct hps_link *link);
bool hps_rendezvous_spent(const struct hps_link *link);
bool hps_rendezvous_reach(struct hps_link *link, struct hps_word *word);
void hps_rendezvous_show(struct hps_link *link, const struct hps_sinkavail *sink);
void hps_rendezvous_hide(struct hps_link *link);
int hps_rendezvous_hear(struct hps_link *link, u64 addr, u32 rkey);
bool hps_rendezvous_known(const struct hps_link *link);
bool hps_rendezvous_ask(struct hps_link *link);
bool hps_rendezvous_awaits(const struct hps_link *link, u32 slot);
bool hps_rendezvous_answered(struct hps_link *link, struct hps_sinkavail *sink);
void hps_rendezvous_recalled(struct hps_link *link);
void hps_rendezvous_put_key(struct hps_link *link);
void hps_rendezvous_end(struct hps_link *link);

#endif /* HPS_RENDEZVOUS_H */
