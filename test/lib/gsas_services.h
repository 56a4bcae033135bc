/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_services.h - GSAS services of two boards, each a thread of the test, for
 * tests of libgsas
 *
 * Service and client run in one process, so that a sanitizer observes both. The
 * boards are used by no other test on the machine. State is global; the main
 * thread starts and stops the services.
 */
#ifndef GSAS_HOST_H
#define GSAS_HOST_H

#include <spawn.h>
#include <sys/prctl.h>

#include "lib/unit.h"
#include "gsas.h"
#include "service/gsas_board.h"
#include "client/gsas_direct.h"
#include "client/gsas_thread.h"

#define HOSTS	2

/* A service, from host_start() to host_stop(). */
struct host {
	struct gsas_board *board;
	pthread_t thread;		/* runs host_run() */
	_Atomic bool stop;		/* ask the thread to return */
	int number;			/* board number */
};

static struct host g_host[HOSTS];
static int g_first;		/* board number of g_host[0] */
static uint64_t g_host_end;	/* gsas_board_attr.end of the services: end of
				 * their addresses; 0: default */
static struct gsas_hot g_host_cold;	/* a cache without a segment, see
					 * host_packets() */

static void *host_run(void *arg)
{
	struct host *h = arg;

	while (!atomic_load(&h->stop))
		if (!gsas_board_poll(h->board))
			gsas_board_sleep(h->board, 1);
	return NULL;
}

/* Starts no process. The result depends on the arguments, so that a test can
 * check them. */
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

/* Start service i (0 or 1). */
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
	/* The socket name of the service before it may not be released yet. */
	for (int tries = 0; (ret = gsas_board_open(&attr, &h->board)) ==
	     -FI_EBUSY && tries < 1000; tries++)
		usleep(1000);
	assert_int_equal(ret, 0);
	h->thread = unit_thread(host_run, h);
}

/* Stop service i, and wait for the end of its thread. */
static inline void host_stop(int i)
{
	struct host *h = &g_host[i];

	atomic_store(&h->stop, true);
	gsas_board_wake(h->board);
	pthread_join(h->thread, NULL);
	gsas_board_close(h->board);
}

/*
 * A service in a process, in place of host_start(host): it stands for another
 * process of the board or for another host, which a test stops and kills. The
 * process executes this program, whose main() begins with host_process_main().
 * Returns when the service runs.
 */
static inline pid_t host_process(int host)
{
	char *argv[] = { "host", "serve", NULL, NULL, NULL };
	char number[16], which[16], c;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	snprintf(number, sizeof(number), "%d", fds[1]);
	argv[2] = number;
	snprintf(which, sizeof(which), "%d", host);
	argv[3] = which;
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv,
				     environ), 0);
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

/* Serve, and do not return, if host_process() started this process. */
static inline void host_process_main(int argc, char **argv)
{
	if (argc != 4 || strcmp(argv[1], "serve") != 0)
		return;
	g_first = atoi(getenv("FI_UNIMEM_BOARD"));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	host_start(atoi(argv[3]));
	if (write(atoi(argv[2]), "!", 1) != 1)
		exit(1);
	for (;;)
		pause();
}

/* Choose the boards. Call before the first call of libgsas. */
static inline void host_boards(void)
{
	char text[16];
	const char *hal = getenv("FI_UNIMEM_HAL");

	if (hal != NULL && strcmp(hal, "sim") == 0) {
		/* Each test has a model of its own: any number will do. */
		setenv("FI_UNIMEM_BOARDS", "2", 1);
	} else {
		g_first = (int)(getpid() % 30000) * HOSTS;
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	snprintf(text, sizeof(text), "%d", g_first);
	setenv("FI_UNIMEM_BOARD", text, 1);
	/* libgsas must not start a service. */
	setenv("GSASD", "/nonexistent/gsasd", 1);
}

/* cmocka set-up and teardown: start and stop both services. */
static inline int host_setup(void **state)
{
	for (int i = 0; i < HOSTS; i++)
		host_start(i);
	return 0;
}

static inline int host_teardown(void **state)
{
	for (int i = 0; i < HOSTS; i++)
		host_stop(i);
	return 0;
}

/* UNIT_MAIN() with both services. */
#define HOST_MAIN(...)							\
	int main(void)							\
	{								\
		const struct CMUnitTest tests[] = { __VA_ARGS__ };	\
									\
		host_boards();						\
		return unit_run_with(tests, host_setup, host_teardown);	\
	}

/* An assertion for any thread: cmocka's need the main thread. */
#define HOLDS(cond)	do {						\
		if (!(cond)) {						\
			print_error("%s:%d: not so: %s\n", __FILE__,	\
				    __LINE__, #cond);			\
			abort();					\
		}							\
	} while (0)

/* Allocate pages of board i; flags as for gsas_alloc(). */
static inline gsas_addr host_alloc(uint64_t pages, int i, unsigned flags)
{
	gsas_addr addr;

	assert_int_equal(gsas_alloc(pages, g_first + i, flags, NULL, &addr),
			 0);
	return addr;
}

/* The word at an address, which must be readable. */
static inline uint64_t host_read(gsas_addr addr)
{
	uint64_t value;

	assert_int_equal(gsas_read64(addr, &value), 0);
	return value;
}

/* Let the calling thread send each operation as a request (only), or access
 * mapped memory directly where it can, as by default. */
static inline void host_packets(bool only)
{
	struct gsas_thread *t;

	HOLDS(gsas_thread_get(&t) == 0);
	t->maps = only ? GSAS_MAPS_NONE :
		  t->hif->caps->flags & HAL_CAP_COHERENT ? GSAS_MAPS_ALL :
		  GSAS_MAPS_OWN;
	gsas_hot = only || !t->wiped ? &g_host_cold : t->hot;
}

#endif /* GSAS_HOST_H */
