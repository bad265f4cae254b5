# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the programs of this machine are doing.  Sourced by run.sh and vm/guest/job.

# show_tasks: what every program was doing and, where the kernel tells, is waiting for.
# Of the kernel's own threads those that are in the module.
show_tasks()
{
	local p words state stack
	for p in /proc/[0-9]*/task/[0-9]*; do
		mapfile -d '' -t words <"$p/cmdline"
		stack=$(sed 's/^/    /' "$p/stack")
		if [ ${#words[@]} -eq 0 ]; then
			[[ $stack = *hps_* ]] || continue
			words=("[$(<"$p/comm")]")
		fi
		state=$(sed -n 's/^State:\t//p' "$p/status")
		echo "${p##*/} $state: ${words[*]:0:6}"
		if [ -n "$stack" ]; then
			echo "$stack"
		elif [[ ${HPSOCK_KERNEL:-} != uml* ]]; then
			# That of User Mode Linux reads beyond stacks, says KASAN.
			echo "    in $(<"$p/wchan")"
		fi
	done 2>/dev/null
}

# show_module: its sockets, and the counters that have counted.
show_module()
{
	[ -r /proc/net/hpsock ] || return 0
	cat /proc/net/hpsock
	grep -v ' 0$' /proc/net/hpsock_stat
}
