/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_peer.c - the device backend and its peers: peers that send or store
 * false values, peers that refuse, peers that end.
 */
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_table.h"
#include "lib/dev_shim.h"

/* ---- Peers that send or store false values ----------------------------- */

/* A peer that exceeds its credits is disconnected. */
static void peer_sends_too_much(void **state)
{
	struct pair p = pair();
	uint32_t depth = hal->caps.pkt_depth;

	for (uint32_t i = 0; i <= 2 * depth && p.dead_b == 0; i++) {
		atomic_store(&p.ab->tx.back->done, hal_tx_sent(p.ab));
		send_word(p.ab, i);
		step(&p);
	}
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_EIO);
	assert_non_null(strstr(said, "more than was released"));
	for (uint32_t i = 0; i < depth; i++)
		assert_true(next_is(p.ba, i));
	unpair(&p);
}

/* A peer that reports the release of packets which it cannot have received: no
 * more packets wait than there is space for, and these are sent. */
static void peer_releases_too_much(void **state)
{
	struct pair p = pair();
	uint64_t n = 0;

	lie.pending = true;
	while (n < 1000 && send_word(p.ab, n) == 0) {
		n++;
		atomic_store(&p.ab->tx.back->done, hal_tx_sent(p.ab));
		/* the packetizer is not busy for too long */
		dev_if(p.a)->pif_since = 0;
	}
	assert_int_equal(n, hal->caps.pkt_depth);
	lie.pending = false;
	for (uint64_t i = 0; i < n; i++)
		assert_true(until(&p, next_is(p.ba, i)));
	unpair(&p);
}

/* A packet from a to b that the backend would not send. */
static void packet(struct pair *p, uint64_t head, uint64_t w1, uint64_t w2,
		   uint64_t w3)
{
	const uint64_t p0[2] = { head, w1 };
	const uint64_t p1[2] = { w2, w3 };
	const uint64_t dest[2] = { dev_peer(p->ab)->dest, 0 };
	struct dev_if *dif = dev_if(p->a);

	/* by registers: works also when the peer is dead for a */
	assert_true(until(p, dev_pif_idle(dif, 1)));
	dif->pif_holds = DEV_PIF_WAKE;
	io.write128(&dif->pif, HAL_PIF_PAYLOAD0, p0);
	io.write128(&dif->pif, HAL_PIF_PAYLOAD1, p1);
	io.memory_before_start(dif->mm);
	io.write128(&dif->pif, HAL_PIF_DEST, dest);
}

static void hello(struct pair *p, uint8_t flags, uint64_t nonce, uint64_t back,
		  uint64_t link)
{
	uint64_t came = dev_if(p->b)->stats.came;

	packet(p, hal_head(DEV_PKT_HELLO, flags), nonce, back, link);
	for (int i = 0; i < 200; i++)
		step(p);
	assert_true(dev_if(p->b)->stats.came > came);
}

/* Packets with reserved types, also with the pattern of an empty mailbox: they
 * are ignored, and the next packet is received whole. */
static void peer_sends_reserved_types(void **state)
{
	struct pair p = pair();

	for (unsigned type = HAL_PKT_RESERVED + 1; type <= HAL_PKT_EMPTY;
	     type++) {
		packet(&p, hal_head(type, 0), 1, hal_head(5, 0), 2);
		/* the next packet is there when b polls */
		while (!dev_pif_idle(dev_if(p.a), 1))
			;
		assert_int_equal(send_word(p.ab, type), 0);
		assert_true(until(&p, next_is(p.ba, type)));
	}
	unpair(&p);
}

