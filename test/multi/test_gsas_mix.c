/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_mix.c - four processes execute operations on the same words on
 * every path
 *
 * The paths are: requests to the service, by libgsas and by clients without it;
 * the CPU's atomic instructions on memory of gsas_map(); FI_ATOMIC on that
 * memory, which one process has registered. No operation may be lost or
 * executed twice, and no 128-bit value torn: the sums at the end are exact.
 * Operations that need a single executor must be refused where there may be
 * several. test_mix.c does the same with FI_ATOMIC alone.
 *
 * UNM_TEST_OPS: operations of each process in each case that another process
 * executes (8,000). Operations by the CPU are added, about 80 times as many,
 * so that both kinds take a similar time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_atomic.h>

#include "op/gsas_op.h"
#include "lib/gsas_processes.h"

#define OWNER	0			/* allocates, and registers */
#define NPROCS	4
#define KEY	77
#define RUN	32			/* operations by one way in a row */
#define RUN_QUICK 4096			/* the same where each takes ns */
#define FLIGHT	8			/* of them under way at once, at most */

/* ---- What is done ------------------------------------------------------- */

enum place { PACKETS, MAPPED, PLACES };	/* two regions, with the same words */
enum what { ADD, COUNT, SWAP, PAIR, WHATS };

/* Bytes of a region; a word to a line. The second pair is aligned to 8 only. */
#define AT(what)	((uint64_t)(what) * 128)
#define AT_ODD_PAIR	(UINT64_C(512) + 8)

enum way {
	LIBRARY,			/* libgsas, one by one */
	STARTED,			/* libgsas, several under way */
	BARE,				/* packets of our own */
	PROCESSOR,			/* through gsas_map() */
	FABRIC,				/* libfabric */
	WAYS
};

/* Other regions have one executor. */
static bool may(enum way way, enum place place)
{
	return place == MAPPED || way < PROCESSOR;
}

/* Done by this process's own processor. */
static bool quick(enum way way, enum place place)
{
	return place == MAPPED && way != BARE && way != FABRIC;
}

/*
 * Shared by all processes of the test. The values that additions return are the
 * numbers from 0 to the sum, each once. Each value that was swapped in is
 * returned once, except the last. A sum of hashes checks which values they
 * were.
 */
struct shared {
	_Atomic uint64_t done[PLACES][WHATS];
	_Atomic uint64_t by[WAYS];	/* operations by each way */
	_Atomic uint64_t at_once;	/* by the processor that asked */
	_Atomic uint64_t tickets[PLACES], in[PLACES], out[PLACES];
	_Atomic uint64_t refused;
};

static struct shared *g_all;
static uint64_t g_ops;			/* of each process */

struct mixer {
	struct node n;
	struct bare raw[PLACES];	/* to the service of a region */
	gsas_addr base[PLACES];
	uint8_t *window;		/* of MAPPED */
	int index;
	uint64_t begun, slow;		/* operations; those by others */
	uint64_t ticket[PLACES], tickets[PLACES], in[PLACES], out[PLACES];
	uint64_t seed;
};

static gsas_addr word(const struct mixer *m, enum place place, uint64_t at)
{
	return m->base[place] + at;
}

/* ---- What has to be true of each result ---------------------------------- */

static uint64_t hash(uint64_t n)
{
	n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9;
	n = (n ^ n >> 27) * 0x94D049BB133111EB;
	return n ^ n >> 31;
}

/* The value an addition of one found: later ones find more. */
static void ticket(struct mixer *m, enum place place, uint64_t was)
{
	CHECK_MSG(was >= m->ticket[place], "ticket %" PRIu64 " after %" PRIu64,
		  was, m->ticket[place] - 1);
	m->ticket[place] = was + 1;
	m->tickets[place] += hash(was);
}

/* A number nobody else puts in; 0 is there at first. */
static uint64_t new_token(struct mixer *m, enum place place)
{
	uint64_t token = (uint64_t)(1 + m->index) << 48 | m->begun;

	m->in[place] += hash(token);
	return token;
}

static void take_token(struct mixer *m, enum place place, uint64_t token)
{
	m->out[place] += hash(token);
}

