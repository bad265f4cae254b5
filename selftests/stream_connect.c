// SPDX-License-Identifier: GPL-2.0
/* connect(): how it succeeds, how it fails, and what names result. */
#include "hps_test.h"

#include <net/if.h>

HPS_FIXTURE(connect)

/* No route leads there. */
static struct hps_addr nowhere(const struct hps *t)
{
	return hps_parse(t->af == AF_INET ? "198.51.100.1" : "2001:db8::1", 5000);
}

static bool has_route(const struct hps *t, struct hps_addr to)
{
	int fd = socket(t->af, SOCK_DGRAM, 0);
	bool has = !hps_connect(fd, to) || errno != ENETUNREACH;

	close(fd);
	return has;
}

/* Nobody listens there. */
static struct hps_addr closed(const struct hps *t)
{
	int fd = hps_bound(t, 0, t->b);
	struct hps_addr at = hps_name(fd);

	close(fd);
	return at;
}

TEST_F(connect, names)
{
	struct hps_addr at, from = { .len = sizeof(from.ss) }, name;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = accept(l, &from.sa, &from.len);
	ASSERT_OK(s);

	name = hps_peer(c);
	EXPECT_TRUE(hps_same(&at, &name));
	name = hps_name(s);
	EXPECT_TRUE(hps_same(&at, &name));
	name = hps_name(c);
	EXPECT_TRUE(hps_same_host(&self->t.a, &name));
	EXPECT_TRUE(hps_ephemeral(hps_port(&name)));
	EXPECT_TRUE(hps_same(&from, &name));
	name = hps_peer(s);
	EXPECT_TRUE(hps_same(&from, &name));
}

TEST_F(connect, unbound)
{
	struct hps_addr at, from, name;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_socket(&self->t, 0);
	int probe, s;

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	/* The address is the one that any socket gets. */
	probe = socket(self->t.af, SOCK_DGRAM, 0);
	ASSERT_OK(hps_connect(probe, at));
	from = hps_name(probe);
	name = hps_name(c);
	EXPECT_TRUE(hps_same_host(&from, &name));
	EXPECT_TRUE(hps_ephemeral(hps_port(&name)));
	from = hps_peer(s);
	EXPECT_TRUE(hps_same(&from, &name));
	EXPECT_EQ(100, hps_push(c, 100, 100, 1));
	EXPECT_EQ(100, hps_pull(s, 100, 100, 1));
}

/* Which address that is does not wait for the peer. */
TEST_F(connect, name_while_connecting)
{
	struct hps_addr at, from, name, any = hps_any(self->t.af, 0);
	int c = hps_socket(&self->t, SOCK_NONBLOCK), port, probe, i;
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	ASSERT_OK(c);
	ASSERT_OK(hps_listen_full(&self->t, &at));
	for (i = 0; i < 2; i++) {
		if (i)
			at = hps_silent(&self->t);
		ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
		name = hps_name(c);
		probe = socket(self->t.af, SOCK_DGRAM, 0);
		ASSERT_OK(hps_connect(probe, at));
		from = hps_name(probe);
		EXPECT_TRUE(hps_same_host(&from, &name));
		port = hps_port(&name);
		EXPECT_TRUE(hps_ephemeral(port));
		ASSERT_OK(connect(c, &none, sizeof(none)));
		name = hps_name(c);
		EXPECT_TRUE(hps_same_host(&any, &name));
	}
}

/* The route says which address is ours, and that is one of this link only. */
TEST_F(connect, from_link_local)
{
	int c = hps_socket(&self->t, SOCK_NONBLOCK);
	struct hps_addr name;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	ASSERT_OK(c);
	ASSERT_OK(hps_run("ip=$(ip -br -6 addr show dev v0 scope link | grep -o 'fe80[^/]*') && "
			  "ip -6 route prepend fd03::2 dev v0 src $ip metric 512 table local"));
	EXPECT_ERRNO(EINPROGRESS, hps_connect(c, hps_at(self->t.b, 5000)));
	name = hps_name(c);
	EXPECT_TRUE(IN6_IS_ADDR_LINKLOCAL(&name.in6.sin6_addr));
	EXPECT_OK(hps_run("ip -6 route del fd03::2 dev v0 metric 512 table local"));
}

