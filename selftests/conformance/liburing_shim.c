// SPDX-License-Identifier: GPL-2.0
/*
 * A preload for the tests of liburing, below which goes that of hpsock_run.
 *
 * - What io_uring does, the kernel does, out of reach of a preload: IORING_OP_
 *   SOCKET, CONNECT and BIND are rewritten in the ring before it is submitted.
 * - The tests talk to 127.0.0.1 and ::1, where AF_HPSOCK has no path: HPS_ADDR_B
 *   and HPS_ADDR6_B are there in their place.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <liburing.h>

/* The function that would have been called without us. */
#define NEXT(fn)	((__typeof__(fn) *)dlsym(RTLD_NEXT, #fn))

/* Is it of the family under test? Datagram sockets, for one, are not. */
static int is_ours(int fd)
{
	const char *ours = getenv("HPS_DOMAIN");
	socklen_t len = sizeof(int);
	int domain;

	/* Not what the preload below says. */
	return ours && !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       domain == atoi(ours);
}

/* In place: the kernel may look at it long after we have returned. */
static void move(const struct sockaddr *addr, int any)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in = (void *)addr;

	if (in->sin_family == AF_INET &&
	    (in->sin_addr.s_addr == htonl(INADDR_LOOPBACK) ||
	     (any && in->sin_addr.s_addr == htonl(INADDR_ANY))))
		inet_pton(AF_INET, getenv("HPS_ADDR_B"), &in->sin_addr);
	else if (in6->sin6_family == AF_INET6 &&
		 (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
		  (any && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))))
		inet_pton(AF_INET6, getenv("HPS_ADDR6_B"), &in6->sin6_addr);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (is_ours(fd))
		move(addr, 0);
	return NEXT(bind)(fd, addr, len);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	const char *settle = getenv("HPS_SETTLE");
	int ret, ours = is_ours(fd);

	if (ours)
		move(addr, 1);
	ret = NEXT(connect)(fd, addr, len);
	/* Until it can be accepted. */
	if (ours && !ret && settle && *settle)
		usleep(200000);
	return ret;
}

static void rewrite_sqe(struct io_uring_sqe *sqe)
{
	const char *domain = getenv("HPS_DOMAIN");

	switch (sqe->opcode) {
	case IORING_OP_SOCKET:
		/* fd is the family, off the type */
		if (domain && sqe->fd == AF_INET && (sqe->off & 0xf) == SOCK_STREAM)
			sqe->fd = atoi(domain);
		break;
	case IORING_OP_CONNECT:
	case IORING_OP_BIND:
		/* A registered file, of which only streams are bound or connected. */
		if ((sqe->flags & IOSQE_FIXED_FILE) || is_ours(sqe->fd))
			move((void *)(uintptr_t)sqe->addr, sqe->opcode == IORING_OP_CONNECT);
		break;
	}
}

/* What the program has filled in and the kernel has not been told of. */
static void rewrite(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	int shift = !!(ring->flags & IORING_SETUP_SQE128);
	unsigned int i;

	for (i = sq->sqe_head; i != sq->sqe_tail; i++)
		rewrite_sqe(&sq->sqes[(i & sq->ring_mask) << shift]);
}

int io_uring_submit(struct io_uring *ring)
{
	rewrite(ring);
	return NEXT(io_uring_submit)(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait_nr)
{
	rewrite(ring);
	return NEXT(io_uring_submit_and_wait)(ring, wait_nr);
}

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
				     unsigned int wait_nr, struct __kernel_timespec *ts,
				     sigset_t *sigmask)
{
	rewrite(ring);
	return NEXT(io_uring_submit_and_wait_timeout)(ring, cqe, wait_nr, ts, sigmask);
}

int io_uring_submit_and_get_events(struct io_uring *ring)
{
	rewrite(ring);
	return NEXT(io_uring_submit_and_get_events)(ring);
}
