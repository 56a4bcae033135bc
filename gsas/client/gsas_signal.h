/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_signal.h - waits for another process, for which nothing notifies the
 * thread. Private to libgsas.
 */
#ifndef GSAS_SIGNAL_H
#define GSAS_SIGNAL_H

#include <stdint.h>

#include "gsas.h"

/* As gsas_wait_until(), but until deadline (ns, 0: none), and -FI_EAGAIN if it
 * has passed: -FI_ETIMEDOUT is the end of the connection to the service. */
int gsas_wait_word(gsas_addr addr, enum gsas_compare compare, uint64_t value,
		   uint64_t deadline, uint64_t *seen);

/* Sleep between two checks: from 20 microseconds on, twice as long each time,
 * to 1 millisecond. sleeps: how often the caller has slept before; now: of
 * unm_now_ns(); deadline: ns, not to be passed, 0: none. */
void gsas_sleep_step(uint32_t sleeps, uint64_t now, uint64_t deadline);

#endif /* GSAS_SIGNAL_H */
