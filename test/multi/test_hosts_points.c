/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_points.c - a process is killed, or its whole host vanishes, at
 * each fault point (hal_fault_point.h) that a process with peers on another
 * host passes (lib/hosts.h).
 *
 * Four processes, two on each host, exchange messages, or access each other's
 * memory. One of them is the victim. It is killed at its fault point, or it
 * stops there: then its host is cut off in silence, and both processes of that
 * host are killed, so that no RST and no FIN comes. The survivors complete or
 * fail every operation in a bounded time, get no part of a message, read what
 * they wrote, go on with each other, and keep no socket of a connection to the
 * dead.
 *
 * The table "points" names how each fault point is reached, or why it is not
 * tested here. A job whose victim does not reach its point fails.
 *
 * UNM_TEST_EACH: every so-many-th job runs (1: all jobs).
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "hal/hal_fault_point.h"
#include "lib/hosts.h"

#ifdef HAL_FAULT_POINTS
/* Those with an even index are on host 0, and survive. */
#define NPROCS	4
#define VICTIM	1
#define BESIDE	3			/* process on the victim's host */
#define HOST_0	UINT64_C(5)
#define HOST_1	UINT64_C(10)

/* Operations of each process; of a survivor that accesses memory, those on the
 * victim's. */
#define DONE(i)	g_shared->word[i]
#define ENOUGH	800			/* for the victim to pass its point */
#define CLOSES	40			/* of the victim, before it closes */

/* ---- Jobs ---------------------------------------------------------------- */

enum role { SENDER, RECEIVER, ROLES };	/* of the victim */

enum way { SHORT, STREAM, DMA, IDLE, ACCESS, REQUEST, WAYS };

static const struct {
	const char *name;
	const char *env, *value;	/* of all processes */
	size_t lens[4];			/* of messages; 0: one-sided access */
	int window;
} ways[WAYS] = {
	[SHORT] = { "short", "FI_UNIMEM_STATS", "0",
		    { 8, 200, 4096, 16384 }, 8 },
	[STREAM] = { "stream", "FI_UNIMEM_STATS", "0",
		     { 17000, 300000, 40, 70000 }, 4 },
	[DMA] = { "dma", "FI_UNIMEM_BOUNCE", "4M",
		  { 17000, 300000, 40, 70000 }, 4 },
	[IDLE] = { "idle", "FI_UNIMEM_NET_PEERS", "1", { 8, 0, 40, 8 }, 1 },
	[ACCESS] = { "access", "FI_UNIMEM_STATS", "0", { 0 }, 0 },
	[REQUEST] = { "request", "FI_UNIMEM_DIRECT", "0", { 0 }, 0 },
};

struct job {
	enum hal_fault_point point;
	int pass;
	enum way way;
	enum role role;
	bool host;			/* the host vanishes */
	bool early;			/* before all are connected */
};

static struct job g_job;		/* children have a copy */

/* The peers that may die. */
static uint64_t mortal(void)
{
	return g_job.host ? HOST_1 : UINT64_C(1) << VICTIM;
}

/* The peers with which a process exchanges data. The victim and the process
 * beside it have none on their own host, so that the victim passes its points
 * for peers on the other host only. */
static uint64_t partners(int self)
{
	uint64_t all = self % 2 != 0 ? HOST_0 : HOST_0 | HOST_1;

	return all & ~(UINT64_C(1) << self);
}

/* The partners to which a process sends, or whose memory it accesses. */
static uint64_t targets(int self)
{
	if (self == VICTIM && g_job.role == RECEIVER)
		return 0;
	return g_job.role == SENDER ? partners(self) &
		~(UINT64_C(1) << VICTIM) : partners(self);
}

/* Does the process close its endpoint now? */
static bool closes(int self)
{
	return self == VICTIM && g_job.point == HAL_FAULT_POINT_CLOSING &&
		DONE(self) >= CLOSES;
}

static bool told_to_stop(int fd)
{
	uint64_t word;

	return procs_recv(fd, &word, sizeof(word), 0) > 0;
}

/* The ends that a process dies of, as operations report them. */
static bool is_end(ssize_t err)
{
	return err == FI_ECONNRESET || err == FI_ECONNREFUSED;
}

