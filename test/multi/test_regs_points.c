/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regs_points.c - a process of the register model that is killed or
 * stopped at each of the model's points (hal_fault_point.h), and one that is
 * killed where it puts right what another left: the next finds nothing wrong.
 * Needs --enable-fault-points.
 */
#include <sys/prctl.h>

#include "hal/hal_fault_point.h"
#include "lib/regs_fixture.h"

#define WORLD	"fifo=8,route=0,reorder=500"
#define PACKETS	12u

#ifdef HAL_FAULT_POINTS

static struct iface heir;		/* ours, on board 1 */

/* ---- The one that is killed -------------------------------------------- */

static void use_memory(struct iface *b, uint64_t to)
{
	struct hal_kdev_alloc a = { .bytes = 20000, .secret = 1, .board = 1,
				    .to = to };
	struct hal_kdev_hold h;
	struct hal_mmio_map map;

	if (kdev(b->mm, HAL_KDEV_IO_ALLOC, &a) != 0 ||
	    io->map(b->mm, a.map_off, a.bytes, &map) != 0)
		_exit(2);
	for (uint64_t at = 0; at < 32; at++)
		io->store(&map, 64 * at, "0123456789abcdef", 16);
	io->stores_before_notify(&map);
	io->unmap(&map);
	h.hold = a.hold;
	if (kdev(b->mm, HAL_KDEV_IO_DROP, &h) != 0)
		_exit(3);
}

/* All that a process does with the model; the heir takes while it sends. */
static void live(void)
{
	struct iface b = iface(WORLD, 0);

	for (uint64_t i = 0; i < PACKETS; )
		i += send_packet(&b, &heir, i) == HAL_PIF_ACK;
	use_memory(&b, 0);
	use_memory(&b, heir.c.identity);
	iface_close(&b);
	_exit(0);
}

static pid_t victim(enum hal_fault_point p, unsigned pass, const char *action)
{
	char point[64];
	pid_t pid;

	snprintf(point, sizeof(point), "%s:%u:%s", hal_fault_point_name(p),
		 pass, action);
	fflush(NULL);
	pid = unit_fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("FI_UNIMEM_POINT", point, 1);
	hal_fault_point_reload();
	live();
	_exit(4);
}

/* ---- Those that live --------------------------------------------------- */

/* Numbers from 0 on, each once, whole; of one sender. */
static void receive(uint64_t *next)
{
	uint64_t w[4];

	while (take_word(&heir, &w[0])) {
		assert_true(take_word(&heir, &w[2]));
		assert_true(w[1] == *next && w[2] == ~w[1] &&
			    w[3] == 3 * w[1]);
		++*next;
	}
}

/* The rest of its life; its wait status. stops: how often it was stopped. */
static int see_off(pid_t pid, uint64_t *next, unsigned *stops)
{
	int status;

	*next = 0;
	*stops = 0;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);

		assert_true(got >= 0);
		receive(next);
		if (got == 0)
			continue;
		if (!WIFSTOPPED(status))
			break;
		++*stops;
		kill(pid, SIGCONT);
	}
	receive(next);
	return status;
}

/* ---- Points ------------------------------------------------------------ */

static void at_every_point(const char *action)
{
	static const unsigned passes[] = { 1, 2, 3, 7 };
	uint64_t next;

	alarm(600);
	heir = iface(WORLD, 1);
	for (int p = HAL_FAULT_POINT_SIM_TAKEN + 1; p < HAL_FAULT_POINT_COUNT;
	     p++) {
		unsigned reached = 0, stops;

		for (unsigned i = 0; i < sizeof(passes) / sizeof(*passes);
		     i++) {
			int status = see_off(victim(p, passes[i], action),
					     &next, &stops);

			if (WIFEXITED(status)) {
				assert_int_equal(WEXITSTATUS(status), 0);
				assert_true(next == PACKETS);
			} else {
				assert_int_equal(WTERMSIG(status), SIGKILL);
				reached++;
			}
			reached += stops;
			expect_nothing_left(&heir);
		}
		if (reached == 0)
			unit_fail("nobody passes %s", hal_fault_point_name(p));
	}
	alarm(0);
	iface_close(&heir);
}

static void killed_at_every_point(void **state)
{
	at_every_point("kill");
}

static void stopped_at_every_point(void **state)
{
	at_every_point("stop");
}

/* One is killed in the driver's lock, one where it takes the lock over. */
static void killed_in_taking_over(void **state)
{
	static const enum hal_fault_point inside[] = {
		HAL_FAULT_POINT_SIM_MAKING, HAL_FAULT_POINT_SIM_HOLDING,
		HAL_FAULT_POINT_SIM_LETTING, HAL_FAULT_POINT_SIM_FREEING,
		HAL_FAULT_POINT_SIM_CLAIMED, HAL_FAULT_POINT_SIM_RELEASED,
	};
	unsigned stops;
	uint64_t next;

	heir = iface(WORLD, 1);
	for (unsigned i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
		int status = see_off(victim(inside[i], 1, "kill"), &next,
				     &stops);

		assert_true(WIFSIGNALED(status));
		for (int k = 0; k < 2; k++) {
			status = see_off(victim(HAL_FAULT_POINT_SIM_TAKEN, 1,
						"kill"), &next, &stops);
			assert_true(WIFSIGNALED(status));
			assert_int_equal(WTERMSIG(status), SIGKILL);
			assert_true(next == 0);
		}
		expect_nothing_left(&heir);
	}
	iface_close(&heir);
}

#else

static void killed_at_every_point(void **state)
{
	skip();				/* needs --enable-fault-points */
}

static void stopped_at_every_point(void **state)
{
	skip();				/* needs --enable-fault-points */
}

static void killed_in_taking_over(void **state)
{
	skip();				/* needs --enable-fault-points */
}

#endif

REGS_MAIN(
	cmocka_unit_test(killed_at_every_point),
	cmocka_unit_test(stopped_at_every_point),
	cmocka_unit_test(killed_in_taking_over),
)
