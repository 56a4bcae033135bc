/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_queue_all.c - remote enqueue with all parts: eight producers on two
 * boards, a queue with buffers of 64 words, consumers that pause at random, and
 * producers that are killed and replaced
 *
 * Each word accepted from a surviving producer must be delivered once and in
 * order; of a killed producer the first words. The quota is never exceeded, and
 * all of it can be used.
 *
 * UNM_TEST_WORDS: words in all (200,000).
 * UNM_TEST_KILLED: producers killed (8).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/gsas_processes.h"

#define PRODUCERS	8
#define BUFFER		64		/* words */
#define QUOTA		1024
#define LIVES		1024		/* processes that produced, at most */
#define TAKERS		4		/* threads that take out, at most */

/* A word: the life of its producer, and its number. */
#define WORD(life, number)	((uint64_t)(life) << 40 | (number))
#define LIFE(word)		((word) >> 40)
#define NUMBER(word)		((word) & ((UINT64_C(1) << 40) - 1))

struct life {
	_Atomic uint64_t accepted;	/* words that gsas_enqueue() accepted;
					 * written after the call */
	_Atomic uint64_t came;		/* words taken out */
	_Atomic uint64_t done;		/* it has put in all */
	uint64_t killed, base;		/* base: of its marks */
};

struct shared {
	struct life life[LIVES];
	_Atomic uint64_t lives;
	_Atomic uint64_t accepted, came, refused;
	_Atomic uint64_t stop;		/* nothing more will come */
	_Atomic uint64_t full;		/* producers that were refused often */
	uint64_t marks;			/* in use */
};

static struct shared *g_all;
static _Atomic uint8_t *g_mark;		/* a word came: by base and number */

/* ---- Producers ----------------------------------------------------------- */

struct orders {
	gsas_addr queue;
	uint64_t life, words;
};

static void producer_open(struct gsas_queue_handle **q, gsas_addr addr)
{
	int ret;

	/* those that were killed may not be known to be gone */
	while ((ret = gsas_queue_open(addr, q)) == -EDQUOT)
		sched_yield();
	GSAS(ret);
}

/* Half of them leave at once: what was accepted comes all the same. */
static int producer(int fd, void *arg)
{
	struct orders o = *(struct orders *)arg;
	struct life *life = &g_all->life[o.life];
	struct gsas_queue_handle *q;
	int ret;

	producer_open(&q, o.queue);
	for (uint64_t i = 0; i < o.words;) {
		ret = gsas_enqueue(q, WORD(o.life, i));
		if (ret == -FI_EAGAIN) {
			g_all->refused++;
			sched_yield();
			continue;
		}
		GSAS(ret);
		life->accepted = ++i;
		g_all->accepted++;
	}
	life->done = 1;
	if (o.life % 2 == 0)
		return 0;
	procs_recv_word(fd);
	gsas_queue_close(q);
	return 0;
}

/* Until nobody gets another word in. */
static int filler(int fd, void *arg)
{
	int index = proc_index();
	struct gsas_queue_handle *q;
	gsas_addr queue = *(gsas_addr *)arg;
	int ret, often = 0;

	producer_open(&q, queue);
	while (!g_all->stop) {
		ret = gsas_enqueue(q, WORD(index, 0));
		if (ret == 0)
			g_all->accepted++;
		else if (ret != -FI_EAGAIN)
			FAIL("gsas_enqueue: %d", ret);
		else if (++often == 1000)
			g_all->full++;
	}
	procs_recv_word(fd);
	gsas_queue_close(q);
	return 0;
}

/* ---- Those who take out -------------------------------------------------- */

struct taker {
	pthread_t thread;
	gsas_addr queue;
	uint64_t seed;
	bool alone;
};

static void check_word(uint64_t word, bool alone, uint64_t *last)
{
	uint64_t life = LIFE(word), number = NUMBER(word);
	struct life *l = &g_all->life[life < LIVES ? life : 0];

	CHECK_MSG(life < g_all->lives, "%" PRIx64 " was never put in", word);
	CHECK_MSG(atomic_fetch_add(&g_mark[l->base + number], 1) == 0,
		  "word %" PRIu64 " of %" PRIu64 " twice", number, life);
	if (alone)
		CHECK_MSG(number == l->came, "word %" PRIu64 " of %" PRIu64
			  " came, not %" PRIu64, number, life,
			  (uint64_t)l->came);
	else
		CHECK_MSG(number >= last[life], "word %" PRIu64 " of %" PRIu64
			  " came after %" PRIu64, number, life, last[life]);
	last[life] = number + 1;
	l->came++;
	g_all->came++;
}

/* Stops now and then, so that the queue fills and drains. */
static void stall(uint64_t *seed)
{
	uint32_t r = procs_random(seed) % 4096;

	if (r < 2)
		procs_nap(2000);
	else if (r < 64)
		sched_yield();
}

