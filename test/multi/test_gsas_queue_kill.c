/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_queue_kill.c - consumers of a queue are killed and stopped at any
 * instruction: no word is delivered twice or out of order, a killed process
 * loses one word at most, and the other consumers continue
 *
 * UNM_TEST_KILLS: processes killed in each case (300).
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/gsas_queue.h"
#include "lib/procs.h"

#define TAKERS		4
#define PRODUCERS	3
#define WORDS_MAX	(UINT64_C(1) << 28)
#define AFTER		100000		/* words after the last death */

/* g_shared->word[] */
enum { PUT, STOP, OVER, WRONG, ERRORS, TAKEN };

static struct gsas_queue_head *g_head;
static uint64_t g_bytes;
static uint32_t g_quota, g_buffer;
static _Atomic uint64_t *g_seen;	/* a bit for each word taken */

/* Create and map memory that all processes share. */
static void *share(const char *name, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	void *p;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	return p;
}

static void give_back(void *memory, uint64_t bytes)
{
	CHECK(madvise(memory, bytes, MADV_REMOVE) == 0);
}

static const struct gsas_queue_system queue_system = { .give_back = give_back };

/* ---- The service --------------------------------------------------------- */

/* Puts in word after word, whoever's turn it is, until it shall stop. */
static int put_words(int fd, void *arg)
{
	struct gsas_producer *p[PRODUCERS];
	struct gsas_queue *q;
	uint64_t n = 0, seed = 3;
	bool waits;

	(void)arg;
	CHECK(gsas_queue_new(g_head, g_quota, g_buffer, &queue_system, &q) ==
	      0);
	for (int i = 0; i < PRODUCERS; i++)
		CHECK(gsas_producer_open(q, NULL, &p[i]) == GSAS_OK);
	procs_send_word(fd, 1);		/* it is a queue now */
	while (!g_shared->word[STOP] && n < WORDS_MAX) {
		bool some = false;

		for (int i = 0; i < PRODUCERS; i++) {
			uint32_t burst = procs_random(&seed) % 40;
			enum gsas_error err = GSAS_OK;

			while (burst-- > 0 && (err = gsas_queue_put(p[i], n)) ==
			       GSAS_OK) {
				n++;
				some = true;
			}
			CHECK(err != GSAS_E_STATE);
		}
		g_shared->word[PUT] = n;
		while (gsas_queue_grant(q, &waits) != NULL)
			some = true;
		if (!some)
			sched_yield();	/* that is the clock here */
	}
	g_shared->word[OVER] = 1;
	while (gsas_queue_words(q) > 0)
		sched_yield();
	gsas_queue_free(q);
	return 0;
}

/* ---- Those who take ------------------------------------------------------ */

static int take_words(int fd, void *arg)
{
	struct gsas_queue_view view;
	uint64_t next = 0, word, bit;
	bool tell;

	(void)fd;
	(void)arg;
	CHECK(gsas_queue_view(g_head, g_bytes, &view) == 0);
	for (;;) {
		bool over = g_shared->word[OVER];
		int ret = gsas_queue_take(&view, &word, &tell);

		if (ret == -FI_EAGAIN) {
			if (over)
				return 0;
			sched_yield();
			continue;
		}
		if (ret != 0) {
			g_shared->word[ERRORS]++;
			return 1;
		}
		if (word < next || word >= WORDS_MAX) {
			g_shared->word[WRONG]++;
			return 1;
		}
		next = word + 1;
		bit = UINT64_C(1) << word % 64;
		if ((atomic_fetch_or(&g_seen[word / 64], bit) & bit) != 0)
			g_shared->word[WRONG]++;
		atomic_fetch_add(&g_shared->word[TAKEN], 1);
	}
}

/* ---- The director -------------------------------------------------------- */

static uint64_t count_seen(uint64_t *beyond)
{
	uint64_t put = g_shared->word[PUT], n = 0;

	*beyond = 0;
	for (uint64_t i = 0; i <= put / 64; i++) {
		uint64_t in = i < put / 64 ? UINT64_MAX :
			      (UINT64_C(1) << put % 64) - 1;

		n += (uint64_t)__builtin_popcountll(g_seen[i] & in);
		*beyond += (uint64_t)__builtin_popcountll(g_seen[i] & ~in);
	}
	return n;
}

