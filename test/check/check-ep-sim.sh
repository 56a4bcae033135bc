#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints over the register model: what the device backend does otherwise.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_HAL=sim
ep_some "garbage golden mem mem_find transfer pressure rma edges atomic address
	data asleep safe gsas_again gsas_batch gsas_board gsas_client gsas_life
	gsas_lies gsas_map gsas_owned gsas_published gsas_signal gsas_team
	gsas_typed litmus litmus_msg mailbox_client mailbox_link rdma
	rdma_events rdma_fail" || exit

# the smallest receive space a device may have
export FI_UNIMEM_SIM=space=4096
ep_some "transfer order rma atomic data gsas_board gsas_client litmus
	litmus_msg" || exit

# a board that runs out of memory
export FI_UNIMEM_SIM=mem=15 UNIT_TEST="test_small*"
ep_again "mem"
