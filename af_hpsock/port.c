// SPDX-License-Identifier: GPL-2.0
/*
 * The ports of a namespace. They are the module's own: on the wire all
 * connections of a host come in at one rdma_cm port and name the port they are
 * for in the hello. The rules of conflict are those of inet_csk_get_port().
 */
#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/once.h>
#include <linux/random.h>
#include <net/ip.h>
#include <net/tcp_states.h>

#include "net.h"
#include "sock.h"

static struct hlist_head *hps_port_head(struct hps_net *hn, u16 port)
{
	return &hn->ports[hash_32(port, HPS_PORT_BITS)];
}

static struct hlist_head *hps_port_listeners(struct hps_net *hn, u16 port)
{
	return &hn->listeners[hash_32(port, HPS_PORT_BITS)];
}

static bool hps_port_clash(const struct sock *sk, const struct in6_addr *ip,
			   const struct sock *other, bool may_reuse)
{
	const struct in6_addr *other_ip = &other->sk_v6_rcv_saddr;
	bool v6only = ipv6_only_sock(sk), other_v6only = ipv6_only_sock(other);

	/* Each type has ports of its own, as protocols have. */
	if (sk == other || sk->sk_type != other->sk_type)
		return false;
	if (sk->sk_bound_dev_if && other->sk_bound_dev_if &&
	    sk->sk_bound_dev_if != other->sk_bound_dev_if)
		return false;
	if (may_reuse && sk->sk_reuse && other->sk_reuse &&
	    other->sk_state != TCP_LISTEN)
		return false;
	/* SO_REUSEPORT, of one user */
	if (may_reuse && sk->sk_reuseport && other->sk_reuseport &&
	    uid_eq(sk->sk_uid, other->sk_uid))
		return false;
	return hps_addr_covers(ip, v6only, other_ip, other_v6only) ||
	       hps_addr_covers(other_ip, other_v6only, ip, v6only);
}

static bool hps_port_free(struct hps_net *hn, const struct sock *sk,
			  const struct in6_addr *ip, u16 port, bool may_reuse)
{
	struct hps_sock *other;

	hlist_for_each_entry(other, hps_port_head(hn, port), port_node) {
		if (other->inet.inet_num == port &&
		    hps_port_clash(sk, ip, &other->inet.sk, may_reuse))
			return false;
	}
	return true;
}

/* Any free port of ip_local_port_range, from a random place on; 0 if none. */
static u16 hps_port_any(struct hps_net *hn, struct sock *sk,
			const struct in6_addr *ip)
{
	int low, high, range, start, i;

	inet_sk_get_local_port_range(sk, &low, &high);
	range = high - low + 1;
	start = get_random_u32_below(range);
	for (i = 0; i < range; i++) {
		u16 port = low + (start + i) % range;

		if (!inet_is_local_reserved_port(sock_net(sk), port) &&
		    hps_port_free(hn, sk, ip, port, false))
			return port;
	}
	return 0;
}

/**
 * hps_port_bind - take a port and the address with it
 * @sk: a socket without a port, locked
 * @addr: the address; port 0 for any that is free
 *
 * Context: process. Return: 0 or -EADDRINUSE.
 */
int hps_port_bind(struct sock *sk, const struct hps_addr *addr)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	struct hps_addr bound = *addr;
	int err = 0;

	spin_lock_bh(&hn->port_lock);
	if (!bound.port)
		bound.port = hps_port_any(hn, sk, &bound.ip);
	else if (!hps_port_free(hn, sk, &bound.ip, bound.port, true))
		bound.port = 0;
	if (bound.port) {
		hps_sock_set_local(sk, &bound);
		hlist_add_head(&hps_sk(sk)->port_node,
			       hps_port_head(hn, bound.port));
	} else {
		err = -EADDRINUSE;
	}
	spin_unlock_bh(&hn->port_lock);
	return err;
}

/**
 * hps_port_recheck - may a bound socket listen?
 * @sk: the socket, in TCP_LISTEN already so that two cannot both pass
 *
 * SO_REUSEADDR lets sockets share a port, but only one of them may listen;
 * with SO_REUSEPORT all may.
 *
 * Context: process, socket lock held. Return: 0 or -EADDRINUSE.
 */
int hps_port_recheck(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	bool free;

	spin_lock_bh(&hn->port_lock);
	free = hps_port_free(hn, sk, &sk->sk_v6_rcv_saddr,
			     inet_sk(sk)->inet_num, true);
	spin_unlock_bh(&hn->port_lock);
	return free ? 0 : -EADDRINUSE;
}

/**
 * hps_port_tuple_taken - is there such a connection already?
 * @sk: a socket with a port, locked
 * @peer: where it is to connect
 *
 * SO_REUSEADDR lets sockets share a port, but not both ends.
 *
 * Context: process.
 */
