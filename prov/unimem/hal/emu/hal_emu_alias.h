/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_alias.h - second mappings of shared memory; private to hal/emu.
 */
#ifndef HAL_EMU_ALIAS_H
#define HAL_EMU_ALIAS_H

#include "hal/emu/hal_emu_types.h"
#include "hal/hal_window.h"

/* As hal_alias_key(), hal_alias_open() and hal_alias_close() of hal_window.h.
 * Any thread may call these. */
int emu_alias_key(const void *addr, uint64_t len, uint32_t access,
		  struct hal_key *key);
int emu_alias_open(const struct hal_key *key, uint64_t len, uint32_t access,
		   struct hal_window *win);
void emu_alias_close(struct hal *hal, const struct hal_window *win);

#endif /* HAL_EMU_ALIAS_H */
