/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CLOSE_H
#define HPS_CLOSE_H

struct sock;
struct socket;

int hps_shutdown(struct socket *sock, int how);
void hps_close(struct sock *sk, long timeout);

#endif /* HPS_CLOSE_H */
