/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_bare_client.h - a GSAS service and clients without libgsas, for tests of
 * service/gsas_board.h
 *
 * Clients are HAL interfaces that send hand-made packets. By default the thread
 * of the test polls the service and the clients in turn (step()), so that the
 * order of events is known; after serve_apart() a thread of its own runs the
 * service. State is global.
 */
#ifndef GSAS_BARE_CLIENT_H
#define GSAS_BARE_CLIENT_H

#include "lib/unit.h"
#include "service/gsas_board.h"
#include "op/gsas_op.h"

#define CLIENTS		64
#define SECONDS		120		/* a longer wait counts as a hang */
#define ROUNDS		(UNIT_SLOW ? 200 : 2000)
#define JOB		UINT64_C(0x123456789abcdef)

static struct gsas_board *g_board;
static struct hal *g_hal;
static int g_number;
static pthread_t g_thread;
static _Atomic bool g_stop;
static bool g_threaded;			/* g_thread runs the service */
static _Atomic int g_lines;		/* lines that the service logged */

static inline void count_line(const char *line)
{
	(void)line;
	atomic_fetch_add(&g_lines, 1);
}

/* The service's spawn(): starts no process, the result depends on the
 * arguments. */
static inline enum gsas_error spawn(void *ctx, const struct gsas_spawn *s,
			     uint64_t *pid)
{
	assert_ptr_equal(ctx, &g_stop);
	if (strcmp(s->path, "/bin/none") == 0)
		return GSAS_E_PATH;
	*pid = s->argument + s->job[0];
	return GSAS_OK;
}

/* Open the service of a board. */
static inline int board_open(int number, struct gsas_board **board)
{
	struct gsas_board_attr attr = {
		.board = number, .max_pages = 100000, .spawn = spawn,
		.spawn_ctx = &g_stop, .log = count_line,
	};

	return gsas_board_open(&attr, board);
}

/* cmocka set-up: open the service of board g_number. */
static inline int setup(void **state)
{
	int ret;

	atomic_store(&g_lines, 0);
	/* The socket name of the service before may not be released yet. */
	while ((ret = board_open(g_number, &g_board)) == -FI_EBUSY)
		usleep(1000);
	return ret;
}

static inline void *serve(void *arg)
{
	(void)arg;
	/* Sleep without a time limit: a client that does not wake the service
	 * makes the test hang. */
	while (!atomic_load(&g_stop))
		if (!gsas_board_poll(g_board))
			gsas_board_sleep(g_board, -1);
	return NULL;
}

/* Run the service in a thread of its own, or in the thread of the test
 * again. */
static inline void serve_apart(void)
{
	atomic_store(&g_stop, false);
	g_threaded = true;
	g_thread = unit_thread(serve, NULL);
}

static inline void serve_here(void)
{
	atomic_store(&g_stop, true);
	gsas_board_wake(g_board);
	pthread_join(g_thread, NULL);
	g_threaded = false;
}

/* ---- Clients ------------------------------------------------------------- */

/* A client, from bare_open() to bare_close() or the teardown. */
struct bare {
	struct hal_if *hif;		/* NULL: not open */
	struct hal_peer *peer;		/* the service */
	bool dead;			/* the service has disconnected */
};

/* An answer of the service, see op/gsas_op.h. */
struct answer {
	uint8_t opcode, tag;
	uint64_t error, result, more;
};

static struct bare g_bare[CLIENTS];	/* closed by the teardown */

static inline void bare_service(struct bare *r)
{
	struct hal_event ev[4];
	int n = hal_if_service(r->hif, ev, 4);

	hal_if_pump(r->hif);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			r->dead = true;
}

/* Monotonic clock, seconds. */
static inline uint64_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

/* Service a client (NULL: none), and poll the service unless its own thread
 * does. */
static inline void step(struct bare *r)
{
	if (r != NULL)
		bare_service(r);
	if (g_threaded)
		sched_yield();
	else
		gsas_board_poll(g_board);
}

#define UNTIL(r, cond)	do {						\
		uint64_t until_ = now_s() + SECONDS;			\
		while (!(cond)) {					\
			step(r);					\
			if (now_s() > until_)				\
				unit_fail("%s:%d: never: %s", __FILE__,	\
					  __LINE__, #cond);		\
		}							\
	} while (0)

static inline struct gsas_stat *stat(void)
{
	return gsas_service_stat(gsas_board_service(g_board));
}

