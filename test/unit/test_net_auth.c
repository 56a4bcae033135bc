/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_auth.c - the handshake between interfaces on different hosts: both
 * sides prove that they know the secret, and nothing else is accepted.
 *
 * The proof is a checksum with a key here, so that the test needs no library:
 * the handshake does not depend on which function it is.
 */
#include "lib/unit.h"

#include <rdma/fi_errno.h>

#include "hal/hal_types.h"
#include "hal/net/hal_net_auth.h"

static void toy_mac(uint8_t mac[NET_MAC], const uint8_t *key, size_t nkey,
		    const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint64_t h = 1;

	for (size_t i = 0; i < nkey; i++)
		h = (h ^ key[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < len; i++)
		h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < NET_MAC; i++)
		mac[i] = (uint8_t)(h >> 8 * (i % 8)) + (uint8_t)i;
}

static bool toy_equal(const uint8_t a[NET_MAC], const uint8_t b[NET_MAC])
{
	return memcmp(a, b, NET_MAC) == 0;
}

/* A dialler and an acceptor, and the names and the secret of each. */
struct pair {
	struct net_auth d, a;
	uint8_t d_name[NET_NAME], a_name[NET_NAME], secret[NET_SECRET];
};

static void begin(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	memset(p->d_name, 1, NET_NAME);
	memset(p->a_name, 2, NET_NAME);
	memset(p->secret, 3, NET_SECRET);
	memset(p->d.nonce, 4, NET_NONCE);
	memset(p->a.nonce, 5, NET_NONCE);
	p->d.mac = p->a.mac = toy_mac;
	p->d.equal = p->a.equal = toy_equal;
	net_auth_dial(&p->d, p->d_name, p->a_name, NET_KIND_ADDRESS, p->secret);
	net_auth_accept(&p->a, p->a_name, p->secret, NULL);
}

/* Give what one side has to send to the other side, n bytes at a time. */
static int carry(struct net_auth *from, struct net_auth *to, size_t n)
{
	size_t len = from->nout, used;
	uint8_t msg[sizeof(from->out)];
	int ret = 0;

	memcpy(msg, from->out, len);
	from->nout = 0;
	for (size_t at = 0; at < len && ret == 0; at += n) {
		size_t part = len - at < n ? len - at : n;

		ret = net_auth_input(to, msg + at, part, &used);
		if (ret == 0)
			assert_int_equal(used, part);
	}
	return ret;
}

static void test_both_prove(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 200; n += 13) {
		struct pair p;

		begin(&p);
		assert_int_equal(carry(&p.d, &p.a, n), 0);
		assert_int_equal(p.a.state, NET_AUTH_PROOF);
		assert_int_equal(carry(&p.a, &p.d, n), 0);
		assert_int_equal(p.d.state, NET_AUTH_DONE);
		assert_int_equal(carry(&p.d, &p.a, n), 0);
		assert_int_equal(p.a.state, NET_AUTH_DONE);
		assert_memory_equal(p.a.peer, p.d_name, NET_NAME);
	}
}

/* ---- By the key file --------------------------------------------------- */

static void name_of(uint8_t name[NET_NAME], uint64_t nonce)
{
	struct hal_addr addr = {
		.version = HAL_ADDR_VERSION, .board = 3, .iface = 7,
		.nonce = nonce,
	};

	memset(name, nonce != HAL_ADDR_ANY ? 0x44 : 0, NET_NAME);
	memcpy(name, &addr, sizeof(addr));
}

/* A dialler that knows board and interface, and one key on each side. */
static void begin_by_key(struct pair *p, uint64_t nonce, const char *d_key,
			 const char *a_key)
{
	uint8_t to[NET_NAME];

	begin(p);
	name_of(p->a_name, 99);
	name_of(to, nonce);
	net_auth_dial(&p->d, p->d_name, to, NET_KIND_KEY,
		      (const uint8_t *)d_key);
	net_auth_accept(&p->a, p->a_name, p->secret, (const uint8_t *)a_key);
}

