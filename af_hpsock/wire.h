/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What goes over the wire. Documentation/protocol.rst says who may send what
 * when; this file says how it looks. Everything is in network byte order and
 * nothing here depends on the rest of the module, so that a test in user space
 * can speak the protocol as well.
 */
#ifndef HPS_WIRE_H
#define HPS_WIRE_H

#include <linux/types.h>

#define HPS_MAGIC		0x48505331	/* "HPS1" */
#define HPS_VERSION		1

/* Receives each end keeps posted beyond the credits it granted: see credit.c */
#define HPS_CTRL_SLOTS		7

/* Limits that both ends hold each other to. */
#define HPS_WINDOW_MIN		2
#define HPS_WINDOW_MAX		1024
#define HPS_BUF_MIN		1024
#define HPS_BUF_MAX		1048576
#define HPS_SOURCE_MAX		1048576
#define HPS_PADS_MAX	2048		/* asked for by one SHRINK */

/* Bits of hps_hello.features; an end ignores those that it does not know. */
#define HPS_FEATURE_READ	0x01	/* it reads what SRCAVAIL offers */
#define HPS_FEATURE_SHRINK	0x02	/* it answers SHRINK */
#define HPS_FEATURE_WRITE	0x04	/* it writes to what SINKAVAIL shows */
#define HPS_FEATURE_SWAP	0x08	/* its device swaps words, there and here */

/**
 * struct hps_hello - private data of the CM REQ and of the CM REP
 * @magic: HPS_MAGIC
 * @version: HPS_VERSION; another one is rejected with HPS_REJ_VERSION
 * @type: SOCK_STREAM, or SOCK_SEQPACKET for a stream of &struct hps_record
 * @flags: zero; a receiver ignores bits it does not know
 * @src_port: port of the sender's socket
 * @dst_port: port of the receiver's socket
 * @credits: data messages that the receiver of this hello may send at once
 * @window: credits that may be outstanding at most, now or later
 * @buf_size: bytes of each receive buffer to begin with, header included
 * @ctrl_slots: receives posted beyond the credits, at least HPS_CTRL_SLOTS
 * @pad: zero
 * @features: HPS_FEATURE_*
 */
struct hps_hello {
	__be32	magic;
	__u8	version;
	__u8	type;
	__be16	flags;
	__be16	src_port;
	__be16	dst_port;
	__be16	credits;
	__be16	window;
	__be32	buf_size;
	__be16	ctrl_slots;
	__be16	pad;
	__be64	features;
};

/* Why a connection request was turned down. */
enum hps_rej_reason {
	HPS_REJ_REFUSED	= 1,	/* nobody listens on the port */
	HPS_REJ_BUSY	= 2,	/* the backlog is full, worth another try */
	HPS_REJ_VERSION	= 3,	/* no magic or version in common */
	HPS_REJ_INVALID	= 4,	/* a field of the hello is out of range */
	HPS_REJ_NOMEM	= 5,	/* no memory or queue pair, worth another try */
};

/**
 * struct hps_reject - private data of the CM REJ
 * @magic: HPS_MAGIC
 * @version: the version of the rejecting end
 * @reason: enum hps_rej_reason
 * @pad: zero
 */
struct hps_reject {
	__be32	magic;
	__u8	version;
	__u8	reason;
	__be16	pad;
};

enum hps_msg_type {
	HPS_MSG_DATA	= 1,	/* bytes of the stream; costs a credit */
	HPS_MSG_CREDIT	= 2,	/* nothing but the header's credit field */
	HPS_MSG_FIN	= 3,	/* no DATA follows */
	HPS_MSG_FINACK	= 4,	/* answers FIN */
	HPS_MSG_BUFFERS	= 5,	/* receives change in size: struct hps_buffers */
	HPS_MSG_URGENT	= 6,	/* an urgent byte waits: struct hps_urgent_ahead */
	HPS_MSG_SRCAVAIL = 7,	/* bytes of the stream to be read: struct hps_srcavail */
	HPS_MSG_READDONE = 8,	/* they were: struct hps_readdone */
	HPS_MSG_SRCCANCEL = 9,	/* they are not to be: struct hps_srccancel */
	HPS_MSG_CANCELACK = 10,	/* answers SRCCANCEL: struct hps_cancelack */
	HPS_MSG_SHRINK = 11,	/* receives are to become smaller: struct hps_smaller */
	HPS_MSG_PAD	= 12,	/* answers SHRINK: uses up a receive; costs a credit */
	HPS_MSG_SINKAVAIL = 13,	/* memory for what comes next: struct hps_sinkavail */
	HPS_MSG_WRITTEN = 14,	/* bytes of the stream that are there: struct hps_written */
	HPS_MSG_SINKCANCEL = 15, /* it is not to be written to */
	HPS_MSG_SINKACK = 16,	/* answers SINKCANCEL */
	HPS_MSG_WORD	= 17,	/* where readers wait: struct hps_word */
};

/* Bits of hps_hdr.flags; a receiver ignores those that it does not know. */
#define HPS_FLAG_URGENT	0x01	/* in DATA: one of the bytes is urgent */
#define HPS_FLAG_HEARD	0x02	/* an odd number of URGENT was received */
#define HPS_FLAG_SINK	0x04	/* an odd number of SINKAVAIL and WORD was received */
#define HPS_FLAG_MORE	0x08	/* in DATA and SRCAVAIL: more of the stream is to follow soon */

