#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# bench/exanode and bench/model judge goals, raw readings and what changed
# figures move by one rule each, and say what was not measured. (Results of the
# test's own: nothing is timed.)
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
exec python3 -B test/check/test_exanode.py
