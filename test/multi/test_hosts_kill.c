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
 * UNM_TEST_KILLS: kills at random moments, 3. UNM_TEST_HOSTS: hosts that vanish
 * at random moments, 1. UNM_TEST_OUTAGES: times that the cable is out for a
 * while, 1.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/hosts.h"

#define NPROCS	4
/* words of g_shared: messages received by each process from 0, then */
#define REFUSED	8			/* peers whose end each has noticed */
#define MORTAL	16			/* of each process, likewise */

#define EVEN	UINT64_C(5)		/* the processes of host 0 */
#define ODD	UINT64_C(10)		/* and of host 1 */

/* The least time in which a silent host is noticed: the default of
 * FI_UNIMEM_NET_DEAD_MS, 3000 (there is no lower value), less the 0.9 s for
 * which the host may have been silent before (docs/net.md, section 4), and some
 * tolerance. The end of a socket is noticed within milliseconds. */
#define SILENT_US	1500000

enum order { STOP, CUT, UNPLUG };	/* words of the director */

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

/* Send all for the other host to an Ethernet address that nobody has. */
static void cut(int host)
{
	CHECK(hosts_run("ip neigh replace 10.78.0.%d lladdr 02:00:00:00:00:99 "
			"dev net0 nud permanent", 2 - host));
}

static void mend(int host)
{
	CHECK(hosts_run("ip neigh del 10.78.0.%d dev net0", 2 - host));
}

static void obey(enum order order, int host, struct traffic *t)
{
	if (order == STOP)
		traffic_stop(t);
	else if (order == CUT)
		cut(host);
	else
		CHECK(hosts_run("ip link del net0"));
}

/* Exchange a few messages with each living peer, so that all are connected. */
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

/* The peers that process i may lose: those that may die, or the other host
 * (mortal is 0). A host that vanishes loses the other one, too, and its last
 * process may notice that before it is killed. */
static uint64_t may_lose(int i, uint64_t mortal)
{
	uint64_t beyond = i % 2 == 0 ? ODD : EVEN;

	if (mortal == 0)
		return beyond;
	return mortal == (beyond ^ (EVEN | ODD)) ? mortal | beyond : mortal;
}

/* Start the processes, of which mortal may die (0: those of the other host),
 * and kill those in early before they connect. Returns when the living exchange
 * messages. */
