// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/port.c"

#include "compat.h"
#include "fake.h"

/* IPv4 as it is kept inside. */
static struct hps_addr at4(u32 ip, u16 port)
{
	struct hps_addr addr = { .port = port };

	ipv6_addr_set_v4mapped(htonl(ip), &addr.ip);
	return addr;
}

static struct hps_addr at6(u8 last, u16 port)
{
	struct hps_addr addr = { .port = port, .v6 = true };

	if (last)
		addr.ip.s6_addr[0] = 0xfd;
	addr.ip.s6_addr[15] = last;
	return addr;
}

#define HOST	0x0a030001
#define PEER	0x0a030002

static struct sock *stream(struct kunit *test)
{
	return fake_sock(test, SOCK_STREAM);
}

static int bind4(struct sock *sk, u32 ip, u16 port)
{
	struct hps_addr addr = at4(ip, port);

	return hps_port_bind(sk, &addr);
}

static int bind6(struct sock *sk, u8 last, u16 port)
{
	struct hps_addr addr = at6(last, port);

	return hps_port_bind(sk, &addr);
}

static int connect4(struct sock *sk, u32 ip, u16 port)
{
	struct hps_addr addr = at4(ip, port);

	return hps_port_connect(sk, &addr);
}

/* Of which port is anything known? */
static bool known(u16 number, int type)
{
	struct hps_net *hn = hps_net(&init_net);
	bool found;

	spin_lock_bh(&hn->port_lock);
	found = hps_port_find(hn, type, number);
	spin_unlock_bh(&hn->port_lock);
	return found;
}

/* Ports from which a socket without one may take. */
static struct sock *stream_of(struct kunit *test, u16 low, u16 high)
{
	struct sock *sk = stream(test);

	hps_set_port_range(sk, low, high);
	return sk;
}

static void hps_port_bind__taken_and_released(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(a)->inet_num, 5000);
	KUNIT_EXPECT_EQ(test, hps_sk(a)->local.port, 5000);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), -EADDRINUSE);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(b)->port, NULL);
	hps_port_release(a);
	KUNIT_EXPECT_FALSE(test, known(5000, SOCK_STREAM));
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
}

static void hps_port_bind__no_memory(struct kunit *test)
{
	struct sock *sk = stream(test);

	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_EQ(test, bind4(sk, HOST, 5000), -EADDRINUSE);
	KUNIT_EXPECT_FALSE(test, known(5000, SOCK_STREAM));
	KUNIT_EXPECT_EQ(test, bind4(sk, HOST, 5000), 0);
}

/* Streams and SOCK_SEQPACKET have ports of their own. */
static void hps_port_bind__other_type(struct kunit *test)
{
	struct sock *a = stream(test), *b = fake_sock(test, SOCK_SEQPACKET);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	KUNIT_EXPECT_PTR_NE(test, hps_sk(a)->port, hps_sk(b)->port);
}

static void hps_port_bind__any(struct kunit *test)
{
	struct sock *a = stream_of(test, 40000, 40001), *b = stream_of(test, 40000, 40001);
	struct sock *c = stream_of(test, 40000, 40001);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 0), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 0), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(a)->inet_num + inet_sk(b)->inet_num, 80001);
	/* None is left, and its name is what it was. */
	KUNIT_EXPECT_EQ(test, bind4(c, HOST, 0), -EADDRINUSE);
	KUNIT_EXPECT_TRUE(test, hps_addr_any(&hps_sk(c)->local.ip));
	KUNIT_EXPECT_EQ(test, inet_sk(c)->inet_num, 0);
}

/* SO_REUSEADDR counts for a port that was asked for, not for any. */
static void hps_port_bind__any_is_not_shared(struct kunit *test)
{
	struct sock *a = stream_of(test, 40000, 40000), *b = stream_of(test, 40000, 40000);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 0), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 0), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 40000), 0);
}

static void hps_port_bind__reserved(struct kunit *test)
{
	unsigned long *reserved = init_net.ipv4.sysctl_local_reserved_ports;
	struct sock *a = stream_of(test, 40000, 40001), *b = stream_of(test, 40000, 40001);

	__set_bit(40000, reserved);
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 0), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(a)->inet_num, 40001);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 0), -EADDRINUSE);
	__clear_bit(40000, reserved);
}

