// SPDX-License-Identifier: GPL-2.0
/*
 * crowd: many connections that each carry a small message now and then.
 *
 * usage: crowd FAMILY ADDRESS CONNECTIONS SECONDS
 * Both ends are here. Each connection in turn gets 64 bytes, which come back, such
 * that each has its turn once in so many seconds. Says "ready" when all are
 * connected, and runs until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE	64

static void die(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int new_socket(int family)
{
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static void watch(int ep, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void echo(int fd)
{
	char buf[MESSAGE];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n <= 0)
		close(fd);
	else if (send(fd, buf, n, MSG_NOSIGNAL) != n)
		die("send");
}

static void serve(int l)
{
	struct epoll_event event;
	int ep = epoll_create1(0), fd;

	watch(ep, l);
	for (;;) {
		if (epoll_wait(ep, &event, 1, -1) != 1)
			continue;
		if (event.data.fd != l) {
			echo(event.data.fd);
			continue;
		}
		fd = accept(l, NULL, NULL);
		if (fd < 0)
			die("accept");
		watch(ep, fd);
	}
}

static void turns(const int *fds, int conns, const struct timespec *pause)
{
	char buf[MESSAGE] = { 0 };
	int i;

	for (i = 0;; i = (i + 1) % conns) {
		if (send(fds[i], buf, sizeof(buf), 0) != sizeof(buf) ||
		    recv(fds[i], buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
			die("a message");
		nanosleep(pause, NULL);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	struct timespec pause;
	int family, conns, i, l;
	double each;
	int *fds;

	if (argc != 5 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
		fputs("usage: crowd FAMILY ADDRESS CONNECTIONS SECONDS\n", stderr);
		return 2;
	}
	family = atoi(argv[1]);
	conns = atoi(argv[3]);
	each = atof(argv[4]) / conns;
	pause.tv_sec = each;
	pause.tv_nsec = (each - pause.tv_sec) * 1e9;
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	l = new_socket(family);
	if (bind(l, (struct sockaddr *)&at, len) || listen(l, 64) ||
	    getsockname(l, (struct sockaddr *)&at, &len))
		die("listen");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(l);
	}
	fds = calloc(conns, sizeof(int));
	for (i = 0; i < conns; i++) {
		fds[i] = new_socket(family);
		if (connect(fds[i], (struct sockaddr *)&at, len))
			die("connect");
	}
	puts("ready");
	fflush(stdout);
	turns(fds, conns, &pause);
}
