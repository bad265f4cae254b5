// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options of SOL_TCP; the table in sockopt.c says what each does.
 */
#include <linux/math64.h>
#include <net/tcp.h>

#include "conn.h"
#include "options.h"
#include "param.h"
#include "probe.h"
#include "queue.h"
#include "send.h"
#include "sock.h"

/* Every message is sent at once while there are credits: this flushes. */
static int hps_tcp_set_nodelay(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	hps_sk(sk)->nodelay = !!val;
	if (val)
		hps_send_flush(sk);
	return 0;
}

static int hps_tcp_get_nodelay(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->nodelay);
}

const struct hps_opt_ops hps_tcp_nodelay = {
	.set = hps_tcp_set_nodelay,
	.get = hps_tcp_get_nodelay,
};

static int hps_tcp_set_cork(struct sock *sk, const struct hps_opt *opt, int val)
{
	hps_sk(sk)->cork = !!val;
	if (!val)
		hps_send_flush(sk);
	return 0;
}

static int hps_tcp_get_cork(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->cork);
}

const struct hps_opt_ops hps_tcp_cork = {
	.set = hps_tcp_set_cork,
	.get = hps_tcp_get_cork,
};

/* It counts for connections made afterwards: TCP tells its peer in the SYN. */
static int hps_tcp_set_maxseg(struct sock *sk, const struct hps_opt *opt,
			      int val)
{
	if (val && (val < TCP_MIN_MSS || val > MAX_TCP_WINDOW))
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->user_mss, val);
	return 0;
}

static int hps_tcp_get_maxseg(struct sock *sk, const struct hps_opt *opt,
			      void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	u32 mss = conn ? READ_ONCE(conn->tx_msg_max) : 0;
	u16 user_mss = hps_sk(sk)->user_mss;

	if (user_mss && ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN)))
		return hps_opt_int(buf, user_mss);
	return hps_opt_int(buf, mss ?: TCP_MSS_DEFAULT);
}

const struct hps_opt_ops hps_tcp_maxseg = {
	.set = hps_tcp_set_maxseg,
	.get = hps_tcp_get_maxseg,
};

static int hps_tcp_set_keepidle(struct sock *sk, const struct hps_opt *opt,
				int val)
{
	if (val < 1 || val > MAX_TCP_KEEPIDLE)
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->keepidle, val * HZ);
	hps_probe_changed(sk);
	return 0;
}

static int hps_tcp_get_keepidle(struct sock *sk, const struct hps_opt *opt,
				void *buf)
{
	return hps_opt_int(buf, hps_probe_idle(sk) / HZ);
}

const struct hps_opt_ops hps_tcp_keepidle = {
	.set = hps_tcp_set_keepidle,
	.get = hps_tcp_get_keepidle,
};

static int hps_tcp_set_keepintvl(struct sock *sk, const struct hps_opt *opt,
				 int val)
{
	if (val < 1 || val > MAX_TCP_KEEPINTVL)
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->keepintvl, val * HZ);
	hps_probe_changed(sk);
	return 0;
}

static int hps_tcp_get_keepintvl(struct sock *sk, const struct hps_opt *opt,
				 void *buf)
{
	return hps_opt_int(buf, hps_probe_interval(sk) / HZ);
}

const struct hps_opt_ops hps_tcp_keepintvl = {
	.set = hps_tcp_set_keepintvl,
	.get = hps_tcp_get_keepintvl,
};

static int hps_tcp_set_keepcnt(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	if (val < 1 || val > MAX_TCP_KEEPCNT)
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->keepcnt, val);
	hps_probe_changed(sk);
	return 0;
}

static int hps_tcp_get_keepcnt(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	return hps_opt_int(buf, hps_probe_count(sk));
}

const struct hps_opt_ops hps_tcp_keepcnt = {
	.set = hps_tcp_set_keepcnt,
	.get = hps_tcp_get_keepcnt,
};

static int hps_tcp_set_user_timeout(struct sock *sk, const struct hps_opt *opt,
				    int val)
{
	if (val < 0)
		return -EINVAL;
	WRITE_ONCE(hps_sk(sk)->user_timeout, val);
	hps_probe_changed(sk);
	return 0;
}

