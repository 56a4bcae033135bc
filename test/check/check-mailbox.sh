#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The example of the mailbox on two nodes, as a user runs it, and plain reads,
# writes and selects of Python: in both profiles of the emulation and on the
# register model. The daemons start by themselves, and are gone when nobody
# needs them any more; no file is left. Wrong options of unimem-mailboxd end in
# one line.
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
			grep -q 'unimem-mailboxd --auto --board [01] ' &&
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

# example SETTING...: the messages of one node come back from the other one
example()
{
	setting=$*
	FI_UNIMEM_BOARD=1 $run "$ping" listen 500 >out1 2>err1 &
	FI_UNIMEM_BOARD=0 $run "$ping" 1 500 >out 2>err ||
		bad "exit code $?"
	wait $! || bad "listen: exit code $?"
	[ "$(cat out)" = "500 of 500 messages came back" ] || bad "ping says"
	grep -q '^round trip: [0-9.]* us$' err || bad "no round trip"
	[ ! -s err1 ] || { cat err1; bad "listen complains"; }
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
	$run "$daemon" "$@" >out 2>err </dev/null && bad "accepted"
	if [ "$(wc -l <err)" -ne 1 ] || ! grep -q -e "$text" err; then
		bad "no '$text'"
	fi
}

[ -z "$(daemons)" ] || skip "nodes 0 and 1 have daemons already"
UNIMEM_MAILBOXD=$daemon
FI_UNIMEM_BOARDS=2
export UNIMEM_MAILBOXD FI_UNIMEM_BOARDS
unset FI_UNIMEM_BOARD

for profile in host exanode; do
	export FI_UNIMEM_PROFILE=$profile
	example $profile
done
unset FI_UNIMEM_PROFILE
refused "give a number" --board x
refused "give a number from 0 to 3600000" --linger 3600001
refused "unexpected argument" rest
refused "no board 2" --board 2
export FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=world=$$
example sim
for f in /dev/shm/*unimem*; do
	if [ -e "$f" ]; then
		echo "left: $f"
		failed=1
	fi
done
exit $failed
