/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONNECT_H
#define HPS_CONNECT_H

struct sock;
struct sockaddr;
struct socket;

int hps_connect(struct socket *sock, struct sockaddr *uaddr, int len,
		int flags);
int hps_disconnect(struct sock *sk, int flags);
void hps_connect_init(struct sock *sk);

#endif /* HPS_CONNECT_H */
