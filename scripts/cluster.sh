# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Several hosts on one machine: network namespaces at a bridge. Used by
# ./quickstart cluster (scripts/cluster-demo.sh), by the tests of
# scripts/hosts.sh and, through scripts/with-hosts, by other tests and by
# benches.
#
# No namespace has a name. Each lives as long as its holder, a process that
# waits until every process that has the pipe "life" open for writing has ended:
# this shell, and what it starts. So nothing is left over if all are killed. The
# folder UNIMEM_CLUSTER has the pipe and a file "hosts" with a line
# "ADDRESS PID" for each host; the holder of the bridge is host "switch".
# scripts/on-host runs commands on a host.

CLUSTER_NET=10.78.0		# host i has the address CLUSTER_NET.i
CLUSTER_NET6=fd78:		# and CLUSTER_NET6:i, where the kernel has IPv6
# shellcheck disable=SC2034 # others check it
CLUSTER_MOST=16
CLUSTER_LIFE=

# Prints why there can be no hosts here; nothing if there can.
cluster_refusal()
{
	if [ "$(id -u)" -ne 0 ]; then
		echo "network namespaces need root (sudo -E)"
	elif ! have ip || ! have unshare || ! have nsenter; then
		echo "no ip(8), unshare(1) or nsenter(1):" \
			"apt-get install iproute2 util-linux"
	elif ! [ -e /proc/self/ns/net ]; then
		echo "this kernel has no network namespaces (CONFIG_NET_NS)"
	elif ! unshare --net true 2>/dev/null; then
		echo "no network namespace can be made here (a container" \
			"without CAP_SYS_ADMIN?)"
	elif ! unshare --net ip link add net0 type veth peer name net1 \
			2>/dev/null; then
		echo "this kernel has no virtual Ethernet (modprobe veth)"
	elif ! unshare --net ip link add br0 type bridge 2>/dev/null; then
		echo "this kernel has no bridge (modprobe bridge)"
	elif ! unshare --net --mount mount -t sysfs sysfs /sys \
			2>/dev/null; then
		echo "/sys cannot be mounted here (a container?)"
	fi
}

# cluster_pid HOST : the process that holds its namespace
cluster_pid() { awk -v h="$1" '$1 == h { print $2 }' "$UNIMEM_CLUSTER/hosts"; }

# cluster_address I : of host I
cluster_address() { printf '%s.%d\n' "$CLUSTER_NET" "$1"; }

cluster_address6() { printf '%s:%x\n' "$CLUSTER_NET6" "$1"; }

# cluster_in HOST COMMAND... : without a /sys of its own, see scripts/on-host
cluster_in()
{
	local pid

	pid=$(cluster_pid "$1")
	shift
	nsenter -t "$pid" --net "$@"
}

# cluster_enter I NAME COMMAND... : become COMMAND on host I, which has that
# name and the files of this mount namespace
cluster_enter()
{
	local pid
	pid=$(cluster_pid "$(cluster_address "$1")")
	shift

	# shellcheck disable=SC2016 # the inner shell's dollars
	exec nsenter -t "$pid" --net unshare --uts --mount sh -c '
		hostname "$1" && shift &&
		mount -t sysfs sysfs /sys && exec "$@"' sh "$@"
}

# cluster_hold HOST COMMAND... : a namespace, by a holder that runs COMMAND at
# its end. The holder is no child of this shell, as it outlives an exec.
cluster_hold()
{
	local host=$1 pid
	shift

	(
		# signals to the process group do not end it before COMMAND
		trap '' HUP INT TERM
		# opened here and now, while there is a writer
		exec <"$UNIMEM_CLUSTER/life"
		# shellcheck disable=SC2016 # the inner shell's dollars
		unshare --net sh -c 'cat; exec "$@"' sh "$@" \
			<&0 >/dev/null 2>&1 8>&- {CLUSTER_LIFE}>&- &
		echo "$host $!" >>"$UNIMEM_CLUSTER/hosts"
	)
	pid=$(cluster_pid "$host")
	while [ "/proc/$pid/ns/net" -ef /proc/self/ns/net ]; do
		sleep 0.01
	done
	[ -e "/proc/$pid/ns/net" ] || die "cannot make a network namespace"
}

