#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A call with more than four arguments has no bare true or false among them.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
c_files | python3 -B test/check/source_rules.py calls
