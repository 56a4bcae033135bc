/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shared.c - regions of memory that the initiator has mapped as well: it
 * accesses them through an alias of its own mapping (docs/protocol.md, section
 * 11). Which memory qualifies, which path is used otherwise, and when an alias
 * ends.
 *
 * test_rma.c, test_atomic.c and test_direct.c do every operation this way,
 * test_revoke.c closes regions under writers.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "lib/os_pair.h"
#include "lib/proc_files.h"
#include "op/gsas_op_wide.h"
#include "rma/unm_onesided.h"
#include "rma/unm_rkey.h"
#include "unm_env.h"

#define PAGE	((size_t)4096)
#define LEN	(4 * PAGE)
#define MEMORY	"test-shared"	/* name of the file */
#define KEY	5
#define RW	(PROT_READ | PROT_WRITE)

/* A file of LEN bytes without a name, and its mapping mem. */
struct scene {
	struct os_pair p;
	int fd;
	uint8_t *mem;			/* memory of b's region */
	struct fid_mr *mr;
};

static const struct unm_stats *stats(const struct scene *s)
{
	return ((struct unm_ep *)s->p.a->ep)->stats;
}

static int file_new(void)
{
	int fd = memfd_create(MEMORY, MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LEN), 0);
	return fd;
}

static void *map(int fd, int prot, int flags, void *at)
{
	void *mem = mmap(at, LEN, prot, flags, fd, 0);

	assert_true(mem != MAP_FAILED);
	return mem;
}

static void open_scene(struct scene *s, int prot, int flags)
{
	memset(s, 0, sizeof(*s));
	s->p = os_open(OS_REQUESTS, 64);
	g_unm_env.direct = true;
	s->fd = file_new();
	s->mem = map(s->fd, prot, flags, NULL);
}

static void close_scene(struct scene *s)
{
	if (s->mr != NULL)
		assert_int_equal(fi_close(&s->mr->fid), 0);
	if (s->mem != NULL)
		munmap(s->mem, LEN);
	close(s->fd);
	os_close(&s->p);
}

/* Adds 1 to a word of the region. Returns true if b got no request. */
static bool adds(struct scene *s, uint64_t at)
{
	uint64_t one = 1, was = os_requests(&s->p);

	EP_OK(fi_atomic(s->p.a->ep, &one, 1, NULL, s->p.ab, at, KEY,
			FI_UINT64, FI_SUM, s));
	assert_int_equal(ep_wait(s->p.a, s).err, 0);
	ep_settle();
	return os_requests(&s->p) == was;
}

static uint64_t word(const void *mem, size_t at)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)mem + at, sizeof(value));
	return value;
}

static bool there_are_aliases(void)
{
	return ep_inside() && os_goes(OS_SHARED);
}
#define NEEDS_ALIASES()	do { if (!there_are_aliases()) skip(); } while (0)

/* ---- Which memory ---------------------------------------------------- */

/* Is a part of this mapping, as a region, accessed through an alias? */
static void found(int prot, int flags, uint64_t access, bool alias)
{
	struct scene s;
	char byte = 0;

	open_scene(&s, prot, flags);
	s.mr = os_reg(s.p.b, s.mem + 24, LEN - 100, access, KEY);
	if (access & FI_REMOTE_WRITE) {
		assert_false(adds(&s, 8));	/* asks for the remote key */
		assert_true(adds(&s, 8) == alias);
		assert_int_equal(word(s.mem, 32), 2);
	} else {
		for (int i = 0; i < 2; i++) {
			EP_OK(fi_read(s.p.a->ep, &byte, 1, NULL, s.p.ab, 8,
				      KEY, &s));
			assert_int_equal(ep_wait(s.p.a, &s).err, 0);
			ep_settle();
		}
	}
	assert_int_equal(stats(&s)->rkeys, 1);
	assert_int_equal(stats(&s)->aliases, alias);
	close_scene(&s);
}

static void test_shared_mappings(void **state)
{
	NEEDS_ALIASES();
	found(RW, MAP_SHARED, OS_ALL, true);
	found(RW, MAP_SHARED, FI_REMOTE_READ, true);
	found(PROT_READ, MAP_SHARED, FI_REMOTE_READ, true);
}

static void test_other_mappings(void **state)
{
	NEEDS_ALIASES();
	found(RW, MAP_PRIVATE, OS_ALL, false);
	found(RW, MAP_PRIVATE, FI_REMOTE_READ, false);
	g_unm_env.alias = false;	/* FI_UNIMEM_ALIAS=0 */
	found(RW, MAP_SHARED, OS_ALL, false);
	g_unm_env.alias = true;
}

/* For a region of the whole address space the target checks its memory at each
 * access. */
static void test_all_of_the_address_space(void **state)
{
	struct scene s;

	NEEDS_ALIASES();
	open_scene(&s, RW, MAP_SHARED);
	s.mr = os_reg(s.p.b, NULL, SIZE_MAX, OS_ALL, KEY);
	for (int i = 0; i < 3; i++)
		assert_false(adds(&s, (uintptr_t)s.mem));
	assert_int_equal(word(s.mem, 0), 3);
	assert_int_equal(stats(&s)->aliases, 0);
	close_scene(&s);
}

