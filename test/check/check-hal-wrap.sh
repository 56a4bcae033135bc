#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL where packet numbers run over the 48 bits of a head.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
	--hal emu --seq-start 281474976700000 --packets 100000
