/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_LISTEN_H
#define HPS_LISTEN_H

#include <linux/types.h>

struct sock;
struct socket;

int hps_listen(struct socket *sock, int backlog);
void hps_unlisten(struct sock *sk);
int hps_accept(struct socket *sock, struct socket *newsock, int flags,
	       bool kern);

#endif /* HPS_LISTEN_H */
