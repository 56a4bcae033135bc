/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limits.c - what a process is not allowed is an error with a reason, at
 * once: descriptors, address space, file sizes, memory of a cgroup, interfaces
 * of a board. Never a signal, never a hang, nothing leaked.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/memory_group.h"
#include "lib/procs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

#define NPARTNERS	3
#define EACH		150		/* messages from each to each */
#define LINES_MAX	8192

/* ---- What was printed --------------------------------------------------- */

static int g_pipe = -1;
static char g_lines[LINES_MAX];

/* From now on standard error is kept. */
static void listen_to_stderr(void)
{
	int fd[2];

	CHECK(pipe2(fd, O_CLOEXEC) == 0);
	g_pipe = fd[0];
	CHECK(fcntl(g_pipe, F_SETFL, O_NONBLOCK) == 0);
	g_fail_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	CHECK(dup2(fd[1], STDERR_FILENO) == STDERR_FILENO);
	close(fd[1]);
}

/* Lines said since the last call; they are in g_lines. */
static int lines_said(void)
{
	ssize_t n = read(g_pipe, g_lines, sizeof(g_lines) - 1);
	int count = 0;

	g_lines[n > 0 ? n : 0] = '\0';
	for (const char *c = g_lines; (c = strchr(c, '\n')) != NULL; c++)
		count++;
	return count;
}

/* ---- Limits of a process ------------------------------------------------ */

struct limit {
	int resource;
	const char *name;
	rlim_t value;
	const char *words[3];		/* one of them is in the line */
};

static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f != NULL && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void touch_stack(void)
{
	volatile char room[256 << 10];

	for (size_t i = 0; i < sizeof(room); i += 4096)
		room[i] = 1;
}

/* Soft ones, so that they can be lifted for what comes after the test. */
static void set_limit(const struct limit *l)
{
	struct rlimit lim;

	touch_stack();
	CHECK(getrlimit(l->resource, &lim) == 0);
	lim.rlim_cur = l->value;
	if (l->resource == RLIMIT_AS)
		lim.rlim_cur += address_space();
	CHECK(setrlimit(l->resource, &lim) == 0);
}

static void lift_limit(const struct limit *l)
{
	struct rlimit lim;

	CHECK(getrlimit(l->resource, &lim) == 0);
	lim.rlim_cur = lim.rlim_max;
	CHECK(setrlimit(l->resource, &lim) == 0);
}

static void needs_address_limit(void)
{
	struct limit l = { RLIMIT_AS, "RLIMIT_AS", 0, { NULL } };
	const size_t len = 64 << 20;
	void *map;

	if (SANITIZED)
		procs_skip("a sanitizer takes all the address space there is");
	set_limit(&l);
	map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	lift_limit(&l);
	if (map != MAP_FAILED)		/* under qemu-user */
		procs_skip("RLIMIT_AS is no limit here");
}

static bool told_why(const struct limit *l)
{
	for (int i = 0; i < 3 && l->words[i] != NULL; i++)
		if (strstr(g_lines, l->words[i]) != NULL)
			return true;
	return false;
}

/* A connection, a rendezvous, and enough for all of the receive space. */
static const size_t limited_lens[] = { 8, 4096, 70000 };

/* An application has its memory: what it takes is put on top of the limit. */
static struct traffic *traffic_apart(const struct limit *l, struct node *n,
				     const struct traffic_opt *opt)
{
	struct rlimit lim;
	struct traffic *t;
	rlim_t before;

	if (l->resource != RLIMIT_AS)
		return traffic_new(n, opt);
	CHECK(getrlimit(RLIMIT_AS, &lim) == 0);
	lift_limit(l);
	before = address_space();
	t = traffic_new(n, opt);
	lim.rlim_cur += address_space() - before;
	CHECK(setrlimit(RLIMIT_AS, &lim) == 0);
	return t;
}

/* The limited process has opened its endpoint; now it exchanges messages with
 * partners. Each operation that lacks a resource must fail with an error, and
 * each other message must arrive. */
