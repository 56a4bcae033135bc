/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_bus.c - bus errors of the silicon's accessors (hal_dev_bus.c,
 * hal_mmio_dev.c).
 *
 * A file stands for the memory behind a window, and a page that was cut off the
 * file for a board that does not answer: the kernel reports both by SIGBUS.
 */
#include "hal/dev/hal_dev.h"
#include "hal/dev/hal_dev_bus.h"
#include "lib/unit.h"

static char path[] = "/tmp/test_dev_bus.XXXXXX";

struct board {
	struct hal_platform pf;
	struct hal_mmio *mm;
	const struct hal_mmio_ops *io;
};

static struct board board(void)
{
	struct board b = { .io = &hal_mmio_dev_ops };

	assert_int_equal(truncate(path, 16 * HAL_REG_PAGE), 0);
	b.pf.board = UINT32_MAX;
	snprintf(b.pf.node, sizeof(b.pf.node), "%s", path);
	snprintf(b.pf.mif.node, sizeof(b.pf.mif.node), "%s", path);
	assert_int_equal(b.io->open(&b.pf, UINT32_MAX, &b.mm), 0);
	return b;
}

static volatile sig_atomic_t theirs;

/* The application's handler: the page is there again when it returns. */
static void put_back(int sig)
{
	(void)sig;
	theirs++;
	if (truncate(path, 16 * HAL_REG_PAGE) != 0)
		_exit(9);
}

/* If the bus does not answer a load of stores_before_notify(), that call fails.
 * (Here the page was cut off its file, which the kernel also reports by
 * SIGBUS.) Any other bus error is handled by the application's handler. */
static void bus_error_is_an_error(void **state)
{
	struct sigaction old, sa = { .sa_handler = put_back }, now;
	struct board b;
	struct hal_mmio_map map;
	uint64_t w = 7;

	assert_int_equal(sigaction(SIGBUS, &sa, &old), 0);
	b = board();
	assert_int_equal(b.io->map(b.mm, hal_kdev_off(HAL_KDEV_MIF,
			 HAL_MIF_PAGE(3)), HAL_REG_PAGE, &map), 0);
	b.io->store(&map, 8, &w, sizeof(w));
	assert_int_equal(b.io->stores_before_notify(&map), 0);
	assert_int_equal(truncate(path, HAL_REG_PAGE), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(b.io->stores_before_notify(&map), -EIO);
	assert_int_equal(theirs, 0);
	/* another load: the application's handler restores the page, and the
	 * load is repeated */
	assert_true(b.io->read64(&map, 8) == 0);
	assert_int_equal(theirs, 1);
	assert_int_equal(b.io->stores_before_notify(&map), 0);
	raise(SIGBUS);
	assert_int_equal(theirs, 2);
	b.io->unmap(&map);
	b.io->close(b.mm);
	assert_int_equal(sigaction(SIGBUS, &old, &now), 0);
	assert_true(now.sa_handler == put_back);
}

/* If the application has no handler, such an access ends the process. */
static void bus_error_of_others_ends_it(void **state)
{
	for (int sent = 0; sent < 2; sent++) {
		pid_t pid = unit_fork();

		if (pid == 0) {
			struct hal_mmio_map map;
			struct board b;

			signal(SIGBUS, SIG_DFL);
			b = board();
			if (b.io->map(b.mm, hal_kdev_off(HAL_KDEV_MIF,
				      HAL_MIF_PAGE(3)), HAL_REG_PAGE,
				      &map) != 0)
				_exit(1);
			if (sent)
				raise(SIGBUS);
			else if (truncate(path, HAL_REG_PAGE) == 0)
				b.io->read64(&map, 8);
			_exit(2);
		}
		assert_int_equal(unit_exit_code(pid), 128 + SIGBUS);
	}
}

/* Devices are opened and closed in any order. The last close restores the
 * handler of SIGBUS, unless another one was installed meanwhile. */
static void handler_goes_with_the_last(void **state)
{
	struct sigaction first, now, sa = { .sa_handler = put_back };

	assert_int_equal(sigaction(SIGBUS, NULL, &first), 0);
	for (int other = 0; other < 2; other++) {
		dev_bus_open();
		dev_bus_open();
		dev_bus_close();
		assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
		assert_true(now.sa_handler != first.sa_handler);
		if (other)
			assert_int_equal(sigaction(SIGBUS, &sa, NULL), 0);
		dev_bus_close();
		assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
		assert_true(now.sa_handler == (other ? put_back :
					       first.sa_handler));
	}
	assert_int_equal(sigaction(SIGBUS, &first, NULL), 0);
}

static struct sigaction below;		/* handler before chained() */

static void chained(int sig, siginfo_t *info, void *context)
{
	if (++theirs > 2)
		_exit(3);		/* the handlers call each other for
					 * ever */
	below.sa_sigaction(sig, info, context);
}

/* A handler that is installed over the backend's and calls it stays installed
 * when the device is closed. When a device is opened again, the handlers do not
 * call each other in a circle. */
static void handlers_end_where_they_began(void **state)
{
	struct sigaction sa = { .sa_sigaction = chained,
				.sa_flags = SA_SIGINFO };
	pid_t pid = unit_fork();

	if (pid == 0) {
		theirs = 0;
		signal(SIGBUS, SIG_DFL);
		dev_bus_open();
		sigaction(SIGBUS, &sa, &below);
		for (int i = 0; i < 8; i++) {
			dev_bus_close();
			dev_bus_open();
		}
		raise(SIGBUS);
		_exit(2);
	}
	assert_int_equal(unit_exit_code(pid), 128 + SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bus_error_is_an_error),
		cmocka_unit_test(bus_error_of_others_ends_it),
		cmocka_unit_test(handler_goes_with_the_last),
		cmocka_unit_test(handlers_end_where_they_began),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 99;
	ret = unit_run(tests);
	close(fd);
	unlink(path);
	return ret;
}