/* A HELLO with a false field is ignored. */
static void peer_hello_lies(void **state)
{
	struct pair p = pair();
	struct dev_peer *ab = dev_peer(p.ab);
	uint64_t nonce = p.b->addr.nonce;
	uint8_t flags = DEV_WIRE << 4 | 4;

	hello(&p, flags, nonce ^ 1, ab->back.ref, ab->link.ref);
	hello(&p, flags, nonce, ab->back.ref, ab->link.ref);
	hello(&p, flags, nonce, 1, 2);
	assert_int_equal(p.dead_b, 0);
	assert_int_equal(p.b->ninbound, 1);
	/* nor does it drop the holds of the first one's pages */
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_true(until(&p, next_is(p.ba, 3)));
	/* a first HELLO must name pages that exist and are the sender's */
	hal_peer_free(p.ba);
	p.ba = NULL;
	assert_int_equal(bad_drops, 0);
	hello(&p, (uint8_t)(flags - 1), nonce, ab->back.ref, ab->link.ref);
	assert_non_null(strstr(said, "with 8 packets"));
	hello(&p, flags & 0x0f, nonce, ab->back.ref, ab->link.ref);
	assert_non_null(strstr(said, "speaks version 0 "));
	/* an interface that no board has [hal_regs.h] */
	lie.id = dev_if(p.a)->identity;
	lie.false_id = hal_id(0, 200, 1);
	hello(&p, flags, nonce, ab->back.ref, ab->link.ref);
	lie.false_id = hal_id(0, HAL_REG_IFS, 1);
	hello(&p, flags, nonce, ab->back.ref, ab->link.ref);
	lie.false_id = hal_id(63, 1, 1);
	hello(&p, flags, nonce, ab->back.ref, ab->link.ref);
	be_honest();
	hello(&p, flags, nonce, 1, 2);
	hello(&p, flags, nonce, ab->link.ref, ab->back.ref);
	hello(&p, flags | 0xF0, nonce, ab->back.ref, ab->back.ref);
	assert_null(p.ba);
	assert_int_equal(p.b->ninbound, 0);
	unpair(&p);
	assert_int_equal(bad_drops, 0);
}

/* A HELLO of another version is answered, and both sides log it. */
static void peer_of_another_version(void **state)
{
	struct pair p = pair_open();
	struct dev_link *link;
	struct dev_peer *peer;

	assert_true(until(&(struct pair){ .a = p.a },
			  hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	peer = dev_peer(p.ab);
	link = (struct dev_link *)peer->link.map.base;
	link->wire = DEV_WIRE + 1;
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_ECONNREFUSED);
	assert_null(p.ba);
	unpair(&p);
}

/* An impossible end in the link page ends the peer and delivers no packet. */
static void peer_ends_in_a_lie(void **state)
{
	static const struct { uint64_t last, end; } lies[] = {
		{ 0, 1 + 65 }, { 7, 3 }, { UINT64_MAX, 1 }, { 0, UINT64_MAX },
	};

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct pair p = pair();
		struct dev_link *link = dev_peer(p.ab)->link.map.base;

		link->orderly = 1;
		link->last = lies[i].last;
		atomic_store(&link->end, lies[i].end);
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, -FI_EIO);
		assert_false(next_is(p.ba, 0));
		unpair(&p);
		close_hal();
	}
}

static void peer_space_lies(void **state)
{
	struct pair p = pair();
	struct dev_link *link = dev_peer(p.ab)->link.map.base;

	atomic_store(&link->space_ref, 12345);
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_true(until(&p, p.dead_b != 0));
	assert_non_null(strstr(said, "receive space"));
	unpair(&p);
}

/* ---- Ends -------------------------------------------------------------- */

static struct pair *ending;
static bool killed;

/* The peer sends and ends between two polls. */
static void sends_and_ends(void)
{
	struct dev_if *dif = dev_if(ending->a);

	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(send_word(ending->ab, i), 0);
	if (killed) {
		dev_pif_idle(dif, 1000);
		assert_int_equal(hal_sim_mmio_ops.ioctl(dif->mm,
				 HAL_KDEV_IO_RELEASE, NULL), 0);
	} else {
		hal_if_close(ending->a);
		ending->a = NULL;
	}
}

/* Packets that the mailbox or the link page has taken are received, also if the
 * end is seen first (hal.md, 6.1 and 6.2). */
