#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs/fidelity.md: each row names a paragraph, a statement, a place, tests and
# a verdict; the files and tests exist; each case of the register model's tests
# is in a table.
. "$(dirname "$0")/check-lib.sh"

doc=docs/fidelity.md
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0
bad()
{
	echo "$doc: $*"
	failed=1
}

# Cells of the rows: file TAB tests TAB verdict. A row has five cells, the first
# of which is not "paragraph" or dashes. A paragraph is one or several of a
# paper of the legend, with a number or a name, or "nowhere".
awk -F ' *[|] *' '
function bad(why)
{
	print FILENAME ": line " NR ": " why
	wrong = 1
}
/^[|]/ {
	if (NF != 7 || $7 != "") {
		bad("not five cells")
		next
	}
	if ($2 == "paragraph" || $2 ~ /^-+$/)
		next
	if ($2 !~ /^(nowhere|PG034( .+)?)$/ &&
	    $2 !~ /^[DHOQZ] (table |figures )?[0-9]/)
		bad("\"" $2 "\" is no paragraph")
	if ($3 == "")
		bad("it says nothing")
	if ($4 == "" || $5 == "")
		bad("a place or a test is missing; none is \"nowhere\"")
	if ($6 !~ /^(right|a check of the tests)/ &&
	    $6 !~ /^[a-z ]+[:;,] [^ ]/)
		bad("a verdict without its reason")
	if ($6 !~ /^not modelled/ && ($4 == "nowhere" || $5 == "nowhere"))
		bad("only what is not modelled is nowhere, or without a test")
	print $4 "\t" $5 "\t" $6 >rows
}
END { exit wrong }' rows="$tmp/rows" "$doc" || failed=1
[ "$(wc -l <"$tmp/rows")" -ge 40 ] || {
	echo "$doc: where are its tables now?"
	exit 1
}

# the verdict begins with a word of the legend; what is right has a test
cut -f 3 "$tmp/rows" | while IFS= read -r verdict; do
	sed -n 's/^- \*\*\([a-z ]*\)\*\*.*/\1/p' "$doc" | {
		while read -r word; do
			case $verdict in
			"$word"|"$word"[:\;,]*|"$word in "*) exit 0 ;;
			esac
		done
		exit 1
	} || echo "$verdict"
done >"$tmp/unknown"
while IFS= read -r verdict; do
	bad "'$verdict' is no verdict of the legend"
done <"$tmp/unknown"
# files: "a/b.c, d.h (`x`)"
cut -f 1 "$tmp/rows" | sed 's/ *([^)]*)//g' | tr ',' '\n' | tr -d ' ' |
	LC_ALL=C sort -u | grep -v '^nowhere$' >"$tmp/files"
while read -r file; do
	[ -f "$file" ] || [ -f "prov/unimem/hal/$file" ] ||
		bad "there is no file '$file'"
done <"$tmp/files"

# tests: "`prog: a, b`; `prog`", one "prog case" a line; "prog -": all of prog
cut -f 2 "$tmp/rows" | tr ';' '\n' | tr -d '`' | awk '
	$0 ~ /^ *(nowhere)? *$/ { next }
	{
		n = split($0, part, ":")
		gsub(/ /, "", part[1])
		if (n == 1)
			print part[1], "-"
		m = split(part[2], name, ",")
		for (i = 1; i <= m; i++) {
			gsub(/ /, "", name[i])
			print part[1], name[i]
		}
	}' | LC_ALL=C sort -u >"$tmp/tests"
[ "$(wc -l <"$tmp/tests")" -ge 60 ] || bad "where are its tests now?"
while read -r prog name; do
	path=$(find test/unit test/multi -name "$prog.c")
	if [ -z "$path" ]; then
		bad "there is no test '$prog'"
	elif [ "$name" != - ]; then
		# in a list of cases: cmocka_unit_test(name), X_TEST(name)
		grep -qE "^[[:space:]]*[A-Za-z_]+\($name\b.*\),?\$" "$path" ||
			bad "$path has no case '$name'"
	fi
done <"$tmp/tests"

# and each case of the register model's tests has a row
for prog in test_regs test_regs_bus test_regs_dma test_regs_stop \
		test_regs_proc test_regs_time; do
	find test/unit test/multi -name "$prog.c" -exec sed -nE \
		's/^\s*(cmocka_unit_test|CASE)\(([a-z0-9_]*)\),$/\2/p' \
		{} + >"$tmp/cases"
	[ -s "$tmp/cases" ] || bad "$prog lists no cases"
	while read -r name; do
		grep -qx "$prog $name" "$tmp/tests" ||
			bad "no row has '$prog: $name'"
	done <"$tmp/cases"
done
exit $failed
