/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs.h - tests with processes of their own: cases with a time limit,
 * children that talk with their director, endpoints, and traffic that checks
 * itself.
 *
 * A test is a table of cases. Each runs in a process of its own, the director,
 * which opens no endpoint and forks the children that do. What is left of a
 * case when it ends or its time is over is killed: its process group, which
 * holds nothing but what it forked.
 *
 * Every test works on a board number of its own (FI_UNIMEM_BOARD), so that its
 * interfaces and names are told from those of other tests on the machine.
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

/* One line that says where and what; ends this process. */
void procs_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* In a director: this case cannot be run here. */
void procs_skip(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
/* A line of the report. */
void procs_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

extern int g_fail_fd;		/* where to: stderr, unless that is kept */
#define FAIL(...)	procs_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)	((cond) ? (void)0 : FAIL("not so: %s", #cond))
#define CHECK_MSG(cond, ...)	((cond) ? (void)0 : FAIL(__VA_ARGS__))

/* A libfabric call that has to succeed. */
#define FI(call)							\
	do {								\
		ssize_t fi_ret_ = (call);				\
		if (fi_ret_ < 0)					\
			FAIL("%s: %s", #call, fi_strerror((int)-fi_ret_)); \
	} while (0)

struct procs_case {
	const char *name;
	void (*run)(void);
	int seconds;			/* limit; 0: 60; times UNM_TEST_TIME */
};

/* Runs the cases, or those named in argv: 0, 1, or 77 if all were skipped. */
int procs_main(int argc, char **argv, const struct procs_case *cases, int n);

uint64_t procs_now(void);		/* microseconds */
void procs_nap(uint64_t us);
/* A number from the environment, for tests that can run longer. */
long procs_number(const char *name, long def);
/* Repeatable random numbers. */
uint32_t procs_random(uint64_t *seed);
int procs_board(void);

/* ---- Shared by director and children ----------------------------------- */

/* Zeroed before each case. */
struct procs_shared {
	_Atomic uint64_t gone;		/* bit per child: dead, ended by us */
	_Atomic uint64_t waited;	/* most that a child waited for a
					 * processor, microseconds */
	_Atomic uint64_t word[32];	/* as the case likes */
	uint8_t bytes[4096];
};
extern struct procs_shared *g_shared;

/* ---- Children ---------------------------------------------------------- */

struct proc {
	pid_t pid;
	int index;			/* order of start, from 0 */
	int fd;				/* to it; -1 once it ended */
	int status;			/* of waitpid */
	bool ended;
};

/* A child's function; its return value is the exit code. fd: to the
 * director. */
typedef int (*proc_fn)(int fd, int index, void *arg);

/* env: NAME=value or NULL, for this child only. */
struct proc *proc_start(proc_fn fn, void *arg, const char *const *env);
/* One more, whose number is that of a child that ended. */
struct proc *proc_restart(struct proc *p, proc_fn fn, void *arg,
			  const char *const *env);
/* Every child has ended: the next one is the first again. */
void procs_forget(void);
/* Its end within ms; false: it lives. */
bool proc_ended(struct proc *p, int ms);
/* It has to end with this exit code (in time: the case's limit is the
 * limit). */
void proc_expect(struct proc *p, int code);
void proc_signal(struct proc *p, int sig);
/* SIGKILL, reaped, its bit set in g_shared->gone; the moment of the end. */
uint64_t proc_kill(struct proc *p);
void proc_stop(struct proc *p);		/* SIGSTOP, and wait for it */

/* Messages of up to 4 KiB, with their bounds. tell: false if it is gone. hear:
 * bytes, 0 if it is gone, -1 if nothing came within ms (-1: for ever). */
bool tell(int fd, const void *msg, size_t len);
ssize_t hear(int fd, void *msg, size_t len, int ms);
/* A word each way; the other must be there. */
void tell_word(int fd, uint64_t word);
uint64_t hear_word(int fd);

/* Director: gather the addresses of children and hand all to each. A child that
 * died first is left out; see node_join(). */
void procs_join(struct proc *const *p, int n);

/* In a director: nothing of a job is left now or in a moment; after how many
 * microseconds. For procs_within_a_second(). */
uint64_t procs_clean(void);

/* In a director: call attempt, which returns how many microseconds the law
 * under test took, and fail if that is more than a second (times
 * UNM_TEST_TIME). The time in which this process or the slowest child was ready
 * to run and waited for a processor does not count, so that a busy machine
 * fails no test: there is one attempt. All children must have ended after it.
 */
void procs_within_a_second(uint64_t (*attempt)(void *arg), void *arg);
/* In a child, at its end: tell the director how long it waited. */
void procs_note_waited(void);

/* Lines /proc/net/unix has of this test's board; the first, if line != NULL. */
int procs_names(char *line, size_t len);
/* Descriptors and mappings of unimem memory a process has. */
int procs_segments(pid_t pid);
/* Inode numbers of such memory that a process has; how many. */
int procs_inodes(pid_t pid, uint64_t *ino, int max);
int procs_threads(pid_t pid);

/* ---- Endpoints --------------------------------------------------------- */

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct hal_addr addr;
	int self, count;		/* place in the table of peers */
	fi_addr_t peer[PROCS_MAX];	/* FI_ADDR_NOTAVAIL: not there */
	uint64_t events;		/* entries read from the queue */
};

/* Where opening failed, if it did. */
struct node_error {
	const char *call;
	int ret;
};

enum node_flags {
	NODE_WAIT = 1 << 0,		/* queue with a wait object */
	NODE_SAFE = 1 << 1,		/* FI_THREAD_SAFE, not _DOMAIN */
	NODE_ONESIDED = 1 << 2,		/* with FI_RMA and FI_ATOMIC */
};

int node_try_open(struct node *n, int flags, struct node_error *err);
void node_open(struct node *n, int flags);
void node_close(struct node *n);
/* Hand in our address, insert everybody's. */
void node_join(struct node *n, int fd);
fi_addr_t node_insert(struct node *n, const struct hal_addr *addr);
/* Memory peers may access without asking (dmable), until the domain closes. */
void *node_alloc(struct node *n, size_t len);
/* A region of all rights, its addresses from 0. */
struct fid_mr *node_reg(struct node *n, void *mem, size_t len, uint64_t key);

/* Next completion: 1 entry, -FI_EAVAIL error, 0 nothing. */
int node_poll(struct node *n, struct fi_cq_tagged_entry *entry,
	      struct fi_cq_err_entry *error);
/* The same, asleep for ms at most. */
int node_sleep(struct node *n, struct fi_cq_tagged_entry *entry,
	       struct fi_cq_err_entry *error, int ms);
/* Keep the endpoint going until the director speaks; its word. */
uint64_t node_idle(struct node *n, int fd);
/* Send or receive one message, with progress, to its completion. */
void node_send(struct node *n, int to, const void *buf, size_t len,
	       uint64_t tag);
size_t node_recv(struct node *n, void *buf, size_t len, uint64_t tag);

/* ---- Traffic ----------------------------------------------------------- */

/*
 * count messages to each peer of to and from each of from, with lengths by
 * turns from a list; every byte, the order and the number are checked. A peer
 * of mortal may die; what it sent is a prefix.
 */
#define TRAFFIC_NONE	(UINT64_C(1) << 63)

struct traffic_opt {
	uint64_t count;
	uint64_t to, from;		/* bits of peers; 0: all others,
					 * TRAFFIC_NONE: nobody */
	uint64_t mortal;
	const size_t *lens;
	int nlens;
	int window;			/* sends under way per peer */
	bool endless;			/* count is a least; until told */
	bool sleeps;			/* in fi_cq_sread, when it has nothing
					 * to do; wants NODE_WAIT */
	bool scarce;			/* we have too little of something: to
					 * be refused for that is a peer's
					 * death; sends until all is heard */
};

struct traffic;

struct traffic *traffic_new(struct node *n, const struct traffic_opt *opt);
/* A bounded step; false: all done. */
bool traffic_step(struct traffic *t);
void traffic_free(struct traffic *t);
/* Overwrite every buffer, as a forked child may do with its copies. */
void traffic_scribble(struct traffic *t);
/* Endless traffic: stop sending, and let every peer know where it ends. */
void traffic_stop(struct traffic *t);
uint64_t traffic_received(const struct traffic *t);
uint64_t traffic_sent(const struct traffic *t);
/* Bits of the peers that take no more from us. */
uint64_t traffic_refused(const struct traffic *t);

#endif /* PROCS_H */
