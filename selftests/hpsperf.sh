#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hpsperf: every test of it over TCP and over AF_HPSOCK, what it prints, and what
# its options make of the messages.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source-path=SCRIPTDIR source=ktap.sh
. ./ktap.sh

perf=$PWD/../tools/hpsperf
server=10.3.0.2
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# both FAMILY OPTION...: a server for one client, and the client; what they print into
# "out".  Both have to end well.
both()
{
	local pid status=0
	"$perf" -f "$1" -1 -s >"$out.server" 2>&1 &
	pid=$!
	timeout $((60 * ${HPSOCK_SLOW:-1})) "$perf" -f "$1" -w 20 -c $server "${@:2}" \
		>"$out" 2>&1 || status=1
	[ $status -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || status=1
	cat "$out.server" >>"$out"
	rm -f "$out.server"
	return $status
}

# A line that is an object of JSON, of numbers, words and one more level.
is_object()
{
	local number='-?[0-9]+(\.[0-9]+)?' word='"[A-Za-z0-9_/]+"'
	local flat="$word:($number|$word)"
	local inner="\{$word:$number(,$word:$number)*\}"
	grep -qE "^\{$flat(,($flat|$word:$inner))*\}$" "$out" && [ "$(wc -l <"$out")" -eq 1 ]
}

# has NAME VALUE: in the object.
has() { grep -qE "[{,]\"$1\":\"?$2\"?[,}]" "$out"; }

# field NAME: its number
field() { grep -oE "\"$1\":-?[0-9.]+" "$out" | cut -d: -f2; }

ascending() { printf '%s\n' "$@" | sort -gc 2>/dev/null; }

# json FAMILY TEST BYTES CONNECTIONS MESSAGES OPTION...
json()
{
	both "$1" -j -t "$2" -l "$3" "${@:6}" && is_object &&
		has test "$2" && has family "$1" && has bytes "$3" &&
		has connections "$4" && has messages "$5" &&
		awk -v s="$(field seconds)" 'BEGIN { exit !(s > 0) }'
}

positive() { awk -v v="$(field value)" 'BEGIN { exit !(v > 0) }'; }

every_test()
{
	json "$1" lat 64 1 200 -n 200 && positive
	result $? "$1 lat"
	json "$1" bw 4096 1 300 -n 300 && positive
	result $? "$1 bw"
	json "$1" bw 4096 3 300 -P 3 -n 100 && positive
	result $? "$1 bw, three connections"
	json "$1" bibw 65536 1 20 -n 20 && positive
	result $? "$1 bibw"
	json "$1" bibw 4096 2 40 -P 2 -n 20 && positive
	result $? "$1 bibw, two connections"
	json "$1" rate 64 1 20 -n 20 && positive
	result $? "$1 rate"
	json "$1" hotspot 64 4 200 -P 4 -n 50 && positive &&
		ascending "$(field min)" "$(field p50)" "$(field p90)" "$(field p99)" \
			"$(field p999)" "$(field max)"
	result $? "$1 hotspot"
	json "$1" hotspot 4096 1 50 -P 1 -n 50 && positive
	result $? "$1 hotspot, one connection"
	json "$1" fanin 4096 4 400 -P 4 -n 100 && positive
	result $? "$1 fanin"
	json "$1" fanout 4096 4 400 -P 4 -n 100 && positive
	result $? "$1 fanout"
	json "$1" mem 64 16 16 -P 16 && has module_memory '[0-9.]+'
	result $? "$1 mem"
}

output()
{
	both "$1" -q -n 20 && grep -qxE '[0-9]+\.[0-9]+' "$out"
	result $? "$1 a number alone"
	both "$1" -t bw -n 20 -l 64-1k &&
		awk 'NR > 1 { if ($3 != 64 * 2 ^ (NR - 2)) exit 1 } END { exit NR != 6 }' "$out"
	result $? "$1 a table of sizes"
	both "$1" -j -t lat -n 20 -l 1k-2k && [ "$(grep -c '^{' "$out")" -eq 2 ]
	result $? "$1 an object for each size"
}

# The server goes on, and has a child for each client.
stays()
{
	local pid status=0
	"$perf" -f "$1" -s &
	pid=$!
	for _ in 1 2; do
		"$perf" -f "$1" -w 20 -c $server -q -t hotspot -P 2 -n 5 >"$out" 2>&1 || status=1
	done
	kill $pid
	wait $pid 2>/dev/null
	result $status "$1 server for several clients"
}

# messages OPTION...: that AF_HPSOCK sends for 2000 times 128 bytes
messages()
{
	local before after
	before=$(awk '$1 == "tx_msgs" { print $2 }' /proc/net/hpsock_stat)
	both hpsock -q -t bw -l 128 -n 2000 "$@" || return
	after=$(awk '$1 == "tx_msgs" { print $2 }' /proc/net/hpsock_stat)
	echo $((after - before))
}

combining()
{
	local apart corked
	apart=$(messages -M 128) && corked=$(messages -C) &&
		[ "$apart" -ge 2000 ] && [ "$apart" -lt 2020 ] && [ "$corked" -lt 1000 ]
	result $? "TCP_MAXSEG keeps sends apart, TCP_CORK combines: ${apart:-} ${corked:-}"
}

refused()
{
	local status
	"$perf" "$@" >"$out" 2>&1
	status=$?
	[ $status -eq 1 ] || [ $status -eq 2 ]
	result $? "refused: $*"
}

# What a client asks for, see perf.h, that does not look at it first: one message of 2 MiB
# over each of 1,000 connections, by "bw".
request()
{
	printf 'hpp2\0\0\0\x01\0\x20\0\0\0\0\x03\xe8\0\0\0\0\0\0\0\x01'
	head -c 16 /dev/zero
}

asked_too_much()
{
	local pid status
	"$perf" -f tcp -1 -s >"$out" 2>&1 &
	pid=$!
	# Until it listens.
	until request 2>/dev/null >/dev/tcp/$server/7027 || ! kill -0 $pid 2>/dev/null; do
		sleep 0.1
	done
	wait $pid
	status=$?
	[ $status -eq 1 ] && grep -q 'out of range' "$out"
	result $? "refused: a request for too much memory"
}

echo 'TAP version 13'
for family in tcp hpsock; do
	every_test $family
	output $family
	stays $family
done
combining
refused -c $server -t none
refused -c $server -l 0
refused -c $server -l 2k-1k
refused -c $server -P 2 -t lat
refused -c $server -s
refused -c $server -t bw -l 2M -P 1000
refused -c $server -t fanin -l 512M
asked_too_much
plan