static void ends_between(const char *sim, unsigned come)
{
	struct hal_event ev[4];
	struct pair p;
	int n = 0;

	lie.sim = sim;
	p = pair();
	ending = &p;
	lie.meanwhile = sends_and_ends;
	for (double end = now() + 5; lie.meanwhile != NULL && now() < end;)
		n = hal_if_service(p.b, ev, 4);
	assert_null(lie.meanwhile);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			p.dead_b = ev[i].status;
	assert_true(until(&(struct pair){ .b = p.b }, p.dead_b != 0 ||
			  dev_peer(p.ba)->p.dead));
	for (uint64_t i = 0; i < come; i++)
		assert_true(next_is(p.ba, i));
	unpair(&p);
	be_honest();
	close_hal();
}

static void ends_lose_no_packet(void **state)
{
	killed = false;
	ends_between("world=91", 8);
	ends_between("world=91,fifo=8,depth=8", 8);
	killed = true;
	ends_between("world=91", 8);
	ends_between("world=91,fifo=8,depth=8", 4);
}

/* A packet has no answer yet when its sender closes, or frees the peer and
 * lives on. If the mailbox takes it, all packets arrive. If the mailbox refuses
 * it, it is lost with those behind it, and the end is an error. */
static void last_packet_is_pending(void **state)
{
	for (int way = 0; way < 3; way++) {
		bool refused = way != 0, closes = way != 2;
		uint64_t n = 0, pending;
		struct pair p;

		lie.sim = "world=91,fifo=8,depth=8";
		p = pair();
		while (refused && n < 4)	/* fill the mailbox */
			assert_int_equal(send_word(p.ab, n++), 0);
		assert_true(dev_pif_idle(dev_if(p.a), 1000));
		pending = n;
		lie.pending = true;
		while (n < pending + 3)
			assert_int_equal(send_word(p.ab, n++), 0);
		if (closes) {
			hal_if_close(p.a);
			p.a = NULL;
		} else {
			hal_peer_free(p.ab);
			p.ab = NULL;
		}
		lie.pending = false;
		lines = 0;
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, refused ? -FI_EIO : -FI_ESHUTDOWN);
		assert_int_equal(lines, refused);
		for (uint64_t i = 0; i < (refused ? pending : n); i++)
			assert_true(next_is(p.ba, i));
		assert_false(next_is(p.ba, pending));
		unpair(&p);
		close_hal();
	}
}

/* An interface that is refused by a peer which it has accepted releases that
 * peer and sends it the end of the connection. */
static void refused_peer_is_notified(void **state)
{
	struct hal_event ev[4];
	struct pair p = pair_open();

	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	assert_int_equal(hal_connect(p.b, &p.a->addr, &p.ba), 0);
	for (double end = now() + 5; p.a->ninbound == 0 && now() < end;)
		hal_if_service(p.a, ev, 4);
	assert_int_equal(p.a->ninbound, 1);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1, -ENOMEM);
	hal_if_service(p.b, ev, 4);
	assert_true(lie.times <= 0);
	be_honest();
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_ECONNREFUSED);
	assert_int_equal(p.dead_b, 0);
	hal_peer_free(p.ab);
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_ECONNRESET);
	unpair(&p);
}

/* The last packet to a peer that has ended has no answer: the packetizer is
 * cleared for packets to other peers. */
static void packet_to_the_dead_has_no_answer(void **state)
{
	struct pair p = pair(), q = { .a = p.a };
	struct dev_if *dif = dev_if(p.a);

	assert_int_equal(hal_if_open(hal, 1, &q.b), 0);
	lie.pending = true;
	assert_int_equal(send_word(p.ab, 1), 0);
	hal_if_close(p.b);
	p.b = NULL;
	assert_true(until(&p, (dif->pif_since = 0, p.dead_a != 0)));
	assert_ptr_equal(dif->pif_peer, dev_peer(p.ab));
	errors = 0;
	assert_true(until(&p, errors != 0));
	assert_non_null(strstr(said, "no answer to a packet to 1:"));
	lie.pending = false;
	assert_null(dif->pif_peer);
	assert_true(until(&q, hal_connect(p.a, &q.b->addr, &q.ab) == 0));
	assert_int_equal(send_word(q.ab, 2), 0);
	assert_true(until(&q, q.ba != NULL));
	assert_true(until(&q, next_is(q.ba, 2)));
	hal_if_close(q.b);
	unpair(&p);
}

