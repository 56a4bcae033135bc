/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_quiet.c - the path of inline and eager messages: no system call, no
 * allocation, no lock.
 *
 * After a warm-up, 1,000,000 messages of each kind run under a seccomp filter
 * that kills on any system call but exit_group, in both peers, which both poll.
 * malloc() and its kin and the locks of pthread are wrapped and counted.
 *
 * An idle endpoint does make system calls, at intervals: it checks for
 * connections and dead peers every FI_UNIMEM_SERVICE_US, and yields its core
 * after FI_UNIMEM_SPIN polls without an event. These calls are not part of a
 * message and must not happen under the filter, so both parameters are set as
 * high as possible. Then each peer checks for connections once in its life, and
 * first_contact() orders the first messages so that once is enough. (The
 * kernel's vDSO, where it has one, reads the clock without a system call.)
 *
 * The peers never yield their cores, so each gets one, with real-time priority
 * if that is permitted: then fewer than 1,000,000 messages of a kind are a
 * failure. If it is not permitted, and other processes use the cores, a kind of
 * messages ends after PATIENCE and a note gives their number: at least LEAST,
 * unless there is one core only.
 *
 * Cases that must be counted show that the wrappers work: opening an endpoint
 * allocates, and messages under FI_THREAD_SAFE take locks.
 *
 * UNM_TEST_MESSAGES: messages of each kind. UNM_TEST_TRAP=1: name the system
 * call instead of dying of it.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

#ifdef __OPTIMIZE__
#define UNOPTIMIZED	0
#else
#define UNOPTIMIZED	1
#endif

#define WINDOW		64
#define NRECVS		(2 * WINDOW + 2)
#define WARM_UP		20000
#define MAX_LEN		8192
#define PATIENCE	(20 * PROCS_SECOND)
#define MARGIN		(16 * WINDOW)	/* messages, to agree on the end */
#define LEAST		100000
#define CONTROL		10000

/* words shared by the peers */
enum { MET, LEFT, WARM_END, END, MESSAGES, CLOCK_CALLS, TRAPPED, GRANTED };

/* ---- Wrappers ----------------------------------------------------------- */

static unsigned long g_allocs, g_frees, g_locks;

#if !SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

void *malloc(size_t size)
{
	g_allocs++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	g_allocs++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	g_allocs++;
	return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	g_allocs++;
	return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	g_allocs++;
	*out = __libc_memalign(align, size);
	return *out != NULL ? 0 : FI_ENOMEM;
}

void free(void *p)
{
	g_frees++;
	__libc_free(p);
}

#define WRAP_LOCK(name, type)						\
int name(type *lock)							\
{									\
	static int (*next)(type *);					\
									\
	if (next == NULL)						\
		next = (int (*)(type *))dlsym(RTLD_NEXT, #name);	\
	g_locks++;							\
	return next(lock);						\
}

WRAP_LOCK(pthread_mutex_lock, pthread_mutex_t)
WRAP_LOCK(pthread_mutex_trylock, pthread_mutex_t)
WRAP_LOCK(pthread_spin_lock, pthread_spinlock_t)
WRAP_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
WRAP_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
#endif

/* ---- The filter --------------------------------------------------------- */

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	g_shared->word[TRAPPED] = (uint64_t)info->si_syscall;
	syscall(SYS_exit_group, 9);
}

static void close_the_door(void)
{
	bool trap = procs_number("UNM_TEST_TRAP", 0);
	int clock = g_shared->word[CLOCK_CALLS] ? SYS_clock_gettime :
		    SYS_exit_group;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)clock, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, trap ? SECCOMP_RET_TRAP :
			 SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };
	struct sigaction act = {
		.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO,
	};

	sigaction(SIGSYS, &act, NULL);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
}

/* If the kernel has no clock in the vDSO, reading the clock is a system
 * call. */
static int read_clock(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	close_the_door();
	procs_now();
	syscall(SYS_exit_group, 0);
	return 1;
}

static void look_at_the_clock(void)
{
	struct proc *p = proc_start(read_clock, NULL, NULL);

	while (!proc_ended(p, 1000))
		;
	g_shared->word[CLOCK_CALLS] = p->status != 0;
	if (p->status != 0)
		procs_note("the clock is a system call here: allowed");
	procs_forget();
}

/* ---- Traffic ------------------------------------------------------------ */

struct kind {
	const char *name;
	size_t len;
	bool window;
	bool locks;			/* FI_THREAD_SAFE: locks must be
					 * counted */
};

struct quiet {
	struct node n;
	struct fi_context2 rx_context[NRECVS];
	uint8_t rx[NRECVS][MAX_LEN];
	uint8_t tx[2 * WINDOW][MAX_LEN];
	size_t len;
	uint64_t sent, got, tx_done;
	const char *wrong;
};

static void repost(struct quiet *q, int i)
{
	if (fi_trecv(q->n.ep, q->rx[i], MAX_LEN, NULL, FI_ADDR_UNSPEC, 0,
		     ~UINT64_C(0), &q->rx_context[i]) != 0)
		q->wrong = "fi_trecv";
}

