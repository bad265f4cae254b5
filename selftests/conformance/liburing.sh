#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests of liburing that use stream sockets: those in liburing.list.
#
# Over TCP they run as they are, over AF_HPSOCK below hpsock_run and
# liburing_shim.c.
# shellcheck disable=SC2154 # lib.sh sets them
set -u
suite=liburing
. "$(dirname "$0")/lib.sh"

seconds=60

run_tcp() { timeout -k 5 $((seconds * slow)) "$build/liburing/$1.t"; }

run_hpsock()
{
	HPS_DOMAIN=$(domain hpsock) HPS_SETTLE=${2#listen} LD_PRELOAD=$build/liburing_shim.so \
		timeout -k 5 $((seconds * slow)) "$hpsock_run" "$build/liburing/$1.t"
}

# run OVER TEST [listen|settle]
run()
{
	local before status
	before=$(connects)
	"run_$1" "$2" "$3" >"$tmp/log" 2>&1 </dev/null
	status=$?
	if [ "$1" = hpsock ] && [ "$3" != listen ] && [ $status -eq 0 ] && [ "$before" = "$(connects)" ]; then
		echo 'no AF_HPSOCK socket was connected' >>"$tmp/log"
		status=1
	fi
	result "$1" "$2" $status "$tmp/log"
}

begin
cd "$tmp" || exit
while read -r name mark; do
	for over in tcp hpsock; do
		try $over "$name" "$mark"
	done
done < <(sed 's/#.*//; /^$/d' "$here/liburing.list")
finish
