/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_pkt.c - requests and responses byte by byte, as they are published,
 * and constants that never change. A change of these bytes is another protocol.
 */
#include "lib/unit.h"
#include "service/gsas_queue.h"
#include "lib/gsas_service_fixture.h"
#include "common/gsas_yield.h"

#define IS(name, number)						\
	_Static_assert((name) == (number), #name " is fixed for ever")

IS(GSAS_ALLOC, 1);		IS(GSAS_FREE, 2);
IS(GSAS_FORK, 3);		IS(GSAS_READ8, 4);
IS(GSAS_READ32, 5);		IS(GSAS_READ64, 6);
IS(GSAS_READ4K, 7);		IS(GSAS_WRITE8, 8);
IS(GSAS_WRITE32, 9);		IS(GSAS_WRITE64, 10);
IS(GSAS_WRITE128, 11);		IS(GSAS_CAS64, 12);
IS(GSAS_FAD64, 13);		IS(GSAS_SWAP64, 14);
IS(GSAS_JOIN, 64);		IS(GSAS_GROUP, 65);
IS(GSAS_FENCE, 66);		IS(GSAS_UPDATE, 67);
IS(GSAS_ATOMIC, 68);		IS(GSAS_GET, 69);
IS(GSAS_PUT, 70);		IS(GSAS_MAP, 71);
IS(GSAS_QUEUE_NEW, 72);		IS(GSAS_QUEUE_OPEN, 73);
IS(GSAS_QUEUE_CLOSE, 74);	IS(GSAS_ENQUEUE, 75);
IS(GSAS_DEQUEUE, 76);		IS(GSAS_STAT, 77);
IS(GSAS_LIST, 78);		IS(GSAS_RECLAIM, 79);
IS(GSAS_QUEUE_WAIT, 80);
IS(GSAS_NAME, 81);
IS(GSAS_NUMBERS, 82);

IS(GSAS_OK, 0);			IS(GSAS_E_OPCODE, 1);
IS(GSAS_E_ADDRESS, 2);		IS(GSAS_E_FREED, 3);
IS(GSAS_E_ACCESS, 4);		IS(GSAS_E_ARGUMENT, 5);
IS(GSAS_E_MEMORY, 6);		IS(GSAS_E_QUOTA, 7);
IS(GSAS_E_MAPPED, 8);		IS(GSAS_E_PATH, 9);
IS(GSAS_E_EXEC, 10);		IS(GSAS_E_JOIN, 11);
IS(GSAS_E_AGAIN, 12);		IS(GSAS_E_STATE, 13);
IS(GSAS_ERRORS, 14);		IS(GSAS_TAG_POSTED, 0);

IS(GSAS_MODE_JOB, 0);		IS(GSAS_MODE_GROUP, 1);
IS(GSAS_MODE_WORLD, 2);		IS(GSAS_ATTR_MAPPED, 0x100);
IS(GSAS_ATTR_QUEUE, 0x200);	IS(GSAS_PAGE_BYTES, 4096);
IS(GSAS_PART_SHIFT, 48);	IS(GSAS_SEGMENT, 1 << 20);

/* [D 2.2.3, figure 8], in bits */
#define BITS(type, field, bit)						\
	_Static_assert(offsetof(struct type, field) * 8 == (bit), #field)

BITS(gsas_wire_request, head, 0);
BITS(gsas_wire_request, address, 64);
BITS(gsas_wire_request, arg1, 128);
BITS(gsas_wire_request, arg2, 192);
_Static_assert(sizeof(struct gsas_wire_request) * 8 == 256, "figure 8");
BITS(gsas_response, error, 0);
BITS(gsas_response, result, 64);
_Static_assert(sizeof(struct gsas_response) * 8 == 128, "figure 9");
BITS(gsas_map_info, key, 0);
BITS(gsas_map_info, base, 128);
BITS(gsas_map_info, bytes, 192);
BITS(gsas_list_entry, address, 0);
BITS(gsas_list_entry, pages, 64);
BITS(gsas_list_entry, attr, 128);
BITS(gsas_list_entry, job, 192);
BITS(gsas_list_entry, clients, 224);
BITS(gsas_stat, op, 13 * 64);
BITS(gsas_stat, error, 141 * 64);

/*
 * A session, as its bytes are sent: identity (board 1, interface 7), tag,
 * opcode; address; arguments -> error; result; then the third word. All inputs
 * are fixed: addresses begin at 1 MiB of board 3's partition. NULL: posted, so
 * there is no answer.
 */
static const struct {
	const char *what, *request, *response, *third;
} golden[] = {
#define ID		"07000000" "0100"
#define NONE		"0000000000000000"
#define ONE		"0100000000000000"
#define OK		NONE
#define A		"0000100000000400"	/* 0x0004000000100000 */
#define A8		"0800100000000400"
#define A9		"0900100000000400"
#define A16		"1000100000000400"
#define B		"0010200000000400"	/* the next segment's page 1 */
#define Q		"0010300000000400"
#define WORD		"8877665544332211"
	{ "join", ID "01" "40" "efcdab8967452301" "1032547698badcfe" NONE,
	  OK ONE, NONE },
	{ "alloc", ID "02" "01" NONE "0200000000000000" NONE, OK A, NONE },
	{ "write64", ID "03" "0a" A8 WORD NONE, OK NONE, NONE },
	{ "read64", ID "04" "06" A8 NONE NONE, OK WORD, NONE },
	{ "read32", ID "05" "05" A9 NONE NONE, OK "8877665500000000", NONE },
	{ "read8", ID "ff" "04" A9 NONE NONE, OK "7700000000000000", NONE },
	{ "write8", ID "07" "08" A9 "ab00000000000000" NONE, OK NONE, NONE },
	{ "write32", ID "08" "09" A "0d0c0b0a00000000" NONE, OK NONE, NONE },
	{ "read4k", ID "09" "07" A9 "4000000000000000" NONE,
	  OK "0010000000000000", NONE },
	{ "write128", ID "0a" "0b" A16 WORD "efcdab8967452301", OK NONE, NONE },
	{ "cas64", ID "0b" "0c" A16 WORD "0500000000000000", OK ONE, WORD },
	{ "cas64, not", ID "0c" "0c" A16 WORD "0700000000000000", OK NONE,
	  "0500000000000000" },
	{ "fad64", ID "0d" "0d" A16 "feffffffffffffff" NONE,
	  OK "0500000000000000", NONE },
	{ "swap64", ID "0e" "0e" A16 WORD NONE, OK "0300000000000000", NONE },
	{ "posted", ID "00" "0d" A16 ONE NONE, NULL, NULL },
	{ "posted wrongly", ID "00" "06" NONE NONE NONE, NULL, NULL },
	{ "fence", ID "0f" "42" NONE NONE NONE, OK ONE, "0200000000000000" },
	{ "update: sum, uint64", ID "10" "43" A16 "0207000000000000" ONE,
	  OK "8977665544332211", NONE },
	{ "atomic: 2 of sum, uint64, fetch", ID "11" "44" A
	  "0207010002000000" "0000000000010000", OK NONE, NONE },
	{ "get", ID "12" "45" A9 "0300000000000000" "0002000000000000",
	  OK "0300000000000000", NONE },
	{ "put", ID "13" "46" A9 "0300000000000000" "0000000000000000",
	  OK "0300000000000000", NONE },
	{ "fork", ID "14" "03" NONE A16 "2a00000000000000",
	  OK "6712000000000000", NONE },
	{ "alloc mapped", ID "15" "01" NONE ONE "0001000000000000", OK B,
	  NONE },
	{ "map", ID "16" "47" B NONE "0003000000000000",
	  OK "0001000000000000", NONE },
	{ "queue new", ID "17" "48" NONE "0100000008000000" NONE, OK Q, NONE },
	{ "queue open", ID "18" "49" Q NONE NONE, OK ONE, NONE },
	{ "enqueue", ID "00" "4b" Q WORD NONE, NULL, NULL },
	{ "dequeue", ID "19" "4c" Q "0200000000040000" NONE, OK ONE, NONE },
	/* sent by the service: the words granted so far */
	{ NULL, ID "00" "4b" NONE NONE NONE, OK "0200000000000000", Q },
	{ "queue close", ID "1a" "4a" Q NONE NONE, OK NONE, NONE },
	{ "group", ID "1b" "41" "67726f7570000000" NONE NONE, OK ONE, NONE },
	{ "stat", ID "1c" "4d" NONE NONE "0005000000000000", OK NONE, NONE },
	{ "list", ID "1d" "4e" NONE ONE "0010000000000000", OK ONE, B },
	{ "reclaim", ID "1e" "4f" NONE NONE NONE, OK NONE, NONE },
	{ "free", ID "1f" "02" NONE A9 NONE, OK NONE, NONE },
	{ "free again", ID "20" "02" NONE A NONE, "0300000000000000" NONE,
	  NONE },
	{ "opcode 63", ID "22" "3f" NONE NONE NONE, ONE NONE, NONE },
	{ "opcode 200", ID "21" "c8" NONE NONE NONE, ONE NONE, NONE },
};

static void bytes_of(const char *hex, uint8_t *bytes, size_t len)
{
	assert_int_equal(strlen(hex), 2 * len);
	for (size_t i = 0; i < len; i++) {
		char byte[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
}

static void send_bytes(struct fixture_client *c, const uint8_t bytes[32])
{
	struct gsas_wire_request r;
	uint64_t w[GSAS_WORDS];

	memcpy(&r, bytes, sizeof(r));
	memcpy(w, (uint8_t *)&r + sizeof(r.head), sizeof(w));
	assert_true(gsas_service_request(c->client, r.head, w));
}

static void test_golden(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_unjoined(w, 1);
	uint8_t request[32], response[16], third[8];

	c->in[0] = '/';
	c->in[1] = 'x';
	for (size_t i = 0; i < sizeof(golden) / sizeof(*golden); i++) {
		bytes_of(golden[i].request, request, sizeof(request));
		if (golden[i].what != NULL) {
			fixture_forget(c);
			send_bytes(c, request);
			if (golden[i].response != NULL && c->answers == 0)
				fixture_settle(w);
		} else {
			fixture_settle(w);
			assert_int_equal(c->answers, 2);
			c->answer[0] = c->answer[1];
			c->answers = 1;
		}
		assert_int_equal(c->answers, golden[i].response != NULL);
		if (golden[i].response == NULL)
			continue;
		bytes_of(golden[i].response, response, sizeof(response));
		bytes_of(golden[i].third, third, sizeof(third));
		assert_memory_equal(&c->answer[0].response, response, 16);
		assert_memory_equal(&c->answer[0].more, third, 8);
		assert_int_equal(c->answer[0].tag, request[6]);
		/* an unknown opcode may be one of the HAL's types */
		assert_int_equal(c->answer[0].opcode, response[0] ==
				 GSAS_E_OPCODE ? 0 : request[7]);
	}
	fixture_free(w);
}

/* The bytes that this session stored into the spaces. */
static void test_spaces(void **state)
{
	static const char list[] = "0010200000000400" "0100000000000000"
				   "0001000000000000" "01000000" "01000000";
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t a = fixture_alloc(c, 2, 0),
		 b = fixture_alloc(c, 1, GSAS_ATTR_MAPPED);
	uint8_t bytes[32];
	struct gsas_map_info info;

	fixture_result(c, GSAS_LIST, a + 1, 1, 0);
	bytes_of(list, bytes, 32);
	assert_memory_equal(c->out, bytes, 32);
	fixture_result(c, GSAS_MAP, b, 0, 100);
	memcpy(&info, c->out + 100, sizeof(info));
	assert_int_equal(info.base, UINT64_C(0x0004000000200000));
	assert_int_equal(info.bytes, 1 << 20);
	assert_int_equal(info.key[1], 1 << 20);
	/* operands and compare values; results */
	memset(c->in + 8, 0, 32);
	c->in[8] = 5;
	c->in[16] = 6;
	c->in[24] = 0;
	c->in[32] = 1;			/* not equal to memory, which is 0 */
	fixture_result(c, GSAS_ATOMIC, a, 12 | 7 << 8 | 2 << 16 |
		       UINT64_C(2) << 32, 8 | UINT64_C(48) << 32);
	assert_int_equal(fixture_result(c, GSAS_READ64, a, 0, 0), 5);
	assert_int_equal(fixture_result(c, GSAS_READ64, a + 8, 0, 0), 0);
	fixture_result(c, GSAS_ATOMIC, a, 10 | 7 << 8 | 1 << 16 |
		       UINT64_C(1) << 32, UINT64_C(48) << 32);
	assert_int_equal(c->out[48], 5);
	fixture_free(w);
}

static void test_addresses(void **state)
{
	assert_true(gsas_base(0) == UINT64_C(0x0001000000000000));
	assert_true(gsas_base(65534) == UINT64_C(0xffff000000000000));
	assert_int_equal(gsas_board_of(0), -1);
	assert_int_equal(gsas_board_of(UINT64_C(0x0000ffffffffffff)), -1);
	assert_int_equal(gsas_board_of(UINT64_C(0x0001000000000000)), 0);
	assert_int_equal(gsas_board_of(UINT64_MAX), 65534);
	assert_int_equal(gsas_page_word(0x100000, 0x100000 + 3 * 4096 + 9),
			 12);
}

/* The number of polls before a yield: few after a yield that let another thread
 * run, many only after a series of yields that did not. */
static void test_yield_while_it_helps(void **state)
{
	struct gsas_yield y = { .spin = 32, .min = 32, .max = 2048 };

	for (int i = 1; i < UNM_YIELD_QUICK; i++) {
		gsas_yielded(&y, false);
		assert_int_equal(y.spin, 32);
	}
	gsas_yielded(&y, false);
	assert_int_equal(y.spin, 2048);
	gsas_yielded(&y, false);
	assert_int_equal(y.spin, 2048);
	gsas_yielded(&y, true);
	assert_int_equal(y.spin, 32);
	for (int i = 0; i < 3 * UNM_YIELD_QUICK; i++) {
		gsas_yielded(&y, i % UNM_YIELD_QUICK == 0);
		assert_int_equal(y.spin, 32);
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_golden),
	cmocka_unit_test(test_spaces),
	cmocka_unit_test(test_addresses),
	cmocka_unit_test(test_yield_while_it_helps),
)
