// SPDX-License-Identifier: GPL-2.0
/* Who may use the family, and what it lets others claim. */
#include "hps_peer.h"

#include <grp.h>
#include <infiniband/ib.h>
#include <sched.h>
#include <sys/syscall.h>

#define ENABLED		"/proc/sys/net/hpsock/enabled"
#define NEW_ENABLED	"/sys/module/hpsock/parameters/netns_enabled"

#define NO_NAMESPACE	254
#define NOBODY		65534

FIXTURE(access) {
	struct hps t;
	struct peer peer;
};

FIXTURE_VARIANT(access) {
	int af;
};

FIXTURE_VARIANT_ADD(access, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(access, hpsock6) { AF_INET6 };

FIXTURE_SETUP(access)
{
	hps_init(&self->t, true, variant->af);
}

FIXTURE_TEARDOWN(access)
{
	hps_put(ENABLED, "1");
	hps_put(NEW_ENABLED, "0");
	peer_free(&self->peer);
}

/* In a child: this is so, or it ends and says what was not. */
#define CHECK(_true) do {						\
	if (!(_true)) {							\
		fprintf(stderr, "# %d: not %s: %s\n", __LINE__, #_true,	\
			strerror(errno));				\
		_exit(1);						\
	}								\
} while (0)

#define CHECK_ERRNO(_err, _call)	CHECK((_call) < 0 && errno == (_err))

static bool says(int fd, char want)
{
	char byte;

	return read(fd, &byte, 1) == 1 && byte == want;
}

TEST_F(access, off_in_new_namespace)
{
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		int s;

		CHECK(!unshare(CLONE_NEWNET));
		CHECK(hps_number(ENABLED, -1) == 0);
		CHECK_ERRNO(EAFNOSUPPORT, hps_socket(&self->t, 0));
		/* Whatever else is wrong with it, as for a family that nobody knows. */
		CHECK_ERRNO(EAFNOSUPPORT, socket(self->t.domain, SOCK_SEQPACKET, 0));
		CHECK_ERRNO(EAFNOSUPPORT, socket(self->t.domain, SOCK_RAW, 0));
		CHECK_ERRNO(EINVAL, hps_put(ENABLED, "2"));
		CHECK_ERRNO(EINVAL, hps_put(ENABLED, "-1"));
		CHECK(!hps_put(ENABLED, "1"));
		CHECK(hps_number(ENABLED, -1) == 1);
		s = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
		CHECK(s >= 0);
		CHECK(!hps_put(ENABLED, "0"));
		CHECK_ERRNO(EAFNOSUPPORT, hps_socket(&self->t, 0));
		_exit(0);
	}
	EXPECT_EQ(0, hps_reap(pid));
	/* It was not ours. */
	EXPECT_EQ(1, hps_number(ENABLED, -1));
	EXPECT_OK(hps_socket(&self->t, 0));
}

TEST_F(access, on_in_new_namespace)
{
	pid_t pid;

	ASSERT_OK(hps_put(NEW_ENABLED, "1"));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		CHECK(!unshare(CLONE_NEWNET));
		CHECK(hps_number(ENABLED, -1) == 1);
		CHECK(hps_socket(&self->t, 0) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, hps_reap(pid));
}

/* The host's root, in the network namespace of a process. */
static int enable_for(pid_t of)
{
	char path[64];
	pid_t pid = hps_fork();
	int fd;

	if (!pid) {
		snprintf(path, sizeof(path), "/proc/%d/ns/net", of);
		fd = open(path, O_RDONLY);
		CHECK(fd >= 0);
		CHECK(!setns(fd, CLONE_NEWNET));
		CHECK(!hps_put(ENABLED, "1"));
		_exit(0);
	}
	return hps_reap(pid);
}

/* A file that a process has open, as if it had been passed on. */
static int file_of(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	int got = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	close(pidfd);
	return got;
}

/* The owner of a network namespace may do all there, but for this. */
static void own_namespace(const struct hps *t, int p)
{
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		_exit(NO_NAMESPACE);
	CHECK(!hps_put("/proc/sys/net/ipv4/ip_forward", "1"));
	CHECK_ERRNO(EPERM, hps_put(ENABLED, "1"));
	CHECK_ERRNO(EAFNOSUPPORT, hps_socket(t, 0));
	fd = open(ENABLED, O_WRONLY);
	CHECK(fd >= 0 && write(p, &fd, sizeof(fd)) == sizeof(fd));
	CHECK(says(p, 'f'));
	CHECK_ERRNO(EAFNOSUPPORT, hps_socket(t, 0));
	CHECK(write(p, "g", 1) == 1 && says(p, 'e'));
	CHECK(hps_socket(t, 0) >= 0);
	CHECK_ERRNO(EPERM, hps_put(ENABLED, "0"));
	_exit(0);
}

