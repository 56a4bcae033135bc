/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_model_file.c - the figures of the timing model (hal_model.c): the file
 * that is installed, and each mistake in a file of one's own.
 */
#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/hal_model.h"
#include "lib/unit.h"

/* A whole file; each test changes one line of it. */
static const char *const good[] = {
	"packet_latency = 900 ns	# measured: my board\n",
	"packet_gap=0 us # assumed: none\n",
	"fifo_depth = 32 packets # assumed: by the driver\n",
	"store_latency = 0.5 us # assumed: half a load\n",
	"store_rate = 8 M/s # measured: my board\n",
	"line_rate = 500 k/s # bound: by the data sheet\n",
	"store_queue = 4 stores # assumed: four\n",
	"load_round_trip = 1 ms # bound: not more\n",
	"dma_setup = 1.5 us # measured: my board\n",
	"dma_bandwidth = 950 MB/s # measured: my board\n",
	"route_registration = 12 us # measured: my board\n",
};
#define NGOOD	(sizeof(good) / sizeof(good[0]))

static char said[512], path[64];
static unsigned lines;

static void listen_to(int level, const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
	lines += level == 0;
}

static int setup(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "test_model_file.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	said[0] = '\0';
	lines = 0;
	hal_log_set(listen_to);
	return 0;
}

static int teardown(void **state)
{
	hal_log_set(NULL);
	return unlink(path);
}

/* Load the good file with this text instead of line number at, from 0. */
static int load_with(unsigned at, const char *text, struct hal_model *m)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (unsigned i = 0; i < NGOOD; i++)
		fputs(i == at ? text : good[i], f);
	fclose(f);
	return hal_model_load(path, m);
}

/* Each figure is read, in each unit. */
static void every_figure(void **state)
{
	struct hal_model m;

	assert_int_equal(load_with(NGOOD, "", &m), 0);
	assert_string_equal(m.path, path);
	assert_true(m.packet_latency == 900 && m.packet_gap == 0);
	assert_true(m.fifo_depth == 32 && m.store_queue == 4);
	assert_true(m.store_latency == 500 && m.load_round_trip == 1000000);
	assert_true(m.store_time == 125 && m.line_time == 2000);
	assert_true(m.dma_setup == 1500 && m.dma_bandwidth == 950000000);
	assert_true(m.route_registration == 12000);
	assert_int_equal(lines, 0);
}

/* The installed file is valid, and keeps to the published bounds. */
static void published(void **state)
{
	const char *top = getenv("UNM_SRCDIR");
	struct hal_model m;
	char file[4096];

	snprintf(file, sizeof(file), "%s/prov/unimem/hal/exanode.model",
		 top != NULL ? top : ".");
	assert_int_equal(hal_model_load(file, &m), 0);
	assert_true(m.packet_latency <= 1000);
	assert_true(m.dma_bandwidth >= 1000000000);
	assert_true(m.route_registration >= 10000);
	assert_true(m.load_round_trip <= 2000);
}

