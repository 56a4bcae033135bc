/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_watch.h - invalidate mapped segments when the process of their service
 * ends. Private to libgsas.
 */
#ifndef GSAS_WATCH_H
#define GSAS_WATCH_H

#include <stdint.h>

struct gsas_watch;
struct hal_peer;

/*
 * A segment of so many bytes is mapped at memory. When the process of its
 * service ends, store 0 in the words of all its pages (gsas_direct_load()). By
 * any thread. 0; -FI_ENOSYS: the platform cannot see the process;
 * -FI_ECONNRESET: the process has ended; -FI_EAGAIN: no thread can be started;
 * -FI_EMFILE, -FI_ENOMEM.
 */
int gsas_watch_add(struct hal_peer *peer, uint8_t *memory, uint64_t bytes,
		   struct gsas_watch **watch);

/* Stop watching; NULL: nothing to do. Call it before the segment is unmapped.
 * Afterwards no thread stores in the segment. */
void gsas_watch_remove(struct gsas_watch *watch);

#endif /* GSAS_WATCH_H */
