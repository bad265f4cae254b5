// SPDX-License-Identifier: GPL-2.0
/*
 * libhpsock_run: the preload behind hpsock_run(1).
 *
 * It rewrites one thing: the family of a TCP socket() call. Everything after
 * that is the kernel's business, so nothing else is intercepted, and what the
 * kernel answers (EAFNOSUPPORT included) is what the program gets to see.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/hpsock.h>

#define FAMILY_PARAM	"/sys/module/hpsock/parameters/family"

/* Set by hpsock_run only for the moment it asks whether the family works. */
#define PROBE_ENV	"HPSOCK_RUN_PROBE"

typedef int (*socket_fn)(int domain, int type, int protocol);

/*
 * Threads that race here, or a constructor of another library that opens a
 * socket before ours ran, store the same values twice, which is harmless.
 */
static socket_fn next_socket;
static int family;

static int read_family(void)
{
	char buf[16];
	ssize_t n;
	int fd, nr;

	fd = open(FAMILY_PARAM, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return AF_HPSOCK;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return AF_HPSOCK;
	buf[n] = '\0';
	nr = atoi(buf);
	return nr > 0 ? nr : AF_HPSOCK;
}

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

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	if (!next_socket || !family)
		look_up();
	if (!next_socket) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (is_tcp(domain, type, protocol))
		domain = family;
	return next_socket(domain, type, protocol);
}

/*
 * The launcher is a shell script and cannot open a socket itself; it runs
 * something harmless under this library and reads the exit status.
 */
static void probe(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0)
		_exit(0);
	fprintf(stderr, "hpsock_run: socket family %d: %s\n", family,
		strerror(errno));
	_exit(1);
}

/*
 * Early, while dlsym() and sysfs are surely within reach: the program may call
 * socket() later from a chroot, under seccomp or between fork() and exec().
 */
static __attribute__((constructor)) void init(void)
{
	look_up();
	if (getenv(PROBE_ENV))
		probe();
}
