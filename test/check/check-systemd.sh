#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The unit gsasd@.service under systemd, as the system's and as a user's: it is
# ready when it says so, is used, ends, comes again when it is killed. systemd
# is the real one, as the first process of namespaces (systemd-root.sh); root
# may make them.
# shellcheck disable=SC2086 # vars, as, by and scope are words
. "$(dirname "$0")/check-lib.sh"

build=${UNM_BUILDDIR:?run by make check}
[ "$(id -u)" -eq 0 ] || skip "needs root, for namespaces"
for systemd in /usr/lib/systemd/systemd /lib/systemd/systemd ""; do
	[ ! -x "$systemd" ] || break
done
[ -n "$systemd" ] || skip "systemd is not installed"
if [ -z "${UNM_SYSTEMD_TMP:-}" ]; then	# all mounts go with this process
	UNM_SYSTEMD_TMP=$(mktemp -d) || exit 99
	export UNM_SYSTEMD_TMP
	trap 'rm -rf "$UNM_SYSTEMD_TMP"' EXIT
	trap 'exit 99' HUP INT TERM
	unshare --mount true 2>/dev/null || skip "no mount namespaces here"
	unshare --mount --propagation private sh "$0"
	exit
fi
tmp=$UNM_SYSTEMD_TMP
group=unimem-$$
machine=
init=
failed=0

bad()
{
	echo "FAILED: $*"
	failed=1
}

# ---- The machine -----------------------------------------------------------

# shellcheck disable=SC2317 # by the trap
end()
{
	[ -z "$machine" ] || kill -KILL "$machine"
	wait
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		find "$tmp/cgroup/$group" -depth -type d -exec rmdir {} + \
			2>/dev/null
		[ -d "$tmp/cgroup/$group" ] || return
		sleep 0.2
	done
}

# It may think that all control groups there are are its own. Before it is
# systemd it has this system's root, and its systemctl.
machine()
{
	mkdir "$tmp/cgroup" "$tmp/root"
	if ! mount -t cgroup2 none "$tmp/cgroup" 2>/dev/null ||
	   ! mkdir "$tmp/cgroup/$group"; then
		skip "no control group (v2) can be made"
	fi
	trap end EXIT
	trap 'exit 99' HUP INT TERM
	sh -c 'echo $$ >"$1" && shift && exec "$@"' sh \
		"$tmp/cgroup/$group/cgroup.procs" \
		unshare --pid --mount --uts --ipc --net --cgroup --fork \
		--kill-child sh test/check/systemd-root.sh \
		"$tmp/root" "$systemd" "$tmp/stage" "$prefix" "$build" \
		>"$tmp/console" 2>&1 &
	machine=$!
	for _ in $(seq 150); do
		sleep 0.2
		init=$(ps -o pid= --ppid $machine | tr -d ' ')
		[ -n "$init" ] || continue
		[ "$(ps -o comm= -p "$init")" = systemd ] || continue
		case $(on systemctl is-system-running 2>&1) in
		running|degraded) return ;;
		esac
	done
	cat "$tmp/console"
	skip "systemd does not start here"
}

# on COMMAND... : there; with the variables of vars
vars=
on()
{
	nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup \
		env -i PATH="$prefix/bin:$PATH" $vars "$@"
}

# within TEXT COMMAND... : in 10 seconds it prints a line that is that pattern
within()
{
	text=$1
	shift
	for _ in $(seq 50); do
		"$@" 2>&1 | grep -qx -e "$text" && return 0
		sleep 0.2
	done
	bad "$who: no '$text' in what $* says:"
	"$@"
	return 1
}

# ---- What is done with a unit ----------------------------------------------

# Whose: the system's for root or for a user, and a user's own. as: runs a
# command as the user of the unit; by: as a user who may start it. Then the
# user's number, the manager, the folders of settings, of units and of logs.
as=
by=
scope=
other="setpriv --reuid=65534 --regid=65534 --clear-groups"

user() { on $as "$@"; }
manage() { on $by systemctl $scope "$@"; }
is() { manage show --value -p "$1" "gsasd@$2"; }
# shellcheck disable=SC2317 # by within()
log() { on journalctl -q --no-pager -o cat "_UID=$uid"; }
tool() { user "$build/test/check/gsas_tool" "$@"; }
services() { user ps -e -o pid=,comm= | awk '$2 == "gsasd" { print $1 }'; }

# active BOARD... : their units are, and nobody else serves
active()
{
	pids=
	for b; do
		[ "$(is ActiveState "$b")" = active ] ||
			bad "$who: gsasd@$b is $(is ActiveState "$b")"
		pids="$pids$(is MainPID "$b") "
	done
	[ "$(services | sort -n | xargs)" = \
		"$(echo "$pids" | xargs -n 1 | sort -n | xargs)" ] ||
		bad "$who: services are" "$(services)" "not $pids"
}

# As gsasd(8) says: the unit is copied, options and variables are in a file.
install_unit()
{
	# shellcheck disable=SC2016 # of that shell
	on $by sh -c 'mkdir -p "$1" && cp "$2" "$1" && printf "%s\n" \
		"GSASD_OPTIONS=--exec $3 --exec $4" FI_UNIMEM_BOARDS=2 \
		>"$5/gsasd.conf"' sh "$units" \
		"$prefix${unit#"$tmp/stage$prefix"}" \
		"$prefix/jobs" "$build/gsas/examples" "$settings"
	manage daemon-reload
	said=$(on $by systemd-analyze $scope --man=no verify gsasd@0.service \
		2>&1 | grep 'gsasd@')
	[ -z "$said" ] || bad "$who: systemd-analyze verify: $said"
	manage enable -q gsasd@0 || bad "$who: enable"
}

