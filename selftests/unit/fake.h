/* SPDX-License-Identifier: GPL-2.0 */
/* What stands in a test for what is around the code that it looks at. */
#ifndef FAKE_H
#define FAKE_H

#include <kunit/test.h>
#include <linux/net.h>

struct sock *fake_sock(struct kunit *test, int type);

#endif /* FAKE_H */
