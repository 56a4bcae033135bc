/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_threads.c - both peers as threads of one process, for ThreadSanitizer:
 * the memory that processes share. Two domains with a thread each
 * (FI_THREAD_DOMAIN, no lock anywhere), and one domain with four threads that
 * send, receive, cancel and read (FI_THREAD_SAFE).
 */
#include "lib/ep_xfer.h"
#include "unm_env.h"

#define ROUNDS	(UNIT_SLOW ? 3000 : 20000)
#define HANG_US	(UINT64_C(100000000) * (UNIT_SLOW ? 5 : 1))

/* Threads do not assert: they note the line of the first failed check. */
#define CHECK(t, cond)	do {						\
		int fine = 0;						\
		if (!(cond))						\
			atomic_compare_exchange_strong(&(t)->line,	\
						       &fine, __LINE__); \
	} while (0)

static size_t size_of(uint32_t i)
{
	static const size_t sizes[] = {
		8, 0, 40, 56, 57, 300, 8, 4000, 8, 16385, 1, 8, 70000, 8,
		48, 9000,
	};

	return sizes[i % 16];
}
#define SIZE_MOST	70000

/* ---- A thread for each endpoint -------------------------------------- */

struct talker {
	struct ep *e;
	fi_addr_t to;
	pthread_t thread;
	uint32_t rounds;
	uint64_t out_seed, in_seed;
	enum { STREAM, PINGPONG } how;
	bool serve;			/* PINGPONG: this side answers */
	_Atomic int line;
};

struct window {
	char *buf[16];
	uint32_t posted, got;		/* of receives */
	uint32_t sent, done;		/* of sends */
	char *out[16];
};

static void window_open(struct window *w)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < 16; i++) {
		w->buf[i] = malloc(SIZE_MOST);
		w->out[i] = malloc(SIZE_MOST);
	}
}

static void window_close(struct window *w)
{
	for (int i = 0; i < 16; i++) {
		free(w->buf[i]);
		free(w->out[i]);
	}
}

/* Reads the queue: receives complete in order, each with the right bytes. */
static void window_poll(struct talker *t, struct window *w)
{
	struct fi_cq_tagged_entry c[8];
	ssize_t n = fi_cq_read(t->e->cq, c, 8);

	CHECK(t, n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		if (c[i].flags & FI_SEND) {
			w->done++;
			continue;
		}
		CHECK(t, c[i].len == size_of(c[i].tag));
		CHECK(t, xfer_filled(c[i].op_context, c[i].len,
				     t->in_seed + c[i].tag, 0));
		w->got++;
	}
}

/* At most 16 posted receives, and 16 sends under way. */
static void window_move(struct talker *t, struct window *w)
{
	if (w->posted < t->rounds && w->posted < w->got + 16) {
		/* a long message may be late: its buffer is still in use */
		uint32_t i = w->posted;

		if (i % 16 != 0 || w->got == i)
			if (fi_trecv(t->e->ep, w->buf[i % 16], SIZE_MOST,
				     NULL, t->to, i, 0, w->buf[i % 16]) == 0)
				w->posted++;
	}
	if (w->sent < t->rounds && (w->sent % 16 != 0 || w->done == w->sent)) {
		char *out = w->out[w->sent % 16];

		xfer_fill(out, size_of(w->sent), t->out_seed + w->sent, 0);
		if (fi_tsend(t->e->ep, out, size_of(w->sent), NULL, t->to,
			     w->sent, out) == 0)
			w->sent++;
	}
}

static void stream(struct talker *t)
{
	uint64_t end = ep_now() + HANG_US;
	struct window w;

	window_open(&w);
	while ((w.got < t->rounds || w.done < t->rounds) && t->line == 0) {
		window_move(t, &w);
		window_poll(t, &w);
		if ((w.got + w.sent) % 64 == 0)
			CHECK(t, ep_now() < end);
	}
	window_close(&w);
}

