/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs.c - does the register model do what the papers say of mailboxes and
 * packetizers? Each test names the paragraph: [D x.y] as in hal_regs.h, [13]
 * section 13 of docs/hal.md.
 *
 * Transfers and memory are in test_regs_dma.c, processes in
 * test_regs_proc.c.
 */
#include "lib/regs_fixture.h"

/* ---- Mailboxes --------------------------------------------------------- */

/* [D 5.1.1] "A read request to an empty FIFO, will return CAFEBEBE..." */
static void mif_empty_pattern(void **state)
{
	struct iface b = iface("fifo=8", 0);
	uint64_t w[2] = { 0 };

	for (int i = 0; i < 3; i++) {
		assert_false(take_word(&b, w));
		assert_true(w[0] == UINT64_C(0xCAFEBEBEDEADBEAF));
		assert_true(w[1] == w[0]);
	}
	iface_close(&b);
}

/* [D 2.3.3, 2.3.5] spell it CAFEBEBEDEADBEEF. */
static void mif_empty_pattern_beef(void **state)
{
	struct iface a = iface("fifo=8,empty=beef", 0);
	struct iface b = iface("fifo=8,empty=beef", 1);
	uint64_t w[2] = { 0 };

	io->read128(&b.mif, HAL_MIF_DATA, w);
	assert_true(w[0] == UINT64_C(0xCAFEBEBEDEADBEEF) && w[1] == w[0]);
	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 1));
	io->read128(&b.mif, HAL_MIF_DATA, w);
	assert_true(w[0] == UINT64_C(0xCAFEBEBEDEADBEEF) && w[1] == w[0]);
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.1.1] a write enqueues, and reads return "the actual dequeues"; [13] data
 * may equal the pattern: words behind a valid first word are not compared with
 * it. */
static void mif_words_in_order(void **state)
{
	struct iface b = iface("fifo=8", 0);
	uint64_t w[2];

	for (uint64_t lap = 0; lap < 100; lap++) {
		for (uint64_t i = 0; i < 1 + lap % 8; i++) {
			w[0] = i == 2 ? HAL_MIF_EMPTY : lap << 32 | i;
			w[1] = i == 2 ? HAL_MIF_EMPTY : ~i;
			io->write128(&b.mif, HAL_MIF_DATA, w);
		}
		for (uint64_t i = 0; i < 1 + lap % 8; i++) {
			io->read128(&b.mif, HAL_MIF_DATA, w);
			io->status_before_memory(b.mm);
			assert_true(w[0] == (i == 2 ? HAL_MIF_EMPTY :
					     lap << 32 | i));
			assert_true(w[1] == (i == 2 ? HAL_MIF_EMPTY : ~i));
		}
		assert_false(take_word(&b, w));
	}
	iface_close(&b);
}

/* [D 5.1.1] "a single-word request to a full FIFO" is refused: it is lost. */
static void mif_full_takes_no_word(void **state)
{
	struct iface b = iface("fifo=8", 0);
	uint64_t w[2];

	for (uint64_t i = 0; i < 10; i++) {
		w[0] = i;
		w[1] = 0;
		io->write128(&b.mif, HAL_MIF_DATA, w);
	}
	for (uint64_t i = 0; i < 8; i++)
		assert_true(take_word(&b, w) && w[0] == i);
	assert_false(take_word(&b, w));
	iface_close(&b);
}

/* [D 5.1.1] "A multi-word request to a full FIFO will always return a negative
 * acknowledgment", and [D 5.2.3] NACK lasts until the next transmission. */
static void mif_full_refuses(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
	for (uint64_t i = 4; i < 50; i++) {
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_NACK);
		assert_int_equal(status_of(&a), HAL_PIF_NACK);
		assert_true(take_packet(&b, &a, i - 4));
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
		assert_int_equal(status_of(&a), HAL_PIF_ACK);
	}
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.1.2] a burst that does not fit: "the fourth will be rejected. However,
 * a positive acknowledgment will be returned". */
