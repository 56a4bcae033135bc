#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A process with peers on other hosts that is killed or stopped at any fault
# point blocks and corrupts nobody: on a host of its own as far as the HAL goes,
# and in a network namespace of its own (two_hosts). Needs
# --enable-fault-points, is skipped else.
cd "${UNM_SRCDIR:?run by make check}" || exit 99
program=${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform

kills()
{
	${UNM_EXEC:+"$UNM_EXEC"} "$program" --hal net --test "$1" </dev/null ||
		exit
}

two_hosts()
{
	test/check/two-hosts.sh "$program" --hal net --test "$1" </dev/null
	code=$?
	if [ "$code" -eq 77 ]; then
		echo "skip two_hosts"
	elif [ "$code" -ne 0 ]; then
		exit "$code"
	fi
}

kills kill_at_every_point
kills stop_at_every_point
[ -z "${UNM_EXEC:-}" ] || exit 0
two_hosts kill_at_every_point
two_hosts stop_at_every_point