/* The address of an interface's link, with or without the interface. */
static struct hps_addr link_local(const char *dev, bool scope)
{
	struct hps_addr at = { 0 };
	char ip[64] = "", cmd[128];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "ip -br -6 addr show dev %s scope link | grep -o 'fe80[^/]*'",
		 dev);
	f = popen(cmd, "r");
	if (!f)
		return at;
	if (fscanf(f, "%63s", ip) == 1)
		at = hps_parse(ip, 0);
	pclose(f);
	if (scope)
		at.in6.sin6_scope_id = if_nametoindex(dev);
	return at;
}

static uint32_t scope_of(struct hps_addr at)
{
	return at.in6.sin6_scope_id;
}

static int bind_dev(int fd, const char *dev)
{
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, dev, strlen(dev));
}

/* An address of a link means something with its interface alone. */
TEST_F(connect, link_local)
{
	uint32_t v0 = if_nametoindex("v0"), v1 = if_nametoindex("v1");
	struct hps_addr at, bare;
	int c, l, s;
	char byte;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	l = hps_bound(&self->t, 0, link_local("v1", true));
	ASSERT_OK(l);
	ASSERT_OK(listen(l, 5));
	at = hps_name(l);
	EXPECT_EQ(v1, scope_of(at));
	at.in6.sin6_scope_id = v0;
	bare = at;
	bare.in6.sin6_scope_id = 0;

	c = hps_socket(&self->t, 0);
	ASSERT_OK(c);
	EXPECT_ERRNO(EINVAL, hps_connect(c, bare));
	ASSERT_OK(bind_dev(c, "v1"));
	EXPECT_ERRNO(EINVAL, hps_connect(c, at));
	ASSERT_OK(bind_dev(c, "v0"));
	ASSERT_OK(hps_connect(c, bare));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(v0, scope_of(hps_name(c)));
	EXPECT_EQ(v0, scope_of(hps_peer(c)));
	EXPECT_EQ(v1, scope_of(hps_name(s)));
	EXPECT_EQ(v1, scope_of(hps_peer(s)));
	ASSERT_EQ(1, send(s, "x", 1, 0));
	EXPECT_EQ(1, recv(c, &byte, 1, 0));
	close(c);
	close(s);

	/* What a socket is bound to counts for its own address, too. */
	c = hps_socket(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_OK(bind_dev(c, "v0"));
	ASSERT_OK(hps_bind(c, link_local("v0", false)));
	EXPECT_EQ(v0, scope_of(hps_name(c)));
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
}

/* No port is left: the socket is as it was before. */
TEST_F(connect, name_after_failure)
{
	struct hps_addr at, before, after;
	int c = hps_socket(&self->t, 0), l = hps_listen(&self->t, 1, &at), other, port;

	if (hps_kernel() < 603)
		SKIP(return, "IP_LOCAL_PORT_RANGE came with 6.3");
	ASSERT_OK(c);
	ASSERT_OK(l);
	other = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
	ASSERT_OK(other);
	port = hps_port_of(other);
	ASSERT_OK(hps_set(c, SOL_IP, IP_LOCAL_PORT_RANGE, (uint32_t)port << 16 | port));
	before = hps_name(c);
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c, at));
	after = hps_name(c);
	EXPECT_TRUE(hps_same(&before, &after));
	close(other);
	EXPECT_OK(hps_connect(c, at));
}

TEST_F(connect, bound_to_wildcard)
{
	struct hps_addr at, from, name;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
	int port, s;

	ASSERT_OK(l);
	ASSERT_OK(c);
	name = hps_name(c);
	port = hps_port(&name);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	name = hps_name(c);
	EXPECT_EQ(port, hps_port(&name));
	from = hps_peer(s);
	EXPECT_TRUE(hps_same(&from, &name));
}

