# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-full [JOB...]: the jobs of scripts/full.list, and the
# record of their results, docs/check-full.txt. Only this file writes the
# record: each job of the list is there, with its result and the commit that had
# it, or as NOT RUN. A run can be stopped at any time; the next one goes
# on with the jobs that have no result yet, in another clone or on another
# machine from the committed record. A change to the source discards the results
# of the jobs whose inputs it touches (the lines with "=" in the list).

FULL_STATE=$BUILD/full.state	# the events of jobs, also of other sources
FULL_RESULT=$TOP/docs/check-full.txt
FULL_HEADING=			# which source, where
FULL_COMMIT=			# of it
FULL_JOBS=			# the list, by full_keys

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

# The hash of each source file, and its path
full_hashes()
{
	(cd "$TOP" && full_files | sed 's,^\./,,' | LC_ALL=C sort |
		while read -r f; do
			[ ! -f "$f" ] || printf '%s\n' "$f"
		done | xargs -r -d '\n' sha256sum)
}

# full_inputs PATH... : the lines of full_hashes, at standard input, of files at
# or below these paths, and not at or below those with "-"; a path that ends
# with "*" is the beginning of names
full_inputs()
{
	awk -v paths="$*" '
		BEGIN { n = split(paths, path, " ") }
		function below(file, dir) {
			if (sub(/\*$/, "", dir))
				return index(file, dir) == 1
			return dir == "." || file == dir ||
				index(file, dir "/") == 1
		}
		{
			file = substr($0, 67)
			yes = 0
			for (i = 1; i <= n; i++)
				if (path[i] !~ /^-/)
					yes = yes || below(file, path[i])
				else if (below(file, substr(path[i], 2)))
					next
			if (yes)
				print
		}'
}

# A hash of standard input
full_hash() { sha256sum | cut -c1-16; }

