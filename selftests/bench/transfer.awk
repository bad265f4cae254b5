# SPDX-License-Identifier: GPL-2.0
#
# Lines "CONTESTANT MEASURE RESULT" in, a table of the medians out.

# us a message, one way
function cost(who, m) {
	return m == "lat64" ? med[who, m] : size[m] / med[who, m]
}

function has(who, m) {
	return (who, m) in med
}

function ratio(who, m) {
	return has("verbs", m) ? sprintf("%.2f", med[who, m] / med["verbs", m]) : "-"
}

# What a faster device would not take away; on TCP there is no such part.
function own_cost(who, m) {
	if (who == "tcp")
		return sprintf("%.1f", cost(who, m))
	return has("verbs", m) ? sprintf("%.1f", cost(who, m) - cost("verbs", m)) : "-"
}

function columns(who,	i) {
	for (i = 1; i <= 3; i++)
		if (has(who, name[i]))
			printf " | %8.1f %8s %10s", med[who, name[i]], \
				ratio(who, name[i]), own_cost(who, name[i])
		else
			printf " | %8s %8s %10s", "-", "-", "-"
	printf "\n"
}

function heading(	i) {
	printf "%-12s | %-28s | %-28s | %s\n", "medians", "64 bytes", "64 KiB", "1 MiB"
	printf "%-12s", ""
	for (i = 1; i <= 3; i++)
		printf " | %8s %8s %10s", i == 1 ? "us" : "MB/s", "x verbs", "own us"
	printf "\n"
}

BEGIN {
	split("lat64 bw64k bw1m", name, " ")
	size["bw64k"] = 65536
	size["bw1m"] = 1048576
	n_titles = split("TCP=tcp,raw verbs=verbs,kernel Send=ksend,kernel Write=kwrite," \
			 "SMC-R=smc,rsockets=rsockets," \
			 "AF_HPSOCK=hpsock", title, ",")
}

{ results[$1, $2] = results[$1, $2] " " $3 }

END {
	for (k in results)
		med[k] = median(results[k])
	heading()
	for (i = 1; i <= n_titles; i++) {
		split(title[i], t, "=")
		if (!has(t[2], "lat64"))
			continue
		printf "%-12s", t[1]
		columns(t[2])
	}
	print ""
	print "64 bytes: one way, half a round trip. 64 KiB, 1 MiB: one direction, 10^6 bytes/s."
	print "own us: one way or a message, above raw verbs; for TCP, which has no device below"
	print "that does its work, the whole."
}
