# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What a newcomer does first, as tests: libfabric's own tools, MPICH's choice
# of settings, the demo's proof that unimem carried the bytes.

SMOKE_OK=0 SMOKE_BAD=0 SMOKE_SKIPPED=0

# smoke_one NAME COMMAND...
smoke_one()
{
	local name=$1 out rc=0
	shift

	out=$(timeout --kill-after=5 900 "$BASH" "$TOP/scripts/step" \
		"$@" 2>&1 </dev/null) || rc=$?
	if [ "$rc" -eq 0 ]; then
		SMOKE_OK=$((SMOKE_OK + 1))
		say "ok - $name"
	else
		SMOKE_BAD=$((SMOKE_BAD + 1))
		say "not ok - $name # exit $rc"
		printf '%s\n' "$out" | tail -n 20 | sed 's/^/#   /'
	fi
}

smoke_listed() { fi_info -p unimem | grep '^provider: unimem'; }
smoke_info()   { unimem_info --version; }

# Every parameter of the manual and no other, by both commands it names, with
# one set: fi_info prints zero bytes around its value. (FI_UNIMEM_POINT is there
# in builds with fault points only.)
smoke_params()
{
	local how want

	export FI_UNIMEM_SPIN=2000
	want=$(sed -n 's/^\.It Ev \(FI_UNIMEM_[A-Z0-9_]*\).*/\1/p' \
		"$TOP/man/fi_unimem.7" | grep -vx FI_UNIMEM_POINT |
		LC_ALL=C sort)
	for how in -e "-g FI_UNIMEM"; do
		# shellcheck disable=SC2086 # two words
		diff <(printf '%s\n' "$want") <(fi_info $how |
			grep -a FI_UNIMEM |
			sed -n 's/^# \(FI_UNIMEM_[A-Z0-9_]*\):.*/\1/p' |
			grep -vx FI_UNIMEM_POINT | LC_ALL=C sort)
	done
}

smoke_listens()
{
	grep -q "$(printf ':%04X 00000000:0000 0A' "$1")" /proc/net/tcp
}

# smoke_pingpong [SERVER CLIENT] : every size with data checks, over loopback
smoke_pingpong()
{
	local port server rc=0
	local args=(-p unimem -e rdm -c -S all)

	# Ports below those that the kernel gives away by itself.
	for _ in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 10000))
		! smoke_listens "$port" || continue
		"${1:-fi_pingpong}" "${args[@]}" -B "$port" &
		server=$!
		while kill -0 "$server" 2>/dev/null &&
		      ! smoke_listens "$port"; do
			sleep 0.05
		done
		! kill -0 "$server" 2>/dev/null || break
	done
	("${2:-fi_pingpong}" "${args[@]}" -P "$port" 127.0.0.1) || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || :
	wait "$server" && return "$rc"
}

# MPICH uses the provider in its native modes, with no setting.
smoke_native()
{
	local out want

	out=$(MPIR_CVAR_DEBUG_SUMMARY=1 mpirun -n 2 "$BUILD/bench/unm_lat" \
		-m 0:0 -i 10 -x 0)
	printf '%s\n' "$out"
	for want in AV_TABLE TAGGED AM RMA ATOMICS; do
		grep -qE "MPIDI_OFI_ENABLE_$want: +1" <<<"$out"
	done
	for want in VIRT_ADDRESS ALLOCATED PROV_KEY; do
		grep -qE "MPIDI_OFI_ENABLE_MR_$want: +0" <<<"$out"
	done
}

# MPICH on the lean libfabric, and on the system's where a user asks for it
smoke_libfabric()
{
	local on mpi=$BUILD/mpich/lib/libmpi.so.12

	on=$(libfabric_of "$mpi")
	echo "by default: $on"
	! libfabric_have || [ "$on" -ef "$BUILD/libfabric/lib/libfabric.so.1" ]
	export LD_LIBRARY_PATH=$BUILD/libfabric-system
	on=$(libfabric_of "$mpi")
	echo "with LD_LIBRARY_PATH: $on"
	! [ "$on" -ef "$BUILD/libfabric/lib/libfabric.so.1" ]
	mpirun -n 2 "$BUILD/bench/unm_lat" -c -m 0:64K -i 20 -x 2
}

