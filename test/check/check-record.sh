#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The record of ./quickstart check-full: it names one source and every job of
# the list, those without a result as NOT RUN, also after the run was killed;
# the next run goes on, on another machine from the record itself; a later pass
# does not hide a failure; a change to a job's inputs discards its result, other
# changes do not. With a list and jobs made for this. A job's skips have reasons
# in test/skips.txt, also those inside programs of make and of programs that the
# job runs itself. In the real list each input is there, each test program that
# a job names is its input, and each mutant is an input of its job, as are the
# file it changes and the test that notices it.
. "$(dirname "$0")/check-lib.sh"

command -v bash >/dev/null 2>&1 || skip "bash is not installed"
top=$(mktemp -d) || exit 99
run=
trap 'end_run; rm -rf "$top"' EXIT
failed=0
record=$top/docs/check-full.txt
GIT_CEILING_DIRECTORIES=$(dirname "$top")
export GIT_CEILING_DIRECTORIES

# Each check that runs a share of the endpoint tests has a reason for the rest.
for check in test/check/check-ep-*.sh; do
	grep -q '^[^#]*\<ep_some\>' "$check" || continue
	why=$(grep "^check/${check%.sh}/endpoint_tests: " test/skips.txt)
	[ -z "$why" ] || continue
	echo "FAIL: $check leaves out endpoint_tests without a reason"
	failed=1
done

# test/local.mk is no input, so what changes a test is elsewhere.
grep -nE '^test_[a-z0-9_]+_(CPPFLAGS|CFLAGS|LDFLAGS|LDADD) ' test/local.mk && {
	echo "FAIL: test/local.mk has flags: test/link.mk is their place"
	failed=1
}

