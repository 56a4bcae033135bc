#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each mistake of test/mutants still applies to the source, in its place, and
# names a test that exists. That each test notices its mistake is shown by
# ./quickstart check-mutants.
. "$(dirname "$0")/check-lib.sh"

command -v patch >/dev/null 2>&1 || skip "patch is not installed"
failed=0
complain()
{
	echo "FAIL: $1"
	failed=1
}

for file in test/mutants/*.patch; do
	program=$(sed -n '1s/^test: \([^ :]*\).*/\1/p' "$file")
	[ -e "$program" ] || [ -e "$program.c" ] ||
		complain "$file: its first line names no test"
	patch -p1 -s -f -F1 --dry-run -i "$file" >/dev/null 2>&1 ||
		complain "$file does not apply any more"
done

# The names of skipped tests are those of test/skips.txt. The functions of
# test/mutants/run, and logs as hal_conform writes them
command -v bash >/dev/null 2>&1 || exit $failed
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/log"
for f in skips_all good_log skipped_as; do
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
exit $failed
