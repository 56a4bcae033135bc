/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_bus.c - does the register model do what the papers say of accesses
 * that this library does not make? Bursts, stores into mailboxes of others,
 * responses of one word, back-pressure of the packetizer, interrupts and
 * keyholes of the engine. docs/fidelity.md says why the library does without.
 * Each test names the paragraph as in test_regs.c and test_regs_dma.c.
 */
#include "lib/regs_engine.h"

/* Words of 16 bytes: first, first + 1 ... */
static void numbered(uint64_t *w, uint32_t words, uint64_t first)
{
	for (uint32_t i = 0; i < words; i++) {
		w[2 * i] = first + i;
		w[2 * i + 1] = ~(first + i);
	}
}

/* Take a word, and return whether it is this one of numbered(). */
static bool took(const struct iface *b, uint64_t number)
{
	uint64_t w[2];

	return take_word(b, w) && w[0] == number && w[1] == ~number;
}

static bool is_empty(const struct iface *b)
{
	uint64_t w[2];

	return !take_word(b, w);
}

static void quiet(int level, const char *line)
{
	(void)level;
	(void)line;
}

/* ---- Bursts ------------------------------------------------------------ */

/* [D 5.1.1] "A write request can also be a burst of multiple words", and "a
 * 4-word read request will make 4 dequeues". */
static void bursts_of_each_length(void **state)
{
	struct iface b = iface("fifo=16", 0);
	uint64_t w[2 * SIM_BURST_MAX], back[2 * SIM_BURST_MAX];

	for (uint32_t n = 1; n <= SIM_BURST_MAX; n++) {
		numbered(w, n, n * 10);
		assert_true(hal_sim_burst_write(&b.mif, w, n));
		hal_sim_burst_read(&b.mif, back, n);
		io->status_before_memory(b.mm);
		assert_memory_equal(back, w, n * HAL_MIF_WORD);
		assert_true(is_empty(&b));
	}
	iface_close(&b);
}

/* [D 5.1.2] "assume a non-full FIFO with 3 elements left ... accept the first 3
 * words, and the fourth will be rejected. However, a positive acknowledgment";
 * [D 5.1.1] a multi-word request to a full FIFO is refused. */
static void burst_that_does_not_fit(void **state)
{
	struct iface b = iface("fifo=8", 0);
	uint64_t w[8];

	for (uint64_t i = 0; i < 5; i++) {
		numbered(w, 1, i);
		assert_true(hal_sim_burst_write(&b.mif, w, 1));
	}
	numbered(w, 4, 5);
	assert_true(hal_sim_burst_write(&b.mif, w, 4));
	assert_false(hal_sim_burst_write(&b.mif, w, 4));
	assert_false(hal_sim_burst_write(&b.mif, w, 1));
	for (uint64_t i = 0; i < 8; i++)
		assert_true(took(&b, i));
	assert_true(is_empty(&b));
	iface_close(&b);
}

/* [D 5.1.1] a burst that reads more words than there are: the pattern follows
 * them. */
static void burst_reads_beyond_the_end(void **state)
{
	struct iface b = iface("fifo=8", 0);
	uint64_t w[4], back[8];

	numbered(w, 2, 1);
	assert_true(hal_sim_burst_write(&b.mif, w, 2));
	hal_sim_burst_read(&b.mif, back, 4);
	io->status_before_memory(b.mm);
	assert_memory_equal(back, w, sizeof(w));
	for (int i = 4; i < 8; i++)
		assert_true(back[i] == HAL_MIF_EMPTY);
	iface_close(&b);
}

/* ---- Stores into mailboxes of others ------------------------------------ */

/* [D 2.2.3, footnote 1] "small packets of size less or equal to 128 bits to
 * some interface of a remote mailbox by issuing remote store operations". [13]
 * A store of less is a word too, whose other bytes are 0. */
static void stores_into_a_remote_mailbox(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	struct hal_mmio_map box;
	uint64_t w[2];

	hal_sim_mailbox(a.mm, dest_of(&b), &box);
	for (uint64_t i = 76; i <= 77; i++) {
		numbered(w, 1, i);
		io->write128(&box, HAL_MIF_DATA, w);
	}
	io->write64(&box, HAL_MIF_DATA, UINT64_C(0x1122334455667788));
	io->write32(&box, HAL_MIF_DATA, 0x99aabbcc);
	assert_true(took(&b, 76) && took(&b, 77));
	assert_true(take_word(&b, w));
	assert_true(w[0] == UINT64_C(0x1122334455667788) && w[1] == 0);
	assert_true(take_word(&b, w));
	assert_true(w[0] == 0x99aabbcc && w[1] == 0);
	for (uint64_t i = 0; i < 12; i++) {
		numbered(w, 1, i);
		io->write128(&box, HAL_MIF_DATA, w);
	}
	for (uint64_t i = 0; i < 8; i++)
		assert_true(took(&b, i));
	assert_true(is_empty(&b));
	iface_close(&a);
	iface_close(&b);
}

