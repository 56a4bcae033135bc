/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_proc.c - does the register model's kernel device do what hal_kdev.h
 * says, above all when processes stop and die? [K] names the call there.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/regs_fixture.h"

static void nap(long us)
{
	const struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static struct hal_kdev_entry entry(struct hal_mmio *mm, uint32_t board,
				   uint32_t n)
{
	struct hal_kdev_entry e;
	struct hal_mmio_map map;

	assert_int_equal(io->map(mm, hal_kdev_off(HAL_KDEV_TABLE,
				 board * SIM_PAGE), SIM_PAGE, &map), 0);
	io->load(&map, n * sizeof(e), &e, sizeof(e));
	io->unmap(&map);
	return e;
}

/* ---- Interfaces --------------------------------------------------------- */

/* [K INFO] and what it says of another version. */
static void info_has_a_version(void **state)
{
	struct hal_mmio *mm = device("fifo=8,ifs=3,xfers=5,btt=12", 1);
	struct hal_kdev_info i = { .magic = HAL_KDEV_MAGIC,
				   .version = HAL_KDEV_VERSION + 1 };

	assert_int_equal(kdev(mm, HAL_KDEV_IO_INFO, &i), -EPROTO);
	assert_int_equal(i.magic, HAL_KDEV_MAGIC);
	assert_int_equal(i.version, HAL_KDEV_VERSION);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_INFO, &i), 0);
	assert_true(i.board == 1 && i.boards == BOARDS && i.ifs == 3);
	assert_true(i.fifo_words == 8 && i.xfer_depth == 5);
	assert_true(i.xfer_max == 4095 && i.base_dest == SIM_VMBOX_BASE);
	assert_int_equal(kdev(mm, _IO('U', 0x70), NULL), -ENOTTY);
	io->close(mm);
}

/* [K CLAIM, RELEASE] each to one, from the hint on; [D 2.2.4] "at most one
 * interface" a thread; who comes later has another identity. */
static void claims_are_exclusive(void **state)
{
	struct hal_mmio *mm[4];
	struct hal_kdev_claim c[4];

	for (int i = 0; i < 4; i++) {
		mm[i] = device("ifs=3", 0);
		c[i] = (struct hal_kdev_claim){ .hint = 2 };
		assert_int_equal(kdev(mm[i], HAL_KDEV_IO_CLAIM, &c[i]),
				 i < 3 ? 0 : -EBUSY);
	}
	assert_true(c[0].iface == 2 && c[1].iface == 3 && c[2].iface == 1);
	assert_int_equal(kdev(mm[0], HAL_KDEV_IO_CLAIM, &c[3]), -EBUSY);
	assert_int_equal(kdev(mm[1], HAL_KDEV_IO_RELEASE, NULL), 0);
	assert_int_equal(kdev(mm[1], HAL_KDEV_IO_RELEASE, NULL), -EINVAL);
	assert_int_equal(kdev(mm[3], HAL_KDEV_IO_CLAIM, &c[3]), 0);
	assert_int_equal(c[3].iface, 3);
	assert_true(c[3].identity != c[1].identity);
	assert_true(c[3].nonce != c[1].nonce);
	assert_int_equal(hal_id_board(c[3].identity), 0);
	assert_int_equal(hal_id_if(c[3].identity), 3);
	c[3].hint = 4;
	assert_int_equal(kdev(mm[1], HAL_KDEV_IO_CLAIM, &c[3]), -EINVAL);
	for (int i = 0; i < 4; i++)
		io->close(mm[i]);
}

/* [K SERVICE; D 2.2.3] "Interface 0 belongs to the board's atomic service": it
 * is one beside those that CLAIM gives, which is never 0. */
