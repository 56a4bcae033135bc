// SPDX-License-Identifier: BSD-2-Clause
/*
 * model_raw.c - does the timing model give its figures back?
 *
 * Measures packets, stores, loads and transfers on the HAL alone, under the
 * model that FI_UNIMEM_MODEL names, and prints each beside its figure. One
 * thread uses both interfaces, so that the distance of two cores is no part of
 * the readings; the row packet,_2_threads is one way of packets that two
 * polling threads send each other, as software on two boards would.
 *
 * The model is never early, and a busy machine only adds to a time. So "raw" is
 * the sample that a tenth of the samples do not exceed, with nothing
 * subtracted. Between two readings of the clock lies the cost of one. The
 * reading is raw less this cost, which is measured; less packet_latency and
 * divided by the number for packet_gap; and less store_time for
 * load_round_trip, because the load is behind a store; and without the bytes of
 * a short transfer for dma_setup. The time of the calls themselves (of the
 * model, and of the device backend on the register model) is not subtracted:
 * software sees it too. bench/model runs this program a second time, under
 * figures of next to nothing, to find out how long these calls take.
 *
 * With -c it prints instead the curves of posted stores and loads by size, as
 * figures 6 to 9 of the paper on the HyperTransport engine have them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal.h"
#include "hal/hal_model.h"
#include "unm_stat.h"

#define TYPE		0x21		/* any packet type but the empty one */
#define SAMPLES		2001
#define TRANSFERS	501		/* samples of a long transfer */
#define STORES		200		/* in a sample of the rate */
#define RATES		501		/* samples of a rate */
#define LONG		(256 * UNM_KIB)	/* bytes of a long transfer */
#define SHORT		(16 * UNM_KIB)
#define SHORTEST	64		/* bytes: one that an engine executes */
#define SPACE		((size_t)4096)	/* bytes of receive space */
#define PATIENCE	10.0		/* seconds for each step */

static struct hal *hal;
static struct hal_if *from, *to;
static struct hal_peer *out, *in;	/* to as from sees it, and reverse */
static struct hal_mem *mem[2];
static void *local;
static double clock_ns;			/* cost of reading the clock */

static void fail(const char *what, int err)
{
	fprintf(stderr, "model_raw: %s%s%s\n", what, err ? ": " : "",
		err ? strerror(-err) : "");
	exit(2);
}

static double now_ns(void)
{
	return unm_now() * 1e9;
}

static void patience(double since, const char *what)
{
	struct hal_event ev[4];
	int n;

	hal_if_service(from, ev, 4);
	n = hal_if_service(to, ev, 4);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_INBOUND)
			in = ev[i].peer;
	if (now_ns() - since > PATIENCE * 1e9)
		fail(what, -FI_ETIMEDOUT);
}

static void open_all(void)
{
	double t0 = now_ns();
	void *remote;
	int ret, board;

	ret = hal_get(NULL, &hal);
	if (ret)
		fail("hal_get", ret);
	/* the register model has no route to register on the own board */
	board = (hal->own_board + 1) % (int)hal->caps.boards;
	if (hal_if_open(hal, -1, &from) || hal_if_open(hal, board, &to))
		fail("no interface is free", 0);
	while ((ret = hal_connect(from, &to->addr, &out)) == -FI_EAGAIN)
		patience(t0, "hal_connect");
	if (ret)
		fail("hal_connect", ret);
	while (!in)
		patience(t0, "the connection does not come up");
	if (hal_mem_alloc(hal, -1, LONG, &mem[0], &local) ||
	    hal_mem_alloc(hal, board, LONG, &mem[1], &remote) ||
	    hal_space_ready(out, SPACE))
		fail("no memory", 0);
	memset(local, 1, LONG);
	memset(remote, 1, LONG);
}

static void close_all(void)
{
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
	hal_if_close(from);
	hal_if_close(to);
	hal_put(hal);
}

/* A reading: what is judged, and the median beside it. */
struct reading {
	double raw, low, median;
};

/* less: what is subtracted from the raw value. */
static struct reading read_samples(double *v, int n, double less)
{
	struct reading r = { .median = unm_median(v, n) };	/* sorts v */

	r.raw = v[n / 10];
	r.low = r.raw - less;
	return r;
}

/* Print a figure, its reading and their ratio. The script judges the ratio of a
 * row that says "judged". */
static void row(const char *name, double figure, struct reading r,
		const char *unit, const char *judged)
{
	printf("%-20s %9.1f %9.1f %9.1f %9.1f %-5s %7.3f  %s\n", name, figure,
	       r.median, r.raw, r.low, unit, figure != 0 ? r.low / figure : 0,
	       judged);
}

static void gauge_clock(void)
{
	static double v[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		double t0 = now_ns();

		for (int k = 0; k < 100; k++)
			(void)now_ns();
		v[i] = (now_ns() - t0) / 101;
	}
	clock_ns = read_samples(v, SAMPLES, 0).low;
}

/* ---------------------------------------------------------------- packets */