TEST_F(connect, nonblocking)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, SOCK_NONBLOCK);

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_WAIT(POLLOUT, c);
	EXPECT_EQ(0, hps_error(c));
	/* The first call after it learns of it, later ones were needless. */
	EXPECT_OK(hps_connect(c, at));
	EXPECT_ERRNO(EISCONN, hps_connect(c, at));
	EXPECT_ERRNO(EISCONN, hps_connect(c, at));
	EXPECT_OK(hps_accept(l));
}

TEST_F(connect, already)
{
	int c = hps_client(&self->t, SOCK_NONBLOCK);
	struct hps_addr at, peer;
	char byte;

	ASSERT_OK(c);
	ASSERT_OK(hps_listen_full(&self->t, &at));
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_ERRNO(EALREADY, hps_connect(c, at));
	EXPECT_ERRNO(EALREADY, hps_connect(c, nowhere(&self->t)));
	EXPECT_EQ(0, hps_error(c));
	EXPECT_POLL(0, c);
	EXPECT_ERRNO(EAGAIN, send(c, "x", 1, 0));
	EXPECT_ERRNO(EAGAIN, recv(c, &byte, 1, 0));
	EXPECT_ERRNO(EINVAL, listen(c, 1));
	EXPECT_ERRNO(EINVAL, accept(c, NULL, NULL));
	EXPECT_ERRNO(EINVAL, hps_bind(c, self->t.a));
	EXPECT_EQ(0, hps_inq(c));
	peer = hps_peer(c);
	EXPECT_EQ(0, peer.len);
	EXPECT_EQ(ENOTCONN, errno);
}

TEST_F(connect, shutdown_while_connecting)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, SOCK_NONBLOCK);

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, hps_silent(&self->t)));
	EXPECT_OK(shutdown(c, SHUT_RDWR));
	EXPECT_ERRNO(ECONNRESET, send(c, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_NOSIGNAL));
	/* It is a fresh socket again. */
	EXPECT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_WAIT(POLLOUT, c);
	EXPECT_OK(hps_accept(l));
}

TEST_F(connect, close_while_connecting)
{
	int i;

	for (i = 0; i < 10; i++) {
		int c = hps_client(&self->t, SOCK_NONBLOCK);

		ASSERT_OK(c);
		ASSERT_ERRNO(EINPROGRESS, hps_connect(c, hps_silent(&self->t)));
		EXPECT_OK(close(c));
	}
}

TEST_F(connect, refused)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, 0);

	ASSERT_OK(c);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	EXPECT_EQ(0, hps_error(c));
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, hps_at(at, 0)));
}

TEST_F(connect, refused_nonblocking)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, SOCK_NONBLOCK);
	char byte;

	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_WAIT(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP, c);
	EXPECT_EQ(ECONNREFUSED, hps_error(c));
	EXPECT_EQ(0, hps_error(c));
	EXPECT_EQ(0, recv(c, &byte, 1, 0));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_NOSIGNAL));
	/* SO_ERROR took the reason away. */
	EXPECT_ERRNO(ECONNABORTED, hps_connect(c, at));
	EXPECT_ERRNO(EINPROGRESS, hps_connect(c, at));
}

TEST_F(connect, refused_told_by_connect)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, SOCK_NONBLOCK);

	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_TRUE(hps_wait(c, POLLOUT) & POLLERR);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	EXPECT_EQ(0, hps_error(c));
}

TEST_F(connect, refused_told_by_recv)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, SOCK_NONBLOCK);
	char byte;

	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_TRUE(hps_wait(c, POLLOUT) & POLLERR);
	EXPECT_ERRNO(ECONNREFUSED, recv(c, &byte, 1, 0));
	EXPECT_EQ(0, recv(c, &byte, 1, 0));
}

TEST_F(connect, refused_told_by_send)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, SOCK_NONBLOCK);

	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_TRUE(hps_wait(c, POLLOUT) & POLLERR);
	EXPECT_ERRNO(ECONNREFUSED, send(c, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_NOSIGNAL));
}

TEST_F(connect, again_after_refusal)
{
	struct hps_addr at = closed(&self->t);
	int c = hps_client(&self->t, 0), l, s;

	ASSERT_OK(c);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	l = hps_bound(&self->t, 0, at);
	ASSERT_OK(l);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	ASSERT_OK(listen(l, 1));
	EXPECT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(10, hps_push(c, 10, 10, 1));
	EXPECT_EQ(10, hps_pull(s, 10, 10, 1));
	/* And refused again once the listener is gone. */
	close(l);
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
}

