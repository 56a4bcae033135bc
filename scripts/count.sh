# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Counting tests: one suite after another, one sum at the end.

PASSED=0 FAILED=0 SKIPPED=0
TALLY=()
QUARANTINED=()
CONCLUDED=0

# count_line LOG : "P F S" of the last "N passed, N failed, N skipped" line
count_line()
{
	local n='([0-9]+)'

	sed -nE "s/^$n passed, $n failed(, $n skipped)?\$/\1 \2 \4/p" "$1" |
		tail -n 1 | awk '{ print $1, $2, $3 + 0 }'
}

# count_automake LOG : "P F S" over all of automake's summaries in LOG, or of
# its single lines where it was stopped before the summary; and what the
# programs skipped inside. Quarantined tests are neither in P nor in F.
count_automake()
{
	awk '
	/^# (PASS|XFAIL):/		{ p += $3; n++ }
	/^# (FAIL|XPASS|ERROR):/	{ f += $3; n++ }
	/^# SKIP:/			{ s += $3; n++ }
	/^(PASS|XFAIL): /		{ lp++ }
	/^(FAIL|XPASS|ERROR): /		{ lf++ }
	/^SKIP: /			{ ls++ }
	/^SKIPPED: /			{ inside++ }
	/^QUARANTINED: passed /		{ qp++ }
	/^QUARANTINED: failed /		{ qf++ }
	END {
		if (p + f < lp + lf) { p = lp; f = lf; n++ }
		if (s == 0) s = ls
		if (n) print p - qp, f - qf, s + inside
	}' "$1"
}

# reason_in FILE NAME : the reason of the first line "PATTERN: reason" of FILE
# whose PATTERN, a shell wildcard, matches NAME
reason_in()
{
	local name why

	[ -r "$1" ] || return 1
	while IFS= read -r name; do
		why=${name#*: } name=${name%%: *}
		# shellcheck disable=SC2053
		if [[ $2 == $name ]]; then
			printf '%s\n' "$why"
			return 0
		fi
	done < <(grep -vE '^(#|$)' "$1")
	return 1
}

# skip_reason NAME : why test/skips.txt says it is skipped. Automake's tests are
# there as check/NAME, what one of them skips inside as check/NAME/CASE, and
# what is skipped in one suite only with that suite's SKIPS_AS for check.
skip_reason() { reason_in "$TOP/test/skips.txt" "$1"; }

# quarantine_reason NAME : why test/quarantine.txt says it is counted apart
quarantine_reason() { reason_in "$TOP/test/quarantine.txt" "$1"; }

# The tests that automake skipped. (The runners of test/ check their skips.)
skipped_names() { sed -nE 's/^SKIP(PED)?: ([^ ]+).*/\2/p' "$1" | sort -u; }

# show_skips LOG : each skip has its reason in test/skips.txt. Sets UNREASONED
# to the number of those without, which the caller counts as failures. A reason
# for each case of a program (check/NAME/*) is a reason for the whole program.
show_skips()
{
	local n why

	UNREASONED=0
	while read -r n; do
		if why=$(skip_reason "${SKIPS_AS:-check}/$n") ||
		   why=$(skip_reason "check/$n") ||
		   why=$(skip_reason "check/$n/") ||
		   why=$(skip_reason "$n"); then
			note "skipped $n: $why"
		else
			warn "skipped $n: no reason in test/skips.txt"
			UNREASONED=$((UNREASONED + 1))
		fi
	done < <(skipped_names "$1")
}
UNREASONED=0

# tally NAME P F S
tally()
{
	PASSED=$((PASSED + $2))
	FAILED=$((FAILED + $3))
	SKIPPED=$((SKIPPED + $4))
	TALLY+=("$(printf '%-28s %5d passed %4d failed %4d skipped' "$@")")
}

# skip_suite NAME WHY : a whole suite that cannot run here
skip_suite()
{
	note "skipped $1: $2"
	tally "$1" 0 0 1
}

# suite NAME TITLE PARSER COMMAND... : run it, add its counts. A suite that dies
# or counts nothing is one failure. It has no time limit, as a slow machine is
# no fault: a hang is caught by the limit of the test that hangs.
suite()
{
	local name=$1 title=$2 parser=$3 log rc=0 p f s start=$SECONDS
	shift 3

	declare -F "$parser" >/dev/null ||
		die "suite $name: $parser is no function that counts"
	log=$LOGS/check-$name.log
	say "==> $title"
	run_logged "$log" "$title" \
		"$BASH" "$TOP/scripts/step" "$@" || rc=$?
	read -r p f s < <("$parser" "$log") || :
	if [ -z "${p:-}" ] || { [ $((p + f + s)) -eq 0 ] &&
				! grep -q '^QUARANTINED: ' "$log"; }; then
		p=0 f=1 s=0
		warn "$name: no test counted (exit $rc)"
	elif [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
		warn "$name: exit $rc although no test failed"
	fi
	if [ "$f" -gt 0 ] || grep -q '^QUARANTINED: failed ' "$log"; then
		grep -E '^(not ok |#   )' "$log" | head -n 300 >&2 ||
			last_lines "$log"
		note "more in ${log#"$TOP"/}"
	fi
	tally "$name" "$p" "$f" "$s"
	mapfile -t -O "${#QUARANTINED[@]}" QUARANTINED \
		< <(sed -n 's/^QUARANTINED: //p' "$log")
	show_skips "$log"
	FAILED=$((FAILED + UNREASONED))
	start=$(elapsed $((SECONDS - start)))
	note "$p passed, $f failed, $s skipped in $start"
}

# The tests of test/quarantine.txt that ran ("passed NAME" or "failed NAME")
show_quarantined()
{
	local line why passed=0 failed=0

	[ ${#QUARANTINED[@]} -gt 0 ] || return 0
	for line in "${QUARANTINED[@]}"; do
		why=$(quarantine_reason "${line#* }") || why="no reason"
		note "quarantined, $line: $why"
		case $line in
		passed*)	passed=$((passed + 1)) ;;
		*)		failed=$((failed + 1)) ;;
		esac
	done
	note "quarantined, counted in no sum: $passed passed, $failed failed"
}

# The closing line, alone; the exit code says the same.
conclude()
{
	local line

	CONCLUDED=1
	say
	for line in "${TALLY[@]}"; do
		note "$line"
	done
	note "in $(elapsed "$SECONDS")"
	show_quarantined
	say
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}
