/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_bus.h - a load that survives a bus error (hal_dev_bus.c). Private to
 * hal_mmio_dev.c and its test.
 */
#ifndef HAL_DEV_BUS_H
#define HAL_DEV_BUS_H

#include <stdint.h>

/*
 * Install the handler of SIGBUS with the first open device, and remove it with
 * the last: each open device calls both functions once. A handler that was
 * installed before receives every SIGBUS that dev_bus_load() did not cause, and
 * is restored at the end. Any thread.
 */
void dev_bus_open(void);
void dev_bus_close(void);

/*
 * Load 8 aligned bytes and discard them. Returns 0, or -EIO if the processor
 * reported a bus error at this load. Any thread, between dev_bus_open() and
 * dev_bus_close().
 */
int dev_bus_load(const volatile void *from);

#endif /* HAL_DEV_BUS_H */