TEST_F(connect, no_route)
{
	struct hps_addr to = nowhere(&self->t);
	int c = hps_socket(&self->t, 0);

	if (has_route(&self->t, to))
		SKIP(return, "this host has a default route");
	ASSERT_OK(c);
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, to));
	EXPECT_EQ(0, hps_error(c));
	ASSERT_OK(hps_nonblock(c, true));
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, to));
	EXPECT_POLL(POLLOUT | POLLHUP, c);
}

TEST_F(connect, multicast)
{
	int c = hps_client(&self->t, 0);

	ASSERT_OK(c);
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, hps_parse(self->t.af == AF_INET ?
							   "224.0.0.1" : "ff02::1", 5000)));
}

/*
 * AF_HPSOCK alone: loopback has no RDMA device, and a connection that RDMA
 * cannot carry does not exist. TCP would be refused here.
 */
TEST_F(connect, loopback)
{
	int c = hps_socket(&self->t, 0);

	if (!self->t.rdma)
		SKIP(return, "TCP can use loopback");
	ASSERT_OK(c);
	EXPECT_ERRNO(ENETUNREACH,
		     hps_connect(c, hps_parse(self->t.af == AF_INET ? "127.0.0.1" : "::1", 5000)));
}

static long connect_call(struct hps_call *call)
{
	return hps_connect(call->fd, *(struct hps_addr *)call->buf);
}

/*
 * Three seconds for each who asks for an address that nobody has, so all do at the same
 * time: one who waits, one who does not, and one who stops to wait.
 */
TEST_F(connect, no_answer)
{
	struct hps_addr to = hps_silent(&self->t);
	struct hps_call stays = { .fn = connect_call, .buf = &to };
	struct hps_call leaves = { .fn = connect_call, .buf = &to };
	int c = hps_client(&self->t, SOCK_NONBLOCK);
	char byte;

	stays.fd = hps_client(&self->t, 0);
	ASSERT_OK(stays.fd);
	leaves.fd = hps_client(&self->t, 0);
	ASSERT_OK(leaves.fd);
	ASSERT_OK(c);
	hps_catch(SIGUSR1, 0);
	hps_start(&leaves);
	/* Until it waits, or it is over and there was nothing to be interrupted. */
	do {
		if (leaves.tid)
			pthread_kill(leaves.thread, SIGUSR1);
		hps_poll(-1, 0, 10);
	} while (!leaves.done);
	ASSERT_TRUE(hps_done(&leaves));
	EXPECT_EQ(-1, leaves.ret);
	EXPECT_EQ(EINTR, leaves.err);
	hps_start(&stays);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, to));

	/* It goes on all the same. */
	EXPECT_TRUE(hps_wait(leaves.fd, POLLOUT) & POLLERR);
	/* TCP, on a busy machine, has been seen to say POLLERR and not why. */
	if (self->t.rdma) {
		EXPECT_EQ(EHOSTUNREACH, hps_error(leaves.fd));
	}
	EXPECT_WAIT(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP, c);
	EXPECT_EQ(EHOSTUNREACH, hps_error(c));
	ASSERT_TRUE(hps_done(&stays));
	EXPECT_EQ(-1, stays.ret);
	EXPECT_EQ(EHOSTUNREACH, stays.err);
	EXPECT_EQ(0, hps_error(stays.fd));
	EXPECT_ERRNO(ENOTCONN, recv(stays.fd, &byte, 1, 0));
	EXPECT_ERRNO(EPIPE, send(stays.fd, "x", 1, MSG_NOSIGNAL));
}