# Each input in the real list is there.
bash scripts/step full_list | cut -f1 | sort -u | tr ' ' '\n' >"$top/paths"
while IFS= read -r path; do
	path=${path#-}
	set -- "${path%\*}"
	[ "$path" = "$1" ] || set -- "$1"*
	[ -e "$1" ] && continue
	echo "FAIL: scripts/full.list: no file $path"
	failed=1
done <"$top/paths"

# inputs_lack FILES INPUTS : print those of FILES, one in each line, that are no
# inputs; false if all are
inputs_lack()
{
	sed "s/^/$(printf '%64s' '')  /" "$1" |
		bash scripts/step full_inputs "$2" | cut -c67- >"$top/found"
	! diff "$1" "$top/found"
}

# The source of each test program that a job names is its input.
bash scripts/step full_list >"$top/list"
while IFS= read -r line; do
	job=$(echo "$line" | cut -f2)
	echo "$job" | grep -oE 'test/(unit|multi|conform)/\w+' |
		sed 's/$/.c/' | sort -u >"$top/wanted"
	inputs_lack "$top/wanted" "$(echo "$line" | cut -f1)" || continue
	echo "FAIL: scripts/full.list: these programs are no inputs of" \
		"${job%%:*}"
	failed=1
done <"$top/list"

# The mutants of a job whose inputs are not all of the source: each is an input,
# as are the file that it changes and the test that notices it.
mutants_of()
{
	sed -n "s,^$1: .*check-mutants ,,p" scripts/full.list | tr -d "'"
}
sed -n 's/: .*check-mutants .*//p' scripts/full.list >"$top/jobs"
: >"$top/mutants"
while read -r job <&3; do
	inputs=$(bash scripts/step full_list | sed -n "s/\t$job: .*//p")
	set -f
	# shellcheck disable=SC2046 # words
	set -- $(mutants_of "$job")
	set +f
	bash scripts/step mutants_named "$@" >"$top/named" || exit 99
	cat "$top/named" >>"$top/mutants"
	[ "${inputs%% *}" != . ] || continue
	while read -r file; do
		head -n 1 "$file" | sed 's/^test: //; s/[: ].*//'
		sed -n 's,^--- a/,,p' "$file"
		echo "${file##*/test/mutants/}" | sed 's,^,test/mutants/,'
	done <"$top/named" |
		sed -E 's,^(test/(unit|multi|fuzz|conform)/\w+)$,\1.c,' |
		sort -u >"$top/wanted"
	[ -s "$top/wanted" ] || exit 99
	inputs_lack "$top/wanted" "$inputs" || continue
	echo "FAIL: scripts/full.list: these files matter to $job, and are no" \
		"inputs"
	failed=1
done 3<"$top/jobs"
ls "$PWD"/test/mutants/*.patch >"$top/all"
sort "$top/mutants" | diff "$top/all" - || {
	echo "FAIL: scripts/full.list: the jobs of mutants do not have each" \
		"once"
	failed=1
}

# The job "slow" waits for the file go, "bad" fails once, "changer" changes the
# source if it shall. Each says in build/ran that it ran.
mkdir -p "$top/build/log" "$top/docs"
cp -r scripts "$top/"
: >"$top/build/env.sh"
echo build >"$top/.gitignore"
cat >"$top/scripts/full.list" <<'END'
# name: seconds: command
good: 600: sh scripts/good
slow: 600: sh scripts/slow
bad: 600: sh scripts/bad
changer: 600: sh scripts/changer
END
cat >"$top/scripts/good" <<'END'
echo good >>build/ran
echo SKIPPED: test/known
echo "3 passed, 0 failed, 1 skipped"
END
mkdir "$top/test"
echo "check/test/known*: a reason" >"$top/test/skips.txt"
cat >"$top/scripts/slow" <<'END'
echo slow >>build/ran
echo $$ >build/slow.pid.tmp && mv build/slow.pid.tmp build/slow.pid
until [ -e build/go ]; do sleep 0.05; done
echo "PASS: test/a"; echo "# PASS: 1"; echo "# FAIL: 0"
END
cat >"$top/scripts/bad" <<'END'
echo bad >>build/ran
[ -e build/was-bad ] && echo "2 passed, 0 failed, 0 skipped" && exit
: >build/was-bad
echo "1 passed, 1 failed, 0 skipped"
exit 1
END
cat >"$top/scripts/changer" <<'END'
echo changer >>build/ran
[ -e build/change ] && echo "# changed" >>scripts/bad
echo "1 passed, 0 failed, 0 skipped"
END

complain()
{
	echo "FAIL: $1"
	sed 's/^/	/' "$record"
	sed 's/^/	| /' "$top/build/out"
	failed=1
}

# The record has a line that matches, or the test fails. After the name of a job
# comes the key of its inputs.
has()
{
	want=$2
	case $want in
	^[a-z]*)	want=$(echo "$2" | sed 's/ +/ +[0-9a-f]{16} +/') ;;
	esac
	grep -Eq -- "$want" "$record" || complain "$1: no line '$2'"
}

ran() { grep -cx "$1" "$top/build/ran"; }

# full CODE JOB... : a run to its end, which has this exit code
full()
{
	code=0
	want=$1
	shift
	bash "$top/scripts/step" full_run "$@" >"$top/build/out" 2>&1 || code=$?
	[ "$code" -eq "$want" ] || complain "exit $code, not $want"
}

# A run in the background, until the job "slow" waits
full_until_slow()
{
	rm -f "$top/build/slow.pid"
	bash "$top/scripts/step" full_run >"$top/build/out" 2>&1 &
	run=$!
	until [ -e "$top/build/slow.pid" ]; do
		kill -0 "$run" 2>/dev/null || break
		sleep 0.05
	done
	[ -e "$top/build/slow.pid" ] || complain "the run ended too early"
}

end_run()
{
	[ -n "$run" ] || return 0
	kill -KILL "$run" "$(cat "$top/build/slow.pid")" 2>/dev/null
	wait "$run" 2>/dev/null
	run=
}

if command -v git >/dev/null 2>&1; then
	(cd "$top" && git init -q && git add . && git -c user.name=test \
		-c user.email=test@invalid commit -qm test) || exit 99
	commit=$(git -C "$top" rev-parse --short=12 HEAD)
fi

# Killed outright: the record is there already.
full_until_slow
end_run
has "killed" "^# source [0-9a-f]{16}, ${commit:+commit $commit$}"
has "killed" '^good +3 passed +0 failed +1 skipped'
has "killed" '^slow +NOT FINISHED +sh scripts/slow'
has "killed" '^bad +NOT RUN +sh scripts/bad'
has "killed" '^# 1 of 4 jobs ran, 0 of them failed: NOT WHOLE$'

# Stopped by a signal, as by Ctrl-C.
full_until_slow
kill -TERM "$run"
wait "$run" 2>/dev/null
run=
has "stopped" '^slow +NOT FINISHED'
has "stopped" '^# 1 of 4 jobs ran, 0 of them failed: NOT WHOLE$'

# Gone on with; one fails.
: >"$top/build/go"
full 1
[ "$(ran good)" -eq 1 ] || complain "a job with a result ran again"
has "went on" '^slow +1 passed +0 failed'
has "went on" '^bad +1 passed +1 failed .* FAILED '
has "went on" '^# 4 of 4 jobs ran, 1 of them failed$'
has "went on" '^6 passed, 1 failed, 1 skipped$'

# Nothing is left to run; what failed does not pass by another run.
full 1
[ "$(ran bad)" -eq 1 ] || complain "a job that failed ran again by itself"
full 1 bad
[ "$(ran bad)" -eq 2 ] || complain "a job that was named did not run"
has "again" '^bad +1 passed +1 failed .* FAILED \(in 1 of 2 runs\)'
full 1 none

# Another machine, which has the record only: the same results, nothing to run.
cp "$record" "$top/build/before"
cp "$top/build/ran" "$top/build/ran-before"
rm "$top/build/full.state"
full 1
cmp "$top/build/ran-before" "$top/build/ran" ||
	complain "a job ran although the record has its result"
cmp "$top/build/before" "$record" || complain "the record was read wrongly"

# This machine has other results than the record: none is lost.
sed -i '/^good/d' "$top/build/full.state"
sed -i -E '/^slow/s/(\w+ +\w+).*/\1 1 passed 1 failed 0 skipped 0 s  FAILED/' \
	"$record"
full 1
cmp "$top/build/ran-before" "$top/build/ran" ||
	complain "a job ran although the record has its result"
has "merged" '^good +3 passed +0 failed +1 skipped'
has "merged" '^slow +1 passed +1 failed .* FAILED \(in 1 of 2 runs\)'

# Another source: all anew, and now all pass.
echo "# another" >>"$top/scripts/slow"
full 0
[ "$(ran good)" -eq 2 ] || complain "a result of another source is kept"
has "another source" '^bad +2 passed +0 failed'
has "another source" '^# 4 of 4 jobs ran, 0 of them failed$'
[ -z "${commit:-}" ] ||
	has "another source" "^# source .*, commit $commit WITH CHANGES\$"

# The same source, committed later: the record names that commit.
if [ -n "${commit:-}" ]; then
	(cd "$top" && git add . && git -c user.name=test \
		-c user.email=test@invalid commit -qm later) || exit 99
	commit=$(git -C "$top" rev-parse --short=12 HEAD)
	full 0
	has "committed" "^# source .*, commit $commit\$"
	[ "$(ran good)" -eq 2 ] || complain "a result is lost by a commit"
fi

# A source that changes while a job runs: that job has no result.
echo "# a third" >>"$top/scripts/slow"
: >"$top/build/change"
full 1
has "changed meanwhile" '^changer +NOT FINISHED'
has "changed meanwhile" '^# 3 of 4 jobs ran, 0 of them failed: NOT WHOLE$'

# Inputs: of "good" and "slow" scripts/good, as scripts/slow is taken away
# again; of "bad" and "changer" all but what begins with scripts/s.
sed -i -e '/^good/i = scripts/good scripts/slow -scripts/slow' \
	-e '/^bad/i = . -scripts/s*' "$top/scripts/full.list"
rm "$top/build/change"
full 0
before=$(ran good) bad=$(ran bad)
echo "# a fourth" >>"$top/scripts/slow"
full 0
[ "$(ran good)" -eq "$before" ] || complain "what is no input discards a result"
[ "$(ran bad)" -eq "$bad" ] || complain "-scripts/s* took nothing away"
echo "# a fifth" >>"$top/scripts/good"
full 0
[ "$(ran good)" -eq $((before + 1)) ] || complain "a changed input is not seen"
[ "$(ran bad)" -eq $((bad + 1)) ] || complain "\".\" is not all of the source"
sed -i 's/: sh scripts\/good/: sh scripts\/good again/' "$top/scripts/full.list"
full 0
[ "$(ran good)" -eq $((before + 2)) ] ||
	complain "another command keeps the result of the old one"
has "inputs" '^# 4 of 4 jobs ran, 0 of them failed$'

# Skips: of a program in a make check, whose log alone names them; of a program
# that the job runs; of a runner, which names the reason. One without a name or
# a reason fails the job.
cat >"$top/scripts/full.list" <<'END'
inside: 600: sh scripts/make test/known_make case; # make
after: 600: echo "1 passed, 0 failed, 0 skipped"
vanished: 600: sh scripts/make test/known_make case; rm -f build/obj/test/*.log
inside-bad: 600: sh scripts/make test/other case
own: 600: sh scripts/own 0 one; : build/obj/test/multi/known
own-bad: 600: sh scripts/own 0 one; : build/obj/test/multi/other
runner: 600: echo "skip - a b 2 # why"; sh scripts/own 0
nameless: 600: sh scripts/own 0
nameless-4: 600: sh scripts/own 0 one 5; : build/obj/test/multi/known
names-5: 600: sh scripts/own 0 "a b c d e" 5; : build/obj/test/multi/known
no-compiler: 600: exit 77; make TESTS='$(UNIT_TESTS) test/multi/known'
runner-77: 600: exit 77; build/obj/test/lib/known test/run-known --thin 3/0
nothing: 600: echo "0 passed, 0 failed, 0 skipped"
all-skipped: 600: sh scripts/all-skipped || exit; : build/obj/test/multi/known
program-skipped: 600: exit 77; build/obj/test/multi/known
END
sed -i 's|^check/.*|&\ncheck/test/multi/known*: a reason|' \
	"$top/test/skips.txt"
cat >"$top/scripts/make" <<'END'
mkdir -p "build/obj/${1%/*}"
touch -d "1 hour ago" "build/obj/$1.trs"	# a clock is coarse
echo "skip $2 (0.1 s)" >"build/obj/$1.log"
echo "PASS: $1"; echo "# PASS: 1"; echo "# FAIL: 0"
END
cat >"$top/scripts/all-skipped" <<'END'
echo all >>build/ran
[ -e build/able ] && echo "4 passed, 0 failed, 0 skipped" && exit
echo "skip one (0.1 s)"
echo "0 passed, 0 failed, 1 skipped"
exit 77
END
cat >"$top/scripts/own" <<'END'
for skip in $2; do
	echo "skip $skip (0.1 s)"
done
echo "1 passed, 0 failed, ${3:-1} skipped"
exit "$1"
END
# find fails where a folder vanishes before it has read it
find=$(command -v find)
mkdir "$top/bin"
cat >"$top/bin/find" <<END
#!/bin/sh
$find "\$@"
case " \$* " in
*.trs*)	exit 1 ;;
esac
END
chmod +x "$top/bin/find"
(PATH=$top/bin:$PATH && full 1; exit $failed) || failed=1
has "skips" '^inside +1 passed +0 failed +1 skipped'
has "skips" '^after +1 passed +0 failed +0 skipped'
has "skips" '^vanished +1 passed +0 failed +0 skipped'
has "skips" '^inside-bad +1 passed +1 failed +1 skipped .* FAILED'
has "skips" '^own +1 passed +0 failed +1 skipped'
has "skips" '^own-bad +1 passed +1 failed +1 skipped .* FAILED'
has "skips" '^runner +1 passed +0 failed +1 skipped'
has "skips" '^nameless +1 passed +1 failed +1 skipped .* FAILED'
has "skips" '^nameless-4 +1 passed +1 failed +5 skipped .* FAILED'
has "skips" '^names-5 +1 passed +0 failed +5 skipped'
has "77" '^no-compiler +0 passed +1 failed +0 skipped .* FAILED'
has "77" '^runner-77 +0 passed +1 failed +0 skipped .* FAILED'
has "nothing" '^nothing +0 passed +1 failed +0 skipped .* FAILED'
has "skips all" '^all-skipped +0 passed +0 failed +1 skipped'
has "skips all" '^program-skipped +0 passed +0 failed +1 skipped'

# A skipped job runs again, when this machine is another one or is quiet.
: >"$top/build/able"
full 1
has "skipped before" '^all-skipped +4 passed +0 failed +0 skipped +[0-9]+ s  at'
[ "$(ran all)" -eq 2 ] || complain "a job that was skipped did not run again"
full 1
[ "$(ran all)" -eq 2 ] || complain "a job that passed ran again"
exit $failed