# The demo in short, counters compared.
smoke_carried()
{
	local stats=$BUILD/demo/smoke-$1

	rm -rf "$stats"
	mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats mpirun -n 2 "$BUILD/bench/unm_$1" -t 0.02 |
		tee "$LOGS/demo-smoke-$1.log"
	demo_prove "smoke-$1" "$stats"
}

# smoke_counters DIR TX:RX... : a counter file for each, and what they are to
# prove: that rank 0 sent 1000 bytes and rank 1 sent 300
smoke_counters()
{
	local dir=$1 n=0 pair
	shift

	rm -rf "$dir"
	mkdir -p "$dir"
	printf '# sent_bytes_rank%s\n' '0 1000' '1 300' >"$dir/demo-proof.log"
	for pair; do
		n=$((n + 1))
		echo "hal=emu tx_bytes=${pair%:*} rx_bytes=${pair#*:}" \
			>"$dir/$n.stats"
	done
}

# The demo fails, each time in one line, if a byte less arrives than was sent
# (in either direction, at either end), or a process is missing or too many.
smoke_proof()
{
	local LOGS=$BUILD/demo/smoke-proof pairs

	for pairs in "1000:300 300:1000" "300:1000 1000:300" "2000:400 300:1000"
	do
		# shellcheck disable=SC2086 # words
		smoke_counters "$LOGS" $pairs
		demo_prove proof "$LOGS"
	done
	for pairs in "999:300 300:1000" "1000:299 300:1000" \
		     "1000:300 299:1000" "1000:300 300:999" "0:0 0:0" \
		     "1000:1000 0:0" "1000:300" "" "1000:300 300:1000 0:0"; do
		# shellcheck disable=SC2086 # words
		smoke_counters "$LOGS" $pairs
		echo "counters $pairs:"
		! (demo_prove proof "$LOGS") 2>"$LOGS/said" ||
			die "they prove enough"
		cat "$LOGS/said"
		[ "$(wc -l <"$LOGS/said")" -eq 1 ]
	done
	smoke_counters "$LOGS" 1000:300 300:1000
	: >"$LOGS/demo-proof.log"
	! (demo_prove proof "$LOGS") || die "a benchmark that sent nothing"
}

# The benches, by messages, at as many ranks as a laptop has none of the cores
# for
smoke_ranks()
{
	MPIR_CVAR_CH4_OFI_SHARED_COLL=0 \
		mpirun -n "$1" "$BUILD/bench/unm_coll" -c -m 8:64K -i 10 -x 2
	mpirun -n "$1" "$BUILD/bench/unm_mbw_mr" -c -m 1:64K -i 5 -x 1
}

# smoke_messages [NAME=VALUE...] : how many messages some broadcasts of 64 KiB
# among 16 ranks take, by the provider's own counters
smoke_messages()
{
	local stats=$BUILD/demo/smoke-tables

	rm -rf "$stats"
	mkdir -p "$stats"
	env UNM_COLL=bcast MPIR_CVAR_CH4_OFI_SHARED_COLL=0 \
		FI_UNIMEM_STATS="$stats" "$@" mpirun -n 16 \
		"$BUILD/bench/unm_coll" -m 64K:64K -i 5 -x 0 >"$stats/log"
	ompi_sum "$stats" tx_msgs
}

# The tables of build/env.sh are in use, and a user's own choice comes first.
smoke_tables()
{
	local own binomial ring
	local forced=MPIR_CVAR_BCAST_INTRA_ALGORITHM

	own=$(smoke_messages)
	binomial=$(smoke_messages $forced=binomial)
	ring=$(smoke_messages $forced=scatter_ring_allgather)
	echo "messages: $own, binomial $binomial, ring $ring"
	[ "$own" -gt 0 ] && [ "$own" -eq "$binomial" ] &&
		[ "$own" -lt "$ring" ]
	! [ "$own" -eq "$(smoke_messages \
		MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=)" ]
}

