# SPDX-License-Identifier: GPL-2.0
# Those tests of vm/selfcheck that need no machine.  Sourced by it.
# shellcheck shell=bash
# shellcheck disable=SC2153,SC2154 # HPSOCK_TOP, VM, log and job come from there
# shellcheck disable=SC2016 # what is not expanded here is for the planted scripts

. "$VM/skips.sh"
. "$VM/flaky.sh"

# script FILE LINE: one that does this.
script()
{
	mkdir -p "${1%/*}"
	printf '#!/bin/bash\n%s\n' "$2" >"$1"
	chmod 755 "$1"
}

# plant_tree FETCH: a tree in which all steps of vm/check pass at once, fetch.sh is that
# command, and suites are there from before.
plant_tree()
{
	rm -rf "$job"
	mkdir -p "$job/selftests/build/conformance" "$job/cache/conformance"
	cp -r "$VM" "$job/selftests/vm"
	script "$job/selftests/vm/kernel.sh" 'exit 0'
	script "$job/selftests/vm/run" 'echo 1 passed, 0 failed, 0 skipped'
	script "$job/selftests/conformance/fetch.sh" "$1"
	echo 'apt-get waits' >"$job/cache/conformance/fetch.log"
	echo '5 set 6.12 none conformance:1/2' >"$job/plan"
}

# plan_runs: that tree's vm/check; it can be interrupted even if we cannot, as what
# a shell has started in the background.
plan_runs()
{
	HPSOCK_CACHE=$job/cache HPSOCK_SLOW=1 env --default-signal=INT "$job/selftests/vm/check" \
		-p "$job/plan" >"$log" 2>&1 </dev/null
}

# suites NAME FETCH PATTERN...: a plan that runs them fails if they cannot be fetched, not
# with those from before, and says why.
suites()
{
	local name=$1 pattern why=''
	chosen "$name" || return 0
	plant_tree "$2"
	! plan_runs || why='passes'
	[ ! -e "$job/selftests/build/conformance" ] || why='the old ones are there'
	for pattern in '^== FAILED: set .* 1 passed, 1 failed' '^1 passed, 1 failed, 0 skipped$' "${@:3}"; do
		grep -qE -e "$pattern" "$log" || why="no \"$pattern\""
	done
	verdict "$name" "$why"
}

suites_there()
{
	local why=''
	chosen suites-fetched || return 0
	plant_tree 'echo as usual'
	plan_runs || why='fails'
	[ -e "$job/selftests/build/conformance" ] || why='they are gone'
	! grep -q 'as usual' "$log" || why='tells what is of no interest'
	verdict suites-fetched "$why"
}

# The seconds after which something that is told to end has not: no more than a bound.
patience=$((10 * ${HPSOCK_SLOW:-1}))

# ends PID: it is gone in time.
ends() { timeout "$patience" tail -f /dev/null --pid="$1"; }

# comes_true CONDITION: a command line for sh, in time.
comes_true() { timeout "$patience" sh -c "until $1; do sleep 0.1; done"; }

# suites_interrupted: by Ctrl-C, which a process group of its own does not get.
suites_interrupted()
{
	local why='' pid
	chosen suites-interrupted || return 0
	plant_tree 'echo $$ >"${0%/*}/pid.new"; mv "${0%/*}/pid.new" "${0%/*}/pid"; sleep 300'
	# With job control the group is a new one, and interrupts are not ignored.
	set -m
	plan_runs &
	pid=$!
	set +m
	comes_true "[ -e '$job/selftests/conformance/pid' ]"
	kill -INT -- -$pid
	ends $pid || why='check goes on'
	ends "$(<"$job/selftests/conformance/pid")" || why='fetch.sh goes on'
	kill -KILL -- -$pid "-$(ps -o pgid= -p "$(<"$job/selftests/conformance/pid")" | tr -d " ")" 2>/dev/null
	wait $pid 2>/dev/null
	verdict suites-interrupted "$why"
}

# plant_fetch APT_GET MAKE: the real fetch.sh, with these instead of the programs, in a
# tree that has suites.
plant_fetch()
{
	rm -rf "$job"
	mkdir -p "$job/cache/conformance/liburing"/{src,test} "$job/kernel/tools/testing"/{vsock,selftests/net/mptcp} \
		"$job/selftests/build/conformance"
	echo old >"$job/selftests/build/conformance/vsock_test"
	touch "$job/cache/conformance/liburing/.configured"
	cp -r "$HPSOCK_TOP/selftests/conformance" "$job/selftests"
	cp -r "$VM" "$job/selftests/vm"
	script "$job/selftests/vm/kernel.sh" "echo $job/kernel"
	script "$job/bin/apt-get" "$1"
	script "$job/bin/make" "$2"
	script "$job/bin/gcc" 'while [ "$1" != -o ]; do shift; done; echo new >"$2"'
}

