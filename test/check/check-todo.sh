#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a source leaves to be done is written TODO(name), and docs/roadmap.md has
# a line with that name. Other marks are not used.
. "$(dirname "$0")/check-lib.sh"

failed=0
marks=$({ c_files; sh_files; makefiles; echo configure.ac; } |
	grep -v '^test/check/check-todo.sh$' |
	xargs grep -nE '\b(TODO|FIXME|XXX|HACK)\b')
while IFS= read -r line; do
	[ -n "$line" ] || continue
	name=$(printf '%s\n' "$line" | sed -n 's/.*TODO(\([a-z0-9-]*\)).*/\1/p')
	if [ -z "$name" ]; then
		echo "$line"
		echo "	write it as TODO(name), with a line in docs/roadmap.md"
		failed=1
	elif ! grep -q "\`$name\`" docs/roadmap.md; then
		echo "$line"
		echo "	no line with \`$name\` in docs/roadmap.md"
		failed=1
	fi
done <<END
$marks
END
exit $failed
