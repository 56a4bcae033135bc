/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_stop.c - what the register model's processes leave for each other
 * at the instructions that killing or stopping them at random rarely meets: the
 * shared state is made to look as one leaves it there (hal_sim_state.h).
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "hal/sim/hal_sim_store.h"
#include "lib/regs_fixture.h"

#define WORLD	"fifo=8,route=0,reorder=1000"

/* Another process of this model, which does nothing; its owner word. */
static pid_t bystander(uint64_t *name)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = unit_fork();
	if (pid == 0) {
		struct iface b;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		b = iface(WORLD, 0);
		if (write(fds[1], &sim_mm(b.mm)->w->me, sizeof(*name)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], name, sizeof(*name)), sizeof(*name));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static struct hal_kdev_alloc region_of_ours(struct iface *b, uint32_t board)
{
	struct hal_kdev_alloc a = { .bytes = 4096, .secret = 7,
				    .board = board };

	assert_int_equal(kdev(b->mm, HAL_KDEV_IO_ALLOC, &a), 0);
	return a;
}

/* One that is stopped with our store in its hands does not stop us. */
static void a_helper_is_stopped(void **state)
{
	struct iface b = iface(WORLD, 0);
	struct hal_kdev_alloc a = region_of_ours(&b, 1);
	struct sim_mm *mm = sim_mm(b.mm);
	struct hal_mmio_map map;
	uint64_t name, full;
	bool taken = false;
	pid_t pid = bystander(&name);

	kill(pid, SIGSTOP);
	assert_int_equal(io->map(b.mm, a.map_off, 4096, &map), 0);
	alarm(30);
	while (!taken) {		/* our own clock may be faster */
		io->store(&map, 0, "stopped", 8);
		for (unsigned i = 0; i < SIM_POSTS; i++) {
			full = SIM_POST_FULL;
			taken |= atomic_compare_exchange_strong(
				&mm->f->post[i].state, &full, name);
		}
	}
	io->stores_before_notify(&map);
	assert_string_equal((char *)map.base, "stopped");
	alarm(0);
	io->unmap(&map);
	unit_kill(pid);
	iface_close(&b);
}

static int told[2], go[2];
static uint8_t *guarded;

/* Stopped at the first byte of a store, until it is let go on. */
static void at_the_store(int sig)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char byte = 0;

	(void)sig;
	if (write(told[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1 ||
	    mprotect(guarded, page, PROT_READ | PROT_WRITE) != 0)
		_exit(1);
}

/* Carries out what others leave; it cannot store to this page. */
static pid_t helper(uint64_t gaddr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	pid_t pid = fork();
	char byte = 0;
	struct iface b;

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	b = iface(WORLD, 0);
	guarded = sim_memory(sim_mm(b.mm)->w, gaddr, 1);
	guarded -= (uintptr_t)guarded % page;
	signal(SIGSEGV, at_the_store);
	if (mprotect(guarded, page, PROT_READ) != 0)
		_exit(1);
	while (byte == 0) {
		sim_sweep(sim_mm(b.mm));
		/* parent: that was it */
		if (recv(go[0], &byte, 1, MSG_DONTWAIT) < 0)
			byte = 0;
	}
	_exit(write(told[1], &byte, 1) == 1 ? 0 : 1);
}

/* One that is stopped in the middle of a store does not store another's. */
static void a_store_is_its_own(void **state)
{
	struct iface b = iface(WORLD, 0);
	struct hal_kdev_alloc a = region_of_ours(&b, 1);
	struct hal_mmio_map map;
	char byte = 0;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, told), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, go), 0);
	assert_int_equal(io->map(b.mm, a.map_off, 4096, &map), 0);
	fflush(NULL);
	pid = helper(sim_what(&map));
	alarm(60);
	io->store(&map, 0, "one that is slow", 16);
	assert_int_equal(read(told[0], &byte, 1), 1);
	/* nobody comes back to it: we do, and use its place again */
	io->stores_before_notify(&map);
	assert_memory_equal(map.base, "one that is slow", 16);
	io->store(&map, 128, "next in its place", 16);
	assert_int_equal(write(go[1], "\0\1", 2), 2);
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_memory_equal(map.base, "one that is slow", 16);
	io->stores_before_notify(&map);
	assert_memory_equal((char *)map.base + 128, "next in its place", 16);
	alarm(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		close(told[i]);
		close(go[i]);
	}
	io->unmap(&map);
	iface_close(&b);
}

