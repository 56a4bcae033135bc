/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_label.h - names that a job gives to its regions, by which processes of
 * the job find memory whose address nobody has passed to them (gsas_label.c).
 *
 * Only the thread of the service calls these functions.
 */
#ifndef GSAS_LABEL_H
#define GSAS_LABEL_H

#include "common/gsas_pkt.h"
#include "service/gsas_region.h"

#define GSAS_LABELS_MAX	16		/* names of a job */

/* Give the region at an address a name, which another region may have had.
 * GSAS_OK; GSAS_E_QUOTA: the job has too many names, or there is no memory. */
enum gsas_error gsas_label_set(struct gsas_job *job, const uint64_t name[2],
			       uint64_t address);
/* The address of the region with a name; 0: none. */
uint64_t gsas_label_find(const struct gsas_job *job, const uint64_t name[2]);
/* Remove all names of the region at an address, which is freed. */
void gsas_label_remove(struct gsas_job *job, uint64_t address);
/* Free all names of a job. */
void gsas_label_free_all(struct gsas_job *job);

#endif /* GSAS_LABEL_H */
