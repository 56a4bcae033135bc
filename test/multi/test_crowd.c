/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_crowd.c - many processes, few cores, and everybody sends first: nothing
 * is lost and nothing waits for ever. No figures here: a case that takes longer
 * than its generous limit hangs.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/procs.h"

static const size_t mixed[] = { 0, 8, 96, 200, 40, 4096, 16384, 16385,
				70000 };

/* ---- All to all --------------------------------------------------------- */

static int talker(int fd, void *arg)
{
	struct traffic_opt opt = { .count = *(uint64_t *)arg, .lens = mixed,
				   .nlens = 9, .window = 4 };

	traffic_session(fd, &opt);
	return 0;
}

static void all_to_all(int n, uint64_t count, const char *const *env)
{
	struct proc *p[PROCS_MAX] = { NULL };

	for (int i = 0; i < n; i++)
		p[i] = proc_start(talker, &count, env);
	procs_join(p, n);
	for (int i = 0; i < n; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < n; i++)
		proc_finish(p[i]);
	procs_forget();
}

static void sixteen(void)
{
	all_to_all(16, 60, NULL);
}

static void sixteen_stream(void)
{
	const char *const env[] = { "FI_UNIMEM_ATTACH=0", NULL };

	all_to_all(16, 30, env);
}

/* A process under the fault decorator, among others, receives all messages that
 * they send. */
static void one_has_faults(void)
{
	const char *const env[] = { "FI_UNIMEM_FAULT=delay=20:100,seed=1",
				    NULL };
	uint64_t count = 500;
	struct proc *p[3];

	for (int i = 0; i < 3; i++)
		p[i] = proc_start(talker, &count, i == 1 ? env : NULL);
	procs_join(p, 3);
	for (int i = 0; i < 3; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 3; i++)
		proc_finish(p[i]);
}

/* ---- One core ----------------------------------------------------------- */

#define ROUNDS	10000

static void pin_to_first(void)
{
	cpu_set_t all, one;

	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static int player(int fd, void *arg)
{
	int index = proc_index();
	uint64_t ball = 0;
	struct node n;

	(void)arg;
	pin_to_first();
	node_start(&n, fd, 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (index == 0)
			node_send(&n, 1, &i, sizeof(i), i);
		CHECK(node_recv(&n, &ball, sizeof(ball), i) == 8 && ball == i);
		if (index == 1)
			node_send(&n, 0, &ball, sizeof(ball), i);
	}
	node_close(&n);
	return 0;
}

/* That it goes on, not how fast: bench/goals says what it may take. */
static void one_core(void)
{
	uint64_t since = procs_now();
	struct proc *p[2] = { proc_start(player, NULL, NULL),
			      proc_start(player, NULL, NULL) };

	procs_join(p, 2);
	proc_expect(p[0], 0);
	proc_expect(p[1], 0);
	procs_note("%d round trips on one core, %.1f us each", ROUNDS,
		   (double)(procs_now() - since) / ROUNDS);
}

/* ---- Senders only ------------------------------------------------------- */

#define FLOOD		1000000
#define STUCK_US	200000		/* refused for so long: receive */

struct flood {
	struct node n;
	uint64_t sent, got, posted;
	uint64_t buf[256];
};

static void flood_poll(struct flood *f)
{
	struct fi_cq_tagged_entry e[64];
	ssize_t n = fi_cq_read(f->n.cq, e, 64);

	CHECK_MSG(n > 0 || n == -FI_EAGAIN, "%s", fi_strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		if (!(e[i].flags & FI_RECV))
			continue;
		CHECK_MSG(e[i].tag == f->got && f->buf[f->got % 256] == f->got,
			  "message %llu instead of %llu",
			  (unsigned long long)e[i].tag,
			  (unsigned long long)f->got);
		f->got++;
	}
}

/* Receives for all that may come, as many as there is room. */
static void flood_recv(struct flood *f)
{
	while (f->posted < FLOOD && f->posted - f->got < 256) {
		FI(fi_trecv(f->n.ep, &f->buf[f->posted % 256], 8, NULL,
			    FI_ADDR_UNSPEC, 0, ~UINT64_C(0), NULL));
		f->posted++;
	}
}

/* Sends everything before it receives anything; if there is a bound (arg),
 * until it is refused for long. */
static int send_first(int fd, void *arg)
{
	int index = proc_index();
	struct flood *f = calloc(1, sizeof(*f));
	bool late = true, bound = *(bool *)arg;
	uint64_t since;

	CHECK(f != NULL);
	node_start(&f->n, fd, 0);
	since = procs_now();
	while (f->sent < FLOOD) {
		ssize_t ret = fi_tinject(f->n.ep, &f->sent, 8,
					 f->n.peer[!index], f->sent);

		if (ret == 0) {
			if (++f->sent % 64 == 0)
				since = procs_now();
			continue;
		}
		CHECK_MSG(ret == -FI_EAGAIN, "%s", fi_strerror((int)-ret));
		flood_poll(f);
		if (bound && procs_now() > since + STUCK_US)
			late = false;
		if (!late)
			flood_recv(f);
	}
	CHECK(late || bound);
	while (f->got < FLOOD) {
		flood_recv(f);
		flood_poll(f);
	}
	node_report(&f->n, fd, 0);
	node_close(&f->n);
	free(f);
	return 0;
}

static void senders(const char *max, bool bound)
{
	const char *const env[] = { max, NULL };
	struct proc *p[2] = { proc_start(send_first, &bound, env),
			      proc_start(send_first, &bound, env) };

	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

static void senders_late(void)
{
	senders("FI_UNIMEM_UNEXPECTED_MAX=1G", false);
}

static void senders_bounded(void)
{
	senders("FI_UNIMEM_UNEXPECTED_MAX=4M", true);
}

/* ---- Everybody announces first ------------------------------------------- */

#define NPEERS	6
#define DEPTH	4

static const size_t long_lens[] = { 16385, 65536, 300000, 1000000 };

static size_t long_len(int from, int to, int k)
{
	return long_lens[(from + to + k) % 4];
}

static void paint(uint8_t *buf, size_t len, int from, int to, int k)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + from * 31 + to * 17 + k);
}