# One-sided calls of RANKS by MPICH, every result checked
smoke_onesided()
{
	local stats=$BUILD/demo/smoke-onesided-$1 out

	rm -rf "$stats"
	mkdir -p "$stats"
	mpicc -std=gnu11 -O2 -g -Wall -Wextra -o "$stats/onesided" \
		"$TOP/test/mpi/onesided.c"
	out=$(FI_UNIMEM_STATS=$stats MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS=0 \
		mpirun -n "$1" "$stats/onesided")
	printf '%s\n' "$out"
	onesided_prove "$stats" "$1" "$out"
}

# The same in memory that ranks share: by copies and instructions of MPICH; and
# with ranks that leave them to the provider, on the same words at the same time
smoke_mapped()
{
	local one=$BUILD/demo/smoke-onesided-2/onesided
	local off=(-env MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS 0)

	mpirun -n 4 "$one"
	mpirun -n 2 "${off[@]}" "$one" : -n 2 "$one"
}

# Stores are complete after a flush, an unlock or a sync, in shared windows and
# others
smoke_flush()
{
	local flush=$BUILD/demo/smoke-flush n

	mpicc -std=gnu11 -O2 -Wall -Wextra -o "$flush" "$TOP/test/mpi/flush.c"
	for n in 0 1; do
		MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS=$n mpirun -n 2 "$flush" |
			grep -x "flush: right"
	done
}

# MPI_Iprobe() with a full completion queue
smoke_probe()
{
	local probe=$BUILD/demo/smoke-probe

	mpicc -std=gnu11 -O2 -Wall -Wextra -o "$probe" "$TOP/test/mpi/probe.c"
	FI_UNIMEM_CQ_SIZE=64 mpirun -n 4 "$probe" | grep -x "probe: right"
}

# smoke_program NAME ARGUMENT... : one of test/mpi among ranks of a node, with
# MPICH's own access to shared windows and without: it says that it is right
smoke_program()
{
	local program=$BUILD/demo/smoke-$1 name=$1 n
	shift

	mkdir -p "$BUILD/demo"
	mpicc -std=gnu11 -O2 -Wall -Wextra -o "$program" "$TOP/test/mpi/$name.c"
	for n in ${SMOKE_MAPPED:-0 1}; do
		MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS=$n \
			mpirun -n 3 "$program" "$@" | grep -x "$name: right"
	done
}

# smoke_accumulate TYPE : the same with accumulates that lose none; then with
# ranks that use MPICH's own access, the provider's, and that of the owner only
smoke_accumulate()
{
	local program=$BUILD/demo/smoke-accumulate
	local off=(-env MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS 0)
	local ask=("${off[@]}" -env FI_UNIMEM_ALIAS 0)

	smoke_program accumulate 10000 "$1"
	mpirun -n 3 "$program" 500 "$1" : -n 1 "${off[@]}" "$program" 500 "$1" \
		: -n 2 "${ask[@]}" "$program" 500 "$1" |
		grep -x "accumulate: right"
}

# Each rank has a process group, and all share the session of their proxy:
# mpich-patches/hydra-session.patch says why.
smoke_session()
{
	local ids

	# shellcheck disable=SC2016 # the rank's shell
	ids=$(mpirun -n 4 sh -c 'cut -d " " -f 5,6 /proc/$$/stat')
	echo "process groups and sessions: $ids"
	[ "$(cut -d ' ' -f 1 <<<"$ids" | sort -u | wc -l)" -eq 4 ] &&
		[ "$(cut -d ' ' -f 2 <<<"$ids" | sort -u | wc -l)" -eq 1 ]
}

# A rank that fails after its job was continued: mpirun says so.
smoke_continued()
{
	local job proxy='' rc=0 file=$BUILD/demo/continued

	mkdir -p "$BUILD/demo"
	rm -f "$file"
	# shellcheck disable=SC2016 # the inner shell's dollar
	mpirun -n 1 sh -c 'until [ -e "$0" ]; do sleep 0.1; done; exit 3' \
		"$file" &
	job=$!
	until [ -n "$proxy" ] && pgrep -x -P "$proxy" sh; do
		kill -0 "$job"
		sleep 0.1
		proxy=$(pgrep -P "$job" hydra_pmi_proxy) || :
	done
	kill -CONT "$proxy"
	touch "$file"
	wait "$job" || rc=$?
	echo "exit code $rc"
	[ "$rc" -eq 3 ]
}