TEST_F(connect, timeout)
{
	struct timeval tv = { .tv_usec = 200000 };
	int c = hps_client(&self->t, 0);
	struct hps_addr at;
	int64_t start;

	ASSERT_OK(c);
	ASSERT_OK(hps_listen_full(&self->t, &at));
	ASSERT_OK(setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	start = hps_now();
	EXPECT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_GE(hps_now() - start, 150);
	EXPECT_ERRNO(EALREADY, hps_connect(c, at));
}

TEST_F(connect, interrupted)
{
	struct hps_call call = { .fn = connect_call };
	struct hps_addr at;

	call.buf = &at;
	call.fd = hps_client(&self->t, 0);
	ASSERT_OK(call.fd);
	ASSERT_OK(hps_listen_full(&self->t, &at));
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	ASSERT_OK(hps_nonblock(call.fd, true));
	EXPECT_ERRNO(EALREADY, hps_connect(call.fd, at));
}

TEST_F(connect, connected)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_dial(&self->t, at), s;

	ASSERT_OK(c);
	EXPECT_ERRNO(EISCONN, hps_connect(c, at));
	EXPECT_ERRNO(EISCONN, hps_connect(c, nowhere(&self->t)));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_ERRNO(EISCONN, hps_connect(s, at));
	EXPECT_ERRNO(EISCONN, hps_connect(l, at));
	EXPECT_ERRNO(EINVAL, listen(c, 1));
	EXPECT_ERRNO(EINVAL, accept(c, NULL, NULL));
	EXPECT_EQ(1, send(c, "x", 1, 0));
	EXPECT_EQ(1, recv(s, &(char){ 0 }, 1, 0));
}

TEST_F(connect, bad_address)
{
	socklen_t least = self->t.af == AF_INET ? sizeof(struct sockaddr_in) : 24;
	struct hps_addr at, addr;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, 0);

	ASSERT_OK(l);
	ASSERT_OK(c);
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, 0));
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, 1));
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, 2));
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, least - 1));
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, -1));
	EXPECT_ERRNO(EINVAL, connect(c, &at.sa, sizeof(at.ss) + 1));
	EXPECT_ERRNO(EFAULT, connect(c, hps_unmapped(), at.len));
	addr = at;
	addr.sa.sa_family = AF_UNIX;
	EXPECT_ERRNO(EAFNOSUPPORT, hps_connect(c, addr));
	addr.sa.sa_family = AF_PACKET;
	EXPECT_ERRNO(EAFNOSUPPORT, hps_connect(c, addr));
	addr.len = sizeof(struct sockaddr_in) - 1;
	EXPECT_ERRNO(EINVAL, hps_connect(c, addr));
	/* None of it did harm. */
	EXPECT_OK(connect(c, &at.sa, least));
	EXPECT_OK(hps_accept(l));
}

static int disconnect(int fd)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };

	return connect(fd, &addr, sizeof(addr));
}

TEST_F(connect, disconnect)
{
	struct hps_addr at, before, after;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_dial(&self->t, at), s;
	char byte;

	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	before = hps_name(c);
	ASSERT_OK(disconnect(c));
	EXPECT_EQ(0, hps_peer(c).len);
	/* An address that it was bound to stays. */
	after = hps_name(c);
	EXPECT_TRUE(hps_same_host(&before, &after));
	EXPECT_TRUE(hps_wait(s, POLLIN) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(s, &byte, 1, 0));
	EXPECT_EQ(ECONNRESET, hps_error(c));
	EXPECT_ERRNO(ENOTCONN, recv(c, &byte, 1, 0));

	/* Ready for another connection. */
	ASSERT_OK(hps_connect(c, at));
	after = hps_name(c);
	EXPECT_TRUE(hps_same_host(&before, &after));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(10, hps_push(c, 10, 10, 1));
	EXPECT_EQ(10, hps_pull(s, 10, 10, 1));
}

/* There is nothing to break off the second time, and the first is still told of. */
TEST_F(connect, disconnect_twice)
{
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(disconnect(c));
	ASSERT_OK(disconnect(c));
	EXPECT_EQ(ECONNRESET, hps_error(c));
	EXPECT_EQ(0, hps_error(c));
}

