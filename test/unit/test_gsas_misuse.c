/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_misuse.c - each misuse of the service's operations returns its
 * error and changes nothing: neither memory nor the space of a client.
 *
 * Alignment is no error: the low bits are ignored, see test_gsas_ops.c.
 */
#include "lib/unit.h"
#include "op/gsas_op.h"
#include "service/gsas_queue.h"
#include "lib/gsas_service_fixture.h"

/* The memory that a request addresses. */
enum place {
	NOWHERE,	/* the offset is the address */
	PLAIN,		/* 2 pages */
	MAPPED,		/* 2 pages */
	BIG,		/* 20 pages, more than fit into one message */
	QUEUE,
	QUEUE_WORLD,	/* of another job, mode world */
	FOREIGN,	/* of another job */
	GROUP,		/* of a group that the client has not joined */
	FREED,
	PLACES,
};

#define PAGE		GSAS_PAGE_BYTES
#define END		(2 * PAGE)
#define BEHIND		(FIXTURE_BASE + (UINT64_C(1) << 40))
#define BOARD(b)	((uint64_t)((b) + 1) << GSAS_PART_SHIFT)
#define OUTSIDE		((uint64_t)FIXTURE_SPACE)
#define ATOMIC(op, type, form, count)					\
	((uint64_t)(op) | (uint64_t)(type) << 8 | (uint64_t)(form) << 16 | \
	 (uint64_t)(count) << 32)
#define UPDATE(op, type)	ATOMIC(op, type, 0, 0)
#define SUM		GSAS_OP_SUM
#define U64		GSAS_TYPE_UINT64
#define U128		GSAS_TYPE_UINT128
#define C32		GSAS_TYPE_FLOAT_COMPLEX
#define C64		GSAS_TYPE_DOUBLE_COMPLEX
#define LD		GSAS_TYPE_LONG_DOUBLE

struct misuse {
	const char *what;
	uint8_t opcode;
	enum place place;
	uint64_t off, arg1, arg2;
	enum gsas_error error;
};

/* The operations on memory, except those on queues: each of them is refused at
 * each of the places below. */
static const uint8_t memory_ops[] = {
	GSAS_FORK, GSAS_READ8, GSAS_READ32, GSAS_READ64, GSAS_READ4K,
	GSAS_WRITE8, GSAS_WRITE32, GSAS_WRITE64, GSAS_WRITE128, GSAS_CAS64,
	GSAS_FAD64, GSAS_SWAP64, GSAS_UPDATE, GSAS_ATOMIC, GSAS_GET, GSAS_PUT,
};

static const struct misuse places[] = {
	{ "null", 0, NOWHERE, 0, 0, 0, GSAS_E_ADDRESS },
	{ "the partition's first byte", 0, NOWHERE, FIXTURE_BASE, 0, 0,
	  GSAS_E_ADDRESS },
	{ "never allocated", 0, NOWHERE, BEHIND, 0, 0, GSAS_E_ADDRESS },
	{ "behind a region", 0, PLAIN, END, 0, 0, GSAS_E_ADDRESS },
	{ "a segment's own words", 0, MAPPED, -PAGE, 0, 0, GSAS_E_ADDRESS },
	{ "the last address", 0, NOWHERE, UINT64_MAX, 0, 0, GSAS_E_ADDRESS },
	{ "board 0", 0, NOWHERE, BOARD(0), 0, 0, GSAS_E_ADDRESS },
	{ "another board", 0, NOWHERE, BOARD(4) + (1 << 20), 0, 0,
	  GSAS_E_ADDRESS },
	{ "board 65534", 0, NOWHERE, BOARD(65534), 0, 0, GSAS_E_ADDRESS },
	{ "freed", 0, FREED, 0, 0, 0, GSAS_E_FREED },
	{ "another job's", 0, FOREIGN, 8, 0, 0, GSAS_E_ACCESS },
	{ "another group's", 0, GROUP, 8, 0, 0, GSAS_E_ACCESS },
	{ "a queue", 0, QUEUE, 0, 0, 0, GSAS_E_STATE },
	{ "another job's queue", 0, QUEUE_WORLD, 64, 0, 0, GSAS_E_STATE },
};

