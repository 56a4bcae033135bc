#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes configure and Makefile.in. Needs autoconf, automake, libtool and
# pkg-config.
set -e
cd "$(dirname "$0")"

for tool in autoreconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "autogen.sh: $tool is missing (Debian: apt-get install" \
			"autoconf automake libtool pkg-config)" >&2
		exit 1
	}
done
mkdir -p m4 build-aux
exec autoreconf --force --install "$@"
