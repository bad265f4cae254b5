# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # $suite is the caller's
#
# What the suites have in common.  Sourced, in the guest.
#
# Every test runs twice, over TCP and over AF_HPSOCK, and is a test case each
# time; with "run.sh -f hpsock" over AF_HPSOCK alone.  What is in the file "expected"
# has to fail, in the way that is said there.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$here/../build/conformance
hpsock_run=$here/../../tools/hpsock_run
slow=${HPSOCK_SLOW:-1}
HPS_ADDR_A=${HPS_ADDR_A:-10.3.0.1}
HPS_ADDR_B=${HPS_ADDR_B:-10.3.0.2}
HPS_ADDR6_A=${HPS_ADDR6_A:-fd03::1}
HPS_ADDR6_B=${HPS_ADDR6_B:-fd03::2}
export HPS_ADDR_A HPS_ADDR_B HPS_ADDR6_A HPS_ADDR6_B

case ${HPS_OVER:-} in
hpsock*) overs=hpsock;;
*)	overs='tcp hpsock';;
esac
n=0 failures=0 again=
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# domain OVER: the family that socket() is to be called with.
domain()
{
	case $1 in
	tcp)	echo 2;;
	hpsock)	cat /sys/module/hpsock/parameters/family;;
	esac
}

# entries: "over test symptom reason" of this suite, separated by tabs.  What is over
# something else is told as it is, for check_list.
entries()
{
	awk -F '\t+' -v OFS='\t' -v suite="$suite" -v overs="$overs" '
		BEGIN { n = split(overs, over, " ") }
		!/^#/ && $1 == suite && $2 !~ /^(both|tcp|hpsock)$/ { print $2, $3, $4, $5 }
		!/^#/ && $1 == suite {
			for (i = 1; i <= n; i++)
				if ($2 == "both" || $2 == over[i])
					print over[i], $3, $4, $5
		}' "$here/expected"
}

# expected OVER TEST: "symptom reason", nothing if it is to pass.
expected()
{
	entries | awk -F '\t' -v OFS='\t' -v over="$1" -v test="$2" \
		'$1 == over && $2 == test { print $3, $4 }'
}

# Connections that AF_HPSOCK sockets of this machine have tried to make.
connects() { awk '$1 ~ /^connect(_failed)?$/ { n += $2 } END { print n }' /proc/net/hpsock_stat; }

# fail NAME WHY LOG
fail()
{
	failures=$((failures + 1))
	echo "not ok $n $1"
	echo "# $2"
	tail -n 20 "$3" | tr -d '\000' | sed 's/^/# /'
}

# wrong STATUS SYMPTOM WHY LOG: what is, if anything.
wrong()
{
	case $1:$3 in
	0:|0:sometimes*|77:)
		;;
	*:)	echo "status $1";;
	0:*|77:*)
		echo "does not fail (status $1), but it is listed: $3";;
	*)	grep -qF -- "$2" "$4" || echo "fails otherwise than listed: $2";;
	esac
}

# result OVER TEST STATUS LOG: 0 is a pass, 77 a skip.  Fails if it is worth another try.
result()
{
	local name="$2 over $1" symptom why bad
	IFS=$'\t' read -r symptom why <<<"$(expected "$1" "$2")"
	bad=$(wrong "$3" "$symptom" "$why" "$4")
	if [ -n "$bad" ] && [ -z "$again" ]; then
		echo "# $name: $bad; once more"
		tail -n 5 "$4" | tr -d '\000' | sed 's/^/# /'
		return 1
	fi
	n=$((n + 1))
	printf '%s\t%s\n' "$1" "$2" >>"$tmp/names"
	case $3:$bad in
	*:?*)	fail "$name" "$bad" "$4";;
	0:)	echo "ok $n $name";;
	77:)	echo "ok $n $name # SKIP $(tail -n 1 "$4")";;
	*)	echo "ok $n $name # XFAIL $why";;
	esac
}

# try ARGUMENT...: the suite's "run", which ends with a result.  Some tests give what
# they wait for a fixed time, which a busy machine may not keep: they have a second one.
try()
{
	[[ " $overs " = *" $1 "* ]] || return 0
	again=
	run "$@" || { again=yes; run "$@"; }
}

# A list that names tests which there are none of is out of date.
check_list()
{
	local over test
	while IFS=$'\t' read -r over test; do
		n=$((n + 1))
		fail "$test over $over" 'is listed, but there is no such test' /dev/null
	done < <(comm -23 <(entries | cut -f 1,2 | sort) <(sort "$tmp/names"))
}

begin()
{
	echo 'TAP version 13'
	if [ ! -d "$build" ]; then
		echo "Bail out! $here/fetch.sh has not been run, or failed"
		exit 1
	fi
}

finish()
{
	check_list
	echo "1..$n"
	[ $failures -eq 0 ]
}
