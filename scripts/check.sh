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
	local t list programs="test/check_dso test/check_info test/hal_conform"

	list=$(check_list "$1" "$2")
	for t in $list; do
		[[ $t == *.sh ]] || programs+=" $t"
	done
	shift 2
	local CHECK_ONLY=("check_PROGRAMS=$programs")
	"$@"
}
CHECK_ONLY=()

# check_make OBJDIR [MAKE'S ARGUMENTS] : tests run two at a time where each can
# have a network namespace of its own (test/alone.sh), else one after another.
check_make()
{
	local obj=$1 rc=0 at_once=1
	shift

	! unshare --net true 2>/dev/null || at_once=2
	make -C "$obj" -s -j"$JOBS" check TESTS= "${CHECK_ONLY[@]}"
	touch "$obj/check.start"
	make -C "$obj" -k -j"$at_once" "${@:-check}" "${CHECK_ONLY[@]}" ||
		rc=$?
	check_make_skips "$obj"
	[ "$rc" -ne 0 ] || return 0
	check_make_why "$obj" || :
	check_make_again "$obj" "$@"
}

# The tests of OBJDIR that just failed, as TESTS names them
check_make_failed()
{
	local trs t bad='^:test-result: (FAIL|ERROR|XPASS)'

	find "$1" -name '*.trs' -newer "$1/check.start" \
		-exec grep -lE "$bad" {} + | sort |
	while read -r trs; do
		t=${trs#"$1"/} t=${t%.trs}
		[ ! -e "$TOP/$t.sh" ] || t+=.sh
		echo "$t"
	done
}

# What failed is run a second time, with nothing beside it. One that passes
# then is unsteady: it is named at the end of the run, as a bug to find, but
# does not turn a change away. It does in check-full.
check_make_again()
{
	local obj=$1 rc=0 t failed arg again=()
	shift

	[ -z "${UNIMEM_STRICT:-}" ] || return 1
	mapfile -t failed < <(check_make_failed "$obj")
	[ "${#failed[@]}" -gt 0 ] && [ "${#failed[@]}" -le 3 ] || return 1
	for arg; do
		case $arg in check*|TESTS=*) ;; *) again+=("$arg") ;; esac
	done
	for t in "${failed[@]}"; do
		mv "$obj/${t%.sh}.log" "$obj/${t%.sh}.first.log"
	done
	# (a step beside would be something)
	while [ -e "$BESIDE_ON" ]; do sleep 1; done
	echo "run again:" "${failed[@]}"
	make -C "$obj" check "${again[@]}" TESTS="${failed[*]}" \
		>"$obj/check.again" 2>&1 || :
	for t in "${failed[@]}"; do
		if grep -qx ':test-result: PASS' "$obj/${t%.sh}.trs"; then
			echo "UNSTEADY: $t"
		else
			rc=1
		fi
	done
	return "$rc"
}

# check_most OBJDIR : make check, but for what takes long
check_most()
{
	local t tests long

	tests=$(check_list "$1" TESTS)
	long=" $(check_list "$1" LONG_TESTS) "
	set -- "$1"
	for t in $tests; do
		[[ $long == *" $t "* ]] || set -- "$@" "$t"
	done
	check_make "$1" check TESTS="${*:2}"
}

# check_again OBJDIR [TESTS] : those tests only
check_again()
{
	local tests="$CHECK_AGAIN ${2:-}"

	check_only "$1" "$tests" check_make "$1" check TESTS="$tests"
}

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

# What each failed test said of it, and the end of its log
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
# ... by cmocka, test/procs.c, a sanitizer, the shell
CHECK_WORDS='^\[  (ERROR|FAILED) |^not ok|: (FAIL|failed)|ERROR:|WARNING: Thr'
CHECK_WORDS+='|runtime error|^Error|stopped after|[Tt]imeout|[Ss]egmentation'

check_runner() { check_env; cd "$TOP" || return; "$@"; }

check_flavours()
{
	build_flavour asan --enable-asan --enable-ubsan --enable-fault-points
	suite asan "unit tests under ASan and UBSan, with fault points" 1200 \
		count_automake fixed_addresses \
		check_make "$BUILD/obj-asan" check-asan
	build_flavour tsan --enable-tsan
	suite tsan "unit tests under TSan" 900 count_automake fixed_addresses \
		check_only "$BUILD/obj-tsan" TSAN_TESTS \
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

# What the later suites need of MPICH takes minutes to build on a bare machine.
check_mpi()
{
	build_mpi
	check_runner "$TOP/test/run-fabtests" --build-only
	check_runner "$TOP/test/run-mpich" --build-only
}

check()
{
	# shellcheck disable=SC2034
	MINUTES=35			# see conclude
	EXIT_HOOKS+=(check_broken)
	packages_need build
	packages_need check
	packages_need ompi
	mpich_have default || mpich_need_tarball
	beside check_mpi
	build_tree
	suite make "unit tests, make check" 1500 count_automake \
		check_most "$BUILD/obj"
	check_flavours
	beside_end "building MPICH, begun before" \
		"./quickstart build does only that."
	suite smoke "first steps and the demo in short" 600 count_line smoke
	suite ompi "Debian's Open MPI over unimem" 300 count_line ompi
	check_script fabtests "fabtests, RDM part" 1200 test/run-fabtests
	check_script mpich "MPICH's tests and examples" 2000 test/run-mpich
	check_user
	check_no_cma
	conclude
}
