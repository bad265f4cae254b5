// SPDX-License-Identifier: GPL-2.0
/*
 * Which of the next calls fail: a mask for each kind, bit n for the n-th from now on.
 *
 * Only calls of the task that runs the tests count: others of the kernel's threads may
 * be in the module at the same time.
 */
#include <linux/sched.h>

#include "mock.h"

static u64 mock_masks[MOCK_CALLS];
static struct task_struct *mock_task;

/**
 * mock_fail - have calls fail
 * @call: of this kind
 * @mask: bit 0 for the next one, and so on
 */
void mock_fail(enum mock_call call, u64 mask)
{
	mock_task = current;
	mock_masks[call] = mask;
}

/**
 * mock_fails - shall this one?
 * @call: its kind
 */
bool mock_fails(enum mock_call call)
{
	bool fails = current == mock_task && (mock_masks[call] & 1);

	if (current == mock_task)
		mock_masks[call] >>= 1;
	return fails;
}

/**
 * mock_init - before each test: nothing fails
 * @test: which it is
 *
 * Return: 0.
 */
int mock_init(struct kunit *test)
{
	memset(mock_masks, 0, sizeof(mock_masks));
	return 0;
}
