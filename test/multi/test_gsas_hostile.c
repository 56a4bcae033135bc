/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_hostile.c - a client that fills all the memory it can write with
 * random bytes, again and again: the lanes and receive spaces of its own links,
 * what it has mapped, page words and queues among it. And bare clients that
 * send every opcode with words of no sense, or take no answers. Nothing happens
 * under another identity: the service lives and serves, sums of another job
 * stay exact, its pages stay as they are.
 *
 * UNM_TEST_ROUNDS: how often the memory is filled (2,000).
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "op/gsas_op.h"
#include "lib/gsas_processes.h"

#define VICTIMS	2			/* processes of the other job */
#define PAGES	3			/* of each of its regions */
#define LIFE	50			/* rounds in one process, at most */
#define NAP_MS	200			/* no call of a client takes as long */
#define RANGES	256
#define OPCODES	HAL_PKT_RESERVED
#define STORM	50			/* packets of each opcode */
#define LIMITS	"--user-pages", "4096"

/* ---- The other job ------------------------------------------------------- */

enum region { OWN, OWN_MAPPED, WORLD, REGIONS };

static const unsigned region_flags[REGIONS] = {
	GSAS_JOB, GSAS_JOB | GSAS_MAPPED, GSAS_WORLD | GSAS_MAPPED,
};

/* Shared by all processes of the test. */
struct shared {
	_Atomic uint64_t done[VICTIMS];	/* additions */
	_Atomic uint64_t address[REGIONS];
	_Atomic uint64_t stop, answers, filled;
};

static struct shared *shared(void)
{
	return g_role_memory;
}

static uint64_t pattern(uint64_t at)
{
	return (at + 1) * 0x9E3779B97F4A7C15;
}

/* The first word of each region counts; all others keep a pattern. */
static void write_patterns(void)
{
	uint64_t page[PAGES * GSAS_PAGE / 8];

	for (int r = 0; r < REGIONS; r++) {
		gsas_addr at;

		GSAS(gsas_alloc(PAGES, board_number(0), region_flags[r], NULL,
				&at));
		for (size_t i = 0; i < PAGES * GSAS_PAGE / 8; i++)
			page[i] = i == 0 ? 0 : pattern(at + i);
		GSAS(gsas_put(at, page, sizeof(page)));
		shared()->address[r] = at;
	}
}

static void check_patterns(void)
{
	uint64_t page[PAGES * GSAS_PAGE / 8];

	for (int r = OWN; r <= OWN_MAPPED; r++) {
		GSAS(gsas_get(page, shared()->address[r], sizeof(page)));
		for (size_t i = 1; i < PAGES * GSAS_PAGE / 8; i++)
			CHECK_MSG(page[i] == pattern(shared()->address[r] + i),
				  "word %zu of region %d was overwritten", i,
				  r);
	}
}

static void check_sums(void)
{
	uint64_t sum, done = shared()->done[0] + shared()->done[1];

	for (int r = OWN; r <= OWN_MAPPED; r++) {
		GSAS(gsas_read64(shared()->address[r], &sum));
		CHECK_MSG(sum == done, "region %d: %" PRIu64 " of %" PRIu64,
			  r, sum, done);
	}
}

/* Add to both regions, and check them, until the director stops it. */
static int victim(int fd, int self)
{
	int64_t last[REGIONS] = { -1, -1 };

	if (self == 0)
		write_patterns();
	procs_exchange(fd, 0);
	for (uint64_t n = 0; !shared()->stop; n++) {
		for (int r = OWN; r <= OWN_MAPPED; r++) {
			int64_t was;

			GSAS(gsas_fad64(shared()->address[r], 1, &was));
			CHECK(was > last[r]);
			last[r] = was;
		}
		shared()->done[self]++;
		/* this one may be anything, and say anything: not hang */
		(void)gsas_fad64(shared()->address[WORLD], 1, NULL);
		if (n % 100 == 0)
			check_patterns();
	}
	procs_exchange(fd, 0);		/* the other one has stopped, too */
	check_patterns();
	check_sums();
	return 0;
}

/* ---- The hostile one ----------------------------------------------------- */

struct range {
	uint64_t *at, *end;
};

/* List the mappings that this process shares and can write. */
static int writable(struct range *range)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		unsigned long from, to;
		char mode[5];

		if (strstr(line, "/memfd:unimem") == NULL ||
		    sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 ||
		    mode[1] != 'w' || mode[3] != 's')
			continue;
		CHECK(n < RANGES);
		range[n].at = (uint64_t *)from;
		range[n++].end = (uint64_t *)to;
	}
	fclose(f);
	return n;
}