# fetch [COMMAND...]: run by that.
fetch() { PATH=$job/bin:$PATH HPSOCK_CACHE=$job/cache "$@" "$job/selftests/conformance/fetch.sh" >"$log" 2>&1 </dev/null; }

# What a planted program does to be one that is ended: it says which process it is.
stays='echo $$ >"$HPSOCK_CACHE/pid.new"; mv "$HPSOCK_CACHE/pid.new" "$HPSOCK_CACHE/pid"; exec sleep 300'

# fetch_told: fetch.sh is told to end, with its process group, when a program "stays".  Fails
# if one of them does not end, or as if nothing were wrong.
fetch_told()
{
	local pid status=0
	fetch exec timeout 600 &
	pid=$!
	comes_true "[ -e '$job/cache/pid' ]" || status=1
	kill $pid
	ends $pid || { kill -KILL -- -$pid; status=1; }
	! wait $pid || status=1
	pid=$(<"$job/cache/pid")
	ends "$pid" || { kill "$pid"; status=1; }
	return $status
}

# fetch_ended: what it has started ends with it.
fetch_ended()
{
	local why=''
	chosen fetch-ended || return 0
	plant_fetch "$stays" 'exit 0'
	rm "$job/cache/conformance/liburing/.configured"
	fetch_told || why='does not end, or apt-get goes on'
	verdict fetch-ended "$why"
}

# The tests that make is called with are there then.
makes='for t; do [[ $t != *.t ]] || echo new >"test/$t"; done'

# fetch_beside: the suites of before are there until the new ones are.
fetch_beside()
{
	local why='' out=$job/selftests/build/conformance
	chosen fetch-beside || return 0
	plant_fetch 'exit 1' "grep -q old $out/vsock_test || exit 1; $makes"
	fetch || why='fails'
	[ "$(cat "$out"/{vsock_test,vsock_shim.so,liburing/accept.t} 2>>"$log" | sort -u)" = new ] || why='are not all new'
	[ ! -e "$out.new" ] || why='leaves something'
	verdict fetch-beside "$why"
}

# nothing_built: neither suites nor parts of them; what fetch.sh has started removes them.
nothing_built()
{
	local out=$job/selftests/build/conformance
	comes_true "[ ! -e '$out' ] && [ ! -e '$out.new' ]"
}

# fetch_fails: what cannot be built anew does not run as it was, whether make fails or all
# is ended.
fetch_fails()
{
	local why=''
	chosen fetch-fails || return 0
	plant_fetch 'exit 1' 'exit 2'
	! fetch || why='passes'
	nothing_built || why='leaves something'
	plant_fetch 'exit 1' "$stays"
	fetch_told || why='passes, or does not end'
	nothing_built || why='leaves something when it is ended'
	verdict fetch-fails "$why"
}

# fetch_cut_off: who is killed while a program is written does not leave it for the next.
fetch_cut_off()
{
	local why='' out=$job/selftests/build/conformance
	chosen fetch-cut-off || return 0
	plant_fetch 'exit 1' '[[ $* != *.t* ]] || { echo ne >test/accept.t; kill -KILL $PPID; }'
	! fetch || why='passes'
	script "$job/bin/make" 'for t; do [[ $t != *.t || -e test/$t ]] || echo new >"test/$t"; done'
	fetch || why='does not recover'
	[ "$(sort -u "$out/liburing"/*.t 2>>"$log")" = new ] || why='a part of a program is installed'
	verdict fetch-cut-off "$why"
}

# conforms LINE: a suite with this in its list "expected", of one test, "one", which passes.
conforms()
{
	rm -rf "$job"
	mkdir -p "$job/conformance" "$job/build/conformance"
	cp "$HPSOCK_TOP/selftests/conformance/lib.sh" "$job/conformance/"
	printf '%b\n' "$1" >"$job/conformance/expected"
	script "$job/conformance/planted.sh" 'suite=planted; . "$(dirname "$0")/lib.sh"; begin
run() { result "$1" "$2" 0 /dev/null; }
try tcp one; try hpsock one; finish'
	"$job/conformance/planted.sh" >"$log" 2>&1
}

