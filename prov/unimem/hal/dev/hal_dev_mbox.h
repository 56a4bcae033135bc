/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_mbox.h - the mailbox of an interface (hal_dev_mbox.c). Both calls
 * belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_MBOX_H
#define HAL_DEV_MBOX_H

#include "hal/dev/hal_dev_types.h"

/*
 * Learn what an empty mailbox reads as, into dif->empty, before the first
 * dev_mbox_run(). Packets that arrive meanwhile are received. Returns 0, or
 * -FI_EIO after a log line: the mailbox does not read as empty.
 */
int dev_mbox_learn(struct dev_if *dif);

/*
 * Receive packets until the mailbox is empty, at most max. Returns the number
 * of packets; a word that is neither a packet nor the pattern of an empty
 * mailbox counts as a packet.
 */
unsigned dev_mbox_run(struct dev_if *dif, unsigned max);

#endif /* HAL_DEV_MBOX_H */
