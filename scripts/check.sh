# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check: every suite, as root and as an ordinary user.

# check_env : what the runners of test/ find their things by
check_env()
{
	# shellcheck source=/dev/null
	. "$BUILD/env.sh"
	export UNIMEM_TOP=$TOP UNIMEM_BUILD=$BUILD
	export UNIMEM_MPICH=$BUILD/mpich
	export UNIMEM_MPICH_SOURCE=$BUILD/mpich-source
}

# gcc 12's sanitizers want the addresses less random than some kernels do.
fixed_addresses()
{
	local as=(setarch "$(uname -m)" -R)

	if "${as[@]}" true 2>/dev/null; then
		"${as[@]}" "$BASH" "$TOP/scripts/step" "$@"
	else
		"$@"
	fi
}

# What is worth a second run under other circumstances; check-full runs all.
CHECK_AGAIN="test/check-hal-emu.sh test/test_transfer test/test_multi"
CHECK_AGAIN+=" test/test_death test/test_fork"
# ... and as an ordinary user besides: namespaces, limits, words to the user
CHECK_USER="test/test_ns test/test_limits test/test_info"
CHECK_USER+=" test/test_quiet"

# check_make OBJDIR [MAKE'S ARGUMENTS] : tests run two at a time where each can
# have a network namespace of its own (test/alone.sh), else one after another.
check_make()
{
	local obj=$1 rc=0 at_once=1
	shift

	! unshare --net true 2>/dev/null || at_once=2
	make -C "$obj" -s -j"$JOBS" check TESTS=
	touch "$obj/check.start"
	make -C "$obj" -k -j"$at_once" "${@:-check}" || rc=$?
	[ "$rc" -eq 0 ] || check_make_why "$obj"
	check_make_skips "$obj"
	return "$rc"
}

# check_again OBJDIR [TESTS] : those tests only
check_again() { check_make "$1" check TESTS="$CHECK_AGAIN ${2:-}"; }

# What the programs that just ran have skipped inside, a line for each: of
# cmocka, "[  SKIPPED ] NAME", and of test/procs.c, "skip NAME (TIME)"
check_make_skips()
{
	local log

	find "$1/test" -name '*.log' -newer "$1/check.start" | sort |
	while read -r log; do
		sed -nE 's/^(\[  SKIPPED \]|skip) (\w+)( \(.*)?$/\2/p' \
			"$log" | sort -u |
			sed "s|^|SKIPPED: test/$(basename "$log" .log)/|"
	done
}

# The end of each failed test's log
check_make_why()
{
	local trs bad='^:test-result: (FAIL|ERROR|XPASS)'

	find "$1" -name '*.trs' -exec grep -lE "$bad" {} + | sort |
	while read -r trs; do
		trs=${trs%.trs}
		echo "not ok - ${trs#"$1"/}"
		tail -n 15 "$trs.log" | sed 's/^/#   /'
	done
}

check_runner() { check_env; cd "$TOP" || return; "$@"; }

check_flavours()
{
	build_flavour asan --enable-asan --enable-ubsan --enable-fault-points
	suite asan "unit tests under ASan and UBSan, with fault points" 1200 \
		count_automake fixed_addresses \
		check_make "$BUILD/obj-asan" check-asan
	build_flavour tsan --enable-tsan
	suite tsan "unit tests under TSan" 900 count_automake fixed_addresses \
		check_make "$BUILD/obj-tsan" check-tsan
}

# check_script NAME TITLE LIMIT SCRIPT ARGS... : a runner of test/
check_script()
{
	local name=$1 title=$2 limit=$3 script=$4
	shift 4

	if [ -x "$TOP/$script" ]; then
		suite "$name" "$title" "$limit" count_line \
			check_runner "$TOP/$script" "$@"
	else
		skip_suite "$name" "$script is not in this tree yet"
	fi
}

# The wrapper that denies process_vm_readv and process_vm_writev.
no_cma()
{
	local w

	for w in "$TOP/test/no-cma" "$BUILD/obj/test/no-cma"; do
		[ -x "$w" ] && [ ! -d "$w" ] && printf '%s\n' "$w" && return 0
	done
	return 1
}

check_no_cma()
{
	local w

	if ! w=$(no_cma); then
		skip_suite no-cma "test/no-cma is not in this tree yet"
		return 0
	fi
	suite no-cma-unit "unit tests without cross-memory attach" 900 \
		count_automake check_wrapped "$w" check_again "$BUILD/obj"
	if [ -x "$TOP/test/run-mpich" ]; then
		suite no-cma-mpich "MPICH's tests without cross-memory attach" \
			900 count_line check_runner "$w" \
			"$TOP/test/run-mpich" --dirs examples,pt2pt \
			--match 'examples/|pt2pt/(sendrecv|bottom)'
	fi
}

# check_wrapped WRAPPER FUNCTION ARGS...
check_wrapped() { local w=$1; shift; "$w" "$BASH" "$TOP/scripts/step" "$@"; }

# Also when a build stopped everything: the closing line, and no success.
check_broken()
{
	[ "$CONCLUDED" -eq 0 ] || return 0
	tally unfinished 0 1 0
	conclude
}

check()
{
	# shellcheck disable=SC2034
	MINUTES=25			# see conclude
	EXIT_HOOKS+=(check_broken)
	packages_need build
	packages_need check
	build_all
	suite make "unit tests, make check" 1500 count_automake \
		check_make "$BUILD/obj"
	check_flavours
	suite smoke "first steps and the demo in short" 600 count_line smoke
	check_script fabtests "fabtests, RDM part" 1200 test/run-fabtests
	check_script mpich "MPICH's tests and examples" 2000 test/run-mpich
	check_user
	check_no_cma
	conclude
}
