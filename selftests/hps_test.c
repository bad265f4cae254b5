// SPDX-License-Identifier: GPL-2.0
/* Helpers of the stream tests. */
#define HPS_NO_HARNESS
#include "hps_test.h"

#include <limits.h>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

/*
 * That something stands still is seen by looking at it as often as this without seeing
 * a change, with so many milliseconds between two looks: less than there are between two
 * tries of one who goes on trying.
 */
#define LOOKS 6
#define LOOK_MS 10
#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 150

static volatile sig_atomic_t caught;

/* The number in a file. */
long hps_number(const char *path, long otherwise)
{
	FILE *f = fopen(path, "r");
	long n;

	if (!f)
		return otherwise;
	if (fscanf(f, "%ld", &n) != 1)
		n = otherwise;
	fclose(f);
	return n;
}

/*
 * Bytes of the module that are not receives, of which a peer that was busy keeps some for a
 * while. Receives are counted before they are allocated: when a peer is about to have more
 * of them it is too little, by up to 2 MiB for a moment. What others are compared with is
 * read when nothing is received.
 */
long hps_send_memory(void)
{
	long receives, memory;

	do {
		receives = hps_stat("memory_receives");
		memory = hps_stat("memory");
	} while (hps_stat("memory_receives") != receives);
	return memory - receives;
}

/* SK_MEMINFO_* of a socket */
uint32_t hps_meminfo(int fd, int which)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len);
	return info[which];
}

/*
 * A counter of TCP's in /proc/net/netstat, which has a line of names and then one of
 * numbers; -1 where there is none of that name.
 */
long hps_netstat(const char *name)
{
	FILE *f = fopen("/proc/net/netstat", "r");
	char names[8192], numbers[8192];
	char *key, *value, *keys, *values;
	long found = -1;

	if (!f)
		return -1;
	while (found < 0 && fgets(names, sizeof(names), f) && fgets(numbers, sizeof(numbers), f)) {
		key = strtok_r(names, "\n ", &keys);
		value = strtok_r(numbers, "\n ", &values);
		while (key && value) {
			if (!strcmp(key, name))
				found = strtol(value, NULL, 10);
			key = strtok_r(NULL, "\n ", &keys);
			value = strtok_r(NULL, "\n ", &values);
		}
	}
	fclose(f);
	return found;
}

/* The number in a line "NAME NUMBER" of a file; -1 if it has none. */
long hps_field(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	char key[64];
	long value;

	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld%*[^\n]", key, &value) == 2)
		if (!strcmp(key, name)) {
			fclose(f);
			return value;
		}
	fclose(f);
	return -1;
}

/* A counter of the module, -1 where there is none of that name. */
long hps_stat(const char *name)
{
	return hps_field("/proc/net/hpsock_stat", name);
}

int hps_set_number(const char *path, long n)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fprintf(f, "%ld\n", n);
	return fclose(f);
}

/* Write to a file that is there: 0, or -1 and errno. */
int hps_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return ret;
}

long hps_env(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 0) : otherwise;
}

int hps_family(void)
{
	return hps_env("HPS_FAMILY",
		       hps_number("/sys/module/hpsock/parameters/family", AF_HPSOCK));
}

int hps_slow(void)
{
	long slow = hps_env("HPSOCK_SLOW", 1);

	return slow < 1 ? 1 : slow;
}

/*
 * Pages that are pinned now: each processor adds what it has counted to the sum now and then,
 * or when told to. A pin and its release between the two looks count as one too many, as the
 * release is looked at first.
 */
static long pins_now(void)
{
	long released;

	hps_number("/proc/sys/vm/stat_refresh", 0);
	released = hps_field("/proc/vmstat", "nr_foll_pin_released");
	return hps_field("/proc/vmstat", "nr_foll_pin_acquired") - released;
}

/*
 * Pages that stay pinned: others pin pages too, for a while, as who writes to a file on 9p
 * does, so it is the least of some looks.
 */
long hps_pins(void)
{
	long least = LONG_MAX, now;
	int i;

	for (i = 0; i < 10; i++) {
		now = pins_now();
		if (now < least)
			least = now;
		usleep(10000);
	}
	return least;
}

/*
 * How many more than @before stay pinned: this waits for those of others, and a leak is what
 * is there at the deadline.
 */
long hps_pins_left(long before)
{
	int64_t end = hps_now() + hps_deadline();
	long more;

	while ((more = pins_now() - before) > 0 && hps_now() < end)
		usleep(10000);
	return more;
}

/* Of the running kernel: 612 is 6.12 */
int hps_kernel(void)
{
	struct utsname name;
	int major, minor;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return 0;
	return major * 100 + minor;
}

