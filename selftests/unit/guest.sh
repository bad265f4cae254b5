#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In the guest: load the module of the unit tests, which runs them, and print what they
# say as KTAP. KUnit says it in the kernel's log, which is shown whole when it was not
# heard to the end.
#
# usage: guest.sh MODULE [-v]
set -u

# log: what the kernel has said since this began, without the time and the level.
log() { dmesg | sed '1,/hps: unit tests/d' | sed 's/^\(<[0-9]*>\)\{0,1\}\[ *[0-9.]*\] //'; }

# counted: test cases are indented once; what is not is a suite.
counted() { log | sed -n 's/^    \(\(not \)\{0,1\}ok .*\)/\1/p' | awk -f "$HPSOCK_TOP/selftests/ktap.awk"; }

echo '<5>hps: unit tests' >/dev/kmsg
insmod "$1" || { log; exit 1; }
rmmod hpsock_unit || exit 1
read -r passed failed skipped <<<"$(counted)"
suites=$(log | grep -cE '^(not )?ok [0-9]+ ')
planned=$(log | sed -n 's/^1\.\.//p')
if [ "$failed" -ne 0 ] || [ -n "${2:-}" ] || [ "$suites" -eq 0 ] || [ "$suites" != "$planned" ]; then
	log
fi
if [ "$suites" -eq 0 ] || [ "$suites" != "$planned" ]; then
	echo "not all suites ended: $suites of ${planned:-none}"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
