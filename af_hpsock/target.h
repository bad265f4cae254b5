/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_TARGET_H
#define HPS_TARGET_H

#include <linux/types.h>

#include "key.h"

struct hps_conn;
struct hps_link;
struct hps_pages;
struct hps_sinkavail;
struct hps_word;

/* Receives for SINKAVAIL or WORD, and for SINKCANCEL. */
#define HPS_TARGET_RECEIVES	2

/**
 * enum hps_target_state - what becomes of the memory of a reader that waits
 * @HPS_TARGET_NONE: there is none
 * @HPS_TARGET_QUEUED: the peer is to be told of it
 * @HPS_TARGET_SHOWN: it was, or is once there is a key (hps_targets.reg_slot), and may write
 *	there
 * @HPS_TARGET_OVER: it may not any more, but there is a key still
 * @HPS_TARGET_DONE: the reader may have it back, and has to come for it
 */
enum hps_target_state {
	HPS_TARGET_NONE,
	HPS_TARGET_QUEUED,
	HPS_TARGET_SHOWN,
	HPS_TARGET_OVER,
	HPS_TARGET_DONE,
};

/**
 * struct hps_targets - memory for what comes next in a stream, in either direction
 * @state: enum hps_target_state, of ours
 * @told: SINKAVAIL and WORD sent, modulo 2
 * @waits: the peer was not heard to have the last one
 * @cancel: SINKCANCEL is to be sent
 * @cancelling: it was, and is not answered
 * @answer: there is a receive for SINKACK; guarded by the socket's lock
 * @slot: of the send queue, in which LOCAL_INV was posted; HPS_SQ_SIZE if it was not
 * @reg_slot: likewise REG_MR, when its completion is waited for to set our word
 * @len: bytes of ours
 * @written: how many of them came
 * @key: for ours
 * @seen: SINKAVAIL and WORD received, modulo 2
 * @seen_told: as the peer was told
 * @ack: SINKACK is to be sent
 * @peer_shows: the peer has sent SINKAVAIL, and no SINKCANCEL since; not what its word says
 * @peer_addr: of its memory
 * @peer_rkey: the key for it
 * @peer_len: bytes of it, 0 if there is none
 *
 * Guarded by hps_conn.lock.
 */
struct hps_targets {
	u8 state;
	bool told;
	bool waits;
	bool cancel;
	bool cancelling;
	bool answer;
	u32 slot;
	u32 reg_slot;
	u32 len;
	u32 written;
	struct hps_key key;
	bool seen;
	bool seen_told;
	bool ack;
	bool peer_shows;
	u64 peer_addr;
	u32 peer_rkey;
	u32 peer_len;
};

int hps_target_expect(struct hps_link *link);
bool hps_target_show(struct hps_conn *conn, const struct hps_pages *mem);
bool hps_target_shown(struct hps_conn *conn);
u32 hps_target_withdraw(struct hps_conn *conn);
void hps_target_push(struct hps_link *link);
void hps_target_over(struct hps_link *link);
int hps_target_written(struct hps_link *link, u32 len);
int hps_target_acked(struct hps_link *link);
void hps_target_completed(struct hps_link *link, u32 slot);
void hps_target_put_key(struct hps_link *link);
void hps_target_end(struct hps_link *link);
int hps_target_offered(struct hps_link *link, u16 at,
		       const struct hps_sinkavail *sink);
int hps_target_word(struct hps_link *link, const struct hps_word *word);
int hps_target_taken_back(struct hps_link *link);

#endif /* HPS_TARGET_H */
