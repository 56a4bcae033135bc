/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reuse.c - memory and regions that are freed and allocated again at the
 * same place, with the same key, while a peer uses them. Each byte is checked:
 * an access never reaches an earlier generation, and messages never have its
 * bytes.
 *
 * Accesses: two threads, an owner and an initiator. Messages: one thread.
 * UNM_TEST_ROUNDS: generations on each data path (300).
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "lib/ep_mem.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define ROUNDS	unit_number("UNM_TEST_ROUNDS", UNIT_SLOW ? 50 : 300)
#define BLOCK	(4 * MIB)		/* fills a segment of dmable memory */
#define CACHED	(16 * MIB)		/* bound: imports pin freed memory */
#define HALF	8192			/* of a region: the first is written by
					 * the initiator, the second by the
					 * owner */
#define KEY	7
#define CLOSED	0xA5			/* each byte of a closed region */
#define HANG_US	(UINT64_C(100000000) * (UNIT_SLOW ? 5 : 1))

/* Threads do not assert: they note the line of the first failed check. */
#define CHECK(s, cond)	do {						\
		int fine = 0;						\
		if (!(cond))						\
			atomic_compare_exchange_strong(&(s)->line,	\
						       &fine, __LINE__); \
	} while (0)

struct stage {
	enum os_way way;
	struct ep *a, *b;		/* a accesses memory of b */
	fi_addr_t ab;
	uint8_t *mem;			/* of the present generation */
	uint8_t *spare;			/* dmable: a second block */
	uint64_t places[2];		/* of the last two generations */
	uint64_t same;			/* generations at one of these */
	_Atomic uint64_t generation;
	_Atomic uint64_t ended;		/* operations, also with an error */
	_Atomic uint64_t good;
	_Atomic bool over;		/* the last region is closed */
	_Atomic bool left;		/* the initiator has ended */
	_Atomic int line;
	_Atomic uint64_t end;		/* deadline of a generation */
};

/* A byte of a generation, or of the initiator's operation with this number. */
static uint8_t byte_at(uint64_t number, size_t i)
{
	return (uint8_t)((number * UINT64_C(0x9E3779B97F4A7C15) >> 56) ^ i ^
			 i >> 8);
}

static void fill(uint8_t *buf, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(number, i);
}

/* True if each byte is one of these generations. */
static bool filled(const uint8_t *buf, size_t len, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t g = from;

		while (g <= to && buf[i] != byte_at(g, i))
			g++;
		if (g > to)
			return false;
	}
	return true;
}

/* False at the end of the test: a check failed, or nothing moves. */
static bool goes_on(struct stage *s)
{
	CHECK(s, ep_now() < s->end);
	return s->line == 0;
}

/* ---- Memory at the same place -------------------------------------------- */

/* Replace the mapping at s->mem, or make the first one. */
static uint8_t *map_again(struct stage *s)
{
	int fd = s->way == OS_SHARED ? memfd_create("reuse", MFD_CLOEXEC) : -1;
	int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *at;

	if (fd >= 0)
		assert_int_equal(ftruncate(fd, 2 * HALF), 0);
	at = mmap(s->mem, 2 * HALF, PROT_READ | PROT_WRITE, how |
		  (s->mem != NULL ? MAP_FIXED : 0), fd, 0);
	assert_true(at != MAP_FAILED);
	if (fd >= 0)
		close(fd);
	return at;
}

static const struct hal_key *key_of(const struct stage *s)
{
	return &unm_mem_find(unm_domain(s->b->domain), s->mem, 1)->key;
}

/* Where a generation is: its address, or the entry of the emulation's table of
 * dmable memory. (The address may go to the initiator's import, because this is
 * one process.) */
static uint64_t place_of(const struct stage *s)
{
	return s->way != OS_DMABLE ? (uintptr_t)s->mem :
		(uint32_t)key_of(s)->word[0];
}

/*
 * Free the memory, and allocate it again. One freed segment of dmable memory
 * stays with the heap, with its key; so two blocks are freed, and the second
 * allocation gets a new segment, with a new key, in the place of the other
 * block.
 */
static void memory_again(struct stage *s)
{
	uint64_t place;

	if (s->way != OS_DMABLE) {
		s->mem = map_again(s);
	} else {
		if (s->mem != NULL) {
			os_free(s->b, s->way, s->spare);
			os_free(s->b, s->way, s->mem);
		}
		s->spare = os_alloc(s->b, s->way, BLOCK);
		s->mem = os_alloc(s->b, s->way, BLOCK);
	}
	place = place_of(s);
	s->same += place == s->places[0] || place == s->places[1];
	s->places[1] = s->places[0];
	s->places[0] = place;
}

