/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_WORK_H
#define HPS_WORK_H

#include <linux/wait_bit.h>
#include <linux/workqueue.h>

/*
 * A workqueue runs some hundred items at a time, so what may be held up does not share
 * one with what must not be. By what an item waits for:
 *
 *   hps_connect_wq	the device: attempts to connect. What waits for the other host
 *			is a thread of its own (asker.c)
 *   hps_program_wq	memory, that of a program, too: what grows, shrinks, gives pages
 *			back, tries to connect again. None of it waits for a socket's lock
 *			(hps_sock_own()). One item sleeps, hps_shrink_pressure
 *   hps_fetch_wq	the peer, whose memory is read when no reader comes for it; nor does
 *			this wait for a socket's lock
 *   hps_teardown_wq	the device alone: what ends connections, and so lets a device go
 */
extern struct workqueue_struct *hps_connect_wq;
extern struct workqueue_struct *hps_program_wq;
extern struct workqueue_struct *hps_fetch_wq;
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
