/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_idle.c - processes on two hosts (lib/hosts.h) that have more peers
 * than FI_UNIMEM_NET_PEERS allows: connections are closed and made again, no
 * message is lost, and ends are noticed, also by receives that nothing but the
 * end can complete.
 *
 * UNM_TEST_ROUNDS: rounds of the storm, 50.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "hal/hal_fault_point.h"
#include "lib/hosts.h"

#define STORM		12		/* processes, six on each host */
#define MOST		300000		/* bytes of a message */
#define HUB		8		/* one with four peers on the other
					 * host */

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 100, 1000, MOST };

/* Make progress until no more sockets are open than so many links have. */
static void until_closed(struct node *n, int before, int links)
{
	while (hosts_sockets() > before + 3 * links)
		fi_cq_read(n->cq, NULL, 0);
}

/* ---- Storm -------------------------------------------------------------- */

static uint8_t byte_of(long round, int from, size_t i)
{
	return (uint8_t)(round * 31 + from * 7 + (long)(i + (i >> 8)));
}

/* A message to one peer and from another one, with all bytes checked. */
static void storm_round(struct node *n, long round, int to, int from,
			uint8_t *out, uint8_t *in)
{
	size_t len = mixed[round % 8];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int left = 2, ret;
	ssize_t sent;

	for (size_t i = 0; i < len; i++)
		out[i] = byte_of(round, n->self, i);
	FI(fi_trecv(n->ep, in, MOST, NULL, n->peer[from], (uint64_t)round, 0,
		    NULL));
	do {
		sent = fi_tsend(n->ep, out, len, NULL, n->peer[to],
				(uint64_t)round, NULL);
		ret = node_poll(n, &entry, &error);
		CHECK_MSG(ret >= 0, "%s", fi_strerror(error.err));
		left -= ret;
	} while (sent == -FI_EAGAIN);
	FI(sent);
	while (left != 0) {
		ret = node_sleep(n, &entry, &error, 1000);
		CHECK_MSG(ret >= 0, "round %ld, to %d, from %d: %s", round, to,
			  from, fi_strerror(error.err));
		left -= ret;
	}
	for (size_t i = 0; i < len; i++)
		CHECK_MSG(in[i] == byte_of(round, from, i),
			  "round %ld: byte %zu of %zu of child %d", round, i,
			  len, from);
}

/* Messages to peers in any order, the same in all processes: each sends to that
 * at a distance in the ring of the processes. */
static int stormy(int fd, int host)
{
	uint8_t *out = malloc(MOST), *in = malloc(MOST);
	long rounds = procs_number("UNM_TEST_ROUNDS", 50);
	uint64_t seed = 7;
	struct node n;
	int before;

	(void)host;
	CHECK(out != NULL && in != NULL);
	setenv("FI_UNIMEM_NET_PEERS", "2", 1);
	node_open(&n, NODE_WAIT);
	before = hosts_sockets();
	node_join(&n, fd);
	for (long i = 0; i < rounds; i++) {
		int d = 1 + (int)(procs_random(&seed) % (STORM - 1));

		storm_round(&n, i, (n.self + d) % STORM,
			    (n.self + STORM - d) % STORM, out, in);
	}
	until_closed(&n, before, 2);
	node_report(&n, fd, 0);
	node_close(&n);
	free(out);
	free(in);
	return 0;
}

static void idle_storm(void)
{
	struct proc *p[STORM];

	hosts_start(p, STORM, stormy);
	procs_join(p, STORM);
	for (int i = 0; i < STORM; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < STORM; i++)
		proc_finish(p[i]);
}

/* ---- Ends --------------------------------------------------------------- */

/* A message there and one back. */
static void exchange(struct node *n, int with, bool first)
{
	uint8_t buf[8] = { 0 };

	if (first)
		node_send(n, with, buf, 8, 9);
	node_recv(n, buf, 8, 9);
	if (!first)
		node_send(n, with, buf, 8, 9);
}

static void await_error(struct node *n)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	g_shared->word[1] = 1;
	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	CHECK(ret == -FI_EAVAIL);
	CHECK_MSG(error.err == FI_ECONNRESET, "%s", fi_strerror(error.err));
}

#ifdef HAL_FAULT_POINTS
/* words of g_shared: the child to be ended or stopped, and where */
#define VICTIM	2
#define POINT	3
#define STOPS	4			/* it is stopped instead of killed */

