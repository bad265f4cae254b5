# SPDX-License-Identifier: GPL-2.0
#
# Lines "CONTESTANT BYTES MB/S" in, a table of the medians out, a line for each size.
# Fails if AF_HPSOCK is not ahead of the others at one of them, or more than 10 %
# slower than at a smaller one.

{ results[$1, $2] = results[$1, $2] " " $3 }

END {
	n = split("TCP=tcp,raw verbs=verbs,SMC-R=smc,rsockets=rsockets,AF_HPSOCK=hpsock", title, ",")
	printf "%-10s |", "MB/s"
	for (i = 1; i <= n; i++) {
		split(title[i], t, "=")
		name[i] = t[2]
		printf " %10s", t[1]
	}
	print ""
	for (size = 64; size <= 1048576; size *= 2) {
		own = median(results["hpsock", size])
		printf "%10d |", size
		for (i = 1; i <= n; i++) {
			if (!((name[i], size) in results)) {
				printf " %10s", ""
				continue
			}
			v = median(results[name[i], size])
			printf " %10.1f", v
			if (own && name[i] ~ /smc|rsockets/ && v >= own)
				bad = 1
		}
		print ""
		if (own < 0.9 * best)
			bad = 1
		best = own > best ? own : best
	}
	exit bad
}
