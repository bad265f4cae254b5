/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_STATS_H
#define HPS_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "protect.h"

struct net;

/* Counters of a network namespace; stats.c has the names they are shown by. */
enum hps_stat {
	HPS_STAT_CONNECT,
	HPS_STAT_CONNECT_FAILED,
	HPS_STAT_ACCEPT,
	HPS_STAT_REJECT_REFUSED,
	HPS_STAT_REJECT_BUSY,
	HPS_STAT_REJECT_VERSION,
	HPS_STAT_REJECT_INVALID,
	HPS_STAT_REJECT_NOMEM,
	HPS_STAT_HALF_OPEN_DROPPED,	/* for another request, as the backlog was full */
	HPS_STAT_TX_MSGS,
	HPS_STAT_TX_BYTES,
	HPS_STAT_TX_GATHERED,
	HPS_STAT_TX_LENT,
	HPS_STAT_TX_WRITTEN,	/* bytes to where the peer waited for them */
	HPS_STAT_TX_CANCELLED,	/* bytes taken back, offered or queued */
	HPS_STAT_RX_CANCELLED,	/* by the peer */
	HPS_STAT_LENT_EARLY,
	HPS_STAT_LENT_RESTORED,
	HPS_STAT_LENT_PAUSE,
	HPS_STAT_LEND_REFUSED,
	HPS_STAT_LEND_MEMLOCK,
	HPS_STAT_RX_MSGS,
	HPS_STAT_RX_BYTES,
	HPS_STAT_RX_PLACED,
	HPS_STAT_RX_FETCHED,
	HPS_STAT_RX_WRITTEN,	/* bytes by the peer, to where a reader waited */
	HPS_STAT_SINK_SHOWN,
	HPS_STAT_SINK_ASKED,
	HPS_STAT_SINK_SWAPPED,
	HPS_STAT_READ_STALLED,
	HPS_STAT_CREDIT_TX,
	HPS_STAT_CREDIT_URGENT,
	HPS_STAT_CREDIT_STALL,
	HPS_STAT_WINDOW_GROWN,
	HPS_STAT_WINDOW_SHRUNK,
	HPS_STAT_MEM_REFUSED_NETNS,	/* the namespace has its share of the user's */
	HPS_STAT_MEM_REFUSED_USER,	/* the user has its share */
	HPS_STAT_MEM_REFUSED_ALL,	/* all is taken */
	HPS_STAT_SPIN_HIT,
	HPS_STAT_SPIN_MISSED,
	HPS_STAT_RESET_SENT,
	HPS_STAT_RESET_RCVD,
	HPS_STAT_ABORT_ON_DATA,
	HPS_STAT_ORPHAN_TIMEOUT,
	HPS_STAT_ORPHAN_OVERFLOW,
	HPS_STAT_PROBE,
	HPS_STAT_PEER_TIMEOUT,
	HPS_STAT_DEVICE_REMOVED,
	HPS_STAT_RETRY_EXCEEDED,
	HPS_STAT_TX_FORGOTTEN,
	HPS_STAT_RNR_EXCEEDED,
	HPS_STAT_WC_ERROR,
	HPS_STAT_VIOLATION_HELLO,
	HPS_STAT_VIOLATION_LENGTH,
	HPS_STAT_VIOLATION_TYPE,
	HPS_STAT_VIOLATION_SEQ,
	HPS_STAT_VIOLATION_CREDIT,
	HPS_STAT_VIOLATION_OVERRUN,
	HPS_STAT_VIOLATION_BUFFERS,
	HPS_STAT_VIOLATION_URGENT,
	HPS_STAT_VIOLATION_SOURCE,
	HPS_STAT_VIOLATION_SINK,
	HPS_STAT_VIOLATION_STATE,
	HPS_STAT_NUM
};

/* @refused: of HPS_STAT_LEND_REFUSED, by reason */
struct hps_stats {
	u64 count[HPS_STAT_NUM];
	u64 refused[HPS_PROTECT_REFUSALS];
};

#define hps_stat_add(hn, stat, n) \
	this_cpu_add((hn)->stats->count[stat], (n))
#define hps_stat_inc(hn, stat)	hps_stat_add(hn, stat, 1)

#define hps_stat_refused(hn, why)					\
do {									\
	hps_stat_inc(hn, HPS_STAT_LEND_REFUSED);					\
	this_cpu_inc((hn)->stats->refused[why]);			\
} while (0)

struct hps_net;

u64 hps_stat_read(const struct hps_net *hn, enum hps_stat stat);
int hps_stats_net_init(struct net *net, struct hps_net *hn);
void hps_stats_net_exit(struct net *net, struct hps_net *hn);

#endif /* HPS_STATS_H */
