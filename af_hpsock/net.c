// SPDX-License-Identifier: GPL-2.0
/*
 * The module's part of a network namespace. Nothing here holds the namespace:
 * it can be deleted when its last socket is gone.
 */
#include "net.h"
#include "param.h"
#include "proc.h"
#include "sysctl.h"

unsigned int hps_net_id;

static int __net_init hps_net_init(struct net *net)
{
	struct hps_net *hn = hps_net(net);
	int i, err;

	spin_lock_init(&hn->port_lock);
	for (i = 0; i < ARRAY_SIZE(hn->ports); i++) {
		INIT_HLIST_HEAD(&hn->ports[i]);
		INIT_HLIST_HEAD(&hn->socks[i]);
	}
	for (i = 0; i < ARRAY_SIZE(hn->listeners); i++)
		INIT_HLIST_HEAD(&hn->listeners[i]);
	mutex_init(&hn->service_lock);
	hn->enabled = net_eq(net, &init_net) || READ_ONCE(hps_netns_enabled);

	err = hps_stats_net_init(net, hn);
	if (err)
		return err;
	err = hps_proc_net_init(net);
	if (err)
		goto exit_stats;
	err = hps_sysctl_net_init(net, hn);
	if (err)
		goto exit_proc;
	return 0;

exit_proc:
	hps_proc_net_exit(net);
exit_stats:
	hps_stats_net_exit(net, hn);
	return err;
}

static void __net_exit hps_net_exit(struct net *net)
{
	struct hps_net *hn = hps_net(net);

	hps_sysctl_net_exit(hn);
	hps_proc_net_exit(net);
	hps_stats_net_exit(net, hn);
	WARN_ON_ONCE(hn->service_users);
}

static struct pernet_operations hps_net_ops = {
	.init = hps_net_init,
	.exit = hps_net_exit,
	.id = &hps_net_id,
	.size = sizeof(struct hps_net),
};

/**
 * hps_net_register - set up every namespace, present and future
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int hps_net_register(void)
{
	return register_pernet_subsys(&hps_net_ops);
}

/**
 * hps_net_unregister - undo hps_net_register()
 *
 * Context: process, may sleep.
 */
void hps_net_unregister(void)
{
	unregister_pernet_subsys(&hps_net_ops);
}
