/* SPDX-License-Identifier: BSD-2-Clause */
/* mbox_log.h - log lines of libunimem-mailbox, on standard error. */
#ifndef MBOX_LOG_H
#define MBOX_LOG_H

#include <stdio.h>

#define mbox_log(fmt, ...) \
	fprintf(stderr, "libunimem-mailbox: " fmt "\n", ##__VA_ARGS__)

#endif /* MBOX_LOG_H */
