# SPDX-License-Identifier: GPL-2.0
# Tests that are skipped prove nothing, so vm/check compares them with the list
# selftests/skips: kernel, device, program, test and reason, with tabs between.  What is not on
# it fails the step.  "check -u" writes down what was skipped instead.  A kernel and device
# that the list does not know is not compared.  Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2154 # HPSOCK_TOP and log come from the caller

SKIPS=$HPSOCK_TOP/selftests/skips

# skips_of NUMBER KERNEL DEVICE: what the programs of a step skipped.  One of which some tests
# ran (stream_close:races) has the name that it has without them.
skips_of()
{
	local f program
	for f in "$log/$1"/programs/*.log; do
		program=${f##*/[0-9][0-9].}
		program=${program%%:*}
		sed -nE 's/^ok [0-9]+ ?([^# ]*) *# SKIP ?(.*)/\1\t\2/p' "$f" |
			awk -F '\t' -v OFS='\t' -v k="$2" -v d="$3" -v p="${program%.log}" \
				'{ print k, d, p, $1 == "" ? "-" : $1, $2 }'
	done | LC_ALL=C sort -u
}

# skips_unexpected NUMBER KERNEL DEVICE
skips_unexpected()
{
	grep -q "^$2	$3	" "$SKIPS" 2>/dev/null || return 0
	skips_of "$@" | grep -vxFf "$SKIPS" | sed 's/^/NOT OK unexpected skip: /'
}

# skips_update NUMBER KERNEL DEVICE: of this kernel and device all programs that ran as a
# whole; of others it only adds what they skipped.
skips_update()
{
	local f programs=''
	for f in "$log/$1"/programs/*.log; do
		f=${f##*/[0-9][0-9].}
		[[ $f = *:* ]] || programs+=" ${f%.log} "
	done
	{
		awk -F '\t' -v k="$2" -v d="$3" -v ran="$programs" \
			'/^#/ || $1 != k || $2 != d || !index(ran, " " $3 " ")' "$SKIPS" 2>/dev/null
		skips_of "$@"
	} | LC_ALL=C sort -u >"$SKIPS.new"
	mv "$SKIPS.new" "$SKIPS"
}
