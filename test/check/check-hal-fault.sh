#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for the emulation under the fault decorator.
# UNM_TEST_PACKETS: so many in each stream.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
	--hal fault --packets "${UNM_TEST_PACKETS-50000}"
