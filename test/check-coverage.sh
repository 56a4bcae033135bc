#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-coverage.sh BUILD SOURCE: what "make coverage" prints after the tests.
# With gcovr or lcov a page per file, else the sums that gcov gives.
set -e
build=$1
src=$2

if command -v gcovr >/dev/null 2>&1; then
	mkdir -p "$build/html"
	gcovr -r "$src" --filter "$src/prov/" --object-directory "$build" \
		--print-summary --html-details "$build/html/index.html" "$build"
	echo "see $build/html/index.html"
elif command -v lcov >/dev/null 2>&1; then
	lcov -q -c -d "$build" -o "$build/all.info"
	lcov -q -e "$build/all.info" "$src/prov/*" -o "$build/prov.info"
	genhtml -q -o "$build/html" "$build/prov.info"
	lcov --summary "$build/prov.info"
	echo "see $build/html/index.html"
else
	find "$build" -name '*.gcda' -exec gcov -n {} + 2>/dev/null | awk '
	/^File / {
		file = $2
		gsub(/\047/, "", file)
		sub(".*/prov/", "prov/", file)
	}
	/^Lines executed:/ && file ~ /^prov\// {
		split($2, part, /[:%]/)
		if (part[2] + 0 >= best[file] + 0) {
			best[file] = part[2]
			lines[file] = $NF
		}
	}
	END {
		for (file in best) {
			printf "%6.1f %% of %5d lines  %s\n", \
				best[file], lines[file], file
			done += best[file] * lines[file] / 100
			all += lines[file]
		}
		if (all)
			printf "%6.1f %% of %5d lines  all\n", \
				100 * done / all, all
	}' | LC_ALL=C sort -k 6
	echo "(gcovr or lcov would make a page per file)"
fi
