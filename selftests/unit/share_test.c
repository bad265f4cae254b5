// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/share.c"

#include "fake.h"

#define ALICE	KUIDT_INIT(40001)
#define BOB	KUIDT_INIT(40002)
#define CAROL	KUIDT_INIT(40003)

/* Only ever compared. */
static struct net pods[2];

static unsigned int max_kb, percent;

static void tunables_back(void *unused)
{
	hps_mem_max_kb = max_kb;
	hps_mem_share = percent;
}

/* For growing there are 7 of 8 MiB. */
static void tune(struct kunit *test, u32 share)
{
	KUNIT_ASSERT_EQ(test, hps_share_taken(), 0);
	max_kb = hps_mem_max_kb;
	percent = hps_mem_share;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, tunables_back, NULL), 0);
	hps_mem_max_kb = 8192;
	hps_mem_share = share;
}

static struct hps_share *share_of(struct kunit *test, kuid_t uid, const struct net *net)
{
	struct hps_share *share = hps_share_get(uid, net);

	KUNIT_ASSERT_NOT_NULL(test, share);
	return share;
}

/* As many KiB as it gets in pieces of one */
static u32 greedy(struct hps_share *share, enum hps_share_use use)
{
	u32 got = 0;

	while (hps_share_take(share, hps_net(&init_net), 1024, use))
		got++;
	return got;
}

/* At the end of its connections */
static void give(struct hps_share *share, u32 kb)
{
	hps_share_give(share, (u64)kb << 10);
	hps_share_end(share, atomic64_read(&share->first));
	hps_share_put(share);
}

static u64 refused(enum hps_stat stat)
{
	return hps_stat_read(hps_net(&init_net), stat);
}

/* One for each user, and for each of his namespaces, which keeps the user's. */
static void hps_share_get__each(struct kunit *test)
{
	struct hps_share *alice = share_of(test, ALICE, &init_net);
	struct hps_share *pod = share_of(test, ALICE, &pods[0]);
	struct hps_share *other = share_of(test, ALICE, &pods[1]);
	struct hps_share *bob = share_of(test, BOB, &pods[0]);

	KUNIT_EXPECT_PTR_EQ(test, alice->of, &hps_share_all);
	KUNIT_EXPECT_PTR_EQ(test, pod->of, alice);
	KUNIT_EXPECT_PTR_EQ(test, other->of, alice);
	KUNIT_EXPECT_PTR_NE(test, other, pod);
	KUNIT_EXPECT_PTR_NE(test, bob->of, alice);
	KUNIT_EXPECT_PTR_EQ(test, share_of(test, ALICE, &pods[0]), pod);
	hps_share_put(pod);
	hps_share_put(alice);
	KUNIT_EXPECT_PTR_EQ(test, share_of(test, ALICE, &init_net), alice);
	hps_share_put(alice);
	hps_share_put(other);
	hps_share_put(pod);
	KUNIT_EXPECT_FALSE(test, hash_empty(hps_shares));
	hps_share_put(bob);
	KUNIT_EXPECT_TRUE(test, hash_empty(hps_shares));
}

static void hps_share_get__no_memory(struct kunit *test)
{
	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_NULL(test, hps_share_get(ALICE, &init_net));
	mock_fail(MOCK_ALLOC, BIT(1));
	KUNIT_EXPECT_NULL(test, hps_share_get(ALICE, &pods[0]));
	KUNIT_EXPECT_TRUE(test, hash_empty(hps_shares));
}

/* The percentage, of what growing may take or of all. */
static void hps_share_take__alone(struct kunit *test)
{
	u64 before = refused(HPS_STAT_MEM_REFUSED_USER);
	struct hps_share *alice;
	u32 kb;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	kb = greedy(alice, HPS_SHARE_GROW);
	KUNIT_EXPECT_EQ(test, kb, 3584);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_USER), before + 1);
	kb += greedy(alice, HPS_SHARE_FIRST);
	KUNIT_EXPECT_EQ(test, kb, 4096);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 4096 << 10);
	/* Nothing of what does not fit as a whole. */
	KUNIT_EXPECT_FALSE(test, hps_share_take(alice, hps_net(&init_net), 1025, HPS_SHARE_FIRST));
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 4096 << 10);
	give(alice, kb);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* There is no rule but the sum. */
