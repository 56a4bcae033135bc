/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_bus.h - a load that survives a bus error; private to hal_mmio_dev.c
 * and its test.
 */
#ifndef HAL_DEV_BUS_H
#define HAL_DEV_BUS_H

#include <stdint.h>

/*
 * Handle SIGBUS, and no longer: each open device calls both, once. A handler
 * that was there before gets every SIGBUS that is not of dev_bus_load(), and is
 * put back by the last close.
 */
void dev_bus_open(void);
void dev_bus_close(void);

/* Load 8 bytes, aligned. 0, or -EIO after a bus error that the processor
 * reported at the load. Any thread, while a device is open. */
int dev_bus_load(const volatile void *from);

#endif /* HAL_DEV_BUS_H */
