# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The second half of mpich.sh: from the tarball to build/mpich.

# mpich_unpack DIR VARIANT : unpack and patch
mpich_unpack()
{
	local p opts

	rm -rf "$1"
	mkdir -p "$1"
	tar -xf "$(tarball_path "$MPICH_SUMS" "${MPICH_TARBALL:-}")" \
		-C "$1" --strip-components=1
	while read -r p opts; do
		echo "patch $p"
		# shellcheck disable=SC2086
		patch -d "$1" ${opts:--p1} --forward --batch \
			<"$MPICH_PATCHES/$p"
	done < <(mpich_series "$2")
}

# Configure, build, install one variant; runs under the cache's lock.
mpich_build_locked()
{
	local variant=$1 dir=$2 work=$2.work flags

	if [ -e "$dir/.complete" ]; then
		echo "another process built it meanwhile"
		return 0
	fi
	rm -rf "$dir"
	mpich_unpack "$work/src" "$variant"
	mkdir -p "$work/obj"
	mapfile -t flags < <(mpich_flags "$variant")
	cd "$work/obj" || return
	# The user's own flags must not leak into mpicc.
	env -u CFLAGS -u CPPFLAGS -u LDFLAGS -u LIBS -u FFLAGS -u FCFLAGS \
		-u MPICC -u MPI_CC -u F77 -u FC -u CC \
		../src/configure --prefix="$dir" --silent "${flags[@]}"
	make -s -j"$JOBS" V=0
	make -s install V=0
	mpich_debian_names "$dir/lib"
	mpich_keep_source "$work/src" "$dir"
	cd "$CACHE" || return
	rm -rf "$work"
	touch "$dir/.complete"
}

# The parts of the source that the test runners build: MPICH's own tests and
# examples, and libfabric's fabtests; and the tables that bench/tune changes.
mpich_keep_source()
{
	local part

	for part in test/mpi examples modules/libfabric maint/tuning; do
		mkdir -p "$2/source/$part"
		cp -a "$1/$part/." "$2/source/$part/"
	done
	cp -a "$1/COPYRIGHT" "$2/source/"
}

mpich_build()
{
	flock -o "$2.lock" "$BASH" "$TOP/scripts/step" \
		mpich_build_locked "$1" "$2"
}

mpich_have() { [ -e "$(mpich_dir "$1")/.complete" ]; }

# mpich_need VARIANT : build it unless the cache has it, link build/mpich*
mpich_need()
{
	local variant=$1 dir link=$BUILD/mpich

	[ "$variant" = default ] || link=$BUILD/mpich-$variant
	mpich_flags "$variant" >/dev/null
	mkdir -p "$CACHE" || die "cannot write $CACHE: set UNIMEM_CACHE"
	libfabric_need
	dir=$(mpich_dir "$variant")
	if ! mpich_have "$variant"; then
		mpich_need_tarball
		step "mpich-$variant" \
			"building MPICH ($variant), 5 to 25 minutes" \
			"Run ./quickstart build again; if it fails alike, the \
packages in scripts/packages.txt may not be those of Debian 12." \
			mpich_build "$variant" "$dir"
	fi
	if [ "$(readlink "$link" 2>/dev/null)" != "$dir" ]; then
		ln -sfn "$dir" "$link"
	fi
	[ "$variant" != default ] ||
		ln -sfn "$dir/source" "$BUILD/mpich-source"
}