/* Has it SO_REUSEPORT? Before 6.3 the core refuses that off AF_INET. */
bool hps_shares_ports(const struct hps *t)
{
	return !t->rdma || hps_kernel() >= 603;
}

/* Are the devices Soft-iWARP's? */
bool hps_siw(void)
{
	const char *dev = getenv("HPSOCK_DEV");

	return dev && !strcmp(dev, "siw");
}

/*
 * Does a sender ask at a word whether a reader waits, where it is to? That takes atomics, and
 * RDMA Reads that come to an end, which those of Soft-RoCE do from 6.10 on.
 */
bool hps_swaps(void)
{
	return !hps_siw() && hps_kernel() >= 610;
}

/* Milliseconds after which what should have happened never will. */
int hps_deadline(void)
{
	return 40000 * hps_slow();
}

static const char *env_text(const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	return text && *text ? text : otherwise;
}

void hps_init(struct hps *t, bool rdma, int af)
{
	memset(t, 0, sizeof(*t));
	t->rdma = rdma;
	t->af = af;
	t->domain = rdma ? hps_family() : af;
	t->type = SOCK_STREAM;
	if (af == AF_INET) {
		t->a = hps_parse(env_text("HPS_ADDR_A", "10.3.0.1"), 0);
		t->b = hps_parse(env_text("HPS_ADDR_B", "10.3.0.2"), 0);
	} else {
		t->a = hps_parse(env_text("HPS_ADDR6_A", "fd03::1"), 0);
		t->b = hps_parse(env_text("HPS_ADDR6_B", "fd03::2"), 0);
	}
	signal(SIGPIPE, SIG_IGN);
}

struct hps_addr hps_parse(const char *text, int port)
{
	struct hps_addr addr = { 0 };

	if (inet_pton(AF_INET, text, &addr.in.sin_addr) == 1) {
		addr.in.sin_family = AF_INET;
		addr.len = sizeof(addr.in);
	} else if (inet_pton(AF_INET6, text, &addr.in6.sin6_addr) == 1) {
		addr.in6.sin6_family = AF_INET6;
		addr.len = sizeof(addr.in6);
	}
	return hps_at(addr, port);
}

struct hps_addr hps_any(int af, int port)
{
	return hps_parse(af == AF_INET ? "0.0.0.0" : "::", port);
}

struct hps_addr hps_at(struct hps_addr addr, int port)
{
	if (addr.sa.sa_family == AF_INET6)
		addr.in6.sin6_port = htons(port);
	else
		addr.in.sin_port = htons(port);
	return addr;
}

/* The IPv4 address as an IPv6 one. */
struct hps_addr hps_mapped(struct hps_addr addr)
{
	struct hps_addr to = hps_parse("::ffff:0.0.0.0", ntohs(addr.in.sin_port));

	to.in6.sin6_addr.s6_addr32[3] = addr.in.sin_addr.s_addr;
	return to;
}

int hps_port(const struct hps_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port);
}

