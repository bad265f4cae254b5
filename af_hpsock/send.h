/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SEND_H
#define HPS_SEND_H

#include <linux/types.h>

struct msghdr;
struct sock;
struct socket;

int hps_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void hps_send_flush(struct sock *sk);

#endif /* HPS_SEND_H */