/* Send to those that may be dead. Returns those whose end was reported. */
static uint64_t probe(struct node *n, uint64_t noticed)
{
	uint8_t buf[8] = { 0 };
	ssize_t ret;

	for (int i = 0; i < NPROCS; i++) {
		if (!(mortal() & ~noticed & UINT64_C(1) << i))
			continue;
		ret = n->peer[i] == FI_ADDR_NOTAVAIL ? -FI_ECONNRESET :
			fi_tinject(n->ep, buf, 8, n->peer[i], 1);
		if (ret == 0 || ret == -FI_EAGAIN)
			continue;
		CHECK_MSG(is_end(-ret), "%s", fi_strerror((int)-ret));
		noticed |= UINT64_C(1) << i;
	}
	return noticed;
}

/* ---- Messages ------------------------------------------------------------ */

static uint64_t messages(struct node *n, int fd)
{
	int self = proc_index();
	uint64_t to = targets(self);
	struct traffic_opt opt = {
		.endless = true, .mortal = mortal(), .sleeps = self / 2,
		.to = to != 0 ? to : TRAFFIC_NONE, .from = partners(self),
		.lens = ways[g_job.way].lens, .nlens = 4,
		.window = ways[g_job.way].window,
	};
	uint64_t noticed = 0;
	bool ending = false;
	struct traffic *t;

	if (self == VICTIM && g_job.role == SENDER)
		opt.from = TRAFFIC_NONE;
	if (self != VICTIM && g_job.role == RECEIVER)
		opt.from &= ~(UINT64_C(1) << VICTIM);
	t = traffic_new(n, &opt);
	while (!closes(self) && traffic_step(t)) {
		DONE(self) = traffic_received(t) + traffic_sent(t);
		if (!ending && told_to_stop(fd)) {
			traffic_stop(t);
			ending = true;
		}
		if (ending)
			noticed = probe(n, noticed);
	}
	if (!closes(self))
		traffic_free(t);
	return noticed;
}

/* ---- One-sided operations ------------------------------------------------ */

enum kind { PUT, GET, ADD, FETCH_ADD, KINDS };

#define KEY	3
#define SLOTS	3			/* operations at a time, for a target */
#define AREA	((size_t)304 << 10)	/* of a slot in the target's memory */
#define PART	(4096 + SLOTS * AREA)	/* of an initiator: a sum, and areas */

/* A put, the get that has to read its bytes, and two additions, in turn. */
struct slot {
	int to;
	bool busy;
	uint64_t turn, one, was;
	size_t len;
	uint8_t *buf;
	struct fi_context2 context;
};

struct access {
	struct node *n;
	uint64_t gone;			/* peers whose end was reported */
	uint64_t begun[NPROCS], added[NPROCS];	/* additions at a target */
	struct slot slot[NPROCS * SLOTS];
};

static uint8_t byte_of(const struct slot *s, size_t i)
{
	return (uint8_t)(s->turn / KINDS * 31 + (uint64_t)s->to * 7 + i);
}

static ssize_t call(struct access *a, struct slot *s)
{
	static const size_t lens[] = { 8, 300000, 1000, 20000 };
	uint64_t sum = (uint64_t)a->n->self * PART;
	uint64_t at = sum + 4096 + (uint64_t)(s - a->slot) % SLOTS * AREA;
	fi_addr_t to = a->n->peer[s->to];
	struct fid_ep *ep = a->n->ep;

	switch (s->turn % KINDS) {
	case PUT:
		s->len = lens[s->turn / KINDS % 4];
		for (size_t i = 0; i < s->len; i++)
			s->buf[i] = byte_of(s, i);
		return fi_write(ep, s->buf, s->len, NULL, to, at, KEY,
				&s->context);
	case GET:
		memset(s->buf, 0, s->len);
		return fi_read(ep, s->buf, s->len, NULL, to, at, KEY,
			       &s->context);
	case ADD:
		return fi_atomic(ep, &s->one, 1, NULL, to, sum, KEY, FI_UINT64,
				 FI_SUM, &s->context);
	default:
		return fi_fetch_atomic(ep, &s->one, 1, NULL, &s->was, NULL, to,
				       sum, KEY, FI_UINT64, FI_SUM,
				       &s->context);
	}
}

