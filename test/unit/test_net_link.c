/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_link.c - connections to other hosts whose engine lacks descriptors
 * or memory for a link, for a while, for too long, or until the peer ends; and
 * the address at which the engine opens its port.
 */
#include <errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_state.h"
#include "lib/net_pair.h"

#define MS	UINT64_C(1000000)	/* ns */

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* ---- Log ----------------------------------------------------------------- */

static char g_logged[512], g_port[512];
static unsigned g_lines, g_ports;

static void keep_log(int level, const char *line)
{
	if (strstr(line, " opens its port at ") != NULL) {
		snprintf(g_port, sizeof(g_port), "%s", line);
		g_ports++;
	}
	if (level != 0)
		return;
	snprintf(g_logged, sizeof(g_logged), "%s", line);
	g_lines++;
}

static int setup(void **state)
{
	g_logged[0] = g_port[0] = '\0';
	g_lines = g_ports = 0;
	return net_pair_setup(state);
}

/* ---- Lacks --------------------------------------------------------------- */

static const struct net_pair_lack g_lacks[] = {
	{ .open = 3 }, { .address = 3 }, { .connect = 3 },
};
#define LACKS		(sizeof(g_lacks) / sizeof(g_lacks[0]))

static bool lacking(void)
{
	const struct net_pair_lack *lack = &net_pair.lack;

	return lack->open + lack->address + lack->connect != 0;
}

/* The engine of either side lacks descriptors for a while, for its worker or
 * for a link: that side logs it, and the peers are connected then. */
static void test_no_descriptor_for_engine(void **state)
{
	for (size_t i = 0; i < 2 * LACKS; i++) {
		net_pair.lack = g_lacks[i / 2];
		net_pair.lack.of = i % 2 ? b : a;
		net_pair_dial(a, b);
		NET_PAIR_UNTIL(a->dead + b->dead != 0 ||
			       (a->connected == 1 && b->inbound == 1 &&
				!lacking()));
		assert_int_equal(a->dead + b->dead, 0);
		assert_int_equal(g_lines, i / 2 == 0);
		assert_true(i / 2 != 0 || strstr(g_logged, "ulimit -n"));
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* The same for a peer that this side knows: it has dialled it, too, or it has
 * suspended it. */
static void test_no_descriptor_for_known(void **state)
{
	uint64_t word = 1, head;
	struct net_hal *net;

	for (size_t i = 0; i < 2 * LACKS; i++) {
		net_pair.lack = g_lacks[i / 2];
		net_pair.lack.of = i % 2 ? b : a;
		net_pair_talk();
		assert_int_equal(a->dead + b->dead, 0);
		assert_false(lacking());
		net = net_pair.hal->net;
		net->links_max = 0;
		NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_SUSPENDED &&
			       net_peer(b->peer)->state == NET_SUSPENDED);
		net->links_max = UINT32_MAX;
		net_pair.lack = g_lacks[i / 2];
		net_pair.lack.open = 0;
		net_pair.lack.of = i % 2 ? b : a;
		assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word,
					      1, NULL, 0), 0);
		NET_PAIR_UNTIL(a->dead + b->dead != 0 ||
			       hal_rx_peek(b->peer, &head) != NULL);
		NET_PAIR_UNTIL(a->dead + b->dead != 0 || !lacking());
		assert_int_equal(a->dead + b->dead, 0);
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* The side that dialled closes its connection if another one of the two stays.
 * So the other side, which would send frames, is not connected before this side
 * is. */
static void test_dialler_is_first(void **state)
{
	int64_t end = net_pair_seconds() + 40;
	struct net_if *nif = net_if(b->hif);

	net_pair_dial(a, b);
	for (; net_peer(a->peer)->state != NET_UP; net_side_pump(a)) {
		net_side_pump(b);
		unm_list_for_each(pos, &nif->conns) {
			struct net_conn *conn = unm_container(pos,
						struct net_conn, link);

			assert_true(conn->peer == NULL ||
				    conn->peer->state != NET_UP);
		}
		assert_true(net_pair_seconds() < end);
	}
	NET_PAIR_UNTIL(b->inbound == 1);
	assert_int_equal(a->dead + b->dead, 0);
}

/* A connection that waits for a link ends: so does its peer, if it was ending
 * already or if its host is silent. */
static void test_waiting_link_ends(void **state)
{
	static const int status[] = { -ECONNRESET, -ETIMEDOUT };
	uint64_t word = 1;
	struct net_peer *peer;
	struct net_hal *net;

	for (int i = 0; i < 2; i++) {
		net_pair_talk();
		net = net_pair.hal->net;
		net->links_max = 0;
		peer = net_peer(b->peer);
		NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_SUSPENDED &&
			       peer->state == NET_SUSPENDED);
		net->links_max = UINT32_MAX;
		net_pair.lack = (struct net_pair_lack){
			.of = b, .connect = -1,
		};
		assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word,
					      1, NULL, 0), 0);
		NET_PAIR_UNTIL(peer->state == NET_MEETING &&
			       peer->conn->link_at != 0);
		if (i == 0)
			net_peer_dying(peer, -FI_EIO);
		net_conn_failed(peer->conn, status[i]);
		NET_PAIR_UNTIL(b->dead == 1);
		assert_int_equal(b->dead_status,
				 i == 0 ? -FI_EIO : -FI_ECONNRESET);
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* The first connection ends after frames have come by it and before this side
 * is connected: the next one would begin with the same numbers of frames, so it
 * is not dialled. */