static int hps_tcp_get_user_timeout(struct sock *sk, const struct hps_opt *opt,
				    void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->user_timeout);
}

const struct hps_opt_ops hps_tcp_user_timeout = {
	.set = hps_tcp_set_user_timeout,
	.get = hps_tcp_get_user_timeout,
};

/* How long the handshake may take: as long as TCP's with so many retries. */
static int hps_tcp_set_syncnt(struct sock *sk, const struct hps_opt *opt,
			      int val)
{
	if (val < 1 || val > MAX_TCP_SYNCNT)
		return -EINVAL;
	hps_sk(sk)->syncnt = val;
	return 0;
}

static int hps_tcp_get_syncnt(struct sock *sk, const struct hps_opt *opt,
			      void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->syncnt ?:
		READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_syn_retries));
}

const struct hps_opt_ops hps_tcp_syncnt = {
	.set = hps_tcp_set_syncnt,
	.get = hps_tcp_get_syncnt,
};

static int hps_tcp_set_linger2(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	WRITE_ONCE(hps_sk(sk)->linger2, clamp(val, -1, TCP_FIN_TIMEOUT_MAX / HZ));
	return 0;
}

static int hps_tcp_get_linger2(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->linger2 ?: READ_ONCE(hps_fin_timeout));
}

const struct hps_opt_ops hps_tcp_linger2 = {
	.set = hps_tcp_set_linger2,
	.get = hps_tcp_get_linger2,
};

/* In retries of a SYN-ACK, as TCP counts and reports it. */
static int hps_tcp_set_defer_accept(struct sock *sk, const struct hps_opt *opt,
				    int val)
{
	u8 tries = 0;

	if (val > 0)
		while (++tries < U8_MAX &&
		       hps_conn_retry_time(tries - 1) < (unsigned long)val * HZ)
			;
	WRITE_ONCE(hps_sk(sk)->defer_accept, tries);
	return 0;
}

static int hps_tcp_get_defer_accept(struct sock *sk, const struct hps_opt *opt,
				    void *buf)
{
	u8 tries = hps_sk(sk)->defer_accept;

	return hps_opt_int(buf, tries ? hps_conn_retry_time(tries - 1) / HZ : 0);
}

const struct hps_opt_ops hps_tcp_defer_accept = {
	.set = hps_tcp_set_defer_accept,
	.get = hps_tcp_get_defer_accept,
};

/* What the peer may have outstanding: beside SO_RCVBUF, a second limit. */
static int hps_tcp_set_window_clamp(struct sock *sk, const struct hps_opt *opt,
				    int val)
{
	if (!val && sk->sk_state != TCP_CLOSE)
		return -EINVAL;
	if (val)
		val = val < SOCK_MIN_RCVBUF / 2 ? SOCK_MIN_RCVBUF / 2 : val;
	WRITE_ONCE(hps_sk(sk)->window_clamp, val);
	return 0;
}

static int hps_tcp_get_window_clamp(struct sock *sk, const struct hps_opt *opt,
				    void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->window_clamp);
}

const struct hps_opt_ops hps_tcp_window_clamp = {
	.set = hps_tcp_set_window_clamp,
	.get = hps_tcp_get_window_clamp,
};

static int hps_tcp_set_notsent_lowat(struct sock *sk, const struct hps_opt *opt,
				     int val)
{
	WRITE_ONCE(hps_sk(sk)->notsent_lowat, val);
	sk->sk_write_space(sk);
	return 0;
}

static int hps_tcp_get_notsent_lowat(struct sock *sk, const struct hps_opt *opt,
				     void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->notsent_lowat);
}

const struct hps_opt_ops hps_tcp_notsent_lowat = {
	.set = hps_tcp_set_notsent_lowat,
	.get = hps_tcp_get_notsent_lowat,
};

static int hps_tcp_set_inq(struct sock *sk, const struct hps_opt *opt, int val)
{
	if (val < 0 || val > 1)
		return -EINVAL;
	hps_sk(sk)->inq = val;
	return 0;
}

static int hps_tcp_get_inq(struct sock *sk, const struct hps_opt *opt,
			   void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->inq);
}

