/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kill.c - SIGKILL anywhere: at every named fault point (hal_point.h), as
 * sender and as receiver, in every protocol, and at random moments of traffic.
 *
 * The living lose nothing and keep nothing of the dead a second later; when the
 * last process has ended, no name and no file is left; the next job starts.
 * Fault points want a build with --enable-fault-points; the rest runs in any.
 *
 * UNM_TEST_KILLS: kills at random moments, 200.
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

#include "procs.h"

#define PARTNER		0
#define VICTIM		1
#define BYSTANDER	2

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

/* A process keeps its page (mapped and open) and two links per living peer. */
static void forgets(const struct proc *p, int peers)
{
	uint64_t end = procs_now() + 10 * PROCS_SECOND;

	while (procs_segments(p->pid) > 2 + 2 * peers) {
		CHECK_MSG(procs_now() < end, "child %d still has %d segments, "
			  "with %d living peers", p->index,
			  procs_segments(p->pid), peers);
		procs_nap(1000);
	}
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
	enum role role;
};

static const struct protocol protocols[] = {
	{ "inline", { 8, 0, 40 }, "FI_UNIMEM_ATTACH=1", 100 },
	{ "eager", { 200, 4096, 16384 }, "FI_UNIMEM_ATTACH=1", 100 },
	{ "attach", { 17000, 300000, 20000 }, "FI_UNIMEM_ATTACH=1", 12 },
	{ "stream", { 17000, 70000, 20000 }, "FI_UNIMEM_ATTACH=0", 12 },
};

static void exchange(struct node *n, const struct protocol *pr, uint64_t to,
		     uint64_t from, uint64_t mortal)
{
	struct traffic_opt opt = {
		.count = pr->count, .to = to, .from = from, .mortal = mortal,
		.lens = pr->lens, .nlens = 3,
	};
	struct traffic *t = traffic_new(n, &opt);

	while (traffic_step(t))
		;
	traffic_free(t);
}

static int dies_somewhere(int fd, int index, void *arg)
{
	const struct job *job = arg;
	bool sends = job->role == SENDER;
	struct node n;

	(void)index;
	node_open(&n, 0);
	node_join(&n, fd);
	exchange(&n, job->protocol, sends ? 1 << PARTNER : TRAFFIC_NONE,
		 sends ? TRAFFIC_NONE : 1 << PARTNER, 0);
	node_close(&n);
	return 0;
}

/* The partner has to do with both others, the bystander with the partner; once
 * the victim is no more, again. */
static int lives_on(int fd, int index, void *arg)
{
	const struct job *job = arg;
	bool sent_to = job->role == SENDER;
	uint64_t v = 1 << VICTIM, b = 1 << BYSTANDER, p = 1 << PARTNER;
	struct node n;

	node_open(&n, 0);
	node_join(&n, fd);
	if (index == PARTNER)
		exchange(&n, job->protocol, sent_to ? b : b | v,
			 sent_to ? b | v : b, v);
	else
		exchange(&n, job->protocol, p, p, 0);
	tell_word(fd, 0);
	node_idle(&n, fd);
	exchange(&n, job->protocol, index == PARTNER ? b : p,
		 index == PARTNER ? b : p, v);
	tell_word(fd, 0);
	node_idle(&n, fd);
	node_close(&n);
	return 0;
}

/* One job; true: the point was passed often enough to kill. */
static bool run_job(const struct job *job, const char *point, int pass)
{
	const char *env[] = { job->protocol->attach, NULL, NULL };
	struct proc *p[3];
	char text[80];
	bool fired;

	p[PARTNER] = proc_start(lives_on, (void *)job, env);
	snprintf(text, sizeof(text), "FI_UNIMEM_POINT=%s:%d:kill", point,
		 pass);
	env[1] = text;
	p[VICTIM] = proc_start(dies_somewhere, (void *)job, env);
	env[1] = NULL;
	p[BYSTANDER] = proc_start(lives_on, (void *)job, env);
	procs_join(p, 3);
	while (!proc_ended(p[VICTIM], 1000))
		;
	g_shared->gone |= 1 << VICTIM;
	fired = WIFSIGNALED(p[VICTIM]->status);
	CHECK(fired ? WTERMSIG(p[VICTIM]->status) == SIGKILL :
	      WEXITSTATUS(p[VICTIM]->status) == 0);
	for (int round = 0; round < 2; round++) {
		hear_word(p[PARTNER]->fd);
		hear_word(p[BYSTANDER]->fd);
		forgets(p[PARTNER], 1);
		forgets(p[BYSTANDER], 1);
		tell_word(p[PARTNER]->fd, 0);
		tell_word(p[BYSTANDER]->fd, 0);
	}
	proc_expect(p[PARTNER], 0);
	proc_expect(p[BYSTANDER], 0);
	procs_clean();
	procs_forget();
	return fired;
}

#ifdef HAL_FAULT_POINTS
#define BIT(p)	(1u << HAL_POINT_##p)