static void hps_share_take__percent_100(struct kunit *test)
{
	u64 before = refused(HPS_STAT_MEM_REFUSED_ALL);
	struct hps_share *alice, *bob;

	tune(test, 100);
	alice = share_of(test, ALICE, &init_net);
	bob = share_of(test, BOB, &init_net);
	KUNIT_EXPECT_TRUE(test, hps_share_take(bob, hps_net(&init_net), 1024, HPS_SHARE_GROW));
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_GROW), 7167);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_ALL), before + 1);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_FIRST), 1024);
	give(alice, 7167);
	give(bob, 1025);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* Each of them gets half of what is left, who comes first not more than half of all. */
static void hps_share_take__greedy_users(struct kunit *test)
{
	u64 user = refused(HPS_STAT_MEM_REFUSED_USER);
	u64 all = refused(HPS_STAT_MEM_REFUSED_ALL);
	struct hps_share *alice, *bob, *carol;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	bob = share_of(test, BOB, &init_net);
	carol = share_of(test, CAROL, &init_net);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_GROW), 3584);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_GROW), 1792);
	KUNIT_EXPECT_EQ(test, greedy(carol, HPS_SHARE_GROW), 896);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_USER), user + 1);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_ALL), all + 2);
	/* What one gives back makes room for the others, not for him alone. */
	give(alice, 3584);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_GROW), (7168 - 896) / 2 - 1792);
	give(bob, (7168 - 896) / 2);
	give(carol, 896);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* Of one user's, no namespace but the initial one gets all. */
static void hps_share_take__namespaces(struct kunit *test)
{
	u64 netns = refused(HPS_STAT_MEM_REFUSED_NETNS);
	u64 user = refused(HPS_STAT_MEM_REFUSED_USER);
	struct hps_share *root, *pod, *other;

	tune(test, 50);
	pod = share_of(test, GLOBAL_ROOT_UID, &pods[0]);
	other = share_of(test, GLOBAL_ROOT_UID, &pods[1]);
	root = share_of(test, GLOBAL_ROOT_UID, &init_net);
	KUNIT_EXPECT_EQ(test, greedy(pod, HPS_SHARE_GROW), 1792);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_NETNS), netns + 1);
	KUNIT_EXPECT_EQ(test, greedy(other, HPS_SHARE_GROW), 896);
	KUNIT_EXPECT_EQ(test, refused(HPS_STAT_MEM_REFUSED_USER), user + 1);
	KUNIT_EXPECT_EQ(test, greedy(root, HPS_SHARE_GROW), 896);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 3584 << 10);
	give(pod, 1792);
	give(other, 896);
	give(root, 896);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
	KUNIT_EXPECT_TRUE(test, hash_empty(hps_shares));
}

/* After mem_max_kb was lowered. */
static void hps_share_take__more_taken_than_there_is(struct kunit *test)
{
	struct hps_share *alice, *bob;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	bob = share_of(test, BOB, &init_net);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_FIRST), 4096);
	hps_mem_max_kb = 1024;
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_FIRST), 0);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_FIRST), 0);
	give(alice, 4096);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_FIRST), 512);
	give(bob, 512);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* Who has grown gets new connections nonetheless, and so does who comes afterwards. */
static void hps_share_take__first_of_grown(struct kunit *test)
{
	struct hps_share *alice, *bob;
	u32 kb, got;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	bob = share_of(test, BOB, &init_net);
	kb = greedy(alice, HPS_SHARE_GROW);
	got = greedy(bob, HPS_SHARE_GROW);
	kb += greedy(alice, HPS_SHARE_FIRST);
	KUNIT_EXPECT_EQ(test, kb, 3584 + 512);
	got += greedy(bob, HPS_SHARE_FIRST);
	KUNIT_EXPECT_GE(test, got, 1792 + 256);
	/* That is not for growing. */
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_GROW), 0);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_GROW), 0);
	give(alice, kb);
	give(bob, got);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&hps_share_all.first), 0);
}

