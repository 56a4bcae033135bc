#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A process with peers on other hosts that is killed or stopped at any fault
# point blocks and corrupts nobody: needs --enable-fault-points, is skipped
# else.
kills()
{
	${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--hal net --test "$1" </dev/null || exit
}

kills kill_at_every_point
kills stop_at_every_point
