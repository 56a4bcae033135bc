/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform.h - options, fixture and helpers of the conformance test, which
 * checks that a HAL backend obeys docs/hal.md
 *
 *   hal_conform.c         options, the list of tests, set-up and leak checks
 *   hal_conform_util.c    time, interfaces, events, peers, packets
 *   hal_conform_net.c     peers on other hosts
 *   hal_conform_engine.c  their engine, with faults
 *   hal_conform_stream.c  packet streams that check themselves
 *   hal_conform_child.c   the main function of the child process
 *   hal_conform_spawn.c   start, command and end child processes
 *   hal_conform_*.c       the tests, an area of docs/hal.md in each file
 *
 * The main thread calls these functions, unless a comment says otherwise. A
 * function that waits fails the test after ct_opt.patience seconds.
 */
#ifndef HAL_CONFORM_H
#define HAL_CONFORM_H

#include "hal/hal.h"
#include "lib/unit.h"

#define CT_IFS		80		/* open interfaces of a test, at most */
#define CT_CHILDREN	4
#define CT_EVENTS	256
#define CT_TYPE_STREAM	0x10		/* packet types of the tests */
#define CT_TYPE_PING	0x20
#define CT_TYPE_PONG	0x21
#define CT_TYPE_SPACE	0x22
#define CT_SECOND	UINT64_C(1000000000)

/* ---- Options --------------------------------------------------------- */

/* The options of the command line, set once by main(). */
struct ct_options {
	const char *hal;		/* "emu", "fault", "net", ... */
	const char *profile;
	const char *fault;		/* FI_UNIMEM_FAULT of the decorator */
	const char *broken;		/* broken backend of test/broken, or
					 * NULL */
	const char *self;		/* path of this program */
	const char *via;		/* UNM_EXEC: the program that executes
					 * this one (an emulator, or
					 * test/check/two-hosts.sh), or NULL */
	const char *filter;		/* pattern of test names, or NULL */
	double patience;		/* seconds until a wait counts as a
					 * hang */
	long packets;			/* packets of the long streams */
	long seq_start;			/* number of the first packet */
	unsigned passes;		/* passes of each fault point at which a
					 * process is killed or stopped */
	bool service;			/* the first interface that ct_open()
					 * opens is interface 0 */
	long late;			/* of 1000 frames to other hosts, those
					 * that later ones overtake */
	int dead_ms;			/* FI_UNIMEM_NET_DEAD_MS; 0: the usual
					 * value */
	bool procs;			/* run tests with a child process */
};
extern struct ct_options ct_opt;

/* Returns whether the backend injects faults: calls may then fail with
 * -FI_EAGAIN more often than docs/hal.md permits. */
static inline bool ct_faulty(void)
{
	return ct_opt.fault[0] != '\0';
}

/* Returns whether all peers are peers on other hosts (docs/hal.md, 16). */
static inline bool ct_net(void)
{
	return strcmp(ct_opt.hal, "net") == 0;
}

/* Returns whether child processes run on another host than the main process
 * (test/check/two-hosts.sh). */
static inline bool ct_two_hosts(void)
{
	return getenv("UNM_TWO_HOSTS") != NULL;
}

/* Skip a test of a law that does not hold for peers on other hosts; the reason
 * is in test/skips.txt. Call it before anything is opened. */
#define CT_NOT_NET()	do { if (ct_net()) skip(); } while (0)

/* ---- Fixture --------------------------------------------------------- */

/* An interface and its events that no test has taken yet. */
struct ct_if {
	struct hal_if *hif;		/* NULL: this entry is free */
	struct hal_event ev[CT_EVENTS];	/* events not yet taken, oldest first */
	unsigned nev;
	uint32_t turn;			/* peer with which ct_next_packet()
					 * starts, for fairness */
	struct ct_if *other;		/* the one that ct_join() has joined to
					 * it last: see ct_step_both() */
};

/* The HAL and the interfaces of the running test: initialized by ct_setup(),
 * all closed by ct_teardown(). */
extern struct hal *ct_hal;
extern const struct hal_caps *ct_caps;
extern struct ct_if ct_ifs[CT_IFS];

