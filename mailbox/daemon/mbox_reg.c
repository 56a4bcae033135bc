/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_reg.c - the registrations of a node, and the delivery of messages.
 *
 * Messages are delivered in the order in which they came, whatever their
 * opcodes. A message is delivered when the socket of the reader has taken it. A
 * full socket delays the messages of its own opcodes only.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/mbox_reg.h"

#define BURST	256			/* messages in a row */

void mbox_regs_init(struct mbox_regs *regs)
{
	memset(regs, 0, sizeof(*regs));
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		mbox_notify_init(&regs->reg[op].notify);
}

static void reg_clear(struct mbox_reg *reg)
{
	mbox_notify_clear(&reg->notify);
	memset(reg, 0, sizeof(*reg));
	mbox_notify_init(&reg->notify);
}

static bool is_full(const struct mbox_regs *regs, const void *owner)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner && regs->reg[op].full)
			return true;
	return false;
}

static int reg_add(struct mbox_regs *regs, const struct mailbox_action_t *act,
		   const struct mbox_origin *origin)
{
	struct mbox_reg *reg = &regs->reg[act->opcode];
	int ret;

	if (reg->owner != NULL)
		return -EBUSY;
	ret = mbox_notify_set(&reg->notify, act, origin->pid,
			      origin->event_fd);
	if (ret != 0)
		return ret;
	reg->full = is_full(regs, origin->owner);
	reg->owner = origin->owner;
	reg->fd = origin->fd;
	return 0;
}

int mbox_regs_act(struct mbox_regs *regs, const struct mailbox_action_t *act,
		  const struct mbox_origin *origin)
{
	if (act->opcode >= MAILBOX_OPCODES)
		return -EINVAL;
	switch (act->action) {
	case 'r':
	case 's':
	case 'e':
		return reg_add(regs, act, origin);
	case 'u':
		if (regs->reg[act->opcode].owner != origin->owner)
			return -ENOENT;
		reg_clear(&regs->reg[act->opcode]);
		return 0;
	default:
		return -EINVAL;
	}
}

void mbox_regs_remove(struct mbox_regs *regs, const void *owner)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner)
			reg_clear(&regs->reg[op]);
}

/* All opcodes of a descriptor, so that no message overtakes one that waits. */
static void set_full(struct mbox_regs *regs, const void *owner, bool full)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner)
			regs->reg[op].full = full;
}

void mbox_regs_writable(struct mbox_regs *regs, const void *owner)
{
	set_full(regs, owner, /* full */ false);
}

/* The oldest message whose reader can take it; NULL: none. */
static struct mbox_entry *oldest(struct mbox_regs *regs, struct mbox_hal *mh)
{
	struct mbox_entry *first = NULL;

	for (unsigned op = 0; op < MAILBOX_OPCODES; op++) {
		const struct mbox_reg *reg = &regs->reg[op];
		struct mbox_entry *entry = mbox_hal_first(mh, op);

		if (entry == NULL || reg->owner == NULL || reg->full)
			continue;
		if (first == NULL || entry->arrival < first->arrival)
			first = entry;
	}
	return first;
}

/* Returns false if the reader's socket has not taken the message. */
static bool deliver(struct mbox_regs *regs, struct mbox_entry *entry)
{
	struct mbox_reg *reg = &regs->reg[MAILBOX_OPCODE(entry->message)];

	if (send(reg->fd, &entry->message, MBOX_MESSAGE,
		 MSG_DONTWAIT | MSG_NOSIGNAL) == MBOX_MESSAGE) {
		mbox_hal_take(entry);
		mbox_notify_send(&reg->notify);
		return true;
	}
	if (errno == ENOBUFS || errno == ENOMEM)
		regs->retry = true;
	else			/* the reader is slow, or has ended: an event
				 * will close the client */
		set_full(regs, reg->owner, /* full */ true);
	return false;
}

bool mbox_regs_deliver(struct mbox_regs *regs, struct mbox_hal *mh)
{
	struct mbox_entry *entry;
	unsigned n = 0;

	regs->retry = false;
	while (n < BURST && !regs->retry &&
	       (entry = oldest(regs, mh)) != NULL)
		n += deliver(regs, entry);
	return n != 0;
}