/* An initiator without such a mapping accesses the region like any other
 * memory. */
static void test_initiator_without_the_mapping(void **state)
{
	uint64_t value = 7, requests;
	struct scene s;

	NEEDS_ALIASES();
	open_scene(&s, RW, MAP_SHARED);
	s.mr = os_reg(s.p.b, s.mem, LEN, OS_ALL, KEY);
	EP_OK(fi_write(s.p.a->ep, &value, 8, NULL, s.p.ab, 0, KEY, &s));
	for (int i = 0; i < 100; i++)
		ep_poll(s.p.b);		/* b sends which memory it is */
	g_unm_env.alias = false;
	assert_int_equal(ep_wait(s.p.a, &s).err, 0);
	ep_settle();
	g_unm_env.alias = true;
	assert_int_equal(stats(&s)->rkeys, 1);
	assert_int_equal(stats(&s)->aliases, 0);
	requests = os_requests(&s.p);
	value = 8;
	EP_OK(fi_write(s.p.a->ep, &value, 8, NULL, s.p.ab, 8, KEY, &s));
	assert_int_equal(ep_wait(s.p.a, &s).err, 0);
	assert_int_equal(os_requests(&s.p) == requests, os_goes(OS_ATTACH));
	assert_int_equal(word(s.mem, 0), 7);
	assert_int_equal(word(s.mem, 8), 8);
	close_scene(&s);
}

/* ---- READ of 128 bits --------------------------------------------------- */

/* READs an element at the start of the region. Returns the error or 0; *asked:
 * b executed the READ. */
static int reads(struct scene *s, enum fi_datatype type, uint64_t got[2],
		 bool *asked)
{
	uint64_t was = os_requests(&s->p);
	int err;

	EP_OK(fi_fetch_atomic(s->p.a->ep, NULL, 1, NULL, got, NULL, s->p.ab, 0,
			      KEY, type, FI_ATOMIC_READ, s));
	err = ep_wait(s->p.a, s).err;
	ep_settle();
	*asked = os_requests(&s->p) != was;
	return err;
}

/*
 * A READ of 128 bits in a read-only region through a mapping with these rights,
 * on a machine with these 16-byte instructions: does the owner execute it, and
 * what is its result?
 */
static void wide_read(int have, int prot, bool owner, int error)
{
	const uint64_t want[2] = { 3, 5 };
	uint64_t got[2] = { 0 };
	int was = gsas_op_wide() | GSAS_WIDE_ASKED;
	struct scene s;
	uint8_t *low;
	bool asked;

	atomic_store(&g_gsas_op_wide, have | GSAS_WIDE_ASKED);
	open_scene(&s, prot, MAP_SHARED);
	assert_int_equal(pwrite(s.fd, want, sizeof(want), 0), sizeof(want));
	/* the kernel lists the lower one of two mappings first */
	munmap(s.mem, LEN);
	low = mmap(NULL, 3 * LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	assert_true(low != MAP_FAILED);
	map(s.fd, PROT_READ, MAP_SHARED | MAP_FIXED, low);
	s.mem = map(s.fd, prot, MAP_SHARED | MAP_FIXED, low + 2 * LEN);
	s.mr = os_reg(s.p.b, s.mem, LEN, FI_REMOTE_READ, KEY);
	/* asks for the remote key */
	assert_int_equal(reads(&s, FI_UINT64, got, &asked), 0);
	assert_int_equal(reads(&s, FI_UINT64, got, &asked), 0);
	assert_true(!asked && got[0] == 3);
	assert_int_equal(stats(&s)->aliases, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reads(&s, FI_UINT128, got, &asked), error);
		assert_int_equal(asked, owner);
	}
	if (error == 0)
		assert_memory_equal(got, want, sizeof(want));
	munmap(low, 2 * LEN);
	close_scene(&s);
	atomic_store(&g_gsas_op_wide, was);
}

/* Where READ of 128 bits has to store, it cannot be executed in memory that is
 * mapped read-only: neither by the initiator nor by the owner. */
static void test_wide_read(void **state)
{
	NEEDS_ALIASES();
	wide_read(GSAS_WIDE_CAS, RW, true, 0);
	wide_read(GSAS_WIDE_CAS, PROT_READ, true, FI_EFAULT);
}

static void test_wide_load(void **state)
{
	NEEDS_ALIASES();
	unit_needs(gsas_op_wide() & GSAS_WIDE_LOAD);
	wide_read(gsas_op_wide(), PROT_READ, false, 0);
}

/* ---- The end of an alias --------------------------------------------- */

/* A region whose memory the program has unmapped, so that only the alias maps
 * it. */
