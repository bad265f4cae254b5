// SPDX-License-Identifier: GPL-2.0
/*
 * zcopy_sync=cas: a reader that waits sends no SINKAVAIL. It has a word that the peer is told
 * of once, and sets it; a sender that has much to send asks there first, by an atomic
 * Compare and Swap (the rendezvous of ZSDP). So who shows memory in vain sends nothing for
 * that, and who has much to send takes a way there and back to learn what it may do.
 *
 *   reader                                     sender
 *
 *   once: REG_MR, WORD: the word is here  --->
 *   the queue is empty
 *   REG_MR; when that is done, the word:
 *   I wait for what comes after so many         a large send: if you wait for that, do so no
 *   messages                              <---  longer for any other (Compare and Swap);
 *                                         <---  where is the memory? (RDMA Read)
 *   (the device answers)                  --->  it was so: RDMA Write, WRITTEN
 *                                               it was not: SRCAVAIL
 *
 * What follows a word that was swapped is as if SINKAVAIL had come (target.c): the same ends
 * it, and the same takes it back.
 *
 * A processor and a device cannot swap the same word atomically (IB_ATOMIC_HCA). So what we
 * store there never meets a swap that succeeds:
 *
 * - The value is the number of messages with a credit that were received before what is
 *   waited for. The sender compares with how many it has sent, and so finds no word that was
 *   set for anything else.
 * - For each number it asks at most once (over_at). The word is zero again as soon as the
 *   reader does not wait any more: it has received another message, so that the sender does
 *   not ask for this one any more; or SINKCANCEL was answered, which has the same effect
 *   (hps_rendezvous_recalled()). Left as it was it would say so again 2^32 messages later.
 *
 * Between a swap and its answer the sender may send other bytes, or hear of SINKCANCEL. Then
 * the reader does not wait any more, and the answer, which the device may have read again
 * since, is void. Documentation/formal/rendezvous.pml has it proved.
 *
 * That holds for a peer that keeps to the rules. One that does not can change what is shown
 * to itself, the word and what is behind it, and nothing else.
 *
 * Both ends need a device with atomics: that of the reader executes them. And resources for
 * RDMA Reads, which are those for atomics: without any a device refuses a swap or, as
 * Soft-RoCE, never comes to it (hps_cm_limited()).
 */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include <linux/hpsock.h>

#include "conn.h"
#include "device.h"
#include "dma.h"
#include "link.h"
#include "mem.h"
#include "net.h"
#include "param.h"
#include "post.h"
#include "rendezvous.h"
#include "wire.h"

/* hps_link.rendezvous, made if it is not there; NULL without memory */
static struct hps_rendezvous *hps_rendezvous_get(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;

	if (likely(rv))
		return rv;
	rv = kzalloc(sizeof(*rv), GFP_KERNEL);
	if (!rv)
		return NULL;
	rv->slot = HPS_SQ_SIZE;
	rv->spent_at = HPS_RENDEZVOUS_NEVER;
	rv->over_at = HPS_RENDEZVOUS_NEVER;
	hps_mem_add(rv);
	spin_lock_bh(&link->conn.lock);
	link->rendezvous = rv;
	spin_unlock_bh(&link->conn.lock);
	return rv;
}

/**
 * hps_rendezvous_expect - what has to be there before the peer may send WORD
 * @link: entered, its socket locked
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int hps_rendezvous_expect(struct hps_link *link)
{
	struct hps_rendezvous *rv;

	if (!link->asks || link->conn.records)
		return 0;
	rv = hps_rendezvous_get(link);
	if (!rv)
		return -ENOMEM;
	if (!rv->answer)
		rv->answer = hps_dma_new(sizeof(*rv->answer), link->dev->ibdev,
					 sizeof(struct hps_shown), DMA_FROM_DEVICE,
					 GFP_KERNEL);
	return rv->answer ? 0 : -ENOMEM;
}

/* Memory for our word, which no reader waits at, and a key for it. */
static int hps_rendezvous_make(struct hps_link *link, struct hps_rendezvous *rv)
{
	struct hps_shown *memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	struct page *page;
	int err;

	if (!memory)
		return -ENOMEM;
	/*
	 * As large as it is it does not cross the end of a page. The region could cover as
	 * many as any other.
	 */
	page = virt_to_page(memory);
	err = hps_key_make(link, &rv->key, &(struct hps_pages){
		.pages = &page, .nr = 1, .off = offset_in_page(memory),
		.len = sizeof(*memory),
	}, DMA_BIDIRECTIONAL);
	if (err) {
		kfree(memory);
		return err;
	}
	hps_mem_add(memory);
	spin_lock_bh(&link->conn.lock);
	rv->memory = memory;
	spin_unlock_bh(&link->conn.lock);
	return 0;
}

