/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RDMA_H
#define HPS_RDMA_H

struct hps_conn;
struct hps_link;
struct rdma_cm_id;
struct sock;

int hps_rdma_init(void);
void hps_rdma_exit(void);
struct hps_conn *hps_rdma_create(const struct sock *sk);
void hps_rdma_discard(struct hps_conn *conn);
int hps_rdma_setup(struct hps_link *link, struct rdma_cm_id *id);

#endif /* HPS_RDMA_H */
