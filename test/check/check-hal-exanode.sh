#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for the emulation, profile exanode.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
	--hal emu --profile exanode --packets 200000
