/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SOCK_H
#define HPS_SOCK_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "addr.h"
#include "param.h"

struct hps_conn;
struct hps_port;

/* Work that needs the socket's lock and found it taken: bits of hps_sock.later. */
#define HPS_LATER_CONNECT	BIT(0)	/* hps_connect_work() */
#define HPS_LATER_COLLECT	BIT(1)	/* fetch.c */
#define HPS_LATER_GROW		BIT(2)	/* hps_transport.grow_later */

/* Options that are set and read and mean nothing here: hps_sock.kept[]. */
enum hps_opt_kept {
	HPS_KEPT_QUICKACK,
	HPS_KEPT_THIN,
	HPS_KEPT_TTL,
	HPS_KEPT_PMTUDISC,
	HPS_KEPT_RECVERR,
	HPS_KEPT_PKTINFO,
	HPS_KEPT_RECVTTL,
	HPS_KEPT_RECVTOS,
	HPS_KEPT_HOPS6,
	HPS_KEPT_PMTUDISC6,
	HPS_KEPT_DONTFRAG,
	HPS_KEPT_RECVERR6,
	HPS_KEPT_RECVPKTINFO,
	HPS_KEPT_RECVHOPLIMIT,
	HPS_KEPT_RECVTCLASS,
	HPS_KEPT_NUM
};

/**
 * struct hps_accept_queue - the connections of a listening socket
 * @lock: guards it; taken inside hps_conn.lock, bottom halves off
 * @open: the socket listens; cleared before the queue is emptied
 * @pending: requests on their way to being established
 * @ready: established, in order
 *
 * Each entry holds a reference on the connection and counts in
 * sk_ack_backlog.
 */
struct hps_accept_queue {
	spinlock_t lock;	/* this queue */
	bool open;
	struct list_head pending;
	struct list_head ready;
};

/**
 * struct hps_sock - a socket
 * @inet: first, so that what the kernel does with an inet socket works
 * @local: bound or connected address; v6 says how the program names itself
 * @peer: remote address, valid from connect on
 * @port: the port it has, or NULL; port.c
 * @port_node: in @port
 * @sock_node: in hps_net.socks, likewise
 * @listen_node: in hps_net.listeners while it listens
 * @later: HPS_LATER_*, which hps_proto_release_cb() sees to; the spin lock inside the
 *	socket lock
 * @conn: referenced; set by attach, cleared by disconnect and destruct.
 *	Socket lock, or RCU to look
 * @fin_sent: as hps_conn.fin_sent, for who has no reference to that; its lock, and the
 *	socket lock while there is no connection
 * @rcv_seen: hps_sock_rcv_limit() when the lock was released last; guarded as @later
 * @rx_charged: bytes of receive buffers charged to the socket
 * @tx_charged: bytes of send buffers, and of pages instead, charged to the socket
 * @nodelay: TCP_NODELAY
 * @cork: TCP_CORK
 * @keepidle: TCP_KEEPIDLE in jiffies, 0 for the namespace's default
 * @keepintvl: TCP_KEEPINTVL in jiffies, likewise
 * @keepcnt: TCP_KEEPCNT, likewise
 * @user_timeout: TCP_USER_TIMEOUT in ms, 0 for none
 * @user_mss: TCP_MAXSEG, 0 for none
 * @syncnt: TCP_SYNCNT, 0 for the namespace's default
 * @defer_accept: TCP_DEFER_ACCEPT in retries of a SYN-ACK, 0 for none
 * @linger2: TCP_LINGER2 in seconds, 0 for the default, -1 not to wait
 * @window_clamp: TCP_WINDOW_CLAMP, 0 for none
 * @notsent_lowat: TCP_NOTSENT_LOWAT, 0 for the namespace's default
 * @inq: TCP_INQ
 * @spin_missed: reads in a row that SO_BUSY_POLL did nothing for; a hint, by
 *	whoever reads
 * @rest_skip: how often a reader still does not wait for the rest of what was sent, after that
 *	did not come
 * @reading: one is in the middle of a record, and no other may read
 * @refused: another was told so, and is to be woken when that is over
 * @split: HPSOCK_SPLIT
 * @bind_no_port: IP_BIND_ADDRESS_NO_PORT
 * @bound_any: bind() was for a wildcard, also for ::ffff:0.0.0.0
 * @kept: options without effect
 * @tuning: tunables it has values of its own for
 * @queue: listening sockets
 * @connect_work: another attempt to connect, holds a socket reference
 * @connect_failures: attempts that failed last, one after the other, of which there may
 *	be few
 * @connect_delay: jiffies before the next attempt
 * @connect_deadline: jiffies after which there is none
 * @inet6: last, see &struct inet_sock
 */
