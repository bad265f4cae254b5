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

#endif /* HPS_COMPAT_VERBS_H */