static void mif_partial_burst(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	uint64_t w[2] = { 0 };

	for (int i = 0; i < 7; i++)
		io->write128(&b.mif, HAL_MIF_DATA, w);
	assert_int_equal(send_packet(&a, &b, 5), HAL_PIF_ACK);
	for (int i = 0; i < 7; i++)
		assert_true(take_word(&b, w) && w[0] == 0);
	assert_true(take_word(&b, w));
	assert_true(w[0] == (hal_head(1, 2) | a.c.identity) && w[1] == 5);
	assert_false(take_word(&b, w));
	iface_close(&a);
	iface_close(&b);
}

/*
 * [13] "depth is even, so a full FIFO is always a clean NACK": also while a
 * reader is between the two words of a packet. If freed words are seen one by
 * one (pairs=0), half a packet is taken then: the fault of [D 5.1.2].
 */
static void mif_half_read(const char *sim, uint32_t status)
{
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t w[2];
	unsigned n = 0;

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
	assert_true(take_word(&b, w));
	assert_int_equal(send_packet(&a, &b, 4), status);
	while (take_word(&b, w))
		n++;
	assert_int_equal(n, status == HAL_PIF_ACK ? 8 : 7);
	iface_close(&a);
	iface_close(&b);
}

static void mif_full_refuses_readers_halfway(void **state)
{
	mif_half_read("fifo=8", HAL_PIF_NACK);
	mif_half_read("fifo=8,pairs=0", HAL_PIF_ACK);
}

/* [D 5.1] FIFOs are independent. */
static void mif_are_independent(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	struct iface c = iface("fifo=8", 1);
	uint64_t w[2];

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
	assert_int_equal(send_packet(&a, &b, 4), HAL_PIF_NACK);
	assert_int_equal(send_packet(&a, &c, 9), HAL_PIF_ACK);
	assert_true(take_packet(&c, &a, 9));
	assert_false(take_word(&c, w));
	iface_close(&a);
	iface_close(&b);
	iface_close(&c);
}

/* ---- Packetizers ------------------------------------------------------- */

/*
 * [D 5.2.3] "three writes in any order. The third write will trigger". PEND is
 * "in preparation or transmission" [D table 5]: boards may or may not take one
 * write for a preparation, and the model does either (prep).
 */
static void three_writes(const char *sim, bool prep)
{
	static const uint8_t orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t w[2];

	for (uint64_t n = 0; n < 6; n++) {
		const uint64_t regs[3][2] = {
			{ hal_head(1, 2), n }, { ~n, n * 3 },
			{ dest_of(&b), 0 },
		};

		for (int i = 0; i < 3; i++) {
			uint32_t reg = orders[n][i];

			assert_false(take_word(&b, w));
			io->memory_before_start(a.mm);
			io->write128(&a.pif, reg * HAL_MIF_WORD, regs[reg]);
			io->read128(&a.pif, reg * HAL_MIF_WORD, w);
			assert_true(w[0] == regs[reg][0]);
			if (prep && i != 2)
				assert_true(status_of(&a) & HAL_PIF_PEND);
			else
				assert_int_equal(settled(&a),
						 i == 2 || n != 0 ?
						 HAL_PIF_ACK : 0);
		}
		assert_true(take_packet(&b, &a, n));
	}
	iface_close(&a);
	iface_close(&b);
}

static void pif_three_writes(void **state)
{
	three_writes("fifo=8", false);
	three_writes("fifo=8,prep=1", true);
}

/* Two writes to the same register count as one of the three, the later one. */
static void pif_same_write_twice(void **state)
{
	const uint64_t stale[2] = { hal_head(9, 9), 99 };
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);

	io->write128(&a.pif, HAL_PIF_PAYLOAD0, stale);
	assert_int_equal(send_packet(&a, &b, 3), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 3));
	iface_close(&a);
	iface_close(&b);
}

/* [D 2.2.3, figure 8; 5.2.2] bits 47:0 come from the PID table, whatever the
 * sender writes there (put_packet() writes ones). */
