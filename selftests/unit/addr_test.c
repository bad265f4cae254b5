// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/addr.c"

/* As in6_pton() would read them. */
static const struct in6_addr any6;
static const struct in6_addr any4 = { .s6_addr = { [10] = 0xff, 0xff } };
static const struct in6_addr one4 = { .s6_addr = { [10] = 0xff, 0xff, 10, 3, 0, 1 } };
static const struct in6_addr one6 = { .s6_addr = { 0xfd, 0x03, [15] = 1 } };
static const struct in6_addr link6 = { .s6_addr = { 0xfe, 0x80, [15] = 1 } };

static struct sockaddr_in sin(u16 family)
{
	return (struct sockaddr_in){
		.sin_family = family,
		.sin_port = htons(80),
		.sin_addr.s_addr = htonl(0x0a030001),
	};
}

static struct sockaddr_in6 sin6(const struct in6_addr *ip)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = htons(80),
		.sin6_addr = *ip,
		.sin6_scope_id = 7,
	};
}

static void hps_addr_parse__no_family(struct kunit *test)
{
	struct sockaddr_in in = sin(AF_INET);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, 0), -EINVAL);
}

static void hps_addr_parse__ipv4(struct kunit *test)
{
	struct sockaddr_in in = sin(AF_INET);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, sizeof(in)), 0);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &one4, sizeof(one4));
	KUNIT_EXPECT_EQ(test, addr.port, 80);
	KUNIT_EXPECT_EQ(test, addr.scope, 0);
	KUNIT_EXPECT_FALSE(test, addr.v6);
	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, sizeof(in) - 1), -EINVAL);
}

static void hps_addr_parse__own_family(struct kunit *test)
{
	struct sockaddr_in in = sin(hps_family);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, sizeof(in)), 0);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &one4, sizeof(one4));
}

static void hps_addr_parse__other_family(struct kunit *test)
{
	struct sockaddr_in in = sin(AF_UNSPEC);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in, sizeof(in)), -EAFNOSUPPORT);
}

static void hps_addr_parse__ipv6(struct kunit *test)
{
	struct sockaddr_in6 in6 = sin6(&one6);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in6, sizeof(in6)), 0);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &one6, sizeof(one6));
	KUNIT_EXPECT_EQ(test, addr.port, 80);
	KUNIT_EXPECT_TRUE(test, addr.v6);
	/* It has none that counts. */
	KUNIT_EXPECT_EQ(test, addr.scope, 0);
	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in6, SIN6_LEN_RFC2133 - 1), -EINVAL);
}

static void hps_addr_parse__link_local(struct kunit *test)
{
	struct sockaddr_in6 in6 = sin6(&link6);
	struct hps_addr addr;

	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in6, sizeof(in6)), 0);
	KUNIT_EXPECT_EQ(test, addr.scope, 7);
	/* RFC 2133 knew no scope. */
	KUNIT_EXPECT_EQ(test, hps_addr_parse(&addr, (void *)&in6, SIN6_LEN_RFC2133), 0);
	KUNIT_EXPECT_EQ(test, addr.scope, 0);
}

static void hps_addr_format__ipv4(struct kunit *test)
{
	struct hps_addr addr = { .ip = one4, .port = 80 };
	struct sockaddr_in in = sin(AF_INET), out;

	memset(&out, 0xff, sizeof(out));
	KUNIT_EXPECT_EQ(test, hps_addr_format(&addr, (void *)&out), sizeof(out));
	KUNIT_EXPECT_MEMEQ(test, &out, &in, sizeof(in));
}

static void hps_addr_format__ipv6(struct kunit *test)
{
	struct hps_addr addr = { .ip = link6, .port = 80, .scope = 7, .v6 = true };
	struct sockaddr_in6 in6 = sin6(&link6), out;

	memset(&out, 0xff, sizeof(out));
	KUNIT_EXPECT_EQ(test, hps_addr_format(&addr, (void *)&out), sizeof(out));
	KUNIT_EXPECT_MEMEQ(test, &out, &in6, sizeof(in6));
}

/* rdma_cm wants IPv4 as such, however the program wrote it, and its own port. */
static void hps_addr_to_rdma__mapped(struct kunit *test)
{
	struct hps_addr addr = { .ip = one4, .port = 1234, .v6 = true };
	struct sockaddr_in in = sin(AF_INET);
	struct sockaddr_storage ss;

	KUNIT_EXPECT_EQ(test, hps_addr_to_rdma(&addr, 80, &ss), sizeof(in));
	KUNIT_EXPECT_MEMEQ(test, &ss, &in, sizeof(in));
}

