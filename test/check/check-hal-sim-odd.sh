#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws hold for interface 0, and for boards that differ from usual ones:
# under the fault decorator; with slow answers, late packets, stores in any
# order, PEND in preparation and the other empty pattern; with the engine in our
# hands, simple and scatter-gather; with transfers split by what the engine
# counts (12 bits), not by the backend.
laws_of_all()
{
	${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--hal sim --packets 2000 "$@" || exit
}

laws()
{
	laws_of_all --no-procs "$@"
}

laws_of_all --service
laws_of_all --fault eagain=50,delay=20:100,dmafail=50,dmadelay=300,seed=1
odd=reorder=1000,ack=4000,delay=3000,dma=2000,prep=1,empty=beef,illegal=0
FI_UNIMEM_SIM=$odd laws
FI_UNIMEM_SIM=btt=12 laws --test 'dma_*'
FI_UNIMEM_SIM=engine=simple laws --test 'dma_*'
FI_UNIMEM_SIM=engine=simple,btt=12 laws --test 'dma_*'
FI_UNIMEM_SIM=engine=sg,btt=12 laws --test 'dma_*'