static int meet(struct pair *p)
{
	int ret = carry(&p->d, &p->a, 1000);
	int answer = carry(&p->a, &p->d, 1000);

	if (ret == 0)
		ret = answer;
	return ret != 0 ? ret : carry(&p->d, &p->a, 1000);
}

#define KEY	"sixteen bytes..."
#define OTHER	"sixteen bytes,.."

/* The dialler gets the whole name, which the proofs cover. */
static void test_by_key(void **state)
{
	struct pair p;

	(void)state;
	for (uint64_t nonce = 0; nonce < 100; nonce += 99) {
		begin_by_key(&p, nonce, KEY, KEY);
		assert_int_equal(meet(&p), 0);
		assert_int_equal(p.a.state, NET_AUTH_DONE);
		assert_memory_equal(p.d.peer, p.a_name, NET_NAME);
		assert_memory_equal(p.a.peer, p.d_name, NET_NAME);
	}
	begin_by_key(&p, 0, KEY, KEY);
	assert_int_equal(carry(&p.d, &p.a, 1000), 0);
	p.a.out[offsetof(struct net_answer, name) + 30] ^= 1;
	assert_int_equal(carry(&p.a, &p.d, 1000), -FI_EACCES);
}

/* Neither side keeps what it has proven. */
static void test_keys_are_wiped(void **state)
{
	static const uint8_t zero[NET_SECRET];
	struct pair p;

	(void)state;
	begin_by_key(&p, 0, KEY, KEY);
	assert_int_equal(meet(&p), 0);
	assert_memory_equal(p.a.key, zero, NET_SECRET);
	assert_memory_equal(p.a.secret, zero, NET_SECRET);
	assert_memory_equal(p.d.secret, zero, NET_SECRET);
}

static void test_wrong_key(void **state)
{
	static const uint8_t zero[NET_SECRET];
	struct pair p;

	(void)state;
	begin_by_key(&p, 0, KEY, OTHER);
	assert_int_equal(meet(&p), -FI_EACCES);
	/* the acceptor has none, which the dialler gets to know */
	begin_by_key(&p, 0, KEY, NULL);
	assert_int_equal(meet(&p), -FI_EACCES);
	assert_int_equal(p.d.state, NET_AUTH_FAILED);
	/* no key is not the key 0 */
	begin_by_key(&p, 0, (const char *)zero, NULL);
	assert_int_equal(meet(&p), -FI_EACCES);
	/* the secret of the address is no key, and a key is no secret */
	begin_by_key(&p, 0, (const char *)p.secret, KEY);
	assert_int_equal(meet(&p), -FI_EACCES);
	begin_by_key(&p, 0, KEY, KEY);
	net_auth_dial(&p.d, p.d_name, p.a_name, NET_KIND_ADDRESS,
		      (const uint8_t *)KEY);
	assert_int_equal(meet(&p), -FI_EACCES);
}

/* The key alone does not lead to another interface, or to a later holder. */
static void test_key_elsewhere(void **state)
{
	struct hal_addr addr;
	struct pair p;

	(void)state;
	begin_by_key(&p, 98, KEY, KEY);
	assert_int_equal(meet(&p), -FI_ECONNREFUSED);
	begin_by_key(&p, 0, KEY, KEY);
	memcpy(&addr, p.a.self, sizeof(addr));
	addr.board++;
	memcpy(p.a.self, &addr, sizeof(addr));
	assert_int_equal(meet(&p), -FI_ECONNREFUSED);
	/* nor does an acceptor pass for another one */
	begin_by_key(&p, 0, KEY, KEY);
	assert_int_equal(carry(&p.d, &p.a, 1000), 0);
	memcpy(&addr, p.a.out + offsetof(struct net_answer, name),
	       sizeof(addr));
	addr.iface++;
	memcpy(p.a.out + offsetof(struct net_answer, name), &addr,
	       sizeof(addr));
	assert_int_equal(carry(&p.a, &p.d, 1000), -FI_ECONNREFUSED);
}

