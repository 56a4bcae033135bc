# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Debian's Open MPI over unimem: messages through its mtl/ofi, one-sided calls
# through its btl/ofi, and the counters' proof that unimem carried them. Two
# "nodes" on this machine (test/mpi/as-node): on one, Open MPI would keep its
# windows in shared memory of its own.

OMPI=$BUILD/bench/openmpi		# bench/run's place for its programs

ompi_build()
{
	local p

	make -s -C "$TOP/bench" MPICC=mpicc.openmpi OUT="$OMPI"
	for p in onesided twosided; do
		mpicc.openmpi -std=gnu11 -O2 -g -Wall -Wextra -o "$OMPI/$p" \
			"$TOP/test/mpi/$p.c"
	done
}

# The ways through Open MPI
OMPI_MTL="--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include unimem"
OMPI_BTL="--mca btl self,ofi --mca btl_ofi_provider_include unimem"
OMPI_OSC="--mca osc rdma --mca osc_rdma_btls ofi"
OMPI_NODES="--do-not-resolve --mca oob_tcp_if_include lo"
OMPI_NODES+=" --host unm-a:2,unm-b:2 --map-by node"

# ompi_run STATS RANKS WAY PROGRAM ARGS...
ompi_run()
{
	local stats=$1 ranks=$2 way=$3 as=()
	shift 3

	rm -rf "$stats"
	mkdir -p "$stats"
	[ "$(id -u)" -ne 0 ] || as=(--allow-run-as-root)
	# shellcheck disable=SC2086 # words
	FI_UNIMEM_STATS=$stats mpirun.openmpi "${as[@]}" --oversubscribe \
		--bind-to none --mca plm_rsh_agent "$TOP/test/mpi/as-node" \
		$way -n "$ranks" "$@"
}

# ompi_sum STATS KEY : over all counter files
ompi_sum()
{
	local f sum=0

	for f in "$1"/*.stats; do
		[ -e "$f" ] || continue
		sum=$((sum + $(stat_of "$f" "$2")))
	done
	echo "$sum"
}

# ompi_busy STATS KEY RANKS : KEY has counted in exactly so many files
ompi_busy()
{
	local f n=0

	for f in "$1"/*.stats; do
		[ -e "$f" ] || continue
		[ "$(stat_of "$f" "$2")" -eq 0 ] || n=$((n + 1))
	done
	[ "$n" -eq "$3" ] || die "$n of $3 ranks have $2 in ${1#"$TOP"/}"
}

# ompi_pair WAY PROGRAM ARGS... : two ranks; both directions compared
ompi_pair()
{
	local way=$1 name=ompi-$2 program=$2 stats=$BUILD/demo/ompi-$2
	shift 2

	ompi_run "$stats" 2 "$way" "$OMPI/$program" -c "$@" |
		tee "$LOGS/demo-$name.log"
	demo_prove "$name" "$stats"
}

ompi_lat()  { ompi_pair "$OMPI_MTL" unm_lat -m 0:1M -i 20 -x 2; }
ompi_bw()   { ompi_pair "$OMPI_MTL" unm_bw -m 1:256K -i 4 -x 1; }

# ompi_all PROGRAM ARGS... : four ranks; each message sent was received
ompi_all()
{
	local program=$1 stats=$BUILD/demo/ompi-$1 tx rx
	shift

	ompi_run "$stats" 4 "$OMPI_MTL" "$OMPI/$program" "$@"
	ompi_busy "$stats" tx_msgs 4
	tx=$(ompi_sum "$stats" tx_msgs) rx=$(ompi_sum "$stats" rx_msgs)
	echo "counted: $tx messages sent, $rx received"
	[ "$tx" -eq "$rx" ]
}

ompi_rate()      { ompi_all unm_mbw_mr -c -m 1:16K -i 2 -x 1; }
ompi_coll()      { ompi_all unm_coll -c -m 8,1K,64K -i 10 -x 2; }
ompi_twosided()  { ompi_all twosided; }

# Open MPI's own protocol for messages, which reads and writes large ones
ompi_ob1()
{
	local stats=$BUILD/demo/ompi-ob1

	ompi_run "$stats" 2 "--mca pml ob1 $OMPI_BTL --mca btl_ofi_mode 2" \
		"$OMPI/unm_lat" -c -m 0:256K -i 10 -x 2
	ompi_busy "$stats" tx_msgs 2
	ompi_busy "$stats" tx_onesided 2
}

# ompi_onesided RANKS AMO ARGS... : AMO 1, sums and exchanges are the fabric's
# atomic operations; 0, all are made of its compare-and-swap
ompi_onesided()
{
	local stats=$BUILD/demo/ompi-onesided-$1-$2 ranks=$1 amo=$2 out
	local way="$OMPI_MTL $OMPI_BTL $OMPI_OSC $OMPI_NODES"
	shift 2

	out=$(ompi_run "$stats" "$ranks" \
		"$way --mca osc_rdma_acc_use_amo $amo" \
		"$OMPI/onesided" -r 20 "$@")
	printf '%s\n' "$out"
	onesided_prove "$stats" "$ranks" "$out"
}

# onesided_prove STATS RANKS OUTPUT : the counters cover what the program says
# its ranks put and got
onesided_prove()
{
	local want moved

	want=$(sed -n 's/^# onesided_bytes //p' <<<"$3")
	moved=$(ompi_sum "$1" tx_onesided_bytes)
	echo "counted: $moved bytes; put and got: $want"
	ompi_busy "$1" tx_onesided "$2"
	[ "$want" -gt 0 ] && [ "$moved" -ge "$want" ]
}

ompi()
{
	check_env
	smoke_one "Open MPI: the programs build" ompi_build
	smoke_one "Open MPI, mtl/ofi: latency" ompi_lat
	smoke_one "Open MPI, mtl/ofi: bandwidth" ompi_bw
	smoke_one "Open MPI, mtl/ofi: rate of 4 ranks" ompi_rate
	smoke_one "Open MPI, mtl/ofi: collectives of 4 ranks" ompi_coll
	smoke_one "Open MPI, mtl/ofi: probes, cancels and the like" \
		ompi_twosided
	smoke_one "Open MPI, btl/ofi: latency" ompi_ob1
	if "$TOP/test/mpi/as-node"; then
		smoke_one "Open MPI, btl/ofi: one-sided, 2 ranks" \
			ompi_onesided 2 1 -s
		smoke_one "Open MPI, btl/ofi: one-sided, 4 ranks" \
			ompi_onesided 4 1 -s
		smoke_one "Open MPI, btl/ofi: one-sided, by compare-and-swap" \
			ompi_onesided 4 0
	else
		say "SKIP: ompi-onesided"
		SMOKE_SKIPPED=$((SMOKE_SKIPPED + 1))
	fi
	smoke_end
}
