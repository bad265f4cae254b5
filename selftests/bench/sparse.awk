# SPDX-License-Identifier: GPL-2.0
#
# Lines "CONTESTANT alone|crowd MB/S" in, a table of the medians out. Fails if
# AF_HPSOCK is slowed down by more than 5 %.

{ results[$1, $2] = results[$1, $2] " " $3 }

END {
	n = split("TCP=tcp,AF_HPSOCK=hpsock", title, ",")
	printf "%-10s | %10s %10s %8s\n", "medians", "alone MB/s", "crowd MB/s", "slower x"
	for (i = 1; i <= n; i++) {
		split(title[i], t, "=")
		if (!((t[2], "crowd") in results))
			continue
		alone = median(results[t[2], "alone"])
		crowd = median(results[t[2], "crowd"])
		printf "%-10s | %10.1f %10.1f %8.3f\n", t[1], alone, crowd, alone / crowd
		if (t[2] == "hpsock" && alone / crowd > 1.05)
			bad = 1
	}
	print ""
	print "1 MiB at a time in one direction, alone and beside 600 connections that each carry 64 bytes"
	print "there and back every 5 seconds."
	exit bad
}