/* Let a child be ended or stopped at a fault point. */
static void arm(void)
{
	char text[64];

	if (g_shared->word[POINT] == 0 ||
	    g_shared->word[VICTIM] != (uint64_t)proc_index())
		return;
	snprintf(text, sizeof(text), "%s:1:%s", hal_fault_point_name(
			(enum hal_fault_point)g_shared->word[POINT]),
		 g_shared->word[STOPS] ? "stop" : "kill");
	setenv("FI_UNIMEM_POINT", text, 1);
	hal_fault_point_reload();
}
#else
static void arm(void)
{
}
#endif

/* Child 0 is connected to one of the children of the other host at a time. It
 * exchanges a message with each child whose number the director sends. */
static int hub(int fd)
{
	static uint8_t big[MOST], late[8];
	uint8_t buf[8] = { 0 };
	uint64_t with;
	struct node n;
	ssize_t ret;
	int before;

	setenv("FI_UNIMEM_NET_PEERS", "1", 1);
	arm();
	node_open(&n, 0);
	before = hosts_sockets();
	node_join(&n, fd);
	while ((with = node_report(&n, fd, 0)) != 0) {
		if (with >= 500) {		/* nobody sends it */
			FI(fi_trecv(n.ep, late, 8, NULL, n.peer[with % 100],
				    11, 0, NULL));
			if (with >= 600)
				await_error(&n);
		} else if (with == 400) {
			await_error(&n);
		} else if (with >= 300) {	/* nobody receives it */
			FI(fi_tsend(n.ep, big, MOST, NULL, n.peer[with - 300],
				    10, NULL));
		} else if (with >= 200) {	/* not answered yet */
			FI(fi_tinject(n.ep, buf, 8, n.peer[with - 200], 9));
		} else if (with >= 100) {
			while ((ret = fi_tinject(n.ep, buf, 8,
						 n.peer[with - 100], 9)) == 0 ||
			       ret == -FI_EAGAIN)
				fi_cq_read(n.cq, NULL, 0);
			CHECK_MSG(ret == -FI_ECONNRESET, "%s",
				  fi_strerror((int)-ret));
		} else {
			exchange(&n, (int)with, true);
			if (g_shared->word[0] == 0)
				until_closed(&n, before, 1);
		}
	}
	node_close(&n);
	return 0;
}

static int hub_or_rim(int fd, int host)
{
	struct node n;
	uint64_t word;

	if (proc_index() == 0)
		return hub(fd);
	arm();
	node_start(&n, fd, 0);
	while (host == 1 && (word = node_report(&n, fd, 0)) != 0)
		exchange(&n, 0, false);
	if (host == 0)
		node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hub_start(struct proc *p[HUB])
{
	hosts_start(p, HUB, hub_or_rim);
	procs_join(p, HUB);
	for (int i = 0; i < HUB; i++)
		procs_recv_word(p[i]->fd);
}

/* The hub and child i exchange a message. */
static void talk_to(struct proc *p[HUB], int i)
{
	procs_send_word(p[i]->fd, 1);
	procs_send_word(p[0]->fd, (uint64_t)i);
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[i]->fd);
}

static void finish(struct proc *p[HUB])
{
	for (int i = 0; i < HUB; i++)
		if (!p[i]->ended)
			proc_finish(p[i]);
}

/* Child 1 is killed while its connection to the hub is closed. */
static void idle_killed(void)
{
	struct proc *p[HUB];

	hub_start(p);
	for (int i = 1; i < HUB; i += 2)
		talk_to(p, i);
	proc_kill(p[1]);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	procs_exchange(p[0]->fd, 101);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	finish(p);
}

/* Kill child 1 while the hub waits for an error. */
static void kill_awaited(struct proc *p[HUB])
{
	procs_send_word(p[0]->fd, 400);
	while (g_shared->word[1] == 0)
		procs_nap(1000);
	proc_kill(p[1]);
	procs_recv_word(p[0]->fd);
}

/* Child 1 is killed while a long message to it waits for its receive: the hub
 * has kept the connection, and notices. */
static void idle_awaited(void)
{
	struct proc *p[HUB];

	hub_start(p);
	g_shared->word[0] = 1;
	talk_to(p, 1);
	procs_exchange(p[0]->fd, 301);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	kill_awaited(p);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	finish(p);
}

/* The hub has posted a receive from child 1, and needs its only connection for
 * other children. Then child 1 is killed. */
