/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_HPSOCK: high performance sockets over RDMA. What an application includes.
 */
#ifndef _UAPI_LINUX_HPSOCK_H
#define _UAPI_LINUX_HPSOCK_H

#include <linux/types.h>

/**
 * AF_HPSOCK - the default number of the family
 *
 * The module parameter "family" moves it; /sys/module/hpsock/parameters/family
 * tells the number in use.
 */
#ifndef AF_HPSOCK
#define AF_HPSOCK	27
#define PF_HPSOCK	AF_HPSOCK
#endif

/**
 * SOL_HPSOCK - socket option level of the options below
 */
#define SOL_HPSOCK	2700

/**
 * HPSOCK_INFO - getsockopt(): &struct hpsock_info of this socket
 *
 * The caller's length decides how much is copied; a shorter structure of an
 * older program stays valid because fields are only ever added at the end.
 */
#define HPSOCK_INFO	1

/*
 * An int each, and those of 10 to 12, 14 and 15 below: the module parameter of that
 * name, for the connections that this socket will make or, listening, accept; -1 for
 * the module's own value, which is also what a socket begins with. getsockopt() tells
 * the socket's value, or the module's of that time. EINVAL out of the parameter's
 * range; EISCONN on a socket with a connection, but for HPSOCK_ZCOPY,
 * HPSOCK_ZCOPY_THRESHOLD and HPSOCK_ZCOPY_SINK, which count from the next call on.
 */
#define HPSOCK_BUF_FIRST	2	/* bytes of a receive buffer to begin with */
#define HPSOCK_BUF_SIZE		3	/* bytes that it may grow to */
#define HPSOCK_WINDOW		4	/* credits a connection may grow to */
#define HPSOCK_QUOTA		5	/* credits a connection starts with */
#define HPSOCK_INLINE_MAX	6	/* bytes of payload that are sent inline */
#define HPSOCK_SIGNAL_EVERY	7	/* sends for one completion */
#define HPSOCK_GATHER_MIN	8	/* bytes from which on pages are not copied */

/**
 * HPSOCK_ZEROCOPY - SO_ZEROCOPY, for kernels that refuse it (before 6.3)
 */
#define HPSOCK_ZEROCOPY		9

#define HPSOCK_ZCOPY		10	/* enum hpsock_zcopy */
#define HPSOCK_ZCOPY_THRESHOLD	11	/* bytes from which on a send is not copied */
#define HPSOCK_ZCOPY_OUTSTANDING 12	/* sends offered to the peer at a time */

/**
 * HPSOCK_SPLIT - SOCK_SEQPACKET: a message may be read in parts
 *
 * An int, 0 or 1. recvmsg() with less room than the message has bytes leaves the rest to
 * the next call and sets MSG_MORE in msg_flags; without the option the rest is lost and
 * MSG_TRUNC set.
 */
#define HPSOCK_SPLIT		13

#define HPSOCK_ZCOPY_SINK	14	/* 1: waiting readers let the peer write to their memory */
#define HPSOCK_ZCOPY_SYNC	15	/* enum hpsock_zcopy_sync */

/* How a send of many bytes goes. */
enum hpsock_zcopy {
	HPSOCK_ZCOPY_AUTO	= 0,	/* as OFF for programs that write to their buffers
					 * too early, otherwise as PROTECT
					 */
	HPSOCK_ZCOPY_OFF	= 1,	/* nothing is read by the peer where it is */
	HPSOCK_ZCOPY_PROTECT	= 2,	/* pages are protected until the peer has read them */
	HPSOCK_ZCOPY_WAIT	= 3,	/* a send waits until the peer has read most of it */
};

/* How a waiting reader and a sender of many bytes find each other. */
enum hpsock_zcopy_sync {
	HPSOCK_ZCOPY_SYNC_MSG	= 0,	/* the reader sends a message */
	HPSOCK_ZCOPY_SYNC_CAS	= 1,	/* the sender asks, by an atomic Compare and Swap */
};

/* What carries the bytes of a socket. */
enum hpsock_transport {
	HPSOCK_TRANSPORT_NONE	= 0,	/* not connected */
	HPSOCK_TRANSPORT_RDMA	= 1,	/* a reliable connected queue pair */
};

/**
 * struct hpsock_info - state of one socket
 * @size: bytes of this structure that the kernel knows
 * @transport: enum hpsock_transport
 * @state: TCP state number, as in struct tcp_info
 * @pad: 0
 * @tx_credits: messages this end may still send
 * @rx_window: messages granted to the peer that it may have outstanding
 * @tx_msg_size: largest payload of one message to the peer, bytes
 * @rx_msg_size: largest payload of one message from the peer, bytes
 * @tx_msgs: data messages sent
 * @rx_msgs: data messages received
 * @tx_bytes: payload bytes sent or offered to the peer, less those taken back
 * @rx_bytes: payload bytes received or offered by the peer, less those it took back
 * @credit_stalls: times there was data to send and no credit
 * @device: name of the RDMA device, NUL terminated
 */
struct hpsock_info {
	__u32	size;
	__u8	transport;
	__u8	state;
	__u16	pad;
	__u32	tx_credits;
	__u32	rx_window;
	__u32	tx_msg_size;
	__u32	rx_msg_size;
	__u64	tx_msgs;
	__u64	rx_msgs;
	__u64	tx_bytes;
	__u64	rx_bytes;
	__u64	credit_stalls;
	char	device[64];
};

#endif /* _UAPI_LINUX_HPSOCK_H */