static void hps_port_clash__itself(struct kunit *test)
{
	struct sock *sk = stream(test);

	KUNIT_EXPECT_EQ(test, bind4(sk, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, hps_port_recheck(sk), 0);
}

static void hps_port_clash__addresses(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test), *c = stream(test);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, PEER, 5000), 0);
	/* Each wildcard clashes with both, whichever came first. */
	KUNIT_EXPECT_EQ(test, bind4(c, INADDR_ANY, 5000), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, bind6(c, 0, 5000), -EADDRINUSE);
	hps_port_release(a);
	hps_port_release(b);
	KUNIT_EXPECT_EQ(test, bind4(c, INADDR_ANY, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, bind6(a, 1, 5000), 0);
}

static void hps_port_clash__v6only(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_ipv6only = true;
	KUNIT_EXPECT_EQ(test, bind6(a, 0, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, INADDR_ANY, 5000), 0);
}

static void hps_port_clash__devices(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test), *c = stream(test);

	a->sk_bound_dev_if = 1;
	b->sk_bound_dev_if = 2;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	/* One without a device is on each. */
	KUNIT_EXPECT_EQ(test, bind4(c, HOST, 5000), -EADDRINUSE);
	c->sk_bound_dev_if = 2;
	KUNIT_EXPECT_EQ(test, bind4(c, HOST, 5000), -EADDRINUSE);
}

static void hps_port_clash__reuse(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	/* Both have to want it. */
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), -EADDRINUSE);
	b->sk_reuse = SK_CAN_REUSE;
	hps_sock_set_state(a, TCP_LISTEN);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), -EADDRINUSE);
	hps_sock_set_state(a, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(a)->port, hps_sk(b)->port);
	/* The port stays with the other one. */
	hps_port_release(a);
	KUNIT_EXPECT_TRUE(test, known(5000, SOCK_STREAM));
}

static void hps_port_clash__reuseport(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuseport = true;
	b->sk_reuseport = true;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	hps_sock_set_state(a, TCP_LISTEN);
	b->sk_uid = KUIDT_INIT(1000);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), -EADDRINUSE);
	b->sk_uid = a->sk_uid;
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
}

static void hps_port_recheck__one_listens(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	hps_sock_set_state(a, TCP_LISTEN);
	KUNIT_EXPECT_EQ(test, hps_port_recheck(a), 0);
	hps_sock_set_state(b, TCP_LISTEN);
	KUNIT_EXPECT_EQ(test, hps_port_recheck(b), -EADDRINUSE);
}

static void hps_port_connect__takes_any(struct kunit *test)
{
	struct sock *sk = stream_of(test, 40000, 40000);

	KUNIT_EXPECT_EQ(test, connect4(sk, PEER, 80), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->inet_num, 40000);
	KUNIT_EXPECT_EQ(test, ntohs(inet_sk(sk)->inet_dport), 80);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
}

/* What connect(2) took for itself it takes again, for another peer. */
static void hps_port_connect__shares_for_another_peer(struct kunit *test)
{
	struct sock *a = stream_of(test, 40000, 40000), *b = stream_of(test, 40000, 40000);

	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, b->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 81), 0);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(a)->port, hps_sk(b)->port);
}

static void hps_port_connect__again_after_close(struct kunit *test)
{
	struct sock *a = stream_of(test, 40000, 40000), *b = stream_of(test, 40000, 40000);

	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	hps_sock_set_state(a, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
}

static void hps_port_connect__not_what_bind_took(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream_of(test, 40000, 40000);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 40000), 0);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
}

static void hps_port_connect__no_memory(struct kunit *test)
{
	struct sock *sk = stream_of(test, 40000, 40000);

	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_EQ(test, connect4(sk, PEER, 80), -EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_FALSE(test, known(40000, SOCK_STREAM));
}

/* Sockets that share a bound port cannot have one peer as well. */
static void hps_port_connect__bound(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	KUNIT_EXPECT_EQ(test, a->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, b->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 81), 0);
}

