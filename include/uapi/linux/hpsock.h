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
 * @tx_credits: messages this end may still send
 * @rx_window: messages granted to the peer that it may have outstanding
 * @tx_msg_size: largest payload of one message to the peer, bytes
 * @rx_msg_size: largest payload of one message from the peer, bytes
 * @tx_msgs: data messages sent
 * @rx_msgs: data messages received
 * @tx_bytes: payload bytes handed to the queue pair
 * @rx_bytes: payload bytes received
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
