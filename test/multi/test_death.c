/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_death.c - peers that die, stop, close or come again: what is under way
 * ends once, in a second, and nobody else is touched.
 *
 * The second is the issue's; it runs from the moment of SIGKILL to the last
 * completion in error, as the survivor sees it (procs_within_a_second).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"

#define BIG		(64u << 10)
#define HUGE_LEN	(64u << 20)
#define NSENDS		16
#define CONFIRM_US	200000		/* nothing more comes for so long */

/* ---- Sends ------------------------------------------------------------- */

enum how {
	POLLING,		/* victim polls */
	ASLEEP,			/* victim sleeps in fi_cq_sread */
	STOPPED,		/* victim stopped before, its ring is full */
	SLEEPER,		/* survivor sleeps when the peer dies */
	PARENT,			/* victim's forked child lives on */
	PARENT_EXIT,		/* the same, and it ends by _exit */
};

static int victim(int fd, void *arg)
{
	enum how how = *(enum how *)arg;
	struct fi_cq_tagged_entry entry;
	struct node n;

	node_start(&n, fd, how == ASLEEP ? NODE_WAIT : 0);
	/* connect both ways: the first message of the survivor is answered */
	node_recv(&n, g_shared->bytes, 8, 1);
	node_send(&n, 0, g_shared->bytes, 8, 2);
	if ((how == PARENT || how == PARENT_EXIT) && fork() == 0) {
		g_shared->word[5] = getpid();
		for (;;)
			pause();
	}
	procs_send_word(fd, 0);
	if (how == ASLEEP)
		for (;;)
			fi_cq_sread(n.cq, &entry, 1, NULL, -1);
	node_idle(&n, fd);
	_exit(0);
}

/* Each of these says at once that the peer is dead. */
static void posts_fail(struct node *n, fi_addr_t to)
{
	static uint8_t buf[BIG];
	struct iovec iov = { buf, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };
	const size_t lens[] = { 0, 8, 4096, BIG };

	for (size_t i = 0; i < 4; i++) {
		CHECK(fi_send(n->ep, buf, lens[i], NULL, to, NULL) ==
		      -FI_ECONNRESET);
		CHECK(fi_tsend(n->ep, buf, lens[i], NULL, to, 1, NULL) ==
		      -FI_ECONNRESET);
	}
	CHECK(fi_inject(n->ep, buf, 8, to) == -FI_ECONNRESET);
	CHECK(fi_tinject(n->ep, buf, 8, to, 1) == -FI_ECONNRESET);
	CHECK(fi_senddata(n->ep, buf, 8, NULL, 1, to, NULL) ==
	      -FI_ECONNRESET);
	CHECK(fi_sendmsg(n->ep, &msg, FI_DELIVERY_COMPLETE) ==
	      -FI_ECONNRESET);
}

struct sends {
	uint8_t buf[2 * NSENDS][BIG];
	int done[2 * NSENDS];		/* completions of each */
};

/* Rendezvous first, then short ones with FI_DELIVERY_COMPLETE. */
static void post_sends(struct node *n, struct sends *s)
{
	for (int i = 0; i < 2 * NSENDS; i++) {
		struct iovec iov = { s->buf[i], i < NSENDS ? BIG : 8 };
		struct fi_msg_tagged msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = n->peer[1],
			.tag = 7, .context = &s->done[i],
		};

		FI(fi_tsendmsg(n->ep, &msg, FI_COMPLETION |
			       FI_DELIVERY_COMPLETE));
	}
}

/* Completions of all sends, in whatever way it waits; when the last came. */
static uint64_t await_sends(struct node *n, struct sends *s, enum how how)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	for (int left = 2 * NSENDS; left > 0; ) {
		if (how == SLEEPER)
			ret = fi_cq_sread(n->cq, &entry, 1, NULL, -1);
		else
			ret = fi_cq_read(n->cq, &entry, 1);
		if (ret == -FI_EAGAIN)
			continue;
		if (ret == 1) {
			int i = (int *)entry.op_context - s->done;

			CHECK_MSG(i >= NSENDS && how != STOPPED,
				  "a send to the dead succeeded");
			s->done[i]++;
			left--;
			continue;
		}
		CHECK(ret == -FI_EAVAIL &&
		      fi_cq_readerr(n->cq, &error, 0) == 1);
		CHECK_MSG(error.err == FI_ECONNRESET && error.flags & FI_SEND,
			  "%s", fi_strerror(error.err));
		++*(int *)error.op_context;
		left--;
	}
	return procs_now();
}

