#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Update the package lists of this machine and install packages, as root; one at a
# time, whoever's cache they are for.
#
# usage: install.sh [PACKAGE...]
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
exec </dev/null

policy=/usr/sbin/policy-rc.d
lock=/run/hpsock-install.lock
mark='# Of the set-up of hpsock, while it installs packages'
patience=600

# Without our lock, which a server that is started after all would keep.
apt()
{
	apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=$patience "$@" 9>&-
}

# That timeout is not for the lock of the lists, which a machine that has just been
# started may hold for a while.
update()
{
	local end=$((SECONDS + patience)) out
	until out=$(apt update 2>&1); do
		if ! grep -q 'Could not get lock' <<<"$out" || [ $SECONDS -ge $end ] || [ -n "$ended" ]; then
			echo "$out" >&2
			return 1
		fi
		sleep 1
	done
	# What could not be fetched is but a warning.
	[ -z "$out" ] || echo "$out" >&2
}

allow_servers()
{
	rm -f $policy.hpsock
	! grep -qsxF "$mark" $policy || rm $policy
}

# Packages may start servers, which the tests do not want on this machine.  Should we be
# killed, what is left of us forbids nothing without our lock, and goes with the next
# installation.
forbid_servers()
{
	allow_servers
	[ ! -e $policy ] || return 0
	printf '#!/bin/sh\n%s\n[ ! -e %s ] || flock -n %s true || exit 101\n' \
		"$mark" $lock $lock >$policy.hpsock
	chmod 755 $policy.hpsock
	mv $policy.hpsock $policy
}

# apt, which has the signal too as a rule, knows how to end; we wait for it.
ended=
trap 'ended=1' HUP INT TERM
go_on() { [ -z "$ended" ] || exit 130; }

# wait_for_lock: in the background, as a trap waits for what is in the foreground.
wait_for_lock()
{
	! flock -n 9 || return 0
	echo 'waiting for another installation' >&2
	flock 9 &
	# What came before it is no reason for it to end.
	[ -z "$ended" ] || kill $!
	wait $! || {
		kill $! 2>/dev/null || :
		go_on
		return 1
	}
}

exec 9>$lock
wait_for_lock
go_on
# Not before: until then it is another's.
trap allow_servers EXIT
update
go_on
[ $# -gt 0 ] || exit 0
forbid_servers
# What was interrupted the last time is in the way of all else; apt says what it lacks.
dpkg --configure -a 9>&- || :
go_on
apt install --no-install-recommends "$@"
