# SPDX-License-Identifier: GPL-2.0
# Start, bound and judge virtual machines.  Sourced by vm/run and vm/pair.
# shellcheck shell=bash
# shellcheck disable=SC2154 # HPSOCK_TOP, VM and the options come from the caller
#
# A machine has a folder $job/NODE with what guest/job reads and writes, and
#	console		the kernel's messages
#	output		the command's output
#	reports		what the judge found
#	known		how each report begins that it left out
# $job/shared is common to the machines of a job.

is_uml() { case $kernel in uml|umlfast) true;; *) false;; esac; }

# How much slower than Debian's kernel; waits in the guest are scaled by it.  A busy
# or slow computer is told of by HPSOCK_SLOW in the environment.
slowness()
{
	local n=1
	case $kernel in
	smp|kcsan) n=10;;
	uml) n=3;;
	esac
	echo $((n * ${HPSOCK_SLOW:-1}))
}

# The options of what follows, with their defaults.
kernel=6.12	# as kernel.sh names it
kernel_dir=	# what kernel.sh made of it
timeout=120	# seconds for the command
memory=		# MiB
smp=2		# CPUs
icount=		# count instructions instead of time
net=veth	# shape, as net.sh names it
dev=rxe		# RDMA devices, as net.sh names them
ko=		# the module
test_ko=	# the one for selftests/mm_protect
delay_ko=	# the one that widens the windows of races
params=		# its parameters
noload=		# leave loading it to the command
quick=		# no leak scan
expect=		# console lines that are no fault

