// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: how much of the memory for receives each user has.
 *
 * Receive buffers are the module's own memory, lent to peers in the form of credits,
 * which nobody can be made to give back. The tunable mem_max_kb caps the sum of them;
 * so who has much of it has what others do not get. Two rules keep some for them:
 *
 *   A user, whoever that is, gets no more than mem_share / (100 - mem_share) times what
 *   nobody has, which is mem_share percent of the whole for one who is alone. With 50 %,
 *   the first who takes all he can gets half of the whole, the second half of the rest,
 *   and so on; the next one always finds some. (Choudhury and Hahne, Dynamic queue length
 *   thresholds for shared-memory packet switches, IEEE/ACM Transactions on Networking
 *   6(2), 1998.)
 *
 *   An eighth of each share is kept for what new connections begin with, which is little:
 *   to grow is not allowed into it, and a user who has grown has as much of it as others.
 *
 * What shrinks takes some besides for a while (shrink.c): one receive of the size that it
 * has, and smaller ones, a quarter of what it has at most. That is never refused, not even
 * beyond the whole, and is no reason to refuse what new connections begin with.
 *
 * The user is the socket's (sk_uid) as the host sees it: a user namespace makes no new one
 * but for subordinate ids (subuid(5)). Where he has connections in network namespaces
 * besides the initial one, as containers do that all belong to root, each of those gets a
 * share of his by the same rules. The initial one is not held to that: the host's services
 * may have all of it. A connection that was not accepted yet belongs to the listening
 * socket's user.
 */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/math64.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "mem.h"
#include "net.h"
#include "param.h"
#include "share.h"

/* Of each share, for growing: all but one such part. */
#define HPS_SHARE_FIRST_PART	8

/* Threads of a user that may wait for other hosts at a time. */
#define HPS_SHARE_ASKERS	512

/**
 * struct hps_share - what some connections have
 * @node: in hps_shares, under hps_share_lock
 * @of: of which it is a share, with a reference; NULL for all connections
 * @uid: the user
 * @net: the namespace, only to be compared; NULL where this has all of the user's
 * @refs: connections, and shares of this one; not counted of hps_share_all
 * @bytes: of receive buffers
 * @first: how much of it connections began with
 * @askers: hps_share_ask(), of a user's
 * @refused: when this was the reason to refuse some, jiffies_64; 0 if never
 */
struct hps_share {
	struct hlist_node node;
	struct hps_share *of;
	kuid_t uid;
	const struct net *net;
	refcount_t refs;
	atomic64_t bytes;
	atomic64_t first;
	atomic64_t refused;
	atomic_t askers;
};

static DEFINE_HASHTABLE(hps_shares, 6);
static DEFINE_SPINLOCK(hps_share_lock);	/* hps_shares; bottom halves off */
static struct hps_share hps_share_all;

static u32 hps_share_key(kuid_t uid, const struct net *net)
{
	return __kuid_val(uid) ^ hash_ptr(net, 32);
}

/* With a reference; the table is locked. */
static struct hps_share *hps_share_find(kuid_t uid, const struct net *net)
{
	struct hps_share *share;

	hash_for_each_possible(hps_shares, share, node, hps_share_key(uid, net))
		if (uid_eq(share->uid, uid) && share->net == net) {
			refcount_inc(&share->refs);
			return share;
		}
	return NULL;
}

static struct hps_share *hps_share_new(struct hps_share *of, kuid_t uid,
				       const struct net *net)
{
	struct hps_share *share = kzalloc(sizeof(*share), GFP_KERNEL);

	if (!share)
		return NULL;
	/* That of all connections is there for good. */
	if (of->of)
		refcount_inc(&of->refs);
	share->of = of;
	share->uid = uid;
	share->net = net;
	refcount_set(&share->refs, 1);
	hps_mem_add(share);
	return share;
}

/* One that is there, or a new one. */
static struct hps_share *hps_share_part(struct hps_share *of, kuid_t uid,
					const struct net *net)
{
	struct hps_share *share, *other;

	spin_lock_bh(&hps_share_lock);
	share = hps_share_find(uid, net);
	spin_unlock_bh(&hps_share_lock);
	if (share)
		return share;
	share = hps_share_new(of, uid, net);
	if (!share)
		return NULL;
	spin_lock_bh(&hps_share_lock);
	/* There may be one by now. */
	other = hps_share_find(uid, net);
	if (!other)
		hash_add(hps_shares, &share->node, hps_share_key(uid, net));
	spin_unlock_bh(&hps_share_lock);
	if (!other)
		return share;
	hps_share_put(share);
	return other;
}

/**
 * hps_share_get - the share of a new connection
 * @uid: its user
 * @net: its network namespace
 *
 * Context: process, may sleep.
 * Return: the share, for hps_share_put(), or NULL without memory.
 */
struct hps_share *hps_share_get(kuid_t uid, const struct net *net)
{
	struct hps_share *user = hps_share_part(&hps_share_all, uid, NULL), *share;

	if (!user || net_eq(net, &init_net))
		return user;
	share = hps_share_part(user, uid, net);
	hps_share_put(user);
	return share;
}

/**
 * hps_share_put - a connection is gone
 * @share: its own, of which nothing is taken for it any more
 *
 * Context: any.
 */
void hps_share_put(struct hps_share *share)
{
	struct hps_share *of;
	bool last;

	for (; share->of; share = of) {
		spin_lock_bh(&hps_share_lock);
		last = refcount_dec_and_test(&share->refs);
		if (last)
			hash_del(&share->node);
		spin_unlock_bh(&hps_share_lock);
		if (!last)
			return;
		of = share->of;
		hps_mem_sub(share);
		kfree(share);
	}
}