static void open_alias_only(struct scene *s)
{
	open_scene(s, RW, MAP_SHARED);
	s->mr = os_reg(s->p.b, s->mem, LEN, OS_ALL, KEY);
	adds(s, 0);
	assert_int_equal(proc_self_mappings(MEMORY), 2);
	munmap(s->mem, LEN);
	s->mem = NULL;
	assert_int_equal(proc_self_mappings(MEMORY), 1);
}

/* The alias is unmapped soon after the region is closed, even if the initiator
 * accesses that peer no more. */
static void test_memory_is_given_back(void **state)
{
	struct scene s;

	NEEDS_ALIASES();
	open_alias_only(&s);
	assert_int_equal(fi_close(&s.mr->fid), 0);
	s.mr = NULL;
	EP_UNTIL(proc_self_mappings(MEMORY) == 0);
	close_scene(&s);
}

/* The alias is closed with the endpoint, too. */
static void test_gone_with_its_endpoint(void **state)
{
	struct scene s;

	NEEDS_ALIASES();
	open_alias_only(&s);
	close_scene(&s);
	assert_int_equal(proc_self_mappings(MEMORY), 0);
}

/* A region that the initiator has an alias of. Returns another mapping of its
 * memory. */
static uint8_t *open_alias(struct scene *s)
{
	open_scene(s, RW, MAP_SHARED);
	s->mr = os_reg(s->p.b, s->mem, LEN, OS_ALL, KEY);
	adds(s, 64);
	assert_true(adds(s, 64));
	return map(s->fd, RW, MAP_SHARED, NULL);
}

/* The region has other memory: the initiator needs another alias. Each memory
 * has the two sums that were added to it. */
static void check_refreshed(struct scene *s, uint8_t *old)
{
	assert_false(adds(s, 64));
	assert_true(adds(s, 64));
	assert_int_equal(word(old, 64), 2);
	assert_int_equal(word(s->mem, 64), 2);
}

/* Other memory was mapped at the addresses, and fi_mr_refresh() called. */
static void test_refresh(void **state)
{
	struct iovec iov = { NULL, LEN };
	struct scene s;
	uint8_t *old;
	int fd;

	NEEDS_ALIASES();
	old = open_alias(&s);
	fd = file_new();
	map(fd, RW, MAP_SHARED | MAP_FIXED, s.mem);
	iov.iov_base = s.mem;
	assert_int_equal(fi_mr_refresh(s.mr, &iov, 1, 0), 0);
	check_refreshed(&s, old);
	assert_int_equal(stats(&s)->aliases, 2);
	munmap(old, LEN);
	close(fd);
	close_scene(&s);
}

/* a's connection to b. */
static struct unm_peer *peer_of(const struct scene *s)
{
	return ((struct unm_ep *)s->p.a->ep)->peer_of[s->p.ab];
}

/* fi_mr_refresh() and fi_mr_bind() give up on a peer that is in the middle of
 * an access: one line says so, no remote key of the old memory is sent any
 * more, and the next call waits again. */
static void test_refresh_gives_up(void **state)
{
	int fd, kept = g_unm_env.close_ms;
	struct iovec iov = { NULL, LEN };
	struct unit_capture ear;
	struct fid_cntr *cntr;
	struct scene s;
	char text[4096];
	uint8_t *old;

	NEEDS_ALIASES();
	old = open_alias(&s);
	fd = file_new();
	g_unm_env.close_ms = 1;
	assert_true(unm_guard_enter(peer_of(&s)));
	map(fd, RW, MAP_SHARED | MAP_FIXED, s.mem);
	iov.iov_base = s.mem;
	EP_OK(fi_cntr_open(s.p.b->domain, NULL, &cntr, NULL));
	for (int i = 0; i < 3; i++) {
		int ret;

		ear = unit_capture_begin();
		ret = i < 2 ? fi_mr_refresh(s.mr, &iov, 1, 0) :
			fi_mr_bind(s.mr, &cntr->fid, FI_REMOTE_WRITE);
		unit_capture_end(&ear, text, sizeof(text));
		assert_int_equal(ret, -FI_EBUSY);
		assert_non_null(strstr(text, i < 2 ?
				       "fi_mr_refresh() gives up " :
				       "fi_mr_bind() gives up "));
	}
	EP_CLOSE(&cntr->fid);
	unm_guard_leave(peer_of(&s));
	g_unm_env.close_ms = kept;
	check_refreshed(&s, old);
	assert_int_equal(fi_mr_refresh(s.mr, &iov, 1, 0), 0);
	munmap(old, LEN);
	close(fd);
	close_scene(&s);
}

UNIT_MAIN(
	EP_TEST(test_shared_mappings),
	EP_TEST(test_other_mappings),
	EP_TEST(test_all_of_the_address_space),
	EP_TEST(test_initiator_without_the_mapping),
	EP_TEST(test_wide_read),
	EP_TEST(test_wide_load),
	EP_TEST(test_memory_is_given_back),
	EP_TEST(test_gone_with_its_endpoint),
	EP_TEST(test_refresh),
	EP_TEST(test_refresh_gives_up),
)
