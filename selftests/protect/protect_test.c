// SPDX-License-Identifier: GPL-2.0
/*
 * Page protection without sockets: the files that af_hpsock/hold.h names, behind a
 * device for selftests/mm_protect.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "protect.h"
#include "protect_test.h"

#define HPS_TEST_GRABS	512

struct hps_test_file {
	struct mutex lock;	/* everything here */
	struct xarray holds;	/* of struct hps_test_held */
	struct page *grabbed[HPS_TEST_GRABS];
	unsigned int nr_grabbed;
	bool pinned;
#ifdef CONFIG_MMU_NOTIFIER
	struct mmu_notifier notifier;
#endif
	struct mm_struct *notified;
};

struct hps_test_held {
	struct hps_hold *hold;
	unsigned int offset;	/* of the range in its first page */
	u64 len;
};

struct hps_test_work {
	struct work_struct work;
	struct hps_hold *hold;
	struct hps_released res;
};

#define hps_test_in(in, arg)	copy_from_user(&(in), (void __user *)(arg), sizeof(in))
#define hps_test_out(arg, out)	copy_to_user((void __user *)(arg), &(out), sizeof(out))

static long hps_test_hold(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_hold in;
	struct hps_test_held *held;
	enum hps_refusal why;
	u64 begin;
	int err = 0;

	if (hps_test_in(in, arg))
		return -EFAULT;
	held = kzalloc(sizeof(*held), GFP_KERNEL);
	if (!held)
		return -ENOMEM;
	begin = ktime_get_ns();
	held->hold = hps_protect(in.addr, in.len, &why);
	in.ns = ktime_get_ns() - begin;
	strscpy(in.why, hps_refusal_name(why), sizeof(in.why));
	if (IS_ERR(held->hold)) {
		err = PTR_ERR(held->hold);
		kfree(held);
		return hps_test_out(arg, in) ? -EFAULT : err;
	}
	held->offset = offset_in_page(in.addr);
	held->len = in.len;
	err = xa_alloc(&f->holds, &in.id, held, xa_limit_31b, GFP_KERNEL);
	if (err) {
		struct hps_released res;

		hps_protect_release(held->hold, &res);
		kfree(held);
		return err;
	}
	return hps_test_out(arg, in) ? -EFAULT : 0;
}

static long hps_test_read(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_held *held;
	struct hps_test_read in;
	struct page **pages;
	unsigned int nr;

	if (hps_test_in(in, arg))
		return -EFAULT;
	held = xa_load(&f->holds, in.id);
	if (!held)
		return -ENOENT;
	if (in.offset > held->len || in.len > held->len - in.offset)
		return -ERANGE;
	pages = hps_hold_pages(held->hold, &nr);
	while (in.len) {
		u64 at = in.offset + held->offset;
		size_t n = min_t(u64, in.len, PAGE_SIZE - offset_in_page(at));
		/* It reads which section the page is in from its flags; others of these change. */
		void *p = data_race(kmap_local_page(pages[at >> PAGE_SHIFT]));
		bool bad = copy_to_user(u64_to_user_ptr(in.buf), p + offset_in_page(at), n);

		kunmap_local(p);
		if (bad)
			return -EFAULT;
		in.offset += n;
		in.buf += n;
		in.len -= n;
	}
	return 0;
}

static void hps_test_release_work(struct work_struct *work)
{
	struct hps_test_work *w = container_of(work, struct hps_test_work, work);

	hps_protect_release(w->hold, &w->res);
}

static long hps_test_release(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_release in;
	struct hps_test_held *held;
	struct hps_test_work w;
	u64 begin;

	if (hps_test_in(in, arg))
		return -EFAULT;
	held = xa_erase(&f->holds, in.id);
	if (!held)
		return -ENOENT;
	w.hold = held->hold;
	kfree(held);
	begin = ktime_get_ns();
	if (in.elsewhere) {
		INIT_WORK_ONSTACK(&w.work, hps_test_release_work);
		schedule_work(&w.work);
		flush_work(&w.work);
		destroy_work_on_stack(&w.work);
	} else {
		hps_protect_release(w.hold, &w.res);
	}
	in.ns = ktime_get_ns() - begin;
	in.early = w.res.early;
	in.restored = w.res.restored;
	in.copied = w.res.copied;
	return hps_test_out(arg, in) ? -EFAULT : 0;
}

static long hps_test_count(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_count out = {
		.holds = hps_protect_holds(),
		.bytes = hps_protect_bytes(),
	};

	return hps_test_out(arg, out) ? -EFAULT : 0;
}

static void hps_test_ungrab(struct hps_test_file *f)
{
	if (f->pinned)
		unpin_user_pages(f->grabbed, f->nr_grabbed);
	else
		release_pages(f->grabbed, f->nr_grabbed);
	f->nr_grabbed = 0;
}

