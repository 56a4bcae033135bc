#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source and every test is built and run: Makefile.am or a local.mk has
# it. Every fuzzer is linked to libFuzzer, which only make fuzz needs.
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
for f in test/fuzz/fuzz_*.c; do
	name=$(basename "$f" .c)
	[ "$name" != fuzz_main ] || continue
	flags="test_fuzz_${name}_LDFLAGS = \$(LINK_FUZZER)"
	grep -qFx "$flags" test/link.mk || {
		echo "test/link.mk links $f without libFuzzer"
		failed=1
	}
done
exit $failed