static void memory_gone(struct stage *s)
{
	if (s->way != OS_DMABLE) {
		munmap(s->mem, 2 * HALF);
		return;
	}
	os_free(s->b, s->way, s->spare);
	os_free(s->b, s->way, s->mem);
}

/* ---- The owner ----------------------------------------------------------- */

/* Serve requests until this many more operations have ended. */
static void await_more(struct stage *s, uint64_t more)
{
	uint64_t until = s->ended + more;

	s->end = ep_now() + HANG_US;
	while (s->ended < until && goes_on(s)) {
		ssize_t n = fi_cq_read(s->b->cq, NULL, 0);

		CHECK(s, n == 0 || n == -FI_EAGAIN);
	}
}

static void generation(struct stage *s, uint64_t g)
{
	struct fid_mr *mr;

	memory_again(s);
	fill(s->mem, HALF, g);
	fill(s->mem + HALF, HALF, g);
	atomic_store(&s->generation, g);
	mr = os_reg(s->b, s->mem, 2 * HALF, OS_ALL, KEY);
	/* the first operations of a generation are requests; some generations
	 * are long enough for direct ones on a slow machine, too */
	await_more(s, g % 8 == 0 ? 200 : 4 + g % 13);
	CHECK(s, fi_close(&mr->fid) == 0);
	CHECK(s, filled(s->mem + HALF, HALF, g, g));
	if (g % 4 != 0)			/* free it at once */
		return;
	memset(s->mem, CLOSED, 2 * HALF);
	await_more(s, 3);
	CHECK(s, all(s->mem, 2 * HALF, CLOSED));
}

/* ---- The initiator ------------------------------------------------------- */

/* Wait for the operation. True: success; false: the region was closed. */
static bool await_end(struct stage *s, ssize_t called)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry c;
	ssize_t n = -FI_EAGAIN;

	while (called == 0 && n == -FI_EAGAIN && goes_on(s))
		n = fi_cq_read(s->a->cq, &c, 1);
	if (n == -FI_EAVAIL) {
		CHECK(s, fi_cq_readerr(s->a->cq, &err, 0) == 1);
		CHECK(s, err.err == FI_EKEYREJECTED);
	} else {
		CHECK(s, n == 1);
	}
	atomic_fetch_add(&s->ended, 1);
	atomic_fetch_add(&s->good, n == 1);
	return n == 1;
}

/* Does a call that returned this have to be repeated? */
static bool again(struct stage *s, ssize_t ret)
{
	CHECK(s, ret == 0 || ret == -FI_EAGAIN);
	if (ret != -FI_EAGAIN || !goes_on(s))
		return false;
	fi_cq_read(s->a->cq, NULL, 0);
	return true;
}

/* Put or get len bytes, from an offset of the region on. */
static bool put_to(struct stage *s, uint8_t *buf, size_t len, uint64_t at)
{
	ssize_t ret;

	do
		ret = fi_write(s->a->ep, buf, len, NULL, s->ab, at, KEY, buf);
	while (again(s, ret));
	return await_end(s, ret);
}

static bool get_from(struct stage *s, uint8_t *buf, size_t len, uint64_t at)
{
	ssize_t ret;

	do
		ret = fi_read(s->a->ep, buf, len, NULL, s->ab, at, KEY, buf);
	while (again(s, ret));
	return await_end(s, ret);
}

/* A put and a get of the initiator's half, then a get of the owner's. */
static void *initiator(void *arg)
{
	static const size_t lens[] = { 8, 64, 5000, 100, HALF };
	static uint8_t out[HALF], in[HALF];
	struct stage *s = arg;

	for (uint64_t n = 1; !s->over && goes_on(s); n++) {
		uint64_t from = s->generation;
		size_t len = lens[n % 5];

		fill(out, len, n);
		memset(in, CLOSED, len);
		if (put_to(s, out, len, 0) &&
		    get_from(s, in, len, 0) &&
		    s->generation == from)
			CHECK(s, memcmp(in, out, len) == 0);
		from = s->generation;
		memset(in, CLOSED, len);
		if (get_from(s, in, len, HALF))
			CHECK(s, filled(in, len, from, s->generation));
	}
	s->left = true;
	return NULL;
}