# machine_setup NODE COMMAND...: write down what the guest is to do.
machine_setup()
{
	local dir=$job/$1 arg
	mkdir -p "$dir" "$job/shared"
	cat >"$dir/env" <<-END
		HPSOCK_TOP=$(printf %q "$HPSOCK_TOP")
		HPSOCK_KERNEL=$kernel
		HPSOCK_DEV=$dev
		HPSOCK_SLOW=$(slowness)
		VM_BUSY=${HPSOCK_SLOW:-1}
		HPSOCK_KO=${ko:+/run/job/$1/hpsock.ko}
		HPSOCK_TEST_KO=${test_ko:+/run/job/$1/hpsock_protect_test.ko}
		HPSOCK_DELAY_KO=${delay_ko:+/run/job/$1/hpsock_delay.ko}
		VM_HOSTNAME=hp$1
		VM_NET=$net
		VM_TIMEOUT=$timeout
		VM_ICOUNT=$icount
		VM_QUICK=$quick
		VM_NOLOAD=$noload
		VM_PARAMS=$(printf %q "$params")
	END
	# The module may be built anew while the machine boots.
	[ -z "$ko" ] || cp "$ko" "$dir/hpsock.ko"
	[ -z "$test_ko" ] || cp "$test_ko" "$dir/hpsock_protect_test.ko"
	[ -z "$delay_ko" ] || cp "$delay_ko" "$dir/hpsock_delay.ko"
	shift
	printf '%q ' "$@" >"$dir/command"
	# The guest has temporary folders of its own: bring files named there along.
	for arg; do
		case $arg in
		/tmp/*|/run/*|/var/tmp/*|/dev/shm/*)
			if [ -f "$arg" ]; then
				mkdir -p "$dir/files${arg%/*}"
				cp -a "$arg" "$dir/files$arg"
			fi;;
		esac
	done
}

# The kernel's watchdogs are as patient as the computer is slow. What a processor says that
# dies of an NMI, a breakpoint or a double fault comes last to the console, after a thousand
# lines of tasks have been said: the buffer has to hold it all.
guest_args()
{
	local busy=${HPSOCK_SLOW:-1}
	echo "loglevel=7 log_buf_len=1M panic=-1 oops=panic panic_print=1 unknown_nmi_panic" \
		"kasan_multi_shot" \
		"kunit.enable=1 rcupdate.rcu_cpu_stall_timeout=$((30 * busy)) watchdog_thresh=$((10 * busy))" \
		"workqueue.watchdog_thresh=$((30 * busy))" \
		"${append:-}" "hps.node=$1 hps.top=$HPSOCK_TOP hps.kernel=$kernel_dir hps.cache=$HPSOCK_CACHE"
}

# Seconds for all of it, and for a machine to say why it did not end in them.
machine_time() { echo $((timeout * (1 + ${icount:-0}) + 60 + 10 * $(slowness))); }
last_words() { echo $((20 + 5 * $(slowness))); }

# The machine is killed when its time is over, and when we die of whatever.
leash()
{
	local bound=$(($(machine_time) + $(last_words)))
	exec setpriv --pdeathsig TERM timeout -s KILL "$bound" setpriv --pdeathsig KILL "$@"
}

# machine_ask NODE: let a machine whose time is over tell on the console what it is at. The
# keys of SysRq need a kernel that still listens. An NMI reaches one that does not, too: it
# panics, and "panic_print" has it list its tasks as SysRq-t does. User Mode Linux takes a
# signal for a fault of its own, and shows the registers. Of a machine that does not even
# take an NMI, QEMU tells where its processors are; and if QEMU hangs, the host where it is.
machine_ask()
{
	local dir=$job/$1 pid=pid_$1
	: >"$dir/hung"
	echo 'hps: no end in time, what it is at:' >>"$dir/console"
	if is_uml; then
		pkill -SEGV -P "${!pid}" || true
	else
		{
			echo 'hps: its processors:'
			monitor "$1" 'info registers -a' | grep -a '^CPU#\|[RE]IP=\|[RE]SP='
			echo 'hps: threads of the machine, state, function of the host, jiffies used as a program:'
			machine_threads "$(pgrep -P "${!pid}" || echo "${!pid}")"
		} >>"$dir/console" 2>&1 || true
		monitor "$1" nmi >/dev/null || true
	fi
}

# monitor NODE COMMAND: give QEMU's monitor a command.
monitor() { echo "$2" | timeout 10 socat -t 5 - "UNIX-CONNECT:$job/$1/monitor"; }

# machine_threads PID: what each thread of a process is at.
machine_threads()
{
	local task
	for task in /proc/"$1"/task/[0-9]*; do
		# A name may have spaces.
		echo "$(<"$task/comm") $(sed 's/.*) //' "$task/stat" | awk '{ print $1 }')" \
			"$(<"$task/wchan") $(sed 's/.*) //' "$task/stat" | awk '{ print $12 }')"
	done
}

# machine_watch NODE: ask it in time.
machine_watch()
{
	local pid=pid_$1 status=0
	timeout "$(machine_time)" tail -f /dev/null --pid="${!pid}" || status=$?
	[ $status -ne 124 ] || machine_ask "$1"
}

# find_qemu: the command into "qemu": the one of setup.sh, where that is needed.
find_qemu()
{
	local own=$HPSOCK_CACHE/qemu
	qemu=(qemu-system-x86_64)
	! "$own/usr/bin/qemu-system-x86_64" --version >/dev/null 2>&1 ||
		qemu=("$own/usr/bin/qemu-system-x86_64" -L "$own/usr/share/qemu"
			-L "$own/usr/share/seabios")
}

# qemu_version: which that is.
qemu_version()
{
	local -a qemu
	local version
	find_qemu
	version=$("${qemu[@]}" --version 2>/dev/null | sed -n '1s/.*version \([^ ]*\).*/\1/p')
	echo "QEMU ${version:-not found}"
}

