/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_gsas.c - fuzz target: requests to a GSAS service from several clients
 * at once. The service goes on, answers every tag exactly once, and a job that
 * no other job may access finds its memory unchanged.
 */
#include "op/gsas_op.h"
#include "lib/gsas_service_fixture.h"

#include "fuzz.h"

#define STRANGERS	4
#define ADDRESSES	32
#define KEPT_PAGES	3
#define KEPT_BYTES	(KEPT_PAGES * GSAS_PAGE_BYTES)

static struct {
	int at;
	struct fixture *w;
	struct fixture_client *victim, *c[STRANGERS];
	uint64_t kept, kept_mapped, kept_queue;	/* the victim's */
	uint64_t address[ADDRESSES];	/* seen in answers */
	unsigned int addresses;
	/* tags of the requests that were taken and not answered */
	unsigned int pending[STRANGERS][256];
	unsigned int read[STRANGERS];	/* answers checked, by client */
} fuzz;

/* ---- Input -------------------------------------------------------------- */

/* Numbers are likely to be small, near a border, or addresses. */
static uint64_t number(struct fuzz_input *in)
{
	static const uint64_t borders[] = {
		GSAS_PAGE_BYTES, GSAS_BULK_MAX, FIXTURE_SPACE, UINT32_MAX,
		GSAS_SEGMENT, UINT64_MAX, FIXTURE_BASE, UINT64_C(1) << 32,
		UINT64_C(8) << 32, UINT64_C(64) << 32,
	};
	uint64_t kind = fuzz_take(in, 1), small = fuzz_take(in, 1);

	switch (kind % 8) {
	case 0:
		return fuzz_take(in, 8);
	case 1:
		return borders[kind / 8 % 10] - small % 16;
	case 2:
		return borders[kind / 8 % 10] + small % 16;
	case 3:
		return small << 32 | fuzz_take(in, 2);
	case 4:
		return small;
	case 5:
		return (kind / 8 % 2 ? fuzz.kept : fuzz.kept_mapped) + small;
	default:
		return fuzz.address[small % ADDRESSES] + kind / 8;
	}
}

static uint8_t opcode(struct fuzz_input *in)
{
	uint8_t byte = (uint8_t)fuzz_take(in, 1);

	switch (byte / 64) {
	case 0:
		return 1 + byte % 14;
	case 1:
	case 2:
		return 64 + byte % 16;
	default:
		return (uint8_t)fuzz_take(in, 1);
	}
}

/* Arguments that make sense, of operations that have complicated ones. */
static void sensible(struct fuzz_input *in, uint8_t op, uint64_t w[3])
{
	switch (op) {
	case GSAS_ALLOC:
		w[1] = fuzz_take(in, 1) % 40;
		w[2] = fuzz_take(in, 1) % 3 | (fuzz_take(in, 1) & 1) << 8;
		break;
	case GSAS_ATOMIC:
	case GSAS_UPDATE:
		w[1] = fuzz_take(in, 1) % (GSAS_OPS + 1) |
		       fuzz_take(in, 1) % (GSAS_TYPES + 1) << 8;
		if (op == GSAS_ATOMIC)
			w[1] |= fuzz_take(in, 1) % 4 << 16 |
				fuzz_take(in, 1) << 32;
		break;
	case GSAS_QUEUE_NEW:
		w[1] = fuzz_take(in, 1) % 100 | UINT64_C(8) << 32;
		w[2] = fuzz_take(in, 1) % 3;
		break;
	case GSAS_GET:
	case GSAS_PUT:
	case GSAS_DEQUEUE:
		w[1] = fuzz_take(in, 2) % 5000;
		w[2] = fuzz_take(in, 2);
		break;
	default:
		break;
	}
}

/* ---- What has to be ------------------------------------------------------ */

static void remember(const struct gsas_answer *a)
{
	if (a->response.error == GSAS_OK && (a->opcode == GSAS_ALLOC ||
					     a->opcode == GSAS_QUEUE_NEW))
		fuzz.address[fuzz.addresses++ % ADDRESSES] =
			a->response.result;
}

static void check_answers(int who)
{
	struct fixture_client *c = fuzz.c[who];

	for (; fuzz.read[who] < c->answers; fuzz.read[who]++) {
		const struct gsas_answer *a = &c->answer[fuzz.read[who]];

		MUST(a->response.error < GSAS_ERRORS);
		MUST(a->response.error == GSAS_OK || a->response.result == 0);
		MUST(a->opcode < 128);
		if (a->tag == 0) {
			MUST(a->opcode == GSAS_ENQUEUE);
			continue;
		}
		MUST(fuzz.pending[who][a->tag] > 0);
		fuzz.pending[who][a->tag]--;
		remember(a);
	}
	if (c->answers > FIXTURE_ANSWERS / 2) {
		fixture_forget(c);
		fuzz.read[who] = 0;
	}
}

