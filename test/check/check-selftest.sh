#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# unimem_info --selftest finds every board of the emulation and of the model
# well, also where another process has to answer for it, and says so when one
# cannot be had.
. "$(dirname "$0")/check-lib.sh"

info() { ${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/unimem_info" "$@"; }
out=$(mktemp) || exit 99
waiting=$(mktemp) || exit 99
waiter=
trap 'rm -f "$out" "$waiting"; [ -z "$waiter" ] || kill "$waiter"' EXIT
failed=0
bad()
{
	echo "$*:"
	cat "$out"
	failed=1
}

# selftest CODE [SETTING...]: it ends with that exit code
selftest()
{
	code=$1
	shift
	(for s in "$@"; do export "${s?}"; done; info --selftest) >"$out" 2>&1
	ret=$?
	[ "$ret" = "$code" ] || bad "$*: exit code $ret, not $code"
}

# rows N PATTERN: so many lines of the table are like that
rows()
{
	[ "$(grep -c "$2" "$out")" = "$1" ] || bad "not $1 rows of \"$2\""
}

for hal in emu sim; do
	selftest 0 FI_UNIMEM_HAL=$hal FI_UNIMEM_BOARDS=3
	rows 3 ' ok$'
done

# as on boards: a process has interfaces of its own board only, another board's
# have to answer
export FI_UNIMEM_BOARDS=2
model=any=0,mem=64,world=$$
selftest 1 FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=$model FI_UNIMEM_BOARD=0
rows 1 '^    0 .* ok$'
rows 1 '^    1  packets: nobody waits there$'
(
	export FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=$model FI_UNIMEM_BOARD=1
	exec ${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/unimem_info" \
		--selftest=wait
) >"$waiting" 2>&1 &
waiter=$!
for _ in $(seq 300); do
	grep -q 'waiting on board 1' "$waiting" && break
	sleep 0.1
done
for board in 0 1; do
	selftest 0 FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=$model FI_UNIMEM_BOARD=0
	rows 1 "^    $board .* ok\$"
done

# a transfer that fails, with the row to say it
selftest 1 FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=mem=64,slverr=1000,world=$$
rows 2 '  transfer: transfer failed$'

# no board at all: one line, what, where and what to do
selftest 2 FI_UNIMEM_HAL=dev FI_UNIMEM_DEV=/dev/null
rows 1 '/dev/null is no unimem device: .*FI_UNIMEM_DEV'
rows 1 ''
info --selftest=walk >"$out" 2>&1
[ $? = 2 ] || bad "--selftest=walk is accepted"
exit $failed
