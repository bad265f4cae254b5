// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets of any family, and the blocking calls that all tests make on them.
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"

#ifndef AF_SMC
#define AF_SMC		43
#endif

void send_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(fd, p, len, 0);
		if (n < 0)
			err(1, "send");
	}
}

/* Whether @len bytes came; an end of the stream before the first is not one. */
bool recv_all(int fd, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = recv(fd, (char *)buf + done, len - done, 0);
		if (n < 0)
			err(1, "recv");
		if (n == 0) {
			if (done)
				errx(1, "the peer closed in the middle of a message");
			return false;
		}
		done += n;
	}
	return true;
}

void must_recv(int fd, void *buf, size_t len)
{
	if (!recv_all(fd, buf, len))
		errx(1, "the peer closed early");
}

/* Nothing but the end of the stream. */
void must_end(int fd)
{
	char c;

	if (recv_all(fd, &c, 1))
		errx(1, "more than was to come");
}

/* @left bytes, at most @size at a time. */
void drain(int fd, void *buf, uint32_t size, uint64_t left)
{
	ssize_t n;

	for (; left; left -= n) {
		n = recv(fd, buf, left < size ? left : size, 0);
		if (n < 0)
			err(1, "recv");
		if (n == 0)
			errx(1, "the peer closed early");
	}
}

#define HUGE_PAGE	(2UL << 20)

void *alloc_buf(uint32_t size)
{
	size_t align = opt.huge ? HUGE_PAGE : 4096, len = (size + align - 1) & -align;
	void *buf = aligned_alloc(align, len);

	if (!buf)
		err(1, "memory");
	if (opt.huge && madvise(buf, len, MADV_HUGEPAGE))
		err(1, "huge pages");
	memset(buf, 0x5a, size);
	return buf;
}

/* Addresses are always IP; only the socket is of another family. */
struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *ai;
	int ret;

	if (!host)
		hints.ai_family = AF_INET;
	ret = getaddrinfo(host, port, &hints, &ai);
	if (ret)
		errx(1, "%s: %s", host ? host : port, gai_strerror(ret));
	return ai;
}

static void set_option(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		err(1, "%s", what);
}

int open_socket(const struct addrinfo *ai)
{
	int family = opt.family == AF_INET ? ai->ai_family : opt.family;
	int protocol = opt.family == AF_SMC && ai->ai_family == AF_INET6;
	int fd;

	fd = socket(family, SOCK_STREAM, protocol);
	if (fd < 0)
		err(1, "socket of family %d", family);
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	return fd;
}

static void set_nodelay(int fd)
{
	if (!opt.nagle)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

/* With -C: sends smaller than a message wait for more, or not any longer. */
void set_cork(int fd, bool on)
{
	if (opt.cork)
		set_option(fd, IPPROTO_TCP, TCP_CORK, on, "TCP_CORK");
}

/* Returns -1 with errno set if the peer does not want it. */
int connect_to(const struct addrinfo *ai, const struct addrinfo *from)
{
	int fd = open_socket(ai);
	int saved;

	if (from && bind(fd, from->ai_addr, from->ai_addrlen))
		err(1, "bind to %s", opt.bind);
	if (opt.maxseg)
		set_option(fd, IPPROTO_TCP, TCP_MAXSEG, opt.maxseg, "TCP_MAXSEG");
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		set_nodelay(fd);
		return fd;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int listen_at(const struct addrinfo *ai, int backlog)
{
	int fd = open_socket(ai);

	if (bind(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "bind");
	if (listen(fd, backlog))
		err(1, "listen");
	return fd;
}

int accept_from(int fd)
{
	int conn = accept(fd, NULL, NULL);

	if (conn < 0)
		err(1, "accept");
	set_nodelay(conn);
	return conn;
}
