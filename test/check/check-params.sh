#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The parameters in the tables of the code and those in fi_unimem(7) are the
# same, with the same defaults; nothing else that a user reads names one that
# does not exist.
. "$(dirname "$0")/check-lib.sh"

tables="prov/unimem/hal/hal_param.c prov/unimem/unm_env.c"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# A table's rows spell the name without its prefix, as a string in capitals.
for f in $tables; do
	[ -e "$f" ] || { echo "$f: where is this table now?"; exit 99; }
done
for f in $tables; do
	sed -n 's/.*[({ \t]"\([A-Z][A-Z0-9_]*[A-Z0-9]\)",.*/FI_UNIMEM_\1/p' "$f"
done | LC_ALL=C sort -u >"$tmp/code"
sed -n 's/^\.It Ev \(FI_UNIMEM_[A-Z0-9_]*\).*/\1/p' man/fi_unimem.7 |
	LC_ALL=C sort >"$tmp/man"

failed=0
[ "$(wc -l <"$tmp/code")" -ge 10 ] || {
	echo "only $(wc -l <"$tmp/code") parameters found in: $tables"
	failed=1
}
[ -z "$(uniq -d "$tmp/man")" ] || {
	echo "twice in man/fi_unimem.7: $(uniq -d "$tmp/man")"
	failed=1
}
missing=$(LC_ALL=C comm -23 "$tmp/code" "$tmp/man")
[ -z "$missing" ] || {
	echo "in the code, not in man/fi_unimem.7:" "$missing"
	failed=1
}
extra=$(uniq "$tmp/man" | LC_ALL=C comm -13 "$tmp/code" -)
[ -z "$extra" ] || {
	echo "in man/fi_unimem.7, not in the code:" "$extra"
	failed=1
}

# "NAME default" of each row that has a default, and the words of its entry
# shellcheck disable=SC2086 # a list
awk '
/^\tROW\("/ { row = "" ; open = 1 }
open { row = row $0 }
open && /\),$/ {
	open = 0
	split(row, q, "\"")
	def = q[4]
	if (row ~ /\.def = "/) {
		def = row
		sub(/.*\.def = "/, "", def)
		sub(/".*/, "", def)
	}
	if (def != "")
		print q[2], def
}' $tables >"$tmp/defaults"
[ "$(wc -l <"$tmp/defaults")" -ge 10 ] || {
	echo "only $(wc -l <"$tmp/defaults") defaults found in: $tables"
	failed=1
}
while read -r name def; do
	awk -v it=".It Ev FI_UNIMEM_$name" '
	/^\.(It Ev FI_|El)/ { on = 0 }
	$0 == it { on = 1 }
	on' man/fi_unimem.7 | tr ' .:;' '\n' | grep -qx -e "$def" || {
		echo "man/fi_unimem.7: FI_UNIMEM_$name: default $def?"
		failed=1
	}
done <"$tmp/defaults"

# Also those read or named anywhere else, but for what the installed header
# defines. (Tests use wrong names on purpose.)
sed -n 's/^#define \(FI_UNIMEM_[A-Z0-9_]*\).*/\1/p' \
	prov/unimem/fi_ext_unimem.h | LC_ALL=C sort -u >"$tmp/header"
both=$(LC_ALL=C comm -12 "$tmp/header" "$tmp/code")
[ -z "$both" ] || {
	echo "a parameter and a constant of fi_ext_unimem.h:" "$both"
	failed=1
}
LC_ALL=C sort -u "$tmp/code" "$tmp/header" >"$tmp/known"
places="README.md CONTRIBUTING.md NEWS quickstart prov gsas rdma tools bench
	scripts docs man mpich-patches"
# shellcheck disable=SC2086 # a list
grep -rshoE 'FI_UNIMEM_[A-Z0-9_]*[A-Z0-9]' $places |
	LC_ALL=C sort -u | LC_ALL=C comm -23 - "$tmp/known" >"$tmp/unknown"
while read -r name; do
	echo "$name is no parameter, but named in:"
	# shellcheck disable=SC2086 # a list
	grep -rslw "$name" $places | sed 's/^/	/'
	failed=1
done <"$tmp/unknown"
exit $failed
