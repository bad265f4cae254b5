// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options above SOL_SOCKET, which the core handles, and ioctls. The
 * table says what each option does here; what is not in it does not exist, and
 * says so with ENOPROTOOPT.
 */
#include <linux/sockios.h>
#include <linux/uaccess.h>
#include <asm/ioctls.h>
#include <net/tcp.h>

#include <linux/hpsock.h>
#include "conn.h"
#include "sock.h"

/**
 * struct hps_opt - what a socket option does
 * @level: SOL_*
 * @name: number at that level
 * @set: socket lock held; NULL if it can only be read
 * @get: fills @buf, returns the length or an errno; socket lock held
 */
struct hps_opt {
	int level;
	int name;
	int (*set)(struct sock *sk, int val);
	int (*get)(struct sock *sk, void *buf);
};

#define HPS_OPT_MAX	max(sizeof(struct hpsock_info), sizeof(struct tcp_info))

static int hps_opt_int(void *buf, int val)
{
	*(int *)buf = val;
	return sizeof(int);
}

static void hps_opt_flush(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!conn)
		return;
	spin_lock_bh(&conn->lock);
	conn->corked = hps_sk(sk)->cork;
	hps_stream_push(conn);
	spin_unlock_bh(&conn->lock);
}

/* Every message is sent at once while there are credits: this flushes. */
static int hps_set_nodelay(struct sock *sk, int val)
{
	hps_sk(sk)->nodelay = !!val;
	if (val)
		hps_opt_flush(sk);
	return 0;
}

static int hps_get_nodelay(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->nodelay);
}

static int hps_set_cork(struct sock *sk, int val)
{
	hps_sk(sk)->cork = !!val;
	hps_opt_flush(sk);
	return 0;
}

static int hps_get_cork(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->cork);
}

static int hps_set_keepidle(struct sock *sk, int val)
{
	if (val < 1 || val > MAX_TCP_KEEPIDLE)
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->keepidle, val * HZ);
	hps_probe_changed(sk);
	return 0;
}

static int hps_get_keepidle(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, hps_probe_idle(sk) / HZ);
}

static int hps_set_keepintvl(struct sock *sk, int val)
{
	if (val < 1 || val > MAX_TCP_KEEPINTVL)
		return -EINVAL;
	hps_sk(sk)->keepintvl = val;
	return 0;
}

static int hps_get_keepintvl(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->keepintvl ?:
		READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_intvl) / HZ);
}

static int hps_set_keepcnt(struct sock *sk, int val)
{
	if (val < 1 || val > MAX_TCP_KEEPCNT)
		return -EINVAL;
	hps_sk(sk)->keepcnt = val;
	return 0;
}

static int hps_get_keepcnt(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->keepcnt ?:
		READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_probes));
}

/* The payload of one message is what a segment is to TCP. */
static int hps_get_maxseg(struct sock *sk, void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	return hps_opt_int(buf, conn && conn->tx_msg_max ?
				conn->tx_msg_max : TCP_MSS_DEFAULT);
}

/* Only what is known; RDMA hardware keeps round trips to itself. */
static int hps_get_tcp_info(struct sock *sk, void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hpsock_info own = {};
	struct tcp_info *info = buf;

	memset(info, 0, sizeof(*info));
	info->tcpi_state = sk->sk_state;
	if (sk->sk_state == TCP_LISTEN) {
		info->tcpi_unacked = READ_ONCE(sk->sk_ack_backlog);
		info->tcpi_sacked = READ_ONCE(sk->sk_max_ack_backlog);
	}
	if (!conn)
		return sizeof(*info);
	spin_lock_bh(&conn->lock);
	conn->ops->info(conn, &own);
	info->tcpi_snd_mss = own.tx_msg_size;
	info->tcpi_rcv_mss = own.rx_msg_size;
	info->tcpi_advmss = own.rx_msg_size;
	info->tcpi_snd_cwnd = own.tx_credits;
	info->tcpi_bytes_sent = conn->tx_bytes;
	info->tcpi_bytes_acked = conn->tx_bytes - conn->tx_unacked;
	info->tcpi_bytes_received = conn->rx_bytes;
	info->tcpi_data_segs_out = conn->tx_msgs;
	info->tcpi_data_segs_in = conn->rx_msgs;
	info->tcpi_notsent_bytes = conn->tx_unsent;
	info->tcpi_rcv_space = own.rx_window * own.rx_msg_size;
	spin_unlock_bh(&conn->lock);
	return sizeof(*info);
}

/* None, which is what a TCP socket answers before it is given one. */
static int hps_get_ulp(struct sock *sk, void *buf)
{
	return 0;
}

static int hps_set_v6only(struct sock *sk, int val)
{
	if (inet_sk(sk)->inet_num)
		return -EINVAL;
	sk->sk_ipv6only = !!val;
	return 0;
}

static int hps_get_v6only(struct sock *sk, void *buf)
{
	return hps_opt_int(buf, sk->sk_ipv6only);
}

