# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-fuzz: the fuzz targets under libFuzzer.

# fuzz_command : a million inputs, or FUZZ_MILLIONS (test/fuzz/run)
fuzz_command()
{
	packages_need build
	packages_need check
	packages_need fuzz
	build_autogen
	CC=clang build_configure "$BUILD/obj-fuzz" fuzz --enable-fuzz
	suite fuzz "fuzz targets" \
		count_line fixed_addresses make -C "$BUILD/obj-fuzz" -s \
		-j"$JOBS" fuzz
	conclude
}
