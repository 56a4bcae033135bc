#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for interface 0 of a board as for any other: the
# first one of each test is that.
laws()
{
	${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--service --packets 20000 "$@" || exit
}

laws --hal emu
laws --hal emu --profile exanode --no-procs
laws --hal fault --no-procs
