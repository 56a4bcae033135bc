/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform.h - what the parts of the conformance test share.
 *
 *   hal_conform.c        options, the list of tests, set-up and leak checks
 *   hal_conform_util.c   waiting, sending with retries, checked packet streams
 *   hal_conform_child.c  the second process, and how to talk to it
 *   hal_conform_*.c      the laws of docs/hal.md, one area each
 */
#ifndef HAL_CONFORM_H
#define HAL_CONFORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/types.h>

#include "hal/hal.h"

#define CT_IFS		80		/* interfaces a test may have open */
#define CT_CHILDREN	4
#define CT_EVENTS	256
#define CT_TYPE_STREAM	0x10		/* packet types of the tests */
#define CT_TYPE_PING	0x20
#define CT_TYPE_PONG	0x21
#define CT_TYPE_SPACE	0x22
#define CT_SECOND	UINT64_C(1000000000)

/* ---- Options --------------------------------------------------------- */

struct ct_options {
	const char *hal;		/* "emu", "fault", ... */
	const char *profile;
	const char *fault;		/* the decorator's spec */
	const char *broken;		/* a mutation of test/broken, or NULL */
	const char *self;		/* this program */
	const char *via;		/* what runs it: an emulator, or NULL */
	const char *filter;
	double patience;		/* seconds without progress */
	long packets;			/* of the long streams */
	long seq_start;
	unsigned passes;		/* of each fault point */
	bool service;			/* ct_open() begins with it */
	bool procs;			/* tests with a second process */
};
extern struct ct_options ct_opt;

/* Refusals beyond what the laws demand are to be expected. */
static inline bool ct_faulty(void)
{
	return ct_opt.fault[0] != '\0';
}

/* ---- Fixture --------------------------------------------------------- */

struct ct_if {
	struct hal_if *hif;
	struct hal_event ev[CT_EVENTS];	/* not yet asked for */
	unsigned nev;
	uint32_t turn;			/* where ct_next_packet() looks first */
};

/* Emptied by ct_setup(), everything in it is closed by ct_teardown(). */
extern struct hal *ct_hal;
extern const struct hal_caps *ct_caps;
extern struct ct_if ct_ifs[CT_IFS];

int ct_setup(void **state);
int ct_teardown(void **state);
int ct_hal_open(void);		/* 0 or a negative fi_errno */
void ct_hal_close(void);

/* A test's state is its name. */
#define CT_TEST(f)	cmocka_unit_test_prestate_setup_teardown(f, ct_setup, \
						ct_teardown, (void *)#f)

/* The lists of tests. */
extern const struct CMUnitTest ct_pkt_tests[], ct_space_tests[],
	ct_stream_tests[], ct_conn_tests[], ct_close_tests[], ct_sleep_tests[],
	ct_mem_tests[], ct_dma_tests[], ct_proc_tests[], ct_kill_tests[],
	ct_leak_tests[], ct_shared_tests[], ct_shared_proc_tests[],
	ct_service_tests[], ct_service_proc_tests[], ct_exec_tests[],
	ct_alias_tests[];
extern const size_t ct_pkt_count, ct_space_count, ct_stream_count,
	ct_conn_count, ct_close_count, ct_sleep_count, ct_mem_count,
	ct_dma_count, ct_proc_count, ct_kill_count, ct_leak_count,
	ct_shared_count, ct_shared_proc_count, ct_service_count,
	ct_service_proc_count, ct_exec_count, ct_alias_count;
#define CT_COUNT(list)	(sizeof(list) / sizeof((list)[0]))

/* ---- Time and chance ------------------------------------------------- */

uint64_t ct_now(void);			/* ns */
uint64_t ct_deadline(void);		/* now + patience */
void ct_nap(long us);
uint64_t ct_random(uint64_t *rng);	/* splitmix64 */
void ct_fill(void *buf, size_t len, uint64_t seed);
bool ct_filled(const void *buf, size_t len, uint64_t seed);

/* ---- Interfaces, events, peers --------------------------------------- */

/* Open one more, on that board if the backend lets us, else on our own; the
 * test fails if that cannot be done. */
