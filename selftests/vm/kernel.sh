#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Make a test kernel ready and print its folder, which then holds
#	image	what QEMU boots, or the User Mode Linux program
#	build	the tree to build external modules against
#	release	what uname -r will say
#	initramfs	(QEMU only) see initramfs.sh
#	um_xstate.so	(User Mode Linux only) see um_xstate.c
#	modules	a folder for modprobe -d (absent where there are none)
#
# Debian's own kernels need no build.  The others are taken from a folder of
# prebuilt kernels where there is one of the same version whose configuration has
# all that our fragments ask for, and are built from linux-source-6.12 otherwise.
#
# usage: kernel.sh NAME...	(6.12 6.1 uml smp umlfast fast kcsan)
set -eu
. "$(dirname "$0")/lib.sh"

SOURCE=$HPSOCK_CACHE/linux-source-6.12

# debian_base SERIES: the root below which the newest of these kernels lies: our
# cache, or / where the machine itself has one.  Prints "release base".
debian_base()
{
	local f v base
	for f in /boot/vmlinuz-"$1".*-amd64 "$HPSOCK_CACHE"/debian/*/boot/vmlinuz-"$1".*-amd64; do
		v=${f##*/vmlinuz-}
		base=${f%/boot/*}
		case $v in *-rt-*|*-cloud-*) continue;; esac
		[ -e "$base/usr/src/linux-headers-$v/Makefile" ] || continue
		[ -z "$base" ] || [ -e "$base/complete" ] || continue
		echo "$v $base/"
	done | sort -V | tail -n 1
}

# fragments KERNEL: the files that define its configuration, later ones win.
fragments()
{
	local c=$VM/config
	case $1 in
	uml)		echo "$c/uml.config $c/uml-debug.config";;
	umlfast)	echo "$c/uml.config";;
	smp)		echo "$c/base.config $c/debug.config";;
	fast)		echo "$c/base.config $c/fast.config";;
	kcsan)		echo "$c/base.config $c/kcsan.config";;
	esac
}

# wanted KERNEL: its options, one line each.
wanted()
{
	# shellcheck disable=SC2046 # a list of files
	awk -F= '/^CONFIG_/ { v[$1] = $0 } END { for (k in v) print v[k] }' \
		$(fragments "$1") | sort
}

# differs KERNEL CONFIG: print what the configuration lacks.
differs()
{
	wanted "$1" | awk -F= -v config="$2" '
		BEGIN { while ((getline line < config) > 0) {
				split(line, w, "=")
				have[w[1]] = line } }
		/=n$/ { if ($1 in have) print; next }
		{ if (have[$1] != $0) print }'
}

prebuilt_name()
{
	case $1 in
	uml) echo umdbg;;
	umlfast) echo um;;
	smp) echo debug;;
	*) echo "$1";;
	esac
}

# config_version CONFIG, source_version: as in 6.12.117.
config_version() { sed -n '1,5s|^# Linux/[^ ]* \([^ ]*\) Kernel Configuration$|\1|p' "$1"; }
source_version()
{
	awk -F ' *= *' '{ v[$1] = $2 } NR == 5 { print v["VERSION"] "." v["PATCHLEVEL"] "." v["SUBLEVEL"]; exit }' \
		"$SOURCE/Makefile"
}

# find_prebuilt KERNEL: a folder with a usable image, config and Module.symvers.
find_prebuilt()
{
	local base d why
	for base in "${HPSOCK_KERNELS:-}" "$HPSOCK_TOP/../shared/kernels" "$HPSOCK_CACHE/prebuilt"; do
		[ -n "$base" ] || continue
		d=$base/$(prebuilt_name "$1")
		[ -e "$d/Module.symvers" ] || continue
		why=$(differs "$1" "$d/config")
		if [ "$(config_version "$d/config")" != "$(source_version)" ]; then
			why="it is of $(config_version "$d/config"), the source of $(source_version)"$'\n'$why
		fi
		if [ -n "$why" ]; then
			say "$d does not fit, which costs 8 to 16 minutes to build $1:"
			printf '\t%s\n' "$why" >&2
			continue
		fi
		(cd "$d" && pwd -P)
		return
	done
}

unpack_source()
{
	local tarball=/usr/src/linux-source-6.12.tar.xz
	[ -e "$tarball" ] || die "$tarball is missing, run $VM/setup.sh"
	if [ -e "$SOURCE/.complete" ] && [ "$SOURCE/.complete" -nt "$tarball" ]; then
		return
	fi
	say "unpacking $tarball (15 s)"
	rm -rf "$SOURCE"
	mkdir -p "$SOURCE"
	tar xJf "$tarball" -C "$SOURCE" --strip-components=1
	touch "$SOURCE/.complete"
}

# kmake KERNEL DIR TARGET...: make in the kernel's build folder.  KCSAN is to look at the
# modules that are built against its kernel, not at that.
kmake()
{
	local with=
	case $1 in
	uml|umlfast)	with=ARCH=um;;
	kcsan)		with=KCSAN_SANITIZE=n;;
	esac
	# shellcheck disable=SC2086 # one word or none
	make -s -C "$SOURCE" O="$2/build" $with "${@:3}" </dev/null
}

# from_prebuilt KERNEL DIR PREBUILT: enough of a build tree for external modules.
from_prebuilt()
{
	say "preparing $1 from $3"
	mkdir -p "$2/build"
	cp "$3/config" "$2/build/.config"
	quietly "$2/prepare.log" kmake "$1" "$2" olddefconfig
	quietly "$2/prepare.log" kmake "$1" "$2" -j"$(nproc)" modules_prepare
	cp "$3/Module.symvers" "$2/build/Module.symvers"
	if [ -e "$3/modules.tar.xz" ]; then
		mkdir -p "$2/modules"
		tar xJf "$3/modules.tar.xz" -C "$2/modules"
	fi
	cp "$3/$(image_name "$1")" "$2/image"
}

image_name()
{
	case $1 in
	uml|umlfast) echo linux;;
	*) echo bzImage;;
	esac
}

# from_source KERNEL DIR: the whole build, 8 to 16 minutes on two cores.  One that
# was interrupted goes on where it was.
from_source()
{
	local b=$2/build targets='bzImage modules' image=arch/x86/boot/bzImage
	case $1 in uml|umlfast) targets='linux modules'; image=linux;; esac

	say "building the kernel $1: 8 to 16 minutes on two cores, once; log in $2/build.log"
	mkdir -p "$b"
	# shellcheck disable=SC2046 # a list of files
	cat $(fragments "$1") >"$2/all.config"
	quietly "$2/build.log" kmake "$1" "$2" KCONFIG_ALLCONFIG="$2/all.config" allnoconfig
	if [ -n "$(differs "$1" "$b/.config")" ]; then
		die "options that took no effect: $(differs "$1" "$b/.config" | tr '\n' ' ')"
	fi
	# shellcheck disable=SC2086 # a list of targets
	quietly "$2/build.log" kmake "$1" "$2" -j"$(nproc)" $targets
	if grep -q '=m$' "$b/.config"; then
		quietly "$2/build.log" kmake "$1" "$2" INSTALL_MOD_PATH="$2/modules" INSTALL_MOD_STRIP=1 modules_install
	fi
	cp "$b/$image" "$2/image"
	# External modules need no objects but those of the tools that build them.
	find "$b" -name '*.[oa]' -not -path "$b/scripts/*" -not -path "$b/tools/*" -delete
	rm -f "$b"/vmlinux* "$b/linux"
}

# What tells one configuration and source from another.  Trees that differ in it
# share the cache without harm.
stamp()
{
	{ wanted "$1"; stat -c %Y /usr/src/linux-source-6.12.tar.xz; } | cksum | cut -d' ' -f1
}

prepare_debian()
{
	local rel base dir=$2
	read -r rel base <<<"$(debian_base "$1")"
	[ -n "$rel" ] || die "there is no Debian kernel $1 with headers, run $VM/setup.sh"
	[ "$(cat "$dir/release" 2>/dev/null)" != "$rel" ] || return 0
	mkdir -p "$dir"
	ln -sfn "${base}boot/vmlinuz-$rel" "$dir/image"
	ln -sfn "${base}usr/src/linux-headers-$rel" "$dir/build"
	ln -sfn "$base" "$dir/modules"
	echo "$rel" >"$dir/release"
}

prepare_built()
{
	local dir=$2 pre
	locked linux-source unpack_source
	[ ! -e "$dir/complete" ] || return 0
	mkdir -p "$dir"
	pre=$(find_prebuilt "$1")
	if [ -n "$pre" ]; then
		from_prebuilt "$1" "$dir" "$pre"
	else
		from_source "$1" "$dir"
	fi
	cat "$dir/build/include/config/kernel.release" >"$dir/release"
	touch "$dir/complete"
}

initramfs()
{
	local f
	for f in "$VM/initramfs.sh" "$VM/guest/early" "$1/image" "$1/release"; do
		if [ "$f" -nt "$1/initramfs" ]; then
			"$VM/initramfs.sh" "$1"
			return
		fi
	done
}

um_xstate()
{
	[ "$VM/um_xstate.c" -nt "$1/um_xstate.so" ] || return 0
	gcc -O2 -Wall -Wextra -shared -fPIC -o "$1/um_xstate.so.new" "$VM/um_xstate.c"
	mv "$1/um_xstate.so.new" "$1/um_xstate.so"
}

prepare()
{
	local dir=$HPSOCK_CACHE/kernel/$1
	case $1 in
	6.12|6.1)		locked "kernel-$1" prepare_debian "$1" "$dir";;
	uml|smp|umlfast|fast|kcsan)
		dir+=-$(stamp "$1")
		locked "kernel-${dir##*/}" prepare_built "$1" "$dir";;
	*)			die "no such kernel: $1 (there are: $ALL_KERNELS)";;
	esac
	case $1 in
	uml*)	locked "kernel-$1" um_xstate "$dir";;
	*)	locked "kernel-$1" initramfs "$dir";;
	esac
	echo "$dir"
}

case ${1:-} in
--source)	# only the source, for checkpatch and so on
	locked linux-source unpack_source
	echo "$SOURCE"
	exit;;
--release)	# only the release of a Debian kernel, if it is there
	debian_base "$2" | cut -d' ' -f1
	exit;;
esac

for k; do
	prepare "$k"
done
