#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The example of the mailbox on four nodes, as a user runs it, and plain reads,
# writes and selects of Python: in both profiles of the emulation and on the
# register model. The daemons start by themselves, and are gone when nobody
# needs them any more; no file is left. Wrong options of unimem-mailboxd and of
# unimem-mailbox-cuse end in one line.
. "$(dirname "$0")/check-lib.sh"

ping=${UNM_BUILDDIR:?run by make check}/mailbox/examples/ping
daemon=$UNM_BUILDDIR/unimem-mailboxd
library=$UNM_BUILDDIR/.libs/libunimem-mailbox.so
select=$PWD/test/check/mailbox_select.py
run=${UNM_EXEC:+"$UNM_EXEC"}
dir=$(mktemp -d) || exit 99
own=$(readlink /proc/self/ns/net)
# shellcheck disable=SC2317 # by the trap
end()
{
	for p in $(daemons); do
		kill "$p"
	done
	rm -rf "$dir"
}
trap end EXIT
cd "$dir" || exit 99
failed=0

bad()
{
	echo "$setting: $*:"
	cat "$dir"/out "$dir"/err
	failed=1
}

# the daemons of these nodes that were started by themselves
daemons()
{
	grep -lsaz 'unimem-mailboxd$' /proc/[0-9]*/cmdline |
	while read -r f; do
		[ "$(readlink "${f%cmdline}ns/net")" = "$own" ] &&
			tr '\0' ' ' <"$f" |
			grep -q 'unimem-mailboxd --auto --board [0-3] ' &&
			basename "${f%/cmdline}"
	done 2>/dev/null
}

# the daemons end by themselves
gone()
{
	for _ in $(seq 300); do
		[ -z "$(daemons)" ] && return
		sleep 0.1
	done
	bad "daemons are left"
}

# example SETTING...: each node sends to the next one, all at once, and all
# messages come back
example()
{
	setting=$*
	listeners=
	pings=
	codes=
	for n in 0 1 2 3; do
		FI_UNIMEM_BOARD=$n $run "$ping" listen 100 >out$n 2>err$n &
		listeners="$listeners $!"
		FI_UNIMEM_BOARD=$n $run "$ping" $(((n + 1) % 4)) 100 \
			>pong$n 2>time$n &
		pings="$pings $!"
	done
	for pid in $listeners $pings; do
		wait "$pid" || codes="$codes $?"
	done
	for n in 0 1 2 3; do
		cat out$n err$n pong$n time$n >out
		: >err
		if [ "$(cat pong$n)" != "100 of 100 messages came back" ] ||
		   ! grep -q '^round trip: [0-9.]* us$' time$n ||
		   [ -s out$n ] || [ -s err$n ]; then
			bad "node $n"
		fi
	done
	[ -z "$codes" ] || bad "exit codes$codes"
	# qemu-user's libraries are not those of this machine's Python
	if [ -z "$run" ]; then
		python3 -B "$select" "$library" >out 2>err || bad "select"
	fi
	gone
}

# refused TEXT ARGUMENT... : the daemon ends, with one line that has that text
refused()
{
	setting=$*
	text=$1
	shift
	$run "$program" "$@" >out 2>err </dev/null && bad "accepted"
	if [ "$(wc -l <err)" -ne 1 ] || ! grep -q -e "$text" err; then
		bad "no '$text'"
	fi
}

[ -z "$(daemons)" ] || skip "nodes 0 to 3 have daemons already"
UNIMEM_MAILBOXD=$daemon
FI_UNIMEM_BOARDS=4
export UNIMEM_MAILBOXD FI_UNIMEM_BOARDS
unset FI_UNIMEM_BOARD

for profile in host exanode; do
	export FI_UNIMEM_PROFILE=$profile
	example $profile
done
unset FI_UNIMEM_PROFILE
program=$daemon
refused "give a number" --board x
refused "give a number from 0 to 3600000" --linger 3600001
refused "unexpected argument" rest
refused "no board 4" --board 4
program=$UNM_BUILDDIR/unimem-mailbox-cuse
if [ -x "$program" ]; then
	refused "give a number from 0 to 65534" --board 65535
	refused "give up to 32 letters" --name a/b
	refused "give up to 32 letters" --name ''
	refused "unexpected argument" rest
	refused "there are 4 boards" --board 4
else
	# a line that show_skips (scripts/count.sh) counts
	echo "skip devices (built without libfuse 3)"
fi
export FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=world=$$
example sim
for f in /dev/shm/*unimem*; do
	if [ -e "$f" ]; then
		echo "left: $f"
		failed=1
	fi
done
exit $failed
