#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The models of ring, space, sleeping, credits, rendezvous, remote keys and
# queues keep what they claim, and reject their mutants: every UNM_TEST_THIN-th
# of both, in check-full each.
. "$(dirname "$0")/check-lib.sh"

command -v spin >/dev/null 2>&1 ||
	skip "spin is not installed (Debian: spin)"
exec test/model/run -t "${UNM_TEST_THIN-6}"