/* What shrinks gets it in any case, and it counts. */
static void hps_share_take__shrink(struct kunit *test)
{
	struct hps_share *alice;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_FIRST), 4096);
	KUNIT_EXPECT_TRUE(test, hps_share_take(alice, hps_net(&init_net), 1 << 20,
					       HPS_SHARE_SHRINK));
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 5120 << 10);
	hps_share_give(alice, 2 << 20);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_FIRST), 1024);
	give(alice, 4096);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* Not even where that is more than there is: new connections begin nonetheless. */
static void hps_share_take__first_beside_shrink(struct kunit *test)
{
	struct hps_share *alice, *bob;

	tune(test, 100);
	alice = share_of(test, ALICE, &init_net);
	bob = share_of(test, BOB, &init_net);
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_GROW), 7168);
	KUNIT_EXPECT_TRUE(test, hps_share_take(alice, hps_net(&init_net), 2 << 20,
					       HPS_SHARE_SHRINK));
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_FIRST), 1024);
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_GROW), 0);
	give(alice, 7168 + 2048);
	give(bob, 1024);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

/* Who is to give back: who has most himself, or everybody. */
static void hps_share_refused__whose(struct kunit *test)
{
	struct hps_share *alice, *pod, *bob;
	u64 since;

	tune(test, 50);
	alice = share_of(test, ALICE, &init_net);
	pod = share_of(test, ALICE, &pods[0]);
	bob = share_of(test, BOB, &init_net);
	since = get_jiffies_64() + 1;
	schedule_timeout_uninterruptible(2);
	KUNIT_EXPECT_FALSE(test, hps_share_refused(pod, since));
	KUNIT_EXPECT_EQ(test, greedy(pod, HPS_SHARE_GROW), 1792);
	KUNIT_EXPECT_TRUE(test, hps_share_refused(pod, since));
	KUNIT_EXPECT_FALSE(test, hps_share_refused(alice, since));
	KUNIT_EXPECT_EQ(test, greedy(alice, HPS_SHARE_GROW), 1792);
	KUNIT_EXPECT_TRUE(test, hps_share_refused(alice, since));
	KUNIT_EXPECT_FALSE(test, hps_share_refused(bob, since));
	/* Bob would have more if Alice had less, in whatever namespace. */
	since = get_jiffies_64() + 1;
	schedule_timeout_uninterruptible(2);
	KUNIT_EXPECT_FALSE(test, hps_share_refused(alice, since));
	KUNIT_EXPECT_EQ(test, greedy(bob, HPS_SHARE_GROW), 1792);
	KUNIT_EXPECT_TRUE(test, hps_share_refused(alice, since));
	KUNIT_EXPECT_TRUE(test, hps_share_refused(pod, since));
	KUNIT_EXPECT_FALSE(test, hps_share_refused(bob, since));
	give(pod, 1792);
	give(alice, 1792);
	give(bob, 1792);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(hps_share_get__each),
	KUNIT_CASE(hps_share_get__no_memory),
	KUNIT_CASE(hps_share_take__alone),
	KUNIT_CASE(hps_share_take__percent_100),
	KUNIT_CASE(hps_share_take__greedy_users),
	KUNIT_CASE(hps_share_take__namespaces),
	KUNIT_CASE(hps_share_take__more_taken_than_there_is),
	KUNIT_CASE(hps_share_take__first_of_grown),
	KUNIT_CASE(hps_share_take__shrink),
	KUNIT_CASE(hps_share_take__first_beside_shrink),
	KUNIT_CASE(hps_share_refused__whose),
	{}
};

UNIT_SUITE(share, share_cases);
