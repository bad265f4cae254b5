/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SERVICE_H
#define HPS_SERVICE_H

#include <linux/socket.h>
#include <linux/types.h>

#include "param.h"

struct net;

/* The service port for addresses of a family, AF_INET or AF_INET6; host byte order. */
static inline u16 hps_service_port_of(int family)
{
	return hps_service_port + (family == AF_INET6);
}

int hps_service_listen(struct net *net);
void hps_service_unlisten(struct net *net);

#endif /* HPS_SERVICE_H */
