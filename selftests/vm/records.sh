# SPDX-License-Identifier: GPL-2.0
# What "check all" remembers of each step, so that hours of tests can be done bit by bit:
# in the cache, by the step's name, the code it covered, its commit, the day, and what it
# gave.  Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2154 # HPSOCK_TOP, HPSOCK_CACHE and commit come from the caller

RECORDS=$HPSOCK_CACHE/records

# covered: a checksum of all that a step may depend on, as it lies in the work tree.
covered()
{
	(cd "$HPSOCK_TOP" &&
		git ls-files -co --exclude-standard -- Kbuild af_hpsock include selftests tools \
			'Documentation/formal/*.pml' dkms.conf ':!selftests/skips' ':!selftests/flaky' | sort |
		while read -r f; do
			[ ! -f "$f" ] || sha256sum "$f"
		done | sha256sum | cut -d' ' -f1)
}

record_of() { echo "$RECORDS/${*// /_}" | tr ' ' _; }

# record_write RESULT STEP...: RESULT is "passed failed skipped seconds status".
record_write()
{
	mkdir -p "$RECORDS"
	echo "$code $commit $(date -u +%F) $1" >"$(record_of "${@:2}")"
}

# record_holds STEP...: it passed, with the code as it is.
record_holds()
{
	local was failed
	read -r was _ _ _ failed _ 2>/dev/null <"$(record_of "$@")" || return 1
	[ "$was" = "$code" ] && [ "$failed" -eq 0 ]
}

# record_result STEP...
record_result()
{
	local result
	read -r _ _ _ result <"$(record_of "$@")"
	echo "$result"
}

# records_table: what Documentation/testing.rst shows, of the steps on standard input.
records_table()
{
	local step was when at p f k seconds sum='0 0 0' rows=''
	while read -r step; do
		was='' at='not run' when='' p='' f='' k='' seconds=''
		# shellcheck disable=SC2086 # words
		read -r was at when p f k seconds _ 2>/dev/null <"$(record_of $step)"
		[ "$was" = "$code" ] || [ -z "$was" ] || when+=', before the code changed'
		rows+=$(printf '   * - %s\n' "$step"
			printf '     - %s\n' "$at" "$when" "$p" "$f" "$k" "$seconds")$'\n'
		sum=$(awk '{ print $1 + $4, $2 + $5, $3 + $6 }' <<<"$sum ${p:-0} ${f:-0} ${k:-0}")
	done
	read -r p f k <<<"$sum"
	cat <<-END_OF_TABLE
		.. SPDX-License-Identifier: GPL-2.0
		.. Written by "make check-all".

		$(nproc) processors: **$p passed, $f failed, $k skipped**.

		.. list-table::
		   :header-rows: 1

	END_OF_TABLE
	printf '   * - step\n'
	printf '     - %s\n' commit date passed failed skipped seconds
	printf %s "$rows"
}
