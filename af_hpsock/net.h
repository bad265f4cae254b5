/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_NET_H
#define HPS_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "orphan.h"
#include "stats.h"

#define HPS_PORT_BITS	9
#define HPS_LISTEN_BITS	7

struct rdma_cm_id;

/**
 * struct hps_net - what the module keeps for a network namespace
 * @stats: counters, per CPU
 * @enabled: 1: there may be new sockets and connections, 0: there may not
 * @sysctls: /proc/sys/net/hpsock, and an empty entry, which 6.1 ends a table with
 * @sysctl_header: what it is registered by
 * @orphans: connections that go on without their program, see orphan.c
 * @port_lock: guards what port.c keeps, the three tables below, and the names of sockets
 *	that are in them; bottom halves off, taken inside hps_conn.lock
 * @ports: ports in use, by number
 * @socks: sockets that have one, by number and peer
 * @listeners: listening sockets by port number: apart from the many that were accepted
 * @service_lock: guards the two below; may sleep
 * @service_users: listening sockets
 * @service: rdma_cm listeners, IPv4 and IPv6, while there are users: a cm_id
 *	holds its namespace, so none may be kept without one
 */
struct hps_net {
	struct hps_stats __percpu *stats;
	int enabled;
	struct ctl_table sysctls[2];
	struct ctl_table_header *sysctl_header;
	atomic_t orphans[HPS_ORPHAN_NUM];
	spinlock_t port_lock;	/* ports, socks, listeners */
	struct hlist_head ports[1 << HPS_PORT_BITS];
	struct hlist_head socks[1 << HPS_PORT_BITS];
	struct hlist_head listeners[1 << HPS_LISTEN_BITS];
	struct mutex service_lock;	/* service, service_users */
	unsigned int service_users;
	struct rdma_cm_id *service[2];
};

extern unsigned int hps_net_id;

static inline struct hps_net *hps_net(const struct net *net)
{
	return net_generic(net, hps_net_id);
}

static inline bool hps_net_enabled(const struct net *net)
{
	return READ_ONCE(hps_net(net)->enabled);
}

int hps_net_register(void);
void hps_net_unregister(void);

#endif /* HPS_NET_H */
