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
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/l3mdev.h>
#include <net/tcp_states.h>

#include "net.h"
#include "port.h"
#include "sock.h"

/* How many ports connect() tries before it lets others run. */
#define HPS_PORT_BATCH	64

/**
 * struct hps_port - a port that is in use, of one type of sockets
 * @node: in hps_net.ports
 * @socks: who has it, by hps_sock.port_node
 * @number: which it is
 * @type: each has ports of its own, as protocols have
 * @bound: bind(2) or listen(2) took it. What connect(2) took for itself, it takes again
 *	for another peer
 *
 * Goes with the last of @socks. Guarded by hps_net.port_lock.
 */
struct hps_port {
	struct hlist_node node;
	struct hlist_head socks;
	u16 number;
	u16 type;
	bool bound;
};

static struct hlist_head *hps_port_head(struct hps_net *hn, u16 number)
{
	return &hn->ports[hash_32(number, HPS_PORT_BITS)];
}

static struct hlist_head *hps_port_listeners(struct hps_net *hn, u16 number)
{
	return &hn->listeners[hash_32(number, HPS_LISTEN_BITS)];
}

/* Where a socket is that has this port, and this peer, or port 0 for none. */
static struct hlist_head *hps_port_socks(struct hps_net *hn, u16 number,
					 const struct hps_addr *peer)
{
	u32 ports = (u32)number << 16 | peer->port;

	return &hn->socks[hash_32(__ipv6_addr_jhash(&peer->ip, ports),
				  HPS_PORT_BITS)];
}

static struct hps_port *hps_port_find(struct hps_net *hn, int type, u16 number)
{
	struct hps_port *port;

	hlist_for_each_entry(port, hps_port_head(hn, number), node)
		if (port->number == number && port->type == type)
			return port;
	return NULL;
}

static bool hps_port_clash(const struct sock *sk, const struct in6_addr *ip,
			   const struct sock *other, bool may_reuse)
{
	const struct in6_addr *other_ip = &other->sk_v6_rcv_saddr;
	bool v6only = ipv6_only_sock(sk), other_v6only;
	bool reuse, reuseport;
	int dif;

	if (sk == other)
		return false;
	/* A snapshot: these may just change, under the lock of that socket. */
	other_v6only = data_race(!!ipv6_only_sock(other));
	/* likewise */
	reuse = may_reuse && sk->sk_reuse && data_race(!!other->sk_reuse);
	/* likewise */
	reuseport = may_reuse && sk->sk_reuseport && data_race(!!other->sk_reuseport);
	dif = READ_ONCE(other->sk_bound_dev_if);
	/* Of two VRFs, each has what comes in there, unless net.ipv4.tcp_l3mdev_accept is set. */
	if (inet_sk_bound_l3mdev(sk) != inet_sk_bound_l3mdev(other))
		return false;
	if (sk->sk_bound_dev_if && dif && sk->sk_bound_dev_if != dif)
		return false;
	if (reuse && other->sk_state != TCP_LISTEN)
		return false;
	/* SO_REUSEPORT, of one user */
	if (reuseport && uid_eq(sk->sk_uid, other->sk_uid))
		return false;
	return hps_addr_covers(ip, v6only, other_ip, other_v6only) ||
	       hps_addr_covers(other_ip, other_v6only, ip, v6only);
}

/* May a socket have a port, beside those that have it? */
static bool hps_port_free(const struct hps_port *port, const struct sock *sk,
			  const struct in6_addr *ip, bool may_reuse)
{
	struct hps_sock *other;

	if (!port)
		return true;
	hlist_for_each_entry(other, &port->socks, port_node)
		if (hps_port_clash(sk, ip, &other->inet.sk, may_reuse))
			return false;
	return true;
}

/* Into the table of sockets, again when its peer has changed; port_lock is held. */
static void hps_port_hash(struct hps_net *hn, struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);

	hlist_del_init(&hsk->sock_node);
	hlist_add_head(&hsk->sock_node,
		       hps_port_socks(hn, inet_sk(sk)->inet_num, &hsk->peer));
}

/*
 * Give a port to a socket. @port is NULL if nobody has it; port_lock is held. Returns
 * false without memory.
 */
