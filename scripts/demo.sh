# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart demo: latency and bandwidth, and proof of what carried them.
# UNIMEM_DEMO_PROVIDER=tcp shows the same over another libfabric provider
# (without the counters, which only unimem has).

DEMO_PROVIDER=${UNIMEM_DEMO_PROVIDER:-unimem}

# demo_run LOG STATS PROGRAM ARGS... ; runs as a step's command
demo_run()
{
	local stats=$1
	shift

	# shellcheck source=/dev/null
	. "$BUILD/env.sh"
	export FI_PROVIDER=$DEMO_PROVIDER
	export FI_UNIMEM_STATS=$stats
	mpirun -n 2 "$@"
}

# stat_of FILE KEY : one value of a counter line
stat_of()
{
	tr ' ' '\n' <"$1" | awk -F= -v k="$2" '$1 == k { print $2; exit }'
}

# Bytes that rank $2 sent, by the bench's own word in log $1
demo_sent() { sed -n "s/^# sent_bytes_rank$2 //p" "$1"; }

demo_show()
{
	local f key

	say
	say "What carried these bytes, by the provider's own counters:"
	for f; do
		printf ' '
		for key in hal profile board if pid tx_msgs tx_bytes \
			   rx_msgs rx_bytes; do
			printf ' %s=%s' "$key" "$(stat_of "$f" "$key")"
		done
		printf '\n'
	done
}

# demo_covers A B SENT0 SENT1 : counter file A can be rank 0 and B rank 1
demo_covers()
{
	[ "$(stat_of "$1" tx_bytes)" -ge "$3" ] &&
	[ "$(stat_of "$2" rx_bytes)" -ge "$3" ] &&
	[ "$(stat_of "$2" tx_bytes)" -ge "$4" ] &&
	[ "$(stat_of "$1" rx_bytes)" -ge "$4" ]
}

# demo_prove NAME STATS : the counters of both processes cover, in each
# direction, what the benchmark says it sent. (A counter file does not say
# which rank it is.)
demo_prove()
{
	local log=$LOGS/demo-$1.log files sent0 sent1

	files=("$2"/*.stats)
	if ! [ -e "${files[0]}" ] || [ ${#files[@]} -ne 2 ]; then
		die "$1: not two counter files in ${2#"$TOP"/}:" \
			"the bytes did not go over unimem alone"
	fi
	demo_show "${files[@]}"
	sent0=$(demo_sent "$log" 0) sent1=$(demo_sent "$log" 1)
	[ -n "${sent0:+$sent1}" ] ||
		die "$1: no '# sent_bytes_rankN' lines in ${log#"$TOP"/}"
	demo_covers "${files[0]}" "${files[1]}" "$sent0" "$sent1" ||
	demo_covers "${files[1]}" "${files[0]}" "$sent0" "$sent1" ||
		die "$1: the counters are below what the benchmark sent:" \
			"$sent0 bytes from rank 0, $sent1 from rank 1"
	note "counted at both ends: the $sent0 bytes that rank 0 sent and" \
		"the $sent1 of rank 1"
}

# demo_bench NAME TITLE PROGRAM ARGS...
demo_bench()
{
	local name=$1 title=$2 stats=$BUILD/demo/$1
	shift 2

	rm -rf "$stats"
	mkdir -p "$stats"
	STEP_LIMIT=1800 step "demo-$name" "$title" \
		"mpirun failed or hung: . build/env.sh, then mpirun -n 2 $*; \
FI_LOG_LEVEL=info says more, unimem_info shows a job that hangs." \
		demo_run "$stats" "$@"
	say
	cat "$LOGS/demo-$name.log"
	if [ "$DEMO_PROVIDER" = unimem ]; then
		demo_prove "$name" "$stats"
	else
		note "(over $DEMO_PROVIDER, not unimem: no counters to show)"
	fi
	say
}

demo()
{
	if [ "$DEMO_PROVIDER" = unimem ]; then
		build_all
	else
		build_mpi
	fi
	demo_bench lat "latency, mpirun -n 2, 0 B to 4 MiB" \
		"$BUILD/bench/unm_lat"
	demo_bench bw "bandwidth, mpirun -n 2, 1 B to 4 MiB" \
		"$BUILD/bench/unm_bw"
	say "Now yours:"
	say "  . build/env.sh"
	say "  mpicc -O2 hello.c -o hello && mpirun -n 4 ./hello"
}