TEST_F(connect, disconnect_keeps_port)
{
	struct hps_addr at, before, after;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, 0);

	ASSERT_OK(c);
	before = hps_name(c);
	close(c);
	c = hps_bound(&self->t, 0, before);
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, at));
	ASSERT_TRUE(hps_until_acceptable(l, 1));
	ASSERT_OK(disconnect(c));
	after = hps_name(c);
	EXPECT_TRUE(hps_same(&before, &after));
	EXPECT_EQ(ECONNRESET, hps_error(c));
	EXPECT_OK(hps_accept(l));
	EXPECT_OK(hps_connect(c, at));
	after = hps_name(c);
	EXPECT_TRUE(hps_same(&before, &after));
	EXPECT_OK(hps_accept(l));
}

TEST_F(connect, disconnect_others)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_socket(&self->t, 0);

	ASSERT_OK(l);
	ASSERT_OK(c);
	EXPECT_OK(disconnect(c));
	EXPECT_OK(disconnect(c));
	EXPECT_OK(disconnect(l));
	EXPECT_EQ(0, hps_opt(l, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
	EXPECT_OK(listen(l, 1));
	EXPECT_OK(hps_dial(&self->t, hps_name(l)));
}

TEST_F(connect, disconnect_while_connecting)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, SOCK_NONBLOCK);

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, hps_silent(&self->t)));
	ASSERT_OK(disconnect(c));
	EXPECT_EQ(ECONNRESET, hps_error(c));
	ASSERT_OK(hps_nonblock(c, false));
	EXPECT_OK(hps_connect(c, at));
	EXPECT_OK(hps_accept(l));
}

/* One port on two addresses, and two ports on one. */
TEST_F(connect, right_listener)
{
	struct hps_addr at[3];
	int l[3], c, s, i, j;

	l[0] = hps_listen(&self->t, 4, &at[0]);
	ASSERT_OK(l[0]);
	at[1] = hps_at(self->t.a, hps_port(&at[0]));
	l[1] = hps_bound(&self->t, 0, at[1]);
	ASSERT_OK(l[1]);
	ASSERT_OK(listen(l[1], 4));
	l[2] = hps_listen(&self->t, 4, &at[2]);
	ASSERT_OK(l[2]);

	for (i = 2; i >= 0; i--) {
		/* From the other host, whichever that is. */
		c = hps_bound(&self->t, 0, i == 1 ? self->t.b : self->t.a);
		ASSERT_OK(c);
		ASSERT_OK(hps_connect(c, at[i]));
		for (j = 0; j < 3; j++)
			if (j != i) {
				EXPECT_TRUE(hps_quiet(l[j], POLLIN));
			}
		s = hps_accept(l[i]);
		ASSERT_OK(s);
		EXPECT_EQ(10, hps_push(c, 10, 10, i));
		EXPECT_EQ(10, hps_pull(s, 10, 10, i));
	}
}

TEST_F(connect, wildcard_listener)
{
	int l = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
	struct hps_addr host[2] = { self->t.b, self->t.a }, at, name;
	int port, c, s, i;

	ASSERT_OK(l);
	ASSERT_OK(listen(l, 2));
	name = hps_name(l);
	port = hps_port(&name);
	for (i = 0; i < 2; i++) {
		c = hps_bound(&self->t, 0, host[!i]);
		ASSERT_OK(c);
		at = hps_at(host[i], port);
		ASSERT_OK(hps_connect(c, at));
		s = hps_accept(l);
		ASSERT_OK(s);
		/* What it listens on everywhere is accepted somewhere. */
		name = hps_name(s);
		EXPECT_TRUE(hps_same(&at, &name));
		at = hps_name(c);
		name = hps_peer(s);
		EXPECT_TRUE(hps_same(&at, &name));
		EXPECT_EQ(10, hps_push(s, 10, 10, i));
		EXPECT_EQ(10, hps_pull(c, 10, 10, i));
	}
}

/* A listener of one address is none of another. */
TEST_F(connect, other_address)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_bound(&self->t, 0, self->t.b);

	ASSERT_OK(l);
	ASSERT_OK(c);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, hps_at(self->t.a, hps_port(&at))));
}

