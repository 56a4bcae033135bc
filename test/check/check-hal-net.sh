#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for peers on other hosts, as far as docs/hal.md,
# section 16, says so: each interface is a host of its own, and the network is
# the loopback interface. The same under the fault decorator, with an engine
# whose frames overtake each other, and with the child processes in another
# network namespace (two_hosts); check-hal-net-points.sh kills and stops these
# at each fault point. Every UNM_TEST_THIN-th group of tests, in check-full
# each, and each if the last commit changed what they test.
cd "${UNM_SRCDIR:?run by make check}" || exit 99
program=${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform
thin=${UNM_TEST_THIN-48}
groups="pkt wide stream space conn service close sleep mem dma back window alias
	proc kill stop frames leak"
fault=eagain=50,delay=20:100,seed=1
ran=0
trap 'rm -f "$program.$$"' EXIT

lines()
{
	sh test/check/thin.sh "$thin" prov/unimem/hal/net \
		prov/unimem/hal/hal_fault.c test/conform
}

# laws GROUP [OPTION...]
laws()
{
	group=$1
	shift
	FI_UNIMEM_NET_PEERS=0
	if [ "${1:-}" = idle ]; then
		FI_UNIMEM_NET_PEERS=1
		shift
	fi
	export FI_UNIMEM_NET_PEERS
	if [ "${1:-}" = two_hosts ]; then
		shift
		set -- test/check/two-hosts.sh "$program" "$@"
	else
		set -- ${UNM_EXEC:+"$UNM_EXEC"} "$program" "$@"
	fi
	"$@" --hal net --packets 2000 --passes 1 --test "$group*" </dev/null
	code=$?
	if [ "$code" -eq 77 ] && [ "${1##*/}" = two-hosts.sh ]; then
		echo "skip two_hosts"
		return
	fi
	[ "$code" -eq 0 ] || exit "$code"
	ran=$((ran + 1))
}

for group in $groups; do
	echo "$group"
	case $group in	# with connections that are closed all the time
	pkt | wide | stream | space | back)
			echo "$group idle" ;;
	mem | dma)	# the engine reaches dmable memory only
			echo "$group --profile exanode" ;;
	esac
	case $group in
	leak | frames | stop)	;;	# they make faults of their own
	*)		echo "$group --late 200"
			echo "$group --fault $fault" ;;
	esac
	case ${UNM_EXEC:-}$group in	# the laws with children
	proc | kill)	echo "$group two_hosts"
			echo "$group two_hosts --late 200"
			echo "$group two_hosts --fault $fault" ;;
	esac
done | lines >"$program.$$"
while read -r line; do
	# shellcheck disable=SC2086
	laws $line
done <"$program.$$"
[ "$thin" -eq 1 ] || echo "skip laws ($ran groups of tests)"
