// SPDX-License-Identifier: GPL-2.0
/*
 * hpsperf: what a stream socket of any family can do, and what it costs.
 *
 * The same blocking send() and recv() calls run on TCP, AF_HPSOCK, AF_SMC and
 * under a preload, so that what differs between two results is the socket, not
 * the benchmark.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/hpsock.h>

#include "perf.h"

#ifndef AF_SMC
#define AF_SMC		43
#endif

#define FAMILY_PARAM	"/sys/module/hpsock/parameters/family"
#define MAX_SIZE	0x40000000	/* 1 GiB */

struct options opt = {
	.family = AF_INET,
	.family_name = "tcp",
	.port = "7027",
	.test = &test_lat,
	.size_min = 64,
	.size_max = 64,
	.buffers = 1,
};

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

/* Up to @end, which is set to what follows. */
static unsigned long long parse_part(const char *s, unsigned long long max, char **end)
{
	unsigned long long n;

	errno = 0;
	n = strtoull(s, end, 0);
	if (*end != s && (**end == 'k' || **end == 'K'))
		n <<= 10, (*end)++;
	else if (*end != s && (**end == 'm' || **end == 'M'))
		n <<= 20, (*end)++;
	if (errno || *end == s || *s == '-' || n > max)
		errx(1, "not a number from 0 to %llu: %s", max, s);
	return n;
}

static unsigned long long parse_number(const char *s, unsigned long long max)
{
	unsigned long long n;
	char *end;

	n = parse_part(s, max, &end);
	if (*end)
		errx(1, "more than a number: %s", s);
	return n;
}

/* SIZE, or MIN-MAX. */
static void parse_size(const char *s)
{
	char *end;

	opt.size_min = parse_part(s, MAX_SIZE, &end);
	opt.size_max = *end == '-' ? parse_number(end + 1, MAX_SIZE) : opt.size_min;
	if ((*end && *end != '-') || opt.size_min > opt.size_max || !opt.size_min)
		errx(1, "not a size, or a smaller and a larger one: %s", s);
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

static const struct test *parse_test(const char *s)
{
	const struct test *test = test_named(s);

	if (!test)
		errx(1, "no such test: %s", s);
	return test;
}

static void print_usage(FILE *f)
{
	fputs("usage: hpsperf [OPTION...] -s          serve until killed\n"
	      "       hpsperf [OPTION...] -c HOST     run one test\n"
	      "  -f FAMILY  tcp, hpsock, smc or a number (tcp)\n"
	      "  -p PORT    port of the server (7027)\n"
	      "  -B ADDR    local address\n"
	      "  -t TEST    lat, bw, bibw, rate, hotspot, fanin, fanout or mem (lat)\n"
	      "  -l SIZE    bytes a send(); k and m multiply; MIN-MAX doubles from one to\n"
	      "             the other (64)\n"
	      "  -n COUNT   round trips, messages or connections, of each connection of the\n"
	      "             test (10000, or 256 MiB in all, or 1000)\n"
	      "  -P CONNS   connections at once (1; 8 for hotspot, fanin and fanout; 200 for mem)\n"
	      "  -w SECS    keep trying to connect while it is refused (0)\n"
	      "  -M BYTES   TCP_MAXSEG of the client\n"
	      "  -C         TCP_CORK at the client\n"
	      "  -N         no TCP_NODELAY\n"
	      "  -b COUNT   send from so many buffers in turn (1)\n"
	      "  -W         write to a buffer before it is sent\n"
	      "  -Z         MSG_ZEROCOPY\n"
	      "  -H         buffers in huge pages\n"
	      "  -1         serve one client, without a child process\n"
	      "  -q         print the result alone\n"
	      "  -j         print JSON, one object a result\n", f);
}

/* Each connection of a test is a file. */
static void raise_file_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Options of the socket; true if @c is one. */
static bool socket_option(int c, const char *arg)
{
	switch (c) {
	case 'f':
		opt.family = parse_family(arg);
		opt.family_name = arg;
		return true;
	case 'p':
		opt.port = arg;
		return true;
	case 'B':
		opt.bind = arg;
		return true;
	case 'M':
		opt.maxseg = parse_number(arg, 65535);
		return true;
	case 'C':
		opt.cork = true;
		return true;
	case 'N':
		opt.nagle = true;
		return true;
	case 'b':
		opt.buffers = parse_number(arg, 1024);
		return opt.buffers;
	case 'W':
		opt.rewrite = true;
		return true;
	case 'Z':
		opt.zerocopy = true;
		return true;
	case 'H':
		opt.huge = true;
		return true;
	default:
		return false;
	}
}

/* Options of the test; true if @c is one. */
static bool test_option(int c, const char *arg)
{
	switch (c) {
	case 't':
		opt.test = parse_test(arg);
		return true;
	case 'l':
		parse_size(arg);
		return true;
	case 'n':
		opt.count = parse_number(arg, UINT32_MAX);
		return true;
	case 'P':
		opt.conns = parse_number(arg, 20000);
		return true;
	case 'w':
		opt.wait_secs = parse_number(arg, 3600);
		return true;
	case '1':
		opt.once = true;
		return true;
	case 'q':
		opt.quiet = true;
		return true;
	case 'j':
		opt.json = true;
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	const char *host = NULL;
	bool serving = false;
	int c;

	while ((c = getopt(argc, argv, "sc:f:p:B:t:l:n:P:w:M:CNb:WZH1qjh")) != -1) {
		if (c == 's') {
			serving = true;
		} else if (c == 'c') {
			host = optarg;
		} else if (!socket_option(c, optarg) && !test_option(c, optarg)) {
			print_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc || !host == !serving || opt.conns > opt.test->max_conns) {
		print_usage(stderr);
		return 2;
	}
	if ((uint64_t)opt.size_max * (opt.conns ?: opt.test->conns) > MAX_SIZE)
		errx(2, "more than 1 GiB for all connections together");
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	if (serving)
		serve_clients();
	else
		run_client(host);
	return 0;
}