/* [D 2.2.3] why the library sends no packet so: nothing stamps such words, and
 * whoever has the mailbox mapped can read what others sent. */
static void mapped_mailbox_protects_nothing(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	uint64_t w[4] = { hal_head(1, 2) | hal_id(1, 63, 9), 1, 2, 3 };
	struct hal_mmio_map box;

	hal_sim_mailbox(a.mm, dest_of(&b), &box);
	io->write128(&box, HAL_MIF_DATA, &w[0]);
	io->write128(&box, HAL_MIF_DATA, &w[2]);
	assert_true(take_word(&b, w));
	assert_true((w[0] & HAL_ID_MASK) == hal_id(1, 63, 9));
	assert_true(take_word(&b, w));
	assert_int_equal(send_packet(&b, &b, 5), HAL_PIF_ACK);
	io->read128(&box, HAL_MIF_DATA, w);
	io->read128(&box, HAL_MIF_DATA, &w[2]);
	io->status_before_memory(a.mm);
	assert_true((w[0] & HAL_ID_MASK) == b.c.identity && w[1] == 5);
	assert_true(is_empty(&b));
	iface_close(&a);
	iface_close(&b);
}

/* A store to a board that is dead is lost, and delays nobody (docs/porting.md,
 * section 6). */
static void stores_to_the_dead_are_lost(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	struct hal_mmio_map box;
	uint64_t w[2];

	hal_sim_mailbox(a.mm, dest_of(&b), &box);
	numbered(w, 1, 1);
	for (int how = SIM_DEAD_ABORTS; how <= SIM_DEAD_SILENT; how++) {
		hal_sim_death(a.mm, 1, (enum sim_death)how);
		io->write128(&box, HAL_MIF_DATA, w);
		assert_false(hal_sim_burst_write(&box, w, 1));
	}
	hal_sim_death(a.mm, 1, SIM_LIVES);
	numbered(w, 1, 2);
	io->write128(&box, HAL_MIF_DATA, w);
	assert_true(took(&b, 2));
	assert_true(is_empty(&b));
	iface_close(&a);
	iface_close(&b);
}

/* The mailbox of board 1, which dies in this way after two words, of which one
 * has been read. */
static void read_the_dead(enum sim_death how)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	struct hal_mmio_map box;
	uint64_t w[2];

	signal(SIGABRT, SIG_DFL);
	hal_log_set(quiet);
	hal_sim_mailbox(a.mm, how == SIM_LIVES ? hal_dest(BOARDS, 1,
			SIM_VMBOX_BASE) : dest_of(&b), &box);
	for (uint64_t i = 0; i < 2; i++) {
		numbered(w, 1, i);
		io->write128(&box, HAL_MIF_DATA, w);
	}
	io->read128(&box, HAL_MIF_DATA, w);
	io->status_before_memory(a.mm);
	if (w[0] != 0)
		_exit(1);
	hal_sim_death(a.mm, 1, how);
	io->read128(&box, HAL_MIF_DATA, w);
}

/* A read of the mailbox of a dead board is a bus error, and so is any access to
 * a board that does not exist (SIM_LIVES). */
static void reads_of_the_dead_end_it(void **state)
{
	for (int how = SIM_LIVES; how <= SIM_DEAD_SILENT; how++) {
		pid_t pid = unit_fork();

		if (pid == 0) {
			read_the_dead((enum sim_death)how);
			_exit(0);
		}
		assert_int_equal(unit_exit_code(pid), 128 + SIGABRT);
	}
}

