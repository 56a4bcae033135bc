# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Counting tests: one suite after another, one sum at the end.

PASSED=0 FAILED=0 SKIPPED=0
MINUTES=
TALLY=()
UNSTEADY=()
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
# programs skipped inside. One that passed when run again has passed.
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
	/^UNSTEADY: /			{ again++ }
	END {
		if (p + f < lp + lf) { p = lp; f = lf; n++ }
		if (s == 0) s = ls
		if (n) print p + again, f - again, s + inside
	}' "$1"
}

# skip_reason NAME : why test/skips.txt says it is skipped; its names may hold
# shell wildcards. Automake's tests are there as check/NAME, what one of them
# skips inside as check/NAME/CASE, and what is skipped in one suite only with
# that suite's SKIPS_AS for check.
skip_reason()
{
	local name why

	[ -r "$TOP/test/skips.txt" ] || return 1
	while IFS= read -r name; do
		why=${name#*: } name=${name%%: *}
		# shellcheck disable=SC2053
		if [[ $1 == $name ]]; then
			printf '%s\n' "$why"
			return 0
		fi
	done < <(grep -vE '^(#|$)' "$TOP/test/skips.txt")
	return 1
}

# What automake skipped. (The runners of test/ check their own skips.)
skipped_names() { sed -nE 's/^SKIP(PED)?: ([^ ]+).*/\2/p' "$1" | sort -u; }

# Each skip has its reason in test/skips.txt; one without is a failure.
show_skips()
{
	local n why

	while read -r n; do
		if why=$(skip_reason "${SKIPS_AS:-check}/$n") ||
		   why=$(skip_reason "check/$n"); then
			note "skipped $n: $why"
		else
			warn "skipped $n: no reason in test/skips.txt"
			FAILED=$((FAILED + 1))
		fi
	done < <(skipped_names "$1")
}

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

# suite NAME TITLE LIMIT PARSER COMMAND... : run it for at most LIMIT seconds,
# add its counts. A suite that dies, hangs or counts nothing is one failure.
suite()
{
	local name=$1 title=$2 limit=$3 parser=$4 log rc=0 p f s start=$SECONDS
	shift 4

	log=$LOGS/check-$name.log
	say "==> $title"
	STEP_LIMIT=$limit run_logged "$log" "$title" \
		"$BASH" "$TOP/scripts/step" "$@" || rc=$?
	read -r p f s < <("$parser" "$log") || :
	if [ -z "${p:-}" ] || [ $((p + f + s)) -eq 0 ]; then
		p=0 f=1 s=0
		warn "$name: no test counted (exit $rc)"
	elif [ "$rc" -eq 124 ]; then
		f=$((f + 1))
	elif [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
		warn "$name: exit $rc although no test failed"
	fi
	if [ "$f" -gt 0 ] || grep -q '^UNSTEADY: ' "$log"; then
		grep -E '^(not ok |#   )' "$log" | head -n 300 >&2 ||
			last_lines "$log"
		[ "$rc" -ne 124 ] || warn "$name: stopped after $limit s"
		note "more in ${log#"$TOP"/}"
	fi
	tally "$name" "$p" "$f" "$s"
	mapfile -t -O "${#UNSTEADY[@]}" UNSTEADY \
		< <(sed -n "s|^UNSTEADY: |$name: |p" "$log")
	show_skips "$log"
	start=$(elapsed $((SECONDS - start)))
	note "$p passed, $f failed, $s skipped in $start"
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
	note "in $(elapsed "$SECONDS")${MINUTES:+, of $MINUTES minutes at most}"
	[ -z "$MINUTES" ] || [ "$SECONDS" -le $((60 * MINUTES)) ] ||
		warn "that is longer than $MINUTES minutes"
	for line in "${UNSTEADY[@]}"; do
		warn "unsteady, failed once and passed alone, a bug: $line"
	done
	say
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}
