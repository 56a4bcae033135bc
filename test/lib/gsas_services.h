/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_services.h - atomic services as threads of a test, so that a sanitizer
 * sees both sides; and boards that no other test on the machine uses.
 */
#ifndef GSAS_HOST_H
#define GSAS_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/unit.h"
#include "gsas.h"
#include "service/gsas_board.h"
#include "client/gsas_thread.h"

#define HOSTS	2

struct host {
	struct gsas_board *board;
	pthread_t thread;
	_Atomic bool stop;
	int number;
};

static struct host g_host[HOSTS];
static int g_first;		/* board of the first host */
static uint64_t g_host_end;	/* of their addresses, 0: as usual */
static struct gsas_hot g_host_cold;	/* knows no segment */

static void *host_run(void *arg)
{
	struct host *h = arg;

	while (!atomic_load(&h->stop))
		if (!gsas_board_poll(h->board))
			gsas_board_sleep(h->board, 1);
	return NULL;
}

static inline enum gsas_error host_spawn(void *ctx,
					 const struct gsas_spawn *spawn,
					 uint64_t *pid)
{
	(void)ctx;
	if (strcmp(spawn->path, "/missing") == 0)
		return GSAS_E_PATH;
	if (strcmp(spawn->path, "/forbidden") == 0)
		return GSAS_E_EXEC;
	*pid = spawn->argument + strlen(spawn->path);
	return GSAS_OK;
}

static inline void host_start(int i)
{
	struct gsas_board_attr attr = {
		.board = g_first + i, .max_pages = 200000, .spawn = host_spawn,
		.end = g_host_end,
	};
	struct host *h = &g_host[i];
	int ret;

	h->number = g_first + i;
	atomic_store(&h->stop, false);
	/* its predecessor's end may not be known to all yet */
	for (int tries = 0; (ret = gsas_board_open(&attr, &h->board)) ==
	     -FI_EBUSY && tries < 1000; tries++)
		usleep(1000);
	assert_int_equal(ret, 0);
	assert_int_equal(pthread_create(&h->thread, NULL, host_run, h), 0);
}

static inline void host_stop(int i)
{
	struct host *h = &g_host[i];

	atomic_store(&h->stop, true);
	gsas_board_wake(h->board);
	pthread_join(h->thread, NULL);
	gsas_board_close(h->board);
}

/* Before the first call of the library. */
static inline void host_boards(void)
{
	char text[16];
	const char *hal = getenv("FI_UNIMEM_HAL");

	if (hal != NULL && strcmp(hal, "sim") == 0) {
		/* each test has a model of its own */
		setenv("FI_UNIMEM_BOARDS", "2", 1);
	} else {
		g_first = (int)(getpid() % 30000) * HOSTS;
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	snprintf(text, sizeof(text), "%d", g_first);
	setenv("FI_UNIMEM_BOARD", text, 1);
	/* nobody else starts one */
	setenv("GSASD", "/nonexistent/gsasd", 1);
}

static inline int host_setup(void **state)
{
	(void)state;
	for (int i = 0; i < HOSTS; i++)
		host_start(i);
	return 0;
}

static inline int host_teardown(void **state)
{
	(void)state;
	for (int i = 0; i < HOSTS; i++)
		host_stop(i);
	return 0;
}

/* A thread with a check of its own: asserts are for the main one. */
#define HOLDS(cond)	do {						\
		if (!(cond)) {						\
			print_error("%s:%d: not so: %s\n", __FILE__,	\
				    __LINE__, #cond);			\
			abort();					\
		}							\
	} while (0)

static inline gsas_addr host_alloc(uint64_t pages, int i, unsigned flags)
{
	gsas_addr addr;

	assert_int_equal(gsas_alloc(pages, g_first + i, flags, NULL, &addr),
			 0);
	return addr;
}

/* This thread goes by packets even where it could do without. */
static inline void host_packets(bool only)
{
	struct gsas_thread *t;

	HOLDS(gsas_thread_get(&t) == 0);
	t->windows = !only && t->hif->caps->flags & HAL_CAP_COHERENT;
	gsas_hot = only || !t->wiped ? &g_host_cold : t->hot;
}

#endif /* GSAS_HOST_H */
