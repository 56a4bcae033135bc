/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_dma.c - does the register model do what the documents say of remote
 * stores, of the kernel device's memory and transfers, and of the AXI CDMA
 * engine? Each test names the paragraph: [D x.y] and [PG034] as in hal_regs.h,
 * [K] the call in hal_kdev.h, [13] section 13 of docs/hal.md.
 */
#include "lib/regs_engine.h"

/* ---- Stores and loads -------------------------------------------------- */

/* Rounds of two stores, the second of which may pass the first, and a barrier.
 * Returns how often only the second one was visible. */
static unsigned overtaken(const char *sim, uint64_t apart)
{
	struct hal_mmio *mm = device(sim, 0);
	struct memory m = memory(mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	unsigned n = 0;

	for (uint64_t i = 1; i <= 2000; i++) {
		io->store(&m.map, 0, &i, sizeof(i));
		io->store(&m.map, apart, &i, sizeof(i));
		n += at[0] != i && at[apart / 8] == i;
		io->stores_before_notify(&m.map);
		assert_true(at[0] == i && at[apart / 8] == i);
	}
	memory_free(&m);
	io->close(mm);
	return n;
}

/* [13] "none assumed ... the register model reorders stores unless that barrier
 * is used"; stores to the same place stay in order. */
static void stores_are_reordered(void **state)
{
	assert_in_range(overtaken("reorder=250", 64), 50, 1950);
	assert_in_range(overtaken("reorder=250", 1024), 50, 1950);
	assert_int_equal(overtaken("reorder=0", 64), 0);
	assert_int_equal(overtaken("reorder=900", 0), 0);
}

/* A later store to the same bytes is never overwritten by an earlier one. */
static void stores_to_one_place_in_order(void **state)
{
	struct hal_mmio *mm = device("reorder=500", 0);
	struct memory m = memory(mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	uint64_t seen = 0;

	for (uint64_t i = 1; i <= 5000; i++) {
		io->store(&m.map, 8 * (i % 64), &i, sizeof(i));
		io->store(&m.map, 2048, &i, sizeof(i));
		assert_true(at[256] >= seen);
		seen = at[256];
	}
	io->stores_before_notify(&m.map);
	for (uint64_t i = 4937; i <= 5000; i++)
		assert_true(at[i % 64] == i);
	assert_true(at[256] == 5000);
	memory_free(&m);
	io->close(mm);
}

/* hal_mmio.h: any length and alignment, no byte beside is changed. */
static void stores_of_any_shape(void **state)
{
	struct hal_mmio *mm = device("reorder=500", 0);
	struct memory m = memory(mm, 1, 4 * KIB);
	uint8_t image[4096] = { 0 }, piece[300], back[300];
	uint64_t rng = 1;

	for (uint64_t i = 0; i < 3000; i++) {
		size_t len = unit_below(&rng, sizeof(piece) + 1);
		size_t off = unit_below(&rng, (uint32_t)(4096 - len + 1));

		fill(piece, len, i);
		io->store(&m.map, off, piece, len);
		memcpy(image + off, piece, len);
		if (i % 7 != 0)
			continue;
		io->stores_before_notify(&m.map);
		io->load(&m.map, off, back, len);
		assert_memory_equal(back, piece, len);
		assert_memory_equal(m.map.base, image, sizeof(image));
	}
	memory_free(&m);
	io->close(mm);
}

/* ---- Memory [D 3.1.6, 3.3] --------------------------------------------- */

/* [K ALLOC] zeroed, whole pages, on the board asked for, disjoint. */
static void alloc_gives_clean_pages(void **state)
{
	struct hal_mmio *mm = device("fifo=8", 0);
	uint64_t before = 0;

	for (uint32_t i = 0; i < 200; i++) {
		struct memory m = memory(mm, i % BOARDS, 1 + i * 997);
		const uint8_t *p = m.map.base;

		assert_int_equal(m.a.bytes, (1 + i * 997 + 4095) / 4096 * 4096);
		assert_int_equal(hal_gaddr_board(m.gaddr), i % BOARDS);
		assert_true(m.a.ref != before);
		before = m.a.ref;
		assert_true(p[0] == 0 && memcmp(p, p + 1, m.a.bytes - 1) == 0);
		memset(m.map.base, 0xff, m.a.bytes);
		memory_free(&m);
	}
	io->close(mm);
}

/* [K ALLOC] its errors; memory that was freed can be allocated again. */
static void alloc_refuses(void **state)
{
	struct hal_mmio *mm = device("fifo=8", 0);
	struct hal_kdev_alloc a = { .bytes = 4096, .board = BOARDS };

	assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), -EINVAL);
	a.board = 1;
	a.bytes = 0;
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), -EINVAL);
	a.bytes = (16 << 20) + 1;
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), -ENOMEM);
	a.bytes = 4096;
	a.to = hal_id(1, 7, 1);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), -ESRCH);
	for (int i = 0; i < 3; i++) {
		struct memory m = memory(mm, 1, 9 << 20);

		a = (struct hal_kdev_alloc){ .bytes = 9 << 20, .board = 1 };
		assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), -ENOMEM);
		memory_free(&m);
	}
	io->close(mm);
}