const struct hps_opt_ops hps_tcp_inq = {
	.set = hps_tcp_set_inq,
	.get = hps_tcp_get_inq,
};

/*
 * The device has its own, which nobody can choose here; who saves what is there
 * and sets it again is served.
 */
static const char hps_tcp_ca[TCP_CA_NAME_MAX] = "none";

static int hps_tcp_set_congestion(struct sock *sk, const char *name)
{
	return strcmp(name, hps_tcp_ca) ? -ENOENT : 0;
}

static int hps_tcp_get_congestion(struct sock *sk, const struct hps_opt *opt,
				  void *buf)
{
	memcpy(buf, hps_tcp_ca, sizeof(hps_tcp_ca));
	return sizeof(hps_tcp_ca);
}

const struct hps_opt_ops hps_tcp_congestion = {
	.set_name = hps_tcp_set_congestion,
	.get = hps_tcp_get_congestion,
};

static u32 hps_tcp_ago(unsigned long when)
{
	return jiffies_to_msecs(jiffies - when);
}

/* Only what is known; RDMA hardware keeps round trips to itself. */
static int hps_tcp_get_info(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hpsock_info own = {};
	struct tcp_info *info = buf;

	info->tcpi_state = sk->sk_state;
	if (sk->sk_state == TCP_LISTEN) {
		info->tcpi_unacked = hps_queue_count_ready(sk);
		info->tcpi_sacked = READ_ONCE(sk->sk_max_ack_backlog);
	}
	if (!conn)
		return sizeof(*info);
	spin_lock_bh(&conn->lock);
	conn->ops->info(conn, &own);
	info->tcpi_snd_mss = own.tx_msg_size;
	info->tcpi_rcv_mss = own.rx_msg_size;
	info->tcpi_advmss = own.rx_msg_size;
	info->tcpi_pmtu = hps_conn_mtu(conn);
	info->tcpi_snd_cwnd = own.tx_credits;
	info->tcpi_snd_wnd = min_t(u64, U32_MAX, mul_u32_u32(own.tx_credits,
							     own.tx_msg_size));
	/* What was lost with the connection is not under way, as after tcp_done_with_error(). */
	if (!conn->ended)
		info->tcpi_unacked = DIV_ROUND_UP(conn->tx_unacked, own.tx_msg_size ?: 1);
	info->tcpi_bytes_sent = conn->tx_bytes;
	info->tcpi_bytes_acked = conn->tx_bytes - hps_conn_tx_open(conn);
	info->tcpi_bytes_received = conn->rx_bytes;
	info->tcpi_data_segs_out = conn->tx_msgs;
	info->tcpi_data_segs_in = conn->rx_msgs;
	info->tcpi_notsent_bytes = conn->tx_unsent;
	info->tcpi_rcv_space = own.rx_window * own.rx_msg_size;
	if (conn->tx_msg_max) {
		info->tcpi_last_data_sent = hps_tcp_ago(conn->tx_last);
		info->tcpi_last_data_recv = hps_tcp_ago(conn->rx_last);
		info->tcpi_last_ack_recv = hps_tcp_ago(conn->heard);
	}
	spin_unlock_bh(&conn->lock);
	return sizeof(*info);
}

const struct hps_opt_ops hps_tcp_info = {
	.get = hps_tcp_get_info,
};

/* TCP_ULP without one, TCP_CC_INFO of an algorithm that has no information to give. */
static int hps_tcp_get_nothing(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	return 0;
}

const struct hps_opt_ops hps_tcp_nothing = {
	.get = hps_tcp_get_nothing,
};

/* The error by which programs learn of TCP that its kernel has no kTLS. */
static int hps_tcp_set_ulp(struct sock *sk, const char *name)
{
	return -ENOENT;
}

const struct hps_opt_ops hps_tcp_ulp = {
	.set_name = hps_tcp_set_ulp,
	.get = hps_tcp_get_nothing,
};

static int hps_tcp_get_zero(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	return hps_opt_int(buf, 0);
}

const struct hps_opt_ops hps_tcp_zero = {
	.get = hps_tcp_get_zero,
};
