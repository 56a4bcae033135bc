# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-full [JOB...]: the jobs of scripts/full.list, and the
# record of their results, docs/check-full.txt. Only this file writes the
# record, and the record is of one source: each job of the list is there, with
# its result or as NOT RUN. A run can be stopped at any time; the next one goes
# on with the jobs that have no result yet, in another clone or on another
# machine from the committed record. A change to the source discards all
# results.

FULL_STATE=$BUILD/full.state	# two lines of heading, then the events of jobs
FULL_RESULT=$TOP/docs/check-full.txt
FULL_KEY=

# Every source file: what git does not ignore or, where git knows nothing of
# the tree, all that is not generated. Not the documents.
full_files()
{
	git ls-files -co --exclude-standard -- . ':!docs' 2>/dev/null ||
	find . \( -path ./build -o -path ./docs -o -path ./build-aux -o \
		-path ./autom4te.cache -o -path './m4/l*' -o \
		-name 'configure*' -o -name aclocal.m4 -o -name '*.in' \) \
		-prune -o -type f -print
}

# A hash of the source that is tested
full_key()
{
	(cd "$TOP" && full_files | LC_ALL=C sort |
		while read -r f; do
			[ ! -f "$f" ] || sha256sum "$f"
		done | sha256sum | cut -c1-16)
}

# The commit, and whether the source is what was committed
full_commit()
{
	local commit

	commit=$(git -C "$TOP" rev-parse --short=12 HEAD 2>/dev/null) || {
		echo "no git commit"
		return
	}
	if [ -z "$(git -C "$TOP" status --porcelain -- . ':!docs')" ]; then
		echo "commit $commit"
	else
		echo "commit $commit WITH CHANGES"
	fi
}

full_jobs() { sed -e '/^[[:space:]]*\(#\|$\)/d' "$TOP/scripts/full.list"; }

# full_results : of each job of the list, in one line with tabs: name, RAN or
# NOT RUN or NOT FINISHED, passed, failed, skipped, quarantined, seconds, runs,
# failed runs. The numbers are those of the run with most failures: a later
# run does not hide an earlier one.
full_results()
{
	full_jobs | awk -F '\t' -v OFS='\t' '
		FNR == NR {
			if ($2 == "STARTED") {
				open[$1] = 1
			} else if ($2 == "ENDED") {
				open[$1] = 0
				if (!runs[$1]++ || $4 > f[$1]) {
					p[$1] = $3; f[$1] = $4; s[$1] = $5
					q[$1] = $6; t[$1] = $7
				}
				if ($4 > 0)
					bad[$1]++
			}
			next
		}
		{
			name = $0
			sub(/:.*/, "", name)
			print name, runs[name] ? "RAN" : open[name] ? \
				"NOT FINISHED" : "NOT RUN", p[name] + 0, \
				f[name] + 0, s[name] + 0, q[name] + 0, \
				t[name] + 0, runs[name] + 0, bad[name] + 0
		}' "$FULL_STATE" -
}

# full_command NAME : of the list
full_command()
{
	full_jobs | sed -n "s/^$1: *[0-9]*: *//p" | head -n 1
}

# The record
full_write()
{
	local name how p f s q t runs bad

	[ -s "$FULL_STATE" ] || return 0
	mkdir -p "${FULL_RESULT%/*}"
	{
		echo "# Written by ./quickstart check-full; not to be edited."
		sed -n '1,2s/^/# /p' "$FULL_STATE"
		while IFS=$'\t' read -r name how p f s q t runs bad; do
			full_line
		done < <(full_results)
		full_sum
	} >"$FULL_RESULT.tmp"
	mv -f "$FULL_RESULT.tmp" "$FULL_RESULT"
}

# One job of the record, from the variables of full_write
full_line()
{
	printf '%-24s ' "$name"
	if [ "$how" = RAN ]; then
		printf '%6d passed %5d failed %5d skipped %6d s  ' \
			"$p" "$f" "$s" "$t"
		[ "$q" -eq 0 ] || printf '(%d quarantined) ' "$q"
		[ "$f" -eq 0 ] || printf 'FAILED '
		[ "$runs" -eq 1 ] || printf '(in %d of %d runs) ' \
			"$bad" "$runs"
	else
		printf '%-51s' "$how"
	fi
	full_command "$name"
}