bool hps_same_host(const struct hps_addr *a, const struct hps_addr *b)
{
	if (a->len != b->len || a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

/* On the link, but nobody has it. */
struct hps_addr hps_silent(const struct hps *t)
{
	struct hps_addr addr = t->b;

	if (t->af == AF_INET)
		addr.in.sin_addr.s_addr = (addr.in.sin_addr.s_addr & htonl(~0xff)) | htonl(77);
	else
		addr.in6.sin6_addr.s6_addr16[7] = htons(0x77);
	return hps_at(addr, 5000);
}

bool hps_same(const struct hps_addr *a, const struct hps_addr *b)
{
	return hps_same_host(a, b) && hps_port(a) == hps_port(b);
}

struct hps_addr hps_name(int fd)
{
	struct hps_addr addr = { .len = sizeof(addr.ss) };

	if (getsockname(fd, &addr.sa, &addr.len))
		addr.len = 0;
	return addr;
}

struct hps_addr hps_peer(int fd)
{
	struct hps_addr addr = { .len = sizeof(addr.ss) };

	if (getpeername(fd, &addr.sa, &addr.len))
		addr.len = 0;
	return addr;
}

int hps_port_of(int fd)
{
	struct hps_addr addr = hps_name(fd);

	return hps_port(&addr);
}

/* Is it a port that the kernel may choose by itself? */
bool hps_ephemeral(int port)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	int low = 32768, high = 60999;

	if (f) {
		if (fscanf(f, "%d %d", &low, &high) != 2)
			low = 1;
		fclose(f);
	}
	return port >= low && port <= high;
}

int hps_socket(const struct hps *t, int flags)
{
	return socket(t->domain, t->type | flags, 0);
}

int hps_bind(int fd, struct hps_addr addr)
{
	return bind(fd, &addr.sa, addr.len);
}

int hps_connect(int fd, struct hps_addr addr)
{
	return connect(fd, &addr.sa, addr.len);
}

static int give_up(int fd)
{
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

int hps_bound(const struct hps *t, int flags, struct hps_addr addr)
{
	int fd = hps_socket(t, flags);

	if (fd < 0 || hps_bind(fd, addr))
		return give_up(fd);
	return fd;
}

/* With an option set that is off otherwise. */
int hps_bound_with(const struct hps *t, int level, int name, struct hps_addr addr)
{
	int fd = hps_socket(t, 0);

	if (fd < 0 || hps_set(fd, level, name, 1) || hps_bind(fd, addr))
		return give_up(fd);
	return fd;
}

/* A listener on B, and where it listens. */
int hps_listen(const struct hps *t, int backlog, struct hps_addr *at)
{
	int fd = hps_bound(t, 0, t->b);

	if (fd < 0 || listen(fd, backlog))
		return give_up(fd);
	*at = hps_name(fd);
	return fd;
}

/* A socket bound to A, so that its bytes cross the wire. */
int hps_client(const struct hps *t, int flags)
{
	return hps_bound(t, flags, t->a);
}

int hps_dial(const struct hps *t, struct hps_addr to)
{
	int fd = hps_client(t, 0);

	if (fd < 0 || hps_connect(fd, to))
		return give_up(fd);
	return fd;
}

/* The same without waiting for the connection. */
int hps_dial_nb(const struct hps *t, struct hps_addr to)
{
	int fd = hps_client(t, SOCK_NONBLOCK);

	if (fd < 0 || (hps_connect(fd, to) && errno != EINPROGRESS))
		return give_up(fd);
	return fd;
}

int hps_accept(int listener)
{
	if (!(hps_wait(listener, POLLIN) & POLLIN)) {
		errno = ETIME;
		return -1;
	}
	return accept(listener, NULL, NULL);
}

/* How many connections of @listener wait to be accepted, or -1. */
int hps_acceptable(int listener)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return getsockopt(listener, SOL_TCP, TCP_INFO, &info, &len) ? -1 : (int)info.tcpi_unacked;
}

int hps_pair(const struct hps *t, int *client, int *server)
{
	struct hps_addr at;
	int listener = hps_listen(t, 1, &at);

	*client = *server = -1;
	if (listener < 0)
		return -1;
	*client = hps_dial(t, at);
	if (*client >= 0)
		*server = hps_accept(listener);
	if (*client < 0 || *server < 0)
		return give_up(listener);
	return close(listener);
}

/* Some devices are asked to read only by who insists on it when it connects. */
int hps_pair_lending(const struct hps *t, int *client, int *server)
{
	bool insists = !t->rdma || hps_set_zcopy("protect");
	int err = hps_pair(t, client, server);

	if (t->rdma && !hps_set_zcopy("auto"))
		insists = false;
	return insists ? err : -1;
}

/* Close so that the peer is reset. */
int hps_reset(int fd)
{
	struct linger on = { .l_onoff = 1 };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)))
		return -1;
	return close(fd);
}

/* An option's value; -1 where there is none. */
int hps_opt(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) ? -1 : value;
}

int hps_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

int hps_error(int fd)
{
	return hps_opt(fd, SOL_SOCKET, SO_ERROR);
}

int hps_inq(int fd)
{
	int bytes;

	return ioctl(fd, FIONREAD, &bytes) ? -1 : bytes;
}

int hps_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

void hps_buffers(int fd, int bytes)
{
	hps_set(fd, SOL_SOCKET, SO_SNDBUF, bytes);
	hps_set(fd, SOL_SOCKET, SO_RCVBUF, bytes);
}

/* Milliseconds of a clock that never steps back. */
int64_t hps_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* The events, 0 where none came. */
int hps_poll(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int ret;

	do {
		ret = poll(&p, 1, ms);
	} while (ret < 0 && errno == EINTR);
	return ret > 0 ? p.revents : 0;
}

int hps_wait(int fd, int events)
{
	return hps_poll(fd, events, hps_deadline());
}

/* Wait until one of two has one of these events, at least. */
bool hps_wait_either(const int fd[2], int events)
{
	struct pollfd p[2] = {
		{ .fd = fd[0], .events = events }, { .fd = fd[1], .events = events }
	};

	return poll(p, 2, hps_deadline()) > 0;
}

/* Wait until all of these events are there; what is there then. */
int hps_wait_exactly(int fd, int want)
{
	int64_t end = hps_now() + hps_deadline();
	int all = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
	int have;

	do {
		/* Events there already end poll(): wait for those missing. */
		have = hps_poll(fd, all, 0);
		if ((have & want) == want)
			return have;
		hps_poll(fd, want & ~have, 5);
	} while (hps_now() < end);
	return have;
}

