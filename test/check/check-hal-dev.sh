#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold for boards.
exec ${UNM_EXEC:+"$UNM_EXEC"} \
	"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" --hal dev