static bool hps_port_take(struct hps_net *hn, struct hps_port *port,
			  struct sock *sk, const struct hps_addr *addr,
			  bool bound)
{
	if (!port) {
		port = kzalloc(sizeof(*port), GFP_ATOMIC | __GFP_NOWARN);
		if (!port)
			return false;
		port->number = addr->port;
		port->type = sk->sk_type;
		hlist_add_head(&port->node, hps_port_head(hn, addr->port));
	}
	port->bound |= bound;
	hps_sock_set_local(sk, addr);
	hps_sk(sk)->port = port;
	hlist_add_head(&hps_sk(sk)->port_node, &port->socks);
	hps_port_hash(hn, sk);
	return true;
}

/* Take this port, if the socket may have it. */
static bool hps_port_try(struct hps_net *hn, struct sock *sk,
			 const struct hps_addr *addr, bool may_reuse)
{
	struct hps_port *port;
	bool ok;

	spin_lock_bh(&hn->port_lock);
	port = hps_port_find(hn, sk->sk_type, addr->port);
	ok = hps_port_free(port, sk, &addr->ip, may_reuse) &&
	     hps_port_take(hn, port, sk, addr, true);
	spin_unlock_bh(&hn->port_lock);
	return ok;
}

/*
 * What close(2) has left is over but for the peer's FIN, or all of it is on its way at
 * least: a peer may know of our FIN before its answer is here. TCP would have the former in
 * TIME_WAIT, which does not keep its ends from a socket that is bound to them.
 */
static bool hps_port_left(const struct sock *sk)
{
	int state = READ_ONCE(sk->sk_state);

	return sock_flag(sk, SOCK_DEAD) &&
	       (state == TCP_FIN_WAIT2 ||
		(state == TCP_FIN_WAIT1 && READ_ONCE(hps_sk(sk)->fin_sent)));
}

/*
 * Is there such a connection? The address of one that begins may not be known yet. As in
 * __inet_check_established(), those of two interfaces are not the same.
 */
static bool hps_port_connected(struct hps_net *hn, const struct sock *sk,
			       const struct hps_addr *local,
			       const struct hps_addr *peer)
{
	struct net *net = sock_net(sk);
	int dif = sk->sk_bound_dev_if, sdif = l3mdev_master_ifindex_by_index(net, dif);
	struct hps_sock *other;
	struct sock *osk;

	hlist_for_each_entry(other, hps_port_socks(hn, local->port, peer),
			     sock_node) {
		osk = &other->inet.sk;
		if (osk != sk && osk->sk_type == sk->sk_type &&
		    osk->sk_state != TCP_CLOSE &&
		    !(inet_sk(sk)->inet_num && hps_port_left(osk)) &&
		    inet_sk(osk)->inet_num == local->port &&
		    inet_sk_bound_dev_eq(net, READ_ONCE(osk->sk_bound_dev_if),
					 dif, sdif) &&
		    other->peer.port == peer->port &&
		    ipv6_addr_equal(&other->peer.ip, &peer->ip) &&
		    (hps_addr_any(&local->ip) ||
		     hps_addr_any(&osk->sk_v6_rcv_saddr) ||
		     ipv6_addr_equal(&osk->sk_v6_rcv_saddr, &local->ip)))
			return true;
	}
	return false;
}

/* Now it has a peer, and no other socket may have both its ends. */
static void hps_port_begin(struct hps_net *hn, struct sock *sk,
			   const struct hps_addr *peer)
{
	hps_sock_set_peer(sk, peer);
	WRITE_ONCE(hps_sk(sk)->fin_sent, false);
	hps_sock_set_state(sk, TCP_SYN_SENT);
	hps_port_hash(hn, sk);
}

/* As hps_port_try(), for a connection. */
static bool hps_port_try_connect(struct hps_net *hn, struct sock *sk,
				 const struct hps_addr *addr,
				 const struct hps_addr *peer)
{
	struct hps_port *port;
	bool ok;

	spin_lock_bh(&hn->port_lock);
	port = hps_port_find(hn, sk->sk_type, addr->port);
	ok = !port || (!port->bound &&
		       !hps_port_connected(hn, sk, addr, peer));
	if (ok)
		ok = hps_port_take(hn, port, sk, addr, false);
	if (ok)
		hps_port_begin(hn, sk, peer);
	spin_unlock_bh(&hn->port_lock);
	return ok;
}

