/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_ORPHAN_H
#define HPS_ORPHAN_H

#include <linux/types.h>

struct hps_conn;
struct hps_net;

/* What an orphan counts as. */
enum hps_orphan {
	HPS_ORPHAN_NONE,	/* it is none, or its teardown has begun */
	HPS_ORPHAN_SENDING,	/* something is left that the peer has to get */
	HPS_ORPHAN_WAITING,	/* only for the peer's FIN */
	HPS_ORPHAN_NUM
};

bool hps_orphan_count(struct hps_conn *conn);
int hps_orphan_read(const struct hps_net *hn);

#endif /* HPS_ORPHAN_H */