/* Are readers to wait at our word? */
static bool hps_rendezvous_wanted(const struct hps_link *link)
{
	return link->is_asked &&
	       hps_tuned(&link->tuning, HPS_TUNE_ZCOPY_SYNC) == HPSOCK_ZCOPY_SYNC_CAS;
}

/**
 * hps_rendezvous_prepare - what has to be there before the peer is told of our word
 * @link: entered, its socket locked
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM or what hps_key_make() says.
 */
int hps_rendezvous_prepare(struct hps_link *link)
{
	struct hps_rendezvous *rv;
	bool done;

	if (likely(!hps_rendezvous_wanted(link)))
		return 0;
	rv = hps_rendezvous_get(link);
	if (!rv)
		return -ENOMEM;
	/* A completion may find meanwhile that its key is refused. */
	spin_lock_bh(&link->conn.lock);
	done = rv->memory || rv->refused;
	spin_unlock_bh(&link->conn.lock);
	return done ? 0 : hps_rendezvous_make(link, rv);
}

/**
 * hps_rendezvous_used - where does a reader wait?
 * @link: locked
 *
 * Return: true if it is at our word, false if the peer is told of its memory by SINKAVAIL.
 */
bool hps_rendezvous_used(const struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	return link->rendezvous && link->rendezvous->memory;
}

/**
 * hps_rendezvous_spent - was our word set before for what comes next?
 * @link: locked
 *
 * Return: true if the peer would not ask again.
 */
bool hps_rendezvous_spent(const struct hps_link *link)
{
	const struct hps_rendezvous *rv = link->rendezvous;

	lockdep_assert_held(&link->conn.lock);
	return rv && rv->spent_at == link->credit.rx_used;
}

/* Our word is not reachable, or not any more. */
static void hps_rendezvous_unmap(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;

	hps_key_unmap(&rv->key, link->dev->ibdev, DMA_BIDIRECTIONAL);
	hps_mem_sub(rv->memory);
	kfree(rv->memory);
	rv->memory = NULL;
}

/**
 * hps_rendezvous_reach - make our word one that the peer can reach
 * @link: locked, with two free slots beyond %HPS_CTRL_SLOTS, and a word that is used
 * @word: how, for WORD, which is to be posted next
 *
 * Some devices have atomics, but make no keys for them by REG_MR: then it is not used any
 * more.
 *
 * Return: true, or false if it is not.
 */
bool hps_rendezvous_reach(struct hps_link *link, struct hps_word *word)
{
	struct hps_rendezvous *rv = link->rendezvous;
	const struct ib_mr *mr = rv->key.mr;

	lockdep_assert_held(&link->conn.lock);
	if (hps_post_register_try(link, &rv->key, IB_ACCESS_LOCAL_WRITE |
				  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)) {
		rv->refused = true;
		hps_key_put(link, &rv->key);
		hps_rendezvous_unmap(link);
		return false;
	}
	rv->told = true;
	*word = (struct hps_word){
		.addr = cpu_to_be64(mr->iova), .rkey = cpu_to_be32(mr->rkey),
	};
	return true;
}