/* [K IMPORT] by reference and secret; CHECK and DROP; a reference is used for
 * one region only. */
static void import_knows_who_holds(void **state)
{
	struct hal_mmio *mm = device("route=0", 0), *other = device("route=0",
								    1);
	struct memory m = memory(mm, 1, 4096);
	struct hal_kdev_import imp = { .ref = m.a.ref, .secret = 8 }, late;
	struct hal_kdev_hold h;

	assert_int_equal(kdev(other, HAL_KDEV_IO_IMPORT, &imp), -ESTALE);
	imp.secret = 7;
	imp.ref += 4096;
	assert_int_equal(kdev(other, HAL_KDEV_IO_IMPORT, &imp), -ESTALE);
	imp.ref = m.a.ref;
	assert_int_equal(kdev(other, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_int_equal(imp.bytes, 4096);
	assert_true(imp.owner == 0 && imp.owner_uid == geteuid());
	h.hold = imp.hold;
	assert_int_equal(kdev(other, HAL_KDEV_IO_CHECK, &h), 0);
	memcpy(m.map.base, "still here", 11);
	memory_free(&m);
	assert_int_equal(kdev(other, HAL_KDEV_IO_CHECK, &h), -ESTALE);
	assert_int_equal(io->map(other, imp.map_off, 4096, &m.map), 0);
	assert_string_equal(m.map.base, "still here");
	late = imp;
	late.hold = 0;
	assert_int_equal(kdev(other, HAL_KDEV_IO_IMPORT, &late), 0);
	io->unmap(&m.map);
	assert_int_equal(kdev(other, HAL_KDEV_IO_DROP, &h), 0);
	h.hold = late.hold;
	assert_int_equal(kdev(other, HAL_KDEV_IO_DROP, &h), 0);
	late.hold = 0;
	assert_int_equal(kdev(other, HAL_KDEV_IO_IMPORT, &late), -ESTALE);
	io->close(mm);
	io->close(other);
}

/* [K ALLOC] "until then it is nobody else's": a mapping keeps it. */
static void mapped_memory_stays(void **state)
{
	struct hal_mmio *mm = device("fifo=8", 0);
	struct memory m = memory(mm, 0, 4096);
	struct hal_kdev_hold h = { .hold = m.a.hold };

	assert_int_equal(kdev(mm, HAL_KDEV_IO_DROP, &h), 0);
	for (int i = 0; i < 8000; i++) {
		struct hal_kdev_alloc a = { .bytes = 4096 };

		assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &a), 0);
		assert_true((a.ref & HAL_GADDR_MASK) != m.gaddr);
		h.hold = a.hold;
		assert_int_equal(kdev(mm, HAL_KDEV_IO_DROP, &h), 0);
	}
	io->unmap(&m.map);
	io->close(mm);
}

