// SPDX-License-Identifier: GPL-2.0
/*
 * poll(2), select(2), epoll(7): what tcp_poll() says.
 */
#include <linux/poll.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "poll.h"
#include "queue.h"
#include "record.h"
#include "sock.h"

/**
 * hps_readable - is there enough to read?
 * @sk: the socket
 * @conn: its connection
 *
 * SO_RCVLOWAT counts unless the peer can send no more before something is read. Of a
 * message all of it has to be there, with the same exception.
 *
 * Context: any; a snapshot without hps_conn.lock.
 * Return: true if a read would not wait.
 */
bool hps_readable(struct sock *sk, struct hps_conn *conn)
{
	u32 avail = hps_conn_avail(conn);
	int target = READ_ONCE(sk->sk_rcvlowat);

	if (conn->records)
		return atomic_read(&conn->rx_records) ||
		       hps_record_goes_on(conn, avail) ||
		       (avail && hps_record_stuck(conn));
	/* That byte is for recv(MSG_OOB). */
	if (avail && hps_urgent_next(conn) && !sock_flag(sk, SOCK_URGINLINE))
		avail--;
	/* Beyond SO_RCVBUF nobody but a reader fetches what is offered. */
	return avail && (avail >= target || conn->ops->rx_full(conn) ||
			 (READ_ONCE(conn->rx_remote) && avail >= hps_sock_rcv_limit(sk)));
}

/*
 * Room for a send, and nobody whose turn is before it? Of a connection that is shut there is
 * room because nothing more will be sent: that is told together with the end, hps_conn_report().
 */
static bool hps_writable(struct sock *sk, const struct hps_conn *conn)
{
	if (!__sk_stream_is_writeable(sk, 1) || READ_ONCE(conn->tx_turn))
		return false;
	/* Pairs with the xchg of hps_sock_reap(), which took what was counted when it was. */
	smp_rmb();
	return !READ_ONCE(conn->shut);
}

static __poll_t hps_poll_conn(struct sock *sk, struct hps_conn *conn, u8 shutdown)
{
	__poll_t mask = 0;

	if (hps_readable(sk, conn))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(conn->rx_urgent) == HPS_URGENT_HERE)
		mask |= EPOLLPRI;
	if (shutdown & SEND_SHUTDOWN)
		return mask | EPOLLOUT | EPOLLWRNORM;
	/* As tcp_poll(): with TCP_NOTSENT_LOWAT, at half of it. */
	if (!hps_writable(sk, conn)) {
		sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		/*
		 * Room made before the bits were set woke nobody; room noted
		 * but not settled is settled at the next completion, which a
		 * full queue still has to come, or by the call that lowered the
		 * limit.
		 */
		smp_mb__after_atomic();
		if (!hps_writable(sk, conn))
			return mask;
	}
	return mask | EPOLLOUT | EPOLLWRNORM;
}

/* A look at a socket that does not listen, under RCU; what it sees may be changing. */
static __poll_t hps_poll_look(struct sock *sk)
{
	/* Pairs with hps_sock_set_state(). */
	u8 state = smp_load_acquire(&sk->sk_state);
	u8 shutdown = READ_ONCE(sk->sk_shutdown);
	struct hps_conn *conn = rcu_dereference(hps_sk(sk)->conn);
	__poll_t mask = 0;
	bool opening;
	int err;

	/* Pairs with the store of sk_err before that of sk_shutdown, and the wake-up. */
	smp_rmb();
	err = READ_ONCE(sk->sk_err);
	/* Until both are there nothing is told: a program may have shut it down before. */
	opening = state == TCP_SYN_SENT && !(err && shutdown == SHUTDOWN_MASK);

	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (!opening)
		mask |= conn ? hps_poll_conn(sk, conn, shutdown) : EPOLLOUT | EPOLLWRNORM;
	if ((err && !opening) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

/**
 * hps_poll - proto_ops.poll
 * @file: the socket's file
 * @sock: the socket
 * @wait: where to wait
 *
 * Context: process.
 * Return: EPOLL*.
 */
__poll_t hps_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct hps_conn *conn;
	__poll_t mask;

	sock_poll_wait(file, sock, wait);

	/* Pairs with hps_sock_set_state(). */
	if (smp_load_acquire(&sk->sk_state) == TCP_LISTEN)
		return hps_queue_has_ready(sk) ? EPOLLIN | EPOLLRDNORM : 0;

	rcu_read_lock();
	mask = hps_poll_look(sk);
	/* Pairs with hps_conn_report(). */
	smp_rmb();
	conn = rcu_dereference(hps_sk(sk)->conn);
	if (unlikely(conn && READ_ONCE(conn->reported) &&
		     (!(mask & EPOLLHUP) || READ_ONCE(sk->sk_state) != TCP_CLOSE))) {
		/*
		 * The end was told meanwhile, and no part of it is seen alone. Nor is it seen
		 * before the state is: who asks for it next may connect again.
		 */
		spin_lock_bh(&conn->lock);
		spin_unlock_bh(&conn->lock);
		mask = hps_poll_look(sk);
	}
	rcu_read_unlock();
	return mask;
}