/*
 * Take any port of ip_local_port_range, from a random place on; with a peer, for a
 * connection.
 */
static bool hps_port_any(struct hps_net *hn, struct sock *sk,
			 const struct hps_addr *peer)
{
	struct hps_addr addr = hps_sk(sk)->local;
	int low, high, range, start, i;
	bool ok;

	inet_sk_get_local_port_range(sk, &low, &high);
	range = high - low + 1;
	start = get_random_u32_below(range);
	for (i = 0; i < range; i++) {
		addr.port = low + (start + i) % range;
		if (inet_is_local_reserved_port(sock_net(sk), addr.port))
			continue;
		ok = peer ? hps_port_try_connect(hn, sk, &addr, peer) :
			    hps_port_try(hn, sk, &addr, false);
		if (ok)
			return true;
		if (i % HPS_PORT_BATCH == 0)
			cond_resched();
	}
	return false;
}

/**
 * hps_port_bind - take a port and the address with it
 * @sk: a socket without a port, locked
 * @addr: the address; port 0 for any that is free
 *
 * Context: process, may sleep.
 * Return: 0 or -EADDRINUSE.
 */
int hps_port_bind(struct sock *sk, const struct hps_addr *addr)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	struct hps_addr before = hps_sk(sk)->local;
	bool ok;

	if (addr->port) {
		ok = hps_port_try(hn, sk, addr, true);
	} else {
		hps_port_rename(sk, addr);
		ok = hps_port_any(hn, sk, NULL);
		if (!ok)
			hps_port_rename(sk, &before);
	}
	return ok ? 0 : -EADDRINUSE;
}

/**
 * hps_port_connect - may a socket connect to there? If so, it is on its way
 * @sk: the socket, locked; is given a port if it has none
 * @peer: the other end
 *
 * SO_REUSEADDR lets sockets share a port, and so does connect(2) where bind(2) did not
 * take it, but not both ends.
 *
 * Context: process, may sleep.
 * Return: 0, with the peer set and in TCP_SYN_SENT, or -EADDRNOTAVAIL.
 */
int hps_port_connect(struct sock *sk, const struct hps_addr *peer)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	bool ok;

	if (!inet_sk(sk)->inet_num)
		return hps_port_any(hn, sk, peer) ? 0 : -EADDRNOTAVAIL;
	spin_lock_bh(&hn->port_lock);
	ok = !hps_port_connected(hn, sk, &hps_sk(sk)->local, peer);
	if (ok)
		hps_port_begin(hn, sk, peer);
	spin_unlock_bh(&hn->port_lock);
	return ok ? 0 : -EADDRNOTAVAIL;
}

/**
 * hps_port_part - a socket has no peer any more
 * @sk: the socket, locked
 *
 * Context: process.
 */
void hps_port_part(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hps_sk(sk)->peer.port = 0;
	inet_sk(sk)->inet_dport = 0;
	if (hps_sk(sk)->port)
		hps_port_hash(hn, sk);
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_recheck - may a bound socket listen?
 * @sk: the socket, in TCP_LISTEN already so that two cannot both pass
 *
 * SO_REUSEADDR lets sockets share a port, but only one of them may listen;
 * with SO_REUSEPORT all may.
 *
 * Context: process, socket lock held.
 * Return: 0 or -EADDRINUSE.
 */
int hps_port_recheck(struct sock *sk)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	bool free;

	spin_lock_bh(&hn->port_lock);
	free = hps_port_free(hps_sk(sk)->port, sk, &sk->sk_v6_rcv_saddr, true);
	spin_unlock_bh(&hn->port_lock);
	return free ? 0 : -EADDRINUSE;
}

/**
 * hps_port_share - let an accepted socket hold its listener's port too
 * @sk: the accepted socket; its addresses are set
 * @with: the listening socket
 *
 * Context: process.
 */
