// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options and ioctls. The table says what each option does here; what is
 * not in it does not exist, and says so with ENOPROTOOPT. The man page has the
 * same rows, which selftests/vm/checks/options checks.
 *
 * SOL_SOCKET belongs to the core, for this family as for any. Where it would
 * accept what cannot work, a row has a check in front of it, if the kernel lets
 * a family do that (SOCK_CUSTOM_SOCKOPT).
 */
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/uaccess.h>
#include <asm/ioctls.h>
#include <net/inet_common.h>
#include <net/tcp.h>

#include "compat.h"
#include "conn.h"
#include "options.h"
#include "poll.h"
#include "record.h"
#include "sock.h"
#include "sockopt.h"
#include "urgent.h"

/**
 * hps_opt_int - answer getsockopt() with an int
 * @buf: of &struct hps_opt_ops.get
 * @val: the answer
 *
 * Context: any.
 * Return: its length.
 */
int hps_opt_int(void *buf, int val)
{
	*(int *)buf = val;
	return sizeof(int);
}

static int hps_opt_set_kept(struct sock *sk, const struct hps_opt *opt, int val)
{
	if (val < opt->min || val > opt->max)
		return -EINVAL;
	hps_sk(sk)->kept[opt->kept] = val;
	return 0;
}

static int hps_opt_set_flag(struct sock *sk, const struct hps_opt *opt, int val)
{
	hps_sk(sk)->kept[opt->kept] = !!val;
	return 0;
}

static int hps_opt_get_kept(struct sock *sk, const struct hps_opt *opt,
			    void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->kept[opt->kept]);
}

/* A number within bounds; on or off. */
static const struct hps_opt_ops hps_opt_kept = {
	.set = hps_opt_set_kept,
	.get = hps_opt_get_kept,
};

static const struct hps_opt_ops hps_opt_flag = {
	.set = hps_opt_set_flag,
	.get = hps_opt_get_kept,
};

static int hps_opt_read_dontfrag(int level, sockptr_t optval,
				 unsigned int optlen, int *val)
{
	*val = 0;
	return optlen < sizeof(int) ? 0 :
	       hps_opt_read_int(level, optval, optlen, val);
}

/* It alone of its level takes what is shorter than an int for 0. */
static const struct hps_opt_ops hps_opt_dontfrag = {
	.read = hps_opt_read_dontfrag,
	.set = hps_opt_set_flag,
	.get = hps_opt_get_kept,
};

static int hps_opt_set_refused(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	return -EOPNOTSUPP;
}

/* The core would accept it. */
static const struct hps_opt_ops hps_opt_refused = {
	.set = hps_opt_set_refused,
};

static int hps_opt_set_reuseport(struct sock *sk, const struct hps_opt *opt,
				 int val)
{
	sk->sk_reuseport = !!val;
	return 0;
}

/* The core would refuse it, as it does before 6.3. See port.c. */
static const struct hps_opt_ops hps_opt_reuseport = {
	.set = hps_opt_set_reuseport,
	.whole = true,
};

/*
 * When something was received is known, not when it was sent. What is to be counted from a
 * connection's bytes is asked for when there is one, sock_set_timestamping().
 */
static int hps_opt_set_timestamping(struct sock *sk, const struct hps_opt *opt,
				    int val)
{
	if (val & SOF_TIMESTAMPING_TX_RECORD_MASK)
		return -EOPNOTSUPP;
	if (val & SOF_TIMESTAMPING_OPT_ID &&
	    !(READ_ONCE(sk->sk_tsflags) & SOF_TIMESTAMPING_OPT_ID) &&
	    (1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN))
		return -EINVAL;
	return 0;
}

static const struct hps_opt_ops hps_opt_timestamping = {
	.set = hps_opt_set_timestamping,
};