static void service_is_apart(void **state)
{
	struct iface s = iface_by(HAL_KDEV_IO_SERVICE, "ifs=3", 0);
	struct hal_kdev_claim c = { .hint = 1 };
	struct hal_mmio *mm[4];

	assert_int_equal(s.c.iface, HAL_REG_IF_SERVICE);
	assert_int_equal(hal_id_board(s.c.identity), 0);
	assert_int_equal(hal_id_if(s.c.identity), HAL_REG_IF_SERVICE);
	assert_true(s.c.identity != 0 && s.c.nonce != 0);
	/* at most one a file, at most one a board, and no hint */
	assert_int_equal(kdev(s.mm, HAL_KDEV_IO_CLAIM, &c), -EBUSY);
	for (uint32_t i = 0; i < 4; i++) {
		mm[i] = device("ifs=3", 0);
		c.hint = 0;
		assert_int_equal(kdev(mm[i], HAL_KDEV_IO_SERVICE, &c), -EBUSY);
		assert_int_equal(kdev(mm[i], HAL_KDEV_IO_CLAIM, &c), -EINVAL);
		c.hint = 1;
		assert_int_equal(kdev(mm[i], HAL_KDEV_IO_CLAIM, &c),
				 i < 3 ? 0 : -EBUSY);
		assert_true(i == 3 || c.iface == i + 1);
	}
	assert_int_equal(kdev(s.mm, HAL_KDEV_IO_RELEASE, NULL), 0);
	assert_int_equal(kdev(mm[3], HAL_KDEV_IO_CLAIM, &c), -EBUSY);
	assert_int_equal(kdev(mm[3], HAL_KDEV_IO_SERVICE, &c), -EINVAL);
	c.hint = 0;
	assert_int_equal(kdev(mm[0], HAL_KDEV_IO_SERVICE, &c), -EBUSY);
	assert_int_equal(kdev(mm[3], HAL_KDEV_IO_SERVICE, &c), 0);
	assert_true(c.iface == HAL_REG_IF_SERVICE &&
		    c.identity != s.c.identity && c.nonce != s.c.nonce);
	for (int i = 0; i < 4; i++)
		io->close(mm[i]);
	iface_close(&s);
}

/* [K CLAIM] an identity is never 0, which stands for nobody. */
static void identity_is_never_0(void **state)
{
	struct iface s = iface_by(HAL_KDEV_IO_SERVICE, "fifo=8", 0);
	struct sim_board *board = sim_mm(s.mm)->b;
	struct hal_kdev_claim c = { 0 };

	assert_int_equal(kdev(s.mm, HAL_KDEV_IO_RELEASE, NULL), 0);
	board->iface[0].incarnation = HAL_ID_INCARNATION_MASK;
	assert_int_equal(kdev(s.mm, HAL_KDEV_IO_SERVICE, &c), 0);
	assert_true(c.identity == hal_id(0, 0, 1));
	iface_close(&s);
}

/* [D 2.2.4] pages of others are out of reach, and so is the trusted one. */
static void pages_are_private(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 0);
	struct iface s = iface_by(HAL_KDEV_IO_SERVICE, "fifo=8", 0);
	struct hal_mmio *none = device("fifo=8", 0);
	struct hal_mmio_map map;

	for (int block = HAL_KDEV_MIF; block <= HAL_KDEV_PIF; block++) {
		const uint64_t off = hal_kdev_off(block,
						  HAL_MIF_PAGE(b.c.iface));

		assert_int_equal(io->map(a.mm, off, HAL_REG_PAGE, &map),
				 -EACCES);
		assert_int_equal(io->map(s.mm, off, HAL_REG_PAGE, &map),
				 -EACCES);
		/* the service's is 0, which is not what who has none has */
		assert_int_equal(io->map(a.mm, hal_kdev_off(block, 0),
					 HAL_REG_PAGE, &map), -EACCES);
		assert_int_equal(io->map(none, hal_kdev_off(block, 0),
					 HAL_REG_PAGE, &map), -EACCES);
	}
	assert_int_equal(io->map(a.mm, hal_kdev_off(HAL_KDEV_TIF, 0),
				 HAL_REG_PAGE, &map), -EPERM);
	assert_int_equal(io->map(a.mm, hal_kdev_off(HAL_KDEV_TABLE,
				 BOARDS * SIM_PAGE), SIM_PAGE, &map), -EINVAL);
	io->close(none);
	iface_close(&s);
	iface_close(&a);
	iface_close(&b);
}

/* hal_kdev.h: the table says who holds what, as long as he does. */
static void table_says_who(void **state)
{
	struct hal_mmio *mm = device("fifo=8", 0);
	struct iface b = iface("fifo=8", 1);
	struct hal_kdev_entry e = entry(mm, 1, b.c.iface);

	assert_true(e.nonce == b.c.nonce && e.identity == b.c.identity);
	assert_true(e.uid == geteuid() && b.c.nonce != 0);
	iface_close(&b);
	assert_true(entry(mm, 1, b.c.iface).nonce == 0);
	io->close(mm);
}

