#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Stands for the tests that need cmocka, where configure did not find it.
. "$(dirname "$0")/check-lib.sh"

skip "cmocka was not found: unit tests and hal_conform were not built" \
	"(Debian: libcmocka-dev)"
