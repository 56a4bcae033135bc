# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-full: the long matrices of scripts/full.list. Can be
# stopped at any time: the next run goes on with the first job not yet passed.
# A change to the source starts them anew.

FULL_STATE=$BUILD/full.state
FULL_RESULT=$TOP/docs/check-full.txt

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

# What is being tested
full_key()
{
	(cd "$TOP" && full_files | LC_ALL=C sort |
		while read -r f; do
			[ ! -f "$f" ] || sha256sum "$f"
		done | sha256sum | cut -c1-16)
}

full_jobs() { sed -e '/^[[:space:]]*\(#\|$\)/d' "$TOP/scripts/full.list"; }

# A job that failed is run again.
full_done() { grep -qP "^$1\t\d+\t0\t" "$FULL_STATE"; }

# full_job NAME LIMIT COMMAND : run it, note its counts in the state file
full_job()
{
	local name=$1 limit=$2 cmd=$3 log=$LOGS/full-$1.log rc=0 start=$SECONDS
	local p="" f="" s=""

	say "==> $name: $cmd"
	STEP_LIMIT=$limit run_logged "$log" "$name" \
		"$BASH" "$TOP/scripts/step" check_runner \
		"$BASH" -c "$cmd" || rc=$?
	read -r p f s < <(count_line "$log" | grep . ||
			  count_automake "$log") || :
	if [ -z "$p" ]; then
		p=0 f=1 s=0
	elif [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
	fi
	[ "$f" -eq 0 ] || last_lines "$log" 15
	note "$p passed, $f failed, $s skipped"
	sed -i "/^$name\t/d" "$FULL_STATE"
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$p" "$f" "$s" \
		"$((SECONDS - start))" "$cmd" >>"$FULL_STATE"
}

full_write()
{
	mkdir -p "${FULL_RESULT%/*}"
	{
		echo "# The last whole run of ./quickstart check-full."
		echo "# $(date -u +%Y-%m-%d), $(uname -sm)," \
			"$(nproc) cores, $(gcc --version | head -n 1)"
		echo "# source $(full_key)"
		awk -F '\t' '!/^#/ {
			printf "%-24s %6d passed %5d failed ", $1, $2, $3
			printf "%5d skipped %6d s  %s\n", $4, $5, $6
		}' "$FULL_STATE"
		say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	} >"$FULL_RESULT"
}

check_full()
{
	local name limit cmd key _

	packages_need build
	packages_need check
	build_all
	key=$(full_key)
	if [ "$(head -n 1 "$FULL_STATE" 2>/dev/null)" != "# $key" ]; then
		printf '# %s\n' "$key" >"$FULL_STATE"
	else
		say "going on with the run that was stopped"
	fi
	while IFS=: read -r name limit cmd; do
		full_done "$name" ||
			full_job "$name" "${limit// /}" "${cmd# }" </dev/null
	done < <(full_jobs)
	while IFS=$'\t' read -r name p f s _; do
		case $name in '#'*) continue ;; esac
		tally "$name" "$p" "$f" "$s"
	done <"$FULL_STATE"
	full_write
	note "written to ${FULL_RESULT#"$TOP"/}"
	[ "$FAILED" -gt 0 ] || rm -f "$FULL_STATE"
	conclude
}
