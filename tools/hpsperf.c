// SPDX-License-Identifier: GPL-2.0
/*
 * hpsperf: latency and bandwidth of a stream socket of any family.
 *
 * The same blocking send() and recv() calls run on TCP, AF_HPSOCK and AF_SMC,
 * so that what differs between two results is the socket, not the benchmark.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/hpsock.h>

#ifndef AF_SMC
#define AF_SMC		43
#endif

#define DEFAULT_PORT	"7027"
#define FAMILY_PARAM	"/sys/module/hpsock/parameters/family"
#define MAX_SIZE	0x40000000	/* 1 GiB */
#define NSEC_PER_SEC	1000000000ULL

enum test { TEST_LAT = 1, TEST_BW = 2 };

/* What the client tells the server first, in network byte order. */
struct request {
	uint32_t test;
	uint32_t size;
	uint64_t count;
};

static struct {
	int family;
	const char *port;
	const char *bind;
	enum test test;
	uint32_t size;
	uint64_t count;
	int wait_secs;
	int quiet;
	int once;
} opt = {
	.family = AF_INET,
	.port = DEFAULT_PORT,
	.test = TEST_LAT,
	.size = 64,
};

static void die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fputs("hpsperf: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void send_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(fd, p, len, 0);
		if (n < 0)
			die("send");
	}
}

/* Whether @len bytes came; an end of the stream before the first is not one. */
static int recv_all(int fd, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = recv(fd, (char *)buf + done, len - done, 0);
		if (n < 0)
			die("recv");
		if (n == 0) {
			errno = 0;
			if (done)
				die("the peer closed in the middle of a message");
			return 0;
		}
		done += n;
	}
	return 1;
}

static void must_recv(int fd, void *buf, size_t len)
{
	if (!recv_all(fd, buf, len)) {
		errno = 0;
		die("the peer closed early");
	}
}

static void *alloc_buf(uint32_t size)
{
	void *buf = aligned_alloc(4096, ((size_t)size + 4095) & ~4095UL);

	if (!buf)
		die("memory");
	memset(buf, 0x5a, size);
	return buf;
}

/* Addresses are always IP; only the socket is of another family. */
static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *ai;
	int err;

	if (!host)
		hints.ai_family = AF_INET;
	err = getaddrinfo(host, port, &hints, &ai);
	if (err) {
		errno = 0;
		die("%s: %s", host ? host : port, gai_strerror(err));
	}
	return ai;
}

static int open_socket(const struct addrinfo *ai)
{
	int family = opt.family == AF_INET ? ai->ai_family : opt.family;
	int protocol = opt.family == AF_SMC && ai->ai_family == AF_INET6;
	int one = 1;
	int fd;

	fd = socket(family, SOCK_STREAM, protocol);
	if (fd < 0)
		die("socket of family %d", family);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		die("SO_REUSEADDR");
	return fd;
}

static void set_nodelay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
}

static int try_connect(const struct addrinfo *ai, const struct addrinfo *src)
{
	int fd = open_socket(ai);

	if (src && bind(fd, src->ai_addr, src->ai_addrlen))
		die("bind to %s", opt.bind);
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	close(fd);
	return -1;
}

/* Retries for --wait seconds, so that a script need not know when we listen. */
static int do_connect(const char *host)
{
	struct addrinfo *ai = resolve(host, opt.port);
	struct addrinfo *src = opt.bind ? resolve(opt.bind, "0") : NULL;
	uint64_t end = now() + opt.wait_secs * NSEC_PER_SEC;
	int fd;

	for (;;) {
		fd = try_connect(ai, src);
		if (fd >= 0)
			break;
		if (errno != ECONNREFUSED || now() >= end)
			die("connect to %s port %s", host, opt.port);
		usleep(10000);
	}
	freeaddrinfo(ai);
	if (src)
		freeaddrinfo(src);
	set_nodelay(fd);
	return fd;
}

static void serve_lat(int fd, char *buf, uint32_t size)
{
	while (recv_all(fd, buf, size))
		send_all(fd, buf, size);
}

static void serve_bw(int fd, char *buf, uint32_t size, uint64_t count)
{
	uint64_t left = count * size;
	ssize_t n;

	while (left) {
		n = recv(fd, buf, left < size ? left : size, 0);
		if (n < 0)
			die("recv");
		if (n == 0) {
			errno = 0;
			die("the peer closed early");
		}
		left -= n;
	}
	send_all(fd, buf, 1);
}

static void serve(int fd)
{
	struct request req;
	uint64_t count;
	uint32_t size;
	char *buf;

	if (!recv_all(fd, &req, sizeof(req)))
		return;
	size = ntohl(req.size);
	count = be64toh(req.count);
	errno = 0;
	if (!size || size > MAX_SIZE || !count || count > UINT64_MAX / size)
		die("a request out of range");
	buf = alloc_buf(size);
	send_all(fd, buf, 1);
	if (ntohl(req.test) == TEST_LAT)
		serve_lat(fd, buf, size);
	else
		serve_bw(fd, buf, size, count);
	free(buf);
}

/* A child for each client: one that dies takes nobody along. */
static void serve_in_child(int lfd, int fd)
{
	if (fork())
		return;
	close(lfd);
	serve(fd);
	exit(0);
}

static void server(void)
{
	struct addrinfo *ai = resolve(opt.bind, opt.port);
	int lfd = open_socket(ai);
	int fd;

	signal(SIGCHLD, SIG_IGN);
	if (bind(lfd, ai->ai_addr, ai->ai_addrlen))
		die("bind to port %s", opt.port);
	if (listen(lfd, 16))
		die("listen");
	do {
		fd = accept(lfd, NULL, NULL);
		if (fd < 0)
			die("accept");
		set_nodelay(fd);
		if (opt.once)
			serve(fd);
		else
			serve_in_child(lfd, fd);
		close(fd);
	} while (!opt.once);
	close(lfd);
	freeaddrinfo(ai);
}

