#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The examples of GSAS and of RDMA on four boards, as a user runs them: in both
# profiles of the emulation, on the register model, with pages that are mapped
# and without. Services start by themselves, and are gone when nobody needs them
# any more; no page is left, no file. A failure is reported, hangs nobody, and
# leaves nothing behind.
. "$(dirname "$0")/check-lib.sh"

built=${UNM_BUILDDIR:?run by make check}
run=${UNM_EXEC:+"$UNM_EXEC"}
dir=$(mktemp -d) || exit 99
own=$(readlink /proc/self/ns/net)
service=
trap 'for p in $service $(daemons); do kill "$p"; done; rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
cd "$dir" || exit 99
failed=0

bad()
{
	echo "$*:"
	cat "$dir"/out "$dir"/err
	failed=1
}

# the services of these boards that were started by themselves
daemons()
{
	grep -lsaz 'gsasd$' /proc/[0-9]*/cmdline | while read -r f; do
		[ "$(readlink "${f%cmdline}ns/net")" = "$own" ] &&
			tr '\0' ' ' <"$f" |
			grep -q 'gsasd --auto --board [0-3] ' &&
			basename "${f%/cmdline}"
	done 2>/dev/null
}

# example CODE NAME [ARG...]: it ends with that exit code; exchange and place
# are of rdma/
example()
{
	code=$1
	shift
	name=$1
	shift
	case $name in
	exchange|place)	part=rdma ;;
	*)		part=gsas ;;
	esac
	$run "$built/$part/examples/$name" "$@" >out 2>err
	ret=$?
	[ $ret = "$code" ] || bad "$setting: $name $*: exit code $ret"
}

# says TEXT: that, and no more
says()
{
	[ "$(cat out)" = "$1" ] || bad "$setting: $name says"
	[ ! -s err ] || bad "$setting: $name complains"
}

# what a tree of 15 processes says
tree()
{
	for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
		echo "process $n: board $((n % 4))"
	done
}

# what data that went to four boards and back says
exchanges()
{
	for b in 0 1 2 3; do
		echo "node $b: 1048576 bytes there and back"
	done
	echo "node 3 says hello"
}

# what the policies of four boards say. $pointers: all, or own: only the own
# board's memory has pointers
places()
{
	echo "local: node 0"
	echo "nearest: node 0"
	echo "interleaved: 1 1 1 1"
	for b in 0 1 2 3; do
		how="by its ID"
		if [ $b = 0 ] || [ "$pointers" = all ]; then
			how="by a pointer"
		fi
		echo "given node $b: byte $((8 * (b + 1))) found, $how"
	done
}

# board 0 has a service with 62 pages: a process takes up to 60, then all
full_board()
{
	mkfifo ready
	$run "$UNM_BUILDDIR/gsasd" --board 0 --pages 62 --ready-fd 3 3>ready \
		>log 2>&1 &
	service=$!
	read -r _ <ready
	example 0 place 0 60
	says "$(places; echo "node 0 still has memory")"
	example 0 place 0 1000
	says "$(places; echo "nearest with room: node 1")"
	kill $service
	wait $service || {
		cp log out
		bad "$setting: gsasd: exit code $?"
	}
	service=
	rm -f ready log
}

# nobody holds a page, and the services that ran go by themselves
gone()
{
	$run "$UNM_BUILDDIR/gsasctl" pages >out 2>err ||
		grep -q 'no board has a service' err ||
		bad "$setting: gsasctl pages"
	if grep -q '^0x' out; then
		bad "$setting: pages are left"
	else
		for _ in $(seq 600); do
			[ -z "$(daemons)" ] && return
			sleep 0.1
		done
		bad "$setting: services are left"
	fi
	for p in $(daemons); do
		kill "$p"
	done
}

# examples SETTING...: all of them
examples()
{
	setting=$*
	example 0 counter 8 200
	says "$(for b in 0 1 2 3; do echo "board $b: 1600 of 1600"; done)"
	example 0 list 4 50
	says "200 of 200 nodes found, 0 wrong"
	example 0 halo 6 100 50
	says "6 members, 600 cells, 50 steps: 0 wrong"
	example 0 tree
	says "$(tree)"
	example 0 exchange 0
	says "$(exchanges)"
	example 0 place 0 8
	says "$(places; echo "node 0 still has memory")"
	example 1 exchange 4
	example 1 place 4
	example 1 tree 9
	example 1 counter nobody
	example 1 halo 0
	for b in 0 1 2 3; do
		[ -e counter-$b-stdout.log ] || bad "$setting: no log of $b"
	done
	rm -f ./*.log
	gone
	full_board
	gone
}

# ranks NAME COMMAND... : five ranks of a launcher are one job without GSAS_JOB,
# and members of a team
ranks()
{
	setting=$1
	shift
	# shellcheck disable=SC2086 # words
	"$@" -n 5 $run "$built/gsas/examples/halo" 5 100 50 >out 2>err ||
		bad "$setting: halo: exit code $?"
	says "5 members, 500 cells, 50 steps: 0 wrong"
	gone
}

# the launchers of MPICH and of Open MPI
launched()
{
	mpiexec=${UNM_MPIEXEC:-$(find "${HOME:-/nonexistent}/.cache/unimem" \
		-path '*/bin/mpiexec.hydra' 2>/dev/null | head -n 1)}
	if [ -x "$mpiexec" ]; then
		ranks mpiexec "$mpiexec"
	else
		echo "skip launched (no mpiexec of MPICH)"
	fi
	command -v mpirun.openmpi >/dev/null 2>&1 || {
		echo "skip launched_by_openmpi (no mpirun.openmpi)"
		return
	}
	root=
	[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
	# shellcheck disable=SC2086 # a word, or none
	ranks "Open MPI" mpirun.openmpi $root --oversubscribe --bind-to none \
		--mca oob_tcp_if_include lo
}

# nothing: no service starts a program from elsewhere
refused()
{
	setting="not allowed"
	export GSAS_EXEC_PATH="$dir"
	for name in counter halo list tree; do
		example 1 $name
		grep -q "^$name: no process on board" err ||
			bad "$setting: $name does not say why"
	done
	gone
	unset GSAS_EXEC_PATH
}

[ -z "$(daemons)" ] || skip "boards 0 to 3 have services already"
unset GSAS_JOB GSAS_PAGES GSAS_EXEC_PATH FI_UNIMEM_BOARD
export FI_UNIMEM_BOARDS=4

for profile in host exanode; do
	pointers=all
	[ $profile = host ] || pointers=own
	for pages in mapped packets; do
		export FI_UNIMEM_PROFILE=$profile GSAS_PAGES=$pages
		examples $profile $pages
	done
done
unset FI_UNIMEM_PROFILE GSAS_PAGES
refused
launched
export FI_UNIMEM_HAL=sim FI_UNIMEM_SIM=world=$$
pointers=own
examples sim
for f in /dev/shm/*gsas* /dev/shm/*unimem*; do
	if [ -e "$f" ]; then
		echo "left: $f"
		failed=1
	fi
done
exit $failed
