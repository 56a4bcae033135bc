/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unpinned.c - memory that the processor can access and the kernel can not
 * pin: memfd_secret(2). In another process neither the engine nor cross-memory
 * attach can access it (-FI_EFAULT), so messages are sent in pieces, and puts
 * and gets as requests. An address without memory causes one error on each side
 * that is involved, and no signal.
 */
#include <sys/syscall.h>

#include "lib/ep_xfer.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret	447
#endif
#define LEN	((size_t)1 << 20)
#define KEY	77

static const size_t lens[] = { 8, 4096, 65536, LEN };
#define NLENS	(sizeof(lens) / sizeof(lens[0]))

/* NULL: the kernel does not have it, or does not permit it. */
static uint8_t *secret_map(void)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);
	void *mem = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, LEN) == 0)
		mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
	if (fd >= 0)
		close(fd);
	return mem != MAP_FAILED ? mem : NULL;
}

static uint8_t *plain_map(void)
{
	void *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

/* Addresses without memory */
static uint8_t *no_map(void)
{
	uint8_t *mem = plain_map();

	unit_take_memory(mem, LEN);
	return mem;
}

/* ---- Messages ---------------------------------------------------------- */

/* Is the receive posted before the message comes? */
enum { UNEXPECTED, EXPECTED };

static void one_message(struct ep_pair *p, uint8_t *out, uint8_t *in,
			size_t len, bool expected)
{
	xfer_fill(out, len, len, 0);
	memset(in, 0, len);
	if (expected)
		EP_OK(fi_recv(p->b->ep, in, len, NULL, p->ba, in));
	EP_OK(fi_send(p->a->ep, out, len, NULL, p->ab, out));
	if (!expected) {
		ep_settle();
		EP_OK(fi_recv(p->b->ep, in, len, NULL, p->ba, in));
	}
	assert_int_equal(ep_received(p->b, in).len, len);
	ep_sent(p->a, out);
	assert_true(xfer_filled(in, len, len, 0));
}

static void test_messages(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *secret = secret_map(), *other = secret_map();
	uint8_t *plain = plain_map();

	unit_needs(secret != NULL && other != NULL);
	for (size_t i = 0; i < 2 * NLENS; i++) {
		one_message(&p, secret, plain, lens[i / 2], i & 1);
		one_message(&p, plain, secret, lens[i / 2], i & 1);
		one_message(&p, other, secret, lens[i / 2], i & 1);
		/* and attach is still used */
		one_message(&p, plain, plain + LEN / 2, lens[i / 2] / 2,
			    i & 1);
	}
	munmap(secret, LEN);
	munmap(other, LEN);
	munmap(plain, LEN);
}

/* The buffer of one side is not mapped: its owner gets FI_EFAULT, the other
 * side FI_EIO. */
static void test_messages_of_bad_buffers(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *plain = plain_map(), *none = no_map();
	int was = g_unm_env.stream_us;
	struct ep_comp c;

	one_message(&p, plain, plain + LEN / 2, 8, EXPECTED);
	if (!g_unm_env.attach || !os_goes(OS_ATTACH))
		skip();			/* each side would copy, which is a
					 * signal */
	g_unm_env.stream_us = 0;	/* else each side would copy as well */
	EP_OK(fi_recv(p.b->ep, plain, LEN, NULL, p.ba, plain));
	EP_OK(fi_send(p.a->ep, none, LEN, NULL, p.ab, none));
	assert_int_equal(ep_wait(p.a, none).err, FI_EFAULT);
	c = ep_wait(p.b, plain);
	assert_int_equal(c.err, FI_EIO);
	EP_OK(fi_recv(p.b->ep, none, LEN, NULL, p.ba, none));
	EP_OK(fi_send(p.a->ep, plain, LEN, NULL, p.ab, plain));
	assert_int_equal(ep_wait(p.b, none).err, FI_EFAULT);
	assert_int_equal(ep_wait(p.a, plain).err, FI_EIO);
	ep_pair_quiet(&p);
	one_message(&p, plain, plain + LEN / 2, LEN / 2, EXPECTED);
	g_unm_env.stream_us = was;
	munmap(plain, LEN);
}

/* ---- One-sided --------------------------------------------------------- */

struct sides {
	struct os_pair p;
	struct fid_mr *mr;		/* of the memory target */
	uint64_t base;
	uint8_t *target, *local;
};

static int put(struct sides *s, size_t len)
{
	EP_OK(fi_write(s->p.a->ep, s->local, len, NULL, s->p.ab, s->base, KEY,
		       s));
	return ep_wait(s->p.a, s).err;
}

static int get(struct sides *s, size_t len)
{
	EP_OK(fi_read(s->p.a->ep, s->local, len, NULL, s->p.ab, s->base, KEY,
		      s));
	return ep_wait(s->p.a, s).err;
}

/* A region of b, whose remote key a caches if possible. */
static struct sides sides(uint8_t *target, uint8_t *local, bool holes)
{
	struct sides s = { .p = os_open(OS_ATTACH, 64), .target = target,
			   .local = local };

	s.base = holes ? (uintptr_t)target : 0;
	s.mr = os_reg(s.p.b, holes ? NULL : target, holes ? SIZE_MAX : LEN,
		      OS_ALL, KEY);
	return s;
}

static void sides_end(struct sides *s)
{
	assert_int_equal(fi_close(&s->mr->fid), 0);
	os_close(&s->p);
}

static void both_ways(struct sides *s)
{
	for (size_t i = 0; i < 2 * NLENS; i++) {
		size_t len = lens[i / 2];

		xfer_fill(s->local, len, i + 1, 0);
		assert_int_equal(put(s, len), 0);
		assert_true(xfer_filled(s->target, len, i + 1, 0));
		xfer_fill(s->target, len, i + 100, 0);
		assert_int_equal(get(s, len), 0);
		assert_true(xfer_filled(s->local, len, i + 100, 0));
		ep_settle();	/* the next one is executed directly if
				 * possible */
	}
}

static void test_puts_and_gets(void **state)
{
	uint8_t *secret = secret_map(), *other = secret_map();
	uint8_t *plain = plain_map();

	unit_needs(secret != NULL && other != NULL);
	for (int i = 0; i < 4; i++) {
		struct sides s = sides(i == 2 ? plain : secret, i == 0 ? plain :
				       other, i == 3);

		both_ways(&s);
		sides_end(&s);
	}
	munmap(secret, LEN);
	munmap(other, LEN);
	munmap(plain, LEN);
}

static void test_atomics(void **state)
{
	uint8_t *secret = secret_map();
	uint64_t one = 1, was = 0;
	struct sides s;

	unit_needs(secret != NULL);
	s = sides(secret, secret + LEN / 2, false);
	for (uint64_t i = 0; i < 4; i++) {
		EP_OK(fi_fetch_atomic(s.p.a->ep, &one, 1, NULL, &was, NULL,
				      s.p.ab, 0, KEY, FI_UINT64, FI_SUM, &s));
		assert_int_equal(ep_wait(s.p.a, &s).err, 0);
		assert_int_equal(was, i);
		assert_int_equal(put(&s, 0), 0);
	}
	sides_end(&s);
	munmap(secret, LEN);
}

/* Either of the two addresses is not mapped: one error, and the next operation
 * succeeds. */
static void test_bad_addresses(void **state)
{
	uint8_t *plain = plain_map(), *good = plain_map(), *none;
	struct sides s;

	if (!os_goes(OS_ATTACH))
		skip();			/* requests would copy, which is a
					 * signal */
	s = sides(plain, good, false);
	both_ways(&s);
	none = no_map();
	s.local = none;
	assert_int_equal(put(&s, 65536), FI_EFAULT);
	assert_int_equal(get(&s, 65536), FI_EFAULT);
	s.local = good;
	both_ways(&s);
	/* memory that its owner may only read */
	memset(plain, 0x3C, LEN);
	assert_int_equal(mprotect(plain, LEN, PROT_READ), 0);
	assert_int_equal(put(&s, 8), FI_EFAULT);
	assert_int_equal(put(&s, LEN), FI_EFAULT);
	assert_int_equal(plain[0], 0x3C);
	assert_int_equal(plain[LEN - 1], 0x3C);
	assert_int_equal(get(&s, LEN), 0);
	assert_int_equal(mprotect(plain, LEN, PROT_NONE), 0);
	assert_int_equal(get(&s, LEN), FI_EFAULT);
	/* half of the result may be sent before the check fails */
	assert_int_equal(mprotect(plain, LEN / 2, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(get(&s, LEN), FI_EFAULT);
	assert_int_equal(get(&s, LEN / 2), 0);
	assert_int_equal(munmap(plain, LEN), 0);
	assert_int_equal(put(&s, 8), FI_EFAULT);
	assert_int_equal(put(&s, LEN), FI_EFAULT);
	assert_int_equal(get(&s, 65536), FI_EFAULT);
	assert_ptr_equal(mmap(plain, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			      MAP_ANONYMOUS | MAP_FIXED, -1, 0), plain);
	both_ways(&s);
	sides_end(&s);
	munmap(plain, LEN);
	munmap(good, LEN);
}

UNIT_MAIN(
	EP_TEST(test_messages),
	EP_TEST_INSIDE(test_messages_of_bad_buffers),
	EP_TEST(test_puts_and_gets),
	EP_TEST(test_atomics),
	EP_TEST(test_bad_addresses),
)