/* Of a file, added to that of others; one that is not there adds nothing. */
static uint64_t add_file(uint64_t sum, const char *path)
{
	int fd = open(path, O_RDONLY);
	unsigned char text[4096];
	ssize_t n, i;

	if (fd < 0)
		return sum;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (i = 0; i < n; i++)
			sum = (sum ^ text[i]) * 0x100000001b3;
	close(fd);
	return sum;
}

/* What every packet, message and byte of any socket changes. */
static bool look_around(int fd, uint64_t *sum)
{
	(void)fd;
	*sum = add_file(0xcbf29ce484222325, "/proc/net/dev");
	*sum = add_file(*sum, "/proc/net/hpsock");
	*sum = add_file(*sum, "/proc/net/hpsock_stat");
	return true;
}

/* Go on at the next CPU of those in a set, after the one that is named. */
static void go_on_at_next(const cpu_set_t *cpus, int *cpu)
{
	int at = *cpu;
	cpu_set_t next;

	do
		at = (at + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(at, cpus));
	CPU_ZERO(&next);
	CPU_SET(at, &next);
	sched_setaffinity(0, sizeof(next), &next);
	*cpu = at;
}

/*
 * Wait until what a function looks at stands still, or one of these events comes. The
 * function says false when it knows that more will change.
 *
 * A guest's CPU may be stopped for a while, and with it what would have changed something.
 * So it is looked at from each of them in turn: that waits for the CPU.
 */
static bool until_still(bool (*look)(int fd, uint64_t *sum), int fd, int events)
{
	int64_t end = hps_now() + hps_deadline();
	int same = 0, cpu = -1, ms = LOOK_MS * hps_slow();
	uint64_t last = 0, now = 0;
	cpu_set_t cpus;

	if (ms < LOOK_MIN_MS)
		ms = LOOK_MIN_MS;
	if (ms > LOOK_MAX_MS)
		ms = LOOK_MAX_MS;
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return false;
	while (same < LOOKS) {
		if (hps_now() > end) {
			fprintf(stderr, "# it does not come to rest\n");
			errno = ETIME;
			break;
		}
		go_on_at_next(&cpus, &cpu);
		same = look(fd, &now) && same && now == last ? same + 1 : 1;
		last = now;
		if (hps_poll(events ? fd : -1, events, ms))
			same = LOOKS;
	}
	sched_setaffinity(0, sizeof(cpus), &cpus);
	return same == LOOKS;
}

/* Wait until nothing is under way any more, of no socket. */
bool hps_settle(void)
{
	return until_still(look_around, -1, 0);
}

/* Whatever was under way has come, and none of these events with it. */
bool hps_quiet(int fd, int events)
{
	return hps_settle() && !hps_poll(fd, events, 0);
}

/* Wait until a counter has come to this; its name is looked for here and in TCP's. */
bool hps_until_stat(const char *name, long count)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_stat(name) < count && hps_netstat(name) < count) {
		if (hps_now() > end) {
			fprintf(stderr, "# %s has not come to %ld\n", name, count);
			return false;
		}
		usleep(2000);
	}
	return true;
}

/* One that goes up and down again. */
bool hps_until_stat_is(const char *name, long count)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_stat(name) != count) {
		if (hps_now() > end) {
			fprintf(stderr, "# %s is not %ld\n", name, count);
			return false;
		}
		usleep(2000);
	}
	return true;
}

/* Wait until as much is left, and what receives have beside their bytes. */
bool hps_until_send_memory(long bytes)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_send_memory() > bytes + 65536) {
		if (hps_now() > end) {
			fprintf(stderr, "# %ld bytes more\n", hps_send_memory() - bytes);
			return false;
		}
		usleep(2000);
	}
	return true;
}

/* Wait until nothing is charged to a socket that it sends. */
bool hps_until_no_wmem(int fd)
{
	int64_t end = hps_now() + hps_deadline();
	uint32_t left;

	while ((left = hps_meminfo(fd, SK_MEMINFO_WMEM_QUEUED))) {
		if (hps_now() > end) {
			fprintf(stderr, "# %u bytes are queued\n", left);
			return false;
		}
		usleep(2000);
	}
	return true;
}

