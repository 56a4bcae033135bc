/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_fixture.h - two interfaces that are connected under the timing model,
 * for test_model.c, test_model_link.c and test_model_engine.c.
 */
#ifndef MODEL_FIXTURE_H
#define MODEL_FIXTURE_H

#include "hal/hal.h"
#include "lib/unit.h"
#include "util/unm_clock.h"

#define MS		UINT64_C(1000000)
#define PATIENCE	(20000 * MS)

/* Figures that a test chooses; write_file() has the remaining ones. */
struct figures {
	const char *packet, *gap, *store, *rate, *load, *setup, *route;
	int depth;
};

/* Nothing takes time; a test changes what it is about. */
static const struct figures swift = {
	"0 us", "0 us", "0 us", "1000 M/s", "0 us", "0 us", "0 us", 8,
};

static struct hal *hal;
static struct hal_if *from, *to;
static struct hal_peer *out, *in;	/* to as from sees it, and reverse */
static struct hal_peer *self_in;	/* from as it sees itself, once it has
					 * connected to itself */
static bool dead;			/* HAL_EV_DEAD has come */
static char path[64];

static inline void write_file(const struct figures *f)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file, "packet_latency = %s # assumed: test\n"
		"packet_gap = %s # assumed: test\n"
		"fifo_depth = %d packets # assumed: test\n"
		"store_latency = %s # assumed: test\n"
		"store_rate = %s # assumed: test\n"
		"line_rate = %s # assumed: test\n"
		"store_queue = 1 stores # assumed: test\n"
		"load_round_trip = %s # assumed: test\n"
		"dma_setup = %s # assumed: test\n"
		"dma_bandwidth = 1 MB/s # assumed: test\n"
		"route_registration = %s # assumed: test\n",
		f->packet, f->gap, f->depth, f->store, f->rate, f->rate,
		f->load, f->setup, f->route);
	fclose(file);
}

static inline struct hal_params params_of(const char *profile,
					   const char *model)
{
	struct hal_params params;

	assert_int_equal(hal_params_load(&params), 0);
	snprintf(params.hal, sizeof(params.hal), "emu");
	snprintf(params.profile, sizeof(params.profile), "%s", profile);
	snprintf(params.model, sizeof(params.model), "%s", model);
	params.fault[0] = '\0';
	params.boards = 4;
	params.board = 3;
	params.sleep_ms = 0;		/* a lost wake-up stays lost */
	return params;
}

static inline void step(struct hal_if *hif)
{
	struct hal_event ev[4];
	int n = hal_if_service(hif, ev, 4);

	for (int i = 0; i < n; i++) {
		if (hif == to && ev[i].type == HAL_EV_INBOUND)
			in = ev[i].peer;
		if (hif == from && ev[i].type == HAL_EV_INBOUND)
			self_in = ev[i].peer;
		if (ev[i].type == HAL_EV_DEAD)
			dead = true;
	}
	hal_if_pump(hif);
}

/* Open two interfaces and connect them, with the figures that are in the
 * file. */
static inline void begin_with_file(const char *backend)
{
	struct hal_params params = params_of("exanode", path);
	uint64_t end = unm_now_ns() + PATIENCE;
	int ret;

	snprintf(params.hal, sizeof(params.hal), "%s", backend);
	assert_int_equal(hal_get(&params, &hal), 0);
	assert_int_equal(hal_if_open(hal, -1, &from), 0);
	assert_int_equal(hal_if_open(hal, -1, &to), 0);
	in = self_in = NULL;
	dead = false;
	while ((ret = hal_connect(from, &to->addr, &out)) == -FI_EAGAIN)
		step(to);
	assert_int_equal(ret, 0);
	while (in == NULL || out->addr.nonce == HAL_ADDR_ANY) {
		assert_true(unm_now_ns() < end);
		step(from);
		step(to);
	}
}

static inline void begin(const struct figures *f)
{
	write_file(f);
	begin_with_file("emu");
}

static inline int setup(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "./test_model.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

/* Close what begin() opened. */
static inline void end_all(void)
{
	if (from != NULL)
		hal_if_close(from);
	if (to != NULL)
		hal_if_close(to);
	if (hal != NULL)
		hal_put(hal);
	hal = NULL;
	from = to = NULL;
}

static inline int teardown(void **state)
{
	end_all();
	return unlink(path);
}

/* Let from connect to itself: one more peer. */
static inline struct hal_peer *connect_itself(void)
{
	uint64_t end = unm_now_ns() + PATIENCE;
	struct hal_peer *peer = NULL;
	int ret;

	do {
		ret = hal_connect(from, &from->addr, &peer);
		step(from);
		assert_true(unm_now_ns() < end);
	} while (ret == -FI_EAGAIN || self_in == NULL);
	assert_int_equal(ret, 0);
	return peer;
}

static inline void send_number(uint64_t number)
{
	assert_int_equal(hal_pkt_send(out, hal_head(1, 0), &number, 1, NULL,
				      0), 0);
}

#define CASE(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif /* MODEL_FIXTURE_H */