static const struct misuse misuses[] = {
	{ "opcode 0", 0, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 15", 15, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 63", 63, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 83", 83, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 128", 128, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 129", 129, NOWHERE, 0, 1, 0, GSAS_E_OPCODE },
	{ "the HAL's own", 0xC0, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "the empty pattern", 0xCA, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "opcode 255", 255, PLAIN, 0, 0, 0, GSAS_E_OPCODE },
	{ "a second job", GSAS_JOIN, NOWHERE, 9, 9, 9, GSAS_E_JOIN },
	{ "no group's name", GSAS_GROUP, NOWHERE, 0, 5, 0, GSAS_E_ARGUMENT },

	{ "zero pages", GSAS_ALLOC, NOWHERE, 0, 0, 0, GSAS_E_ARGUMENT },
	{ "all pages there are", GSAS_ALLOC, NOWHERE, 0, UINT64_C(1) << 52, 0,
	  GSAS_E_ARGUMENT },
	{ "pages that wrap around", GSAS_ALLOC, NOWHERE, 0, UINT64_MAX, 0,
	  GSAS_E_ARGUMENT },
	{ "more than the job's", GSAS_ALLOC, NOWHERE, 0, 101, 0, GSAS_E_QUOTA },
	{ "a mode that is none", GSAS_ALLOC, NOWHERE, 0, 1, 3,
	  GSAS_E_ARGUMENT },
	{ "an attribute that is none", GSAS_ALLOC, NOWHERE, 0, 1, 1 << 11,
	  GSAS_E_ARGUMENT },
	{ "owned by one, open to all", GSAS_ALLOC, NOWHERE, 0, 1,
	  GSAS_ATTR_OWNED | GSAS_MODE_WORLD, GSAS_E_ARGUMENT },
	{ "an owner without ownership", GSAS_ALLOC, NOWHERE, 0, 1,
	  UINT64_C(1) << 32, GSAS_E_ARGUMENT },
	{ "an owned queue", GSAS_QUEUE_NEW, NOWHERE, 0, 64, GSAS_ATTR_OWNED,
	  GSAS_E_ARGUMENT },
	{ "a queue by hand", GSAS_ALLOC, NOWHERE, 0, 1, GSAS_ATTR_QUEUE,
	  GSAS_E_ARGUMENT },
	{ "a group without its mode", GSAS_ALLOC, NOWHERE, 0, 1,
	  UINT64_C(1) << 32, GSAS_E_ARGUMENT },
	{ "a group one is not in", GSAS_ALLOC, NOWHERE, 0, 1, GSAS_MODE_GROUP |
	  UINT64_C(1) << 32, GSAS_E_ACCESS },
	{ "a group that is none", GSAS_ALLOC, NOWHERE, 0, 1, GSAS_MODE_GROUP |
	  UINT64_C(77) << 32, GSAS_E_ACCESS },

	{ "free the second page", GSAS_FREE, PLAIN, PAGE, 0, 0,
	  GSAS_E_ARGUMENT },
	{ "free twice", GSAS_FREE, FREED, 0, 0, 0, GSAS_E_FREED },
	{ "free a foreign one", GSAS_FREE, FOREIGN, 0, 0, 0, GSAS_E_ACCESS },
	{ "free a foreign queue", GSAS_FREE, QUEUE_WORLD, 0, 0, 0,
	  GSAS_E_ACCESS },
	{ "free nothing", GSAS_FREE, NOWHERE, 0, 0, 0, GSAS_E_ADDRESS },
	{ "free behind", GSAS_FREE, PLAIN, END, 0, 0, GSAS_E_ADDRESS },
	{ "free on another board", GSAS_FREE, NOWHERE, BOARD(4) + (1 << 20), 0,
	  0, GSAS_E_ADDRESS },

	{ "no path", GSAS_FORK, PLAIN, PAGE, 0, 0, GSAS_E_PATH },
	{ "a path without an end", GSAS_FORK, PLAIN, 1, 0, 0, GSAS_E_PATH },
	{ "a path to the end", GSAS_FORK, MAPPED, END - 8, 0, 0, GSAS_E_PATH },

	{ "page to outside", GSAS_READ4K, PLAIN, 0, OUTSIDE, 0,
	  GSAS_E_ARGUMENT },
	{ "page to across the end", GSAS_READ4K, PLAIN, 0, OUTSIDE - PAGE + 1,
	  0, GSAS_E_ARGUMENT },
	{ "page to far away", GSAS_READ4K, PLAIN, 0, UINT64_MAX - 8, 0,
	  GSAS_E_ARGUMENT },
	{ "page that is mapped", GSAS_READ4K, MAPPED, 0, 0, 0, GSAS_E_MAPPED },
	{ "16 bytes at 8, mapped", GSAS_WRITE128, MAPPED, 8, 1, 2,
	  GSAS_E_MAPPED },

	{ "update without type", GSAS_UPDATE, PLAIN, 0, UPDATE(SUM, 16), 1,
	  GSAS_E_OPCODE },
	{ "update without op", GSAS_UPDATE, PLAIN, 0, UPDATE(19, U64), 1,
	  GSAS_E_OPCODE },
	{ "update of 16 bytes", GSAS_UPDATE, PLAIN, 0, UPDATE(SUM, U128), 1,
	  GSAS_E_OPCODE },
	{ "update that compares", GSAS_UPDATE, PLAIN, 0,
	  UPDATE(GSAS_OP_CSWAP, U64), 1, GSAS_E_OPCODE },
	{ "update min of complex", GSAS_UPDATE, PLAIN, 0,
	  UPDATE(GSAS_OP_MIN, C32), 1, GSAS_E_OPCODE },
	{ "update with more bits", GSAS_UPDATE, PLAIN, 0,
	  UPDATE(SUM, U64) | 1 << 16, 1, GSAS_E_ARGUMENT },
	{ "update over the end", GSAS_UPDATE, PLAIN, END - 7,
	  UPDATE(SUM, U64), 1, GSAS_E_ARGUMENT },
	{ "update mapped, not aligned", GSAS_UPDATE, MAPPED, 4,
	  UPDATE(SUM, U64), 1, GSAS_E_MAPPED },
	{ "update mapped, complex", GSAS_UPDATE, MAPPED, 0, UPDATE(SUM, C32),
	  1, GSAS_E_MAPPED },

	{ "atomic without type", GSAS_ATOMIC, PLAIN, 0, ATOMIC(SUM, 16, 0, 1),
	  0, GSAS_E_OPCODE },
	{ "atomic without op", GSAS_ATOMIC, PLAIN, 0, ATOMIC(19, U64, 0, 1), 0,
	  GSAS_E_OPCODE },
	{ "atomic without form", GSAS_ATOMIC, PLAIN, 0, ATOMIC(SUM, U64, 3, 1),
	  0, GSAS_E_OPCODE },
	{ "atomic in a wrong form", GSAS_ATOMIC, PLAIN, 0,
	  ATOMIC(SUM, U64, GSAS_FORM_COMPARE, 1), 0, GSAS_E_OPCODE },
	{ "atomic with more bits", GSAS_ATOMIC, PLAIN, 0,
	  ATOMIC(SUM, U64, 0, 1) | 1 << 24, 0, GSAS_E_ARGUMENT },
	{ "atomic of nothing", GSAS_ATOMIC, PLAIN, 0, ATOMIC(SUM, U64, 0, 0),
	  0, GSAS_E_ARGUMENT },
	{ "atomic of too many", GSAS_ATOMIC, BIG, 0,
	  ATOMIC(SUM, U64, 0, GSAS_BULK_MAX / 8 + 1), 0, GSAS_E_ARGUMENT },
	{ "atomic of too many results", GSAS_ATOMIC, BIG, 0,
	  ATOMIC(GSAS_OP_READ, U64, 1, GSAS_BULK_MAX / 8 + 1), 0,
	  GSAS_E_ARGUMENT },
	{ "atomic of 2^32 - 1", GSAS_ATOMIC, PLAIN, 0,
	  ATOMIC(GSAS_OP_READ, U64, 1, UINT32_MAX), 0, GSAS_E_ARGUMENT },
	{ "atomic over the end", GSAS_ATOMIC, PLAIN, END - 16,
	  ATOMIC(SUM, U64, 0, 3), 0, GSAS_E_ARGUMENT },
	{ "operand outside", GSAS_ATOMIC, PLAIN, 0, ATOMIC(SUM, U64, 0, 1),
	  OUTSIDE - 7, GSAS_E_ARGUMENT },
	{ "compare outside", GSAS_ATOMIC, PLAIN, 0,
	  ATOMIC(GSAS_OP_CSWAP, U64, GSAS_FORM_COMPARE, 1), OUTSIDE - 8,
	  GSAS_E_ARGUMENT },
	{ "result outside", GSAS_ATOMIC, PLAIN, 0,
	  ATOMIC(SUM, U64, GSAS_FORM_FETCH, 1), (OUTSIDE - 7) << 32,
	  GSAS_E_ARGUMENT },
	{ "mapped, complex", GSAS_ATOMIC, MAPPED, 0, ATOMIC(SUM, C64, 0, 1), 0,
	  GSAS_E_MAPPED },
	{ "mapped, long double", GSAS_ATOMIC, MAPPED, 0,
	  ATOMIC(SUM, LD, 0, 1), 0, GSAS_E_MAPPED },
	{ "mapped, 16 bytes at 8", GSAS_ATOMIC, MAPPED, 8,
	  ATOMIC(GSAS_OP_WRITE, U128, 0, 1), 0, GSAS_E_MAPPED },
	{ "mapped, not aligned", GSAS_ATOMIC, MAPPED, 2,
	  ATOMIC(SUM, GSAS_TYPE_FLOAT, 0, 1), 0, GSAS_E_MAPPED },

	{ "get over the end", GSAS_GET, PLAIN, END - 8, 9, 0,
	  GSAS_E_ARGUMENT },
	{ "get too much", GSAS_GET, BIG, 0, GSAS_BULK_MAX + 1, 0,
	  GSAS_E_ARGUMENT },
	{ "get 2^64 - 1", GSAS_GET, PLAIN, 8, UINT64_MAX, 0, GSAS_E_ARGUMENT },
	{ "get to outside", GSAS_GET, PLAIN, 0, 8, OUTSIDE - 7,
	  GSAS_E_ARGUMENT },
	{ "get to far away", GSAS_GET, PLAIN, 0, 8, UINT64_MAX - 3,
	  GSAS_E_ARGUMENT },
	{ "put over the end", GSAS_PUT, PLAIN, END - 8, 9, 0,
	  GSAS_E_ARGUMENT },
	{ "put too much", GSAS_PUT, BIG, 0, GSAS_BULK_MAX + 1, 0,
	  GSAS_E_ARGUMENT },
	{ "put from outside", GSAS_PUT, MAPPED, 0, 8, OUTSIDE - 7,
	  GSAS_E_ARGUMENT },
	{ "put from far away", GSAS_PUT, PLAIN, 0, 8, UINT64_MAX - 3,
	  GSAS_E_ARGUMENT },

	{ "map a foreign one", GSAS_MAP, FOREIGN, 0, 0, 0, GSAS_E_ACCESS },
	{ "map a foreign queue", GSAS_MAP, QUEUE_WORLD, 0, 0, 0,
	  GSAS_E_ACCESS },
	{ "map to outside", GSAS_MAP, MAPPED, 0, 0, OUTSIDE - 31,
	  GSAS_E_ARGUMENT },
	{ "map what was freed", GSAS_MAP, FREED, 0, 0, 0, GSAS_E_FREED },

	{ "queue without quota", GSAS_QUEUE_NEW, NOWHERE, 0, UINT64_C(8) << 32,
	  0, GSAS_E_ARGUMENT },
	{ "quota too large", GSAS_QUEUE_NEW, NOWHERE, 0, UINT64_C(8) << 32 |
	  (GSAS_QUEUE_QUOTA_MAX + 1), 0, GSAS_E_ARGUMENT },
	{ "buffer too small", GSAS_QUEUE_NEW, NOWHERE, 0, UINT64_C(4) << 32 |
	  64, 0, GSAS_E_ARGUMENT },
	{ "buffer no power of two", GSAS_QUEUE_NEW, NOWHERE, 0,
	  UINT64_C(24) << 32 | 64, 0, GSAS_E_ARGUMENT },
	{ "queue with a wrong mode", GSAS_QUEUE_NEW, NOWHERE, 0,
	  UINT64_C(8) << 32 | 64, 9, GSAS_E_ARGUMENT },
	{ "queue beyond the quota", GSAS_QUEUE_NEW, NOWHERE, 0,
	  UINT64_C(8) << 32 | 1 << 20, 0, GSAS_E_QUOTA },
	{ "open what is no queue", GSAS_QUEUE_OPEN, MAPPED, 0, 0, 0,
	  GSAS_E_STATE },
	{ "open its second page", GSAS_QUEUE_OPEN, QUEUE_WORLD, 8, 0, 0,
	  GSAS_E_ARGUMENT },
	{ "open twice", GSAS_QUEUE_OPEN, QUEUE, 0, 0, 0, GSAS_E_STATE },
	{ "open a foreign one", GSAS_QUEUE_OPEN, FOREIGN, 0, 0, 0,
	  GSAS_E_ACCESS },
	{ "close what is not open", GSAS_QUEUE_CLOSE, QUEUE_WORLD, 0, 0, 0,
	  GSAS_E_STATE },
	{ "close what is no queue", GSAS_QUEUE_CLOSE, PLAIN, 0, 0, 0,
	  GSAS_E_STATE },
	{ "close what was freed", GSAS_QUEUE_CLOSE, FREED, 0, 0, 0,
	  GSAS_E_FREED },
	{ "enqueue, not open", GSAS_ENQUEUE, QUEUE_WORLD, 0, 1, 0,
	  GSAS_E_STATE },
	{ "enqueue, no queue", GSAS_ENQUEUE, PLAIN, 0, 1, 0, GSAS_E_STATE },
	{ "enqueue, foreign", GSAS_ENQUEUE, FOREIGN, 0, 1, 0, GSAS_E_ACCESS },
	{ "enqueue, never allocated", GSAS_ENQUEUE, NOWHERE, BEHIND, 1, 0,
	  GSAS_E_ADDRESS },
	{ "dequeue, no queue", GSAS_DEQUEUE, PLAIN, 0, 1, 0, GSAS_E_STATE },
	{ "wait, foreign", GSAS_QUEUE_WAIT, QUEUE_WORLD, 0, 0, 0,
	  GSAS_E_ACCESS },
	{ "wait at what is no queue", GSAS_QUEUE_WAIT, PLAIN, 0, 0, 0,
	  GSAS_E_STATE },
	{ "dequeue, foreign", GSAS_DEQUEUE, QUEUE_WORLD, 0, 1, 0,
	  GSAS_E_ACCESS },
	{ "dequeue to outside", GSAS_DEQUEUE, QUEUE, 0,
	  2 | (OUTSIDE - 15) << 32, 0, GSAS_E_ARGUMENT },
	{ "dequeue too many", GSAS_DEQUEUE, QUEUE, 0, GSAS_BULK_MAX / 8 + 1, 0,
	  GSAS_E_ARGUMENT },

	{ "an empty name", GSAS_NAME, PLAIN, 0, 0, 1, GSAS_E_ARGUMENT },
	{ "a name for a second page", GSAS_NAME, PLAIN, PAGE, 1, 0,
	  GSAS_E_ARGUMENT },
	{ "a name for foreign memory", GSAS_NAME, QUEUE_WORLD, 0, 1, 0,
	  GSAS_E_ACCESS },
	{ "a name for what was freed", GSAS_NAME, FREED, 0, 1, 0,
	  GSAS_E_FREED },
	{ "a name for nothing", GSAS_NAME, NOWHERE, BEHIND, 1, 0,
	  GSAS_E_ADDRESS },

	{ "counters to outside", GSAS_STAT, NOWHERE, 0, 0,
	  OUTSIDE - sizeof(struct gsas_stat) + 1, GSAS_E_ARGUMENT },
	{ "list to outside", GSAS_LIST, NOWHERE, 0, 2, OUTSIDE - 63,
	  GSAS_E_ARGUMENT },
	{ "list of nothing", GSAS_LIST, NOWHERE, 0, 0, 0, GSAS_E_ARGUMENT },
	{ "list of too many", GSAS_LIST, NOWHERE, 0, GSAS_BULK_MAX / 32 + 1, 0,
	  GSAS_E_ARGUMENT },
	{ "list of 2^64 / 32", GSAS_LIST, NOWHERE, 0, UINT64_C(1) << 59, 0,
	  GSAS_E_ARGUMENT },
	{ "reclaim the living", GSAS_RECLAIM, PLAIN, 0, 0, 0, GSAS_E_STATE },
	{ "reclaim a user's", GSAS_RECLAIM, FOREIGN, 0, 0, 0, GSAS_E_ACCESS },
	{ "reclaim nothing", GSAS_RECLAIM, NOWHERE, BEHIND, 0, 0,
	  GSAS_E_ADDRESS },
};

struct scene {
	struct fixture *w;
	struct fixture_client *me, *other, *unjoined;
	uint64_t place[PLACES];
	uint64_t hash;			/* of all memory; must not change */
};

static struct scene scene_new(void)
{
	struct gsas_service_attr attr = { .pages.max_user.pages = 100,
					  .spawn = fixture_spawn };
	struct scene s = { .w = fixture_new(&attr) };
	uint64_t queue = 64 | UINT64_C(8) << 32, group, word = 1;

	s.me = fixture_client(s.w, 1, 1);
	s.other = fixture_client(s.w, 2, 2);
	s.unjoined = fixture_unjoined(s.w, 1);
	group = fixture_result(s.other, GSAS_GROUP, 'g', 0, 0);
	assert_int_equal(group, 1);
	fixture_result(s.me, GSAS_GROUP, 'g', 0, 0);	/* a group of user 1 */
	s.place[PLAIN] = fixture_alloc(s.me, 2, 0);
	s.place[MAPPED] = fixture_alloc(s.me, 2, GSAS_ATTR_MAPPED);
	s.place[BIG] = fixture_alloc(s.me, 20, GSAS_MODE_WORLD);
	s.place[QUEUE] = fixture_result(s.me, GSAS_QUEUE_NEW, 0, queue, 0);
	s.place[QUEUE_WORLD] = fixture_result(s.other, GSAS_QUEUE_NEW, 0, queue,
					      GSAS_MODE_WORLD);
	s.place[FOREIGN] = fixture_alloc(s.other, 2, 0);
	s.place[GROUP] = fixture_alloc(s.other, 1, GSAS_MODE_GROUP |
				       group << 32);
	s.place[FREED] = fixture_alloc(s.other, 1, GSAS_MODE_WORLD);
	fixture_result(s.other, GSAS_FREE, 0, s.place[FREED], 0);
	memset(s.me->in, 'x', sizeof(s.me->in));
	fixture_result(s.me, GSAS_PUT, s.place[PLAIN], PAGE, 0);
	fixture_result(s.me, GSAS_PUT, s.place[MAPPED], END, 0);
	fixture_result(s.me, GSAS_QUEUE_OPEN, s.place[QUEUE], 0, 0);
	fixture_result(s.me, GSAS_ENQUEUE, s.place[QUEUE], word, 0);
	fixture_settle(s.w);
	s.hash = fixture_hash(s.w);
	return s;
}

static void check(struct scene *s, struct fixture_client *who,
		  const struct misuse *m, uint8_t opcode, enum gsas_error want)
{
	bool in_arg1 = opcode == GSAS_FREE || opcode == GSAS_FORK;
	uint64_t address = s->place[m->place] + m->off;
	uint64_t error;
	struct gsas_stat stat = *gsas_service_stat(s->w->service);

	error = fixture_error(who, opcode, in_arg1 ? 0 : address,
			      in_arg1 ? address : m->arg1, m->arg2);
	if (error != want)
		unit_fail("opcode %d, %s: error %d, not %d", opcode, m->what,
			  (int)error, (int)want);
	fixture_settle(s->w);
	if (fixture_hash(s->w) != s->hash)
		unit_fail("opcode %d, %s: memory was changed", opcode,
			  m->what);
	gsas_service_stat(s->w->service);
	assert_int_equal(stat.pages,
			 gsas_service_stat(s->w->service)->pages);
	assert_int_equal(stat.words,
			 gsas_service_stat(s->w->service)->words);
}

/* Arguments that would be valid at an accessible address. */
static void plausible(uint8_t opcode, struct misuse *m)
{
	m->arg1 = opcode == GSAS_UPDATE ? UPDATE(SUM, U64) :
		  opcode == GSAS_ATOMIC ? ATOMIC(SUM, U64, 1, 1) : 1;
	m->arg2 = 0;
}

static void test_places(void **state)
{
	struct scene s = scene_new();

	for (size_t i = 0; i < sizeof(memory_ops); i++)
		for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++) {
			struct misuse m = places[k];

			plausible(memory_ops[i], &m);
			check(&s, s.me, &m, memory_ops[i], m.error);
		}
	fixture_free(s.w);
}

