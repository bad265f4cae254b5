# SPDX-License-Identifier: GPL-2.0
#
# The results of "policy" in; says where what AF_HPSOCK decides by itself is more than 5 % behind
# the copy, or was not measured, and fails if it is anywhere, or there is nothing to compare.

$1 == "@column" { columns[++n] = $2; next }
# What is no number is no result, and leaves none beside it.
$1 !~ /^@/ && $3 !~ /^[0-9]+(\.[0-9]+)?$/ { strange[$2] = 1 }
$1 !~ /^@/ { results[$1, $2] = results[$1, $2] " " $3 }

END {
	for (i = 1; i <= n; i++) {
		copy = median(results["copy", columns[i]])
		auto = median(results["auto", columns[i]])
		if (columns[i] in strange || copy <= 0 || auto <= 0) {
			printf "%s: not measured\n", columns[i]
			bad = 1
			continue
		}
		ratio = auto / copy
		if (ratio < 0.95) {
			printf "%s: %.3f of the copy\n", columns[i], ratio
			bad = 1
		}
		if (!compared++ || ratio < least)
			least = ratio
	}
	if (compared)
		printf "at least %.3f of the copy\n", least
	else
		print "nothing to compare"
	exit bad || !compared
}
