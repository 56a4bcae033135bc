# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What the check-ep-*.sh share; sourced by them. They run the endpoint tests
# again under other circumstances than make check does.

# the way is what they are about, not how often
UNM_TEST_LITMUS="${UNM_TEST_LITMUS-3000}"
export UNM_TEST_LITMUS
unit=${UNM_BUILDDIR:?run by make check}/test/unit

# ep_again "program ...": each of them, to the end; fails if one did
ep_again()
{
	failed=0
	[ -n "$1" ] || failed=1
	for t in $1; do
		echo "==== $t"
		${UNM_EXEC:+"$UNM_EXEC"} "$unit/test_$t" ||
			failed=1
	done
	return $failed
}

# ep_some "program ...": every UNM_TEST_THIN-th of them; check-full's job laws
# runs all, its jobs asan and ep-switches every second one. Each check that
# calls this function has a line in test/skips.txt for what it leaves out.
ep_some()
{
	thin=${UNM_TEST_THIN-6}
	# shellcheck disable=SC2086
	some=$(printf '%s\n' $1 |
		sh "$(dirname "$0")/thin.sh" "$thin") || return
	[ "$thin" -eq 1 ] || echo "skip endpoint_tests (one in $thin runs)"
	ep_again "$some"
}