static void pif_identity_is_stamped(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	uint64_t w[2];

	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_true(take_word(&b, w));
	assert_true((w[0] & HAL_ID_MASK) == a.c.identity);
	assert_true(take_word(&b, w));
	/* [D table 4] "the value 0x123456CABEBE" */
	io->write64(&a.tif, HAL_TIF_PID(a.c.iface),
		    UINT64_C(0xffff123456CABEBE));
	assert_true(io->read64(&a.tif, HAL_TIF_PID(a.c.iface)) ==
		    UINT64_C(0x123456CABEBE));
	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_true(take_word(&b, w));
	assert_true(w[0] == (hal_head(1, 2) | UINT64_C(0x123456CABEBE)));
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.2.3] PEND "as soon as it becomes zero, the user should check"; [D 5.2.4]
 * one buffer: words written meanwhile are lost, and OVERWR_BUF is set. */
static void pif_pending_and_overwritten(void **state)
{
	static const char sim[] = "fifo=8,tick=1,delay=1000000";
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t w[2];

	put_packet(&a, dest_of(&b), 1);
	assert_int_equal(status_of(&a), HAL_PIF_PEND);
	assert_false(take_word(&b, w));
	put_packet(&a, dest_of(&b), 2);
	assert_int_equal(status_of(&a), HAL_PIF_PEND | HAL_PIF_OVERWR);
	assert_int_equal(settled(&a), HAL_PIF_ACK | HAL_PIF_OVERWR);
	assert_true(take_packet(&b, &a, 1));
	assert_false(take_word(&b, w));
	assert_int_equal(send_packet(&a, &b, 3), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 3));
	iface_close(&a);
	iface_close(&b);
}

/* A packet arrives even if its sender does not poll any more, and may arrive
 * long before it is acknowledged [13: PEND, ACK and NACK come later]. */
static void pif_arrives_by_itself(void **state)
{
	static const char sim[] = "fifo=8,tick=1,delay=10000,ack=1000000000";
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t w[2] = { 0 };
	int looks = 0;

	put_packet(&a, dest_of(&b), 1);
	while (!take_word(&b, w) && looks < 100000)
		looks++;
	assert_true(w[0] == (hal_head(1, 2) | a.c.identity) && w[1] == 1);
	assert_int_equal(status_of(&a), HAL_PIF_PEND);
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.2.4] "consecutive PIF setups on different pages are freely allowed". */
static void pif_are_independent(void **state)
{
	static const char sim[] = "fifo=8,tick=1,delay=1000000";
	struct iface a = iface(sim, 0), c = iface(sim, 0), b = iface(sim, 1);

	put_packet(&a, dest_of(&b), 1);
	put_packet(&c, dest_of(&b), 2);
	assert_int_equal(status_of(&a), HAL_PIF_PEND);
	assert_int_equal(status_of(&c), HAL_PIF_PEND);
	assert_int_equal(settled(&a), HAL_PIF_ACK);
	assert_int_equal(settled(&c), HAL_PIF_ACK);
	iface_close(&a);
	iface_close(&b);
	iface_close(&c);
}

/* If its bit of PID_CONF is off, a's packetizer sends nothing; its status must
 * be this one. */
static void not_configured(const struct iface *a, const struct iface *b,
			   uint32_t status)
{
	uint64_t conf = io->read64(&a->tif, HAL_TIF_PID_CONF), w[2];

	assert_true(conf >> a->c.iface & 1);
	io->write64(&a->tif, HAL_TIF_PID_CONF,
		    conf & ~(UINT64_C(1) << a->c.iface));
	assert_int_equal(send_packet(a, b, 1), status);
	assert_false(take_word(b, w));
	io->write64(&a->tif, HAL_TIF_PID_CONF, conf);
}

/*
 * [D 5.2.2, table 4] BASE_DEST 33:18: "the destination address was illegal". [D
 * table 5] ACK "becomes zero again upon the next packet transmission": an
 * illegal packet is not transmitted, so the ACK of the packet before is set
 * beside ILLEGAL. The paper does not say when ILLEGAL clears: both ways are
 * modelled (keeps).
 */