/* Connect to the service. Returns what hal_connect() returns. */
static inline int bare_connect(struct bare *r)
{
	const struct hal_addr to = {
		.version = HAL_ADDR_VERSION, .board = (uint16_t)g_number,
		.iface = HAL_IF_SERVICE, .uid = r->hif->addr.uid,
	};

	return hal_connect(r->hif, &to, &r->peer);
}

static inline void bare_open(struct bare *r)
{
	int ret;

	*r = (struct bare){ 0 };
	assert_int_equal(hal_if_open(g_hal, g_number, &r->hif), 0);
	UNTIL(r, (ret = bare_connect(r)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
}

static inline void bare_close(struct bare *r)
{
	if (r->hif != NULL)
		hal_if_close(r->hif);
	*r = (struct bare){ 0 };
}

/* Send a request. Returns false if there is no credit for it. */
static inline bool bare_send(struct bare *r, uint8_t opcode, uint8_t tag,
		     uint64_t address, uint64_t arg1, uint64_t arg2)
{
	uint64_t w[GSAS_WORDS] = { address, arg1, arg2 };

	return hal_pkt_send(r->peer, hal_head(opcode, tag), w, GSAS_WORDS,
			    NULL, 0) == 0;
}

/* Receive an answer. Returns false if none has arrived. */
static inline bool bare_take(struct bare *r, struct answer *a)
{
	const struct hal_cell *cell;
	uint64_t head;

	if (r->peer->rx.cells == NULL ||
	    (cell = hal_rx_peek(r->peer, &head)) == NULL)
		return false;
	*a = (struct answer){
		.opcode = hal_head_type(head), .tag = hal_head_flags(head),
		.error = hal_cell_word(cell, 0),
		.result = hal_cell_word(cell, 1),
		.more = hal_cell_word(cell, 2),
	};
	hal_rx_release(r->peer);
	hal_rx_flush(r->peer);
	return true;
}

/* Send a request with a new tag, and wait for the answer. */
static inline struct answer bare_ask(struct bare *r, uint8_t opcode,
				     uint64_t address, uint64_t arg1,
				     uint64_t arg2)
{
	static uint8_t tag;
	struct answer a;

	tag = tag % GSAS_TAGS + 1;
	UNTIL(r, bare_send(r, opcode, tag, address, arg1, arg2));
	UNTIL(r, bare_take(r, &a));
	assert_int_equal(a.opcode, opcode);
	assert_int_equal(a.tag, tag);
	return a;
}

/* The result of a request that must succeed. */
static inline uint64_t ask(struct bare *r, uint8_t opcode, uint64_t address,
		    uint64_t arg1, uint64_t arg2)
{
	struct answer a = bare_ask(r, opcode, address, arg1, arg2);

	assert_int_equal(a.error, GSAS_OK);
	return a.result;
}

/* Send a request that must fail with GSAS_E_why. */
#define REFUSED(why, ...)						\
	assert_int_equal(bare_ask(__VA_ARGS__).error, GSAS_E_##why)

/* Open a client, and join the job JOB. */
static inline void bare_join(struct bare *r)
{
	bare_open(r);
	ask(r, GSAS_JOIN, JOB, JOB, 0);
}

/* Write into the receive space that the service provides for the client. */
static inline void bare_store(struct bare *r, uint32_t off, const void *src,
			      size_t len)
{
	assert_int_equal(hal_space_ready(r->peer, off + (uint32_t)len), 0);
	hal_space_write(r->peer, off, src, len);
	hal_space_barrier(r->peer);
}

static inline int teardown(void **state)
{
	if (g_threaded)
		serve_here();
	for (int i = 0; i < CLIENTS; i++)
		bare_close(&g_bare[i]);
	if (g_board != NULL)
		gsas_board_close(g_board);
	g_board = NULL;
	return 0;
}

/* ---- main() -------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* First and last call in main(): choose the board and get the HAL, and release
 * it; bare_end() returns ret. */
static inline int bare_begin(void)
{
	/* A board that no other test on the machine uses. */
	if (getenv("FI_UNIMEM_BOARDS") == NULL &&
	    getenv("FI_UNIMEM_HAL") == NULL) {
		g_number = 1000 + (int)(getpid() % 30000);
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	return hal_get(NULL, &g_hal);
}

static inline int bare_end(int ret)
{
	hal_put(g_hal);
	return ret;
}

#endif /* GSAS_BARE_CLIENT_H */