/* The peer's device is to see what we have changed: so many bytes from the word on. */
static void hps_rendezvous_sync(struct hps_link *link, size_t len)
{
	const struct hps_key *key = &link->rendezvous->key;

	ib_dma_sync_single_for_device(link->dev->ibdev, sg_dma_address(key->sgt.sgl),
				      len, DMA_BIDIRECTIONAL);
}

/**
 * hps_rendezvous_show - a reader waits, and its key is valid: set our word, which is zero
 * @link: locked
 * @sink: where the reader waits
 */
void hps_rendezvous_show(struct hps_link *link, const struct hps_sinkavail *sink)
{
	struct hps_rendezvous *rv = link->rendezvous;
	struct hps_shown *memory = rv->memory;

	lockdep_assert_held(&link->conn.lock);
	memory->sink = *sink;
	hps_rendezvous_sync(link, sizeof(*memory));
	/* Who finds the word set finds the rest. */
	dma_wmb();
	WRITE_ONCE(memory->word, HPS_WORD_WAITS | link->credit.rx_used);
	hps_rendezvous_sync(link, sizeof(memory->word));
	rv->spent_at = link->credit.rx_used;
}

/**
 * hps_rendezvous_hide - it does not wait any more, and the peer does not ask: clear our word
 * @link: locked
 */
void hps_rendezvous_hide(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;

	lockdep_assert_held(&link->conn.lock);
	if (likely(!rv || !rv->memory))
		return;
	WRITE_ONCE(rv->memory->word, 0);
	hps_rendezvous_sync(link, sizeof(rv->memory->word));
}

/**
 * hps_rendezvous_hear - WORD came in, and was counted
 * @link: locked
 * @addr: where the peer's word is
 * @rkey: the key for it
 *
 * Return: 0, or -EPROTO if there cannot be one, or was.
 */
int hps_rendezvous_hear(struct hps_link *link, u64 addr, u32 rkey)
{
	struct hps_rendezvous *rv = link->rendezvous;

	lockdep_assert_held(&link->conn.lock);
	if (!link->asks || rv->peer_told || addr % sizeof(u64) ||
	    addr + sizeof(struct hps_shown) < addr)
		return -EPROTO;
	rv->peer_told = true;
	rv->peer_addr = addr;
	rv->peer_rkey = rkey;
	return 0;
}

/**
 * hps_rendezvous_known - has the peer a word?
 * @link: locked
 *
 * Return: true if it has told us.
 */
bool hps_rendezvous_known(const struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	return link->rendezvous && link->rendezvous->peer_told;
}

/* Returns 0, or an error with the connection being shut. */
static int hps_rendezvous_post(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;
	u32 lkey = link->id->qp->pd->local_dma_lkey;
	struct ib_sge word = {
		.addr = rv->answer->addr, .length = sizeof(u64), .lkey = lkey,
	};
	struct ib_sge sink = {
		.addr = rv->answer->addr + offsetof(struct hps_shown, sink),
		.length = sizeof(struct hps_sinkavail), .lkey = lkey,
	};
	struct ib_atomic_wr swap = {
		.wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP,
		.wr.sg_list = &word, .wr.num_sge = 1,
		.remote_addr = rv->peer_addr, .rkey = rv->peer_rkey,
		.compare_add = HPS_WORD_WAITS | rv->asked_at, .swap = 0,
	};
	struct ib_rdma_wr read = {
		.wr.opcode = IB_WR_RDMA_READ,
		.wr.sg_list = &sink, .wr.num_sge = 1,
		.remote_addr = rv->peer_addr + offsetof(struct hps_shown, sink),
		.rkey = rv->peer_rkey,
	};
	int err;

	/* When it repeats what got lost Soft-RoCE may complete a swap without its result. */
	((struct hps_shown *)rv->answer->buf.data)->word = 0;
	ib_dma_sync_single_for_device(link->dev->ibdev, rv->answer->addr,
				      sizeof(struct hps_shown), DMA_FROM_DEVICE);
	err = hps_post_wr(link, &swap.wr, NULL, 0);
	if (err)
		return err;
	rv->slot = link->sq_next;
	err = hps_post_slot(link, &read.wr, NULL, 0);
	if (err) {
		rv->slot = HPS_SQ_SIZE;
		return err;
	}
	/* See hps_post_probe(). */
	WRITE_ONCE(link->reading, link->reading + 1);
	return 0;
}

