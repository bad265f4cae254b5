/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SOCKOPT_H
#define HPS_SOCKOPT_H

#include <linux/sockptr.h>

struct sock;
struct socket;

void hps_opt_init(struct sock *sk);
int hps_setsockopt(struct socket *sock, int level, int optname,
		   sockptr_t optval, unsigned int optlen);
int hps_getsockopt(struct socket *sock, int level, int optname,
		   char __user *optval, int __user *optlen);
int hps_set_rcvlowat(struct sock *sk, int val);
int hps_sk_ioctl(struct sock *sk, int cmd, int *val);
int hps_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);

#endif /* HPS_SOCKOPT_H */