bool hps_until_inq(int fd, int bytes)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_inq(fd) < bytes) {
		if (hps_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/*
 * Wait until so many connections of @listener can be accepted. A client of TCP knows its own a
 * little earlier; it is never told if the listener goes in between (tcp_set_state() gives the port
 * back before the socket stops to listen, and tcp_v6_syn_recv_sock() then drops the last ACK).
 */
bool hps_until_acceptable(int listener, int connections)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_acceptable(listener) < connections) {
		if (hps_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* Wait until the connection is over. */
bool hps_until_over(int fd)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_peer(fd).len) {
		if (hps_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* Wait until no more than @bytes are left to send; is it just those? */
bool hps_until_outq(int fd, int bytes)
{
	int64_t end = hps_now() + hps_deadline();
	int left = -1;

	while (!ioctl(fd, TIOCOUTQ, &left) && left > bytes && hps_now() < end)
		usleep(1000);
	return left == bytes;
}

pid_t hps_tid(void)
{
	return syscall(SYS_gettid);
}

/* What a thread does, and how often it has gone to sleep so far; false if it is gone. */
static bool thread_state(pid_t tid, char *state, long *sleeps)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	*state = 0;
	*sleeps = -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "State: %c", state) != 1 &&
		    sscanf(line, "voluntary_ctxt_switches: %ld", sleeps) == 1)
			break;
	fclose(f);
	return *state && *sleeps >= 0;
}

/*
 * Wait until a thread, of whatever process, sleeps in a call: in several looks, without
 * having been awake in between. What the test is about has not been tested if it does
 * not, so that is the end of it.
 */
void hps_until_blocked(pid_t tid)
{
	int64_t end = hps_now() + hps_deadline();
	long sleeps = -1, last;
	char state = 0;
	int asleep = 0;

	while (asleep < 3) {
		last = sleeps;
		if (!thread_state(tid, &state, &sleeps)) {
			fprintf(stderr, "# thread %d should wait in a call, which is over\n", tid);
			abort();
		}
		if (hps_now() > end) {
			fprintf(stderr, "# thread %d should wait in a call, state %c\n", tid,
				state);
			abort();
		}
		/* D: who waits for the device cannot be interrupted. */
		if (state == 'S' || state == 'D')
			asleep = asleep && sleeps == last ? asleep + 1 : 1;
		else
			asleep = 0;
		usleep(2000);
	}
}

/*
 * A listener without room, where nobody answers a client: it tries for minutes, which at
 * an address that nobody has it does for three seconds.
 */
int hps_listen_full(const struct hps *t, struct hps_addr *at)
{
	int fd = hps_listen(t, 0, at);

	/* It is full when the first one is in the queue. */
	if (fd < 0 || hps_dial(t, *at) < 0 || !hps_settle())
		return give_up(fd);
	return fd;
}

/*
 * As hps_dial_nb(), to a listener that has no more room, and which has said so when
 * this returns. Those who came before are in its queue by then.
 */
int hps_dial_in_vain(const struct hps *t, struct hps_addr to)
{
	const char *name = t->rdma ? "reject_busy" : "ListenOverflows";
	long before;
	int fd;

	if (!hps_settle())
		return -1;
	before = t->rdma ? hps_stat(name) : hps_netstat(name);
	fd = hps_dial_nb(t, to);
	if (fd >= 0 && !hps_until_stat(name, before + 1)) {
		errno = ETIME;
		return give_up(fd);
	}
	return fd;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

uint64_t hps_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	return mix(*state);
}

static uint8_t pattern(uint64_t at, uint64_t seed)
{
	return mix(at / 8 + (seed << 40)) >> at % 8 * 8;
}

void hps_fill(void *buf, size_t len, uint64_t at, uint64_t seed)
{
	uint8_t *p = buf;
	uint64_t word;

	for (; len && at % 8; len--, at++)
		*p++ = pattern(at, seed);
	for (; len >= 8; len -= 8, at += 8, p += 8) {
		word = htole64(mix(at / 8 + (seed << 40)));
		memcpy(p, &word, 8);
	}
	for (; len; len--, at++)
		*p++ = pattern(at, seed);
}

/* Number of right bytes at the start of buf: len, if all are. */
size_t hps_check(const void *buf, size_t len, uint64_t at, uint64_t seed)
{
	uint8_t want[4096];
	size_t done = 0, n, i;

	for (; done < len; done += n) {
		n = len - done < sizeof(want) ? len - done : sizeof(want);
		hps_fill(want, n, at + done, seed);
		if (!memcmp(want, buf + done, n))
			continue;
		for (i = 0; want[i] == ((uint8_t *)buf)[done + i]; i++)
			;
		return done + i;
	}
	return len;
}

/* Send the first len bytes of a stream; how many were taken. */
int64_t hps_push(int fd, uint64_t len, size_t chunk, uint64_t seed)
{
	uint8_t *buf = malloc(chunk);
	uint64_t at = 0;
	ssize_t n = 0;

	while (at < len) {
		size_t want = len - at < chunk ? len - at : chunk;

		hps_fill(buf, want, at, seed);
		n = send(fd, buf, want, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		at += n;
	}
	free(buf);
	return at;
}

/*
 * Receive len bytes of a stream that was received up to "at", or up to its end;
 * how many were right. errno is 0 at the end of the stream and EBADMSG at a wrong
 * byte.
 */
int64_t hps_pull_at(int fd, uint64_t at, uint64_t len, size_t chunk, uint64_t seed)
{
	uint8_t *buf = malloc(chunk);
	uint64_t done = 0;
	int err = 0;

	while (done < len) {
		size_t want = len - done < chunk ? len - done : chunk;
		ssize_t n = recv(fd, buf, want, 0);
		size_t right;

		if (n <= 0) {
			err = n ? errno : 0;
			break;
		}
		right = hps_check(buf, n, at + done, seed);
		done += right;
		if (right < (size_t)n) {
			err = EBADMSG;
			break;
		}
	}
	free(buf);
	errno = err;
	return done;
}

int64_t hps_pull(int fd, uint64_t len, size_t chunk, uint64_t seed)
{
	return hps_pull_at(fd, 0, len, chunk, seed);
}

/* Bytes that the other end of a connection, if it is here, has for its reader. */
static unsigned int unread(const struct hps_addr *from, const struct hps_addr *to)
{
	char ip[2][INET6_ADDRSTRLEN], want[160], line[512];
	const struct hps_addr *addr[2] = { from, to };
	FILE *f = fopen("/proc/net/hpsock", "r");
	unsigned int state, bytes = 0;
	struct hps_addr v6;
	int i, len;

	if (!f)
		return 0;
	for (i = 0; i < 2; i++) {
		v6 = addr[i]->sa.sa_family == AF_INET ? hps_mapped(*addr[i]) : *addr[i];
		inet_ntop(AF_INET6, &v6.in6.sin6_addr, ip[i], sizeof(ip[i]));
	}
	len = snprintf(want, sizeof(want), "%s %d %s %d ", ip[1], hps_port(to), ip[0],
		       hps_port(from));
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, want, len) &&
		    sscanf(line + len, "%u %u", &state, &bytes) == 2)
			break;
	fclose(f);
	return bytes;
}