# start_qemu NODE [NETDEV]
start_qemu()
{
	local dir=$job/$1 cpu=max,family=15,model=107,-erms,-fsrm,-la57
	local accel=tcg,thread=multi extra=()
	# QEMU before 10.0.3 follows a freed map of the memory when a guest with two processors
	# finds its PCI devices (qemu-project issue 3040), and dies of it or leaves the guest
	# hanging.  The map does not change where no device has memory of its own.
	local legacy=disable-modern=on,vectors=0
	local -a qemu
	find_qemu

	# erms, fsrm, fsrs and pclmulqdq are emulated byte by byte and bit by bit.  With
	# icount an instruction is an instruction, and pclmulqdq saves many.  Of that family
	# Linux knows that it copies well by words, as any processor of today does.
	! "${qemu[@]}" -cpu help | grep -qw fsrs || cpu+=,-fsrs
	if [ -n "$icount" ]; then
		accel=tcg
		smp=1
		extra+=(-icount "shift=0,sleep=off")
	else
		cpu+=,-pclmulqdq
	fi
	if [ -n "${2:-}" ]; then
		extra+=(-netdev "$2,id=n0" -device
			"virtio-net-pci,$legacy,romfile=,netdev=n0,host_mtu=9000,mac=$(mac "$1")")
	fi
	leash "${qemu[@]}" -name guest,debug-threads=on -M q35,usb=off,sata=off \
		-cpu "$cpu" -accel "$accel" -smp "$smp" -m "${memory:-1536}" \
		-nodefaults -no-reboot -display none \
		-kernel "$kernel_dir/image" -initrd "$kernel_dir/initramfs" \
		-chardev "file,id=console,path=$dir/console,append=on" -serial chardev:console \
		-monitor "unix:$dir/monitor,server=on,wait=off" \
		-chardev stdio,id=out,signal=off -serial chardev:out \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
		-device "virtio-9p-pci,$legacy,fsdev=root,mount_tag=rootfs" \
		-fsdev local,id=job,path="$job",security_model=none \
		-device "virtio-9p-pci,$legacy,fsdev=job,mount_tag=job" \
		-device "virtio-rng-pci,$legacy" "${extra[@]}" \
		-append "console=ttyS0 nokaslr $(guest_args "$1") hps.out=ttyS1"
}

# start_uml NODE [VECTOR_DEVICE]
start_uml()
{
	local dir=$job/$1 extra=()
	[ -z "${2:-}" ] || extra+=("$2,mac=$(mac "$1")")
	# The machine's memory is a file in TMPDIR.
	export TMPDIR=/dev/shm
	# shellcheck disable=SC2046 # several arguments
	leash env LD_PRELOAD="$kernel_dir/um_xstate.so" "$kernel_dir/image" mem="${memory:-1024}M" \
		root=/dev/root rootfstype=hostfs rootflags=/ ro \
		con=null con0=null,fd:3 ssl=null ssl0=null,fd:1 "${extra[@]}" \
		init="$VM/guest/init" hps.out=ttyS0 hps.hostjob="$job" \
		$(guest_args "$1") 3>>"$dir/console"
}

mac() { case $1 in a) echo 52:54:00:00:03:01;; *) echo 52:54:00:00:03:02;; esac; }

# machine_start NODE PREFIX [NETDEV]: boot; its output goes to ours, each line
# with the prefix.  Leaves the process numbers in pid_NODE and pipe_NODE.
machine_start()
{
	local dir=$job/$1 start=start_qemu
	! is_uml || start=start_uml
	mkfifo "$dir/pipe"
	: >>"$dir/console"
	if [ -n "$2" ]; then
		tee "$dir/output" <"$dir/pipe" | sed -u "s/^/$2/" &
	else
		tee "$dir/output" <"$dir/pipe" &
	fi
	declare -g "pipe_$1=$!"
	$start "$1" "${3:-}" </dev/null >"$dir/pipe" 2>"$dir/stderr" &
	declare -g "pid_$1=$!"
	machine_watch "$1" >/dev/null 2>&1 &
}

machine_wait()
{
	local pid=pid_$1 pipe=pipe_$1
	wait "${!pid}" 2>>"$job/$1/stderr" || echo $? >"$job/$1/exit"
	wait "${!pipe}" || true
	declare -g "pid_$1="
}

machine_kill()
{
	local pid=pid_$1
	[ -n "${!pid:-}" ] || return 0
	kill -KILL "${!pid}" 2>/dev/null || true
	# Or the shell would tell of its death.
	wait "${!pid}" 2>/dev/null || true
}

