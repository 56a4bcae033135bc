#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# unimem_info --selftest finds every board of the emulation and of the model
# well, and says so when one cannot be had.
. "$(dirname "$0")/check-lib.sh"

info() { ${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/unimem_info" "$@"; }
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
failed=0
bad()
{
	echo "$*:"
	cat "$out"
	failed=1
}

for hal in emu sim; do
	FI_UNIMEM_HAL=$hal FI_UNIMEM_BOARDS=3 info --selftest >"$out" 2>&1 ||
		bad "FI_UNIMEM_HAL=$hal: exit code $?"
	[ "$(grep -c ' ok$' "$out")" = 3 ] ||
		bad "FI_UNIMEM_HAL=$hal: not three boards"
done
FI_UNIMEM_HAL=dev FI_UNIMEM_DEV=/dev/null info --selftest >"$out" 2>&1
[ $? = 2 ] || bad "no board, and exit code is not 2"
info --selftest=walk >"$out" 2>&1
[ $? = 2 ] || bad "--selftest=walk is accepted"
exit $failed
