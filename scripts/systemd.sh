# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-systemd: the unit of gsasd under systemd. Apart from check,
# as it wants root and one more package.

SYSTEMD_PROGRAMS="test/check/gsas_tool gsas/examples/counter gsas/examples/list"
SYSTEMD_PROGRAMS+=" gsas/examples/tree"

systemd_command()
{
	EXIT_HOOKS+=(check_broken)
	packages_need build
	packages_need check
	# without it the test is skipped, and says so
	(packages_need systemd) || warn "systemd cannot be installed"
	build_tree
	suite systemd "gsasd as a unit of systemd" count_automake \
		check_only "$OBJ" "$SYSTEMD_PROGRAMS" \
		check_make "$OBJ" check TESTS=test/check/check-systemd.sh
	conclude || [ "$FAILED" -eq 0 ]
}