# They can be reached as soon as they are started.
start_both()
{
	if ! manage start gsasd@0 gsasd@1; then
		bad "$who: start"
		return 1
	fi
	user gsasctl boards | grep -q "^2 of 2 boards" ||
		bad "$who: active, and not there"
	active 0 1
}

# By all of their users' programs: with mapped pages, and by packet; programs
# started on both boards, of which none is left as a zombie.
use()
{
	for pages in mapped packets; do
		for example in "counter 4 200" "tree 3" "list 4 50"; do
			user env GSAS_PAGES=$pages \
				"$build/gsas/examples/"$example \
				>"$tmp/out" 2>&1 && continue
			bad "$who: $example, $pages:"
			cat "$tmp/out"
		done
	done
	for f in counter-0 counter-1 tree-0 tree-1; do
		user test -e "$logs/$f-stdout.log" || bad "$who: no log of $f"
	done
	for flag in 0 0x100; do
		a=$(tool alloc 1 2 $flag)
		tool write "$a" 42 >"$tmp/out"
		[ "$(tool read "$a")" = 0x2a ] || bad "$who: read, write"
		tool free "$a" >"$tmp/out"
	done
	on ps -e -o stat=,comm= | grep '^Z' && bad "$who: zombies"
	active 0 1
}

# A program that stays: it is the unit's, without a way to speak for it.
start_program()
{
	pid=$(tool fork 0 "$prefix/jobs/stay" 7) || bad "$who: fork"
	program=$((pid))
	on grep -q 'gsasd@0.service$' /proc/$program/cgroup ||
		bad "$who: a program is not the unit's"
	on cat /proc/$program/environ | tr '\0' '\n' >"$tmp/env"
	grep -qx GSAS_ARGUMENT=7 "$tmp/env" || bad "$who: another environment"
	grep -q NOTIFY_SOCKET "$tmp/env" && bad "$who: it can notify"
}

# ended PROGRAM : it has, and nothing is left of it
ended() { on test -d "/proc/$1" && bad "$who: a program is left"; }

# By a signal it did not ask for: the programs end, too; memory is gone.
kill_service()
{
	start_program
	a=$(tool alloc 0 1 0)
	main=$(is MainPID 0)
	[ "$main" -gt 1 ] && on kill -KILL "$main"
	within 1 is NRestarts 0
	within active is ActiveState 0
	active 0 1
	ended $program
	tool read "$a" >"$tmp/out" 2>&1 && bad "$who: memory of the one before"
	tool alloc 0 1 0 >"$tmp/out" || bad "$who: alloc after SIGKILL"
}

# The board has a service: who comes second says so, and does not come again.
start_twice()
{
	user gsasd --board 0 2>&1 | grep -q "board 0 has a service already" ||
		bad "$who: a second service"
	manage stop gsasd@1
	user gsasd --board 1 >"$tmp/out" 2>&1 &
	second=$!
	within "2 of 2 boards.*" user gsasctl boards
	manage start gsasd@1 >"$tmp/out" 2>&1 && bad "$who: a second unit"
	[ "$(is ActiveState 1) $(is NRestarts 1)" = "failed 0" ] ||
		bad "$who: the second unit is $(is ActiveState 1)"
	within "gsasd: board 1 has a service already" log
	for p in $(services); do
		[ "$p" = "$(is MainPID 0)" ] || on kill "$p"
	done
	wait $second
	manage reset-failed gsasd@1
	manage start gsasd@1 || bad "$who: start after a second one"
	active 0 1
}

stop_both()
{
	start_program
	manage stop gsasd@0 gsasd@1 || bad "$who: stop"
	ended $program
	for b in 0 1; do
		said="$(is ActiveState $b) $(is Result $b)"
		said="$said $(is ExecMainStatus $b)"
		[ "$said" = "inactive success 0" ] ||
			bad "$who: gsasd@$b, stopped, is $said"
	done
	active
	manage disable -q gsasd@0
}

all()
{
	install_unit
	start_both || return
	use
	start_twice
	kill_service
	stop_both
}

# ---- Both ------------------------------------------------------------------

# variables HOME : of programs. No service but a unit's is started.
variables()
{
	vars="HOME=$1 XDG_RUNTIME_DIR=/run/user FI_UNIMEM_BOARDS=2"
	vars="$vars GSASD=/nonexistent"
	vars="$vars GSAS_JOB=00000000000000010000000000000002"
}

prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" install \
	DESTDIR="$tmp/stage" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 99; }
unit=$(find "$tmp/stage" -name 'gsasd@.service')
mkdir "$tmp/stage$prefix/jobs"
printf '#!/bin/sh\nexec sleep 1000\n' >"$tmp/stage$prefix/jobs/stay"
chmod -R a+rX "$tmp/stage"
chmod a+x "$tmp/stage$prefix/jobs/stay"
machine

who="the system's" uid=0
settings=/etc units=/etc/systemd/system logs=/var/log/gsas
variables /root
all

who="the system's, with a User" uid=65534 as=$other
on mkdir $units/gsasd@.service.d
printf '[Service]\nUser=user\n' | on tee $units/gsasd@.service.d/user.conf \
	>"$tmp/out"
variables /home/user
all

on systemctl start manager || bad "no manager of a user"
who="a user's" by=$other scope=--user
settings=/home/user/.config units=$settings/systemd/user
logs=$settings/log/gsas
all

[ $failed -eq 0 ] || { on journalctl -q --no-pager -o cat; cat "$tmp/console"; }
exit $failed