/* ---- Detection of ends ------------------------------------------------- */

#define CROWD	100

/* An interface that sleeps between services finds an end as soon as one that
 * does not, whichever of many peers has ended (hal.md, 6.3). */
static void sleeper_finds_an_end(void **state)
{
	struct hal_peer *peer[CROWD];
	struct hal_if *hif[CROWD], *to;
	struct hal_event ev[4];
	int n = 0, ticks = 0;
	struct dev_if *dif;

	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &to), 0);
	dif = dev_if(to);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(hal_if_open(hal, i % 2, &hif[i]), 0);
		while (hal_connect(hif[i], &to->addr, &peer[i]) == -FI_EAGAIN)
			hal_if_service(to, ev, 4);
	}
	for (double end = now() + 5; to->ninbound != CROWD && now() < end;)
		hal_if_service(to, ev, 4);
	assert_int_equal(to->ninbound, CROWD);
	while (hal_if_service(to, ev, 4) != 0)
		;
	/* this peer was just checked */
	dif->lookup_next = dif->peers->next;
	for (int i = 0; i < CROWD; i++)
		if (hif[i]->addr.nonce == dif->peers->p.addr.nonce)
			hal_sim_mmio_ops.ioctl(dev_if(hif[i])->mm,
					       HAL_KDEV_IO_RELEASE, NULL);
	for (; n == 0 && ticks < 10; ticks++) {
		usleep(20000);
		n = hal_if_service(to, ev, 4);
	}
	assert_int_equal(n, 1);
	assert_int_equal(ev[0].type, HAL_EV_DEAD);
	for (int i = 0; i < CROWD; i++)
		hal_if_close(hif[i]);
	hal_if_close(to);
}

/* ---- Order ------------------------------------------------------------- */

/* A table entry is read as nonce, other fields, nonce. A release is sent after
 * the packet was read. */
static void accesses_are_ordered(void **state)
{
	struct pair p = pair();
	struct hal_kdev_entry e;

	lie.note = true;
	assert_int_equal(dev_holder(dev_if(p.a), 1, p.b->addr.iface, &e), 0);
	assert_string_equal(order, "lmlml");
	assert_int_equal(send_word(p.ab, 1), 0);
	while (dev_peer(p.ba)->came == p.ba->rx.next)
		hal_if_pump(p.b);
	order[0] = '\0';
	assert_true(next_is(p.ba, 1));
	assert_string_equal(order, "bs");
	lie.note = false;
	unpair(&p);
}

/* The number of words that a does not see although b's hal_rx_back_sync() has
 * returned. */
static unsigned words_not_there(struct pair *p)
{
	unsigned n = 0;

	for (uint64_t i = 1; i <= 100; i++) {
		uint64_t word = (uint64_t)n << 32 | i;

		assert_int_equal(hal_rx_back_sync(p->ba, 1, word), 0);
		n += hal_tx_back_sync(p->ab, 1) != word;
	}
	return n;
}

/*
 * hal_rx_back_sync() stores a word and reads it back (hal.md, 4.10 and 12).
 * Where stores are delayed, the word arrives only because of the read: without
 * the read it does not. A caller without a page to store to, or whose peer is
 * dead, gets -FI_EAGAIN.
 */
static void back_words_are_read_back(void **state)
{
	struct pair p;

	lie.sim = "world=96,reorder=1000";
	p = pair();
	assert_int_equal(hal_rx_back_sync(p.ab, 1, 1), -FI_EAGAIN);
	lie.note = true;
	assert_int_equal(hal_rx_back_sync(p.ba, 1, 1), 0);
	assert_string_equal(order, "bsln");
	lie.note = false;
	assert_int_equal(words_not_there(&p), 0);
	lie.unread = true;
	assert_true(words_not_there(&p) > 0);
	lie.unread = false;
	assert_int_equal(words_not_there(&p), 0);
	hal_if_close(p.a);
	p.a = NULL;
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(hal_rx_back_sync(p.ba, 1, 2), -FI_EAGAIN);
	unpair(&p);
}