static uint8_t *buffer(size_t len)
{
	uint8_t *buf = malloc(len);

	CHECK(buf != NULL);
	return buf;
}

static void check_paint(const uint8_t *buf, size_t len, int from, int to,
			int k)
{
	for (size_t i = 0; i < len; i++)
		CHECK_MSG(buf[i] == (uint8_t)(i * 7 + i / 251 + from * 31 +
					      to * 17 + k),
			  "message %d of %d to %d, byte %zu", k, from, to, i);
}

static int announcer(int fd, void *arg)
{
	int index = proc_index();
	uint8_t *in[NPEERS][DEPTH], *out[NPEERS][DEPTH];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct node n;
	int left = 0;

	(void)arg;
	node_start(&n, fd, 0);
	for (int k = 0; k < DEPTH; k++)
		for (int i = 0; i < NPEERS; i++) {
			size_t len = long_len(index, i, k);
			ssize_t ret;

			if (i == index)
				continue;
			out[i][k] = buffer(len);
			paint(out[i][k], len, index, i, k);
			while ((ret = fi_tsend(n.ep, out[i][k], len, NULL,
					       n.peer[i], k, NULL)) ==
			       -FI_EAGAIN)
				CHECK(node_poll(&n, &entry, &error) == 0);
			FI(ret);
			left++;
		}
	procs_send_word(fd, 0);		/* nobody receives before the last */
	procs_recv_word(fd);
	for (int k = DEPTH - 1; k >= 0; k--)
		for (int i = 0; i < NPEERS; i++) {
			if (i == index)
				continue;
			in[i][k] = buffer(1000000);
			FI(fi_trecv(n.ep, in[i][k], 1000000, NULL, n.peer[i],
				    k, 0, NULL));
			left++;
		}
	while (left > 0) {
		int ret = node_poll(&n, &entry, &error);

		CHECK_MSG(ret >= 0, "%s", fi_strerror(error.err));
		left -= ret;
	}
	for (int k = 0; k < DEPTH; k++)
		for (int i = 0; i < NPEERS; i++)
			if (i != index) {
				check_paint(in[i][k], long_len(i, index, k), i,
					    index, k);
				free(in[i][k]);
				free(out[i][k]);
			}
	node_close(&n);
	return 0;
}

static void announced(void *attach)
{
	const char *const env[] = { attach, NULL };
	struct proc *p[NPEERS];

	for (int i = 0; i < NPEERS; i++)
		p[i] = proc_start(announcer, NULL, env);
	procs_join(p, NPEERS);
	for (int i = 0; i < NPEERS; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < NPEERS; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < NPEERS; i++)
		proc_expect(p[i], 0);
}

/* ---- Numbers that wrap --------------------------------------------------- */

static void wraps(void)
{
	static const char *const starts[] = {
		"FI_UNIMEM_SEQ_START=0xffffffce",		/* 2^32 - 50 */
		"FI_UNIMEM_SEQ_START=0xffffffffffce",		/* 2^48 - 50 */
		"FI_UNIMEM_SEQ_START=0xffffffffff38",		/* - 200 */
		"FI_UNIMEM_SEQ_START=0x7fffffffffffffff",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		const char *env[] = { starts[i], "FI_UNIMEM_ATTACH=1", NULL };

		all_to_all(3, 500, env);
		env[1] = "FI_UNIMEM_ATTACH=0";
		all_to_all(3, 200, env);
	}
}

PROCS_MAIN(
	PROCS_CASE(sixteen, 100),
	PROCS_CASE(sixteen_stream, 100),
	PROCS_CASE(one_has_faults, 100),
	PROCS_CASE(one_core, 0),
	PROCS_CASE(senders_late, 0),
	PROCS_CASE(senders_bounded, 0),
	PROCS_WITH(announced_attach, 0, announced, "FI_UNIMEM_ATTACH=1"),
	PROCS_WITH(announced_stream, 0, announced, "FI_UNIMEM_ATTACH=0"),
	PROCS_CASE(wraps, 100),
)