/* [K CLAIM] what was in the FIFO, and a half-written packet, is thrown away. */
static void claim_clears(void **state)
{
	const uint64_t half[2] = { hal_head(9, 9), 9 };
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1), c;
	uint64_t w[2];

	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	io->write128(&b.pif, HAL_PIF_PAYLOAD0, half);
	io->write128(&b.pif, HAL_PIF_PAYLOAD1, half);
	iface_close(&b);
	c = iface("fifo=8", 1);
	assert_int_equal(c.c.iface, b.c.iface);
	assert_false(take_word(&c, w));
	assert_int_equal(send_packet(&c, &a, 2), HAL_PIF_ACK);
	assert_true(take_packet(&a, &c, 2));
	iface_close(&a);
	iface_close(&c);
}

/* ---- Events ------------------------------------------------------------- */

static bool signalled(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t one;
	bool yes = poll(&pfd, 1, 0) == 1;

	if (yes)
		assert_int_equal(read(fd, &one, sizeof(one)), sizeof(one));
	return yes;
}

/* [K ARM; D 3.2.2] once, at the next packet, or now if there is one. */
static void events_come_when_armed(void **state)
{
	struct iface a = iface("fifo=8", 0), b = iface("fifo=8", 1);
	int fd = io->event_fd(b.mm);

	assert_true(fd >= 0);
	assert_int_equal(send_packet(&a, &b, 1), HAL_PIF_ACK);
	assert_false(signalled(fd));
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_true(signalled(fd) && !signalled(fd));
	assert_true(take_packet(&b, &a, 1));
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_false(signalled(fd));
	assert_int_equal(send_packet(&a, &b, 2), HAL_PIF_ACK);
	assert_int_equal(send_packet(&a, &b, 3), HAL_PIF_ACK);
	assert_true(signalled(fd) && !signalled(fd));
	/* a signal of before is not one of after */
	assert_true(take_packet(&b, &a, 2) && take_packet(&b, &a, 3));
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_int_equal(send_packet(&a, &b, 4), HAL_PIF_ACK);
	assert_true(take_packet(&b, &a, 4));
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), 0);
	assert_false(signalled(fd));
	/* there is nothing to arm, and 0 is the service's */
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_RELEASE, NULL), 0);
	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ARM, NULL), -EINVAL);
	iface_close(&a);
	iface_close(&b);
}

/* ---- Children ----------------------------------------------------------- */

/* Reads what the child wrote; the child waits for its end. */
static pid_t child(void (*fn)(int fd), int *fd)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = unit_fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		fn(fds[1]);
		for (;;)
			pause();
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static void end(pid_t pid, int fd)
{
	unit_kill(pid);
	close(fd);
}

/* [K SERVICE] ends as others do: with its file, given back, or killed. */
static void have_service(int fd)
{
	struct iface s = iface_by(HAL_KDEV_IO_SERVICE, "fifo=8", 0);

	if (write(fd, &s.c, sizeof(s.c)) != sizeof(s.c))
		_exit(1);
}

static void service_of_the_dead(void **state)
{
	struct iface a = iface("fifo=8", 1), s;
	struct hal_kdev_claim was;
	int fd;
	pid_t pid = child(have_service, &fd);

	assert_int_equal(read(fd, &was, sizeof(was)), sizeof(was));
	assert_true(entry(a.mm, 0, 0).nonce == was.nonce);
	end(pid, fd);
	assert_true(entry(a.mm, 0, 0).nonce == 0);
	s = iface_by(HAL_KDEV_IO_SERVICE, "fifo=8", 0);
	assert_true(entry(a.mm, 0, 0).identity == s.c.identity);
	assert_int_equal(send_packet(&a, &s, 1), HAL_PIF_ACK);
	assert_true(take_packet(&s, &a, 1));
	assert_int_equal(send_packet(&s, &a, 2), HAL_PIF_ACK);
	assert_true(take_packet(&a, &s, 2));
	iface_close(&s);
	assert_true(entry(a.mm, 0, 0).nonce == 0);
	iface_close(&a);
}

static struct iface inherited;

