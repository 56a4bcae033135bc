/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_signals.c - many signals during traffic: no call returns EINTR, no wait
 * ends early, no message is lost; and the provider installs no signal handler
 * and creates no thread
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"

#define STORM_US	1000		/* a signal so often, of each kind */

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

static volatile sig_atomic_t g_caught;

static void on_signal(int sig)
{
	(void)sig;
	g_caught++;
}

/* Handlers that do not restart what they interrupt, and a timer. */
static void storm(bool on)
{
	const int sigs[] = { SIGALRM, SIGUSR1, SIGCHLD };
	struct itimerval timer = { { 0, on ? STORM_US : 0 },
				   { 0, on ? STORM_US : 0 } };
	struct sigaction act = { .sa_handler = on ? on_signal : SIG_IGN };

	for (int i = 0; i < 3; i++)
		CHECK(sigaction(sigs[i], &act, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* ---- What happens to signals -------------------------------------------- */

struct table {
	struct sigaction act[65];
	sigset_t mask;
};

static void read_table(struct table *t)
{
	memset(t, 0, sizeof(*t));
	for (int sig = 1; sig < 65; sig++)
		sigaction(sig, NULL, &t->act[sig]);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &t->mask) == 0);
}

static void same_table(const struct table *a, const struct table *b)
{
	for (int sig = 1; sig < 65; sig++)
		CHECK_MSG(a->act[sig].sa_handler == b->act[sig].sa_handler &&
			  a->act[sig].sa_flags == b->act[sig].sa_flags,
			  "signal %d is handled differently", sig);
	CHECK(memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0);
}

/* ---- Traffic ------------------------------------------------------------ */

static int stormed(int fd, void *arg)
{
	int index = proc_index();
	struct traffic_opt opt = { .endless = true, .lens = mixed,
				   .nlens = 8 };
	struct table before, after;
	int threads = procs_threads(getpid());
	struct traffic *t;
	uint64_t word;
	struct node n;

	storm(true);
	read_table(&before);
	node_start(&n, fd, *(int *)arg);
	t = traffic_new(&n, &opt);
	while (traffic_step(t)) {
		g_shared->word[index] = traffic_received(t);
		if (procs_recv(fd, &word, sizeof(word), 0) > 0)
			traffic_stop(t);
	}
	CHECK(procs_threads(getpid()) == threads);
	node_report(&n, fd, 0);
	traffic_free(t);
	node_close(&n);
	read_table(&after);
	same_table(&before, &after);
	CHECK_MSG(g_caught > 100, "%d signals make no storm", g_caught);
	return 0;
}

/* One signal of each kind to each, and now and then a short stop. */
static void strike(struct proc *const *p, int n, int round)
{
	for (int i = 0; i < n; i++) {
		proc_signal(p[i], SIGUSR1);
		proc_signal(p[i], SIGCHLD);
		if (round % 50 == i)
			proc_signal(p[i], SIGSTOP);
		if (round % 50 == i + 5)
			proc_signal(p[i], SIGCONT);
	}
}

struct setting {
	const char *attach;
	int flags;			/* enum node_flags */
};

static void storm_with(void *arg)
{
	struct setting *s = arg;
	const char *const env[] = { s->attach, NULL };
	struct proc *p[3];

	for (int i = 0; i < 3; i++)
		p[i] = proc_start(stormed, &s->flags, env);
	procs_join(p, 3);
	for (int i = 0; i < 3; i++)
		while (g_shared->word[i] == 0)	/* it has its handlers */
			CHECK(!proc_ended(p[i], 1));
	for (int round = 0; round < 2000; round++) {
		strike(p, 3, round);
		procs_nap(STORM_US);
	}
	for (int i = 0; i < 3; i++) {
		proc_signal(p[i], SIGCONT);
		procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 3; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 3; i++)
		proc_finish(p[i]);
}

/* ---- Waiting ------------------------------------------------------------ */

/* fi_cq_sread lasts as long as was asked, and ends when a message comes. */
static int waiter(int fd, void *arg)
{
	struct fi_cq_tagged_entry entry;
	uint8_t buf[8];
	struct node n;

	(void)arg;
	storm(true);
	node_start(&n, fd, NODE_WAIT);
	for (int i = 0; i < 5; i++) {
		uint64_t since = procs_now();
		ssize_t ret = fi_cq_sread(n.cq, &entry, 1, NULL, 200);

		CHECK_MSG(ret == -FI_EAGAIN, "fi_cq_sread: %s",
			  fi_strerror((int)-ret));
		CHECK_MSG(procs_now() - since >= 199000, "it ended early");
	}
	for (int i = 0; i < 200; i++) {
		FI(fi_trecv(n.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, buf));
		if (i == 0)
			procs_send_word(fd, 0);
		CHECK(fi_cq_sread(n.cq, &entry, 1, NULL, -1) == 1);
		CHECK(entry.op_context == buf && entry.len == 8);
	}
	node_close(&n);
	return 0;
}

static int caller(int fd, void *arg)
{
	uint8_t buf[8] = { 0 };
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	procs_recv_word(fd);
	for (int i = 0; i < 200; i++) {
		node_send(&n, 0, buf, 8, 1);
		procs_nap(3000);
	}
	procs_recv_word(fd);
	node_close(&n);
	return 0;
}

static void waits(void)
{
	struct proc *p[2] = { proc_start(waiter, NULL, NULL),
			      proc_start(caller, NULL, NULL) };

	procs_join(p, 2);
	procs_recv_word(p[0]->fd);
	procs_send_word(p[1]->fd, 0);
	proc_expect(p[0], 0);
	proc_finish(p[1]);
}

/* ---- Opening ------------------------------------------------------------ */

static int opener(int fd, void *arg)
{
	struct node n;

	(void)fd;
	(void)arg;
	storm(true);
	for (int i = 0; i < 300 || g_caught < 50; i++) {
		node_open(&n, NODE_WAIT);
		node_close(&n);
	}
	storm(false);
	return 0;
}

static void opens(void)
{
	proc_expect(proc_start(opener, NULL, NULL), 0);
}

/* ---- A fresh process ---------------------------------------------------- */

/* Print the signal handlers and threads after libfabric was initialized, and an
 * endpoint was opened and closed if the provider is available (option
 * --table). */
static int print_table(void)
{
	struct node_error err;
	struct table t;
	struct node n;

	if (node_try_open(&n, NODE_WAIT, &err) == 0)
		node_close(&n);
	read_table(&t);
	for (int sig = 1; sig < 65; sig++)
		printf("%d%c%x ", sig, t.act[sig].sa_handler == SIG_DFL ? 'd' :
		       t.act[sig].sa_handler == SIG_IGN ? 'i' : 'h',
		       t.act[sig].sa_flags);
	printf("threads %d\n", procs_threads(getpid()));
	return 0;
}

static void fresh_table(char *out, size_t len, const char *path)
{
	char exe[4000], command[5000];
	const char *via = getenv("UNM_EXEC");	/* an emulator */
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	FILE *f;

	CHECK(n > 0);
	exe[n] = '\0';
	snprintf(command, sizeof(command), "FI_PROVIDER_PATH='%s' %s '%s' "
		 "--table", path, via != NULL ? via : "", exe);
	f = popen(command, "re");
	CHECK(f != NULL && fgets(out, (int)len, f) != NULL);
	CHECK(pclose(f) == 0);
}

/* The same signals and threads with our provider as without. */
static void fresh(void)
{
	char with[4096], without[4096];

	fresh_table(with, sizeof(with), getenv("FI_PROVIDER_PATH"));
	fresh_table(without, sizeof(without), "/nonexistent");
	CHECK_MSG(strcmp(with, without) == 0, "with the provider: %swithout: "
		  "%s", with, without);
}

static const struct procs_case cases[] = {
	PROCS_WITH(storm_attach, 100, storm_with,
		   &(struct setting){ "FI_UNIMEM_ATTACH=1", 0 }),
	PROCS_WITH(storm_stream, 100, storm_with,
		   &(struct setting){ "FI_UNIMEM_ATTACH=0", NODE_SAFE }),
	PROCS_CASE(waits, 0),
	PROCS_CASE(opens, 0),
	PROCS_CASE(fresh, 0),
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--table") == 0)
		return print_table();
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