/* [K ALLOC] for another interface: held by it at once, and found by its import;
 * each import needs its own drop. */
static void alloc_for_another(void **state)
{
	struct iface a = iface("route=0", 0), b = iface("route=0", 1);
	struct hal_kdev_alloc al = { .bytes = 4096, .secret = 5, .board = 1,
				     .to = b.c.identity };
	struct hal_kdev_import imp = { .secret = 5 };
	struct hal_kdev_hold h;
	uint32_t hold;

	assert_int_equal(kdev(a.mm, HAL_KDEV_IO_ALLOC, &al), 0);
	h.hold = al.hold;
	assert_int_equal(kdev(a.mm, HAL_KDEV_IO_DROP, &h), 0);
	imp.ref = al.ref;
	assert_int_equal(kdev(a.mm, HAL_KDEV_IO_IMPORT, &imp), -ESTALE);
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_true(imp.owner == a.c.identity && imp.owner_nonce == a.c.nonce);
	hold = imp.hold;
	/* not an import that is under way */
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_IMPORT, &imp), -EINVAL);
	imp.hold = 0;
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_int_not_equal(imp.hold, hold);
	h.hold = hold;
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_DROP, &h), 0);
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_DROP, &h), -EINVAL);
	h.hold = imp.hold;
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_DROP, &h), 0);
	imp.hold = 0;
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_IMPORT, &imp), -ESTALE);
	iface_close(&a);
	iface_close(&b);
}

/* [O 2.1; K IMPORT] a route takes its time, to another board's memory only. */
static void routes_take_time(void **state)
{
	struct hal_mmio *mm = device("tick=1,route=50", 0);
	struct memory here = memory(mm, 0, 4096), there = memory(mm, 1, 4096);
	struct hal_kdev_import imp = { .ref = here.a.ref, .secret = 7 };
	struct hal_kdev_hold h;
	int asked = 0;

	assert_int_equal(kdev(mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	imp.ref = there.a.ref;
	/* a hold can be dropped instead of asking again */
	imp.hold = 0;
	assert_int_equal(kdev(mm, HAL_KDEV_IO_IMPORT, &imp), -EAGAIN);
	h.hold = imp.hold;
	assert_int_equal(kdev(mm, HAL_KDEV_IO_DROP, &h), 0);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_DROP, &h), -EINVAL);
	imp.hold = 0;
	while (kdev(mm, HAL_KDEV_IO_IMPORT, &imp) == -EAGAIN)
		asked++;
	assert_int_equal(asked, 50);
	assert_int_equal(imp.bytes, 4096);
	memory_free(&here);
	memory_free(&there);
	io->close(mm);
}

/* ---- Transfers by the kernel [D 3.1.4] ---------------------------------- */

static ssize_t start(struct hal_mmio *mm, uint64_t src, uint64_t dst,
		     uint64_t size, uint64_t id)
{
	struct hal_kdev_xfer x = { src, dst, size, id };

	io->memory_before_start(mm);
	return io->write(mm, &x, sizeof(x));
}

static struct hal_kdev_status wait_status(struct hal_mmio *mm)
{
	struct hal_kdev_status st = { 0 };
	ssize_t n;

	do
		n = io->read(mm, &st, sizeof(st));
	while (n == -EAGAIN);
	io->status_before_memory(mm);
	assert_int_equal(n, sizeof(st));
	return st;
}

