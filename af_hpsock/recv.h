/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RECV_H
#define HPS_RECV_H

#include <linux/ktime.h>
#include <linux/types.h>

struct hps_buf;
struct hps_conn;
struct hps_pages;
struct msghdr;
struct sock;
struct socket;

/**
 * struct hps_reader - who reads from a stream
 * @take: take some of the @len bytes at @from, which are gone afterwards unless
 *	@flags has MSG_PEEK. Socket lock held, may sleep. Returns how many, or a
 *	negative errno if none
 * @pin: have up to @len bytes come straight to where they belong: say where, in
 *	@sink, which unpin() gives up. Socket lock held, may sleep. Returns how many
 *	bytes that is, 0 if they are to be handed to @take instead. NULL: they always are
 * @unpin: @done bytes have come
 * @blind: @take does not look at the bytes
 * @patient: it waits a little for what was sent together with what it has
 * @whole: all of a record, which is better not given in parts
 * @len: bytes to read at most
 * @target: enough bytes not to wait for more
 * @timeo: jiffies to wait, as many as are left
 * @flags: MSG_PEEK
 * @off: MSG_PEEK: from the first unread byte to the next one to look at; to begin with,
 *	where the caller wants to look
 * @pos: which place of the stream the first unread byte had when @off was counted
 * @copied: bytes so far
 * @waited: it had nothing more to read and waited
 * @placed: some of what was read came straight to where it belongs
 * @until: jiffies after which it does not just go on to fetch; 0 before it first did
 * @rest: jiffies after which it does without more than enough; 0 before it has that
 * @stuck: bytes are there that cannot be had
 * @parted: the socket has lost its connection meanwhile
 * @stamp: when the last of what was taken came in
 */
struct hps_reader {
	ssize_t (*take)(struct hps_reader *reader, void *from, size_t len);
	u32 (*pin)(struct hps_reader *reader, u32 len, struct hps_pages *sink);
	void (*unpin)(struct hps_reader *reader, struct hps_pages *sink, u32 done);
	bool blind;
	bool patient;
	bool whole;
	size_t len;
	size_t target;
	long timeo;
	int flags;
	u32 off;
	u64 pos;
	size_t copied;
	bool waited;
	bool placed;
	unsigned long until;
	unsigned long rest;
	bool stuck;
	bool parted;
	ktime_t stamp;
};

/**
 * struct hps_recv_msg - a reader whose bytes go to a program's memory
 * @reader: which it is
 * @msg: that memory
 */
struct hps_recv_msg {
	struct hps_reader reader;
	struct msghdr *msg;
};

/* Is there enough to read? Under RCU, without a lock. */
typedef bool hps_recv_look(struct sock *sk, struct hps_conn *conn);

int hps_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		int flags);
void hps_recv_msg_init(struct hps_recv_msg *to, struct msghdr *msg, size_t len,
		       int flags);
ssize_t hps_recv_discard(struct hps_reader *reader, void *from, size_t len);
void hps_recv_spin(struct sock *sk, int flags, hps_recv_look *look);
void hps_recv_stamp(const struct sock *sk, struct msghdr *msg, ktime_t stamp);
int hps_recv_errqueue(struct sock *sk, struct msghdr *msg, size_t len);
bool hps_recv_over(const struct sock *sk);
int hps_recv_end(struct sock *sk);
int hps_recv_wait(struct sock *sk, struct hps_conn *conn, long *timeo,
		  u32 seen, bool stuck);
void hps_recv_drop(struct hps_conn *conn);
void hps_recv_take(struct hps_conn *conn, struct hps_buf *buf, u32 len);
int hps_recv_turn(struct sock *sk);
ssize_t hps_recv(struct sock *sk, struct hps_reader *reader);

#endif /* HPS_RECV_H */
