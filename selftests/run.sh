#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run a set of test programs on this machine, usually a guest of vm/run, where
# the module is loaded and two RDMA devices face each other.
#
# usage: run.sh [-v] [-f hpsock|tcp] SET | -p PROGRAM...
#	-v	show all that the programs print, else only what failed
#	-f	only the test cases over AF_HPSOCK, or only the same ones over TCP
#
# The sets are in the file "sets".  Every program prints KTAP; one that does
# not end in time, dies or says nothing counts as failed.  The last line is
# "N passed, N failed, N skipped", counting test cases.
set -u
cd "$(dirname "$0")" || exit 1

verbose=
family=
filter=()
passed=0 failed=0 skipped=0
slow=${HPSOCK_SLOW:-1}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

path_of()
{
	case $1 in
	*.sh)	echo "./$1";;
	*)	echo "build/$1";;
	esac
}

# verdict STATUS FAILED TOTAL: what is wrong beyond the failed test cases.
verdict()
{
	case $1 in
	124|137)	echo 'no end in time';;
	12[67])		echo 'cannot be run';;
	12[89]|1[3-9]?)	echo "killed by signal $(($1 - 128))";;
	*)
		if [ "$3" -eq 0 ]; then
			echo "no result, status $1"
		elif [ "$1" -ne 0 ] && [ "$1" -ne 4 ] && [ "$2" -eq 0 ]; then
			echo "status $1 without a failed test"
		fi;;
	esac
}

# run PROGRAM SECONDS
run()
{
	local args=("${filter[@]}")
	local status counts ok bad skip why mark=ok begin=$SECONDS
	if [[ $1 = *.sh ]]; then
		[ "$family" != tcp ] || return
		args=()
	fi
	# Lets one see on the console which program the kernel complained of.
	[ ! -w /dev/kmsg ] || echo "<5>hps: $1" >/dev/kmsg
	timeout -k 10 $(($2 * slow)) "$(path_of "$1")" "${args[@]}" >"$log" 2>&1 </dev/null
	status=$?
	# Not every program has test cases over TCP.
	if [ "$family" = tcp ] && grep -qx '1\.\.0' "$log"; then
		return
	fi
	counts=$(awk -f ktap.awk "$log")
	read -r ok bad skip <<<"$counts"
	why=$(verdict $status "$bad" $((ok + bad + skip)))
	if [ -n "$why" ]; then
		bad=$((bad + 1))
		why=", $why"
	fi
	[ "$bad" -eq 0 ] || mark='NOT OK'
	if [ -n "$verbose" ]; then
		sed 's/^/    /' "$log"
	elif [ "$bad" -ne 0 ]; then
		grep -vE '^(ok .*|#  RUN .*|#            OK .*)$' "$log" | sed 's/^/    /'
		# What it was at.
		[ -z "$why" ] || tail -n 5 "$log" | sed 's/^/    ... /'
	else
		# A skipped test says why it was, and one that may fail why it does.
		grep -E '^ok .*# (SKIP|XFAIL)' "$log" | sed 's/^/    /'
	fi
	echo "$mark $1: $ok passed, $bad failed, $skip skipped, $((SECONDS - begin)) s$why"
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skip))
}

run_set()
{
	local list program bound
	list=$(awk -v set="$1" -f sets.awk sets)
	if [ -z "$list" ]; then
		echo "run.sh: no program is in the set $1"
		failed=1
	fi
	while read -r program bound; do
		[ -z "$program" ] || run "$program" "$bound"
	done <<<"$list"
}

usage()
{
	sed -n '3,11s/^# \{0,1\}//p' "$0"
	exit 2
}

programs=
while getopts vf:p o; do
	case $o in
	v)	verbose=1;;
	f)
		family=$OPTARG
		case $family in
		hpsock)	filter=(-V inet -V inet6);;
		tcp)	filter=(-v inet -v inet6);;
		*)	usage;;
		esac;;
	p)	programs=1;;
	*)	usage;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
if [ -n "$programs" ]; then
	for p; do
		run "$p" 600
	done
else
	run_set "$1"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
