/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_start.h - start the mailbox daemon of a node of this host at first use.
 * On a device the system starts those of other boards. Private to
 * libunimem-mailbox.
 */
#ifndef MBOX_START_H
#define MBOX_START_H

#include "hal/hal.h"

/*
 * Run "unimem-mailboxd --board N --auto" and wait until it is ready or has
 * failed. The daemon is no child of this process and has none of its
 * descriptors. It is no error if another process starts it at the same time.
 * 0; -ECONNREFUSED: failed, the reason is logged; -errno.
 */
int mbox_start(const struct hal *hal, int node);

#endif /* MBOX_START_H */
