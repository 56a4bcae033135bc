/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs.h - the framework of tests with several processes: cases with a time
 * limit, child processes, endpoints, and message traffic that checks itself.
 *
 * A test program is a table of cases, which procs_main() runs one after the
 * other. Each case runs in a process of its own, the director. The director
 * opens no endpoint: it forks the child processes that do. The director leads a
 * process group, which its children inherit. When a case ends or exceeds its
 * time limit, procs_main() kills the whole group.
 *
 * Each test program uses a board number of its own (FI_UNIMEM_BOARD), so that
 * its interfaces and socket names differ from those of other tests that run on
 * the machine at the same time.
 *
 * The functions are in procs.c, except: procs_time.c holds
 * procs_within_a_second() and procs_note_waited(), procs_mem.c holds
 * node_alloc() and node_reg(), procs_node.c the other node_*(), procs_traffic.c
 * holds traffic_*().
 */
#ifndef PROCS_H
#define PROCS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "hal/hal.h"

#define PROCS_MAX	64		/* children of a case */
#define PROCS_SECOND	1000000		/* clock ticks */

/* ---- Verdicts ---------------------------------------------------------- */

/* Print one line (file, line, process, message) to g_fail_fd, and end the
 * calling process with exit code 1. Use the macros below. */
void procs_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* Director only: print the reason why this machine cannot run the case, and end
 * the case as skipped. */
