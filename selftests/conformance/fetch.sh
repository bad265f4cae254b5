#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Fetch the suites from Debian's source packages and build them, on the host,
# where the network and a compiler are: sources and objects go into the cache,
# what the guest runs into build/conformance.
#
# usage: fetch.sh
set -eu
. "$(dirname "$0")/../vm/lib.sh"

here=$HPSOCK_TOP/selftests/conformance
cache=$HPSOCK_CACHE/conformance
out=$HPSOCK_TOP/selftests/build/conformance
new=$out.new

# The suite of the io_uring of Linux 6.12 is Debian 13's; one of Debian 12 has no
# tests of what came after 6.0.
liburing_suite=trixie

mirror=http://deb.debian.org/debian
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The machine's own package lists stay as they are, and root is not needed.  In the
# foreground: who ends us ends this.
apt_get()
{
	timeout --foreground 300 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
		-o Dir::Etc::sourcelist="$cache/apt/source.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" \
		-o APT::Sandbox::User="$(id -un)" "$@" </dev/null
}

# source_package NAME SUITE: its upstream tarball, checked by apt, unmodified.
source_package()
{
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial"
	echo "deb-src [signed-by=$keyring] $mirror $2 main" >"$cache/apt/source.list"
	apt_get update
	(cd "$cache" && apt_get source --download-only "$1")
}

liburing_tests()
{
	sed -n 's/#.*//; s/^\([^[:space:]]\+\).*/\1.t/p' "$here/liburing.list"
}

# What is not complete is from one that was ended.
build_liburing()
{
	local dir=$cache/liburing tests
	mapfile -t tests < <(liburing_tests)
	if [ ! -e "$dir/.configured" ]; then
		say 'fetching liburing'
		rm -rf "$cache"/liburing*
		source_package liburing $liburing_suite
		mkdir "$dir"
		tar xf "$cache"/liburing_*.orig.tar.gz -C "$dir" --strip-components=1
		(cd "$dir" && ./configure --cc=gcc)
		touch "$dir/.configured"
	fi
	cd "$dir"
	# What was being written when all was killed would pass for made.
	[ ! -e .building ] || rm -f src/*.{o,os,ol,d,a,so*} test/*.{o,t,d}
	touch .building
	make -s -C src
	# A shared library, which a preload can stand in front of.  The tests ask for
	# symbols that the regular one does not export.
	(cd src && gcc -shared -nostdlib -Wl,-soname,liburing-test.so -o liburing.so \
		{setup,queue,register,syscall,version,nolibc}.os)
	# shellcheck disable=SC2016 # for the dynamic linker
	make -s -j"$(nproc)" -C test "${tests[@]}" LDFLAGS='-Wl,-rpath,\$$ORIGIN' CFLAGS='-g -O2 -w'
	rm .building
}

build_kernel()
{
	local source
	source=$("$VM/kernel.sh" --source)
	mkdir -p "$cache/kernel"
	cd "$source/tools/testing/vsock"
	gcc -O2 -g -w -D_GNU_SOURCE -U_FORTIFY_SOURCE -fno-strict-aliasing -I. -I../../include \
		-I../../../usr/include -o "$cache/kernel/vsock_test" vsock_test.c \
		vsock_test_zerocopy.c timeout.c control.c util.c msg_zerocopy_common.c
	cd "$source/tools/testing/selftests/net/mptcp"
	gcc -O2 -g -w -o "$cache/kernel/mptcp_connect" mptcp_connect.c
}

# shim NAME [OPTION...]
shim()
{
	gcc -O2 -g -Wall -Wextra "${@:2}" -fPIC -shared -o "$new/$1.so" "$here/$1.c" -ldl
}

install_programs()
{
	local t
	mkdir -p "$new/liburing"
	shim vsock_shim
	shim liburing_shim -I"$cache/liburing/src/include"
	install -t "$new" "$cache"/kernel/*
	install -m 644 "$cache/liburing/src/liburing.so" "$new/liburing/liburing-test.so"
	while read -r t; do
		install "$cache/liburing/test/$t" "$new/liburing/"
	done < <(liburing_tests)
}

# A process of its own: as part of a condition, "set -e" would have no effect.
if [ "${1:-}" = --locked ]; then
	# What cannot be built anew must not run as it was; but until it is known that it
	# cannot, machines may run it.
	trap 'rm -rf "$new" "$out"' EXIT
	rm -rf "$new"
	(build_kernel)
	(build_liburing)
	install_programs
	rm -rf "$out"
	mv "$new" "$out"
	trap - EXIT
	exit
fi
mkdir -p "$cache"
quietly "$cache/fetch.log" locked conformance "$0" --locked
