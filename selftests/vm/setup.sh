#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Install what building and testing need and this machine (Debian 12) lacks.
# Says nothing if that is nothing.
#
# Debian's kernels are unpacked into the cache and not installed: the machine
# shall not boot another kernel for having run a test.
set -eu
. "$(dirname "$0")/lib.sh"

build='make gcc libc6-dev bc bison flex libelf-dev libssl-dev pahole rsync kmod xz-utils perl dkms linux-source-6.12'
style='sparse shellcheck spin mandoc'
guest='qemu-system-x86 busybox-static iproute2 procps util-linux
	rdma-core ibverbs-utils rdmacm-utils libibverbs-dev librdmacm-dev liburing-dev perftest'
# What the demonstration and the benchmarks run over the sockets.
programs='socat iperf3 nginx-light curl redis-server redis-tools ethtool nftables'

# as_installer [PACKAGE...]: install.sh, its output in the log.
as_installer()
{
	as_root "$VM/install.sh" "$@" >>"$log" 2>&1 ||
		{ tail -n 30 "$log" >&2; die 'apt-get failed'; }
	refreshed=1
}

# The lists of a fresh machine are empty or old.
refresh()
{
	[ -z "${refreshed:-}" ] || return 0
	say 'updating the package lists'
	as_installer
}

missing()
{
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
		awk -v wanted="$*" '$1 == "installed" { have[$2] = 1 }
			END { n = split(wanted, w); for (i = 1; i <= n; i++) if (!(w[i] in have)) print w[i] }'
}

packages()
{
	local list
	# shellcheck disable=SC2046,SC2086 # lists
	list=$(missing $build $style $guest $programs)
	[ -n "$list" ] || return 0
	say "updating the package lists and installing ${list//$'\n'/ }"
	# shellcheck disable=SC2086 # a list
	as_installer $list
}

# newest SERIES: the newest release of it that there is to download.
newest()
{
	apt-cache search --names-only "^linux-image-${1//./\\.}\\.[0-9+a-z.-]*-amd64$" |
		sed -n 's/^linux-image-\([^ ]*\) .*/\1/p' |
		grep -vE -- '-(rt|cloud)-' | sort -V | tail -n 1
}

# kernel_packages RELEASE: its image, and what the headers consist of.
kernel_packages()
{
	echo "linux-image-$1" "linux-headers-$1"
	apt-cache depends "linux-headers-$1" |
		grep -oE 'linux-(headers|kbuild)-[^ ]*$'
}

# debian_kernel SERIES: one that is not on this machine goes into the cache.
debian_kernel()
{
	local release dir f
	release=$("$VM/kernel.sh" --release "$1")
	[ -z "$release" ] || return 0
	refresh
	release=$(newest "$1")
	[ -n "$release" ] || die "Debian's archive has no kernel $1 here"
	say "unpacking Debian's kernel $release (100 MB to download)"
	dir=$HPSOCK_CACHE/debian/$release
	rm -rf "$dir"
	mkdir -p "$dir/deb"
	# shellcheck disable=SC2046 # a list
	(cd "$dir/deb" && apt-get -qq download $(kernel_packages "$release") >>"$log" 2>&1) ||
		{ tail "$log" >&2; die 'apt-get download failed'; }
	for f in "$dir"/deb/*.deb; do
		dpkg -x "$f" "$dir"
	done
	rm -r "$dir/deb"
	# The one place where the headers say where they are.
	sed -i "s| /usr/src/| $dir/usr/src/|" "$dir/usr/src/linux-headers-$release/Makefile"
	/sbin/depmod -b "$dir" "$release"
	touch "$dir/complete"
}

# debian_mirror CODENAME: where this machine has that release of Debian from.
debian_mirror()
{
	local mirror
	mirror=$(apt-cache policy | awk -v name=",n=$1," '
		$1 ~ /^[0-9]+$/ { uri = $2 ~ /^cdrom:/ ? "" : $2 }
		$1 == "release" && ("," $2 ",") ~ /,o=Debian,.*,c=main,/ && index("," $2 ",", name) &&
			uri && !found { print uri; found = 1 }')
	echo "${mirror:-http://deb.debian.org/debian}"
}

# step WHAT COMMAND...: says so if it fails.
step()
{
	local what=$1
	shift
	"$@" || { echo "$what: failed, status $?"; return 1; }
}

# new_qemu DIR: a newer QEMU from Debian's backports into a folder, which is named when it
# is known to work.  Fails where there is none, or it cannot be had, and says why.
new_qemu()
{
	local dir=$1 new=$1.new codename options f version
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")
	options=(-q -o Dir::Etc::SourceList="$new/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists="$new/lists" -o Dir::Cache="$new/cache" -o Acquire::Retries=1
		-o Acquire::http::Timeout=20)
	rm -rf "$new" "$dir"
	step 'a folder' mkdir -p "$new"/{deb,lists/partial,cache/archives/partial} || return
	echo "deb $(debian_mirror "$codename") $codename-backports main" >"$new/sources.list" || return
	# In the foreground: who interrupts the set-up interrupts these.
	step 'its lists, in 120 s' timeout --foreground 120 apt-get "${options[@]}" update || return
	(cd "$new/deb" && step 'its packages, in 600 s' timeout --foreground 600 apt-get \
		"${options[@]}" -t "$codename-backports" download \
		qemu-system-{x86,common,data} seabios) || return
	version=$(dpkg-deb -f "$new"/deb/qemu-system-x86_*.deb Version)
	step "$version is older than $NEW_QEMU" dpkg --compare-versions "$version" ge $NEW_QEMU || return
	for f in "$new"/deb/*.deb; do
		step "$f" dpkg -x "$f" "$new" || return
	done
	step 'it does not start' "$new/usr/bin/qemu-system-x86_64" --version || return
	rm -r "$new"/{deb,lists,cache} && mv "$new" "$dir"
}

# QEMU before 8.1 translates code that another processor is just patching, and may go on
# with the old for ever: a guest dies or hangs of a breakpoint that is no longer there.
# Debian 12 has a newer one among its backports; it goes into the cache as the kernels do.
# It is better to have it, but no condition: a day passes before the next trial.
NEW_QEMU=1:8.1
emulator()
{
	local dir=$HPSOCK_CACHE/qemu
	if dpkg --compare-versions "$(dpkg-query -W -f '${Version}' qemu-system-x86)" ge $NEW_QEMU; then
		rm -rf "$dir"
		return 0
	fi
	! "$dir/usr/bin/qemu-system-x86_64" --version >/dev/null 2>&1 || return 0
	[ -z "$(find "$dir.none" -mtime -1 2>/dev/null)" ] || return 0
	say "unpacking a newer QEMU from Debian's backports (14 MB to download)"
	if new_qemu "$dir" >>"$log" 2>&1; then
		rm -f "$dir.none"
	else
		rm -rf "$dir.new"
		tail -n 20 "$log" >"$dir.none"
		say "none could be had, see $dir.none: with this machine's own a guest now and then hangs"
	fi
}

set_up()
{
	: >"$log"
	packages
	debian_kernel 6.12
	debian_kernel 6.1
	emulator
}

log=$HPSOCK_CACHE/setup.log
mkdir -p "$HPSOCK_CACHE/lock"
flock -n "$HPSOCK_CACHE/lock/setup" true || say 'waiting for another set-up to end'
locked setup set_up
"$VM/kernel.sh" --source >/dev/null
