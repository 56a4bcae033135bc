#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# unimem_info finds interfaces of stopped processes, and of dead ones whose
# children hold them; it says so when there are none.
. "$(dirname "$0")/check-lib.sh"

hold=${UNM_BUILDDIR:?run by make check}/test/check/check_info
name=${UNM_EXEC:-check_info}		# as the system calls it
pids=
failed=0
trap 'for p in $pids; do kill -KILL "$p"; done 2>/dev/null' EXIT

info() { ${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/unimem_info" "$@"; }

bad()
{
	echo "$*"
	info
	failed=1
}

# of PID WHAT : wait until the interface of PID shows WHAT, in 5 seconds
of()
{
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		info --json | tr '{' '\n' | grep "\"pid\":$1," |
			grep -q "$2" && return 0
		sleep 0.5
	done
	return 1
}

${UNM_EXEC:+"$UNM_EXEC"} "$hold" stop &
pids=$!
of $! '"owner":true.*"state":"T"' || bad "no stopped owner $!"
info --json | grep -A1 "\"pid\":$!," | tr '{' '\n' |
	grep -q '"tx_msgs":1,"tx_bytes":2,"rx_msgs":3,' ||
	bad "its counters are not 1, 2, 3"
info | grep -q " $!  *T ${name##*/}" || bad "it is not in the table"
info -v | grep -q 'tx_bytes  *2  payload' || bad "-v shows no counters"

child=$(${UNM_EXEC:+"$UNM_EXEC"} "$hold" orphan)
pids="$pids $child"
of "$child" '"owner":false' || bad "no interface without its owner, $child"
info | grep -q " $child\*" || bad "the table does not mark it"

${UNM_EXEC:+"$UNM_EXEC"} "$hold" serve &
if of $! '"iface":0,'; then
	pids="$pids $!"
	info -v | grep -A1 " $!  *T ${name##*/}" | grep -q "atomic service" ||
		bad "-v does not tell that it is the service"
else
	kill -KILL $! 2>/dev/null
	wait $!
	[ $? -eq 77 ] || bad "no service $!"
fi

# said TEXT WHAT : --all-hosts has said that
said() { echo "$says" | grep -q "$1" || bad "--all-hosts: $2: $says"; }

# forty OPTION : the answers of 40 hosts with a limit of 64 descriptors
forty()
{
	# shellcheck disable=SC3045 # Linux's shells have the limit
	ulimit "$1" 64
	info --all-hosts="$(seq -s, 40)" --rsh "sh -c 'echo \"yes \$0\"'" 2>&1
}

# Every host of a list, where a command that stays on this host is in place of
# ssh. The program starts itself there by its path: not under an emulator.
hosts()
{
	rsh="sh -c '[ \$0 != slow ] || exec sleep 100"
	rsh="$rsh; [ \$0 != bad ] || exit 5; eval \"\$1\"'"
	says=$(info --all-hosts=here,there --rsh "$rsh") || bad "--all-hosts"
	said "^here  .* $child\\*" "not the jobs of here"
	said "^there .* $child\\*" "not the jobs of there"
	says=$(info -j --all-hosts=here,slow,bad --rsh "$rsh" --limit 2) &&
		bad "--all-hosts: two did not answer, and all is well"
	said '{"host":"here","answer":{"hidden' "no answer of here"
	said '{"host":"slow","error":"no answer in 2 s"' "slow is not given up"
	said '{"host":"bad","error":"failed with exit code 5"' "bad is good"
	# what it leaves behind has the pipe still: killed, and not waited for
	rsh="sh -c 'sleep 100 & eval \"\$1\"'"
	says=$(info --all-hosts=here --rsh "$rsh" --limit 30) ||
		bad "--all-hosts: a host that has answered is late: $says"
	said "^here  .* $child\\*" "not the jobs beside a process left behind"
	# its output ends, it does not
	says=$(info --all-hosts=here --limit 1 --rsh \
		"sh -c 'exec >/dev/null 2>&1; exec sleep 100'") &&
		bad "--all-hosts: no answer, and all is well"
	said "^here  no answer in 1 s" "a silent one is waited for"
	# more hosts than descriptors: first the limit can be raised, then not
	says=$(forty -Sn) || bad "--all-hosts: not all of 40 answered: $says"
	[ "$(echo "$says" | grep -c "yes")" -eq 40 ] ||
		bad "--all-hosts: no 40 answers: $says"
	says=$(forty -n) && bad "--all-hosts: 40 hosts, 64 descriptors: $says"
	said "^1  *yes 1$" "few descriptors, and no host has answered"
	said "^unimem_info: 40: Too many open files" "an answer without a pipe"
	! echo "$says" | grep -q 'no answer in' ||
		bad "--all-hosts: too few descriptors, and hosts late: $says"
	printf 'here boards=4 # a host\n' >"$hold.$$"
	says=$(cd "${hold%/*}" && FI_UNIMEM_NET_HOSTS=${hold##*/}.$$ \
		info --all-hosts --rsh 'echo') || bad "no file of hosts: $says"
	rm -f "$hold.$$"
	said "^here  here '.*unimem_info'" "not the host of the file"
	for p in "" = =-x "=a -w 1" =/no/file; do
		# shellcheck disable=SC2086 # words
		info --all-hosts$p --rsh false >/dev/null 2>&1
		[ $? -eq 2 ] || bad "--all-hosts$p is not refused"
	done
}
[ -n "${UNM_EXEC:-}" ] || hosts

for p in $pids; do
	kill -KILL "$p"
done
wait
for p in $pids; do		# one of them is not our child: it may linger
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		info | grep -q " ${p}[ *]" || continue 2
		sleep 0.1
	done
	bad "an interface of $p, which is dead"
done
info -w x 2>/dev/null
[ $? -eq 2 ] || bad "-w x is not refused"
info --memory=x 2>/dev/null
[ $? -eq 2 ] || bad "--memory=x is not refused"
says=$(info --memory=65534 2>&1)
[ $? -eq 1 ] || bad "--memory of a board without a service: $says"
# --topology: objects that hwloc reads, which are in the file once each
tmp=$(mktemp -d) || exit 99
topology()
{
	FI_UNIMEM_BOARDS=4 HWLOC_SYNTHETIC="group:2 numa:2 pu:1" \
		info --topology "$tmp/$1" 2>&1
}
if says=$(topology boards.xml); then
	[ "$(grep -c 'subtype="UnimemBoard"' "$tmp/boards.xml")" -eq 4 ] ||
		bad "--topology: not 4 boards in $(cat "$tmp/boards.xml")"
	grep -q '<info name="Number" value="3"/>' "$tmp/boards.xml" ||
		bad "--topology: no board 3"
	if command -v lstopo-no-graphics >/dev/null; then
		lstopo-no-graphics -i "$tmp/boards.xml" -v |
			grep -q 'UnimemBoard.*Number=3' ||
			bad "lstopo does not show board 3"
	fi
	says=$(topology no/such/folder)
	[ $? -eq 2 ] || bad "--topology into no folder: $says"
	# the memory of the register model is this host's too, unless it plays
	# boards of which each has a machine of its own
	says=$(FI_UNIMEM_HAL=sim topology sim.xml) ||
		bad "--topology of the register model: $says"
	[ "$(grep -c 'subtype="UnimemBoard"' "$tmp/sim.xml")" -eq 4 ] ||
		bad "--topology: not 4 boards in $(cat "$tmp/sim.xml")"
	says=$(FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=any=0 topology apart.xml)
	[ $? -eq 2 ] || bad "--topology of boards apart: $says"
	echo "$says" | grep -q 'not memory nodes of this host' ||
		bad "--topology of boards apart: $says"
elif ! grep -q 'DHAVE_HWLOC=1' "$UNM_BUILDDIR/Makefile"; then
	echo "$says" | grep -q 'needs hwloc' || bad "without hwloc: $says"
else
	bad "--topology: $says"
fi
rm -rf "$tmp"
version=$(sed -n 's/^AC_INIT(\[unimem\], \[\(.*\)\])/\1/p' configure.ac)
[ "$(info --version)" = "unimem_info $version" ] ||
	bad "--version: $(info --version), not $version"
exit $failed
