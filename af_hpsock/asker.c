// SPDX-License-Identifier: GPL-2.0
/*
 * iWARP: a thread that sends the request of an attempt to connect.
 *
 * Soft-iWARP sleeps in rdma_connect() until TCP is connected, with the handler mutex, and
 * knows nothing of our deadline. No workqueue has room for all who may do that, and a thread
 * can be made to give up. It is there until the connection is established, as what is left
 * of it takes more memory than that, or until hps_cm_stop().
 *
 * One that is given up is not killed at once. Until Soft-iWARP has accepted a TCP connection,
 * that has the listener's sk_user_data, and if it ends before, siw_cm_llp_state_change() ends
 * the listener: no request comes in any more, and who closes it meets freed memory. Any
 * client that gives up could do that to its server. So the thread may finish what takes no
 * time if TCP is connected already; and what was asked stays until it is answered.
 * iw_cm_disconnect() would wait for the answer as well, but with a worker.
 *
 * hps_conn.lock guards hps_link.asker and what it points to.
 */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "asker.h"
#include "compat.h"
#include "link.h"
#include "share.h"
#include "work.h"

/* Until the request is sent, once the connection is shut. */
#define HPS_ASKER_SENDS		(HZ / 2)

/* Until it is answered: longer than iWARP devices wait. */
#define HPS_ASKER_HEARS		(15 * HZ)

/**
 * struct hps_asker - who asks
 * @link: for which
 * @ask: sends the request; returns 0, or an errno when it has ended the connection
 * @task: the thread, referenced
 * @again: queues the teardown once more
 * @open: the request was not answered yet, nor failed
 * @asked: rdma_connect() has returned, so an answer or an error is sure to come
 * @awaited: what the teardown has waited for: 1 the request, 2 the answer
 */
struct hps_asker {
	struct hps_link *link;
	int (*ask)(struct hps_link *link);
	struct task_struct *task;
	struct timer_list again;
	bool open;
	bool asked;
	u8 awaited;
};

/* Returns 0 or a negative errno, for nobody if the connection is shut. */
static int hps_asker_ask(struct hps_asker *asker)
{
	struct hps_link *link = asker->link;
	int err;

	/* A signal that came before was lost. */
	if (READ_ONCE(link->conn.shut))
		return -EINTR;
	err = asker->ask(link);
	spin_lock_bh(&link->conn.lock);
	asker->asked = !err;
	spin_unlock_bh(&link->conn.lock);
	return err;
}

static int hps_asker_run(void *arg)
{
	struct hps_asker *asker = arg;
	struct hps_link *link = asker->link;

	allow_kernel_signal(SIGKILL);
	if (hps_asker_ask(asker))
		hps_asker_heard(link);
	hps_share_asked(link->receives.share);
	return 0;
}

static void hps_asker_again(struct timer_list *t)
{
	struct hps_asker *asker = from_timer(asker, t, again);

	queue_work(hps_teardown_wq, &asker->link->teardown);
}

static struct hps_asker *hps_asker_new(struct hps_link *link,
				       int (*ask)(struct hps_link *link))
{
	struct hps_asker *asker = kzalloc(sizeof(*asker), GFP_KERNEL);

	if (!asker)
		return NULL;
	asker->link = link;
	asker->ask = ask;
	asker->open = true;
	timer_setup(&asker->again, hps_asker_again, 0);
	asker->task = kthread_create(hps_asker_run, asker, "hpsock_ask");
	if (IS_ERR(asker->task)) {
		kfree(asker);
		return NULL;
	}
	get_task_struct(asker->task);
	return asker;
}

/**
 * hps_asker_begin - send the request, by a thread
 * @link: with a queue pair; has no asker
 * @ask: sends it, and may sleep until SIGKILL comes; returns 0, or a negative errno when it
 *	has ended the connection
 *
 * Context: process, may sleep.
 * Return: 0, or -EAGAIN if there cannot be another thread now.
 */
int hps_asker_begin(struct hps_link *link, int (*ask)(struct hps_link *link))
{
	struct hps_asker *asker;

	if (!hps_share_ask(link->receives.share))
		return -EAGAIN;
	asker = hps_asker_new(link, ask);
	if (!asker) {
		hps_share_asked(link->receives.share);
		return -EAGAIN;
	}
	spin_lock_bh(&link->conn.lock);
	link->asker = asker;
	spin_unlock_bh(&link->conn.lock);
	wake_up_process(asker->task);
	return 0;
}

/**
 * hps_asker_heard - the peer has answered, or will not
 * @link: whose attempt has ended
 *
 * Context: process.
 */
void hps_asker_heard(struct hps_link *link)
{
	struct hps_asker *asker;

	spin_lock_bh(&link->conn.lock);
	asker = link->asker;
	if (asker) {
		asker->open = false;
		if (timer_delete(&asker->again))
			queue_work(hps_teardown_wq, &link->teardown);
	}
	spin_unlock_bh(&link->conn.lock);
}

/**
 * hps_asker_await - does an attempt to connect have to wait for its answer?
 * @link: shut; its teardown runs
 *
 * Context: process.
 * Return: true if the teardown will be queued again, when that is done.
 */
bool hps_asker_await(struct hps_link *link)
{
	struct hps_asker *asker;
	bool await;

	spin_lock_bh(&link->conn.lock);
	asker = link->asker;
	await = asker && asker->open && asker->awaited <= asker->asked;
	if (await) {
		asker->awaited = 1 + asker->asked;
		mod_timer(&asker->again, jiffies +
			  (asker->asked ? HPS_ASKER_HEARS : HPS_ASKER_SENDS));
	}
	spin_unlock_bh(&link->conn.lock);
	return await;
}

/**
 * hps_asker_end - the thread, if there is one, ends
 * @link: whose teardown does not wait for its timer: this is the teardown, or it was heard
 * @kill: at once
 *
 * Context: process, may sleep.
 */
void hps_asker_end(struct hps_link *link, bool kill)
{
	struct hps_asker *asker;

	spin_lock_bh(&link->conn.lock);
	asker = link->asker;
	link->asker = NULL;
	spin_unlock_bh(&link->conn.lock);
	if (!asker)
		return;
	if (kill)
		send_sig(SIGKILL, asker->task, 1);
	/* One that never ran did not count itself off. */
	if (kthread_stop(asker->task))
		hps_share_asked(link->receives.share);
	put_task_struct(asker->task);
	timer_delete_sync(&asker->again);
	kfree(asker);
}
