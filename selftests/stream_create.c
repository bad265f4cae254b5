// SPDX-License-Identifier: GPL-2.0
/* socket() and what can be done with a socket that is not connected. */
#include "hps_test.h"

#include <sys/stat.h>

HPS_FIXTURE(create)

static int try_socket(int domain, int type, int protocol)
{
	int fd = socket(domain, type, protocol);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

TEST_F(create, protocols)
{
	EXPECT_OK(try_socket(self->t.domain, SOCK_STREAM, 0));
	EXPECT_OK(try_socket(self->t.domain, SOCK_STREAM, IPPROTO_TCP));
}

TEST_F(create, other_protocols)
{
	EXPECT_ERRNO(EPROTONOSUPPORT, try_socket(self->t.domain, SOCK_STREAM, IPPROTO_UDP));
	EXPECT_ERRNO(EPROTONOSUPPORT, try_socket(self->t.domain, SOCK_STREAM, IPPROTO_ICMP));
	EXPECT_ERRNO(EPROTONOSUPPORT, try_socket(self->t.domain, SOCK_STREAM, IPPROTO_RAW));
	EXPECT_ERRNO(EINVAL, try_socket(self->t.domain, SOCK_STREAM, -1));
	EXPECT_ERRNO(EINVAL, try_socket(self->t.domain, SOCK_STREAM, 10000));
}

TEST_F(create, other_types)
{
	EXPECT_ERRNO(EPROTONOSUPPORT, try_socket(self->t.domain, SOCK_RAW, 0));
	EXPECT_ERRNO(ESOCKTNOSUPPORT, try_socket(self->t.domain, SOCK_RDM, 0));
	EXPECT_ERRNO(ESOCKTNOSUPPORT, try_socket(self->t.domain, 0, 0));
	EXPECT_ERRNO(ESOCKTNOSUPPORT, try_socket(self->t.domain, 7, 0));
	EXPECT_ERRNO(EINVAL, try_socket(self->t.domain, 12, 0));
	EXPECT_ERRNO(EINVAL, try_socket(self->t.domain, -1, 0));
}

TEST_F(create, flags)
{
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	close(fd);

	fd = hps_socket(&self->t, SOCK_NONBLOCK);
	ASSERT_OK(fd);
	EXPECT_NE(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	close(fd);

	fd = hps_socket(&self->t, SOCK_CLOEXEC);
	ASSERT_OK(fd);
	EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

TEST_F(create, what_it_is)
{
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	EXPECT_EQ(SOCK_STREAM, hps_opt(fd, SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(self->t.domain, hps_opt(fd, SOL_SOCKET, SO_DOMAIN));
	EXPECT_EQ(IPPROTO_TCP, hps_opt(fd, SOL_SOCKET, SO_PROTOCOL));
	EXPECT_EQ(0, hps_opt(fd, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_EQ(0, hps_opt(fd, SOL_SOCKET, SO_ERROR));
	close(fd);

	fd = socket(self->t.domain, SOCK_STREAM, IPPROTO_TCP);
	ASSERT_OK(fd);
	EXPECT_EQ(IPPROTO_TCP, hps_opt(fd, SOL_SOCKET, SO_PROTOCOL));
}

TEST_F(create, accepted_what_it_is)
{
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_EQ(SOCK_STREAM, hps_opt(s, SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(self->t.domain, hps_opt(s, SOL_SOCKET, SO_DOMAIN));
	EXPECT_EQ(IPPROTO_TCP, hps_opt(s, SOL_SOCKET, SO_PROTOCOL));
	EXPECT_EQ(0, hps_opt(s, SOL_SOCKET, SO_ACCEPTCONN));
}

TEST_F(create, no_socketpair)
{
	int sv[2];

	EXPECT_ERRNO(EOPNOTSUPP, socketpair(self->t.domain, SOCK_STREAM, 0, sv));
}

TEST_F(create, file_calls)
{
	int fd = hps_socket(&self->t, 0);
	struct stat st;

	ASSERT_OK(fd);
	ASSERT_OK(fstat(fd, &st));
	EXPECT_TRUE(S_ISSOCK(st.st_mode));
	EXPECT_ERRNO(ESPIPE, lseek(fd, 0, SEEK_SET));
	EXPECT_ERRNO(EINVAL, fsync(fd));
	EXPECT_ERRNO(EINVAL, ftruncate(fd, 0));
	EXPECT_ERRNO(ENOTTY, ioctl(fd, 0x5401 /* TCGETS */, &st));
}

TEST_F(create, send_unconnected)
{
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(EPIPE, send(fd, "x", 1, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_ERRNO(EPIPE, write(fd, "x", 1));
	EXPECT_EQ(1, hps_caught());
	EXPECT_ERRNO(EPIPE, send(fd, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, hps_caught());
	EXPECT_ERRNO(EPIPE, send(fd, "", 0, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, sendto(fd, "x", 1, MSG_NOSIGNAL, &self->t.b.sa, self->t.b.len));
}

TEST_F(create, recv_unconnected)
{
	int fd = hps_socket(&self->t, 0);
	char c;

	ASSERT_OK(fd);
	EXPECT_ERRNO(ENOTCONN, recv(fd, &c, 1, 0));
	EXPECT_ERRNO(ENOTCONN, read(fd, &c, 1));
	EXPECT_ERRNO(ENOTCONN, recv(fd, &c, 1, MSG_DONTWAIT));
	EXPECT_ERRNO(ENOTCONN, recv(fd, &c, 1, MSG_PEEK));
	EXPECT_EQ(0, read(fd, &c, 0));
}

TEST_F(create, other_calls_unconnected)
{
	struct hps_addr addr = { .len = sizeof(addr.ss) };
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	EXPECT_ERRNO(ENOTCONN, getpeername(fd, &addr.sa, &addr.len));
	EXPECT_ERRNO(ENOTCONN, shutdown(fd, SHUT_RD));
	EXPECT_ERRNO(ENOTCONN, shutdown(fd, SHUT_WR));
	EXPECT_ERRNO(ENOTCONN, shutdown(fd, SHUT_RDWR));
	EXPECT_ERRNO(EINVAL, accept(fd, NULL, NULL));
	EXPECT_EQ(0, hps_inq(fd));
}

TEST_F(create, poll_unconnected)
{
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	EXPECT_POLL(POLLOUT | POLLHUP, fd);
	ASSERT_OK(hps_bind(fd, self->t.b));
	EXPECT_POLL(POLLOUT | POLLHUP, fd);
}

TEST_F(create, name_unbound)
{
	int fd = hps_socket(&self->t, 0);
	/* One family for both kinds of addresses: IPv4 until it is bound to IPv6. */
	struct hps_addr want = hps_any(self->t.rdma ? AF_INET : self->t.af, 0);
	struct hps_addr name;

	ASSERT_OK(fd);
	name = hps_name(fd);
	EXPECT_TRUE(hps_same(&name, &want));
}

TEST_F(create, name_bound)
{
	struct hps_addr name, want;
	int fd = hps_bound(&self->t, 0, self->t.b);

	ASSERT_OK(fd);
	name = hps_name(fd);
	EXPECT_TRUE(hps_same_host(&name, &self->t.b));
	EXPECT_TRUE(hps_ephemeral(hps_port(&name)));
	close(fd);

	want = hps_any(self->t.af, 0);
	fd = hps_bound(&self->t, 0, want);
	ASSERT_OK(fd);
	name = hps_name(fd);
	EXPECT_TRUE(hps_same_host(&name, &want));
	EXPECT_TRUE(hps_ephemeral(hps_port(&name)));
}

TEST_F(create, name_truncated)
{
	struct hps_addr name;
	char buf[sizeof(name.ss)];
	int fd = hps_bound(&self->t, 0, self->t.b);
	socklen_t len;

	ASSERT_OK(fd);
	name = hps_name(fd);
	memset(buf, 0x5a, sizeof(buf));
	len = 4;
	ASSERT_OK(getsockname(fd, (void *)buf, &len));
	EXPECT_EQ(name.len, len);
	EXPECT_EQ(0, memcmp(buf, &name.sa, 4));
	EXPECT_EQ(0x5a, buf[4]);
	len = -1;
	EXPECT_ERRNO(EINVAL, getsockname(fd, (void *)buf, &len));
	len = sizeof(buf);
	EXPECT_ERRNO(EFAULT, getsockname(fd, hps_unmapped(), &len));
	EXPECT_ERRNO(EFAULT, getsockname(fd, (void *)buf, hps_unmapped()));
}

TEST_F(create, listen_binds)
{
	int fd = hps_socket(&self->t, 0);
	struct hps_addr name, any;

	ASSERT_OK(fd);
	ASSERT_OK(listen(fd, 1));
	EXPECT_EQ(1, hps_opt(fd, SOL_SOCKET, SO_ACCEPTCONN));
	name = hps_name(fd);
	EXPECT_TRUE(hps_ephemeral(hps_port(&name)));
	any = hps_any(name.sa.sa_family, 0);
	EXPECT_TRUE(hps_same_host(&name, &any));
	/* What is not bound yet has no IP version in AF_HPSOCK. */
	if (!self->t.rdma) {
		EXPECT_EQ(self->t.af, name.sa.sa_family);
	}
}

TEST_F(create, many)
{
	int fd[200], i;

	for (i = 0; i < 200; i++) {
		fd[i] = hps_socket(&self->t, 0);
		ASSERT_OK(fd[i]);
	}
	for (i = 0; i < 200; i++)
		EXPECT_OK(close(fd[i]));
}

TEST_HARNESS_MAIN