static void *take_out(void *arg)
{
	struct taker *t = arg;
	struct gsas_queue_handle *q;
	uint64_t word, *last = calloc(LIVES, sizeof(*last));
	bool stop;
	int ret;

	CHECK(last != NULL);
	GSAS(gsas_queue_open(t->queue, &q));
	do {
		stop = g_all->stop;
		while ((ret = gsas_dequeue(q, &word)) == 0) {
			check_word(word, t->alone, last);
			stall(&t->seed);
		}
		CHECK_MSG(ret == -FI_EAGAIN, "gsas_dequeue: %d", ret);
		sched_yield();
	} while (!stop);
	gsas_queue_close(q);
	free(last);
	return NULL;
}

static int consumer(int fd, void *arg)
{
	int index = proc_index();
	struct taker t[TAKERS];
	gsas_addr queue;
	int n = *(int *)arg;

	GSAS(gsas_queue_create(QUOTA, BUFFER, board_number(0), GSAS_WORLD, NULL,
			       &queue));
	procs_send_word(fd, queue);
	for (int i = 0; i < n; i++) {
		t[i].queue = queue;
		t[i].seed = (uint64_t)(index + i);
		t[i].alone = n == 1;
		CHECK(pthread_create(&t[i].thread, NULL, take_out, &t[i]) == 0);
	}
	for (int i = 0; i < n; i++)
		CHECK(pthread_join(t[i].thread, NULL) == 0);
	GSAS(gsas_free(queue));
	return 0;
}

/* ---- Directing ----------------------------------------------------------- */

