#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests that fail on purpose, for vm/selfcheck; they are in the sets "planted-...".
#
# usage: test.sh NAME...
set -u
number=0

# With the module of mistakes, where module.sh has built it.
panics()
{
	local cache key
	cache=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^hps\.cache=//p')
	key=$(printf %s "$HPSOCK_TOP/selftests/vm/planted" | cksum | cut -d' ' -f1)
	insmod "$cache/build/$key/$HPSOCK_KERNEL/planted.ko" bug="$1"
}

# result STATUS NAME
result()
{
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number planted.$2"
	else
		echo "# $2: planted"
		echo "not ok $number planted.$2"
	fi
}

status=0
for name; do
	echo "#  RUN           planted.$name ..."
	case $name in
	passes)	result 0 passes;;
	fails)	result 1 fails; status=1;;
	hangs)	sleep 1000;;
	panics)	panics panic;;
	leaves)
		sh -c 'echo 77 >/sys/module/hpsock/parameters/orphan_timeout'
		result $? leaves;;
	restored)
		[ "$(</sys/module/hpsock/parameters/orphan_timeout)" != 77 ]
		status=$?
		result $status restored;;
	# Alone it passes.
	flaky)
		if [ -e "$HPSOCK_JOB/programs/01.vm.planted.test.sh:passes.log" ]; then
			result 1 flaky
			status=1
		else
			result 0 flaky
		fi;;
	esac
done
echo "1..$number"
exit $status