/* All of it; or words here and there, so that some of it still makes sense. */
static void fill(const struct range *range, int n, uint64_t seed)
{
	bool all = seed % 4 < 2;
	uint64_t x = seed * 0x9E3779B97F4A7C15 | 1;

	for (int i = 0; i < n; i++)
		for (uint64_t *at = range[i].at; at < range[i].end;
		     at += all ? 1 : 1 + x % 64) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			*(volatile uint64_t *)at = all || x & 256 ? x : x % 8;
		}
}

struct holdings {
	gsas_addr own, mapped, queue;
	struct gsas_queue_handle *q;
};

/* Have one of everything. */
static void acquire(struct holdings *h)
{
	uint8_t bytes[3 * GSAS_PAGE] = { 0 };
	size_t len;
	void *at;

	GSAS(gsas_alloc(4, board_number(0), GSAS_JOB, NULL, &h->own));
	GSAS(gsas_alloc(4, board_number(0), GSAS_MAPPED, NULL, &h->mapped));
	GSAS(gsas_queue_create(100, 8, board_number(0), GSAS_JOB, NULL,
			       &h->queue));
	GSAS(gsas_map(h->mapped, &at, &len));
	/* after another one, its page words say nothing */
	(void)gsas_map(shared()->address[WORLD], &at, &len);
	GSAS(gsas_queue_open(h->queue, &h->q));
	GSAS(gsas_enqueue(h->q, 1));
	GSAS(gsas_put(h->own, bytes, sizeof(bytes)));
	GSAS(gsas_get(bytes, h->own, sizeof(bytes)));
}

/* Whatever comes of it. */
static void use(const struct holdings *h)
{
	uint8_t bytes[GSAS_PAGE] = { 0 };
	uint64_t word;

	(void)gsas_write64_post(h->own, 1);
	(void)gsas_enqueue(h->q, 2);
	(void)gsas_dequeue(h->q, &word);
	(void)gsas_fad64(h->mapped, 1, NULL);
	(void)gsas_fad64(shared()->address[WORLD], 1, NULL);
	(void)gsas_fad64(h->own, 1, NULL);
	(void)gsas_get(bytes, h->own, sizeof(bytes));
	(void)gsas_put(h->own, bytes, sizeof(bytes));
}

/* Reclaim the memory of former hostile processes; that of the victims must be
 * refused. */
static void reclaim(void)
{
	struct bare r;

	bare_open(&r, board_number(0));
	bare_join(&r);
	CHECK(bare_ask(&r, GSAS_RECLAIM, 0, 0, 0, NULL, NULL) == GSAS_OK);
	bare_close(&r);
}

