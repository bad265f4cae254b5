// SPDX-License-Identifier: GPL-2.0
/* socket() and what can be done with a socket that is not connected. */
#include "hps_test.h"

#include <linux/bpf.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CGROUP	"/sys/fs/cgroup/create"

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

/* Run a program for each socket that is created in a cgroup: 0, or -1 and errno. */
static int attach(int cgroup, const struct bpf_insn *insns, int n)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_SOCK, .insns = (uintptr_t)insns,
		.insn_cnt = n, .license = (uintptr_t)"GPL",
		.expected_attach_type = BPF_CGROUP_INET_SOCK_CREATE,
	};
	int prog = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	if (prog < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = cgroup;
	attr.attach_bpf_fd = prog;
	attr.attach_type = BPF_CGROUP_INET_SOCK_CREATE;
	return syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr));
}

static const struct bpf_insn forbid[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* bpf_sock.mark, which is R1's, and what socket() is to return */
static const struct bpf_insn set_mark[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 0x4711 },
	{ .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_2,
	  .off = offsetof(struct bpf_sock, mark) },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* In a child, which is the only process there. */
static int create_in_cgroup(const struct hps *t)
{
	int cgroup = open(CGROUP, O_RDONLY | O_DIRECTORY), fd;

	if (cgroup < 0 || hps_put(CGROUP "/cgroup.procs", "0"))
		return 101;
	if (attach(cgroup, set_mark, ARRAY_SIZE(set_mark)))
		return 102;
	fd = hps_socket(t, 0);
	if (fd < 0 || hps_opt(fd, SOL_SOCKET, SO_MARK) != 0x4711)
		return 103;
	if (attach(cgroup, forbid, ARRAY_SIZE(forbid)))
		return 104;
	if (hps_socket(t, 0) >= 0 || errno != EPERM)
		return 105;
	/* It was told at its birth. */
	return hps_bind(fd, hps_any(t->af, 0)) ? 106 : 0;
}

TEST_F(create, cgroup_program)
{
	union bpf_attr attr = { 0 };
	pid_t pid;

	if (syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)) && errno == ENOSYS)
		SKIP(return, "no bpf(2)");
	rmdir(CGROUP);
	ASSERT_OK(mkdir(CGROUP, 0755));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid)
		_exit(create_in_cgroup(&self->t));
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_OK(rmdir(CGROUP));
}

TEST_HARNESS_MAIN