static int one_entry(struct talker *t)
{
	uint64_t end = ep_now() + HANG_US;
	struct fi_cq_tagged_entry c;
	ssize_t n;

	while ((n = fi_cq_read(t->e->cq, &c, 1)) == -FI_EAGAIN)
		if (ep_now() > end)
			break;
	CHECK(t, n == 1);
	return n == 1 && (c.flags & FI_RECV);
}

static void pingpong_send(struct talker *t, const char *buf, size_t len)
{
	uint64_t end = ep_now() + HANG_US;

	while (fi_send(t->e->ep, buf, len, NULL, t->to, NULL) != 0 &&
	       ep_now() < end)
		fi_cq_read(t->e->cq, NULL, 0);
}

/* Each side sends back what it has received: lost or stale bytes are seen. */
static void pingpong(struct talker *t)
{
	char *buf = malloc(SIZE_MOST), *in = malloc(SIZE_MOST);

	for (uint32_t i = 0; i < t->rounds / 4 && t->line == 0; i++) {
		size_t len = size_of(i);
		int entries = 0;

		CHECK(t, fi_recv(t->e->ep, in, SIZE_MOST, NULL, t->to, NULL)
			 == 0);
		if (!t->serve) {
			xfer_fill(buf, len, i, 0);
			pingpong_send(t, buf, len);
		} else {
			while (!one_entry(t) && t->line == 0)
				entries++;
			CHECK(t, xfer_filled(in, len, i, 0));
			pingpong_send(t, in, len);
			entries++;
		}
		/* both entries of this round, in either order */
		for (; entries < 2 && t->line == 0; entries++)
			one_entry(t);
		if (!t->serve)
			CHECK(t, xfer_filled(in, len, i, 0));
	}
	free(buf);
	free(in);
}

static void *talker_main(void *arg)
{
	struct talker *t = arg;

	if (t->how == STREAM)
		stream(t);
	else
		pingpong(t);
	return NULL;
}

static void two_talk(int how, const struct ep_want *want)
{
	struct ep_pair p = ep_pair(want);
	struct talker t[2] = {
		{ .e = p.a, .to = p.ab, .out_seed = 1000000, .how = how,
		  .rounds = ROUNDS },
		{ .e = p.b, .to = p.ba, .in_seed = 1000000, .how = how,
		  .rounds = ROUNDS, .serve = true },
	};

	for (int i = 0; i < 2; i++)
		t[i].thread = unit_thread(talker_main, &t[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i].thread, NULL);
	for (int i = 0; i < 2; i++)
		if (t[i].line != 0)
			unit_fail("thread %d failed in line %d", i,
				  t[i].line);
	ep_pair_close(&p);
}

static void test_stream_between_two_threads(void **state)
{
	two_talk(STREAM, NULL);
}

static void test_pingpong_between_two_threads(void **state)
{
	two_talk(PINGPONG, NULL);
}

static void test_pieces_between_two_threads(void **state)
{
	bool was = g_unm_env.attach;

	g_unm_env.attach = false;
	two_talk(STREAM, NULL);
	two_talk(PINGPONG, NULL);
	g_unm_env.attach = was;
}

static void test_locked_domains_of_two_threads(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };

	two_talk(STREAM, &want);
}

/* ---- Endpoints come and go ------------------------------------------- */

/* Endpoints are opened, connect, send and close in one thread, while another
 * thread uses its own. */
#define UNHEARD_MAX	32

struct guest {
	char name[64];
	size_t len;
	pthread_t thread;
	int count;
	_Atomic int visits, seen;
	_Atomic int line;
};

static struct fid_ep *guest_ep(struct guest *g, struct fid_domain *domain,
			       struct fi_info *info, struct fid_av **av,
			       struct fid_cq **cq)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_ep *ep = NULL;

	CHECK(g, fi_av_open(domain, &av_attr, av, NULL) == 0);
	CHECK(g, fi_cq_open(domain, &cq_attr, cq, NULL) == 0);
	CHECK(g, fi_endpoint(domain, info, &ep, NULL) == 0);
	CHECK(g, fi_ep_bind(ep, &(*av)->fid, 0) == 0);
	CHECK(g, fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV) == 0);
	CHECK(g, fi_enable(ep) == 0);
	return ep;
}