static void illegal_destination(const char *sim, bool keeps)
{
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t base = io->read64(&a.tif, HAL_TIF_BASE_DEST), w[2];

	for (int bit = 18; bit <= 33; bit++) {
		put_packet(&a, dest_of(&b) ^ UINT64_C(1) << bit, 1);
		assert_int_equal(settled(&a), HAL_PIF_ILLEGAL);
	}
	assert_false(take_word(&b, w));
	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 1));
	io->write64(&a.tif, HAL_TIF_BASE_DEST, base ^ UINT64_C(1) << 20);
	for (int i = 0; i < 2; i++)
		assert_int_equal(send_packet(&a, &b, 2),
				 HAL_PIF_ILLEGAL | HAL_PIF_ACK);
	assert_false(take_word(&b, w));
	not_configured(&a, &b, (keeps ? HAL_PIF_ILLEGAL : 0) | HAL_PIF_ACK);
	io->write64(&a.tif, HAL_TIF_BASE_DEST, base | 0x3ffff);
	assert_true(io->read64(&a.tif, HAL_TIF_BASE_DEST) == base);
	assert_int_equal(send_packet(&a, &b, 3), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 3));
	iface_close(&a);
	iface_close(&b);
}

static void pif_illegal_destination(void **state)
{
	illegal_destination("fifo=8", true);
	illegal_destination("fifo=8,illegal=0", false);
}

/* A packet to an address without a mailbox is not acknowledged. */
static void pif_nowhere(void **state)
{
	struct iface a = iface("fifo=8", 0);

	put_packet(&a, hal_dest(BOARDS, 1, SIM_VMBOX_BASE), 1);
	assert_int_equal(settled(&a), HAL_PIF_NACK);
	put_packet(&a, dest_of(&a) + 16, 1);
	assert_int_equal(settled(&a), HAL_PIF_NACK);
	iface_close(&a);
}

/* [D table 4] PID_CONF: without its bit "any write to the PIF, will not
 * correspond to any packet initiation": nothing is transmitted, and the status
 * stays as the last packet left it. */
static void pif_not_configured(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);

	not_configured(&a, &b, 0);
	assert_int_equal(send_packet(&a, &b, 2), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 2));
	not_configured(&a, &b, HAL_PIF_ACK);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
	assert_int_equal(send_packet(&a, &b, 4), HAL_PIF_NACK);
	for (uint64_t i = 0; i < 4; i++)
		assert_true(take_packet(&b, &a, i));
	not_configured(&a, &b, HAL_PIF_NACK);
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.2.2, table 4] CLR_REQ "clears any active requests of the corresponding
 * PIF": a packet half written, and one under way. */
static void pif_request_cleared(void **state)
{
	static const char sim[] = "fifo=8,tick=1,delay=1000000";
	const uint64_t half[2] = { hal_head(9, 9), 9 };
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t bit = UINT64_C(1) << a.c.iface, w[2];

	io->write128(&a.pif, HAL_PIF_PAYLOAD0, half);
	io->write128(&a.pif, HAL_PIF_PAYLOAD1, half);
	io->write64(&a.tif, HAL_TIF_CLR_REQ, bit);
	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 1));
	put_packet(&a, dest_of(&b), 2);
	assert_int_equal(status_of(&a), HAL_PIF_PEND);
	io->write64(&a.tif, HAL_TIF_CLR_REQ, ~bit);
	assert_int_equal(status_of(&a), HAL_PIF_PEND);
	io->write64(&a.tif, HAL_TIF_CLR_REQ, bit);
	assert_int_equal(status_of(&a), 0);
	assert_int_equal(send_packet(&a, &b, 3), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 3));
	assert_false(take_word(&b, w));
	iface_close(&a);
	iface_close(&b);
}

/* ---- Accesses that end the test ---------------------------------------- */

static void quiet(int level, const char *line)
{
	(void)level;
	(void)line;
}

static void narrow_mif_read(const struct iface *b)
{
	io->read64(&b->mif, HAL_MIF_DATA);
}

static void narrower_mif_read(const struct iface *b)
{
	io->read32(&b->mif, HAL_MIF_DATA);
}

static void narrow_mif_write(const struct iface *b)
{
	io->write64(&b->mif, HAL_MIF_DATA, 0);
}

static void mif_beside(const struct iface *b)
{
	uint64_t w[2];

	io->read128(&b->mif, HAL_MIF_WORD, w);
}

static void narrow_pif_write(const struct iface *b)
{
	io->write64(&b->pif, HAL_PIF_PAYLOAD0, 0);
}

static void narrow_status(const struct iface *b)
{
	io->read32(&b->pif, HAL_PIF_STATUS);
}

