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
#include "hal/hal_log.h"
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

static struct sigaction action(void)
{
	struct sigaction is;

	assert_int_equal(sigaction(SIGBUS, NULL, &is), 0);
	return is;
}

static void set_action(const struct sigaction *sa)
{
	assert_int_equal(sigaction(SIGBUS, sa, NULL), 0);
}

/* Devices are opened and closed in any order. The last close restores the
 * handler of SIGBUS, unless another one was installed meanwhile. */
static void handler_goes_with_the_last(void **state)
{
	const struct sigaction first = action(), over = {
		.sa_handler = put_back,
	};
	struct sigaction ours;

	for (int other = 0; other < 2; other++) {
		dev_bus_open();
		dev_bus_open();
		dev_bus_close();
		ours = action();
		assert_true(ours.sa_handler != first.sa_handler);
		if (other)
			set_action(&over);
		dev_bus_close();
		assert_true(action().sa_handler == (other ? put_back :
						    first.sa_handler));
	}
	/* the handler that stayed is removed when it is on top again */
	set_action(&ours);
	dev_bus_open();
	dev_bus_close();
	assert_true(action().sa_handler == first.sa_handler);
}

static siginfo_t *last_info;		/* arguments of record() */
static void *last_context;

static void record(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	last_info = info;
	last_context = context;
}

/* The backend's handler passes a signal to the action that it replaced, with
 * all arguments. An access that ends the process without the backend ends it
 * with the backend, too: the default action is in force when the access is
 * repeated. A signal that was sent, and the early report of bad memory, are no
 * accesses, so an application that ignores SIGBUS goes on. */
static void other_bus_errors_are_passed_on(void **state)
{
	static const struct {
		void (*handler)(int);
		int code;
		bool stays;		/* the backend's handler is in force */
	} passed[] = {
		{ put_back, BUS_ADRERR, true }, { put_back, SI_USER, true },
		{ SIG_IGN, SI_USER, true }, { SIG_IGN, BUS_MCEERR_AO, true },
		{ SIG_IGN, BUS_ADRERR, false }, { SIG_DFL, BUS_ADRERR, false },
	};
	struct sigaction old = action(), sa = { .sa_sigaction = record,
						.sa_flags = SA_SIGINFO }, ours;
	siginfo_t info = { .si_code = BUS_ADRERR };
	static ucontext_t context;	/* not at the backend's load */

	for (unsigned i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		struct sigaction before = { .sa_handler = passed[i].handler };

		set_action(&before);
		dev_bus_open();
		ours = action();
		info.si_code = passed[i].code;
		theirs = 0;
		ours.sa_sigaction(SIGBUS, &info, &context);
		assert_int_equal(theirs, passed[i].handler == put_back);
		assert_true(action().sa_handler == (passed[i].stays ?
						    ours.sa_handler : SIG_DFL));
		set_action(&ours);
		dev_bus_close();
		assert_true(action().sa_handler == passed[i].handler);
	}
	set_action(&sa);
	dev_bus_open();
	action().sa_sigaction(SIGBUS, &info, &context);
	assert_ptr_equal(last_info, &info);
	assert_ptr_equal(last_context, &context);
	dev_bus_close();
	assert_true(action().sa_sigaction == record);
	set_action(&old);
}

static struct sigaction below;		/* handler before chained() */
static volatile sig_atomic_t chains;	/* calls of chained() */

static void chained(int sig, siginfo_t *info, void *context)
{
	/* no more: the handlers call each other for ever */
	if (++chains <= 2)
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

/* The application saves the backend's handler and installs it again after the
 * device was closed, as libraries do that restore an action. When the device is
 * opened and another handler calls this one, they do not call each other in a
 * circle. */
static void handler_comes_back(void **state)
{
	struct sigaction old = action(), ours;
	const struct sigaction under = { .sa_handler = put_back };
	const struct sigaction over = { .sa_sigaction = chained,
					.sa_flags = SA_SIGINFO };

	set_action(&under);
	dev_bus_open();
	ours = action();
	dev_bus_close();
	assert_true(action().sa_handler == put_back);
	set_action(&ours);
	dev_bus_open();
	below = action();
	assert_true(below.sa_sigaction == ours.sa_sigaction);
	set_action(&over);
	dev_bus_close();
	dev_bus_open();
	theirs = 0;
	chains = 0;
	raise(SIGBUS);
	assert_int_equal(chains, 1);
	assert_int_equal(theirs, 1);
	dev_bus_close();
	assert_true(action().sa_sigaction == chained);
	set_action(&ours);
	dev_bus_open();
	dev_bus_close();
	assert_true(action().sa_handler == put_back);
	set_action(&old);
}

static char said[256];			/* last log line */
static int lines;

static void listen_to(int level, const char *line)
{
	assert_int_equal(level, 0);
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

#define INSTALLS	4		/* of hal_dev_bus.c */

/* A library installs its handler over the backend's each time. The backend
 * gives up with one line, and takes no handler of its own off another one. As
 * each of its handlers is on top again, the last close removes that one. */
static void handlers_are_used_up(void **state)
{
	struct sigaction old = action(), ours[INSTALLS];
	const struct sigaction over = { .sa_sigaction = record,
					.sa_flags = SA_SIGINFO };

	lines = 0;
	hal_log_set(listen_to);
	for (int i = 0; i < INSTALLS; i++) {
		dev_bus_open();
		ours[i] = action();
		for (int k = 0; k < i; k++)
			assert_true(ours[i].sa_sigaction !=
				    ours[k].sa_sigaction);
		set_action(&over);
		dev_bus_close();
	}
	assert_int_equal(lines, 0);
	dev_bus_open();
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "SIGBUS was taken from the library 4"));
	dev_bus_close();
	hal_log_set(NULL);
	assert_true(action().sa_sigaction == record);
	for (int i = INSTALLS - 1; i >= 0; i--) {
		set_action(&ours[i]);
		dev_bus_open();
		assert_true(action().sa_sigaction == ours[i].sa_sigaction);
		dev_bus_close();
		assert_true(action().sa_sigaction == (i > 0 ? record :
						      old.sa_sigaction));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bus_error_is_an_error),
		cmocka_unit_test(bus_error_of_others_ends_it),
		cmocka_unit_test(other_bus_errors_are_passed_on),
		cmocka_unit_test(handler_goes_with_the_last),
		cmocka_unit_test(handlers_end_where_they_began),
		cmocka_unit_test(handler_comes_back),
		cmocka_unit_test(handlers_are_used_up),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 99;
	ret = unit_run(tests);
	close(fd);
	unlink(path);
	return ret;
}
