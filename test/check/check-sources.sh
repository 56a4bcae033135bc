#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source and every test is built and run: Makefile.am or a local.mk has
# it.
. "$(dirname "$0")/check-lib.sh"

failed=0
need()
{
	makefiles | xargs grep -qw -e "$2" || {
		echo "$1 is in no local.mk"
		failed=1
	}
}

for f in $(c_files | grep -v -e '^test/' -e '^bench/'); do
	need "$f" "$f"
done
for f in $(c_files | grep -v -e "^test/m[op]" | grep "^test/"); do
	need "$f" "${f%.c}"
done
for f in test/check/*.sh; do
	need "$f" "$f"
done
exit $failed
