# SPDX-License-Identifier: GPL-2.0
# From the file "sets": the programs of a set (-v set=NAME) and their seconds.
/^#/ || NF == 0 { next }
{
	bound = $NF ~ /^[0-9]+$/ ? $NF : 60
	for (i = 2; i <= NF; i++)
		if ($i == set) {
			print $1, bound
			break
		}
}