/* One row a line: selftests/vm/checks/options reads the first three columns. */
static const struct hps_opt hps_opts[] = {
	{ SOL_SOCKET, SO_REUSEADDR, HPS_WORKS },
	{ SOL_SOCKET, SO_REUSEPORT, HPS_WORKS, &hps_opt_reuseport },
	{ SOL_SOCKET, SO_BROADCAST, HPS_WORKS },
	{ SOL_SOCKET, SO_SNDBUF, HPS_WORKS },
	{ SOL_SOCKET, SO_RCVBUF, HPS_WORKS },
	{ SOL_SOCKET, SO_SNDBUFFORCE, HPS_WORKS },
	{ SOL_SOCKET, SO_RCVBUFFORCE, HPS_WORKS },
	{ SOL_SOCKET, SO_BUF_LOCK, HPS_WORKS },
	{ SOL_SOCKET, SO_KEEPALIVE, HPS_WORKS },
	{ SOL_SOCKET, SO_OOBINLINE, HPS_WORKS },
	{ SOL_SOCKET, SO_LINGER, HPS_WORKS },
	{ SOL_SOCKET, SO_RCVLOWAT, HPS_WORKS },
	{ SOL_SOCKET, SO_RCVTIMEO_OLD, HPS_WORKS },
	{ SOL_SOCKET, SO_RCVTIMEO_NEW, HPS_WORKS },
	{ SOL_SOCKET, SO_SNDTIMEO_OLD, HPS_WORKS },
	{ SOL_SOCKET, SO_SNDTIMEO_NEW, HPS_WORKS },
	{ SOL_SOCKET, SO_PEEK_OFF, HPS_WORKS },
	{ SOL_SOCKET, SO_BINDTODEVICE, HPS_WORKS },
	{ SOL_SOCKET, SO_BINDTOIFINDEX, HPS_WORKS },
	{ SOL_SOCKET, SO_INCOMING_CPU, HPS_WORKS },
	{ SOL_SOCKET, SO_BUSY_POLL, HPS_WORKS },
	{ SOL_SOCKET, SO_ZEROCOPY, HPS_WORKS, &hps_own_zerocopy },
	{ SOL_SOCKET, SO_TIMESTAMP_OLD, HPS_WORKS },
	{ SOL_SOCKET, SO_TIMESTAMP_NEW, HPS_WORKS },
	{ SOL_SOCKET, SO_TIMESTAMPNS_OLD, HPS_WORKS },
	{ SOL_SOCKET, SO_TIMESTAMPNS_NEW, HPS_WORKS },
	{ SOL_SOCKET, SO_TIMESTAMPING_OLD, HPS_WORKS, &hps_opt_timestamping },
	{ SOL_SOCKET, SO_TIMESTAMPING_NEW, HPS_WORKS, &hps_opt_timestamping },
	{ SOL_SOCKET, SO_TYPE, HPS_GET },
	{ SOL_SOCKET, SO_DOMAIN, HPS_GET },
	{ SOL_SOCKET, SO_PROTOCOL, HPS_GET },
	{ SOL_SOCKET, SO_ERROR, HPS_GET },
	{ SOL_SOCKET, SO_ACCEPTCONN, HPS_GET },
	{ SOL_SOCKET, SO_PEERNAME, HPS_GET },
	{ SOL_SOCKET, SO_PEERSEC, HPS_GET },
	{ SOL_SOCKET, SO_COOKIE, HPS_GET },
	{ SOL_SOCKET, SO_NETNS_COOKIE, HPS_GET },
	{ SOL_SOCKET, SO_MEMINFO, HPS_GET },
	{ SOL_SOCKET, SO_PRIORITY, HPS_KEPT },
	{ SOL_SOCKET, SO_DEBUG, HPS_KEPT },
	{ SOL_SOCKET, SO_DONTROUTE, HPS_KEPT },
	{ SOL_SOCKET, SO_BSDCOMPAT, HPS_KEPT },
	{ SOL_SOCKET, SO_NO_CHECK, HPS_KEPT },
	{ SOL_SOCKET, SO_NOFCS, HPS_KEPT },
	{ SOL_SOCKET, SO_RXQ_OVFL, HPS_KEPT },
	{ SOL_SOCKET, SO_WIFI_STATUS, HPS_KEPT },
	{ SOL_SOCKET, SO_RCVMARK, HPS_KEPT },
	{ SOL_SOCKET, SO_PASSCRED, HPS_KEPT },
	{ SOL_SOCKET, SO_PASSSEC, HPS_KEPT },
	{ SOL_SOCKET, SO_SELECT_ERR_QUEUE, HPS_KEPT },
	{ SOL_SOCKET, SO_CNX_ADVICE, HPS_KEPT },
	{ SOL_SOCKET, SO_TXREHASH, HPS_KEPT },
	{ SOL_SOCKET, SO_PREFER_BUSY_POLL, HPS_KEPT },
	{ SOL_SOCKET, SO_BUSY_POLL_BUDGET, HPS_KEPT },
	{ SOL_SOCKET, SO_LOCK_FILTER, HPS_KEPT },
	{ SOL_SOCKET, SO_MARK, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_TXTIME, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_ATTACH_FILTER, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_ATTACH_BPF, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, HPS_REFUSED, &hps_opt_refused },
	{ SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, HPS_REFUSED, &hps_opt_refused },
	/* By the core, which up to 6.12.112 lets any family have it. */
	{ SOL_SOCKET, SO_RESERVE_MEM, HPS_REFUSED },

	{ SOL_TCP, TCP_NODELAY, HPS_WORKS, &hps_tcp_nodelay },
	{ SOL_TCP, TCP_CORK, HPS_WORKS, &hps_tcp_cork },
	{ SOL_TCP, TCP_MAXSEG, HPS_WORKS, &hps_tcp_maxseg },
	{ SOL_TCP, TCP_KEEPIDLE, HPS_WORKS, &hps_tcp_keepidle },
	{ SOL_TCP, TCP_KEEPINTVL, HPS_WORKS, &hps_tcp_keepintvl },
	{ SOL_TCP, TCP_KEEPCNT, HPS_WORKS, &hps_tcp_keepcnt },
	{ SOL_TCP, TCP_USER_TIMEOUT, HPS_WORKS, &hps_tcp_user_timeout },
	{ SOL_TCP, TCP_SYNCNT, HPS_WORKS, &hps_tcp_syncnt },
	{ SOL_TCP, TCP_LINGER2, HPS_WORKS, &hps_tcp_linger2 },
	{ SOL_TCP, TCP_DEFER_ACCEPT, HPS_WORKS, &hps_tcp_defer_accept },
	{ SOL_TCP, TCP_WINDOW_CLAMP, HPS_WORKS, &hps_tcp_window_clamp },
	{ SOL_TCP, TCP_NOTSENT_LOWAT, HPS_WORKS, &hps_tcp_notsent_lowat },
	{ SOL_TCP, TCP_INQ, HPS_WORKS, &hps_tcp_inq },
	{ SOL_TCP, TCP_CONGESTION, HPS_WORKS, &hps_tcp_congestion },
	{ SOL_TCP, TCP_INFO, HPS_GET, &hps_tcp_info },
	{ SOL_TCP, TCP_CC_INFO, HPS_GET, &hps_tcp_nothing },
	{ SOL_TCP, TCP_ULP, HPS_WORKS, &hps_tcp_ulp },
	{ SOL_TCP, TCP_IS_MPTCP, HPS_GET, &hps_tcp_zero },
	{ SOL_TCP, TCP_QUICKACK, HPS_KEPT, &hps_opt_flag,
	  HPS_KEPT_QUICKACK, .first = 1 },
	{ SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS, HPS_KEPT, &hps_opt_kept,
	  HPS_KEPT_THIN, 0, 1 },
	{ SOL_TCP, TCP_MD5SIG, HPS_REFUSED },
	{ SOL_TCP, TCP_MD5SIG_EXT, HPS_REFUSED },
	{ SOL_TCP, TCP_REPAIR, HPS_REFUSED },
	{ SOL_TCP, TCP_REPAIR_QUEUE, HPS_REFUSED },
	{ SOL_TCP, TCP_REPAIR_OPTIONS, HPS_REFUSED },
	{ SOL_TCP, TCP_REPAIR_WINDOW, HPS_REFUSED },
	{ SOL_TCP, TCP_QUEUE_SEQ, HPS_REFUSED },
	{ SOL_TCP, TCP_TIMESTAMP, HPS_REFUSED },
	{ SOL_TCP, TCP_FASTOPEN, HPS_REFUSED },
	{ SOL_TCP, TCP_FASTOPEN_CONNECT, HPS_REFUSED },
	{ SOL_TCP, TCP_FASTOPEN_KEY, HPS_REFUSED },
	{ SOL_TCP, TCP_FASTOPEN_NO_COOKIE, HPS_REFUSED },
	{ SOL_TCP, TCP_SAVE_SYN, HPS_REFUSED },
	{ SOL_TCP, TCP_SAVED_SYN, HPS_REFUSED },
	{ SOL_TCP, TCP_THIN_DUPACK, HPS_REFUSED },
	{ SOL_TCP, TCP_TX_DELAY, HPS_REFUSED },
	{ SOL_TCP, TCP_ZEROCOPY_RECEIVE, HPS_REFUSED },

	{ SOL_IP, IP_TOS, HPS_WORKS, &hps_ip_tos },
	{ SOL_IP, IP_FREEBIND, HPS_WORKS, &hps_ip_freebind },
	{ SOL_IP, IP_BIND_ADDRESS_NO_PORT, HPS_WORKS, &hps_ip_no_port },
	{ SOL_IP, IP_LOCAL_PORT_RANGE, HPS_WORKS, &hps_ip_port_range },
	{ SOL_IP, IP_MTU, HPS_GET, &hps_ip_mtu },
	{ SOL_IP, IP_TTL, HPS_KEPT, &hps_ip_ttl, HPS_KEPT_TTL, .first = -1 },
	{ SOL_IP, IP_MTU_DISCOVER, HPS_KEPT, &hps_opt_kept, HPS_KEPT_PMTUDISC,
	  IP_PMTUDISC_DONT, IP_PMTUDISC_OMIT, IP_PMTUDISC_WANT },
	{ SOL_IP, IP_RECVERR, HPS_KEPT, &hps_opt_flag, HPS_KEPT_RECVERR },
	{ SOL_IP, IP_PKTINFO, HPS_KEPT, &hps_opt_flag, HPS_KEPT_PKTINFO },
	{ SOL_IP, IP_RECVTTL, HPS_KEPT, &hps_opt_flag, HPS_KEPT_RECVTTL },
	{ SOL_IP, IP_RECVTOS, HPS_KEPT, &hps_opt_flag, HPS_KEPT_RECVTOS },
	{ SOL_IP, IP_TRANSPARENT, HPS_REFUSED },
	{ SOL_IP, IP_MINTTL, HPS_REFUSED },
	{ SOL_IP, IP_OPTIONS, HPS_REFUSED },
	{ SOL_IP, IP_UNICAST_IF, HPS_REFUSED },
	{ SOL_IP, IP_IPSEC_POLICY, HPS_REFUSED },
	{ SOL_IP, IP_XFRM_POLICY, HPS_REFUSED },

	{ SOL_IPV6, IPV6_V6ONLY, HPS_WORKS, &hps_ip_v6only },
	{ SOL_IPV6, IPV6_ADDRFORM, HPS_WORKS, &hps_ip_addrform },
	{ SOL_IPV6, IPV6_TCLASS, HPS_WORKS, &hps_ip_tclass },
	{ SOL_IPV6, IPV6_FREEBIND, HPS_WORKS, &hps_ip_freebind },
	{ SOL_IPV6, IPV6_MTU, HPS_KEPT, &hps_ip_mtu6 },
	{ SOL_IPV6, IPV6_UNICAST_HOPS, HPS_KEPT, &hps_ip_hops,
	  HPS_KEPT_HOPS6, .first = -1 },
	{ SOL_IPV6, IPV6_MTU_DISCOVER, HPS_KEPT, &hps_opt_kept,
	  HPS_KEPT_PMTUDISC6,
	  IPV6_PMTUDISC_DONT, IPV6_PMTUDISC_OMIT, IPV6_PMTUDISC_WANT },
	{ SOL_IPV6, IPV6_DONTFRAG, HPS_KEPT, &hps_opt_dontfrag, HPS_KEPT_DONTFRAG },
	{ SOL_IPV6, IPV6_RECVERR, HPS_KEPT, &hps_opt_flag, HPS_KEPT_RECVERR6 },
	{ SOL_IPV6, IPV6_RECVPKTINFO, HPS_KEPT, &hps_opt_flag,
	  HPS_KEPT_RECVPKTINFO },
	{ SOL_IPV6, IPV6_RECVHOPLIMIT, HPS_KEPT, &hps_opt_flag,
	  HPS_KEPT_RECVHOPLIMIT },
	{ SOL_IPV6, IPV6_RECVTCLASS, HPS_KEPT, &hps_opt_flag,
	  HPS_KEPT_RECVTCLASS },
	{ SOL_IPV6, IPV6_TRANSPARENT, HPS_REFUSED },
	{ SOL_IPV6, IPV6_MINHOPCOUNT, HPS_REFUSED },
	{ SOL_IPV6, IPV6_ADDR_PREFERENCES, HPS_REFUSED },
	{ SOL_IPV6, IPV6_FLOWINFO_SEND, HPS_REFUSED },
	{ SOL_IPV6, IPV6_FLOWLABEL_MGR, HPS_REFUSED },
	{ SOL_IPV6, IPV6_AUTOFLOWLABEL, HPS_REFUSED },
	{ SOL_IPV6, IPV6_UNICAST_IF, HPS_REFUSED },
	{ SOL_IPV6, IPV6_RTHDR, HPS_REFUSED },
	{ SOL_IPV6, IPV6_IPSEC_POLICY, HPS_REFUSED },
	{ SOL_IPV6, IPV6_XFRM_POLICY, HPS_REFUSED },

	{ SOL_HPSOCK, HPSOCK_BUF_FIRST, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_BUF_FIRST },
	{ SOL_HPSOCK, HPSOCK_BUF_SIZE, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_BUF_SIZE },
	{ SOL_HPSOCK, HPSOCK_WINDOW, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_WINDOW },
	{ SOL_HPSOCK, HPSOCK_QUOTA, HPS_WORKS, &hps_own_tune, HPS_TUNE_QUOTA },
	{ SOL_HPSOCK, HPSOCK_INLINE_MAX, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_INLINE_MAX },
	{ SOL_HPSOCK, HPSOCK_SIGNAL_EVERY, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_SIGNAL_EVERY },
	{ SOL_HPSOCK, HPSOCK_GATHER_MIN, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_GATHER_MIN },
	{ SOL_HPSOCK, HPSOCK_ZCOPY, HPS_WORKS, &hps_own_live,
	  HPS_TUNE_ZCOPY },
	{ SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, HPS_WORKS, &hps_own_live,
	  HPS_TUNE_ZCOPY_THRESHOLD },
	{ SOL_HPSOCK, HPSOCK_ZCOPY_OUTSTANDING, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_ZCOPY_OUTSTANDING },
	{ SOL_HPSOCK, HPSOCK_ZCOPY_SINK, HPS_WORKS, &hps_own_live,
	  HPS_TUNE_ZCOPY_SINK },
	{ SOL_HPSOCK, HPSOCK_ZCOPY_SYNC, HPS_WORKS, &hps_own_tune,
	  HPS_TUNE_ZCOPY_SYNC },
	{ SOL_HPSOCK, HPSOCK_ZEROCOPY, HPS_WORKS, &hps_own_zerocopy },
	{ SOL_HPSOCK, HPSOCK_SPLIT, HPS_WORKS, &hps_own_split },
	{ SOL_HPSOCK, HPSOCK_INFO, HPS_GET, &hps_own_info },
};

