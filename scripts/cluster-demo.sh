# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart cluster [N]: latency and bandwidth of MPI between hosts, which
# are network namespaces of this machine (scripts/cluster.sh), and proof of what
# carried the bytes.

# cluster_number TEXT : ends with a clear line unless it is a number of hosts
cluster_number()
{
	if ! [[ $1 =~ ^[0-9]{1,3}$ ]] || [ "$1" -lt 2 ] ||
			[ "$1" -gt "$CLUSTER_MOST" ]; then
		die "cluster $1: from 2 to $CLUSTER_MOST hosts"
	fi
}

# cluster_run STATS FIRST-LAST EACH PROGRAM ARGS... ; runs as a step's command
cluster_run()
{
	local stats=$1
	shift

	# shellcheck source=/dev/null
	. "$BUILD/env.sh"
	export FI_PROVIDER=unimem FI_UNIMEM_STATS=$stats
	cluster_mpirun "$@"
}

# cluster_sent I : bytes that the network interface of host I has sent
cluster_sent()
{
	"$TOP/scripts/on-host" "$(cluster_address "$1")" \
		cat /sys/class/net/net0/statistics/tx_bytes
}

# cluster_step NAME TITLE FIRST-LAST PROGRAM ARGS... : a rank on each of these
# hosts
cluster_step()
{
	local name=$1 title=$2 hosts=$3 stats=$BUILD/demo/cluster-$1
	shift 3

	rm -rf "$stats"
	mkdir -p "$stats"
	STEP_LIMIT=1800 step "demo-cluster-$name" "$title" \
		"mpirun failed or hung: docs/cluster.md says what to do." \
		cluster_run "$stats" "$hosts" 1 "$@"
}

# cluster_prove NAME BEFORE1 BEFORE2 [HOST] : the endpoints counted the bytes
# that the benchmark sent, they had peers on other hosts, and the kernel counted
# the bytes on the cables of HOST (1) and the next one; BEFORE1 and BEFORE2 are
# cluster_sent of before.
cluster_prove()
{
	local name=cluster-$1 first=${4:-1} f i before sent on=()

	demo_prove "$name" "$BUILD/demo/$name"
	for f in "$BUILD/demo/$name"/*.stats; do
		[[ $(stat_of "$f" hal) == *+net ]] ||
			die "$name: no endpoint for other hosts in ${f#"$TOP"/}"
	done
	for i in 1 2; do
		before=$((i + 1))
		on[i]=$(($(cluster_sent $((first + i - 1))) - ${!before}))
		sent=$(demo_sent "$LOGS/demo-$name.log" $((i - 1)))
		[ "${on[i]}" -ge "$sent" ] ||
			die "$name: host $((first + i - 1)) sent ${on[i]}" \
				"bytes on its cable, the benchmark $sent"
	done
	note "counted by the kernel on the cables: ${on[1]} bytes from host" \
		"$first and ${on[2]} from host $((first + 1))"
}

# cluster_table : the figures of both logs, a line for each size
cluster_table()
{
	printf '%-12s %14s %18s\n' "# bytes" "latency (us)" "bandwidth (MB/s)"
	awk '
		$1 !~ /^[0-9]+$/ { next }
		FNR == NR { latency[$1] = $2; next }
		{ printf "%-12d %14s %18s\n", $1, latency[$1], $2 }
	' "$LOGS/demo-cluster-lat.log" "$LOGS/demo-cluster-bw.log"
}

# cluster_pair : hosts 1 and 2
cluster_pair()
{
	local name program before
	local sizes=8,64,1K,8K,64K,1M,4M

	for name in lat:latency bw:bandwidth; do
		program=$BUILD/bench/unm_${name%:*}
		before=("$(cluster_sent 1)" "$(cluster_sent 2)")
		cluster_step "${name%:*}" "${name#*:} between hosts 1 and 2" \
			1-2 "$program" -m "$sizes" -t 0.5
		cluster_prove "${name%:*}" "${before[@]}"
	done
	say
	cluster_table
}

# cluster_neighbours N : each of the other hosts and the next one, in short
cluster_neighbours()
{
	local i name which before table figure

	table=$(printf '%-12s %16s %16s' "# hosts" "8 B (us)" "1 MiB (MB/s)")
	for ((i = 2; i < $1; i++)); do
		table+=$(printf '\n%-12s' "$i, $((i + 1))")
		for which in lat:8:latency bw:1M:bandwidth; do
			name=${which%%:*}-$i
			before=("$(cluster_sent "$i")"
				"$(cluster_sent $((i + 1)))")
			figure=${which#*:}
			cluster_step "$name" \
				"${which##*:} between hosts $i and $((i + 1))" \
				"$i-$((i + 1))" \
				"$BUILD/bench/unm_${which%%:*}" \
				-m "${figure%:*}:${figure%:*}" -t 0.1
			cluster_prove "$name" "${before[@]}" "$i"
			figure=$(awk '$1 ~ /^[0-9]+$/ { print $2 }' \
				"$LOGS/demo-cluster-$name.log")
			table+=$(printf ' %16s' "$figure")
		done
	done
	say
	say "$table"
}

# Exits with 77 where there can be no hosts.
cluster()
{
	local n=${1:-2} why

	cluster_number "$n"
	n=$((10#$n))			# 08 is no octal number
	[ "$(id -u)" -ne 0 ] || packages_need cluster
	why=$(cluster_refusal)
	if [ -n "$why" ]; then
		warn "cluster: $why"
		exit 77
	fi
	build_all
	[ -e "$PREFIX/lib/unimem/libunimem-net.so" ] ||
		die "cluster: built without UCX (libucx-dev, libsodium-dev)"
	say "==> making $n hosts: network namespaces at a bridge"
	EXIT_HOOKS+=(cluster_stop)
	cluster_start "$n"
	note "10.78.0.1 to 10.78.0.$n, removed at the end"
	cluster_pair
	if [ "$n" -gt 2 ]; then
		cluster_neighbours "$n"
		say
		cluster_step coll "collectives of $n hosts" "1-$n" \
			"$BUILD/bench/unm_coll" -c -m 8,64K -t 0.1
		cat "$LOGS/demo-cluster-coll.log"
	fi
	cluster_stop
	say
	say "The hosts are gone. On machines of yours: docs/cluster.md"
}
