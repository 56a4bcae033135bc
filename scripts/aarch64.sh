# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-aarch64: built for the boards' processor by a cross
# compiler, run by qemu-user. Its libraries lie in a folder of the cache. qemu
# keeps the order of the machine it runs on: this proves instructions, layouts
# and fall-backs, not the order of loads and stores.

AARCH64_OBJ=$BUILD/obj-aarch64
AARCH64_OUT=$BUILD/aarch64

# Atomics by load and store exclusive, as on the boards: what updates shared
# words in more than one thread or process, the layouts, and the laws of the HAL
# with the sizes of the boards.
AARCH64_LLSC="test/fuzz/fuzz_wire test/unit/test_golden test/unit/test_wire"
AARCH64_LLSC+=" test/unit/test_match"
AARCH64_LLSC+=" test/unit/test_object test/unit/test_order"
AARCH64_LLSC+=" test/unit/test_threads"
AARCH64_LLSC+=" test/unit/test_transfer test/unit/test_wait"
AARCH64_LLSC+=" test/multi/test_crowd"
AARCH64_LLSC+=" test/multi/test_death test/multi/test_fork"
AARCH64_LLSC+=" test/check/check-hal-exanode.sh"
AARCH64_LLSC+=" test/unit/test_op test/unit/test_op_race"
AARCH64_LLSC+=" test/unit/test_rma test/unit/test_atomic test/unit/test_safe"

# Atomics of ARMv8.1 (LSE): the same kind of tests; all: every test program,
# and the laws of the HAL, but for what qemu-user cannot run (test/skips.txt).
# (The rest of CHECKS, EP_CHECKS and HAL_CHECKS runs the same code with other
# settings.)
AARCH64_LSE="test/unit/test_wire test/unit/test_golden"
AARCH64_LSE+=" test/unit/test_order test/unit/test_threads"
AARCH64_LSE+=" test/unit/test_op test/unit/test_op_race"
AARCH64_LSE+=" test/unit/test_rma test/unit/test_atomic"
AARCH64_LSE+=" test/unit/test_litmus test/check/check-dso.sh"
AARCH64_LSE+=" test/check/check-info.sh"
AARCH64_ALL="UNIT_TESTS BUSY_TESTS PROC_TESTS PLAIN_TESTS"
AARCH64_ALL+=" test/check/check-hal-emu.sh"
AARCH64_ALL+=" test/check/check-dso.sh test/check/check-info.sh"

# ---- The target's libraries -----------------------------------------------

aarch64_root()
{
	printf '%s/aarch64-%s\n' "$CACHE" \
		"$(packages aarch64-libs | sha256sum | cut -c1-12)"
}

