/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_kill.c - processes and hosts that end at random moments, with
 * peers on two hosts (lib/hosts.h).
 *
 * Four processes exchange messages without end, two on each host. The living
 * notice each end, exchange messages among themselves, and get no part of a
 * message of a dead process: the traffic checks each byte, the order and the
 * length of all messages.
 *
 * UNM_TEST_KILLS: kills at random moments, 3.
 */
#include <stdlib.h>

#include "lib/hosts.h"

#define NPROCS	4
/* words of g_shared: messages received by each process from 0, then */
#define REFUSED	8			/* peers whose end each has noticed */
#define MORTAL	16			/* of each process, likewise */

#define EVEN	UINT64_C(5)		/* the processes of host 0 */
#define ODD	UINT64_C(10)		/* and of host 1 */

enum order { STOP, CUT, UNPLUG };	/* words of the director */

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

/* Both hosts send to an Ethernet address that nobody has. */
static void obey(enum order order, int host, struct traffic *t)
{
	if (order == STOP)
		traffic_stop(t);
	else if (order == CUT)
		CHECK(hosts_run("ip neigh replace 10.78.0.%d lladdr "
				"02:00:00:00:00:99 dev net0 nud permanent",
				2 - host));
	else
		CHECK(hosts_run("ip link del net0"));
}

/* Exchange a few messages with each living peer, so that UCX has finished its
 * own handshakes: UCX 1.13 aborts if a link ends meanwhile
 * (docs/roadmap.md). */
static void all_connect(struct node *n, int fd, uint64_t mortal)
{
	struct traffic_opt opt = {
		.count = 4, .lens = mixed, .nlens = 8, .mortal = mortal,
	};
	struct traffic *t = traffic_new(n, &opt);

	while (traffic_step(t))
		;
	traffic_free(t);
	node_report(n, fd, 0);
}

/* Every other process sleeps when it has nothing to do. */
static int one_of_four(int fd, int host)
{
	int index = proc_index();
	struct traffic_opt opt = {
		.endless = true, .lens = mixed, .nlens = 8, .window = 8,
		.mortal = g_shared->word[MORTAL + index], .sleeps = index / 2,
	};
	struct traffic *t;
	uint64_t word;
	struct node n;

	node_start(&n, fd, opt.sleeps ? NODE_WAIT : 0);
	all_connect(&n, fd, opt.mortal);
	t = traffic_new(&n, &opt);
	while (traffic_step(t)) {
		g_shared->word[index] = traffic_received(t);
		g_shared->word[REFUSED + index] = traffic_refused(t);
		if (procs_recv(fd, &word, sizeof(word), 0) > 0)
			obey((enum order)word, host, t);
	}
	traffic_free(t);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

/* Is p[i] among the living? */
static bool lives(uint64_t dead, int i)
{
	return (dead >> i & 1) == 0;
}

/* Start the processes, of which mortal may die (0: those of the other host),
 * and kill those in early before they connect. Returns when the living exchange
 * messages. */
static void start(struct proc *p[NPROCS], uint64_t mortal, uint64_t early)
{
	for (int i = 0; i < NPROCS; i++) {
		g_shared->word[i] = 0;
		g_shared->word[REFUSED + i] = 0;
		g_shared->word[MORTAL + i] = mortal != 0 ? mortal :
			i % 2 == 0 ? ODD : EVEN;
	}
	hosts_start(p, NPROCS, one_of_four);
	for (int i = 0; i < NPROCS; i++)
		if (!lives(early, i))
			proc_kill(p[i]);
	procs_join(p, NPROCS);
	for (int i = 0; i < NPROCS; i++)
		if (lives(early, i))
			procs_recv_word(p[i]->fd);
	for (int i = 0; i < NPROCS; i++)
		if (lives(early, i))
			procs_send_word(p[i]->fd, 0);
}

static void await_more(struct proc *const *p, uint64_t dead, uint64_t more)
{
	for (int i = 0; i < NPROCS; i++) {
		uint64_t at = g_shared->word[i];

		while (lives(dead, i) && g_shared->word[i] < at + more)
			CHECK_MSG(!proc_ended(p[i], 1), "child %d: exit %d",
				  i, p[i]->status);
	}
}

/* The living exchange more messages, then stop. */
static void the_living(struct proc *const *p, uint64_t dead)
{
	await_more(p, dead, 30);
	for (int i = 0; i < NPROCS; i++)
		if (lives(dead, i))
			procs_send_word(p[i]->fd, STOP);
	for (int i = 0; i < NPROCS; i++)
		if (lives(dead, i))
			procs_recv_word(p[i]->fd);
	for (int i = 0; i < NPROCS; i++)
		if (lives(dead, i))
			procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		if (lives(dead, i))
			proc_expect(p[i], 0);
}

/* While it starts, or under traffic. */
static void kill_one(uint64_t seed)
{
	int victim = (int)(procs_random(&seed) % NPROCS);
	bool early = procs_random(&seed) % 4 == 0;
	uint64_t dead = UINT64_C(1) << victim;
	struct proc *p[NPROCS];

	start(p, dead, early ? dead : 0);
	procs_nap(procs_random(&seed) % 30000);
	if (!early)
		proc_kill(p[victim]);
	the_living(p, dead);
	procs_forget();
}

static void random_moments(void)
{
	long kills = procs_number("UNM_TEST_KILLS", 3);
	uint64_t seed = (uint64_t)procs_number("UNM_TEST_SEED", 20261123);

	for (long i = 0; i < kills; i++)
		kill_one(procs_random(&seed));
	procs_note("%ld processes killed", kills);
}

/* Both processes of a host at once, and the host with them. */
static void host_gone(void)
{
	struct proc *p[NPROCS];

	start(p, EVEN, 0);
	await_more(p, 0, 20);
	for (int i = 0; i < NPROCS; i += 2)
		proc_stop(p[i]);
	for (int i = 0; i < NPROCS; i += 2)
		proc_kill(p[i]);
	the_living(p, EVEN);
}

/* The hosts lose each other: each process takes those of the other host for
 * dead, and goes on with the one of its own host. */
static void lose_each_other(enum order order)
{
	struct proc *p[NPROCS];

	start(p, 0, 0);
	await_more(p, 0, 20);
	procs_send_word(p[0]->fd, order);
	if (order == CUT)
		procs_send_word(p[1]->fd, order);
	for (int i = 0; i < NPROCS; i++)
		while (g_shared->word[REFUSED + i] !=
		       g_shared->word[MORTAL + i])
			CHECK_MSG(!proc_ended(p[i], 1), "child %d: exit %d",
				  i, p[i]->status);
	/* to each process those of its mask count as dead from now on */
	g_shared->gone = EVEN | ODD;
	the_living(p, 0);
}

static void partition(void)
{
	lose_each_other(CUT);
}

static void cable_removed(void)
{
	lose_each_other(UNPLUG);
}

int main(int argc, char **argv)
{
	static const struct procs_case cases[] = {
		PROCS_CASE(random_moments, 120),
		PROCS_CASE(host_gone, 0),
		PROCS_CASE(partition, 0),
		PROCS_CASE(cable_removed, 0),
	};

	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