TEST_F(connect, v4_to_v6_wildcard)
{
	struct hps_addr from = { .len = sizeof(from.ss) }, at, name;
	struct hps v4;
	int l, c, s;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	hps_init(&v4, self->t.rdma, AF_INET);
	l = hps_bound(&self->t, 0, hps_any(AF_INET6, 0));
	ASSERT_OK(l);
	ASSERT_OK(listen(l, 1));
	name = hps_name(l);
	at = hps_at(v4.b, hps_port(&name));
	c = hps_dial(&v4, at);
	ASSERT_OK(c);
	s = accept(l, &from.sa, &from.len);
	ASSERT_OK(s);

	name = hps_name(c);
	EXPECT_EQ(AF_INET, name.sa.sa_family);
	name = hps_mapped(name);
	EXPECT_TRUE(hps_same(&name, &from));
	from = hps_peer(s);
	EXPECT_TRUE(hps_same(&name, &from));
	name = hps_name(s);
	at = hps_mapped(at);
	EXPECT_TRUE(hps_same(&name, &at));
	EXPECT_EQ(10, hps_push(c, 10, 10, 1));
	EXPECT_EQ(10, hps_pull(s, 10, 10, 1));

	/* An IPv6 peer reaches it as well. */
	c = hps_dial(&self->t, hps_at(self->t.b, hps_port(&name)));
	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	name = hps_peer(s);
	EXPECT_TRUE(hps_same_host(&name, &self->t.a));
}

TEST_F(connect, v4_to_v6only)
{
	struct hps_addr name;
	struct hps v4;
	int l;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	hps_init(&v4, self->t.rdma, AF_INET);
	l = hps_socket(&self->t, 0);
	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_IPV6, IPV6_V6ONLY, 1));
	ASSERT_OK(hps_bind(l, hps_any(AF_INET6, 0)));
	ASSERT_OK(listen(l, 1));
	name = hps_name(l);
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&v4, hps_at(v4.b, hps_port(&name))));
	EXPECT_OK(hps_dial(&self->t, hps_at(self->t.b, hps_port(&name))));
}

/* An IPv6 socket reaches an IPv4 one by mapped addresses. */
TEST_F(connect, mapped)
{
	struct hps_addr at, name, want;
	struct hps v4;
	int l, c, s;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	hps_init(&v4, self->t.rdma, AF_INET);
	l = hps_listen(&v4, 1, &at);
	ASSERT_OK(l);
	c = hps_bound(&self->t, 0, hps_mapped(v4.a));
	ASSERT_OK(c);
	EXPECT_ERRNO(EAFNOSUPPORT, hps_connect(c, hps_at(self->t.b, 5000)));
	ASSERT_OK(hps_connect(c, hps_mapped(at)));
	s = hps_accept(l);
	ASSERT_OK(s);

	name = hps_peer(c);
	want = hps_mapped(at);
	EXPECT_TRUE(hps_same(&name, &want));
	name = hps_name(c);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	want = hps_peer(s);
	EXPECT_EQ(AF_INET, want.sa.sa_family);
	want = hps_mapped(want);
	EXPECT_TRUE(hps_same(&name, &want));
	EXPECT_EQ(10, hps_push(s, 10, 10, 1));
	EXPECT_EQ(10, hps_pull(c, 10, 10, 1));
}

TEST_F(connect, mapped_unbound)
{
	struct hps_addr at, name;
	struct hps v4;
	int l, c, s;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	hps_init(&v4, self->t.rdma, AF_INET);
	l = hps_listen(&v4, 1, &at);
	ASSERT_OK(l);
	c = hps_socket(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, hps_mapped(at)));
	s = hps_accept(l);
	ASSERT_OK(s);
	name = hps_name(c);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&name.in6.sin6_addr));
}

TEST_F(connect, mapped_v6only)
{
	struct hps v4;
	int c;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	hps_init(&v4, self->t.rdma, AF_INET);
	c = hps_socket(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_IPV6, IPV6_V6ONLY, 1));
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, hps_at(hps_mapped(v4.b), 5000)));
}

