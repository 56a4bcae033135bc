/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kill.c - SIGKILL anywhere: at every named fault point
 * (hal_fault_point.h), as sender and as receiver, in every protocol, and at
 * random moments of traffic.
 *
 * The living lose nothing and keep nothing of the dead a second later; a second
 * after the last process has ended no name and no file is left; the next job
 * starts. A process that is stopped there instead is not dead: it goes on.
 * Fault points want a build with --enable-fault-points; the rest runs in any.
 *
 * UNM_TEST_KILLS: kills at random moments, 100.
 * UNM_TEST_PASSES: how many passes of a point in the cases of check-full.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"

#define PARTNER		0
#define VICTIM		1
#define BYSTANDER	2

#define STOPPED_US	300000		/* many times what a death takes */

/* ---- What may be left --------------------------------------------------- */

/* A /dev/shm of our own, so that other jobs do not disturb; false: not ours. */
static bool own_shm(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static void no_files(bool own)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		CHECK_MSG(!own && strstr(d->d_name, "unimem") == NULL,
			  "/dev/shm/%s is left", d->d_name);
	}
	if (dir != NULL)
		closedir(dir);
}

static uint64_t g_slowest;	/* to forget, in an attempt; microseconds */

static void took(uint64_t us)
{
	if (us > g_slowest)
		g_slowest = us;
}

/* A process keeps its page (mapped and open) and two links per living peer. */
static void forgets(const struct proc *p, int peers)
{
	uint64_t start = procs_now();

	while (procs_segments(p->pid) > 2 + 2 * peers) {
		CHECK_MSG(procs_now() < start + 60 * PROCS_SECOND, "child %d "
			  "still has %d segments, with %d living peers",
			  p->index, procs_segments(p->pid), peers);
		procs_nap(1000);
	}
	took(procs_now() - start);
}

/* ---- Fault points ------------------------------------------------------- */

enum role { SENDER, RECEIVER };

struct protocol {
	const char *name;
	size_t lens[3];
	const char *attach;
	int count;
};

struct job {
	const struct protocol *protocol;
	enum role role;			/* of the victim */
	bool sleeps;			/* it does, when it has nothing to do */
	const char *point;
	int pass;
	bool fired;			/* passed often enough */
};

static const struct protocol protocols[] = {
	{ "inline", { 8, 0, 40 }, "FI_UNIMEM_ATTACH=1", 100 },
	{ "eager", { 200, 4096, 16384 }, "FI_UNIMEM_ATTACH=1", 100 },
	{ "attach", { 17000, 300000, 20000 }, "FI_UNIMEM_STREAM_US=0", 12 },
	{ "stream", { 17000, 70000, 20000 }, "FI_UNIMEM_ATTACH=0", 12 },
};

/* How a node waits for its messages */
enum { POLLS, SLEEPS };

static void exchange(struct node *n, const struct protocol *pr, uint64_t to,
		     uint64_t from, uint64_t mortal, bool sleeps)
{
	struct traffic_opt opt = {
		.count = pr->count, .to = to, .from = from, .mortal = mortal,
		.lens = pr->lens, .nlens = 3, .sleeps = sleeps,
	};
	struct traffic *t = traffic_new(n, &opt);

	while (traffic_step(t))
		;
	traffic_free(t);
}

static void victims_part(struct node *n, int fd, const struct job *job)
{
	bool sends = job->role == SENDER;

	node_start(n, fd, job->sleeps ? NODE_WAIT : 0);
	exchange(n, job->protocol, sends ? 1 << PARTNER : TRAFFIC_NONE,
		 sends ? TRAFFIC_NONE : 1 << PARTNER, 0, job->sleeps);
}

static int dies_somewhere(int fd, void *arg)
{
	struct node n;

	victims_part(&n, fd, arg);
	node_close(&n);
	return 0;
}

/* The partner has to do with both others, the bystander with the partner. */
static void others_part(struct node *n, int fd, int index,
			const struct job *job, uint64_t mortal)
{
	bool sent_to = job->role == SENDER;
	uint64_t v = 1 << VICTIM, b = 1 << BYSTANDER, p = 1 << PARTNER;

	node_start(n, fd, 0);
	if (index == PARTNER)
		exchange(n, job->protocol, sent_to ? b : b | v,
			 sent_to ? b | v : b, mortal, POLLS);
	else
		exchange(n, job->protocol, p, p, 0, POLLS);
	node_report(n, fd, 0);
}

