// SPDX-License-Identifier: BSD-2-Clause
/*
 * fi_limits.c - what operations take over any libfabric provider with RDM
 * endpoints: tagged messages (half a round trip), writes until they are
 * complete at the target, fetching sum and compare-and-swap of a word until the
 * result is here; and the rate of each with WINDOW of them under way.
 *
 * The parent, on the first core, measures; the child, on the second, answers
 * messages, owns the memory, and reads its completion queue, as providers
 * demand it that have no progress of their own. Each part (-o) asks the
 * provider for the one capability that it needs.
 *
 * A figure is printed once its data have been checked: the first and the last
 * 8 bytes of every message, and of what the last writes left; the same of some
 * single writes as soon as these are complete; what each operation alone on a
 * word fetched, and the word after each figure. No two messages or writes carry
 * the same number. Exit code: NOT_OFFERED, WRONG (data), 1 for anything else.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "unm_proc.h"
#include "unm_stat.h"

#define VERSION		FI_VERSION(1, 17)
#define WINDOW		64		/* operations under way for a rate */
#define WINDOWS		8		/* between two readings of the clock */
#define BATCH		(WINDOW * WINDOWS)
#define MOST		4096		/* bytes of the longest message */
#define POLLS		(1 << 20)	/* empty, until the peer is checked */
#define PATIENCE	20.0		/* seconds for one operation */
#define NAME_MAX_LEN	256
#define TAG		1
#define NOT_OFFERED	77		/* exit codes */
#define WRONG		3
#define CONTEXTS	(2 * WINDOW)	/* receives behind sends */

enum { PARENT, CHILD };

enum job { JOB_NONE, JOB_ECHO, JOB_WINDOWS, JOB_LOOK, JOB_END };

/* How the two processes meet beside the fabric. */
struct shared {
	_Atomic int ready[2];
	char name[2][NAME_MAX_LEN];
	size_t name_len[2];
	uint64_t addr, key;		/* of the child's memory */
	_Atomic uint64_t jobs;		/* given to the child so far */
	enum job job;
	size_t size;
	_Atomic uint64_t looks;		/* of the child at its memory so far */
	uint64_t word, head[WINDOW], tail[WINDOW];	/* what it saw */
};

/* Registered; operation i of a window has element i. */
struct memory {
	uint64_t target, operand[WINDOW], compare[WINDOW], result[WINDOW];
	char out[WINDOW][MOST], in[WINDOW][MOST];
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct memory *mem;
	void *desc;
	fi_addr_t peer;
	unsigned int done;		/* completions read, not yet awaited */
	size_t size;			/* of messages and writes */
	uint64_t serial;		/* number of the last one */
	struct fi_context2 context[CONTEXTS];
};

struct part {
	const char *name;
	uint64_t caps, op_flags;
	void (*measure)(struct end *e);
};

static struct unm_pair pair = { .core = { 0, 1 }, .pass_s = 0.05 };
static const char *provider = "unimem";
static const struct part *part;
static struct shared *sh;
static pid_t child;

static void leave(int code)
{
	if (child > 0)
		unm_child_end(child);
	exit(code);
}

static void fail(const char *what, long ret)
{
	fprintf(stderr, "fi_limits: %s: %s%s%s\n", provider, what,
		ret ? ": " : "", ret ? fi_strerror(-ret) : "");
	leave(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "fi_limits: %s: %s\n", provider, what);
	leave(WRONG);
}

static void must(long ret, const char *what)
{
	if (ret < 0)
		fail(what, ret);
}

/* Its end, unless all went well, is ours; it has said why. */
static void child_gone(int status)
{
	child = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == WRONG)
		leave(WRONG);
	fail("the other process ended", 0);
}

/* In the child there is none: it dies with the parent. */
static void child_alive(void)
{
	int status;

	if (child && waitpid(child, &status, WNOHANG) == child)
		child_gone(status);
}

/* ---- Opening ----------------------------------------------------------- */

