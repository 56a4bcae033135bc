/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_threads.c - libgsas opens an interface for each thread at its first
 * call, and closes it at the end of the thread
 *
 * In the profile exanode a board has 63 interfaces: the call of the 64th thread
 * fails, with one log line that names the reason. The interfaces of a thread
 * that ends and of a process that is killed can be opened again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/gsas_processes.h"

#define MOST	63			/* in exanode, of a board */

static const char *const *exanode(void)
{
	static const char *env[3];

	env[0] = board_env(0)[0];
	env[1] = "FI_UNIMEM_PROFILE=exanode";
	return env;
}

struct threads {
	gsas_addr page;
	pthread_barrier_t in, out;
	pthread_t thread[MOST];
};

/* Counts itself, and stays until all have. */
static void *one(void *arg)
{
	struct threads *t = arg;

	GSAS(gsas_fad64(t->page, 1, NULL));
	pthread_barrier_wait(&t->in);
	pthread_barrier_wait(&t->out);
	return NULL;
}

/* n threads with an interface each; the caller has none of its own. */
static void start(struct threads *t, int n)
{
	CHECK(pthread_barrier_init(&t->in, NULL, (unsigned)n + 1) == 0);
	CHECK(pthread_barrier_init(&t->out, NULL, (unsigned)n + 1) == 0);
	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&t->thread[i], NULL, one, t) == 0);
	pthread_barrier_wait(&t->in);
}

static void end(struct threads *t, int n)
{
	pthread_barrier_wait(&t->out);
	for (int i = 0; i < n; i++)
		CHECK(pthread_join(t->thread[i], NULL) == 0);
}

/* Captured standard error. */
static int g_err;

static void listen_to_errors(void)
{
	g_fail_fd = dup(STDERR_FILENO);
	g_err = memfd_create("stderr", 0);
	CHECK(g_fail_fd >= 0 && g_err >= 0);
	CHECK(dup2(g_err, STDERR_FILENO) == STDERR_FILENO);
}

static void heard(char *text, size_t len)
{
	ssize_t n;

	fflush(stderr);
	n = pread(g_err, text, len - 1, 0);
	CHECK(n >= 0);
	text[n] = '\0';
	dup2(g_fail_fd, STDERR_FILENO);
}

static void *get_page(void *arg)
{
	struct threads *t = arg;

	GSAS(gsas_alloc(1, GSAS_HERE, GSAS_JOB, NULL, &t->page));
	return NULL;
}

static void *look_at_count(void *arg)
{
	uint64_t n;
	struct threads *t = arg;

	GSAS(gsas_read64(t->page, &n));
	CHECK_MSG(n == 2 * MOST, "%llu threads counted",
		  (unsigned long long)n);
	GSAS(gsas_free(t->page));
	return NULL;
}

/* In a thread of its own: the caller takes no interface. */
static void apart(void *(*fn)(void *), struct threads *t)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, fn, t) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static int user(int fd, void *arg)
{
	struct threads t;
	char text[1024];
	uint64_t n;

	(void)fd;
	(void)arg;
	apart(get_page, &t);
	start(&t, MOST);
	listen_to_errors();
	GSAS_IS(-EBUSY, gsas_read64(t.page, &n));
	heard(text, sizeof(text));
	CHECK_MSG(strstr(text, "63 of 63") != NULL &&
		  strchr(text, '\n') == text + strlen(text) - 1,
		  "not one clear line: %s", text);
	end(&t, MOST);
	start(&t, MOST);		/* all are to be had again */
	end(&t, MOST);
	apart(look_at_count, &t);
	return 0;
}

static void last_interface(void)
{
	struct proc *service, *p;

	/* the same profile: a child of ours with the same environment */
	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	service = gsasd_start(0, NULL);
	p = proc_start(user, NULL, exanode());
	proc_expect(p, 0);
	gsasd_stop(service);
}

static int holder(int fd, void *arg)
{
	struct threads t;

	(void)arg;
	apart(get_page, &t);
	start(&t, MOST);
	procs_exchange(fd, 0);
	return 1;
}

/* A process that is killed holds no interface for long. */
static void killed(void)
{
	struct proc *service, *p;

	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	service = gsasd_start(0, NULL);
	for (int i = 0; i < 5; i++) {
		p = proc_start(holder, NULL, exanode());
		procs_recv_word(p->fd);
		proc_kill(p);
	}
	gsasd_stop(service);
}

PROCS_MAIN(
	PROCS_CASE(last_interface, 60),
	PROCS_CASE(killed, 60),
)