# The last lines of the record
full_sum()
{
	full_results | awk -F '\t' '
		{ n++; p += $3; f += $4; s += $5 }
		$2 == "RAN"	{ ran++; if ($4 > 0) bad++ }
		END {
			printf "# %d of %d jobs ran, %d of them failed", ran, \
				n, bad
			printf ran < n ? ": NOT WHOLE\n" : "\n"
			printf "%d passed, %d failed, %d skipped\n", p, f, s
		}'
}

# full_program : the test program that full_job's job runs itself: the last path
# in the command, if it is a built test. Nothing for all other jobs.
full_program()
{
	grep -oE '[^[:space:]"]+/[^[:space:]"]+' <<<"$cmd" | tail -n 1 |
		sed -nE 's,^build/[^/]+/(test/(unit|multi|conform)/\w+)$,\1,p'
}

# full_skips RC : what the programs of full_job's job skipped inside, for its
# log. A job of quickstart has done so itself, and matched the reasons.
full_skips()
{
	local program

	[[ $cmd != *"./quickstart check-"* ]] || return 0
	check_make_skips "$BUILD"
	program=$(full_program) || :
	[ -n "$program" ] || return 0
	skips_in "$log" | sed "s|^|SKIPPED: $program/|"
	# a program that skips all, and names nothing of it
	[ "$1" -ne 77 ] || [ -n "$(skips_in "$log")" ] ||
		echo "SKIPPED: $program"
}

# The number of skips of full_job's job that have a name: those for
# test/skips.txt, and those of the runners, which give the reason themselves.
full_named() { grep -cE '^SKIP(PED)?: [^ ]|^skip - .* # .' "$log" || :; }

