/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mailbox.h - the mailbox of a node: 64-bit messages between nodes, of 16 types
 * that the opcode, the four most significant bits, distinguishes [D 3.2].
 *
 * [D 3.2] is section 3.2 of ExaNoDe deliverable D3.6, which describes a kernel
 * driver. Here libunimem-mailbox and a daemon for each node,
 * unimem-mailboxd(8), do the work of the driver, so descriptors come from
 * mailbox_open(). unimem-mailbox-cuse(8) offers open("/dev/Unimem/mailboxA"),
 * where the machine allows it. The manual page mailbox(3) lists what differs
 * from the driver. Any thread may call any of these functions.
 */
#ifndef UNIMEM_MAILBOX_H
#define UNIMEM_MAILBOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAILBOX_API	__attribute__((visibility("default")))

#define MAILBOX_LOCAL	(-1)		/* the node of the calling process */
#define MAILBOX_OPCODES	16		/* opcodes are 0 to 15 */

/* Opcode of a message, 0 to 15. */
#define MAILBOX_OPCODE(msg)	((unsigned)((uint64_t)(msg) >> 60))

/*
 * Is written to the descriptor of the local mailbox [D 3.2.2]. action:
 * 'r'	register the opcode: its messages can be read from this descriptor
 * 's'	the same, and send signal val to the writing process at each message
 * 'e'	the same, and add 1 to the event fd val at each message; the event fd
 *	must be non-blocking (EFD_NONBLOCK), so that it cannot block the daemon
 * 'u'	unregister the opcode
 */
struct mailbox_action_t {
	char action;
	unsigned opcode;		/* 0 to 15 */
	int val;			/* 's': signal; 'e': event fd of the
					 * writing process; else ignored */
};

/*
 * Open the mailbox of a node, 0 to mailbox_nodes() - 1; MAILBOX_LOCAL or the
 * number of the local node is the local mailbox. flags: O_NONBLOCK, O_CLOEXEC,
 * and an access mode, which is ignored. Returns a descriptor for write(2),
 * poll(2) and, of the local mailbox, read(2); close(2) closes it. Errors:
 * -EINVAL: no such node, or wrong flags; -EACCES: another user has the names of
 * the daemon; -ECONNREFUSED: the node has no daemon, and none can be started
 * (one line on stderr says why); -EPROTO: the daemon has another version;
 * -ETIMEDOUT: the daemon has not accepted the connection, or not answered, for
 * 10 seconds; -EMFILE, -ENOMEM.
 */
MAILBOX_API int mailbox_open(int node, int flags);

/*
 * Do what write() of this structure to the descriptor of the local mailbox
 * does, wait for it, and return its result. The event fd of 'e' needs no
 * permission here. 0; -EINVAL: not the local mailbox, or wrong action, opcode,
 * signal or event fd; -EBUSY: the opcode is registered already; -ENOENT: 'u':
 * not registered by this descriptor; -ESRCH: 's': the daemon does not see the
 * process, which is in another PID namespace; -EOPNOTSUPP: 'e': the kernel does
 * not let the daemon use io_setup(2); -EAGAIN: the descriptor is
 * non-blocking, and its queue of actions is full: nothing was done;
 * -ECONNRESET: the daemon has ended; -ETIMEDOUT: as above, and the action may
 * still be done; -EBADF, -EMFILE, -ENOMEM.
 */
MAILBOX_API int mailbox_action(int fd, const struct mailbox_action_t *action);

/* The node of this process; a negative errno if there is no Unimem. */
MAILBOX_API int mailbox_node(void);
/* The number of nodes; a negative errno if there is no Unimem. */
MAILBOX_API int mailbox_nodes(void);

/* ---- Calls that the driver offers to kernel modules [D 3.2.1] ------------ */

/* Gets a whole message, opcode included. Its result is ignored. */
typedef int (*mailbox_callback)(long long unsigned);

/*
 * Call cb for each message of this opcode, 0 to 15, in a thread of the library,
 * one message at a time. cb may call any function of this header. description
 * is not used. 0; -EINVAL: wrong opcode, or cb is NULL; -EBUSY: a process of
 * this node has registered the opcode; errors of mailbox_open(). All callbacks
 * end, with one line on stderr, when the daemon of the node ends; they may be
 * registered again. A forked child has no registrations; one that a callback
 * forks has only the thread of the callback, and ends when cb returns.
 */
MAILBOX_API int mailbox_register_callback(unsigned opcode, mailbox_callback cb,
					  char *description);

/* End the calls for an opcode. When this returns, its callback is not running,
 * unless that callback is the caller. 0; -EINVAL: this process has not
 * registered the opcode so. */
MAILBOX_API int mailbox_unregister_callback(unsigned opcode);

/*
 * Send the message val to a remote node. Never waits for the reader. 0:
 * accepted, and will be delivered in the order of these calls of a process;
 * -EAGAIN: the mailbox is full, nothing was sent; -EINVAL: no such node, or the
 * local one; -ECONNRESET: the daemon of either node has ended, and messages may
 * be lost; the next call connects again; errors of mailbox_open().
 */
MAILBOX_API int mailbox_send_message(int rnode, long long unsigned val);

#ifdef __cplusplus
}
#endif

#endif /* UNIMEM_MAILBOX_H */
