/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, as compat.h, and between devices that claim to be the
 * same, of the verbs.
 */
#ifndef HPS_COMPAT_VERBS_H
#define HPS_COMPAT_VERBS_H

#include <linux/version.h>
#include <rdma/ib_verbs.h>

/*
 * Before 6.10 Soft-RoCE's requester and completer ran side by side, and an RDMA Read
 * whose responses come while it is repeated, being late, may never complete.
 */
static inline bool hps_reads_lost(const struct ib_device *ibdev)
{
	return LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0) &&
	       ibdev->ops.driver_id == RDMA_DRIVER_RXE;
}

/*
 * Soft-RoCE repeats what is in the send queue from the first request on that was not
 * acknowledged, with each REG_MR behind it, which then finds its key made and fails.
 */
static inline bool hps_keys_repeated(const struct ib_device *ibdev)
{
	return ibdev->ops.driver_id == RDMA_DRIVER_RXE;
}

/*
 * Soft-RoCE receives a packet by queueing it for the queue pair and then having the queue
 * pair's task run. That may run already, on another processor, and be through with the packet
 * and the reference that this had before the receiver comes to touch the task again, in a queue
 * pair that was freed (rxe_resp_queue_pkt(), rxe_comp_queue_pkt()). Who receives is in an RCU
 * read-side critical section, unless the packet comes from the device itself (rxe_loopback()).
 */
static inline bool hps_qp_touched_late(const struct ib_device *ibdev)
{
	return ibdev->ops.driver_id == RDMA_DRIVER_RXE;
}

/*
 * Have such a queue pair, which is in the error state (in reset, the second time), get no
 * packets but those that somebody is receiving now, and throw away what it has. Since 6.4 the
 * error state does not keep them out. A packet that comes meanwhile may be left lying, and with
 * it its reference (rxe_disable_task()), so this has to be done again when nobody is receiving
 * any more.
 */
static inline void hps_qp_close(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0))
		ib_modify_qp(qp, &attr, IB_QP_STATE);
}

#endif /* HPS_COMPAT_VERBS_H */
