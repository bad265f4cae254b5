// SPDX-License-Identifier: GPL-2.0
/*
 * The service ports: where all connections of a namespace come in, one for IPv4 and the
 * next one for IPv6.
 *
 * They are rdma_cm's, and open while a socket listens. They are below 1024, where rdma_cm
 * lets no program of an ordinary user listen: who connects speaks to a kernel. cm.c has what
 * becomes of a request.
 *
 * They are two because of how rdma_cm ends a listener, on InfiniBand and RoCE: what handles
 * a request has found it without taking a reference (cma_ib_id_from_event()), and
 * is waited for by ib_destroy_cm_id() alone, which does not wait if another listener has
 * the same port on the same device. With one port for both families each request that came
 * in meanwhile used memory after it was freed. Where namespaces share a device, it
 * still may (Documentation/security.rst).
 */
#include <linux/in.h>
#include <rdma/rdma_cm.h>

#include "cm.h"
#include "net.h"
#include "param.h"
#include "service.h"

static int hps_service_event(struct rdma_cm_id *id,
			     struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	return hps_cm_request(id, event, id->context);
}

static struct rdma_cm_id *hps_service_open(struct net *net, int family)
{
	struct sockaddr_storage any = {};
	struct rdma_cm_id *id;
	int err;

	/* The port is at the same place in both. */
	any.ss_family = family;
	((struct sockaddr_in *)&any)->sin_port = htons(hps_service_port_of(family));

	id = rdma_create_id(net, hps_service_event, hps_net(net),
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_set_afonly(id, 1);
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(id, READ_ONCE(hps_service_backlog));
	if (!err)
		return id;
	rdma_destroy_id(id);
	/* Which is what it says of a port that another has for any address. */
	return ERR_PTR(err == -EADDRNOTAVAIL ? -EADDRINUSE : err);
}

static void hps_service_stop(struct hps_net *hn)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hn->service); i++) {
		if (hn->service[i])
			rdma_destroy_id(hn->service[i]);
		hn->service[i] = NULL;
	}
}

/* @arg: the namespace */
static int hps_service_start(void *arg)
{
	static const int family[] = { AF_INET, AF_INET6 };
	struct net *net = arg;
	struct hps_net *hn = hps_net(net);
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < ARRAY_SIZE(family); i++) {
		id = hps_service_open(net, family[i]);
		if (!IS_ERR(id)) {
			hn->service[i] = id;
			continue;
		}
		/* A host may do without IPv6. */
		if (family[i] == AF_INET6 && PTR_ERR(id) == -EAFNOSUPPORT)
			continue;
		pr_warn_ratelimited("rdma_cm port %u cannot be opened: %pe\n",
				    hps_service_port_of(family[i]), id);
		hps_service_stop(hn);
		return PTR_ERR(id);
	}
	return 0;
}

/**
 * hps_service_listen - hps_transport.listen
 * @net: its namespace
 *
 * Context: process, may sleep.
 * Return: 0, or -EADDRINUSE when somebody else has a service port, or another
 * negative errno.
 */
int hps_service_listen(struct net *net)
{
	struct hps_net *hn = hps_net(net);
	int err = 0;

	mutex_lock(&hn->service_lock);
	if (!hn->service_users)
		err = hps_cm_as_kernel(hps_service_start, net);
	if (!err)
		hn->service_users++;
	mutex_unlock(&hn->service_lock);
	return err;
}

/**
 * hps_service_unlisten - hps_transport.unlisten
 * @net: its namespace
 *
 * Context: process, may sleep; no lock that a handler of rdma_cm takes.
 */
void hps_service_unlisten(struct net *net)
{
	struct hps_net *hn = hps_net(net);

	mutex_lock(&hn->service_lock);
	if (!--hn->service_users)
		hps_service_stop(hn);
	mutex_unlock(&hn->service_lock);
}