static int survivor(int fd, void *arg)
{
	struct sends *s = calloc(1, sizeof(*s));
	enum how how = *(enum how *)arg;
	struct node n;
	int full = 0;

	CHECK(s != NULL);
	node_start(&n, fd, how == SLEEPER ? NODE_WAIT : 0);
	node_send(&n, 1, g_shared->bytes, 8, 1);
	node_recv(&n, g_shared->bytes, 8, 2);
	procs_exchange(fd, 0);
	post_sends(&n, s);
	while (how == STOPPED && full < 1000 &&
	       fi_tinject(n.ep, s->buf, 8, n.peer[1], 7) == 0)
		full++;
	CHECK_MSG(full < 1000, "a stopped peer takes all that comes");
	procs_send_word(fd, 0);
	procs_send_word(fd, await_sends(&n, s, how));
	node_quiet(&n, CONFIRM_US);
	for (int i = 0; i < 2 * NSENDS; i++)
		CHECK_MSG(s->done[i] == 1, "send %d completed %d times", i,
			  s->done[i]);
	posts_fail(&n, n.peer[1]);
	/* by another number of the same address, too */
	posts_fail(&n, node_insert(&n, &((struct hal_addr *)
					 g_shared->bytes)[64]));
	node_close(&n);
	free(s);
	return 0;
}

static uint64_t sends_attempt(void *arg)
{
	enum how how = *(enum how *)arg;
	struct proc *p[2] = { proc_start(survivor, &how, NULL),
			      proc_start(victim, &how, NULL) };
	struct hal_addr_host addr[2];
	uint64_t since, last;

	for (int i = 0; i < 2; i++)
		CHECK(procs_recv(p[i]->fd, &addr[i], sizeof(addr[i]), -1) > 0);
	((struct hal_addr *)g_shared->bytes)[64] = addr[1].addr;
	for (int i = 0; i < 2; i++)
		CHECK(procs_send(p[i]->fd, addr, sizeof(addr)));
	procs_recv_word(p[1]->fd);
	procs_recv_word(p[0]->fd);
	if (how == STOPPED)
		proc_stop(p[1]);
	procs_exchange(p[0]->fd, 0);
	procs_nap(how == ASLEEP || how == SLEEPER ? 50000 : 5000);
	if (how == PARENT_EXIT) {
		proc_finish(p[1]);
		since = procs_now();
	} else {
		since = proc_kill(p[1]);
	}
	last = procs_recv_word(p[0]->fd);
	proc_expect(p[0], 0);
	if (how == PARENT || how == PARENT_EXIT)
		CHECK_MSG(kill((pid_t)g_shared->word[5], 0) == 0,
			  "the victim's child was to live");
	return last > since ? last - since : 0;
}

static void sends_to(void *how)
{
	procs_within_a_second(sends_attempt, how);
}

/* ---- Receives ---------------------------------------------------------- */

/* Last words that arrive, then rendezvous that break. */
static int speaker(int fd, void *arg)
{
	uint8_t *huge = malloc(HUGE_LEN);
	struct node n;

	(void)arg;
	CHECK(huge != NULL);
	memset(huge, 0x5a, HUGE_LEN);
	node_start(&n, fd, 0);
	for (int i = 0; i < 5; i++)
		FI(fi_tinject(n.ep, huge, 8, n.peer[0], 10));
	for (int i = 0; i < 3; i++)
		node_send(&n, 0, huge, 4000, 11);
	for (int i = 0; i < 4; i++)
		FI(fi_tsend(n.ep, huge, HUGE_LEN, NULL, n.peer[0], 20 + i,
			    NULL));
	node_idle(&n, fd);
	return 1;
}

static void last_words(struct node *n)
{
	uint8_t buf[4096];

	for (int i = 0; i < 5; i++)
		CHECK(node_recv(n, buf, sizeof(buf), 10) == 8 &&
		      buf[7] == 0x5a);
	for (int i = 0; i < 3; i++)
		CHECK(node_recv(n, buf, sizeof(buf), 11) == 4000 &&
		      buf[3999] == 0x5a);
}

/* Peek at a tagged message (FI_PEEK), and claim it if flags have FI_CLAIM. */
static bool peek(struct node *n, uint64_t tag, uint64_t flags, void *context)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = tag,
				     .context = context };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	FI(fi_trecvmsg(n->ep, &msg, FI_PEEK | FI_COMPLETION | flags));
	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	CHECK(ret == 1 || error.err == FI_ENOMSG);
	return ret == 1;
}