TEST_F(access, user_namespace)
{
	int p[2], fd;
	pid_t pid;

	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid)
		own_namespace(&self->t, p[0]);
	close(p[0]);
	if (read(p[1], &fd, sizeof(fd)) != sizeof(fd)) {
		int status = hps_reap(pid);

		if (status == NO_NAMESPACE)
			SKIP(return, "no user namespaces");
		ASSERT_EQ(0, status);
	}
	/* What was opened there is of no more use to a privileged program here. */
	fd = file_of(pid, fd);
	ASSERT_OK(fd);
	EXPECT_ERRNO(EPERM, write(fd, "1", 1));
	ASSERT_EQ(1, write(p[1], "f", 1));
	ASSERT_TRUE(says(p[1], 'g')) TH_LOG("status %d", hps_reap(pid));
	EXPECT_EQ(0, enable_for(pid));
	ASSERT_EQ(1, write(p[1], "e", 1));
	EXPECT_EQ(0, hps_reap(pid));
}

/* What is connected stays so, and nothing new is, in either direction. */
TEST_F(access, switched_off)
{
	int c, s, l, idle = hps_client(&self->t, 0);
	long refused = hps_stat("reject_refused");
	struct peer *peer = &self->peer;
	struct hps_addr at;

	ASSERT_OK(idle);
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_OK(hps_put(ENABLED, "0"));
	EXPECT_ERRNO(EAFNOSUPPORT, hps_socket(&self->t, 0));
	EXPECT_ERRNO(ENETUNREACH, hps_connect(idle, at));

	/* As where nobody listens */
	EXPECT_ERRNO(ECONNREFUSED, peer_dial(peer, &self->t, &at));
	EXPECT_TRUE(peer_told(peer, HPS_REJ_REFUSED));
	EXPECT_EQ(refused + 1, hps_stat("reject_refused"));

	EXPECT_EQ(300000, hps_push(c, 300000, 10000, 1));
	EXPECT_EQ(300000, hps_pull(s, 300000, 10000, 1));
	EXPECT_EQ(5000, hps_push(s, 5000, 500, 2));
	EXPECT_EQ(5000, hps_pull(c, 5000, 500, 2));
	EXPECT_OK(hps_accept(l));

	ASSERT_OK(hps_put(ENABLED, "1"));
	EXPECT_OK(hps_connect(idle, at));
	EXPECT_OK(hps_accept(l));
}

static void become_nobody(void)
{
	CHECK(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	      !setresuid(NOBODY, NOBODY, NOBODY));
}

static int bind_port(struct rdma_event_channel *events, struct sockaddr *sa)
{
	struct rdma_cm_id *id;
	int ret;

	CHECK(!rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
	ret = rdma_bind_addr(id, sa);
	CHECK(!ret || errno == EACCES);
	rdma_destroy_id(id);
	return ret;
}

/* By the number that InfiniBand has for a port of rdma_cm. */
static int bind_service_id(struct rdma_event_channel *events, int port)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB, .sib_pkey = htons(0xffff),
		.sib_sid = htobe64(RDMA_PS_TCP << 16 | port), .sib_sid_mask = ~0ULL,
	};

	return bind_port(events, (struct sockaddr *)&sib);
}

/* Nobody's program can wait where all connections of the host come in. */
TEST_F(access, service_port_privileged)
{
	int port = peer_service_port(self->t.af);
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		struct rdma_event_channel *events;
		struct hps_addr any;

		become_nobody();
		events = rdma_create_event_channel();
		CHECK(events);
		any = hps_any(self->t.af, 0);
		CHECK(!bind_port(events, &any.sa));
		any = hps_any(self->t.af, port);
		CHECK(bind_port(events, &any.sa) && errno == EACCES);
		CHECK(!bind_service_id(events, 11027));
		CHECK(bind_service_id(events, port) && errno == EACCES);
		_exit(0);
	}
	EXPECT_EQ(0, hps_reap(pid));
}

/* But the module can, also when nobody is the first to listen. */
TEST_F(access, nobody_listens_first)
{
	int p[2];
	struct hps_addr at;
	pid_t pid;

	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int l;

		become_nobody();
		l = hps_listen(&self->t, 4, &at);
		CHECK(l >= 0);
		CHECK(write(p[0], &at, sizeof(at)) == sizeof(at));
		CHECK(hps_accept(l) >= 0);
		/* What it is allowed to do is what it was. */
		CHECK_ERRNO(EACCES, hps_bound(&self->t, 0, hps_at(self->t.b, 775)));
		_exit(0);
	}
	close(p[0]);
	EXPECT_EQ(sizeof(at), read(p[1], &at, sizeof(at)));
	EXPECT_OK(hps_dial(&self->t, at));
	EXPECT_EQ(0, hps_reap(pid));
}

