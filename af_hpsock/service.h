/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SERVICE_H
#define HPS_SERVICE_H

struct net;

int hps_service_listen(struct net *net);
void hps_service_unlisten(struct net *net);

#endif /* HPS_SERVICE_H */
