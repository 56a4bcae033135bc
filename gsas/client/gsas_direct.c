/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_direct.c - makes and frees a thread's table of the short path, which
 * gsas_direct.h reads and gsas_window.c fills.
 */
#include <stddef.h>
#include <sys/mman.h>

#include "client/gsas_direct.h"

static const struct gsas_hot none;	/* of a thread without a table */

/* Nothing is stored through it while it points to none. */
_Thread_local struct gsas_hot *gsas_hot = (struct gsas_hot *)&none;

struct gsas_hot *gsas_hot_new(bool *wiped)
{
	struct gsas_hot *hot = mmap(NULL, sizeof(*hot), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (hot == MAP_FAILED)
		return NULL;
	hot->live = true;
	*wiped = madvise(hot, sizeof(*hot), MADV_WIPEONFORK) == 0;
	return hot;
}

void gsas_hot_free(struct gsas_hot *hot)
{
	if (hot != NULL)
		munmap(hot, sizeof(*hot));
}

void gsas_hot_use(struct gsas_hot *hot)
{
	gsas_hot = hot != NULL ? hot : (struct gsas_hot *)&none;
}
