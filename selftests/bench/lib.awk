# SPDX-License-Identifier: GPL-2.0
#
# For the tables: the median of a list of numbers with spaces between, and the words of a
# line from one on.

function median(list,	n, v, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function rest(from,	i, s) {
	for (i = from; i <= NF; i++)
		s = s (i > from ? " " : "") $i
	return s
}
