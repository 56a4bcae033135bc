/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_time.c - the register model under the timing model: packets, stores
 * and transfers take the times of the figures, to the nanosecond.
 *
 * The model's clock (params.tick) advances with each access of a register and
 * with stalls only, so no time depends on the machine, but for that after which
 * the driver knows that a board is dead.
 */
#include <poll.h>

#include "hal/sim/hal_sim_store.h"
#include "lib/regs_engine.h"

#define TICK	10u			/* ns for each access */
#define WORLD	"tick=10"
#define LATENCY	10000u			/* ns; of the file below */
#define GAP	20000u
#define STORE	5000u
#define PATH	1000u			/* between two stores */
#define LOAD	20000u
#define ROUTE	50000u
#define BYTES	50000u			/* of a transfer; one access moves as
					 * many */
#define SHORT	2000u			/* bytes; ended before the driver knows
					 * of a death, on any machine */
#define WHOLE	(3000u + BYTES)		/* ns that the engine takes for it */

static const char figures[] =
	"packet_latency = 10 us # assumed: test\n"
	"packet_gap = 20 us # assumed: test\n"
	"fifo_depth = 4 packets # assumed: test\n"
	"store_latency = 5 us # assumed: test\n"
	"store_rate = 1 M/s # assumed: test\n"
	"line_rate = 1 M/s # assumed: test\n"
	"store_queue = 2 stores # assumed: test\n"
	"load_round_trip = 20 us # assumed: test\n"
	"dma_setup = 3 us # assumed: test\n"
	"dma_bandwidth = 1 GB/s # assumed: test\n"
	"route_registration = 50 us # assumed: test\n";

static char path[64];

static int setup(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "./test_regs_time.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || write(fd, figures, sizeof(figures) - 1) < 0)
		return -1;
	regs_figures = path;
	return close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

/* The model's time, in ns. */
static uint64_t now(struct hal_mmio *mm)
{
	return sim_now(sim_mm(mm)->w);
}

/* When put_packet(), which has just returned, wrote the first of the three
 * registers. */
static uint64_t first_write(struct hal_mmio *mm)
{
	return now(mm) - 2 * TICK;
}

/* Read the mailbox until a packet has come, and the packet. Returns the time of
 * the first read that found it. */
static uint64_t await_packet(const struct iface *b, const struct iface *from,
			     uint64_t word)
{
	uint64_t w[4], at;

	while (!take_word(b, &w[0]))
		;
	at = now(b->mm);
	assert_true(take_word(b, &w[2]));
	assert_true(w[0] == (hal_head(1, 2) | from->c.identity));
	assert_true(w[1] == word);
	return at;
}

/* ---- Packets ------------------------------------------------------------ */

/* A packet is read when its latency has passed since the first write of its
 * registers, and not before; the packetizer is free after the gap. */
static void packets_take_time(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t sent;

		put_packet(&a, dest_of(&b), i);
		sent = first_write(a.mm);
		assert_true(await_packet(&b, &a, i) == sent + LATENCY);
		assert_int_equal(settled(&a), HAL_PIF_ACK);
		assert_true(now(a.mm) == sent + GAP);
	}
	iface_close(&a);
	iface_close(&b);
}

/* [D 5.1.1] The mailbox acknowledges: with a short gap the packetizer is free
 * when the packet has arrived. */
static void answers_follow_packets(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	uint64_t sent;

	sim_mm(a.mm)->w->par.figures.packet_gap = 100;
	put_packet(&a, dest_of(&b), 7);
	sent = first_write(a.mm);
	assert_int_equal(settled(&a), HAL_PIF_ACK);
	assert_true(now(a.mm) == sent + LATENCY);
	assert_true(take_packet(&b, &a, 7));
	iface_close(&a);
	iface_close(&b);
}

/* A mailbox has fifo_depth places; a packet that is under way has one. */
static void mailbox_has_its_depth(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	struct iface c = iface(WORLD, 0);

	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_packet(&a, &b, i), HAL_PIF_ACK);
	put_packet(&a, dest_of(&b), 3);
	assert_int_equal(send_packet(&c, &b, 4), HAL_PIF_NACK);
	assert_int_equal(settled(&a), HAL_PIF_ACK);
	for (uint64_t i = 0; i < 4; i++)
		await_packet(&b, &a, i);
	assert_int_equal(send_packet(&c, &b, 5), HAL_PIF_ACK);
	await_packet(&b, &c, 5);
	iface_close(&c);
	iface_close(&a);
	iface_close(&b);
}

/* An interface that is given back has no packet under way: its peers take the
 * empty entry in the table of holders for the end of its packets. */
