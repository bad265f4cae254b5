/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the stream tests share. Each test runs as four variants: TCP and
 * AF_HPSOCK, each with IPv4 and with IPv6 addresses, and expects the same of
 * all of them. Where AF_HPSOCK differs on purpose, the test asks self->t.rdma
 * and a comment there says why.
 *
 * Two hosts are assumed, A and B, whose addresses the environment tells:
 * HPS_ADDR_A, HPS_ADDR_B, HPS_ADDR6_A, HPS_ADDR6_B. Servers listen on B,
 * clients connect from A. Both may well be one kernel with a wire between two
 * of its devices. HPSOCK_SLOW multiplies every deadline.
 */
#ifndef HPS_TEST_H
#define HPS_TEST_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef HPS_NO_HARNESS
#include <kselftest_harness.h>
#endif

/* The C library's headers are older. */
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51
#endif
#include <linux/hpsock.h>

struct hps_addr {
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage ss;
	};
};

/* What a variant tests. */
struct hps {
	bool rdma;		/* AF_HPSOCK and not TCP */
	int domain;		/* first argument of socket() */
	int type;		/* second one, SOCK_STREAM by hps_init() */
	int af;			/* family of the addresses */
	struct hps_addr a, b;	/* client's and server's host, port 0 */
};

/* Receives of a connection that is idle for so many seconds shrink. */
#define HPS_SHRINK_AFTER "/sys/module/hpsock/parameters/shrink_after"

/* A reader shows its memory for so many milliseconds. */
#define HPS_ZCOPY_PATIENCE "/sys/module/hpsock/parameters/zcopy_patience"

int hps_family(void);
int hps_slow(void);
long hps_pins(void);
long hps_pins_left(long before);
int hps_kernel(void);
bool hps_siw(void);
bool hps_swaps(void);
bool hps_set_zcopy_sync(const char *how);
bool hps_shares_ports(const struct hps *t);
int hps_deadline(void);
long hps_number(const char *path, long otherwise);
int hps_set_number(const char *path, long n);
int hps_put(const char *path, const char *text);
long hps_field(const char *path, const char *name);
long hps_stat(const char *name);
long hps_send_memory(void);
uint32_t hps_meminfo(int fd, int which);
long hps_netstat(const char *name);
long hps_env(const char *name, long otherwise);
void hps_init(struct hps *t, bool rdma, int af);

/* Addresses */
struct hps_addr hps_parse(const char *text, int port);
struct hps_addr hps_any(int af, int port);
struct hps_addr hps_at(struct hps_addr addr, int port);
struct hps_addr hps_mapped(struct hps_addr addr);
struct hps_addr hps_silent(const struct hps *t);
int hps_port(const struct hps_addr *addr);
int hps_port_of(int fd);
bool hps_same(const struct hps_addr *a, const struct hps_addr *b);
bool hps_same_host(const struct hps_addr *a, const struct hps_addr *b);
struct hps_addr hps_name(int fd);
struct hps_addr hps_peer(int fd);
bool hps_ephemeral(int port);

/* Sockets: a descriptor, or -1 and errno */
int hps_socket(const struct hps *t, int flags);
int hps_bind(int fd, struct hps_addr addr);
int hps_connect(int fd, struct hps_addr addr);
int hps_bound(const struct hps *t, int flags, struct hps_addr addr);
int hps_bound_with(const struct hps *t, int level, int name, struct hps_addr addr);
int hps_listen(const struct hps *t, int backlog, struct hps_addr *at);
int hps_client(const struct hps *t, int flags);
int hps_dial(const struct hps *t, struct hps_addr to);
int hps_dial_nb(const struct hps *t, struct hps_addr to);
int hps_listen_full(const struct hps *t, struct hps_addr *at);
int hps_dial_in_vain(const struct hps *t, struct hps_addr to);
int hps_accept(int listener);
int hps_acceptable(int listener);
int hps_pair(const struct hps *t, int *client, int *server);
int hps_pair_lending(const struct hps *t, int *client, int *server);
int hps_reset(int fd);
int hps_opt(int fd, int level, int name);
int hps_set(int fd, int level, int name, int value);
int hps_error(int fd);
int hps_inq(int fd);
int hps_nonblock(int fd, bool on);
void hps_buffers(int fd, int bytes);

/* Waiting */
int64_t hps_now(void);
int hps_poll(int fd, int events, int ms);
int hps_wait(int fd, int events);
bool hps_wait_either(const int fd[2], int events);
bool hps_settle(void);
bool hps_quiet(int fd, int events);
bool hps_until_stat(const char *name, long count);
bool hps_until_stat_is(const char *name, long count);
bool hps_until_send_memory(long bytes);
bool hps_until_no_wmem(int fd);
bool hps_until_inq(int fd, int bytes);
bool hps_until_acceptable(int listener, int connections);
bool hps_until_over(int fd);
bool hps_until_outq(int fd, int bytes);
bool hps_until_unread(int fd, unsigned int bytes);
void hps_until_blocked(pid_t tid);
pid_t hps_tid(void);