/* Nor are those of two interfaces the same. */
static void hps_port_connect__interfaces(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	b->sk_bound_dev_if = 3;
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	a->sk_bound_dev_if = 3;
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	a->sk_bound_dev_if = 2;
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
}

/* What close() has left of a connection gives way, but to a socket with these ends alone. */
static void hps_port_connect__left_by_close(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test), *c = stream_of(test, 5000, 5000);
	struct hps_addr peer = at4(PEER, 80);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	hps_sock_set_state(a, TCP_FIN_WAIT2);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	sock_set_flag(a, SOCK_DEAD);
	KUNIT_EXPECT_TRUE(test, hps_port_connected(hps_net(&init_net), c, &hps_sk(a)->local,
						   &peer));
	hps_sock_set_state(a, TCP_FIN_WAIT1);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	hps_sock_set_state(a, TCP_FIN_WAIT2);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
}

/* Nor does that which waits for no more than the peer's answer. */
static void hps_port_connect__fin_sent(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test);

	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, HOST, 5000), 0);
	hps_sk(a)->fin_sent = true;
	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	hps_sock_set_state(a, TCP_FIN_WAIT1);
	sock_set_flag(a, SOCK_DEAD);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), -EADDRNOTAVAIL);
	hps_sk(a)->fin_sent = true;
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
}

/* Apart from each other they can, and together with one that does not know where it is. */
static void hps_port_connect__local_addresses(struct kunit *test)
{
	struct sock *a = stream(test), *b = stream(test), *c = stream(test);

	KUNIT_EXPECT_EQ(test, bind4(a, HOST, 5000), 0);
	KUNIT_EXPECT_EQ(test, bind4(b, PEER, 5000), 0);
	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
	a->sk_reuse = SK_CAN_REUSE;
	b->sk_reuse = SK_CAN_REUSE;
	c->sk_reuse = SK_CAN_REUSE;
	KUNIT_EXPECT_EQ(test, bind4(c, INADDR_ANY, 5000), 0);
	KUNIT_EXPECT_EQ(test, connect4(c, PEER, 80), -EADDRNOTAVAIL);
}

static void hps_port_part__again(struct kunit *test)
{
	struct sock *a = stream_of(test, 40000, 40000), *b = stream_of(test, 40000, 40000);
	struct sock *c = stream(test);

	KUNIT_EXPECT_EQ(test, connect4(a, PEER, 80), 0);
	hps_port_part(a);
	KUNIT_EXPECT_EQ(test, ntohs(inet_sk(a)->inet_dport), 0);
	KUNIT_EXPECT_EQ(test, connect4(b, PEER, 80), 0);
	/* Also without a port. */
	hps_port_part(c);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(c)->port, NULL);
}

static void hps_port_share__with_listener(struct kunit *test)
{
	struct sock *listener = stream(test), *sk = stream(test), *other = stream(test);
	struct hps_addr addr = at4(HOST, 5000);

	KUNIT_EXPECT_EQ(test, bind4(listener, HOST, 5000), 0);
	hps_sock_set_local(sk, &addr);
	hps_port_share(sk, listener);
	hps_port_release(listener);
	KUNIT_EXPECT_EQ(test, bind4(other, HOST, 5000), -EADDRINUSE);
	hps_port_release(sk);
	KUNIT_EXPECT_EQ(test, bind4(other, HOST, 5000), 0);
}

static void hps_port_share__listener_is_gone(struct kunit *test)
{
	struct sock *listener = stream(test), *sk = stream(test);

	hps_port_share(sk, listener);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(sk)->port, NULL);
}

static void hps_port_rename__name(struct kunit *test)
{
	struct sock *sk = stream(test);
	struct hps_addr addr = at4(HOST, 5000);

	KUNIT_EXPECT_EQ(test, bind4(sk, INADDR_ANY, 5000), 0);
	hps_port_rename(sk, &addr);
	KUNIT_EXPECT_MEMEQ(test, &hps_sk(sk)->local, &addr, sizeof(addr));
	KUNIT_EXPECT_EQ(test, ntohl(inet_sk(sk)->inet_saddr), HOST);
}

