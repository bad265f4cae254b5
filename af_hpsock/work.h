/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_WORK_H
#define HPS_WORK_H

#include <linux/wait_bit.h>
#include <linux/workqueue.h>

/*
 * What opens connections or enlarges them, gives pages back, comes in place of a
 * reader; and what ends connections: a teardown waits for the device and may have
 * hundreds beside it, which nobody who connects should wait for.
 */
extern struct workqueue_struct *hps_wq;
extern struct workqueue_struct *hps_teardown_wq;

/**
 * hps_wake - wake those who wait for a variable to change
 * @var: it was stored to before
 *
 * Context: any. wake_up_var() looks whether somebody waits without a lock, and that
 * look must not come before the store.
 */
static inline void hps_wake(void *var)
{
	smp_mb(); /* pairs with set_current_state() of who waits */
	wake_up_var(var);
}

#endif /* HPS_WORK_H */
