# SPDX-License-Identifier: GPL-2.0
# What the host-side scripts of the test bed have in common.  Sourced.
# shellcheck shell=bash

HPSOCK_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
HPSOCK_CACHE=${HPSOCK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hpsock}
VM=$HPSOCK_TOP/selftests/vm
PATH=$PATH:/usr/sbin:/sbin
export HPSOCK_TOP HPSOCK_CACHE VM PATH

ALL_KERNELS='6.12 6.1 uml smp umlfast fast kcsan'

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$@"; exit 126; }

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# quietly LOG COMMAND...: the command's output matters only when it fails.
quietly()
{
	local log=$1
	shift
	if ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		return 1
	fi
}

# locked NAME COMMAND...: several runs may want the same thing made at once.
locked()
{
	local name=$1
	shift
	mkdir -p "$HPSOCK_CACHE/lock"
	(
		flock 9
		"$@" 9>&-
	) 9>"$HPSOCK_CACHE/lock/$name"
}
