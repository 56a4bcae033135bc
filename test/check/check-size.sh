#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Files of at most 800 lines, functions of at most 60, from brace to brace.
. "$(dirname "$0")/check-lib.sh"

# shellcheck disable=SC2016 # awk's dollars
{ c_files; sh_files; } | xargs awk '
function bad(line, why)
{
	print FILENAME ":" line ": " why
	failed = 1
}
FNR == 1 {
	start = 0
	name = ""
	is_c = FILENAME ~ /\.[ch]$/
}
FNR == 801 { bad(FNR, "longer than 800 lines") }
!is_c { next }
# kernel style: a function has its braces in the first column
/^[A-Za-z_].*\(/ && !/;[ \t]*$/ { name = $0 }
/^[A-Za-z_][^={]*\).*\{[ \t]*$/ && !/^(struct|union|enum|typedef)/ {
	bad(FNR, "the brace of a function has a line of its own")
}
/^\{/ { start = FNR }
/^\}/ && start {
	if (FNR - start + 1 > 60)
		bad(start, FNR - start + 1 " lines: " name)
	start = 0
}
END { exit failed }'
