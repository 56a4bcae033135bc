/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_signal.h - the sleeps of a thread that waits for another process, for
 * which nothing notifies it. Private to libgsas.
 */
#ifndef GSAS_SIGNAL_H
#define GSAS_SIGNAL_H

#include <stdint.h>

/* Sleep between two checks: from 20 microseconds on, twice as long each time,
 * to 1 millisecond. sleeps: how often the caller has slept before; now: of
 * unm_now_ns(); deadline: ns, not to be passed, 0: none. */
void gsas_sleep_step(uint32_t sleeps, uint64_t now, uint64_t deadline);

#endif /* GSAS_SIGNAL_H */