/* An operation failed: only because a peer that may die has ended. */
static void slot_failed(struct access *a, const struct slot *s, int err)
{
	CHECK_MSG((mortal() >> s->to & 1) && is_end(err),
		  "an operation on %d: %s", s->to, fi_strerror(err));
	a->gone |= UINT64_C(1) << s->to;
}

static void slot_begin(struct access *a, struct slot *s)
{
	ssize_t ret = call(a, s);

	s->busy = ret == 0;
	if (s->busy && s->turn % KINDS >= ADD)
		a->begun[s->to]++;
	else if (ret != 0 && ret != -FI_EAGAIN)
		slot_failed(a, s, (int)-ret);
}

static void slot_ended(struct access *a, struct slot *s)
{
	for (size_t i = 0; s->turn % KINDS == GET && i < s->len; i++)
		CHECK_MSG(s->buf[i] == byte_of(s, i), "byte %zu of %zu is not "
			  "what was put", i, s->len);
	if (s->turn % KINDS >= ADD)
		a->added[s->to]++;
	if (s->turn % KINDS == FETCH_ADD)
		CHECK(s->was < a->begun[s->to]);
	s->turn++;
	DONE(a->n->self) += a->n->self == VICTIM || s->to == VICTIM;
}

static void access_poll(struct access *a)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret = node_poll(a->n, &entry, &error);
	void *context = ret > 0 ? entry.op_context : error.op_context;
	struct slot *s;

	if (ret == 0)
		return;
	s = (struct slot *)((char *)context - offsetof(struct slot, context));
	CHECK_MSG(s->busy, "an operation completed twice");
	s->busy = false;
	if (ret > 0)
		slot_ended(a, s);
	else
		slot_failed(a, s, error.err);
}

/* Begin what can be begun, unless it is time to end. False: nothing is under
 * way. */
static bool access_step(struct access *a, bool ending)
{
	uint64_t to = targets(a->n->self) & ~a->gone;
	bool busy = !ending;

	for (int i = 0; i < NPROCS * SLOTS; i++) {
		struct slot *s = &a->slot[i];

		if (!s->busy && !ending && (to >> s->to & 1) &&
		    a->n->peer[s->to] != FI_ADDR_NOTAVAIL)
			slot_begin(a, s);
		busy = busy || s->busy;
	}
	access_poll(a);
	return busy;
}

/* The living have executed each addition once. */
static void access_check(struct access *a)
{
	uint64_t living = targets(a->n->self) & ~mortal();

	for (int i = 0; i < NPROCS; i++) {
		struct slot *s = &a->slot[i * SLOTS];

		if (!(living >> i & 1))
			continue;
		s->turn = FETCH_ADD;
		while (!s->busy)
			slot_begin(a, s);
		while (s->busy)
			access_poll(a);
		CHECK_MSG(s->was + 1 == a->added[i], "%" PRIu64 " added to %d, "
			  "%" PRIu64 " there", a->added[i] - 1, i, s->was);
	}
}

static uint64_t accesses(struct node *n, int fd)
{
	struct access *a = calloc(1, sizeof(*a));
	uint64_t noticed = 0;
	bool ending = false;

	CHECK(a != NULL);
	a->n = n;
	for (int i = 0; i < NPROCS * SLOTS; i++) {
		a->slot[i].to = i / SLOTS;
		a->slot[i].one = 1;
		a->slot[i].buf = malloc(AREA);
		CHECK(a->slot[i].buf != NULL);
	}
	while (!closes(n->self) && access_step(a, ending)) {
		ending = ending || told_to_stop(fd);
		if (ending)
			noticed = probe(n, noticed);
	}
	if (closes(n->self))
		return 0;
	access_check(a);
	for (int i = 0; i < NPROCS * SLOTS; i++)
		free(a->slot[i].buf);
	free(a);
	return noticed;
}

/* ---- Processes ----------------------------------------------------------- */

/* Have the victim killed, or stopped, at its fault point. */
static void arm(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%s:%d:%s",
		 hal_fault_point_name(g_job.point), g_job.pass,
		 g_job.host ? "stop" : "kill");
	setenv("FI_UNIMEM_POINT", text, 1);
}

