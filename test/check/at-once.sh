#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# at-once.sh COMMAND... - run shell commands at the same time: for tests that
# mostly wait. Prints what each of them has written, one after the other, then
# the sum of their last lines, "N passed, N failed, N skipped". Exit code 1 if a
# command fails or has no such line, 77 if all was skipped. When it is stopped,
# so are the commands.
set -u
dir=$(mktemp -d) || exit
pids=
# shellcheck disable=SC2086 # a list of numbers
trap 'kill $pids 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

n=0
for command; do
	n=$((n + 1))
	sh -c "exec $command" >"$dir/$n.log" 2>&1 &
	pids="$pids $!"
done

failed=0
for pid in $pids; do
	wait "$pid"
	case $? in
	0|77)	;;
	*)	failed=1 ;;
	esac
done
pids=
for i in $(seq "$n"); do
	cat "$dir/$i.log"
	tail -n 1 "$dir/$i.log" >>"$dir/sums"
done
echo
awk -v n="$n" -v failed="$failed" '
	/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
		lines++; p += $1; f += $3; s += $5
	}
	END {
		printf "%d passed, %d failed, %d skipped\n", p, f, s
		exit failed || lines != n ? 1 : p == 0 ? 77 : 0
	}' "$dir/sums"
