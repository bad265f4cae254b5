/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_BIND_H
#define HPS_BIND_H

struct sock;
struct sockaddr;
struct socket;

int hps_bind(struct socket *sock, struct sockaddr *uaddr, int len);
int hps_autobind(struct sock *sk);

#endif /* HPS_BIND_H */