/* The queue goes on: so many more words are taken from now. */
static void await_words(uint64_t more)
{
	uint64_t from = g_shared->word[TAKEN];

	while (g_shared->word[TAKEN] - from < more &&
	       g_shared->word[PUT] < WORDS_MAX)
		procs_nap(500);
}

static void await_moment(uint64_t *seed)
{
	if (procs_random(seed) % 4 == 0)
		procs_nap(procs_random(seed) % 1000);
	else
		for (uint32_t n = procs_random(seed) % 3000; n > 0; n--)
			(void)g_shared->word[STOP];
}

/* Stop one, stop and go on, go on and kill, or just kill: anywhere. */
static void act(struct proc **taker, bool *stopped, bool deaths, uint64_t *seed)
{
	uint32_t i = procs_random(seed) % TAKERS;

	await_moment(seed);
	if (stopped[i] && procs_random(seed) % 2 == 0) {
		proc_signal(taker[i], SIGCONT);
		stopped[i] = false;
	} else if (!stopped[i]) {
		proc_signal(taker[i], SIGSTOP);
		stopped[i] = true;
	}
	if (deaths) {
		await_moment(seed);
		i = procs_random(seed) % TAKERS;
		proc_kill(taker[i]);
		proc_restart(taker[i], take_words, NULL, NULL);
		stopped[i] = false;
	}
}

struct kind {
	uint32_t quota, buffer;		/* of the queue, words */
	bool deaths;			/* consumers are killed, not stopped */
};

static void run(void *arg)
{
	const struct kind *kind = arg;
	bool deaths = kind->deaths;
	uint64_t seed = (uint64_t)getpid(), beyond, seen, lost;
	long kills = procs_number("UNM_TEST_KILLS", 300);
	struct proc *taker[TAKERS], *service;
	bool stopped[TAKERS] = { false };

	g_quota = kind->quota;
	g_buffer = kind->buffer;
	g_bytes = gsas_queue_bytes(g_quota, g_buffer);
	g_head = share("queue", g_bytes);
	g_seen = share("seen", WORDS_MAX / 8 + 8);
	service = proc_start(put_words, NULL, NULL);
	CHECK(procs_recv_word(service->fd) == 1);
	for (int i = 0; i < TAKERS; i++)
		taker[i] = proc_start(take_words, NULL, NULL);
	for (long i = 0; i < kills; i++)
		act(taker, stopped, deaths, &seed);
	/* The other consumers must not wait for stopped consumers. */
	for (int i = 1; i < TAKERS; i++)
		if (stopped[i])
			proc_signal(taker[i], SIGCONT);
	await_words(AFTER);
	if (stopped[0])
		proc_signal(taker[0], SIGCONT);
	g_shared->word[STOP] = 1;
	for (int i = 0; i < TAKERS; i++)
		proc_expect(taker[i], 0);
	proc_expect(service, 0);
	CHECK(g_shared->word[WRONG] == 0 && g_shared->word[ERRORS] == 0);
	seen = count_seen(&beyond);
	lost = g_shared->word[PUT] - seen;
	CHECK_MSG(beyond == 0, "%llu words that nobody put in",
		  (unsigned long long)beyond);
	CHECK_MSG(lost <= (deaths ? (uint64_t)kills : 0),
		  "%llu words lost", (unsigned long long)lost);
	procs_note("%llu words, %ld %s, %llu lost",
		   (unsigned long long)g_shared->word[PUT], kills,
		   deaths ? "killed" : "stopped", (unsigned long long)lost);
}

PROCS_MAIN(
	PROCS_WITH(small_stopped, 0, run, &(struct kind){ 50, 8, false }),
	PROCS_WITH(small_killed, 0, run, &(struct kind){ 50, 8, true }),
	PROCS_WITH(large_stopped, 0, run, &(struct kind){ 300000, 64, false }),
	PROCS_WITH(large_killed, 0, run, &(struct kind){ 300000, 64, true }),
)
