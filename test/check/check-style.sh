#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What can be seen without taste: blanks at line ends, tabs, 80 columns,
# forbidden functions. The rest is in .clang-format and CONTRIBUTING.md.
. "$(dirname "$0")/check-lib.sh"

# shellcheck disable=SC2016 # awk's dollars
{ c_files; sh_files; makefiles; echo configure.ac; } | xargs awk '
function bad(why)
{
	print FILENAME ":" FNR ": " why
	failed = 1
}
BEGIN {
	forbidden = "(^|[^A-Za-z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|" \
		"strtok|alloca)[ \\t]*\\("
	number = "(^|[^A-Za-z0-9_])(atoi|atol|atof)[ \\t]*\\("
	fence = "(^|[^A-Za-z0-9_])(atomic_thread_fence|__sync_[a-z_]+)" \
		"[ \\t]*\\("
}
function columns(line,	n, i)
{
	if (line !~ /\t/)
		return length(line)
	for (i = 1; i <= length(line); i++)
		n = substr(line, i, 1) == "\t" ? n - n % 8 + 8 : n + 1
	return n
}
FNR == 1 { is_c = FILENAME ~ /\.[ch]$/; comment = 0 }
/\r$/ { bad("carriage return") }
/[ \t]$/ { bad("blank at the end of the line") }
length($0) > 40 && columns($0) > 80 { bad("longer than 80 columns") }
!is_c { next }
/^\t*        / { bad("eight blanks: use a tab") }
/^[ \t]+\t* +\t/ { bad("blank before a tab") }
{
	code = $0
	gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
	gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, "", code)
	if (comment) {
		if (code !~ /\*\//)
			next
		sub(/.*\*\//, "", code)
		comment = 0
	}
	if (code ~ /\/\*/) {
		sub(/\/\*.*/, "", code)
		comment = 1
	}
}
code ~ /\/\// && !(FNR == 1 && /SPDX/) { bad("use /* */") }
code ~ forbidden { bad("forbidden: strcpy, sprintf and their like") }
FILENAME ~ /^(test|bench)\// { next }
code ~ number { bad("forbidden: atoi and its like, which see no error") }
code ~ fence {
	bad("stand-alone fence: ThreadSanitizer cannot follow it")
}
END { exit failed }' || exit 1

failed=0
for f in $(c_files; sh_files); do
	[ -z "$(tail -c 1 "$f")" ] || {
		echo "$f: no newline at the end"
		failed=1
	}
done
exit $failed
