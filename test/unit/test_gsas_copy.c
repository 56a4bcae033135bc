/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_copy.c - copies to and from memory that other threads access: each
 * byte is copied, no other byte is written, and each aligned word of up to 8
 * bytes is accessed as a whole.
 */
#include "common/gsas_copy.h"
#include "lib/unit.h"

#define BYTES	256
#define GUARD	32
#define WORDS	512
#define ROUNDS	20000

static void test_every_byte(void **state)
{
	static uint8_t from[BYTES + 2 * GUARD], to[BYTES + 2 * GUARD];
	static uint8_t want[sizeof(to)];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (int way = 0; way < 2; way++)
		for (size_t at = 0; at < GUARD; at++)
			for (size_t len = 0; len <= 100; len++) {
				memset(to, 0xEE, sizeof(to));
				memcpy(want, to, sizeof(to));
				memcpy(want + GUARD + at, from + len % 17, len);
				if (way == 0)
					gsas_copy_to_shared(to + GUARD + at,
							    from + len % 17,
							    len);
				else
					gsas_copy_from_shared(to + GUARD + at,
							      from + len % 17,
							      len);
				assert_memory_equal(to, want, sizeof(to));
			}
}

/* ---- Two threads --------------------------------------------------------- */

static struct {
	_Alignas(64) _Atomic uint64_t word[WORDS + 2];
	_Atomic bool stop;
	bool torn;
} g;

static bool is_torn(uint64_t word)
{
	return word != 0 && word != UINT64_MAX;
}

/* Reads the words that the main thread copies to. */
static void *reader(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&g.stop, memory_order_relaxed))
		for (int i = 0; i < WORDS + 2; i++)
			g.torn |= is_torn(atomic_load_explicit(&g.word[i],
						memory_order_relaxed));
	return NULL;
}

/* Writes the words that the main thread copies from. */
static void *writer(void *arg)
{
	uint64_t word = 0;

	(void)arg;
	while (!atomic_load_explicit(&g.stop, memory_order_relaxed)) {
		word = ~word;
		for (int i = 0; i < WORDS + 2; i++)
			atomic_store_explicit(&g.word[i], word,
					      memory_order_relaxed);
	}
	return NULL;
}

/* begin: number of words behind an aligned line, so that pairs of words are
 * aligned or not. */
static void copies(int begin, bool to)
{
	static uint64_t own[WORDS];

	for (int n = 0; n < ROUNDS; n++) {
		if (to) {
			memset(own, n % 2 ? 0xFF : 0, sizeof(own));
			gsas_copy_to_shared((void *)&g.word[begin], own,
					    sizeof(own));
			continue;
		}
		gsas_copy_from_shared(own, (void *)&g.word[begin],
				      sizeof(own));
		for (int i = 0; i < WORDS; i++)
			assert_false(is_torn(own[i]));
	}
}

static void beside(void *(*other)(void *), bool to)
{
	pthread_t thread;

	memset(&g, 0, sizeof(g));
	thread = unit_thread(other, NULL);
	copies(0, to);
	copies(1, to);
	atomic_store(&g.stop, true);
	pthread_join(thread, NULL);
	assert_false(g.torn);
}

static void test_words_stay_whole(void **state)
{
	beside(reader, true);
	beside(writer, false);
}

UNIT_MAIN(
	cmocka_unit_test(test_every_byte),
	cmocka_unit_test(test_words_stay_whole),
)