static long hps_test_grab(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_grab in;
	u64 begin;
	int n, nr;

	if (hps_test_in(in, arg))
		return -EFAULT;
	hps_test_ungrab(f);
	nr = in.len >> PAGE_SHIFT;
	if (!nr || nr > HPS_TEST_GRABS)
		return nr ? -ERANGE : 0;
	f->pinned = in.pin;
	begin = ktime_get_ns();
	n = in.pin ? pin_user_pages_fast(in.addr, nr, FOLL_WRITE, f->grabbed) :
		     get_user_pages_fast(in.addr, nr, in.keep ? FOLL_WRITE : 0, f->grabbed);
	if (n < 0)
		return n;
	f->nr_grabbed = n;
	if (!in.keep)
		hps_test_ungrab(f);
	in.ns = ktime_get_ns() - begin;
	return hps_test_out(arg, in) ? -EFAULT : 0;
}

static long hps_test_copy(struct hps_test_file *f, unsigned long arg)
{
	struct hps_test_copy in;
	u64 begin, at;
	void *p;
	int err = 0;

	if (hps_test_in(in, arg))
		return -EFAULT;
	p = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	begin = ktime_get_ns();
	for (at = 0; !err && at < in.len; at += PAGE_SIZE)
		err = copy_from_user(p, u64_to_user_ptr(in.addr + at), PAGE_SIZE);
	in.ns = ktime_get_ns() - begin;
	kfree(p);
	return err || hps_test_out(arg, in) ? -EFAULT : 0;
}

#ifdef CONFIG_MMU_NOTIFIER
static const struct mmu_notifier_ops hps_test_notifier_ops;

static long hps_test_notify(struct hps_test_file *f, unsigned long arg)
{
	int err;

	if (f->notified)
		return -EBUSY;
	f->notifier.ops = &hps_test_notifier_ops;
	err = mmu_notifier_register(&f->notifier, current->mm);
	if (!err)
		f->notified = current->mm;
	return err;
}

static void hps_test_unnotify(struct hps_test_file *f)
{
	if (f->notified)
		mmu_notifier_unregister(&f->notifier, f->notified);
}
#else
static long hps_test_notify(struct hps_test_file *f, unsigned long arg)
{
	return -EOPNOTSUPP;
}

static void hps_test_unnotify(struct hps_test_file *f)
{
}
#endif

static const struct {
	unsigned int cmd;
	long (*fn)(struct hps_test_file *f, unsigned long arg);
	bool parallel;		/* several threads at once */
} hps_test_cmds[] = {
	{ HPS_TEST_HOLD, hps_test_hold, true },
	{ HPS_TEST_READ, hps_test_read },
	{ HPS_TEST_RELEASE, hps_test_release, true },
	{ HPS_TEST_COUNT, hps_test_count },
	{ HPS_TEST_GRAB, hps_test_grab },
	{ HPS_TEST_COPY, hps_test_copy },
	{ HPS_TEST_NOTIFY, hps_test_notify },
};

static long hps_test_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct hps_test_file *f = file->private_data;
	unsigned int i;
	long ret;

	for (i = 0; i < ARRAY_SIZE(hps_test_cmds); i++) {
		if (hps_test_cmds[i].cmd != cmd)
			continue;
		if (hps_test_cmds[i].parallel)
			return hps_test_cmds[i].fn(f, arg);
		mutex_lock(&f->lock);
		ret = hps_test_cmds[i].fn(f, arg);
		mutex_unlock(&f->lock);
		return ret;
	}
	return -ENOTTY;
}

static int hps_test_open(struct inode *inode, struct file *file)
{
	struct hps_test_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	xa_init_flags(&f->holds, XA_FLAGS_ALLOC1);
	file->private_data = f;
	return 0;
}

static int hps_test_close(struct inode *inode, struct file *file)
{
	struct hps_test_file *f = file->private_data;
	struct hps_test_held *held;
	struct hps_released res;
	unsigned long id;

	xa_for_each(&f->holds, id, held) {
		hps_protect_release(held->hold, &res);
		kfree(held);
	}
	xa_destroy(&f->holds);
	hps_test_ungrab(f);
	hps_test_unnotify(f);
	kfree(f);
	return 0;
}

static const struct file_operations hps_test_fops = {
	.owner = THIS_MODULE,
	.open = hps_test_open,
	.release = hps_test_close,
	.unlocked_ioctl = hps_test_ioctl,
};

static struct miscdevice hps_test_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = HPS_TEST_DEVICE,
	.fops = &hps_test_fops,
};

static int __init hps_test_init(void)
{
	hps_protect_init();
	return misc_register(&hps_test_device);
}

static void __exit hps_test_exit(void)
{
	misc_deregister(&hps_test_device);
}

module_init(hps_test_init);
module_exit(hps_test_exit);

MODULE_DESCRIPTION("Page protection of AF_HPSOCK for its selftest");
MODULE_AUTHOR("The hpsock maintainers");
MODULE_LICENSE("GPL");
