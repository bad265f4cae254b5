/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_OPTIONS_H
#define HPS_OPTIONS_H

#include <linux/sockptr.h>
#include <linux/types.h>
#include <net/sock.h>

#include <linux/hpsock.h>

struct hps_opt;

/* What becomes of an option. The words are those of the man page. */
enum hps_opt_effect {
	HPS_WORKS,	/* as on TCP, or nearly */
	HPS_KEPT,	/* a hint: set, read back, without effect */
	HPS_GET,	/* can be read only */
	HPS_REFUSED,	/* cannot work here, and says so */
};

/**
 * struct hps_opt_ops - how an option is set and read
 * @read: what setsockopt() brought, as an int, where hps_opt_read_int() is not how
 *	TCP reads it
 * @set: an int. NULL if it cannot be set. At SOL_SOCKET a check: 0 leaves the
 *	rest to the core
 * @set_name: a string instead
 * @get: fills @buf, of HPS_OPT_SIZE bytes and zeroed, returns the length or an
 *	errno
 * @whole: at SOL_SOCKET, @set is all there is to do
 *
 * The socket lock is held, but for @read; not at SOL_SOCKET.
 */
struct hps_opt_ops {
	int (*read)(int level, sockptr_t optval, unsigned int optlen, int *val);
	int (*set)(struct sock *sk, const struct hps_opt *opt, int val);
	int (*set_name)(struct sock *sk, const char *name);
	int (*get)(struct sock *sk, const struct hps_opt *opt, void *buf);
	bool whole;
};

/**
 * struct hps_opt - a row of the table in sockopt.c
 * @level: SOL_*
 * @name: number at that level
 * @effect: what becomes of it
 * @ops: how; NULL at SOL_SOCKET if the core alone does it
 * @kept: enum hps_opt_kept, for hps_opt_kept and hps_opt_flag; enum hps_tune for
 *	hps_own_tune and hps_own_live
 * @min: least value, for hps_opt_kept
 * @max: greatest value, likewise
 * @first: value to begin with, likewise
 */
struct hps_opt {
	u16 level;
	u16 name;
	u8 effect;
	const struct hps_opt_ops *ops;
	u8 kept;
	s16 min;
	s16 max;
	s16 first;
};

#define HPS_OPT_SIZE	max(sizeof(struct hpsock_info), sizeof(struct tcp_info))

int hps_opt_int(void *buf, int val);
int hps_opt_read_int(int level, sockptr_t optval, unsigned int optlen, int *val);

/* options_tcp.c */
extern const struct hps_opt_ops hps_tcp_nodelay, hps_tcp_cork, hps_tcp_maxseg,
	hps_tcp_keepidle, hps_tcp_keepintvl, hps_tcp_keepcnt, hps_tcp_syncnt,
	hps_tcp_linger2, hps_tcp_defer_accept, hps_tcp_window_clamp,
	hps_tcp_info, hps_tcp_congestion, hps_tcp_user_timeout,
	hps_tcp_notsent_lowat, hps_tcp_inq, hps_tcp_nothing, hps_tcp_ulp, hps_tcp_zero;

/* options_ip.c */
extern const struct hps_opt_ops hps_ip_tos, hps_ip_ttl, hps_ip_mtu,
	hps_ip_freebind, hps_ip_no_port, hps_ip_port_range, hps_ip_v6only,
	hps_ip_tclass, hps_ip_hops, hps_ip_mtu6, hps_ip_addrform;

/* options_own.c */
extern const struct hps_opt_ops hps_own_tune, hps_own_live, hps_own_info,
	hps_own_zerocopy, hps_own_split;

#endif /* HPS_OPTIONS_H */