/*
 * Four messages broken in different states: 20 in transfer, 21 announced and
 * then received before anybody knows of the death, 22 after, 23 claimed before.
 */
static int listener(int fd, void *arg)
{
	volatile uint8_t *huge = calloc(1, HUGE_LEN);
	struct fi_msg_tagged claimed = { .iov_count = 1, .tag = 23 };
	struct fi_context2 claim, ctx[4];
	struct iovec iov = { (void *)huge, HUGE_LEN };
	uint64_t killed;
	struct node n;

	(void)arg;
	CHECK(huge != NULL);
	node_start(&n, fd, 0);
	while (!peek(&n, 23, 0, &claim))
		;
	CHECK(peek(&n, 23, FI_CLAIM, &claim));
	FI(fi_trecv(n.ep, (void *)huge, HUGE_LEN, NULL, FI_ADDR_UNSPEC, 20, 0,
		    &ctx[0]));
	while (huge[0] == 0)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(huge[HUGE_LEN - 1] == 0, "it came at once: make it longer");
	procs_send_word(fd, 0);
	killed = procs_recv_word(fd);
	FI(fi_trecv(n.ep, (void *)huge, HUGE_LEN, NULL, FI_ADDR_UNSPEC, 21, 0,
		    &ctx[1]));
	for (int i = 0; i < 2; i++) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry error;
		int ret;

		while ((ret = node_poll(&n, &entry, &error)) == 0)
			;
		CHECK_MSG(ret < 0 && error.err == FI_ECONNRESET &&
			  error.flags & FI_RECV && error.len < HUGE_LEN,
			  "%s", ret < 0 ? fi_strerror(error.err) : "success");
		CHECK(error.op_context == &ctx[0] ||
		      error.op_context == &ctx[1]);
	}
	g_shared->word[6] = procs_now() - killed;
	last_words(&n);
	node_quiet(&n, CONFIRM_US);
	FI(fi_trecv(n.ep, (void *)huge, HUGE_LEN, NULL, FI_ADDR_UNSPEC, 22, 0,
		    &ctx[2]));
	node_expect_error(&n, &ctx[2], FI_RECV, FI_ECONNRESET);
	claimed.msg_iov = &iov;
	claimed.context = &claim;
	FI(fi_trecvmsg(n.ep, &claimed, FI_CLAIM | FI_COMPLETION));
	node_expect_error(&n, &claim, FI_RECV, FI_ECONNRESET);
	node_quiet(&n, CONFIRM_US);
	node_close(&n);
	free((void *)huge);
	return 0;
}

static uint64_t broken_receives(void *attach)
{
	const char *const env[] = { attach, NULL };
	struct proc *p[2] = { proc_start(listener, NULL, env),
			      proc_start(speaker, NULL, env) };

	procs_join(p, 2);
	procs_recv_word(p[0]->fd);
	procs_send_word(p[0]->fd, proc_kill(p[1]));
	proc_expect(p[0], 0);
	return g_shared->word[6];
}

static void broken(void *env)
{
	procs_within_a_second(broken_receives, env);
}

/* ---- The living -------------------------------------------------------- */

static const size_t mixed[] = { 0, 8, 40, 200, 4096, 16384, 16385, 70000 };

static int talker(int fd, void *arg)
{
	struct traffic_opt opt = {
		.mortal = *(uint64_t *)arg, .endless = true,
		.lens = mixed, .nlens = 8,
	};
	struct traffic *t;
	uint64_t word;
	struct node n;

	node_start(&n, fd, 0);
	t = traffic_new(&n, &opt);
	while (traffic_step(t)) {
		g_shared->word[proc_index()] = traffic_received(t);
		if (procs_recv(fd, &word, sizeof(word), 0) > 0)
			traffic_stop(t);
	}
	node_report(&n, fd, traffic_received(t));
	traffic_free(t);
	node_close(&n);
	return 0;
}

/* Until everybody but the dead has received so many more. */
static void await_traffic(struct proc *const *p, int n, uint64_t more)
{
	for (int i = 0; i < n; i++) {
		uint64_t at = g_shared->word[i];

		while (!p[i]->ended && g_shared->word[i] < at + more)
			CHECK_MSG(!proc_ended(p[i], 1), "child %d: exit %d",
				  i, p[i]->status);
	}
}

