// SPDX-License-Identifier: GPL-2.0
/*
 * libhpsock_run: the preload behind hpsock_run(1).
 *
 * It rewrites the family of a TCP socket() call, and tells the new socket if that was to be
 * AF_INET6; and it answers for the kernel when a program asks a socket for its family by
 * SO_DOMAIN. Everything else is the kernel's business, so nothing else is intercepted, and
 * what the kernel answers (EAFNOSUPPORT included) is what the program gets to see.
 *
 * The program may bring a C library of its own, of another age or make: the Makefile links
 * this one with none, so what it calls has no version, and has to be in each.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "family.h"

typedef int (*socket_fn)(int domain, int type, int protocol);
typedef int (*getsockopt_fn)(int fd, int level, int name, void *val, socklen_t *len);

/* In a library of its own, which the program may not have, before glibc 2.34. */
#pragma weak dlsym

/*
 * A program without a C library, such as one in Go that has none of C, never calls us; but
 * it is not to fail for what we lack then.
 */
#pragma weak __errno_location
#pragma weak close
#pragma weak getsockname
#pragma weak open
#pragma weak read
#pragma weak setsockopt
#pragma weak syscall

/*
 * Threads that race here, or a constructor of another library that opens a
 * socket before ours ran, store the same values twice, which is harmless.
 */
static socket_fn next_socket;
static getsockopt_fn next_getsockopt;
static int family;

static int call_socket(int domain, int type, int protocol)
{
	return syscall(SYS_socket, domain, type, protocol);
}

static int call_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	return syscall(SYS_getsockopt, fd, level, name, val, len);
}

/* Who is next in line for a function; or NULL. */
static void *next(const char *name)
{
	return dlsym ? dlsym(RTLD_NEXT, name) : NULL;
}

static __attribute__((noinline)) void look_up(void)
{
	int saved = errno;

	if (!family)
		family = read_family();
	if (!next_getsockopt)
		next_getsockopt = (getsockopt_fn)next("getsockopt") ?: call_getsockopt;
	if (!next_socket)
		next_socket = (socket_fn)next("socket") ?: call_socket;
	errno = saved;
}

static int looked_up(void)
{
	return next_socket && next_getsockopt && family;
}

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

/* Its own family serves both versions of IP; this one was opened for IPv6. */
static int begin_as_ipv6(int fd)
{
	int family = AF_INET6, err = errno;

	if (!setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &family, sizeof(family)))
		return fd;
	/* Of an older module, or denied: it can be used, and is one of IPv6 once bound. */
	if (errno != ENOPROTOOPT) {
		errno = err;
		return fd;
	}
	/* The kernel has no IPv6, as socket() would have said. */
	close(fd);
	errno = EAFNOSUPPORT;
	return -1;
}

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	int fd;

	if (!looked_up())
		look_up();
	if (!is_tcp(domain, type, protocol))
		return next_socket(domain, type, protocol);
	fd = next_socket(family, type, protocol);
	return domain == AF_INET6 && fd >= 0 ? begin_as_ipv6(fd) : fd;
}

/* The family that the program opened it with: that of its name. */
static int opened_as(int fd)
{
	struct sockaddr_storage name = {};
	socklen_t len = sizeof(name);
	int err = errno;

	if (getsockname(fd, (struct sockaddr *)&name, &len)) {
		errno = err;
		return family;
	}
	return name.ss_family;
}

__attribute__((visibility("default")))
int getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	int err;

	if (!looked_up())
		look_up();
	err = next_getsockopt(fd, level, name, val, len);
	if (!err && level == SOL_SOCKET && name == SO_DOMAIN && *len == sizeof(int) &&
	    *(int *)val == family)
		*(int *)val = opened_as(fd);
	return err;
}

/*
 * Early, while dlsym() and sysfs are surely within reach: the program may call
 * socket() later from a chroot, under seccomp or between fork() and exec().
 */
static __attribute__((constructor)) void init(void)
{
	if (open)
		look_up();
}
