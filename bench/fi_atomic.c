// SPDX-License-Identifier: BSD-2-Clause
/*
 * Atomic operations over any libfabric provider: what fetching sum and
 * compare-and-swap of a word in another process take, until the result is here.
 *
 * The parent, on the first core, operates; the child, on the second, owns the
 * word and does what its provider wants of it: it looks at its queue.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
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

#include "unm_proc.h"
#include "unm_stat.h"

#define VERSION		FI_VERSION(1, 17)
#define BATCH		64		/* operations from time to time */
#define POLLS		(1 << 20)	/* empty, till the peer is looked at */
#define PATIENCE	20.0		/* seconds for the first operation */
#define NAME_MAX_LEN	256

/* What the two tell each other beside the fabric. */
struct shared {
	_Atomic int ready, stop;
	char name[NAME_MAX_LEN];
	size_t name_len;
	uint64_t addr, key;		/* of the child's word */
	_Atomic uint64_t word;
};

/* What remote operations work on, and what comes back, in registered memory. */
struct words {
	uint64_t target, operand, compare, result;
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct words *words;
	fi_addr_t peer;
};

static struct unm_pair pair = { .core = { 0, 1 }, .pass_s = 0.05 };
static const char *provider = "unimem";
static struct shared *sh;
static pid_t child;

static void fail(const char *what, long ret)
{
	fprintf(stderr, "fi_atomic: %s: %s%s%s\n", provider, what,
		ret ? ": " : "", ret ? fi_strerror(-ret) : "");
	if (child > 0)
		unm_child_end(child);
	exit(1);
}

static void must(long ret, const char *what)
{
	if (ret < 0)
		fail(what, ret);
}

/* ---------------------------------------------------------------- opening */

static void info_get(struct end *e)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		fail("fi_allocinfo", -FI_ENOMEM);
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_ATOMIC;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
		FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must(fi_getinfo(VERSION, NULL, NULL, 0, hints, &e->info),
	     "fi_getinfo");
	fi_freeinfo(hints);
}

static void words_register(struct end *e)
{
	e->words = unm_alloc(sizeof(*e->words));
	must(fi_mr_reg(e->domain, e->words, sizeof(*e->words), FI_READ |
		       FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
		       &e->mr, NULL), "fi_mr_reg");
}

static void end_open(struct end *e)
{
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };

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
	words_register(e);
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
	free(e->words);
}

/* -------------------------------------------------------------- the child */

static void child_main(void *arg)
{
	struct end e = { 0 };
	struct fi_cq_entry entry;

	(void)arg;
	end_open(&e);
	sh->name_len = sizeof(sh->name);
	must(fi_getname(&e.ep->fid, sh->name, &sh->name_len), "fi_getname");
	sh->addr = e.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
		(uintptr_t)&e.words->target : 0;
	sh->key = fi_mr_key(e.mr);
	atomic_store_explicit(&sh->ready, 1, memory_order_release);
	/* acquires the parent's release in main() */
	while (!atomic_load_explicit(&sh->stop, memory_order_acquire))
		fi_cq_read(e.cq, &entry, 1);
	atomic_store(&sh->word, *(volatile uint64_t *)&e.words->target);
	end_close(&e);
}

/* ------------------------------------------------------------- the parent */

static void child_alive(void)
{
	if (waitpid(child, NULL, WNOHANG) != child)
		return;
	child = 0;
	fail("the other process ended", 0);
}

static void completion(struct end *e)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry;
	unsigned int empty = 0;
	ssize_t ret;

	while ((ret = fi_cq_read(e->cq, &entry, 1)) == -FI_EAGAIN)
		if (++empty % POLLS == 0)
			child_alive();
	if (ret == -FI_EAVAIL && fi_cq_readerr(e->cq, &err, 0) == 1)
		fail("an operation failed", -err.err);
	must(ret, "fi_cq_read");
}

static ssize_t post(struct end *e, enum fi_op op, struct fi_context *context)
{
	struct words *w = e->words;
	void *desc = fi_mr_desc(e->mr);

	if (op == FI_SUM)
		return fi_fetch_atomic(e->ep, &w->operand, 1, desc, &w->result,
				       desc, e->peer, sh->addr, sh->key,
				       FI_UINT64, op, context);
	return fi_compare_atomic(e->ep, &w->operand, 1, desc, &w->compare,
				 desc, &w->result, desc, e->peer, sh->addr,
				 sh->key, FI_UINT64, op, context);
}

