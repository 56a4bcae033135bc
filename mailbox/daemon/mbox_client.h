/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_client.h - the clients of the daemon: one for each mailbox that a local
 * process has open.
 *
 * A client is the daemon's end of a socket. The last packet that the daemon has
 * handled stays in the queue of that socket until the next one is there. So the
 * other end gets ECONNRESET, once, whenever the daemon closes the socket, and
 * also if the daemon is killed.
 */
#ifndef MBOX_CLIENT_H
#define MBOX_CLIENT_H

#include "daemon/mbox_reg.h"

struct mbox_client;

/* All clients of the daemon. One thread uses them. */
struct mbox_clients {
	struct mbox_hal *mh;
	struct mbox_regs regs;
	int epoll;			/* sockets are added to it, with their
					 * client */
	struct unm_list all;		/* of struct mbox_client */
	struct unm_list active;		/* those with packets to be handled */
	uint32_t living;		/* clients of which a process has the
					 * other end */
	uint64_t discarded;		/* messages of processes that have
					 * ended, not sent on */
	uint64_t ends;			/* mh->ends as seen last */
	uint64_t unused_since;		/* ns; 0: used, or a message was sent
					 * on since the last
					 * mbox_clients_life_ms() */
	void (*log)(const char *line);
};

void mbox_clients_init(struct mbox_clients *all, struct mbox_hal *mh,
		       int epoll, void (*log)(const char *line));
/* Close all of them. Messages that were not sent on are lost. */
void mbox_clients_fini(struct mbox_clients *all);

/* Add a client. The socket belongs to it, or is closed if it is another user's,
 * or there is no memory. */
void mbox_client_new(struct mbox_clients *all, int fd);
/* Note these events of epoll_wait(2). */
void mbox_client_event(struct mbox_client *client, uint32_t events);

/* Handle a bounded number of packets of each client, deliver messages. Returns
 * whether there was any. */
bool mbox_clients_progress(struct mbox_clients *all);

/* The number of clients whose process has gone, and whose messages wait. */
unsigned mbox_clients_left(const struct mbox_clients *all);

/*
 * How long until a daemon that nobody uses ends, in milliseconds from now (ns
 * of unm_now_ns()): linger_ms after the last use, ten times as long while
 * messages wait. Each message that is sent on starts this time again.
 * 0: it ends now; -1: it is used.
 */
int mbox_clients_life_ms(struct mbox_clients *all, uint64_t now, int linger_ms);

/* Does a client wait for something that no event may report? */
bool mbox_clients_retry(const struct mbox_clients *all);

#endif /* MBOX_CLIENT_H */