# conformance_list: an entry of no test, or over nothing that there is, fails.
conformance_list()
{
	local why='' line
	chosen conformance-list || return 0
	conforms '# nothing' || why='fails without an entry'
	for line in 'both\tone' 'tpc\tone' 'hpsock \tone' 'hpsock\ttwo'; do
		! conforms "planted\t$line\tsymptom\treason" || why="passes with $line"
	done
	verdict conformance-list "$why"
}

# bound_of LINE...: what the benchmark "policy" would say of these results.
bound_of() { printf '%s\n' "$@" | LC_ALL=C awk -f "$HPSOCK_TOP/selftests/bench/lib.awk" -f "$HPSOCK_TOP/selftests/bench/bound.awk" >>"$log"; }

# bench_bound: only what has been measured is within the bound.
bench_bound()
{
	local why=''
	chosen bench-bound || return 0
	: >"$log"
	bound_of '@column a an A' 'copy a 10.0' 'auto a 9.6' || why='fails within it'
	! bound_of '@column a an A' 'copy a 10.0' 'auto a 9.4' || why='passes behind it'
	! bound_of || why='passes without anything'
	! bound_of '@column a an A' || why='passes without results'
	! bound_of '@column a an A' '@column b a B' 'copy a 1' 'auto a 1' 'copy b 1' || why='passes with a half'
	! bound_of '@column a an A' 'copy a 1' 'auto a nan' || why='passes with nan'
	! bound_of '@column a an A' 'copy a nan' 'auto a 1' || why='passes with nan of the copy'
	! bound_of '@column a an A' 'copy a 0' 'auto a 1' || why='passes with nothing in no time'
	verdict bench-bound "$why"
}

# bench_program COMMAND...: run_program with that done before, in a subshell as "measure" does it.
bench_program()
(
	top=$job server=192.0.2.1 HPSOCK_JOB=$job
	export LC_ALL=C
	. "$HPSOCK_TOP/selftests/bench/programs.sh"
	eval "$1"
	run_program "${@:2}"
)

# bench_serve: a server that ends is not waited for, nor asked; each has a port of its own.
bench_serve()
{
	local why='' begin=$SECONDS port='program_iperf3() { echo $program_port; }'
	chosen bench-serve || return 0
	rm -rf "$job"
	script "$job/tools/hpsock_run" 'echo cannot bind; exit 1'
	! bench_program 'client() { echo asked; }' redis-get 1024 3 >"$log" 2>&1 || why='passes'
	[ $((SECONDS - begin)) -lt 50 ] || why='waits'
	! grep -q asked "$log" || why='asks'
	grep -q 'cannot bind' "$log" || why='does not say what it said'
	[ "$(bench_program "$port" iperf3 1 1 2>&1)" != "$(bench_program "$port" iperf3 1 1 2>&1)" ] ||
		why='two have the same port'
	verdict bench-serve "$why"
}

# bench_nginx: a file that did not come is not one that came fast.
bench_nginx()
{
	local why='' served='serve() { :; }'
	chosen bench-nginx || return 0
	rm -rf "$job"
	mkdir -p "$job/selftests"
	cp -r "$HPSOCK_TOP/selftests/demo" "$job/selftests/"
	bench_program "$served; client() { printf '0.1\n0.1\n0.1\n'; }" nginx 1000000 3 >"$log" 2>&1 || why='fails'
	grep -qx -e '- 10.0' "$log" || why='is not 10 MB/s'
	! bench_program "$served; client() { printf '0.1\n0.1\n'; }" nginx 1000000 3 >"$log" 2>&1 || why='passes'
	verdict bench-nginx "$why"
}

# plant_install: install.sh with a lock and a policy of its own, and an apt-get and a dpkg that
# write down what they are asked for; its update lasts until install.sh has been told to end,
# if it will be.
plant_install()
{
	rm -rf "$job"
	mkdir "$job"
	sed "s|^lock=.*|lock=$job/lock|; s|^policy=.*|policy=$job/policy|" "$VM/install.sh" >"$job/install.sh"
	script "$job/bin/apt-get" "echo apt-get \"\$@\" >>$job/asked
[[ \$* != *\ update ]] || timeout $patience sh -c 'while [ -e $job/untold ]; do sleep 0.1; done'"
	script "$job/bin/dpkg" "echo dpkg \"\$@\" >>$job/asked"
}

