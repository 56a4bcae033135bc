/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_name.h - the abstract socket at which the daemon of a node listens.
 *
 * The name contains the user, the backend, the profile, a checksum of the
 * platform's parameters, and the node. It has MBOX_NAME_FORMS forms, because
 * another user may bind the first one. The daemon takes a free form, and a
 * process that connects skips the forms at which another user listens. One
 * daemon at most has a form, because it holds the mailbox interface of its
 * board while it does.
 */
#ifndef MBOX_NAME_H
#define MBOX_NAME_H

#include "hal/hal.h"

#define MBOX_NAME_FORMS	4

/* Listen. Returns a descriptor (close-on-exec, non-blocking), or a negative
 * errno: -EACCES: no form is free. */
int mbox_name_listen(const struct hal *hal, int node);

/* Connect to the daemon of this user, and do not block. Returns a descriptor
 * (close-on-exec, blocking), or a negative errno: -ECONNREFUSED: no daemon;
 * -EACCES: no daemon, and other users have all forms; -EAGAIN: the daemon, or
 * another user who has its name, has a full queue of connections. */
int mbox_name_connect(const struct hal *hal, int node);

#endif /* MBOX_NAME_H */
