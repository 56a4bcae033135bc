#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source says its licence in its first five lines. (Patches of MPICH are
# under the licence of MPICH.)
. "$(dirname "$0")/check-lib.sh"

failed=0
for f in $(c_files; sh_files
	   find man test bench scripts m4/unm_*.m4 -name '*.[1-9]' -o \
		-name '*.py' -o -name 'unm_*.m4' -o -name Makefile) \
	 configure.ac $(makefiles); do
	head -n 5 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || {
		echo "$f: no SPDX-License-Identifier: BSD-2-Clause"
		failed=1
	}
done
exit $failed
