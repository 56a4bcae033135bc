# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# libfabric.sh - a lean libfabric for MPICH: fetch, build, keep in the cache.
#
# Debian's libfabric 1.17 runs the constructors of PSM, each of which binds the
# process to CPU 0 and sleeps for 100 ms, and the device scan of verbs in every
# process, whatever FI_PROVIDER says. The lean libfabric has the same soname,
# and of the built-in providers only tcp and shm, which bench/run compares with.
# MPICH is built with the system's headers and library and finds the lean one by
# RUNPATH. Where its source cannot be had, MPICH runs on the system's.

LIBFABRIC_SUMS=$TOP/scripts/libfabric.sha256
LIBFABRIC_SUITE=trixie

# One configure argument per line
libfabric_flags()
{
	cat <<-EOF
	--enable-only
	--enable-tcp
	--enable-shm
	--disable-static
	--disable-dependency-tracking
	CFLAGS=-O2
	EOF
}

# A hash of all that the library depends on; a change builds another one.
libfabric_key()
{
	{
		tarball_sum "$LIBFABRIC_SUMS"
		libfabric_flags
		uname -m
		gcc -dumpfullversion
	} | sha256sum | cut -c1-12
}

libfabric_dir() { printf '%s/libfabric-%s\n' "$CACHE" "$(libfabric_key)"; }

libfabric_have() { [ -e "$(libfabric_dir)/.complete" ]; }

# Autogen, configure, build, install; runs under the cache's lock.
libfabric_build_locked()
{
	local dir=$1 work=$1.work flags

	if [ -e "$dir/.complete" ]; then
		echo "another process built it meanwhile"
		return 0
	fi
	rm -rf "$dir" "$work"
	mkdir -p "$work/src" "$work/obj"
	tar -xf "$(tarball_path "$LIBFABRIC_SUMS" \
		"${LIBFABRIC_TARBALL:-}")" -C "$work/src" --strip-components=1
	cd "$work/src" || return
	./autogen.sh
	mapfile -t flags < <(libfabric_flags)
	cd "$work/obj" || return
	env -u CFLAGS -u CPPFLAGS -u LDFLAGS -u LIBS -u CC \
		../src/configure --prefix="$dir" --silent "${flags[@]}"
	make -s -j"$JOBS" V=0 src/libfabric.la
	make -s V=0 install-libLTLIBRARIES
	cp "$work/src/COPYING" "$dir/"
	sed -n 's/^Version: //p' libfabric.pc >"$dir/version"
	cd "$CACHE" || return
	rm -rf "$work"
	touch "$dir/.complete"
}

libfabric_build()
{
	flock -o "$1.lock" "$BASH" "$TOP/scripts/step" \
		libfabric_build_locked "$1"
}

# Is the source there, or can it be had?
libfabric_source()
{
	if [ -n "${LIBFABRIC_TARBALL:-}" ]; then
		tarball_named "$LIBFABRIC_SUMS" "$LIBFABRIC_TARBALL" \
			LIBFABRIC_TARBALL
		return 0
	fi
	! tarball_have "$LIBFABRIC_SUMS" || return 0
	have apt-get || return 1
	STEP_LIMIT=120 attempt libfabric-fetch "fetching libfabric's source" \
		tarball_fetch "$LIBFABRIC_SUMS" "$LIBFABRIC_SUITE" libfabric
}

# A folder in which the loader finds the system's libfabric and nothing else
libfabric_system()
{
	local lib

	lib=$(pkg-config --variable=libdir libfabric)/libfabric.so.1
	[ -e "$lib" ] || die "no $lib: the package libfabric-dev is not whole"
	mkdir -p "$BUILD/libfabric-system"
	ln -sfn "$lib" "$BUILD/libfabric-system/libfabric.so.1"
}

# libfabric_of LIBRARY : the libfabric that LIBRARY loads now
libfabric_of()
{
	ldd "$1" | awk '$1 == "libfabric.so.1" { print $3 }'
}

# libfabric_need : build the lean libfabric unless the cache has it, link
# build/libfabric. No failure here ends anything but a speed-up.
libfabric_need()
{
	local dir

	libfabric_system
	dir=$(libfabric_dir)
	if ! libfabric_have; then
		if ! libfabric_source; then
			rm -f "$BUILD/libfabric"
			warn "no source of a lean libfabric: MPICH runs on" \
				"the system's, and MPI_Init takes longer" \
				"(LIBFABRIC_TARBALL= names" \
				"$(tarball_name "$LIBFABRIC_SUMS"))"
			return 0
		fi
		step libfabric "building a lean libfabric, about a minute" \
			"Run ./quickstart build again; if it fails alike, the \
packages in scripts/packages.txt may not be those of Debian 12." \
			libfabric_build "$dir"
	fi
	[ "$(readlink "$BUILD/libfabric" 2>/dev/null)" = "$dir" ] ||
		ln -sfn "$dir" "$BUILD/libfabric"
}
