#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gsasd begins and ends as gsasd(8) says, and gsasctl shows and frees what is
# left of the dead.
. "$(dirname "$0")/check-lib.sh"

GSASD=${UNM_BUILDDIR:?run by make check}/gsasd
FI_UNIMEM_BOARDS=2
GSAS_JOB=00000000000000010000000000000002
export GSASD FI_UNIMEM_BOARDS GSAS_JOB
[ -n "${UNM_ALONE:-}" ] || skip "needs boards of its own, a namespace"
tmp=$(mktemp -d)
pids=
failed=0
# shellcheck disable=SC2317 # by the trap
end()
{
	for p in $pids; do
		kill -KILL "$p" 2>/dev/null
	done
	rm -rf "$tmp"
}
trap end EXIT

tool=$UNM_BUILDDIR/test/check/gsas_tool
tool() { ${UNM_EXEC:+"$UNM_EXEC"} "$tool" "$@"; }
ctl() { ${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/gsasctl" "$@"; }
# shellcheck disable=SC2317 # by refused()
gsasd() { ${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" "$@"; }

bad()
{
	echo "FAILED: $*"
	failed=1
}

# within TEXT COMMAND... : in 10 seconds its output has that text
within()
{
	text=$1
	shift
	for _ in $(seq 100); do
		"$@" 2>&1 | grep -q -e "$text" && return 0
		sleep 0.1
	done
	bad "no '$text' in what $* says:"
	"$@"
	return 1
}

# Nobody serves any more, soon. (To look is to be there: not too often.)
gone()
{
	for _ in 1 2 3 4 5 6; do
		sleep 1.6
		ctl boards | grep -q "^0 of 2 boards" && return 0
	done
	bad "still there:"
	ctl boards
	ctl pages
}

# refused TEXT COMMAND... : it fails, with one line that has that text
refused()
{
	text=$1
	shift
	if "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; then
		bad "$* succeeded"
	elif [ "$(wc -l <"$tmp/err")" -ne 1 ] || ! grep -q "$text" "$tmp/err"
	then
		bad "$* does not say '$text' but"
		cat "$tmp/err"
	fi
}

# who serves board $1, by its process: the only ones of this namespace
serves() { ctl boards | awk -v b="$1" '$1 == b { found = 1 }
	END { exit !found }'; }

# how many refusals are reported, or left out and counted
# shellcheck disable=SC2317 # by within()
refusals() { awk '/refused: [0-9]+ more/ { n += $3; next } /refused:/ { n++ }
	END { print n + 0 }' "$tmp/said"; }

# ---- nobody there
within "^0 of 2 boards" ctl boards
refused "no board has a service" ctl stat
refused "there are 2 boards" ctl --board 2 boards
refused "no command" ctl frobnicate
refused "give a number" gsasd --board x
refused "no such file\|No such file" gsasd --exec "$tmp/none"
refused "not the root" gsasd --exec /
refused "unexpected argument" gsasd rest

# ---- at first use, by two at once; gone again when nobody is left
tool alloc 0 1 0 >"$tmp/a" &
first=$!
tool alloc 0 2 0 >"$tmp/b" || bad "second starter"
wait $first || bad "first starter"
serves 0 || bad "nobody serves board 0"
within "^1 of 2 boards" ctl boards
sleep 1.5
serves 0 || bad "it ended although pages are held"
[ "$(ctl pages --orphans | grep -c "^0x")" -eq 2 ] || bad "not two orphans"
tool write "$(cat "$tmp/a")" 77 || bad "same job, later: write"
[ "$(tool read "$(cat "$tmp/a")")" = 0x4d ] || bad "same job, later: read"
GSAS_JOB=11111111111111111111111111111111 tool read "$(cat "$tmp/a")" \
	2>"$tmp/err" && bad "another job reads"
grep -q "Permission denied" "$tmp/err" || bad "not by permission"
tool free "$(cat "$tmp/a")" || bad "free"
tool read "$(cat "$tmp/a")" 2>"$tmp/err" && bad "freed and read"
grep -q "Stale" "$tmp/err" || bad "freed is not stale"
ctl reclaim "$(cat "$tmp/b")" | grep -q "2 pages freed" || bad "reclaim"
refused "not an orphan\|Stale" ctl reclaim "$(cat "$tmp/b")"
gone

# ---- a user that is killed; its pages are orphans then, not before
${UNM_EXEC:+"$UNM_EXEC"} "$tool" alloc 1 3 0x100 hold >"$tmp/a" &
holder=$!
pids=$holder
within "mapped.* 1$" ctl --board 1 pages
ctl pages --orphans | grep -q "^0x" && bad "orphans while their owner lives"
kill -KILL $holder
wait $holder 2>/dev/null
pids=
within "mapped.* 0$" ctl pages --orphans
within "3 pages freed" ctl reclaim --yes
gone

# ---- a process of the job lives that never called this board's service: a
# child that has called nothing, one that called another board
${UNM_EXEC:+"$UNM_EXEC"} "$tool" alloc 1 3 0 child >"$tmp/a" </dev/null
pids=$(sed -n 2p "$tmp/a")
within "packets .* 1$" ctl --board 1 pages
ctl pages --orphans | grep -q "^0x" && bad "orphans while a child lives"
refused "not an orphan" ctl reclaim "$(head -n 1 "$tmp/a")"
kill -KILL "$pids"
within "packets .* 0$" ctl pages --orphans
${UNM_EXEC:+"$UNM_EXEC"} "$tool" alloc 0 1 0 hold >"$tmp/b" &
holder=$!
pids=$holder
within "^0x" cat "$tmp/b"
ctl pages --orphans | grep -q "^0x" &&
	bad "orphans while one lives that called another board"
kill -KILL $holder
wait $holder 2>/dev/null
pids=
within "board 1: 3 pages freed" ctl reclaim --yes
gone

# ---- an orphan that appears while the question stands is not freed: a job that
# ends meanwhile was not shown
cat >"$tmp/ask" <<'EOF'
import os, subprocess, sys
ours, theirs = os.openpty()
tool = sys.argv[1:sys.argv.index("--")]
ctl = sys.argv[sys.argv.index("--") + 1:]
p = subprocess.Popen(ctl, stdin=theirs, stdout=subprocess.PIPE)
text = b""
while not text.endswith(b"[y/N] "):
    byte = p.stdout.read(1)
    if not byte:
        sys.exit("no question: " + text.decode())
    text += byte
subprocess.run(tool, check=True)
os.write(ours, b"y\n")
sys.stdout.write(p.communicate()[0].decode())
sys.exit(p.returncode)
EOF
tool alloc 0 2 0 >/dev/null || bad "alloc of an orphan that is shown"
within "^0x.* 2 .* 0$" ctl pages --orphans
GSAS_JOB=33333333333333333333333333333333 python3 "$tmp/ask" \
	${UNM_EXEC:+"$UNM_EXEC"} "$tool" alloc 0 5 0 -- \
	${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/gsasctl" reclaim \
	>"$tmp/out" || bad "reclaim with an answer"
within "board 0: 2 pages freed" cat "$tmp/out"
within "^0x.* 5 .* 0$" ctl pages --orphans
[ "$(ctl pages | grep -c "^0x")" -eq 1 ] || bad "the shown orphan is left"
within "board 0: 5 pages freed" ctl reclaim --yes
gone

# ---- by hand: one for each board, clean ends, successors
${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --board 0 --user-pages 4 2>"$tmp/err" &
daemon=$!
pids=$daemon
within "^1 of 2 boards" ctl boards
refused "board 0 has a service already" gsasd --board 0
tool alloc 0 3 0 >/dev/null || bad "alloc from a service started by hand"
# the quota is the user's: what one job holds, no other job gets
quota() { GSAS_JOB=22222222222222222222222222222222 tool alloc 0 "$1" 0; }
refused "quota" quota 2
quota 1 >/dev/null || bad "the last page of the user"
refused "quota" quota 1
kill -TERM $daemon
wait $daemon || bad "ended with $?, not 0, on SIGTERM"
within "^0 of 2 boards" ctl boards
${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --board 0 &
daemon=$!
pids=$daemon
within "^1 of 2 boards" ctl boards
ctl pages | grep -q "^0x" && bad "pages of the one before"
kill -KILL $daemon
wait $daemon 2>/dev/null
a=$(tool alloc 0 1 0) || bad "no successor after SIGKILL"
within "^1 of 2 boards" ctl boards
tool free "$a" || bad "free after SIGKILL"
gone
pids=

# ---- all boards: systemd hears of it once, when each of them serves; the end
# of one service is named, and the services of other boards go on
cat >"$tmp/systemd" <<'EOF'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(100).decode(), flush=True)
EOF
python3 "$tmp/systemd" "$tmp/notify" >"$tmp/told" &
systemd=$!
pids=$systemd
within "notify" ls "$tmp"
NOTIFY_SOCKET=$tmp/notify ${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --all \
	2>"$tmp/said" &
daemon=$!
pids="$systemd $daemon"
within "READY=1" cat "$tmp/told"
ctl boards | grep -q "^2 of 2 boards" || bad "ready before each board"
read -r _ second _ <"/proc/$daemon/task/$daemon/children"
kill -KILL "$second"
within "board 1: its service was ended by signal 9" cat "$tmp/said"
serves 0 || bad "the service of board 0 did not go on"
${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --board 1 &
one=$!
pids="$pids $one"
within "^2 of 2 boards" ctl boards
kill -TERM $daemon
wait $daemon && bad "--all: exit code 0 although a service was killed"
[ "$(cat "$tmp/told")" = "READY=1" ] || bad "told: $(cat "$tmp/told")"
NOTIFY_SOCKET=$tmp/notify ${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --all \
	2>"$tmp/said" &
daemon=$!
pids="$systemd $one $daemon"
within "board 1: its service has ended with exit code 1" cat "$tmp/said"
within "^2 of 2 boards" ctl boards
kill -TERM $daemon
wait $daemon && bad "--all: exit code 0 although board 1 was taken"
[ "$(cat "$tmp/told")" = "READY=1" ] || bad "ready without board 1"
kill -TERM $one
wait $one || bad "ended with $?"
kill -KILL $systemd
wait $systemd 2>/dev/null
pids=

# ---- who comes again and again to be refused: few lines, all are counted.
# Other lines come meanwhile: no log for a program that shall start (that is
# one refusal more).
mkdir "$tmp/bin" "$tmp/logs" "$tmp/logs/no-log-0-stdout.log"
printf '#!/bin/sh\n' >"$tmp/bin/no-log"
chmod 755 "$tmp/bin/no-log"
start=$(date +%s)
${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --board 0 --exec "$tmp/bin" \
	--logs "$tmp/logs" 2>"$tmp/said" &
daemon=$!
pids=$daemon
within "^1 of 2 boards" ctl boards
a=$(tool alloc 0 1 0) || bad "alloc before the flood"
[ "$(GSAS_JOB=11111111111111111111111111111111 tool in-turn "$a" 1000)" = \
	0x0 ] || bad "a stranger reads"
tool fork 0 "$tmp/bin/no-log" 1 2>"$tmp/err" && bad "a program without a log"
within "no log file for" cat "$tmp/said"
within "^1001$" refusals
seconds=$(($(date +%s) - start + 1))
told=$(grep -c "refused: [A-Z]" "$tmp/said")
if [ "$told" -lt 32 ] || [ "$told" -gt $((32 + 4 * seconds)) ]; then
	bad "$told lines about refusals in $seconds seconds"
fi
kill -TERM $daemon
wait $daemon || bad "ended with $?"
pids=

# ---- idle, it takes no processor time
${UNM_EXEC:+"$UNM_EXEC"} "$GSASD" --board 1 &
daemon=$!
pids=$daemon
within "^1 of 2 boards" ctl boards
sleep 0.5
before=$(awk '{ print $14 + $15 }' /proc/$daemon/stat)
sleep 2
after=$(awk '{ print $14 + $15 }' /proc/$daemon/stat)
[ $((after - before)) -le 2 ] ||
	bad "$((after - before)) ticks of processor time in two idle seconds"
kill -TERM $daemon
wait $daemon || bad "ended with $?"
pids=
exit $failed
