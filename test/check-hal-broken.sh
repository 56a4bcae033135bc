#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# hal_conform finds what is broken: each backend that breaks one law fails, in
# the test of that law.
. "$(dirname "$0")/check-lib.sh"

exec sh test/broken/run \
	"${UNM_EXEC:-} ${UNM_BUILDDIR:?run by make check}/test/hal_conform"