static const struct hps_opt *hps_opt_find(int level, int name)
{
	int i;

	/* Some ask what is not there. */
	if (level == SOL_IPV6 && !ipv6_mod_enabled())
		return NULL;
	for (i = 0; i < ARRAY_SIZE(hps_opts); i++)
		if (hps_opts[i].level == level && hps_opts[i].name == name)
			return &hps_opts[i];
	return NULL;
}

/**
 * hps_opt_init - options of a new socket that are not 0
 * @sk: the socket
 *
 * Context: any; nobody else knows the socket.
 */
void hps_opt_init(struct sock *sk)
{
	int i;

	hps_tune_init(&hps_sk(sk)->tuning);
	sk->sk_ipv6only = READ_ONCE(sock_net(sk)->ipv6.sysctl.bindv6only);
	sk->sk_txrehash = READ_ONCE(sock_net(sk)->core.sysctl_txrehash);
	for (i = 0; i < ARRAY_SIZE(hps_opts); i++)
		if (hps_opts[i].first)
			hps_sk(sk)->kept[hps_opts[i].kept] = hps_opts[i].first;
}

/**
 * hps_opt_read_int - what setsockopt() brought, as an int
 * @level: SOL_*; SOL_IP takes a byte, and nothing for 0, as it always has, and SOL_IPV6
 *	NULL for 0
 * @optval: its value
 * @optlen: bytes of it
 * @val: the int
 *
 * Context: process.
 * Return: 0, -EINVAL, -EFAULT.
 */