/* The entry is found cleared, and the mailbox is found empty only after that:
 * every packet that was in the mailbox before the driver cleared the entry is
 * received [hal.md 12]. */
static void end_is_ordered(void **state)
{
	struct pair p = pair();
	struct dev_if *dif = dev_if(p.b);
	struct hal_event ev[4];
	const char *after;

	assert_int_equal(hal_sim_mmio_ops.ioctl(dev_if(p.a)->mm,
			 HAL_KDEV_IO_RELEASE, NULL), 0);
	dif->lookup_at = 0;		/* the next call checks the table */
	lie.mif = &dif->mif;
	lie.note = true;
	assert_int_equal(hal_if_service(p.b, ev, 4), 1);
	lie.note = false;
	assert_int_equal(ev[0].type, HAL_EV_DEAD);
	after = strrchr(order, 'l');
	assert_non_null(after);
	assert_int_equal(strncmp(after, "lmr", 3), 0);
	unpair(&p);
}

/* The table is read before each read-back, and nothing is read back if the
 * table cannot be mapped (hal.md 12, dead boards). */
static void read_backs_ask_the_table(void **state)
{
	struct pair p = pair();
	struct dev_if *dif = dev_if(p.b);
	uint64_t came = dif->stats.came;
	struct hal_mmio_map table;

	/* a HELLO of another version, which is refused */
	packet(&p, hal_head(DEV_PKT_HELLO, 4), p.b->addr.nonce,
	       dev_peer(p.ab)->back.ref, dev_peer(p.ab)->link.ref);
	lie.note = true;
	for (double end = now() + 5; dif->stats.came == came && now() < end;)
		hal_if_pump(p.b);
	assert_non_null(strstr(order, "lmlsn"));
	order[0] = '\0';
	table = dif->tables[0];
	dif->tables[0].mm = NULL;
	lie.map_after = 0;
	assert_int_equal(hal_rx_back_sync(p.ba, 1, 1), -FI_EAGAIN);
	assert_null(strchr(order, 'n'));
	lie.note = false;
	be_honest();
	dif->tables[0] = table;
	assert_int_equal(hal_rx_back_sync(p.ba, 1, 1), 0);
	unpair(&p);
}

/* ---- Accepting --------------------------------------------------------- */

/* Unused routes are dropped for the page of a new peer. */
static void accept_makes_room(void **state)
{
	struct pair p = pair(), q = { 0 };
	struct hal_rmem *rmem = NULL;
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;

	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	assert_true(until(&p, hal_mem_import(p.ba, &key, &rmem) == 0));
	hal_mem_release(p.ba, rmem);
	assert_non_null(dev_peer(p.ba)->rmems);
	q.b = p.b;
	assert_int_equal(hal_if_open(hal, 0, &q.a), 0);
	assert_true(until(&q, hal_connect(q.a, &p.b->addr, &q.ab) == 0));
	lie.cmd = HAL_KDEV_IO_IMPORT;
	lie.skip = 1;			/* import of the link page */
	lie.times = 1;
	lie.ret = -ENOSPC;
	assert_true(until(&q, q.ba != NULL));
	assert_true(lie.times <= 0);
	assert_null(dev_peer(p.ba)->rmems);
	be_honest();
	hal_mem_free(hal, mem);
	hal_if_close(q.a);
	unpair(&p);
}

/* Temporary errors of the driver are retried. */
static void accept_waits(void **state)
{
	static const int errs[] = { -EAGAIN, -ENOSPC, -ENOMEM, -EMFILE };

	for (unsigned i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		struct pair p = pair_open();

		assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
		fail_ioctl(HAL_KDEV_IO_IMPORT, 1, 8, errs[i]);
		assert_true(until(&p, p.ba != NULL));
		assert_true(lie.times <= 0);
		assert_int_equal(p.dead_b, 0);
		unpair(&p);
		be_honest();
		close_hal();
	}
}