void hps_port_share(struct sock *sk, struct sock *with)
{
	struct hps_net *hn = hps_net(sock_net(sk));
	struct hps_port *port;

	spin_lock_bh(&hn->port_lock);
	port = hps_sk(with)->port;
	if (port)
		hps_port_take(hn, port, sk, &hps_sk(sk)->local, true);
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_rename - the address of a socket becomes known, or is forgotten
 * @sk: the socket
 * @addr: the port is the one it has or had, or 0
 *
 * Context: any, hps_conn.lock or the socket lock held.
 */
void hps_port_rename(struct sock *sk, const struct hps_addr *addr)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	hps_sock_set_local(sk, addr);
	/* The name that is left of a connection may have one. */
	if (!hps_sk(sk)->port)
		WRITE_ONCE(inet_sk(sk)->inet_num, 0);
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_name - the address of a socket, whole
 * @sk: the socket
 * @addr: where to
 *
 * Context: any. The one of an attempt is rdma_cm's to choose, whose handler does not have
 * the socket's lock.
 */
void hps_port_name(const struct sock *sk, struct hps_addr *addr)
{
	struct hps_net *hn = hps_net(sock_net(sk));

	spin_lock_bh(&hn->port_lock);
	*addr = hps_sk(sk)->local;
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
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_port *port;

	spin_lock_bh(&hn->port_lock);
	port = hsk->port;
	if (port) {
		hsk->port = NULL;
		/* Its name stays, as with inet_put_port(). */
		WRITE_ONCE(inet_sk(sk)->inet_num, 0);
		hlist_del_init(&hsk->sock_node);
		hlist_del_init(&hsk->port_node);
		if (hlist_empty(&port->socks)) {
			hlist_del(&port->node);
			kfree(port);
		}
	}
	spin_unlock_bh(&hn->port_lock);
}

/**
 * hps_port_close - a socket enters TCP_CLOSE
 * @sk: the socket, in another state or new
 *
 * As by tcp_set_state(), a port that the program did not ask for is its no more: by the
 * time that the state can be seen others can take it. After close() no port is, as by
 * inet_csk_destroy_sock(): who still has a reference to the socket does not matter.
 *
 * Context: any, hps_conn.lock or the socket lock held.
 */
void hps_port_close(struct sock *sk)
{
	bool asked;

	/* Others of its bits may just change, by setsockopt(). */
	asked = data_race(sk->sk_userlocks & SOCK_BINDPORT_LOCK);
	if (!asked || sock_flag(sk, SOCK_DEAD))
		hps_port_release(sk);
	hps_sock_set_state(sk, TCP_CLOSE);
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
			  u16 port, int type, int dif, int sdif)
{
	const struct in6_addr *bound = &sk->sk_v6_rcv_saddr;
	int bound_dif = READ_ONCE(sk->sk_bound_dev_if);

	if (inet_sk(sk)->inet_num != port || sk->sk_type != type)
		return 0;
	if (!inet_sk_bound_dev_eq(sock_net(sk), bound_dif, dif, sdif))
		return 0;
	if (!hps_addr_covers(bound, ipv6_only_sock(sk), ip, false))
		return 0;
	return 1 + (bound_dif ? 1 : 0) +
	       (hps_addr_any(bound) ? 0 : 4) +
	       (ipv6_addr_v4mapped(bound) ? 2 : 0);
}

/* Of equals, which there are with SO_REUSEPORT, not to be chosen from outside. */
static u32 hps_port_choice(const struct hps_addr *peer)
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
 * @dif: the interface it came in at. Of a VRF it is for who is bound to that or to the
 *	interface, and for others only if net.ipv4.tcp_l3mdev_accept is set
 * @peer: where it came from: among sockets that fit as well as each other, those
 *	of SO_REUSEPORT, it decides as on TCP
 *
 * Context: process.
 * Return: the socket with a reference, or NULL.
 */
struct sock *hps_port_listener(struct net *net, const struct in6_addr *ip,
			       u16 port, int type, int dif,
			       const struct hps_addr *peer)
{
	struct hps_net *hn = hps_net(net);
	struct hps_sock *hsk;
	struct sock *best = NULL;
	u32 hash = hps_port_choice(peer);
	int vrf = l3mdev_master_ifindex_by_index(net, dif);
	int score, best_score = 0;
	u32 equals = 0;

	spin_lock_bh(&hn->port_lock);
	hlist_for_each_entry(hsk, hps_port_listeners(hn, port), listen_node) {
		score = hps_port_score(&hsk->inet.sk, ip, port, type, vrf ?: dif,
				       vrf ? dif : 0);
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