/* Callers time this: the clock is read only after a send is refused. */
static void post(void)
{
	uint64_t word = 0;
	double t0 = 0;

	while (hal_pkt_send(out, hal_head(TYPE, 0), &word, 1, NULL, 0)) {
		if (t0 == 0)
			t0 = now_ns();
		patience(t0, "a packet is not taken");
	}
}

/* Release the packet that hal_rx_peek() returned. */
static void release(struct hal_peer *peer)
{
	hal_rx_release(peer);
	hal_rx_flush(peer);
}

/* Returns when the next packet is seen, and releases it. */
static double arrival(void)
{
	unsigned int empty = 0;
	double t0 = 0, t;
	uint64_t head;

	for (;;) {
		hal_if_pump(to);
		if (hal_rx_peek(in, &head))
			break;
		if (++empty % 65536)
			continue;
		if (t0 == 0)
			t0 = now_ns();
		patience(t0, "no packet comes");
	}
	t = now_ns();
	release(in);
	return t;
}

/* Let the interface be idle: what it sent before does not delay the next. */
static void rest(double ns)
{
	double end = now_ns() + ns;

	while (now_ns() < end) {
		hal_if_pump(from);
		hal_if_pump(to);
	}
}

static struct reading packet_latency(const struct hal_model *m)
{
	static double v[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		double t0;

		rest(4.0 * (m->packet_gap + m->packet_latency +
			    m->store_latency));
		t0 = now_ns();
		post();
		v[i] = arrival() - t0;
	}
	return read_samples(v, SAMPLES, clock_ns);
}

/* Let an interface send its next packet to a peer, as soon as there is room. */
static void send_to(struct hal_if *hif, struct hal_peer *peer)
{
	uint64_t word = 0;

	while (hal_pkt_send(peer, hal_head(TYPE, 0), &word, 1, NULL, 0))
		hal_if_pump(hif);
}

/* Wait for the next packet of a peer. */
static void wait_for(struct hal_if *hif, struct hal_peer *peer)
{
	uint64_t head;

	while (!hal_rx_peek(peer, &head))
		hal_if_pump(hif);
}

/* The second thread: return each packet. It replies before it releases, because
 * the release is a store that the reply would wait for. The reply needs no slot
 * that this release would free: either direction has slots of its own, and the
 * other thread releases each reply before it sends again. */
static void *return_all(void *arg)
{
	struct hal_peer *back = arg;

	for (int i = 0; i < SAMPLES; i++) {
		wait_for(to, in);
		send_to(to, back);
		release(in);
	}
	return NULL;
}

/* Half the time of a packet there and back. */
static struct reading ping_pong(void)
{
	static double v[SAMPLES];
	struct hal_peer *back;
	pthread_t thread;
	double t0 = now_ns();
	int ret;

	/* out has an inbound half too, once its peer has connected to it */
	while ((ret = hal_connect(to, &from->addr, &back)) == -FI_EAGAIN)
		patience(t0, "hal_connect");
	if (ret)
		fail("hal_connect", ret);
	while (!out->rx.cells)
		patience(t0, "the way back does not come up");
	if (pthread_create(&thread, NULL, return_all, back))
		fail("no thread", 0);
	for (int i = 0; i < SAMPLES; i++) {
		t0 = now_ns();
		send_to(from, out);
		wait_for(from, out);
		v[i] = (now_ns() - t0) / 2;
		release(out);
	}
	pthread_join(thread, NULL);
	return read_samples(v, SAMPLES, clock_ns / 2);
}

static struct reading packet_gap(const struct hal_model *m)
{
	static double v[SAMPLES];
	int burst = (int)hal->caps.pkt_depth;

	for (int i = 0; i < SAMPLES / 8; i++) {
		double t0, last = 0;

		rest(4.0 * (m->packet_gap + m->packet_latency +
			    m->store_latency));
		t0 = now_ns();
		for (int k = 0; k < burst; k++)
			post();
		for (int k = 0; k < burst; k++)
			last = arrival();
		v[i] = (last - t0) / (burst - 1);
	}
	return read_samples(v, SAMPLES / 8, (m->packet_latency + clock_ns) /
			    (burst - 1));
}

/* --------------------------------------------------------- stores and loads */

static struct reading store_latency(void)
{
	static double v[SAMPLES];

	for (uint64_t i = 1; i <= SAMPLES; i++) {
		double t0;

		rest(1000);
		t0 = now_ns();
		hal_rx_back(in, 0, i);
		while (hal_tx_back(out, 0) != i)
			hal_if_pump(from);
		v[i - 1] = now_ns() - t0;
	}
	return read_samples(v, SAMPLES, clock_ns);
}

static struct reading store_time(size_t size)
{
	static const char line[SPACE];
	static double v[RATES];

	for (int i = 0; i < RATES; i++) {
		double t0 = now_ns();

		for (int k = 0; k < STORES; k++)
			hal_space_write(out, 0, line, size);
		v[i] = (now_ns() - t0) / STORES;
	}
	return read_samples(v, RATES, 0);
}

/* The load is behind a store, whose time is not the load's. */
static struct reading load_round_trip(const struct hal_model *m)
{
	static double v[SAMPLES];

