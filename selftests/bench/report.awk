# SPDX-License-Identifier: GPL-2.0
#
# The results of "measure" in, a table of Markdown out, or with -v data=1 what
# gnuplot draws: a line for each column and a number in it for each row.
#
# -v commit=..., -v machine=...: with them each row says what was measured and how.

$1 == "@kernel" { kernel = $2; next }
$1 == "@base" { base = $2; next }
$1 == "@best" { best = $2; next }
$1 == "@row" { rows[++n_rows] = $2; title[$2] = rest(3); next }
$1 == "@flags" { flags[$2] = rest(3); next }
$1 == "@column" { columns[++n_columns] = $2; heading[$2] = rest(3); next }
{ results[$1, $2] = results[$1, $2] " " $3 }

# Time is best if short, all else if there is much of it.
function best_of(list, column,	n, v, i, b) {
	n = split(list, v, " ")
	b = v[1]
	for (i = 2; i <= n; i++)
		if (column ~ /^lat/ ? v[i] + 0 < b + 0 : v[i] + 0 > b + 0)
			b = v[i]
	return b
}

function value(row, column) {
	return best ? best_of(results[row, column], column) : median(results[row, column])
}

function cell(row, column,	v) {
	if (!((row, column) in results))
		return "-"
	v = value(row, column)
	# Small numbers, of which it is the difference that counts.
	if (column ~ /[.]/)
		return sprintf("%.2f", v)
	if (base == "" || !((base, column) in results) || !value(base, column))
		return sprintf("%.1f", v)
	return sprintf("%.1f (%.2f)", v, v / value(base, column))
}

function print_data(	i, j) {
	for (i = 1; i <= n_rows; i++)
		printf "\t\"%s\"", title[rows[i]]
	print ""
	for (j = 1; j <= n_columns; j++) {
		printf "\"%s\"", heading[columns[j]]
		for (i = 1; i <= n_rows; i++)
			printf "\t%s", (rows[i], columns[j]) in results ? \
				value(rows[i], columns[j]) : "NaN"
		print ""
	}
}

# Many columns make a table on its side.
function print_columns(	i, j) {
	printf "| |"
	for (i = 1; i <= n_rows; i++)
		printf " %s |", title[rows[i]]
	printf "\n|---|"
	for (i = 1; i <= n_rows; i++)
		printf "---:|"
	print ""
	for (j = 1; j <= n_columns; j++) {
		printf "| %s |", heading[columns[j]]
		for (i = 1; i <= n_rows; i++)
			printf " %s |", cell(rows[i], columns[j])
		print ""
	}
	if (commit != "")
		for (i = 1; i <= n_rows; i++)
			printf "\n%s: commit %s, kernel %s, %s%s\n", title[rows[i]], commit, kernel, \
				machine, flags[rows[i]] == "" ? "" : ", " flags[rows[i]]
}

function print_rows(	i, j) {
	printf "| |"
	for (j = 1; j <= n_columns; j++)
		printf " %s |", heading[columns[j]]
	printf "%s\n|---|", commit == "" ? "" : " commit | kernel | flags |"
	for (j = 1; j <= n_columns; j++)
		printf "---:|"
	print commit == "" ? "" : "---|---|---|"
	for (i = 1; i <= n_rows; i++) {
		printf "| %s |", title[rows[i]]
		for (j = 1; j <= n_columns; j++)
			printf " %s |", cell(rows[i], columns[j])
		if (commit != "")
			printf " %s | %s | %s%s |", commit, kernel, machine, \
				flags[rows[i]] == "" ? "" : ", " flags[rows[i]]
		print ""
	}
}

END {
	if (data)
		print_data()
	else if (n_columns > 12)
		print_columns()
	else
		print_rows()
	if (!data && base != "" && base in title)
		printf "\nIn parentheses: divided by the result of %s in this run.\n", title[base]
}