bool hps_port_tuple_taken(struct sock *sk, const struct hps_addr *peer)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	u16 port = inet_sk(sk)->inet_num;
	struct hps_sock *other;
	bool taken = false;

	spin_lock_bh(&hn->port_lock);
	hlist_for_each_entry(other, hps_port_head(hn, port), port_node) {
		struct sock *osk = &other->inet.sk;

		if (osk != sk && osk->sk_type == sk->sk_type &&
		    other->inet.inet_num == port &&
		    osk->sk_state != TCP_CLOSE && osk->sk_state != TCP_LISTEN &&
		    other->peer.port == peer->port &&
		    ipv6_addr_equal(&other->peer.ip, &peer->ip) &&
		    ipv6_addr_equal(&osk->sk_v6_rcv_saddr,
				    &sk->sk_v6_rcv_saddr))
			taken = true;
	}
	spin_unlock_bh(&hn->port_lock);
	return taken;
}

/**
 * hps_port_share - let an accepted socket hold its listener's port too
 * @sk: the accepted socket; its local address is set
 * @with: the listening socket
 *
 * Context: process.
 */
void hps_port_share(struct sock *sk, struct sock *with)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	if (!hlist_unhashed(&hps_sk(with)->port_node))
		hlist_add_head(&hps_sk(sk)->port_node,
			       hps_port_head(hn, inet_sk(sk)->inet_num));
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_rename - the address of a socket becomes known, or is forgotten
 * @sk: the socket
 * @addr: the port is the one it has, or 0 if it has none
 *
 * Context: any, hps_conn.lock or the socket lock held.
 */
void hps_port_rename(struct sock *sk, const struct hps_addr *addr)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hps_sock_set_local(sk, addr);
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_release - give the port back, if there is one
 * @sk: the socket
 *
 * Context: any.
 */
void hps_port_release(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hlist_del_init(&hps_sk(sk)->port_node);
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_listen - let requests find a socket
 * @sk: the socket, locked, with a port, in TCP_LISTEN
 *
 * Context: process.
 */
void hps_port_listen(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hlist_add_head(&hps_sk(sk)->listen_node,
		       hps_port_listeners(hn, inet_sk(sk)->inet_num));
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_unlisten - undo hps_port_listen()
 * @sk: the socket, locked
 *
 * Context: process.
 */
void hps_port_unlisten(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hlist_del_init(&hps_sk(sk)->listen_node);
	spin_unlock_bh(&hn->port_lock);
}

/* How well a listening socket fits: 0 not at all, more is better. */
static int hps_port_score(const struct sock *sk, const struct in6_addr *ip,
			  u16 port, int type, int dif)
{
	const struct in6_addr *bound = &sk->sk_v6_rcv_saddr;

	if (inet_sk(sk)->inet_num != port || sk->sk_type != type)
		return 0;
	if (sk->sk_bound_dev_if && sk->sk_bound_dev_if != dif)
		return 0;
	if (!hps_addr_covers(bound, ipv6_only_sock(sk), ip, false))
		return 0;
	return 1 + (sk->sk_bound_dev_if ? 1 : 0) +
	       (hps_addr_any(bound) ? 0 : 4) +
	       (ipv6_addr_v4mapped(bound) ? 2 : 0);
}

/* Of equals, which there are with SO_REUSEPORT, not to be chosen from outside. */
static u32 hps_port_hash(const struct hps_addr *peer)
{
	static u32 secret __read_mostly;

	get_random_once(&secret, sizeof(secret));
	return __ipv6_addr_jhash(&peer->ip, secret ^ peer->port);
}

/**
 * hps_port_listener - who listens there?
 * @net: the namespace
 * @ip: the local address a request came to
 * @port: the port it names
 * @type: the type of socket it is for
 * @dif: the interface it came in at
 * @peer: where it came from: among sockets that fit as well as each other, those
 *	of SO_REUSEPORT, it decides as on TCP
 *
 * Context: process. Return: the socket with a reference, or NULL.
 */
struct sock *hps_port_listener(struct net *net, const struct in6_addr *ip,
			       u16 port, int type, int dif,
			       const struct hps_addr *peer)
{
	struct hps_net *hn = hps_net(net);
	struct hps_sock *hsk;
	struct sock *best = NULL;
	u32 hash = hps_port_hash(peer);
	int score, best_score = 0;
	u32 equals = 0;

	spin_lock_bh(&hn->port_lock);
	hlist_for_each_entry(hsk, hps_port_listeners(hn, port), listen_node) {
		score = hps_port_score(&hsk->inet.sk, ip, port, type, dif);
		if (score > best_score) {
			best_score = score;
			equals = 0;
		}
		if (!score || score < best_score)
			continue;
		/* The nth of them is taken with a probability of 1/n. */
		equals++;
		if (!reciprocal_scale(jhash_1word(equals, hash), equals))
			best = &hsk->inet.sk;
	}
	if (best)
		sock_hold(best);
	spin_unlock_bh(&hn->port_lock);
	return best;
}