static void hps_addr_to_rdma__ipv6(struct kunit *test)
{
	struct hps_addr addr = { .ip = link6, .port = 1234, .scope = 7 };
	struct sockaddr_in6 in6 = sin6(&link6);
	struct sockaddr_storage ss;

	KUNIT_EXPECT_EQ(test, hps_addr_to_rdma(&addr, 80, &ss), sizeof(in6));
	KUNIT_EXPECT_MEMEQ(test, &ss, &in6, sizeof(in6));
}

static void hps_addr_from_rdma__ipv4(struct kunit *test)
{
	struct sockaddr_storage ss = {};
	struct sockaddr_in in = sin(AF_INET);
	struct hps_addr addr;

	memcpy(&ss, &in, sizeof(in));
	hps_addr_from_rdma(&addr, &ss);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &one4, sizeof(one4));
	KUNIT_EXPECT_EQ(test, addr.port, 0);
	KUNIT_EXPECT_FALSE(test, addr.v6);
}

static void hps_addr_from_rdma__ipv6(struct kunit *test)
{
	struct sockaddr_storage ss = {};
	struct sockaddr_in6 in6 = sin6(&link6);
	struct hps_addr addr;

	memcpy(&ss, &in6, sizeof(in6));
	hps_addr_from_rdma(&addr, &ss);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &link6, sizeof(link6));
	KUNIT_EXPECT_EQ(test, addr.port, 0);
	KUNIT_EXPECT_EQ(test, addr.scope, 7);
	KUNIT_EXPECT_TRUE(test, addr.v6);
}

static void hps_addr_from_rdma__mapped(struct kunit *test)
{
	struct sockaddr_storage ss = {};
	struct sockaddr_in6 in6 = sin6(&one4);
	struct hps_addr addr;

	memcpy(&ss, &in6, sizeof(in6));
	hps_addr_from_rdma(&addr, &ss);
	KUNIT_EXPECT_FALSE(test, addr.v6);
}

static void hps_addr_on_link__scope(struct kunit *test)
{
	struct hps_addr addr = { .ip = link6, .v6 = true };

	hps_addr_on_link(&addr, 7);
	KUNIT_EXPECT_EQ(test, addr.scope, 7);
}

static void hps_addr_on_link__of_no_link(struct kunit *test)
{
	struct hps_addr addr = { .ip = one6, .v6 = true };

	hps_addr_on_link(&addr, 7);
	KUNIT_EXPECT_EQ(test, addr.scope, 0);
}

static void hps_addr_any__cases(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, hps_addr_any(&any4));
	KUNIT_EXPECT_TRUE(test, hps_addr_any(&any6));
	KUNIT_EXPECT_FALSE(test, hps_addr_any(&one4));
	KUNIT_EXPECT_FALSE(test, hps_addr_any(&one6));
}

static void hps_addr_covers__any6(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any6, false, &one6, false));
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any6, true, &one6, false));
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any6, false, &one4, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&any6, true, &one4, false));
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any6, false, &any4, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&any6, true, &any4, false));
}

static void hps_addr_covers__any4(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any4, false, &one4, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&any4, false, &one6, false));
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&any4, false, &any6, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&any4, false, &any6, true));
}

static void hps_addr_covers__one(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&one4, false, &one4, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&one4, false, &any4, false));
	KUNIT_EXPECT_TRUE(test, hps_addr_covers(&one6, true, &one6, false));
	KUNIT_EXPECT_FALSE(test, hps_addr_covers(&one6, false, &link6, false));
}

static struct kunit_case addr_cases[] = {
	KUNIT_CASE(hps_addr_parse__no_family),
	KUNIT_CASE(hps_addr_parse__ipv4),
	KUNIT_CASE(hps_addr_parse__own_family),
	KUNIT_CASE(hps_addr_parse__other_family),
	KUNIT_CASE(hps_addr_parse__ipv6),
	KUNIT_CASE(hps_addr_parse__link_local),
	KUNIT_CASE(hps_addr_format__ipv4),
	KUNIT_CASE(hps_addr_format__ipv6),
	KUNIT_CASE(hps_addr_to_rdma__mapped),
	KUNIT_CASE(hps_addr_to_rdma__ipv6),
	KUNIT_CASE(hps_addr_from_rdma__ipv4),
	KUNIT_CASE(hps_addr_from_rdma__ipv6),
	KUNIT_CASE(hps_addr_from_rdma__mapped),
	KUNIT_CASE(hps_addr_on_link__scope),
	KUNIT_CASE(hps_addr_on_link__of_no_link),
	KUNIT_CASE(hps_addr_any__cases),
	KUNIT_CASE(hps_addr_covers__any6),
	KUNIT_CASE(hps_addr_covers__any4),
	KUNIT_CASE(hps_addr_covers__one),
	{}
};

UNIT_SUITE(addr, addr_cases);