/* [K write] refused arguments; every alignment is valid. */
static void kernel_transfers(void **state)
{
	struct hal_mmio *mm = device("btt=16", 0);
	struct memory s = memory(mm, 0, 65536), d = memory(mm, 1, 65536);
	uint64_t rng = 1;

	assert_int_equal(start(mm, s.gaddr, d.gaddr, 0, 1), -EINVAL);
	assert_int_equal(start(mm, s.gaddr, d.gaddr, 65536, 1), -EINVAL);
	assert_int_equal(start(mm, s.gaddr + 1, d.gaddr, 65535, 0), -EINVAL);
	assert_int_equal(start(mm, s.gaddr + 2, d.gaddr, 65535, 1), -EFAULT);
	assert_int_equal(start(mm, s.gaddr, d.gaddr - 1, 9, 1), -EFAULT);
	fill(s.map.base, 65536, 3);
	for (uint64_t i = 1; i < 300; i++) {
		uint32_t n = 1 + unit_below(&rng, 3000);
		uint32_t from = unit_below(&rng, 60000);
		uint32_t to = unit_below(&rng, 60000);
		uint8_t *at = (uint8_t *)d.map.base + to;
		struct hal_kdev_status st;

		memset(d.map.base, 0, 65536);
		assert_int_equal(start(mm, s.gaddr + from, d.gaddr + to, n, i),
				 sizeof(struct hal_kdev_xfer));
		st = wait_status(mm);
		assert_true(st.id == i && st.state == HAL_KDEV_COMPLETED);
		assert_memory_equal(at, (uint8_t *)s.map.base + from, n);
		assert_true(at[-(to != 0)] == (to != 0 ? 0 : at[0]));
		assert_int_equal(at[n], 0);
	}
	memory_free(&s);
	memory_free(&d);
	io->close(mm);
}

/* [D 3.1.2] "no guarantee that the transfers will be completed in the same
 * order"; each completion is reported once; [K write] -EAGAIN at the depth. */
static void kernel_transfers_in_any_order(void **state)
{
	struct hal_mmio *mm = device("xfers=16,dma=100", 0);
	struct memory s = memory(mm, 0, 4096), d = memory(mm, 1, 4096);
	struct hal_kdev_xfer x[17];
	unsigned disorder = 0;

	for (uint64_t i = 0; i < 17; i++)
		x[i] = (struct hal_kdev_xfer){ s.gaddr, d.gaddr, 64, i + 1 };
	for (int round = 0; round < 50; round++) {
		uint32_t seen = 0;
		uint64_t last = 0;

		io->memory_before_start(mm);
		assert_int_equal(io->write(mm, x, sizeof(x)), 16 * sizeof(*x));
		io->memory_before_start(mm);
		assert_int_equal(io->write(mm, &x[16], sizeof(*x)), -EAGAIN);
		for (int i = 0; i < 16; i++) {
			struct hal_kdev_status st = wait_status(mm);

			assert_in_range(st.id, 1, 16);
			assert_false(seen >> st.id & 1);
			seen |= 1u << st.id;
			disorder += st.id < last;
			last = st.id;
		}
		assert_int_equal(io->read(mm, &seen, sizeof(seen)), -EAGAIN);
	}
	assert_true(disorder > 50);
	memory_free(&s);
	memory_free(&d);
	io->close(mm);
}

/* [K CANCEL] a cancelled transfer moves no more data and its end is reported; a
 * slave's error. */
static void kernel_transfers_end_badly(void **state)
{
	struct hal_mmio *mm = device("tick=1,dma=100000,slverr=0", 0);
	struct memory s = memory(mm, 0, 65536), d = memory(mm, 1, 65536);
	struct hal_kdev_cancel c = { .id = 1 };
	struct hal_kdev_status st;

	fill(s.map.base, 65536, 3);
	start(mm, s.gaddr, d.gaddr, 65536, 1);
	start(mm, s.gaddr, d.gaddr, 64, 2);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_CANCEL, &c), 0);
	memset(d.map.base, 0, 65536);
	st = wait_status(mm);
	assert_true(st.id == 1 && st.state == HAL_KDEV_CANCELLED);
	st = wait_status(mm);
	assert_true(st.id == 2 && st.state == HAL_KDEV_COMPLETED);
	assert_true(((uint8_t *)d.map.base)[65535] == 0);
	memory_free(&s);
	memory_free(&d);
	io->close(mm);
	mm = device("slverr=1000", 0);
	s = memory(mm, 0, 4096);
	start(mm, s.gaddr, s.gaddr + 64, 64, 3);
	st = wait_status(mm);
	assert_true(st.id == 3 && st.state == HAL_KDEV_FAILED);
	assert_int_equal(st.error, HAL_CDMA_SR_SLVERR);
	memory_free(&s);
	io->close(mm);
}

