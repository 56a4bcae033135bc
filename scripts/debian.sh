# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs of Debian packages that are linked to Debian's own MPICH
# (libmpich.so.12, libmpichfort.so.12) run over unimem, unchanged, with
# LD_LIBRARY_PATH=build/mpich/lib. Each checks its own results; the provider's
# counters prove that unimem carried the messages.

DEBIAN=$BUILD/demo/debian

# debian_run RANKS PROGRAM ARGS... : what it prints is in the file out, too, and
# the counters are in a new folder
debian_run()
{
	local ranks=$1
	shift

	rm -rf "$DEBIAN/stats"
	mkdir -p "$DEBIAN/stats"
	cd "$DEBIAN" || return
	LD_LIBRARY_PATH=$BUILD/mpich/lib FI_UNIMEM_STATS=$DEBIAN/stats \
		mpirun -n "$ranks" "$@" 2>&1 | tee "$DEBIAN/out"
}

# debian_carried RANKS BYTES : all RANKS have sent and received by unimem, each
# BYTES at least
debian_carried()
{
	local f n=0 key

	for f in "$DEBIAN"/stats/*.stats; do
		[ -e "$f" ] || continue
		n=$((n + 1))
		for key in tx_bytes rx_bytes; do
			echo "${f##*/}: $key=$(stat_of "$f" "$key")"
			[ "$(stat_of "$f" "$key")" -ge "$2" ]
		done
	done
	[ "$n" -eq "$1" ] || die "$n counter files of $1 ranks: the bytes" \
		"did not go over unimem"
}

# debian_place PACKAGE PROGRAM : where the package has it
debian_place() { dpkg -L "$1" | grep -m 1 "mpich-tests/$2\$"; }

# NetPIPE, in C: messages of all sizes to and fro, their bytes compared
debian_netpipe()
{
	local want

	debian_run 2 NPmpich2 -i -u 300000 -o /dev/null
	! grep -i 'fail' "$DEBIAN/out" || die "wrong data"
	# "  9:      97 bytes    300 times -->  Integrity check passed"
	want=$(awk '/ bytes .* times .* passed$/ { sum += $2 * $4 }
		END { printf "%.0f\n", sum }' "$DEBIAN/out")
	[ "$want" -gt 0 ] || die "nothing was compared"
	echo "compared: $want bytes"
	debian_carried 2 "$want"
}

# The BLACS's tester, in Fortran: matrices from rank to rank
debian_blacs()
{
	local data=/usr/share/scalapack/BLACS

	mkdir -p "$DEBIAN"
	# the first of its four parts, in one precision: all parts take minutes
	sed -E -e "s/^'T'(.*(BSBR|COMB|AUX))/'F'\1/" -e 's/^5 /1 /' \
		-e "s/^'I' 'S' 'D' 'C' 'Z'/'D'/" $data/bt.dat >"$DEBIAN/bt.dat"
	cp $data/sdrv.dat "$DEBIAN/"
	debian_run 4 "$(debian_place scalapack-mpi-test xFbtest)"
	grep -q 'SDRV TESTS: .* [1-9][0-9]* PASSED, .* 0 FAILED' "$DEBIAN/out"
	debian_carried 4 1000
}

# ScaLAPACK, in Fortran: a factorization, its residuals compared
debian_scalapack()
{
	mkdir -p "$DEBIAN"
	cp /usr/share/scalapack/HRD.dat "$DEBIAN/"
	debian_run 4 "$(debian_place scalapack-mpi-test xdhrd)"
	grep -qE '^ +[1-9][0-9]* tests completed and passed' "$DEBIAN/out"
	grep -qE '^ +0 tests completed and failed' "$DEBIAN/out"
	debian_carried 4 1000
}

# Without that line they use Debian's MPICH: nothing counts as unimem's.
debian_not()
{
	rm -rf "$DEBIAN/stats"
	mkdir -p "$DEBIAN/stats"
	FI_UNIMEM_STATS=$DEBIAN/stats mpirun.mpich -n 2 NPmpich2 -i -u 100 \
		-o /dev/null
	! (debian_carried 2 1) || die "another MPICH was taken for ours"
}

debian()
{
	check_env
	smoke_one "Debian's NetPIPE, libmpich.so.12" debian_netpipe
	smoke_one "Debian's BLACS, libmpichfort.so.12" debian_blacs
	smoke_one "Debian's ScaLAPACK, libmpich.so.12" debian_scalapack
	smoke_one "Debian's MPICH itself is seen" debian_not
	smoke_end
}