/* Both words of a pair belong together. */
static uint64_t other(uint64_t v)
{
	return (v ^ UINT64_C(0x5DEECE66D1CE4E5B)) * 0x9E3779B97F4A7C15;
}

static void make_pair(struct mixer *m, uint64_t pair[2])
{
	pair[0] = (uint64_t)procs_random(&m->seed) << 32 |
		procs_random(&m->seed);
	pair[1] = other(pair[0]);
}

static void check_pair(const uint64_t pair[2])
{
	CHECK_MSG(pair[1] == other(pair[0]) || (pair[0] | pair[1]) == 0,
		  "half of %" PRIx64 " %" PRIx64, pair[0], pair[1]);
}

/* ---- Ways: additions, counts, swaps -------------------------------------- */

static uint64_t bare(struct mixer *m, enum place place, uint8_t opcode,
		     uint64_t at, uint64_t arg1, uint64_t arg2, uint64_t *more)
{
	uint64_t result, error;

	error = bare_ask(&m->raw[place], opcode, word(m, place, at), arg1,
			 arg2, &result, more);
	CHECK_MSG(error == GSAS_OK, "opcode %u: error %" PRIu64, opcode, error);
	return result;
}

/* On the mapped region: one FI_ATOMIC call, to its end. */
static void fabric(struct mixer *m, uint64_t at, enum fi_datatype type,
		   enum fi_op op, const void *operand, const void *compare,
		   void *was)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	fi_addr_t to = m->n.peer[OWNER];
	ssize_t ret;

	do {
		if (compare != NULL)
			ret = fi_compare_atomic(m->n.ep, operand, 1, NULL,
						compare, NULL, was, NULL, to,
						at, KEY, type, op, NULL);
		else
			ret = fi_fetch_atomic(m->n.ep, operand, 1, NULL, was,
					      NULL, to, at, KEY, type, op,
					      NULL);
		if (ret == -FI_EAGAIN)
			fi_cq_read(m->n.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	FI(ret);
	while ((ret = node_poll(&m->n, &entry, &error)) == 0)
		;
	CHECK_MSG(ret > 0, "completion in error: %s", fi_strerror(error.err));
}

static uint64_t processor(struct mixer *m, uint64_t at, enum gsas_op op,
			  uint64_t operand, uint64_t compare)
{
	uint64_t was;

	gsas_op_apply(op, GSAS_TYPE_UINT64, 1, m->window + at, &operand,
		      &compare, &was);
	return was;
}

static uint64_t add(struct mixer *m, enum way way, enum place place)
{
	const uint64_t one = 1;
	uint64_t was = 0;

	if (way == LIBRARY)
		GSAS(gsas_fad64(word(m, place, AT(ADD)), 1, (int64_t *)&was));
	else if (way == BARE)
		was = bare(m, place, GSAS_FAD64, AT(ADD), 1, 0, NULL);
	else if (way == PROCESSOR)
		was = processor(m, AT(ADD), GSAS_OP_SUM, 1, 0);
	else
		fabric(m, AT(ADD), FI_UINT64, FI_SUM, &one, NULL, &was);
	return was;
}

static uint64_t swap(struct mixer *m, enum way way, enum place place,
		     uint64_t token)
{
	uint64_t was = 0;

	if (way == LIBRARY)
		GSAS(gsas_swap64(word(m, place, AT(SWAP)), token, &was));
	else if (way == BARE)
		was = bare(m, place, GSAS_SWAP64, AT(SWAP), token, 0, NULL);
	else if (way == PROCESSOR)
		was = processor(m, AT(SWAP), GSAS_OP_WRITE, token, 0);
	else
		fabric(m, AT(SWAP), FI_UINT64, FI_ATOMIC_WRITE, &token, NULL,
		       &was);
	return was;
}

/* Compare and swap by this path. Returns the old value. */
static uint64_t compare_and_swap(struct mixer *m, enum way way,
				 enum place place, uint64_t expected)
{
	uint64_t value = expected + 1, was = 0, done;
	int ret;

	switch (way) {
	case LIBRARY:
		ret = gsas_cas64(word(m, place, AT(COUNT)), expected, value,
				 &was);
		GSAS(ret);
		CHECK(ret == (was == expected));
		break;
	case BARE:
		done = bare(m, place, GSAS_CAS64, AT(COUNT), expected, value,
			    &was);
		CHECK(done == (was == expected));
		break;
	case PROCESSOR:
		was = processor(m, AT(COUNT), GSAS_OP_CSWAP, value, expected);
		break;
	default:
		fabric(m, AT(COUNT), FI_UINT64, FI_CSWAP, &value, &expected,
		       &was);
		break;
	}
	return was;
}

/* Add one, by comparing until it is the number that was seen. */
static void count(struct mixer *m, enum way way, enum place place)
{
	uint64_t expected = 0, was;

	while ((was = compare_and_swap(m, way, place, expected)) != expected)
		expected = was;
}

/* ---- Ways: 128 bits ------------------------------------------------------ */

/* One executor only: pairs that are aligned to 8, and a page as a whole. */
static void pairs_of_one_executor(struct mixer *m, enum way way)
{
	uint64_t page[GSAS_PAGE / 8], pair[2];

	make_pair(m, pair);
	if (way == LIBRARY)
		GSAS(gsas_write128(word(m, PACKETS, AT_ODD_PAIR), pair));
	else
		bare(m, PACKETS, GSAS_WRITE128, AT_ODD_PAIR, pair[0], pair[1],
		     NULL);
	GSAS(gsas_read4k(m->base[PACKETS], page));
	check_pair(page + AT(PAIR) / 8);
	check_pair(page + AT_ODD_PAIR / 8);
}

static void write_pair(struct mixer *m, enum way way, enum place place)
{
	uint64_t pair[2], was[2];

	make_pair(m, pair);
	if (way == LIBRARY || way == STARTED) {
		GSAS(gsas_write128(word(m, place, AT(PAIR)), pair));
	} else if (way == BARE) {
		bare(m, place, GSAS_WRITE128, AT(PAIR), pair[0], pair[1], NULL);
	} else if (way == PROCESSOR) {
		gsas_op_apply(GSAS_OP_WRITE, GSAS_TYPE_UINT128, 1,
			      m->window + AT(PAIR), pair, NULL, was);
		check_pair(was);
	} else {
		fabric(m, AT(PAIR), FI_UINT128, FI_ATOMIC_WRITE, pair, NULL,
		       was);
		check_pair(was);
	}
}

static void read_pair(struct mixer *m, enum way way, enum place place)
{
	uint64_t pair[2];

	if (way < PROCESSOR)
		GSAS(gsas_atomic(word(m, place, AT(PAIR)), GSAS_OP_READ,
				 GSAS_TYPE_UINT128, GSAS_FORM_FETCH, 1, NULL,
				 NULL, pair));
	else if (way == PROCESSOR)
		gsas_op_apply(GSAS_OP_READ, GSAS_TYPE_UINT128, 1,
			      m->window + AT(PAIR), NULL, NULL, pair);
	else
		fabric(m, AT(PAIR), FI_UINT128, FI_ATOMIC_READ, pair, NULL,
		       pair);
	check_pair(pair);
}

static void pair(struct mixer *m, enum way way, enum place place)
{
	if (place == PACKETS && m->begun % 3 == 0)
		pairs_of_one_executor(m, way);
	else if (m->begun % 2 == 0)
		write_pair(m, way, place);
	else
		read_pair(m, way, place);
}

/* ---- Ways: several under way --------------------------------------------- */

/* n operations of a kind, started before the first one is waited for. */
static void several(struct mixer *m, enum what what, enum place place, int n)
{
	struct gsas_req req[FLIGHT];
	uint64_t was[FLIGHT];

	for (int i = 0; i < n; i++, m->begun++)
		if (what == ADD)
			GSAS(gsas_fad64_start(word(m, place, AT(ADD)), 1,
					      (int64_t *)&was[i], &req[i]));
		else
			GSAS(gsas_swap64_start(word(m, place, AT(SWAP)),
					       new_token(m, place), &was[i],
					       &req[i]));
	for (int i = 0; i < n; i++) {
		GSAS(gsas_wait(&req[i]));
		if (what == ADD)
			ticket(m, place, was[i]);
		else
			take_token(m, place, was[i]);
	}
}

/* ---- A process ----------------------------------------------------------- */

/* One operation, or some; how many. */
static int operate(struct mixer *m, enum what what, enum way way,
		   enum place place, uint64_t left)
{
	if (way == STARTED && (what == ADD || what == SWAP)) {
		int n = left < FLIGHT ? (int)left : FLIGHT;

		several(m, what, place, n);
		return n;
	}
	if (way == STARTED)
		way = LIBRARY;
	if (what == ADD)
		ticket(m, place, add(m, way, place));
	else if (what == COUNT)
		count(m, way, place);
	else if (what == SWAP)
		take_token(m, place, swap(m, way, place,
					  new_token(m, place)));
	else
		pair(m, way, place);
	m->begun++;
	return 1;
}

/* Operations that need a single executor are refused where there may be
 * several, and change nothing. */
static void misuse(struct mixer *m)
{
	const uint64_t pair[2] = { 1, 2 };
	uint64_t page[GSAS_PAGE / 8];
	gsas_addr at = word(m, MAPPED, AT_ODD_PAIR);

	GSAS_IS(-FI_EPERM, gsas_read4k(m->base[MAPPED], page));
	GSAS_IS(-FI_EPERM, gsas_write128(at, pair));
	CHECK(bare_ask(&m->raw[MAPPED], GSAS_READ4K, m->base[MAPPED], 0, 0,
		       NULL, NULL) == GSAS_E_MAPPED);
	CHECK(bare_ask(&m->raw[MAPPED], GSAS_WRITE128, at, 1, 2, NULL,
		       NULL) == GSAS_E_MAPPED);
	g_all->refused += 4;
}

/* The i-th run of a process: by which way, on what. Every pair comes. */
static void run_of(uint64_t i, enum what *what, enum way *way,
		   enum place *place)
{
	*what = i % WHATS;
	do {
		*way = i / WHATS % WAYS;
		*place = i / WHATS / WAYS % PLACES;
		i += WHATS * WAYS;
	} while (!may(*way, *place));
}

static void one_run(struct mixer *m, enum what what, enum way way,
		    enum place place)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	bool at_once = quick(way, place);
	uint64_t left = at_once ? RUN_QUICK : RUN, begun = m->begun;

	if (!at_once && left > g_ops - m->slow)
		left = g_ops - m->slow;
	while (left > 0) {
		left -= (uint64_t)operate(m, what, way, place, left);
		/* others wait for what the owner executes */
		if (!at_once || left % 64 == 0)
			CHECK(node_poll(&m->n, &entry, &error) == 0);
	}
	g_all->done[place][what] += m->begun - begun;
	g_all->by[way] += m->begun - begun;
	g_all->at_once += at_once ? m->begun - begun : 0;
	m->slow += at_once ? 0 : m->begun - begun;
}