# full_verdict RC : sets p, f, s and q of full_job. The job fails if nothing
# passed or was quarantined, unless it skips; and if it skips without a name or
# a reason. By exit code 77 a test program skips all, on a machine without what
# it needs; of any other command 77 is a failure.
full_verdict()
{
	local rc=$1

	full_skips "$rc" >"$log.skips"
	cat "$log.skips" >>"$log"
	rm -f "$log.skips"
	read -r p f s < <(count_line "$log" | grep . ||
			  count_automake "$log") || :
	q=$(grep -c '^QUARANTINED: ' "$log") || :
	show_skips "$log"
	if [ "$rc" -eq 77 ] && [ $((${p:-0} + ${f:-0})) -eq 0 ] &&
	   [ -n "$(full_program)" ]; then
		p=0 f=0 s=$((${s:-0} > 0 ? s : 1))
	elif [ -z "$p" ]; then
		p=0 f=1 s=0
	elif [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
	elif [ $((p + f + s + q)) -eq 0 ]; then
		warn "$name: no test counted"
		f=1
	fi
	if [ "$s" -gt "$(full_named)" ] &&
	   [[ $cmd != *"./quickstart check-"* ]]; then
		warn "$name: of $s skips $(full_named) have a name"
		f=$((f + 1))
	fi
	f=$((f + UNREASONED))
}

# full_job NAME LIMIT COMMAND : run it, note its result in the state file,
# unless the source has changed meanwhile
full_job()
{
	local name=$1 limit=$2 cmd=$3 log=$LOGS/full-$1.log rc=0 start=$SECONDS
	local p="" f="" s="" q

	say "==> $name: $cmd"
	printf '%s\tSTARTED\n' "$name" >>"$FULL_STATE"
	full_write
	# what make check leaves is then of this job
	find "$BUILD/" -name '*.trs' -delete || :
	STEP_LIMIT=$limit run_logged "$log" "$name" \
		"$BASH" "$TOP/scripts/step" check_runner \
		"$BASH" -c "$cmd" || rc=$?
	full_verdict "$rc"
	[ "$f" -eq 0 ] || last_lines "$log" 15
	note "$p passed, $f failed, $s skipped"
	[ "$(full_key)" = "$FULL_KEY" ] || die "the source changed while" \
		"$name ran: its result is of no source and not recorded"
	printf '%s\tENDED\t%s\t%s\t%s\t%s\t%s\n' "$name" "$p" "$f" "$s" \
		"$q" "$((SECONDS - start))" >>"$FULL_STATE"
	full_write
}

# The events that would give the record's results: what full_write wrote, read
full_read()
{
	awk -v OFS='\t' '
		/^#/ || $3 != "passed" || $9 != "s" { next }
		{
			runs = 1
			bad = $4 > 0
			q = 0
			if (match($0, /\([0-9]+ quarantined\)/))
				q = substr($0, RSTART + 1) + 0
			if (match($0, /\(in [0-9]+ of [0-9]+ runs\)/)) {
				split(substr($0, RSTART), of, " ")
				bad = of[2]
				runs = of[4]
			}
			for (i = 0; i < runs; i++)
				print $1, "ENDED", $2, i < bad ? $4 : 0, $6, \
					q, $8
		}' "$FULL_RESULT"
}

# Is this the heading of a state or a record of the present source?
full_ours() { [[ $1 == "source $FULL_KEY, "* ]]; }

# The events of the record that the state does not have: of another machine's
# jobs, and of failures there.
full_merge()
{
	full_read | awk -F '\t' '
		$2 != "ENDED"	{ next }
		FNR == NR	{ seen[$1] = 1; bad[$1] += $4 > 0; next }
		!seen[$1] || ($4 > 0 && !bad[$1])
	' "$FULL_STATE" -
}

# full_heading OLD : the commit of the same source, once there is one
full_heading()
{
	local now

	[[ $1 == *" WITH CHANGES" || $1 == *", no git commit" ]] || return 0
	now=$(full_commit)
	[[ $now == "commit "* && $now != *" WITH CHANGES" ]] || return 0
	sed -i "1s/.*/source $FULL_KEY, $now/" "$FULL_STATE"
}

# The results so far, if they are of this source; else none
full_begin()
{
	local state record

	FULL_KEY=$(full_key)
	state=$(head -n 1 "$FULL_STATE" 2>/dev/null) || :
	record=$(sed -n '2s/^# //p' "$FULL_RESULT" 2>/dev/null) || :
	if full_ours "$state"; then
		say "going on with the run of this source"
		full_heading "$state"
	elif full_ours "$record"; then
		say "going on with the record of this source"
		sed -n '2,3s/^# //p' "$FULL_RESULT" >"$FULL_STATE"
		full_heading "$record"
	else
		{
			echo "source $FULL_KEY, $(full_commit)"
			echo "$(date -u +%Y-%m-%d), $(uname -sm), $(nproc)" \
				"cores, $(gcc --version | head -n 1)"
		} >"$FULL_STATE"
	fi
	if full_ours "$record"; then
		full_merge >"$FULL_STATE.tmp"
		cat "$FULL_STATE.tmp" >>"$FULL_STATE"
	fi
}

# full_run [JOB...] : those jobs, also those that have a result; or each job
# without one
full_run()
{
	local name limit cmd how _

	for name; do
		[ -n "$(full_command "$name")" ] ||
			die "check-full: no job '$name' in scripts/full.list"
	done
	full_begin
	# the shares that thinned jobs run (test/lib_run.py)
	export UNM_TEST_SHARE=$((0x${FULL_KEY:0:4}))
	EXIT_HOOKS+=(full_write)
	full_write
	while IFS=: read -r name limit cmd; do
		how=$(full_results | awk -F '\t' -v n="$name" \
			'$1 == n { print $2 }')
		if [ $# -gt 0 ]; then
			[[ " $* " == *" $name "* ]] || continue
		elif [ "$how" = RAN ]; then
			continue
		fi
		full_job "$name" "${limit// /}" "${cmd# }" </dev/null
	done < <(full_jobs)
	full_end
}

# The closing line; success only if every job of the list ran and none failed
full_end()
{
	local name how p f s _ missing=0

	while IFS=$'\t' read -r name how p f s _; do
		if [ "$how" = RAN ]; then
			tally "$name" "$p" "$f" "$s"
		else
			TALLY+=("$(printf '%-28s %s' "$name" "$how")")
			missing=$((missing + 1))
		fi
	done < <(full_results)
	note "written to ${FULL_RESULT#"$TOP"/}"
	conclude && [ "$missing" -eq 0 ]
}

check_full()
{
	packages_need build
	packages_need check
	build_all
	# jobs may run before check has built the tests, or alone
	step tests "building the tests" \
		"make -C build/obj check TESTS= shows the commands." \
		make -s -C "$OBJ" -j"$JOBS" check TESTS=
	check_build_asan
	full_run "$@"
}
