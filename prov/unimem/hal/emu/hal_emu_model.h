/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_model.h - the timing model as a backend table; private to hal/emu.
 */
#ifndef HAL_EMU_MODEL_H
#define HAL_EMU_MODEL_H

#include "hal/emu/hal_emu_types.h"

/* Let the device use a copy of table base in which the entries of the timing
 * model replace those of the emulation. emu->model is set; call this before the
 * first interface is opened. */
void emu_model_open(struct hal_emu *emu, const struct hal_ops *base);

#endif /* HAL_EMU_MODEL_H */