/* Exchange a few messages with each peer, so that all are connected. */
static void all_connect(struct node *n, int fd)
{
	struct traffic_opt opt = {
		.count = 4, .lens = ways[IDLE].lens, .nlens = 4,
	};
	struct traffic *t = traffic_new(n, &opt);

	while (traffic_step(t))
		;
	traffic_free(t);
	node_report(n, fd, 0);
}

static int one_of_four(int fd, int host)
{
	int self = proc_index(), before, links;
	uint64_t noticed;
	struct fid_mr *mr = NULL;
	struct node n;
	void *mem;

	setenv(ways[g_job.way].env, ways[g_job.way].value, 1);
	if (self == VICTIM)
		arm();
	node_open(&n, NODE_ONESIDED | (self / 2 ? NODE_WAIT : 0));
	before = hosts_sockets();
	if (ways[g_job.way].window == 0) {
		mem = node_alloc(&n, NPROCS * PART);
		memset(mem, 0, NPROCS * PART);
		mr = node_reg(&n, mem, NPROCS * PART, KEY);
	}
	node_join(&n, fd);
	if (!g_job.early)
		all_connect(&n, fd);
	noticed = ways[g_job.way].window != 0 ? messages(&n, fd) :
		accesses(&n, fd);
	if (self == VICTIM) {		/* its point is in the close */
		fi_close(&n.ep->fid);
		return 0;
	}
	while ((noticed = probe(&n, noticed)) != mortal())
		fi_cq_read(n.cq, NULL, 0);
	node_report(&n, fd, 0);
	/* Links to the living of the other host stay. UCX 1.13 may keep the
	 * socket of a link that it was making to a host that has vanished. */
	links = host == 1 ? 2 : g_job.host ? 0 : 1;
	while (!(g_job.host && g_job.early) &&
	       hosts_sockets() > before + 1 + 3 * links)
		fi_cq_read(n.cq, NULL, 0);
	node_report(&n, fd, 0);
	if (mr != NULL)
		FI(fi_close(&mr->fid));
	node_close(&n);
	return 0;
}

/* ---- Director ------------------------------------------------------------ */

/* Has the victim come to its point? */
static bool reached(struct proc *v)
{
	siginfo_t info = { 0 };

	if (!g_job.host) {
		if (!proc_ended(v, 0))
			return false;
		CHECK_MSG(WIFSIGNALED(v->status) &&
			  WTERMSIG(v->status) == SIGKILL, "the victim: %d",
			  v->status);
		return true;
	}
	CHECK(waitid(P_PID, v->pid, &info,
		     WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0);
	CHECK_MSG(info.si_pid == 0 || info.si_code == CLD_STOPPED,
		  "the victim ended: %d", info.si_status);
	return info.si_pid != 0;
}

/* The time that docs/hal.md, section 16, allows for a host that does not
 * answer, in microseconds: until the end of a connection, and until the last of
 * five attempts to make one. */
#define PROBED_US	4500000
#define DIALLED_US	17000000

static uint64_t g_slowest;		/* of all jobs, in microseconds */

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 1) > 0;
}

/* Returns when. Close *ns once the survivors have noticed. */
static uint64_t end_victim(struct proc *p[NPROCS], int *ns)
{
	uint64_t now;

	*ns = -1;
	if (!g_job.host) {
		g_shared->gone |= UINT64_C(1) << VICTIM;
		return procs_now();
	}
	*ns = hosts_vanish(p[VICTIM]);
	now = procs_now();
	proc_kill(p[VICTIM]);
	proc_kill(p[BESIDE]);
	return now;
}

/* The survivors take a step, and report. */
static void all_step(struct proc *p[NPROCS], uint64_t word)
{
	for (int i = 0; i < NPROCS; i++)
		if (!p[i]->ended)
			procs_send_word(p[i]->fd, word);
	for (int i = 0; i < NPROCS; i++)
		if (!p[i]->ended)
			procs_recv_word(p[i]->fd);
}

/* Returns when the survivors have noticed the ends; in microseconds. */
static uint64_t survive(struct proc *p[NPROCS], uint64_t since)
{
	uint64_t took;

	all_step(p, 0);
	took = procs_now() - since;
	all_step(p, 1);
	for (int i = 0; i < NPROCS; i++)
		if (!p[i]->ended)
			proc_finish(p[i]);
	return took;
}

