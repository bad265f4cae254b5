/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hpsperf: what its parts have in common.
 *
 * A client opens a connection, the control connection, and sends a request. The
 * server answers with a port of its own for this client, where the client connects
 * as often as the test wants, or with none: then the test runs over the control
 * connection. Behind the test the server says what it cost there.
 */
#ifndef HPSPERF_H
#define HPSPERF_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NSEC_PER_SEC	1000000000ULL

/* The command line. */
struct options {
	int family;
	const char *family_name;
	const char *port;
	const char *bind;
	const struct test *test;
	uint32_t size_min;
	uint32_t size_max;
	uint64_t count;
	uint32_t conns;
	uint32_t maxseg;
	uint32_t buffers;
	int wait_secs;
	bool rewrite;
	bool zerocopy;
	bool huge;
	bool cork;
	bool nagle;
	bool quiet;
	bool json;
	bool once;
};

extern struct options opt;

/* What this host and this process have used up, and how much memory is left. */
struct usage {
	uint64_t time;		/* ns */
	uint64_t cpu;		/* ns of this process, user and system */
	uint64_t idle;		/* ns of all processors */
	uint64_t memory;	/* bytes that are free, or cache */
	uint64_t module;	/* bytes that AF_HPSOCK says it has */
};

/* Durations by size, each range of 1/32 of its value or less counted as one. */
#define HIST_SUB	32
#define HIST_BUCKETS	(60 * HIST_SUB)

struct hist {
	uint64_t count[HIST_BUCKETS];
	uint64_t total;
	uint64_t sum;		/* ns */
	uint64_t min;
	uint64_t max;
};

/* One run of one test, at either end. */
struct run {
	const struct test *test;
	uint32_t size;
	uint32_t conns;
	uint64_t count;		/* messages of a connection */
	uint64_t warm;		/* more of them before the clock runs */
	bool again;		/* the client will come back for another run */
	int control;
	int listener;		/* of the server */
	int *fds;		/* @conns connections */
	void *out;		/* what all of them send */
	void **in;		/* where each receives */
	const struct addrinfo *to;	/* of the client: where @listener is */
	const struct addrinfo *from;
	struct usage begin;
	struct usage end;
	struct hist *hist;	/* or NULL */
};

/* client() and server() return when their part is done, with begin and end taken. */
struct test {
	const char *name;
	const char *unit;
	const char *what;	/* that there are @count of */
	uint32_t id;
	uint32_t conns;		/* by default */
	uint32_t max_conns;
	uint64_t bytes;		/* in all by default, or */
	uint64_t count;		/* so many messages */
	bool once;		/* @count is what there is to do, whatever is asked for */
	bool accepts;		/* server() accepts the connections itself */
	bool shared;		/* one thread serves all: never the control connection */
	void (*client)(struct run *run);
	void (*server)(struct run *run);
	double (*value)(const struct run *run);
};

extern const struct test test_lat, test_bw, test_bibw, test_rate;
extern const struct test test_hotspot, test_fanin, test_fanout, test_mem;

/* sock.c */
struct addrinfo *resolve(const char *host, const char *port);
int open_socket(const struct addrinfo *ai);
int connect_to(const struct addrinfo *ai, const struct addrinfo *from);
void set_cork(int fd, bool on);
int listen_at(const struct addrinfo *ai, int backlog);
int accept_from(int fd);
void send_all(int fd, const void *buf, size_t len);
bool recv_all(int fd, void *buf, size_t len);
void must_recv(int fd, void *buf, size_t len);
void must_end(int fd);
void drain(int fd, void *buf, uint32_t size, uint64_t left);
void *alloc_buf(uint32_t size);

/* feed.c */
struct feed;
struct feed *feed_new(int fd, void *out, uint32_t size);
void feed_send(struct feed *feed);
void feed_free(struct feed *feed);

/* usage.c */
uint64_t now(void);
void take_usage(struct usage *usage);
uint64_t busy_ns(const struct usage *begin, const struct usage *end);
double seconds(const struct run *run);

/* hist.c */
struct hist *hist_new(void);
void hist_add(struct hist *hist, uint64_t ns);
void hist_merge(struct hist *to, const struct hist *from);
double hist_us(const struct hist *hist, double share);

/* stream.c */
void each_conn(struct run *run, void (*fn)(struct run *run, uint32_t i));
void clocked(struct run *run, void (*fn)(struct run *run, uint32_t i));
void pour(struct run *run, uint32_t i);
void drink(struct run *run, uint32_t i);
double mbytes_per_sec(const struct run *run);

/* result.c */
struct cost {
	uint64_t cpu;		/* ns */
	uint64_t busy;		/* ns */
	uint64_t memory;	/* bytes */
};

void cost_of(const struct run *run, struct cost *cost);
void print_result(const struct run *run, const struct cost *peer);

/* run.c */
void run_alloc(struct run *run);
void run_free(struct run *run);

/* server.c, client.c, tests.c */
void serve_clients(void);
void run_client(const char *host);
const struct test *test_named(const char *name);
const struct test *test_numbered(uint32_t id);

/* The first words of a client and of its server, in network byte order. */
#define PERF_MAGIC	0x68707032	/* "hpp2" */

struct request {
	uint32_t magic;
	uint32_t test;
	uint32_t size;
	uint32_t conns;
	uint64_t count;
	uint64_t warm;
	uint32_t again;
	uint32_t zero;
};

struct ready {
	uint32_t magic;
	uint32_t port;		/* 0: the control connection is the test's */
};

struct report {
	uint64_t cpu;
	uint64_t busy;
	uint64_t memory;
};

#endif /* HPSPERF_H */