/* cmocka set-up and teardown. The teardown fails if the test leaves
 * descriptors, mappings or names in /dev/shm. */
int ct_setup(void **state);
int ct_teardown(void **state);
/* Open the backend that the options select. Returns 0 or a negative
 * fi_errno. */
int ct_hal_open(void);
void ct_hal_close(void);

/* The state of a test is its name, for messages. */
#define CT_TEST(f)	cmocka_unit_test_prestate_setup_teardown(f, ct_setup, \
						ct_teardown, (void *)#f)

/* The tests of each file. */
extern const struct CMUnitTest ct_pkt_tests[], ct_space_tests[],
	ct_stream_tests[], ct_conn_tests[], ct_close_tests[], ct_sleep_tests[],
	ct_mem_tests[], ct_dma_tests[], ct_proc_tests[], ct_kill_tests[],
	ct_leak_tests[], ct_shared_tests[], ct_shared_proc_tests[],
	ct_service_tests[], ct_service_proc_tests[], ct_exec_tests[],
	ct_alias_tests[], ct_wide_tests[], ct_frames_tests[];
extern const size_t ct_pkt_count, ct_space_count, ct_stream_count,
	ct_conn_count, ct_close_count, ct_sleep_count, ct_mem_count,
	ct_dma_count, ct_proc_count, ct_kill_count, ct_leak_count,
	ct_shared_count, ct_shared_proc_count, ct_service_count,
	ct_service_proc_count, ct_exec_count, ct_alias_count,
	ct_wide_count, ct_frames_count;
#define CT_COUNT(list)	(sizeof(list) / sizeof((list)[0]))

/* ---- Time and random numbers ----------------------------------------- */

uint64_t ct_now(void);			/* monotonic clock, nanoseconds */
uint64_t ct_deadline(void);		/* ct_now() plus ct_opt.patience */
void ct_nap(long us);			/* sleep, microseconds */
uint64_t ct_random(uint64_t *rng);	/* splitmix64 */
/* Fill a buffer with the pattern of a seed, or return whether it holds it. */
void ct_fill(void *buf, size_t len, uint64_t seed);
bool ct_filled(const void *buf, size_t len, uint64_t seed);

/* ---- Interfaces, events, peers --------------------------------------- */

/* Open an interface on a board if the backend permits any board, otherwise on
 * the board of this process. The test fails if that fails. */
struct ct_if *ct_open(int board);
/* Open interface 0 of a board, waiting until it is free. With --service the
 * first ct_open() of a test does so. The test is skipped if another job holds
 * the interface. */
struct ct_if *ct_open_service(int board);
/* Skip or fail the test if hal_if_open_service() returned ret, not 0. */
void ct_service_taken(int ret);
/* Allocate memory of a board as ct_open() chooses it. Returns what
 * hal_mem_alloc() returns. */
int ct_mem_alloc(int board, size_t bytes, struct hal_mem **mem, void **addr);
/* A region of board 0, and its key for peers; the test frees mem. */
struct ct_region {
	struct hal_mem *mem;
	uint8_t *addr;
	struct hal_key key;
	uint32_t board;
};
struct ct_region ct_region(size_t bytes);

/* Pump and service an interface once, or all interfaces, and store the events.
 * Any thread may call ct_step() for an interface of its own. */
void ct_step(struct ct_if *ci);
void ct_step_all(void);
/* Step an interface, and with --hal net also the one to which it is joined: a
 * peer on another host executes transfers and acknowledges words only when it
 * is stepped (docs/hal.md, 1.3). */
void ct_step_both(struct ct_if *ci);

/* Remove the oldest stored event of this type and of this peer (NULL: any).
 * Returns false if there is none. */
bool ct_take_event(struct ct_if *ci, enum hal_event_type type,
		   struct hal_peer *peer, struct hal_event *ev);
/* The number of such events. */
unsigned ct_count_events(struct ct_if *ci, enum hal_event_type type,
			 struct hal_peer *peer);
/* Step all interfaces until there is such an event, and remove it. */
struct hal_event ct_wait_event(struct ct_if *ci, enum hal_event_type type,
			       struct hal_peer *peer);

