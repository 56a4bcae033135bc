# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Proof by the provider's counters that MPI's one-sided operations are its
# own: as many as MPI was asked for, and not a message more than windows and
# barriers need without them. The program is test/mpich/native.c. Windows of
# MPI_Win_allocate are left to the provider for that
# (mpich-patches/rma-mapped.patch).

NATIVE=$BUILD/demo/native
NATIVE_KINDS="put:8 put:1024 put:65536 get:8 get:1024 get:65536 acc:8"
NATIVE_KINDS+=" acc:1024 gacc:8 gacc:1024 fop:8 cas:8"
NATIVE_MAPPED=0

native_build()
{
	rm -rf "$NATIVE"
	mkdir -p "$NATIVE"
	mpicc -O2 -o "$NATIVE/native" "$TOP/test/mpich/native.c"
}

# native_count OPERATION COUNT BYTES WINDOW : run it; the sums over both ranks:
# messages, their bytes, one-sided operations, their bytes
native_count()
{
	local stats=$NATIVE/stats

	rm -rf "$stats"
	mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats MPIR_CVAR_CH4_OFI_MAPPED_WINDOWS=$NATIVE_MAPPED \
		mpirun -n 2 "$NATIVE/native" "$@" || return
	cat "$stats"/*.stats | tr ' ' '\n' | awk -F= '
		{ sum[$1] += $2 }
		END { print sum["tx_msgs"], sum["tx_bytes"],
			sum["tx_onesided"], sum["tx_onesided_bytes"] }'
}

# native_one OPERATION:BYTES WINDOW MESSAGES MESSAGE_BYTES : 100 of them
native_one()
{
	local got want bytes=${1#*:}

	got=$(native_count "${1%:*}" 100 "$bytes" "$2")
	want="$3 $4 100 $((100 * bytes))"
	[ "$got" = "$want" ] ||
		die "$1 in a window by $2: messages, their bytes, operations" \
			"and their bytes were $got, not $want"
}

# native_window WINDOW : every operation
native_window()
{
	local kind bytes none=()

	for bytes in 8 1024 65536; do
		# what the window and the barriers need
		none[bytes]=$(native_count put 0 "$bytes" "$1")
		[ "${none[bytes]#* * }" = "0 0" ] ||
			die "$1: operations that nobody asked for:" \
				"${none[bytes]}"
	done
	for kind in $NATIVE_KINDS; do
		# shellcheck disable=SC2046 # two words
		native_one "$kind" "$1" \
			$(cut -d ' ' -f 1,2 <<<"${none[${kind#*:}]}")
	done
}

# Window memory that the ranks share: no operation reaches the provider
native_mapped()
{
	local NATIVE_MAPPED=1 kind got

	for kind in put:65536 get:8 acc:1024 gacc:8 fop:8 cas:8; do
		got=$(native_count "${kind%:*}" 100 "${kind#*:}" allocate)
		[ "${got#* * }" = "0 0" ] ||
			die "$kind: operations and their bytes in the" \
				"provider: ${got#* * }"
	done
}

# native_not VARIABLE KIND : MPICH without native RMA, or without native atomics
# (VARIABLE=0), does not pass for one that has them
native_not()
{
	local none

	none=$(native_count put 0 8 create | cut -d ' ' -f 1,2)
	export "$1=0"
	# shellcheck disable=SC2086 # two words
	! (native_one "$2" create $none) ||
		die "active messages were taken for native operations"
}
