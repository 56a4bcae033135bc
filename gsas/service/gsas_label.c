/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_label.c - names that a job gives to its regions. A name ends with its
 * region: gsas_region_free() removes it.
 */
#include <stdlib.h>

#include "service/gsas_label.h"

/* A name; in the list job->labels. */
struct gsas_label {
	struct gsas_label *next;
	uint64_t name[2];
	uint64_t address;		/* of the region */
};

/* The label with a name; NULL: none. *count: labels of the job before it. */
static struct gsas_label *find(const struct gsas_job *job,
			       const uint64_t name[2], uint32_t *count)
{
	struct gsas_label *label = job->labels;

	*count = 0;
	while (label != NULL && (label->name[0] != name[0] ||
				 label->name[1] != name[1])) {
		label = label->next;
		++*count;
	}
	return label;
}

enum gsas_error gsas_label_set(struct gsas_job *job, const uint64_t name[2],
			       uint64_t address)
{
	uint32_t count;
	struct gsas_label *label = find(job, name, &count);

	if (label == NULL) {
		if (count < GSAS_LABELS_MAX)
			label = calloc(1, sizeof(*label));
		if (label == NULL)
			return GSAS_E_QUOTA;
		label->name[0] = name[0];
		label->name[1] = name[1];
		label->next = job->labels;
		job->labels = label;
	}
	label->address = address;
	return GSAS_OK;
}

uint64_t gsas_label_find(const struct gsas_job *job, const uint64_t name[2])
{
	uint32_t count;
	const struct gsas_label *label = find(job, name, &count);

	return label != NULL ? label->address : 0;
}

void gsas_label_remove(struct gsas_job *job, uint64_t address)
{
	struct gsas_label **at = &job->labels, *label;

	while ((label = *at) != NULL) {
		if (label->address == address) {
			*at = label->next;
			free(label);
		} else {
			at = &label->next;
		}
	}
}

void gsas_label_free_all(struct gsas_job *job)
{
	struct gsas_label *label;

	while ((label = job->labels) != NULL) {
		job->labels = label->next;
		free(label);
	}
}
