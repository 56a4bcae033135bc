#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The simulation of connections (bench/scale_model.py) obeys its laws, and the
# measured points of docs/performance/scale.csv are near it.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
exec python3 -B bench/scale --selftest
