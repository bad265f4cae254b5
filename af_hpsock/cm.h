/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CM_H
#define HPS_CM_H

struct hps_conn;
struct hps_link;
struct hps_net;
struct rdma_cm_event;
struct rdma_cm_id;
struct work_struct;

int hps_cm_as_kernel(int (*fn)(void *arg), void *arg);
int hps_cm_connect(struct hps_conn *conn);
void hps_cm_attempt_work(struct work_struct *work);
void hps_cm_stop(struct hps_link *link);
int hps_cm_request(struct rdma_cm_id *id, struct rdma_cm_event *event,
		   struct hps_net *hn);

#endif /* HPS_CM_H */