# machine_misread NODE: QEMU, before 8.1 above all, now and then goes on with a
# breakpoint that another processor has patched out of the code, and the guest's
# kernel dies of it ("Oops: int3").  This is no kernel's fault: boot once more.  Not once
# the command runs: what was found by then must not be lost.
machine_misread()
{
	awk '/hps: command starts/ { exit 1 }
		/int3: 0000 \[#/ { found = 1; exit }
		END { exit !found }' "$job/$1/console"
}

# What the kernel says when something is wrong.
REPORTS='BUG: |kernel BUG at|WARNING: |Oops[: ]|Kernel panic|general protection fault'
REPORTS+='|KASAN: |UBSAN: |ODEBUG: |refcount_t: |unreferenced object|INFO: task .* blocked'
REPORTS+='|rcu.*(stall|starved)|soft lockup|hard LOCKUP|workqueue lockup|double fault'
REPORTS+='|list_(add|del) corruption|page allocation failure|Bad page state|stack-protector'
REPORTS+='|Out of memory|Segfault with no mm|INFO: trying to register non-static key'

# Reports that are known and none of ours.  The siw of Linux 6.12 takes the
# callback lock of its TCP sockets for reading with softirqs enabled
# (siw_qp_llp_data_ready), so lockdep complains once TCP is used besides.  Its worker
# has been seen to wake who waits for an endpoint that was freed (siw_cep_set_free), in its
# worker and in rdma_connect(), which a thread of ours calls.  A packet may find a queue
# pair that is freed meanwhile: the rxe looks for it under RCU (rxe_pool_get_index), but
# ib_destroy_qp_user() waits for no grace period; it takes a virtual processor that does not
# run for a millisecond to see that.  (Another one, in rxe_sched_task(), the module avoids,
# see hps_qp_touched_late(), but not between a device and itself.)  The iw_cm forgets its
# copy of a hello that comes for an id that is being destroyed (cm_work_handler); the module
# makes no such copy.  Of the data races that KCSAN sees, only those count in which a
# function of the module is one of the two.
known()
{
	[ "$dev" != siw ] || echo 'clock-AF_INET|unreferenced object .*size 32.*48 50 53 31 01'
	[ "$dev" != siw ] || echo 'slab-use-after-free in [a-z_]*(spin|wake)[a-z_]*[+].*(Workqueue: siw_cm_wq|by task hpsock_ask/)'
	[ "$dev" != rxe ] || echo 'slab-use-after-free in rxe_pool_get_index'
	[ "$kernel" != kcsan ] || echo 'BUG: KCSAN: '
	[ -z "$expect" ] || echo "$expect"
}

# since_start FILE: what the kernel said since the guest runs our programs.  What
# it has to say about itself before, such as about a missing PCI bus, is no fault of ours.
# Nor is what it says when asked.
since_start() { tr -d '\r' <"$1" | sed '1,/hps: guest starts/d; /hps: no end in time/,$d'; }

# suspicious [FILE]: filter kernel messages.  A report lasts until the next one, at most
# 400 lines, of which the first 60 are printed; the known ones are left out, unless
# the module has a part in it other than to have called rdma_connect() or
# rdma_destroy_id(), to have been interrupted, or to have had another allocate and free
# what is used.  What each of those begins with goes into the file.
suspicious()
{
	awk -v reports="$REPORTS" -v known="$(known | paste -sd'|')" -v left_out="${1:-/dev/null}" '
		# Soft-iWARP has used what is freed, and that was no endpoint of its.
		function not_siws() {
			if (whole !~ /Workqueue: siw_cm_wq|by task hpsock_ask/ || whole !~ /Allocated by task/)
				return 0
			allocated = whole
			sub(/.*Allocated by task/, "", allocated)
			sub(/Freed by task.*/, "", allocated)
			return allocated !~ /siw_cep_alloc/
		}
		function flush() {
			ours = whole
			# What the stack still held of calls that are over is marked by "?", in User
			# Mode Linux every call.  The worker of siw calls nothing of the module: what
			# is seen of that below it has interrupted it, and is at work.
			if (whole !~ /Workqueue: siw_cm_wq/)
				gsub(/\? hps_[a-z_]+/, "", ours)
			# The locks that are held besides say neither whose report it is nor what about.
			gsub(/\n[^\n]* #[0-9]+: [^\n]*/, "", ours)
			about = ours
			# Who called these, the work and the rest of the stack, had no part in it.
			gsub(/Workqueue: [^\n]*/, "", ours)
			gsub(/ rdma_(connect|destroy_id)\+[^\n]*(\n[^\n]*\+0x[^\n]*)*/, "", ours)
			sub(/(<\/IRQ>|Allocated by task).*/, "", ours)
			# Whose calls they were does not matter, but who raced.
			if (whole ~ /KCSAN: /)
				sub(/\n.*/, "", ours)
			if (n && !(known != "" && about ~ known && ours !~ /hps_|planted/ && !not_siws())) {
				printf "%s", text
				if (++printed == 10)
					exit
			} else if (n) {
				sub(/\n.*/, "", text)
				print text >left_out
			}
			n = 0
			text = whole = ""
		}
		# User Mode Linux shows its registers, and then panics.
		/ Pid: [0-9]+, comm: / { registers = ""; shown = 1 }
		$0 ~ reports {
			flush()
			n = 1
			if (/Kernel panic/)
				text = whole = registers
			registers = ""
			shown = 0
		}
		shown && shown++ <= 20 { registers = registers $0 "\n" }
		n && n <= 60 { text = text $0 "\n" }
		n && n++ <= 400 { whole = whole $0 "\n" }
		END { flush() }'
}

# machine_reports NODE: collect what the kernel reported.
machine_reports()
{
	local dir=$job/$1
	since_start "$dir/console" | suspicious "$dir/known" >"$dir/reports"
	# The console shows warnings and worse, also those of a dying kernel.
	if [ ! -s "$dir/reports" ] && [ -s "$dir/dmesg" ] && [ ! -e "$dir/hung" ]; then
		since_start "$dir/dmesg" | suspicious "$dir/known" >"$dir/reports"
	fi
	[ ! -s "$dir/kmemleak" ] || suspicious <"$dir/kmemleak" >>"$dir/reports"
	# After a known report, of lockdep or of KASAN, there is no more of it.
	if [ -e "$dir/lockdep-off" ]; then
		if [ -s "$dir/known" ]; then
			say "hp$1: lockdep has stopped at a known fault that is not ours: $(head -n 1 "$dir/known")"
		else
			echo 'lockdep has switched itself off' >>"$dir/trouble"
		fi
	fi
}

# console_end LINES FILE: the last ones, but of the tasks that a dying kernel lists, of
# what a hanging one was asked, and of the boot where it went well.
console_end()
{
	tr -d '\r' <"$2" | awk '/hps: no end in time/ { exit }
		/hps: guest starts/ && !panic { n = 0 }
		/Kernel panic/ { panic = 1 }
		panic && /task:[^ ]* *state:/ { exit }
		{ line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }' | tail -n "$1"
}

# console_hung FILE: what a hanging kernel answered: where it was, and the tasks that are
# in the module.
console_hung()
{
	tr -d '\r' <"$1" | sed '1,/hps: no end in time/d' | awk '
		function flush() { if (n == 1 || task ~ /hps_/) printf "%s", task; task = "" }
		/task:[^ ]* *state:/ { flush(); n++ }
		{ task = task $0 "\n"; if (!n) n = 1 }
		END { flush() }' | head -n 120
}

# machine_judge NODE: print what is wrong and return the status:
# the command's, 124 after a timeout, 125 if the machine was not well.
machine_judge()
{
	local dir=$job/$1 status=''
	[ ! -s "$dir/status" ] || status=$(cat "$dir/status")
	machine_reports "$1"
	if [ -s "$dir/reports" ]; then
		say "hp$1: the kernel reported:"
		cat "$dir/reports" >&2
		return 125
	fi
	if [ -s "$dir/trouble" ]; then
		say "hp$1: $(cat "$dir/trouble")"
		return 125
	fi
	if [ -e "$dir/hung" ]; then
		say "hp$1: the machine did not end in time; end of the console:"
		console_end 30 "$dir/console" >&2
		say "hp$1: when asked what it was at:"
		console_hung "$dir/console" >&2
		return 124
	fi
	if [ -z "$status" ]; then
		say "hp$1: ended without a result; end of the console:"
		console_end 40 "$dir/console" >&2
		tail -n 5 "$dir/stderr" >&2
		return 125
	fi
	return "$status"
}
