// SPDX-License-Identifier: GPL-2.0
/*
 * When connect() is attempted again: what failed in a way that may pass is, after 50 ms,
 * 100 ms and so on; a peer whose backlog is full until the time is up that TCP's SYN would
 * be sent again.
 */
#include <net/sock.h>

#include "retry.h"
#include "sock.h"
#include "work.h"

#define HPS_RETRY_DELAY	msecs_to_jiffies(50)
#define HPS_RETRY_DELAY_MAX	(2 * HZ)

static void hps_retry_plan(struct sock *sk, unsigned long delay)
{
	sock_hold(sk);
	if (!queue_delayed_work(hps_program_wq, &hps_sk(sk)->connect_work, delay))
		__sock_put(sk);
}

/**
 * hps_retry_later - another attempt found the socket's lock taken; now it is free
 * @sk: the socket
 *
 * Context: any.
 */
void hps_retry_later(struct sock *sk)
{
	hps_retry_plan(sk, 0);
}

/**
 * hps_retry_begin - connect() makes the first attempt
 * @sk: the socket, locked
 * @deadline: jiffies after which there is no other
 *
 * Context: process.
 */
void hps_retry_begin(struct sock *sk, unsigned long deadline)
{
	struct hps_sock *hsk = hps_sk(sk);

	hsk->connect_failures = 0;
	hsk->connect_delay = HPS_RETRY_DELAY;
	hsk->connect_deadline = deadline;
}

/**
 * hps_retry_again - plan another attempt
 * @sk: a socket whose attempt failed
 * @tries: attempts that may fail one after the other, or HPS_TRIES_ANY, which ends such a
 *	row
 *
 * Context: hps_conn.lock of that attempt held.
 * Return: false if there were that many or time is up.
 */
bool hps_retry_again(struct sock *sk, u8 tries)
{
	struct hps_sock *hsk = hps_sk(sk);
	unsigned long delay, now = jiffies;

	if (tries == HPS_TRIES_ANY)
		hsk->connect_failures = 0;
	else if (++hsk->connect_failures >= tries)
		return false;
	if (time_after_eq(now, hsk->connect_deadline))
		return false;
	/* What passes does so soon: a row begins with the shortest time. */
	if (hsk->connect_failures == 1)
		hsk->connect_delay = HPS_RETRY_DELAY;
	/* The last one is at the end, which hps_conn_limit_opening() makes. */
	delay = min(hsk->connect_delay, hsk->connect_deadline - now);
	hsk->connect_delay = min_t(unsigned long, hsk->connect_delay * 2,
				   HPS_RETRY_DELAY_MAX);
	hps_retry_plan(sk, delay);
	return true;
}

/**
 * hps_retry_cancel - no more attempts
 * @sk: the socket, locked
 *
 * Context: process.
 */
void hps_retry_cancel(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);

	spin_lock_bh(&sk->sk_lock.slock);
	hsk->later &= ~HPS_LATER_CONNECT;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (cancel_delayed_work(&hsk->connect_work))
		__sock_put(sk);
}
