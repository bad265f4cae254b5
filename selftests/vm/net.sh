#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In a guest: bring up a network shape with soft RDMA devices.
#
# usage: net.sh SHAPE DEVICE
#	 net.sh up		bring v0 and v1 up again, with what they lost
#	SHAPE	veth	a pair v0 - v1 in one kernel that traffic really crosses:
#			10.3.0.1 and fd03::1 on v0, 10.3.0.2 and fd03::2 on v1
#		a, b	one end of a wire between two kernels:
#			10.4.0.1 and fd04::1 (a), 10.4.0.2 and fd04::2 (b)
#		none	lo only
#	DEVICE	rxe (Soft-RoCE), siw (Soft-iWARP, our own kernels only) or none;
#		rxe0 and rxe1 on v0 and v1, rxe0 on the wire
#
# Programs are started sparingly: each costs 50 ms on a debug kernel.
set -eu

# driver MODULE...: built in on our kernels, in the initramfs on Debian's.
driver()
{
	local m
	[[ $(</proc/sys/kernel/osrelease) != *-lab* ]] || return 0
	for m; do
		[ -e "/sys/module/$m" ] || modprobe -q "$m" 2>/dev/null || true
	done
}

until_true()
{
	local end=$((SECONDS + 60 * ${HPSOCK_SLOW:-1}))
	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "net.sh: waited in vain: $*" >&2
			return 1
		fi
		sleep 0.05
	done
}

# contains FILE PATTERN
contains()
{
	local line
	# An entry of the table of GIDs that is not set cannot be read.
	{ read -r line <"$1"; } 2>/dev/null || return 1
	# shellcheck disable=SC2053 # a pattern
	[[ $line == $2 ]]
}

# sysctls DEVICE: let the two ends of a pair take each other for strangers.
sysctls()
{
	local c=/proc/sys/net/ipv4/conf
	echo 0 >$c/all/rp_filter
	echo 0 >"$c/$1/rp_filter"
	echo 1 >"$c/$1/accept_local"
	echo 1 >"$c/$1/arp_ignore"
	echo 2 >"$c/$1/arp_announce"
}

# Addresses of one kernel are reached through lo, unless the table of local
# addresses comes late: only what arrives on an end looks there first, what is
# sent to one end's address leaves by the other, and comes from its address.
rules4()
{
	cat <<-END
		rule add pref 1 iif v0 lookup local
		rule add pref 1 iif v1 lookup local
		rule add pref 2 from $1 to $1 lookup local
		rule add pref 2 from $2 to $2 lookup local
		rule add pref 3 to $2 lookup 101
		rule add pref 3 to $1 lookup 102
		rule add pref 10 lookup local
		rule del pref 0
	END
}

# For IPv6 our own kernels have no rules.  Of two routes to an address with the
# same metric, one out and one local, the kernel takes the first when it sends, and
# the one of the device that a packet came by when it receives.
routes6()
{
	cat <<-END
		route del local $1 dev v0 table local
		route del local $2 dev v1 table local
		route del $2 dev v0 table local
		route del $1 dev v1 table local
		route append $2 dev v0 src $1 metric 1024 table local
		route append $1 dev v1 src $2 metric 1024 table local
		route append local $2 dev v1 metric 1024 table local
		route append local $1 dev v0 metric 1024 table local
	END
}

# in_order: one processor receives what comes by an end.  Otherwise each receives what it
# has sent, and what was sent by two is received in any order: no wire for RDMA does that.
in_order()
{
	local cpus=/sys/class/net/v0/queues/rx-0/rps_cpus
	# Our own kernels are without; theirs is a Soft-RoCE that seldom needs it.
	[ -w $cpus ] && [ -d /sys/devices/system/cpu/cpu1 ] || return 0
	echo 1 >$cpus
	echo 2 >${cpus/v0/v1}
}