static void start(struct proc *p[NPROCS], uint64_t mortal, uint64_t early)
{
	for (int i = 0; i < NPROCS; i++) {
		g_shared->word[i] = 0;
		g_shared->word[REFUSED + i] = 0;
		g_shared->word[MORTAL + i] = may_lose(i, mortal);
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

/* Wait until each process of mask has noticed the end of all its peers that may
 * die. */
static void await_refused(struct proc *const *p, uint64_t mask)
{
	for (int i = 0; i < NPROCS; i++)
		while (lives(~mask, i) && g_shared->word[REFUSED + i] !=
		       g_shared->word[MORTAL + i])
			CHECK_MSG(!proc_ended(p[i], 1), "child %d: exit %d",
				  i, p[i]->status);
}

/* Both processes of a host, and the host with them. The host is cut off before,
 * so that nothing but silence shows the survivors its end. Its processes are
 * stopped before they are killed (at_once), or the second one has some time to
 * notice the end of the first one. Bits of g_shared->gone, which proc_kill()
 * sets, would have the survivors send nothing more to the dead: they are set
 * once the end is noticed. */
static void host_ends(uint64_t seed)
{
	int host = (int)(procs_random(&seed) % 2), ns;
	bool at_once = procs_random(&seed) % 2 == 0;
	uint64_t dead = host == 0 ? EVEN : ODD, since;
	struct proc *p[NPROCS];

	start(p, dead, 0);
	procs_nap(procs_random(&seed) % 30000);
	ns = hosts_vanish(p[host]);
	since = procs_now();
	for (int i = host; at_once && i < NPROCS; i += 2)
		proc_stop(p[i]);
	for (int i = host; i < NPROCS; i += 2) {
		proc_signal(p[i], SIGKILL);
		while (!proc_ended(p[i], 1000))
			;
	}
	await_refused(p, ~dead);
	since = procs_now() - since;
	CHECK_MSG(since >= SILENT_US, "noticed after %llu ms: not by silence",
		  (unsigned long long)since / 1000);
	g_shared->gone = dead;
	close(ns);
	the_living(p, dead);
	procs_forget();
}

static void host_gone(void)
{
	long hosts = procs_number("UNM_TEST_HOSTS", 1);
	uint64_t seed = (uint64_t)procs_number("UNM_TEST_SEED", 20261123);

	for (long i = 0; i < hosts; i++)
		host_ends(procs_random(&seed));
	procs_note("%ld hosts vanished", hosts);
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
	await_refused(p, EVEN | ODD);
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

/* ---- Receives ------------------------------------------------------------ */

/* Is this text in what was written to the file that fd_of_stderr() made? */
static bool printed(int fd, const char *text)
{
	char buf[4096];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	CHECK(n >= 0);
	buf[n] = '\0';
	return strstr(buf, text) != NULL;
}

/* Have standard error go to a file of memory. */
static int fd_of_stderr(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	g_fail_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	CHECK(fd >= 0 && g_fail_fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	return fd;
}

/*
 * Each process waits in receives only, so nothing is sent that fails. Those
 * that name a process of the other host end; the one from any source gets the
 * message of the process of the same host. Every other process sleeps.
 */
static int only_receives(int fd, int host)
{
	int index = proc_index(), beside = (index + 2) % NPROCS, ret, out;
	bool sleeps = index / 2;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fi_context2 ctx[NPROCS];
	uint8_t buf[NPROCS][8];
	struct node n;

	out = fd_of_stderr();
	node_start(&n, fd, sleeps ? NODE_WAIT : 0);
	all_connect(&n, fd, 0);
	FI(fi_trecv(n.ep, buf[index], 8, NULL, FI_ADDR_UNSPEC, 5, 0,
		    &ctx[index]));
	for (int i = 1 - host; i < NPROCS; i += 2)
		FI(fi_trecv(n.ep, buf[i], 8, NULL, n.peer[i], 5, 0, &ctx[i]));
	node_report(&n, fd, 0);
	if (index < 2)
		cut(host);
	for (int left = 2; left > 0; left--) {
		while ((ret = sleeps ?
			node_sleep(&n, &entry, &error, 60000) :
			node_poll(&n, &entry, &error)) == 0)
			;
		CHECK_MSG(ret < 0 && error.err == FI_ECONNRESET, "%s",
			  ret < 0 ? fi_strerror(error.err) : "success");
		CHECK(error.op_context == &ctx[1 - host] ||
		      error.op_context == &ctx[3 - host]);
	}
	CHECK(printed(out, "1 from any source go on waiting"));
	CHECK(printed(out, "does not answer"));
	/* without progress: the message beside may come before the answer */
	procs_exchange(fd, 0);
	while ((ret = (int)fi_tinject(n.ep, buf, 8, n.peer[beside], 5)) ==
	       -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	FI(ret);
	while ((ret = node_poll(&n, &entry, &error)) == 0)
		;
	CHECK(ret == 1 && entry.op_context == &ctx[index]);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void receives(void)
{
	struct proc *p[NPROCS];

	hosts_start(p, NPROCS, only_receives);
	procs_join(p, NPROCS);
	for (int step = 0; step < 4; step++) {
		for (int i = 0; i < NPROCS; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < NPROCS; i++)
			procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < NPROCS; i++)
		proc_expect(p[i], 0);
}

/* ---- Outages ------------------------------------------------------------- */

#define OUTAGE_US	1500000		/* FI_UNIMEM_NET_DEAD_MS is 3000 */
#define SURVIVED_US	1900000		/* a longer one may end a peer ... */
#define NOTICED_US	4500000		/* ... so long after its begin */
#define LONGEST	0			/* word of g_shared: longest outage */

/* Host 0 is not reached for a while, and nothing is sent meanwhile but the
 * probes of the kernel, one each second. The next outage is at another moment
 * between two probes. */
static int through_outages(int fd, int host)
{
	long outages = procs_number("UNM_TEST_OUTAGES", 1);
	struct node n;
	uint64_t since, took;

	node_start(&n, fd, 0);
	all_connect(&n, fd, 0);
	for (long i = 0; i < outages; i++) {
		since = procs_now();
		if (host == 1)
			cut(host);
		node_quiet(&n, OUTAGE_US);
		if (host == 1)
			mend(host);
		took = procs_now() - since;
		if (host == 1 && took > g_shared->word[LONGEST])
			g_shared->word[LONGEST] = took;
		node_quiet(&n, NOTICED_US - OUTAGE_US);
	}
	node_report(&n, fd, 0);
	if (g_shared->word[LONGEST] < SURVIVED_US)
		all_connect(&n, fd, 0);
	else
		node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void outages(void)
{
	struct proc *p[2];

	hosts_start(p, 2, through_outages);
	procs_join(p, 2);
	for (int step = 0; step < 3; step++) {
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < 2; i++)
			procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
	if (g_shared->word[LONGEST] >= SURVIVED_US)
		procs_skip("the machine is busy: an outage took %llu ms",
			   (unsigned long long)g_shared->word[LONGEST] / 1000);
}

int main(int argc, char **argv)
{
	static const struct procs_case cases[] = {
		PROCS_CASE(random_moments, 120),
		PROCS_CASE(host_gone, 0),
		PROCS_CASE(partition, 0),
		PROCS_CASE(cable_removed, 0),
		PROCS_CASE(receives, 0),
		PROCS_CASE(outages, 120),
	};

	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
