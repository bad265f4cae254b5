# SPDX-License-Identifier: GPL-2.0
# Count the test cases of a KTAP stream: "passed failed skipped".
#
# The totals are taken where there are any, since a program's own lines may be
# mixed with those of its children.
/^# Totals:/ {
	for (i = 3; i <= NF; i++) {
		split($i, kv, ":")
		total[kv[1]] += kv[2]
	}
	totals = 1
}
/^ok / { if (/# SKIP/) skipped++; else passed++ }
/^not ok / { failed++ }
END {
	if (totals) {
		passed = total["pass"] + total["xfail"]
		failed = total["fail"] + total["error"] + total["xpass"]
		skipped = total["skip"]
	}
	print passed + 0, failed + 0, skipped + 0
}
