// SPDX-License-Identifier: GPL-2.0
/*
 * Widen the window of a race: who enters a function of the kernel spins there for a
 * while, every time or only if an argument has a certain value.
 *
 *	insmod hpsock_delay.ko symbol=a,b us=15000,40000 arg=-1,1 value=0,3
 *
 * a() takes 15 ms longer, b() takes 40 ms longer when its second argument is 3. What was
 * delayed, and how often, is in /sys/module/hpsock_delay/parameters/count. With cpu=1 only
 * that processor is, so that what runs on the others is known to go on meanwhile.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

/* The number of an argument of a function that was just entered. */
static int delay_argument(struct pt_regs *regs, int n)
{
#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
	return regs_get_kernel_argument(regs, n);
#else
	return 0;	/* nor has such a kernel probes: User Mode Linux */
#endif
}

#define DELAY_MAX	4

static char *symbol[DELAY_MAX];
static int symbols;
module_param_array(symbol, charp, &symbols, 0444);
MODULE_PARM_DESC(symbol, "functions");

static int us[DELAY_MAX];
module_param_array(us, int, NULL, 0444);
MODULE_PARM_DESC(us, "microseconds");

static int arg[DELAY_MAX] = { -1, -1, -1, -1 };
module_param_array(arg, int, NULL, 0444);
MODULE_PARM_DESC(arg, "number of the argument to look at, from 0, or -1 for none");

static int value[DELAY_MAX];
module_param_array(value, int, NULL, 0444);
MODULE_PARM_DESC(value, "its value");

static int cpu = -1;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "the only processor that is delayed, or -1 for all");

static int count[DELAY_MAX];
module_param_array(count, int, NULL, 0444);
MODULE_PARM_DESC(count, "how often each was delayed");

static struct kprobe probes[DELAY_MAX];

/*
 * By the clock: mdelay() makes each of its milliseconds as long as the host keeps this
 * processor from running, and then the kernel finds it locked up.
 */
static void delay_spin(s64 ns)
{
	u64 end = ktime_get_mono_fast_ns() + ns;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static int delay_enter(struct kprobe *probe, struct pt_regs *regs)
{
	int i = probe - probes;

	if ((arg[i] >= 0 && delay_argument(regs, arg[i]) != value[i]) ||
	    (cpu >= 0 && cpu != raw_smp_processor_id()))
		return 0;
	/* Two processors may be here; a number too few does no harm. */
	WRITE_ONCE(count[i], READ_ONCE(count[i]) + 1);
	delay_spin((s64)us[i] * NSEC_PER_USEC);
	return 0;
}

static int __init delay_init(void)
{
	int i, err;

	for (i = 0; i < symbols; i++) {
		probes[i].symbol_name = symbol[i];
		probes[i].pre_handler = delay_enter;
		err = register_kprobe(&probes[i]);
		if (err) {
			pr_err("no probe of %s: %pe\n", symbol[i], ERR_PTR(err));
			while (i--)
				unregister_kprobe(&probes[i]);
			return err;
		}
	}
	return 0;
}

static void __exit delay_exit(void)
{
	int i;

	for (i = 0; i < symbols; i++)
		unregister_kprobe(&probes[i]);
}

module_init(delay_init);
module_exit(delay_exit);

MODULE_DESCRIPTION("Widens the windows of races, for the tests of hpsock");
MODULE_AUTHOR("The hpsock maintainers");
MODULE_LICENSE("GPL");