static const char *const point_names[HAL_POINT_COUNT] = {
	[HAL_POINT_CLAIMED] = "claimed",
	[HAL_POINT_COPIED] = "copied",
	[HAL_POINT_PUBLISHED] = "published",
	[HAL_POINT_CREDIT] = "credit",
	[HAL_POINT_SPACE] = "space",
	[HAL_POINT_BOUND] = "bound",
	[HAL_POINT_HELLO_SENT] = "hello-sent",
	[HAL_POINT_ACCEPTED] = "accepted",
	[HAL_POINT_MAPPED] = "mapped",
	[HAL_POINT_RTS_SENT] = "rts-sent",
	[HAL_POINT_MATCHED] = "matched",
	[HAL_POINT_DMA_HALF] = "dma-half",
	[HAL_POINT_FIN] = "fin",
	[HAL_POINT_CLOSING] = "closing",
};

/* A point that is never passed was not tested: those that each role passes. */
static const unsigned point_must[] = {
	[SENDER] = BIT(CLAIMED) | BIT(COPIED) | BIT(PUBLISHED) | BIT(SPACE) |
		BIT(BOUND) | BIT(HELLO_SENT) | BIT(RTS_SENT) | BIT(MAPPED) |
		BIT(CLOSING),
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

static void points(enum role role)
{
	static const int passes[] = { 1, 2, 7 };
	bool own = own_shm();
	int jobs = 0, fired = 0;

	for (int i = 0; i < HAL_POINT_COUNT; i++) {
		int hits = 0;

		CHECK_MSG(point_names[i] != NULL, "a point without a name");
		for (int k = 0; k < 12; k++) {
			struct job job = { &protocols[k / 3], role };

			hits += run_job(&job, point_names[i], passes[k % 3]);
			jobs++;
		}
		CHECK_MSG(hits != 0 || !(must(role) >> i & 1),
			  "nobody ever passed %s", point_names[i]);
		fired += hits;
	}
	no_files(own);
	procs_note("%d jobs, %d with a process killed", jobs, fired);
}

static void points_sender(void)
{
	points(SENDER);
}

static void points_receiver(void)
{
	points(RECEIVER);
}
#else
static void points_sender(void)
{
	(void)run_job;
	(void)protocols;
	procs_skip("no fault points in this build (--enable-fault-points)");
}

#define points_receiver points_sender
#endif

/* ---- Random moments ----------------------------------------------------- */

#define NPROCS	4
#define INODES	64

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

static int one_of_many(int fd, int index, void *arg)
{
	struct traffic_opt opt = {
		.endless = true, .mortal = UINT64_C(1) << *(int *)arg,
		.lens = mixed, .nlens = 8, .window = 8,
	};
	struct traffic *t;
	uint64_t word;
	struct node n;

	node_open(&n, 0);
	node_join(&n, fd);
	t = traffic_new(&n, &opt);
	while (traffic_step(t)) {
		g_shared->word[index] = traffic_received(t);
		if (hear(fd, &word, sizeof(word), 0) > 0)
			traffic_stop(t);
	}
	traffic_free(t);
	tell_word(fd, 0);
	node_idle(&n, fd);
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
			tell_word(p[i]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			hear_word(p[i]->fd);
	for (int i = 0; i < NPROCS; i++) {
		if (i == victim)
			continue;
		forgets(p[i], NPROCS - 2);
		not_in(p[i], ino, n);
	}
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			tell_word(p[i]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		if (i != victim)
			proc_expect(p[i], 0);
}

/* In its first milliseconds (before all know each other), or under traffic. */
static void kill_one(uint64_t *seed)
{
	const char *const env[] = { procs_random(seed) & 1 ?
		"FI_UNIMEM_ATTACH=1" : "FI_UNIMEM_ATTACH=0", NULL };
	int victim = procs_random(seed) % NPROCS, n;
	bool early = procs_random(seed) % 3 == 0;
	uint64_t delay = procs_random(seed) % (early ? 15000 : 30000);
	uint64_t ino[INODES];
	struct proc *p[NPROCS];

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
	procs_clean();
	procs_forget();
}

static void random_moments(void)
{
	long kills = procs_number("UNM_TEST_KILLS", 200);
	uint64_t seed = (uint64_t)procs_number("UNM_TEST_SEED", 20261120);
	bool own = own_shm();

	for (long i = 0; i < kills; i++) {
		g_shared->word[5] = (uint64_t)i;
		kill_one(&seed);
	}
	no_files(own);
	procs_note("%ld processes killed", kills);
}

/* All at once, also with the launcher in the middle of it. */
static void all_at_once(void)
{
	bool own = own_shm();

	for (int round = 0; round < 10; round++) {
		int nobody = 63;
		struct proc *p[NPROCS];

		for (int i = 0; i < NPROCS; i++)
			p[i] = proc_start(one_of_many, &nobody, NULL);
		procs_join(p, NPROCS);
		procs_nap(1000u * (unsigned)round);
		for (int i = 0; i < NPROCS; i++)
			proc_stop(p[i]);
		for (int i = 0; i < NPROCS; i++)
			proc_kill(p[i]);
		procs_clean();
		procs_forget();
	}
	no_files(own);
}

static const struct procs_case cases[] = {
	{ "points_sender", points_sender, 100 },
	{ "points_receiver", points_receiver, 100 },
	{ "random_moments", random_moments, 100 },
	{ "all_at_once", all_at_once, 0 },
};

int main(int argc, char **argv)
{
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
