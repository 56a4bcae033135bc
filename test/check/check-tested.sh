#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A test calls each function that the libraries for programs export. Functions
# for other libraries of this project (gsas_port.h) need none: libunimem-rdma
# calls them, which has tests.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
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

# Of C on standard input the names before a parenthesis, also one in
# parentheses; without comments, strings and declarations, which --wrap needs
called()
{
	python3 -B -c 'if True:
		import sys
		sys.path.insert(0, "test/check")
		from source_rules import C_TOKEN
		print(C_TOKEN.sub(lambda m: "\n" * m[0].count("\n"),
				  sys.stdin.read()))' |
	grep -vE '^[a-z][A-Za-z0-9_ *]*\([^()]*\)?[,;][[:space:]]*$' |
	grep -oE '\<[A-Za-z0-9_]+\)?\(' | tr -d '()' |
	LC_ALL=C sort -u
}

names=$(called <<'EOC' | tr '\n' ' '
int declared(void);	/* in a comment() */
	a(/* not() */ b(), "string()", '"', c(), "\"string(); /*", (d)(1));
	e();	// line()
	f();	/* begins() behind code,
	g() ends */ h();
EOC
)
[ "$names" = "a b c d e f h " ] || {
	echo "called, by a case of this script: $names"
	failed=1
}

find test/unit test/multi test/lib -name '*.[ch]' -exec cat {} + |
	called >"$tmp/called"
LC_ALL=C comm -23 "$tmp/exported" "$tmp/called" >"$tmp/untested"
if [ -s "$tmp/untested" ]; then
	echo "no test calls"
	cat "$tmp/untested"
	failed=1
fi
exit $failed
