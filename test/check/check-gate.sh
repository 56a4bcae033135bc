#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The gate of the bench runners repeats what it has to, waits no longer than it
# may, and marks the rest. The table of bench/run is honest.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
exec python3 -B test/check/test_gate.py