static void use_inherited(int fd)
{
	struct hal_kdev_claim c = { .hint = 1 };
	struct hal_mmio_map map;
	char ok = kdev(inherited.mm, HAL_KDEV_IO_CLAIM, &c) == -EPERM &&
		  io->map(inherited.mm, 0, SIM_PAGE, &map) == -EPERM &&
		  io->read(inherited.mm, &c, sizeof(c)) == -EPERM;

	io->close(inherited.mm);
	inherited = iface("fifo=8", 1);
	ok = ok && send_packet(&inherited, &inherited, 1) == HAL_PIF_ACK;
	iface_close(&inherited);
	if (write(fd, &ok, 1) != 1)
		_exit(1);
}

/* hal_kdev.h: "In a forked child every call gives -EPERM", and closing there
 * leaves the parent's alone; the child may have its own. */
static void children_have_their_own(void **state)
{
	struct iface b = iface("fifo=8", 1);
	char ok = 0;
	pid_t pid;
	int fd;

	inherited = b;
	pid = child(use_inherited, &fd);
	assert_int_equal(read(fd, &ok, 1), 1);
	assert_true(ok);
	assert_true(entry(b.mm, 1, b.c.iface).nonce == b.c.nonce);
	assert_int_equal(send_packet(&b, &b, 5), HAL_PIF_ACK);
	end(pid, fd);
	assert_true(take_packet(&b, &b, 5));
	iface_close(&b);
}

/* Written by a process before it is killed. */
struct will {
	struct hal_kdev_claim c;
	uint64_t ref;
};

#define DYING	"fifo=8,route=0,reorder=1000,delay=900000000"
static struct iface heir;

/* A packet on its way, stores held back, memory for the heir: then no more. */
static void leave_things(int fd)
{
	struct iface b = iface(DYING, 0);
	struct hal_kdev_alloc a = { .bytes = 4096, .secret = 7, .board = 1,
				    .to = heir.c.identity };
	struct will w = { .c = b.c };
	struct hal_mmio_map map;

	assert_int_equal(kdev(b.mm, HAL_KDEV_IO_ALLOC, &a), 0);
	assert_int_equal(io->map(b.mm, a.map_off, 4096, &map), 0);
	for (uint64_t i = 0; i < 8; i++)
		io->store(&map, i * 64, "testament", 9);
	put_packet(&b, dest_of(&heir), 8);
	w.ref = a.ref;
	if (write(fd, &w, sizeof(w)) != sizeof(w))
		_exit(1);
}

/*
 * hal_kdev.h: whatever a process got goes back at its end; "When it is cleared,
 * every packet of the holder is either in the FIFO it was sent to or will never
 * be". hal_mmio.h: stores are visible "in the end, also if the process ends".
 */
