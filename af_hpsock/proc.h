/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PROC_H
#define HPS_PROC_H

struct net;

int hps_proc_net_init(struct net *net);
void hps_proc_net_exit(struct net *net);

#endif /* HPS_PROC_H */
