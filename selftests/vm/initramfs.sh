#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Make the initramfs of a QEMU guest: busybox, guest/early and the modules that
# every guest needs (none on our own kernels), unpacked: modprobe is slow in a
# guest, and xz more so.
#
# usage: initramfs.sh KERNEL_DIR	(as kernel.sh makes it; adds "initramfs")
set -eu
. "$(dirname "$0")/lib.sh"

dir=$1
release=$(cat "$dir/release")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Modules in the order in which they have to be loaded.
modules()
{
	local m
	for m in virtio_pci 9pnet_virtio 9p overlay virtio_rng virtio_net veth \
		ib_uverbs rdma_ucm rdma_rxe crc32_generic crc32_pclmul sch_netem; do
		/sbin/modprobe -d "$dir/modules" -S "$release" --show-depends "$m" 2>/dev/null |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++'
}

unpacked()
{
	case $1 in
	*.xz) xz -dc "$1";;
	*.zst) zstd -dc "$1";;
	*) cat "$1";;
	esac
}

mkdir -p "$tmp"/{bin,modules,proc,sys,dev,host,rw,root}
cp /bin/busybox "$tmp/bin/busybox"
cp "$VM/guest/early" "$tmp/init"
n=100
case $release in
*-lab*)	;;	# all built in
*)
	modules | while read -r m; do
		unpacked "$m" >"$tmp/modules/$n.ko"
		n=$((n + 1))
	done;;
esac
(cd "$tmp" && find . | busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$dir/initramfs.new"
mv "$dir/initramfs.new" "$dir/initramfs"
