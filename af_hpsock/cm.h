/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CM_H
#define HPS_CM_H

struct net;

int hps_service_get(struct net *net);
void hps_service_put(struct net *net);

#endif /* HPS_CM_H */
