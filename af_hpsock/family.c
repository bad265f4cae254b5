// SPDX-License-Identifier: GPL-2.0
/*
 * The family: socket(2), and the table that leads from a socket to what serves
 * it. There is no net-pf alias on purpose: opening a socket must not be a way
 * for any user to load the module.
 */
#include <linux/bpf-cgroup.h>
#include <linux/net.h>
#include <net/inet_common.h>
#include <net/tcp_states.h>

#include "bind.h"
#include "close.h"
#include "compat.h"
#include "connect.h"
#include "family.h"
#include "listen.h"
#include "net.h"
#include "param.h"
#include "poll.h"
#include "port.h"
#include "record.h"
#include "recv.h"
#include "send.h"
#include "sock.h"
#include "sockopt.h"
#include "splice.h"

/* @peer: 0 for our end, 1 for getpeername(), 2 for accept(): gone is fine. */
static int hps_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct sock *sk = sock->sk;
	struct hps_addr addr;
	int ret = -ENOTCONN;

	lock_sock(sk);
	hps_port_name(sk, &addr);
	if (peer) {
		if (!inet_sk(sk)->inet_dport ||
		    (peer == 1 &&
		     ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_SYN_SENT))))
			goto out;
		addr = hps_sk(sk)->peer;
	}
	ret = hps_addr_format(&addr, uaddr);
out:
	release_sock(sk);
	return ret;
}

/* The family number is a parameter: see hps_family_register(). */
static struct proto_ops hps_stream_ops = {
	.owner		= THIS_MODULE,
	.release	= inet_release,
	.bind		= hps_bind,
	.connect	= hps_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= hps_accept_compat,
	.getname	= hps_getname,
	.poll		= hps_poll,
	.ioctl		= hps_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= hps_listen,
	.shutdown	= hps_shutdown,
	.setsockopt	= hps_setsockopt,
	.getsockopt	= hps_getsockopt,
	.sendmsg	= hps_sendmsg,
	.recvmsg	= hps_recvmsg,
	.mmap		= sock_no_mmap,
	.splice_read	= hps_splice_read,
	.set_rcvlowat	= hps_set_rcvlowat,
	.set_peek_off	= sk_set_peek_off,
	HPS_SENDPAGE_COMPAT
	HPS_SPLICE_EOF_COMPAT
};

/* Messages are not to be cut up or looked into by splice(2) and SO_PEEK_OFF. */
static struct proto_ops hps_seqpacket_ops = {
	.owner		= THIS_MODULE,
	.release	= inet_release,
	.bind		= hps_bind,
	.connect	= hps_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= hps_accept_compat,
	.getname	= hps_getname,
	.poll		= hps_poll,
	.ioctl		= hps_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= hps_listen,
	.shutdown	= hps_shutdown,
	.setsockopt	= hps_setsockopt,
	.getsockopt	= hps_getsockopt,
	.sendmsg	= hps_sendmsg,
	.recvmsg	= hps_record_recvmsg,
	.mmap		= sock_no_mmap,
	HPS_SENDPAGE_COMPAT
};

/* What sockets there are. @protocol is what they have, and what may be asked for. */
static const struct hps_type {
	int type;
	int protocol;
	struct proto_ops *ops;
} hps_types[] = {
	{ SOCK_STREAM, IPPROTO_TCP, &hps_stream_ops },
	{ SOCK_SEQPACKET, 0, &hps_seqpacket_ops },
};

static const struct hps_type *hps_find_type(int type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hps_types); i++)
		if (hps_types[i].type == type)
			return &hps_types[i];
	return NULL;
}

/*
 * What an administrator had a cgroup's programs of type BPF_CGROUP_INET_SOCK_CREATE
 * decide: whether there may be such a socket, its mark, its interface. inet_release()
 * runs those that are told of its end. Returns 0 or a negative errno, the socket gone.
 */
static int hps_create_ask(struct socket *sock, int kern)
{
	struct sock *sk = sock->sk;
	int err = kern ? 0 : BPF_CGROUP_RUN_PROG_INET_SOCK(sk);

	if (!err)
		return 0;
	sock->sk = NULL;
	sock_orphan(sk);
	sock_put(sk);
	return err;
}

static int hps_create(struct net *net, struct socket *sock, int protocol,
		      int kern)
{
	const struct hps_type *type = hps_find_type(sock->type);
	struct sock *sk;

	/* Here the family is unknown. */
	if (!hps_net_enabled(net))
		return -EAFNOSUPPORT;
	if (protocol < 0 || protocol >= IPPROTO_MAX)
		return -EINVAL;
	if (sock->type == SOCK_RAW)
		return -EPROTONOSUPPORT;
	if (!type)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != type->protocol)
		return -EPROTONOSUPPORT;
	/* Users in the kernel that ask for TCP go on to use a tcp_sock. */
	if (kern && protocol == IPPROTO_TCP)
		return -EPROTONOSUPPORT;

	sk = hps_sock_alloc(net, sock, type->type, type->protocol, kern);
	if (!sk)
		return -ENOBUFS;
	sock->ops = type->ops;
	hps_socket_flags(sock);
	return hps_create_ask(sock, kern);
}

static struct net_proto_family hps_net_family = {
	.owner	= THIS_MODULE,
	.create	= hps_create,
};

/**
 * hps_family_register - let programs in
 *
 * Context: process, may sleep.
 * Return: 0 or -EEXIST when the number is taken.
 */
int hps_family_register(void)
{
	int err;

	hps_stream_ops.family = hps_family;
	hps_seqpacket_ops.family = hps_family;
	hps_net_family.family = hps_family;
	err = sock_register(&hps_net_family);
	if (err)
		pr_err("family %u is taken, choose another with family=\n",
		       hps_family);
	return err;
}

/**
 * hps_family_unregister - undo hps_family_register()
 *
 * Context: process, may sleep.
 */
void hps_family_unregister(void)
{
	sock_unregister(hps_family);
}