/* ---- The engine's registers [PG034] ------------------------------------- */

/* [K ENGINE] one process has it; the kernel refuses transfers meanwhile. */
static void engine_is_exclusive(void **state)
{
	struct hal_mmio *mm = device("btt=20", 0);
	struct memory m = memory(mm, 0, 4096);
	struct hal_kdev_engine k;
	struct hal_mmio_map map;
	struct engine e;

	assert_int_equal(io->map(mm, hal_kdev_off(HAL_KDEV_CDMA, 0),
				 HAL_CDMA_BYTES, &map), -EACCES);
	start(mm, m.gaddr, m.gaddr + 64, 64, 1);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ENGINE, &k), -EBUSY);
	wait_status(mm);
	e = engine("btt=20");
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ENGINE, &k), -EBUSY);
	assert_int_equal(start(mm, m.gaddr, m.gaddr + 64, 64, 1), -EBUSY);
	engine_close(&e);
	start(mm, m.gaddr, m.gaddr + 64, 64, 1);
	wait_status(mm);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_ENGINE, &k), 0);
	assert_int_equal(k.btt_bits, 20);
	memory_free(&m);
	io->close(mm);
}

/* [PG034 CDMACR, CDMASR] after a reset: idle, no error, tail pointer mode. */
static void engine_after_reset(void **state)
{
	struct engine e = engine("sg=1");

	assert_int_equal(reg(&e, HAL_CDMA_CR), 0x00010002);
	assert_int_equal(reg(&e, HAL_CDMA_SR), 0x0001000a);
	engine_close(&e);
	e = engine("sg=0");
	assert_int_equal(reg(&e, HAL_CDMA_SR), 0x00010002);
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_SGMODE);
	assert_int_equal(reg(&e, HAL_CDMA_CR) & HAL_CDMA_CR_SGMODE, 0);
	engine_close(&e);
}

/* [PG034 BTT] any length below the counter's, any alignment; IOC_Irq is set
 * and cleared by writing 1. */
static void engine_simple(void **state)
{
	struct engine e = engine("btt=14");
	uint8_t *s = e.s.map.base, *d = e.d.map.base;
	uint64_t rng = 1;

	for (int i = 0; i < 300; i++) {
		uint32_t n = 1 + unit_below(&rng, 3000);
		uint32_t from = unit_below(&rng, 60000);
		uint32_t to = unit_below(&rng, 60000);

		memset(d, 0, 64 * KIB);
		assert_int_equal(simple(&e, e.s.gaddr + from, e.d.gaddr + to,
					n) & (HAL_CDMA_SR_ERRORS |
					      HAL_CDMA_SR_IOC_IRQ),
				 HAL_CDMA_SR_IOC_IRQ);
		set(&e, HAL_CDMA_SR, HAL_CDMA_SR_IOC_IRQ);
		assert_false(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IOC_IRQ);
		assert_memory_equal(d + to, s + from, n);
		assert_int_equal(d[to + n], 0);
	}
	engine_close(&e);
}

/* [PG034 BTT] the counter has so many bits and ignores higher ones: long
 * transfers must be split. */
static void engine_counts_so_far(void **state)
{
	struct engine e = engine("btt=14");
	uint8_t *d = e.d.map.base;

	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 16384 + 100) &
			 HAL_CDMA_SR_ERRORS, 0);
	assert_memory_equal(d, e.s.map.base, 100);
	assert_true(d[100] == 0 && memcmp(d + 100, d + 101, 20000) == 0);
	engine_close(&e);
}

