#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes configure and Makefile.in. Needs autoconf, automake, libtool and
# pkg-config. With --hooks it installs git's hook commit-msg instead, which
# checks messages of commits, and makes nothing else.
set -e
cd "$(dirname "$0")"

# A worktree shares the folder of hooks with other branches, which may not have
# scripts/commit-msg: the hook runs it where it exists.
# shellcheck disable=SC2016 # expanded by the hook
HOOK='[ ! -x scripts/commit-msg ] || exec scripts/commit-msg "$1"'

install_hook()
{
	hook=$(git rev-parse --git-path hooks)/commit-msg
	if [ -e "$hook" ] && ! grep -qxF "$HOOK" "$hook"; then
		echo "autogen.sh: there is another $hook; add to it: $HOOK" >&2
		exit 1
	fi
	mkdir -p "${hook%/*}"
	printf '#!/bin/sh\n%s\n' "$HOOK" >"$hook"
	chmod +x "$hook"
	echo "autogen.sh: installed $hook, which runs scripts/commit-msg"
}

if [ "$*" = --hooks ]; then
	install_hook
	exit
fi
for tool in autoreconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "autogen.sh: $tool is missing (Debian: apt-get install" \
			"autoconf automake libtool pkg-config)" >&2
		exit 1
	}
done
mkdir -p m4 build-aux
autoreconf --force --install "$@"

hooks=$(git rev-parse --git-path hooks 2>/dev/null) || exit 0
[ ! -e .git ] || [ -e "$hooks/commit-msg" ] ||
	echo "to check messages as you commit: ./autogen.sh --hooks"