static void info_get(struct end *e)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		fail("fi_allocinfo", -FI_ENOMEM);
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = part->caps;
	hints->tx_attr->op_flags = part->op_flags;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
		FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &e->info);
	if (ret == -FI_ENODATA) {
		fprintf(stderr, "fi_limits: %s does not offer %s\n",
			provider, part->name);
		exit(NOT_OFFERED);
	}
	must(ret, "fi_getinfo");
	fi_freeinfo(hints);
}

static void memory_register(struct end *e)
{
	e->mem = unm_alloc(sizeof(*e->mem));
	must(fi_mr_reg(e->domain, e->mem, sizeof(*e->mem), FI_SEND | FI_RECV |
		       FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		       0, 1, 0, &e->mr, NULL), "fi_mr_reg");
	e->desc = fi_mr_desc(e->mr);
}

static void end_open(struct end *e)
{
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT,
		.size = 2 * CONTEXTS };

	info_get(e);
	must(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	must(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	must(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
	must(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
	must(fi_endpoint(e->domain, e->info, &e->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV),
	     "fi_ep_bind");
	must(fi_enable(e->ep), "fi_enable");
	memory_register(e);
}

/* Open an end and exchange addresses with the other process. */
static void end_meet(struct end *e, int me)
{
	int other = !me;

	end_open(e);
	if (me == CHILD) {
		sh->addr = e->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
			(uintptr_t)e->mem : 0;
		sh->key = fi_mr_key(e->mr);
	}
	sh->name_len[me] = sizeof(sh->name[me]);
	must(fi_getname(&e->ep->fid, sh->name[me], &sh->name_len[me]),
	     "fi_getname");
	atomic_store_explicit(&sh->ready[me], 1, memory_order_release);
	/* acquires the release just above, of the other process */
	while (!atomic_load_explicit(&sh->ready[other],
				     memory_order_acquire)) {
		child_alive();
		usleep(1000);
	}
	if (fi_av_insert(e->av, sh->name[other], 1, &e->peer, 0, NULL) != 1)
		fail("fi_av_insert", 0);
}

static void end_close(struct end *e)
{
	fi_close(&e->mr->fid);
	fi_close(&e->ep->fid);
	fi_close(&e->cq->fid);
	fi_close(&e->av->fid);
	fi_close(&e->domain->fid);
	fi_close(&e->fabric->fid);
	fi_freeinfo(e->info);
	free(e->mem);
}

/* ---- Operations -------------------------------------------------------- */

/* Read what is there: true if there was nothing. */
static bool poll_empty(struct end *e)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry[16];
	ssize_t ret = fi_cq_read(e->cq, entry, 16);

	if (ret == -FI_EAGAIN)
		return true;
	if (ret == -FI_EAVAIL && fi_cq_readerr(e->cq, &err, 0) == 1)
		fail("an operation failed", -err.err);
	must(ret, "fi_cq_read");
	e->done += (unsigned int)ret;
	return false;
}

static void await(struct end *e, unsigned int n)
{
	unsigned int empty = 0;

	while (e->done < n)
		if (poll_empty(e) && ++empty % POLLS == 0)
			child_alive();
	e->done -= n;
}

/* Operation i of a window: its place in the memory, its context. */
typedef ssize_t post_fn(struct end *e, int i);

static ssize_t post_send(struct end *e, int i)
{
	return fi_tsend(e->ep, e->mem->out[i], e->size, e->desc, e->peer, TAG,
			&e->context[i]);
}

static ssize_t post_recv(struct end *e, int i)
{
	return fi_trecv(e->ep, e->mem->in[i], e->size, e->desc, e->peer, TAG,
			0, &e->context[WINDOW + i]);
}

static ssize_t post_write(struct end *e, int i)
{
	return fi_write(e->ep, e->mem->out[i], e->size, e->desc, e->peer,
			sh->addr + offsetof(struct memory, in[i]), sh->key,
			&e->context[i]);
}

static ssize_t post_fetch_add(struct end *e, int i)
{
	struct memory *m = e->mem;

	return fi_fetch_atomic(e->ep, &m->operand[i], 1, e->desc,
			       &m->result[i], e->desc, e->peer, sh->addr,
			       sh->key, FI_UINT64, FI_SUM, &e->context[i]);
}

static ssize_t post_compare_swap(struct end *e, int i)
{
	struct memory *m = e->mem;

	return fi_compare_atomic(e->ep, &m->operand[i], 1, e->desc,
				 &m->compare[i], e->desc, &m->result[i],
				 e->desc, e->peer, sh->addr, sh->key,
				 FI_UINT64, FI_CSWAP, &e->context[i]);
}

static void post(struct end *e, post_fn *op, int i)
{
	double t0 = 0;
	ssize_t ret;

	while ((ret = op(e, i)) == -FI_EAGAIN) {
		child_alive();
		t0 = t0 > 0 ? t0 : unm_now();
		if (unm_now() - t0 > PATIENCE)
			fail("an operation is not taken", -FI_ETIMEDOUT);
		poll_empty(e);
	}
	must(ret, "an operation is refused");
}

/* The first and the last 8 bytes of a message or write. */
static void stamp(struct end *e, int i, uint64_t n)
{
	memcpy(e->mem->out[i], &n, sizeof(n));
	memcpy(e->mem->out[i] + e->size - sizeof(n), &n, sizeof(n));
}

static void stamp_check(struct end *e, int i, uint64_t n)
{
	if (memcmp(e->mem->in[i], &n, sizeof(n)) ||
	    memcmp(e->mem->in[i] + e->size - sizeof(n), &n, sizeof(n)))
		wrong("a message has wrong data");
}

/* ---- The child --------------------------------------------------------- */

static void echo(struct end *e)
{
	post(e, post_recv, 0);
	await(e, 1);
	stamp_check(e, 0, ++e->serial);
	stamp(e, 0, e->serial);
	post(e, post_send, 0);
	await(e, 1);
}

/* One window comes, the number of its last message goes back. */
static void drain(struct end *e)
{
	for (int i = 0; i < WINDOW; i++)
		post(e, post_recv, i);
	await(e, WINDOW);
	for (int i = 0; i < WINDOW; i++)
		stamp_check(e, i, ++e->serial);
	stamp(e, 0, e->serial);
	post(e, post_send, 0);
	await(e, 1);
}

/* The memory as it is, with no progress of the provider before. */
static void look(struct end *e)
{
	sh->word = *(volatile uint64_t *)&e->mem->target;
	for (int i = 0; i < WINDOW; i++) {
		memcpy(&sh->head[i], e->mem->in[i], sizeof(sh->head[i]));
		memcpy(&sh->tail[i], e->mem->in[i] + e->size -
		       sizeof(sh->tail[i]), sizeof(sh->tail[i]));
	}
	atomic_fetch_add_explicit(&sh->looks, 1, memory_order_release);
}

static void child_main(void *arg)
{
	struct end e = { 0 };
	enum job job;

	(void)arg;
	end_meet(&e, CHILD);
	for (uint64_t known = 0; ; ) {
		poll_empty(&e);
		/* acquires the parent's release in job_give() */
		if (atomic_load_explicit(&sh->jobs, memory_order_acquire) ==
		    known)
			continue;
		known++;
		job = sh->job;		/* the next one may be given early */
		e.size = sh->size;
		if (job == JOB_END)
			break;
		if (job == JOB_LOOK)
			look(&e);
		for (int i = 0; job == JOB_ECHO && i < BATCH; i++)
			echo(&e);
		for (int i = 0; job == JOB_WINDOWS && i < WINDOWS; i++)
			drain(&e);
	}
	end_close(&e);
}

/* ---- The parent -------------------------------------------------------- */

static void job_give(struct end *e, enum job job)
{
	sh->job = job;
	sh->size = e->size;
	atomic_fetch_add_explicit(&sh->jobs, 1, memory_order_release);
}

/* Have the child check its memory, after all operations are complete. */
static void child_look(struct end *e)
{
	uint64_t before = atomic_load_explicit(&sh->looks,
					       memory_order_relaxed);
	unsigned int polls = 0;

	job_give(e, JOB_LOOK);
	/* acquires the child's release in look() */
	while (atomic_load_explicit(&sh->looks, memory_order_acquire) ==
	       before)
		if (++polls % POLLS == 0)
			child_alive();
}

/* Seconds of one operation: the median of passes of whole batches. */
static double seconds(struct end *e, void (*batch)(struct end *, void *),
		      void *arg)
{
	double t0, t, v[UNM_PASSES];
	uint64_t n;

	batch(e, arg);
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			batch(e, arg);
			n += BATCH;
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = t / (double)n;
	}
	return unm_median(v, UNM_PASSES);
}

static void echo_batch(struct end *e, void *arg)
{
	(void)arg;
	job_give(e, JOB_ECHO);
	for (int i = 0; i < BATCH; i++) {
		stamp(e, 0, ++e->serial);
		post(e, post_recv, 0);
		post(e, post_send, 0);
		await(e, 2);
		stamp_check(e, 0, e->serial);
	}
}

static void send_batch(struct end *e, void *arg)
{
	(void)arg;
	job_give(e, JOB_WINDOWS);
	for (int i = 0; i < WINDOWS; i++) {
		post(e, post_recv, 0);
		for (int j = 0; j < WINDOW; j++) {
			stamp(e, j, ++e->serial);
			post(e, post_send, j);
		}
		await(e, WINDOW + 1);
		stamp_check(e, 0, e->serial);
	}
}

static void measure_messages(struct end *e)
{
	static const size_t sizes[] = { 8, MOST };

	for (int i = 0; i < 2; i++) {
		e->size = sizes[i];
		unm_row("tsend", e->size,
			seconds(e, echo_batch, NULL) / 2 * 1e9, "ns");
		unm_row("tsend_rate", e->size,
			1e-6 / seconds(e, send_batch, NULL), "M/s");
	}
}

static void write_batch(struct end *e, void *arg)
{
	(void)arg;
	for (int i = 0; i < BATCH; i++) {
		stamp(e, 0, ++e->serial);
		post(e, post_write, 0);
		await(e, 1);
	}
}

static void writes_batch(struct end *e, void *arg)
{
	(void)arg;
	for (int i = 0; i < WINDOWS; i++) {
		for (int j = 0; j < WINDOW; j++) {
			stamp(e, j, ++e->serial);
			post(e, post_write, j);
		}
		await(e, WINDOW);
	}
}

static void written(int i, uint64_t n)
{
	if (sh->head[i] != n || sh->tail[i] != n)
		wrong("a write has not arrived");
}

/* A complete write is in the target's memory, and the target may read it
 * immediately. */
static void writes_delivered(struct end *e)
{
	for (int i = 0; i < WINDOW; i++) {
		stamp(e, i, ++e->serial);
		post(e, post_write, i);
		await(e, 1);
		child_look(e);
		written(i, e->serial);
	}
}

static void measure_writes(struct end *e)
{
	static const size_t sizes[] = { 8, MOST };
	double one, all;

	for (int i = 0; i < 2; i++) {
		e->size = sizes[i];
		one = seconds(e, write_batch, NULL);
		child_look(e);
		written(0, e->serial);
		all = seconds(e, writes_batch, NULL);
		child_look(e);
		for (int j = 0; j < WINDOW; j++)
			written(j, e->serial - WINDOW + 1 + (uint64_t)j);
		writes_delivered(e);
		unm_row("write", e->size, one * 1e9, "ns");
		unm_row("write_rate", e->size, 1e-6 / all, "M/s");
	}
}

/* arg: the value of the word. */
static void fetch_add_batch(struct end *e, void *arg)
{
	uint64_t *n = arg;

	for (int i = 0; i < BATCH; i++) {
		e->mem->operand[0] = 1;
		e->mem->result[0] = ~*n;
		post(e, post_fetch_add, 0);
		await(e, 1);
		if (e->mem->result[0] != (*n)++)
			wrong("a sum saw a wrong value");
	}
}

static void compare_swap_batch(struct end *e, void *arg)
{
	uint64_t *n = arg;

	for (int i = 0; i < BATCH; i++) {
		e->mem->compare[0] = *n;
		e->mem->operand[0] = *n + 1;
		e->mem->result[0] = ~*n;
		post(e, post_compare_swap, 0);
		await(e, 1);
		if (e->mem->result[0] != (*n)++)
			wrong("a swap saw a wrong value");
	}
}

/* In any order: only the sum is known. */
static void fetch_adds_batch(struct end *e, void *arg)
{
	uint64_t *n = arg;

	for (int i = 0; i < WINDOWS; i++) {
		for (int j = 0; j < WINDOW; j++) {
			e->mem->operand[j] = 1;
			post(e, post_fetch_add, j);
		}
		await(e, WINDOW);
	}
	*n += BATCH;
}

static void measure_atomics(struct end *e)
{
	static const struct {
		const char *name, *unit;
		void (*batch)(struct end *e, void *arg);
	} kinds[] = {
		{ "fetch_add", "ns", fetch_add_batch },
		{ "compare_swap", "ns", compare_swap_batch },
		{ "fetch_add_rate", "M/s", fetch_adds_batch },
	};
	uint64_t n = 0;
	size_t count;
	double s;

	must(fi_fetch_atomicvalid(e->ep, FI_UINT64, FI_SUM, &count),
	     "fetching sum");
	must(fi_compare_atomicvalid(e->ep, FI_UINT64, FI_CSWAP, &count),
	     "compare-and-swap");
	e->size = sizeof(n);
	for (int i = 0; i < 3; i++) {
		s = seconds(e, kinds[i].batch, &n);
		child_look(e);
		if (sh->word != n)
			wrong("the word is not the sum of what was added");
		unm_row(kinds[i].name, e->size, strcmp(kinds[i].unit, "ns") ?
			1e-6 / s : s * 1e9, kinds[i].unit);
	}
}

/* ---- The program ------------------------------------------------------- */

static const struct part parts[] = {
	{ "messages", FI_TAGGED, 0, measure_messages },
	{ "writes", FI_RMA, FI_DELIVERY_COMPLETE, measure_writes },
	{ "atomics", FI_ATOMIC, 0, measure_atomics },
	{ NULL, 0, 0, NULL }
};

static void usage(void)
{
	fprintf(stderr, "usage: fi_limits -o PART [-p PROVIDER] [-c CORE,CORE]"
		" [-t SECONDS]\n"
		"  -o  messages, writes or atomics\n"
		"  -p  libfabric's name of the provider (unimem)\n"
		"  -c  cores of the initiator and of the target (0,1)\n"
		"  -t  time of one pass, of %d per figure (0.05)\n",
		UNM_PASSES);
	exit(2);
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "o:p:c:t:")) != -1) {
		for (const struct part *p = parts; c == 'o' && p->name; p++)
			if (strcmp(p->name, optarg) == 0)
				part = p;
		if (c == 'p')
			provider = optarg;
		else if (c == 't')
			pair.pass_s = atof(optarg);
		else if (c != 'o' &&
			 (c != 'c' || sscanf(optarg, "%d,%d", &pair.core[0],
					     &pair.core[1]) != 2))
			usage();
	}
	if (optind < argc || !(pair.pass_s > 0) || !part)
		usage();
}

int main(int argc, char **argv)
{
	struct end e = { 0 };
	int status = 0;

	options(argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("fi_limits");
		return 1;
	}
	child = unm_child(child_main, NULL, pair.core[1]);
	end_meet(&e, PARENT);
	printf("# libfabric, %s, provider %s, cores %d and %d, medians of %d "
	       "passes\n", part->name, e.info->fabric_attr->prov_name,
	       pair.core[0], pair.core[1], UNM_PASSES);
	unm_row_header();
	part->measure(&e);
	job_give(&e, JOB_END);
	if (waitpid(child, &status, 0) != child || status)
		child_gone(status);
	child = 0;
	end_close(&e);
	return 0;
}
