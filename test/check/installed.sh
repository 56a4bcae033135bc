#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# installed.sh LIBDIR - installed files below LIBDIR ($DESTDIR included) can be
# built with as the manual pages say: an example of each library, with the
# headers and libraries that its pkg-config file names and no others. Run by
# make installcheck; CC and CFLAGS are those of the build.
. "$(dirname "$0")/check-lib.sh"

lib=${1:?which LIBDIR}
command -v pkg-config >/dev/null 2>&1 || {
	echo "installed.sh: no pkg-config: its files are not tried"
	exit 0
}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0

# flags of an installed prefix stand below DESTDIR
export PKG_CONFIG_LIBDIR="$lib/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="${DESTDIR:-}"

# built NAME EXAMPLE: with the flags of NAME.pc; the program finds its library
# where it was installed
built()
{
	flags=$(pkg-config --cflags --libs "$1") || {
		failed=1
		return
	}
	# shellcheck disable=SC2086 # words
	${CC:-cc} ${CFLAGS:-} -o "$tmp/$1" "$2" $flags \
		-Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib" || {
		echo "$2 does not build with: $flags"
		failed=1
		return
	}
	ldd "$tmp/$1" | grep -q "lib$1\.so.* => $lib/" || {
		echo "$2 does not run with $lib/lib$1.so:"
		ldd "$tmp/$1"
		failed=1
	}
}

built gsas gsas/examples/counter.c
# gsas.h has both names, that of the manual pages and that of the README
for header in gsas.h unimem/gsas.h atomic.h unimem/atomic.h; do
	echo "#include <$header>" >"$tmp/header.c"
	# shellcheck disable=SC2046 # words
	${CC:-cc} $(pkg-config --cflags gsas) -fsyntax-only "$tmp/header.c" ||
		failed=1
done
built unimem-mailbox mailbox/examples/ping.c
built unimem-rdma rdma/examples/exchange.c
exit $failed
