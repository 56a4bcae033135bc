#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The laws of the HAL between threads of one process: what ThreadSanitizer can
# follow (make check-tsan).
laws()
{
	${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--no-procs "$@" || exit
}

laws --hal emu --packets 100000
laws --hal sim --packets 10000
FI_UNIMEM_SIM=reorder=1000,ack=4000,delay=3000,dma=2000 laws --hal sim \
	--packets 2000 --test '*_threads'
FI_UNIMEM_SIM=engine=simple laws --hal sim --test 'dma_*'
FI_UNIMEM_SIM=engine=sg,btt=12 laws --hal sim --test 'dma_*'