static void guest_visit(struct guest *g, struct fid_domain *domain,
			struct fi_info *info, uint64_t i)
{
	uint64_t end = ep_now() + HANG_US;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to;

	/* profile exanode: an interface number is not free before the end of
	 * its last holder was noticed, and there are 63 */
	while (g->seen + UNHEARD_MAX <= (int)i && ep_now() < end)
		sched_yield();
	ep = guest_ep(g, domain, info, &av, &cq);
	CHECK(g, fi_av_insert(av, g->name, 1, &to, 0, NULL) == 1);
	while (fi_tinjectdata(ep, &i, 8, i, to, 1) != 0 && ep_now() < end)
		fi_cq_read(cq, NULL, 0);
	CHECK(g, fi_close(&ep->fid) == 0);
	CHECK(g, fi_close(&cq->fid) == 0);
	CHECK(g, fi_close(&av->fid) == 0);
}

static void *guest_main(void *arg)
{
	static const struct ep_want none;
	struct guest *g = arg;
	struct fi_info *hints = ep_hints(&none), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	CHECK(g, ep_getinfo(hints, &info) == 0);
	CHECK(g, ep_fabric(info, &fabric) == 0);
	CHECK(g, fi_domain(fabric, info, &domain, NULL) == 0);
	for (int i = 0; i < g->count && g->line == 0; i++) {
		guest_visit(g, domain, info, i);
		g->visits++;
	}
	CHECK(g, fi_close(&domain->fid) == 0);
	CHECK(g, fi_close(&fabric->fid) == 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return NULL;
}

/* Receives one message. (No assertion as long as the other thread runs.) */
static void host_receives(struct guest *g, struct ep *host, bool *seen)
{
	uint64_t end = ep_deadline();
	static uint64_t in;
	struct ep_comp c;

	CHECK(g, fi_trecv(host->ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &in)
		 == 0);
	while (g->line == 0 && !ep_take(host, &in, &c)) {
		ep_step();
		CHECK(g, ep_now() < end);
	}
	if (g->line != 0)
		return;
	/* in any order, but each sender's once */
	CHECK(g, c.err == 0 && in < (uint64_t)g->count && c.data == in);
	CHECK(g, c.err != 0 || !seen[in % (uint64_t)g->count]);
	seen[in % (uint64_t)g->count] = true;
	g->seen++;
}

static void test_endpoints_come_and_go_in_another_thread(void **state)
{
	struct ep *host = ep_open(NULL);
	struct guest g = { .count = UNIT_SLOW ? 40 : 200, .len = 64 };
	bool seen[200] = { false };

	assert_int_equal(fi_getname(&host->ep->fid, g.name, &g.len), 0);
	g.thread = unit_thread(guest_main, &g);
	while (g.seen < g.count && g.line == 0)
		host_receives(&g, host, seen);
	pthread_join(g.thread, NULL);
	if (g.line != 0)
		unit_fail("%d came, %d visits, failed in line %d", g.seen,
			  g.visits, g.line);
}

/* ---- Four threads in one domain -------------------------------------- */

struct crew {
	struct ep *a, *b;		/* in one domain */
	fi_addr_t ab, ba;
	uint32_t total;
	_Atomic uint32_t sent, posted, canceled, received, tx_done;
	_Atomic bool stop;
	struct fi_context2 *ctx;	/* of receives; [0] set: complete */
	_Atomic uint8_t *ended;
	uint32_t in;
	_Atomic int line;
};

static void *crew_send(void *arg)
{
	struct crew *c = arg;
	uint64_t end = ep_now() + HANG_US;
	static char big[20000];

	for (uint32_t i = 0; i < c->total && ep_now() < end; ) {
		ssize_t ret;

		if (i % 50 == 0)
			ret = fi_send(c->a->ep, big, sizeof(big), NULL, c->ab,
				      NULL);
		else
			ret = fi_send(c->a->ep, big, i % 300, NULL, c->ab,
				      NULL);
		if (ret == 0) {
			i++;
			atomic_fetch_add(&c->sent, 1);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void *crew_recv(void *arg)
{
	struct crew *c = arg;
	uint64_t end = ep_now() + HANG_US, rng = 3;
	static char in[20000];
	uint32_t limit = 2 * c->total;

	for (uint32_t i = 0; i < limit && !atomic_load(&c->stop) &&
	     ep_now() < end; ) {
		fi_addr_t src = unit_below(&rng, 2) ? c->ba : FI_ADDR_UNSPEC;

		if (i > atomic_load(&c->received) +
		    atomic_load(&c->canceled) + 500) {
			sched_yield();
			continue;
		}
		if (fi_recv(c->b->ep, in, sizeof(in), NULL, src, &c->ctx[i])
		    != 0)
			continue;
		i++;
		atomic_store(&c->posted, i);
	}
	return NULL;
}

/*
 * Cancels random receives among those posted last, and counts successes. At
 * most as many as there are messages, as crew_recv posts twice that number.
 */
static void *crew_cancel(void *arg)
{
	struct crew *c = arg;
	uint32_t taken = 0;
	uint64_t rng = 9;

	while (!atomic_load(&c->stop) && taken < c->total) {
		uint32_t posted = atomic_load(&c->posted);
		uint32_t i;
		ssize_t ret;

		sched_yield();		/* lets the other threads run as well */
		if (posted < 10)
			continue;
		i = posted - 1 - unit_below(&rng, posted < 600 ? posted : 600);
		ret = fi_cancel(&c->b->ep->fid, &c->ctx[i]);
		if (ret == 0) {
			/* whether complete or not: exactly one entry follows */
			atomic_fetch_add(&c->ended[i], 16);
			taken++;
		} else {
			CHECK(c, ret == -FI_ENOENT);
		}
	}
	return NULL;
}

/* An entry of either endpoint; every receive must complete exactly once. */
static void crew_entry(struct crew *c, struct fi_context2 *ctx, int err)
{
	uint32_t i = (uint32_t)(ctx - c->ctx);

	CHECK(c, i < 2 * c->total);
	CHECK(c, (atomic_fetch_add(&c->ended[i], 1) & 15) == 0);
	if (err == 0) {
		atomic_fetch_add(&c->received, 1);
	} else {
		CHECK(c, err == FI_ECANCELED);
		atomic_fetch_add(&c->canceled, 1);
	}
}

static void crew_read_cq(struct crew *c, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t n = fi_cq_read(cq, e, 4);

	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		if (fi_cq_readerr(cq, &err, 0) == 1)
			crew_entry(c, err.op_context, err.err);
		return;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (e[i].flags & FI_SEND)
			atomic_fetch_add(&c->tx_done, 1);
		else
			crew_entry(c, e[i].op_context, 0);
	}
}

static void *crew_read(void *arg)
{
	struct crew *c = arg;
	uint64_t end = ep_now() + HANG_US;

	while ((atomic_load(&c->received) < c->total ||
		atomic_load(&c->tx_done) < c->total) && ep_now() < end) {
		crew_read_cq(c, c->a->cq);
		crew_read_cq(c, c->b->cq);
	}
	atomic_store(&c->stop, true);
	return NULL;
}

static void test_four_threads_in_one_domain(void **state)
{
	void *(*const work[])(void *) = {
		crew_send, crew_recv, crew_cancel, crew_read,
	};
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct crew c = { .total = UNIT_SLOW ? 1000 : 5000 };
	uint32_t answered = 0, canceled = 0, wrong = 0;
	pthread_t thread[4];

	c.a = ep_open(&want);
	want.with = c.a;
	c.b = ep_open(&want);
	c.ba = ep_insert(c.a, c.a);
	c.ab = ep_insert(c.a, c.b);
	c.ctx = calloc(2 * c.total, sizeof(*c.ctx));
	c.ended = calloc(2 * c.total, sizeof(*c.ended));
	for (int i = 0; i < 4; i++)
		thread[i] = unit_thread(work[i], &c);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	/* the last cancellations may still be in the queue */
	for (int i = 0; i < 1000; i++)
		crew_read_cq(&c, c.b->cq);
	for (uint32_t i = 0; i < 2 * c.total; i++) {
		uint32_t cancels = c.ended[i] >> 4, ends = c.ended[i] & 15;

		canceled += cancels;
		answered += ends;
		/* fi_cancel() returned 0, so there must be an entry */
		wrong += cancels > 1 || (cancels == 1 && ends != 1);
	}
	free(c.ctx);
	free((void *)c.ended);
	if (c.line != 0)
		unit_fail("a thread failed in line %d", c.line);
	assert_int_equal(c.sent, c.total);
	assert_int_equal(c.received, c.total);
	assert_int_equal(wrong, 0);
	assert_int_equal(canceled, c.canceled);
	assert_int_equal(answered, c.received + c.canceled);
}

/* ---- All other calls of threads -------------------------------------- */

struct mess {
	struct ep *a;
	fi_addr_t self;
	_Atomic bool stop;
	_Atomic int line;
};

static void *mess_counters(void *arg)
{
	struct mess *m = arg;

	while (!atomic_load(&m->stop)) {
		fi_cntr_read(m->a->txcntr);
		fi_cntr_readerr(m->a->rxcntr);
		fi_cntr_add(m->a->rxcntr, 1);
		fi_cntr_wait(m->a->txcntr, UINT64_MAX, 1);
	}
	return NULL;
}

static void *mess_addresses(void *arg)
{
	struct mess *m = arg;
	char name[64];
	size_t len = sizeof(name);

	fi_getname(&m->a->ep->fid, name, &len);
	for (int i = 0; !atomic_load(&m->stop) && i < 5000; i++) {
		fi_addr_t addr;
		size_t n = sizeof(name);

		CHECK(m, fi_av_insert(m->a->av, name, 1, &addr, 0, NULL)
			 == 1);
		CHECK(m, fi_av_lookup(m->a->av, addr, name, &n) == 0);
		CHECK(m, fi_av_remove(m->a->av, &addr, 1, 0) == 0);
	}
	return NULL;
}

static void *mess_options(void *arg)
{
	struct mess *m = arg;
	size_t min = 64, n = sizeof(min);

	while (!atomic_load(&m->stop)) {
		min ^= 32;
		fi_setopt(&m->a->ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &min, sizeof(min));
		fi_getopt(&m->a->ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &min, &n);
		sched_yield();
	}
	return NULL;
}

/* Two threads read this queue: the error that fi_cq_read() reports to one of
 * them may be read by the other. */
static void mess_read(struct mess *m, int timeout)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry c;
	ssize_t n = timeout ? fi_cq_sread(m->a->cq, &c, 1, NULL, timeout)
			    : fi_cq_read(m->a->cq, &c, 1);

	CHECK(m, n == 1 || n == -FI_EAGAIN || n == -FI_EAVAIL);
	if (n != -FI_EAVAIL)
		return;
	n = fi_cq_readerr(m->a->cq, &err, 0);
	CHECK(m, n == -FI_EAGAIN || (n == 1 && err.err == FI_ENOMSG));
}

static void *mess_sleep(void *arg)
{
	struct mess *m = arg;

	while (!atomic_load(&m->stop))
		mess_read(m, 5);
	return NULL;
}

static void *mess_peek(void *arg)
{
	struct mess *m = arg;
	uint32_t i = 0;
	char out = 1;

	while (!atomic_load(&m->stop)) {
		static char buf[4096];
		struct iovec iov = { buf, sizeof(buf) };
		struct fi_msg multi = {
			.msg_iov = &iov, .iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
		};
		struct fi_msg_tagged msg = {
			.addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX,
		};

		fi_inject(m->a->ep, &out, 1, m->self);
		if (i++ % 1000 == 0)
			fi_recvmsg(m->a->ep, &multi, FI_MULTI_RECV);
		fi_tinject(m->a->ep, &out, 1, m->self, 1);
		fi_trecvmsg(m->a->ep, &msg, FI_PEEK | FI_DISCARD |
			    FI_COMPLETION);
		fi_cq_signal(m->a->cq);
	}
	return NULL;
}

static void test_all_other_calls_by_five_threads(void **state)
{
	void *(*const work[])(void *) = {
		mess_counters, mess_addresses, mess_options, mess_sleep,
		mess_peek,
	};
	struct ep_want want = { .threading = FI_THREAD_SAFE, .cntrs = true,
				.wait = FI_WAIT_FD };
	struct mess m = { .a = ep_open(&want) };
	uint64_t end = ep_now() + (UNIT_SLOW ? 1000000 : 300000);
	pthread_t thread[5];

	m.self = ep_insert(m.a, m.a);
	for (int i = 0; i < 5; i++)
		thread[i] = unit_thread(work[i], &m);
	while (ep_now() < end)
		mess_read(&m, 0);
	atomic_store(&m.stop, true);
	for (int i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(m.line, 0);
}

/* ---- Closing --------------------------------------------------------- */

struct closer {
	struct fid_ep *ep;
	pthread_t thread;
	_Atomic int done, ret;
};

static void *closer_main(void *arg)
{
	struct closer *c = arg;

	c->ret = fi_close(&c->ep->fid);
	c->done = 1;
	return NULL;
}

static uint64_t getopt_us(struct fid_ep *ep)
{
	uint64_t start = ep_now();
	size_t val, len = sizeof(val);

	assert_int_equal(fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &val, &len), 0);
	return ep_now() - start;
}

/* An endpoint that is closed must notify its peer that a message was received,
 * but can not do so yet. Other endpoints of the domain are not delayed. */
static void test_closing_holds_up_nobody(void **state)
{
	const struct ep_want safe = { .threading = FI_THREAD_SAFE };
	struct ep *a = ep_open(NULL), *b = ep_open(&safe);
	const struct ep_want guest = { .threading = FI_THREAD_SAFE,
		.with = b };
	struct ep *other = ep_open(&guest);
	fi_addr_t ab = ep_insert(a, b), ba = ep_insert(b, a);
	char *big = ep_alloc(SIZE_MOST);
	struct closer c = { .ep = b->ep };
	uint64_t end, most = 0, us;

	EP_OK(fi_inject(b->ep, big, 1, ba));
	while (fi_inject(b->ep, big, 1, ba) == 0)
		;			/* until the peer's ring is full */
	EP_OK(fi_recv(b->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, &c));
	while (fi_send(a->ep, big, SIZE_MOST, NULL, ab, big) != 0)
		ep_poll(b);
	for (struct ep_comp got; !ep_take(b, &c, &got); )
		ep_poll(b);
	b->ep = NULL;
	c.thread = unit_thread(closer_main, &c);
	for (end = ep_now() + 300000; ep_now() < end; usleep(100)) {
		us = getopt_us(other->ep);
		most = us > most ? us : most;
		assert_false(c.done);
	}
	assert_in_range(most, 0, 250000);
	ep_sent(a, big);
	pthread_join(c.thread, NULL);
	assert_int_equal(c.ret, 0);
}

EP_THREADS_MAIN(
	EP_TEST(test_stream_between_two_threads),
	EP_TEST(test_pingpong_between_two_threads),
	EP_TEST_INSIDE(test_pieces_between_two_threads),
	EP_TEST(test_locked_domains_of_two_threads),
	EP_TEST(test_endpoints_come_and_go_in_another_thread),
	EP_TEST(test_four_threads_in_one_domain),
	EP_TEST(test_all_other_calls_by_five_threads),
	EP_TEST(test_closing_holds_up_nobody),
)
