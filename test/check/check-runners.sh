#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run-mpich and run-fabtests count a test as an expected failure or as left out
# only where a list says so.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
exec python3 -B test/check/test_runners.py