struct ct_if *ct_open(int board);
/* Interface 0 of it, at once or soon; with --service ct_open() does so first.
 * Skips the test if another job keeps it. */
struct ct_if *ct_open_service(int board);
void ct_service_taken(int ret);	/* 0, or the test ends */
/* Memory likewise. */
int ct_mem_alloc(int board, size_t bytes, struct hal_mem **mem, void **addr);
void ct_close(struct ct_if *ci);

/* Pump and service once, keep the events. Usable from any thread. */
void ct_step(struct ct_if *ci);
void ct_step_all(void);

/* An event kept, of that type and (unless NULL) of that peer: taken out. */
bool ct_take_event(struct ct_if *ci, enum hal_event_type type,
		   struct hal_peer *peer, struct hal_event *ev);
unsigned ct_count_events(struct ct_if *ci, enum hal_event_type type,
			 struct hal_peer *peer);
/* Step all interfaces until it comes; the test fails if it does not. */
struct hal_event ct_wait_event(struct ct_if *ci, enum hal_event_type type,
			       struct hal_peer *peer);

/* Connect, with retries; never fails except as the law allows. */
int ct_try_connect(struct ct_if *ci, const struct hal_addr *to,
		   struct hal_peer **peer);
struct hal_peer *ct_connect(struct ct_if *ci, const struct hal_addr *to);
/* The peer that an interface got by an inbound connection from another. */
struct hal_peer *ct_inbound_from(struct ct_if *ci, const struct hal_addr *from);
/* Connecting must end in a refusal, at once or by an event. */
void ct_expect_refused(struct ct_if *ci, const struct hal_addr *to);
/*
 * From a moment on, the news of an end has one second (as the issue says). The
 * last look comes after it: on a busy machine we may not have looked at all.
 */
void ct_expect_death(struct ct_if *ci, struct hal_peer *peer, uint64_t since);
/* Two interfaces, connected both ways, all events taken. */
struct ct_pair {
	struct ct_if *a, *b;
	struct hal_peer *ab, *ba;	/* b as a sees it, a as b sees it */
};
struct ct_pair ct_pair(int board_a, int board_b);
void ct_join(struct ct_pair *p);	/* connect p->a and p->b */
bool ct_same_addr(const struct hal_addr *a, const struct hal_addr *b);

/* ---- Packets --------------------------------------------------------- */

/* Send, stepping only the sender while it is refused. -FI_ETIMEDOUT at last. */
int ct_send(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
	    uint64_t word);
/* Try as often as a faulty backend may need: 0 or -FI_EAGAIN for good. */
int ct_send_once(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
		 uint64_t word);
/* Next packet of a peer, or of any peer of an interface; not released. */
const struct hal_cell *ct_peek(struct hal_peer *peer, uint64_t *head);
const struct hal_cell *ct_next_packet(struct ct_if *ci, struct hal_peer **peer,
				      uint64_t *head);
/* Wait for a packet of a peer, stepping all interfaces; not released. */
const struct hal_cell *ct_await(struct hal_peer *peer, uint64_t *head);
/* The same, of that type, and release it: its first word. */
uint64_t ct_recv(struct hal_peer *peer, uint8_t type);
/* Take all packets that are there; their number. */
unsigned ct_drain(struct hal_peer *peer);

/*
 * A stream: packets whose type, flags, length and content follow from a seed
 * and a number, so that a lost, doubled, reordered or changed one is seen.
 */
struct ct_stream {
	uint64_t seed;
	uint64_t next;
	char error[160];		/* of ct_stream_take() */
};
int ct_stream_send(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload);
/* 1: took one, as it should be; 0: none there; -1: see s->error */
int ct_stream_take(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload);

/*
 * Run a stream each way with one peer in this thread until all was sent, taken
 * and released; NULL, or what was wrong. The peer uses the seeds crosswise.
 */
const char *ct_stream_both(struct ct_if *ci, struct hal_peer *peer,
			   uint64_t total, uint64_t out, uint64_t in);
/* The same for messages through receive space, one way. */
const char *ct_space_send(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total);
const char *ct_space_take(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total);
/* Store a word, look at the other's: that never both of two peers miss the
 * other's store. */