static void idle_received(void)
{
	struct proc *p[HUB];

	hub_start(p);
	talk_to(p, 1);
	procs_exchange(p[0]->fd, 501);
	g_shared->word[0] = 1;
	for (int round = 0; round < 5; round++)
		for (int i = 3; i < HUB; i += 2)
			talk_to(p, i);
	kill_awaited(p);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	finish(p);
}

/* The hub posts a receive from child 1, to which it never had a connection, and
 * which is dead already. */
static void idle_unconnected(void)
{
	struct proc *p[HUB];

	hub_start(p);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	proc_kill(p[1]);
	procs_exchange(p[0]->fd, 601);
	for (int i = 3; i < HUB; i += 2)
		talk_to(p, i);
	finish(p);
}

/* Child 1 is stopped while the hub wants to close its connection: the hub
 * exchanges messages with other children meanwhile. */
static void idle_stopped(void)
{
	struct proc *p[HUB];

	hub_start(p);
	g_shared->word[0] = 1;	/* connections to the stopped child stay */
	talk_to(p, 1);
	proc_stop(p[1]);
	for (int round = 0; round < 5; round++)
		for (int i = 3; i < HUB; i += 2)
			talk_to(p, i);
	procs_exchange(p[0]->fd, 201);
	proc_signal(p[1], SIGCONT);
	procs_send_word(p[1]->fd, 1);
	procs_recv_word(p[1]->fd);
	for (int i = 1; i < HUB; i += 2)
		talk_to(p, i);
	finish(p);
}

/* ---- Fault points -------------------------------------------------------- */

#ifdef HAL_FAULT_POINTS
/* The hub and child i begin to exchange a message, in which the victim comes to
 * its fault point. If it is stopped, it goes on. */
static void at_point(struct proc *p[HUB], int i)
{
	int victim = (int)g_shared->word[VICTIM];

	procs_send_word(p[i]->fd, 1);
	procs_send_word(p[0]->fd, (uint64_t)i);
	if (g_shared->word[STOPS] == 0) {
		while (!proc_ended(p[victim], 1000))
			;
		return;
	}
	proc_await_stop(p[victim]);
	if (victim != 0) {		/* it delays nobody */
		procs_recv_word(p[0]->fd);
		procs_recv_word(p[i]->fd);
		talk_to(p, 5);
	}
	proc_signal(p[victim], SIGCONT);
	if (victim == 0) {
		procs_recv_word(p[0]->fd);
		procs_recv_word(p[i]->fd);
	}
}

/* One life with one fault point, to which a process comes when the hub talks to
 * child i, after it has talked to child 1. */
static void one_life(int victim, enum hal_fault_point point, bool stops, int i)
{
	struct proc *p[HUB];

	g_shared->word[VICTIM] = (uint64_t)victim;
	g_shared->word[POINT] = point;
	g_shared->word[STOPS] = stops;
	/* sockets to a stopped child stay */
	g_shared->word[0] = stops && victim == 1;
	hub_start(p);
	talk_to(p, 1);
	if (i == 1)
		talk_to(p, 3);		/* suspends child 1 */
	at_point(p, i);
	if (!stops && victim == 0) {
		proc_kill(p[i]);	/* it waits for the hub */
	} else {
		if (!stops) {
			procs_recv_word(p[0]->fd);
			procs_recv_word(p[i]->fd);
			procs_exchange(p[0]->fd, 101);
		}
		for (int k = stops ? 1 : 3; k < HUB; k += 2)
			talk_to(p, k);
	}
	finish(p);
	procs_forget();
}

/* A process is killed or stopped while it suspends a peer or connects to it
 * again: the other processes go on, and notice an end. */
static void idle_points(void)
{
	for (int stops = 0; stops < 2; stops++) {
		one_life(0, HAL_FAULT_POINT_NET_PROPOSED, stops, 3);
		one_life(1, HAL_FAULT_POINT_NET_AGREED, stops, 3);
		one_life(0, HAL_FAULT_POINT_NET_RESUMED, stops, 1);
	}
}
#else
static void idle_points(void)
{
	procs_skip("no fault points (configure --enable-fault-points)");
}
#endif

int main(int argc, char **argv)
{
	static const struct procs_case cases[] = {
		PROCS_CASE(idle_storm, 120),
		PROCS_CASE(idle_killed, 0),
		PROCS_CASE(idle_awaited, 0),
		PROCS_CASE(idle_received, 0),
		PROCS_CASE(idle_unconnected, 0),
		PROCS_CASE(idle_stopped, 0),
		PROCS_CASE(idle_points, 120),
	};

	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
