/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cntr_value.c - wakes the threads and the work that wait for a counter. */
#include "core/unm_cntr_value.h"
#include "core/unm_wake.h"

void unm_cntr_moved(struct unm_cntr *cntr)
{
	if (cntr->nworks != 0)
		cntr->changed(cntr);
	if (cntr->wait.wanted != 0)
		unm_wait_wake(&cntr->wait);
}