/* Under the filter an error can not be reported by a call, so it is noted. */
static void progress(struct quiet *q)
{
	struct fi_cq_tagged_entry e[16];
	ssize_t n = fi_cq_read(q->n.cq, e, 16);

	if (n < 0 && n != -FI_EAGAIN)
		q->wrong = "fi_cq_read";
	for (ssize_t k = 0; k < n; k++) {
		int i = (struct fi_context2 *)e[k].op_context - q->rx_context;
		uint64_t first, last;

		if (e[k].flags & FI_SEND) {
			q->tx_done++;
			continue;
		}
		memcpy(&first, q->rx[i], 8);
		memcpy(&last, q->rx[i] + e[k].len - 8, 8);
		if (e[k].len != q->len || first != q->got || last != q->got ||
		    e[k].tag != q->got)
			q->wrong = "content";
		q->got++;
		repost(q, i);
	}
}

static void send_one(struct quiet *q)
{
	uint8_t *buf = q->tx[q->sent % (2 * WINDOW)];
	ssize_t ret;

	memcpy(buf, &q->sent, 8);
	memcpy(buf + q->len - 8, &q->sent, 8);
	while ((ret = fi_tsend(q->n.ep, buf, q->len, NULL,
			       q->n.peer[!q->n.self], q->sent, buf)) ==
	       -FI_EAGAIN)
		progress(q);
	if (ret != 0)
		q->wrong = "fi_tsend";
	q->sent++;
}

/* The first peer may shorten the run, early enough for the second to notice.
 * which: WARM_END or END */
static uint64_t shorten(struct quiet *q, uint64_t end, uint64_t since,
			int which)
{
	_Atomic uint64_t *last = &g_shared->word[which];

	if (*last != 0)
		return *last;
	if (q->n.self == 0 && g_shared->word[GRANTED] < 2 &&
	    q->sent + 2 * MARGIN < end &&
	    (end - q->sent) % MARGIN == 0 && procs_now() - since > PATIENCE)
		*last = q->sent + MARGIN;
	return end;
}

/* messages: of both peers together. A window begins when the last one has
 * arrived, so that every message finds a posted receive. */
static void run(struct quiet *q, bool window, uint64_t messages, int which)
{
	uint64_t end = q->sent + messages / 2, since = procs_now();
	bool first = q->n.self == 0 || window;

	while (q->sent < end && q->wrong == NULL) {
		uint64_t n = window ? WINDOW : 1;

		for (uint64_t i = 0; first && i < n; i++)
			send_one(q);
		while ((q->got < q->sent + !first || q->tx_done < q->sent) &&
		       q->wrong == NULL)
			progress(q);
		for (uint64_t i = 0; !first && i < n; i++)
			send_one(q);
		end = shorten(q, end, since, which);
	}
	while (q->tx_done < q->sent && q->wrong == NULL)
		progress(q);
}

/* Binds this peer to a core of its own if there are two, with real-time
 * priority if that is permitted. (Round robin, so that other such tests run as
 * well.) */
static void own_core(int index)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t all, one;
	int nth = 0;

	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	if (CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && nth++ == index)
			CPU_SET(i, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	if (sched_setscheduler(0, SCHED_RR, &param) == 0)
		g_shared->word[GRANTED]++;
}

/* Waits until both peers have come here. */
static void meet(int which)
{
	g_shared->word[which]++;
	while (g_shared->word[which] < 2)
		;
}

static uint64_t whole_windows(uint64_t messages)
{
	return (messages + 2 * WINDOW - 1) / (2 * WINDOW) * (2 * WINDOW);
}

/* Each peer checks for connections once: see the comment at the top. */
static void first_contact(struct quiet *q, int fd)
{
	if (q->n.self == 0) {
		send_one(q);		/* connects, does not check */
		procs_exchange(fd, 0);
	} else {
		procs_recv_word(fd);
		while (q->got == 0)	/* accepts at its only check */
			progress(q);
		send_one(q);
		procs_send_word(fd, 0);
	}
	while (q->got == 0)
		progress(q);
}

/* Before the filter, queue as many messages as can ever wait for a peer that
 * does not run: two windows, so that the queue has its final size. First one
 * peer does not run, then the other. */
static void fall_behind(struct quiet *q, int fd)
{
	uint64_t all = q->sent + 2 * WINDOW;

	for (int away = 0; away < 2; away++) {
		if (q->n.self != away) {
			while (q->sent < all)
				send_one(q);
			procs_send_word(fd, 0);
		} else {
			procs_recv_word(fd);
		}
	}
	while ((q->got < all || q->tx_done < all) && q->wrong == NULL)
		progress(q);
}

static uint64_t messages_of(const struct kind *kind)
{
	return kind->locks ? CONTROL :
		(uint64_t)procs_number("UNM_TEST_MESSAGES", 1000000);
}

