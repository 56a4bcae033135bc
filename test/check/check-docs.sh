#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The pages of docs/ name files, functions and tests that exist: each row
# "FILE: FUNCTION" of docs/architecture.md, each source file with its folder,
# each test and each model. Commands in them name no tree's path.
. "$(dirname "$0")/check-lib.sh"

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0
bad()
{
	echo "$*"
	failed=1
}

{ find prov gsas rdma mailbox malloc tools test bench -type f; ls; } \
	>"$tmp/files" 2>/dev/null
pages="docs/*.md README.md CONTRIBUTING.md"
# where WORD : the pages that have it
# shellcheck disable=SC2086 # a list of pages
where() { grep -lwF -e "$1" $pages | tr '\n' ' '; }

# exists PATH : a file of that path, from the top or below a folder
exists()
{
	grep -qE "(^|/)$(printf '%s' "$1" | sed 's/[.]/[.]/g')\$" "$tmp/files"
}

# "FILE FUNCTION" of each row of the tables: | FILE: `A`, `B`; FILE: `C` |
# shellcheck disable=SC2016 # backquotes of the page
sed -n 's/^| \([a-z_/]*\.[ch]: `[^|]*`\) |.*/\1/p' docs/architecture.md |
	awk -F '; ' '{
		for (i = 1; i <= NF; i++) {
			split($i, part, ": ")
			n = split(part[2], name, ", ")
			for (k = 1; k <= n; k++) {
				gsub(/`/, "", name[k])
				print part[1], name[k]
			}
		}
	}' >"$tmp/pairs"
[ "$(wc -l <"$tmp/pairs")" -ge 40 ] || {
	echo "docs/architecture.md: where are its tables now?"
	exit 1
}
while read -r file name; do
	path=$(grep "/$file\$" "$tmp/files" | head -n 1)
	if [ -z "$path" ]; then
		bad "docs/architecture.md: there is no $file"
	else
		# a definition begins in the first column
		grep -qE "^[A-Za-z][^;]*\<$name\(" "$path" ||
			bad "docs/architecture.md: $file defines no $name()"
	fi
done <"$tmp/pairs"

# docs/fidelity.md also names cases of tests, which check-fidelity.sh finds
# shellcheck disable=SC2086,SC2046 # lists of pages
grep -ohE '\<(test|fuzz)_[a-z0-9_]*[a-z0-9]\>' \
	$(printf '%s\n' $pages | grep -v '/fidelity[.]md$') | LC_ALL=C sort -u |
	grep -v '^test_x$' >"$tmp/tests"
while read -r name; do
	exists "$name.c" || exists "$name.h" ||
		bad "there is no $name.c: $(where "$name")"
done <"$tmp/tests"

# shellcheck disable=SC2086
grep -ohE '[`[:blank:]][a-z_]+/[a-z_/]*[a-z_0-9]+\.[ch]\>' $pages |
	tr -d '` \t' | LC_ALL=C sort -u |
	grep -vE '^(unimem|rdma|build)/|^test/test_x' >"$tmp/paths"
# shellcheck disable=SC2086
grep -ohE '\<[a-z_]+\.pml\>' $pages | LC_ALL=C sort -u >>"$tmp/paths"
while read -r path; do
	exists "$path" ||
		bad "there is no $path: $(where "$path")"
done <"$tmp/paths"

# a command that names where somebody's tree was works nowhere else
grep -rnoE '(^|[^[:alnum:]_./}*])/[[:alnum:]_./-]+/(build|prov|bench|gsas)/' \
	docs README.md CONTRIBUTING.md NEWS >"$tmp/absolute" && {
	cat "$tmp/absolute"
	bad "paths of somebody's tree: name files from the top folder"
}
exit $failed