/* A socket that is to have this port and no other, by connect() or, at the latest, by bind(). */
static int only_port(const struct hps *t, int port, bool late)
{
	int fd = hps_socket(t, 0);

	if (hps_set(fd, SOL_IP, IP_LOCAL_PORT_RANGE, port << 16 | port) ||
	    hps_set(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, late) || hps_bind(fd, t->a)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * rdma_cm gives each connection to a host a port of its own, whatever port of ours it is to:
 * who has chosen an address is told when there is none left, as who has not.
 */
TEST_F(connect, ports_of_rdma_cm)
{
	struct hps_addr at;
	int l, i, c[5];

	if (!self->t.rdma)
		SKIP(return, "TCP has none");
	if (geteuid())
		SKIP(return, "needs root");
	l = hps_listen(&self->t, 8, &at);
	ASSERT_OK(l);
	for (i = 0; i < 5; i++) {
		c[i] = hps_bound(&self->t, 0, i < 4 ? self->t.a : hps_any(self->t.af, 0));
		ASSERT_OK(c[i]);
	}
	ASSERT_EQ(0, hps_run("sysctl -n net.ipv4.ip_local_port_range > /tmp/range.%d", getpid()));
	ASSERT_EQ(0, hps_run("sysctl -qw net.ipv4.ip_local_port_range='39997 39998'"));
	/* The one that was taken last is not the next, so there may be but one. */
	for (i = 0; i < 3 && !hps_connect(c[i], at); i++)
		;
	EXPECT_LT(0, i);
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[3], at));
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[4], at));
	EXPECT_EQ(0, hps_run("sysctl -qw net.ipv4.ip_local_port_range=\"$(cat /tmp/range.%d)\"",
			     getpid()));
	hps_run("rm /tmp/range.%d", getpid());
	EXPECT_OK(hps_connect(c[3], at));
}

/* A port that connect() chose serves for each peer once, and for bind() not at all. */
TEST_F(connect, port_for_each_peer)
{
	int l[2], c[3], port, other, s, i;
	struct hps_addr at[2];
	char byte;

	if (hps_kernel() < 603)
		SKIP(return, "IP_LOCAL_PORT_RANGE came with 6.3");
	for (i = 0; i < 2; i++) {
		l[i] = hps_listen(&self->t, 4, &at[i]);
		ASSERT_OK(l[i]);
	}
	other = hps_bound(&self->t, 0, self->t.a);
	ASSERT_OK(other);
	port = hps_port_of(other);
	for (i = 0; i < 3; i++) {
		c[i] = only_port(&self->t, port, true);
		ASSERT_OK(c[i]);
	}

	/* What bind() took, connect() does not take. */
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[0], at[0]));
	close(other);
	for (i = 0; i < 2; i++) {
		ASSERT_OK(hps_connect(c[i], at[i]));
		EXPECT_EQ(port, hps_port_of(c[i]));
	}
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[2], at[0]));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.a, port)));
	EXPECT_ERRNO(EADDRINUSE, only_port(&self->t, port, false));

	/* Both are connections of their own. */
	for (i = 0; i < 2; i++) {
		byte = '0' + i;
		EXPECT_EQ(1, send(c[i], &byte, 1, 0));
		s = hps_accept(l[i]);
		ASSERT_OK(s);
		byte = 0;
		EXPECT_EQ(1, recv(s, &byte, 1, 0));
		EXPECT_EQ('0' + i, byte);
	}

	/* And so is the next one of the same ends, once the first is over. */
	ASSERT_OK(hps_reset(c[0]));
	for (i = 0; hps_connect(c[2], at[0]) && errno == EADDRNOTAVAIL && i < 2000; i++)
		usleep(10000);
	EXPECT_EQ(port, hps_port_of(c[2]));
}

/* AF_HPSOCK alone: its own number with sockaddr_in behind it. */
TEST_F(connect, own_family)
{
	struct hps_addr at, own;
	int l, c, s;

	if (!self->t.rdma || self->t.af == AF_INET6)
		SKIP(return, "of AF_HPSOCK with IPv4 alone");
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	own = at;
	own.sa.sa_family = self->t.domain;
	ASSERT_OK(hps_connect(c, own));
	s = hps_accept(l);
	ASSERT_OK(s);
	own = hps_peer(c);
	EXPECT_TRUE(hps_same(&own, &at));
	own = hps_peer(s);
	EXPECT_EQ(AF_INET, own.sa.sa_family);
}

TEST_HARNESS_MAIN
