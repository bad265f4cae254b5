/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_DEVICE_H
#define HPS_DEVICE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

struct hps_link;
struct ib_device;
struct ib_pd;

/**
 * struct hps_device - an RDMA device
 * @ibdev: the device
 * @pd: protection domain of all our queue pairs on it
 * @lock: guards @links and @removing; taken inside hps_device_lock, never with
 *	hps_conn.lock
 * @links: connections on the device
 * @removing: no more connections
 * @ref: one for being registered, one for each link
 * @gone: completed with the last reference
 */
struct hps_device {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	spinlock_t lock;	/* links, removing */
	struct list_head links;
	bool removing;
	refcount_t ref;
	struct completion gone;
};

int hps_device_join(struct ib_device *ibdev, struct hps_link *link);
void hps_device_leave(struct hps_link *link);
int hps_device_register(void);
void hps_device_unregister(void);

#endif /* HPS_DEVICE_H */
