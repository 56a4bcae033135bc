#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# clang has no warning for any source that configure chose, the tests included.
# It warns where gcc does not. (Nothing is built; check-full's job clang builds
# and runs the tests.) CLANG: the compiler.
. "$(dirname "$0")/check-lib.sh"

build=${UNM_BUILDDIR:?run by make check}
CLANG=${CLANG:-clang}

command -v "$CLANG" >/dev/null 2>&1 || skip "$CLANG is not installed"
# the variables of the make that runs this test are not for the one below
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
cd "$build" && make -s -f - "CLANG=$CLANG" syntax <<'END'
include Makefile
# the sources of what is built, by automake's names of their lists
built = $(PROGRAMS) $(LTLIBRARIES) $(check_PROGRAMS) $(check_LTLIBRARIES)
lists = $(subst /,_,$(subst -,_,$(subst .,_,$(built))))
files = $(sort $(filter %.c,$(foreach l,$(lists),$($l_SOURCES))))
flags = $(DEFS) $(AM_CPPFLAGS) -I$(MALLOC) $(HWLOC_CFLAGS) $(SECCOMP_CFLAGS) \
	$(SODIUM_CFLAGS) $(UCX_CFLAGS) $(FUSE3_CFLAGS) \
	-DGSAS_BINDIR='""' -DMBOX_BINDIR='""' \
	-DHAL_MODEL_DIR='""' $(UNM_CFLAGS) -Werror -Wno-unknown-warning-option
syntax:
	@echo '$(words $(files)) files'
	@$(CLANG) -fsyntax-only $(flags) $(addprefix $(srcdir)/,$(files))
END
