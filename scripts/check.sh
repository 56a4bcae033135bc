# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check: what each change has to pass, in a quarter of an hour on
# two cores; the same laws at length are check-full's (scripts/full.list).

# check_env : what the runners of test/ find their things by
check_env()
{
	# shellcheck source=/dev/null
	. "$BUILD/env.sh"
	export UNIMEM_TOP=$TOP UNIMEM_BUILD=$BUILD
	export UNIMEM_MPICH=$BUILD/mpich
	export UNIMEM_MPICH_SOURCE=$BUILD/mpich-source
	UNM_AT_ONCE=$(tests_at_once)
	export UNM_AT_ONCE
}

# How many tests run at a time: two more than processors, as tests sleep half of
# their time. Only one where they can't have network namespaces of their own
# (test/check/alone.sh).
tests_at_once()
{
	if ! unshare --net true 2>/dev/null; then
		echo 1
	elif [ "$JOBS" -lt 7 ]; then
		echo "$((JOBS + 2))"
	else
		echo 8
	fi
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

# Tests that run again under other circumstances; check-full runs all again.
CHECK_AGAIN="test/check/check-hal-emu.sh test/unit/test_transfer"
CHECK_AGAIN+=" test/unit/test_multi test/multi/test_death test/multi/test_fork"
# ... and as an ordinary user besides: namespaces, limits, words to the user
CHECK_USER="test/multi/test_ns test/multi/test_limits test/unit/test_info"
CHECK_USER+=" test/unit/test_quiet"

# One of so many lines of MPICH's lists; again, on the lean libfabric; of
# fabtests' list, where the commit says which ones
CHECK_THIN=4
CHECK_THIN_LEAN=16
CHECK_THIN_FABTESTS=2

# check_list OBJDIR LIST : its names; those in capitals are lists of Makefile.am
check_list()
{
	local name

	for name in $2; do
		case $name in
		*/*)	echo "$name" ;;
		*)	make -C "$1" -s -f - l <<-END || return
				include Makefile
				l: ; @echo \$(or \$($name),\$(error no $name))
			END
		esac
	done
}

# check_only OBJDIR LIST COMMAND... : with the programs of these tests built,
# and no others
check_only()
{
	local t list programs=

	list=$(check_list "$1" "$2")
	for t in $list; do
		case $t in
		*/check-hal-*)	programs+=" test/conform/hal_conform"
				programs+=" test/conform/exec_heir" ;;
		*.sh)		programs+=" test/check/check_dso"
				programs+=" test/check/check_info" ;;
		*/test_gsas_fork) programs+=" $t test/multi/gsas_forked" ;;
		*)		programs+=" $t" ;;
		esac
	done
	shift 2
	local CHECK_ONLY=("check_PROGRAMS=$programs")
	"$@"
}
CHECK_ONLY=()

# check_make OBJDIR [MAKE'S ARGUMENTS] : build and run tests. Each test runs
# once: there is no verdict by retry. A test that is named in
# test/quarantine.txt is counted apart.
check_make()
{
	local obj=$1 rc=0 bad
	shift

	check_programs "$obj"
	find "$obj" -name '*.trs' -delete
	make -C "$obj" -k -j"$(tests_at_once)" "${@:-check}" \
		"${CHECK_ONLY[@]}" || rc=$?
	check_make_skips "$obj/test"
	check_make_quarantined "$obj"
	[ "$rc" -ne 0 ] || return 0
	check_make_why "$obj" || :
	bad=$(check_make_failed "$obj" | check_not_quarantined)
	[ -z "$bad" ] && [ -n "$(check_make_failed "$obj")" ]
}

