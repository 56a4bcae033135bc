# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# MPI between hosts, as tests: network namespaces (scripts/cluster.sh) whose
# cables lose packets, delay them, and are pulled. Each test is a function that
# runs in a shell of its own (smoke_one).

HOSTS_MADE=$BUILD/demo/hosts		# the programs, and files of the tests
HOSTS_JOB=			# process of a job; empty once it was waited for

hosts_build()
{
	local p

	rm -rf "$HOSTS_MADE"
	mkdir -p "$HOSTS_MADE"
	for p in answer twosided onesided accumulate wait; do
		mpicc -std=gnu11 -O2 -w -o "$HOSTS_MADE/$p" \
			"$TOP/test/mpi/$p.c"
	done
}

# 8 ranks of an unmodified MPI program on 4 hosts: the answer that they give on
# one.
hosts_answer()
{
	mpirun -n 8 "$HOSTS_MADE/answer" >"$HOSTS_MADE/one"
	cluster_mpirun 1-4 2 "$HOSTS_MADE/answer" >"$HOSTS_MADE/four"
	cat "$HOSTS_MADE/one" "$HOSTS_MADE/four"
	grep -q '^answer .* 0$' "$HOSTS_MADE/one"
	cmp "$HOSTS_MADE/one" "$HOSTS_MADE/four"
}

# hosts_checked PROGRAM : a rank on each of 4 hosts; it checks its results
hosts_checked() { cluster_mpirun 1-4 1 "$HOSTS_MADE/$1"; }

# Ranks of both hosts add to the same numbers.
hosts_accumulate()
{
	cluster_mpirun 1-2 3 "$HOSTS_MADE/accumulate" 100 |
		grep -x "accumulate: right"
}