static void meet_others(const struct limit *l, struct node *n, int fd)
{
	struct traffic_opt opt = { .mortal = ~UINT64_C(1), .endless = true,
				   .scarce = true, .window = 4,
				   .lens = limited_lens, .nlens = 3 };
	struct traffic *t;
	int lines;

	node_join(n, fd);
	t = traffic_apart(l, n, &opt);
	while (traffic_step(t))
		;
	lines = lines_said();
	/* One message for each partner to which a send failed, or whose
	 * connection attempt was refused. */
	if (lines > 2 * NPARTNERS)
		FAIL("%s %llu: %d lines:\n%s", l->name,
		    (unsigned long long)l->value, lines, g_lines);
	g_shared->word[1] += __builtin_popcountll(traffic_refused(t));
	g_shared->word[2] += traffic_received(t);
	g_shared->gone |= 1;		/* partners need not wait for us */
	traffic_free(t);
}

/* Whether it opens; if not, that it says why. */
static bool opens(const struct limit *l, struct node *n)
{
	struct node_error err;
	int lines;

	if (node_try_open(n, NODE_WAIT, &err) == 0) {
		if (lines_said() != 0)
			FAIL("%s %llu: it works, and says: %s", l->name,
			    (unsigned long long)l->value, g_lines);
		return true;
	}
	lines = lines_said();
	/* where it was malloc that failed, the code says it all */
	if (lines == 0 && err.ret == -FI_ENOMEM && l->resource == RLIMIT_AS)
		return false;
	if (lines != 1 || !told_why(l))
		FAIL("%s %llu: %s gives %s and %d lines: %s", l->name,
		    (unsigned long long)l->value, err.call,
		    fi_strerror(-err.ret), lines, g_lines);
	return false;
}

static int limited(int fd, void *arg)
{
	const struct limit *l = arg;
	struct node n;

	listen_to_stderr();
	set_limit(l);
	if (opens(l, &n)) {
		g_shared->word[0]++;
		meet_others(l, &n, fd);
		node_close(&n);
	}
	lift_limit(l);
	return 0;
}

