#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mptcp_connect of the kernel (tools/testing/selftests/net/mptcp), with TCP
# sockets: a server and a client send each other a file at the same time, in
# pieces of random size, by various calls and with various options.
#
# It runs unmodified, over AF_HPSOCK below hpsock_run.  A test passes if both
# ends do, say nothing, and have received the other's file.
# shellcheck disable=SC2154 # lib.sh sets them
set -u
suite=mptcp_connect
. "$(dirname "$0")/lib.sh"

program=$build/mptcp_connect
seconds=60
port=12000
kib=512

under()
{
	case $1 in
	tcp)	"${@:2}";;
	hpsock)	"$hpsock_run" "${@:2}";;
	esac
}

# end OVER [OPTION...]: one end of a transfer.
end()
{
	timeout -k 5 $((seconds * slow)) "$0" --under "$1" \
		"$program" -t $((20 * slow)) -p $port -s TCP "${@:2}"
}

# Its state is 10, in TCP's table in hexadecimal.
is_listening()
{
	case $1 in
	tcp)	awk -v port="$(printf '%04X' $port)" '
			$2 ~ ":" port "$" && $4 == "0A" { found = 1 }
			END { exit !found }' /proc/net/tcp /proc/net/tcp6;;
	hpsock)	awk -v port=$port '$2 == port && $5 == 10 { found = 1 }
			END { exit !found }' /proc/net/hpsock;;
	esac
}

listening()
{
	local end=$((SECONDS + 10 * slow))
	until is_listening "$1"; do
		[ $SECONDS -lt $end ] || return
		sleep 0.05
	done
}

# same SENT RECEIVED: "prefix" if the receiver may have stopped early.
same()
{
	[ -s "$tmp/$2" ] && cmp "$tmp/$1" "$tmp/$2" 2>&1 |
		if [ "$how" = prefix ]; then grep -v '^cmp: EOF'; else cat; fi
}

# run OVER NAME
run()
{
	local before status server any=0.0.0.0 addr=$HPS_ADDR_B
	case $2 in *IPv6*) any=:: addr=$HPS_ADDR6_B;; esac
	before=$(connects)
	port=$((port + 1))
	: >"$tmp/sout"
	: >"$tmp/cout"
	end "$1" "${server_args[@]}" -l $any <"$tmp/$sin" >"$tmp/sout" 2>"$tmp/server" &
	server=$!
	listening "$1"
	end "$1" "${client_args[@]}" "$addr" <"$tmp/$cin" >"$tmp/cout" 2>"$tmp/client"
	status=$?
	wait $server || status=$?
	{
		sed 's/^/client: /' "$tmp/client"
		sed 's/^/server: /' "$tmp/server"
		[ $status -ne 0 ] || { same "$cin" sout; same "$sin" cout; }
	} >"$tmp/log"
	[ $status -ne 0 ] || [ ! -s "$tmp/log" ] || status=1
	if [ "$1" = hpsock ] && [ "$before" = "$(connects)" ]; then
		echo 'no AF_HPSOCK socket was connected' >>"$tmp/log"
		status=1
	fi
	result "$1" "$2" $status "$tmp/log"
}

# transfer NAME [OPTION...]: of both ends, unless client_args or server_args are set.
transfer()
{
	local over
	[ ${#client_args[@]} -gt 0 ] || client_args=("${@:2}")
	[ ${#server_args[@]} -gt 0 ] || server_args=("${@:2}")
	for over in tcp hpsock; do
		try $over "$1"
	done
	client_args=() server_args=() cin=client_file sin=server_file how=all
}

random() { head -c "$1" /dev/urandom >"$tmp/$2"; }

transfers()
{
	local six
	for six in '' ' IPv6'; do
		transfer "poll$six"
		transfer "mmap$six" -m mmap
		transfer "sendfile$six" -m sendfile
	done
	transfer 'poll, small buffers' -S 4096 -R 4096
	transfer 'mmap, small buffers' -m mmap -S 4096 -R 4096
	transfer 'sendfile, small buffers' -m sendfile -S 4096 -R 4096
	transfer 'poll, large buffers' -S 1048576 -R 1048576
	transfer 'poll, save with peek' -P saveWithPeek
	transfer 'poll, save after peek' -P saveAfterPeek
	transfer 'mmap, save with peek' -m mmap -P saveWithPeek
	transfer 'sendfile, save after peek' -m sendfile -P saveAfterPeek
	transfer 'pause after the first write' -j
	cin=small_file sin=small_file
	transfer 'slow writes' -r 1024
	transfer 'wait before shutdown' -w 1
	transfer 'mark' -M 7
	transfer 'control message TCPINQ' -c TCPINQ
	transfer 'control message TIMESTAMPNS' -c TIMESTAMPNS
	transfer 'option TRANSPARENT' -o TRANSPARENT
	transfer 'TCP Fast Open' -o MPTFO
}

# One end stops in the middle, with data unread, which resets the connection.
truncated()
{
	how=prefix client_args=(-f 100000) server_args=(-f -1)
	transfer 'client stops early'
	how=prefix client_args=(-f -1) server_args=(-f 100000)
	transfer 'server stops early'
}

# The client disconnects its socket and connects it again, twice.
repeated()
{
	cat "$tmp"/client_file{,,} >"$tmp/three"
	cin=three sin=three
	client_args=(-I 3 -i "$tmp/client_file") server_args=(-I 3 -i "$tmp/client_file")
	transfer 'disconnect and connect again'
}

if [ "${1:-}" = --under ]; then
	shift
	under "$@"
	exit
fi
begin
echo 3 >/proc/sys/net/ipv4/tcp_fastopen
random $((kib * 1024 + 123)) client_file
random $((kib * 1024 + 45)) server_file
random 5000 small_file
client_args=() server_args=() cin=client_file sin=server_file how=all
transfers
truncated
repeated
finish
