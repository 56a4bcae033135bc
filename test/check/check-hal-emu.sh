#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for the emulation, profile host. UNM_TEST_PACKETS:
# so many in each stream. UNM_TEST_POINTS: at how many passes of a fault point,
# 1 to 3, a process is killed or stopped.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
	--hal emu --packets "${UNM_TEST_PACKETS-50000}" \
	--passes "${UNM_TEST_POINTS-3}"
