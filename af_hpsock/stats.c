// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a network namespace: one "name value" line each in
 * /proc/net/hpsock_stat; memory and protected pages are those of all namespaces.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "mem.h"
#include "net.h"
#include "orphan.h"
#include "protect.h"
#include "share.h"
#include "stats.h"

static const char * const hps_stat_names[] = {
	[HPS_STAT_CONNECT] = "connect",
	[HPS_STAT_CONNECT_FAILED] = "connect_failed",
	[HPS_STAT_ACCEPT] = "accept",
	[HPS_STAT_REJECT_REFUSED] = "reject_refused",
	[HPS_STAT_REJECT_BUSY] = "reject_busy",
	[HPS_STAT_REJECT_VERSION] = "reject_version",
	[HPS_STAT_REJECT_INVALID] = "reject_invalid",
	[HPS_STAT_REJECT_NOMEM] = "reject_nomem",
	[HPS_STAT_HALF_OPEN_DROPPED] = "half_open_dropped",
	[HPS_STAT_TX_MSGS] = "tx_msgs",
	[HPS_STAT_TX_BYTES] = "tx_bytes",
	[HPS_STAT_TX_GATHERED] = "tx_gathered",
	[HPS_STAT_TX_LENT] = "tx_lent",
	[HPS_STAT_TX_WRITTEN] = "tx_written",
	[HPS_STAT_TX_CANCELLED] = "tx_cancelled",
	[HPS_STAT_RX_CANCELLED] = "rx_cancelled",
	[HPS_STAT_LENT_EARLY] = "lent_early",
	[HPS_STAT_LENT_RESTORED] = "lent_restored",
	[HPS_STAT_LENT_PAUSE] = "lent_pause",
	[HPS_STAT_LEND_REFUSED] = "lend_refused",
	[HPS_STAT_LEND_MEMLOCK] = "lend_memlock",
	[HPS_STAT_RX_MSGS] = "rx_msgs",
	[HPS_STAT_RX_BYTES] = "rx_bytes",
	[HPS_STAT_RX_PLACED] = "rx_placed",
	[HPS_STAT_RX_FETCHED] = "rx_fetched",
	[HPS_STAT_RX_WRITTEN] = "rx_written",
	[HPS_STAT_SINK_SHOWN] = "sink_shown",
	[HPS_STAT_SINK_ASKED] = "sink_asked",
	[HPS_STAT_SINK_SWAPPED] = "sink_swapped",
	[HPS_STAT_READ_STALLED] = "read_stalled",
	[HPS_STAT_CREDIT_TX] = "credit_sent",
	[HPS_STAT_CREDIT_URGENT] = "credit_urgent",
	[HPS_STAT_CREDIT_STALL] = "credit_stall",
	[HPS_STAT_WINDOW_GROWN] = "window_grown",
	[HPS_STAT_WINDOW_SHRUNK] = "window_shrunk",
	[HPS_STAT_MEM_REFUSED_NETNS] = "mem_refused_netns",
	[HPS_STAT_MEM_REFUSED_USER] = "mem_refused_user",
	[HPS_STAT_MEM_REFUSED_ALL] = "mem_refused_all",
	[HPS_STAT_SPIN_HIT] = "spin_hit",
	[HPS_STAT_SPIN_MISSED] = "spin_missed",
	[HPS_STAT_RESET_SENT] = "reset_sent",
	[HPS_STAT_RESET_RCVD] = "reset_rcvd",
	[HPS_STAT_ABORT_ON_DATA] = "abort_on_data",
	[HPS_STAT_ORPHAN_TIMEOUT] = "orphan_timeout",
	[HPS_STAT_ORPHAN_OVERFLOW] = "orphan_overflow",
	[HPS_STAT_PROBE] = "probe",
	[HPS_STAT_PEER_TIMEOUT] = "peer_timeout",
	[HPS_STAT_DEVICE_REMOVED] = "device_removed",
	[HPS_STAT_RETRY_EXCEEDED] = "retry_exceeded",
	[HPS_STAT_TX_FORGOTTEN] = "tx_forgotten",
	[HPS_STAT_RNR_EXCEEDED] = "rnr_exceeded",
	[HPS_STAT_WC_ERROR] = "wc_error",
	[HPS_STAT_VIOLATION_HELLO] = "violation_hello",
	[HPS_STAT_VIOLATION_LENGTH] = "violation_length",
	[HPS_STAT_VIOLATION_TYPE] = "violation_type",
	[HPS_STAT_VIOLATION_SEQ] = "violation_seq",
	[HPS_STAT_VIOLATION_CREDIT] = "violation_credit",
	[HPS_STAT_VIOLATION_OVERRUN] = "violation_overrun",
	[HPS_STAT_VIOLATION_BUFFERS] = "violation_buffers",
	[HPS_STAT_VIOLATION_URGENT] = "violation_urgent",
	[HPS_STAT_VIOLATION_SOURCE] = "violation_source",
	[HPS_STAT_VIOLATION_SINK] = "violation_sink",
	[HPS_STAT_VIOLATION_STATE] = "violation_state",
};

static_assert(ARRAY_SIZE(hps_stat_names) == HPS_STAT_NUM);

/* @counter: that of no CPU in particular, in hn->stats */
static u64 hps_stat_sum(const u64 __percpu *counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(counter, cpu));
	return sum;
}

/**
 * hps_stat_read - the sum of a counter over all CPUs
 * @hn: our part of the namespace
 * @stat: which counter
 *
 * Context: any.
 * Return: the sum, a snapshot.
 */
u64 hps_stat_read(const struct hps_net *hn, enum hps_stat stat)
{
	return hps_stat_sum(&hn->stats->count[stat]);
}

static int hps_stats_show(struct seq_file *seq, void *v)
{
	struct hps_net *hn = hps_net(seq_file_single_net(seq));
	int i;

	for (i = 0; i < HPS_STAT_NUM; i++)
		seq_printf(seq, "%s %llu\n", hps_stat_names[i],
			   hps_stat_read(hn, i));
	for (i = HPS_PROTECT_OK + 1; i < HPS_PROTECT_REFUSALS; i++)
		seq_printf(seq, "lend_refused_%s %llu\n", hps_refusal_name(i),
			   hps_stat_sum(&hn->stats->refused[i]));
	seq_printf(seq, "orphans %d\n", hps_orphan_read(hn));
	seq_printf(seq, "memory %ld\n", hps_mem_read());
	seq_printf(seq, "memory_receives %llu\n", hps_share_taken());
	seq_printf(seq, "protect_works %d\n", !hps_protect_why_not());
	seq_printf(seq, "protect_holds %ld\n", hps_protect_holds());
	seq_printf(seq, "protect_bytes %ld\n", hps_protect_bytes());
	return 0;
}

/**
 * hps_stats_net_init - make the counters of a namespace and their file
 * @net: the namespace
 * @hn: our part of it
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int hps_stats_net_init(struct net *net, struct hps_net *hn)
{
	hn->stats = alloc_percpu(struct hps_stats);
	if (!hn->stats)
		return -ENOMEM;
	if (!proc_create_net_single("hpsock_stat", 0444, net->proc_net,
				    hps_stats_show, NULL)) {
		free_percpu(hn->stats);
		return -ENOMEM;
	}
	return 0;
}

/**
 * hps_stats_net_exit - undo hps_stats_net_init()
 * @net: the namespace
 * @hn: our part of it
 *
 * Context: process, may sleep.
 */
void hps_stats_net_exit(struct net *net, struct hps_net *hn)
{
	remove_proc_entry("hpsock_stat", net->proc_net);
	free_percpu(hn->stats);
}