/* Wait until there are so many bytes to be read, whatever the messages. */
bool hps_until_unread(int fd, unsigned int bytes)
{
	struct hps_addr from = hps_peer(fd), to = hps_name(fd);
	int64_t end = hps_now() + hps_deadline();

	while (unread(&from, &to) < bytes) {
		if (hps_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/*
 * What changes as long as a sender that was refused may find room without a reader's
 * help. Nothing that was sent may be under way: what was has reached the other end.
 */
static bool look_at_sender(int fd, uint64_t *sum)
{
	struct hps_addr from = hps_name(fd), to = hps_peer(fd);
	struct hpsock_info info = { 0 };
	struct tcp_info tcp = { 0 };
	socklen_t len = sizeof(info);
	int queued, unsent;

	if (ioctl(fd, SIOCOUTQ, &queued) || ioctl(fd, SIOCOUTQNSD, &unsent))
		return false;
	*sum = (uint64_t)queued << 32 | unsent;
	if (!getsockopt(fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len)) {
		*sum = (*sum ^ info.tx_credits) * 0x100000001b3;
		*sum = (*sum ^ info.tx_msg_size) * 0x100000001b3;
		*sum = (*sum ^ info.tx_msgs) * 0x100000001b3;
		*sum = (*sum ^ unread(&from, &to)) * 0x100000001b3;
	} else {
		/* A receiver without memory drops what is under way, again and again. */
		len = sizeof(tcp);
		if (!getsockopt(fd, SOL_TCP, TCP_INFO, &tcp, &len) && tcp.tcpi_retransmits)
			return true;
	}
	return queued == unsent;
}

/* From one end to the other, so much at a time that send buffers are worth to be kept. */
bool hps_burst(int from, int to)
{
	const int64_t len = 1 << 20;
	pid_t pid = hps_fork();
	int64_t got;

	if (!pid) {
		got = hps_push(from, len, 65536, 1);
		if (got != len)
			perror("# burst: send");
		_exit(got != len);
	}
	got = hps_pull(to, len, 65536, 1);
	if (got != len)
		fprintf(stderr, "# burst: %s after %lld bytes\n", strerror(errno), (long long)got);
	return got == len && !hps_reap(pid);
}

/*
 * Send without waiting, in turn a few bytes and some with MSG_ZEROCOPY. Returns the most
 * that hps_send_memory() was meanwhile, or LONG_MAX if a call failed.
 */
long hps_mix(const struct hps *t, int fd, int rounds)
{
	static uint8_t buf[9000];
	struct sock_extended_err ee;
	long most = 0, now;
	int i, flag = MSG_DONTWAIT | MSG_NOSIGNAL;

	for (i = 0; i < rounds; i++) {
		if (send(fd, buf, 100, flag) < 0 ||
		    send(fd, buf, sizeof(buf), flag | MSG_ZEROCOPY) < 0) {
			if (errno != EAGAIN && errno != ENOBUFS)
				return LONG_MAX;
			hps_poll(fd, POLLOUT, 10);
		}
		while (!hps_completion(t, fd, &ee))
			;
		if (i % 16)
			continue;
		now = hps_send_memory();
		if (now > most)
			most = now;
	}
	return most;
}

/*
 * Send without waiting until nothing more is taken, and nothing will be before somebody
 * reads; how much was taken.
 */
int64_t hps_stuff(int fd, uint64_t at, uint64_t seed)
{
	static uint8_t buf[65536];
	int64_t total = 0;
	int refused = 0;
	ssize_t n;

	while (refused < 2) {
		hps_fill(buf, sizeof(buf), at + total, seed);
		n = send(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			total += n;
			refused = 0;
		} else if (errno != EAGAIN) {
			return -1;
		} else if (!refused++ && !until_still(look_at_sender, fd, POLLOUT)) {
			return -1;
		}
	}
	return total;
}

/* 6.1's core does not let a family have the option. */
int hps_zerocopy(const struct hps *t, int fd)
{
	if (t->rdma && hps_kernel() < 603)
		return hps_set(fd, SOL_HPSOCK, HPSOCK_ZEROCOPY, 1);
	return hps_set(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
}

/* What one entry of the error queue says; -1 and EAGAIN if there is none. */
int hps_completion(const struct hps *t, int fd, struct sock_extended_err *ee)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	int level = t->af == AF_INET ? SOL_IP : SOL_IPV6;
	int type = t->af == AF_INET ? IP_RECVERR : IPV6_RECVERR;
	size_t len = sizeof(*ee) + (t->af == AF_INET ? sizeof(struct sockaddr_in) :
						       sizeof(struct sockaddr_in6));

	if (recvmsg(fd, &msg, MSG_ERRQUEUE))
		return -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	errno = EPROTO;
	if (!(msg.msg_flags & MSG_ERRQUEUE) || !cmsg || cmsg->cmsg_level != level ||
	    cmsg->cmsg_type != type || cmsg->cmsg_len != CMSG_LEN(len))
		return -1;
	memcpy(ee, CMSG_DATA(cmsg), sizeof(*ee));
	if (SO_EE_OFFENDER((struct sock_extended_err *)CMSG_DATA(cmsg))->sa_family != AF_UNSPEC)
		return -1;
	return ee->ee_errno || ee->ee_origin != SO_EE_ORIGIN_ZEROCOPY || ee->ee_type ? -1 : 0;
}

/* Wait until sends 0 to @last, of which @from were told already, are complete. */
bool hps_completed(const struct hps *t, int fd, uint32_t from, uint32_t last)
{
	int64_t end = hps_now() + hps_deadline();
	struct sock_extended_err ee;

	while (from <= last && hps_now() < end) {
		/* No event has to be asked for. */
		if (!(hps_poll(fd, 0, 100) & POLLERR))
			continue;
		/* A connection that ends has its error before them. */
		if (hps_completion(t, fd, &ee)) {
			if (errno != EAGAIN)
				return false;
			continue;
		}
		if (ee.ee_info != from || ee.ee_data < from)
			return false;
		from = ee.ee_data + 1;
	}
	return from == last + 1;
}

pid_t hps_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* How a child ended: its status, or 128 and the signal. */
int hps_reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void count_signal(int sig)
{
	(void)sig;
	caught++;
}

void hps_catch(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = count_signal, .sa_flags = flags };

	caught = 0;
	sigaction(sig, &sa, NULL);
}

/* Signals caught since last asked. */
int hps_caught(void)
{
	int n = caught;

	caught = 0;
	return n;
}

static void *call_thread(void *arg)
{
	struct hps_call *call = arg;
	int64_t start = hps_now();

	call->tid = hps_tid();
	errno = 0;
	call->ret = call->fn(call);
	call->err = errno;
	call->took = hps_now() - start;
	call->done = true;
	return NULL;
}

void hps_start(struct hps_call *call)
{
	call->done = false;
	call->tid = 0;
	if (pthread_create(&call->thread, NULL, call_thread, call))
		abort();
}

/* The module's way to send much, for those who have none of their own */
bool hps_set_zcopy(const char *how)
{
	return !hps_put("/sys/module/hpsock/parameters/zcopy", how);
}

/* Where readers and senders meet: "msg" or "cas". */
bool hps_set_zcopy_sync(const char *how)
{
	return !hps_put("/sys/module/hpsock/parameters/zcopy_sync", how);
}

/* Start it and wait until it sleeps. */
void hps_block(struct hps_call *call)
{
	hps_start(call);
	while (!call->tid)
		usleep(100);
	hps_until_blocked(call->tid);
}

/* Interrupt a call that waits by SIGUSR1, and wait until the signal was handled. */
void hps_interrupt(struct hps_call *call)
{
	int64_t end = hps_now() + hps_deadline();

	pthread_kill(call->thread, SIGUSR1);
	while (!hps_caught()) {
		if (hps_now() > end) {
			fprintf(stderr, "# thread %d should be interrupted, which is over\n",
				call->tid);
			abort();
		}
		usleep(1000);
	}
}

/* Wait for its end. */
bool hps_done(struct hps_call *call)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += hps_deadline() / 1000;
	return !pthread_timedjoin_np(call->thread, NULL, &end);
}

long hps_recv_call(struct hps_call *call)
{
	return recv(call->fd, call->buf, call->len, call->arg);
}

long hps_send_call(struct hps_call *call)
{
	return send(call->fd, call->buf, call->len, call->arg | MSG_NOSIGNAL);
}

long hps_accept_call(struct hps_call *call)
{
	return accept(call->fd, NULL, NULL);
}

/* arg: the events; gives what came. */
long hps_poll_call(struct hps_call *call)
{
	struct pollfd p = { .fd = call->fd, .events = call->arg };

	return poll(&p, 1, hps_deadline()) == 1 ? p.revents : -1;
}

/* Fresh memory of the program's own. */
void *hps_memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

void *hps_unmapped(void)
{
	return (void *)8;
}

/* A shell command: 0 if it succeeds. */
int hps_run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

/* The kind of device, with which its name begins: rxe or siw. */
const char *hps_dev(void)
{
	return getenv("HPSOCK_DEV") ?: "rxe";
}

int hps_remove_device(int end)
{
	return hps_run("rdma link delete %s%d", hps_dev(), end);
}

/* Why selftests/delay cannot widen the window of a race here, or NULL. */
const char *hps_cannot_delay(void)
{
	if (access("/sys/class/net/v1", F_OK) || !getenv("HPSOCK_DELAY_KO"))
		return "not in a guest of vm/run";
	return access("/sys/kernel/debug/kprobes", F_OK) ? "no kprobes in this kernel" : NULL;
}

/* How often each of two functions was delayed. */
void hps_delayed(int count[2])
{
	FILE *f = fopen("/sys/module/hpsock_delay/parameters/count", "r");

	count[0] = -1;
	count[1] = -1;
	if (!f)
		return;
	if (fscanf(f, "%d,%d", &count[0], &count[1]) < 2)
		count[1] = -1;
	fclose(f);
}

/*
 * The queues of netem. While one is put in place or taken away what is sent is lost, and
 * Soft-RoCE takes that for an error of the queue pair: if it is the one of the MADs, no
 * connection is made over that device any more. So it is done at rest only, and the delay
 * changes in place. With a rate, what is sent later does not overtake.
 */
#define NETEM "for d in $(ls /sys/class/net | grep -vx lo); do tc qdisc %s dev $d root "
#define NETEM_DELAY "netem rate 10gbit limit 100000 delay %dms"
#define FAR_MS 50

/* As if the peer were far away. Each network device gets it, or none. */
bool hps_delay_packets(void)
{
	hps_settle();
	return !hps_run(NETEM NETEM_DELAY " || exit; done", "replace", FAR_MS);
}

/* It is near again, and what was under way has come. */
void hps_hurry_packets(void)
{
	hps_run(NETEM NETEM_DELAY " 2>/dev/null; done", "change", 0);
	usleep(FAR_MS * 1000);
}

/* As it was before, if there is a queue. */
void hps_delay_no_packets(void)
{
	if (hps_run("tc qdisc show | grep -q netem"))
		return;
	hps_hurry_packets();
	hps_settle();
	hps_run(NETEM "2>/dev/null; done", "del");
}

/* Unless it is there. */
int hps_add_device(int end)
{
	const char *dev = hps_dev();

	return hps_run("rdma link show | grep -q '^link %s%d/' || "
		       "rdma link add %s%d type %s netdev v%d",
		       dev, end, dev, end, dev, end);
}

/* A connection can be made again, which takes a moment after a device came. */
bool hps_works_again(const struct hps *t)
{
	int64_t end = hps_now() + hps_deadline();
	int c, s;

	while (hps_pair(t, &c, &s)) {
		if (hps_now() > end) {
			fprintf(stderr, "# no connection: %s\n", strerror(errno));
			return false;
		}
		close(c);
		close(s);
		usleep(100000);
	}
	if (hps_push(c, 5000, 1000, 1) != 5000 || hps_pull(s, 5000, 1000, 1) != 5000)
		return false;
	close(c);
	close(s);
	return true;
}