static void status_written(const struct iface *b)
{
	const uint64_t w[2] = { 0, 0 };

	io->write128(&b->pif, HAL_PIF_STATUS, w);
}

static void pif_unaligned(const struct iface *b)
{
	const uint64_t w[2] = { 0, 0 };

	io->write128(&b->pif, 8, w);
}

static void tif_wide(const struct iface *b)
{
	uint64_t w[2];

	io->read128(&b->tif, HAL_TIF_PID_CONF, w);
}

static void tif_beyond(const struct iface *b)
{
	io->write64(&b->tif, HAL_TIF_CLR_REQ + 8, 0);
}

static void store_into_page(const struct iface *b)
{
	struct hal_mmio_map mif = b->mif;
	uint64_t w = 0;

	io->store(&mif, 0, &w, sizeof(w));
}

/* The packet announces stores to memory, so a barrier must come before it
 * [hal_mmio.h]. */
static void packet_without_barrier(const struct iface *b)
{
	const uint64_t p[2] = { 0, 0 }, da[2] = { dest_of(b), 0 };

	send_packet(b, b, 1);
	io->write128(&b->pif, HAL_PIF_PAYLOAD0, p);
	io->write128(&b->pif, HAL_PIF_PAYLOAD1, p);
	io->write128(&b->pif, HAL_PIF_DEST, da);
}

static void packet_read(const struct iface *b)
{
	uint64_t w[2];

	send_packet(b, b, 1);
	io->read128(&b->mif, HAL_MIF_DATA, w);
	io->read128(&b->mif, HAL_MIF_DATA, w);
}

static void packet_and_no_barrier(const struct iface *b)
{
	packet_read(b);
	status_of(b);
}

static void packet_and_no_barrier_load(const struct iface *b)
{
	struct hal_mmio_map map;
	uint64_t w;

	if (io->map(b->mm, hal_kdev_off(HAL_KDEV_TABLE, 0), SIM_PAGE,
		    &map) != 0)
		return;
	packet_read(b);
	io->load(&map, 0, &w, sizeof(w));
}

static void transfer_without_barrier(const struct iface *b)
{
	struct memory m = memory(b->mm, 0, 4096);
	struct hal_kdev_xfer x = { .src = m.gaddr, .dst = m.gaddr + 64,
				   .size = 64, .id = 1 };

	io->memory_before_start(b->mm);
	if (io->write(b->mm, &x, sizeof(x)) == sizeof(x))
		io->write(b->mm, &x, sizeof(x));
}

/* Transferred data are read after a barrier. */
static void status_and_no_barrier(const struct iface *b)
{
	struct memory m = memory(b->mm, 0, 4096);
	struct hal_kdev_xfer x = { .src = m.gaddr, .dst = m.gaddr + 64,
				   .size = 64, .id = 1 };
	struct hal_kdev_status st;

	io->memory_before_start(b->mm);
	if (io->write(b->mm, &x, sizeof(x)) != sizeof(x))
		return;
	while (io->read(b->mm, &st, sizeof(st)) < 0)
		;
	status_of(b);
}

/* Claim the engine, and map its registers. */
static bool engine_map(const struct iface *b, struct hal_mmio_map *regs)
{
	struct hal_kdev_engine k;

	return kdev(b->mm, HAL_KDEV_IO_ENGINE, &k) == 0 &&
	       io->map(b->mm, hal_kdev_off(HAL_KDEV_CDMA, 0), HAL_CDMA_BYTES,
		       regs) == 0;
}

static void engine_without_barrier(const struct iface *b, uint32_t mode,
				   uint32_t starts)
{
	struct hal_mmio_map regs;

	if (!engine_map(b, &regs))
		return;
	io->write32(&regs, HAL_CDMA_CR, mode);
	io->write32(&regs, starts, 0);
}

static void simple_without_barrier(const struct iface *b)
{
	engine_without_barrier(b, 0, HAL_CDMA_BTT);
}

static void chain_without_barrier(const struct iface *b)
{
	engine_without_barrier(b, HAL_CDMA_CR_SGMODE, HAL_CDMA_TAILDESC_MSB);
}

