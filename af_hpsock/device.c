// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices as they come and go.
 *
 * A device may be removed at any time: its driver is unloaded, or "rdma link
 * delete". The core then calls hps_device_remove() and goes on when that
 * returns, so by then nothing of ours may be left on the device: each link is
 * told to end (its socket sees ENETDOWN, sleepers wake), and its teardown,
 * which waits for no program, drops the reference that is waited for here.
 */
#include <linux/slab.h>

#include "conn.h"
#include "device.h"
#include "link.h"
#include "net.h"

static struct ib_client hps_client;

/* From finding a device by ib_core's pointer to having a reference on it. */
static DEFINE_SPINLOCK(hps_device_lock);

static void hps_device_put(struct hps_device *dev)
{
	if (refcount_dec_and_test(&dev->ref))
		complete(&dev->gone);
}

/**
 * hps_device_join - bind a link to its device
 * @ibdev: the device, kept by the caller's cm_id
 * @link: not on a device yet; takes a reference on it
 *
 * Context: process.
 * Return: 0, or -ENODEV if the device is not one of ours or is going away.
 */
int hps_device_join(struct ib_device *ibdev, struct hps_link *link)
{
	struct hps_device *dev;

	spin_lock(&hps_device_lock);
	dev = ib_get_client_data(ibdev, &hps_client);
	if (dev) {
		spin_lock(&dev->lock);
		if (dev->removing) {
			spin_unlock(&dev->lock);
			dev = NULL;
		} else {
			refcount_inc(&dev->ref);
			list_add_tail(&link->dev_node, &dev->links);
			spin_unlock(&dev->lock);
		}
	}
	spin_unlock(&hps_device_lock);
	if (!dev)
		return -ENODEV;
	spin_lock_bh(&link->conn.lock);
	link->dev = dev;
	spin_unlock_bh(&link->conn.lock);
	return 0;
}

/**
 * hps_device_leave - the link has nothing left on the device
 * @link: on a device or not
 *
 * Context: process.
 */
void hps_device_leave(struct hps_link *link)
{
	struct hps_device *dev;

	spin_lock_bh(&link->conn.lock);
	dev = link->dev;
	link->dev = NULL;
	spin_unlock_bh(&link->conn.lock);
	if (!dev)
		return;
	spin_lock(&dev->lock);
	list_del_init(&link->dev_node);
	spin_unlock(&dev->lock);
	hps_device_put(dev);
}

static int hps_device_add(struct ib_device *ibdev)
{
	struct hps_device *dev;
	int err;

	/* A device that no connection can be made over is of no use. */
	if (!rdma_cap_ib_cm(ibdev, rdma_start_port(ibdev)) &&
	    !rdma_cap_iw_cm(ibdev, rdma_start_port(ibdev)))
		return -EOPNOTSUPP;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ibdev = ibdev;
	dev->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(dev->pd)) {
		err = PTR_ERR(dev->pd);
		kfree(dev);
		return err;
	}
	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->links);
	refcount_set(&dev->ref, 1);
	init_completion(&dev->gone);
	ib_set_client_data(ibdev, &hps_client, dev);
	return 0;
}

/* A link of the device with a reference, taken off the list; NULL if none. */
static struct hps_link *hps_device_pop(struct hps_device *dev)
{
	struct hps_link *link;

	spin_lock(&dev->lock);
	link = list_first_entry_or_null(&dev->links, struct hps_link,
					dev_node);
	if (link) {
		list_del_init(&link->dev_node);
		hps_conn_get(&link->conn);
	}
	spin_unlock(&dev->lock);
	return link;
}

static void hps_device_remove(struct ib_device *ibdev, void *client_data)
{
	struct hps_device *dev = client_data;
	struct hps_link *link;

	/* ib_core forgets the pointer only after this function. */
	ib_set_client_data(ibdev, &hps_client, NULL);
	spin_lock(&hps_device_lock);
	spin_lock(&dev->lock);
	dev->removing = true;
	spin_unlock(&dev->lock);
	spin_unlock(&hps_device_lock);
	while ((link = hps_device_pop(dev))) {
		spin_lock_bh(&link->conn.lock);
		if (!link->conn.shut) {
			hps_stat_inc(link->conn.hn, HPS_STAT_DEVICE_REMOVED);
			hps_conn_shut(&link->conn, ENETDOWN);
		}
		spin_unlock_bh(&link->conn.lock);
		hps_conn_put(&link->conn);
	}
	hps_device_put(dev);
	wait_for_completion(&dev->gone);
	ib_dealloc_pd(dev->pd);
	kfree(dev);
}

static struct ib_client hps_client = {
	.name	= "hpsock",
	.add	= hps_device_add,
	.remove	= hps_device_remove,
};

/**
 * hps_device_register - learn of devices, present and future
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int hps_device_register(void)
{
	return ib_register_client(&hps_client);
}

/**
 * hps_device_unregister - undo hps_device_register(); ends all links
 *
 * Context: process, may sleep.
 */
void hps_device_unregister(void)
{
	ib_unregister_client(&hps_client);
}
