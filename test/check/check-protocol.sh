#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs/protocol.md defines the same as unm_wire.h: every message
# type with its number and name, the version, the credits.
. "$(dirname "$0")/check-lib.sh"

doc=docs/protocol.md
wire=prov/unimem/core/unm_wire.h
failed=0
bad()
{
	echo "$doc: $*"
	failed=1
}

# "HELLO 0x01" ...
types=$(tr -d '\t ' <"$wire" |
	sed -n 's/^UNM_WIRE_\([A-Z_]*\)=\(0x[0-9A-Fa-f]*\),.*/\1 \2/p')
[ "$(printf '%s\n' "$types" | wc -l)" -ge 11 ] || {
	echo "$wire: no enum unm_wire_type found"
	exit 1
}
while read -r name number; do
	text=$(printf '%s' "$name" | sed 's/_TAGGED$/ tagged/')
	# the row of the table: | numbers | names |
	grep '^| *0x' "$doc" |
		grep -qi -e "^|[^|]*${number}[^|]*|[^|]*\b${text}\b" ||
		bad "no row with $number and $text"
done <<END
$types
END

# and no row for a number that is no type
sed -n 's/^| *\(0x[^|]*\)|.*/\1/p' "$doc" | tr -d ' ' | tr , '\n' |
{
	while read -r number; do
		printf '%s\n' "$types" | grep -qi " $number\$" || {
			echo "$doc: $number is no type of $wire"
			exit 1
		}
	done
} || failed=1

value()
{
	sed -n "/^#define[[:blank:]]*$1[[:blank:]]/{
		s/^[^[:blank:]]*[[:blank:]]*$1[[:blank:]]*//
		s/[^0-9A-Fa-fx].*//
		p
	}" "$2"
}
version=$(value UNM_WIRE_VERSION $wire)
grep -q "^# .*version $version\$" "$doc" ||
	bad "its title does not say version $version"
credits=$(value UNM_PEER_CREDITS prov/unimem/core/unm_peer.h)
grep -q "$credits messages" "$doc" || bad "does not say $credits messages"
exit $failed