static void start(int fd, enum test test, uint32_t size, uint64_t count)
{
	struct request req = {
		.test = htonl(test),
		.size = htonl(size),
		.count = htobe64(count),
	};
	char ready;

	send_all(fd, &req, sizeof(req));
	must_recv(fd, &ready, 1);
}

/* The first hundredth, at most 100, warms up caches and credits. */
static void client_lat(int fd, char *buf)
{
	uint64_t warm = opt.count / 100 < 100 ? opt.count / 100 : 100;
	uint64_t t0 = 0;
	double us;

	for (uint64_t i = 0; i < warm + opt.count; i++) {
		if (i == warm)
			t0 = now();
		send_all(fd, buf, opt.size);
		must_recv(fd, buf, opt.size);
	}
	us = (now() - t0) / 1e3 / opt.count / 2;
	if (opt.quiet)
		printf("%.2f\n", us);
	else
		printf("%u bytes, %llu round trips: %.2f us one way\n", opt.size,
		       (unsigned long long)opt.count, us);
}

/* The clock stops when the peer has read everything and said so. */
static void client_bw(int fd, char *buf)
{
	uint64_t t0 = now();
	char done;
	double mbs;

	for (uint64_t i = 0; i < opt.count; i++)
		send_all(fd, buf, opt.size);
	must_recv(fd, &done, 1);
	mbs = (double)opt.size * opt.count * 1e3 / (now() - t0);
	if (opt.quiet)
		printf("%.1f\n", mbs);
	else
		printf("%u bytes, %llu times: %.1f MB/s\n", opt.size,
		       (unsigned long long)opt.count, mbs);
}

static void client(const char *host)
{
	char *buf = alloc_buf(opt.size);
	int fd = do_connect(host);

	start(fd, opt.test, opt.size, opt.count);
	if (opt.test == TEST_LAT)
		client_lat(fd, buf);
	else
		client_bw(fd, buf);
	close(fd);
	free(buf);
}

static int hpsock_family(void)
{
	FILE *f = fopen(FAMILY_PARAM, "re");
	int nr = AF_HPSOCK;

	if (f) {
		if (fscanf(f, "%d", &nr) != 1)
			nr = AF_HPSOCK;
		fclose(f);
	}
	return nr;
}

static unsigned long long parse_number(const char *s, unsigned long long max)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(s, &end, 0);
	if (*end == 'k' || *end == 'K')
		n <<= 10, end++;
	else if (*end == 'm' || *end == 'M')
		n <<= 20, end++;
	if (errno || end == s || *end || *s == '-' || n > max) {
		errno = 0;
		die("not a number from 0 to %llu: %s", max, s);
	}
	return n;
}

static int parse_family(const char *s)
{
	if (!strcmp(s, "tcp"))
		return AF_INET;
	if (!strcmp(s, "hpsock"))
		return hpsock_family();
	if (!strcmp(s, "smc"))
		return AF_SMC;
	return parse_number(s, 255);
}

static enum test parse_test(const char *s)
{
	if (!strcmp(s, "lat"))
		return TEST_LAT;
	if (!strcmp(s, "bw"))
		return TEST_BW;
	errno = 0;
	die("neither lat nor bw: %s", s);
	return 0;
}

static void print_usage(FILE *f)
{
	fputs("usage: hpsperf [OPTION...] -s          serve until killed\n"
	      "       hpsperf [OPTION...] -c HOST     run one test\n"
	      "  -f FAMILY  tcp, hpsock, smc or a number (tcp)\n"
	      "  -p PORT    port of the server (" DEFAULT_PORT ")\n"
	      "  -B ADDR    local address\n"
	      "  -t TEST    lat or bw (lat)\n"
	      "  -l SIZE    bytes a send(); k and m multiply (64)\n"
	      "  -n COUNT   round trips, or messages (10000, or 256 MiB in all)\n"
	      "  -w SECS    keep trying to connect while it is refused (0)\n"
	      "  -1         serve one client, without a child process\n"
	      "  -q         print the result alone: us one way, or 10^6 bytes/s\n", f);
}

int main(int argc, char **argv)
{
	const char *host = NULL;
	int serving = 0;
	int c;

	while ((c = getopt(argc, argv, "sc:f:p:B:t:l:n:w:1qh")) != -1) {
		switch (c) {
		case 's':
			serving = 1;
			break;
		case 'c':
			host = optarg;
			break;
		case 'f':
			opt.family = parse_family(optarg);
			break;
		case 'p':
			opt.port = optarg;
			break;
		case 'B':
			opt.bind = optarg;
			break;
		case 't':
			opt.test = parse_test(optarg);
			break;
		case 'l':
			opt.size = parse_number(optarg, MAX_SIZE);
			break;
		case 'n':
			opt.count = parse_number(optarg, UINT32_MAX);
			break;
		case 'w':
			opt.wait_secs = parse_number(optarg, 3600);
			break;
		case '1':
			opt.once = 1;
			break;
		case 'q':
			opt.quiet = 1;
			break;
		default:
			print_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc || !host == !serving || !opt.size) {
		print_usage(stderr);
		return 2;
	}
	if (!opt.count)
		opt.count = opt.test == TEST_LAT ? 10000 : (256U << 20) / opt.size + 1;
	signal(SIGPIPE, SIG_IGN);
	if (serving)
		server();
	else
		client(host);
	return 0;
}
