// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are real ones, made as a program's are.
 */
#include <net/sock.h>
#include <net/tcp_states.h>

#include "fake.h"
#include "unit.h"

#include "net.h"
#include "param.h"
#include "sock.h"

static void fake_sock_release(void *data)
{
	struct socket *sock = data;

	hps_port_unlisten(sock->sk);
	/* It may say that it is on its way to a peer, where there is no connection. */
	if (!rcu_access_pointer(hps_sk(sock->sk)->conn))
		hps_sock_set_state(sock->sk, TCP_CLOSE);
	sock_release(sock);
}

/**
 * fake_sock - a socket in TCP_CLOSE, until the end of the test
 * @test: which it is for
 * @type: SOCK_STREAM or SOCK_SEQPACKET
 */
struct sock *fake_sock(struct kunit *test, int type)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, hps_family, type, 0, &sock), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_sock_release, sock), 0);
	return sock->sk;
}