/* A name without a nonce is for the key only. */
static void test_no_nonce_by_secret(void **state)
{
	uint8_t to[NET_NAME];
	struct pair p;

	(void)state;
	begin(&p);
	name_of(p.a.self, 99);
	name_of(to, HAL_ADDR_ANY);
	net_auth_dial(&p.d, p.d_name, to, NET_KIND_ADDRESS, p.secret);
	assert_int_equal(meet(&p), -FI_ECONNREFUSED);
}

/* ---- Messages that are wrong ------------------------------------------- */

/* The bytes behind the proof are the caller's. */
static void test_takes_no_more(void **state)
{
	uint8_t msg[NET_MAC + 5];
	struct pair p;
	size_t used;

	(void)state;
	begin(&p);
	carry(&p.d, &p.a, 1000);
	carry(&p.a, &p.d, 1000);
	memcpy(msg, p.d.out, NET_MAC);
	assert_int_equal(net_auth_input(&p.a, msg, sizeof(msg), &used), 0);
	assert_int_equal(used, NET_MAC);
	assert_int_equal(p.a.state, NET_AUTH_DONE);
}

static void test_wrong_secret(void **state)
{
	struct pair p;

	(void)state;
	begin(&p);
	p.d.secret[7] ^= 1;
	assert_int_equal(carry(&p.d, &p.a, 1000), 0);
	/* the acceptor's proof is wrong for this dialler */
	assert_int_equal(carry(&p.a, &p.d, 1000), -FI_EACCES);
	assert_int_equal(p.d.state, NET_AUTH_FAILED);
	assert_int_equal(p.d.nout, 0);
	/* a dialler that does not look finds no acceptor */
	memset(p.d.out, 0x5a, NET_MAC);
	p.d.nout = NET_MAC;
	assert_int_equal(carry(&p.d, &p.a, 1000), -FI_EACCES);
	assert_int_equal(p.a.state, NET_AUTH_FAILED);
}

/* The proof of one connection is of no use in another one. */
static void test_replay(void **state)
{
	uint8_t hello[sizeof(struct net_hello)], proof[NET_MAC];
	struct pair p;
	size_t used;

	(void)state;
	begin(&p);
	memcpy(hello, p.d.out, sizeof(hello));
	carry(&p.d, &p.a, 1000);
	carry(&p.a, &p.d, 1000);
	memcpy(proof, p.d.out, NET_MAC);
	begin(&p);
	p.a.nonce[0] ^= 1;		/* another connection */
	assert_int_equal(net_auth_input(&p.a, hello, sizeof(hello), &used), 0);
	assert_int_equal(net_auth_input(&p.a, proof, NET_MAC, &used),
			 -FI_EACCES);
}

/* The proof of the acceptor is no proof of a dialler. */
static void test_reflected(void **state)
{
	struct pair p;
	size_t used;

	(void)state;
	begin(&p);
	carry(&p.d, &p.a, 1000);
	assert_int_equal(net_auth_input(&p.a, p.a.out +
					offsetof(struct net_answer, proof),
					NET_MAC, &used), -FI_EACCES);
}

static void test_another_interface(void **state)
{
	struct pair p;

	(void)state;
	begin(&p);
	p.a.self[3] ^= 1;
	assert_int_equal(carry(&p.d, &p.a, 1000), -FI_ECONNREFUSED);
	/* the dialler gets to know, and does not try again */
	assert_int_equal(carry(&p.a, &p.d, 1000), -FI_ECONNREFUSED);
}

static void test_another_version(void **state)
{
	struct pair p;

	(void)state;
	begin(&p);
	p.d.out[offsetof(struct net_hello, version)]++;
	assert_int_equal(carry(&p.d, &p.a, 1000), -EPROTONOSUPPORT);
	assert_int_equal(carry(&p.a, &p.d, 1000), -EPROTONOSUPPORT);
}

