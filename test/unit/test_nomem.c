/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nomem.c - every allocation from fi_getinfo() to fi_close() fails once:
 * the n-th allocation of an endpoint's life, for every n, and then the n-th and
 * all after it. No crash, no hang, no leak of memory or descriptors.
 *
 * The endpoint sends itself one message of each protocol. The failing
 * allocations are those of libunimem-fi.so and libunimem-hal.so, because
 * libfabric does not check some of its own in fi_getinfo().
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/proc_files.h"
#include "lib/procs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

#define BIG		(64 << 10)
#define LIVE_MAX	8192
#define POLLS		20000

/* ---- Allocations -------------------------------------------------------- */

struct block {
	void *at;
	void *caller;
};

static struct block g_live[LIVE_MAX];	/* allocations since g_counting was
					 * set */
static unsigned long g_nlive;
static unsigned long g_nth;		/* number of allocations since then */
static unsigned long g_fail_at;		/* number of the one that fails; 0:
					 * none */
static bool g_fail_on;			/* all after it fail, too */
static bool g_counting;

#if !SANITIZED
#define CALLER		__builtin_return_address(0)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

/* Returns true if this allocation is to fail. */
static bool fails(void *caller)
{
	Dl_info info;

	if (!g_counting || dladdr(caller, &info) == 0 ||
	    strstr(info.dli_fname, "libunimem-") == NULL)
		return false;
	g_nth++;
	return g_fail_at != 0 && (g_nth == g_fail_at ||
				  (g_fail_on && g_nth > g_fail_at));
}

static void *born(void *at, void *caller)
{
	if (g_counting && at != NULL && g_nlive < LIVE_MAX)
		g_live[g_nlive++] = (struct block){ at, caller };
	return at;
}

static void died(void *at)
{
	for (unsigned long i = g_nlive; at != NULL && i-- > 0; ) {
		if (g_live[i].at != at)
			continue;
		g_live[i] = g_live[--g_nlive];
		return;
	}
}

void *malloc(size_t size)
{
	return fails(CALLER) ? NULL : born(__libc_malloc(size), CALLER);
}

void *calloc(size_t n, size_t size)
{
	return fails(CALLER) ? NULL : born(__libc_calloc(n, size), CALLER);
}

void *realloc(void *p, size_t size)
{
	void *at;

	if (fails(CALLER))
		return NULL;
	at = __libc_realloc(p, size);
	if (at != NULL || size == 0)
		died(p);
	return born(at, CALLER);
}

void *aligned_alloc(size_t align, size_t size)
{
	if (fails(CALLER))
		return NULL;
	return born(__libc_memalign(align, size), CALLER);
}

char *strdup(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = fails(CALLER) ? NULL : __libc_malloc(len);

	if (copy != NULL)
		memcpy(copy, text, len);
	return born(copy, CALLER);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	if (fails(CALLER))
		return FI_ENOMEM;
	*out = born(__libc_memalign(align, size), CALLER);
	return *out != NULL ? 0 : FI_ENOMEM;
}

void free(void *p)
{
	died(p);
	__libc_free(p);
}
#endif

/* ---- One life ----------------------------------------------------------- */

static uint8_t g_buf[4][BIG];

/* Whatever fails, the next step is tried. No wait is unlimited. */
static void talk_to_oneself(struct node *n)
{
	static struct fi_context2 ctx[8];
	const size_t lens[] = { 8, 4096, BIG };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	fi_addr_t self = FI_ADDR_NOTAVAIL;

	if (fi_av_insert(n->av, &n->addr, 1, &self, 0, NULL) != 1)
		return;
	for (int i = 0; i < 2; i++)	/* first expected, then unexpected */
		fi_trecv(n->ep, g_buf[i], BIG, NULL, self, i, 0, &ctx[i]);
	for (int i = 0; i < 3; i++)
		fi_tsend(n->ep, g_buf[3], lens[i], NULL, self, i, &ctx[4 + i]);
	for (int i = 0; i < POLLS / 2; i++)
		node_poll(n, &entry, &error);
	fi_trecv(n->ep, g_buf[2], BIG, NULL, self, 2, 0, &ctx[2]);
	/* if nothing fails, all messages arrive, however long it takes */
	for (int i = 0; i < POLLS / 2 || (g_fail_at == 0 && n->events < 6); i++)
		node_poll(n, &entry, &error);
}

/* Returns the number of allocations. */
static unsigned long live_once(unsigned long fail_at, bool fail_on)
{
	struct node_error err;
	struct node n;

	g_fail_at = fail_at;
	g_fail_on = fail_on;
	g_nth = 0;
	g_nlive = 0;
	g_counting = true;
	if (node_try_open(&n, NODE_WAIT, &err) == 0) {
		talk_to_oneself(&n);
		CHECK(fail_at != 0 || n.events == 6);
		node_close(&n);
	} else if (fail_at == 0) {
		FAIL("%s: %s", err.call, fi_strerror(-err.ret));
	}
	g_counting = false;
	return g_nth;
}

/* ---- Leaks -------------------------------------------------------------- */

static void name_leak(const struct block *b, unsigned long nth)
{
	Dl_info info = { 0 };

	dladdr(b->caller, &info);
	FAIL("allocation %lu failed: memory from %s+0x%lx is not freed (%lu "
	     "blocks)", nth, info.dli_fname != NULL ? info.dli_fname : "?",
	     (unsigned long)((char *)b->caller - (char *)info.dli_fbase),
	     g_nlive);
}

static int lives(int fd, void *arg)
{
	bool fail_on = *(bool *)arg;
	unsigned long all, nth;
	int open_before;

	(void)fd;
	live_once(0, false);		/* allocations that are made once per
					 * process */
	all = live_once(0, false);
	CHECK_MSG(all > 10 && g_nlive == 0, "%lu allocations, %lu not freed",
		  all, g_nlive);
	open_before = proc_self_fds();
	for (nth = 1; nth <= all; nth++) {
		g_shared->word[0] = nth;
		live_once(nth, fail_on);
		if (g_nlive != 0)
			name_leak(&g_live[0], nth);
		CHECK_MSG(proc_self_fds() == open_before, "allocation %lu "
			  "failed: %d descriptors are left open", nth,
			  proc_self_fds() - open_before);
		CHECK_MSG(procs_segments(getpid()) == 0, "allocation %lu "
			  "failed: shared memory is still mapped", nth);
	}
	procs_note("%lu allocations", all);
	return 0;
}

static void sweep(bool fail_on, const char *attach)
{
	const char *const env[] = { attach, NULL };
	struct proc *p;

	if (SANITIZED)
		procs_skip("a sanitizer has its own malloc");
	p = proc_start(lives, &fail_on, env);
	while (!proc_ended(p, 1000))
		;
	CHECK_MSG(p->status == 0, "allocation %llu failed: status 0x%x",
		  (unsigned long long)g_shared->word[0], p->status);
}

static void one(void)
{
	sweep(false, "FI_UNIMEM_ATTACH=1");
}

static void one_stream(void)
{
	sweep(false, "FI_UNIMEM_ATTACH=0");
}

static void all_after(void)
{
	sweep(true, "FI_UNIMEM_ATTACH=1");
}

PROCS_MAIN(
	PROCS_CASE(one, 0),
	PROCS_CASE(one_stream, 0),
	PROCS_CASE(all_after, 0),
)
