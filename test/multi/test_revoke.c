/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_revoke.c - fi_close() of a region that peers access directly
 *
 * fi_close() waits for each peer that accesses the memory, also if the peer is
 * stopped, but not for a dead peer. When fi_close() has returned, no peer reads
 * or writes the memory.
 *
 * The owner fills the memory right after fi_close() and checks it later, while
 * writers continue until each was refused. A read that succeeds never returns
 * the owner's fill.
 *
 * UNM_TEST_ROUNDS: regions opened and closed in each case of the second part
 * (50).
 * UNM_TEST_KILLS_EACH: writers killed on each data path (20).
 *
 * The defaults show that the paths work. A guard without its fence is noticed
 * by test_guard, also in make check; here it takes thousands of rounds, which
 * check-full's job revoke runs.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/procs.h"

#define OWNER		0
#define WRITERS		3
#define KEY		5
#define OTHER_KEY	6
#define PART		(272u << 10)	/* of the region, for each writer */
#define LEN		(WRITERS * PART)
#define CLOSED		0xA5		/* no byte of theirs */
#define STOPPED_US	100000
#define CLOSE_MS	300		/* of an owner that gives up */
#define STR_(x)		#x
#define STR(x)		STR_(x)

enum call { PUT, GET, ADD, CALLS };

static uint8_t *g_arena;		/* LEN bytes that all children map */

/* The owner's memory: of its heap, dmable, or mapped by all. */
enum memory { ORDINARY, DMABLE, SHARED };

struct plan {
	enum memory memory;		/* ORDINARY: by cross-memory attach */
	unsigned calls;			/* bits of those to be made */
	size_t len;			/* of each; 0: by turns */
};

/* Results of the processes, in g_shared->word[]. */
#define WROTE(i)	g_shared->word[i]	/* good operations */
#define REFUSED(i)	g_shared->word[8 + (i)]	/* with -FI_EKEYREJECTED */
#define CLOSING		g_shared->word[16]	/* times fi_close() began */
#define OPEN		g_shared->word[17]	/* ... and ended */
#define ENOUGH		g_shared->word[18]
#define THERE(i)	g_shared->word[20 + (i)]	/* it takes part */

/* ---- The owner ---------------------------------------------------------- */

struct owner {
	struct node n;
	struct plan plan;
	uint8_t *mem;
	struct fid_mr *mr;
};

static void owner_poll(struct owner *o)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	CHECK(node_poll(&o->n, &entry, &error) == 0);
}

static void owner_open(struct owner *o)
{
	memset(o->mem, 0, LEN);
	o->mr = node_reg(&o->n, o->mem, LEN, KEY);
}

static int close_once(struct fid_mr *mr)
{
	return fi_close(&mr->fid);
}

static void owner_close(struct owner *o, int (*close_region)(struct fid_mr *))
{
	atomic_fetch_add(&CLOSING, 1);
	FI(close_region(o->mr));
	atomic_fetch_add(&OPEN, 1);
	memset(o->mem, CLOSED, LEN);
}

static void owner_check(const struct owner *o, uint64_t round)
{
	size_t i = 0;

	if (o->mem[0] == CLOSED && memcmp(o->mem, o->mem + 1, LEN - 1) == 0)
		return;
	while (i < LEN && o->mem[i] == CLOSED)
		i++;
	FAIL("round %" PRIu64 ": byte %zu is 0x%02x after fi_close()", round,
	     i, o->mem[i]);
}

/* flags: of its node, besides NODE_ONESIDED. */
static void owner_begin_with(struct owner *o, const struct plan *plan,
			     int flags)
{
	memset(o, 0, sizeof(*o));
	o->plan = *plan;
	node_open(&o->n, NODE_ONESIDED | flags);
	o->mem = plan->memory == DMABLE ? node_alloc(&o->n, LEN) :
		plan->memory == SHARED ? g_arena : aligned_alloc(4096, LEN);
	CHECK(o->mem != NULL);
	memcpy(g_shared->bytes, &o->n.addr, sizeof(o->n.addr));
}

static void owner_begin(struct owner *o, const struct plan *plan)
{
	owner_begin_with(o, plan, 0);
}

