# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# MPICH over libfabric: fetch, patch, build, keep in the cache.

MPICH_PATCHES=$TOP/mpich-patches
MPICH_SUMS=$MPICH_PATCHES/upstream.sha256

# mpich_series VARIANT : the patches of that variant
mpich_series()
{
	[ "$1" = default ] || return 0
	sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' \
		"$MPICH_PATCHES/series"
}

# mpich_flags VARIANT : one configure argument per line. The library is linked
# with the system's libfabric and loads the lean one if it exists, at run time
# (RUNPATH: LD_LIBRARY_PATH comes before it).
mpich_flags()
{
	cat <<-EOF
	--with-device=ch4:ofi
	--with-libfabric=/usr
	--with-hwloc=/usr
	--with-datatype-engine=dataloop
	--disable-static
	--enable-fast=all
	--enable-g=none
	--enable-error-messages=all
	LDFLAGS=-Wl,--enable-new-dtags,-rpath,$(libfabric_dir)/lib
	EOF
	case $1 in
	default|unpatched)
		# All ranks talk through the fabric, on one board or many.
		cat <<-EOF
		--with-ch4-shmmods=none
		--enable-fortran=all
		FFLAGS=-fallow-argument-mismatch
		FCFLAGS=-fallow-argument-mismatch
		EOF
		;;
	posix)
		# MPICH's own shared memory, to compare with; C only.
		printf '%s\n' --disable-fortran --disable-cxx
		;;
	*)
		die "no MPICH variant '$1': default, unpatched or posix"
		;;
	esac
}

# Debian calls MPICH's libraries libmpich*.so.12 where MPICH itself calls them
# libmpi*.so.12. The interface is the same: with these links in $1, programs
# that Debian linked to its own MPICH run with this MPICH.
mpich_debian_names()
{
	local lib

	for lib in "" fort cxx; do
		[ -e "$1/libmpi$lib.so.12" ] || continue
		ln -sf "libmpi$lib.so.12" "$1/libmpich$lib.so.12"
	done
}

# A hash of all that the library depends on; a change builds another one.
mpich_key()
{
	local p patches=()

	while read -r p _; do
		patches+=("$MPICH_PATCHES/$p")
	done < <(mpich_series "$1")
	{
		tarball_sum "$MPICH_SUMS"
		mpich_series "$1"
		[ ${#patches[@]} -eq 0 ] || cat -- "${patches[@]}"
		mpich_flags "$1"
		declare -f mpich_debian_names
		uname -m
		gcc -dumpfullversion
		pkg-config --modversion libfabric
		pkg-config --modversion hwloc
	} | sha256sum | cut -c1-12
}

mpich_dir() { printf '%s/mpich-%s-%s\n' "$CACHE" "$1" "$(mpich_key "$1")"; }

mpich_need_tarball()
{
	if [ -n "${MPICH_TARBALL:-}" ]; then
		tarball_named "$MPICH_SUMS" "$MPICH_TARBALL" MPICH_TARBALL
		return 0
	fi
	! tarball_have "$MPICH_SUMS" || return 0
	have apt-get || die "MPICH's source comes by apt-get: name the file" \
		"$(tarball_name "$MPICH_SUMS") with MPICH_TARBALL="
	step mpich-fetch "fetching MPICH's source" \
		"Is a Debian mirror reachable? Else name the file \
$(tarball_name "$MPICH_SUMS") with MPICH_TARBALL=." \
		tarball_fetch "$MPICH_SUMS" bookworm mpich
}
