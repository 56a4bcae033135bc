#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints over packets, spaces and boards of the prototype: 24 bytes, 16 KiB,
# no cDMA to ordinary memory. On a board of its own: there are 63 interfaces.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_PROFILE=exanode FI_UNIMEM_BOARD=3
ep_some "transfer receive order peek cancel multi complete wait object av
	golden garbage mem mem_find pressure threads rma edges atomic address
	data asleep safe cntr regions bounce gsas_board gsas_client gsas_life
	gsas_lies gsas_published litmus litmus_msg rdma rdma_events rdma_fail"
