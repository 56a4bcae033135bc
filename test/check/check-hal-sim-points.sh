#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A process that is killed or stopped at any point of the device backend, or of
# the register model below it, blocks and corrupts nobody: needs
# --enable-fault-points (make check-asan), is skipped else.
kills()
{
	${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--hal sim --test "$1" || exit
}

kills kill_at_every_point
kills stop_at_every_point