/* Connect, repeating the call while it returns -FI_EAGAIN. ct_try_connect()
 * returns 0, an error, or -FI_ETIMEDOUT after the patience; ct_connect() fails
 * the test instead. */
int ct_try_connect(struct ct_if *ci, const struct hal_addr *to,
		   struct hal_peer **peer);
struct hal_peer *ct_connect(struct ct_if *ci, const struct hal_addr *to);
/* Wait for the HAL_EV_INBOUND event of the peer with this address. */
struct hal_peer *ct_inbound_from(struct ct_if *ci, const struct hal_addr *from);
/* Connect, and expect -FI_ECONNREFUSED from the call or from HAL_EV_DEAD. */
void ct_expect_refused(struct ct_if *ci, const struct hal_addr *to);
/*
 * Expect HAL_EV_DEAD of a peer, killed or closed, within one second after the
 * time since, which is docs/hal.md's limit. The interface is polled once more
 * after that second, because a busy machine may not have run this process in
 * between.
 */
void ct_expect_death(struct ct_if *ci, struct hal_peer *peer, uint64_t since);
/* Two interfaces, connected both ways. The test holds it by value. */
struct ct_pair {
	struct ct_if *a, *b;
	struct hal_peer *ab, *ba;	/* b as a peer of a, a as one of b */
};
/* Open and connect two interfaces. ct_join() connects p->a and p->b, which are
 * open. Both set p->ab and p->ba, and take the events of the connection. */
struct ct_pair ct_pair(int board_a, int board_b);
void ct_join(struct ct_pair *p);
/* From now on a thread of its own uses each end. */
void ct_part(struct ct_pair *p);
bool ct_same_addr(const struct hal_addr *a, const struct hal_addr *b);

/* ---- Peers on other hosts -------------------------------------------- */

/* With --hal net: make an interface that was just opened a host of its own. */
void ct_host_join(struct hal_if *hif);
/* Remember the host of an address of another process; find the host of an
 * address. */
void ct_host_note(const struct hal_addr *addr, const struct hal_host *host);
const struct hal_host *ct_host_of(const struct hal_addr *addr);
/* hal_connect(), or hal_connect_host() with --hal net. */
int ct_hal_connect(struct hal_if *hif, const struct hal_addr *to,
		   struct hal_peer **peer);
/* Connect to a peer that has connected to this interface, if it is not yet.
 * Returns 0 or an error. */
int ct_try_answer(struct ct_if *ci, struct hal_peer *peer);
/* An interface that is being closed, or a peer that is being freed, by a thread
 * of its own with --hal net. Held by value until ct_end_wait(). */
struct ct_ending {
	pthread_t thread;
	struct hal_if *hif;
	struct hal_peer *peer;		/* NULL: the interface is closed */
	atomic_bool done;
};
/* Begin to close an interface. ct_end_wait() steps all other interfaces until
 * it is closed. */
void ct_close_begin(struct ct_if *ci, struct ct_ending *e);
void ct_end_wait(struct ct_ending *e);
/* Close an interface, or free a peer that is not dead. */
void ct_close(struct ct_if *ci);
void ct_peer_free(struct hal_peer *peer);
/* Faults of the engine that carries frames (hal_conform_engine.c). */
enum ct_frame_fault {
	CT_FRAME_GOOD,
	CT_FRAME_LATE,			/* overtaken by a few later frames */
	CT_FRAME_FAR,			/* by more than are kept */
	CT_FRAME_TWICE,
	CT_FRAME_LOST,
	CT_FRAME_CUT,			/* lost, and the link ends */
};
/* Have the engine make a mistake with the numbered frame that this process
 * sends as number `after` from now. 0: with none. */
void ct_frame_fault(enum ct_frame_fault kind, long after);
/* With --hal net, once at the start: 0, or a negative fi_errno.
 * -FI_ECONNREFUSED: the engine is not built. */
int ct_net_warm_up(void);

/* ---- Packets --------------------------------------------------------- */

/* Send a packet of one word. While there is no credit, step the sender only.
 * Returns 0, an error, or -FI_ETIMEDOUT after the patience. */
int ct_send(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
	    uint64_t word);
