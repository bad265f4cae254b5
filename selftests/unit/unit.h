/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the unit tests have in common. A test is called function__case, and stands in the
 * file FILE_test.c for FILE.c, in the order of its functions.
 */
#ifndef UNIT_H
#define UNIT_H

#include <kunit/test.h>

#include "mock.h"

/* The tests of a file. */
#define UNIT_SUITE(file, cases)						\
	static struct kunit_suite file##_suite = {			\
		.name = #file,						\
		.init = mock_init,					\
		.test_cases = cases,					\
	};								\
	kunit_test_suite(file##_suite)

#endif /* UNIT_H */
