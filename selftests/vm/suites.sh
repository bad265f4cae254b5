# SPDX-License-Identifier: GPL-2.0
# What vm/check does about the suites that others wrote (selftests/conformance): they are
# fetched before the first step, and if they could not be, each step that runs them has
# failed.  Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2154 # HPSOCK_TOP, HPSOCK_CACHE and log come from the caller

# suites_needed STEP...: it runs them, or a part of them.
suites_needed() { [[ "$* " =~ \ conformance(:[0-9]+/[0-9]+)?\  ]]; }

# suites_fetch: in the background, so that who interrupts check does not wait for it; it
# ends with us.  What is there from before must not run as if it were of today.
suites_fetch()
{
	local status=0
	setpriv --pdeathsig TERM timeout -k 30 900 "$HPSOCK_TOP/selftests/conformance/fetch.sh" \
		</dev/null >"$log/fetch.log" 2>&1 &
	wait $! || status=$?
	if [ $status -eq 0 ]; then
		rm "$log/fetch.log"
		return
	fi
	rm -rf "$HPSOCK_TOP/selftests/build/conformance"
	# One that was ended has not said what it was at.
	case $status in
	124|137) tail -n 19 "$HPSOCK_CACHE/conformance/fetch.log" >>"$log/fetch.log" 2>&1;;
	esac
	echo "status $status" >>"$log/fetch.log"
}

# suites_missing STEP...: it runs them, and they could not be fetched; says why.
suites_missing()
{
	[ -e "$log/fetch.log" ] && suites_needed "$@" || return
	tail -n 20 "$log/fetch.log" | sed 's/^/-- fetch.sh: /'
}