/* The engine gets an error instead, for mailboxes and for memory. */
static void engine_meets_the_dead(void **state)
{
	struct iface b = iface("fifo=8", 1);
	struct engine e = engine("fifo=8");

	for (int how = SIM_DEAD_ABORTS; how <= SIM_DEAD_SILENT; how++) {
		uint64_t remote[] = { dest_of(&b), e.d.gaddr };

		hal_sim_death(e.mm, 1, (enum sim_death)how);
		for (int i = 0; i < 4; i++) {
			uint64_t other = remote[i % 2];

			set(&e, HAL_CDMA_CR, i < 2 ? HAL_CDMA_CR_HOLE_RD :
						     HAL_CDMA_CR_HOLE_WR);
			assert_int_equal(simple(&e, i < 2 ? other : e.s.gaddr,
						i < 2 ? e.s.gaddr : other, 16)
					 & HAL_CDMA_SR_ERRORS,
					 HAL_CDMA_SR_DECERR);
			reset(&e);
		}
	}
	hal_sim_death(e.mm, 1, SIM_LIVES);
	assert_true(is_empty(&b));
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 64) &
			 HAL_CDMA_SR_ERRORS, 0);
	engine_close(&e);
	iface_close(&b);
}

/* [D 2.2.3, figure 9; 2.2.6, step 10] the service takes a request of two words,
 * and writes a response of one, error code and result, into the mailbox of the
 * requester, which the stamped identity names. */
static void service_answers_by_one_word(void **state)
{
	struct iface a = iface("fifo=8", 0);
	struct iface s = iface_by(HAL_KDEV_IO_SERVICE, "fifo=8", 1);

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t request[4], answer[2] = { 0, 1000 + i };
		struct hal_mmio_map box;
		uint64_t id;

		assert_int_equal(send_packet(&a, &s, i), HAL_PIF_ACK);
		assert_true(take_word(&s, &request[0]));
		assert_true(take_word(&s, &request[2]));
		assert_true(request[1] == i);
		id = request[0] & HAL_ID_MASK;
		hal_sim_mailbox(s.mm, hal_dest(hal_id_board(id), hal_id_if(id),
					       SIM_VMBOX_BASE), &box);
		io->write128(&box, HAL_MIF_DATA, answer);
		assert_true(take_word(&a, answer));
		assert_true(answer[0] == 0 && answer[1] == 1000 + i);
		assert_true(is_empty(&a));
	}
	iface_close(&a);
	iface_close(&s);
}

/* ---- Back-pressure ------------------------------------------------------ */

static uint32_t info_flags(struct hal_mmio *mm)
{
	struct hal_kdev_info i = { .magic = HAL_KDEV_MAGIC,
				   .version = HAL_KDEV_VERSION };

	assert_int_equal(kdev(mm, HAL_KDEV_IO_INFO, &i), 0);
	return i.flags;
}

/* [D 5.2.4] the updated packetizer takes "consecutive PIF setups for the same
 * interface by activating the AXI4 back-pressure mechanism". */
static void pressed_setups_in_a_row(void **state)
{
	static const char sim[] = "fifo=64,tick=1,delay=1000,ack=1000,press=1";
	struct iface a = iface(sim, 0), b = iface(sim, 1);

	assert_true(info_flags(a.mm) & HAL_KDEV_BACK_PRESSURE);
	for (uint64_t i = 0; i < 20; i++)
		put_packet(&a, dest_of(&b), i);
	assert_int_equal(settled(&a), HAL_PIF_ACK);
	for (uint64_t i = 0; i < 20; i++)
		assert_true(take_packet(&b, &a, i));
	assert_true(is_empty(&b));
	iface_close(&a);
	iface_close(&b);
	a = iface("fifo=8", 0);
	assert_false(info_flags(a.mm) & HAL_KDEV_BACK_PRESSURE);
	iface_close(&a);
}

/* Why the library reads the status before each set-up all the same: ACK and
 * NACK are those of the last packet [D table 5], so a refusal would be lost. */
static void pressed_setups_hide_a_refusal(void **state)
{
	static const char sim[] = "fifo=8,press=1";
	struct iface a = iface(sim, 0), full = iface(sim, 1);
	struct iface b = iface(sim, 1);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(send_packet(&a, &full, i), HAL_PIF_ACK);
	put_packet(&a, dest_of(&full), 4);
	put_packet(&a, dest_of(&b), 5);
	assert_int_equal(settled(&a), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 5));
	for (uint64_t i = 0; i < 4; i++)
		assert_true(take_packet(&full, &a, i));
	assert_true(is_empty(&full));
	iface_close(&a);
	iface_close(&b);
	iface_close(&full);
}

/* Behind a packet that is never answered a write would hold the processor for
 * ever: the model ends the process. */
