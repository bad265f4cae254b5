// SPDX-License-Identifier: GPL-2.0
/*
 * struct hps_sock: made and destroyed, named, charged.
 *
 * The socket lock guards what the program sets and the order of its calls.
 * What completions need is in struct hps_conn, under a lock of its own.
 *
 * Memory: receive buffers are charged when a connection is attached and when
 * its window grows, send buffers when they are allocated, pages that are sent from
 * where they are when they are queued, all to the socket and through it to the cgroup
 * of the process that made it. sk_forward_alloc
 * and sk_wmem_queued belong to the socket lock, so a completion leaves word in
 * hps_conn.done_* and hps_sock_reap() settles it.
 */
#include <net/inet_common.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "compat.h"
#include "conn.h"
#include "mem.h"
#include "param.h"
#include "port.h"
#include "proto.h"
#include "sock.h"

/* Of a connection that is shut, hps_conn_report() will wake everybody, and for more than room. */
static bool hps_write_space_moot(struct sock *sk)
{
	struct hps_conn *conn = rcu_dereference(hps_sk(sk)->conn);

	return conn && READ_ONCE(conn->shut);
}

static void hps_write_space(struct sock *sk)
{
	struct socket_wq *wq;

	if (!sk_stream_is_writeable(sk) || !sk->sk_socket)
		return;
	rcu_read_lock();
	if (unlikely(hps_write_space_moot(sk))) {
		rcu_read_unlock();
		return;
	}
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	rcu_read_unlock();
	if (!(READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN))
		sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
}

static void hps_sock_destruct(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_conn *conn = rcu_dereference_protected(hsk->conn, true);

	if (conn) {
		hps_sock_reap(sk);
		RCU_INIT_POINTER(hsk->conn, NULL);
		hps_conn_put(conn);
	}
	hps_port_release(sk);
	sk_mem_uncharge(sk, hsk->rx_charged + hsk->tx_charged);
	sk_wmem_queued_add(sk, -sk->sk_wmem_queued);
	sk_sockets_allocated_dec(sk);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	hps_mem_sub(sk);
	inet_sock_destruct(sk);
}

/**
 * hps_sock_alloc - make a socket
 * @net: its namespace
 * @sock: the file side, or NULL if it is grafted later
 * @type: SOCK_STREAM or SOCK_SEQPACKET
 * @protocol: what SO_PROTOCOL reports
 * @kern: made by the kernel for itself
 *
 * Context: process, may sleep; the memory is charged to the current process.
 * Return: the socket in TCP_CLOSE, or NULL.
 */
struct sock *hps_sock_alloc(struct net *net, struct socket *sock, int type,
			    int protocol, int kern)
{
	struct sock *sk = sk_alloc(net, hps_family, GFP_KERNEL, &hps_prot,
				   kern);
	struct hps_sock *hsk = hps_sk(sk);

	if (!sk)
		return NULL;
	sock_init_data(sock, sk);
	sk->sk_type = type;
	sk->sk_protocol = protocol;
	sk->sk_destruct = hps_sock_destruct;
	sk->sk_write_space = hps_write_space;
	sk->sk_sndbuf = sk->sk_prot->sysctl_wmem[1];
	sk->sk_rcvbuf = sk->sk_prot->sysctl_rmem[1];
	inet_sk(sk)->pinet6 = &hsk->inet6;
	ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &hsk->local.ip);
	INIT_HLIST_NODE(&hsk->port_node);
	INIT_HLIST_NODE(&hsk->sock_node);
	INIT_HLIST_NODE(&hsk->listen_node);
	spin_lock_init(&hsk->queue.lock);
	INIT_LIST_HEAD(&hsk->queue.pending);
	INIT_LIST_HEAD(&hsk->queue.ready);
	sk->sk_prot->init(sk);
	sk_sockets_allocated_inc(sk);
	sock_prot_inuse_add(net, &hps_prot, 1);
	hps_mem_add(sk);
	return sk;
}

/**
 * hps_sock_set_local - name our end, for getsockname() and the kernel's eyes
 * @sk: the socket
 * @addr: its address
 *
 * Context: any; nobody else knows the socket, or hps_net.port_lock is held.
 */
