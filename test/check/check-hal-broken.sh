#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# hal_conform finds what is broken: each backend that breaks one law fails, in
# the test of that law. Every UNM_TEST_THIN-th of them, in check-full each.
. "$(dirname "$0")/check-lib.sh"

thin=${UNM_TEST_THIN-4}
program="${UNM_EXEC:-} ${UNM_BUILDDIR:?run by make check}"
program=$program/test/conform/hal_conform
all=$($program --broken list) || exit
all=$(printf '%s\n' "$all" | cut -d ' ' -f 1)
some=$(printf '%s\n' "$all" | sh test/check/thin.sh "$thin" test/broken) || exit
count() { printf '%s\n' "$1" | grep -c .; }
if [ "$(count "$some")" -lt $(($(count "$all") / thin)) ]; then
	echo "thin.sh left $(count "$some") of $(count "$all") broken backends"
	exit 1
fi
[ "$some" = "$all" ] ||
	echo "skip broken_backends ($(count "$some") of $(count "$all") run)"
# shellcheck disable=SC2086
sh test/broken/run "$program" $some || exit
# where a board can be filled
HAL_CONFORM_ARGS="--profile exanode" exec sh test/broken/run "$program" \
	service-needs-room service-is-the-last
