/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RETRY_H
#define HPS_RETRY_H

#include <linux/types.h>

struct sock;

#define HPS_TRIES_ANY	U8_MAX	/* attempts, as many as there is time for */

void hps_retry_begin(struct sock *sk, unsigned long deadline);
void hps_retry_cancel(struct sock *sk);
bool hps_retry_again(struct sock *sk, u8 tries);
void hps_retry_later(struct sock *sk);

#endif /* HPS_RETRY_H */
