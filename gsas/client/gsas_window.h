/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.h - finds where a thread has mapped a global address; requests
 * and maps its segment if necessary. Private to libgsas.
 *
 * gsas_direct.h is the short path; gsas_map.c maps segments for programs.
 */
#ifndef GSAS_WINDOW_H
#define GSAS_WINDOW_H

#include <stdint.h>

struct gsas_segment_map;
struct gsas_thread;

/*
 * Store at *at where this thread has mapped an address; maps the segment if
 * that is possible. 0: *at is where it is mapped, until the thread makes
 * progress, or NULL: send a request, whose answer says whether the address is
 * valid. -errno: no connection to the service.
 */
int gsas_window_find(struct gsas_thread *t, uint64_t address, void **at);

/* As gsas_window_find(), but *at is NULL as well unless all these bytes are
 * mapped and belong to one allocation. */
int gsas_window_span(struct gsas_thread *t, uint64_t address, uint64_t bytes,
		     void **at);

/* As gsas_window_find(), for the address of a queue. */
int gsas_window_queue(struct gsas_thread *t, uint64_t address, void **at);

/*
 * The mapped segment of an address, which is mapped if it was not. The entry is
 * valid until the thread makes progress. 0;
 * -FI_EFAULT, -ESTALE: nothing is allocated there; -FI_EPERM: the segment
 * cannot be mapped; -FI_EINVAL: it is a queue; -FI_EOPNOTSUPP: the platform
 * maps no memory; other errors: no connection to the service.
 */
int gsas_window_map(struct gsas_thread *t, uint64_t address,
		    const struct gsas_segment_map **map);

#endif /* GSAS_WINDOW_H */
