#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages are proper mdoc(7).
. "$(dirname "$0")/check-lib.sh"

command -v mandoc >/dev/null 2>&1 || skip "mandoc is not installed"
# which pages this machine has beside ours does not matter
found=$(mandoc -Tlint man/*.[1-9] 2>&1 |
	grep -v -e 'referenced manual not found' -e 'mandoc.db')
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