/* The log line has file, line, figure and remedy; the model is not changed. */
static void mistakes(void **state)
{
	static const struct { unsigned at; const char *text, *says; } bad[] = {
		{ 0, "packet_latency = 900 # measured: me\n",
		  ":1: packet_latency: use 0 ns to 100 ms" },
		{ 0, "packet_latency = 900 GB/s # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = 101 ms # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = -1 ns # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = nan ns # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = 1e999 ns # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = . us # measured: me\n", "use 0 ns" },
		{ 0, "packet_latency = 1.2.3 us # measured: me\n",
		  "use 0 ns" },
		{ 0, "packet_latency = 0,9 us # measured: me\n", "use 0 ns" },
		/* strtod() takes these */
		{ 0, "packet_latency = 0x10 ns # measured: me\n",
		  "use 0 ns" },
		{ 0, "packet_latency = 1e2 ns # measured: me\n", "use 0 ns" },
		{ 1, "packet_gap = 101 us # assumed: me\n",
		  "use 0 ns to 100 us" },
		{ 3, "store_latency = 0.2 s # assumed: me\n", "use 0 ns" },
		{ 3, "store_latency = 200 ms # assumed: me\n",
		  "use 0 ns to 100 ms" },
		{ 2, "fifo_depth = 48 packets # assumed: me\n",
		  ":3: fifo_depth: use a power of 2 from 2 to 64 packets" },
		{ 2, "fifo_depth = 128 packets # assumed: me\n", "2 to 64" },
		{ 2, "fifo_depth = 2.5 packets # assumed: me\n", "2 to 64" },
		{ 4, "store_rate = 0 M/s # assumed: me\n", "use 1 k/s" },
		{ 6, "store_queue = 65 stores # assumed: me\n", "1 to 64" },
		{ 9, "dma_bandwidth = 0.1 MB/s # bound: me\n", "use 1 MB/s" },
		{ 7, "load_round_trip = 400 ns # bound: me\n",
		  "load_round_trip: a load is not faster than a store" },
		{ 3, "store_latencie = 1 us # assumed: me\n",
		  ":4: store_latencie: no figure of the model is called so" },
		{ 3, "store_latency 1 us # assumed: me\n",
		  "write it as name = value unit # kind: source" },
		{ 3, "dma_setup = 1 us # assumed: me\n",
		  ":9: dma_setup: the figure was given before" },
		{ 10, "", "route_registration: the figure is missing" },
		{ 8, "dma_setup = 1 us\n", ":9: dma_setup: end the line with" },
		{ 8, "dma_setup = 1 us # guess: me\n", "end the line with" },
		{ 8, "dma_setup = 1 us # assumed:  \n", "end the line with" },
	};
	struct hal_model m;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&m, 0x5a, sizeof(m));
		lines = 0;
		assert_int_equal(load_with(bad[i].at, bad[i].text, &m),
				 -FI_EINVAL);
		if (lines != 1 || strstr(said, bad[i].says) == NULL ||
		    strstr(said, path) == NULL)
			unit_fail("%u lines for %s, the last: %s", lines,
				  bad[i].text, said);
		assert_int_equal(m.fifo_depth, 0x5a5a5a5a5a5a5a5a);
	}
}

/* strtod() of a program whose locale writes 0,5: HAL and test have none. */
double strtod(const char *text, char **end)
{
	*end = (char *)(uintptr_t)text + strspn(text, "0123456789");
	return (double)atol(text);
}

/* The dot is a dot, whatever the application's locale. */
static void numbers_in_any_locale(void **state)
{
	struct hal_model m;

	assert_int_equal(load_with(0, "packet_latency = 0.0125 us # bound: x\n",
				   &m), 0);
	assert_true(m.packet_latency == 13);	/* rounded */
	assert_int_equal(load_with(0, "packet_latency = .5 us # bound: x\n",
				   &m), 0);
	assert_true(m.packet_latency == 500);
	assert_int_equal(load_with(0, "packet_latency = 7. us # bound: x\n",
				   &m), 0);
	assert_true(m.packet_latency == 7000);
}

static void odd_files(void **state)
{
	struct hal_model m;
	char text[300];

	assert_int_equal(hal_model_load("./no such file", &m), -FI_EINVAL);
	assert_non_null(strstr(said, "./no such file: No such file"));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 2] = '\n';
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(load_with(1, text, &m), -FI_EINVAL);
	assert_non_null(strstr(said, ":2: the line: it is longer"));
	assert_int_equal(lines, 2);
}

UNIT_MAIN(
	cmocka_unit_test_setup_teardown(every_figure, setup, teardown),
	cmocka_unit_test_setup_teardown(published, setup, teardown),
	cmocka_unit_test_setup_teardown(numbers_in_any_locale, setup, teardown),
	cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
	cmocka_unit_test_setup_teardown(odd_files, setup, teardown))
