#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-coverage.sh BUILD SOURCE: what "make coverage" says after the tests, by
# gcov: of each file the lines that ran, and the branches that were taken at
# least once. Code that only boards run has no second test: of the branches of
# each file in the device backend's folder more than 90 % must be taken. GCOV:
# the compiler's own.
set -e
build=$1
src=$(cd "$2" && pwd)
folder=prov/unimem/hal/dev
must=$(cd "$src" && find "$folder" -name '*.c' | LC_ALL=C sort)
[ -n "$must" ] || {
	echo "$folder has no .c file: where is the device backend?"
	exit 1
}

# A source may have been compiled several times, a header is in many objects:
# what one of them took is taken.
counts()
{
	find "$build/prov" -name '*.gcda' \
		-exec "${GCOV:-gcov}" -t -b -c {} + 2>/dev/null |
	awk -v src="$src/" '
	{ colon = index($0, ":") }
	/^ *-: *0:Source:/ {
		file = substr($0, index($0, "Source:") + 7)
		file = index(file, src) == 1 ? \
			substr(file, length(src) + 1) : ""
		next
	}
	file !~ /^prov\// { next }
	/^ *[^ :]+: *[0-9]+:/ {
		ran = substr($0, 1, colon - 1)
		line = substr($0, colon + 1)
		line = file ":" (line + 0)
		gsub(/ /, "", ran)
		if (ran == "-")
			next
		if (!(line in lines)) {
			lines[line] = 0
			all[file]++
		}
		if (ran !~ /^[#=]/ && !lines[line]++)
			did[file]++
		next
	}
	/^branch +[0-9]+ / {
		at = line " " $2
		if (!(at in branches)) {
			branches[at] = 0
			ways[file]++
		}
		if ($3 == "taken" && $4 > 0 && !branches[at]++)
			took[file]++
	}
	END {
		for (file in all)
			print file, did[file] + 0, all[file], \
				took[file] + 0, ways[file] + 0
	}' | LC_ALL=C sort
}

table=$(counts)
printf '%s\n' "$table" | awk '
	function row(name, did, all, took, ways)
	{
		printf "%6.1f %% of %5d lines", all ? 100 * did / all : 0, all
		if (ways)
			printf "  %6.1f %% of %5d branches", \
				100 * took / ways, ways
		else
			printf "%28s", ""
		print "  " name
	}
	NF == 5 {
		row($1, $2, $3, $4, $5)
		for (i = 2; i <= 5; i++)
			sum[i] += $i
	}
	END { row("all", sum[2], sum[3], sum[4], sum[5]) }'

# a file of which nothing ran is not in the table
passed=0
failed=0
for file in $must; do
	percent=$(printf '%s\n' "$table" | awk -v file="$file" '
		$1 == file && $5 {
			printf "%.2f", 100 * $4 / $5
			ok = 10 * $4 > 9 * $5
		}
		END { print ok ? "" : " too-few" }')
	case $percent in
	*too-few)
		failed=$((failed + 1))
		percent=${percent% *}
		echo "$file: ${percent:-0} % of its branches were taken," \
			"want more than 90 %" ;;
	*)
		passed=$((passed + 1)) ;;
	esac
done
# alone on a line, for scripts/full.list
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
