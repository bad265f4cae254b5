#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run a set of test programs on this machine, usually a guest of vm/run, where
# the module is loaded and two RDMA devices face each other.
#
# usage: run.sh [-v] [-f hpsock|hpsock4|tcp] SET | -p PROGRAM...
#	-v	show all that the programs print, else only what failed
#	-f	only the test cases over AF_HPSOCK, of these only the ones with IPv4
#		addresses, or only the same ones over TCP
# SET may be a part of one (full:1/2), and PROGRAM name its tests (stream_close:races).
#
# The sets are in the file "sets".  Every program prints KTAP; one that does
# not end in time, dies or says nothing counts as failed.  The last line is
# "N passed, N failed, N skipped", counting test cases.
set -u
cd "$(dirname "$0")" || exit 1
. ./tasks.sh

verbose=
family=
filter=()
passed=0 failed=0 skipped=0
number=0
slow=${HPSOCK_SLOW:-1}

# What the programs print goes where it outlives a guest that dies.
if [ -n "${HPSOCK_JOB:-}" ]; then
	logs=$HPSOCK_JOB/programs
	mkdir -p "$logs"
else
	logs=$(mktemp -d)
	trap 'rm -rf "$logs"' EXIT
fi

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
	124)		echo 'no end in time';;
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

# end_session PID: end all that a program has started; a script may clean up first.
end_session()
{
	local end=$((SECONDS + 10))
	pkill -TERM -s "$1"
	while pgrep -s "$1" >/dev/null && [ "$SECONDS" -lt "$end" ]; do
		sleep 0.2
	done
	pkill -KILL -s "$1"
}

# bounded SECONDS LOG COMMAND...: a session of its own for each program, since the tests
# have process groups of theirs.  What hangs is looked at (LOG.hang) before it is ended.
bounded()
{
	local log=$2 pid timer first='' status
	sleep "$1" &
	timer=$!
	setsid "${@:3}" >"$log" 2>&1 </dev/null &
	pid=$!
	# The shell shall not tell of anyone's death.
	{ wait -n -p first "$pid" "$timer"; } 2>/dev/null
	status=$?
	if [ "$first" = "$timer" ]; then
		{ show_tasks; show_module; } >"$log.hang"
		end_session "$pid"
		status=124
	fi
	kill "$timer" 2>/dev/null
	{ wait "$pid" "$timer"; } 2>/dev/null
	return $status
}

# counters: those of the module, NAME VALUE a line.
counters() { cat /proc/net/hpsock_stat 2>/dev/null; }

# counted BEFORE: by how much each counter has moved since, which tells a peer that was
# given up from one that was reset, say.
counted()
{
	awk 'NR == FNR { before[$1] = $2; next }
	     $2 != before[$1] { printf "%s %+d\n", $1, $2 - before[$1] }' \
	    <(echo "$1") <(counters) | paste -sd' '
}

# show LOG WHY COUNTERS: of a failed program, what it said and what it was at.
show()
{
	[ ! -s "$1.hang" ] || sed 's/^/    | /' "$1.hang"
	grep -vE '^(ok .*|#  RUN .*|#            OK .*)$' "$1" | sed 's/^/    /'
	[ -z "$3" ] || echo "    counters: $3"
	[ -z "$2" ] || tail -n 5 "$1" | sed 's/^/    ... /'
}

# only PROGRAM TEST,...: the arguments for it, one a line.  A test of a program in C is
# named with fixture and variant, as in its results (close.hpsock.races), or alone.
only()
{
	local test
	for test in ${2//,/ }; do
		case $1,$test in
		*.sh,*)	echo "$test";;
		*.*.*)	printf '%s\n' -r "$test";;
		*)	printf '%s\n' -t "$test";;
		esac
	done
}

# tunables: all of the module, FILE:VALUE a line.
tunables() { grep -sH . /sys/module/hpsock/parameters/*; }

# restore BEFORE: what a program has left changed, as one does that was ended in a test,
# must not change what the others find.  Prints the names.
restore()
{
	local file value
	diff <(echo "$1") <(tunables) | sed -n 's/^< //p' |
		while IFS=: read -r file value; do
			# Some cannot be set while the module is there; or it is not any more.
			[ ! -e "$file" ] || echo "$value" >"$file"
			echo "${file##*/}"
		done
}

# run PROGRAM[:TEST,...] SECONDS [VARIABLE=VALUE...]
run()
{
	local args=("${filter[@]}") name=${1%%:*}
	local log status counts ok bad skip why mark=ok begin=$SECONDS tuned left count
	if [[ $name = *.sh ]]; then
		[ "$family" != tcp ] || return
		args=()
	fi
	if [ "$name" != "$1" ]; then
		# The first filter that matches a test case decides.
		[ "$family" != tcp ] || args=(-V hpsock -V hpsock6 -V hpsock_cas)
		mapfile -t -O "${#args[@]}" args < <(only "$name" "${1#*:}")
	fi
	number=$((number + 1))
	# A long list of tests is no name of a file.
	printf -v log '%s/%02d.%.200s.log' "$logs" $number "${1//\//.}"
	# Lets one see on the console which program the kernel complained of.
	[ ! -w /dev/kmsg ] || echo "<5>hps: $1" >/dev/kmsg
	tuned=$(tunables)
	count=$(counters)
	bounded $(($2 * slow)) "$log" env HPS_OVER="$family" "${@:3}" "$(path_of "$name")" "${args[@]}"
	status=$?
	left=$(restore "$tuned" | paste -sd' ')
	count=$(counted "$count")
	# Not every program has test cases over TCP.
	if [ "$family" = tcp ] && grep -qx '1\.\.0' "$log"; then
		return
	fi
	counts=$(awk -f ktap.awk "$log")
	read -r ok bad skip <<<"$counts"
	why=$(verdict $status "$bad" $((ok + bad + skip)))
	[ -z "$left" ] || [ "$bad" -ne 0 ] || why=${why:-leaves $left changed}
	if [ -n "$why" ]; then
		bad=$((bad + 1))
		why=", $why"
	fi
	[ "$bad" -eq 0 ] || mark='NOT OK'
	if [ -n "$verbose" ]; then
		sed 's/^/    /' "$log"
	elif [ "$bad" -ne 0 ]; then
		show "$log" "$why" "$count"
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
	local list program bound environment
	list=$(awk -v set="$1" -f sets.awk sets)
	if [ -z "$list" ]; then
		echo "run.sh: no program is in the set $1"
		failed=1
	fi
	while read -r program bound environment; do
		# shellcheck disable=SC2086 # a list
		[ -z "$program" ] || run "$program" "$bound" $environment
	done <<<"$list"
}

usage()
{
	sed -n '3,13s/^# \{0,1\}//p' "$0"
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
		hpsock4) filter=(-V inet -V inet6 -V hpsock6);;
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