void procs_skip(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
/* Add a comment line to the test's report on standard output. */
void procs_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

extern int g_fail_fd;		/* where procs_fail() prints: stderr, unless a
				 * test captures stderr */
#define FAIL(...)	procs_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)	((cond) ? (void)0 : FAIL("not so: %s", #cond))
#define CHECK_MSG(cond, ...)	((cond) ? (void)0 : FAIL(__VA_ARGS__))

/* Fail unless a libfabric call returns 0 or a positive value. */
#define FI(call)							\
	do {								\
		ssize_t fi_ret_ = (call);				\
		if (fi_ret_ < 0)					\
			FAIL("%s: %s", #call, fi_strerror((int)-fi_ret_)); \
	} while (0)

/* One case of a test: a line of the constant table for procs_main(). Of cases
 * that differ in an argument only, run is NULL. */
struct procs_case {
	const char *name;
	void (*run)(void);		/* runs in the director; returning
					 * passes the case */
	int seconds;			/* time limit, multiplied by
					 * UNM_TEST_TIME; 0: 60 seconds */
	void (*run_with)(void *arg);	/* as run, with arg */
	void *arg;
};

#define PROCS_CASE(f, seconds)	{ #f, f, seconds, NULL, NULL }
#define PROCS_WITH(name, seconds, ...)	{ #name, NULL, seconds, __VA_ARGS__ }

/* Run the n cases, or only those named in argv. Returns the exit code of the
 * test: 0 passed, 1 a case failed, 77 all cases were skipped. */
int procs_main(int argc, char **argv, const struct procs_case *cases, int n);
/* Define main(), which runs these cases (each a struct procs_case in braces)
 * and does nothing else. */
#define PROCS_MAIN(...)							\
	static const struct procs_case cases[] = { __VA_ARGS__ };	\
	int main(int argc, char **argv)					\
	{								\
		return procs_main(argc, argv, cases,			\
				  (int)(sizeof(cases) / sizeof(*cases))); \
	}

uint64_t procs_now(void);		/* monotonic clock, microseconds */
void procs_nap(uint64_t us);		/* sleep, microseconds */
/* The number in an environment variable, def if it is unset or empty: for
 * tests that can run longer. */
long procs_number(const char *name, long def);
/* The next of a repeatable sequence of random numbers (31 bits). */
uint32_t procs_random(uint64_t *seed);
/* The board number of this test program. */
int procs_board(void);

/* ---- Shared by director and children ----------------------------------- */

/*
 * Memory that the director and its children share. There is one instance,
 * g_shared, for the life of the test program; it is zeroed before each case.
 */
struct procs_shared {
	_Atomic uint64_t gone;		/* a bit per child index: the child was
					 * ended by proc_kill() */
	_Atomic uint64_t waited;	/* longest time that a child was ready
					 * to run and waited for a processor,
					 * microseconds */
	_Atomic uint64_t word[32];	/* free for use by the case */
	uint8_t bytes[4096];		/* free for use by the case */
};
extern struct procs_shared *g_shared;

/* ---- Children ---------------------------------------------------------- */

/*
 * A child process as its director knows it. Instances are in a table of
 * procs.c, PROCS_MAX for a case; only the director uses them.
 */
struct proc {
	pid_t pid;
	int index;			/* order of start, from 0 */
	int fd;				/* socket to the child; -1 once the
					 * child has ended */
	int status;			/* status of waitpid(), valid if
					 * ended */
	bool ended;			/* the child has been reaped */
};

/* The main function of a child. fd is the socket to the director, arg that of
 * proc_start(); the return value is the child's exit code. */
typedef int (*proc_fn)(int fd, void *arg);
/* Child only: the index of its struct proc. */
int proc_index(void);

/* Fork a child that runs fn. env is NULL or a list of NAME=value strings that
 * ends with NULL, for the environment of this child only. */
struct proc *proc_start(proc_fn fn, void *arg, const char *const *env);
/* Fork a child in the place of p, which has ended: the index is the same. */
struct proc *proc_restart(struct proc *p, proc_fn fn, void *arg,
			  const char *const *env);
/* Empty the table of children, all of which must have ended: the next child
 * has index 0. */
void procs_forget(void);
/* Wait at most ms milliseconds for the end of a child, and reap the child.
 * Returns whether it has ended. */
bool proc_ended(struct proc *p, int ms);
/* Wait for the end of a child, and fail unless its exit code is code. Only the
 * time limit of the case bounds the wait. */
void proc_expect(struct proc *p, int code);
/* Send a child the word 0, then wait for its end, with exit code 0. */
void proc_finish(struct proc *p);
/* Send a signal to a child that has not ended. */
void proc_signal(struct proc *p, int sig);
/* Kill a child by SIGKILL, reap it, and set its bit in g_shared->gone. Returns
 * the time of its end, as procs_now() counts. */
uint64_t proc_kill(struct proc *p);
/* Stop a child by SIGSTOP, and wait until it has stopped. */
void proc_stop(struct proc *p);
/* Wait until a child has stopped itself, at a fault point. */
void proc_await_stop(struct proc *p);

/*
 * Messages between the director and a child, over the socket fd of either side.
 * A message has at most 4 KiB; its boundaries are kept. procs_send() returns
 * false if the other process has ended. procs_recv() returns the bytes
 * received, 0 if the other process has ended, -1 if no message came within ms
 * milliseconds (-1: no limit).
 */
bool procs_send(int fd, const void *msg, size_t len);
ssize_t procs_recv(int fd, void *msg, size_t len, int ms);
/* Send or receive one word. The test fails if the other process has ended. */
void procs_send_word(int fd, uint64_t word);
uint64_t procs_recv_word(int fd);
/* Send a word, then wait for a word and return it: a child that reports and
 * waits, a director that commands and waits. */
uint64_t procs_exchange(int fd, uint64_t word);

/* Director only: collect the addresses of n children, and send the table of all
 * addresses to each child. A child that died before is left out of the table.
 * Each child calls node_join() at the same time. */
void procs_join(struct proc *const *p, int n);

/* Director only: wait until no socket name of this test's board is left, and
 * fail after a minute. Returns the time waited in microseconds, for
 * procs_within_a_second(). */
uint64_t procs_clean(void);

/*
 * Director only: call attempt(arg) once. It returns how many microseconds the
 * action under test took; the test fails if that is more than a second (times
 * UNM_TEST_TIME). The time for which this process or the slowest child was
 * ready to run and waited for a processor does not count, so that a test does
 * not fail because the machine is busy. All children must have ended when
 * attempt() returns.
 */
void procs_within_a_second(uint64_t (*attempt)(void *arg), void *arg);
/* Child only, at its end: record in g_shared->waited how long the child has
 * waited for a processor. Children that return from proc_fn need not call. */
void procs_note_waited(void);

/* The number of lines that /proc/net/unix has of this test's board. The first
 * line is copied to line (len bytes), if line is not NULL. */
int procs_names(char *line, size_t len);
/* The number of descriptors and mappings of unimem segments a process has. */
int procs_segments(pid_t pid);
/* Store the inode numbers of these segments, max at most. Returns how many are
 * stored. */
int procs_inodes(pid_t pid, uint64_t *ino, int max);
/* The number of threads of a process. */
int procs_threads(pid_t pid);

/* ---- Endpoints --------------------------------------------------------- */

/*
 * An enabled RDM endpoint with the objects it needs. A child owns its nodes;
 * one thread uses a node, unless it was opened with NODE_SAFE.
 */
struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	union {				/* address of ep */
		struct hal_addr addr;
		struct hal_addr_host full;	/* with FI_UNIMEM_NET; else
						 * the host is 0 */
	};
	int self, count;		/* index of this node in peer[], and
					 * the length of peer[] */
	fi_addr_t peer[PROCS_MAX];	/* peers by index, set by node_join();
					 * FI_ADDR_NOTAVAIL: the peer died
					 * before it joined */
	uint64_t events;		/* entries read from the queue */
};

/* The call that failed in node_try_open(), and its negative fi_errno. */
struct node_error {
	const char *call;
	int ret;
};

enum node_flags {
	NODE_WAIT = 1 << 0,		/* queue with a wait object */
	NODE_SAFE = 1 << 1,		/* FI_THREAD_SAFE instead of
					 * FI_THREAD_DOMAIN */
	NODE_ONESIDED = 1 << 2,		/* with FI_RMA and FI_ATOMIC */
};

/* Open a node; flags of enum node_flags. Returns 0, or a negative fi_errno with
 * err filled and nothing left open. */
int node_try_open(struct node *n, int flags, struct node_error *err);
/* Open a node; the test fails if that fails. */
void node_open(struct node *n, int flags);
/* Close everything that is open of a node. */
void node_close(struct node *n);
/* Send the address of a node to the director, which runs procs_join(), and
 * insert the addresses of all nodes into the address vector. */
void node_join(struct node *n, int fd);
/* node_open(), then node_join(). */
void node_start(struct node *n, int fd, int flags);
/* Insert one address into the node's vector. */
fi_addr_t node_insert(struct node *n, const struct hal_addr *addr);
/* Allocate dmable memory, which peers access directly. It is freed when the
 * domain is closed. */
void *node_alloc(struct node *n, size_t len);
/* Register memory for remote reads and writes; the offset of its first byte is
 * 0. */
struct fid_mr *node_reg(struct node *n, void *mem, size_t len, uint64_t key);

/* Read one completion. Returns 1 with entry filled, -FI_EAVAIL with error
 * filled, 0 if there is none. */
int node_poll(struct node *n, struct fi_cq_tagged_entry *entry,
	      struct fi_cq_err_entry *error);
/* As node_poll(), but sleep at most ms milliseconds until there is a
 * completion. Needs NODE_WAIT. */
int node_sleep(struct node *n, struct fi_cq_tagged_entry *entry,
	       struct fi_cq_err_entry *error, int ms);
/* Drive progress until the director sends a word, and return the word. The
 * test fails if there is a completion. */
uint64_t node_idle(struct node *n, int fd);
/* Send a word to the director, then node_idle(). */
uint64_t node_report(struct node *n, int fd, uint64_t word);
/* Send to peer[to], or receive from any peer, one message with this tag, and
 * wait for its completion; no other completion may come. node_recv() returns
 * the length of the message. */
void node_send(struct node *n, int to, const void *buf, size_t len,
	       uint64_t tag);
size_t node_recv(struct node *n, void *buf, size_t len, uint64_t tag);

/* Drive progress for some microseconds; nothing may complete. */
void node_quiet(struct node *n, uint64_t us);
/* Wait for the next completion: an error of this operation (flag: FI_SEND or
 * FI_RECV) and kind (err: a positive fi_errno). */
void node_expect_error(struct node *n, void *context, uint64_t flag, int err);

/* ---- Traffic ----------------------------------------------------------- */

#define TRAFFIC_NONE	(UINT64_C(1) << 63)	/* an empty set of peers */

/*
 * The messages of a node. It sends "count" messages to each peer in "to", and
 * receives messages from each peer in "from"; their lengths cycle through
 * lens[]. Every byte, the order and the number of the messages are checked.
 * Sets of peers have a bit for each index of node.peer[].
 */
struct traffic_opt {
	uint64_t count;			/* messages to each peer */
	uint64_t to, from;		/* sets of peers; 0: all other nodes,
					 * TRAFFIC_NONE: no peer */
	uint64_t mortal;		/* peers that may die: their messages
					 * may end early, operations may fail */
	const size_t *lens;		/* message lengths, bytes */
	int nlens;
	int window;			/* sends in flight per peer; 0: 16 */
	bool endless;			/* send until traffic_stop(), instead
					 * of count messages */
	bool sleeps;			/* sleep in fi_cq_sread() when there is
					 * nothing to send; needs NODE_WAIT */
	bool scarce;			/* this node is short of memory or
					 * descriptors: an operation that fails
					 * for that reason counts as the death
					 * of its peer. Sends until all
					 * messages were received. */
};

struct traffic;

/* Start the traffic of a node that has joined. *opt is copied, its lens[] must
 * stay valid until traffic_free(). */
struct traffic *traffic_new(struct node *n, const struct traffic_opt *opt);
/* Read and post a bounded number of operations. Returns false once all messages
 * were sent and received. */
bool traffic_step(struct traffic *t);
/* Cancel the receives that are still posted, and free everything. */
void traffic_free(struct traffic *t);
/* Open an endpoint, join the other processes, exchange all messages, report to
 * the parent, poll until the parent answers, and close the endpoint. */
void traffic_session(int fd, const struct traffic_opt *opt);
/* Overwrite every buffer, as a forked child may do with its copies. */
void traffic_scribble(struct traffic *t);
/* Stop sending, and send each peer the number of its messages. */
void traffic_stop(struct traffic *t);
/* The messages received and sent so far, of all peers. */
uint64_t traffic_received(const struct traffic *t);
uint64_t traffic_sent(const struct traffic *t);
/* The set of peers to which a send has failed for good. */
uint64_t traffic_refused(const struct traffic *t);

#endif /* PROCS_H */
