#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints whose packet numbers pass 2^48, with the lowest eager limit where
# the test does not need eager messages of some KiB.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_SEQ_START=281474976710600
ep_again "multi pressure threads" || exit
export FI_UNIMEM_EAGER_MAX=256
ep_again "transfer receive order rma atomic data safe
	litmus litmus_msg"
