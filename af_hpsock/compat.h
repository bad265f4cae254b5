/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between the kernels this module builds for, and nothing
 * else. Debian's 6.1 carries many backports: what is asked here was compiled
 * on both, version numbers alone say little.
 */
#ifndef HPS_COMPAT_H
#define HPS_COMPAT_H

#include <linux/net.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <net/sock.h>

#include "sock.h"

/* 6.10 put the arguments of accept() into a structure, and a result for io_uring. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static inline int hps_accept_compat(struct socket *sock, struct socket *newsock,
				    struct proto_accept_arg *arg)
{
	int err = hps_accept(sock, newsock, arg->flags, arg->kern);

	if (!err)
		arg->is_empty = !hps_queue_has_ready(sock->sk);
	return err;
}
#else
#define hps_accept_compat	hps_accept
#endif

/* 6.5 removed sendpage; before it splice needs a method, and this one copies. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define HPS_PROTO_OPS_COMPAT	.sendpage = sock_no_sendpage,
#else
#define HPS_PROTO_OPS_COMPAT
#endif

/*
 * 6.5 lets a protocol say where ipv6_pinfo is; before, it is the last member.
 * And its ioctl no longer writes to user memory, so that io_uring can call it.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define HPS_PROTO_COMPAT	\
	.ipv6_pinfo_offset = offsetof(struct hps_sock, inet6),	\
	.ioctl = hps_sk_ioctl,
#else
#define HPS_PROTO_COMPAT
#endif

/* 6.16 renamed it. */
#ifndef from_timer
#define from_timer	timer_container_of
#endif

#endif /* HPS_COMPAT_H */
