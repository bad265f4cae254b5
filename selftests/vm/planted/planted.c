// SPDX-License-Identifier: GPL-2.0
/*
 * A module of mistakes, each of a kind that the test bed claims to notice.
 * "insmod planted.ko bug=NAME" makes one of them; selfcheck expects a report.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *bug = "none";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "name of the mistake to make");

/* What the compiler must not see through. */
static int zero;
static void *leaked;

static void bug_none(void)
{
}

static void bug_uaf(void)
{
	int *p = kmalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	WRITE_ONCE(*p, 1);
}

static void bug_overrun(void)
{
	char *p = kmalloc(24, GFP_KERNEL);

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(p[24], 1);
	kfree(p);
}

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);

static void bug_lockdep(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static DEFINE_SPINLOCK(spin);

static void bug_sleep(void)
{
	spin_lock(&spin);
	msleep(20);
	spin_unlock(&spin);
}

static void bug_refcount(void)
{
	refcount_t r = REFCOUNT_INIT(0);

	refcount_inc(&r);
}

struct ticking {
	struct timer_list timer;
};

static void tick(struct timer_list *t)
{
}

static void bug_odebug(void)
{
	struct ticking *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return;
	timer_setup(&t->timer, tick, 0);
	mod_timer(&t->timer, jiffies + 3600 * HZ);
	kfree(t);
}

static void bug_shift(void)
{
	int by = 40 + zero;

	pr_info("%d\n", 1 << by);
}

/* Several, since a stale pointer on some stack hides one now and then. */
static void bug_leak(void)
{
	int i;

	for (i = 0; i < 16; i++)
		leaked = kmalloc(1000, GFP_KERNEL);
	leaked = NULL;
}

static void bug_warn(void)
{
	WARN(1, "planted\n");
}

static void bug_oops(void)
{
	int *p = NULL;

	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(*p, 1);
}

static void bug_panic(void)
{
	panic("planted");
}

/* Twice as long as a task may hang in our guests. */
static void bug_hung(void)
{
	unsigned long end = jiffies + 130 * HZ;

	while (time_before(jiffies, end)) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule_timeout(end - jiffies);
	}
}

/* Nothing but an NMI gets through to this processor. */
static void bug_spin(void)
{
	local_irq_disable();
	while (!READ_ONCE(zero))
		cpu_relax();
	local_irq_enable();
}

static int raced;

static int race(void *unused)
{
	while (!kthread_should_stop()) {
		raced++;
		cond_resched();
	}
	return 0;
}

/* Two processors count with the same variable; not each time is that seen. */
static void bug_race(void)
{
	struct task_struct *other = kthread_create(race, NULL, "planted_race");
	unsigned long end = jiffies + 10 * HZ;

	if (IS_ERR(other))
		return;
	set_cpus_allowed_ptr(current, cpumask_of(0));
	kthread_bind(other, cpumask_last(cpu_online_mask));
	wake_up_process(other);
	while (time_before(jiffies, end)) {
		raced++;
		cond_resched();
	}
	kthread_stop(other);
}

static const struct {
	const char *name;
	void (*make)(void);
} bugs[] = {
	{ "none", bug_none },
	{ "uaf", bug_uaf },
	{ "overrun", bug_overrun },
	{ "lockdep", bug_lockdep },
	{ "sleep", bug_sleep },
	{ "refcount", bug_refcount },
	{ "odebug", bug_odebug },
	{ "shift", bug_shift },
	{ "leak", bug_leak },
	{ "warn", bug_warn },
	{ "oops", bug_oops },
	{ "panic", bug_panic },
	{ "hung", bug_hung },
	{ "spin", bug_spin },
	{ "race", bug_race },
};

static int __init planted_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (!strcmp(bug, bugs[i].name)) {
			bugs[i].make();
			return 0;
		}
	}
	return -EINVAL;
}
module_init(planted_init);

static void __exit planted_exit(void)
{
}
module_exit(planted_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Mistakes for the test bed to notice");
