#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hpsock_run: which sockets it converts, and how it stands in for the program.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source-path=SCRIPTDIR source=ktap.sh
. ./ktap.sh

run=$PWD/../tools/hpsock_run
domain=$PWD/build/tool_domain
nolibc=$PWD/build/tool_nolibc
family=$(cat /sys/module/hpsock/parameters/family)
tmp=$(mktemp -d)
out=$tmp/out
trap 'rm -rf "$tmp"' EXIT

stream=1 dgram=2 raw=3
nonblock=0x800 cloexec=0x80000
tcp=6 icmp=1 mptcp=262
inet=2 inet6=10 unix=1
ours="$inet $family 1 6"	# what tool_domain says of one that was opened with AF_INET

# is NAME EXPECTED COMMAND...: the command prints that, and nothing else.
is()
{
	local name=$1 expected=$2 got
	shift 2
	got=$("$@" 2>&1)
	printf 'expected: %s\ngot: %s\n' "$expected" "$got" >"$out"
	[ "$got" = "$expected" ]
	result $? "$name"
}

# The status of a command, and nothing of what it says.
status() { "$@" >/dev/null 2>&1; echo $?; }

same() { is "$1" "$("$domain" "${@:2}" 2>&1)" "$run" "$domain" "${@:2}"; }

# A family that no kernel has sockets of, in place of ours.
without_family()
{
	echo 28 >"$tmp/family"
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m sh -c 'mount --bind "$1" "$2" && shift 2 && "$@"' sh \
		"$tmp/family" /sys/module/hpsock/parameters/family "$@"
}

converted()
{
	is 'IPv4' "$ours" "$run" "$domain" $inet $stream 0
	is 'IPv6' "$inet6 $family 1 6 inet6" "$run" "$domain" $inet6 $stream 0
	is 'IPPROTO_TCP' "$ours" "$run" "$domain" $inet $stream $tcp
	is 'flags stay' "$inet6 $family 1 6 nonblock cloexec inet6" \
		"$run" "$domain" $inet6 $((stream | nonblock | cloexec)) $tcp
}

not_converted()
{
	same 'datagrams stay' $inet $dgram 0
	same 'IPv6 datagrams stay' $inet6 $dgram 17
	same 'Unix sockets stay' $unix $stream 0
	same 'raw sockets stay' $inet $raw $icmp
	same 'MPTCP stays' $inet $stream $mptcp
	same 'a wrong type stays wrong' $inet 77 0
}

launcher()
{
	local lib=$PWD/../tools/libhpsock_run.so
	# What no shell keeps, or a script may use.
	local odd=('a.b=1' 'f%%=() { :; }' 'version=9' 'status=up' 'lib=x')
	local signals=(--ignore-signal=CHLD --ignore-signal=USR2 --block-signal=USR1
		grep '^Sig[BI]' /proc/self/status)
	# Any library that is loaded by its full name will do, and one with a socket() of its own.
	local other libc
	other=$(ldd "$BASH" | sed -n 's/.*=> \([^ ]*libtinfo\.[^ ]*\).*/\1/p')
	libc=$(ldd "$domain" | sed -n 's/.*=> \([^ ]*libc\.[^ ]*\).*/\1/p')
	lib=$(readlink -f "$lib")

	is 'a child inherits it' "$ours" "$run" sh -c "$domain 2 1 0; exit 0"
	is 'nested' "$ours" "$run" "$run" "$domain" $inet $stream 0
	# shellcheck disable=SC2016 # for the inner shell
	is 'a preload stays in front' "$other:$lib" \
		env LD_PRELOAD="$other" "$run" sh -c 'echo "$LD_PRELOAD"'
	is 'a preload that keeps us out' 1 status env LD_PRELOAD="$libc" "$run" touch "$tmp/ran"
	is 'environment stays' "$(env -i "${odd[@]}" env)"$'\n'"LD_PRELOAD=$lib" \
		env -i "${odd[@]}" "$run" env
	is 'signals stay' "$(env "${signals[@]}")" env "${signals[@]:0:3}" "$run" "${signals[@]:3}"
	is 'without a path' "$ours" env PATH=/none "$run" "$domain" $inet $stream 0
	is 'through a symbolic link' "$ours" "$tmp/link" "$domain" $inet $stream 0
	is 'arguments stay' '<a b><*>' "$run" printf '<%s>' 'a b' '*'
	is 'status of the program' 42 status "$run" sh -c 'exit 42'
	# shellcheck disable=SC2016 # for the inner shell
	is 'death of the program' 143 status "$run" sh -c 'kill $$'
	is 'no such program' 127 status "$run" "$tmp/none"
	is 'no program' 2 status "$run"
	is 'unknown option' 2 status "$run" -x true
	is 'a program without a C library' 0 status "$run" "$nolibc"
	is 'and bound at once' 0 status env LD_BIND_NOW=1 "$run" "$nolibc"
	is 'any C library will do' '' sh -c "readelf -dW '$lib' | grep NEEDED"
	is 'library not found' 1 status "$tmp/hpsock_run" true
}

no_family()
{
	is 'refuses without the family' 1 status without_family "$run" touch "$tmp/ran"
	is 'and does not start the program' 2 status ls "$tmp/ran"
	is 'and says why' 'hpsock_run: socket family 28: Address family not supported by protocol' \
		sh -c '"$@" 2>&1 | head -n 1' sh \
		unshare -m sh -c "mount --bind $tmp/family /sys/module/hpsock/parameters/family && $run true"
	is 'the program sees the error' EAFNOSUPPORT \
		without_family env LD_PRELOAD="$PWD/../tools/libhpsock_run.so" "$domain" $inet $stream 0
}

ln -s "$run" "$tmp/link"
cp "$run" "$tmp/hpsock_run"
echo 'TAP version 13'
converted
not_converted
launcher
no_family
plan
