// SPDX-License-Identifier: GPL-2.0
/*
 * A preload for the User Mode Linux of Linux 6.12, which keeps 2696 bytes of the extended state
 * of its processes' registers, all that processors had before AMX.  Where there is more the host
 * gives it the first 2696, but takes nothing less than the whole back: PTRACE_SETREGSET fails
 * with EFAULT, and the guest's init dies.  So add the rest here, which is the initial state: no
 * process of a guest has a permission to use AMX.
 *
 * (Linux 6.13 asks the host for the size.)
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long (*ptrace_t)(int request, pid_t pid, void *addr, void *data);

static ptrace_t next;
static unsigned int host_size;	/* bytes of the state that the host's kernel keeps */

static void __attribute__((constructor)) um_xstate_init(void)
{
	unsigned int a, c, d;

	next = (ptrace_t)dlsym(RTLD_NEXT, "ptrace");
	if (!__get_cpuid_count(0xd, 0, &a, &host_size, &c, &d))
		host_size = 0;
}

/* The stack is that of a guest's process, at its very bottom, where 16 KiB and more are free. */
static long set_whole(int request, pid_t pid, void *addr, const struct iovec *part)
{
	char whole[host_size];
	struct iovec iov = { .iov_base = whole, .iov_len = host_size };

	memcpy(whole, part->iov_base, part->iov_len);
	memset(whole + part->iov_len, 0, host_size - part->iov_len);
	return next(request, pid, addr, &iov);
}

/* Of <sys/ptrace.h>'s enumeration: an int to who calls it. */
long ptrace(enum __ptrace_request request, ...)
{
	void *addr, *data;
	va_list args;
	pid_t pid;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (request == PTRACE_SETREGSET && (long)addr == NT_X86_XSTATE &&
	    ((struct iovec *)data)->iov_len < host_size)
		return set_whole(request, pid, addr, data);
	return next(request, pid, addr, data);
}