/* Once the victim is no more, they do it again. */
static int lives_on(int fd, void *arg)
{
	int index = proc_index();
	const struct job *job = arg;
	uint64_t v = 1 << VICTIM, b = 1 << BYSTANDER, p = 1 << PARTNER;
	struct node n;

	others_part(&n, fd, index, job, v);
	exchange(&n, job->protocol, index == PARTNER ? b : p,
		 index == PARTNER ? b : p, v, POLLS);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

/* The three, of whom the victim meets its point. */
static void start_job(struct proc **p, const struct job *job, const char *act,
		      proc_fn victim, proc_fn other)
{
	static char text[80];
	const char *env[] = { job->protocol->attach, NULL, NULL };

	p[PARTNER] = proc_start(other, (void *)job, env);
	snprintf(text, sizeof(text), "FI_UNIMEM_POINT=%s:%d:%s", job->point,
		 job->pass, act);
	env[1] = text;
	p[VICTIM] = proc_start(victim, (void *)job, env);
	env[1] = NULL;
	p[BYSTANDER] = proc_start(other, (void *)job, env);
	procs_join(p, 3);
}

/* One job, a struct job; how long it took to forget the dead at worst. */
static uint64_t run_job(void *arg)
{
	struct job *job = arg;
	struct proc *p[3];

	g_slowest = 0;
	start_job(p, job, "kill", dies_somewhere, lives_on);
	while (!proc_ended(p[VICTIM], 1000))
		;
	g_shared->gone |= 1 << VICTIM;
	job->fired = WIFSIGNALED(p[VICTIM]->status);
	CHECK(job->fired ? WTERMSIG(p[VICTIM]->status) == SIGKILL :
	      WEXITSTATUS(p[VICTIM]->status) == 0);
	for (int round = 0; round < 2; round++) {
		procs_recv_word(p[PARTNER]->fd);
		procs_recv_word(p[BYSTANDER]->fd);
		forgets(p[PARTNER], 1);
		forgets(p[BYSTANDER], 1);
		procs_send_word(p[PARTNER]->fd, 0);
		procs_send_word(p[BYSTANDER]->fd, 0);
	}
	proc_expect(p[PARTNER], 0);
	proc_expect(p[BYSTANDER], 0);
	took(procs_clean());
	procs_forget();
	return g_slowest;
}

static int is_stopped(int fd, void *arg)
{
	struct node n;

	victims_part(&n, fd, arg);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static int waits_for_it(int fd, void *arg)
{
	int index = proc_index();
	struct node n;

	others_part(&n, fd, index, arg, 0);
	node_close(&n);
	return 0;
}

/* Stopped at a point for a while, it is not dead, and goes on from there;
 * true: it was. */
static bool stop_job(struct job *job)
{
	struct proc *p[3];
	siginfo_t info = { 0 };
	uint64_t word;

	start_job(p, job, "stop", is_stopped, waits_for_it);
	/* it stops, or has nothing more to do */
	while (info.si_pid == 0 &&
	       procs_recv(p[VICTIM]->fd, &word, sizeof(word), 1) < 0)
		CHECK(waitid(P_PID, p[VICTIM]->pid, &info, WSTOPPED | WNOHANG |
			     WNOWAIT) == 0);
	job->fired = info.si_pid != 0;
	if (job->fired) {
		procs_nap(STOPPED_US);
		proc_signal(p[VICTIM], SIGCONT);
		procs_recv_word(p[VICTIM]->fd);
	}
	procs_recv_word(p[PARTNER]->fd);
	procs_recv_word(p[BYSTANDER]->fd);
	for (int i = 0; i < 3; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 3; i++)
		proc_expect(p[i], 0);
	procs_forget();
	return job->fired;
}

#ifdef HAL_FAULT_POINTS
#define BIT(p)	(1u << HAL_FAULT_POINT_##p)
#define POINTS	(HAL_FAULT_POINT_CLOSING + 1)	/* of a message's path */

/* A point that is never passed was not tested: those that each role passes. */
static const unsigned point_must[] = {
	[SENDER] = BIT(CLAIMED) | BIT(COPIED) | BIT(PUBLISHED) | BIT(SPACE) |
		BIT(BOUND) | BIT(HELLO_SENT) | BIT(RTS_SENT) | BIT(MAPPED) |
		BIT(PIECE) | BIT(CLOSING),
	[RECEIVER] = BIT(CREDIT) | BIT(BOUND) | BIT(ACCEPTED) | BIT(MAPPED) |
		BIT(MATCHED) | BIT(DMA_HALF) | BIT(FIN) | BIT(CLAIMED) |
		BIT(CLOSING),
};

/* Where cross-memory attach is denied, nobody reads; nor does the prototype's
 * engine, for which ordinary memory is not. */
static unsigned must(enum role role)
{
	const char *profile = getenv("FI_UNIMEM_PROFILE");
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	if ((profile != NULL && strcmp(profile, "exanode") == 0) ||
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
		return point_must[role] & ~(BIT(DMA_HALF) | BIT(FIN));
	return point_must[role];
}

/* A victim is killed at each of its points, in each protocol. */
static void points(enum role role, bool sleeps, int npasses)
{
	static const int passes[] = { 1, 2, 7 };
	bool own = own_shm();
	int jobs = 0, fired = 0;

	for (int i = 0; i < POINTS; i++) {
		const char *name = hal_fault_point_name(i);
		int hits = 0;

		CHECK_MSG(name != NULL, "a point without a name");
		for (int k = 0; k < 4 * npasses; k++) {
			struct job job = {
				.protocol = &protocols[k % 4], .role = role,
				.sleeps = sleeps, .point = name,
				.pass = passes[k / 4],
			};

			procs_within_a_second(run_job, &job);
			hits += job.fired;
			jobs++;
		}
		CHECK_MSG(hits != 0 || !(must(role) >> i & 1),
			  "nobody ever passed %s", name);
		fired += hits;
	}
	no_files(own);
	procs_note("%d jobs, %d with a process killed", jobs, fired);
}

static void points_sender(void)
{
	points(SENDER, false, 3);
}

static void points_receiver(void)
{
	points(RECEIVER, false, 3);
}

/* These are for check-full, how many passes of a point it says. */
static int few(void)
{
	long n = procs_number("UNM_TEST_PASSES", 0);

	if (n < 1)
		procs_skip("takes a minute: set UNM_TEST_PASSES");
	return n > 3 ? 3 : (int)n;
}

static void points_asleep(void)
{
	points(SENDER, true, few());
	points(RECEIVER, true, few());
}

static void points_exanode(void)
{
	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	points(SENDER, false, few());
	points(RECEIVER, true, few());
}

static void points_stopped(void)
{
	static const struct {
		enum hal_fault_point point;
		enum role role;
	} at[] = {
		{ HAL_FAULT_POINT_RTS_SENT, SENDER },
		{ HAL_FAULT_POINT_PUBLISHED, SENDER },
		{ HAL_FAULT_POINT_PIECE, SENDER },
		{ HAL_FAULT_POINT_MATCHED, RECEIVER },
		{ HAL_FAULT_POINT_DMA_HALF, RECEIVER },
		{ HAL_FAULT_POINT_FIN, RECEIVER },
	};
	int stopped = 0;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		const char *name = hal_fault_point_name(at[i].point);
		int hits = 0;

		for (int k = 0; k < 4; k++) {
			struct job job = {
				.protocol = &protocols[2 + k % 2],
				.role = at[i].role, .sleeps = k / 2 != 0,
				.point = name, .pass = 3,
			};

			hits += stop_job(&job);
		}
		CHECK_MSG(hits != 0 || !(must(at[i].role) >> at[i].point & 1),
			  "nobody ever passed %s", name);
		stopped += hits;
	}
	procs_note("%d times stopped", stopped);
}
#else
static void points_sender(void)
{
	(void)run_job;
	(void)stop_job;
	(void)protocols;
	procs_skip("no fault points in this build (--enable-fault-points)");
}

#define points_receiver points_sender
#define points_asleep points_sender
#define points_exanode points_sender
#define points_stopped points_sender
#endif

/* ---- Random moments ----------------------------------------------------- */

#define NPROCS	4
#define INODES	64

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

/* Every other one sleeps when it has nothing to do. */
static int one_of_many(int fd, void *arg)
{
	int index = proc_index();
	struct traffic_opt opt = {
		.endless = true, .mortal = UINT64_C(1) << *(int *)arg,
		.lens = mixed, .nlens = 8, .window = 8, .sleeps = index & 1,
	};
	struct traffic *t;
	uint64_t word;
	struct node n;

	node_start(&n, fd, opt.sleeps ? NODE_WAIT : 0);
	t = traffic_new(&n, &opt);
	while (traffic_step(t)) {
		g_shared->word[index] = traffic_received(t);
		if (procs_recv(fd, &word, sizeof(word), 0) > 0)
			traffic_stop(t);
	}
	traffic_free(t);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void await_more(struct proc *const *p, int victim, uint64_t more)
{
	for (int i = 0; i < NPROCS; i++) {
		uint64_t at = g_shared->word[i];

		while (i != victim && g_shared->word[i] < at + more)
			CHECK_MSG(!proc_ended(p[i], 1), "child %d: exit %d",
				  i, p[i]->status);
	}
}

/* The memory a dead process had is in no other one's hands. */
static void not_in(const struct proc *p, const uint64_t *ino, int n)
{
	uint64_t has[INODES];
	int m = procs_inodes(p->pid, has, INODES);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < m; k++)
			CHECK_MSG(has[k] != ino[i], "child %d keeps memory of "
				  "the dead", p->index);
}

static void the_living(struct proc *const *p, int victim, const uint64_t *ino,
		       int n)
{
	await_more(p, victim, 30);
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			procs_recv_word(p[i]->fd);
	for (int i = 0; i < NPROCS; i++) {
		if (i == victim)
			continue;
		forgets(p[i], NPROCS - 2);
		not_in(p[i], ino, n);
	}
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			proc_expect(p[i], 0);
}

/* In its first milliseconds (before all know each other), or under traffic. */
static uint64_t kill_one(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	const char *const env[] = { procs_random(&seed) & 1 ?
		"FI_UNIMEM_ATTACH=1" : "FI_UNIMEM_ATTACH=0", NULL };
	int victim = procs_random(&seed) % NPROCS, n;
	bool early = procs_random(&seed) % 3 == 0;
	uint64_t delay = procs_random(&seed) % (early ? 15000 : 30000);
	uint64_t ino[INODES];
	struct proc *p[NPROCS];

	g_slowest = 0;
	for (int i = 0; i < NPROCS; i++) {
		g_shared->word[i] = 0;
		p[i] = proc_start(one_of_many, &victim, env);
	}
	if (!early)
		procs_join(p, NPROCS);
	procs_nap(delay);
	proc_stop(p[victim]);
	n = procs_inodes(p[victim]->pid, ino, INODES);
	proc_kill(p[victim]);
	if (early)
		procs_join(p, NPROCS);
	the_living(p, victim, ino, n);
	took(procs_clean());
	procs_forget();
	return g_slowest;
}

static void random_moments(void)
{
	long kills = procs_number("UNM_TEST_KILLS", 100);
	uint64_t seed = (uint64_t)procs_number("UNM_TEST_SEED", 20261120);
	bool own = own_shm();

	for (long i = 0; i < kills; i++) {
		uint64_t one = procs_random(&seed);

		g_shared->word[5] = (uint64_t)i;
		procs_within_a_second(kill_one, &one);
	}
	no_files(own);
	procs_note("%ld processes killed", kills);
}

static uint64_t kill_all(void *arg)
{
	unsigned after = *(unsigned *)arg;
	int nobody = 63;
	struct proc *p[NPROCS];
	uint64_t us;

	for (int i = 0; i < NPROCS; i++)
		p[i] = proc_start(one_of_many, &nobody, NULL);
	procs_join(p, NPROCS);
	procs_nap(after);
	for (int i = 0; i < NPROCS; i++)
		proc_stop(p[i]);
	for (int i = 0; i < NPROCS; i++)
		proc_kill(p[i]);
	us = procs_clean();
	procs_forget();
	return us;
}

/* All at once, also with the launcher in the middle of it. */
static void all_at_once(void)
{
	bool own = own_shm();

	for (unsigned round = 0; round < 10; round++) {
		unsigned after = 1000 * round;

		procs_within_a_second(kill_all, &after);
	}
	no_files(own);
}

PROCS_MAIN(
	PROCS_CASE(points_sender, 100),
	PROCS_CASE(points_receiver, 100),
	PROCS_CASE(points_asleep, 100),
	PROCS_CASE(points_exanode, 100),
	PROCS_CASE(points_stopped, 0),
	PROCS_CASE(random_moments, 100),
	PROCS_CASE(all_at_once, 0),
)
