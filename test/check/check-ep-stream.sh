#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints without cross-memory attach: rendezvous by pieces.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_ATTACH=0
ep_again "transfer receive order peek cancel multi complete threads rma
	atomic address asleep safe regions"