static void all_operations(struct mixer *m)
{
	enum what what;
	enum way way;
	enum place place;

	for (uint64_t run = (uint64_t)m->index; m->slow < g_ops; run++) {
		run_of(run, &what, &way, &place);
		one_run(m, what, way, place);
		if (run % 8 == 0)
			misuse(m);
	}
	for (int i = 0; i < PLACES; i++) {
		g_all->tickets[i] += m->tickets[i];
		g_all->in[i] += m->in[i];
		g_all->out[i] += m->out[i];
	}
}

/* Check the words of a region at the end. */
static void check_region(struct mixer *m, enum place place)
{
	uint64_t v, last, pair[2], tickets = 0;

	GSAS(gsas_read64(word(m, place, AT(ADD)), &v));
	CHECK_MSG(v == g_all->done[place][ADD], "place %d: sum %" PRIu64
		  " of %" PRIu64, place, v, g_all->done[place][ADD]);
	for (uint64_t i = 0; i < v; i++)
		tickets += hash(i);
	CHECK_MSG(tickets == g_all->tickets[place],
		  "place %d: some addition found what another one did", place);
	GSAS(gsas_read64(word(m, place, AT(COUNT)), &v));
	CHECK_MSG(v == g_all->done[place][COUNT], "place %d: count %" PRIu64
		  " of %" PRIu64, place, v, g_all->done[place][COUNT]);
	GSAS(gsas_read64(word(m, place, AT(SWAP)), &last));
	CHECK_MSG(g_all->in[place] + hash(0) == g_all->out[place] + hash(last),
		  "place %d: not all that was swapped in came out", place);
	GSAS(gsas_get(pair, word(m, place, AT(PAIR)), sizeof(pair)));
	check_pair(pair);
	CHECK(g_ops < 1000 || pair[0] != 0);
}