static void pressed_behind_a_dead_board(void **state)
{
	pid_t pid = unit_fork();

	if (pid == 0) {
		struct iface a = iface("fifo=8,press=1", 0);
		uint64_t nobody = hal_dest(1, 1, SIM_VMBOX_BASE);

		signal(SIGABRT, SIG_DFL);
		hal_log_set(quiet);
		hal_sim_death(a.mm, 1, SIM_DEAD_SILENT);
		put_packet(&a, nobody, 1);
		put_packet(&a, nobody, 2);
		_exit(0);
	}
	assert_int_equal(unit_exit_code(pid), 128 + SIGABRT);
}

/* ---- Interrupts of the engine ------------------------------------------- */

static void start_simple(const struct engine *e, uint32_t n)
{
	set_addr(e, HAL_CDMA_SA, e->s.gaddr);
	set_addr(e, HAL_CDMA_DA, e->d.gaddr);
	set(e, HAL_CDMA_BTT, n);
}

/* [PG034 Interrupts] the output is high while an event is logged in CDMASR and
 * enabled in CDMACR; a 1 written to the event clears it. */
static void engine_interrupts(void **state)
{
	struct engine e = engine("slverr=0");

	simple(&e, e.s.gaddr, e.d.gaddr, 64);
	assert_true(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IOC_IRQ);
	assert_false(hal_sim_interrupt(e.mm));
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_ERR_EN);
	assert_false(hal_sim_interrupt(e.mm));
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_IOC_EN | HAL_CDMA_CR_ERR_EN);
	assert_true(hal_sim_interrupt(e.mm));
	set(&e, HAL_CDMA_SR, HAL_CDMA_SR_IOC_IRQ);
	assert_false(hal_sim_interrupt(e.mm));
	start_simple(&e, 4096);
	while (!hal_sim_interrupt(e.mm))
		;
	assert_true(reg(&e, HAL_CDMA_SR) & HAL_CDMA_SR_IDLE);
	assert_memory_equal(e.d.map.base, e.s.map.base, 4096);
	set(&e, HAL_CDMA_SR, HAL_CDMA_SR_IOC_IRQ);
	start_simple(&e, 0);
	while (!hal_sim_interrupt(e.mm))
		;
	assert_int_equal(reg(&e, HAL_CDMA_SR) &
			 (HAL_CDMA_SR_IOC_IRQ | HAL_CDMA_SR_ERR_IRQ),
			 HAL_CDMA_SR_ERR_IRQ);
	reset(&e);
	assert_false(hal_sim_interrupt(e.mm));
	engine_close(&e);
}

/* [PG034 SG Interrupt Threshold and Interrupt Coalescing] one IOC_Irq for as
 * many descriptors as IRQThreshold says, which a 0 does not change. */
static void chain_interrupts_are_coalesced(void **state)
{
	struct engine e = engine("sg=1");
	uint32_t three = 3u << HAL_CDMA_COUNT_SHIFT, sr;
	uint64_t base;

	chain(&e, &base);
	set(&e, HAL_CDMA_CR, three | HAL_CDMA_CR_IOC_EN);
	sr = run(&e, base, 1);		/* run() writes a threshold of 0 */
	assert_int_equal(reg(&e, HAL_CDMA_CR) & HAL_CDMA_CR_COUNT, three);
	assert_false(sr & HAL_CDMA_SR_IOC_IRQ);
	assert_int_equal(sr & HAL_CDMA_CR_COUNT, 1u << HAL_CDMA_COUNT_SHIFT);
	set(&e, HAL_CDMA_CR, three | HAL_CDMA_CR_IOC_EN | HAL_CDMA_CR_SGMODE);
	set_addr(&e, HAL_CDMA_TAILDESC, base + 3 * HAL_CDMA_DESC_BYTES);
	idle(&e);
	assert_false(hal_sim_interrupt(e.mm));
	set_addr(&e, HAL_CDMA_TAILDESC, base + 6 * HAL_CDMA_DESC_BYTES);
	sr = idle(&e);
	assert_true(sr & HAL_CDMA_SR_IOC_IRQ);
	assert_true(hal_sim_interrupt(e.mm));
	assert_int_equal(sr & HAL_CDMA_CR_COUNT, three);
	engine_close(&e);
}

/* ---- Keyholes ------------------------------------------------------------ */

/* [PG034 CDMACR] KeyHoleWrite, KeyHoleRead: one address, which is memory here.
 */