struct hps_sock {
	struct inet_sock inet;
	struct hps_addr local;
	struct hps_addr peer;
	struct hps_port *port;
	struct hlist_node port_node;
	struct hlist_node sock_node;
	struct hlist_node listen_node;
	struct hps_conn __rcu *conn;
	u8 later;
	bool fin_sent;
	u8 spin_missed;
	u8 rest_skip;
	u32 rcv_seen;
	u32 rx_charged;
	u32 tx_charged;
	bool nodelay;
	bool cork;
	bool refused;
	u8 connect_failures;
	unsigned int keepidle;
	unsigned int keepintvl;
	u8 keepcnt;
	u8 syncnt;
	u8 defer_accept;
	s8 linger2;
	u16 user_mss;
	bool inq;
	bool reading;
	u32 user_timeout;
	u32 window_clamp;
	u32 notsent_lowat;
	s16 kept[HPS_KEPT_NUM];
	bool split;
	bool bind_no_port : 1;
	bool bound_any : 1;
	struct hps_tuning tuning;
	struct hps_accept_queue queue;
	struct delayed_work connect_work;
	unsigned long connect_delay;
	unsigned long connect_deadline;
	struct ipv6_pinfo inet6;
};

static inline struct hps_sock *hps_sk(const struct sock *sk)
{
	return (struct hps_sock *)sk;
}

/* Was it opened for IPv6, or is as one that was? */
static inline bool hps_sock_v6(const struct sock *sk)
{
	/* A snapshot: it may just change, and be as before or after. */
	return data_race(hps_sk(sk)->local.v6);
}

static inline void hps_sock_set_state(struct sock *sk, int state)
{
	/* Who sees the state, as poll() without a lock, sees what led to it. */
	smp_store_release(&sk->sk_state, state);
}

/* Bytes that may wait to be sent before it takes no more: TCP_NOTSENT_LOWAT. */
static inline u32 hps_sk_notsent_lowat(const struct sock *sk)
{
	return READ_ONCE(hps_sk(sk)->notsent_lowat) ?:
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_notsent_lowat);
}

/* The connection of a socket whose lock is held, or NULL. */
static inline struct hps_conn *hps_sk_conn(const struct sock *sk)
{
	return rcu_dereference_protected(hps_sk(sk)->conn,
					 lockdep_sock_is_held(sk));
}

/* What the peer may have outstanding, in bytes of receive buffers. */
static inline u32 hps_sock_rcv_limit(const struct sock *sk)
{
	u32 clamp = READ_ONCE(hps_sk(sk)->window_clamp);
	u32 rcvbuf = READ_ONCE(sk->sk_rcvbuf);

	return clamp ? min(clamp, rcvbuf) : rcvbuf;
}

struct sock *hps_sock_alloc(struct net *net, struct socket *sock, int type,
			    int protocol, int kern);
void hps_sock_set_local(struct sock *sk, const struct hps_addr *addr);
void hps_sock_set_peer(struct sock *sk, const struct hps_addr *addr);
bool hps_sock_own(struct sock *sk, u8 later);
bool hps_sock_charge(struct sock *sk, u32 bytes, int kind);
void hps_sock_grow_sndbuf(struct sock *sk);
bool hps_sock_grow_rcvbuf(struct sock *sk);
void hps_sock_reap(struct sock *sk);
void hps_sock_less_unsent(struct sock *sk);
void hps_sock_reap_soon(struct sock *sk, const struct hps_conn *conn);

#endif /* HPS_SOCK_H */
