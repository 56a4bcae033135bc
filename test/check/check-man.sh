#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages are proper mdoc(7), installed, and know the options of the
# programs of GSAS and of the mailbox, and the errors that the headers of GSAS
# and of RDMA list, all of them and no other.
. "$(dirname "$0")/check-lib.sh"

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0

for page in man/*.[1-9]; do
	grep -q "[ 	]$page\( \|\$\)" Makefile.am || {
		echo "$page is not in Makefile.am"
		failed=1
	}
done

# options SOURCE PAGE
options()
{
	sed -n 's/^\t*{ "\([a-z-]*\)", [a-z]*_argument,.*/\1/p' "$1" |
		LC_ALL=C sort >"$tmp/code"
	sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' "$2" |
		LC_ALL=C sort >"$tmp/man"
	[ "$(wc -l <"$tmp/code")" -ge 4 ] || {
		echo "$1: where are its options now?"
		failed=1
	}
	diff "$tmp/code" "$tmp/man" >"$tmp/diff" && return
	echo "options of $1 (<) and of $2 (>):"
	cat "$tmp/diff"
	failed=1
}

options gsas/daemon/gsasd.c man/gsasd.8
options gsas/daemon/gsasctl.c man/gsasctl.1
options mailbox/daemon/unimem_mailboxd.c man/unimem-mailboxd.8
options mailbox/cuse/unimem_mailbox_cuse.c man/unimem-mailbox-cuse.8

# errors HEADER PAGE: the errors that the comment of the header lists, and those
# of the page
errors()
{
	sed -n 's/^ \*\t\(-E[A-Z0-9]*[-, A-Z0-9]*\).*/\1/p' "$1" |
		grep -o 'E[A-Z0-9]*' | LC_ALL=C sort -u >"$tmp/code"
	sed -n 's/^\.It Er //p' "$2" | grep -o 'E[A-Z0-9]*' |
		LC_ALL=C sort -u >"$tmp/man"
	[ "$(wc -l <"$tmp/code")" -ge 15 ] || {
		echo "$1: where are its errors now?"
		failed=1
	}
	diff "$tmp/code" "$tmp/man" >"$tmp/diff" && return
	echo "errors of $1 (<) and of $2 (>):"
	cat "$tmp/diff"
	failed=1
}

errors gsas/gsas.h man/gsas.7
errors rdma/unimem/unim_dma.h man/unim_dma.3
[ $failed -eq 0 ] || exit 1

command -v mandoc >/dev/null 2>&1 || skip "mandoc is not installed"
# which pages this machine has beside ours does not matter (two files: lines of
# one are cut where the other comes in between)
mandoc -Tlint man/*.[1-9] >"$tmp/out" 2>"$tmp/err"
found=$(cat "$tmp/out" "$tmp/err" |
	grep -v -e 'referenced manual not found' -e 'mandoc.db')
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