static void hps_port_name__whole(struct kunit *test)
{
	struct sock *sk = stream(test);
	struct hps_addr addr, wanted = at4(HOST, 5000);

	KUNIT_ASSERT_EQ(test, bind4(sk, HOST, 5000), 0);
	hps_port_name(sk, &addr);
	KUNIT_EXPECT_MEMEQ(test, &addr.ip, &wanted.ip, sizeof(addr.ip));
	KUNIT_EXPECT_EQ(test, addr.port, 5000);
	KUNIT_EXPECT_EQ(test, addr.scope, 0);
	KUNIT_EXPECT_FALSE(test, addr.v6);
}

static void hps_port_release__none(struct kunit *test)
{
	struct sock *sk = stream(test);

	hps_port_release(sk);
	KUNIT_EXPECT_PTR_EQ(test, hps_sk(sk)->port, NULL);
}

/* One that listens; with a device or none, as its sk_bound_dev_if. */
static struct sock *listener(struct kunit *test, const struct hps_addr *addr, int dif)
{
	struct sock *sk = stream(test);

	sk->sk_bound_dev_if = dif;
	sk->sk_reuseport = true;
	KUNIT_ASSERT_EQ(test, hps_port_bind(sk, addr), 0);
	hps_port_listen(sk);
	return sk;
}

/* Who gets a request from a peer's port; without the reference. */
static struct sock *found(u32 ip, u16 port, int type, int dif, u16 peer_port)
{
	struct hps_addr local = at4(ip, port), peer = at4(PEER, peer_port);
	struct sock *sk = hps_port_listener(&init_net, &local.ip, port, type, dif, &peer);

	if (sk)
		sock_put(sk);
	return sk;
}

static void hps_port_listener__best(struct kunit *test)
{
	struct hps_addr any6 = at6(0, 5000), any4 = at4(INADDR_ANY, 5000);
	struct hps_addr one4 = at4(HOST, 5000);
	struct sock *a, *b, *c, *d;

	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), NULL);
	a = listener(test, &any6, 0);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), a);
	b = listener(test, &any4, 0);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), b);
	c = listener(test, &one4, 0);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), c);
	KUNIT_EXPECT_PTR_EQ(test, found(PEER, 5000, SOCK_STREAM, 1, 80), b);
	d = listener(test, &one4, 1);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), d);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 2, 80), c);
	/* Whatever the order in which they are looked at. */
	hps_port_unlisten(a);
	hps_port_listen(a);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), d);
	hps_port_unlisten(d);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), c);
}

static void hps_port_listener__not_at_all(struct kunit *test)
{
	struct hps_addr addr = at4(HOST, 5000);
	struct sock *sk = listener(test, &addr, 1);

	/* A port of the same chain. */
	u16 same = 5001;

	while (hps_port_listeners(hps_net(&init_net), same) !=
	       hps_port_listeners(hps_net(&init_net), 5000))
		same++;
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, 80), sk);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, same, SOCK_STREAM, 1, 80), NULL);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_SEQPACKET, 1, 80), NULL);
	KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 2, 80), NULL);
	KUNIT_EXPECT_PTR_EQ(test, found(PEER, 5000, SOCK_STREAM, 1, 80), NULL);
}

/* Of equals each gets its share, and one peer always the same. */
static void hps_port_listener__equals(struct kunit *test)
{
	struct hps_addr addr = at4(HOST, 5000);
	struct sock *a = listener(test, &addr, 0), *b = listener(test, &addr, 0), *sk;
	int i, got_a = 0, got_b = 0;

	for (i = 1; i <= 1000; i++) {
		sk = found(HOST, 5000, SOCK_STREAM, 1, i);
		KUNIT_EXPECT_PTR_EQ(test, found(HOST, 5000, SOCK_STREAM, 1, i), sk);
		got_a += sk == a;
		got_b += sk == b;
	}
	KUNIT_EXPECT_EQ(test, got_a + got_b, 1000);
	KUNIT_EXPECT_GT(test, got_a, 300);
	KUNIT_EXPECT_GT(test, got_b, 300);
}

