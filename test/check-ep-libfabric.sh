#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints of the provider that libfabric loads: the library, not its objects.
. "$(dirname "$0")/ep-lib.sh"

export UNM_TEST_LIBFABRIC=1
ep_again "transfer receive order peek cancel multi complete wait object av"
