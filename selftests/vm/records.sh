# SPDX-License-Identifier: GPL-2.0
# What "check all" remembers of each step, so that hours of tests can be done bit by bit, on
# one computer after the other: the table in Documentation/results.rst.  A step's row names
# the commit that last changed what steps depend on, not the newest: a commit of that
# table itself has nothing run again.  Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2154 # HPSOCK_TOP, steps and code come from the caller

RECORDS=$HPSOCK_TOP/Documentation/results.rst

# covered: the commit that last changed anything a step may depend on; with changes that
# are not committed, also a checksum of these.
covered()
{
	local what=(Kbuild af_hpsock include selftests tools 'Documentation/formal/*.pml' dkms.conf
		':!selftests/skips' ':!selftests/flaky')
	(
		cd "$HPSOCK_TOP" || exit
		git log -1 --abbrev=12 --format=%h -- "${what[@]}"
		[ -z "$(git status --porcelain -- "${what[@]}")" ] || {
			git diff HEAD -- "${what[@]}"
			git ls-files -o --exclude-standard -- "${what[@]}" | xargs -d '\n' -r sha256sum
		} | sha256sum | cut -c1-12
	) | paste -sd-
}

# records: "step<tab>commit<tab>date<tab>passed<tab>failed<tab>skipped<tab>seconds" of each
# that has been run.
records()
{
	awk '
		function row_ends() { if (n == 7 && cell[2] ~ /^[0-9a-f]+(-[0-9a-f]+)?$/) print row; n = 0 }
		/^   \* - / { row_ends(); row = "" }
		/^   [* ] - / { cell[++n] = substr($0, 8); row = row (n > 1 ? "\t" : "") cell[n] }
		/^     -$/ { n++ }
		END { row_ends() }' "$RECORDS"
}

# record_result STEP...: "passed failed skipped seconds", if it was run with the code as
# it is.
record_result()
{
	records | awk -F '\t' -v step="$*" -v code="$code" '
		$1 == step && $2 == code { print $4, $5, $6, $7; found = 1 }
		END { exit !found }'
}

# record_write RESULT STEP...: the table once more, with this RESULT, which is as above.
# The caller lets only one do so at a time.
record_write()
{
	{
		records
		printf '%s\t' "${*:2}" "$code" "$(date -u +%F)"
		tr ' ' '\t' <<<"$1"
	} | records_table >"$RECORDS.new"
	mv "$RECORDS.new" "$RECORDS"
}

# records_table: the document, of the last of the records on standard input of each step of the plan.
records_table()
{
	cat <<-END_OF_HEAD
		.. SPDX-License-Identifier: GPL-2.0
		.. Written by "make check-all".

	END_OF_HEAD
	awk -F '\t' -v code="$code" '
		NR == FNR { sub(/^[0-9]+ (alone )?/, ""); plan[++steps] = $0; next }
		{ record[$1] = $0; current[$1] = $2 == code; done[$1] = !$5 }
		END {
			for (i = 1; i <= steps; i++) {
				split(record[plan[i]], r)
				for (c = 0; c < 3; c++)
					sum[c] += r[c + 4]
				passed += current[plan[i]] && done[plan[i]]
			}
			printf "%d of %d steps passed with the code of commit %s. ", passed, steps, code
			printf "All of the table:\n**%d passed, %d failed, %d skipped**.\n\n", sum[0], sum[1], sum[2]
			printf ".. list-table::\n   :header-rows: 1\n\n   * - step\n"
			printf "     - commit\n     - date\n     - passed\n     - failed\n     - skipped\n     - seconds\n"
			for (i = 1; i <= steps; i++) {
				if (!split(record[plan[i]], r))
					split(plan[i] FS "not run" FS FS FS FS FS, r)
				printf "   * - %s\n", r[1]
				for (c = 2; c <= 7; c++)
					print r[c] == "" ? "     -" : "     - " r[c]
			}
		}' <(printf '%s\n' "${steps[@]}") -
}
