// SPDX-License-Identifier: GPL-2.0
/*
 * A host that was started with ipv6.disable=1: there are no sockets of AF_INET6, and
 * AF_HPSOCK has neither their addresses nor their options.
 */
#include "hps_test.h"

#include "option_names.h"

static const struct {
	const char *does;
	int level, name;
} rows[] = {
#define ROW(does, level, name) { #does, level, name },
#include "build/option_rows.h"
#undef ROW
};

FIXTURE(no_ipv6) {
	struct hps t;
	int fd;
};

FIXTURE_SETUP(no_ipv6)
{
	/* It is run where there is none, so that is no reason to skip. */
	ASSERT_ERRNO(ENOENT, access("/proc/net/if_inet6", F_OK));
	hps_init(&self->t, true, AF_INET);
	self->fd = hps_socket(&self->t, 0);
	ASSERT_OK(self->fd);
}

FIXTURE_TEARDOWN(no_ipv6) { }

TEST_F(no_ipv6, options)
{
	size_t i, asked = 0;

	EXPECT_ERRNO(EAFNOSUPPORT, socket(AF_INET6, SOCK_STREAM, 0));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char value[256];
		socklen_t len = sizeof(value);

		if (rows[i].level != SOL_IPV6)
			continue;
		asked++;
		EXPECT_ERRNO(ENOPROTOOPT,
			     getsockopt(self->fd, SOL_IPV6, rows[i].name, value, &len));
		EXPECT_ERRNO(ENOPROTOOPT, hps_set(self->fd, SOL_IPV6, rows[i].name, 1));
	}
	EXPECT_LT(10, asked);
}

TEST_F(no_ipv6, addresses)
{
	static const char * const ips[] = { "::", "::1", "fd03::1", "fe80::1", "::ffff:127.0.0.1" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ips); i++) {
		struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(5000) };

		ASSERT_EQ(1, inet_pton(AF_INET6, ips[i], &at.sin6_addr));
		EXPECT_ERRNO(EAFNOSUPPORT, bind(self->fd, (void *)&at, sizeof(at)));
		EXPECT_ERRNO(EAFNOSUPPORT, connect(self->fd, (void *)&at, sizeof(at)));
	}
}

/* What needs no IPv6 is as ever. */
TEST_F(no_ipv6, ipv4)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	EXPECT_OK(bind(self->fd, (void *)&at, sizeof(at)));
	EXPECT_OK(listen(self->fd, 1));
	EXPECT_OK(getsockname(self->fd, (void *)&at, &len));
	EXPECT_EQ(AF_INET, at.sin_family);
	EXPECT_NE(0, at.sin_port);
}

TEST_HARNESS_MAIN
