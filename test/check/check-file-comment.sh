#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each C file begins with its licence and a comment "NAME - what it does", so
# that a reader knows at once what the file owns.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
c_files | python3 -B test/check/source_rules.py file-comment
