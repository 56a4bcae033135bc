#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The counting of ./quickstart check: a test that fails once has failed and is
# not run again; a quarantined test is counted apart; a suite that counts
# nothing, or skips without a reason, has failed.
. "$(dirname "$0")/check-lib.sh"

command -v bash >/dev/null 2>&1 || skip "bash is not installed"
top=$(mktemp -d) || exit 99
trap 'rm -rf "$top"' EXIT
failed=0
# the variables of the make that runs this test are not for the one below, and
# the share of a job of check-full is not for thin.sh
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL UNM_TEST_SHARE

# A tree with the scripts, and a make check whose tests print the word in
# their file: PASS, FAIL, or FLIP, which fails the first time only.
mkdir -p "$top/test" "$top/build/obj/test" "$top/build/log"
cp -r scripts "$top/"
cp test/lib_run.py "$top/test/"
cat >"$top/build/obj/Makefile" <<'END'
TESTS = test/good test/flip
check:
	@rc=0; for t in $(TESTS); do \
		echo $$t >>ran; \
		case $$(cat $$t) in \
		PASS)	r=PASS ;; \
		FLIP)	r=FAIL; rc=1; echo PASS >$$t ;; \
		*)	r=FAIL; rc=1 ;; \
		esac; \
		echo ":test-result: $$r" >$$t.trs; echo $$r >$$t.log; \
		echo "$$r: $$t"; \
	done; exit $$rc
END

# reset QUARANTINE : the tests as they are at first
reset()
{
	rm -f "$top/build/obj/ran" "$top"/build/obj/test/*
	echo PASS >"$top/build/obj/test/good"
	echo FLIP >"$top/build/obj/test/flip"
	echo "check/test/absent: a reason" >"$top/test/skips.txt"
	echo "$1" >"$top/test/quarantine.txt"
}

# counted NAME CODE LAST [LINE] : the shell commands on standard input end with
# exit code CODE and the line LAST, and LINE is among what they print.
counted()
{
	out=$(cd "$top" && bash -c '
		set -euo pipefail
		TOP=$1
		. "$TOP/scripts/all.sh"
		make_dirs
		. /dev/stdin' - "$top" 2>&1)
	code=$?
	last=$(echo "$out" | tail -n 1)
	if [ "$code" -ne "$2" ] || [ "$last" != "$3" ] ||
	   ! echo "$out" | grep -qF -- "${4:-}"; then
		echo "FAIL: $1: exit $code, not $2; or not '$3'; or not '$4'"
		echo "$out" | sed 's/^/	/'
		failed=1
	fi
}

# shellcheck disable=SC2016 # expanded by the bash above
MAKE_SUITE='
	JOBS=1
	suite make "make check" count_automake check_make "$BUILD/obj"
	conclude'

reset "# none"
counted "fails once" 1 "1 passed, 1 failed, 0 skipped" <<END
$MAKE_SUITE
END
if [ "$(grep -c flip "$top/build/obj/ran")" -ne 1 ]; then
	echo "FAIL: a test that failed was run again"
	failed=1
fi

reset "# none"
echo PASS >"$top/build/obj/test/flip"
counted "all pass" 0 "2 passed, 0 failed, 0 skipped" <<END
$MAKE_SUITE
END

reset "check/test/flip: fails in one run of twenty, for a test of this"
counted "quarantined, fails" 0 "1 passed, 0 failed, 0 skipped" \
	"quarantined, failed check/test/flip: fails in one" <<END
$MAKE_SUITE
END

reset "check/test/g*: passes"
counted "quarantined, passes" 1 "0 passed, 1 failed, 0 skipped" \
	"quarantined, counted in no sum: 1 passed, 0 failed" <<END
$MAKE_SUITE
END

reset "# none"
counted "make fails without a failed test" 1 "2 passed, 1 failed, 0 skipped" \
	<<'END'
	JOBS=1
	broken() { echo PASS >"$BUILD/obj/test/flip"; check_make "$@"; false; }
	echo "broken() { $(declare -f broken | sed 1,2d | sed '$d')
	}" >>"$TOP/scripts/check.sh"
	suite make "make check" count_automake broken "$BUILD/obj"
	conclude
END

counted "counts nothing" 1 "0 passed, 1 failed, 0 skipped" <<'END'
	suite none "a suite that says nothing" count_line true
	conclude
END

counted "skipped with a reason" 0 "1 passed, 0 failed, 1 skipped" \
	"skipped test/absent: a reason" <<'END'
	suite skip "skips" count_automake \
		printf '%s\n' "PASS: test/good" "SKIP: test/absent"
	conclude
END

counted "skipped without a reason" 1 "1 passed, 1 failed, 1 skipped" <<'END'
	suite skip "skips" count_automake \
		printf '%s\n' "PASS: test/good" "SKIP: test/other"
	conclude
END

reset "# none"
echo "check/test/whole/*: a reason" >>"$top/test/skips.txt"
echo "check/test/part/one_*: a reason" >>"$top/test/skips.txt"
counted "a program that skips all cases" 1 "2 passed, 1 failed, 2 skipped" \
	"skipped test/whole: a reason" <<'END'
	suite whole "skips" count_automake \
		printf '%s\n' "PASS: test/good" "SKIP: test/whole"
	suite part "skips" count_automake \
		printf '%s\n' "PASS: test/good" "SKIP: test/part"
	conclude
END

# The same of the runners of fabtests and of MPICH's tests
cat >"$top/test/runner" <<'END'
import sys
from lib_run import Report
report = Report("mpich")
report.ok("a/good 2", 0.1)
report.not_ok("a/flip 2 -x", "exit 1", ("mpiexec", "text"))
report.skip("a/none 2", "a reason")
sys.exit(report.finish())
END
RUNNER_SUITE='
	suite mpich "a runner" count_line python3 -B test/runner
	conclude'
if command -v python3 >/dev/null 2>&1; then
	reset "# none"
	counted "a runner" 1 "1 passed, 1 failed, 1 skipped" <<END
	$RUNNER_SUITE
END
	reset "mpich/a/flip *: fails in one run of twenty"
	counted "a runner, quarantined" 0 "1 passed, 0 failed, 1 skipped" \
		"quarantined, failed mpich/a/flip 2 -x: fails in one" <<END
	$RUNNER_SUITE
END
fi

# thin.sh: the commit decides which third of the lines it keeps, all have their
# turn; it keeps all lines if a file was changed; a wrong number is an error
GIT_AUTHOR_DATE=2000-01-01T00:00:00Z	# the same commits in each run
GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
git() { command git -C "$top/repo" -c user.name=n -c user.email=e "$@"; }
if command -v git >/dev/null 2>&1; then
	thin=$PWD/test/check/thin.sh
	mkdir "$top/repo"
	git init -q
	echo a >"$top/repo/a"
	git add a
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		git commit -q --allow-empty -m $i
		(cd "$top/repo" && seq 10 | sh "$thin" 3 | paste -s -d ' ')
	done | sort -u >"$top/kept"
	if [ "$(cat "$top/kept")" != "1 4 7 10
2 5 8
3 6 9" ]; then
		echo "FAIL: thin.sh keeps other lines:"
		cat "$top/kept"
		failed=1
	fi
	echo b >"$top/repo/a"
	all=$(cd "$top/repo" && seq 10 | sh "$thin" 3 a | wc -l)
	if [ "$all" -ne 10 ] || sh "$thin" 0 </dev/null 2>&1; then
		echo "FAIL: thin.sh: $all of 10 lines of a changed file; or" \
			"it takes 0"
		failed=1
	fi
fi
exit $failed