/* A permanent error of the driver ends the attempt. */
static void accept_gives_up(void **state)
{
	struct pair p = pair_open();

	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 1, 1 << 30, -EIO);
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_EIO);
	assert_non_null(strstr(said, "cannot reach the page"));
	unpair(&p);
}

/* If there is no route for the peer's page, the import is retried at intervals,
 * because each try drops unused routes. It is retried only while the peer
 * lives. */
static void accept_finds_no_room(void **state)
{
	struct pair p = pair_open();
	double start = now();
	int tries;

	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 1, 1 << 30, -ENOSPC);
	lines = 0;
	for (int i = 0; i < 2000; i++)
		step(&p);
	/* two imports per try, at most one try per millisecond */
	tries = ((1 << 30) - lie.times) / 2;
	assert_in_range(tries, 1, 2 + (int)((now() - start) * 1000));
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "waiting to reach the page"));
	start = now();
	hal_peer_free(p.ab);
	assert_true(until(&p, p.dead_b != 0));
	assert_true(now() - start < 2);
	assert_int_equal(p.dead_b, -FI_ECONNRESET);
	assert_int_equal(lines, 1);
	be_honest();
	unpair(&p);
}

static void of_another_user(struct hal_kdev_import *imp)
{
	imp->owner_uid++;
}

static void too_small(struct hal_kdev_import *imp)
{
	imp->bytes = 64;
}

static void too_small_back(struct hal_kdev_import *imp)
{
	if (hal_gaddr_board(imp->ref) == 0)
		imp->bytes = 64;
}

static void of_another_board(struct hal_kdev_import *imp)
{
	imp->owner ^= UINT64_C(1) << 32;
}

/* The driver's description of the pages of a HELLO is checked. */
static void accept_checks_pages(void **state)
{
	static void (*const lies[])(struct hal_kdev_import *) = {
		of_another_user, too_small, of_another_board,
	};

	for (unsigned i = 0; i <= sizeof(lies) / sizeof(lies[0]); i++) {
		bool back = i == sizeof(lies) / sizeof(lies[0]);
		struct pair p = pair_open();

		assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
		lie.import = back ? too_small_back : lies[i];
		for (int k = 0; k < 1000; k++)
			step(&p);
		assert_int_equal(p.ba != NULL, back);
		assert_int_equal(p.dead_b, back ? -FI_EIO : 0);
		unpair(&p);
		assert_int_equal(bad_drops, 0);
		be_honest();
		close_hal();
	}
}

/* The same for the receive space that a packet uses. */
static void space_is_checked(void **state)
{
	static void (*const lies[])(struct hal_kdev_import *) = {
		too_small, of_another_board,
	};

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct pair p = pair();

		assert_int_equal(hal_space_ready(p.ab, 64), 0);
		assert_int_equal(send_word(p.ab, 1), 0);
		lie.import = lies[i];
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, -FI_EIO);
		assert_non_null(strstr(said, "cannot map the receive space"));
		unpair(&p);
		be_honest();
		close_hal();
	}
}

/* Peers that hal_connect() refuses: of another user, or ended. */
static void connect_is_refused(void **state)
{
	struct pair p = pair();
	struct hal_addr addr = p.b->addr;
	struct hal_peer *peer = NULL;

	addr.uid++;
	assert_int_equal(hal_connect(p.a, &addr, &peer), -FI_EACCES);
	addr = p.b->addr;
	hal_if_close(p.b);
	p.b = NULL;
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(hal_connect(p.a, &addr, &peer), -FI_ECONNREFUSED);
	addr.nonce = HAL_ADDR_ANY;
	assert_int_equal(hal_connect(p.a, &addr, &peer), -FI_ECONNREFUSED);
	assert_null(peer);
	/* ended: nothing is allocated, stored or imported */
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	assert_int_equal(send_word(p.ab, 1), 0);
	hal_peer_wake(p.ab);
	unpair(&p);
}

