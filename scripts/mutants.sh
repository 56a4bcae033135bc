# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-mutants: does each test notice the mistake it is for?

# mutants_command [NAME...] : all of test/mutants, or those
mutants_command()
{
	local name files=()

	for name; do
		files+=("$TOP/test/mutants/${name%.patch}.patch")
	done
	packages_need build
	packages_need check
	suite mutants "mutants, each against the test that is for it" \
		count_line "$TOP/test/mutants/run" \
		"$BUILD/mutants" "${files[@]}"
	conclude
}
