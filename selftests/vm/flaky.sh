# SPDX-License-Identifier: GPL-2.0
# What vm/check does about a program that failed in a machine that was well: it runs
# again twice, alone, each time in a machine of its own.  If it passes both it is FLAKY,
# which is a failure still, unless selftests/flaky excuses it.  Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2154 # VM, HPSOCK_TOP and log come from the caller

# More of them are no matter of chance.
FLAKY_MOST=3

# What is never excused, whatever the list says.
FLAKY_NEVER='wrong byte|hps_check|terminated by timeout|, no end in time|, killed by'

# flaky_listed PROGRAM TEST LOG: an entry names this test and this symptom, and is not
# out of date, nor dated further ahead than anyone may put it off.
flaky_listed()
{
	local program test until symptom
	while read -r program test until symptom; do
		[ "$program/$test" = "$1/$2" ] || continue
		[[ ! $until < $(date +%F) && ! $until > $(date -d '14 days' +%F) ]] || continue
		! grep -qE "$symptom" "$3" || return 0
	done < <(grep -v '^#' "$HPSOCK_TOP/selftests/flaky")
	return 1
}

# flaky_excused PROGRAM LOG: all that failed in it is.
flaky_excused()
{
	local test some=''
	! grep -qE "$FLAKY_NEVER" "$2" || return 1
	while read -r test; do
		flaky_listed "$1" "$test" "$2" || return 1
		some=1
	done < <(sed -nE 's/^not ok [0-9]+ ([^ ]+).*/\1/p' "$2")
	[ -n "$some" ]
}

# flaky_again NUMBER SECONDS PROGRAM COMMAND...: status 0 if it passes twice.
flaky_again()
{
	local try passed=0
	for try in 1 2; do
		if timeout -k 30 "$2" "${@:4}" -o "$log/$1/again/$3.$try" \
			-- selftests/run.sh ${family:+-f "$family"} -p "$3" >"$log/$1.again" 2>&1 </dev/null; then
			passed=$((passed + 1))
		fi
	done
	echo "-- $3 run again alone: passed $passed of 2" >>"$log/$1.log"
	[ $passed -eq 2 ]
}

# flaky_step NUMBER SECONDS COMMAND...: what failed in it, again; COMMAND is that of
# vm/run without output folder.  Prints how many failures are excused.
flaky_step()
{
	local programs line program bad found excused=0
	mapfile -t programs < <(grep '^NOT OK ' "$log/$1.log")
	[ ${#programs[@]} -le $FLAKY_MOST ] || programs=()
	for line in "${programs[@]}"; do
		# A hang would cost as long again, and is not excused.
		! grep -qE "$FLAKY_NEVER" <<<"$line" || continue
		[[ $line =~ ^NOT\ OK\ (.*):\ [0-9]+\ passed,\ ([0-9]+)\ failed ]] || continue
		program=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
		found=$(find "$log/$1/programs" -name "*.${program//\//.}.log" | tail -n 1)
		flaky_again "$1" "$2" "$program" "${@:3}" || continue
		if flaky_excused "${program%%:*}" "$found"; then
			echo "-- FLAKY, excused for now by selftests/flaky: $line" >>"$log/$1.log"
			excused=$((excused + bad))
		else
			echo "-- FLAKY: $line" >>"$log/$1.log"
		fi
	done
	echo $excused
}