static void check_kept(void)
{
	struct fixture_client *v = fuzz.victim;

	fixture_result(v, GSAS_GET, fuzz.kept, KEPT_BYTES, 0);
	for (uint64_t i = 0; i < KEPT_BYTES; i++)
		MUST(v->out[i] == (uint8_t)(i * 7 + 1));
	fixture_result(v, GSAS_GET, fuzz.kept_mapped, KEPT_BYTES, 0);
	for (uint64_t i = 0; i < KEPT_BYTES; i++)
		MUST(v->out[i] == (uint8_t)(i * 7 + 1));
	MUST(fixture_result(v, GSAS_DEQUEUE, fuzz.kept_queue, 1, 0) == 1);
	MUST(memcmp(v->out, "\1\2\3\4\5\6\7\10", 8) == 0);
	fixture_result(v, GSAS_DEQUEUE, fuzz.kept_queue, 0, 0);
	fixture_settle(fuzz.w);
	fixture_result(v, GSAS_ENQUEUE, fuzz.kept_queue,
		       UINT64_C(0x0807060504030201), 0);
}

static void begin(void)
{
	static const struct gsas_service_attr attr = {
		.pages = { .max_pages = 3000, .max_user.pages = 1000,
			   .max_regions = 500 },
		.spawn = fixture_spawn,
	};

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.w = fixture_new(&attr);
	fuzz.victim = fixture_client(fuzz.w, 1, 99);
	for (uint64_t i = 0; i < KEPT_BYTES; i++)
		fuzz.victim->in[i] = (uint8_t)(i * 7 + 1);
	fuzz.kept = fixture_alloc(fuzz.victim, KEPT_PAGES, 0);
	fuzz.kept_mapped = fixture_alloc(fuzz.victim, KEPT_PAGES,
					 GSAS_ATTR_MAPPED);
	fuzz.kept_queue = fixture_result(fuzz.victim, GSAS_QUEUE_NEW, 0,
					 4 | UINT64_C(8) << 32, 0);
	fixture_result(fuzz.victim, GSAS_PUT, fuzz.kept, KEPT_BYTES, 0);
	fixture_result(fuzz.victim, GSAS_PUT, fuzz.kept_mapped, KEPT_BYTES, 0);
	fixture_result(fuzz.victim, GSAS_QUEUE_OPEN, fuzz.kept_queue, 0, 0);
	fixture_result(fuzz.victim, GSAS_ENQUEUE, fuzz.kept_queue,
		       UINT64_C(0x0807060504030201), 0);
	for (unsigned int i = 0; i < ADDRESSES; i++)
		fuzz.address[i] = i % 2 ? fuzz.kept : fuzz.kept_queue;
	/* two of the same job; one is of nobody's yet */
	for (uint64_t i = 0; i + 1 < STRANGERS; i++)
		fuzz.c[i] = fixture_client(fuzz.w, 1 + (uint32_t)(i == 2),
					   i == 1 ? 0 : i);
	fuzz.c[STRANGERS - 1] = fixture_unjoined(fuzz.w, 1);
}

static void end(void)
{
	for (int i = 0; i < STRANGERS; i++)
		fuzz.c[i]->refuse = 0;
	fixture_settle(fuzz.w);
	for (int i = 0; i < STRANGERS; i++) {
		check_answers(i);
		for (int tag = 1; tag < 256; tag++)
			MUST(fuzz.pending[i][tag] == 0);
		fixture_forget(fuzz.c[i]);
		/* it is served as ever */
		MUST(fixture_error(fuzz.c[i], GSAS_FENCE, 0, 0, 0) == GSAS_OK ||
		     i == STRANGERS - 1);
	}
	check_kept();
	fixture_free(fuzz.w);
}

/* ---- One input ----------------------------------------------------------- */

static void one_request(struct fuzz_input *in)
{
	uint8_t flags = (uint8_t)fuzz_take(in, 1), op = opcode(in);
	int who = flags % STRANGERS;
	struct fixture_client *c = fuzz.c[who];
	uint8_t tag = (uint8_t)fuzz_take(in, 1);
	uint64_t w[3] = { number(in), number(in), number(in) };

	if (flags & 4)
		sensible(in, op, w);
	if (flags & 8)
		w[op == GSAS_FREE || op == GSAS_FORK] =
			fuzz.address[fuzz_take(in, 1) % ADDRESSES] +
			fuzz_take(in, 1);
	if (flags / 16 == 1)
		c->refuse = (uint32_t)fuzz_take(in, 1) % 8;
	if (flags / 16 == 2)
		memset(c->in + fuzz_take(in, 2) % 60000,
		       (int)fuzz_take(in, 1), 256);
	/* two under one tag: each has its answer */
	if (fixture_send(c, op, tag, w[0], w[1], w[2]))
		fuzz.pending[who][tag] += tag != 0;
	else
		gsas_service_progress(fuzz.w->service);
	if (flags & 128)
		gsas_service_progress(fuzz.w->service);
	check_answers(who);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input in = { bytes, len };

	begin();
	while (in.len > 0) {
		one_request(&in);
		if (fuzz.at++ % 256 == 0)
			check_kept();
	}
	end();
	return 0;
}
