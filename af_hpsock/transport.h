/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_TRANSPORT_H
#define HPS_TRANSPORT_H

#include <linux/types.h>

#include "buf.h"

struct hps_conn;
struct hps_lent;
struct hps_pages;
struct hpsock_info;
struct net;
struct sock;

/**
 * struct hps_transport - what carries the messages of a connection
 * @id: enum hpsock_transport
 * @create: make a connection for a socket that connects, which has the namespace, the
 *	user that its memory counts for, and the values of tunables. Two
 *	references: the transport's, which its teardown drops, and the caller's. Process
 *	context, may sleep. NULL without memory
 * @listen: a socket of the namespace begins to listen; -EADDRINUSE if requests cannot be
 *	had, or another negative errno. Process context, socket lock held, may sleep
 * @unlisten: undo @listen. Process context, socket lock held, may sleep
 * @connect: start a connection from hps_conn.local to hps_conn.peer. Process
 *	context, may sleep. The outcome is told by hps_conn_established() or
 *	hps_conn_end(); after an error the caller drops the connection
 * @tx_buf: add a buffer of @size bytes to the send queue, busy. Process context,
 *	may sleep. NULL without memory, and when the connection is ending
 * @gather_max: of how many pages a message can be gathered, 0 for none. Any context,
 *	without the lock
 * @tx_gather: have these pages sent, by hps_zerocopy_queue(). Process context, may
 *	sleep. False without memory, and when the connection is ending; @gather then
 *	stays with the caller
 * @tx_lend: have the peer read these pages, by hps_zerocopy_queue(). Process context,
 *	socket lock held, may sleep. False if it cannot be, and when the connection is
 *	ending; @lent then stays with the caller
 * @offer: tell the peer of all of @buf, a source. -EAGAIN as @send
 * @cancel: take back what a send waits for and the peer has not read; see cancel.c
 * @cancelled: what hps_conn.rx_cancel counted is off the receive queue; @done bytes of
 *	the first of it were read. The transport answers
 * @read: get what is remote in @buf, from buf->start on, into @sink. Process context,
 *	without the lock, sleeps. Returns how many bytes came, at least one; or
 *	-ENOMEM; or -ECONNRESET when the connection is ending or has no socket any more,
 *	in which case @buf may be gone
 * @show: let the peer write what comes next in the stream to memory that waits for it. Process
 *	context, socket lock held, may sleep. False if it is not shown, otherwise @withdraw
 *	has to follow
 * @shown: may it still? Any context, a snapshot
 * @withdraw: wait until it may not, which the peer is told. Process context, sleeps, without
 *	the lock. Returns how many bytes came, which are off the stream
 * @tx_busy: is so much under way that a short message may wait until some of it completes?
 *	Then that is sure to happen, and hps_stream_push() is called
 * @send: post @len bytes of @buf from buf->start on as one message, @urgent being
 *	the offset of an urgent one or -1. -EAGAIN
 *	when a credit or a slot is missing; hps_stream_push() will be called
 *	when there may be one
 * @urgent: tell the peer that an urgent byte comes, @ahead bytes behind what was
 *	posted. -EAGAIN as @send, and while it was told of another one
 * @send_fin: post FIN. -EAGAIN as @send
 * @send_finack: post FINACK. -EAGAIN as @send
 * @tx_idle: has every message posted so far completed? hps_conn.tx_moved says since when
 *	not, or when one did last, see hps_probe_moved()
 * @ask: somebody waits to hear that what was posted has been delivered. The transport may
 *	not have cared to know until now
 * @probe: with nothing under way, send what proves the peer to be there and takes
 *	nothing there; hps_conn.heard tells of an answer, hps_conn_end() of none. False
 *	if it was not sent, as something is under way that does the same
 * @consumed: the reader is through with a buffer that was passed to
 *	hps_conn_rx_data(); it goes back to the transport
 * @rx_full: can the peer send no more before something is read? Any context,
 *	without the lock
 * @grow: let the peer have more outstanding if it could use that. Process
 *	context, socket lock held, may sleep
 * @grow_later: what would have done that found the socket's lock taken, and it is free
 *	now. Any context
 * @rx_mem: bytes of receive buffers the connection starts with
 * @shut: end the connection at once, whatever is in flight. Called once;
 *	hps_conn_end() follows, from process context
 * @info: fill in what the transport knows
 * @free: the last reference is gone
 *
 * @offer, @cancel, @cancelled, @tx_busy, @send, @urgent, @send_fin, @send_finack, @tx_idle,
 * @ask, @probe, @consumed, @shut and @info are called with hps_conn.lock held.
 */
struct hps_transport {
	u8 id;
	struct hps_conn *(*create)(const struct sock *sk);
	int (*listen)(struct net *net);
	void (*unlisten)(struct net *net);
	int (*connect)(struct hps_conn *conn);
	struct hps_buf *(*tx_buf)(struct hps_conn *conn, u32 size);
	u32 (*gather_max)(struct hps_conn *conn);
	bool (*tx_gather)(struct hps_conn *conn, struct hps_gather *gather);
	bool (*tx_lend)(struct hps_conn *conn, struct hps_lent *lent);
	int (*offer)(struct hps_conn *conn, struct hps_buf *buf);
	void (*cancel)(struct hps_conn *conn);
	void (*cancelled)(struct hps_conn *conn, u32 done);
	int (*read)(struct hps_conn *conn, struct hps_buf *buf,
		    struct hps_pages *sink);
	bool (*show)(struct hps_conn *conn, const struct hps_pages *mem);
	bool (*shown)(struct hps_conn *conn);
	u32 (*withdraw)(struct hps_conn *conn);
	bool (*tx_busy)(struct hps_conn *conn);
	int (*send)(struct hps_conn *conn, struct hps_buf *buf, u32 len,
		    int urgent);
	int (*urgent)(struct hps_conn *conn, u32 ahead);
	int (*send_fin)(struct hps_conn *conn);
	int (*send_finack)(struct hps_conn *conn);
	bool (*tx_idle)(struct hps_conn *conn);
	void (*ask)(struct hps_conn *conn);
	bool (*probe)(struct hps_conn *conn);
	void (*consumed)(struct hps_conn *conn, struct hps_buf *buf);
	bool (*rx_full)(struct hps_conn *conn);
	void (*grow)(struct hps_conn *conn, struct sock *sk);
	void (*grow_later)(struct hps_conn *conn);
	u32 (*rx_mem)(struct hps_conn *conn);
	void (*shut)(struct hps_conn *conn);
	void (*info)(struct hps_conn *conn, struct hpsock_info *info);
	void (*free)(struct hps_conn *conn);
};

const struct hps_transport *hps_transport_of(const struct sock *sk);
void hps_transport_register(const struct hps_transport *ops);

#endif /* HPS_TRANSPORT_H */
