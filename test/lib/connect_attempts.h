/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_attempts.h - strangers at the socket of an interface of the
 * emulation: letters of any kind, right ones too, to a victim that has a friend
 * to talk to.
 */
#ifndef KNOCK_H
#define KNOCK_H

#include "hal/emu/hal_emu.h"
#include "lib/unit.h"

#define KNOCK_FDS	5		/* sent at most */
#define KNOCK_PATIENCE	(UNIT_SLOW ? 60 : 20)	/* seconds */

struct knock {
	struct hal *hal;		/* NULL: not the emulation, skip */
	struct hal_if *v, *t;		/* victim and friend */
	struct hal_peer *vt, *tv;	/* the friend, to the victim; back */
	unsigned inbound, connected, dead;	/* others, at the victim */
	int dead_status;
	uint64_t sent;
	uint64_t rng;
	int fds;			/* of the process, at the start */
};
extern struct knock knock;

/* cmocka set-up and teardown. */
int knock_setup(void **state);
int knock_teardown(void **state);

time_t knock_seconds(void);
/* House-keeping of both. */
void knock_pump(void);
#define KNOCK_UNTIL(cond)	do {					\
		time_t knock_end = knock_seconds() + KNOCK_PATIENCE;	\
		while (!(cond)) {					\
			knock_pump();					\
			if (knock_seconds() > knock_end)		\
				unit_fail("hangs: %s", #cond);		\
		}							\
	} while (0)
/* Packets both ways between those who keep to the rules. */
void knock_friends(void);
/* All strangers have hung up: nothing of them is left. */
void knock_gone(void);

/* A message, whatever it says, and what comes with it. */
struct letter {
	union emu_msg m;
	uint8_t more[64];
	size_t len;
	int fds[KNOCK_FDS];
	int nfds;
};

/* One of the last numbers of the board, which nobody else gets to. */
struct hal_addr knock_addr(uint32_t k);
/* A hello with nothing wrong in it. */
struct letter knock_hello(const struct hal_addr *from,
			  const struct hal_addr *to);
/* A message of a known type, with anything in it. */
struct letter knock_any(void);
void knock_any_fds(struct letter *l);
/* Replace or add a descriptor; close all. */
void knock_put(struct letter *l, int i, int fd);
void knock_burn(struct letter *l);

/* Connect. */
int knock_dial(const struct hal_addr *to);
/* Listen at a number, and the victim calls: the connection, its hello read. */
int knock_called(const struct hal_addr *addr);
/* Sent or not (the other end may have hung up); its descriptors are closed. */
void knock_post(int conn, struct letter *l);
/* What comes back: its status, or that the other end hung up. Descriptors that
 * come with it are dropped. */
int knock_answer(int conn, union emu_msg *m);
/* All of that, with the victim. */
int knock_say(struct letter *l);

/* Descriptors: a socket given a name ("unimem", "unimem.held"), one end of a
 * pair, what shows that one holds an interface, a link, others. */
int knock_name(int fd, const char *kind, const struct hal_addr *addr);
int knock_half(int type);
int knock_proof(const struct hal_addr *addr);
int knock_link(size_t bytes);
int knock_pipe(void);
int knock_file(void);

#endif /* KNOCK_H */
