# SPDX-License-Identifier: GPL-2.0
# From the file "sets": the programs of a set (-v set=NAME), their seconds, and what goes
# into their environment. Of NAME:2/3 the second of three parts of about the same work.
BEGIN {
	n = split(set, part, "[:/]")
	set = part[1]
	which = n == 3 ? part[2] : 1
	parts = n == 3 ? part[3] : 1
}
/^#/ || NF == 0 { next }
{
	bound = $NF ~ /^[0-9]+$/ ? $NF : 60
	env = ""
	for (i = 2; i <= NF; i++)
		if ($i ~ /=/)
			env = env " " $i
	for (i = 2; i <= NF; i++)
		if ($i == set) {
			least = 1
			for (j = 2; j <= parts; j++)
				if (sum[j] + 0 < sum[least] + 0)
					least = j
			sum[least] += bound
			if (least == which)
				print $1, bound env
			break
		}
}
