# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# KTAP of a test that is a script: a line for each case, and what the file "$out"
# holds behind one that failed.

n=0 failures=0

# result STATUS NAME
result()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n $2"
	else
		echo "not ok $n $2"
		# shellcheck disable=SC2154 # the test's
		sed 's/^/# /' "$out"
		failures=$((failures + 1))
	fi
}

# The plan, and as the test's last command its status.
plan()
{
	echo "1..$n"
	[ $failures -eq 0 ]
}

# All of it cannot be done here.
skip_all()
{
	echo '1..1'
	echo "ok 1 # SKIP $1"
	exit 0
}
