#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vsock_test of the kernel (tools/testing/vsock), its tests of SOCK_STREAM, over TCP too,
# and of SOCK_SEQPACKET.
#
# A client and a server go through a list of tests together, each test at the
# same time, which a TCP connection beside sees to.  The program ends at the
# first test that fails, hence each test has a run of its own.  vsock_shim.c
# turns AF_VSOCK into the family to be tested.
# shellcheck disable=SC2154 # lib.sh sets them
set -u
suite=vsock
. "$(dirname "$0")/lib.sh"

program=$build/vsock_test
seconds=30

# one DOMAIN MODE ID [OPTION...]: one end of the test of that number.
one()
{
	local skip=() id peer=1
	for id in "${ids[@]}"; do
		[ "$id" = "$3" ] || skip+=("--skip=$id")
	done
	[ "$2" = server ] || peer=2
	timeout -k 5 $((seconds * slow)) env HPS_DOMAIN="$1" LD_PRELOAD="$build/vsock_shim.so" \
		"$program" --mode="$2" --control-port=5000 --peer-cid=$peer "${skip[@]}" "${@:4}"
}

listening()
{
	local end=$((SECONDS + 10 * slow))
	until grep -q listening "$tmp/server"; do
		[ $SECONDS -lt $end ] || return
		sleep 0.05
	done
}

# run OVER ID NAME
run()
{
	local domain server client before status
	domain=$(domain "$1")
	before=$(connects)
	one "$domain" server "$2" >"$tmp/server" 2>&1 &
	listening
	one "$domain" client "$2" --control-host="$HPS_ADDR_B" >"$tmp/client" 2>&1
	client=$?
	wait $!
	server=$?
	{
		# Names of tests that were left out are of no interest.
		sed 's/^/client: /' "$tmp/client"
		sed 's/^/server: /' "$tmp/server"
	} | grep -vE 'skipped$|Control socket' >"$tmp/log"
	status=$((client ? client : server))
	if [ "$1" = hpsock ] && [ "$before" = "$(connects)" ]; then
		echo 'no AF_HPSOCK socket was connected' >>"$tmp/log"
		status=1
	fi
	result "$1" "$3" $status "$tmp/log"
}

begin
mapfile -t ids < <("$program" --list | sed -n 's/^\([0-9]\+\)\t.*/\1/p')
while IFS=$'\t' read -r id name; do
	case $name in
	SOCK_STREAM*)
		try tcp "$id" "${name#SOCK_STREAM }" </dev/null
		try hpsock "$id" "${name#SOCK_STREAM }" </dev/null;;
	SOCK_SEQPACKET*)
		try hpsock "$id" "${name#SOCK_}" </dev/null;;
	esac
done < <("$program" --list | grep -P '^[0-9]+\t')
finish