/**
 * struct hps_hdr - the head of every message
 * @type: enum hps_msg_type
 * @flags: HPS_FLAG_*
 * @urgent: with HPS_FLAG_URGENT the offset of the urgent byte in the payload; in
 *	SINKAVAIL the number of messages that cost a credit received before it, modulo
 *	2^16; else zero
 * @len: payload bytes behind the header: in DATA at least one, where there is a
 *	structure for the type its size, else 0
 * @seq: number of messages of any type sent before this one
 * @credit: credits granted since the connection began, modulo 2^32
 */
struct hps_hdr {
	__u8	type;
	__u8	flags;
	__be16	urgent;
	__be32	len;
	__be32	seq;
	__be32	credit;
};

/**
 * struct hps_buffers - payload of BUFFERS: from a message on, receives are larger
 * @from: seq of the first message that may be so long; later ones if it was sent
 * @size: bytes of the receives, header included
 */
struct hps_buffers {
	__be32	from;
	__be32	size;
};

/**
 * struct hps_smaller - payload of SHRINK, which costs a credit as DATA does: so many
 *	PAD are to be sent before any more DATA or SRCAVAIL, and from the first of them on
 *	no message is to be longer than that
 * @size: bytes of the receives that there will be, header included
 * @pads: how many, 1 to HPS_PADS_MAX
 */
struct hps_smaller {
	__be32	size;
	__be32	pads;
};

/**
 * struct hps_urgent_ahead - payload of URGENT
 * @ahead: bytes of the stream that come before the urgent one and were not sent
 *	yet, less than 2^31
 */
struct hps_urgent_ahead {
	__be32	ahead;
};

/**
 * struct hps_srcavail - payload of SRCAVAIL, which stands in the stream for the bytes
 *	that it offers and costs a credit as DATA does
 * @addr: where an RDMA Read finds them
 * @rkey: with this key, which is good for them alone and until READDONE counts them
 * @len: how many, at most HPS_SOURCE_MAX
 */
struct hps_srcavail {
	__be64	addr;
	__be32	rkey;
	__be32	len;
};

/**
 * struct hps_readdone - payload of READDONE, one for each SRCAVAIL and in their order,
 *	sent so that it invalidates its key there (Send with Invalidate), or, as on iWARP,
 *	not
 * @total: SRCAVAIL whose bytes are read, since the connection began, modulo 2^32
 */
struct hps_readdone {
	__be32	total;
};

/**
 * struct hps_srccancel - payload of SRCCANCEL: what was offered last was never sent, with
 *	all of the stream that came behind it. Nothing of the stream, and no FIN,
 *	follows before CANCELACK
 * @count: so many SRCAVAIL, less those that are read completely
 */
struct hps_srccancel {
	__be32	count;
};

/**
 * struct hps_cancelack - payload of CANCELACK: it was not read, nor will it be
 * @done: bytes that were read of the first SRCAVAIL that no READDONE counts, and
 *	which belong to the stream
 */
struct hps_cancelack {
	__be32	done;
};

/**
 * struct hps_sinkavail - payload of SINKAVAIL: the sender of what comes next in the stream
 *	may write it there, if it has sent no message that costs a credit beyond those that
 *	hps_hdr.urgent counts. Whatever it sends of the stream, or FIN, ends that, and so does
 *	SINKCANCEL
 * @addr: where an RDMA Write finds the first byte
 * @rkey: with this key, which is good for this memory alone and no longer than that
 * @len: bytes of it, at most HPS_SOURCE_MAX
 */
struct hps_sinkavail {
	__be64	addr;
	__be32	rkey;
	__be32	len;
};

/**
 * struct hps_word - payload of WORD, once on a connection: from now on there may be found what
 *	SINKAVAIL would say
 * @addr: of a &struct hps_shown, a multiple of 8
 * @rkey: with this key, which is good for it alone, for atomics and RDMA Read, until the
 *	connection ends
 * @pad: zero
 */
struct hps_word {
	__be64	addr;
	__be32	rkey;
	__be32	pad;
};

/* Set in hps_shown.word while a reader waits. */
#define HPS_WORD_WAITS	0x100000000ULL

/**
 * struct hps_shown - memory that one end changes, and the other swaps and reads
 * @word: HPS_WORD_WAITS and the number of messages that cost a credit received before what
 *	the reader waits for, modulo 2^32; or 0, which is what the sender swaps it for.
 *	In the byte order of atomics, which is that of the host
 * @sink: where it waits, while the word says so
 */
struct hps_shown {
	__u64	word;
	struct hps_sinkavail sink;
};

/**
 * struct hps_written - payload of WRITTEN, which stands in the stream for bytes that were
 *	written where SINKAVAIL, or the word, said, costs a credit as DATA does and is sent
 *	so that it invalidates the key there (Send with Invalidate), or, as on iWARP, not
 * @len: how many bytes, from the first one on
 */
struct hps_written {
	__be32	len;
};

/* Bits of hps_record.flags; a receiver ignores those that it does not know. */
#define HPS_RECORD_PIECE	0x80	/* always set */
#define HPS_RECORD_END		0x01	/* it is the last of its message */
#define HPS_RECORD_EOR		0x02	/* which was sent with MSG_EOR */
#define HPS_RECORD_ABORT	0x04	/* of no bytes: nor do those before it count */

/**
 * struct hps_record - SOCK_SEQPACKET: what stands in the stream before each piece of a
 *	message, with the bytes of which it is no part of what SRCAVAIL offers. There is
 *	no URGENT, nor is anything taken back by SRCCANCEL
 * @flags: HPS_RECORD_*
 * @pad: zero; a receiver ignores it
 * @len: bytes of the piece, may be zero
 */
struct hps_record {
	__u8	flags;
	__u8	pad[3];
	__be32	len;
};

#endif /* HPS_WIRE_H */
