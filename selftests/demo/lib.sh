# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What both hosts of the demo have in common.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
hpsock_run=$top/tools/hpsock_run
PATH=$PATH:/usr/sbin:/sbin

# shellcheck source-path=SCRIPTDIR source=../counters.sh
. "$top/selftests/counters.sh"

# Ports are per family: the same number is free on TCP and on AF_HPSOCK, but
# different ones tell a mix-up from a success.
port() { # FAMILY PROGRAM
	local base
	case $2 in
	socat) base=1 ;;
	iperf3) base=2 ;;
	nginx) base=3 ;;
	redis) base=4 ;;
	*) die "no port for $2" ;;
	esac
	case $1 in
	tcp) echo $((5000 + base)) ;;
	hpsock) echo $((6000 + base)) ;;
	esac
}

family_number() { # FAMILY
	case $1 in
	tcp) echo 2 ;;
	hpsock) cat /sys/module/hpsock/parameters/family ;;
	esac
}

say() { echo "$*" >&2; }

die() {
	say "demo: $*"
	exit 1
}

# The program as it is on TCP, or below the preload.
under() { # FAMILY PROGRAM [ARG...]
	case $1 in
	tcp) "${@:2}" ;;
	hpsock) "$hpsock_run" "${@:2}" ;;
	esac
}

# The bytes of a sockaddr_in behind sa_family, as socat wants them.
sockaddr_hex() { # ADDRESS PORT
	local a b c d

	IFS=. read -r a b c d <<<"$1"
	printf 'x%04x%02x%02x%02x%02x0000000000000000\n' "$2" "$a" "$b" "$c" "$d"
}

sha256() { # FILE
	sha256sum "$1" | cut -d' ' -f1
}

# Wait until COMMAND succeeds.
wait_for() { # SECONDS WHAT COMMAND...
	local end=$((SECONDS + $1)) what=$2

	shift 2
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			die "gave up waiting for $what"
		fi
		sleep 0.1
	done
}
