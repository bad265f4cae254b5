// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/sys/net/hpsock: what is set for each network namespace.
 *
 * A namespace's traffic is unseen by most of what confines it otherwise, so only
 * the host's administrator lets a namespace have any. The owner of a network
 * namespace, who has all rights over it and whom procfs lets write to what is here,
 * is not enough: every user can make himself one.
 */
#include <linux/capability.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>

#include "compat.h"
#include "net.h"
#include "sysctl.h"

/*
 * May the current process switch a namespace on or off? It must be in there itself:
 * what a user has opened there may be passed to a privileged program elsewhere, as its
 * standard output.
 */
static bool hps_sysctl_may_enable(const struct ctl_table *table)
{
	return capable(CAP_NET_ADMIN) &&
	       table->data == &hps_net(current->nsproxy->net_ns)->enabled;
}

static int hps_sysctl_enabled(HPS_CTL_CONST struct ctl_table *table, int write,
			      void *buffer, size_t *lenp, loff_t *ppos)
{
	if (write && !hps_sysctl_may_enable(table))
		return -EPERM;
	return proc_dointvec_minmax(table, write, buffer, lenp, ppos);
}

/**
 * hps_sysctl_net_init - make the folder of a namespace
 * @net: the namespace
 * @hn: the module's part of it, with the values
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int hps_sysctl_net_init(struct net *net, struct hps_net *hn)
{
	hn->sysctls[0] = (struct ctl_table){
		.procname = "enabled",
		.data = &hn->enabled,
		.maxlen = sizeof(hn->enabled),
		.mode = 0644,
		.proc_handler = hps_sysctl_enabled,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	};
	hn->sysctl_header = hps_register_sysctls(net, "net/hpsock",
						 hn->sysctls, 1);
	return hn->sysctl_header ? 0 : -ENOMEM;
}

/**
 * hps_sysctl_net_exit - undo hps_sysctl_net_init()
 * @hn: the module's part of the namespace
 *
 * Context: process, may sleep.
 */
void hps_sysctl_net_exit(struct hps_net *hn)
{
	unregister_net_sysctl_table(hn->sysctl_header);
}