/* Send a packet if there is a credit. Returns -FI_EAGAIN if there is none, also
 * after as many attempts as a faulty backend may need. */
int ct_send_once(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
		 uint64_t word);
/* The next packet of a peer, or of any peer of an interface, or NULL. The
 * packet is not released. */
const struct hal_cell *ct_peek(struct hal_peer *peer, uint64_t *head);
const struct hal_cell *ct_next_packet(struct ct_if *ci, struct hal_peer **peer,
				      uint64_t *head);
/* Step all interfaces until a peer has sent a packet, which is not released. */
const struct hal_cell *ct_await(struct hal_peer *peer, uint64_t *head);
/* Wait for a packet of a peer, which must be of this type, and release it.
 * Returns its first word. */
uint64_t ct_recv(struct hal_peer *peer, uint8_t type);
/* Release all packets that a peer has sent. Returns their number. */
unsigned ct_drain(struct hal_peer *peer);

/*
 * One direction of a stream: packets whose type, flags, length and contents
 * derive from a seed and a number, so that the receiver detects a packet that
 * is lost, doubled, reordered or changed.
 */
struct ct_stream {
	uint64_t seed;			/* equal at both ends */
	uint64_t next;			/* number of the next packet */
	char error[160];		/* set by ct_stream_take() */
};
/* Send the next packet of a stream; returns what hal_pkt_send() returns. */
int ct_stream_send(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload);
/* Receive the next packet of a stream. Returns 1 if it is correct, 0 if there
 * is none, -1 if it is wrong, with the reason in s->error. */
int ct_stream_take(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload);

/*
 * The functions below run in any thread, each end of a connection in one, and
 * return NULL or a text that says what was wrong.
 *
 * ct_stream_both() runs a stream in each direction until total packets were
 * sent, received and released. out and in are the seeds; the peer swaps them.
 */
const char *ct_stream_both(struct ct_if *ci, struct hal_peer *peer,
			   uint64_t total, uint64_t out, uint64_t in);
/* Send, or receive, total messages through the receive space. */
const char *ct_space_send(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total);
const char *ct_space_take(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total);
/* Both peers store a word and then load the word of the other peer: at least
 * one of them must load the new value. */
const char *ct_sync_game(struct ct_if *ci, struct hal_peer *peer,
			 uint64_t rounds);
#define CT_WINDOW_BYTES	12345	/* length of the region, at least */
/* Store through a window into the peer's region, and notify the peer by
 * packets; or, at the peer, check the bytes that each packet names. */
const char *ct_window_send(struct ct_if *ci, struct hal_peer *peer,
			   const struct hal_window *win, uint64_t rounds);
const char *ct_window_take(struct ct_if *ci, struct hal_peer *peer,
			   const uint8_t *mem, uint64_t rounds);
/* Add to the words of a peer's region through a window, atomically. */
const char *ct_window_add(struct hal_peer *peer, const struct hal_key *key,
			  uint64_t rounds);
/* Sleep until this peer has sent a packet. */
const char *ct_sleep(struct ct_if *ci, struct hal_peer *peer);

/* ---- cDMA ------------------------------------------------------------ */

/* Import a key, stepping all interfaces while the call returns -FI_EAGAIN.
 * Returns 0 or an error. */
int ct_import(struct hal_peer *peer, const struct hal_key *key,
	      struct hal_rmem **rmem);
/* Post a transfer, repeating the call while it returns -FI_EAGAIN. */
int ct_dma_post(struct ct_if *ci, const struct hal_dma *dma, uint64_t token);
/* Post a transfer and wait for its completion; repeat both after an injected
 * failure. Returns the status of the completion, or an error. */
int ct_dma_run(struct ct_if *ci, const struct hal_dma *dma);

/* ---- Child processes ------------------------------------------------- */

/*
 * A child process: this program with --child. It opens an interface and prints
 * its address, answers each CT_TYPE_PING by a CT_TYPE_PONG with the same word,
 * and executes commands, which it reads line by line from its standard input
 * (hal_conform_child.c). At the end of the input it closes its interface and
 * exits with 0. Instances are in a table of CT_CHILDREN entries, from
 * ct_spawn() to ct_reap(), ct_finish() or the teardown.
 */