/* From now on a call that hangs ends the process. */
static void set_clock(void)
{
	const struct itimerval t = { .it_value.tv_usec = NAP_MS * 1000 };

	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

/* It may die of this, or hang: then the clock ends it. */
static int hostile(int fd, int self)
{
	struct range range[RANGES];
	struct holdings h;
	uint64_t seed = (uint64_t)self;
	struct rlimit none = { 0, 0 };
	int n;

	(void)fd;
	setrlimit(RLIMIT_CORE, &none);
	reclaim();
	acquire(&h);
	n = writable(range);
	/* a lane's two sides, regions, a queue */
	CHECK_MSG(n >= 5, "%d writable mappings only", n);
	for (int i = 0; i < LIFE; i++) {
		fill(range, n, seed * LIFE + (uint64_t)i);
		shared()->filled++;
		set_clock();
		/* one in two calls, and may hang, soon; the other one late */
		if (seed % 2 == 0 || i >= LIFE - 5)
			use(&h);
		else
			sched_yield();
	}
	return 0;
}

/* ---- Nonsense by packets ------------------------------------------------- */

static uint64_t sense(uint64_t *seed, const uint64_t *known, int n)
{
	uint64_t r = (uint64_t)procs_random(seed) << 32 | procs_random(seed);

	switch (procs_random(seed) % 6) {
	case 0:
		return r;
	case 1:
		return r % 16;
	case 2:
		return r % 100000;
	case 3:
		return gsas_base((uint32_t)board_number(0)) + r % (1 << 26);
	case 4:
		return r << (r % 64);
	default:
		return known[procs_random(seed) % (unsigned)n] + r % 64;
	}
}

/* Every opcode, joined or not, with answers taken or not. */
static void storm(uint64_t seed, bool joined, bool deaf)
{
	uint64_t known[REGIONS + 1] = { 0 }, w[GSAS_WORDS];
	uint32_t space;
	struct bare r;

	bare_open(&r, board_number(0));
	space = r.hif->caps->space_bytes;
	for (int i = 0; i < REGIONS; i++)
		known[i] = shared()->address[i];
	if (joined) {
		bare_join(&r);
		CHECK(bare_ask(&r, GSAS_ALLOC, 0, 4, 0, &known[REGIONS],
			       NULL) == GSAS_OK);
	}
	for (uint32_t i = 0; i + 8 <= space; i += 8) {
		uint64_t x = sense(&seed, known, REGIONS + 1);

		hal_space_write(r.peer, i, &x, sizeof(x));
	}
	hal_space_barrier(r.peer);
	for (int i = 0; i < OPCODES * STORM && !r.dead; i++) {
		for (int k = 0; k < GSAS_WORDS; k++)
			w[k] = sense(&seed, known, REGIONS + 1);
		if (!bare_send(&r, (uint8_t)(i % OPCODES),
			       (uint8_t)procs_random(&seed), w) && deaf)
			break;
		if (!deaf)
			shared()->answers += (uint64_t)bare_drain(&r);
	}
	CHECK_MSG(!r.dead, "the service let go of a client that kept the rules "
		  "of packets");
	bare_close(&r);
}

static int stormy(int fd, int self)
{
	(void)fd;
	for (int i = 0; i < 4; i++)
		storm((uint64_t)self + (uint64_t)i, i & 1, i & 2);
	return 0;
}

/* ---- Directing ----------------------------------------------------------- */

static void begin(struct proc **service, struct proc *p[VICTIMS])
{
	static const char *const options[] = { LIMITS, NULL };

	role_share(sizeof(struct shared));
	*service = gsasd_start(0, options);
	role_new_job();
	for (int i = 0; i < VICTIMS; i++) {
		p[i] = role_start("victim", i, board_env(i));
		procs_recv_word(p[i]->fd);
	}
	for (int i = 0; i < VICTIMS; i++)
		procs_send_word(p[i]->fd, 0);
}

static void end(struct proc *service, struct proc *p[VICTIMS])
{
	shared()->stop = 1;
	for (int i = 0; i < VICTIMS; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < VICTIMS; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < VICTIMS; i++)
		proc_expect(p[i], 0);
	CHECK(shared()->done[0] > 0 && shared()->done[1] > 0);
	gsasd_stop(service);
	procs_note("%" PRIu64 " additions",
		   shared()->done[0] + shared()->done[1]);
}

/* Another process, of a job of its own, so that its memory is an orphan when it
 * has ended; its end, whatever that is. */
static void attack(struct proc **p, const char *role, int seed,
		   struct proc *service)
{
	role_new_job();
	*p = role_restart(*p, role, seed, board_env(seed % 2));
	while (!proc_ended(*p, 10))
		CHECK_MSG(!proc_ended(service, 0), "gsasd ended");
}

static void filled_memory(void)
{
	uint64_t rounds = (uint64_t)procs_number("UNM_TEST_ROUNDS", 2000);
	struct proc *service, *victims[VICTIMS], *p = NULL;
	uint64_t died = 0, failed = 0;
	int life = 0;

	begin(&service, victims);
	while (shared()->filled < rounds) {
		uint64_t before = shared()->filled;

		attack(&p, "hostile", life++, service);
		died += WIFSIGNALED(p->status) != 0;
		/* nothing was done: it found nothing to write */
		CHECK(shared()->filled > before);
		failed += !WIFSIGNALED(p->status) && p->status != 0;
	}
	procs_note("%" PRIu64 " rounds by %d processes, of which %"
		   PRIu64 " died of it and %" PRIu64 " gave up",
		   (uint64_t)shared()->filled, life, died, failed);
	end(service, victims);
}

static void nonsense(void)
{
	struct proc *service, *victims[VICTIMS], *p = NULL;

	begin(&service, victims);
	for (int i = 0; i < 10; i++) {
		attack(&p, "stormy", 100 * i, service);
		CHECK_MSG(p->status == 0, "status %d", p->status);
	}
	CHECK(shared()->answers > 1000);
	procs_note("%" PRIu64 " answers", (uint64_t)shared()->answers);
	end(service, victims);
}

static const struct procs_case cases[] = {
	PROCS_CASE(filled_memory, 300),
	PROCS_CASE(nonsense, 300),
};

static const struct gsas_role roles[] = {
	{ "victim", victim },
	{ "hostile", hostile },
	{ "stormy", stormy },
};

int main(int argc, char **argv)
{
	role_main(argc, argv, roles, sizeof(roles) / sizeof(roles[0]));
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