/* The owner allocates the regions and sends their addresses to all
 * processes. */
static void allocate(struct mixer *m, int fd)
{
	static const unsigned flags[PLACES] = {
		GSAS_WORLD, GSAS_WORLD | GSAS_MAPPED,
	};

	for (int i = 0; i < PLACES; i++) {
		GSAS(gsas_alloc(1, board_number(i), flags[i], NULL,
				&m->base[i]));
		procs_send_word(fd, m->base[i]);
	}
}

static int mixer(int fd, void *arg)
{
	int index = proc_index();
	struct mixer m = { .index = index - 2, .seed = (uint64_t)index };
	struct fid_mr *mr = NULL;
	size_t bytes;
	void *at;

	(void)arg;
	if (m.index == OWNER)
		allocate(&m, fd);
	for (int i = 0; i < PLACES; i++) {
		m.base[i] = procs_recv_word(fd);
		bare_open(&m.raw[i], gsas_board_of_address(m.base[i]));
		bare_join(&m.raw[i]);
	}
	GSAS(gsas_map(m.base[MAPPED], &at, &bytes));
	CHECK(bytes == GSAS_PAGE);
	m.window = at;
	node_open(&m.n, NODE_ONESIDED);
	if (m.index == OWNER)
		mr = node_reg(&m.n, at, bytes, KEY);
	node_join(&m.n, fd);
	all_operations(&m);
	node_report(&m.n, fd, m.slow);
	for (int i = 0; i < PLACES; i++) {
		check_region(&m, i);
		bare_close(&m.raw[i]);
	}
	procs_exchange(fd, 0);		/* all have looked */
	if (mr != NULL) {
		FI(fi_close(&mr->fid));
		for (int i = 0; i < PLACES; i++)
			GSAS(gsas_free(m.base[i]));
	}
	node_close(&m.n);
	return 0;
}