const char *ct_sync_game(struct ct_if *ci, struct hal_peer *peer,
			 uint64_t rounds);
#define CT_WINDOW_BYTES	12345	/* of the region, at least */
/* Store by a window of the peer's region, which it tells of; and the peer's
 * part: to look at what came. */
const char *ct_window_send(struct ct_if *ci, struct hal_peer *peer,
			   const struct hal_window *win, uint64_t rounds);
const char *ct_window_take(struct ct_if *ci, struct hal_peer *peer,
			   const uint8_t *mem, uint64_t rounds);
/* Add to the words of a peer's region, by a window. */
const char *ct_window_add(struct hal_peer *peer, const struct hal_key *key,
			  uint64_t rounds);
/* Sleep until a packet of this peer is there; NULL, or what was wrong. */
const char *ct_sleep(struct ct_if *ci, struct hal_peer *peer);

/* ---- cDMA ------------------------------------------------------------ */

/* Import, stepping all; 0 or an error other than -FI_EAGAIN. */
int ct_import(struct hal_peer *peer, const struct hal_key *key,
	      struct hal_rmem **rmem);
/* Post, with retries while it is refused. */
/* Open descriptors of this process. */
int ct_descriptors(void);
int ct_dma_post(struct ct_if *ci, const struct hal_dma *dma, uint64_t token);
/* One transfer from start to end, again after an injected failure. */
int ct_dma_run(struct ct_if *ci, const struct hal_dma *dma);

/* ---- A second process ------------------------------------------------ */

/*
 * It opens an interface, says its address, answers each CT_TYPE_PING by a
 * CT_TYPE_PONG of the same word, and takes commands on its standard input,
 * one line each (hal_conform_child.c); the end of the input makes it close
 * its interface and exit with 0.
 */
struct ct_child {
	pid_t pid;
	int in, out;			/* our ends of its stdin and stdout */
	bool ended;
	int status;			/* of wait, once it ended */
	void (*on_stop)(struct ct_child *c);
	struct hal_addr addr;
};
typedef void (*ct_stop_fn)(struct ct_child *c);

int ct_child_main(void);		/* in the child */
struct ct_child *ct_spawn(void);
/*
 * Start one with that FI_UNIMEM_POINT. NULL if it died before it said its
 * address; on_stop is called when it is found stopped.
 */
struct ct_child *ct_spawn_try(const char *point, ct_stop_fn on_stop,
			      int *status);
void ct_tell(struct ct_child *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Its next line, stepping all interfaces; false at the end of its output. */
bool ct_hear(struct ct_child *c, char *line, size_t size);
/* Tell it something and expect "ok"; what follows that goes to rest. */
void ct_ask(struct ct_child *c, char *rest, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Connect both ways with it; our view of it. */
struct hal_peer *ct_join_child(struct ct_if *ci, struct ct_child *c);
/* Have it take interface 0 in place of its own, at once or soon. */
void ct_serve(struct ct_child *c);
/* Whether it ended; handles a stop. */
bool ct_ended(struct ct_child *c);
/* Wait for its end, looking at our interfaces or not. */
void ct_await_end(struct ct_child *c, bool stepping);
/* The same, stepping, and forget it: the wait status. */
int ct_reap(struct ct_child *c);
/* Close its input and expect exit code 0. */
void ct_finish(struct ct_child *c);
void ct_stop(struct ct_child *c);	/* by SIGSTOP */
/* Kill it, and wait until it is gone. */
void ct_kill(struct ct_child *c);
void ct_children_end(void);

/* A child of the child, which holds copies of all its descriptors. */
struct ct_heir {
	bool reaper;
	pid_t pid;
};
struct ct_heir ct_heir_leave(struct ct_child *c);
void ct_heir_end(const struct ct_heir *heir);

#define CT_ADDR_TEXT	64
void ct_addr_format(const struct hal_addr *addr, char *text);
bool ct_addr_parse(const char *text, struct hal_addr *addr);

/* Failing for a reason that a plain assert would not show. */
#define ct_fail(...)	do {						\
		print_error(__VA_ARGS__);				\
		print_error("\n");					\
		fail();							\
	} while (0)

#endif /* HAL_CONFORM_H */
