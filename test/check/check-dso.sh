#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the shared libraries show to the world, and that the provider loads.
. "$(dirname "$0")/check-lib.sh"

lib=${UNM_BUILDDIR:?run by make check}/.libs
failed=0

bad()
{
	echo "$*"
	failed=1
}

[ "$(exported "$lib/libunimem-fi.so")" = fi_prov_ini ] ||
	bad "libunimem-fi.so exports more than fi_prov_ini:" \
		"$(exported "$lib/libunimem-fi.so")"
others=$(exported "$lib/libunimem-hal.so" | grep -v '^hal_')
[ -z "$others" ] || bad "libunimem-hal.so exports not only hal_*: $others"

# no library that an MPI process would have to load for nothing
for so in libunimem-fi.so libunimem-hal.so; do
	others=$(LC_ALL=C objdump -p "$lib/$so" |
		awk '$1 == "NEEDED" { print $2 }' |
		grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so' |
		grep -vE '^lib(asan|ubsan|tsan|gcov)\.so' |
		grep -vE '^(libfabric\.so\.1|libunimem-hal\.so\.[0-9]+)$')
	[ -z "$others" ] || bad "$so needs $others"
done
objdump -p "$lib/libunimem-hal.so" | grep -q 'NEEDED.*libfabric' &&
	bad "libunimem-hal.so needs libfabric"

${UNM_EXEC:+"$UNM_EXEC"} \
	"$UNM_BUILDDIR/test/check/check_dso" "$lib/libunimem-fi.so" ||
	bad "libunimem-fi.so does not load as a provider"
exit $failed