static void owner_end(struct owner *o)
{
	node_close(&o->n);
	if (o->plan.memory == ORDINARY)
		free(o->mem);
}

/* ---- Writers ------------------------------------------------------------ */

struct writer {
	struct node n;
	int index;
	fi_addr_t to;
	uint64_t count;
	uint8_t *buf;
};

static void writer_begin(struct writer *w, int fd)
{
	struct hal_addr addr;

	memset(w, 0, sizeof(*w));
	w->index = proc_index() - 1;
	w->buf = malloc(PART);
	CHECK(w->buf != NULL);
	node_open(&w->n, NODE_ONESIDED);
	procs_exchange(fd, 0);
	memcpy(&addr, g_shared->bytes, sizeof(addr));
	w->to = node_insert(&w->n, &addr);
}

static void writer_end(struct writer *w)
{
	node_close(&w->n);
	free(w->buf);
}

/* 0, or a positive fi_errno. */
static int writer_await(struct writer *w)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	while ((ret = node_poll(&w->n, &entry, &error)) == 0)
		;
	return ret > 0 ? 0 : error.err;
}

static int writer_call(struct writer *w, enum call call, size_t len,
		       uint64_t key)
{
	uint64_t at = (uint64_t)w->index * PART, one = 1, was = 0;
	struct fid_ep *ep = w->n.ep;
	ssize_t ret;
	int err;

	if (call == PUT)
		memset(w->buf, (int)(w->count % CLOSED), len);
	do {
		ret = call == PUT ? fi_write(ep, w->buf, len, NULL, w->to, at,
					     key, w) :
			call == GET ? fi_read(ep, w->buf, len, NULL, w->to, at,
					      key, w) :
			fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, w->to,
					at, key, FI_UINT64, FI_SUM, w);
		if (ret == -FI_EAGAIN)
			fi_cq_read(w->n.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	FI(ret);
	err = writer_await(w);
	for (size_t i = 0; call == GET && err == 0 && i < len; i++)
		CHECK_MSG(w->buf[i] != CLOSED, "read after fi_close(), byte "
			  "%zu of %zu", i, len);
	CHECK_MSG(call != ADD || err != 0 || was >> 56 != CLOSED,
		  "atomic after fi_close()");
	return err;
}

/* One operation; is the region there? */
static bool writer_step(struct writer *w, const struct plan *plan)
{
	static const size_t lens[] = { 8, 1000, 20000, 8, 64, PART, 4096 };
	uint64_t i = w->count++;
	enum call call = i % CALLS;
	int err;

	while (!(plan->calls >> call & 1))
		call = (call + 1) % CALLS;
	err = writer_call(w, call, plan->len != 0 ? plan->len : lens[i % 7],
			  KEY);
	CHECK_MSG(err == 0 || err == FI_EKEYREJECTED, "%s", fi_strerror(err));
	atomic_fetch_add(err == 0 ? &WROTE(w->index) : &REFUSED(w->index), 1);
	return err == 0;
}

/* ---- Stopped inside ----------------------------------------------------- */

static int closes_once(int fd, void *arg)
{
	static uint8_t other[4096];
	struct fid_mr *mr;
	struct owner o;

	owner_begin(&o, arg);
	owner_open(&o);
	mr = node_reg(&o.n, other, sizeof(other), OTHER_KEY);
	node_report(&o.n, fd, 0);
	owner_close(&o, close_once);
	node_report(&o.n, fd, 0);	/* the other peers are refused */
	owner_check(&o, 0);
	FI(fi_close(&mr->fid));
	owner_end(&o);
	return 0;
}

static int goes_inside(int fd, void *arg)
{
	struct writer w;

	writer_begin(&w, fd);
	while (writer_step(&w, arg))
		;
	node_report(&w.n, fd, 0);
	writer_end(&w);
	return 0;
}

/* It asks for memory of another region all the time. */
static int is_served(int fd, void *arg)
{
	struct writer w;
	uint64_t word;

	(void)arg;
	writer_begin(&w, fd);
	w.index = 0;			/* that one is short */
	while (procs_recv(fd, &word, sizeof(word), 0) < 0) {
		CHECK(writer_call(&w, GET, 8, OTHER_KEY) == 0);
		atomic_fetch_add(&WROTE(2), 1);
	}
	writer_end(&w);
	return 0;
}

static struct proc *start_writer(proc_fn fn, const struct plan *plan,
				 const char *const *env)
{
	struct proc *p = proc_start(fn, (void *)plan, env);

	procs_recv_word(p->fd);
	procs_send_word(p->fd, 0);
	return p;
}

/* Where cross-memory attach is denied, nobody is inside ordinary memory. A case
 * that leaves such a plan out prints the line of a skipped case. */
static bool goes(const struct plan *plan)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return plan->memory != ORDINARY ||
		process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

static void skip_ordinary(void)
{
	printf("skip ordinary_memory (no cross-memory attach)\n");
	fflush(stdout);
}

#ifdef HAL_FAULT_POINTS
static void stopped(const struct plan *plan, bool dies)
{
	const char *const asks[] = { "FI_UNIMEM_DIRECT=0", NULL };
	const char *const stops[] = { "FI_UNIMEM_POINT=inside:3:stop", NULL };
	struct proc *owner = proc_start(closes_once, (void *)plan, NULL);
	struct proc *victim, *other;
	uint64_t was;

	procs_recv_word(owner->fd);
	victim = start_writer(goes_inside, plan, stops);
	other = start_writer(is_served, plan, asks);
	proc_await_stop(victim);
	CLOSING = OPEN = 0;
	procs_send_word(owner->fd, 0);
	while (CLOSING == 0)
		procs_nap(100);
	was = WROTE(2);
	procs_nap(STOPPED_US);
	CHECK_MSG(OPEN == 0, "fi_close() did not wait for who is inside");
	while (WROTE(2) < was + 10)
		procs_nap(100);
	proc_signal(victim, dies ? SIGKILL : SIGCONT);
	procs_recv_word(owner->fd);
	if (!dies)
		procs_recv_word(victim->fd);
	procs_send_word(other->fd, 0);
	proc_expect(other, 0);		/* while there is an owner to ask */
	proc_finish(owner);
	if (!dies)
		proc_finish(victim);
	while (!proc_ended(victim, 1000))
		;
	procs_forget();
}

/* ---- Stopped inside for too long ---------------------------------------- */

/* Lines that name a peer in what fi_close() said. */
static int lines_of(const char *path)
{
	char line[512];
	FILE *in = fopen(path, "r");
	int n = 0;

	CHECK(in != NULL);
	while (fgets(line, sizeof(line), in) != NULL)
		n += strstr(line, "fi_close() gives up") != NULL &&
			strstr(line, "interface") != NULL;
	fclose(in);
	return n;
}

/* Close a region whose last access ends, which may take longer than the bound:
 * the peer has to get a processor first. */
static int close_late(struct fid_mr *mr)
{
	int ret;

	do
		ret = fi_close(&mr->fid);
	while (ret == -FI_EBUSY);
	return ret;
}

static int closes_in_time(int fd, void *arg)
{
	char path[] = "/tmp/unimem-revoke-XXXXXX";
	int err, kept = dup(STDERR_FILENO);
	struct owner o;
	uint64_t since;

	owner_begin(&o, arg);
	owner_open(&o);
	node_report(&o.n, fd, 0);
	err = mkstemp(path);
	CHECK(err >= 0 && kept >= 0);
	g_fail_fd = kept;
	dup2(err, STDERR_FILENO);
	since = procs_now();
	CHECK(fi_close(&o.mr->fid) == -FI_EBUSY);
	CHECK(procs_now() - since >= CLOSE_MS * 1000);
	CHECK(lines_of(path) == 1);
	unlink(path);
	node_report(&o.n, fd, 0);	/* another peer uses it meanwhile */
	owner_close(&o, close_late);
	node_report(&o.n, fd, 0);
	owner_check(&o, 0);
	owner_end(&o);
	close(err);
	return 0;
}

/* Puts to the region until it hears from the director; then it must be refused
 * at last. */
static int uses_it(int fd, void *arg)
{
	struct writer w;
	uint64_t word;

	writer_begin(&w, fd);
	for (int i = 0; i < 100; i++)
		CHECK(writer_step(&w, arg));
	procs_send_word(fd, 0);
	while (procs_recv(fd, &word, sizeof(word), 0) < 0)
		writer_step(&w, arg);
	CHECK(!writer_step(&w, arg));
	writer_end(&w);
	return 0;
}

/* Another thread of the owner closes another region. */
static void *closes_other(void *arg)
{
	struct fid_mr *mr = arg;

	CHECK(fi_close(&mr->fid) == -FI_EBUSY);
	return NULL;
}

/* One thread gives up while another one still waits for the same peer: the
 * second thread must not take that for the end of the peer's access. */
static int closes_two(int fd, void *arg)
{
	static uint8_t other[4096];
	pthread_t thread;
	struct fid_mr *mr;
	struct owner o;

	owner_begin_with(&o, arg, NODE_SAFE);
	owner_open(&o);
	mr = node_reg(&o.n, other, sizeof(other), OTHER_KEY);
	node_report(&o.n, fd, 0);
	CHECK(pthread_create(&thread, NULL, closes_other, mr) == 0);
	procs_nap(CLOSE_MS * 1000 / 2);
	CHECK(fi_close(&o.mr->fid) == -FI_EBUSY);
	pthread_join(thread, NULL);
	node_report(&o.n, fd, 0);	/* the access ends */
	FI(close_late(mr));
	owner_close(&o, close_late);
	node_report(&o.n, fd, 0);
	owner_check(&o, 0);
	owner_end(&o);
	return 0;
}

/* It gets a remote key of the other region. */
static int asks_once(int fd, void *arg)
{
	struct writer w;

	(void)arg;
	writer_begin(&w, fd);
	w.index = 0;			/* that one is short */
	CHECK(writer_call(&w, GET, 8, OTHER_KEY) == 0);
	node_report(&w.n, fd, 0);
	writer_end(&w);
	return 0;
}

static void two_close(const struct plan *plan)
{
	const char *const bound[] = { "FI_UNIMEM_CLOSE_MS=" STR(CLOSE_MS),
				      NULL };
	const char *const stops[] = { "FI_UNIMEM_POINT=inside:3:stop", NULL };
	struct proc *owner = proc_start(closes_two, (void *)plan, bound);
	struct proc *victim, *other;

	procs_recv_word(owner->fd);
	other = start_writer(asks_once, plan, NULL);
	procs_recv_word(other->fd);
	victim = start_writer(goes_inside, plan, stops);
	proc_await_stop(victim);
	procs_exchange(owner->fd, 0);	/* -FI_EBUSY, twice */
	proc_signal(victim, SIGCONT);
	procs_exchange(owner->fd, 0);	/* closed, both */
	procs_recv_word(victim->fd);
	proc_finish(owner);
	proc_finish(victim);
	proc_finish(other);
	procs_forget();
}

static void too_long(const struct plan *plan, bool dies)
{
	const char *const bound[] = { "FI_UNIMEM_CLOSE_MS=" STR(CLOSE_MS),
				      NULL };
	const char *const stops[] = { "FI_UNIMEM_POINT=inside:3:stop", NULL };
	struct proc *owner = proc_start(closes_in_time, (void *)plan, bound);
	struct proc *victim, *other;

	procs_recv_word(owner->fd);
	victim = start_writer(goes_inside, plan, stops);
	proc_await_stop(victim);
	procs_exchange(owner->fd, 0);	/* -FI_EBUSY */
	other = start_writer(uses_it, plan, NULL);
	procs_recv_word(other->fd);
	proc_signal(victim, dies ? SIGKILL : SIGCONT);
	if (dies)
		while (!proc_ended(victim, 1000))
			;
	procs_exchange(owner->fd, 0);	/* closed */
	proc_finish(other);
	if (!dies)
		procs_recv_word(victim->fd);
	proc_finish(owner);
	if (!dies)
		proc_finish(victim);
	procs_forget();
}

static void inside(bool dies)
{
	static const struct plan plans[] = {
		{ DMABLE, 1 << PUT, 8 }, { DMABLE, 1 << PUT, PART },
		{ DMABLE, 1 << GET, 8 }, { DMABLE, 1 << GET, PART },
		{ DMABLE, 1 << ADD, 8 }, { ORDINARY, 1 << PUT, 8 },
		{ SHARED, 1 << PUT, 8 }, { SHARED, 1 << GET, PART },
		{ SHARED, 1 << ADD, 8 },
		{ ORDINARY, 1 << PUT, PART }, { ORDINARY, 1 << GET, PART },
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		if (!goes(&plans[i])) {
			skip_ordinary();
			continue;
		}
		stopped(&plans[i], dies);
		n++;
	}
	procs_note("%d processes stopped inside", n);
}

static void stopped_inside(void)
{
	inside(false);
}

static void killed_inside(void)
{
	inside(true);
}

static void stopped_too_long(void)
{
	static const struct plan plans[] = {
		{ DMABLE, 1 << PUT, 8 }, { ORDINARY, 1 << GET, PART },
	};

	for (int i = 0; i < 4; i++) {
		if (goes(&plans[i / 2]))
			too_long(&plans[i / 2], i & 1);
		else
			skip_ordinary();
	}
}

static void two_too_long(void)
{
	static const struct plan plan = { DMABLE, 1 << PUT, 8 };

	two_close(&plan);
}
#else
static void stopped_inside(void)
{
	(void)closes_once;
	(void)goes_inside;
	(void)is_served;
	procs_skip("no fault points in this build (--enable-fault-points)");
}

#define killed_inside stopped_inside
#define stopped_too_long stopped_inside
#define two_too_long stopped_inside
#endif

/* ---- Over and over ------------------------------------------------------- */

static int writes_on(int fd, void *arg)
{
	struct writer w;

	writer_begin(&w, fd);
	THERE(w.index) = 1;
	while (!ENOUGH)
		if (writer_step(&w, arg) && w.count % 8 == 0)
			sched_yield();	/* or the owner hardly runs */
	THERE(w.index) = 0;
	procs_exchange(fd, 0);
	writer_end(&w);
	return 0;
}

/* Until each writer was refused. */
static void each_refused(struct owner *o)
{
	uint64_t was[WRITERS];

	for (int i = 0; i < WRITERS; i++)
		was[i] = REFUSED(i);
	for (int i = 0; i < WRITERS; ) {
		if (!THERE(i) || REFUSED(i) != was[i])
			i++;
		else
			owner_poll(o);
	}
}

/* Until each gets on without us: the first of two operations may have been
 * answered before we stopped to look. */
static void each_inside(struct owner *o)
{
	for (int i = 0; i < WRITERS; i++) {
		bool gets_on = false;

		while (THERE(i) && !gets_on) {
			uint64_t was = WROTE(i);

			for (int k = 0; k < 4 && WROTE(i) < was + 2; k++)
				sched_yield();
			gets_on = WROTE(i) >= was + 2;
			for (int k = 0; k < 20 && !gets_on; k++)
				owner_poll(o);
		}
	}
}

static int opens_and_closes(int fd, void *arg)
{
	uint64_t word, round = 0, seed = 7;
	struct owner o;

	owner_begin(&o, arg);
	procs_send_word(fd, 0);
	for (; procs_recv(fd, &word, sizeof(word), 0) < 0; round++) {
		owner_open(&o);
		each_inside(&o);
		for (uint32_t k = procs_random(&seed) % 8; k != 0; k--)
			sched_yield();
		owner_close(&o, close_once);
		each_refused(&o);
		owner_check(&o, round);
		g_shared->word[19] = round + 1;
	}
	ENOUGH = 1;
	procs_send_word(fd, 0);
	/* a writer may still wait for an answer */
	node_idle(&o.n, fd);
	owner_end(&o);
	return 0;
}

/* Starts the owner and the writers. From then on each round waits for good
 * operations of each writer. */
static struct proc *start_rounds(struct proc **w, const struct plan *plan)
{
	struct proc *owner = proc_start(opens_and_closes, (void *)plan, NULL);

	procs_recv_word(owner->fd);
	for (int i = 0; i < WRITERS; i++)
		w[i] = start_writer(writes_on, plan, NULL);
	for (int i = 0; i < WRITERS; i++)
		while (!THERE(i))
			procs_nap(100);
	return owner;
}

/* Until as many rounds more were closed, and one for the round that the owner
 * is in. */
static void await_rounds(struct proc *owner, uint64_t rounds)
{
	uint64_t last = g_shared->word[19] + rounds + 1;

	while (g_shared->word[19] < last)
		CHECK_MSG(!proc_ended(owner, 1), "the owner: %d",
			  owner->status);
}

static void end_rounds(struct proc *owner, struct proc **w)
{
	await_rounds(owner, 1);
	for (int i = 0; i < WRITERS; i++)
		CHECK_MSG(WROTE(i) > 0, "writer %d did nothing", i);
	procs_exchange(owner->fd, 0);
	for (int i = 0; i < WRITERS; i++)
		procs_recv_word(w[i]->fd);
	proc_finish(owner);
	for (int i = 0; i < WRITERS; i++)
		proc_finish(w[i]);
	procs_note("%" PRIu64 " regions closed, %" PRIu64 " good operations",
		   g_shared->word[19], WROTE(0) + WROTE(1) + WROTE(2));
}

static void rounds(void *arg)
{
	const struct plan *plan = arg;
	struct proc *w[WRITERS], *owner;

	if (!goes(plan))
		procs_skip("no cross-memory attach here");
	owner = start_rounds(w, plan);
	await_rounds(owner, (uint64_t)procs_number("UNM_TEST_ROUNDS", 50));
	end_rounds(owner, w);
}

/* A writer is killed at any moment, and another one comes. */
static void killed_writers(void)
{
	static const struct plan plans[] = {
		{ DMABLE, 1 << PUT | 1 << GET | 1 << ADD, 0 },
		{ ORDINARY, 1 << PUT | 1 << GET, 0 },
		{ SHARED, 1 << PUT | 1 << GET | 1 << ADD, 0 },
	};
	long kills = procs_number("UNM_TEST_KILLS_EACH", 20);
	uint64_t seed = 11;

	for (int k = 0; k < 3; k++) {
		struct proc *w[WRITERS], *owner;

		if (!goes(&plans[k])) {
			skip_ordinary();
			continue;
		}
		owner = start_rounds(w, &plans[k]);
		for (long n = 0; n < kills; n++) {
			int i = (int)n % WRITERS;

			procs_nap(procs_random(&seed) % 5000);
			proc_stop(w[i]);
			proc_kill(w[i]);
			THERE(i) = 0;
			await_rounds(owner, 1);
			proc_restart(w[i], writes_on, (void *)&plans[k], NULL);
			procs_recv_word(w[i]->fd);
			procs_send_word(w[i]->fd, 0);
			while (!THERE(i))
				procs_nap(100);
		}
		end_rounds(owner, w);
		procs_forget();
		memset(g_shared, 0, sizeof(*g_shared));
	}
	procs_note("%ld writers killed", 3 * kills);
}

static const struct procs_case cases[] = {
	PROCS_CASE(stopped_inside, 100),
	PROCS_CASE(killed_inside, 100),
	PROCS_CASE(stopped_too_long, 100),
	PROCS_CASE(two_too_long, 100),
	PROCS_WITH(rounds_through_windows, 300, rounds, &(struct plan){
		   DMABLE, 1 << PUT | 1 << GET | 1 << ADD, 0 }),
	PROCS_WITH(rounds_in_shared_memory, 300, rounds, &(struct plan){
		   SHARED, 1 << PUT | 1 << GET | 1 << ADD, 0 }),
	PROCS_WITH(rounds_by_attach, 300, rounds, &(struct plan){
		   ORDINARY, 1 << PUT | 1 << GET, 0 }),
	PROCS_CASE(killed_writers, 100),
};

int main(int argc, char **argv)
{
	/* MAP_SHARED, and a file that has no name */
	g_arena = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED |
		       MAP_ANONYMOUS, -1, 0);
	CHECK(g_arena != MAP_FAILED);
	/* ordinary memory by attach, whether its owner polls or not */
	setenv("FI_UNIMEM_PROMPT_US", "0", 1);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
