// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: how much of the memory for receives each user has.
 *
 * Receive buffers are the module's own memory, lent to peers in the form of credits,
 * which nobody can be made to give back. The tunable mem_max_kb caps the sum of them;
 * so who has much of it has what others do not get. Two rules keep some for them:
 *
 *   A user, whoever that is, gets no more than mem_share percent.
 *
 *   An eighth, of the whole and of each share, is kept for what new connections begin
 *   with, which is little: to grow is not allowed into it.
 *
 * The user is the socket's (sk_uid) as the host sees it, so that a user namespace makes
 * no new one. A connection that was not accepted yet belongs to the listening socket's.
 */
#include <linux/hashtable.h>
#include <linux/math64.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#include "mem.h"
#include "net.h"
#include "param.h"
#include "share.h"

/* Of the whole and of each share, for growing: all but one such part. */
#define HPS_SHARE_FIRST_PART	8

/**
 * struct hps_share - what the connections of a user have
 * @node: in hps_shares, under hps_share_lock
 * @uid: the user
 * @users: connections
 * @bytes: of receive buffers
 */
struct hps_share {
	struct hlist_node node;
	kuid_t uid;
	refcount_t users;
	atomic64_t bytes;
};

static DEFINE_HASHTABLE(hps_shares, 6);
static DEFINE_SPINLOCK(hps_share_lock);	/* hps_shares; bottom halves off */
static atomic64_t hps_share_all = ATOMIC64_INIT(0);

/* With a reference; the table is locked. */
static struct hps_share *hps_share_find(kuid_t uid)
{
	struct hps_share *share;

	hash_for_each_possible(hps_shares, share, node, __kuid_val(uid))
		if (uid_eq(share->uid, uid)) {
			refcount_inc(&share->users);
			return share;
		}
	return NULL;
}

static struct hps_share *hps_share_new(kuid_t uid)
{
	struct hps_share *share = kzalloc(sizeof(*share), GFP_KERNEL);

	if (!share)
		return NULL;
	share->uid = uid;
	refcount_set(&share->users, 1);
	hps_mem_add(share);
	return share;
}

static void hps_share_free(struct hps_share *share)
{
	hps_mem_sub(share);
	kfree(share);
}

/**
 * hps_share_get - the share of a user
 * @uid: the user
 *
 * Context: process, may sleep.
 * Return: the share, for hps_share_put(), or NULL without
 * memory.
 */
struct hps_share *hps_share_get(kuid_t uid)
{
	struct hps_share *share, *other;

	spin_lock_bh(&hps_share_lock);
	share = hps_share_find(uid);
	spin_unlock_bh(&hps_share_lock);
	if (share)
		return share;
	share = hps_share_new(uid);
	if (!share)
		return NULL;
	spin_lock_bh(&hps_share_lock);
	/* There may be one by now. */
	other = hps_share_find(uid);
	if (!other)
		hash_add(hps_shares, &share->node, __kuid_val(uid));
	spin_unlock_bh(&hps_share_lock);
	if (!other)
		return share;
	hps_share_free(share);
	return other;
}

/**
 * hps_share_put - a connection is gone
 * @share: its user's, of which nothing is taken for it any more
 *
 * Context: any.
 */
void hps_share_put(struct hps_share *share)
{
	bool last;

	spin_lock_bh(&hps_share_lock);
	last = refcount_dec_and_test(&share->users);
	if (last)
		hash_del(&share->node);
	spin_unlock_bh(&hps_share_lock);
	if (last)
		hps_share_free(share);
}

static bool hps_share_add(atomic64_t *sum, u64 bytes, u64 max)
{
	if (atomic64_add_return(bytes, sum) <= max)
		return true;
	atomic64_sub(bytes, sum);
	return false;
}

/**
 * hps_share_take - take memory for receives
 * @share: whose it is
 * @hn: where it counts if it is refused
 * @bytes: how much
 * @first: it is what a connection begins with
 *
 * Context: any.
 * Return: false if that is more than is left for this.
 */
bool hps_share_take(struct hps_share *share, struct hps_net *hn, u64 bytes,
		    bool first)
{
	u64 all = (u64)READ_ONCE(hps_mem_max_kb) << 10;
	u64 part = div_u64(all * READ_ONCE(hps_mem_share), 100);

	if (!first) {
		all -= all / HPS_SHARE_FIRST_PART;
		part -= part / HPS_SHARE_FIRST_PART;
	}
	if (!hps_share_add(&share->bytes, bytes, part)) {
		hps_stat_inc(hn, MEM_REFUSED_USER);
		return false;
	}
	if (hps_share_add(&hps_share_all, bytes, all))
		return true;
	atomic64_sub(bytes, &share->bytes);
	hps_stat_inc(hn, MEM_REFUSED_ALL);
	return false;
}

/**
 * hps_share_give - give back what hps_share_take() took
 * @share: whose it was
 * @bytes: how much
 *
 * Context: any.
 */
void hps_share_give(struct hps_share *share, u64 bytes)
{
	atomic64_sub(bytes, &share->bytes);
	atomic64_sub(bytes, &hps_share_all);
}

/**
 * hps_share_taken - what all connections have
 *
 * Context: any; a snapshot.
 * Return: bytes of receive buffers.
 */
u64 hps_share_taken(void)
{
	return atomic64_read(&hps_share_all);
}