# no_drops: neither end drops what it has no time for.  No wire for RDMA does that much, and
# Soft-RoCE since Linux 6.5 ends a queue pair for it.
no_drops() { echo 100000 >/proc/sys/net/core/netdev_max_backlog; }

veth()
{
	driver veth
	ip -batch - <<-END
		link set lo up
		link add v0 mtu 5000 type veth peer name v1 mtu 5000
		addr add 10.3.0.1/24 dev v0
		addr add 10.3.0.2/24 dev v1
		$(rules4 10.3.0.1 10.3.0.2)
	END
	sysctls v0
	sysctls v1
	in_order
	no_drops
	veth_up
}

crosses6()
{
	local got
	got=$(printf 'route get %s from %s\n' "$2" "$1" "$1" "$2" | ip -6 -batch -) &&
		[[ $got == *' dev v0 '*' dev v1 '* ]]
}

# A link that goes down loses its routes, and IPv6 addresses as well.  ip(8) complains
# of what is there already, or is not there to be deleted.
veth_up()
{
	ip -force -batch - 2>/dev/null <<-END || true
		link set v0 up
		link set v1 up
		addr add fd03::1/64 dev v0 nodad
		addr add fd03::2/64 dev v1 nodad
		route replace 10.3.0.2 dev v0 src 10.3.0.1 table 101
		route replace 10.3.0.1 dev v1 src 10.3.0.2 table 102
	END
	until_true contains /sys/class/net/v0/operstate up
	until_true contains /sys/class/net/v1/operstate up
	routes6 fd03::1 fd03::2 | ip -6 -force -batch - 2>/dev/null || true
	crosses6 fd03::1 fd03::2
}

# A virtio or User Mode Linux network card.
has_card()
{
	local d
	for d in /sys/class/net/eth[0-9]* /sys/class/net/vec[0-9]*; do
		[ ! -e "$d" ] || card=${d##*/}
	done
	[ -n "$card" ]
}

# wire N: the one network card of a guest of a pair.
wire()
{
	card=
	driver virtio_net
	until_true has_card
	ip -batch - <<-END
		link set lo up
		link set $card up
		addr add 10.4.0.$1/24 dev $card
		addr add fd04::$1/64 dev $card nodad
	END
	until_true contains "/sys/class/net/$card/carrier" 1
}

has_gid()
{
	local f
	for f in "$1"/gids/*; do
		! contains "$f" "$2" || return 0
	done
	return 1
}

# device NAME GID...: wait until it can be used, which is when it has its addresses.
device()
{
	local port=/sys/class/infiniband/$1/ports/1 gid
	until_true contains "$port/state" '*ACTIVE'
	shift
	[ "$type" = rxe ] || return 0
	for gid; do
		until_true has_gid "$port" "$gid"
	done
}

# rdma_links NETDEV...
rdma_links()
{
	local n=0 d
	for d; do
		echo "link add $type$n type $type netdev $d"
		n=$((n + 1))
	done | rdma -b - || { echo "net.sh: no $type" >&2; return 1; }
}

shape=$1 type=${2:-}
case $shape in
up)	veth_up; exit;;
none)	ip link set lo up; exit;;
veth)	veth;;
a)	wire 1;;
b)	wire 2;;
*)	echo "net.sh: no such shape: $shape" >&2; exit 2;;
esac
case $type in
none)	exit;;
rxe)	driver rdma_rxe ib_uverbs rdma_ucm;;
siw)	driver siw ib_uverbs rdma_ucm;;
esac
case $shape in
veth)	rdma_links v0 v1
	device "${type}0" '*:ffff:0a03:0001' 'fd03:*:0001'
	device "${type}1" '*:ffff:0a03:0002' 'fd03:*:0002';;
a)	rdma_links "$card"
	device "${type}0" '*:ffff:0a04:0001' 'fd04:*:0001';;
b)	rdma_links "$card"
	device "${type}0" '*:ffff:0a04:0002' 'fd04:*:0002';;
esac
