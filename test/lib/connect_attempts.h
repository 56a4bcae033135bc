/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_attempts.h - connection attempts by senders that the emulation does
 * not know, for tests of hal/emu
 *
 * The fixture opens an interface under test, the victim, and a regular peer
 * that stays connected to it. Tests send messages to the victim's socket: valid
 * ones, and ones with an error. The messages are those of hal_emu_wire.h. All
 * state is in the global "attempts"; one thread uses it.
 */
#ifndef CONNECT_ATTEMPTS_H
#define CONNECT_ATTEMPTS_H

#include "hal/emu/hal_emu_types.h"
#include "hal/hal.h"
#include "lib/unit.h"

#define ATTEMPT_FDS		5	/* descriptors of a message, at most */
#define ATTEMPTS_PATIENCE	(UNIT_SLOW ? 60 : 20)	/* seconds until a wait
							 * counts as a hang */

/* The interfaces of a test, from attempts_setup() to attempts_teardown(). */
struct attempts {
	struct hal *hal;		/* NULL: the HAL is not the emulation,
					 * the test must skip */
	struct hal_if *v, *t;		/* victim, its regular peer */
	struct hal_peer *vt, *tv;	/* t as a peer of v, v as one of t */
	unsigned inbound, connected, dead;	/* events of other peers at v */
	int dead_status;		/* status of the last HAL_EV_DEAD */
	uint64_t sent;			/* last word of attempts_exchange() */
	uint64_t rng;
	int fds;			/* descriptors of the process when the
					 * set-up ended */
};
extern struct attempts attempts;

/* cmocka set-up and teardown. */
int attempts_setup(void **state);
int attempts_teardown(void **state);
/* Calls the test *state, or skips it unless the HAL is the emulation. */
void attempts_test(void **state);
#define ATTEMPTS_TEST(f)						\
	{ #f, attempts_test, attempts_setup, attempts_teardown, (void *)f }

time_t attempts_seconds(void);		/* monotonic clock */
/* Pump both interfaces, and handle their events. */
void attempts_pump(void);
/* Call attempts_pump() until a condition holds; a hang fails the test. */
#define ATTEMPTS_UNTIL(cond)	do {					\
		time_t until_ = attempts_seconds() + ATTEMPTS_PATIENCE;	\
		while (!(cond)) {					\
			attempts_pump();				\
			if (attempts_seconds() > until_)		\
				unit_fail("hangs: %s", #cond);		\
		}							\
	} while (0)
/* Exchange packets between the victim and its regular peer, both ways. */
void attempts_exchange(void);
/* Wait until the victim has closed every connection attempt and descriptor of
 * it, then call attempts_exchange(). */
void attempts_closed(void);

/* A message and the descriptors sent with it; the test holds it by value. */
struct attempt {
	union emu_msg m;
	uint8_t more[64];		/* bytes after m, if len exceeds it */
	size_t len;			/* bytes to send */
	int fds[ATTEMPT_FDS];
	int nfds;
};

/* Address k of the last interfaces of the board, which no test program
 * opens. */
struct hal_addr attempt_addr(uint32_t k);
/* A valid HELLO with its descriptors; the second one is to the victim. */
struct attempt attempt_hello(const struct hal_addr *from,
			     const struct hal_addr *to);
struct attempt attempt_hello_victim(const struct hal_addr *from);
/* A message of a random type with random contents and descriptors. */
struct attempt attempt_any(void);
/* Replace the descriptors by a random number of random ones. */
void attempt_any_fds(struct attempt *l);
/* Replace descriptor i, or append it. */
void attempt_put_fd(struct attempt *l, int i, int fd);
/* Close all descriptors. */
void attempt_close_fds(struct attempt *l);

/* Connect to the socket of an interface. Returns the socket. */
int attempt_connect(const struct hal_addr *to);
/* Let the victim connect to this address, whose socket the test opens. Returns
 * the connection, after the victim's HELLO was received. */
int attempt_accept(const struct hal_addr *addr);
/* Send a message, unless the other end has closed the connection, and close its
 * descriptors. */
void attempt_send(int conn, struct attempt *l);
/* Wait for an answer. Returns its status, or -ECONNRESET if the other end has
 * closed the connection. Descriptors of the answer are not received. */
int attempt_answer(int conn, union emu_msg *m);
/* Connect to the victim, and send a message. Returns the connection, which the
 * test closes. */
int attempt_begin(struct attempt *l);
/* attempt_begin(), then return the status of the answer. */
int attempt_ask(struct attempt *l);

/* Bind a socket to the abstract name of kind ("unimem", "unimem.held") and
 * address; returns fd. */
int attempt_bind(int fd, const char *kind, const struct hal_addr *addr);
/* Descriptors to send: one end of a socket pair; the proof that a process holds
 * an interface; a link segment of this size; a pipe; a file. */
int attempt_socket(int type);
int attempt_proof(const struct hal_addr *addr);
int attempt_link(size_t bytes);
int attempt_pipe(void);
int attempt_file(void);

#endif /* CONNECT_ATTEMPTS_H */
