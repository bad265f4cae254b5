// SPDX-License-Identifier: GPL-2.0
/*
 * libhpsock_run: the preload behind hpsock_run(1).
 *
 * It rewrites one thing: the family of a TCP socket() call, and tells the new socket
 * if that was to be AF_INET6. Everything after that is the kernel's business, so
 * nothing else is intercepted, and what the kernel answers (EAFNOSUPPORT included) is
 * what the program gets to see.
 */
#define _GNU_SOURCE
/* Programs for another C library load it, too: what is called has to be in each. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "family.h"

typedef int (*socket_fn)(int domain, int type, int protocol);

/*
 * Threads that race here, or a constructor of another library that opens a
 * socket before ours ran, store the same values twice, which is harmless.
 */
static socket_fn next_socket;
static int family;

static void look_up(void)
{
	int saved = errno;

	if (!next_socket)
		next_socket = (socket_fn)dlsym(RTLD_NEXT, "socket");
	if (!family)
		family = read_family();
	errno = saved;
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

	if (!next_socket || !family)
		look_up();
	if (!next_socket) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (!is_tcp(domain, type, protocol))
		return next_socket(domain, type, protocol);
	fd = next_socket(family, type, protocol);
	return domain == AF_INET6 && fd >= 0 ? begin_as_ipv6(fd) : fd;
}

/*
 * Early, while dlsym() and sysfs are surely within reach: the program may call
 * socket() later from a chroot, under seccomp or between fork() and exec().
 */
static __attribute__((constructor)) void init(void)
{
	look_up();
}