/* Garbage ends at its first wrong byte, in both roles. */
static void test_garbage(void **state)
{
	static const char web[] = "GET / HTTP/1.0\r\n\r\n";
	struct pair p;
	size_t used;

	(void)state;
	begin(&p);
	assert_int_equal(net_auth_input(&p.a, web, 1, &used), -EPROTO);
	assert_int_equal(p.a.nout, 0);
	assert_int_equal(net_auth_input(&p.a, web, sizeof(web), &used),
			 -EPROTO);
	assert_int_equal(net_auth_input(&p.d, web, sizeof(web), &used),
			 -EPROTO);
	assert_int_equal(p.d.state, NET_AUTH_FAILED);
}

/* A change of any byte of any message ends in no agreement. */
static void test_each_byte(void **state)
{
	static const size_t lens[] = {
		sizeof(struct net_hello), sizeof(struct net_answer), NET_MAC,
	};

	(void)state;
	for (int m = 0; m < 3; m++)
		for (size_t i = 0; i < lens[m]; i++) {
			struct pair p;
			int ret = 0;

			begin(&p);
			for (int step = 0; step < 3 && ret == 0; step++) {
				struct net_auth *from = step == 1 ? &p.a : &p.d;

				if (step == m)
					from->out[i] ^= 0x40;
				ret = carry(from, step == 1 ? &p.d : &p.a,
					    1000);
			}
			assert_true(ret != 0);
			assert_false(p.a.state == NET_AUTH_DONE);
		}
}

/* ---- Sealed messages --------------------------------------------------- */

struct msg {
	struct net_ctl ctl;
	uint8_t body[24];
	uint8_t mac[NET_MAC];
};

static void agree(struct pair *p)
{
	begin(p);
	carry(&p->d, &p->a, 1000);
	carry(&p->a, &p->d, 1000);
	carry(&p->d, &p->a, 1000);
	assert_int_equal(p->d.state, NET_AUTH_DONE);
	assert_int_equal(p->a.state, NET_AUTH_DONE);
}

static struct msg sealed(struct net_auth *from, uint8_t byte)
{
	struct msg m = { .ctl.type = 1 };

	memset(m.body, byte, sizeof(m.body));
	assert_int_equal(net_auth_seal(from, &m, offsetof(struct msg, mac)),
			 sizeof(m));
	assert_int_equal(m.ctl.bytes, sizeof(m));
	return m;
}

static void test_sealed(void **state)
{
	struct pair p;

	(void)state;
	agree(&p);
	for (uint8_t i = 0; i < 10; i++) {
		struct msg m = sealed(&p.d, i), n = sealed(&p.a, i);

		assert_int_equal(net_auth_open(&p.a, &m), 32);
		assert_int_equal(net_auth_open(&p.d, &n), 32);
	}
}

/* A change of any byte, and any other length, is noticed. */
static void test_sealed_bytes(void **state)
{
	struct pair p;
	struct msg m;

	(void)state;
	agree(&p);
	m = sealed(&p.d, 7);
	for (size_t i = 0; i < sizeof(m); i++) {
		struct {
			struct msg m;
			uint8_t more[UINT16_MAX];
		} changed = { .m = m };

		((uint8_t *)&changed)[i] ^= 0x20;
		assert_true(net_auth_open(&p.a, &changed) < 0);
	}
	for (uint16_t len = 0; len < sizeof(m); len++) {
		struct msg cut = m;

		cut.ctl.bytes = len;
		assert_true(net_auth_open(&p.a, &cut) < 0);
	}
	assert_int_equal(net_auth_open(&p.a, &m), 32);
}

/* Messages that are good elsewhere: repeated, out of order, sent back to their
 * author, of another connection. */
static void test_sealed_elsewhere(void **state)
{
	struct pair p, q;
	struct msg m[3];

	(void)state;
	agree(&p);
	for (uint8_t i = 0; i < 3; i++)
		m[i] = sealed(&p.d, i);
	assert_int_equal(net_auth_open(&p.a, &m[1]), -FI_EACCES);
	assert_int_equal(net_auth_open(&p.a, &m[0]), 32);
	assert_int_equal(net_auth_open(&p.a, &m[0]), -FI_EACCES);
	assert_int_equal(net_auth_open(&p.a, &m[2]), -FI_EACCES);
	assert_int_equal(net_auth_open(&p.d, &m[0]), -FI_EACCES);
	begin(&q);
	q.a.nonce[0] ^= 1;
	carry(&q.d, &q.a, 1000);
	carry(&q.a, &q.d, 1000);
	carry(&q.d, &q.a, 1000);
	assert_int_equal(q.a.state, NET_AUTH_DONE);
	assert_int_equal(net_auth_open(&q.a, &m[0]), -FI_EACCES);
}