int hps_opt_read_int(int level, sockptr_t optval, unsigned int optlen, int *val)
{
	u8 byte = 0;

	*val = 0;
	if (level == SOL_IPV6 && optlen >= sizeof(int) && sockptr_is_null(optval))
		return 0;
	if (optlen >= sizeof(int))
		return copy_from_sockptr(val, optval, sizeof(*val)) ?
		       -EFAULT : 0;
	if (level != SOL_IP)
		return -EINVAL;
	if (optlen && copy_from_sockptr(&byte, optval, 1))
		return -EFAULT;
	*val = byte;
	return 0;
}

/* The core handles the level; this is for what it should not accept. */
static int hps_opt_set_socket(struct socket *sock, const struct hps_opt *opt,
			      int optname, sockptr_t optval,
			      unsigned int optlen)
{
	int val, err;

	if (opt && opt->ops) {
		err = hps_opt_read_int(SOL_SOCKET, optval, optlen, &val);
		if (err)
			return err;
		lock_sock(sock->sk);
		err = opt->ops->set(sock->sk, opt, val);
		release_sock(sock->sk);
		if (err || opt->ops->whole)
			return err;
	}
	return sock_setsockopt(sock, SOL_SOCKET, optname, optval, optlen);
}

static int hps_opt_read(int level, const struct hps_opt *opt, sockptr_t optval,
			unsigned int optlen, int *val)
{
	if (opt && opt->ops && opt->ops->read)
		return opt->ops->read(level, optval, optlen, val);
	return hps_opt_read_int(level, optval, optlen, val);
}

