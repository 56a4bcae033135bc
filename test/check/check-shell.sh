#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The shell scripts pass shellcheck.
. "$(dirname "$0")/check-lib.sh"

command -v shellcheck >/dev/null 2>&1 || skip "shellcheck is not installed"
sh_files | xargs shellcheck -x -P SCRIPTDIR