/* A port below 1024 is believed of who has it, and of nobody else. */
TEST_F(access, source_port_claimed)
{
	long invalid = hps_stat("reject_invalid");
	struct peer *peer = &self->peer;
	struct hps_addr at, from;
	int l = hps_listen(&self->t, 4, &at), port, s;

	ASSERT_OK(l);
	for (port = 700; port < 1024; port += 323) {
		peer_hello(peer, port, hps_port(&at));
		EXPECT_ERRNO(ECONNREFUSED, peer_dial(peer, &self->t, &at));
		EXPECT_TRUE(peer_told(peer, HPS_REJ_INVALID));
		peer_free(peer);
	}
	/* It has one, but not this. */
	self->t.a = hps_at(self->t.a, 701);
	peer_hello(peer, 700, hps_port(&at));
	EXPECT_ERRNO(ECONNREFUSED, peer_dial(peer, &self->t, &at));
	peer_free(peer);
	EXPECT_EQ(invalid + 3, hps_stat("reject_invalid"));

	/* Another, as TCP, of which it is on iWARP, may not have done with that one. */
	self->t.a = hps_at(self->t.a, 707);
	peer_hello(peer, 707, hps_port(&at));
	ASSERT_OK(peer_dial(peer, &self->t, &at));
	s = hps_accept(l);
	ASSERT_OK(s);
	from = hps_peer(s);
	EXPECT_EQ(707, hps_port(&from));
}

TEST_F(access, source_port_for_nobody)
{
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		become_nobody();
		self->t.a = hps_at(self->t.a, 702);
		CHECK_ERRNO(EACCES, peer_dial(&self->peer, &self->t, &self->t.b));
		_exit(0);
	}
	EXPECT_EQ(0, hps_reap(pid));
}

/* From a port that the program was given, and gave up the right to. */
static void connect_from(struct __test_metadata *_metadata, const struct hps *t,
			 struct hps_addr from)
{
	struct hps_addr at, peer;
	int l = hps_listen(t, 4, &at), s;
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int c = hps_bound(t, 0, from);

		CHECK(c >= 0);
		become_nobody();
		CHECK(!hps_connect(c, at));
		CHECK(hps_push(c, 3000, 1000, 1) == 3000);
		_exit(0);
	}
	s = hps_accept(l);
	ASSERT_OK(s);
	peer = hps_peer(s);
	EXPECT_EQ(hps_port(&from), hps_port(&peer));
	EXPECT_TRUE(hps_same_host(&t->a, &peer));
	EXPECT_EQ(3000, hps_pull(s, 3000, 1000, 1));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_F(access, source_port_of_a_program)
{
	connect_from(_metadata, &self->t, hps_at(self->t.a, 703));
	connect_from(_metadata, &self->t, hps_any(self->t.af, 704));
	/* Perhaps an IPv6 socket with an IPv4 peer */
	connect_from(_metadata, &self->t, hps_any(AF_INET6, 705));
}

static int reusing(const struct hps *t, struct hps_addr from)
{
	return hps_bound_with(t, SOL_SOCKET, SO_REUSEADDR, from);
}

/* One port for more than one connection, as with TCP; on iWARP it is TCP's own. */
TEST_F(access, source_port_shared)
{
	struct hps_addr from = hps_at(self->t.a, 706), at[2];
	int i, l, c[2], s;

	for (i = 0; i < 2; i++) {
		c[i] = reusing(&self->t, from);
		ASSERT_OK(c[i]);
	}
	for (i = 0; i < 2; i++) {
		l = hps_listen(&self->t, 1, &at[i]);
		ASSERT_OK(l);
		if (i && hps_siw()) {
			EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[i], at[i]));
			break;
		}
		ASSERT_OK(hps_connect(c[i], at[i]));
		s = hps_accept(l);
		ASSERT_OK(s);
		EXPECT_EQ(3000, hps_push(c[i], 3000, 1000, 1));
		EXPECT_EQ(3000, hps_pull(s, 3000, 1000, 1));
	}
}

/* The module's own are nobody's to connect from: neither before anybody listens, nor after. */
TEST_F(access, service_port_as_source)
{
	struct hps_addr at = hps_at(self->t.a, 4711);
	int family[] = { AF_INET, AF_INET6 }, l, c, i;

	for (i = 0; i < 2; i++) {
		c = hps_bound(&self->t, 0, hps_at(self->t.a, peer_service_port(family[i])));
		ASSERT_OK(c);
		EXPECT_ERRNO(EADDRINUSE, hps_connect(c, at));
		close(c);
	}
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	c = hps_bound(&self->t, 0, peer_service_at(self->t.a));
	ASSERT_OK(c);
	EXPECT_ERRNO(EADDRINUSE, hps_connect(c, at));
}

TEST_HARNESS_MAIN
