#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# two-hosts.sh PROGRAM ARGS... - run hal_conform on one host, and its child
# processes on another one: network namespaces of scripts/with-hosts. Exits with
# 77 where there can be none, or no peers on other hosts at all.
#
# The script runs three times: for the user, then within with-hosts, and then in
# the place of each child (UNM_EXEC of hal_conform).
here=$(cd "$(dirname "$0")" && pwd)
self=$here/${0##*/}

# on I COMMAND... : on host I, with a /sys that shows its interfaces
on()
{
	pid=$(awk -v h="10.78.0.$1" '$1 == h { print $2 }' \
		"$UNIMEM_CLUSTER/hosts")
	shift
	# shellcheck disable=SC2016 # the inner shell's dollars
	exec nsenter -t "$pid" --net unshare --mount sh -c \
		'mount -t sysfs sysfs /sys && exec "$@"' sh "$@"
}

case ${UNM_TWO_HOSTS:-} in
"")
	# without tests it is skipped only if there is no engine
	"$@" --test none >/dev/null || exit
	export UNM_TWO_HOSTS=begun
	exec "$here/../../scripts/with-hosts" 2 "$self" "$@" ;;
begun)
	export UNM_TWO_HOSTS=children
	export FI_UNIMEM_NET=net0
	(
		export UNM_EXEC="$self"
		on 1 "$@"
	) || {
		code=$?
		# it has found the engine before
		[ "$code" -ne 77 ] || code=1
		exit "$code"
	}
	# the children were there: their packets, not only those of a kernel
	sent=$(on 2 cat /sys/class/net/net0/statistics/tx_bytes)
	[ "$sent" -ge 10000 ] || {
		echo "only $sent bytes came from the host of the children"
		exit 1
	} ;;
*)
	on 2 "$@" ;;
esac