static void accesses(enum os_way way)
{
	struct stage s = { .way = way };
	const uint64_t rounds = ROUNDS;
	const struct unm_stats *stats;
	pthread_t thread;

	unit_needs(os_goes(way));
	s.a = ep_open(NULL);
	s.b = ep_open(NULL);
	s.ab = ep_insert(s.a, s.b);
	g_unm_env.prompt_us = 0;	/* small puts: attach, no requests */
	g_unm_env.rkey_bytes = CACHED;
	s.end = ep_now() + HANG_US;
	thread = unit_thread(initiator, &s);
	for (uint64_t g = 1; g <= rounds && s.line == 0; g++)
		generation(&s, g);
	s.over = true;
	while (!s.left && goes_on(&s))	/* answers the last requests */
		fi_cq_read(s.b->cq, NULL, 0);
	pthread_join(thread, NULL);
	memory_gone(&s);
	if (s.line != 0)
		unit_fail("a check failed in line %d, generation %llu", s.line,
			  (unsigned long long)s.generation);
	stats = ((struct unm_ep *)s.a->ep)->stats;
	print_message("%llu good operations, %llu of them direct; %llu of "
		      "%llu generations at the same place\n",
		      (unsigned long long)s.good,
		      (unsigned long long)stats->tx_direct,
		      (unsigned long long)s.same, (unsigned long long)rounds);
	assert_true(stats->tx_direct > 0 && stats->rkey_stale > 0);
	/* the register model gives its memory out in turn */
	if (way != OS_DMABLE ||
	    strstr(unm_ep(s.a->ep)->hif->caps->backend, "emu") != NULL)
		assert_true(s.same + 2 >= rounds);
}

static void test_regions_in_dmable_memory(void **state)
{
	EP_NEEDS_INSIDE();
	accesses(OS_DMABLE);
}

static void test_regions_in_shared_memory(void **state)
{
	EP_NEEDS_INSIDE();
	accesses(OS_SHARED);
}

static void test_regions_in_ordinary_memory(void **state)
{
	EP_NEEDS_INSIDE();
	accesses(OS_ATTACH);
}

/* ---- Messages ------------------------------------------------------------ */

#define MESSAGE	40000			/* bytes: rendezvous */

static void message(struct ep_pair *p, uint8_t *in, uint8_t *out,
		    uint64_t number)
{
	fill(out, MESSAGE, number);
	memset(in, CLOSED, MESSAGE);
	EP_OK(fi_recv(p->b->ep, in, MESSAGE, NULL, p->ba, in));
	EP_OK(fi_send(p->a->ep, out, MESSAGE, NULL, p->ab, out));
	assert_int_equal(ep_received(p->b, in).len, MESSAGE);
	assert_true(filled(in, MESSAGE, number, number));
	ep_sent(p->a, out);
}

/* The sender's memory is freed and allocated again between messages. */
static void test_messages_from_dmable_memory(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct stage s = { .way = OS_DMABLE, .b = p.a };
	const struct unm_stats *stats = ((struct unm_ep *)p.b->ep)->stats;
	uint64_t number = 0, generations = 0, rounds = ROUNDS;
	struct hal_key last = { { 0 } };
	/* dmable, too, for engines that access no other memory */
	uint8_t *in = os_alloc(p.b, OS_DMABLE, MESSAGE);

	g_unm_env.rkey_bytes = CACHED;
	for (uint64_t g = 0; g < rounds; g++) {
		uint64_t was = stats->rx_dmable, end = ep_deadline();

		memory_again(&s);
		generations += memcmp(key_of(&s), &last, sizeof(last)) != 0;
		last = *key_of(&s);
		/* the first asks for the memory, a later one reads it */
		do {
			message(&p, in, s.mem + number % 64 * 4096, number);
			message(&p, in, s.spare, ++number);
			ep_in_time(end, "a message that is read in place");
		} while (stats->rx_dmable < was + 2);
	}
	memory_gone(&s);
	os_free(p.b, OS_DMABLE, in);
	print_message("%llu messages, %llu read in place, from %llu "
		      "generations, %llu of them at the same place\n",
		      (unsigned long long)number * 2,
		      (unsigned long long)stats->rx_dmable,
		      (unsigned long long)generations,
		      (unsigned long long)s.same);
	assert_int_equal(generations, rounds);
	assert_true(!on_emu(p.a) || s.same + 2 >= rounds);
	ep_pair_close(&p);
}

EP_THREADS_MAIN(
	EP_TEST(test_regions_in_dmable_memory),
	EP_TEST(test_regions_in_shared_memory),
	EP_TEST(test_regions_in_ordinary_memory),
	EP_TEST_INSIDE(test_messages_from_dmable_memory),
)