/* Nobody suffers from the limits of another one. */
static int partner(int fd, void *arg)
{
	int index = proc_index();
	struct traffic_opt opt = { .count = EACH, .mortal = 1, .window = 4,
				   .lens = limited_lens, .nlens = 3 };
	struct traffic *t;
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	t = traffic_new(&n, &opt);
	while (traffic_step(t))
		if (traffic_refused(t) & 1)	/* nothing comes from us */
			g_shared->gone |= UINT64_C(1) << index;
	traffic_free(t);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

/* attach: read long messages where they are, do not stream them */
static void one_limit(struct limit *l, bool attach)
{
	const char *const env[] = { attach ? "FI_UNIMEM_ATTACH=1" :
				    "FI_UNIMEM_ATTACH=0", NULL };
	struct proc *p[1 + NPARTNERS];

	p[0] = proc_start(limited, l, env);
	for (int i = 1; i <= NPARTNERS; i++)
		p[i] = proc_start(partner, NULL, env);
	procs_join(p, 1 + NPARTNERS);
	while (!proc_ended(p[0], 1000))
		;
	g_shared->gone |= 1;
	CHECK_MSG(p[0]->status == 0, "%s %llu: status 0x%x", l->name,
		  (unsigned long long)l->value, p[0]->status);
	for (int i = 1; i <= NPARTNERS; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 1; i <= NPARTNERS; i++)
		proc_finish(p[i]);
	procs_forget();
}

/* ---- Limits of a group -------------------------------------------------- */

static const size_t lens[] = { 8, 4096 };

/* In a group with too little memory, if arg. word[2]: it has an endpoint and
 * its buffers; what comes now is a peer's link, and receive space grows. */
static int grouped(int fd, void *arg)
{
	struct traffic_opt opt = { .count = 3000, .mortal = arg == NULL,
				   .lens = lens, .nlens = 2 };
	struct traffic *t;
	struct node_error err;
	struct node n;

	if (arg != NULL) {
		touch_stack();
		listen_to_stderr();
		CHECK(group_enter(arg, getpid()));
		if (node_try_open(&n, NODE_WAIT, &err) != 0) {
			if (lines_said() != 1)
				FAIL("%s: %s", err.call, g_lines);
			return 0;
		}
	} else {
		node_open(&n, NODE_WAIT);
	}
	node_join(&n, fd);
	t = traffic_new(&n, &opt);
	traffic_scribble(t);
	if (arg != NULL)
		g_shared->word[2] = 1;
	while (traffic_step(t))
		;
	node_report(&n, fd, 0);
	traffic_free(t);
	node_close(&n);
	return 0;
}

enum fate { WORKED, REFUSED, KILLED };

/* A group too small for the bare process, or for the test's buffers, is the
 * kernel's to kill; what is asked of us is never more than there is. */
static enum fate in_group(rlim_t bytes)
{
	struct proc *p[2];
	char dir[256], text[512];
	enum fate fate = WORKED;
	bool killed;

	if (!group_make(dir, sizeof(dir), bytes))
		procs_skip("no memory cgroup can be made here");
	g_shared->word[2] = 0;
	p[0] = proc_start(grouped, dir, NULL);
	p[1] = proc_start(grouped, NULL, NULL);
	procs_join(p, 2);
	if (procs_recv(p[0]->fd, text, 8, -1) == 0)
		proc_ended(p[0], 1000);
	killed = p[0]->ended && WIFSIGNALED(p[0]->status);
	CHECK_MSG(!killed || WTERMSIG(p[0]->status) == SIGKILL, "%llu: signal "
		  "%d", (unsigned long long)bytes, WTERMSIG(p[0]->status));
	CHECK_MSG(!killed || g_shared->word[2] == 0, "%llu: killed, although "
		  "it had its endpoint", (unsigned long long)bytes);
	CHECK(!p[0]->ended || killed || p[0]->status == 0);
	if (!p[0]->ended) {
		CHECK(procs_recv_word(p[1]->fd) == 0);
		proc_finish(p[0]);
		proc_finish(p[1]);
	} else {
		proc_kill(p[1]);
		fate = killed ? KILLED : REFUSED;
		procs_note("%llu KiB: %s", (unsigned long long)bytes >> 10,
			   killed ? "killed by the kernel while it set up" :
			   "refused");
	}
	procs_forget();
	group_end(dir);
	return fate;
}

static void group(void)
{
	static const rlim_t kib[] = { 384, 1024, 1536, 4096 };

	if (SANITIZED)
		procs_skip("a sanitizer takes memory of its own");
	/* hardly the bare process; what an interface asks for before it opens;
	 * a bit more; pages of other sizes are other numbers */
	for (size_t i = 0; i < sizeof(kib) / sizeof(kib[0]); i++) {
		enum fate fate = in_group(kib[i] << 10);

		if (sysconf(_SC_PAGESIZE) > 4096)
			continue;
		CHECK_MSG(fate != WORKED || kib[i] > 1024, "%llu KiB: not "
			  "refused", (unsigned long long)kib[i]);
		CHECK_MSG(fate != KILLED || kib[i] < 1024, "%llu KiB: killed",
			  (unsigned long long)kib[i]);
	}
	CHECK_MSG(in_group(64 << 20) == WORKED, "64 MiB are not enough");
}

static void report(const char *name, int runs)
{
	procs_note("%s: %d values, %llu opened an endpoint, %llu peers out of "
		   "reach, %llu messages received", name, runs,
		   (unsigned long long)g_shared->word[0],
		   (unsigned long long)g_shared->word[1],
		   (unsigned long long)g_shared->word[2]);
	CHECK_MSG(g_shared->word[0] != 0 && g_shared->word[0] < (uint64_t)runs,
		  "the values tried are no limits");
}

static void descriptors(void)
{
	struct limit l = {
		RLIMIT_NOFILE, "RLIMIT_NOFILE", 0,
		{ "ulimit -n", "RLIMIT_NOFILE", "descriptor" },
	};
	int runs = 0;

	for (l.value = 5; l.value < 40; l.value++, runs++)
		one_limit(&l, runs & 1);
	report(l.name, runs);
}

static void memory(void)
{
	struct limit l = {
		RLIMIT_AS, "RLIMIT_AS", 0,
		{ "ulimit -v", "memory", "RLIMIT_AS" },
	};
	int runs = 0;

	needs_address_limit();
	for (l.value = 0; l.value < 1400 << 10; l.value += 36 << 10, runs++)
		one_limit(&l, runs & 1);
	report(l.name, runs);
}

static void file_size(void)
{
	static const rlim_t values[] = { 0, 1, 4095, 4096, 65536, 77823,
					 77824, 1060863, 1060864, 2 << 20 };
	struct limit l = {
		RLIMIT_FSIZE, "RLIMIT_FSIZE", 0,
		{ "ulimit -f", "RLIMIT_FSIZE", NULL },
	};
	int runs = 0;

	for (; runs < (int)(sizeof(values) / sizeof(values[0])); runs++) {
		l.value = values[runs];
		one_limit(&l, runs & 1);
	}
	report(l.name, runs);
}

/* ---- Unexpected messages ------------------------------------------------ */

#define FLOOD_LEN	16000
#define FLOOD_MAX	20000

/* Sends what nobody waits for until it is refused for a second, or worse. */
static int flooder(int fd, void *arg)
{
	static uint8_t buf[FLOOD_LEN];
	struct fi_cq_tagged_entry e[16];
	uint64_t sent = 0, refused = 0;	/* since when */
	struct node n;
	ssize_t ret = 0;

	(void)arg;
	node_start(&n, fd, 0);
	while (sent < FLOOD_MAX &&
	       (refused == 0 || procs_now() < refused + PROCS_SECOND)) {
		memcpy(buf, &sent, sizeof(sent));
		ret = fi_tinject(n.ep, buf, sent & 1 ? 8 : 0, n.peer[0], 1);
		if (ret == 0)
			ret = fi_tsend(n.ep, buf, FLOOD_LEN, NULL, n.peer[0],
				       2, NULL);
		/* its own completions must not be what it is refused for */
		while (fi_cq_read(n.cq, e, 16) > 0)
			;
		if (ret == -FI_EAGAIN && refused == 0)
			refused = procs_now();
		if (ret == -FI_EAGAIN)
			continue;
		if (ret != 0)
			break;
		refused = 0;
		sent++;
	}
	CHECK_MSG(ret == 0 || ret == -FI_EAGAIN || ret == -FI_ECONNRESET ||
		  ret == -FI_ECONNREFUSED, "%s", fi_strerror((int)-ret));
	g_shared->word[0] = sent;
	g_shared->word[1] = (uint64_t)-ret;
	procs_exchange(fd, 0);
	node_close(&n);
	return 0;
}

/* Only polls; arg: its address space is nearly full. */
static int flooded(int fd, void *arg)
{
	struct limit l = { RLIMIT_AS, "RLIMIT_AS", 8 << 20, { NULL } };
	struct node n;

	node_open(&n, 0);
	if (arg != NULL)
		set_limit(&l);
	node_join(&n, fd);
	node_idle(&n, fd);
	node_close(&n);
	return 0;
}

static void flood_one(void *arg, const char *max)
{
	const char *const env[] = { max, NULL };
	struct proc *p[2] = { proc_start(flooded, arg, env),
			      proc_start(flooder, NULL, NULL) };

	procs_join(p, 2);
	procs_recv_word(p[1]->fd);
	proc_finish(p[1]);
	proc_finish(p[0]);
	procs_note("%llu messages, then %s", (unsigned long long)
		   g_shared->word[0], fi_strerror((int)g_shared->word[1]));
}

/* The receiver runs out of memory: the sender gets an error, and no process
 * dies. */
static void flood_memory(void)
{
	int yes = 1;

	needs_address_limit();
	flood_one(&yes, "FI_UNIMEM_UNEXPECTED_MAX=1G");
	CHECK(g_shared->word[0] < FLOOD_MAX && g_shared->word[1] != 0);
}

/* A bound of its own: senders wait. */
static void flood_bound(void)
{
	flood_one(NULL, "FI_UNIMEM_UNEXPECTED_MAX=4M");
	CHECK(g_shared->word[0] < FLOOD_MAX &&
	      g_shared->word[1] == FI_EAGAIN);
}

/* ---- Interfaces, boards, names ------------------------------------------ */

#define EXANODE_IFS	63

/* The last interface of a board, and one more. */
static int many(int fd, void *arg)
{
	static struct node n[EXANODE_IFS + 1];
	struct node_error err;

	(void)fd;
	(void)arg;
	for (int i = 0; i < EXANODE_IFS; i++)
		node_open(&n[i], 0);
	listen_to_stderr();
	if (node_try_open(&n[EXANODE_IFS], 0, &err) == 0)
		FAIL("a 64th interface");
	if (lines_said() != 1 || strstr(g_lines, "FI_UNIMEM_BOARDS") == NULL ||
	    strcmp(err.call, "fi_endpoint") != 0)
		FAIL("%s: %s: %s", err.call, fi_strerror(-err.ret), g_lines);
	/* and when one is given back, there is one */
	node_close(&n[17]);
	node_open(&n[17], 0);
	for (int i = 0; i < EXANODE_IFS; i++)
		node_close(&n[i]);
	return 0;
}

static void interfaces(void)
{
	const char *const env[] = { "FI_UNIMEM_PROFILE=exanode", NULL };

	proc_expect(proc_start(many, NULL, env), 0);
}

struct misuse {
	const char *env[3];
	bool works;
	const char *says[2];
};

static const struct misuse misuses[] = {
	{ { "FI_UNIMEM_BOARDS=4", "FI_UNIMEM_BOARD=4" }, false,
	  { "FI_UNIMEM_BOARD=4", "FI_UNIMEM_BOARDS" } },
	{ { "FI_UNIMEM_BOARDS=1", "FI_UNIMEM_BOARD=17" }, false,
	  { "FI_UNIMEM_BOARD=17", "there is 1 board" } },
	{ { "FI_UNIMEM_BOARD=-2" }, false,
	  { "FI_UNIMEM_BOARD=-2", "from -1 to" } },
	{ { "FI_UNIMEM_BOARDS=many" }, false,
	  { "FI_UNIMEM_BOARDS=many", "from 0 to" } },
	{ { "FI_UNIMEM_PROFILE=exnode" }, false,
	  { "FI_UNIMEM_PROFILE=exnode", "exanode" } },
	{ { "FI_UNIMEM_HAL=dev" }, false,
	  { "FI_UNIMEM_HAL=dev", "FI_UNIMEM_HAL=emu" } },
	{ { "FI_UNIMEM_EAGER_MAX=1T" }, false,
	  { "FI_UNIMEM_EAGER_MAX=1T", "16384" } },
	{ { "FI_UNIMEM_EAGERMAX=4096" }, true,
	  { "FI_UNIMEM_EAGERMAX", "FI_UNIMEM_EAGER_MAX" } },
	{ { "FI_UNIMEM_SERVICE=4096" }, true,
	  { "FI_UNIMEM_SERVICE", "FI_UNIMEM_SERVICE_US" } },
	{ { "FI_UNIMEM_PROFIL=host" }, true,
	  { "FI_UNIMEM_PROFIL", "FI_UNIMEM_PROFILE" } },
	{ { "FI_UNIMEM_STREAM_US=4" }, true, { NULL } },
};

static int misusing(int fd, void *arg)
{
	const struct misuse *m = arg;
	struct node_error err = { "nothing", 0 };
	struct node n;
	bool works;
	int lines;

	(void)fd;
	listen_to_stderr();
	works = node_try_open(&n, 0, &err) == 0;
	lines = lines_said();
	if (works != m->works)
		FAIL("%s: %s: %s", m->env[0], err.call, fi_strerror(-err.ret));
	if (lines != (m->says[0] != NULL))
		FAIL("%s: %d lines:\n%s", m->env[0], lines, g_lines);
	for (int i = 0; i < 2 && m->says[i] != NULL; i++)
		if (strstr(g_lines, m->says[i]) == NULL)
			FAIL("%s: no word of %s: %s", m->env[0], m->says[i],
			    g_lines);
	if (works)
		node_close(&n);
	return 0;
}

static void parameters(void)
{
	for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
		proc_expect(proc_start(misusing, (void *)&misuses[i],
				       misuses[i].env), 0);
		procs_forget();
	}
}

static const struct procs_case cases[] = {
	PROCS_CASE(descriptors, 100),
	PROCS_CASE(memory, 100),
	PROCS_CASE(file_size, 0),
	PROCS_CASE(group, 0),
	PROCS_CASE(flood_memory, 0),
	PROCS_CASE(flood_bound, 0),
	PROCS_CASE(interfaces, 0),
	PROCS_CASE(parameters, 0),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
