# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# What every other script needs: places, messages, steps, stamps.
# Sourced by quickstart and by scripts/step; wants TOP set.

: "${TOP:?set by quickstart}"
BUILD=$TOP/build
LOGS=$BUILD/log
STAMPS=$BUILD/stamp
CACHE=${UNIMEM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/unimem}
JOBS=${UNIMEM_JOBS:-$(nproc 2>/dev/null || echo 2)}
STEP_PGID='' BESIDE_PGID=''
BESIDE_ON=$BUILD/.beside		# there while a step runs beside others

say()  { printf '%s\n' "$*"; }
note() { printf '  %s\n' "$*"; }
warn() { printf 'quickstart: %s\n' "$*" >&2; }
die()  { warn "$*"; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

make_dirs()
{
	mkdir -p "$LOGS" "$STAMPS" ||
		die "cannot write $BUILD: own it, or copy the tree elsewhere"
}

# hash_of FILE|-TEXT ... : one short hash over files and words
hash_of()
{
	local a

	for a; do
		case $a in
		-*) printf '%s\n' "$a" ;;
		*)  printf '%s\n' "$a"; cat -- "$a" 2>/dev/null || : ;;
		esac
	done | sha256sum | cut -c1-16
}

stamp_is()  { [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ]; }
stamp_set() { printf '%s\n' "$2" >"$STAMPS/$1"; }
stamp_rm()  { rm -f "$STAMPS/$1"; }

elapsed()
{
	local s=$1

	if [ "$s" -ge 60 ]; then
		printf '%d min %02d s' $((s / 60)) $((s % 60))
	else
		printf '%d s' "$s"
	fi
}

# descendants PID : itself and all that came from it, however grouped
descendants()
{
	ps -e -o pid= -o ppid= 2>/dev/null | awk -v top="$1" '
		{ parent[$1] = $2 }
		END {
			print top
			for (pid in parent) {
				p = pid
				while (p in parent && p != top && p > 1)
					p = parent[p]
				if (p == top && pid != top)
					print pid
			}
		}'
}

# kill_group PGID : all that the step with that process group has started, and
# nothing else
kill_group()
{
	local i pids

	mapfile -t pids < <(descendants "$1")
	kill -TERM -- "-$1" "${pids[@]}" 2>/dev/null || :
	for ((i = 0; i < 50; i++)); do
		kill -0 -- "${pids[@]}" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL -- "-$1" "${pids[@]}" 2>/dev/null || :
}

# The steps that run now: in front, and beside it
kill_steps()
{
	local pgid

	for pgid in $STEP_PGID $BESIDE_PGID; do
		! runs "$pgid" || kill_group "$pgid"
	done
	STEP_PGID='' BESIDE_PGID=''
	rm -f "$BESIDE_ON"
}

on_signal()
{
	warn "stopped by a signal; run the same command again to go on"
	exit 130
}

EXIT_HOOKS=(kill_steps)
run_exit_hooks()
{
	local hook

	trap - EXIT
	for hook in "${EXIT_HOOKS[@]}"; do
		"$hook" || :
	done
}

trap run_exit_hooks EXIT
trap on_signal INT TERM HUP

# One quickstart at a time in a tree. Those that it starts itself do not wait.
lock_tree()
{
	[ -z "${UNIMEM_LOCKED:-}" ] || return 0
	make_dirs
	exec 8>"$BUILD/.lock"
	if ! flock -n 8; then
		warn "another quickstart is at work here: waiting for it"
		flock 8
	fi
	rm -f "$BESIDE_ON"
	export UNIMEM_LOCKED=1
}

# runs PGID : is it one of ours that has not ended? (The kernel may have given
# its number to somebody else.)
runs() { jobs -rp | grep -qx "$1"; }

# await PGID TITLE [LIMIT] : until it ends, a line with the elapsed time every
# ten seconds. Returns its exit code, 124 when LIMIT seconds are over.
await()
{
	local start=$SECONDS next=10 now

	while runs "$1"; do
		now=$((SECONDS - start))
		if [ "$now" -ge "$next" ]; then
			note "... $2: $(elapsed "$now")"
			next=$((now - now % 10 + 10))
		fi
		if [ "${3:-0}" -gt 0 ] && [ "$now" -ge "$3" ]; then
			kill_group "$1"
			return 124
		fi
		if [ "$now" -lt 3 ]; then sleep 0.1; else sleep 0.5; fi
	done
	wait "$1"
}

# run_logged LOG TITLE COMMAND... : run COMMAND in a process group of its own,
# its output in LOG, for $STEP_LIMIT seconds at most; see await.
run_logged()
{
	local log=$1 title=$2 rc=0
	shift 2

	set -m
	"$@" >"$log" 2>&1 </dev/null 8>&- &
	STEP_PGID=$!
	set +m
	await "$STEP_PGID" "$title" "${STEP_LIMIT:-0}" || rc=$?
	[ "$rc" -ne 124 ] || echo "stopped after ${STEP_LIMIT:-} s" >>"$log"
	# Whatever it left running in its group ends here.
	kill -TERM -- "-$STEP_PGID" 2>/dev/null || :
	STEP_PGID=
	return "$rc"
}

# last_lines LOG [N]
last_lines()
{
	printf -- '--- the end of %s\n' "${1#"$TOP"/}" >&2
	tail -n "${2:-25}" -- "$1" >&2
	printf -- '---\n' >&2
}

# attempt NAME TITLE COMMAND... : a step that may fail. COMMAND runs in a fresh
# shell (scripts/step) with all of scripts/*.sh loaded, so that "set -e" holds
# in it.
attempt()
{
	local name=$1 title=$2 start=$SECONDS
	shift 2

	say "==> $title"
	run_logged "$LOGS/$name.log" "$title" \
		"$BASH" "$TOP/scripts/step" "$@" || return
	note "done in $(elapsed $((SECONDS - start)))"
}

# step NAME TITLE HINT COMMAND... : a step that must succeed
step()
{
	local name=$1 title=$2 hint=$3 rc=0
	shift 3

	attempt "$name" "$title" "$@" || rc=$?
	if [ "$rc" -ne 0 ]; then
		last_lines "$LOGS/$name.log"
		die "$title failed (exit $rc). $hint"
	fi
}

# beside COMMAND... : a step while others run; beside_end waits for it. One at a
# time.
beside()
{
	: >"$BESIDE_ON"
	rm -f "$LOGS/beside.exit"
	set -m
	{
		rc=0
		nice -n 5 "$BASH" "$TOP/scripts/step" "$@" || rc=$?
		echo "$rc" >"$LOGS/beside.exit"
		rm -f "$BESIDE_ON"
	} >"$LOGS/beside.log" 2>&1 </dev/null 8>&- &
	BESIDE_PGID=$!
	set +m
}

# beside_end TITLE HINT
beside_end()
{
	local start=$SECONDS rc

	say "==> $1"
	# of one that ended long ago the shell has forgotten all
	await "$BESIDE_PGID" "$1" 2>/dev/null || :
	BESIDE_PGID=
	rc=$(cat "$LOGS/beside.exit" 2>/dev/null || echo 1)
	if [ "$rc" -ne 0 ]; then
		last_lines "$LOGS/beside.log"
		die "$1 failed (exit $rc). $2"
	fi
	note "done in $(elapsed $((SECONDS - start)))"
}
