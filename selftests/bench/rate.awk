# SPDX-License-Identifier: GPL-2.0
#
# Lines "CONTESTANT rate CONNECTIONS/S" in, a table of the medians out.

{ results[$1] = results[$1] " " $3 }

END {
	n = split("TCP=tcp,SMC-R=smc,rsockets=rsockets,AF_HPSOCK=hpsock", title, ",")
	printf "%-10s | %13s %13s %8s\n", "medians", "connections/s", "us each", "x SMC-R"
	for (i = 1; i <= n; i++) {
		split(title[i], t, "=")
		if (!(t[2] in results))
			continue
		rate = median(results[t[2]])
		printf "%-10s | %13.1f %13.1f %8s\n", t[1], rate, 1e6 / rate, \
			"smc" in results ? sprintf("%.2f", rate / median(results["smc"])) : "-"
	}
	print ""
	print "One after the other: connect, 16 bytes there, 64 bytes back, close."
}
