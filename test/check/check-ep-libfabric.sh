#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints of the provider that libfabric loads: the library, not its objects.
. "$(dirname "$0")/ep-lib.sh"

export UNM_TEST_LIBFABRIC=1
ep_some "transfer receive order peek cancel multi complete wait object av
	av_remove mem alias trigger work" || exit

# tests cannot switch it off in there
export FI_UNIMEM_DIRECT=0
ep_again "rma atomic address data"
