// SPDX-License-Identifier: GPL-2.0
/*
 * The tunables. Each has a range; a value outside it is refused with EINVAL and
 * a log line, never clamped. A tunable that is changed while sockets exist
 * counts for connections made afterwards.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/socket.h>
#include <linux/sysfs.h>

#include <linux/hpsock.h>
#include "param.h"
#include "wire.h"

struct hps_range {
	unsigned int *value;
	unsigned int min;
	unsigned int max;
};

static int hps_range_set(const char *val, const struct kernel_param *kp)
{
	const struct hps_range *range = kp->arg;
	unsigned int n;
	int err;

	err = kstrtouint(val, 0, &n);
	if (err || n < range->min || n > range->max) {
		pr_err("%s=%s refused: not a number from %u to %u\n", kp->name,
		       val, range->min, range->max);
		return err ?: -EINVAL;
	}
	WRITE_ONCE(*range->value, n);
	return 0;
}

static int hps_range_get(char *buf, const struct kernel_param *kp)
{
	const struct hps_range *range = kp->arg;

	return sysfs_emit(buf, "%u\n", READ_ONCE(*range->value));
}

static const struct kernel_param_ops hps_range_ops = {
	.set = hps_range_set,
	.get = hps_range_get,
};

/*
 * A tunable of the module: variable hps_@name, shown as @name. The checkers of
 * moduleparam.h insist on a variable per parameter; the range is ours.
 */
#define HPS_TUNABLE(name, default, low, high, mode, text)		\
	unsigned int hps_##name = (default);				\
	static const struct hps_range hps_range_##name = {		\
		.value = &hps_##name, .min = (low), .max = (high),	\
	};								\
	module_param_cb(name, &hps_range_ops, (void *)&hps_range_##name, mode); \
	MODULE_PARM_DESC(name, text " (" #low ".." #high ", default " #default ")")

HPS_TUNABLE(family, AF_HPSOCK, 1, 45, 0444,
	    "number of the socket family");
HPS_TUNABLE(service_port, 11027, 1024, 65535, 0444,
	    "rdma_cm port on which a host with listening sockets is reached");
HPS_TUNABLE(buf_first, 1024, 1024, 65536, 0644,
	    "bytes of a receive buffer to begin with, header included");
HPS_TUNABLE(buf_size, 65536, 1024, 65536, 0644,
	    "bytes that receive buffers may grow to");
HPS_TUNABLE(window, 32, 2, 1024, 0644,
	    "credits a connection may grow to");
HPS_TUNABLE(quota, 3, 2, 1024, 0644,
	    "credits a connection starts with");
HPS_TUNABLE(signal_every, 8, 1, 64, 0644,
	    "ask for a completion every so many sends");
HPS_TUNABLE(mem_max_kb, 1048576, 1024, 1073741824, 0644,
	    "receive buffers of all connections together, KiB");
HPS_TUNABLE(fin_timeout, 60, 1, 3600, 0644,
	    "seconds a closed socket waits for the peer's close");
HPS_TUNABLE(orphan_timeout, 180, 1, 86400, 0644,
	    "seconds without progress after which a closed socket gives up");