static int hps_opt_set_name(struct sock *sk, const struct hps_opt *opt,
			    sockptr_t optval, unsigned int optlen)
{
	char name[TCP_CA_NAME_MAX];
	int err;

	if (!optlen)
		return -EINVAL;
	err = strncpy_from_sockptr(name, optval,
				   min_t(size_t, optlen, sizeof(name) - 1));
	if (err < 0)
		return -EFAULT;
	name[err] = '\0';
	lock_sock(sk);
	err = opt->ops->set_name(sk, name);
	release_sock(sk);
	return err;
}

/**
 * hps_setsockopt - proto_ops.setsockopt
 * @sock: the socket
 * @level: SOL_*; SOL_SOCKET only if the kernel lets it through
 * @optname: option
 * @optval: its value
 * @optlen: bytes of it
 *
 * Context: process.
 * Return: 0, -ENOPROTOOPT, -EINVAL, -EFAULT, -EOPNOTSUPP at SOL_SOCKET, and what an
 * option has to say.
 */
int hps_setsockopt(struct socket *sock, int level, int optname,
		   sockptr_t optval, unsigned int optlen)
{
	const struct hps_opt *opt = hps_opt_find(level, optname);
	struct sock *sk = sock->sk;
	bool known = opt && opt->effect != HPS_REFUSED && opt->effect != HPS_GET;
	int val, err;

	if (level == SOL_SOCKET)
		return hps_opt_set_socket(sock, opt, optname, optval, optlen);
	if (opt && opt->ops && opt->ops->set_name)
		return hps_opt_set_name(sk, opt, optval, optlen);
	/* TCP looks at the value first. */
	if (!known && level != SOL_TCP)
		return -ENOPROTOOPT;
	err = hps_opt_read(level, opt, optval, optlen, &val);
	if (err)
		return err;
	if (!known)
		return -ENOPROTOOPT;
	lock_sock(sk);
	err = opt->ops->set(sk, opt, val);
	release_sock(sk);
	return err;
}