/* Bytes that it may have at most, if others leave them. */
static u64 hps_share_max(const struct hps_share *share, enum hps_share_use use)
{
	u64 max;

	if (share->of)
		return div_u64(hps_share_max(share->of, use) *
			       READ_ONCE(hps_mem_share), 100);
	max = (u64)READ_ONCE(hps_mem_max_kb) << 10;
	return use == HPS_SHARE_GROW ? max - max / HPS_SHARE_FIRST_PART : max;
}

/* Does who has @mine of the @taken leave enough of @max to others? */
static bool hps_share_leaves(u64 mine, u64 taken, u64 max)
{
	u32 percent = READ_ONCE(hps_mem_share);

	return taken <= max && mine * (100 - percent) <= (max - taken) * percent;
}

static bool hps_share_fits(const struct hps_share *share, enum hps_share_use use)
{
	const struct hps_share *of = share->of;
	u64 max = hps_share_max(of, use);
	u64 taken = atomic64_read(&of->bytes);

	if (hps_share_leaves(atomic64_read(&share->bytes), taken, max))
		return true;
	/* Whatever was taken to grow, or to shrink. */
	return use == HPS_SHARE_FIRST &&
	       hps_share_leaves(atomic64_read(&share->first),
				atomic64_read(&of->first),
				max / HPS_SHARE_FIRST_PART);
}

/* The one that has not as much, or of which others have too much; NULL if it fits. */
static struct hps_share *hps_share_exceeded(struct hps_share *share, enum hps_share_use use)
{
	for (; share->of; share = share->of) {
		if (hps_share_fits(share, use))
			continue;
		if (atomic64_read(&share->bytes) > hps_share_max(share, use))
			return share;
		return share->of;
	}
	return NULL;
}

static void hps_share_refuse(struct hps_share *share, struct hps_net *hn)
{
	atomic64_set(&share->refused, get_jiffies_64());
	if (!share->of)
		hps_stat_inc(hn, HPS_STAT_MEM_REFUSED_ALL);
	else if (!share->net)
		hps_stat_inc(hn, HPS_STAT_MEM_REFUSED_USER);
	else
		hps_stat_inc(hn, HPS_STAT_MEM_REFUSED_NETNS);
}

static void hps_share_add(struct hps_share *share, s64 bytes, s64 first)
{
	for (; share; share = share->of) {
		atomic64_add(bytes, &share->bytes);
		atomic64_add(first, &share->first);
	}
}

/**
 * hps_share_take - take memory for receives
 * @share: whose it is
 * @hn: where it counts if it is refused
 * @bytes: how much
 * @use: what for
 *
 * Two at a time, of which one would fit, may both be refused.
 *
 * Context: any.
 * Return: false if that is more than is left for this.
 */
bool hps_share_take(struct hps_share *share, struct hps_net *hn, u64 bytes,
		    enum hps_share_use use)
{
	const u64 first = use == HPS_SHARE_FIRST ? bytes : 0;
	struct hps_share *exceeded;

	hps_share_add(share, bytes, first);
	if (use == HPS_SHARE_SHRINK)
		return true;
	exceeded = hps_share_exceeded(share, use);
	if (!exceeded)
		return true;
	hps_share_add(share, -bytes, -first);
	hps_share_refuse(exceeded, hn);
	return false;
}

/**
 * hps_share_refused - would somebody have some of what these connections have?
 * @share: theirs
 * @since: jiffies_64
 *
 * What was refused because others have too much asks of those alone who have more than
 * they could get now.
 *
 * Context: any; a snapshot.
 * Return: true if some was refused since then because of that share, or of what it is too
 * large a share of.
 */
bool hps_share_refused(const struct hps_share *share, u64 since)
{
	for (;;) {
		if (atomic64_read(&share->refused) >= since)
			return true;
		if (!share->of || hps_share_fits(share, HPS_SHARE_GROW))
			return false;
		share = share->of;
	}
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
	hps_share_add(share, -bytes, 0);
}

/**
 * hps_share_end - a connection that had begun ends
 * @share: whose it was
 * @first: bytes that were taken for HPS_SHARE_FIRST, whether or not they were given back
 *
 * Context: any.
 */
void hps_share_end(struct hps_share *share, u64 first)
{
	hps_share_add(share, 0, -first);
}

/* That of the user, whatever the namespace. */
static struct hps_share *hps_share_user(struct hps_share *share)
{
	return share->net ? share->of : share;
}

/**
 * hps_share_ask - a connection needs a thread that waits for another host
 * @share: its own
 *
 * Context: any.
 * Return: false if the user has as many as he may; otherwise hps_share_asked() has to
 * follow.
 */
bool hps_share_ask(struct hps_share *share)
{
	return atomic_add_unless(&hps_share_user(share)->askers, 1, HPS_SHARE_ASKERS);
}

/**
 * hps_share_asked - that thread is no longer needed
 * @share: of the connection
 *
 * Context: any.
 */
void hps_share_asked(struct hps_share *share)
{
	atomic_dec(&hps_share_user(share)->askers);
}

/**
 * hps_share_taken - what all connections have
 *
 * Context: any; a snapshot.
 * Return: bytes of receive buffers.
 */
u64 hps_share_taken(void)
{
	return atomic64_read(&hps_share_all.bytes);
}
