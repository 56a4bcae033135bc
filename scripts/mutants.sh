# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-mutants: does each test notice the mistake it is for?

# mutants_named NAME... : their files; a name may be a pattern, and "!NAME"
# takes away
mutants_named()
{
	local name file files=() found

	for name; do
		file=${name#!}
		# shellcheck disable=SC2206 # a pattern
		found=("$TOP"/test/mutants/${file%.patch}.patch)
		[ -e "${found[0]}" ] ||
			die "check-mutants: no $file in test/mutants"
		if [[ $name != !* ]]; then
			files+=("${found[@]}")
			continue
		fi
		for file in "${!files[@]}"; do
			[[ " ${found[*]} " != *" ${files[file]} "* ]] ||
				unset "files[$file]"
		done
	done
	[ ${#files[@]} -eq 0 ] || printf '%s\n' "${files[@]}" | sort -u
}

# mutants_command [NAME...] : all of test/mutants, or those
mutants_command()
{
	local files=()

	[ $# -eq 0 ] || mapfile -t files < <(mutants_named "$@")
	[ $# -eq 0 ] || [ ${#files[@]} -gt 0 ] || exit 2
	packages_need build
	packages_need check
	suite mutants "mutants, each against the test that is for it" \
		count_line "$TOP/test/mutants/run" \
		"$BUILD/mutants" "${files[@]}"
	conclude
}
