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
#define HPS_CTRL_SLOTS		8

/* Limits that both ends hold each other to. */
#define HPS_WINDOW_MIN		2
#define HPS_WINDOW_MAX		1024
#define HPS_BUF_MIN		1024
#define HPS_BUF_MAX		1048576

/**
 * struct hps_hello - private data of the CM REQ and of the CM REP
 * @magic: HPS_MAGIC
 * @version: HPS_VERSION; another one is rejected with HPS_REJ_VERSION
 * @type: SOCK_STREAM
 * @flags: zero; a receiver ignores bits it does not know
 * @src_port: port of the sender's socket
 * @dst_port: port of the receiver's socket
 * @credits: data messages that the receiver of this hello may send at once
 * @window: credits that may be outstanding at most, now or later
 * @buf_size: bytes of each receive buffer to begin with, header included
 * @ctrl_slots: receives posted beyond the credits, at least HPS_CTRL_SLOTS
 * @pad: zero
 * @features: zero in version 1
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
};

/**
 * struct hps_hdr - the head of every message
 * @type: enum hps_msg_type
 * @flags: zero
 * @pad: zero
 * @len: payload bytes behind the header: in DATA at least one, in BUFFERS those
 *	of struct hps_buffers, else 0
 * @seq: number of messages of any type sent before this one
 * @credit: credits granted since the connection began, modulo 2^32
 */
struct hps_hdr {
	__u8	type;
	__u8	flags;
	__be16	pad;
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

#endif /* HPS_WIRE_H */