static void keyholes_of_memory(void **state)
{
	struct engine e = engine("btt=20");
	uint8_t *s = e.s.map.base, *d = e.d.map.base;

	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_HOLE_WR);
	assert_int_equal(simple(&e, e.s.gaddr, e.d.gaddr, 4096) &
			 HAL_CDMA_SR_ERRORS, 0);
	assert_memory_equal(d, s + 4096 - 16, 16);
	assert_true(d[16] == 0 && memcmp(d + 16, d + 17, 8192) == 0);
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_HOLE_RD);
	assert_int_equal(simple(&e, e.s.gaddr + 32, e.d.gaddr, 4096) &
			 HAL_CDMA_SR_ERRORS, 0);
	for (int i = 0; i < 4096; i += 16)
		assert_memory_equal(d + i, s + 32, 16);
	assert_true(d[4096] == 0 && memcmp(d + 4096, d + 4097, 4096) == 0);
	engine_close(&e);
}

/* The same with a mailbox at the other end [D 3.1: "any memory location"]:
 * words are enqueued and dequeued. A mailbox that is full refuses (a slave
 * error), and without a keyhole its page takes no burst. */
static void keyholes_of_mailboxes(void **state)
{
	struct iface b = iface("fifo=16", 1);
	struct engine e = engine("fifo=16");
	uint64_t words[32], *d = e.d.map.base;

	numbered(words, 16, 100);
	memcpy(e.s.map.base, words, sizeof(words));
	assert_int_equal(simple(&e, e.s.gaddr, dest_of(&b), 64) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_DECERR);
	reset(&e);
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_HOLE_WR);
	assert_int_equal(simple(&e, e.s.gaddr, dest_of(&b), sizeof(words)) &
			 HAL_CDMA_SR_ERRORS, 0);
	assert_int_equal(simple(&e, e.s.gaddr, dest_of(&b), 16) &
			 HAL_CDMA_SR_ERRORS, HAL_CDMA_SR_SLVERR);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(took(&b, 100 + i));
	reset(&e);
	set(&e, HAL_CDMA_CR, HAL_CDMA_CR_HOLE_RD);
	assert_int_equal(simple(&e, dest_of(&b), e.d.gaddr, 9 * 16) &
			 HAL_CDMA_SR_ERRORS, 0);
	assert_memory_equal(d, &words[16], 8 * 16);
	assert_true(d[16] == HAL_MIF_EMPTY && d[17] == HAL_MIF_EMPTY);
	assert_true(is_empty(&b));
	engine_close(&e);
	iface_close(&b);
}

/* The bits of the keyholes hold for a whole transfer: the model ends a process
 * that changes one while the engine is busy. */
static void keyholes_change_when_idle(void **state)
{
	const uint32_t holes[] = { HAL_CDMA_CR_HOLE_RD, HAL_CDMA_CR_HOLE_WR };

	for (int i = 0; i < 4; i++) {
		pid_t pid = unit_fork();

		if (pid == 0) {
			struct engine e = engine("tick=1,dma=1000");

			signal(SIGABRT, SIG_DFL);
			hal_log_set(quiet);
			start_simple(&e, 8192);
			if (i >= 2)
				idle(&e);
			set(&e, HAL_CDMA_CR, holes[i % 2]);
			_exit(0);
		}
		assert_int_equal(unit_exit_code(pid),
				 i < 2 ? 128 + SIGABRT : 0);
	}
}

REGS_MAIN(
	cmocka_unit_test(bursts_of_each_length),
	cmocka_unit_test(burst_that_does_not_fit),
	cmocka_unit_test(burst_reads_beyond_the_end),
	cmocka_unit_test(stores_into_a_remote_mailbox),
	cmocka_unit_test(mapped_mailbox_protects_nothing),
	cmocka_unit_test(stores_to_the_dead_are_lost),
	cmocka_unit_test(reads_of_the_dead_end_it),
	cmocka_unit_test(engine_meets_the_dead),
	cmocka_unit_test(service_answers_by_one_word),
	cmocka_unit_test(pressed_setups_in_a_row),
	cmocka_unit_test(pressed_setups_hide_a_refusal),
	cmocka_unit_test(pressed_behind_a_dead_board),
	cmocka_unit_test(engine_interrupts),
	cmocka_unit_test(chain_interrupts_are_coalesced),
	cmocka_unit_test(keyholes_of_memory),
	cmocka_unit_test(keyholes_of_mailboxes),
	cmocka_unit_test(keyholes_change_when_idle),
)