	for (uint64_t i = 0; i < SAMPLES; i++) {
		double t0;

		rest(1000);
		t0 = now_ns();
		if (hal_rx_back_sync(in, 1, i))
			fail("hal_rx_back_sync", -FI_EAGAIN);
		v[i] = now_ns() - t0;
	}
	return read_samples(v, SAMPLES, clock_ns + m->store_time);
}

/* -------------------------------------------------------------- transfers */

static struct reading transfer(struct hal_rmem *rmem, size_t size, int samples)
{
	static double v[SAMPLES];
	struct hal_dma dma = {
		.op = HAL_DMA_PUT, .peer = out, .rmem = rmem, .local = local,
		.len = size,
	};
	struct hal_dma_comp comp;

	for (int i = 0; i < samples; i++) {
		double t0 = now_ns();
		int ret = hal_dma_post(from, &dma, 0);

		if (ret)
			fail("hal_dma_post", ret);
		while (hal_dma_poll(from, &comp, 1) == 0)
			;
		v[i] = now_ns() - t0;
		if (comp.status)
			fail("a transfer failed", comp.status);
	}
	return read_samples(v, samples, clock_ns);
}

static double import(struct hal_rmem **rmem)
{
	struct hal_key key;
	double t0 = now_ns();
	int ret;

	hal_mem_key(hal, mem[1], &key);
	while ((ret = hal_mem_import(out, &key, rmem)) == -FI_EAGAIN)
		patience(t0, "hal_mem_import");
	if (ret)
		fail("hal_mem_import", ret);
	return now_ns() - t0;
}

/* The set-up is the time of a short transfer without its bytes. */
static struct reading set_up(struct hal_rmem *rmem, const struct hal_model *m)
{
	struct reading r = transfer(rmem, SHORTEST, SAMPLES);

	r.low -= SHORTEST * 1e9 / (double)m->dma_bandwidth;
	return r;
}

/* The bandwidth is from the difference of two lengths. */
static void transfers(const struct hal_model *m)
{
	struct reading small, big, route, speed;
	struct hal_rmem *rmem;

	route.raw = route.low = route.median = import(&rmem);
	row("route_registration", m->route_registration, route, "ns",
	    "at least: an exchange of the region may be longer");
	row("dma_setup", m->dma_setup, set_up(rmem, m), "ns", "judged");
	small = transfer(rmem, SHORT, TRANSFERS);
	big = transfer(rmem, LONG, TRANSFERS);
	speed.raw = (LONG - SHORT) / (big.raw - small.raw) * 1e3;
	speed.low = (LONG - SHORT) / (big.low - small.low) * 1e3;
	speed.median = (LONG - SHORT) / (big.median - small.median) * 1e3;
	row("dma_bandwidth", m->dma_bandwidth / 1e6, speed, "MB/s", "judged");
	hal_mem_release(out, rmem);
}

/* ----------------------------------------------------------------- curves */

/* Posted stores of this many bytes in one call: MB/s, and stores of up to a
 * line per second. A load under way: its time, and MB/s of 8 bytes. */
static void curves(const struct hal_model *m)
{
	double ns;

	for (size_t size = 8; size <= SPACE; size *= 2) {
		size_t each = size < HAL_MODEL_LINE ? size : HAL_MODEL_LINE;

		ns = store_time(size).low;
		unm_row("store", size, size / ns * 1e3, "MB/s");
		unm_row("store_rate", size, size / each / ns * 1e3, "M/s");
	}
	ns = load_round_trip(m).low;
	unm_row("load", 8, ns, "ns");
	unm_row("loads_8", 1, 8 / ns * 1e3, "MB/s");
}

int main(int argc, char **argv)
{
	bool only_curves = argc == 2 && strcmp(argv[1], "-c") == 0;
	struct hal_params params;
	struct hal_model m;

	if (hal_params_load(&params))
		return 2;
	if (params.model[0] == '\0')
		fail("no timing model: set FI_UNIMEM_PROFILE=exanode and "
		     "FI_UNIMEM_MODEL", 0);
	if (hal_model_load(params.model, &m))
		return 2;
	open_all();
	gauge_clock();
	if (only_curves) {
		curves(&m);
		close_all();
		return 0;
	}
	printf("# raw HAL, backend %s, profile %s, figures of %s\n"
	       "# the clock costs %.0f ns\n"
	       "# figure                model    median       raw   reading "
	       "unit    ratio\n",
	       hal->caps.backend, hal->caps.profile, m.path, clock_ns);
	row("packet_latency", m.packet_latency, packet_latency(&m), "ns",
	    "judged");
	row("packet,_2_threads", m.packet_latency, ping_pong(), "ns",
	    "not judged: with the calls and caches of two threads");
	row("packet_gap", m.packet_gap, packet_gap(&m), "ns", "judged");
	row("store_latency", m.store_latency, store_latency(), "ns", "judged");
	row("store_time", m.store_time, store_time(HAL_MODEL_SHORT), "ns",
	    "judged");
	row("line_time", m.line_time, store_time(HAL_MODEL_LINE), "ns",
	    "judged");
	row("load_round_trip", m.load_round_trip, load_round_trip(&m), "ns",
	    "judged");
	transfers(&m);
	close_all();
	return 0;
}
