/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_pair.h - two interfaces of one process that take each other for
 * interfaces on different hosts, for tests of hal/net.
 *
 * Their control connections are TCP over lo. Their engine carries frames in
 * lists of memory, and their HMAC is a checksum with a key, so that a test
 * needs no UCX and no libsodium, and decides itself when a frame arrives. A
 * rogue is a client of a listener that sends what the test wants. All state is
 * in the global "net_pair"; one thread uses it.
 */
#ifndef NET_PAIR_H
#define NET_PAIR_H

#include "hal/hal.h"
#include "hal/net/hal_net_types.h"
#include "lib/unit.h"

#define NET_PAIR_PATIENCE	(UNIT_SLOW ? 120 : 40)	/* seconds until a wait
							 * counts as a hang */

/* One of the two interfaces. */
struct net_side {
	struct hal_if *hif;
	struct net_if *nif;
	struct hal_peer *peer;		/* the first one that is not dead;
					 * NULL: none */
	unsigned inbound, connected, dead;	/* events */
	int dead_status;		/* of the last HAL_EV_DEAD */
};

struct net_pair {
	struct hal *hal;		/* NULL: no emulation or no lo */
	struct net_side a, b;
	uint64_t rng;
	unsigned ended, silenced;	/* links that were disconnected, and
					 * those of them whose host is said to
					 * be silent */
	unsigned lose;			/* the frame to be lost, counted from
					 * the next, 1; 0: none */
	struct net_pair_lack {		/* calls of the engine of one side that
					 * fail for want of descriptors */
		const struct net_side *of;
		int open, address, connect;
		bool memory;		/* or for want of memory */
	} lack;
};
extern struct net_pair net_pair;

/* cmocka set-up and teardown. */
int net_pair_setup(void **state);
int net_pair_teardown(void **state);
/* Calls the test *state, or skips it where there are no interfaces. */
void net_pair_test(void **state);
#define NET_PAIR_TEST(f)						\
	{ #f, net_pair_test, net_pair_setup, net_pair_teardown, (void *)f }

/* Service an interface once, pump it, and handle its events. A peer that is
 * dead is freed. */
void net_side_pump(struct net_side *s);
void net_pair_pump(void);		/* both */
/* Open one more interface, on a host of its own; up to NET_SIDES_MAX with those
 * of net_pair. The caller closes hif before the test ends. */
#define NET_SIDES_MAX	8
void net_side_open(struct net_side *s);
int64_t net_pair_seconds(void);		/* monotonic clock */
/* Run work until a condition holds; a hang fails the test. */
#define NET_PAIR_DO_UNTIL(work, cond)	do {				\
		int64_t until_ = net_pair_seconds() + NET_PAIR_PATIENCE; \
		while (!(cond)) {					\
			work;						\
			if (net_pair_seconds() > until_)		\
				unit_fail("hangs: %s", #cond);		\
		}							\
	} while (0)
#define NET_PAIR_UNTIL(cond)	NET_PAIR_DO_UNTIL(net_pair_pump(), cond)

/* Connect one side to the other; sets its peer. */
void net_pair_dial(struct net_side *from, const struct net_side *to);
/* Connect both ways, and exchange some packets. */
void net_pair_talk(void);
/* Descriptors of this process. */
int net_pair_fds(void);
/* Frames that wait for a side in the engine. */
unsigned net_pair_frames(const struct net_side *s);
/* Give a side a message, as from the engine. */
void net_pair_frame(struct net_side *to, const void *frame, size_t len);

/* ---- Rogues ------------------------------------------------------------ */

/* A client of a listener, or a listener that an interface dials. */
struct net_rogue {
	int fd;				/* -1: closed */
	struct net_auth auth;
	uint8_t name[NET_NAME];		/* its name, which the test may
					 * change */
};

/* Connect to a side; the other side sends what was not changed from its
 * defaults: a name of another host, the secret, a nonce. */
void net_rogue_dial(struct net_rogue *r, const struct net_side *to);
/* Begin the handshake with the secret of a side: auth.out has HELLO. */
void net_rogue_hello(struct net_rogue *r, const struct net_side *to);
/* Begin the handshake as the acceptor of the name of the rogue; host has the
 * secret. */
void net_rogue_accept(struct net_rogue *r, const struct hal_host *host);
/* Send bytes. */
void net_rogue_send(struct net_rogue *r, const void *data, size_t len);
/* Send what auth.out has. */
void net_rogue_flush(struct net_rogue *r);
/* Pump a side until len bytes have come. False: the side has closed the
 * connection. */
bool net_rogue_recv(struct net_rogue *r, struct net_side *from, void *data,
		    size_t len);
/* The whole handshake with a side. False: it has closed the connection. */
bool net_rogue_prove(struct net_rogue *r, struct net_side *to);
/* Pump a side until it has closed the connection. */
void net_rogue_closed(struct net_rogue *r, struct net_side *by);
void net_rogue_close(struct net_rogue *r);
/* A good MEET of the rogue; the address of its worker is none. Returns its
 * bytes. */
size_t net_rogue_meet(struct net_rogue *r, uint8_t msg[NET_CTL_MAX]);
/* A listener of the test, at *port. backlog -1: it does not listen, so the port
 * refuses connections, and nobody else gets it. */
int net_rogue_listen(int backlog, uint16_t *port);

#endif /* NET_PAIR_H */
