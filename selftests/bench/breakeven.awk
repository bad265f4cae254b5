# SPDX-License-Identifier: GPL-2.0
#
# The results of "measure zcopy" in; of each way not to copy, from which size on it is
# ahead of the copy.  Behind lib.awk.

$1 == "@row" { rows[++n_rows] = $2; title[$2] = rest(3); next }
/^@/ { next }
$2 ~ /^[0-9]+$/ {
	results[$1, $2] = results[$1, $2] " " $3
	if (!($2 in known))
		sizes[++n_sizes] = $2
	known[$2]
}

function is_ahead(row, base, size) {
	return median(results[row, size]) >= median(results[base, size])
}

# Each is compared with a copy for a program that does the same with its memory.
END {
	for (i = 1; i <= n_rows; i++) {
		row = rows[i]
		base = row ~ /write$/ ? "copywrite" : "copy"
		if (row == base || row !~ /^(protect|auto|wait|zerocopy)/ || !((base, sizes[1]) in results))
			continue
		from = 0
		for (j = n_sizes; j && is_ahead(row, base, sizes[j]); j--)
			from = sizes[j]
		printf "%s: %s\n", title[row], from ? "ahead of the copy from " from " bytes on" : \
			"not ahead of the copy at " sizes[n_sizes] " bytes"
	}
}
