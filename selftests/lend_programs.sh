#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What programs send in large pieces, with zcopy=protect, the peer reads from their
# memory: by the module's counters and by the packets of the wire.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source-path=SCRIPTDIR source=ktap.sh
. ./ktap.sh

hpsock_run=$PWD/../tools/hpsock_run
params=/sys/module/hpsock/parameters
server=10.3.0.2
port=6700
mib=$((1 << 20))
work=$(mktemp -d)
out=$work/out
zcopy=$(cat $params/zcopy)
threshold=$(cat $params/zcopy_threshold)
pid=
trap finish EXIT

finish()
{
	stop
	echo "$zcopy" >$params/zcopy
	echo "$threshold" >$params/zcopy_threshold
	nft delete table inet hps 2>/dev/null
	rm -rf "$work"
}

stat() { awk -v key="$1" '$1 == key { print $2 }' /proc/net/hpsock_stat; }

# Responses to RDMA Read are the opcodes 13 to 16 of the Base Transport Header, which is
# what follows the one of UDP.
count_reads()
{
	nft -f - <<-END
		add table inet hps
		add chain inet hps in { type filter hook input priority 0; }
		add rule inet hps in udp dport 4791 @th,64,8 13-16 counter
	END
}

# Bytes in them, without the headers: IPv4, UDP, BTH, AETH, ICRC.
read_bytes()
{
	nft list chain inet hps in | awk '/counter/ {
		for (i = 1; i < NF; i++)
			if ($i == "packets")
				print $(i + 3) - $(i + 1) * (20 + 8 + 12 + 4 + 4) }'
}

begin() { start=("$(stat tx_bytes)" "$(stat tx_lent)" "$(stat rx_placed)" "$(read_bytes)"); }

# Of all bytes, in percent: those lent, those placed, those in responses to reads.
shares()
{
	local all=$(($(stat tx_bytes) - start[0]))
	lent=$((($(stat tx_lent) - start[1]) * 100 / all))
	placed=$((($(stat rx_placed) - start[2]) * 100 / all))
	carried=$((($(read_bytes) - start[3]) * 100 / all))
	echo "# $1: $((all / mib)) MiB, $lent % lent, $placed % placed, $carried % in RDMA Reads"
}

# start COMMAND...: a server, until stop; it is there when it listens.
start()
{
	port=$((port + 1))
	"$hpsock_run" "${@//PORT/$port}" >"$work/server" 2>&1 &
	pid=$!
	timeout $((30 * ${HPSOCK_SLOW:-1})) sh -c \
		"until grep -q ' $port .* 10 [0-9]* [0-9]* ' /proc/net/hpsock
		do sleep 0.1; done" || { cat "$work/server" >>"$out"; return 1; }
}

stop()
{
	[ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2>/dev/null
	pid=
}

client() { timeout $((100 * ${HPSOCK_SLOW:-1})) "$hpsock_run" "$@" >"$out" 2>&1; }

# Both sides of it use 128 KiB a call.
iperf3_case()
{
	start iperf3 -s -1 -p PORT
	begin
	client iperf3 -c $server -p $port -n 64M "$@"
	result $? "iperf3 ${1:-}"
	shares "iperf3 ${1:-}"
	[ "$lent" -ge 90 ] && [ "$placed" -ge 90 ] && [ "$carried" -ge 90 ]
	result $? "iperf3 ${1:-}: both sides without a copy"
	stop
}

# nginx sends with sendfile(), which hands over 64 KiB at a time; curl asks for less than
# is worth to be placed.
nginx_case()
{
	local i status=0

	# Its worker is nobody.
	chmod 755 "$work"
	echo 65536 >$params/zcopy_threshold
	mkdir -p "$work/logs" "$work/www"
	head -c $mib /dev/urandom >"$work/www/page"
	sed "s/@PORT@/$((port + 1))/" demo/nginx.conf >"$work/nginx.conf"
	start nginx -p "$work" -c "$work/nginx.conf" -e "$work/logs/error.log"
	begin
	for i in {1..20}; do
		client curl -sS -f -m 60 -o "$work/page" "http://$server:$port/page" &&
			cmp "$work/page" "$work/www/page" >>"$out" 2>&1 || status=1
	done
	result $status 'nginx, 20 times 1 MiB'
	shares nginx
	# Before 6.5 sendfile() hands over one page at a time.
	if [ "$(uname -r | awk -F. '{ print $1 * 100 + $2 }')" -ge 605 ]; then
		[ "$lent" -ge 90 ] && [ "$carried" -ge 90 ]
		result $? 'nginx: sent without a copy'
	fi
	stop
	echo "$threshold" >$params/zcopy_threshold
}

# redis-benchmark has 1 MiB a call; the server reads a value of that size in one piece.
redis_case()
{
	local i

	start redis-server --port PORT --bind $server --save '' --protected-mode no
	for i in set get; do
		begin
		client redis-benchmark -h $server -p $port -d $mib -n 80 -c 4 -t $i -q
		result $? "redis $i, 80 times 1 MiB"
		shares "redis $i"
		[ "$lent" -ge 90 ] && [ "$carried" -ge 90 ]
		result $? "redis $i: sent without a copy"
	done
	head -c $mib /dev/urandom | base64 -w 0 >"$work/value"
	client sh -c "redis-cli -h $server -p $port -x set key <'$work/value' &&
		redis-cli -h $server -p $port get key >'$work/got'"
	[ "$(cat "$work/value")" = "$(cat "$work/got")" ]
	result $? 'redis: what was set is what is got'
	stop
}

[ "$(stat protect_works)" = 1 ] || skip_all 'pages cannot be protected here'
[ "${HPSOCK_DEV:-rxe}" = rxe ] || skip_all 'counts packets of RoCE'
count_reads >"$out" 2>&1 || skip_all "packets cannot be counted: $(head -n 1 "$out")"
echo protect >$params/zcopy
iperf3_case
iperf3_case -R
nginx_case
redis_case
plan
