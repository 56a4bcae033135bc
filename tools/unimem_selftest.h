/* SPDX-License-Identifier: BSD-2-Clause */
/* unimem_selftest.h - unimem_info --selftest. */
#ifndef UNIMEM_SELFTEST_H
#define UNIMEM_SELFTEST_H

#include <stdbool.h>

/*
 * Walk packets, receive space and transfers to an interface of every board and
 * print a row for each. wait: be the partner of such a walk instead, until
 * interrupted. Exit code: 0 all boards are well, 1 one is not, 2 there is no
 * HAL, or (wait) no interface.
 */
int selftest(bool wait);

#endif /* UNIMEM_SELFTEST_H */
