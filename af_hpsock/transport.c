// SPDX-License-Identifier: GPL-2.0
/*
 * Which transport carries the connections of a socket: the only one there is, that over
 * RDMA. Who begins a connection or listens has it from here, so that sockets know of
 * struct hps_transport and of nothing behind it.
 */
#include <linux/cache.h>
#include <linux/init.h>

#include "transport.h"

static const struct hps_transport *hps_transport __ro_after_init;

/**
 * hps_transport_of - what is to carry the connections of a socket?
 * @sk: the socket
 *
 * Context: any.
 * Return: the transport.
 */
const struct hps_transport *hps_transport_of(const struct sock *sk)
{
	return hps_transport;
}

/**
 * hps_transport_register - from now on there is a transport
 * @ops: it
 *
 * Context: any, before there is a socket.
 */
void __init hps_transport_register(const struct hps_transport *ops)
{
	hps_transport = ops;
}
