#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints over the register model: what the device backend does otherwise.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_HAL=sim
ep_again "garbage golden transfer pressure" || exit

# the smallest receive space a device may have
export FI_UNIMEM_SIM=space=4096
ep_again "transfer order"
