# SPDX-License-Identifier: GPL-2.0
# What programs that nobody changed make of large sends, in MB/s.  Sourced by "measure", in
# the guest.
# shellcheck shell=bash
# shellcheck disable=SC2154 # top and server come from there

program_port=6800
program_pid=

# next_port: one that none of these programs has had.  Each runs in a subshell, hence the file.
next_port() {
	[ ! -e "$HPSOCK_JOB/program_port" ] || program_port=$(<"$HPSOCK_JOB/program_port")
	program_port=$((program_port + 1))
	echo $program_port >"$HPSOCK_JOB/program_port"
}

# serve COMMAND...: PORT stands for its port, where it listens when this returns.  Fails, and
# says what it said, if it ends or does not listen.
serve() {
	"$top/tools/hpsock_run" "${@//PORT/$program_port}" >"$program_dir/log" 2>&1 &
	program_pid=$!
	timeout 100 sh -c "until grep -q ' $program_port .* 10 [0-9]* [0-9]* ' /proc/net/hpsock
		do kill -0 $program_pid || exit; sleep 0.1; done" 2>/dev/null || {
		cat "$program_dir/log" >&2
		return 1
	}
}

client() { timeout 400 "$top/tools/hpsock_run" "$@"; }

# "end.sum_received" of its JSON.
program_iperf3() { # BYTES COUNT
	serve iperf3 -s -1 -p PORT || return
	client iperf3 -J -c "$server" -p $program_port -l "$1" -n $(($1 * $2)) |
		awk '/"sum_received"/ { found = 1 }
			found && /"bits_per_second"/ { printf "- %.1f\n", $2 / 8e6; exit }'
}

program_redis() { # COMMAND BYTES COUNT
	serve redis-server --port PORT --bind "$server" --save '' --protected-mode no || return
	# There has to be something to get.
	[ "$1" = set ] || client redis-benchmark -h "$server" -p $program_port -d "$2" -n 1 -c 1 -t set \
		-q >"$program_dir/out" || return
	client redis-benchmark -h "$server" -p $program_port -d "$2" -n "$3" -c 4 -t "$1" --csv |
		awk -F '"' -v bytes="$2" '$2 ~ /^(SET|GET)$/ { printf "- %.1f\n", $4 * bytes / 1e6 }'
}

# One connection, in which each file is asked for when the one before has come.  One that did not
# come ends it: it would count as a fast one.
program_nginx() { # BYTES COUNT
	chmod 755 "$program_dir"
	mkdir -p "$program_dir/logs" "$program_dir/www"
	head -c "$1" /dev/urandom >"$program_dir/www/page"
	sed "s/@PORT@/$program_port/" "$top/selftests/demo/nginx.conf" >"$program_dir/nginx.conf"
	serve nginx -p "$program_dir" -c "$program_dir/nginx.conf" -e "$program_dir/logs/error.log" || return
	client curl -sS -f --fail-early -w '%{time_total}\n' -o /dev/null \
		"http://$server:$program_port/page?[1-$2]" |
		awk -v bytes="$1" -v count="$2" '{ time += $1 }
			END { if (NR != count) exit 1; printf "- %.1f\n", NR * bytes / time / 1e6 }'
}

run_program() { # iperf3|nginx|redis-COMMAND BYTES COUNT
	local name=${1%%-*} program_dir status=0

	program_dir=$(mktemp -d)
	next_port
	if [ "$name" = "$1" ]; then
		"program_$name" "${@:2}" || status=1
	else
		"program_$name" "${1#*-}" "${@:2}" || status=1
	fi
	kill "$program_pid" 2>/dev/null || true
	wait "$program_pid" || true
	rm -rf "$program_dir"
	return $status
}
