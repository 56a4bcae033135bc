#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each mistake of test/mutants still applies to the source, in its place, and
# names a test that exists. That each test notices its mistake is shown by
# ./quickstart check-mutants.
. "$(dirname "$0")/check-lib.sh"

command -v patch >/dev/null 2>&1 || skip "patch is not installed"
failed=0
complain()
{
	echo "FAIL: $1"
	failed=1
}

for file in test/mutants/*.patch; do
	program=$(sed -n '1s/^test: \([^ :]*\).*/\1/p' "$file")
	[ -e "$program" ] || [ -e "$program.c" ] ||
		complain "$file: its first line names no test"
	patch -p1 -s -f -F1 --dry-run -i "$file" >/dev/null 2>&1 ||
		complain "$file does not apply any more"
done
exit $failed