static int peer(int fd, void *arg)
{
	int index = proc_index();
	struct quiet *q = calloc(1, sizeof(*q));
	const struct kind *kind = arg;
	unsigned long allocs = g_allocs, frees, locks;
	uint64_t messages = messages_of(kind), sent;

	CHECK(q != NULL);
	own_core(index);
	memset(q, 1, sizeof(*q));	/* touch all pages now */
	memset(q, 0, sizeof(*q));
	q->len = kind->len;
	node_open(&q->n, kind->locks ? NODE_SAFE : 0);
	CHECK_MSG(g_allocs >= allocs + 10, "the wrappers do not count");
	node_join(&q->n, fd);
	for (int i = 0; i < NRECVS; i++)
		repost(q, i);
	first_contact(q, fd);
	while (q->tx_done < q->sent)
		progress(q);
	fall_behind(q, fd);
	run(q, kind->window, whole_windows(WARM_UP), WARM_END);
	meet(MET);
	allocs = g_allocs;
	frees = g_frees;
	locks = g_locks;
	close_the_door();
	sent = q->sent;
	run(q, kind->window, whole_windows(messages), END);
	g_shared->word[MESSAGES] = 2 * (q->sent - sent);
	meet(LEFT);			/* both peers stay until here */
	if (q->wrong != NULL) {
		strncpy((char *)g_shared->bytes, q->wrong, 63);
		syscall(SYS_exit_group, 2);
	}
	if (g_allocs != allocs || g_frees != frees)
		syscall(SYS_exit_group, 3);
	syscall(SYS_exit_group, kind->locks ? (g_locks == locks ? 5 : 0) :
		g_locks != locks ? 4 : 0);
	return 1;
}

static void judge(struct proc *p)
{
	while (!proc_ended(p, 1000))
		;
	CHECK_MSG(!WIFSIGNALED(p->status), "child %d died of signal %d%s",
		  p->index, WTERMSIG(p->status), WTERMSIG(p->status) == SIGSYS
		  ? ": a system call; which one: UNM_TEST_TRAP=1" : "");
	switch (WEXITSTATUS(p->status)) {
	case 0:
		return;
	case 2:
		FAIL("child %d: %s", p->index, (char *)g_shared->bytes);
	case 3:
		FAIL("child %d allocated or freed memory", p->index);
	case 4:
		FAIL("child %d took a lock", p->index);
	case 5:
		FAIL("child %d: the wrappers count no locks", p->index);
	case 9:
		FAIL("child %d made system call %d", p->index,
		     (int)g_shared->word[TRAPPED]);
	default:
		FAIL("child %d: exit code %d", p->index,
		     WEXITSTATUS(p->status));
	}
}

static void quiet(void *arg)
{
	const struct kind *kind = arg;
	const char *const env[] = { "FI_UNIMEM_SPIN=1073741824",
				    "FI_UNIMEM_SERVICE_US=1000000000", NULL };
	struct proc *p[2];

	uint64_t messages = messages_of(kind), done, least = messages;
	cpu_set_t all;

	if (SANITIZED)
		procs_skip("a sanitizer makes calls of its own");
	if (UNOPTIMIZED)
		procs_skip("a peer falls further behind than in the warm-up");
	look_at_the_clock();
	for (int i = 0; i < 2; i++)
		p[i] = proc_start(peer, arg, env);
	procs_join(p, 2);
	procs_recv_word(p[0]->fd);	/* first_contact(): sent, did not
					 * check */
	procs_exchange(p[1]->fd, 0);	/* checked, and answered */
	procs_send_word(p[0]->fd, 0);
	procs_recv_word(p[1]->fd);	/* fall_behind(): sent to a peer that
					 * does not run */
	procs_exchange(p[0]->fd, 0);	/* the other direction */
	procs_send_word(p[1]->fd, 0);
	judge(p[0]);
	judge(p[1]);
	done = g_shared->word[MESSAGES];
	procs_note("%s: %llu messages", kind->name, (unsigned long long)done);
	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	if (g_shared->word[GRANTED] < 2 && least > LEAST)
		least = LEAST;
	CHECK_MSG(done >= least || CPU_COUNT(&all) < 2, "%llu messages are too "
		  "few", (unsigned long long)done);
}

PROCS_MAIN(
	PROCS_WITH(inline_pingpong, 90, quiet,
		   &(struct kind){ "inline_pingpong", 8, false, false }),
	PROCS_WITH(inline_window, 90, quiet,
		   &(struct kind){ "inline_window", 16, true, false }),
	PROCS_WITH(eager_pingpong, 90, quiet,
		   &(struct kind){ "eager_pingpong", 1024, false, false }),
	PROCS_WITH(eager_window, 90, quiet,
		   &(struct kind){ "eager_window", 4096, true, false }),
	/* the control of the cases above: here locks have to be counted */
	PROCS_WITH(safe_pingpong, 90, quiet,
		   &(struct kind){ "safe_pingpong", 8, false, true }),
)
