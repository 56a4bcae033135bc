#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The installed headers stand alone, in strict C and in C++; the manual has the
# functions of GSAS as the headers declare them, all of them; the examples of
# the manual compile.
. "$(dirname "$0")/check-lib.sh"

compiles()
{
	command -v "$1" >/dev/null 2>&1 || return 0
	tried=1
	# as it is after the installation: <rdma/fi_ext_unimem.h>, <gsas.h>
	"$@" -Wall -Wextra -Werror -fsyntax-only -isystem "$tmp" - <"$tmp/x" &&
		return
	echo "$what does not compile with $*"
	failed=1
}

# prototypes HEADER PAGE... : a line for each "TYPE NAME(ARGUMENTS);" in the
# synopses of those pages that say it is in this header
prototypes()
{
	awk -v header="$1" '
	BEGIN { ARGV[1] = "" }
	/^\.Sh / { on = 0 }
	/^\.Sh SYNOPSIS/ { synopsis = 1 }
	synopsis && /^\.In / { on = $2 == header; synopsis = 0 }
	on && /^\.Ft / { type = substr($0, 5); gsub(/"/, "", type) }
	on && /^\.Fn / {
		name = $2
		args = $0
		sub(/^\.Fn [^ ]+ "/, "", args)
		gsub(/" "/, ", ", args)
		sub(/"$/, "", args)
		print type " " name "(" args ");"
	}' "$@"
}

# the names of what a header exports
exported()
{
	tr '\n' ' ' <"$1" | grep -oE "$2 [^;(]*[ *][A-Za-z0-9_]+\(" |
		sed 's/($//; s/.*[ *]//' | LC_ALL=C sort
}

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/rdma" && cp prov/unimem/fi_ext_unimem.h "$tmp/rdma" &&
	cp gsas/gsas.h gsas/atomic.h "$tmp" || exit 99
failed=0
tried=

for what in rdma/fi_ext_unimem.h gsas.h atomic.h; do
	echo "#include <$what>" >"$tmp/x"
	compiles "${CC:-cc}" -x c -std=c99
	compiles c++ -x c++ -std=c++11
done

# The listing of section 2.4.2 of the paper, tmp = *(*(array + 3) + 5), with the
# types of the ordinary program that it was.
what="the paper's listing"
cat >"$tmp/x" <<'LISTING'
#include <atomic.h>
uint64_t listing(void);
uint64_t listing(void)
{
	uint64_t **array = (uint64_t **)allocSharedPage(1, 0);
	uint64_t *row = (uint64_t *)allocSharedPage(1, getNumberBoards() - 1);
	uint64_t (*read)(uint64_t *addr) = READ64;

	WRITE64(array + 3, (uint64_t)row);
	row = (uint64_t *)READ64(array + 3);
	FAD64(row + 5, 1);
	return READ64(row + 5) + read(row);
}
LISTING
for std in c99 gnu17; do
	compiles "${CC:-cc}" -x c -std=$std
done
compiles c++ -x c++ -std=c++11

# A name that is declared twice, with different types, is an error.
for header in gsas.h atomic.h; do
	what="the synopsis of $header"
	prototypes "$header" man/gsas*.3 >"$tmp/$header.man"
	{
		echo "#define GSAS_ATOMIC_FUNCTIONS"
		echo "#include <$header>"
		cat "$tmp/$header.man"
	} >"$tmp/x"
	compiles "${CC:-cc}" -x c -std=c99
done
exported gsas/gsas.h GSAS_API >"$tmp/code"
exported gsas/atomic.h GSAS_ATOMIC_API >>"$tmp/code"
[ "$(wc -l <"$tmp/code")" -ge 50 ] || {
	echo "only $(wc -l <"$tmp/code") functions found in gsas.h and atomic.h"
	failed=1
}
LC_ALL=C sort -o "$tmp/code" "$tmp/code"
sed 's/(.*//; s/.*[ *]//' "$tmp/gsas.h.man" "$tmp/atomic.h.man" |
	LC_ALL=C sort >"$tmp/man"
for f in man/gsas*.3; do
	sed -n '/^\.Sh NAME/,/^\.Sh SYNOPSIS/s/^\.Nm \([^ ]*\).*/\1/p' "$f"
done | LC_ALL=C sort >"$tmp/names"
for list in man names; do
	diff "$tmp/code" "$tmp/$list" >"$tmp/diff" || {
		echo "functions of the headers (<), and of the manual's $list:"
		cat "$tmp/diff"
		failed=1
	}
done

for what in man/*.3; do
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$what" |
		sed '1,/^\.Bd -literal/d; /^\.Ed/d; s/\\e/\\/g' >"$tmp/x"
	[ -s "$tmp/x" ] || { echo "$what has no example"; failed=1; }
	compiles "${CC:-cc}" -x c
done
[ -n "$tried" ] || skip "there is no compiler"
exit $failed