# install_told WHEN [PACKAGE]: install.sh is told to end once this is true; what it
# returns.
install_told()
{
	local pid when=$1
	touch "$job/untold"
	PATH=$job/bin:$PATH bash "$job/install.sh" "${@:2}" >"$log" 2>&1 &
	pid=$!
	comes_true "$when"
	kill "$pid"
	rm "$job/untold"
	ends "$pid" || { kill -KILL "$pid"; echo 'goes on' >>"$log"; }
	wait "$pid"
}

# install_ended: who is told to end while it updates installs nothing after that, and does
# not wait for a lock.
install_ended()
{
	local why='' status=0 holder
	chosen install-ended || return 0
	plant_install
	PATH=$job/bin:$PATH bash "$job/install.sh" one >"$log" 2>&1 || why='cannot install'
	grep -q 'apt-get .*install .*one' "$job/asked" || why='does not install'
	rm "$job/asked"
	install_told "grep -qs update $job/asked" one || status=$?
	[ $status -eq 130 ] || why="status $status with a package"
	! grep -q 'dpkg\|install' "$job/asked" || why='goes on after the update'
	rm "$job/asked"
	status=0
	install_told "grep -qs update $job/asked" || status=$?
	[ $status -eq 130 ] || why="status $status without packages"
	# One that has to wait.
	flock "$job/lock" sleep 300 &
	holder=$!
	comes_true "! flock -n '$job/lock' true"
	status=0
	install_told "grep -qs waiting $log" one || status=$?
	pkill -P $holder
	wait $holder
	[ $status -eq 130 ] || why="status $status from waiting"
	verdict install-ended "$why"
}

# lists COMMAND...: a function of vm/check for the planted lists.
lists()
{
	local HPSOCK_TOP=$job SKIPS=$job/selftests/skips log=$job/log
	"$@"
}

# plant_lists: those of skips and of flaky tests, and a step 0 that ran three programs.
plant_lists()
{
	local programs=$job/log/0/programs
	rm -rf "$job"
	mkdir -p "$programs" "$job/selftests"
	echo 'ok 1 whole.hpsock.a # SKIP none' >"$programs/01.stream_whole.log"
	echo 'ok 1 io.hpsock.far_away # SKIP no' >"$programs/02.stream_io:io.hpsock.far_away.log"
	printf 'not ok 1 io.hpsock.near\n# Expected 1\n' >"$programs/03.stream_io:near.log"
	echo 'NOT OK stream_io:near: 0 passed, 1 failed, 0 skipped, 1 s' >"$job/log/0.log"
	printf '6.12\trxe\t%s\n' 'stream_io	io.hpsock.far_away	no' 'stream_io	io.hpsock.other	no' \
		'stream_whole	whole.hpsock.a	none' 'stream_whole	whole.hpsock.gone	none' >"$job/selftests/skips"
	echo "stream_io io.hpsock.near $(date -d tomorrow +%F) Expected 1" >"$job/selftests/flaky"
}

# lists_some_tests: a program of which some tests ran is listed by its name alone.
lists_some_tests()
{
	local why=''
	chosen lists-some-tests || return 0
	plant_lists
	lists skips_unexpected 0 6.12 rxe >"$log"
	[ ! -s "$log" ] || why='does not expect what is listed'
	sed -i '1d' "$job/selftests/skips"
	lists skips_unexpected 0 6.12 rxe >>"$log"
	grep -q '6.12	rxe	stream_io	io.hpsock.far_away	no$' "$log" || why='expects what is not listed'
	lists skips_update 0 6.12 rxe
	cat "$job/selftests/skips" >>"$log"
	[ "$(cut -f 4 "$job/selftests/skips" | paste -sd' ')" = 'io.hpsock.far_away io.hpsock.other whole.hpsock.a' ] ||
		why='writes another list'
	[ "$(lists flaky_step 0 10 true)" = 1 ] || why='does not excuse what is flaky'
	verdict lists-some-tests "$why"
}

suites suites-fail 'echo no network; exit 9' '^-- fetch.sh: no network' '^-- fetch.sh: status 9'
suites suites-in-silence 'exit 1' '^-- fetch.sh: status 1'
suites suites-too-late 'exit 124' '^-- fetch.sh: apt-get waits' '^-- fetch.sh: status 124'
suites_there
suites_interrupted
fetch_ended
fetch_beside
fetch_fails
fetch_cut_off
conformance_list
bench_bound
bench_serve
bench_nginx
install_ended
lists_some_tests
