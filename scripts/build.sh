# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The project itself: configure, make, install; build/env.sh; the benches.

OBJ=$BUILD/obj
PREFIX=$BUILD/install

# configure and every Makefile.in, when their sources changed
build_autogen()
{
	local inputs key

	mapfile -t inputs < <(cd "$TOP" && find . -path ./build -prune -o \
		\( -name configure.ac -o -name Makefile.am -o \
		   -name '*.mk' -o -name '*.m4' \
		   -o -name autogen.sh \) ! -name aclocal.m4 ! -path './m4/l*' \
		-print | sort)
	key=$(cd "$TOP" && hash_of "${inputs[@]}")
	[ -x "$TOP/configure" ] && stamp_is autogen "$key" && return 0
	step autogen "generating configure" \
		"./autogen.sh shows it at length." build_in "$TOP" ./autogen.sh
	stamp_set autogen "$key"
}

# build_in DIR COMMAND...
build_in() { cd "$1" || return; shift; "$@"; }

# The libraries that configure would find: a package may be new since then.
build_libraries()
{
	pkg-config --modversion libfabric hwloc cmocka libseccomp fuse3 ucx \
		libsodium 2>&1 || :
}

# build_configure OBJDIR NAME ARGS...
build_configure()
{
	local obj=$1 name=$2 key
	shift 2

	key=$(hash_of "-$TOP" "-$*" "-${CC:-}" "-${CFLAGS:-}" \
		"-$(build_libraries)" "$TOP/configure")
	[ -e "$obj/Makefile" ] && stamp_is "configure-$name" "$key" && return 0
	rm -rf "$obj"
	mkdir -p "$obj"
	step "configure-$name" "configuring ($name)" \
		"See ${obj#"$TOP"/}/config.log; the packages are listed in \
scripts/packages.txt." \
		build_in "$obj" "$TOP/configure" --prefix="$PREFIX" "$@"
	stamp_set "configure-$name" "$key"
}

build_make_install()
{
	cd "$OBJ" || return
	make -s -j"$JOBS"
	make -s install
}

# build_tree : build/obj and build/install
build_tree()
{
	[ -x "$TOP/autogen.sh" ] ||
		die "no autogen.sh in $TOP: not a whole tree"
	build_autogen
	build_configure "$OBJ" obj
	step make "building unimem" \
		"The compiler's message is above; \
make -C build/obj V=1 shows the commands." build_make_install
}

# build_flavour NAME FLAGS... : another build tree, not installed
build_flavour()
{
	local name=$1
	shift

	build_autogen
	build_configure "$BUILD/obj-$name" "$name" "$@"
	step "make-$name" "building unimem ($name)" \
		"make -C build/obj-$name V=1 shows the commands." \
		build_in "$BUILD/obj-$name" make -s -j"$JOBS"
}

# build_bench : the bench programs with our MPICH, into build/bench
build_bench()
{
	local key again=()

	key=$(readlink "$BUILD/mpich")
	stamp_is bench "$key" || again=(-B)
	step bench-programs "building the bench programs" \
		"make -C bench MPICC=... shows the commands." \
		make -s -C "$TOP/bench" mpi OUT="$BUILD/bench" \
		MPICC="$BUILD/mpich/bin/mpicc" "${again[@]}"
	stamp_set bench "$key"
}

# build_env : build/env.sh, which a user sources
build_env()
{
	local tmp=$BUILD/env.sh.tmp t=$BUILD/tuning
	local mpir=MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
	local ch4=MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE

	step tuning "writing MPICH's tables of collectives" \
		"./quickstart clean --cache, and build again." \
		"$TOP/bench/tune" --tables "$t"
	cat >"$tmp" <<-EOF
	# Made by ./quickstart. Use it with:  . $BUILD/env.sh

	# mpicc, mpifort and mpirun of the MPICH that runs on libfabric, and
	# unimem_info, before any other in the system.
	export PATH="$BUILD/mpich/bin:$PREFIX/bin:\$PATH"

	# The folder in which libfabric finds libunimem-fi.so. It replaces the
	# folder built into libfabric; built-in providers stay available.
	export FI_PROVIDER_PATH="$PREFIX/lib/libfabric"

	# Use only this provider. Without it MPICH takes the one that scores
	# highest, which may be sockets. ("fi_info -g FI_UNIMEM" lists our
	# parameters; "man fi_unimem" explains them.)
	export FI_PROVIDER=unimem

	# MPICH runs on the libfabric of build/libfabric, with which MPI_Init is
	# short. To run it on the system's libfabric instead:
	#   export LD_LIBRARY_PATH="$BUILD/libfabric-system"

	# Which algorithms MPICH uses for collectives (bench/tune). A table of
	# yours, or MPIR_CVAR_BCAST_INTRA_ALGORITHM and the like, comes first.
	if [ -r "$t/mpir.json" ] && [ -r "$t/ch4.json" ]; then
		export $mpir="\${$mpir-$t/mpir.json}"
		export $ch4="\${$ch4-$t/ch4.json}"
	fi

	# For pkg-config: the modules gsas, unimem-rdma and unimem-mailbox.
	# (README.md has the command of the compiler.)
	export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig:\${PKG_CONFIG_PATH:-}"

	# The manual pages: fi_unimem(7) and MPICH's. (The colon at the end
	# keeps the system's own.)
	export MANPATH="$PREFIX/share/man:$BUILD/mpich/share/man:\${MANPATH:-}"
	EOF
	mv -f "$tmp" "$BUILD/env.sh"
}

# MPI without our provider
build_mpi()
{
	packages_need build
	mpich_need default
	build_bench
	build_env
}

# Everything that a user needs.
build_all()
{
	build_mpi
	build_tree
}
