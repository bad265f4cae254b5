/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PROTO_H
#define HPS_PROTO_H

struct proto;

extern struct proto hps_prot;

int hps_proto_register(void);
void hps_proto_unregister(void);

#endif /* HPS_PROTO_H */
