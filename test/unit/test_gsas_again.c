/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_again.c - boards with so few addresses that the service soon uses
 * them again: a client's knowledge of segments that are gone does no harm.
 *
 * test_gsas_pages.c tests how the service chooses addresses.
 */
#include <dirent.h>

#include "lib/gsas_services.h"

#define SPACE	(UINT64_C(16) << 20)	/* bytes of addresses, less 1 MiB */
#define ROUNDS	300
#define SIZES	7

/* The number of lines in a file that begin with this text. */
static int lines_of(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char line[256];
	int n = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		n += strncmp(line, text, strlen(text)) == 0;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Counts the open descriptors, and those in epoll sets, open or closed. */
static void descriptors(int *open, int *watched)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char path[300];

	assert_non_null(dir);
	*open = *watched = 0;
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s",
			 entry->d_name);
		*watched += lines_of(path, "tfd:");
		++*open;
	}
	closedir(dir);
}

/* A client watches the service's process as long as it has a segment of the
 * service mapped. (The services of this test are this process, and nothing is
 * mapped at the start.) */
static void test_service_is_watched_while_mapped(void **state)
{
	int open = 0, watched = 0, now_open, now_watched;
	struct gsas_thread *t;
	gsas_addr a;
	size_t len;
	void *p;

	assert_int_equal(gsas_thread_get(&t), 0);
	unit_needs(gsas_maps_board(t, g_first));
	for (int round = 0; round < 4; round++) {
		a = host_alloc(1, 0, GSAS_MAPPED);
		assert_int_equal(gsas_map(a, &p, &len), 0);
		descriptors(&now_open, &now_watched);
		if (round != 0)
			assert_int_equal(now_watched, watched + 1);
		assert_int_equal(gsas_free(a), 0);
		if (round == 0) {	/* thread and connection exist from here
					 * on */
			usleep(100000);
			descriptors(&open, &watched);
		}
		/* the service closes its descriptors later */
		for (int i = 0; i < 10000; i++) {
			descriptors(&now_open, &now_watched);
			if (now_open <= open)
				break;
			usleep(1000);
		}
		assert_true(now_open <= open);
		assert_int_equal(now_watched, watched);
	}
}

/* Allocations of all kinds with other sizes than before: each can be read and
 * written, and is refused once it is freed. */
static void test_addresses_come_again(void **state)
{
	static const unsigned kinds[] = { 0, GSAS_MAPPED, GSAS_MAPPED };
	uint64_t lowest = UINT64_MAX, value, last = 0;
	struct gsas_thread *t;
	int rounds = 0;

	assert_int_equal(gsas_thread_get(&t), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t pages = 200 + 150 * (uint64_t)(i % SIZES);
		unsigned kind = kinds[i % 3];
		gsas_addr a = host_alloc(pages, 0, kind);
		gsas_addr end = a + (pages - 1) * GSAS_PAGE;
		size_t bytes;
		void *p;

		rounds += a < last;
		last = a;
		lowest = a < lowest ? a : lowest;
		assert_int_equal(host_read(a), 0);
		assert_int_equal(gsas_write64(end, (uint64_t)i), 0);
		assert_int_equal(host_read(end), i);
		if (kind == GSAS_MAPPED && gsas_maps_board(t, g_first) &&
		    i % 2 == 0) {
			assert_int_equal(gsas_map(a, &p, &bytes), 0);
			assert_int_equal(bytes, pages * GSAS_PAGE);
		}
		assert_int_equal(gsas_free(a), 0);
		assert_int_equal(gsas_read64(a, &value), -ESTALE);
		assert_int_equal(gsas_write64(end, 1), -ESTALE);
	}
	assert_true(rounds > 10);
	assert_true(lowest < gsas_base((uint32_t)g_first) + 4 * GSAS_SEGMENT);
}

static void *free_it(void *arg)
{
	HOLDS(gsas_free(*(gsas_addr *)arg) == 0);
	return NULL;
}

/* Another thread frees what this one has mapped, so this one does not notice.
 * When the addresses are allocated again the new memory is mapped, not refused
 * because the old memory is gone. */
static void test_freed_by_another_thread(void **state)
{
	struct gsas_thread *t;
	uint64_t last = 0;
	int rounds = 0;

	assert_int_equal(gsas_thread_get(&t), 0);
	unit_needs(gsas_maps_board(t, g_first));
	for (int i = 0; i < 60; i++) {
		gsas_addr a = host_alloc(300, 0, GSAS_MAPPED);
		pthread_t thread;
		size_t bytes;
		void *p;

		rounds += a < last;
		last = a;
		assert_int_equal(gsas_map(a, &p, &bytes), 0);
		assert_int_equal(bytes, 300 * GSAS_PAGE);
		assert_int_equal(*(uint64_t *)p, 0);
		assert_int_equal(gsas_write64(a, 5), 0);
		assert_int_equal(*(uint64_t *)p, 5);
		thread = unit_thread(free_it, &a);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_true(rounds > 2);
}

/* A pointer into a freed segment is valid until the thread ends, also if
 * another segment has its addresses. */
static void test_pointers_last(void **state)
{
	gsas_addr a, b;
	uint64_t value;
	struct gsas_thread *t;
	size_t bytes;
	void *p;

	assert_int_equal(gsas_thread_get(&t), 0);
	unit_needs(gsas_maps_board(t, g_first));
	a = host_alloc(300, 0, GSAS_MAPPED);
	assert_int_equal(gsas_map(a, &p, &bytes), 0);
	*(uint64_t *)p = 77;
	assert_int_equal(gsas_free(a), 0);
	for (int i = 0; i < 40; i++) {
		b = host_alloc(600, 0, GSAS_MAPPED);
		assert_int_equal(gsas_write64(b, 1), 0);
		assert_int_equal(host_read(b + 4096), 0);
		assert_int_equal(gsas_free(b), 0);
	}
	*(volatile uint64_t *)p += 1;
	host_stop(0);
	assert_int_equal(gsas_read64(b, &value), -ECONNRESET);
	*(volatile uint64_t *)p += 1;
	host_start(0);
	/* freed before the service ended: no other allocation has this
	 * memory */
	assert_true(*(volatile uint64_t *)p == 2 ||
		    *(volatile uint64_t *)p == 79);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_service_is_watched_while_mapped),
		cmocka_unit_test(test_addresses_come_again),
		cmocka_unit_test(test_freed_by_another_thread),
		cmocka_unit_test(test_pointers_last),
	};

	g_host_end = SPACE;
	host_boards();
	return unit_run_with(tests, host_setup, host_teardown);
}