/* Runs g_job. Returns how long the survivors took beyond what docs/hal.md,
 * 16.8, allows. */
static uint64_t run_job(void *arg)
{
	struct proc *p[NPROCS];
	uint64_t took, late;
	bool joined = false;
	int ns;

	(void)arg;
	memset(g_shared, 0, sizeof(*g_shared));
	hosts_start(p, NPROCS, one_of_four);
	while (!is_readable(p[VICTIM]->fd) && !reached(p[VICTIM]))
		;
	if (is_readable(p[VICTIM]->fd) && !p[VICTIM]->ended) {
		procs_join(p, NPROCS);
		joined = true;
	}
	for (int i = 0; i < NPROCS && !g_job.early; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < NPROCS && !g_job.early; i++)
		procs_send_word(p[i]->fd, 0);
	for (;;) {
		bool enough = g_job.role == RECEIVER &&
			ways[g_job.way].window == 0 ?
			DONE(0) >= ENOUGH && DONE(2) >= ENOUGH :
			DONE(VICTIM) >= (g_job.way == IDLE ? 20 * ENOUGH :
					 ENOUGH);

		if (reached(p[VICTIM]))
			break;
		CHECK_MSG(!enough, "pass %d of %s was not "
			  "reached, %s, as %s", g_job.pass,
			  hal_fault_point_name(g_job.point),
			  ways[g_job.way].name,
			  g_job.role == SENDER ? "sender" : "receiver");
		procs_nap(200);
	}
	took = end_victim(p, &ns);
	if (!joined)
		procs_join(p, NPROCS);
	took = survive(p, took);
	if (ns >= 0)
		close(ns);
	procs_forget();
	late = g_job.early || g_job.way == IDLE ? DIALLED_US : PROBED_US;
	if (took > g_slowest)
		g_slowest = took;
	return !g_job.host ? took : took < late ? 0 : took - late;
}

/* ---- Fault points -------------------------------------------------------- */

#define BIT(way)	(1u << (way))
#define LONG		(BIT(STREAM) | BIT(DMA))
#define ONE_SIDED	(BIT(ACCESS) | BIT(REQUEST))
#define POINT(p)	HAL_FAULT_POINT_##p

/* How a fault point is reached: pass, and the ways in which a victim passes it
 * that is the sender (or initiator), and the receiver (or target). Or why it is
 * not tested. */
struct point {
	enum hal_fault_point point;
	int pass;
	unsigned ways[ROLES];
	bool early;			/* before all are connected */
	const char *why;
};

#define AT(p, pass, sender, receiver)					\
	{ POINT(p), pass, { sender, receiver }, false, NULL }
#define EARLY(p, pass, sender, receiver)				\
	{ POINT(p), pass, { sender, receiver }, true, NULL }
#define NOT(p, why)	{ POINT(p), 0, { 0, 0 }, false, why }
#define SIM(p)		NOT(SIM_##p, "of memory that only one host shares")

