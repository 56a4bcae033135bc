/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_export.h - marks what libunimem-hal.so exports. The library is compiled
 * with -fvisibility=hidden.
 */
#ifndef HAL_EXPORT_H
#define HAL_EXPORT_H

#define HAL_EXPORT	__attribute__((visibility("default")))

#endif /* HAL_EXPORT_H */