/* As hps_opt_read_int() takes it, SOL_IP gives a byte to who has room for one. */
static int hps_opt_write(int level, const void *buf, int n, char __user *optval,
			 int len, int __user *optlen)
{
	if (level == SOL_IP && n == sizeof(int) && len > 0 &&
	    len < sizeof(int) && *(const u32 *)buf <= U8_MAX) {
		u8 byte = *(const int *)buf;

		return put_user(1, optlen) ||
		       put_user(byte, (u8 __user *)optval) ? -EFAULT : 0;
	}
	len = min(len, n);
	return put_user(len, optlen) || copy_to_user(optval, buf, len) ?
	       -EFAULT : 0;
}

/* TCP over IPv4 has a word for levels that nobody knows, TCP over IPv6 has not. */
static int hps_opt_unknown(const struct sock *sk, int level)
{
	bool known = level == SOL_TCP || level == SOL_IP || level == SOL_IPV6 ||
		     level == SOL_HPSOCK;

	return known || hps_sock_v6(sk) ? -ENOPROTOOPT : -EOPNOTSUPP;
}

/**
 * hps_getsockopt - proto_ops.getsockopt, for levels other than SOL_SOCKET
 * @sock: the socket
 * @level: SOL_*
 * @optname: option
 * @optval: where to; cut off at the length given
 * @optlen: room, and then the length
 *
 * Context: process.
 * Return: 0, -ENOPROTOOPT, -EOPNOTSUPP, -EINVAL, -EFAULT, -ENOMEM, and what an option has
 * to say.
 */