struct ct_child {
	pid_t pid;
	int in, out;			/* parent's ends of its stdin, stdout */
	bool ended;			/* it was reaped */
	int status;			/* status of waitpid(), if ended */
	void (*on_stop)(struct ct_child *c);	/* called when the child has
						 * stopped; may be NULL */
	struct hal_addr addr;		/* address of its interface */
};
typedef void (*ct_stop_fn)(struct ct_child *c);

/* main() of a child. Returns the exit code. */
int ct_child_main(void);
/* Start a child, and wait for its address. */
struct ct_child *ct_spawn(void);
/*
 * Start a child with this value of FI_UNIMEM_POINT. Returns NULL, with the wait
 * status in *status, if the child died before it printed its address. on_stop
 * is called when the child is found stopped.
 */
struct ct_child *ct_spawn_try(const char *point, ct_stop_fn on_stop,
			      int *status);
/* Send a command line to a child. */
void ct_tell(struct ct_child *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Receive the next line of a child's output, stepping all interfaces. Returns
 * false at the end of the output. */
bool ct_hear(struct ct_child *c, char *line, size_t size);
/* Send a command, and expect an answer that begins with "ok"; the rest of the
 * answer is copied to rest (size bytes). */
void ct_ask(struct ct_child *c, char *rest, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Connect an interface and that of a child both ways. Returns the child as a
 * peer of ci. */
struct hal_peer *ct_join_child(struct ct_if *ci, struct ct_child *c);
/* Let a child close its interface and open interface 0, waiting until that is
 * free. */
void ct_serve(struct ct_child *c);
/* Returns whether a child has ended. Calls on_stop if it has stopped. */
bool ct_ended(struct ct_child *c);
/* Wait for the end of a child, stepping all interfaces meanwhile or not. */
void ct_await_end(struct ct_child *c, bool stepping);
/* Wait for the end of a child, stepping all interfaces, and free its entry.
 * Returns the wait status. */
int ct_reap(struct ct_child *c);
/* The child must answer "ok". */
void ct_hear_ok(struct ct_child *c);
/* Close a child's input, wait for its end, and expect exit code 0. */
void ct_finish(struct ct_child *c);
/* Stop a child by SIGSTOP. */
void ct_stop(struct ct_child *c);
/* Kill a child by SIGKILL, and wait for its end. */
void ct_kill(struct ct_child *c);
/* Kill all children. */
void ct_children_end(void);

/* A process that a child has forked: it inherits all descriptors of the child,
 * and outlives it. */
struct ct_heir {
	bool reaper;			/* this process adopts and reaps it */
	pid_t pid;
};
/* Let a child fork such a process; kill it. There is one at a time. */
struct ct_heir ct_heir_leave(struct ct_child *c);
void ct_heir_end(const struct ct_heir *heir);

#define CT_ADDR_TEXT	160		/* length of an address as text, with
					 * its host */
/* Convert an address to text (CT_ADDR_TEXT bytes) and back; ct_addr_parse()
 * returns false if the text is no address. */
void ct_addr_format(const struct hal_addr *addr, char *text);
bool ct_addr_parse(const char *text, struct hal_addr *addr);

/*
 * Linux (seen on 6.18) forgets that a processor takes part in
 * MEMBARRIER_CMD_GLOBAL_EXPEDITED when a thread ends on it, until a thread of
 * another process runs there (bench/membarrier.c); a barrier that leaves out a
 * sender loses a wake-up. Threads end in these tests, so let another process
 * run on each processor. (Users are safe by FI_UNIMEM_SLEEP_MS, which is 0
 * here.)
 */
void ct_mend_barriers(void);

/* Print a formatted message, and fail the test. */
#define ct_fail(...)	do {						\
		print_error(__VA_ARGS__);				\
		print_error("\n");					\
		fail();							\
	} while (0)
/* Fail the test with an error that a stream or game returned; NULL: none. */
#define ct_good(error)	do {						\
		if ((error) != NULL)					\
			ct_fail("%s", error);				\
	} while (0)

#endif /* HAL_CONFORM_H */