static void test_frames_before_the_session(void **state)
{
	struct net_peer *peer;

	net_pair.lack = (struct net_pair_lack){ .of = b, .connect = -1 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(b->nif->npeers == 1);
	peer = unm_container(b->nif->peers.next, struct net_peer, link);
	NET_PAIR_UNTIL(peer->s.taken != 0);
	net_pair_dial(b, a);
	assert_ptr_equal(net_peer(b->peer), peer);
	assert_int_equal(peer->state, NET_MEETING);
	net_conn_failed(peer->conn, -ECONNRESET);
	assert_int_equal(peer->dying, -FI_ECONNRESET);
	NET_PAIR_UNTIL(a->dead == 1 && b->dead == 1);
}

/* Dial as by board and interface: with the key file, without a secret. */
static struct net_peer *dial_by_key(struct net_side *from,
				    const struct net_side *to)
{
	struct hal_addr addr = to->hif->addr;
	struct hal_host host = to->nif->host;
	struct net_peer *peer;

	addr.nonce = HAL_ADDR_ANY;
	memset(host.secret, 0, sizeof(host.secret));
	from->nif->net->key.len = 16;
	assert_int_equal(net_peer_new(from->nif, &addr, &host, &peer), 0);
	peer->by_key = true;
	net_dial(peer);
	return peer;
}

/* A peer that dialled gives up before it has its link. This side has connected
 * to it meanwhile, and dials it: with the secret of its address, or with the
 * key file if this side was not given the secret. */
static void test_accepted_is_dialled(void **state)
{
	struct net_peer *peer;

	for (int by_key = 0; by_key < 2; by_key++) {
		if (!by_key)
			net_pair_dial(b, a);
		peer = by_key ? dial_by_key(b, a) : net_peer(b->peer);
		net_pair.lack = (struct net_pair_lack){
			.of = b, .connect = -1,
		};
		NET_PAIR_UNTIL(a->nif->npeers == 1 && peer->conn != NULL &&
			       peer->conn->link_at != 0);
		if (by_key)
			assert_int_equal(hal_connect(a->hif, &b->hif->addr,
						     &a->peer), 0);
		else
			net_pair_dial(a, b);
		assert_false(net_peer(a->peer)->by_key);
		peer->conn->deadline = 1;
		/* a peer that is not hidden is freed when it is dead */
		NET_PAIR_DO_UNTIL(net_side_pump(b), by_key ?
				  peer->dying != 0 : b->dead == 1);
		net_pair.lack.connect = 0;
		NET_PAIR_UNTIL(a->connected + a->dead != 0);
		assert_int_equal(a->dead, 0);
		NET_PAIR_UNTIL(b->inbound == 1);
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* ... but without a key file this side does not dial: any process that has the
 * port of the peer knows the proofs of an empty key. */
static void test_accepted_without_key_file(void **state)
{
	struct net_peer *peer;

	a->nif->net->key.len = 0;
	net_pair_dial(b, a);
	peer = net_peer(b->peer);
	net_pair.lack = (struct net_pair_lack){ .of = b, .connect = -1 };
	NET_PAIR_UNTIL(a->nif->npeers == 1 && peer->conn != NULL &&
		       peer->conn->link_at != 0);
	assert_int_equal(hal_connect(a->hif, &b->hif->addr, &a->peer), 0);
	peer->conn->deadline = 1;
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->dead == 1);
	g_lines = 0;
	peer = net_peer(a->peer);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1 ||
			  (peer->conn != NULL && peer->conn->dialled));
	assert_int_equal(a->dead, 1);
	assert_int_equal(a->dead_status, -FI_EACCES);
	assert_int_equal(g_lines, 1);
	assert_non_null(strstr(g_logged, "FI_UNIMEM_NET_KEY"));
}

/* A lack that lasts for too long ends the peer, with its reason in the log, be
 * it descriptors or memory. */
static void test_no_descriptor_for_long(void **state)
{
	for (size_t i = 0; i < LACKS + 1; i++) {
		bool memory = i == LACKS;

		net_pair.lack = (struct net_pair_lack){
			a, i == 0 ? -1 : 0, i == 1 ? -1 : 0, i >= 2 ? -1 : 0,
			memory,
		};
		a->nif->net->dial_ns = 1000 * MS;
		net_pair_dial(a, b);
		NET_PAIR_UNTIL(a->dead == 1);
		assert_int_equal(a->dead_status, memory ? -ENOMEM : -EMFILE);
		assert_non_null(strstr(g_logged, memory ? strerror(ENOMEM) :
				       "ulimit -n"));
		assert_int_equal(g_lines, i == 0 ? 2 : 1);
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* The peer ends in an orderly way while this side lacks descriptors for its
 * link, whichever side has dialled. A peer that accepted is not connected
 * then. */
static void test_ends_before_link(void **state)
{
	struct net_side c;
	struct net_peer *of_b, *of_c;

	net_pair.lack = (struct net_pair_lack){ .of = b, .connect = -1 };
	for (unsigned k = 0; k < 2; k++) {
		net_side_open(&c);
		if (k == 0)
			net_pair_dial(&c, b);
		else
			net_pair_dial(b, &c);
		NET_PAIR_DO_UNTIL({ net_side_pump(&c); net_side_pump(b); },
				  c.nif->npeers == 1 && b->nif->npeers == 1);
		of_c = unm_container(c.nif->peers.next, struct net_peer, link);
		of_b = unm_container(b->nif->peers.next, struct net_peer, link);
		NET_PAIR_DO_UNTIL({ net_side_pump(&c); net_side_pump(b); },
				  of_b->conn != NULL &&
				  of_b->conn->link_at != 0 &&
				  (k == 1 || (of_c->state == NET_UP &&
					      b->inbound == 1)));
		assert_int_equal(of_c->state, k == 1 ? NET_MEETING : NET_UP);
		c.nif->net->dead_ns = 1;
		hal_if_close(c.hif);
		b->nif->net->dead_ns = 3000 * MS;
		NET_PAIR_DO_UNTIL(net_side_pump(b), b->dead == k + 1);
		assert_int_equal(b->dead_status, -FI_ESHUTDOWN);
	}
}

/* ---- Addresses ----------------------------------------------------------- */

/* The engine opens its port at the first address of the network interface,
 * which is said if it is another one than that of FI_UNIMEM_NET. */
static void test_other_address(void **state)
{
	struct net_side c;

	((struct net_hal *)net_pair.hal->net)->host.ip[15] = 2;
	net_side_open(&c);
	net_pair_dial(&c, b);
	NET_PAIR_DO_UNTIL({ net_side_pump(&c); net_side_pump(b); },
			  c.connected == 1 && b->inbound == 1);
	assert_int_equal(g_ports, 1);
	assert_non_null(strstr(g_port, "FI_UNIMEM_NET=lo: "));
	assert_non_null(strstr(g_port, " at 127.0.0.1, the first"));
	assert_non_null(strstr(g_port, " at 127.0.0.2, make that"));
	c.nif->net->dead_ns = 1;
	hal_if_close(c.hif);
}

#define TEST(f)								\
	{ #f, net_pair_test, setup, net_pair_teardown, (void *)f }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_descriptor_for_engine),
		TEST(test_no_descriptor_for_known),
		TEST(test_no_descriptor_for_long),
		TEST(test_dialler_is_first),
		TEST(test_frames_before_the_session),
		TEST(test_waiting_link_ends),
		TEST(test_accepted_is_dialled),
		TEST(test_accepted_without_key_file),
		TEST(test_ends_before_link),
		TEST(test_other_address),
	};

	hal_log_set(keep_log);
	return unit_run(tests);
}