/* [PG034 CDMASR] DMAIntErr, DMADecErr, DMASlvErr; only a reset helps. */
static void engine_errors(void **state)
{
	struct engine e = engine("slverr=0");
	uint64_t nowhere = hal_dest(BOARDS, 0, 0);

	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 0) &
			 (HAL_CDMA_SR_ERRORS | HAL_CDMA_SR_ERR_IRQ),
			 HAL_CDMA_SR_INTERR | HAL_CDMA_SR_ERR_IRQ);
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 64) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_INTERR);
	assert_int_equal(((uint8_t *)e.d.map.base)[0], 0);
	reset(&e);
	assert_int_equal(simple(&e, nowhere, e.d.gaddr, 64) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_DECERR);
	reset(&e);
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr + 64 * KIB - 1, 2) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_DECERR);
	reset(&e);
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 64) &
			 HAL_CDMA_SR_ERRORS, 0);
	assert_memory_equal(e.d.map.base, e.s.map.base, 64);
	engine_close(&e);
	e = engine("slverr=1000");
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 64) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_SLVERR);
	engine_close(&e);
}

/* A slow engine stays busy, and a reset stops it. */
static void engine_is_slow(void **state)
{
	struct engine e = engine("tick=1,dma=1000");
	int looks = 0;

	set_addr(&e, HAL_CDMA_SA, e.s.gaddr);
	set_addr(&e, HAL_CDMA_DA, e.d.gaddr);
	set(&e, HAL_CDMA_BTT, 8192);
	while (!(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IDLE))
		looks++;
	assert_in_range(looks, 1990, 2000);
	set(&e, HAL_CDMA_BTT, 8192);
	assert_false(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IDLE);
	reset(&e);
	assert_true(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IDLE);
	engine_close(&e);
}

/* ---- Scatter-gather ----------------------------------------------------- */

static bool piece_there(const struct engine *e, uint32_t i)
{
	return memcmp((uint8_t *)e->d.map.base + i * 100,
		      (uint8_t *)e->s.map.base + i * 333, 100) == 0;
}

/* [PG034 SG] up to the tail, done bits; a new tail goes on from there. */
static void sg_chain(void **state)
{
	struct engine e = engine("sg=1");
	uint64_t base;
	struct hal_cdma_desc *d = chain(&e, &base);

	assert_int_equal(run(&e, base, 4) & HAL_CDMA_SR_ERRORS, 0);
	for (uint32_t i = 0; i < CHAIN; i++) {
		assert_int_equal(d[i].status, i <= 4 ? HAL_CDMA_DESC_DONE : 0);
		assert_true(piece_there(&e, i) == (i <= 4));
	}
	set_addr(&e, HAL_CDMA_TAILDESC, base + 7 * sizeof(*d));
	assert_int_equal(idle(&e) & HAL_CDMA_SR_ERRORS, 0);
	for (uint32_t i = 0; i < CHAIN; i++)
		assert_true(piece_there(&e, i) && d[i].status ==
			    HAL_CDMA_DESC_DONE);
	/* [PG034 CURDESC] cleared where SGMode is 0 */
	set(&e, HAL_CDMA_CR, 0);
	assert_int_equal(reg(&e, HAL_CDMA_CURDESC), 0);
	assert_int_equal(reg(&e, HAL_CDMA_TAILDESC), 0);
	engine_close(&e);
}

/* [PG034 CDMASR, status word] SGIntErr: done already; SGDecErr; a descriptor's
 * own errors, in it and in the register. */