static void idle_and_no_barrier(const struct iface *b)
{
	struct memory m = memory(b->mm, 0, 4096);
	struct hal_mmio_map regs;

	if (!engine_map(b, &regs))
		return;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t off = i == 0 ? HAL_CDMA_SA : HAL_CDMA_DA;

		io->write32(&regs, off, (uint32_t)m.gaddr + 64 * i);
		io->write32(&regs, off + 4, (uint32_t)(m.gaddr >> 32));
	}
	io->memory_before_start(b->mm);
	io->write32(&regs, HAL_CDMA_BTT, 64);
	while (!(io->read32(&regs, HAL_CDMA_SR) & HAL_CDMA_SR_IDLE))
		;
	status_of(b);
}

/* [13; D 5.1] every read dequeues a word of 128 bits. The model ends the test
 * at a narrower access, at an access beside the registers or a write to a
 * read-only one; and if the barriers of hal_mmio.h are missing: before a start,
 * or after a packet or the end of a transfer. */
static void wrong_accesses_end_it(void **state)
{
	static void (*const wrong[])(const struct iface *b) = {
		narrow_mif_read, narrower_mif_read, narrow_mif_write,
		mif_beside, narrow_pif_write, narrow_status, status_written,
		pif_unaligned, tif_wide, tif_beyond, store_into_page,
		packet_without_barrier, packet_and_no_barrier,
		packet_and_no_barrier_load, transfer_without_barrier,
		simple_without_barrier, chain_without_barrier,
		status_and_no_barrier, idle_and_no_barrier,
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		pid_t pid = unit_fork();

		if (pid == 0) {
			struct iface b = iface("fifo=8", 0);

			signal(SIGABRT, SIG_DFL);
			hal_log_set(quiet);
			wrong[i](&b);
			_exit(0);
		}
		if (unit_exit_code(pid) != 128 + SIGABRT)
			unit_fail("wrong access %u is not noticed", i);
	}
}

/* ---- Mutants ----------------------------------------------------------- */

/* Do all acknowledged packets arrive, once and in order? [D 5.2.3] */
static bool acknowledged_arrive(const char *sim)
{
	struct iface a = iface(sim, 0), b = iface(sim, 1);
	uint64_t sent = 0, came = 0;
	bool good = true;

	for (int i = 0; i < 2000 && good; i++) {
		if (send_packet(&a, &b, sent) == HAL_PIF_ACK)
			sent++;
		if (i % 3 == 2 && came < sent)
			good = take_packet(&b, &a, came++);
	}
	while (good && came < sent)
		good = take_packet(&b, &a, came++);
	iface_close(&a);
	iface_close(&b);
	return good;
}

/* The checks fail with lost refusals and with forged identities. */
static void mutants_are_noticed(void **state)
{
	assert_true(acknowledged_arrive("fifo=8"));
	assert_true(acknowledged_arrive("fifo=8,delay=300,ack=300"));
	assert_false(acknowledged_arrive("fifo=8,mutant=nonack"));
	assert_false(acknowledged_arrive("fifo=1024,mutant=forged"));
}

REGS_MAIN(
	cmocka_unit_test(mif_empty_pattern),
	cmocka_unit_test(mif_empty_pattern_beef),
	cmocka_unit_test(mif_words_in_order),
	cmocka_unit_test(mif_full_takes_no_word),
	cmocka_unit_test(mif_full_refuses),
	cmocka_unit_test(mif_partial_burst),
	cmocka_unit_test(mif_full_refuses_readers_halfway),
	cmocka_unit_test(mif_are_independent),
	cmocka_unit_test(pif_three_writes),
	cmocka_unit_test(pif_same_write_twice),
	cmocka_unit_test(pif_identity_is_stamped),
	cmocka_unit_test(pif_pending_and_overwritten),
	cmocka_unit_test(pif_arrives_by_itself),
	cmocka_unit_test(pif_are_independent),
	cmocka_unit_test(pif_illegal_destination),
	cmocka_unit_test(pif_nowhere),
	cmocka_unit_test(pif_not_configured),
	cmocka_unit_test(pif_request_cleared),
	cmocka_unit_test(wrong_accesses_end_it),
	cmocka_unit_test(mutants_are_noticed),
)