/* Once it has seen what there is to be seen. */
static void await_segments(const struct proc *p, int want)
{
	uint64_t end = procs_now() + 60 * PROCS_SECOND;
	int n;

	while ((n = procs_segments(p->pid)) != want) {
		CHECK_MSG(procs_now() < end, "child %d has %d segments",
			  p->index, n);
		procs_nap(1000);
	}
}

static void living(void)
{
	uint64_t mortal = 1 << 2 | 1 << 4;
	struct proc *p[5];

	for (int i = 0; i < 5; i++)
		p[i] = proc_start(talker, &mortal, NULL);
	procs_join(p, 5);
	await_traffic(p, 5, 200);
	proc_kill(p[2]);
	await_traffic(p, 5, 500);
	proc_kill(p[4]);
	await_traffic(p, 5, 500);
	for (int i = 0; i < 5; i++)
		if (!p[i]->ended)
			procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 5; i++)
		if (!p[i]->ended)
			procs_recv_word(p[i]->fd);
	/* its page, mapped and open, and a link to and from each other one */
	for (int i = 0; i < 5; i++)
		if (!p[i]->ended)
			await_segments(p[i], 6);
	for (int i = 0; i < 5; i++)
		if (!p[i]->ended)
			proc_finish(p[i]);
}

/* Stopped for longer than any death takes to be noticed. */
static void stopped(void)
{
	uint64_t mortal = 0;
	struct proc *p[3];

	for (int i = 0; i < 3; i++)
		p[i] = proc_start(talker, &mortal, NULL);
	procs_join(p, 3);
	await_traffic(p, 3, 200);
	proc_stop(p[1]);
	procs_nap(4 * PROCS_SECOND);
	for (int i = 0; i < 3; i++)
		CHECK_MSG(!proc_ended(p[i], 0), "child %d: exit %d", i,
			  p[i]->status);
	proc_signal(p[1], SIGCONT);
	await_traffic(p, 3, 1000);
	for (int i = 0; i < 3; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 3; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 3; i++)
		proc_finish(p[i]);
}

/* ---- Close ------------------------------------------------------------- */

#define NWORDS	36			/* fit the ring and the space */

static const size_t word_lens[] = { 8, 0, 30, 700, 40, 1000 };

/* Sends, closes at once, and goes. */
static int leaver(int fd, void *arg)
{
	uint8_t buf[1024];
	struct node n;

	node_start(&n, fd, 0);
	if (*(bool *)arg) {		/* meet first */
		node_send(&n, 0, buf, 8, 1);
		node_recv(&n, buf, 8, 2);
		procs_recv_word(fd);
	}
	for (int i = 0; i < NWORDS; i++) {
		size_t len = word_lens[i % 6];
		ssize_t ret;

		memset(buf, i, len);
		if (len <= 64 && i % 2)
			ret = fi_tinject(n.ep, buf, len, n.peer[0], 50);
		else
			ret = fi_tsend(n.ep, buf, len, NULL, n.peer[0], 50,
				       NULL);
		CHECK_MSG(ret == 0, "message %d: %s", i,
			  fi_strerror((int)-ret));
	}
	node_close(&n);
	if (*(bool *)arg)		/* closed, not ended */
		procs_exchange(fd, 0);
	return 0;
}