void hps_sock_set_local(struct sock *sk, const struct hps_addr *addr)
{
	struct inet_sock *inet = inet_sk(sk);
	struct hps_sock *hsk = hps_sk(sk);

	hsk->local = *addr;
	WRITE_ONCE(inet->inet_num, addr->port);
	inet->inet_sport = htons(addr->port);
	inet->inet_saddr = addr->ip.s6_addr32[3];
	inet->inet_rcv_saddr = inet->inet_saddr;
	sk->sk_v6_rcv_saddr = addr->ip;
	hsk->inet6.saddr = addr->ip;
}

/**
 * hps_sock_set_peer - name the other end
 * @sk: the socket
 * @addr: its peer's address
 *
 * Context: any; nobody else knows the socket, or hps_net.port_lock is held.
 */
void hps_sock_set_peer(struct sock *sk, const struct hps_addr *addr)
{
	struct inet_sock *inet = inet_sk(sk);

	hps_sk(sk)->peer = *addr;
	inet->inet_dport = htons(addr->port);
	inet->inet_daddr = addr->ip.s6_addr32[3];
	sk->sk_v6_daddr = addr->ip;
}

/**
 * hps_sock_own - take a socket's lock, if nobody has it
 * @sk: the socket
 * @later: HPS_LATER_*, what to queue again when it is free
 *
 * For work items: a program may keep the lock as long as it likes, by a send from memory
 * that somebody else has to bring in, and would so keep a kernel thread.
 *
 * Context: process.
 * Return: true if release_sock() has to follow.
 */
bool hps_sock_own(struct sock *sk, u8 later)
{
	bool free;

	spin_lock_bh(&sk->sk_lock.slock);
	free = !sock_owned_by_user_nocheck(sk);
	if (free)
		sk->sk_lock.owned = 1;
	else
		hps_sk(sk)->later |= later;
	spin_unlock_bh(&sk->sk_lock.slock);
	/* What lock_sock() tells lockdep; this did not wait. */
	if (free)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return free;
}

/*
 * May the socket's limit become larger? By the rules of tcp_should_expand_sndbuf(): not if the
 * program has chosen, nor while memory is short, be it everybody's or the cgroup's.
 */
static bool hps_sock_sndbuf_grows(const struct sock *sk)
{
	return !(sk->sk_userlocks & SOCK_SNDBUF_LOCK) && !sk_under_memory_pressure(sk) &&
	       sk_memory_allocated(sk) < sk_prot_mem_limits(sk, 0);
}

/*
 * Where memory was refused the core made the limit as small as what was queued then. There
 * is memory again; TCP's limit grows again with what is acknowledged.
 */
static void hps_sock_restore_sndbuf(struct sock *sk)
{
	int usual = sk->sk_prot->sysctl_wmem[1];

	if (unlikely(sk->sk_sndbuf < usual) && hps_sock_sndbuf_grows(sk))
		WRITE_ONCE(sk->sk_sndbuf, usual);
}

/**
 * hps_sock_charge - charge memory to a socket and its cgroup
 * @sk: the socket
 * @bytes: how much
 * @kind: SK_MEM_SEND or SK_MEM_RECV
 *
 * Context: process, socket lock held or the socket not yet visible.
 * Return: false if a limit forbids it.
 */
bool hps_sock_charge(struct sock *sk, u32 bytes, int kind)
{
	int missing = bytes - sk->sk_forward_alloc;

	/* Before: where it is refused the core may charge it, and lower the limit for that. */
	if (missing > 0 && kind == SK_MEM_SEND)
		hps_sock_restore_sndbuf(sk);
	if (missing > 0 && !__sk_mem_schedule(sk, missing, kind))
		return false;
	sk_mem_charge(sk, bytes);
	return true;
}

/**
 * hps_sock_grow_sndbuf - a program sends so much at a time that more may be queued
 * @sk: the socket, locked
 *
 * Up to tcp_wmem[2], unless the program has chosen or memory is short: TCP's grows there, too.
 *
 * Context: process.
 */
void hps_sock_grow_sndbuf(struct sock *sk)
{
	int most = sk->sk_prot->sysctl_wmem[2];

	if (sk->sk_sndbuf < most && hps_sock_sndbuf_grows(sk))
		WRITE_ONCE(sk->sk_sndbuf, most);
}

