#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The installed header stands alone, in strict C and in C++, and the example of
# its manual page compiles.
. "$(dirname "$0")/check-lib.sh"

compiles()
{
	command -v "$1" >/dev/null 2>&1 || return 0
	tried=1
	# as it is after the installation: <rdma/fi_ext_unimem.h>
	"$@" -Wall -Wextra -Werror -fsyntax-only -isystem "$tmp" - <"$tmp/x" ||
		failed=1
}

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/rdma" && cp prov/unimem/fi_ext_unimem.h "$tmp/rdma" || exit 99
failed=0
tried=

echo '#include <rdma/fi_ext_unimem.h>' >"$tmp/x"
compiles "${CC:-cc}" -x c -std=c99
compiles c++ -x c++ -std=c++11
sed -n '/^#include <stdlib.h>$/,/^\.Ed$/p' man/fi_unimem_mem.3 |
	sed '$d' >"$tmp/x"
[ -s "$tmp/x" ] || { echo "the manual page has no example"; failed=1; }
compiles "${CC:-cc}" -x c
[ -n "$tried" ] || skip "there is no compiler"
exit $failed