/* A kind of secret that this side does not know is refused. */
static void test_another_kind(void **state)
{
	struct pair p;

	(void)state;
	begin(&p);
	p.d.out[offsetof(struct net_hello, kind)] = 200;
	assert_int_equal(carry(&p.d, &p.a, 1000), -FI_ECONNREFUSED);
}

/* ---- Sessions ------------------------------------------------------------ */

/* The session of the acceptor `owner` with its dialler. */
static bool session_of(void *owner, const uint8_t name[NET_NAME],
		       uint8_t secret[NET_SECRET])
{
	struct pair *p = owner;

	memcpy(secret, p->secret, NET_SECRET);
	return memcmp(name, p->d_name, NET_NAME) == 0;
}

/* Connect again with the session of a connection. Returns the acceptor's or
 * the dialler's refusal, or 0. */
static int again(const struct pair *old, struct pair *p)
{
	int ret;

	begin(p);
	memcpy(p->secret, old->a.next, NET_SECRET);
	p->a.session = session_of;
	p->a.owner = p;
	net_auth_dial(&p->d, p->d_name, p->a_name, NET_KIND_SESSION,
		      old->d.next);
	ret = carry(&p->d, &p->a, 1000);
	if (ret == 0)
		ret = carry(&p->a, &p->d, 1000);
	return ret != 0 ? ret : carry(&p->d, &p->a, 1000);
}

/* Both sides know the secret of their session, which no message has. */
static void test_session(void **state)
{
	struct pair p, q;

	(void)state;
	agree(&p);
	assert_memory_equal(p.d.next, p.a.next, NET_SECRET);
	assert_memory_not_equal(p.d.next, p.d.seal_key, NET_SECRET);
	assert_memory_not_equal(p.d.next, p.d.open_key, NET_SECRET);
	assert_int_equal(again(&p, &q), 0);
	assert_int_equal(q.a.state, NET_AUTH_DONE);
	assert_int_equal(q.d.state, NET_AUTH_DONE);
	assert_int_equal(q.a.kind, NET_KIND_SESSION);
}

static void test_another_session(void **state)
{
	struct pair p, q;

	(void)state;
	agree(&p);
	p.d.next[3] ^= 1;
	assert_int_equal(again(&p, &q), -FI_EACCES);
	p.d.next[3] ^= 1;
	begin(&q);		/* an acceptor without sessions */
	net_auth_dial(&q.d, q.d_name, q.a_name, NET_KIND_SESSION, p.d.next);
	assert_int_equal(carry(&q.d, &q.a, 1000), -FI_ECONNREFUSED);
	assert_int_equal(carry(&q.a, &q.d, 1000), -FI_ECONNREFUSED);
	begin(&q);		/* ... or with another interface only */
	q.a.session = session_of;
	q.a.owner = &q;
	memset(q.d_name, 9, NET_NAME);
	net_auth_dial(&q.d, p.d_name, q.a_name, NET_KIND_SESSION, p.d.next);
	assert_int_equal(carry(&q.d, &q.a, 1000), -FI_ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_prove),
		cmocka_unit_test(test_by_key),
		cmocka_unit_test(test_keys_are_wiped),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_key_elsewhere),
		cmocka_unit_test(test_no_nonce_by_secret),
		cmocka_unit_test(test_takes_no_more),
		cmocka_unit_test(test_wrong_secret),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_reflected),
		cmocka_unit_test(test_another_interface),
		cmocka_unit_test(test_another_version),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_each_byte),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_sealed_bytes),
		cmocka_unit_test(test_sealed_elsewhere),
		cmocka_unit_test(test_another_kind),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_another_session),
	};

	return unit_run(tests);
}