static void ends_follow_packets(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	uint64_t sent;

	put_packet(&a, dest_of(&b), 9);
	sent = first_write(a.mm);
	iface_close(&a);
	assert_true(now(b.mm) >= sent + LATENCY);
	assert_true(take_packet(&b, &a, 9));
	iface_close(&b);
}

/* A process that arms while a packet is under way is signalled at once, and
 * polls. */
static void arming_meets_a_packet(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	struct pollfd pfd = { .fd = io->event_fd(b.mm), .events = POLLIN };

	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	put_packet(&a, dest_of(&b), 1);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	await_packet(&b, &a, 1);
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	iface_close(&a);
	iface_close(&b);
}

/* ---- Stores and loads --------------------------------------------------- */

/* Stores arrive after their latency, one after the other, although the process
 * that made them does nothing: another one polls its mailbox. */
static void stores_take_time(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	struct memory m = memory(a.mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	uint64_t start = now(a.mm), stalled = now(a.mm), w[2];

	for (uint64_t i = 1; i <= 6; i++) {
		io->store(&m.map, 0, &i, sizeof(i));	/* the same place */
		/* two stores wait for the path; the processor does for more */
		stalled = start + (i <= 2 ? 0 : (i - 2) * PATH);
		assert_true(now(a.mm) == stalled);
	}
	for (uint64_t i = 1; i <= 6; i++) {
		uint64_t due = start + STORE + (i - 1) * PATH;

		while (at[0] != i) {
			assert_true(at[0] == i - 1 && now(b.mm) < due);
			assert_false(take_word(&b, w));
		}
		assert_true(now(b.mm) == due);
	}
	memory_free(&m);
	iface_close(&a);
	iface_close(&b);
}

/* The process that made them carries them out too, when it accesses anything;
 * a barrier waits for a load behind them. */
static void loads_take_time(void **state)
{
	struct iface a = iface(WORLD, 0);
	struct memory m = memory(a.mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	uint64_t one = 1, two = 2, start = now(a.mm), got;

	io->store(&m.map, 64, &one, sizeof(one));
	while (at[8] != 1) {
		assert_true(now(a.mm) < start + STORE);
		status_of(&a);
	}
	assert_true(now(a.mm) == start + STORE);
	start = now(a.mm);
	io->store(&m.map, 64, &two, sizeof(two));
	assert_int_equal(io->stores_before_notify(&m.map), 0);
	assert_true(at[8] == 2);
	assert_true(now(a.mm) == start + PATH + LOAD);
	start = now(a.mm);
	io->load(&m.map, 64, &got, sizeof(got));
	assert_true(got == 2 && now(a.mm) == start + LOAD);
	memory_free(&m);
	iface_close(&a);
}

/* More stores are under way than the buffer holds: none is early. */
static void buffer_is_full(void **state)
{
	struct iface a = iface(WORLD, 0);
	struct memory m = memory(a.mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	struct sim_mm *mm = sim_mm(a.mm);
	uint64_t start;

	mm->w->par.figures.store_time = 1;	/* the path takes all */
	mm->w->par.figures.store_queue = 64;
	start = now(a.mm);
	for (uint64_t i = 1; i <= SIM_POSTS; i++)
		io->store(&m.map, 64 * i, &i, sizeof(i));
	assert_true(now(a.mm) == start && at[8] == 0);
	io->store(&m.map, 0, &start, sizeof(start));
	assert_true(now(a.mm) == start + STORE && at[8] == 1);
	memory_free(&m);
	iface_close(&a);
}

/* A process that is killed at a store does not hold up those behind it. */
static void carrier_is_dead(void **state)
{
	struct iface a = iface(WORLD, 0), b = iface(WORLD, 1);
	struct memory m = memory(a.mm, 1, 4 * KIB);
	volatile uint64_t *at = m.map.base;
	uint64_t one = 1, two = 2, w[2];

	io->store(&m.map, 0, &one, sizeof(one));
	io->store(&m.map, 0, &two, sizeof(two));
	/* the name of a process that never was */
	atomic_store(&sim_mm(a.mm)->f->post[0].state,
		     UINT64_C(0x5555) << 16 | SIM_PARTS);
	while (at[0] != 2) {
		assert_false(take_word(&b, w));
		assert_true(now(b.mm) < 10000000);
	}
	memory_free(&m);
	iface_close(&a);
	iface_close(&b);
}

/* ---- Transfers ---------------------------------------------------------- */

static void start(struct hal_mmio *mm, const struct memory *m, uint64_t id)
{
	struct hal_kdev_xfer x = { m->gaddr, m->gaddr + BYTES, BYTES, id };

	io->memory_before_start(mm);
	assert_int_equal(io->write(mm, &x, sizeof(x)), sizeof(x));
}

/* Wait for the end of a transfer; returns when. */
static uint64_t ended(struct hal_mmio *mm, uint64_t id, uint32_t how)
{
	struct hal_kdev_status st = { 0 };
	ssize_t n;

	do
		n = io->read(mm, &st, sizeof(st));
	while (n == -EAGAIN);
	io->status_before_memory(mm);
	assert_true(n == sizeof(st) && st.id == id && st.state == how);
	return now(mm);
}

/* Transfers of two files of a board follow each other on its one engine, and
 * another board has another. */
static void one_engine_a_board(void **state)
{
	struct hal_mmio *a = device(WORLD, 0), *b = device(WORLD, 0);
	struct hal_mmio *c = device(WORLD, 1);
	struct memory m = memory(a, 0, 2 * BYTES);
	uint64_t at;

	start(a, &m, 1);
	at = now(a);
	start(b, &m, 2);
	start(a, &m, 3);
	start(c, &m, 4);
	assert_true(ended(a, 1, HAL_KDEV_COMPLETED) == at + WHOLE);
	assert_in_range(ended(c, 4, HAL_KDEV_COMPLETED), at + WHOLE,
			at + WHOLE + 3 * TICK);
	assert_true(ended(b, 2, HAL_KDEV_COMPLETED) == at + 2 * WHOLE);
	assert_true(ended(a, 3, HAL_KDEV_COMPLETED) == at + 3 * WHOLE);
	memory_free(&m);
	io->close(c);
	io->close(b);
	io->close(a);
}

/* A cancelled transfer leaves the engine, and those behind it are earlier. If
 * one of another file is among these, they keep their times. */
static void cancelled_leave_the_engine(void **state)
{
	struct hal_mmio *a = device(WORLD, 0), *b = device(WORLD, 0);
	struct memory m = memory(a, 0, 2 * BYTES);
	struct hal_kdev_cancel first = { .id = 1 };
	uint64_t at;

	start(a, &m, 1);
	start(a, &m, 2);
	assert_int_equal(kdev(a, HAL_KDEV_IO_CANCEL, &first), 0);
	at = now(a);
	start(b, &m, 3);
	ended(a, 1, HAL_KDEV_CANCELLED);
	assert_true(ended(a, 2, HAL_KDEV_COMPLETED) == at + WHOLE);
	assert_true(ended(b, 3, HAL_KDEV_COMPLETED) == at + 2 * WHOLE);

	start(a, &m, 1);
	at = now(a);
	start(b, &m, 2);
	start(a, &m, 3);
	assert_int_equal(kdev(a, HAL_KDEV_IO_CANCEL, &first), 0);
	ended(a, 1, HAL_KDEV_CANCELLED);
	assert_true(ended(b, 2, HAL_KDEV_COMPLETED) == at + 2 * WHOLE);
	assert_true(ended(a, 3, HAL_KDEV_COMPLETED) == at + 3 * WHOLE);
	memory_free(&m);
	io->close(b);
	io->close(a);
}

/* A transfer from a board that is silent waits until the driver knows that the
 * board is dead; one behind it ends in its time. */
static void silent_board_delays_nobody(void **state)
{
	struct hal_mmio *a = device(WORLD, 0), *b = device(WORLD, 1);
	struct memory m = memory(a, 0, 2 * BYTES), n = memory(b, 1, BYTES);
	struct hal_kdev_xfer x[] = {
		{ n.gaddr, m.gaddr, SHORT, 1 },
		{ m.gaddr, m.gaddr + BYTES, SHORT, 2 },
	};
	uint64_t at;

	hal_sim_death(a, 1, SIM_DEAD_SILENT);
	io->memory_before_start(a);
	assert_int_equal(io->write(a, x, sizeof(x)), sizeof(x));
	at = now(a);
	assert_true(ended(a, 2, HAL_KDEV_COMPLETED) == at + 2 * (3000 + SHORT));
	ended(a, 1, HAL_KDEV_FAILED);
	hal_sim_death(a, 1, SIM_LIVES);
	memory_free(&n);
	memory_free(&m);
	io->close(b);
	io->close(a);
}

/* A process that is killed keeps the engine for what it has started, and no
 * longer. */
static void killed_with_a_transfer(void **state)
{
	struct hal_mmio *a = device(WORLD, 0);
	struct memory m = memory(a, 0, 2 * BYTES);
	uint64_t at;
	pid_t pid;

	fflush(NULL);
	pid = unit_fork();
	if (pid == 0) {
		struct hal_mmio *mm = device(WORLD, 0);
		struct memory other = memory(mm, 0, 2 * BYTES);

		start(mm, &other, 1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	at = now(a);
	start(a, &m, 2);
	/* some accesses of the child lie between its start and now */
	assert_in_range(ended(a, 2, HAL_KDEV_COMPLETED), at + 2 * WHOLE -
			20 * TICK, at + 2 * WHOLE);
	at = now(a);
	start(a, &m, 3);
	assert_true(ended(a, 3, HAL_KDEV_COMPLETED) == at + TICK + WHOLE);
	memory_free(&m);
	io->close(a);
}

/* The registers of the engine obey the same times. */
static void engine_takes_time(void **state)
{
	struct engine e = engine(WORLD ",sg=1");
	uint64_t at;

	for (int i = 0; i < 2; i++) {
		set_addr(&e, HAL_CDMA_SA, e.s.gaddr);
		set_addr(&e, HAL_CDMA_DA, e.d.gaddr);
		set(&e, HAL_CDMA_BTT, BYTES);
		at = now(e.mm);
		if (i == 1)
			break;
		idle(&e);
		assert_true(now(e.mm) == at + WHOLE);
	}
	/* a reset leaves nothing under way */
	reset(&e);
	at = now(e.mm);
	set_addr(&e, HAL_CDMA_SA, e.s.gaddr);
	set_addr(&e, HAL_CDMA_DA, e.d.gaddr);
	set(&e, HAL_CDMA_BTT, BYTES);
	idle(&e);
	assert_in_range(now(e.mm), at + WHOLE, at + WHOLE + 20 * TICK);
	engine_close(&e);
}

/* The first import costs the registration, and replaces params.route. */
static void routes_take_time(void **state)
{
	struct hal_mmio *a = device(WORLD, 0), *b = device(WORLD, 1);
	struct memory m = memory(b, 1, 4 * KIB);
	struct hal_kdev_import imp = { .ref = m.a.ref, .secret = 7 };
	struct hal_kdev_hold h;
	uint64_t at;
	int ret;

	ret = kdev(a, HAL_KDEV_IO_IMPORT, &imp);
	at = now(a);
	while (ret == -EAGAIN)
		ret = kdev(a, HAL_KDEV_IO_IMPORT, &imp);
	assert_int_equal(ret, 0);
	assert_true(now(a) == at + ROUTE);
	h.hold = imp.hold;
	assert_int_equal(kdev(a, HAL_KDEV_IO_DROP, &h), 0);
	memory_free(&m);
	io->close(b);
	io->close(a);
}

/* ---- What is refused ---------------------------------------------------- */

static void refused(const char *sim, const char *find, const char *value)
{
	struct unit_capture ear;
	struct hal_params params = { .boards = BOARDS, .board = 0 };
	struct hal_platform pf;
	char said[512];
	FILE *file;
	int ret;

	file = fopen(path, "w");
	assert_non_null(file);
	for (const char *line = figures; *line != '\0'; ) {
		int len = (int)strcspn(line, "\n") + 1;

		if (find != NULL && strncmp(line, find, strlen(find)) == 0)
			fprintf(file, "%s = %s # assumed: test\n", find, value);
		else
			fprintf(file, "%.*s", len, line);
		line += len;
	}
	fclose(file);
	snprintf(params.sim, sizeof(params.sim), "%s", sim);
	snprintf(params.model, sizeof(params.model), "%s", path);
	ear = unit_capture_begin();
	ret = io->probe(&params, &pf);
	unit_capture_end(&ear, said, sizeof(said));
	assert_int_equal(ret, -EINVAL);
	assert_int_equal(unit_lines(said), 1);
	assert_non_null(strstr(said, "for the register model"));
}

static void refuses_what_it_cannot_do(void **state)
{
	refused("delay=5", NULL, NULL);
	refused("ack=5", NULL, NULL);
	refused("dma=5", NULL, NULL);
	refused("", "packet_latency", "6 ms");
	refused("", "fifo_depth", "2 packets");
}

#define CASE(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

REGS_MAIN(
	CASE(packets_take_time),
	CASE(answers_follow_packets),
	CASE(mailbox_has_its_depth),
	CASE(ends_follow_packets),
	CASE(arming_meets_a_packet),
	CASE(stores_take_time),
	CASE(loads_take_time),
	CASE(buffer_is_full),
	CASE(carrier_is_dead),
	CASE(one_engine_a_board),
	CASE(cancelled_leave_the_engine),
	CASE(silent_board_delays_nobody),
	CASE(killed_with_a_transfer),
	CASE(engine_takes_time),
	CASE(routes_take_time),
	CASE(refuses_what_it_cannot_do),
)