aarch64_fetch()
{
	local root=$1 deb

	apt_private deb bookworm -o APT::Architecture=arm64 \
		-o APT::Architectures::=arm64
	# shellcheck disable=SC2046 # a list of names
	(cd "$APT_DIR/get" && "${APT[@]}" download $(packages aarch64-libs))
	for deb in "$APT_DIR"/get/*.deb; do
		dpkg -x "$deb" "$APT_DIR/root"
	done
	aarch64_complete "$APT_DIR/root"
	mv -T "$APT_DIR/root" "$root"
}

# Does all that we use load? The loader names what is missing.
aarch64_complete()
{
	local f lib=$1/usr/lib/aarch64-linux-gnu

	for f in "$1/usr/bin/fi_pingpong" "$lib/libcmocka.so.0" \
		 "$lib/libhwloc.so.15"; do
		qemu-aarch64 -L "$1" "$1/lib/ld-linux-aarch64.so.1" \
			--list "$f"
	done
}

aarch64_need_root()
{
	[ ! -d "$1" ] || return 0
	have apt-get || die "the libraries for aarch64 come by apt-get, from" \
		"a Debian mirror"
	step aarch64-fetch "fetching the libraries for aarch64" \
		"Is a Debian mirror reachable? Is a library missing in \
scripts/packages.txt [aarch64-libs]?" aarch64_fetch "$1"
}

# ---- Building -------------------------------------------------------------

# aarch64_programs LIST : its test programs, and the bench programs that need
# no MPI
aarch64_programs()
{
	check_only "$AARCH64_OBJ" "$1" check_programs "$AARCH64_OBJ"
	mkdir -p "$AARCH64_OUT"
	ln -sfn "$AARCH64_OBJ/.libs" "$AARCH64_OUT/lib"
	make -C "$TOP/bench" -s raw hal OUT="$AARCH64_OUT/bench" \
		PREFIX="$AARCH64_OUT" CFLAGS="$CFLAGS -Werror"
}

# aarch64_build ROOT LIST
aarch64_build()
{
	local root=$1 lib=lib/aarch64-linux-gnu

	build_flavour aarch64 --host=aarch64-linux-gnu --enable-werror \
		CPPFLAGS="-isystem $root/usr/include/aarch64-linux-gnu" \
		LDFLAGS="-Wl,-rpath-link,$root/usr/$lib:$root/$lib"
	step aarch64-programs "building the tests (aarch64)" \
		"make -C build/obj-aarch64 check TESTS= V=1 shows the \
commands." \
		aarch64_programs "$2 $AARCH64_LLSC"
}

# ---- The tests of make check ----------------------------------------------

# The cases that test/skips.txt names for aarch64, as UNIT_SKIP wants them: the
# program of each check-hal-*.sh is hal_conform.
aarch64_cases()
{
	sed -nE '
		s,^aarch64/test/check/check-hal-\*/([^:]+):.*,hal_conform/\1,p
		s,^aarch64/test/[a-z]+/([^:/]+/[^:]+):.*,\1,p
		s,^aarch64/test/(\*/[^:]+):.*,\1,p
	' "$TOP/test/skips.txt"
}

# aarch64_make CPU LIST : those of LIST that qemu-user can run
aarch64_make()
{
	local t list tests=() skipped=0
	local -x UNIT_SKIP

	UNIT_SKIP=$(aarch64_cases)
	list=$(check_list "$AARCH64_OBJ" "$2")
	for t in $list; do
		if skip_reason "aarch64/$t" >/dev/null; then
			echo "SKIP: $t"
			skipped=$((skipped + 1))
		else
			tests+=("$t")
		fi
	done
	echo "# SKIP:  $skipped"
	rm -f "$AARCH64_OBJ"/test/*.trs
	QEMU_CPU=$1 check_only "$AARCH64_OBJ" "$list" \
		check_make "$AARCH64_OBJ" check UNM_EXEC=qemu-aarch64 \
		TESTS="${tests[*]}"
}

# ---- What the instructions are --------------------------------------------

# Where packets are sent and taken, acquire and release are instructions; the
# provider has no barrier of its own (docs/memory-ordering.md).
aarch64_ordered()
{
	local o code file

	for o in unm_msg unm_tagged unm_peer unm_progress; do
		file=$(find "$AARCH64_OBJ/prov" -path "*/.libs/libunm_la-$o.o")
		[ -f "$file" ] || die "$o.o: not found once: $file"
		code=$(aarch64-linux-gnu-objdump -d "$file")
		grep -qE '[[:space:]]lda(p?)r[[:space:]]' <<<"$code" ||
			die "$o.o: no load with acquire"
		grep -qE '[[:space:]]stlr[[:space:]]' <<<"$code" ||
			die "$o.o: no store with release"
	done
	code=$(aarch64-linux-gnu-objdump -d \
		"$AARCH64_OBJ/.libs/libunimem-fi.so")
	! grep -E '[[:space:]]d[ms]b[[:space:]]' <<<"$code"
}

# The accessors and barriers of the boards: nothing here can run them.
aarch64_silicon()
{
	OBJDUMP=aarch64-linux-gnu-objdump UNM_SRCDIR=$TOP \
		UNM_BUILDDIR=$AARCH64_OBJ sh "$TOP/test/check/check-mmio.sh"
}