static void *shared_bytes(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED |
			MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

/* A new life of a producer, of so many words. */
static struct orders *new_life(gsas_addr queue, uint64_t words)
{
	static struct orders o;

	o.queue = queue;
	o.words = words;
	o.life = g_all->lives;
	CHECK(o.life < LIVES);
	g_all->life[o.life].base = g_all->marks;
	g_all->marks += words + 1;
	g_all->lives++;
	return &o;
}

struct line {				/* of producers, one after another */
	struct proc *p;
	uint64_t life, words;
};

static void kill_one(struct line *line, gsas_addr queue, int board)
{
	struct life *life = &g_all->life[line->life];
	struct orders *o;

	if (life->done)
		return;			/* it was quicker */
	proc_kill(line->p);
	life->killed = 1;
	line->words -= life->accepted;
	o = new_life(queue, line->words);
	line->life = o->life;
	proc_restart(line->p, producer, o, board_env(board));
}

static int count_done(const struct line *line)
{
	int n = 0;

	for (int i = 0; i < PRODUCERS; i++)
		n += g_all->life[line[i].life].done != 0;
	return n;
}

/* Kill some of them on the way; until each has put in all of its words. */
static void produce(struct line *line, struct proc *taker, gsas_addr queue,
		    uint64_t words)
{
	uint64_t kills = (uint64_t)procs_number("UNM_TEST_KILLED", 8);
	uint64_t killed = 0, seed = 1;

	while (count_done(line) < PRODUCERS) {
		int i = (int)(procs_random(&seed) % PRODUCERS);

		if (killed < kills && g_all->accepted * (kills + 1) >=
		    words * (killed + 1)) {
			killed++;
			kill_one(&line[i], queue, i % 2);
		}
		for (i = 0; i < PRODUCERS; i++)
			CHECK(!proc_ended(line[i].p, 0) ||
			      line[i].p->status == 0);
		CHECK(!proc_ended(taker, 0));
		procs_nap(500);
	}
	for (int i = 0; i < PRODUCERS; i++) {
		if (line[i].life % 2 != 0)
			procs_send_word(line[i].p->fd, 0);
		proc_expect(line[i].p, 0);
	}
}

/* Check that all words of surviving producers, and the first words of killed
 * producers, were delivered. */
static bool all_came(void)
{
	for (uint64_t i = 0; i < g_all->lives; i++) {
		struct life *l = &g_all->life[i];

		if (!l->killed && l->came < l->accepted)
			return false;
	}
	return true;
}

static void check_lives(void)
{
	uint64_t killed = 0, lost = 0;

	for (uint64_t i = 0; i < g_all->lives; i++) {
		struct life *l = &g_all->life[i];

		/* A producer may be killed before it has counted its last
		 * word. */
		CHECK_MSG(l->came <= l->accepted + l->killed, "%" PRIu64
			  " words of %" PRIu64 " came", l->came, l->accepted);
		CHECK(l->killed || l->came == l->accepted);
		for (uint64_t n = 0; n < l->came; n++)
			CHECK_MSG(g_mark[l->base + n] == 1, "word %" PRIu64
				  " of %" PRIu64 " did not come", n, i);
		killed += l->killed;
		lost += l->came < l->accepted ? l->accepted - l->came : 0;
	}
	procs_note("%" PRIu64 " words, %" PRIu64 " times no room, %" PRIu64
		   " producers killed and %" PRIu64 " words of theirs lost",
		   (uint64_t)g_all->came, (uint64_t)g_all->refused, killed,
		   lost);
}

static void set_up(struct proc *service[2], uint64_t words)
{
	g_all = shared_bytes(sizeof(*g_all));
	/* each kill may leave marks as long as a producer's share unused */
	g_mark = shared_bytes(words * (LIVES / PRODUCERS + 1) + LIVES);
	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
}

static void run(void *takers)
{
	uint64_t words = (uint64_t)procs_number("UNM_TEST_WORDS", 200000);
	struct proc *service[2], *taker;
	struct line line[PRODUCERS];
	gsas_addr queue;

	set_up(service, words);
	taker = proc_start(consumer, takers, board_env(0));
	queue = procs_recv_word(taker->fd);
	for (int i = 0; i < PRODUCERS; i++) {
		struct orders *o = new_life(queue, words / PRODUCERS);

		line[i].life = o->life;
		line[i].words = o->words;
		line[i].p = proc_start(producer, o, board_env(i % 2));
	}
	produce(line, taker, queue, words);
	while (!all_came()) {
		CHECK(!proc_ended(taker, 0));
		procs_nap(500);
	}
	g_all->stop = 1;
	proc_expect(taker, 0);
	check_lives();
	/* takers stop for milliseconds: the quota was reached */
	CHECK(words < 20 * QUOTA || g_all->refused > 0);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

/* ---- The quota ----------------------------------------------------------- */

static int owner(int fd, void *arg)
{
	uint32_t quota = *(uint32_t *)arg;
	struct gsas_queue_handle *q;
	uint64_t word, n = 0;
	gsas_addr queue;

	GSAS(gsas_queue_create(quota, BUFFER, board_number(0), GSAS_WORLD, NULL,
			       &queue));
	procs_exchange(fd, queue);
	GSAS(gsas_queue_open(queue, &q));
	while (gsas_dequeue(q, &word) == 0)
		n++;
	procs_exchange(fd, n);
	gsas_queue_close(q);
	GSAS(gsas_free(queue));
	return 0;
}

/* Nobody takes out: all of the quota is used, and no word more. */
static void quota(void)
{
	struct proc *service[2], *p[PRODUCERS], *taker;
	uint32_t words = 10 * BUFFER + 7;
	gsas_addr queue;

	set_up(service, 0);
	taker = proc_start(owner, &words, board_env(0));
	queue = procs_recv_word(taker->fd);
	for (int i = 0; i < PRODUCERS; i++)
		p[i] = proc_start(filler, &queue, board_env(i % 2));
	while (g_all->accepted < words || g_all->full < PRODUCERS)
		procs_nap(500);
	g_all->stop = 1;
	for (int i = 0; i < PRODUCERS; i++)
		proc_finish(p[i]);
	CHECK_MSG(g_all->accepted == words, "%" PRIu64 " of %u words accepted",
		  (uint64_t)g_all->accepted, words);
	procs_send_word(taker->fd, 0);
	CHECK(procs_recv_word(taker->fd) == words);
	proc_finish(taker);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

/* Puts one word in, and sits on what else it was granted. */
static int hoarder(int fd, void *arg)
{
	int index = proc_index();
	struct gsas_queue_handle *q;

	producer_open(&q, *(gsas_addr *)arg);
	GSAS(gsas_enqueue(q, WORD(index, 0)));
	g_all->accepted++;
	procs_exchange(fd, 0);
	return 0;
}

/* Other producers get the grants that a killed producer did not use. */
static void grants_of_the_killed(void)
{
	struct proc *service[2], *p, *taker;
	uint32_t words = BUFFER;
	gsas_addr queue;

	set_up(service, 0);
	taker = proc_start(owner, &words, board_env(0));
	queue = procs_recv_word(taker->fd);
	for (int i = 0; i < 4; i++) {
		p = proc_start(hoarder, &queue, board_env(1));
		procs_recv_word(p->fd);
		proc_kill(p);
	}
	p = proc_start(filler, &queue, board_env(1));
	while (g_all->accepted < words)
		CHECK(!proc_ended(p, 1));
	g_all->stop = 1;
	proc_finish(p);
	procs_send_word(taker->fd, 0);
	CHECK(procs_recv_word(taker->fd) == words);
	proc_finish(taker);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

PROCS_MAIN(
	PROCS_WITH(one_taker, 600, run, &(int){ 1 }),
	PROCS_WITH(three_takers, 600, run, &(int){ 3 }),
	PROCS_CASE(quota, 120),
	PROCS_CASE(grants_of_the_killed, 120),
)