/* A HELLO that finds the packetizer busy is sent later. */
static void connect_waits(void **state)
{
	struct pair p = pair(), q = { 0 };

	q.a = p.a;
	assert_int_equal(hal_if_open(hal, 0, &q.b), 0);
	lie.pending = true;
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_int_equal(hal_connect(p.a, &q.b->addr, &q.ab), -FI_EAGAIN);
	assert_int_equal(hal_connect(p.a, &q.b->addr, &q.ab), -FI_EAGAIN);
	lie.pending = false;
	assert_true(until(&q, hal_connect(p.a, &q.b->addr, &q.ab) == 0));
	assert_true(until(&q, q.ba != NULL));
	hal_if_close(q.b);
	assert_true(until(&p, next_is(p.ba, 1)));
	unpair(&p);
}

/* A HELLO that is refused is sent again by the backend itself. */
static void hello_is_sent_again(void **state)
{
	struct pair p, q = { 0 };
	struct hal_event ev[4];

	lie.sim = "world=94,fifo=8,depth=16";
	p = pair();
	q.b = p.b;
	assert_int_equal(hal_if_open(hal, 0, &q.a), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(send_word(p.ab, i), 0);
	assert_int_equal(hal_connect(q.a, &p.b->addr, &q.ab), -FI_EAGAIN);
	for (double end = now() + 5; q.ba == NULL && now() < end;) {
		hal_if_service(q.a, ev, 4);
		hal_if_service(p.a, ev, 4);
		if (hal_if_service(p.b, ev, 4) != 0)
			q.ba = ev[0].peer;
	}
	assert_non_null(q.ba);
	assert_true(dev_if(q.a)->stats.nacks != 0);
	assert_int_equal(hal_connect(q.a, &p.b->addr, &q.ab), 0);
	hal_if_close(q.a);
	unpair(&p);
}

/* There is one object for a peer: the next connection is reported when the
 * former object was freed. */
static void one_object_at_a_time(void **state)
{
	struct pair p = pair();
	struct hal_peer *old = p.ba, *again = NULL;
	struct hal_addr any = p.b->addr;

	any.nonce = HAL_ADDR_ANY;
	assert_int_equal(hal_connect(p.a, &any, &again), 0);
	assert_ptr_equal(again, p.ab);
	hal_peer_free(p.ab);
	assert_true(until(&p, hal_connect(p.a, &any, &p.ab) == 0));
	p.ba = NULL;
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(send_word(p.ab, 9), 0);
	for (int i = 0; i < 1000; i++)
		step(&p);
	assert_null(p.ba);
	hal_peer_free(old);
	assert_true(until(&p, p.ba != NULL));
	assert_true(until(&p, next_is(p.ba, 9)));
	unpair(&p);
}

UNIT_MAIN(
	DEV_TEST(peer_sends_too_much),
	DEV_TEST(peer_releases_too_much),
	DEV_TEST(peer_sends_reserved_types),
	DEV_TEST(peer_hello_lies),
	DEV_TEST(peer_of_another_version),
	DEV_TEST(peer_ends_in_a_lie),
	DEV_TEST(peer_space_lies),
	DEV_TEST(ends_lose_no_packet),
	DEV_TEST(last_packet_is_pending),
	DEV_TEST(refused_peer_is_notified),
	DEV_TEST(packet_to_the_dead_has_no_answer),
	DEV_TEST(sleeper_finds_an_end),
	DEV_TEST(accesses_are_ordered),
	DEV_TEST(back_words_are_read_back),
	DEV_TEST(end_is_ordered),
	DEV_TEST(read_backs_ask_the_table),
	DEV_TEST(accept_makes_room),
	DEV_TEST(accept_waits),
	DEV_TEST(accept_gives_up),
	DEV_TEST(accept_finds_no_room),
	DEV_TEST(accept_checks_pages),
	DEV_TEST(space_is_checked),
	DEV_TEST(connect_is_refused),
	DEV_TEST(connect_waits),
	DEV_TEST(hello_is_sent_again),
	DEV_TEST(one_object_at_a_time),
)