# aarch64_atomics CPU : which instructions ran in the compiler's helpers, that
# take LSE where the processor has it. "exclusive others", as numbers. (The
# disassembler does not know them: CAS, or SWP and the LDADD kind, by code.)
aarch64_atomics()
{
	local log=$AARCH64_OUT/instructions-$1

	QEMU_CPU=$1 FI_PROVIDER_PATH=$AARCH64_OBJ/.libs qemu-aarch64 \
		-d in_asm -D "$log" "$AARCH64_OBJ/test/unit/test_order" >&2
	awk '
	/^IN: / { helper = $2 ~ /^__aarch64_/ }
	helper && $3 ~ /^(ld|st)[al]?xr$/ { exclusive++ }
	helper && $2 ~ /^[048c]8[abef][0-9a-f][7f][c-f]..$/ { lse++ }
	helper && $2 ~ /^[37bf]8[2367abef]..[0-3]..$/ { lse++ }
	END { print exclusive + 0, lse + 0 }' "$log"
	rm -f "$log"
}

aarch64_llsc() { aarch64_atomics cortex-a72 | grep -x '[1-9][0-9]* 0'; }
aarch64_lse()  { aarch64_atomics max | grep -x '0 [1-9][0-9]*'; }

# ---- libfabric's own tools ------------------------------------------------

aarch64_tool()
{
	local tool=$QEMU_LD_PREFIX/usr/bin/$1
	shift

	FI_PROVIDER_PATH=$AARCH64_OBJ/.libs exec qemu-aarch64 "$tool" "$@"
}

aarch64_info() { (aarch64_tool fi_info -p unimem) | grep 'unimem'; }
aarch64_pingpong() { aarch64_tool fi_pingpong "$@"; }
native_pingpong() { FI_PROVIDER_PATH=$OBJ/.libs exec fi_pingpong "$@"; }

aarch64_more()
{
	local cpu ours=aarch64_pingpong

	smoke_one "hot path: acquire, release, no barrier" aarch64_ordered
	smoke_one "registers: 16 bytes at once, barriers" aarch64_silicon
	smoke_one "cortex-a72: load and store exclusive ran" aarch64_llsc
	smoke_one "max: atomics of LSE ran" aarch64_lse
	smoke_one "fi_info lists the provider" aarch64_info
	for cpu in cortex-a72 max; do
		export QEMU_CPU=$cpu
		smoke_one "$cpu: fi_pingpong, all sizes, data checked" \
			smoke_pingpong "$ours" "$ours"
	done
	# One emulation, two processors: the layouts are the same.
	smoke_one "fi_pingpong from aarch64 to $(uname -m)" \
		smoke_pingpong native_pingpong "$ours"
	smoke_one "fi_pingpong from $(uname -m) to aarch64" \
		smoke_pingpong "$ours" native_pingpong
	smoke_end
}

# ---- The command ----------------------------------------------------------

# Wants the native build: one end of the last tests is that.
check_aarch64()
{
	local root lse=$AARCH64_LSE

	case ${1:-} in
	'')	;;
	all)	lse=$AARCH64_ALL
		AARCH64_LLSC+=" test/check/check-hal-sim.sh" ;;
	*)	die "check-aarch64: no '$1', there is: all" ;;
	esac

	packages_need aarch64
	have qemu-aarch64 || die "no qemu-aarch64 here, it runs the tests"
	root=$(aarch64_root)
	aarch64_need_root "$root"
	local -x CC=aarch64-linux-gnu-gcc CFLAGS="-O2 -g" PKG_CONFIG_PATH=
	local -x PKG_CONFIG_SYSROOT_DIR=$root QEMU_LD_PREFIX=$root
	local -x PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig
	aarch64_build "$root" "$lse"
	SKIPS_AS=aarch64 suite aarch64-lse "aarch64 with LSE" \
		count_automake aarch64_make max "$lse"
	SKIPS_AS=aarch64 suite aarch64-llsc "aarch64 with LL/SC" \
		count_automake aarch64_make cortex-a72 "$AARCH64_LLSC"
	suite aarch64-more "aarch64: instructions, fi_pingpong" \
		count_line aarch64_more
}

aarch64_command()
{
	EXIT_HOOKS+=(check_broken)
	packages_need build
	build_tree
	if [ "$(uname -m)" = aarch64 ]; then
		EXIT_HOOKS=(kill_steps)
		say "this machine is an aarch64 one: ./quickstart check"
		return 0
	fi
	check_aarch64 "$@"
	conclude
}