# smoke_coll_messages COLLECTIVE FROM : of 50 calls by 4 ranks that go through
# shared memory from that one on (0: none)
smoke_coll_messages()
{
	local stats=$BUILD/demo/smoke-coll/$1-$2

	mkdir -p "$stats"
	MPIR_CVAR_CH4_OFI_SHARED_COLL=$2 FI_UNIMEM_STATS=$stats UNM_COLL=$1 \
		mpirun -n 4 "$BUILD/bench/unm_coll" -m 8:8 -i 50 -x 0 \
		>"$stats.log"
	ompi_sum "$stats" tx_msgs
}

# smoke_coll N : N random sequences of collectives, others at each call, by
# messages, and N each through shared memory from the first and from the eighth
# collective on; each collective sends few messages then
smoke_coll()
{
	local stats=$BUILD/demo/smoke-coll from seed _ name by shared

	rm -rf "$stats"
	mkdir -p "$stats"
	mpicc -std=gnu11 -O2 -Wall -Wextra -o "$stats/coll" \
		"$TOP/test/mpi/coll.c"
	for from in 0 1 8; do
		for _ in $(seq "$1"); do
			seed=$((RANDOM * 32768 + RANDOM))
			echo "sequence $seed, shared from $from"
			MPIR_CVAR_CH4_OFI_SHARED_COLL=$from \
				mpirun -n $((3 + seed % 11)) "$stats/coll" \
				1000 "$seed" |
				grep -x "coll: 1000 calls right"
		done
	done
	for name in bcast reduce allreduce allgather alltoall; do
		by=$(smoke_coll_messages "$name" 0)
		shared=$(smoke_coll_messages "$name" 1)
		echo "$name: $by messages, shared $shared"
		[ $((4 * shared)) -lt "$by" ]
	done
}

# A rank that is killed among such collectives ends those of all others
smoke_coll_kill()
{
	local program=$BUILD/demo/coll_kill out

	mkdir -p "$BUILD/demo"
	mpicc -std=gnu11 -O2 -Wall -Wextra -o "$program" \
		"$TOP/test/mpi/coll_kill.c"
	# shellcheck disable=SC2016 # the inner shell's dollar
	out=$(MPIR_CVAR_CH4_OFI_SHARED_COLL=1 \
		mpirun -disable-auto-cleanup -n 5 sh -c \
		'trap "" USR1; "$0"; sleep 1' "$program") || :
	echo "$out"
	[ "$(grep -c ': a process failed$' <<<"$out")" -eq 4 ]
}

# A C++ program: build/env.sh makes mpicxx that of this MPICH
smoke_cxx()
{
	local stats=$BUILD/demo/smoke-cxx

	[ "$(command -v mpicxx)" -ef "$BUILD/mpich/bin/mpicxx" ] ||
		die "mpicxx is $(command -v mpicxx)"
	rm -rf "$stats"
	mkdir -p "$stats"
	mpicxx -O2 -Wall -o "$stats/ring" "$TOP/test/mpi/ring.cpp"
	FI_UNIMEM_STATS=$stats mpirun -n 3 "$stats/ring" |
		grep -x "ring: right"
	ompi_busy "$stats" tx_msgs 3
}

# A program with the Unimem interfaces, built as the README says
smoke_interfaces()
{
	local dir=$BUILD/demo/smoke-interfaces flags name

	mkdir -p "$dir"
	for name in gsas unimem-rdma unimem-mailbox; do
		flags=$(pkg-config --cflags --libs "$name")
		printf '#include <%s>\nint main(void) { return 0; }\n' \
			"unimem/$(smoke_header "$name")" >"$dir/$name.c"
		# shellcheck disable=SC2086 # words
		cc -Wl,--no-as-needed "$dir/$name.c" $flags \
			-Wl,-rpath,"$PREFIX/lib" -o "$dir/$name"
		"$dir/$name"
	done
}

# The header of a module of pkg-config
smoke_header()
{
	case $1 in
	gsas)		echo gsas.h ;;
	unimem-rdma)	echo unim_dma.h ;;
	*)		echo mailbox.h ;;
	esac
}