int hps_getsockopt(struct socket *sock, int level, int optname,
		   char __user *optval, int __user *optlen)
{
	const struct hps_opt *opt = hps_opt_find(level, optname);
	struct sock *sk = sock->sk;
	int len, n;
	void *buf;

	if (!opt || opt->effect == HPS_REFUSED)
		return hps_opt_unknown(sk, level);
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	buf = kzalloc(HPS_OPT_SIZE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	lock_sock(sk);
	n = opt->ops->get(sk, opt, buf);
	release_sock(sk);
	if (n >= 0)
		n = hps_opt_write(level, buf, n, optval, len, optlen);
	kfree(buf);
	return n;
}

/**
 * hps_set_rcvlowat - proto_ops.set_rcvlowat
 * @sk: the socket, locked
 * @val: bytes, not negative
 *
 * As tcp_set_rcvlowat(): more than half of the receive buffer is not to be had,
 * the buffer grows for it unless the program chose its size, and who waits looks
 * again.
 *
 * Context: process.
 * Return: 0.
 */
int hps_set_rcvlowat(struct sock *sk, int val)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	bool locked = sk->sk_userlocks & SOCK_RCVBUF_LOCK;
	int max = locked ? sk->sk_rcvbuf :
			   READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	val = min(val, max / 2) ?: 1;
	if (sk->sk_rcvbuf < 2 * val && !locked)
		WRITE_ONCE(sk->sk_rcvbuf, 2 * val);
	if (!conn) {
		WRITE_ONCE(sk->sk_rcvlowat, val);
		return 0;
	}
	/* So that what comes in meanwhile is judged by the one or the other. */
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(sk->sk_rcvlowat, val);
	if (conn->fin_rcvd || hps_readable(sk, conn))
		sk->sk_data_ready(sk);
	spin_unlock_bh(&conn->lock);
	return 0;
}