static const struct point points[] = {
	/* connections */
	EARLY(BOUND, 1, BIT(SHORT), 0),
	EARLY(HELLO_SENT, 1, BIT(SHORT), 0),
	EARLY(HELLO_SENT, 2, BIT(SHORT), 0),
	EARLY(ACCEPTED, 1, 0, BIT(SHORT)),
	EARLY(ACCEPTED, 2, 0, BIT(SHORT)),
	EARLY(MAPPED, 1, 0, BIT(SHORT)),
	/* packets */
	AT(CLAIMED, 60, BIT(SHORT) | LONG | ONE_SIDED, LONG | ONE_SIDED),
	AT(COPIED, 60, BIT(SHORT) | LONG | ONE_SIDED, LONG | ONE_SIDED),
	AT(PUBLISHED, 61, BIT(SHORT) | LONG | ONE_SIDED, LONG | ONE_SIDED),
	AT(CREDIT, 20, LONG | ONE_SIDED, BIT(SHORT) | LONG | ONE_SIDED),
	AT(SPACE, 1, BIT(SHORT) | BIT(REQUEST), ONE_SIDED),
	/* long messages */
	AT(RTS_SENT, 2, LONG, 0),
	AT(MATCHED, 2, 0, LONG),
	AT(PIECE, 2, BIT(STREAM), 0),
	AT(FIN, 2, 0, BIT(DMA)),
	/* transfers by the HAL */
	AT(DMA_HALF, 2, BIT(ACCESS), BIT(DMA)),
	AT(INSIDE, 2, BIT(ACCESS), 0),
	/* the close: of the endpoint, of its connections, of the backend */
	AT(CLOSING, 1, BIT(SHORT) | BIT(STREAM) | BIT(ACCESS),
	   BIT(SHORT) | BIT(STREAM)),
	AT(CLOSING, 2, BIT(SHORT) | BIT(STREAM) | BIT(ACCESS),
	   BIT(SHORT) | BIT(STREAM)),
	AT(CLOSING, 3, BIT(SHORT), BIT(SHORT)),
	/* connections that are closed and made again */
	EARLY(NET_PROPOSED, 1, BIT(IDLE), 0),
	EARLY(NET_AGREED, 1, 0, BIT(IDLE)),
	EARLY(NET_RESUMED, 1, BIT(IDLE), 0),
	SIM(TAKEN), SIM(ENTERED), SIM(DECIDED), SIM(MOVED), SIM(UNANSWERED),
	SIM(STORING), SIM(MAKING), SIM(HOLDING), SIM(LETTING), SIM(FREEING),
	SIM(CLAIMED), SIM(RELEASED),
};

#define NPOINTS	(sizeof(points) / sizeof(points[0]))

/* Each point is tested, or there is a reason why not. */
static void check_table(void)
{
	for (int p = 0; p < HAL_FAULT_POINT_COUNT; p++) {
		bool found = false;

		for (size_t i = 0; i < NPOINTS; i++)
			found = found || ((int)points[i].point == p &&
				(points[i].why != NULL || points[i].pass != 0));
		CHECK_MSG(found, "%s is not in the table",
			  hal_fault_point_name(p));
	}
}

/* With it, a share of the jobs has both in which mistakes were found: UCX waits
 * in connect(2) (ACCEPTED), and the guard of a peer is asked for in vain
 * (INSIDE). */
#define FIRST	4

/* Run every each-th job, from FIRST on. */
static void at_points(bool host, long each)
{
	unsigned long jobs = 0, ran = 0;
	bool accepted = false, inside = false;

	check_table();
	for (size_t i = 0; i < NPOINTS; i++)
		for (int k = 0; k < ROLES * WAYS; k++) {
			const struct point *at = &points[i];
			enum role role = k / WAYS;

			if (!(at->ways[role] & BIT(k % WAYS)) ||
			    (long)(jobs++ % (unsigned long)each) !=
			    FIRST % each)
				continue;
			g_job = (struct job){
				.point = at->point, .pass = at->pass,
				.way = k % WAYS, .role = role, .host = host,
				.early = at->early,
			};
			procs_within_a_second(run_job, NULL);
			accepted = accepted || at->point == POINT(ACCEPTED);
			inside = inside || at->point == POINT(INSIDE);
			ran++;
		}
	CHECK_MSG(getenv("UNM_TEST_EACH") != NULL || (accepted && inside),
		  "the share has other jobs: change FIRST");
	procs_note("%lu of %lu, the slowest noticed after %llu ms", ran, jobs,
		   (unsigned long long)g_slowest / 1000);
}

static void process_killed(void)
{
	at_points(false, procs_number("UNM_TEST_EACH", 10));
}

static void host_vanishes(void)
{
	at_points(true, procs_number("UNM_TEST_EACH", 25));
}
#else
static void process_killed(void)
{
	procs_skip("no fault points in this build (--enable-fault-points)");
}

#define host_vanishes process_killed
#endif

int main(int argc, char **argv)
{
	static const struct procs_case cases[] = {
		PROCS_CASE(process_killed, 200),
		PROCS_CASE(host_vanishes, 400),
	};

	setenv("FI_LOG_LEVEL", "warn", 0);
	/* five attempts to reach a host that does not answer, of
	 * FI_UNIMEM_NET_DEAD_MS each */
	setenv("FI_UNIMEM_NET_DIAL_MS", "1000", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