# check_make_ran OBJDIR RESULTS : the tests of OBJDIR that just ran and ended
# in one of RESULTS (a|b), as TESTS names them
check_make_ran()
{
	local trs t

	{ find "$1" -name '*.trs' \
		-exec grep -lE "^:test-result: ($2)" {} + || :; } | sort |
	while read -r trs; do
		t=${trs#"$1"/} t=${t%.trs}
		[ ! -e "$TOP/$t.sh" ] || t+=.sh
		echo "$t"
	done
}

check_make_failed() { check_make_ran "$1" 'FAIL|ERROR|XPASS'; }

# A filter of test names
check_not_quarantined()
{
	local t

	while read -r t; do
		quarantine_reason "check/$t" >/dev/null || echo "$t"
	done
}

# The line of each quarantined test that just ran; see count_automake.
check_make_quarantined()
{
	local t

	check_make_ran "$1" 'PASS' | while read -r t; do
		! quarantine_reason "check/$t" >/dev/null ||
			echo "QUARANTINED: passed check/$t"
	done
	check_make_failed "$1" | while read -r t; do
		! quarantine_reason "check/$t" >/dev/null ||
			echo "QUARANTINED: failed check/$t"
	done
}

# check_lists OBJDIR LIST : the tests of these lists of Makefile.am
check_lists()
{
	local tests

	tests=$(check_list "$1" "$2")
	check_make "$1" check TESTS="$tests"
}

# check_few OBJDIR LIST : the same, and no other program is built
check_few() { check_only "$1" "$2" check_lists "$1" "$2"; }

# check_programs OBJDIR : the test programs, built
check_programs()
{
	make -C "$1" -s -j"$JOBS" check TESTS= "${CHECK_ONLY[@]}"
}

# check_again OBJDIR [TESTS] : those tests only
check_again()
{
	local tests="$CHECK_AGAIN ${2:-}"

	check_few "$1" "$tests"
}

# skips_in LOG : what a program skipped inside: of cmocka,
# "[  SKIPPED ] NAME", of test/lib/procs.c, "skip NAME (TIME)", and of
# test_runners.py, "skip CLASS_NAME (REASON)"
skips_in()
{
	sed -nE 's/^(\[  SKIPPED \]|skip) (\w+)( \(.*)?$/\2/p' "$1" | sort -u
}

# check_make_skips OBJDIR : what the programs just run have skipped inside, a
# line for each. A folder may vanish while find reads it.
check_make_skips()
{
	local log name

	{ find "$1/" -name '*.trs' || :; } | sort |
	while read -r log; do
		log=${log%.trs}.log
		[ -e "$log" ] || continue
		name=test/${log##*/test/}
		skips_in "$log" | sed "s|^|SKIPPED: ${name%.log}/|"
	done
}

# The lines of errors of each failed test, and the end of its log
check_make_why()
{
	local t

	check_make_failed "$1" | while read -r t; do
		t=${t%.sh}
		echo "not ok - $t"
		{
			grep -nE -A 6 -m 8 "$CHECK_WORDS" "$1/$t.log" || :
			echo "..."
			tail -n 12 "$1/$t.log" || :
		} | sed 's/^/#   /'
	done
}
# ... by cmocka, test/lib/procs.c, a sanitizer, the shell
CHECK_WORDS='^\[  (ERROR|FAILED) |^not ok|: (FAIL|failed)|ERROR:|WARNING: Thr'
CHECK_WORDS+='|runtime error|^Error|stopped after|[Tt]imeout|[Ss]egmentation'

check_runner() { check_env; cd "$TOP" || return; "$@"; }

# The flags: -Og takes half the time of -O2 to compile with sanitizers, which
# is most of what they cost here.
check_build_asan()
{
	build_flavour asan --enable-asan --enable-ubsan --enable-fault-points \
		CFLAGS="-Og -g1"
}

check_build_tsan()
{
	build_flavour tsan --enable-tsan CFLAGS="-Og -g1"
}

check_flavours()
{
	suite asan "hostile input and memory under ASan and UBSan" \
		count_automake fixed_addresses \
		check_few "$BUILD/obj-asan" ASAN_MEMORY_TESTS
	suite tsan "unit tests under TSan" count_automake fixed_addresses \
		check_few "$BUILD/obj-tsan" TSAN_TESTS
}

# check_script NAME TITLE SCRIPT ARGS... : a runner of test/
check_script()
{
	local name=$1 title=$2 script=$3
	shift 3

	if [ -x "$TOP/$script" ]; then
		suite "$name" "$title" count_line \
			check_runner "$TOP/$script" "$@"
	else
		skip_suite "$name" "$script is not in this tree yet"
	fi
}

# The wrapper that denies process_vm_readv and process_vm_writev.
no_cma()
{
	local w

	for w in "$TOP/test/lib/no-cma" "$BUILD/obj/test/lib/no-cma"; do
		[ -x "$w" ] && [ ! -d "$w" ] && printf '%s\n' "$w" && return 0
	done
	return 1
}

check_no_cma()
{
	local w

	if ! w=$(no_cma); then
		skip_suite no-cma "test/lib/no-cma is not in this tree yet"
		return 0
	fi
	suite no-cma-unit "unit tests without cross-memory attach" \
		count_automake check_wrapped "$w" check_again "$BUILD/obj"
	if [ -x "$TOP/test/run-mpich" ]; then
		suite no-cma-mpich "MPICH's tests without cross-memory attach" \
			count_line check_runner "$w" \
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

check_fabtests()
{
	local n=$CHECK_THIN_FABTESTS first

	# as test/check/thin.sh chooses
	first=$(git -C "$TOP" rev-parse HEAD 2>/dev/null | cut -c 1-6) || :
	check_script fabtests "fabtests, RDM part, one of $n" \
		test/run-fabtests --thin "$n/$((0x${first:-0} % n))"
}

# MPICH runs on the lean libfabric by default (scripts/libfabric.sh). Here most
# of its tests run on the system's, as all other suites but smoke and debian do,
# and some on the lean one.
check_mpich()
{
	check_script mpich "MPICH's tests and examples, one of $CHECK_THIN, on \
the system's libfabric" \
		test/run-mpich --thin "$CHECK_THIN" --system-libfabric
	if libfabric_have; then
		MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS=1 \
		MPIR_CVAR_CH4_OFI_SHARED_COLL=1 \
		check_script mpich-lean "MPICH's tests and examples, one of \
$CHECK_THIN_LEAN, on the lean libfabric" \
			test/run-mpich --thin "$CHECK_THIN_LEAN"
	else
		skip_suite mpich-lean "no source of a lean libfabric"
	fi
}

# The programs of the sanitizers, and those of an ordinary user: built while the
# first tests run, which sleep a part of their time.
check_builds()
{
	check_build_asan
	check_only "$BUILD/obj-asan" ASAN_MEMORY_TESTS \
		check_programs "$BUILD/obj-asan"
	check_build_tsan
	check_only "$BUILD/obj-tsan" TSAN_TESTS check_programs "$BUILD/obj-tsan"
	[ -z "$USER_STAGE" ] || user_prepare
}

# Build the parts of MPICH that later suites need: minutes on a bare machine.
check_mpi()
{
	build_mpi
	check_runner "$TOP/test/run-fabtests" --build-only
	check_runner "$TOP/test/run-mpich" --build-only --thin "$CHECK_THIN"
}

check()
{
	EXIT_HOOKS+=(check_broken)
	packages_need build
	packages_need check
	packages_need ompi
	packages_need debian
	mpich_have default || mpich_need_tarball
	build_autogen
	user_begin
	beside check_builds
	build_tree
	# MORE_TESTS has the longest: they go first
	suite make "unit tests, make check" count_automake \
		check_lists "$BUILD/obj" "MORE_TESTS TESTS"
	beside_end "building for sanitizers and users, begun before" \
		"UNIMEM_JOBS=1 shows the messages in their order."
	beside check_mpi
	check_flavours
	beside_end "building MPICH, begun before" \
		"./quickstart build does only that."
	suite smoke "first steps and the demo in short" count_line smoke
	suite ompi "Debian's Open MPI over unimem" count_line ompi
	check_hosts
	suite debian "Debian's programs for MPICH over unimem" count_line debian
	check_fabtests
	check_mpich
	check_user
	check_no_cma
	conclude
}