# cluster_cable I : join host I to the switch
cluster_cable()
{
	local host i

	host=$(cluster_address "$1")
	cluster_in switch ip link add "port$1" type veth \
		peer name net0 netns "$(cluster_pid "$host")"
	cluster_in switch ip link set "port$1" master br0 up
	cluster_in "$host" ip link set lo up
	cluster_in "$host" ip addr add "$host/24" dev net0
	cluster_in "$host" ip addr add "$(cluster_address6 "$1")/64" \
		dev net0 nodad 2>/dev/null || :
	cluster_in "$host" ip link set net0 up
	for ((i = 0; i < 1000; i++)); do
		! cluster_in "$host" ip -o link show net0 |
			grep LOWER_UP >/dev/null || return 0
		sleep 0.01
	done
	die "the cable of $host has no carrier after 10 s"
}

# Have all hosts IPv6 addresses? (The kernel removes those of an interface that
# was set down.)
cluster_has_ipv6()
{
	local host

	while read -r host _; do
		[ "$host" = switch ] || cluster_in "$host" ip -6 addr show \
			dev net0 | grep -F "$CLUSTER_NET6:" >/dev/null ||
			return
	done <"$UNIMEM_CLUSTER/hosts"
}

# cluster_octets I : the bytes that host I has sent by IPv4 and by IPv6
cluster_octets()
{
	# shellcheck disable=SC2016 # awk's dollars
	cluster_in "$(cluster_address "$1")" awk '
		$1 == "IpExt:" && n { four = $n }
		$1 == "IpExt:" && !n {
			for (n = NF; n > 1 && $n != "OutOctets"; n--)
				;
		}
		$1 == "Ip6OutOctets" { six = $2 }
		END { print four + 0, six + 0 }
	' /proc/net/netstat /proc/net/snmp6
}

# cluster_start N : N hosts, until cluster_stop, or until this shell and what it
# has started have ended. Call cluster_refusal before.
cluster_start()
{
	local i

	UNIMEM_CLUSTER=$(mktemp -d "${TMPDIR:-/tmp}/unimem-hosts.XXXXXX")
	export UNIMEM_CLUSTER
	mkfifo "$UNIMEM_CLUSTER/life"
	exec {CLUSTER_LIFE}<>"$UNIMEM_CLUSTER/life"
	cluster_hold switch rm -rf "$UNIMEM_CLUSTER"
	cluster_in switch ip link add br0 type bridge
	cluster_in switch ip link set br0 up
	for ((i = 1; i <= $1; i++)); do
		cluster_hold "$(cluster_address "$i")" true
		cluster_cable "$i"
	done
}

# All of it is gone when this returns.
cluster_stop()
{
	local pids i

	[ -n "$CLUSTER_LIFE" ] || return 0
	mapfile -t pids < <(awk '{ print $2 }' "$UNIMEM_CLUSTER/hosts")
	exec {CLUSTER_LIFE}>&-
	CLUSTER_LIFE=
	# a process of a step that was just killed may have the pipe still
	for ((i = 0; i < 200; i++)); do
		kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.02
	done
	[ "$i" -lt 200 ] || printf '%s\n' "hosts: some are left over, held by \
what a job has started: processes ${pids[*]}" >&2
	rm -rf "$UNIMEM_CLUSTER"
	unset UNIMEM_CLUSTER
}

# cluster_launch ARGS... : mpirun on host 1, which starts processes by on-host
cluster_launch()
{
	set -- mpirun -iface net0 -launcher ssh \
		-launcher-exec "$TOP/scripts/on-host" "$@"
	"$TOP/scripts/on-host" "$(cluster_address 1)" "$(printf '%q ' "$@")"
}

# cluster_list FIRST-LAST EACH : Hydra's list of these hosts, for so many ranks
# on each
cluster_list()
{
	local i list=

	for ((i = ${1%-*}; i <= ${1#*-}; i++)); do
		list+=,$(cluster_address "$i"):$2
	done
	printf '%s\n' "${list#,}"
}

# cluster_mpirun FIRST-LAST EACH COMMAND... : so many ranks on each of these
# hosts, over unimem
cluster_mpirun()
{
	local hosts=$1 each=$2
	shift 2

	FI_UNIMEM_NET=net0 cluster_launch \
		-hosts "$(cluster_list "$hosts" "$each")" \
		-n $(((${hosts#*-} - ${hosts%-*} + 1) * each)) "$@"
}

# The same over IPv6. (Hydra itself uses IPv4.)
cluster_mpirun6()
{
	local hosts=$1 each=$2 i args=()
	shift 2

	for ((i = ${hosts%-*}; i <= ${hosts#*-}; i++)); do
		args+=(${args[0]:+:} -n "$each" -env FI_UNIMEM_NET
			"$(cluster_address6 "$i")" "$@")
	done
	cluster_launch -hosts "$(cluster_list "$hosts" "$each")" "${args[@]}"
}