static void sg_errors(void **state)
{
	struct engine e = engine("sg=1");
	uint64_t base;
	struct hal_cdma_desc *d = chain(&e, &base);

	d[2].status = HAL_CDMA_DESC_DONE;
	assert_int_equal(run(&e, base, 7) & HAL_CDMA_SR_ERRORS,
			 HAL_CDMA_SR_SGINTERR);
	assert_true(piece_there(&e, 1) && !piece_there(&e, 3));
	reset(&e);
	d = chain(&e, &base);
	d[1].next_msb = 0xff;
	assert_int_equal(run(&e, base, 7) & HAL_CDMA_SR_ERRORS,
			 HAL_CDMA_SR_SGDECERR);
	assert_true(piece_there(&e, 1) && !piece_there(&e, 2));
	reset(&e);
	d = chain(&e, &base);
	d[1].next += 4;
	assert_int_equal(run(&e, base, 7) & HAL_CDMA_SR_ERRORS,
			 HAL_CDMA_SR_SGDECERR);
	reset(&e);
	d = chain(&e, &base);
	d[3].control = 0;
	assert_int_equal(run(&e, base, 7) & HAL_CDMA_SR_ERRORS,
			 HAL_CDMA_SR_INTERR);
	assert_int_equal(d[3].status,
			 HAL_CDMA_DESC_DONE | HAL_CDMA_DESC_INTERR);
	reset(&e);
	d = chain(&e, &base);
	d[3].dst_msb = 0xff;
	assert_int_equal(run(&e, base, 7) & HAL_CDMA_SR_ERRORS,
			 HAL_CDMA_SR_DECERR);
	assert_int_equal(d[3].status,
			 HAL_CDMA_DESC_DONE | HAL_CDMA_DESC_DECERR);
	assert_int_equal(d[4].status, 0);
	engine_close(&e);
}

/* ---- Mutants ------------------------------------------------------------ */

/* Is the end of each transfer reported once, and after its data? [D 3.1.2] */
static bool ends_are_true(const char *sim)
{
	struct hal_mmio *mm = device(sim, 0);
	struct memory s = memory(mm, 0, 4096), d = memory(mm, 1, 4096);
	bool good = true;

	for (uint64_t i = 1; i <= 50 && good; i++) {
		struct hal_kdev_status st;

		fill(s.map.base, 4096, i);
		start(mm, s.gaddr, d.gaddr, 4096, i);
		st = wait_status(mm);
		good = st.id == i && st.state == HAL_KDEV_COMPLETED &&
		       memcmp(s.map.base, d.map.base, 4096) == 0 &&
		       io->read(mm, &st, sizeof(st)) == -EAGAIN;
	}
	io->status_before_memory(mm);
	memory_free(&s);
	memory_free(&d);
	io->close(mm);
	return good;
}

static bool engine_is_true(const char *sim)
{
	struct engine e = engine(sim);
	bool good = !(simple(&e, e.s.gaddr, e.d.gaddr, 64 * KIB) &
		      HAL_CDMA_SR_ERRORS) &&
		    memcmp(e.s.map.base, e.d.map.base, 64 * KIB) == 0;

	engine_close(&e);
	return good;
}

static void mutants_are_noticed(void **state)
{
	assert_true(ends_are_true("dma=0"));
	assert_true(ends_are_true("dma=1000"));
	assert_false(ends_are_true("mutant=twice"));
	assert_false(ends_are_true("mutant=early"));
	assert_true(engine_is_true("dma=1000"));
	assert_false(engine_is_true("mutant=early"));
}

REGS_MAIN(
	cmocka_unit_test(stores_are_reordered),
	cmocka_unit_test(stores_to_one_place_in_order),
	cmocka_unit_test(stores_of_any_shape),
	cmocka_unit_test(alloc_gives_clean_pages),
	cmocka_unit_test(alloc_refuses),
	cmocka_unit_test(import_knows_who_holds),
	cmocka_unit_test(mapped_memory_stays),
	cmocka_unit_test(alloc_for_another),
	cmocka_unit_test(routes_take_time),
	cmocka_unit_test(kernel_transfers),
	cmocka_unit_test(kernel_transfers_in_any_order),
	cmocka_unit_test(kernel_transfers_end_badly),
	cmocka_unit_test(engine_is_exclusive),
	cmocka_unit_test(engine_after_reset),
	cmocka_unit_test(engine_simple),
	cmocka_unit_test(engine_counts_so_far),
	cmocka_unit_test(engine_errors),
	cmocka_unit_test(engine_is_slow),
	cmocka_unit_test(sg_chain),
	cmocka_unit_test(sg_errors),
	cmocka_unit_test(mutants_are_noticed),
)