static int hps_get_info(struct sock *sk, void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hpsock_info *info = buf;

	memset(info, 0, sizeof(*info));
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

static const struct hps_opt hps_opts[] = {
	{ SOL_TCP, TCP_NODELAY, hps_set_nodelay, hps_get_nodelay },
	{ SOL_TCP, TCP_CORK, hps_set_cork, hps_get_cork },
	{ SOL_TCP, TCP_KEEPIDLE, hps_set_keepidle, hps_get_keepidle },
	{ SOL_TCP, TCP_KEEPINTVL, hps_set_keepintvl, hps_get_keepintvl },
	{ SOL_TCP, TCP_KEEPCNT, hps_set_keepcnt, hps_get_keepcnt },
	{ SOL_TCP, TCP_MAXSEG, NULL, hps_get_maxseg },
	{ SOL_TCP, TCP_INFO, NULL, hps_get_tcp_info },
	{ SOL_TCP, TCP_ULP, NULL, hps_get_ulp },
	{ SOL_IPV6, IPV6_V6ONLY, hps_set_v6only, hps_get_v6only },
	{ SOL_HPSOCK, HPSOCK_INFO, NULL, hps_get_info },
};

static const struct hps_opt *hps_opt_find(int level, int name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hps_opts); i++)
		if (hps_opts[i].level == level && hps_opts[i].name == name)
			return &hps_opts[i];
	return NULL;
}

/**
 * hps_setsockopt - proto_ops.setsockopt, for levels other than SOL_SOCKET
 * @sock: the socket
 * @level: SOL_*
 * @optname: option
 * @optval: an int for every option there is
 * @optlen: at least that of an int
 *
 * Context: process. Return: 0, -ENOPROTOOPT, -EINVAL, -EFAULT.
 */
int hps_setsockopt(struct socket *sock, int level, int optname,
		   sockptr_t optval, unsigned int optlen)
{
	const struct hps_opt *opt = hps_opt_find(level, optname);
	struct sock *sk = sock->sk;
	int val, err;

	if (!opt || !opt->set)
		return -ENOPROTOOPT;
	if (optlen < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	lock_sock(sk);
	err = opt->set(sk, val);
	release_sock(sk);
	return err;
}

/**
 * hps_getsockopt - proto_ops.getsockopt, for levels other than SOL_SOCKET
 * @sock: the socket
 * @level: SOL_*
 * @optname: option
 * @optval: where to; cut off at the length given
 * @optlen: room, and then the length
 *
 * Context: process. Return: 0, -ENOPROTOOPT, -EINVAL, -EFAULT.
 */
int hps_getsockopt(struct socket *sock, int level, int optname,
		   char __user *optval, int __user *optlen)
{
	const struct hps_opt *opt = hps_opt_find(level, optname);
	struct sock *sk = sock->sk;
	int len, n;
	void *buf;

	if (!opt)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	buf = kzalloc(HPS_OPT_MAX, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	lock_sock(sk);
	n = opt->get(sk, buf);
	release_sock(sk);
	if (n >= 0) {
		len = min(len, n);
		n = 0;
		if (put_user(len, optlen) || copy_to_user(optval, buf, len))
			n = -EFAULT;
	}
	kfree(buf);
	return n;
}

/**
 * hps_sk_ioctl - proto.ioctl, which io_uring's socket commands call
 * @sk: the socket
 * @cmd: SIOCINQ (FIONREAD), SIOCOUTQ, SIOCOUTQNSD
 * @val: the number of bytes
 *
 * Context: process. Return: 0, -EINVAL in TCP_LISTEN, -ENOIOCTLCMD.
 */
int hps_sk_ioctl(struct sock *sk, int cmd, int *val)
{
	struct hps_conn *conn;

	if (cmd != SIOCINQ && cmd != SIOCOUTQ && cmd != SIOCOUTQNSD)
		return -ENOIOCTLCMD;
	if (sk->sk_state == TCP_LISTEN)
		return -EINVAL;
	*val = 0;
	lock_sock(sk);
	conn = hps_sk_conn(sk);
	if (conn) {
		spin_lock_bh(&conn->lock);
		if (cmd == SIOCINQ)
			*val = conn->rx_avail;
		else if (cmd == SIOCOUTQNSD)
			*val = conn->tx_unsent;
		else
			*val = conn->tx_unsent + conn->tx_unacked;
		spin_unlock_bh(&conn->lock);
	}
	release_sock(sk);
	return 0;
}

/**
 * hps_ioctl - proto_ops.ioctl
 * @sock: the socket
 * @cmd: as for hps_sk_ioctl()
 * @arg: pointer to an int
 *
 * Context: process. Return: as hps_sk_ioctl(), -EFAULT.
 */
int hps_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	int val, err;

	err = hps_sk_ioctl(sock->sk, cmd, &val);
	return err ?: put_user(val, (int __user *)arg);
}