# An unmodified program with large heap blocks in dmable memory: the receiver
# has read most of its long messages from there
smoke_malloc()
{
	local stats=$BUILD/demo/smoke-malloc read long

	rm -rf "$stats"
	mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats mpirun -n 2 env \
		LD_PRELOAD="$PREFIX/lib/libunimem-malloc.so" \
		"$BUILD/bench/unm_bw" -c -m 256K:4M -i 20 -x 2
	long=$(ompi_sum "$stats" tx_rendezvous)
	read=$(ompi_sum "$stats" rx_dmable)
	echo "long messages: $long, read from dmable memory: $read"
	[ "$((2 * read))" -gt "$long" ]
}

# On the register model, a rank on each of four boards
smoke_sim()
{
	export FI_UNIMEM_HAL=sim FI_UNIMEM_BOARDS=4
	# by mailboxes: boards share no memory
	export MPIR_CVAR_CH4_OFI_SHARED_COLL=0

	smoke_pingpong fi_pingpong fi_pingpong
	UNM_COLL=allreduce mpirun -n 4 "$BUILD/bench/unm_coll" -c -m 8:64K \
		-i 20 -x 2
}

# The line that count_line reads
smoke_end()
{
	say "$SMOKE_OK passed, $SMOKE_BAD failed, $SMOKE_SKIPPED skipped"
	[ "$SMOKE_BAD" -eq 0 ]
}

smoke()
{
	local n

	check_env
	smoke_one "fi_info lists the provider" smoke_listed
	smoke_one "fi_info -e lists its parameters" smoke_params
	smoke_one "unimem_info runs" smoke_info
	smoke_one "fi_pingpong, all sizes, data checked" smoke_pingpong
	smoke_one "MPICH in native mode" smoke_native
	smoke_one "MPICH on the lean libfabric and on the system's" \
		smoke_libfabric
	smoke_one "a C++ program, built by mpicxx" smoke_cxx
	smoke_one "programs with the Unimem interfaces" smoke_interfaces
	smoke_one "large heap blocks in dmable memory" smoke_malloc
	smoke_one "the program of the next" native_build
	for n in create allocate dynamic; do
		smoke_one "MPI one-sided, windows by $n: native" \
			native_window "$n"
	done
	smoke_one "no native RMA is seen" \
		native_not MPIR_CVAR_CH4_OFI_ENABLE_RMA put:1024
	smoke_one "no native atomics are seen" \
		native_not MPIR_CVAR_CH4_OFI_ENABLE_ATOMICS fop:8
	smoke_one "latency: unimem carried the bytes" smoke_carried lat
	smoke_one "bandwidth: unimem carried the bytes" smoke_carried bw
	smoke_one "MPICH's tables for collectives" smoke_tables
	smoke_one "collectives of 6 ranks, by messages" env \
		MPIR_CVAR_CH4_OFI_SHARED_COLL=0 mpirun -n 6 \
		"$BUILD/bench/unm_coll" -c -m 8:64K -i 10 -x 2
	for n in 4 8 16; do
		smoke_one "allreduce and bandwidth of $n ranks" smoke_ranks "$n"
	done
	for n in 2 4; do
		smoke_one "one-sided calls of $n ranks" smoke_onesided "$n"
	done
	smoke_one "windows that ranks share: no call of the provider" \
		native_mapped
	smoke_one "windows that ranks share, with and without the provider" \
		smoke_mapped
	smoke_one "MPI_Iprobe with a full completion queue" smoke_probe
	smoke_one "a flush, an unlock and a sync complete stores" smoke_flush
	smoke_one "a rank that polls makes progress" smoke_program poll
	SMOKE_MAPPED=1 smoke_one "operations beyond a window" \
		smoke_program range
	for n in i d; do
		smoke_one "accumulates of every length ($n)" smoke_accumulate \
			"$n"
	done
	smoke_one "the ranks of a node share a session" smoke_session
	smoke_one "a rank that fails after SIGCONT" smoke_continued
	smoke_one "collectives through shared memory" smoke_coll 3
	smoke_one "a rank killed in a collective" smoke_coll_kill
	smoke_one "fi_pingpong and 4 ranks on the model" smoke_sim
	smoke_one "counters that prove too little" smoke_proof
	smoke_end
}
