#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for the emulation, profile host. UNM_TEST_PACKETS:
# so many in each stream.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/hal_conform" --hal emu \
	--packets "${UNM_TEST_PACKETS-200000}"