static int stayer(int fd, void *arg)
{
	uint8_t buf[1024];
	struct node n;
	ssize_t ret;

	node_start(&n, fd, 0);
	if (*(bool *)arg) {
		node_recv(&n, buf, 8, 1);
		node_send(&n, 1, buf, 8, 2);
	}
	procs_exchange(fd, 0);		/* it is gone by now */
	for (int i = 0; i < NWORDS; i++) {
		size_t len = word_lens[i % 6];

		CHECK(node_recv(&n, buf, sizeof(buf), 50) == len);
		for (size_t k = 0; k < len; k++)
			CHECK_MSG(buf[k] == i, "message %d, byte %zu: %d", i,
				  k, buf[k]);
	}
	node_quiet(&n, CONFIRM_US / 10);
	/* one it never sent to is refused, not reset: nobody was connected; and
	 * small ones may seem to be sent, before it is known who is there */
	while ((ret = fi_tinject(n.ep, buf, 8, n.peer[1], 50)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(ret == -FI_ECONNRESET || ret == -FI_ECONNREFUSED, "%s",
		  fi_strerror((int)-ret));
	node_close(&n);
	return 0;
}

static void graceful(void)
{
	for (int round = 0; round < 20; round++) {
		bool meet = round & 1;
		struct proc *p[2] = { proc_start(stayer, &meet, NULL),
				      proc_start(leaver, &meet, NULL) };

		procs_join(p, 2);
		procs_recv_word(p[0]->fd);
		if (meet)
			procs_exchange(p[1]->fd, 0);
		else
			proc_expect(p[1], 0);
		proc_finish(p[0]);
		if (meet)
			proc_finish(p[1]);
	}
}

/* ---- Again ------------------------------------------------------------- */

static int incarnation(int fd, void *arg)
{
	uint8_t buf[8];
	struct node n;

	(void)arg;
	node_open(&n, 0);
	if (g_shared->word[7] == 0)
		g_shared->word[7] = n.addr.iface;
	node_join(&n, fd);
	procs_recv_word(fd);
	/* only what was meant for this one comes */
	CHECK(node_recv(&n, buf, 8, 60) == 8 && buf[0] == 2);
	node_quiet(&n, CONFIRM_US);
	CHECK_MSG(!peek(&n, 61, 0, NULL), "a message for one who is dead");
	node_close(&n);
	return 0;
}

/* One that knew the first incarnation (word: it sent to it), and one that has
 * its address only. */
static int acquaintance(int fd, void *arg)
{
	int index = proc_index();
	struct hal_addr_host again;
	uint8_t buf[BIG] = { 2 };
	fi_addr_t to;
	struct node n;
	ssize_t ret;

	(void)arg;
	node_start(&n, fd, 0);
	if (index == 0)
		FI(fi_tinject(n.ep, buf, 8, n.peer[2], 61));
	procs_send_word(fd, 0);
	CHECK(procs_recv(fd, &again, sizeof(again), -1) == sizeof(again));
	/* small ones may seem to be sent, before it is known who is there */
	while ((ret = fi_tinject(n.ep, buf, 8, n.peer[2], 61)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(ret == -FI_ECONNRESET || ret == -FI_ECONNREFUSED, "%s",
		  fi_strerror((int)-ret));
	CHECK(fi_tsend(n.ep, buf, BIG, NULL, n.peer[2], 61, NULL) == ret);
	node_quiet(&n, CONFIRM_US);
	if (index == 0) {
		to = node_insert(&n, &again.addr);
		while ((ret = fi_tinject(n.ep, buf, 8, to, 60)) == -FI_EAGAIN)
			fi_cq_read(n.cq, NULL, 0);
		FI(ret);
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

/* The same interface number, another process. */
static void again(void)
{
	const char *const env[] = { "MPI_LOCALRANKID=4711", NULL };
	struct hal_addr_host fresh;
	struct proc *p[3];

	p[0] = proc_start(acquaintance, NULL, NULL);
	p[1] = proc_start(acquaintance, NULL, NULL);
	p[2] = proc_start(incarnation, NULL, env);
	procs_join(p, 3);
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	proc_kill(p[2]);
	proc_restart(p[2], incarnation, NULL, env);
	CHECK(procs_recv(p[2]->fd, &fresh, sizeof(fresh), -1) == sizeof(fresh));
	CHECK_MSG(fresh.addr.iface == g_shared->word[7], "interface %u, not "
		  "%u, the one of before", fresh.addr.iface,
		  (unsigned)g_shared->word[7]);
	CHECK(procs_send(p[2]->fd, &fresh, sizeof(fresh)));
	for (int i = 0; i < 2; i++)
		CHECK(procs_send(p[i]->fd, &fresh, sizeof(fresh)));
	procs_send_word(p[2]->fd, 0);
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	proc_expect(p[2], 0);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

PROCS_MAIN(
	PROCS_WITH(sends_polling, 0, sends_to, &(enum how){ POLLING }),
	PROCS_WITH(sends_asleep, 0, sends_to, &(enum how){ ASLEEP }),
	PROCS_WITH(sends_stopped, 0, sends_to, &(enum how){ STOPPED }),
	PROCS_WITH(sends_sleeper, 0, sends_to, &(enum how){ SLEEPER }),
	PROCS_WITH(dead_parent, 0, sends_to, &(enum how){ PARENT }),
	PROCS_WITH(dead_parent_exit, 0, sends_to, &(enum how){ PARENT_EXIT }),
	PROCS_WITH(broken_attach, 0, broken, "FI_UNIMEM_STREAM_US=0"),
	PROCS_WITH(broken_stream, 0, broken, "FI_UNIMEM_ATTACH=0"),
	PROCS_CASE(living, 0),
	PROCS_CASE(stopped, 0),
	PROCS_CASE(graceful, 0),
	PROCS_CASE(again, 0),
)
