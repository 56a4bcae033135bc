#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A test calls each function that the libraries for programs export. Functions
# for other libraries of this project (gsas_port.h) need none: libunimem-rdma
# calls them, which has tests.
. "$(dirname "$0")/check-lib.sh"

lib=${UNM_BUILDDIR:?run by make check}/.libs
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0

for name in libgsas libunimem-rdma libunimem-mailbox; do
	exported "$lib/$name.so" T | grep -v '^gsas_port_' >"$tmp/$name" || {
		echo "$name.so exports no function"
		failed=1
	}
done
cat "$tmp"/lib* | LC_ALL=C sort -u >"$tmp/exported"

# The names before a parenthesis, also one in parentheses; without comments and
# without declarations, which --wrap needs
find test/unit test/multi test/lib -name '*.[ch]' -exec cat {} + |
	sed 's,/\*.*\*/,,; /^[[:space:]]*\/\*/,/\*\//d' |
	grep -vE '^[a-z][A-Za-z0-9_ *]*\([^()]*[,;]$' |
	grep -oE '\<[A-Za-z0-9_]+\)?\(' | tr -d '()' |
	LC_ALL=C sort -u >"$tmp/called"
LC_ALL=C comm -23 "$tmp/exported" "$tmp/called" >"$tmp/untested"
if [ -s "$tmp/untested" ]; then
	echo "no test calls"
	cat "$tmp/untested"
	failed=1
fi
exit $failed
