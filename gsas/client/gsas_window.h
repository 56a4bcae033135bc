/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.h - segments of services that a thread has mapped, found by
 * global address. Private to libgsas.
 *
 * gsas_direct.h is the short path to them, gsas_map.c lends them to programs.
 */
#ifndef GSAS_WINDOW_H
#define GSAS_WINDOW_H

#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/* A mapped segment, as gsas_map.c needs it. A copy: valid until the connection
 * to the service is closed. */
struct gsas_window {
	uint64_t base, bytes;	/* global address and size of the segment */
	uint64_t key[2];	/* struct hal_key, to map it once more */
	uint8_t *memory;	/* where this thread has mapped it */
};

/*
 * Store at *at where this thread has mapped an address; it maps the segment if
 * it can. *at NULL and 0: not mapped, so access it by a request, whose answer
 * also says what is wrong with the address, if anything. Other errors: the
 * service could not be asked.
 */
int gsas_window_find(struct gsas_thread *t, uint64_t address, void **at);

/* As gsas_window_find(), for the address of a queue. */
int gsas_window_queue(struct gsas_thread *t, uint64_t address, void **at);

/*
 * The mapped segment of an address, which is mapped if it was not. 0;
 * -FI_EFAULT, -ESTALE: nothing is allocated there; -FI_EPERM: the segment
 * cannot be mapped; -FI_EINVAL: it is a queue; -FI_EOPNOTSUPP: the platform
 * maps no memory; or why the service could not be asked.
 */
int gsas_window_map(struct gsas_thread *t, uint64_t address,
		    struct gsas_window *win);

/* Bytes from a mapped address to the end of its allocation, max at most; 0: it
 * is not allocated any more. */
uint64_t gsas_window_left(const struct gsas_thread *t, uint64_t address,
			  uint64_t max);

/* An address was freed, by this thread or before: if no page of its segment is
 * allocated any more, unmap all such segments. */
void gsas_window_freed(struct gsas_thread *t, uint64_t address);

/* Unmap all segments of a connection, which is about to be closed. */
void gsas_window_release(struct gsas_conn *conn);

/* The thread ends: stop watching its segments. The caller closes the interface
 * next, which unmaps them. */
void gsas_window_end(struct gsas_thread *t);

#endif /* GSAS_WINDOW_H */