/**
 * hps_sock_grow_rcvbuf - the peer could send more at a time, and a program reads it
 * @sk: the socket, locked
 *
 * Doubles, up to tcp_rmem[2] and by the rules of tcp_rcv_space_adjust(): not if the
 * program has chosen, nor where net.ipv4.tcp_moderate_rcvbuf is 0 or memory short.
 *
 * Context: any.
 * Return: true if it has become larger.
 */
bool hps_sock_grow_rcvbuf(struct sock *sk)
{
	int more = min(sk->sk_rcvbuf * 2, sk->sk_prot->sysctl_rmem[2]);

	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK || sk->sk_rcvbuf >= more ||
	    !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_moderate_rcvbuf) ||
	    sk_under_memory_pressure(sk))
		return false;
	WRITE_ONCE(sk->sk_rcvbuf, more);
	/* Who asked for it goes on to use it. */
	hps_sk(sk)->rcv_seen = hps_sock_rcv_limit(sk);
	return true;
}

/**
 * hps_sock_reap - take note of what completed
 * @sk: the socket
 *
 * Context: any, owning the socket lock or its spin lock; does not take
 * hps_conn.lock.
 */
void hps_sock_reap(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_conn *conn = rcu_dereference_protected(hsk->conn, true);
	int bytes, mem;

	if (!conn)
		return;
	if (atomic_read(&conn->done_rx)) {
		mem = atomic_xchg(&conn->done_rx, 0);
		hsk->rx_charged -= mem;
		sk_mem_uncharge(sk, mem);
	}
	if (!atomic_read(&conn->done_bytes) && !atomic_read(&conn->done_mem))
		return;
	bytes = atomic_xchg(&conn->done_bytes, 0);
	mem = atomic_xchg(&conn->done_mem, 0);
	if (mem) {
		hsk->tx_charged -= mem;
		sk_mem_uncharge(sk, mem);
	}
	if (!bytes)
		return;
	sk_wmem_queued_add(sk, -bytes);
	/*
	 * Pairs with hps_poll_conn() and hps_send_wait(): one sees the other. Whoever sees the
	 * room that was made by the end sees hps_conn.shut, too, by the xchg above.
	 */
	smp_mb();
	if (sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags))
		sk->sk_write_space(sk);
}

/**
 * hps_sock_less_unsent - fewer bytes wait to be sent, which TCP_NOTSENT_LOWAT is about
 * @sk: a socket with a connection
 *
 * Context: bottom halves off, hps_conn.lock held.
 */
void hps_sock_less_unsent(struct sock *sk)
{
	struct socket *sock = READ_ONCE(sk->sk_socket);

	if (likely(hps_sk_notsent_lowat(sk) == UINT_MAX))
		return;
	/* As in hps_sock_reap(). */
	smp_mb();
	if (sock && test_bit(SOCK_NOSPACE, &sock->flags))
		sk->sk_write_space(sk);
}

/**
 * hps_sock_reap_soon - have completions noted, now or when the lock is free
 * @sk: a socket with a connection
 * @conn: the connection, of which there were completions
 *
 * A socket that is far from its limit and has nobody waiting is left to the next
 * completion, or call of its program. But not if memory was freed, all is delivered or the
 * connection has ended: they may be long in coming, or never come.
 *
 * Context: bottom halves off, hps_conn.lock held.
 */
void hps_sock_reap_soon(struct sock *sk, const struct hps_conn *conn)
{
	struct socket *sock = READ_ONCE(sk->sk_socket);

	lockdep_assert_held(&conn->lock);
	if (conn->tx_unacked && !conn->ended && !atomic_read(&conn->done_mem) &&
	    READ_ONCE(sk->sk_wmem_queued) <= READ_ONCE(sk->sk_sndbuf) / 2 &&
	    !(sock && test_bit(SOCK_NOSPACE, &sock->flags)))
		return;
	bh_lock_sock(sk);
	/* Otherwise the owner will see to it when it releases the lock. */
	if (!sock_owned_by_user(sk))
		hps_sock_reap(sk);
	bh_unlock_sock(sk);
}