# The jobs of the list, each after the paths of its inputs and a tab
full_list()
{
	awk '
		/^[ \t]*(#|$)/	{ next }
		/^@/ {
			name = $1
			sub(/^[^ ]+ /, "")
			group[name] = $0
			next
		}
		/^=/ {
			paths = ""
			for (i = 2; i <= NF; i++)
				paths = paths ($i in group ? group[$i] : $i) " "
			next
		}
		{ print (paths == "" ? "." : paths group["@all"]) "\t" $0 }
	' "$TOP/scripts/full.list"
}

# full_keys : the jobs of the list, with tabs: name, key, share, limit, command.
# The key is a hash of the command, the compiler and the inputs; the share, of
# the inputs, is for thinned jobs (test/lib_run.py, test/check/thin.sh).
full_keys()
{
	local hashes paths last="" inputs name limit cmd cc

	hashes=$(full_hashes)
	cc=$(gcc --version | head -n 1)
	while IFS=$'\t' read -r paths name; do
		if [ "$paths" != "$last" ]; then
			inputs=$(full_inputs "$paths" <<<"$hashes" | full_hash)
			last=$paths
		fi
		IFS=: read -r name limit cmd <<<"$name"
		printf '%s\t%s\t%d\t%s\t%s\n' "$name" \
			"$(full_hash <<<"$inputs$cmd$cc")" "0x${inputs:0:4}" \
			"${limit// /}" "${cmd# }"
	done < <(full_list)
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

# full_results : of each job of the list, in one line with tabs: name, RAN or
# SKIPPED or NOT RUN or NOT FINISHED, passed, failed, skipped, quarantined,
# seconds, runs, failed runs, key, commit. Of the events, those count that have
# the job's present key. The numbers are those of the run with most failures: a
# later run does not hide an earlier one. A run in which all was skipped counts
# until there is another one.
full_results()
{
	awk -F '\t' -v OFS='\t' '
		FNR == NR {
			job = $1 FS $2
			if ($3 == "STARTED") {
				open[job] = 1
			} else if ($3 == "ENDED") {
				open[job] = 0
				if (ran[job] == 0)
					runs[job] = f[job] = 0
				ran[job] += $4 + $5 + $7
				if (!runs[job]++ || $5 > f[job]) {
					p[job] = $4; f[job] = $5; s[job] = $6
					q[job] = $7; t[job] = $8; c[job] = $9
				}
				if ($5 > 0)
					bad[job]++
			}
			next
		}
		{
			job = $1 FS $2
			print $1, ran[job] ? "RAN" : runs[job] ? "SKIPPED" : \
				open[job] ? "NOT FINISHED" : "NOT RUN", \
				p[job] + 0, \
				f[job] + 0, s[job] + 0, q[job] + 0, \
				t[job] + 0, runs[job] + 0, bad[job] + 0, $2, \
				c[job]
		}' "$FULL_STATE" - <<<"$FULL_JOBS"
}

# full_command NAME : of the list
full_command()
{
	awk -F '\t' -v name="$1" '$1 == name { print $5; exit }' <<<"$FULL_JOBS"
}

# The record
full_write()
{
	local name how p f s q t runs bad key commit

	mkdir -p "${FULL_RESULT%/*}"
	{
		echo "# Written by ./quickstart check-full; not to be edited."
		echo "# ${FULL_HEADING//$'\n'/$'\n# '}"
		while IFS=$'\t' read -r name how p f s q t runs bad key \
				commit; do
			full_line
		done < <(full_results)
		full_sum
	} >"$FULL_RESULT.tmp"
	mv -f "$FULL_RESULT.tmp" "$FULL_RESULT"
}

# One job of the record, from the variables of full_write
full_line()
{
	printf '%-20s %s ' "$name" "$key"
	if [[ $how != NOT* ]]; then
		printf '%6d passed %5d failed %5d skipped %6d s  ' \
			"$p" "$f" "$s" "$t"
		[ "$q" -eq 0 ] || printf '(%d quarantined) ' "$q"
		[ "$f" -eq 0 ] || printf 'FAILED '
		[ "$runs" -eq 1 ] || printf '(in %d of %d runs) ' \
			"$bad" "$runs"
		printf 'at %s: ' "$commit"
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
		$2 !~ /^NOT/	{ ran++; if ($4 > 0) bad++ }
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

# full_job NAME KEY SHARE LIMIT COMMAND : run it, note its result in the state
# file, unless its inputs have changed meanwhile
full_job()
{
	local name=$1 key=$2 share=$3 limit=$4 cmd=$5
	local log=$LOGS/full-$1.log rc=0 start=$SECONDS p="" f="" s="" q

	say "==> $name: $cmd"
	printf '%s\t%s\tSTARTED\n' "$name" "$key" >>"$FULL_STATE"
	full_write
	# what make check leaves is then of this job
	find "$BUILD/" -name '*.trs' -delete || :
	UNM_TEST_SHARE=$share STEP_LIMIT=$limit run_logged "$log" "$name" \
		"$BASH" "$TOP/scripts/step" check_runner \
		"$BASH" -c "$cmd" || rc=$?
	full_verdict "$rc"
	[ "$f" -eq 0 ] || last_lines "$log" 15
	note "$p passed, $f failed, $s skipped"
	grep -q "^$name"$'\t'"$key"$'\t' <<<"$(full_keys)" ||
		die "the source changed while $name ran: its result is of no" \
			"source and not recorded"
	printf '%s\t%s\tENDED\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$key" \
		"$p" "$f" "$s" "$q" "$((SECONDS - start))" "$FULL_COMMIT" \
		>>"$FULL_STATE"
	full_write
}

# The events that would give the record's results: what full_write wrote, read
full_read()
{
	[ -e "$FULL_RESULT" ] || return 0
	awk -v OFS='\t' '
		/^#/ || $4 != "passed" || $10 != "s" { next }
		{
			runs = 1
			bad = $5 > 0
			q = 0
			commit = "unknown"
			if (match($0, / at [^ ]+: /))
				commit = substr($0, RSTART + 4, RLENGTH - 6)
			if (match($0, /\([0-9]+ quarantined\)/))
				q = substr($0, RSTART + 1) + 0
			if (match($0, /\(in [0-9]+ of [0-9]+ runs\)/)) {
				split(substr($0, RSTART), of, " ")
				bad = of[2]
				runs = of[4]
			}
			for (i = 0; i < runs; i++)
				print $1, $2, "ENDED", $3, i < bad ? $5 : 0, \
					$7, q, $9, commit
		}' "$FULL_RESULT"
}

# The events of the record that the state does not have: of another machine's
# jobs, and of failures there.
full_merge()
{
	full_read | awk -F '\t' '
		$3 != "ENDED"	{ next }
		{ job = $1 FS $2 }
		FNR == NR	{ seen[job] = 1; bad[job] += $5 > 0; next }
		!seen[job] || ($5 > 0 && !bad[job])
	' "$FULL_STATE" -
}

# The jobs, and the results so far
full_begin()
{
	local commit merged

	[ -n "$FULL_JOBS" ] || FULL_JOBS=$(full_keys)
	commit=$(full_commit)
	FULL_HEADING="source $(full_hashes | full_hash), $commit
last run on $(date -u +%Y-%m-%d), $(uname -sm), $(nproc) cores, $(gcc \
	--version | head -n 1)"
	FULL_COMMIT=${commit#*commit }
	FULL_COMMIT=${FULL_COMMIT/ WITH CHANGES/+changes}
	[ -s "$FULL_STATE" ] ||
		echo "# name, key, event, then its numbers" >"$FULL_STATE"
	merged=$(full_merge)
	[ -z "$merged" ] || printf '%s\n' "$merged" >>"$FULL_STATE"
}

# full_run [JOB...] : those jobs, also those that have a result; or each job
# without one
full_run()
{
	local name key share limit cmd how

	full_begin
	for name; do
		[ -n "$(full_command "$name")" ] ||
			die "check-full: no job '$name' in scripts/full.list"
	done
	EXIT_HOOKS+=(full_write)
	full_write
	while IFS=$'\t' read -r name key share limit cmd; do
		how=$(full_results | awk -F '\t' -v n="$name" \
			'$1 == n { print $2 }')
		if [ $# -gt 0 ]; then
			[[ " $* " == *" $name "* ]] || continue
		elif [ "$how" = RAN ]; then
			continue
		fi
		full_job "$name" "$key" "$share" "$limit" "$cmd" </dev/null
	done <<<"$FULL_JOBS"
	full_end
}

# The closing line; success only if every job of the list ran and none failed
full_end()
{
	local name how p f s _ missing=0

	while IFS=$'\t' read -r name how p f s _; do
		if [[ $how != NOT* ]]; then
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
	# of what will be built: a change from now on is noticed
	FULL_JOBS=$(full_keys)
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
