#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL hold under the timing model with the published figures,
# for the emulation, under the fault decorator around it, and for the register
# model; those about ends, connections, sleeping, back words and releases also
# if packets and stores take so long that they are still under way at the next
# step of a test. (A load of the register model stalls the processor, so 2 ms
# would make some of its tests last for minutes.)
published=${UNM_SRCDIR:?run by make check}/prov/unimem/hal/exanode.model
slow=${UNM_BUILDDIR:?run by make check}/check-hal-model.$$
trap 'rm -f "$slow"' EXIT

laws()
{
	${UNM_EXEC:+"$UNM_EXEC"} "$UNM_BUILDDIR/test/conform/hal_conform" \
		--profile exanode "$@" || exit
}

export FI_UNIMEM_MODEL="$published"
laws --hal emu --packets 5000
laws --hal fault --no-procs --packets 5000

sed -E -e 's/^(packet_latency|load_round_trip) = [^#]*#/\1 = 2 ms #/' \
    -e 's/^store_latency = [^#]*#/store_latency = 1 ms #/' \
    "$published" >"$slow" || exit
export FI_UNIMEM_MODEL="$slow"
thin=${UNM_TEST_THIN-6}
for tests in $(printf '%s\n' close conn sleep kill proc back pkt_un |
	       sh "$(dirname "$0")/thin.sh" "$thin"); do
	laws --hal emu --packets 1000 --test "$tests*"
done

# all groups of tests; those of several processes take up to 40 s
thin_sim=${UNM_TEST_THIN-12}
for tests in $(printf '%s\n' back close conn dma if kill leak mem pkt proc \
	       sleep space stop stream window |
	       sh "$(dirname "$0")/thin.sh" "$thin_sim"); do
	export FI_UNIMEM_MODEL="$published"
	laws --hal sim --packets 10000 --test "$tests*"
	sed -E -i 's/= [12] ms #/= 200 us #/' "$slow"
	export FI_UNIMEM_MODEL="$slow"
	laws --hal sim --packets 1000 --test "$tests*"
done
[ "$thin" -eq 1 ] || echo "skip slow_figures (one in $thin runs)"
[ "$thin_sim" -eq 1 ] || echo "skip register_model (one in $thin_sim runs)"