/* As when a connection ends */
static void hps_port_close__not_asked_for(struct kunit *test)
{
	struct sock *sk = stream(test), *other = stream(test);

	KUNIT_ASSERT_EQ(test, bind4(sk, HOST, 5000), 0);
	KUNIT_ASSERT_EQ(test, connect4(sk, PEER, 80), 0);
	hps_port_close(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->inet_num, 0);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->local.port, 5000);
	KUNIT_EXPECT_EQ(test, bind4(other, HOST, 5000), 0);
}

static void hps_port_close__asked_for(struct kunit *test)
{
	struct sock *sk = stream(test);

	KUNIT_ASSERT_EQ(test, bind4(sk, HOST, 5000), 0);
	sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
	KUNIT_ASSERT_EQ(test, connect4(sk, PEER, 80), 0);
	hps_port_close(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->inet_num, 5000);
	KUNIT_EXPECT_TRUE(test, known(5000, SOCK_STREAM));
}

/* The name of an ended connection, which is there again, is no port. */
static void hps_port_bind__none_for_ended(struct kunit *test)
{
	struct sock *sk = stream_of(test, 40000, 40000), *other = stream(test);

	KUNIT_ASSERT_EQ(test, connect4(sk, PEER, 80), 0);
	hps_port_close(sk);
	hps_port_part(sk);
	KUNIT_ASSERT_EQ(test, bind4(other, HOST, 40000), 0);
	KUNIT_EXPECT_EQ(test, bind4(sk, HOST, 0), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->inet_num, 0);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->local.port, 40000);
	hps_port_release(other);
	KUNIT_EXPECT_EQ(test, bind4(sk, HOST, 0), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->inet_num, 40000);
}

static struct kunit_case port_cases[] = {
	KUNIT_CASE(hps_port_bind__taken_and_released),
	KUNIT_CASE(hps_port_bind__no_memory),
	KUNIT_CASE(hps_port_bind__other_type),
	KUNIT_CASE(hps_port_bind__any),
	KUNIT_CASE(hps_port_bind__any_is_not_shared),
	KUNIT_CASE(hps_port_bind__reserved),
	KUNIT_CASE(hps_port_clash__itself),
	KUNIT_CASE(hps_port_clash__addresses),
	KUNIT_CASE(hps_port_clash__v6only),
	KUNIT_CASE(hps_port_clash__devices),
	KUNIT_CASE(hps_port_clash__reuse),
	KUNIT_CASE(hps_port_clash__reuseport),
	KUNIT_CASE(hps_port_recheck__one_listens),
	KUNIT_CASE(hps_port_connect__takes_any),
	KUNIT_CASE(hps_port_connect__shares_for_another_peer),
	KUNIT_CASE(hps_port_connect__again_after_close),
	KUNIT_CASE(hps_port_connect__not_what_bind_took),
	KUNIT_CASE(hps_port_connect__no_memory),
	KUNIT_CASE(hps_port_connect__bound),
	KUNIT_CASE(hps_port_connect__interfaces),
	KUNIT_CASE(hps_port_connect__left_by_close),
	KUNIT_CASE(hps_port_connect__fin_sent),
	KUNIT_CASE(hps_port_connect__local_addresses),
	KUNIT_CASE(hps_port_part__again),
	KUNIT_CASE(hps_port_share__with_listener),
	KUNIT_CASE(hps_port_share__listener_is_gone),
	KUNIT_CASE(hps_port_rename__name),
	KUNIT_CASE(hps_port_name__whole),
	KUNIT_CASE(hps_port_release__none),
	KUNIT_CASE(hps_port_close__not_asked_for),
	KUNIT_CASE(hps_port_close__asked_for),
	KUNIT_CASE(hps_port_bind__none_for_ended),
	KUNIT_CASE(hps_port_listener__best),
	KUNIT_CASE(hps_port_listener__not_at_all),
	KUNIT_CASE(hps_port_listener__equals),
	{}
};

UNIT_SUITE(port, port_cases);