/* One that takes the place of a dead process is not that process. */
static void a_place_is_taken(void **state)
{
	struct iface b = iface(WORLD, 0);
	struct sim_world *w = sim_mm(b.mm)->w;
	_Atomic uint64_t *part;
	uint64_t name;
	pid_t pid = bystander(&name);

	assert_true(sim_alive(w, name));
	part = &w->board[0]->common.part[(name & 0xffff) - 1];
	/* in between it has the lock on that byte, and no name yet */
	atomic_fetch_or(part, 1);
	assert_false(sim_alive(w, name));
	unit_kill(pid);
	iface_close(&b);
}

/* The allocator died with its hold gone and its mark still there. */
static void a_region_is_not_kept(void **state)
{
	struct iface b = iface(WORLD, 0), c = iface(WORLD, 1),
		     d = iface(WORLD, 1);
	struct hal_kdev_alloc a = region_of_ours(&b, 0);
	struct hal_kdev_import imp = { .ref = a.ref, .secret = 7 };
	struct sim_world *w = sim_mm(b.mm)->w;
	struct sim_hold *h = &sim_mm(b.mm)->f->hold[a.hold - 1];
	struct sim_region *r = &w->board[0]->region[h->region];

	assert_int_equal(kdev(c.mm, HAL_KDEV_IO_IMPORT, &imp), 0);
	assert_true(atomic_load(&r->kept) == 1);
	sim_lock(w);
	atomic_store(&h->ref, 0);
	atomic_store(&w->board[0]->common.lock, UINT64_C(99) << 16 | 500);
	/* it is dead: who is next puts things right */
	hal_unlock(&w->lock);
	sim_lock(w);
	sim_unlock(w);
	assert_true(atomic_load(&r->kept) == 0);
	imp.hold = 0;
	assert_int_equal(kdev(d.mm, HAL_KDEV_IO_IMPORT, &imp), -ESTALE);
	iface_close(&d);
	iface_close(&c);
	iface_close(&b);
}

static uint32_t arm(struct iface *b)
{
	assert_true(io->event_fd(b->mm) >= 0);
	assert_int_equal(kdev(b->mm, HAL_KDEV_IO_ARM, NULL), 0);
	return atomic_load(&sim_mm(b->mm)->b->fifo[b->c.iface].armed);
}

/* A signaller of the holder before cannot disarm the one after. */
static void arming_goes_on_counting(void **state)
{
	struct iface b = iface(WORLD, 0), other = iface(WORLD, 1);
	uint32_t number = b.c.iface, first = arm(&b);

	assert_true(first != 0);
	iface_close(&b);
	b = iface(WORLD, 0);
	assert_int_equal(b.c.iface, number);
	assert_true(arm(&b) != first);
	iface_close(&other);
	iface_close(&b);
}

/* Ask a process of the model who it is, as one who joins does. */
static int ask(struct sim_world *w)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), ret;
	struct sockaddr_un sun;
	socklen_t len = sim_name(&sun, "part", w->hash,
				 (w->me & 0xffff) - 1);

	assert_true(fd >= 0);
	ret = connect(fd, (struct sockaddr *)&sun, len) == 0 ? 0 : -errno;
	close(fd);
	return ret;
}

/* However many joined before, the next one can. */
static void many_have_joined(void **state)
{
	struct iface b = iface(WORLD, 0);
	struct hal_mmio *mm;

	for (int i = 0; i < 5000; i++)
		if (ask(sim_mm(b.mm)->w) != 0)
			break;
	mm = device(WORLD, 0);
	assert_int_equal(ask(sim_mm(b.mm)->w), 0);
	io->close(mm);
	iface_close(&b);
}

UNIT_MAIN(
	cmocka_unit_test(a_helper_is_stopped),
	cmocka_unit_test(a_store_is_its_own),
	cmocka_unit_test(a_place_is_taken),
	cmocka_unit_test(a_region_is_not_kept),
	cmocka_unit_test(arming_goes_on_counting),
	cmocka_unit_test(many_have_joined),
)
