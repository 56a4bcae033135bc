#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Functions of test/mutants/run: under which name a test is skipped, and which
# mutants are made anew. (That each mutant still applies is check-mutants.sh's:
# it fails with any mutant, so none can be for it.)
. "$(dirname "$0")/check-lib.sh"

command -v bash >/dev/null 2>&1 || skip "bash is not installed"
failed=0
complain()
{
	echo "FAIL: $1"
	failed=1
}

# The names of skipped tests are those of test/skips.txt. The functions of
# test/mutants/run, and logs as hal_conform writes them
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/log"
for f in skips_all good_log skipped_as mutant_key known_mutants; do
	sed -n "/^$f()/,/^}/p" test/mutants/run
done >"$work/functions"

# named NAME LOG TEST... : the test whose log has the line LOG is named NAME.
named()
{
	# shellcheck disable=SC2016 # expanded by the bash
	name=$(bash -c '. "$1/functions"; work=$1 line=$2; shift 2
		echo "$line" >"$(good_log "$@")"; skipped_as "$@"' - \
		"$work" "$2" "$3" ${4:+"$4" "$5"})
	[ "$name" = "$1" ] || complain "$3 $4 $5 is $name in skips.txt, not $1"
}

c=test/conform/hal_conform
all="hal_conform: no engine for other hosts: skipped"
law="[  SKIPPED ] law"
named test/check/check-hal-net.sh "$all" $c:law --hal net
named test/check/check-hal-net/law "$law" $c:law --hal net
named test/check/check-hal-sim/law "$law" $c:law --hal sim
named test/check/check-hal-emu/law "$law" $c:law
named test/unit/test_x/case "$law" test/unit/test_x:case
named test/multi/test_y "$all" test/multi/test_y

# A mutant is known until it, what it changes or its test changes; of eight
# sources in a row one makes it anew.
tree=$work/tree
mkdir -p "$tree/test/mutants" "$tree/test/unit"
echo old | tee "$tree/a.c" "$tree/other.c" "$tree/test/unit/test_x.c" >/dev/null
patch=$tree/test/mutants/x.patch
printf 'test: test/unit/test_x:case\n--- a/a.c\t2026\n+++ b/a.c\n' >"$patch"

# known SOURCE : the key if the mutant has to be made, then the number known
known()
{
	# shellcheck disable=SC2016 # expanded by the bash
	bash -c '. "$1/functions"; top=$1/tree source=$2 noticed=$1/noticed
		touch "$noticed"
		known_mutants "$1/tree/test/mutants/x.patch" >/dev/null
		[ ${#pending[@]} -eq 0 ] ||
			echo "x $(mutant_key "${pending[0]}")" >>"$noticed"
		echo ${#pending[@]} "$known"' - "$work" "$1"
}

# expect RESULT WHAT : of known, in the present source
expect()
{
	[ "$(known "$source")" = "$1" ] || complain "mutants: $2"
}

anew="" again=""
for n in 0 1 2 3 4 5 6 7; do
	source=000${n}00000000000000
	known "$source" >/dev/null
	expect "0 1" "one that was just noticed is not known"
	other=000$n${n}1111111111111
	[ "$(known "$other")" = "0 1" ] || anew="$anew $n"
done
known 0000000000000000 >/dev/null
for n in 1 2 3 4 5 6 7 0; do
	[ "$(known "000${n}222222222222")" = "0 1" ] || again="$again $n"
done
[ "$again" = "$anew" ] ||
	complain "mutants: those of an eighth are made twice:$again, not$anew"
[ "$(echo "$anew" | wc -w)" -eq 1 ] ||
	complain "mutants: not one in eight sources makes one anew:$anew"
# shellcheck disable=SC2086 # split
set -- $anew
source=000$(((${1:-0} + 1) % 8))00000000000000
known "$source" >/dev/null
echo new >"$tree/other.c"
expect "0 1" "a file that a mutant does not change makes it anew"
for file in a.c test/unit/test_x.c test/mutants/x.patch; do
	echo new >>"$tree/$file"
	expect "1 0" "it is known although $file has changed"
	expect "0 1" "one that was just noticed is not known"
done
grep -c . "$work/noticed" | grep -qx 1 || complain "mutants: old keys stay"
exit $failed
