#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints over a HAL that refuses and delays what it may.
. "$(dirname "$0")/ep-lib.sh"

export FI_UNIMEM_FAULT=eagain=50,delay=20:100,dmadelay=300,seed=1
ep_again "transfer receive order peek cancel multi complete pressure
	rma edges atomic address data asleep safe gsas_board gsas_client
	gsas_life gsas_published litmus litmus_msg" || exit

# One-sided operations again: these seeds hold and refuse packets that the seed
# above lets pass.
for seed in 3 5; do
	export FI_UNIMEM_FAULT=eagain=50,delay=50:200,dmadelay=300,seed=$seed
	ep_again "rma edges" || exit
done