/* Bytes: byte i of stream "seed" is known, wherever it is looked at */
void hps_fill(void *buf, size_t len, uint64_t at, uint64_t seed);
size_t hps_check(const void *buf, size_t len, uint64_t at, uint64_t seed);
int64_t hps_push(int fd, uint64_t len, size_t chunk, uint64_t seed);
int64_t hps_pull(int fd, uint64_t len, size_t chunk, uint64_t seed);
int64_t hps_pull_at(int fd, uint64_t at, uint64_t len, size_t chunk, uint64_t seed);
bool hps_burst(int from, int to);
long hps_mix(const struct hps *t, int fd, int rounds);
int64_t hps_stuff(int fd, uint64_t at, uint64_t seed);
uint64_t hps_random(uint64_t *state);

/* MSG_ZEROCOPY, for which a socket has to ask, and what the error queue says then */
struct sock_extended_err;
int hps_zerocopy(const struct hps *t, int fd);
int hps_completion(const struct hps *t, int fd, struct sock_extended_err *ee);
bool hps_completed(const struct hps *t, int fd, uint32_t from, uint32_t last);

/* Memory: a program's own, and where there is none */
void *hps_memory(size_t len);
void *hps_unmapped(void);

/* The machine: shell commands, which give their status, and RDMA devices of the two ends */
int hps_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *hps_dev(void);
int hps_remove_device(int end);
int hps_add_device(int end);
const char *hps_cannot_delay(void);
void hps_delayed(int count[2]);
bool hps_delay_packets(void);
void hps_hurry_packets(void);
void hps_delay_no_packets(void);
bool hps_works_again(const struct hps *t);

/* Children and signals */
pid_t hps_fork(void);
int hps_reap(pid_t pid);
void hps_catch(int sig, int flags);
int hps_caught(void);

/* A thread that makes one call, and what came of it. */
struct hps_call {
	pthread_t thread;
	_Atomic pid_t tid;
	atomic_bool done;
	long (*fn)(struct hps_call *call);
	int fd;
	int arg;
	void *buf;
	size_t len;
	long ret;
	int err;
	int64_t took;
};

bool hps_set_zcopy(const char *how);
void hps_start(struct hps_call *call);
void hps_block(struct hps_call *call);
void hps_interrupt(struct hps_call *call);
bool hps_done(struct hps_call *call);
long hps_recv_call(struct hps_call *call);
long hps_send_call(struct hps_call *call);
long hps_accept_call(struct hps_call *call);
long hps_poll_call(struct hps_call *call);

/* The call fails with this errno; 0 means that it succeeds. */
#define __HPS_ERRNO(_err, _call, _assert) do {				\
	int __want = (_err);						\
	int __got = (long)(_call) == -1 ? errno : 0;			\
	if (__got != __want) {						\
		TH_LOG("%s: %s instead of %s", #_call,			\
		       strerrorname_np(__got), strerrorname_np(__want));\
		_metadata->exit_code = KSFT_FAIL;			\
		if (_assert)						\
			__bail(1, _metadata);				\
	}								\
} while (0)

#define EXPECT_ERRNO(_err, _call) __HPS_ERRNO(_err, _call, 0)
#define ASSERT_ERRNO(_err, _call) __HPS_ERRNO(_err, _call, 1)
#define EXPECT_OK(_call) __HPS_ERRNO(0, _call, 0)
#define ASSERT_OK(_call) __HPS_ERRNO(0, _call, 1)

/* These events are there at once, and no others */
#define EXPECT_POLL(_want, _fd)						\
	EXPECT_EQ(_want, hps_poll(_fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0))

/* Wait for these events, and see no others then */
#define EXPECT_WAIT(_want, _fd)						\
	EXPECT_EQ(_want, hps_wait_exactly(_fd, _want))
int hps_wait_exactly(int fd, int want);

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT (120 * hps_slow())

/* The four variants of a fixture. */
#define HPS_VARIANTS(_fixture)						\
	FIXTURE_VARIANT(_fixture) {					\
		bool rdma;						\
		int af;							\
	};								\
	FIXTURE_VARIANT_ADD(_fixture, inet) { false, AF_INET };		\
	FIXTURE_VARIANT_ADD(_fixture, inet6) { false, AF_INET6 };	\
	FIXTURE_VARIANT_ADD(_fixture, hpsock) { true, AF_INET };	\
	FIXTURE_VARIANT_ADD(_fixture, hpsock6) { true, AF_INET6 }

/* Only sockets that the test makes. */
#define HPS_FIXTURE(_fixture)						\
	FIXTURE(_fixture) {						\
		struct hps t;						\
	};								\
	HPS_VARIANTS(_fixture);						\
	FIXTURE_SETUP(_fixture)						\
	{								\
		hps_init(&self->t, variant->rdma, variant->af);		\
	}								\
	FIXTURE_TEARDOWN(_fixture) { }

/* A connection: c was connected, s was accepted. */
#define HPS_PAIR_FIXTURE(_fixture)					\
	FIXTURE(_fixture) {						\
		struct hps t;						\
		int c, s;						\
	};								\
	HPS_VARIANTS(_fixture);						\
	FIXTURE_SETUP(_fixture)						\
	{								\
		hps_init(&self->t, variant->rdma, variant->af);		\
		ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));	\
	}								\
	FIXTURE_TEARDOWN(_fixture) { }

#endif /* HPS_TEST_H */
