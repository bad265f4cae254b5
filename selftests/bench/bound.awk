# SPDX-License-Identifier: GPL-2.0
#
# The results of "policy" in; says where what AF_HPSOCK decides by itself is more than 5 % behind
# the copy, and fails if it is anywhere.

$1 == "@column" { columns[++n] = $2; next }
$1 !~ /^@/ { results[$1, $2] = results[$1, $2] " " $3 }

END {
	for (i = 1; i <= n; i++) {
		if (!(("copy", columns[i]) in results) || !(("auto", columns[i]) in results))
			continue
		ratio = median(results["auto", columns[i]]) / median(results["copy", columns[i]])
		if (ratio < 0.95) {
			printf "%s: %.3f of the copy\n", columns[i], ratio
			bad = 1
		}
		if (!compared++ || ratio < least)
			least = ratio
	}
	if (compared)
		printf "at least %.3f of the copy\n", least
	exit bad
}
