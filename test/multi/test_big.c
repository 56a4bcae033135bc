/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_big.c - messages around 2 GiB and 4 GiB, where a count that is too
 * narrow shows: read by cross-memory attach, streamed, and in vectors. Every
 * byte is compared.
 *
 * The sender's buffer is a few pages mapped over and over; their number is
 * prime, so that a piece which lands a power of two away does not go unnoticed.
 * Each message begins elsewhere in the pattern, so that what the one before
 * left in the receiver's buffer is not taken for it.
 *
 * UNM_TEST_BIG=1: every size in every way; make check-long does those that
 * differ.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/procs.h"

#define PAGE		4096u
#define PERIOD		((size_t)1021 * PAGE)
#define G2		(UINT64_C(1) << 31)
#define G4		(UINT64_C(1) << 32)
#define ROOM		(G4 + 64 * PAGE)
#define SHIFT		(3 * PAGE + 13)		/* from message to message */
#define IOVS		8

struct big {
	const char *name;
	uint64_t len;
	int tx_iovs, rx_iovs;
	bool always;
};

static const struct big bigs[] = {
	{ "2^31-1", G2 - 1, 1, 1, false },
	{ "2^31", G2, 1, 1, true },
	{ "2^32-1", G4 - 1, 1, 1, false },
	{ "2^32", G4, 1, 1, false },
	{ "2^32+1", G4 + 1, 1, 1, true },
	{ "2^32+1 to a vector", G4 + 1, 1, 5, true },
	{ "2^32+1 from a vector", G4 + 1, IOVS, 1, false },
	{ "2^32+1 from a vector to another", G4 + 1, IOVS, 3, false },
};
#define NBIGS	(int)(sizeof(bigs) / sizeof(bigs[0]))

static uint8_t *g_room;			/* the receivers' buffer */

static bool is_wanted(const struct big *b)
{
	return b->always || procs_number("UNM_TEST_BIG", 0) != 0;
}

/* ---- Memory ------------------------------------------------------------- */

static int pattern_file(void)
{
	int fd = memfd_create("pattern", MFD_CLOEXEC);
	uint64_t *p, word = 1;

	CHECK(fd >= 0 && ftruncate(fd, PERIOD) == 0);
	p = mmap(NULL, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < PERIOD / 8; i++) {
		word = word * UINT64_C(6364136223846793005) + 1;
		p[i] = word ^ word >> 31;
	}
	munmap(p, PERIOD);
	return fd;
}

/* The pattern, again and again. */
static uint8_t *pattern_room(int fd, size_t room)
{
	uint8_t *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE |
			     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(base != MAP_FAILED);
	for (size_t at = 0; at < room; at += PERIOD) {
		size_t n = room - at < PERIOD ? room - at : PERIOD;

		CHECK(mmap(base + at, n, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
			   0) != MAP_FAILED);
	}
	return base;
}

/* buf[0 .. len) is the pattern from byte shift on. */
static void compare(const uint8_t *buf, uint64_t len, uint64_t shift,
		    const uint8_t *pattern)
{
	for (uint64_t at = 0; at < len; ) {
		uint64_t in = (shift + at) % PERIOD;
		uint64_t n = PERIOD - in < len - at ? PERIOD - in : len - at;

		CHECK_MSG(memcmp(buf + at, pattern + in, n) == 0,
			  "wrong between bytes %llu and %llu",
			  (unsigned long long)at,
			  (unsigned long long)(at + n));
		at += n;
	}
}

/* Uneven parts; each has some bytes of the odd sort. */
static void split(struct iovec *iov, int n, uint8_t *buf, uint64_t len)
{
	uint64_t at = 0;

	for (int i = 0; i < n; i++) {
		uint64_t part = len / (2 * n) * (i + 1) / n + 1001 * i + 7;

		if (i == n - 1)
			part = len - at;
		iov[i] = (struct iovec){ buf + at, part };
		at += part;
	}
}

/* ---- Both ends ---------------------------------------------------------- */

static void await_one(struct node *n, uint64_t len)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	CHECK_MSG(ret > 0, "%s", fi_strerror(error.err));
	CHECK_MSG(!(entry.flags & FI_RECV) || entry.len == len, "%zu bytes",
		  entry.len);
}

static int sender(int fd, void *arg)
{
	uint8_t *buf = pattern_room(*(int *)arg, ROOM);
	struct iovec iov[IOVS];
	struct node n;

	node_start(&n, fd, 0);
	for (int i = 0; i < NBIGS; i++) {
		const struct big *b = &bigs[i];
		struct fi_msg_tagged msg = {
			.msg_iov = iov, .iov_count = b->tx_iovs,
			.addr = n.peer[1], .tag = i,
		};

		if (!is_wanted(b))
			continue;
		split(iov, b->tx_iovs, buf + i * SHIFT, b->len);
		FI(fi_tsendmsg(n.ep, &msg, FI_COMPLETION));
		await_one(&n, b->len);
		procs_recv_word(fd);	/* it was compared */
	}
	node_close(&n);
	return 0;
}

static int receiver(int fd, void *arg)
{
	const uint8_t *pattern = pattern_room(*(int *)arg, PERIOD);
	uint8_t *buf = g_room;
	struct iovec iov[IOVS];
	struct node n;

	node_start(&n, fd, 0);
	for (int i = 0; i < NBIGS; i++) {
		const struct big *b = &bigs[i];
		struct fi_msg_tagged msg = {
			.msg_iov = iov, .iov_count = b->rx_iovs,
			.addr = FI_ADDR_UNSPEC, .tag = i,
		};
		uint64_t since = procs_now();

		if (!is_wanted(b))
			continue;
		buf[b->len] = 0x77;	/* not to be touched */
		split(iov, b->rx_iovs, buf, b->len);
		FI(fi_trecvmsg(n.ep, &msg, FI_COMPLETION));
		await_one(&n, b->len);
		since = procs_now() - since;
		compare(buf, b->len, i * SHIFT, pattern);
		CHECK_MSG(buf[b->len] == 0x77, "a byte too many");
		procs_note("%s: %.1f s", b->name, since / 1e6);
		procs_send_word(fd, 0);
	}
	node_close(&n);
	return 0;
}

static void needs_memory(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			break;
	if (f != NULL)
		fclose(f);
	if (kib < (6u << 20))
		procs_skip("6 GiB of memory are needed, %lu MiB are free",
			   kib >> 10);
}

static void one_way(int file, const char *attach)
{
	const char *const env[] = { attach, NULL };
	struct proc *p[2] = { proc_start(sender, &file, env),
			      proc_start(receiver, &file, env) };

	procs_join(p, 2);
	for (int i = 0; i < NBIGS; i++)
		if (is_wanted(&bigs[i])) {
			procs_recv_word(p[1]->fd);
			procs_send_word(p[0]->fd, 0);
		}
	proc_expect(p[0], 0);
	proc_expect(p[1], 0);
	procs_forget();
}

/* One buffer for both: its pages take longer to get than to fill. */
static void big(void)
{
	int file;

	needs_memory();
	file = pattern_file();
	g_room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED |
		      MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(g_room != MAP_FAILED);
	procs_note("read by cross-memory attach");
	one_way(file, "FI_UNIMEM_ATTACH=1");
	procs_note("streamed");
	one_way(file, "FI_UNIMEM_ATTACH=0");
}

PROCS_MAIN(
	PROCS_CASE(big, 600),
)
