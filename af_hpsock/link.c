// SPDX-License-Identifier: GPL-2.0
/*
 * A connection over a queue pair: its memory, and who uses it.
 *
 * rdma.c has what is done with it from creation to teardown.
 */
#include <linux/slab.h>
#include <net/sock.h>

#include "compat_verbs.h"
#include "device.h"
#include "link.h"
#include "mem.h"
#include "param.h"
#include "share.h"
#include "target.h"

#include <linux/hpsock.h>

static struct kmem_cache *hps_link_cache;

/**
 * hps_link_init - before the first link is made
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int hps_link_init(void)
{
	/* kmalloc() would round up to the next power of two. */
	hps_link_cache = KMEM_CACHE(hps_link, 0);
	return hps_link_cache ? 0 : -ENOMEM;
}

/**
 * hps_link_exit - when no link is left
 *
 * Context: process, may sleep.
 */
void hps_link_exit(void)
{
	/* hps_link_free_rcu(), and the return of hps_rdma_untouched_rcu() */
	rcu_barrier();
	kmem_cache_destroy(hps_link_cache);
}

static void hps_link_free_rcu(struct rcu_head *rcu)
{
	struct hps_link *link = container_of(rcu, struct hps_link, conn.rcu);

	if (link->shrink) {
		hps_mem_sub(link->shrink);
		kfree(link->shrink);
	}
	if (link->targets) {
		hps_mem_sub(link->targets);
		kfree(link->targets);
	}
	hps_mem_sub(link);
	kmem_cache_free(hps_link_cache, link);
}

/**
 * hps_link_free - hps_transport.free
 * @conn: without references
 *
 * Context: any.
 */
void hps_link_free(struct hps_conn *conn)
{
	hps_share_put(hps_link(conn)->receives.share);
	call_rcu(&conn->rcu, hps_link_free_rcu);
}

/**
 * hps_link_enter - keep queue pair and device of a link from going
 * @link: not locked
 *
 * The teardown waits for hps_link_leave(), so what is done in between must not depend on
 * the program or the peer.
 *
 * Context: any.
 * Return: false if the link is ending; otherwise hps_link_leave() has to follow.
 */
bool hps_link_enter(struct hps_link *link)
{
	bool ok;

	spin_lock_bh(&link->conn.lock);
	ok = !link->conn.shut && link->dev;
	if (ok)
		atomic_inc(&link->users);
	spin_unlock_bh(&link->conn.lock);
	return ok;
}

/**
 * hps_link_leave - undo hps_link_enter()
 * @link: the link
 *
 * Context: any.
 */
void hps_link_leave(struct hps_link *link)
{
	/* Full barriers before and, where an end may wait, after. */
	if (atomic_dec_and_test(&link->users) && READ_ONCE(link->conn.shut))
		wake_up_var(&link->users);
}

/**
 * hps_link_alloc - allocate a link
 * @sk: has the user and the namespace that its receives count for
 *
 * Context: process, may sleep.
 * Return: the link, with their share, otherwise zeroed, or NULL.
 */
struct hps_link *hps_link_alloc(const struct sock *sk)
{
	struct hps_link *link = kmem_cache_zalloc(hps_link_cache, GFP_KERNEL);

	if (!link)
		return NULL;
	link->receives.share = hps_share_get(sk->sk_uid, sock_net(sk));
	if (!link->receives.share) {
		kmem_cache_free(hps_link_cache, link);
		return NULL;
	}
	hps_mem_add(link);
	return link;
}

/**
 * hps_link_reads - shall the peer offer bytes instead of sending them?
 * @link: on a device
 *
 * Context: any.
 * Return: true to offer, where the device and the tunables allow it.
 */
bool hps_link_reads(const struct hps_link *link)
{
	u32 mode = hps_tuned(&link->tuning, HPS_TUNE_ZCOPY);

	return mode == HPSOCK_ZCOPY_PROTECT || mode == HPSOCK_ZCOPY_WAIT ||
	       (mode == HPSOCK_ZCOPY_AUTO && !hps_reads_lost(link->dev->ibdev));
}

/**
 * hps_link_swaps - can words be asked here, as rendezvous.c does?
 * @link: on a device
 *
 * It takes atomics of the device, and RDMA Reads that come to an end.
 *
 * Context: any.
 * Return: true if they can.
 */
bool hps_link_swaps(const struct hps_link *link)
{
	const struct ib_device *ibdev = link->dev->ibdev;

	return ibdev->attrs.atomic_cap != IB_ATOMIC_NONE && !link->iwarp &&
	       !hps_reads_lost(ibdev);
}