/**
 * hps_rendezvous_ask - before a large send is offered: ask whether the peer waits for it
 * @link: locked, established, with two free slots beyond %HPS_CTRL_SLOTS
 *
 * A peer that has not read what it was offered before does not wait, and is not asked.
 *
 * Return: true if the answer is awaited, with whose completion this comes by again.
 */
bool hps_rendezvous_ask(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;
	u32 at = link->credit.tx_used;

	lockdep_assert_held(&link->conn.lock);
	if (likely(!rv) || !rv->peer_told || link->tx_offers)
		return false;
	/* Perhaps one that nobody wants to know any more. */
	if (rv->slot != HPS_SQ_SIZE)
		return true;
	if (rv->over_at == at)
		return false;
	rv->over_at = at;
	rv->asked_at = at;
	rv->recalled = false;
	if (!hps_rendezvous_post(link))
		hps_stat_inc(link->conn.hn, HPS_STAT_SINK_ASKED);
	return true;
}

/**
 * hps_rendezvous_awaits - is the answer to what was asked?
 * @link: locked
 * @slot: of the send queue, in which something has completed
 *
 * Return: true if it was the RDMA Read.
 */
bool hps_rendezvous_awaits(const struct hps_link *link, u32 slot)
{
	lockdep_assert_held(&link->conn.lock);
	return link->rendezvous && link->rendezvous->slot == slot;
}

/**
 * hps_rendezvous_answered - what was asked has completed
 * @link: locked
 * @sink: where the peer waits, if it does
 *
 * Return: true if it waits for what we send next.
 */
bool hps_rendezvous_answered(struct hps_link *link, struct hps_sinkavail *sink)
{
	struct hps_rendezvous *rv = link->rendezvous;
	const struct hps_shown *answer = (void *)rv->answer->buf.data;

	lockdep_assert_held(&link->conn.lock);
	WRITE_ONCE(link->reading, link->reading - 1);
	rv->slot = HPS_SQ_SIZE;
	if (link->conn.shut)
		return false;
	ib_dma_sync_single_for_cpu(link->dev->ibdev, rv->answer->addr,
				   sizeof(*answer), DMA_FROM_DEVICE);
	if (answer->word != (HPS_WORD_WAITS | rv->asked_at))
		return false;
	hps_stat_inc(link->conn.hn, HPS_STAT_SINK_SWAPPED);
	*sink = answer->sink;
	return !rv->recalled && rv->asked_at == link->credit.tx_used;
}

/**
 * hps_rendezvous_recalled - SINKCANCEL came in: the peer waits no longer for what is next
 * @link: locked
 */
void hps_rendezvous_recalled(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;

	lockdep_assert_held(&link->conn.lock);
	if (!rv)
		return;
	rv->recalled = true;
	/* Its word may still say that it does. */
	rv->over_at = link->credit.tx_used;
}

/**
 * hps_rendezvous_put_key - the key of our word is to be destroyed
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_rendezvous_put_key(struct hps_link *link)
{
	spin_lock_bh(&link->conn.lock);
	if (link->rendezvous && link->rendezvous->key.mr)
		hps_key_put(link, &link->rendezvous->key);
	spin_unlock_bh(&link->conn.lock);
}

/**
 * hps_rendezvous_end - it was: nobody asks any more
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_rendezvous_end(struct hps_link *link)
{
	struct hps_rendezvous *rv = link->rendezvous;

	if (!rv)
		return;
	if (rv->memory)
		hps_rendezvous_unmap(link);
	if (rv->answer)
		hps_buf_free(&rv->answer->buf);
	spin_lock_bh(&link->conn.lock);
	link->rendezvous = NULL;
	spin_unlock_bh(&link->conn.lock);
	hps_mem_sub(rv);
	kfree(rv);
}