# Each endpoint refuses some calls and delays some packets, those for peers on
# other hosts, too: the same results.
hosts_faulty()
{
	local stats=$HOSTS_MADE/faulty

	rm -rf "$stats"
	mkdir "$stats"
	export FI_UNIMEM_FAULT=eagain=50,delay=20:100,seed=1
	export FI_UNIMEM_STATS=$stats
	hosts_checked twosided
	hosts_checked onesided
	cat "$stats"/*.stats | cut -d ' ' -f 1-5
	[ "$(cat "$stats"/*.stats | grep -c '^hal=fault(.*+net')" = 8 ]
}

# The counters of the endpoints and of the cables, as ./quickstart cluster shows
# them
hosts_carried()
{
	local before

	before=("$(cluster_sent 1)" "$(cluster_sent 2)")
	rm -rf "$BUILD/demo/cluster-short"
	mkdir -p "$BUILD/demo/cluster-short"
	FI_UNIMEM_STATS=$BUILD/demo/cluster-short cluster_mpirun 1-2 1 \
		"$BUILD/bench/unm_lat" -m 8,1M -t 0.02 |
		tee "$LOGS/demo-cluster-short.log"
	cluster_prove short "${before[@]}"
}

# The same over IPv6: the answer, the counters, and IPv4 carries nothing but the
# launcher's own messages.
hosts_ipv6()
{
	local i before was is now log=$LOGS/demo-cluster-ipv6.log

	mpirun -n 8 "$HOSTS_MADE/answer" >"$HOSTS_MADE/one"
	cluster_mpirun6 1-4 2 "$HOSTS_MADE/answer" >"$HOSTS_MADE/four"
	cat "$HOSTS_MADE/one" "$HOSTS_MADE/four"
	cmp "$HOSTS_MADE/one" "$HOSTS_MADE/four"
	rm -rf "$BUILD/demo/cluster-ipv6"
	mkdir -p "$BUILD/demo/cluster-ipv6"
	before=("$(cluster_sent 1)" "$(cluster_sent 2)")
	was=("$(cluster_octets 1)" "$(cluster_octets 2)")
	FI_UNIMEM_STATS=$BUILD/demo/cluster-ipv6 cluster_mpirun6 1-2 1 \
		"$BUILD/bench/unm_lat" -m 8,1M -t 0.02 | tee "$log"
	is=("$(cluster_octets 1)" "$(cluster_octets 2)")
	cluster_prove ipv6 "${before[@]}"
	for i in 0 1; do
		now=$(demo_sent "$log" "$i")
		echo "host $((i + 1)): IPv4 and IPv6, before ${was[i]}," \
			"after ${is[i]}; the benchmark sent $now"
		[ $((${is[i]#* } - ${was[i]#* })) -ge "$now" ]
		[ $((${is[i]% *} - ${was[i]% *})) -lt $((now / 10)) ]
	done
}

# ---- Bad networks --------------------------------------------------------

# hosts_job [EACH] : the answer again and again, by so many ranks (1) on each of
# 4 hosts, until hosts_job_end; it has begun when this returns. The process is
# HOSTS_JOB.
hosts_job()
{
	rm -f "$HOSTS_MADE/enough" "$HOSTS_MADE/job"
	cluster_mpirun 1-4 "${1:-1}" "$HOSTS_MADE/answer" "$HOSTS_MADE/enough" \
		>"$HOSTS_MADE/job" &
	HOSTS_JOB=$!
	EXIT_HOOKS+=(hosts_job_kill)
	hosts_moving
}

# After a failure
hosts_job_kill()
{
	[ -z "$HOSTS_JOB" ] || ! kill -0 "$HOSTS_JOB" 2>/dev/null ||
		kill_group "$HOSTS_JOB"
}

# Wait until the job has exchanged some rounds more.
hosts_moving()
{
	local until=$(($(cluster_sent 2) + 8000000))

	while [ "$(cluster_sent 2)" -lt "$until" ]; do
		kill -0 "$HOSTS_JOB"
		sleep 0.05
	done
}

# The job ends by itself, with the answer of one host.
hosts_job_end()
{
	local rc=0

	: >"$HOSTS_MADE/enough"
	wait "$HOSTS_JOB" || rc=$?
	HOSTS_JOB=
	[ "$rc" = 0 ]
	mpirun -n 4 "$HOSTS_MADE/answer" | cmp - "$HOSTS_MADE/job"
}

# The cable of host 2 is out, for a second, and host 2 sends nothing.
hosts_cut()
{
	local before

	before=$(cluster_sent 2)
	sleep 1
	[ $(($(cluster_sent 2) - before)) -lt 100000 ]
	if cluster_in "$(cluster_address 2)" ip -o link show net0 |
			grep LOWER_UP; then
		return 1
	fi
}

# Pull the cable of a host for a second, at the switch and then at the host.
# FI_UNIMEM_NET_DEAD_MS has room for a machine that is busy meanwhile.
hosts_pulled()
{
	local address

	export FI_UNIMEM_NET_DEAD_MS=10000
	address=$(cluster_address 2)
	hosts_job
	cluster_in switch ip link set port2 down
	hosts_cut
	cluster_in switch ip link set port2 up
	hosts_moving
	cluster_in "$address" ip link set net0 down
	hosts_cut
	cluster_in "$address" ip link set net0 up
	hosts_moving
	hosts_job_end
}

# hosts_neighbour replace WORDS... | del : what hosts 1 and 2 know of each other
hosts_neighbour()
{
	local word=$1
	shift

	cluster_in "$(cluster_address 1)" ip neigh "$word" \
		"$(cluster_address 2)" dev net0 "$@"
	cluster_in "$(cluster_address 2)" ip neigh "$word" \
		"$(cluster_address 1)" dev net0 "$@"
}

# Two hosts lose each other while each rank waits for one of the other host,
# with nothing to send: the job ends by the error of the receives. Ranks that
# mpirun does not reach end once it does.
hosts_lost()
{
	local waits=$HOSTS_MADE/waits ended=0 i pids

	rm -rf "$waits"
	mkdir "$waits"
	cluster_mpirun 1-2 2 "$HOSTS_MADE/wait" "$waits" \
		>"$HOSTS_MADE/lost" 2>&1 &
	HOSTS_JOB=$!
	EXIT_HOOKS+=(hosts_job_kill)
	for i in 0 1 2 3; do
		until [ -s "$waits/$i" ]; do
			kill -0 "$HOSTS_JOB"
			sleep 0.05
		done
	done
	mapfile -t pids < <(cat "$waits"/[0-3])
	hosts_neighbour replace lladdr 02:00:00:00:00:99 nud permanent
	wait "$HOSTS_JOB" || ended=$?
	HOSTS_JOB=
	hosts_neighbour del
	[ "$ended" != 0 ] || return
	for i in "${pids[@]}"; do
		while kill -0 "$i" 2>/dev/null; do
			sleep 0.05
		done
	done
	cat "$HOSTS_MADE/lost" "$waits"/*.error
	grep -q 'MPI_Recv.*failed' "$waits"/*.error
	grep -q 'from any source go on waiting' "$waits"/*.error
}

# hosts_cable WORDS... : tc's words for the cables of all hosts
hosts_cable()
{
	local i

	for i in 1 2 3 4; do
		cluster_in "$(cluster_address "$i")" \
			tc qdisc replace dev net0 root "$@" || return
	done
}

# The queueing discipline that this kernel has for bad cables
hosts_weather()
{
	local n=("unshare" --net tc qdisc add dev lo root)

	if "${n[@]}" netem delay 1ms loss 1% reorder 20% 2>/dev/null; then
		echo netem
	elif "${n[@]}" tbf rate 1mbit burst 32kb latency 9ms 2>/dev/null; then
		echo tbf
	fi
}

# hosts_slow KIND : packets that are late, lost and out of order (netem), or
# that wait and are dropped (tbf)
hosts_slow()
{
	if [ "$1" = netem ]; then
		hosts_cable netem delay 5ms 1ms loss 1% reorder 20%
	else
		hosts_cable tbf rate 200mbit burst 32kb latency 5ms
	fi
	hosts_answer
}

# ---- unimem_info ---------------------------------------------------------

# hosts_shown I : the answer of host I has its two ranks, each on a board of the
# host. (All hosts share one /proc, so an answer has other processes, too.)
hosts_shown()
{
	local host board pid boards=
	host=$(cluster_address "$1")

	while read -r board pid; do
		! [ "/proc/$pid/ns/net" -ef \
			"/proc/$(cluster_pid "$host")/ns/net" ] ||
			boards+=" $board"
	done < <(awk -v h="$host" '$1 == h && $5 ~ /^answer/ {
			sub(":.*", "", $2)
			print $2, $3
		}' "$HOSTS_MADE/info" | sort -n)
	echo "$host: boards$boards"
	[ "$boards" = " $((2 * $1 - 2)) $((2 * $1 - 1))" ]
}

# unimem_info finds the processes of a job of 8 ranks on 4 hosts, whose boards
# are numbered through: two on each host, with a rank on each board.
hosts_info()
{
	local i

	for i in 1 2 3 4; do
		echo "$(cluster_address "$i") boards=2"
	done >"$HOSTS_MADE/list"
	FI_UNIMEM_NET_HOSTS=$HOSTS_MADE/list hosts_job 2
	unimem_info --all-hosts="$HOSTS_MADE/list" --limit 600 \
		--rsh "$TOP/scripts/on-host" >"$HOSTS_MADE/info"
	cat "$HOSTS_MADE/info"
	for i in 1 2 3 4; do
		hosts_shown "$i"
	done
	hosts_job_end
}

# ---- GSAS ----------------------------------------------------------------

# hosts_served N : each of N hosts has a service for its board; wait 40 s for it
hosts_served()
{
	local i

	for ((i = 0; i < 20; i++)); do
		FI_UNIMEM_NET=net0 \
			"$TOP/scripts/on-host" "$(cluster_address 1)" \
			gsasctl boards >"$HOSTS_MADE/boards" || :
		! grep -qx "$1 of $1 boards have a service" \
			"$HOSTS_MADE/boards" || break
		kill -0 "$HOSTS_JOB"
		sleep 2
	done
	cat "$HOSTS_MADE/boards"
	[ "$i" -lt 20 ]
}

# Ranks of mpirun on 4 hosts share memory with no key of the job, and so do the
# next ones; the log has no word of other jobs.
hosts_gsas()
{
	local i

	unset GSAS_JOB
	export FI_UNIMEM_NET_KEY=$HOSTS_MADE/unimem.key
	export FI_UNIMEM_NET_HOSTS=$HOSTS_MADE/hosts
	for i in 1 2 3 4; do
		cluster_address "$i"
	done >"$FI_UNIMEM_NET_HOSTS"
	(
		umask 077
		head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' \
			>"$FI_UNIMEM_NET_KEY"
	)
	mpicc -std=gnu11 -O2 -Wall -I"$PREFIX/include" \
		-o "$HOSTS_MADE/shared" "$TOP/test/mpi/shared.c" \
		-L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -lgsas
	cluster_mpirun 1-4 1 gsasd --all >"$HOSTS_MADE/services" 2>&1 &
	HOSTS_JOB=$!
	EXIT_HOOKS+=(hosts_job_kill)
	hosts_served 4
	for i in 1 2; do
		cluster_mpirun 1-4 2 "$HOSTS_MADE/shared" \
			>"$HOSTS_MADE/shared.out" 2>&1 ||
			echo "exit code $?"
		cat "$HOSTS_MADE/services" "$HOSTS_MADE/shared.out"
		grep -qx '8 ranks, 4 boards: 0 wrong' "$HOSTS_MADE/shared.out"
		if grep 'other jobs' "$HOSTS_MADE/shared.out"; then
			return 1
		fi
	done
	hosts_job_kill
	wait "$HOSTS_JOB" || :
	HOSTS_JOB=
}

# ---- Collectives ---------------------------------------------------------

# Random collectives of 8 ranks on 2 hosts: the ranks of each host share memory,
# and one of them exchanges messages with the other host: fewer than if all did
hosts_coll()
{
	local seed=$((RANDOM * 32768 + RANDOM)) from messages=()

	mpicc -std=gnu11 -O2 -Wall -o "$HOSTS_MADE/coll" "$TOP/test/mpi/coll.c"
	echo "sequence $seed"
	for from in 0 1; do
		rm -rf "$HOSTS_MADE/coll-stats"
		mkdir -p "$HOSTS_MADE/coll-stats"
		MPIR_CVAR_CH4_OFI_SHARED_COLL=$from \
			FI_UNIMEM_STATS=$HOSTS_MADE/coll-stats \
			cluster_mpirun 1-2 4 "$HOSTS_MADE/coll" 500 "$seed" |
			grep -x "coll: 500 calls right"
		messages+=("$(ompi_sum "$HOSTS_MADE/coll-stats" tx_msgs)")
	done
	echo "messages: ${messages[0]}, shared ${messages[1]}"
	[ "${messages[1]}" -lt "${messages[0]}" ]
}

# ---- Suites --------------------------------------------------------------

# hosts_begin : 4 hosts and the programs
hosts_begin()
{
	check_env
	EXIT_HOOKS+=(cluster_stop)
	cluster_start 4
	hosts_build
}

# hosts_unless_skipped NAME WHETHER TITLE COMMAND... : a test that is skipped if
# WHETHER is empty
hosts_unless_skipped()
{
	local name=$1 whether=$2
	shift 2

	if [ -n "$whether" ]; then
		smoke_one "$@"
	else
		SMOKE_SKIPPED=$((SMOKE_SKIPPED + 1))
		say "SKIPPED: hosts/$name"
	fi
}

# hosts_over_ipv6 : before a cable is pulled, which removes IPv6 addresses
hosts_over_ipv6()
{
	hosts_unless_skipped ipv6 "$(! cluster_has_ipv6 || echo yes)" \
		"8 ranks on 4 hosts over IPv6, its counters" hosts_ipv6
}

# The tests of ./quickstart check
hosts()
{
	hosts_begin
	smoke_one "8 ranks on 4 hosts, the answer of one host" hosts_answer
	smoke_one "two-sided calls of 4 hosts" hosts_checked twosided
	smoke_one "the counters of endpoints and cables" hosts_carried
	hosts_over_ipv6
	smoke_one "unimem_info shows a job on 4 hosts" hosts_info
	smoke_one "MPI and GSAS on 4 hosts, without a key of the job" hosts_gsas
	smoke_one "collectives of 8 ranks on 2 hosts" hosts_coll
	smoke_end
}

# Those of check-full: bad networks, too
hosts_all()
{
	local kind

	hosts_begin
	smoke_one "8 ranks on 4 hosts, the answer of one host" hosts_answer
	smoke_one "two-sided calls of 4 hosts" hosts_checked twosided
	smoke_one "one-sided calls of 4 hosts" hosts_checked onesided
	smoke_one "accumulates of two hosts" hosts_accumulate
	smoke_one "the same with faults injected" hosts_faulty
	smoke_one "the counters of endpoints and cables" hosts_carried
	hosts_over_ipv6
	smoke_one "unimem_info shows a job on 4 hosts" hosts_info
	smoke_one "MPI and GSAS on 4 hosts, without a key of the job" hosts_gsas
	smoke_one "collectives of 8 ranks on 2 hosts" hosts_coll
	smoke_one "a cable that is pulled for a second" hosts_pulled
	smoke_one "two hosts that lose each other" hosts_lost
	kind=$(hosts_weather)
	hosts_unless_skipped bad_cables "$kind" \
		"cables that lose and delay ($kind)" hosts_slow "$kind"
	smoke_end
}

# Prints why there can be no job on hosts; nothing if there can.
hosts_refusal()
{
	local why

	why=$(cluster_refusal)
	if [ -z "$why" ] && ! [ -e "$PREFIX/lib/unimem/libunimem-net.so" ]; then
		why="built without UCX or libsodium"
	fi
	[ -z "$why" ] || echo "$why"
}

# hosts_or_skip NAME COMMAND... : a job of check-full that needs hosts, or one
# test that is skipped
hosts_or_skip()
{
	local name=$1 why
	shift

	why=$(hosts_refusal)
	if [ -n "$why" ]; then
		say "SKIPPED: $name/hosts ($why)"
		say "0 passed, 0 failed, 1 skipped"
	else
		"$@"
	fi
}

# bench/hosts runs, and the data of its MPI programs are right; how fast is not
# judged. MPICH over UCX is left out: 8 ranks of it may not end on two
# processors.
hosts_bench()
{
	"$TOP/bench/hosts" --quick --timeout 300 --peers "unimem,unimem-alone,\
unimem-flat,ofi-tcp,ucx_perftest,fi-tcp,fi-rxm"
	say "1 passed, 0 failed, 0 skipped"
}

# The suite of ./quickstart check
check_hosts()
{
	local why

	why=$(hosts_refusal)
	if [ -n "$why" ]; then
		skip_suite hosts "$why"
	else
		suite hosts "MPI between hosts" count_line hosts
	fi
}