static void the_dead_give_back(void **state)
{
	struct hal_kdev_import imp = { .secret = 7 };
	struct iface from = { 0 };
	struct hal_mmio_map map;
	struct will w;
	pid_t pid;
	int fd;

	heir = iface(DYING, 1);
	pid = child(leave_things, &fd);
	assert_int_equal(read(fd, &w, sizeof(w)), sizeof(w));
	assert_true(entry(heir.mm, 0, w.c.iface).nonce == w.c.nonce);
	end(pid, fd);
	assert_true(entry(heir.mm, 0, w.c.iface).nonce == 0);
	from.c = w.c;
	assert_true(take_packet(&heir, &from, 8));
	imp.ref = w.ref;
	assert_int_equal(kdev(heir.mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_true(imp.owner == w.c.identity);
	assert_int_equal(io->map(heir.mm, imp.map_off, 4096, &map), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_memory_equal((char *)map.base + i * 64, "testament", 9);
	io->unmap(&map);
	from = iface(DYING, 0);
	assert_int_equal(from.c.iface, w.c.iface);
	iface_close(&from);
	iface_close(&heir);
}

/* Two of the three writes: where they count as preparation, PEND is set. */
static void half_a_packet(int fd)
{
	const uint64_t half[2] = { hal_head(9, 9), 9 };
	struct iface b = iface("prep=1", 0);
	struct will w = { .c = b.c };

	io->write128(&b.pif, HAL_PIF_PAYLOAD0, half);
	io->write128(&b.pif, HAL_PIF_PAYLOAD1, half);
	if (status_of(&b) != HAL_PIF_PEND ||
	    write(fd, &w, sizeof(w)) != sizeof(w))
		_exit(1);
}

/* hal_kdev.h: the entry is cleared all the same, and so is the packetizer. */
static void the_dead_leave_no_half(void **state)
{
	struct hal_mmio *mm = device("prep=1", 1);
	struct will w;
	int fd;
	pid_t pid = child(half_a_packet, &fd);

	assert_int_equal(read(fd, &w, sizeof(w)), sizeof(w));
	end(pid, fd);
	assert_true(entry(mm, 0, w.c.iface).nonce == 0);
	assert_int_equal(atomic_load(
		&sim_mm(mm)->w->board[0]->pif[w.c.iface].written), 0);
	io->close(mm);
}

static void store_and_stop(int fd)
{
	leave_things(fd);
	raise(SIGSTOP);
}

/* hal_mmio.h: stores are visible in the end, "without further calls". */
static void the_stopped_hold_nothing_up(void **state)
{
	struct hal_kdev_import imp = { .secret = 7 };
	struct hal_mmio_map map;
	const volatile char *p;
	uint64_t word[2];
	struct will w;
	int fd, seen = 0;
	pid_t pid;

	heir = iface(DYING, 1);
	pid = child(store_and_stop, &fd);
	assert_int_equal(read(fd, &w, sizeof(w)), sizeof(w));
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	imp.ref = w.ref;
	assert_int_equal(kdev(heir.mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_int_equal(io->map(heir.mm, imp.map_off, 4096, &map), 0);
	p = map.base;
	for (int i = 0; i < 10000000 && seen < 8; i++) {
		take_word(&heir, word);
		for (seen = 0; seen < 8 && p[seen * 64 + 8] == 't'; seen++)
			;
	}
	assert_int_equal(seen, 8);
	assert_true(entry(heir.mm, 0, w.c.iface).nonce == w.c.nonce);
	io->unmap(&map);
	end(pid, fd);
	iface_close(&heir);
}

/* ---- Killed anywhere ---------------------------------------------------- */

#define KILLED	"fifo=8,route=0,reorder=300"
#define VICTIMS	3
#define ROUNDS	40

static void use_memory(struct iface *b, uint64_t *rng)
{
	struct hal_kdev_alloc a = {
		.bytes = 1 + unit_below(rng, 20000), .secret = 1,
		.board = unit_below(rng, BOARDS),
		.to = unit_below(rng, 2) ? heir.c.identity : 0,
	};
	struct hal_kdev_hold h;
	struct hal_mmio_map map;

	if (kdev(b->mm, HAL_KDEV_IO_ALLOC, &a) != 0)
		return;
	if (io->map(b->mm, a.map_off, a.bytes, &map) == 0) {
		io->store(&map, 0, "0123456789abcdef", 16);
		io->stores_before_notify(&map);
		io->unmap(&map);
	}
	h.hold = a.hold;
	kdev(b->mm, HAL_KDEV_IO_DROP, &h);
}

/* Numbers for the heir as fast as it takes them, and memory in between. */
static void live(int fd)
{
	uint64_t rng = (uint64_t)getpid(), next = 0;
	char up = 1;

	if (write(fd, &up, 1) != 1)
		_exit(1);
	for (;;) {
		struct iface b = iface(KILLED, unit_below(&rng, BOARDS));
		uint32_t lives = 1 + unit_below(&rng, 100);

		for (next = 0; next < lives; ) {
			if (send_packet(&b, &heir, next) == HAL_PIF_ACK)
				next++;
			if (unit_below(&rng, 3) == 0)
				use_memory(&b, &rng);
		}
		iface_close(&b);
	}
}

static struct {
	uint64_t identity, next;
} known[256];

/* Whatever came: from each identity the numbers in order, from 0. */
static unsigned receive(void)
{
	unsigned n = 0;
	uint64_t w[4];

	while (take_word(&heir, &w[0])) {
		uint64_t id = w[0] & HAL_ID_MASK;
		unsigned at = (unsigned)(hal_id_board(id) * 64 + hal_id_if(id));

		assert_true(take_word(&heir, &w[2]));
		assert_true(at < 256 && w[2] == ~w[1] && w[3] == 3 * w[1]);
		if (known[at].identity != id) {
			known[at].identity = id;
			known[at].next = 0;
		}
		assert_true(w[1] == known[at].next++);
		n++;
	}
	return n;
}

/* A process killed at any instruction blocks and corrupts nobody. */
static void killed_anywhere(void **state)
{
	uint64_t rng = 1, came = 0;

	heir = iface(KILLED, 1);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid[VICTIMS];
		int fd[VICTIMS];
		char up;

		for (int i = 0; i < VICTIMS; i++)
			pid[i] = child(live, &fd[i]);
		for (int i = 0; i < VICTIMS; i++)
			assert_int_equal(read(fd[i], &up, 1), 1);
		for (int i = 0; i < VICTIMS; i++) {
			uint32_t us = unit_below(&rng, 3000);

			for (uint32_t t = 0; t < us; t += 100) {
				came += receive();
				nap(100);
			}
			end(pid[i], fd[i]);
		}
		came += receive();
		expect_nothing_left(&heir);
		came += receive();
	}
	assert_true(came > ROUNDS);
	iface_close(&heir);
}

/* ---- Segments of others ------------------------------------------------- */

enum { FALSE_NONE, FALSE_UNSEALED, FALSE_SHORT, FALSE_LONG, FALSES };

static struct {
	uint64_t hash;			/* of the model */
	off_t bytes;			/* of a board's segment */
	int how;
} pretended;

/* A process of the same user listens at a socket name of the model, and offers
 * segments with the model's names and magic number. */
static void pretend(int fd)
{
	static const uint32_t magic = SIM_MAGIC;
	struct sockaddr_un sun;
	socklen_t len = sim_name(&sun, "part", pretended.hash, 0);
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0), how = pretended.how;
	off_t bytes = pretended.bytes + (how == FALSE_SHORT ? -(off_t)SIM_PAGE :
					 how == FALSE_LONG ? SIM_PAGE : 0);
	char ok = bind(s, (struct sockaddr *)&sun, len) == 0 &&
		  listen(s, 8) == 0;

	for (int b = 0; b < BOARDS; b++) {
		char name[64];
		int m;

		snprintf(name, sizeof(name), "unimem-board.%016llx.%d",
			 (unsigned long long)pretended.hash, b);
		m = memfd_create(name, MFD_ALLOW_SEALING);
		ok = ok && ftruncate(m, bytes) == 0 &&
		     pwrite(m, &magic, sizeof(magic), 0) == sizeof(magic) &&
		     (how == FALSE_UNSEALED ||
		      fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	}
	if (write(fd, &ok, 1) != 1)
		_exit(1);
}

/* A process that joins the model refuses a segment that is not sealed against
 * shrinking or has another size. It then creates a model of its own. */
static void segments_are_sealed(void **state)
{
	static const char sim[] = "fifo=8,seed=77";
	struct hal_mmio *mm = device(sim, 0);
	struct sim_world *w = sim_mm(mm)->w;
	struct unit_capture ear;
	char ok, text[256];

	pretended.hash = w->hash;
	pretended.bytes = (off_t)(SIM_STATE_BYTES + w->mem_bytes);
	io->close(mm);
	for (int how = FALSE_NONE; how < FALSES; how++) {
		pid_t pid;
		int fd;

		pretended.how = how;
		pid = child(pretend, &fd);
		assert_true(read(fd, &ok, 1) == 1 && ok);
		ear = unit_capture_begin();
		mm = device(sim, 0);
		assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 0);
		/* theirs has no version: that was taken, where it may be */
		assert_int_equal(sim_mm(mm)->b->version,
				 how == FALSE_NONE ? 0 : SIM_VERSION);
		io->close(mm);
		end(pid, fd);
	}
}

REGS_MAIN(
	cmocka_unit_test(info_has_a_version),
	cmocka_unit_test(claims_are_exclusive),
	cmocka_unit_test(service_is_apart),
	cmocka_unit_test(service_of_the_dead),
	cmocka_unit_test(identity_is_never_0),
	cmocka_unit_test(pages_are_private),
	cmocka_unit_test(table_says_who),
	cmocka_unit_test(claim_clears),
	cmocka_unit_test(events_come_when_armed),
	cmocka_unit_test(children_have_their_own),
	cmocka_unit_test(the_dead_give_back),
	cmocka_unit_test(the_dead_leave_no_half),
	cmocka_unit_test(the_stopped_hold_nothing_up),
	cmocka_unit_test(killed_anywhere),
	cmocka_unit_test(segments_are_sealed),
)
