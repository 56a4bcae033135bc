#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# hal_conform finds what is broken: each backend that breaks one law fails, in
# the test of that law.
. "$(dirname "$0")/check-lib.sh"

program="${UNM_EXEC:-} ${UNM_BUILDDIR:?run by make check}/test/hal_conform"
sh test/broken/run "$program" || exit
# where a board can be filled
HAL_CONFORM_ARGS="--profile exanode" exec sh test/broken/run "$program" \
	service-needs-room service-is-the-last
