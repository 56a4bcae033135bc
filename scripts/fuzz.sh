# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ./quickstart check-fuzz: the fuzz targets under libFuzzer.

# fuzz_command : a million inputs, or FUZZ_MILLIONS (test/fuzz/run). The seed is
# shown here too: the log of the suite is the next run's.
fuzz_command()
{
	packages_need build
	packages_need check
	packages_need fuzz
	build_autogen
	CC=clang build_configure "$BUILD/obj-fuzz" fuzz --enable-fuzz
	: "${FUZZ_SEED:=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
	export FUZZ_SEED
	note "FUZZ_SEED=$FUZZ_SEED"
	suite fuzz "fuzz targets" \
		count_line fixed_addresses make -C "$BUILD/obj-fuzz" -s \
		-j"$JOBS" fuzz
	conclude
}
