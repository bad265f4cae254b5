// SPDX-License-Identifier: GPL-2.0
/*
 * The tunables. Each has a range; a value outside it is refused with EINVAL and
 * a log line, never clamped. Of buf_first, quota, window, inline_max and
 * zcopy_outstanding a connection keeps what they were when it was made; all others
 * are looked at each time. Of some a socket can have a value of its own (SOL_HPSOCK).
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
	const char * const *names;	/* of the values from 0 on, or NULL */
};

static int hps_range_set(const char *val, const struct kernel_param *kp)
{
	const struct hps_range *range = kp->arg;
	unsigned int n;

	if (kstrtouint(val, 0, &n) || n < range->min || n > range->max) {
		pr_err("%s=%s refused: not a number from %u to %u\n", kp->name,
		       val, range->min, range->max);
		return -EINVAL;
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

static int hps_choice_set(const char *val, const struct kernel_param *kp)
{
	const struct hps_range *range = kp->arg;
	int n = __sysfs_match_string(range->names, range->max + 1, val);

	if (n < 0) {
		pr_err("%s=%s refused: no such choice\n", kp->name, val);
		return n;
	}
	WRITE_ONCE(*range->value, n);
	return 0;
}

static int hps_choice_get(char *buf, const struct kernel_param *kp)
{
	const struct hps_range *range = kp->arg;

	return sysfs_emit(buf, "%s\n", range->names[READ_ONCE(*range->value)]);
}

static const struct kernel_param_ops hps_choice_ops = {
	.set = hps_choice_set,
	.get = hps_choice_get,
};

/*
 * A tunable of the module: the variable @var, shown as @name. The checkers of
 * linux/moduleparam.h insist on a variable per parameter; the range is ours.
 */
#define HPS_TUNABLE(var, name, default, low, high, mode, text)		\
	unsigned int var = (default);					\
	static const struct hps_range hps_range_##name = {		\
		.value = &var, .min = (low), .max = (high),		\
	};								\
	module_param_cb(name, &hps_range_ops, (void *)&hps_range_##name, mode); \
	MODULE_PARM_DESC(name, text " (" #low ".." #high ", default " #default ")")

/* As HPS_TUNABLE(), of values that have names, in the order of @list. */
#define HPS_CHOICE(var, name, list, mode, text)				\
	static unsigned int var;					\
	static const struct hps_range hps_range_##name = {		\
		.value = &var, .max = ARRAY_SIZE(list) - 1,		\
		.names = (list),					\
	};								\
	module_param_cb(name, &hps_choice_ops, (void *)&hps_range_##name, mode); \
	MODULE_PARM_DESC(name, text)

HPS_TUNABLE(hps_family, family, AF_HPSOCK, 1, 45, 0444,
	    "number of the socket family");
HPS_TUNABLE(hps_netns_enabled, netns_enabled, 0, 0, 1, 0644,
	    "1: the family is enabled in new network namespaces, 0: in the initial one alone");
HPS_TUNABLE(hps_service_port, service_port, 327, 1, 1022, 0444,
	    "rdma_cm port on which a host with listening sockets is reached by IPv4; IPv6: the next");
HPS_TUNABLE(hps_service_backlog, service_backlog, 1024, 1, 65535, 0644,
	    "requests that an iWARP device keeps for the module, from the next first listen() on");
static HPS_TUNABLE(hps_buf_first, buf_first, 1024, 1024, 65536, 0644,
	    "bytes of a receive buffer to begin with, header included");
static HPS_TUNABLE(hps_buf_size, buf_size, 65536, 1024, 65536, 0644,
	    "bytes that receive buffers may grow to");
static HPS_TUNABLE(hps_window, window, 32, 2, 1024, 0644,
	    "credits a connection may grow to");
static HPS_TUNABLE(hps_quota, quota, 3, 2, 1024, 0644,
	    "credits a connection starts with");
static HPS_TUNABLE(hps_inline_max, inline_max, 64, 0, 256, 0644,
	    "bytes of payload that are sent inline, where the device can");
/* What has fewer bytes would take more memory to keep track of than it has. */
static HPS_TUNABLE(hps_gather_min, gather_min, 4096, 512, 1048576, 0644,
		   "bytes from which on pages are sent from where they are");
static HPS_TUNABLE(hps_signal_every, signal_every, 8, 1, 64, 0644,
	    "ask for a completion every so many sends");
static const char * const hps_zcopy_names[] = {
	[HPSOCK_ZCOPY_AUTO] = "auto",
	[HPSOCK_ZCOPY_OFF] = "off",
	[HPSOCK_ZCOPY_PROTECT] = "protect",
	[HPSOCK_ZCOPY_WAIT] = "wait",
};

HPS_CHOICE(hps_zcopy, zcopy, hps_zcopy_names, 0644,
	   "how a send of many bytes goes: auto, off, protect, wait (default auto)");
static HPS_TUNABLE(hps_zcopy_threshold, zcopy_threshold, 131072, 4096, 1048576, 0644,
		   "bytes from which on a send is read by the peer where it is");
static HPS_TUNABLE(hps_zcopy_outstanding, zcopy_outstanding, 8, 1, 64, 0644,
		   "sends that are offered to the peer at a time");
static HPS_TUNABLE(hps_zcopy_sink, zcopy_sink, 0, 0, 1, 0644,
		   "1: a reader that waits lets a trusted peer write to its memory");
static const char * const hps_zcopy_sync_names[] = {
	[HPSOCK_ZCOPY_SYNC_MSG] = "msg",
	[HPSOCK_ZCOPY_SYNC_CAS] = "cas",
};

HPS_CHOICE(hps_zcopy_sync, zcopy_sync, hps_zcopy_sync_names, 0644,
	   "how such a reader and a sender meet: msg, cas (default msg)");
HPS_TUNABLE(hps_zcopy_patience, zcopy_patience, 500, 1, 60000, 0644,
	    "milliseconds that a program's memory waits for the peer to read it, or to write there");
HPS_TUNABLE(hps_mem_max_kb, mem_max_kb, 1048576, 1024, 1073741824, 0644,
	    "receive buffers of all connections together, KiB");
HPS_TUNABLE(hps_mem_share, mem_share, 50, 1, 100, 0644,
	    "percent of mem_max_kb, or of what others left of it, for the connections of one user");
HPS_TUNABLE(hps_shrink_after, shrink_after, 10, 1, 86400, 0644,
	    "seconds without data after which a connection gives back receives that it has grown by");
HPS_TUNABLE(hps_fin_timeout, fin_timeout, 60, 1, 3600, 0644,
	    "seconds a closed socket waits for the peer's close");
HPS_TUNABLE(hps_orphan_timeout, orphan_timeout, 180, 1, 86400, 0644,
	    "seconds without progress after which a closed socket gives up");
HPS_TUNABLE(hps_orphan_max, orphan_max, 4096, 0, 1048576, 0644,
	    "closed sockets of a namespace that may still deliver, or wait for the peer");
HPS_TUNABLE(hps_zcopy_protect, zcopy_protect, 1, 0, 1, 0644,
	    "1: pages of a program may be protected while they are sent, 0: they never are");
HPS_TUNABLE(hps_protect_max_kb, protect_max_kb, 262144, 0, 1073741824, 0644,
	    "memory protected for all connections together, KiB");

static const struct hps_range *const hps_tunes[HPS_TUNE_NUM] = {
	[HPS_TUNE_BUF_FIRST]	= &hps_range_buf_first,
	[HPS_TUNE_BUF_SIZE]	= &hps_range_buf_size,
	[HPS_TUNE_WINDOW]	= &hps_range_window,
	[HPS_TUNE_QUOTA]	= &hps_range_quota,
	[HPS_TUNE_INLINE_MAX]	= &hps_range_inline_max,
	[HPS_TUNE_GATHER_MIN]	= &hps_range_gather_min,
	[HPS_TUNE_SIGNAL_EVERY]	= &hps_range_signal_every,
	[HPS_TUNE_ZCOPY]	= &hps_range_zcopy,
	[HPS_TUNE_ZCOPY_THRESHOLD] = &hps_range_zcopy_threshold,
	[HPS_TUNE_ZCOPY_OUTSTANDING] = &hps_range_zcopy_outstanding,
	[HPS_TUNE_ZCOPY_SINK]	= &hps_range_zcopy_sink,
	[HPS_TUNE_ZCOPY_SYNC]	= &hps_range_zcopy_sync,
};

/**
 * hps_tune_init - a new socket has no values of its own
 * @tuning: the socket's
 */
void hps_tune_init(struct hps_tuning *tuning)
{
	int i;

	for (i = 0; i < HPS_TUNE_NUM; i++)
		tuning->own[i] = -1;
}

/**
 * hps_tune_set - a value of a socket's own
 * @tuning: the socket's
 * @what: of which tunable
 * @val: in its range, or -1 for the module's, whatever that is at the time
 *
 * Context: any; the socket lock is held.
 * Return: 0 or -EINVAL.
 */
int hps_tune_set(struct hps_tuning *tuning, enum hps_tune what, int val)
{
	const struct hps_range *range = hps_tunes[what];

	if (val != -1 && (val < 0 || val < range->min || val > range->max))
		return -EINVAL;
	WRITE_ONCE(tuning->own[what], val);
	return 0;
}

/**
 * hps_tune_copy - a connection begins with the values of its socket, or listener
 * @tuning: of the connection
 * @from: of the socket, whose lock need not be held
 *
 * Context: any.
 */
void hps_tune_copy(struct hps_tuning *tuning, const struct hps_tuning *from)
{
	int what;

	for (what = 0; what < ARRAY_SIZE(from->own); what++)
		tuning->own[what] = READ_ONCE(from->own[what]);
}

/**
 * hps_tuned - what a tunable is for a socket
 * @tuning: the socket's
 * @what: which tunable
 *
 * Context: any.
 * Return: its own value, or the module's.
 */
u32 hps_tuned(const struct hps_tuning *tuning, enum hps_tune what)
{
	int own = READ_ONCE(tuning->own[what]);

	return own < 0 ? READ_ONCE(*hps_tunes[what]->value) : own;
}
