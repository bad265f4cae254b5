#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Build hpsock.ko for a test kernel out of the tree, so that several kernels
# can be built without disturbing each other, and print the module's path.
# Compiler output is shown only if there is any.
#
# usage: module.sh [-s] [-d SOURCE] KERNEL
#	-s	strict: sparse as well, and every warning is an error
#	-d	another module's folder instead of hpsock's (its .ko are printed)
set -eu
. "$(dirname "$0")/lib.sh"

src=$HPSOCK_TOP strict=''
while getopts sd: o; do
	case $o in
	s) strict=-strict;;
	d) src=$(cd "$OPTARG" && pwd -P);;
	*) exit 2;;
	esac
done
shift $((OPTIND - 1))
kernel=$1
dir=$("$VM/kernel.sh" "$kernel")
# One build folder for every work tree and kernel.
key=$(printf %s "$src" | cksum | cut -d' ' -f1)
out=$HPSOCK_CACHE/build/$key/$kernel$strict

copy_source()
{
	local files='Kbuild af_hpsock include'
	mkdir -p "$out"
	# Another module may have files of hpsock's in it.
	[ "$src" = "$HPSOCK_TOP" ] || files=". $HPSOCK_TOP/af_hpsock $HPSOCK_TOP/include"
	# Objects stay in the build folder, what is gone from the tree goes from there.
	# By content: a file's time of change does not tell whether its object is older.
	# shellcheck disable=SC2086 # a list of files
	(cd "$src" && rsync -rlpc --delete --exclude='*.ko' --exclude='*.mod*' --exclude='*.o' \
		--exclude='.*.cmd' --exclude='.*.d' --exclude='Module.symvers' --exclude='.module-common*' \
		--filter='P build.log' $files "$out/")
}

build()
{
	local args=(W=1)
	copy_source
	case $kernel in uml*) args+=(ARCH=um);; esac
	if [ -n "$strict" ]; then
		args+=(C=2 CHECK=sparse CF=-Wsparse-error KCFLAGS=-Werror)
	fi
	if ! make -s -C "$dir/build" "${args[@]}" M="$out" -j"$(nproc)" modules \
			</dev/null >"$out/build.log" 2>&1; then
		cat "$out/build.log" >&2
		die "the module does not build for $kernel"
	fi
	# Debian's headers of 6.1 come without vmlinux, which is no fault of the module.
	grep -v 'Skipping BTF generation' "$out/build.log" >&2 || true
}

locked "build-$key-$kernel$strict" build
ls "$out"/*.ko