static void set_up(void)
{
	g_ops = (uint64_t)procs_number("UNM_TEST_OPS", 8000);
	g_all = mmap(NULL, sizeof(*g_all), PROT_READ | PROT_WRITE, MAP_SHARED |
		     MAP_ANONYMOUS, -1, 0);
	CHECK(g_all != MAP_FAILED);
}

/* boards: of how many the processes are. */
static void mix(void *arg)
{
	int boards = *(int *)arg;
	struct proc *service[2], *p[NPROCS];
	gsas_addr base[PLACES];

	if (!gsas_op_direct(GSAS_TYPE_UINT128, 0))
		procs_skip("this processor has no atomics of 16 bytes");
	set_up();
	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
	for (int i = 0; i < NPROCS; i++)
		p[i] = proc_start(mixer, NULL, board_env(i % boards));
	for (int i = 0; i < PLACES; i++)
		base[i] = procs_recv_word(p[OWNER]->fd);
	for (int i = 0; i < NPROCS; i++)
		for (int j = 0; j < PLACES; j++)
			procs_send_word(p[i]->fd, base[j]);
	procs_join(p, NPROCS);
	for (int i = 0; i < NPROCS; i++)
		CHECK(procs_recv_word(p[i]->fd) == g_ops);
	/* The owner ends last: the other processes may need it to check the
	 * words. */
	for (int i = NPROCS - 1; i >= 0; i--)
		procs_exchange(p[i]->fd, 0);
	for (int i = NPROCS - 1; i >= 0; i--)
		proc_finish(p[i]);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
	for (int i = 0; i < WAYS; i++)
		CHECK(g_ops < 1000 || g_all->by[i] > 0);
	procs_note("%" PRIu64 " operations by others, %" PRIu64 " of them of "
		   "FI_ATOMIC; %" PRIu64 " at once; %" PRIu64 " refused",
		   NPROCS * g_ops, (uint64_t)g_all->by[FABRIC],
		   (uint64_t)g_all->at_once, (uint64_t)g_all->refused);
}

PROCS_MAIN(
	PROCS_WITH(one_board, 900, mix, &(int){ 1 }),
	PROCS_WITH(two_boards, 900, mix, &(int){ 2 }),
)