/*
 * Bytes that the peer does not have. Who asks may ask again, until there are none. The end
 * counts as one, as TCP's has a sequence number.
 */
static u32 hps_sockopt_outq(struct hps_conn *conn)
{
	conn->ops->ask(conn);
	return conn->tx_unsent + hps_conn_tx_open(conn) +
	       (conn->fin_queued && !conn->fin_acked && !conn->shut);
}

static u32 hps_sockopt_unsent(const struct hps_conn *conn)
{
	return conn->tx_unsent + (conn->fin_queued && !conn->fin_sent && !conn->shut);
}

/**
 * hps_sk_ioctl - proto.ioctl, which io_uring's socket commands call
 * @sk: the socket
 * @cmd: SIOCINQ (FIONREAD), SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK
 * @val: the number of bytes; SIOCATMARK: is the urgent byte the next?
 *
 * Context: process.
 * Return: 0, -EINVAL in TCP_LISTEN, -ENOIOCTLCMD.
 */
int hps_sk_ioctl(struct sock *sk, int cmd, int *val)
{
	struct hps_conn *conn;

	if (cmd != SIOCINQ && cmd != SIOCOUTQ && cmd != SIOCOUTQNSD &&
	    cmd != SIOCATMARK)
		return -ENOIOCTLCMD;
	if (sk->sk_state == TCP_LISTEN && cmd != SIOCATMARK)
		return -EINVAL;
	*val = 0;
	lock_sock(sk);
	conn = hps_sk_conn(sk);
	if (conn && conn->records && cmd == SIOCINQ) {
		*val = hps_record_inq(sk);
	} else if (conn) {
		spin_lock_bh(&conn->lock);
		if (cmd == SIOCINQ)
			*val = hps_urgent_inq(sk, conn);
		else if (cmd == SIOCATMARK)
			*val = hps_urgent_next(conn);
		else if (cmd == SIOCOUTQNSD)
			*val = hps_sockopt_unsent(conn);
		else
			*val = hps_sockopt_outq(conn);
		spin_unlock_bh(&conn->lock);
	}
	release_sock(sk);
	return 0;
}

/**
 * hps_ioctl - proto_ops.ioctl
 * @sock: the socket
 * @cmd: as for hps_sk_ioctl(), or what any IPv4 socket is asked for: addresses of an
 *	interface, routes, ARP
 * @arg: pointer to an int, or to what that takes
 *
 * Context: process.
 * Return: as hps_sk_ioctl(), -EFAULT, or as inet_ioctl().
 */
int hps_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	int val, err;

	err = hps_sk_ioctl(sock->sk, cmd, &val);
	if (err == -ENOIOCTLCMD)
		return inet_ioctl(sock, cmd, arg);
	return err ?: put_user(val, (int __user *)arg);
}
