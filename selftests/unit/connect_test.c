// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/connect.c"

#include "conn_tx.h"
#include "fake.h"

/* The peer takes the last message of the handshake, late. */
struct confirm {
	struct delayed_work work;
	struct fake_conn *fake;
};

static void confirm_work(struct work_struct *work)
{
	struct confirm *confirm = container_of(work, struct confirm, work.work);

	FAKE_LOCKED(confirm->fake, hps_conn_tx_advanced(&confirm->fake->conn));
}

/* What a connect() says that comes, or gets a processor, when it is established here. */
static int again(struct kunit *test, struct fake_conn *fake, int flags)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct confirm confirm = { .fake = fake };
	struct sock *sk = fake_attach(test, fake);
	int ret;

	fake->conn.confirmed = false;
	sk->sk_socket->state = SS_CONNECTING;
	INIT_DELAYED_WORK_ONSTACK(&confirm.work, confirm_work);
	schedule_delayed_work(&confirm.work, HZ / 20);
	ret = hps_connect(sk->sk_socket, (struct sockaddr *)&to, sizeof(to), flags);
	if (!(flags & O_NONBLOCK))
		KUNIT_EXPECT_TRUE(test, fake->conn.confirmed);
	cancel_delayed_work_sync(&confirm.work);
	destroy_delayed_work_on_stack(&confirm.work);
	return ret;
}

static void hps_connect__established_already(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, again(test, fake_conn(test, TCP_ESTABLISHED), 0), 0);
}

/* poll() has said so. */
static void hps_connect__established_nonblock(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, again(test, fake, O_NONBLOCK), 0);
}

static void hps_connect__pending_nonblock(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	KUNIT_EXPECT_EQ(test, again(test, fake, O_NONBLOCK), -EALREADY);
}

static struct kunit_case connect_cases[] = {
	KUNIT_CASE(hps_connect__established_already),
	KUNIT_CASE(hps_connect__established_nonblock),
	KUNIT_CASE(hps_connect__pending_nonblock),
	{}
};

UNIT_SUITE(connect, connect_cases);
