#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL between threads of one process: what ThreadSanitizer can
# follow (make check-tsan).
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/hal_conform" --hal emu \
	--no-procs --packets 100000
