/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cntr_value.c - a counter that somebody waits for. */
#include "core/unm_cntr_value.h"
#include "core/unm_ep_wake.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "trigger/unm_trigger.h"
#include "util/unm_list.h"

void unm_cntr_moved(struct unm_cntr *cntr)
{
	if (cntr->nworks != 0)
		unm_trigger_moved(cntr);
	if (cntr->wait.wanted != 0)
		unm_wait_wake(&cntr->wait);
}

int unm_cntr_of_all(struct unm_cntr *cntr)
{
	int ret = 0;

	/* also if that fails: what was added goes with its endpoint */
	if (unm_list_empty(&cntr->in_domain))
		unm_list_append(&cntr->domain->cntrs, &cntr->in_domain);
	if (!cntr->of_all)
		ret = unm_wait_add_all(&cntr->wait);
	if (ret != 0)
		return ret;
	unm_ref_get(&cntr->ref);
	if (!cntr->of_all && cntr->wait.wanted != 0)
		unm_wait_wake(&cntr->wait);	/* to wait for all of them */
	cntr->of_all = true;
	return 0;
}
