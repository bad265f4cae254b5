// SPDX-License-Identifier: GPL-2.0
/*
 * SOL_HPSOCK: what a socket tells of its connection, and its own values of the
 * tunables. These count for connections to be made, by the socket itself or, if it
 * listens, for it.
 */
#include "conn.h"
#include "options.h"
#include "param.h"
#include "sock.h"

static int hps_own_get_info(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hpsock_info *info = buf;

	info->size = sizeof(*info);
	info->state = sk->sk_state;
	if (!conn)
		return sizeof(*info);
	spin_lock_bh(&conn->lock);
	info->transport = conn->ops->id;
	info->tx_msgs = conn->tx_msgs;
	info->rx_msgs = conn->rx_msgs;
	info->tx_bytes = conn->tx_bytes;
	info->rx_bytes = conn->rx_bytes;
	conn->ops->info(conn, info);
	spin_unlock_bh(&conn->lock);
	return sizeof(*info);
}

const struct hps_opt_ops hps_own_info = {
	.get = hps_own_get_info,
};

static int hps_own_set_tune(struct sock *sk, const struct hps_opt *opt, int val)
{
	if (hps_sk_conn(sk))
		return -EISCONN;
	return hps_tune_set(&hps_sk(sk)->tuning, opt->kept, val);
}

/* What is looked at in each send can be changed at any time. */
static int hps_own_set_live(struct sock *sk, const struct hps_opt *opt, int val)
{
	return hps_tune_set(&hps_sk(sk)->tuning, opt->kept, val);
}

static int hps_own_get_tune(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	return hps_opt_int(buf, hps_tuned(&hps_sk(sk)->tuning, opt->kept));
}

const struct hps_opt_ops hps_own_tune = {
	.set = hps_own_set_tune,
	.get = hps_own_get_tune,
};

const struct hps_opt_ops hps_own_live = {
	.set = hps_own_set_live,
	.get = hps_own_get_tune,
};

/* As the core's: of the families it lets have it, this is none. */
static int hps_own_set_zerocopy(struct sock *sk, const struct hps_opt *opt,
				int val)
{
	if (val < 0 || val > 1)
		return -EINVAL;
	sock_valbool_flag(sk, SOCK_ZEROCOPY, val);
	return 0;
}

static int hps_own_get_zerocopy(struct sock *sk, const struct hps_opt *opt,
				void *buf)
{
	return hps_opt_int(buf, sock_flag(sk, SOCK_ZEROCOPY));
}

static int hps_own_set_split(struct sock *sk, const struct hps_opt *opt,
			     int val)
{
	if (sk->sk_type != SOCK_SEQPACKET)
		return -EOPNOTSUPP;
	if (val < 0 || val > 1)
		return -EINVAL;
	hps_sk(sk)->split = val;
	return 0;
}

static int hps_own_get_split(struct sock *sk, const struct hps_opt *opt,
			     void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->split);
}

const struct hps_opt_ops hps_own_split = {
	.set = hps_own_set_split,
	.get = hps_own_get_split,
};

const struct hps_opt_ops hps_own_zerocopy = {
	.set = hps_own_set_zerocopy,
	.get = hps_own_get_zerocopy,
	.whole = true,
};