/* Makes the word n into n + 1, and sees n. */
static void operate(struct end *e, enum fi_op op, uint64_t n)
{
	struct fi_cq_entry entry;
	struct fi_context context;
	double t0 = 0;
	ssize_t ret;

	e->words->operand = op == FI_SUM ? 1 : n + 1;
	e->words->compare = n;
	e->words->result = ~n;
	while ((ret = post(e, op, &context)) == -FI_EAGAIN) {
		child_alive();
		t0 = t0 > 0 ? t0 : unm_now();
		if (unm_now() - t0 > PATIENCE)
			fail("an operation is not taken", -FI_ETIMEDOUT);
		if (fi_cq_read(e->cq, &entry, 1) != -FI_EAGAIN)
			fail("a completion that nothing stands for", 0);
	}
	must(ret, "an operation is refused");
	completion(e);
	if (e->words->result != n)
		fail("an operation saw a wrong value", 0);
}

static uint64_t measure(struct end *e, const char *name, enum fi_op op,
			uint64_t n)
{
	double t0, t, v[UNM_PASSES];
	uint64_t first;

	for (int i = 0; i < BATCH; i++)
		operate(e, op, n++);
	for (int i = 0; i < UNM_PASSES; i++) {
		first = n;
		t0 = unm_now();
		do {
			for (int j = 0; j < BATCH; j++)
				operate(e, op, n++);
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = t / (double)(n - first) * 1e9;
	}
	unm_row(name, 8, unm_median(v, UNM_PASSES), "ns");
	return n;
}

static void child_wait(struct end *e)
{
	/* acquires the child's release in child_main() */
	while (!atomic_load_explicit(&sh->ready, memory_order_acquire)) {
		child_alive();
		usleep(1000);
	}
	if (fi_av_insert(e->av, sh->name, 1, &e->peer, 0, NULL) != 1)
		fail("fi_av_insert", 0);
}

static void supported(struct end *e)
{
	size_t count;

	must(fi_fetch_atomicvalid(e->ep, FI_UINT64, FI_SUM, &count),
	     "fetching sum");
	must(fi_compare_atomicvalid(e->ep, FI_UINT64, FI_CSWAP, &count),
	     "compare-and-swap");
}

static void usage(void)
{
	fprintf(stderr, "usage: fi_atomic [-p PROVIDER] [-c CORE,CORE] "
		"[-t SECONDS]\n"
		"  -p  libfabric's name of it (unimem)\n"
		"  -c  cores of who operates and of who owns the word (0,1)\n"
		"  -t  time of one pass, of %d per figure (0.05)\n",
		UNM_PASSES);
	exit(2);
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:c:t:")) != -1) {
		if (c == 'p')
			provider = optarg;
		else if (c == 't')
			pair.pass_s = atof(optarg);
		else if (c != 'c' || sscanf(optarg, "%d,%d", &pair.core[0],
					    &pair.core[1]) != 2)
			usage();
	}
	if (optind < argc || !(pair.pass_s > 0))
		usage();
}

int main(int argc, char **argv)
{
	struct end e = { 0 };
	int status;
	uint64_t n;

	options(argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("fi_atomic");
		return 1;
	}
	child = unm_child(child_main, NULL, pair.core[1]);
	end_open(&e);
	child_wait(&e);
	supported(&e);
	printf("# Atomics over libfabric, provider %s, cores %d and %d, "
	       "medians of %d passes\n", e.info->fabric_attr->prov_name,
	       pair.core[0], pair.core[1], UNM_PASSES);
	unm_row_header();
	n = measure(&e, "fetch_add", FI_SUM, 0);
	n = measure(&e, "compare_swap", FI_CSWAP, n);
	atomic_store_explicit(&sh->stop, 1, memory_order_release);
	if (waitpid(child, &status, 0) != child || status)
		fail("the other process failed", 0);
	if (atomic_load(&sh->word) != n)
		fail("the word is not the sum of what was added", 0);
	end_close(&e);
	return 0;
}