static void test_table(void **state)
{
	struct scene s = scene_new();

	for (size_t i = 0; i < sizeof(misuses) / sizeof(*misuses); i++)
		check(&s, s.me, &misuses[i], misuses[i].opcode,
		      misuses[i].error);
	fixture_free(s.w);
}

/* A client without a job gets GSAS_E_JOIN for every operation but JOIN. */
static void test_client_without_a_job(void **state)
{
	struct scene s = scene_new();

	for (int opcode = 0; opcode < 256; opcode++) {
		struct misuse m = { "no job", 0, PLAIN, 0, 0, 0, GSAS_E_JOIN };
		bool known = (opcode >= 1 && opcode <= 14) ||
			     (opcode >= 64 && opcode <= 82);

		if (opcode == GSAS_JOIN)
			continue;
		plausible((uint8_t)opcode, &m);
		check(&s, s.unjoined, &m, (uint8_t)opcode,
		      known ? GSAS_E_JOIN : GSAS_E_OPCODE);
	}
	fixture_result(s.unjoined, GSAS_JOIN, 1, ~UINT64_C(1), 0);
	fixture_result(s.unjoined, GSAS_READ64, s.place[PLAIN], 0, 0);
	fixture_free(s.w);
}

/* The board's limits of jobs, groups and regions are reached. */
static void test_tables_full(void **state)
{
	struct gsas_service_attr attr = { .pages = {
		.max_jobs = 2, .max_groups = 1, .max_regions = 2,
	} };
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 2);
	struct fixture_client *c = fixture_unjoined(w, 1);

	assert_int_equal(fixture_error(c, GSAS_JOIN, 3, ~UINT64_C(3), 0),
			 GSAS_E_QUOTA);
	assert_int_equal(fixture_error(c, GSAS_ALLOC, 0, 1, 0), GSAS_E_JOIN);
	fixture_result(c, GSAS_JOIN, 1, ~UINT64_C(1), 0);
	fixture_result(a, GSAS_GROUP, 1, 0, 0);
	assert_int_equal(fixture_error(b, GSAS_GROUP, 2, 0, 0), GSAS_E_QUOTA);
	fixture_result(b, GSAS_GROUP, 1, 0, 0);
	fixture_alloc(a, 1, 0);
	fixture_alloc(b, 1, 0);
	assert_int_equal(fixture_error(a, GSAS_ALLOC, 0, 1, 0), GSAS_E_QUOTA);
	fixture_free(w);
}

UNIT_MAIN(
	cmocka_unit_test(test_places),
	cmocka_unit_test(test_table),
	cmocka_unit_test(test_client_without_a_job),
	cmocka_unit_test(test_tables_full),
)
