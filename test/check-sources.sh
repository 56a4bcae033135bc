#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source and every test is built and run: Makefile.am has a line with it.
. "$(dirname "$0")/check-lib.sh"

failed=0
need()
{
	grep -qw -e "$2" Makefile.am || {
		echo "$1 is not in Makefile.am"
		failed=1
	}
}

for f in $(c_files | grep -v -e '^test/' -e '^bench/'); do
	need "$f" "$f"
done
for f in test/*.[ch] test/broken/*.[ch] test/fuzz/*.[ch]; do
	need "$f" "${f%.c}"
done
for f in test/*.sh; do
	need "$f" "$f"
done
exit $failed
