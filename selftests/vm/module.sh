#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Build hpsock.ko for a test kernel out of the tree, so that several kernels
# can be built without disturbing each other, and print the module's path.
# Compiler output is shown only if there is any.
#
# usage: module.sh [-s] [-g] [-d SOURCE] KERNEL
#	-s	strict: sparse as well, and every warning is an error
#	-g	count how often each line runs, see vm/coverage
#	-d	another module's folder instead of hpsock's (its .ko are printed)
set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

src=$HPSOCK_TOP strict='' gcov=''
while getopts sgd: o; do
	case $o in
	s) strict=-strict;;
	g) gcov=-gcov;;
	d) src=$(cd "$OPTARG" && pwd -P);;
	*) exit 2;;
	esac
done
shift $((OPTIND - 1))
kernel=$1
dir=$("$VM/kernel.sh" "$kernel")
# One build folder for every work tree and kernel.
key=$(printf %s "$src" | cksum | cut -d' ' -f1)
out=$HPSOCK_CACHE/build/$key/$kernel$strict$gcov

# What of hpsock the Kbuild of another module names goes beside it, with all headers.
named()
{
	if grep -q 'af_hpsock/\*\.c' "$src/Kbuild"; then
		ls -d "$HPSOCK_TOP"/./af_hpsock/*.c
	else
		grep -oE 'af_hpsock/[a-z_]+\.o' "$src/Kbuild" | sed "s|.*|$HPSOCK_TOP/./&|; s|o\$|c|"
	fi
	ls -d "$HPSOCK_TOP"/./af_hpsock/*.h "$HPSOCK_TOP/./include"
}

# Prints what has changed.
copy_source()
{
	local files='Kbuild af_hpsock include'
	# Objects of a folder that is gone would stay there for ever.
	[ -e "$out/built" ] || rm -rf "$out"
	mkdir -p "$out"
	if [ "$src" != "$HPSOCK_TOP" ]; then
		files=.
		! grep -q af_hpsock "$src/Kbuild" || files+=" $(named)"
	fi
	# Objects stay in the build folder, what is gone from the tree goes from there.
	# By content: a file's time of change does not tell whether its object is older.
	# shellcheck disable=SC2086 # a list of files
	(cd "$src" && rsync -rlpciR --delete --exclude='*.ko' --exclude='*.mod*' --exclude='*.o' \
		--exclude='.*.cmd' --exclude='.*.d' --exclude='*.gcno' --exclude='Module.symvers' \
		--exclude='modules.order' --exclude='.module-common*' --filter='P build.log' --filter='P built' $files "$out/") | awk '!/^\./'
}

# stamp: the kernel and the tools that a build was for.
stamp()
{
	cat "$dir/release"
	stat -L -c %Y "$dir/build/Module.symvers" "$(command -v gcc)"
}

build()
{
	local args=(W=1) changed
	changed=$(copy_source)
	if [ -z "$changed" ] && [ "$(stamp)" = "$(cat "$out/built" 2>/dev/null)" ]; then
		return
	fi
	echo incomplete >"$out/built"
	case $kernel in uml*) args+=(ARCH=um);; esac
	# The compiler counts after its first inlining, which leaves out what it then knows.
	[ -z "$gcov" ] || args+=(GCOV_PROFILE=y KCFLAGS=-fno-early-inlining)
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
	stamp >"$out/built"
}

locked "build-$key-$kernel$strict$gcov" build
ls "$out"/*.ko
