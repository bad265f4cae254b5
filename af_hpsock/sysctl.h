/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SYSCTL_H
#define HPS_SYSCTL_H

struct hps_net;
struct net;

int hps_sysctl_net_init(struct net *net, struct hps_net *hn);
void hps_sysctl_net_exit(struct hps_net *hn);

#endif /* HPS_SYSCTL_H */
