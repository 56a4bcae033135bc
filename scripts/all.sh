# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Load the whole library; wants TOP set.

UNIMEM_LIBS="common packages tarball libfabric mpich mpich-build build demo"
UNIMEM_LIBS+=" count user native smoke ompi debian cluster cluster-demo"
UNIMEM_LIBS+=" hosts slurm ssh"
for lib in $UNIMEM_LIBS check aarch64 fuzz mutants systemd cuse bare full; do
	# shellcheck source=/dev/null
	. "$TOP/scripts/$lib.sh"
done
unset lib UNIMEM_LIBS
