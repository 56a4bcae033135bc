/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_number.c - peers on other hosts and the numbers of their boards: by
 * the user's file of hosts, and by Slurm's list, which may be wrong about them.
 */
#include <sys/socket.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_auth.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_state.h"
#include "lib/net_pair.h"

#define MS	UINT64_C(1000000)	/* ns */

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* Two hosts with a board each; this one is the first, and the second is at the
 * loopback interface. The interface `to` of its board is at a port. */
static struct hal_addr use_directory(uint16_t port)
{
	static const char text[] = "192.0.2.1\n127.0.0.1\n";
	struct net_hal *net = a->nif->net;
	struct hal_addr to = a->hif->addr;

	assert_int_equal(net_dir_read(text, strlen(text), "hosts", 1,
				      &net->dir), 0);
	net->dir->asked = true;
	net->key.len = 16;
	net_pair.hal->caps.boards = 2;
	net_pair.hal->far_boards = 1;
	net_pair.hal->params.net_port = port - 5;
	to.board = 1;
	to.iface = 5;
	to.nonce = HAL_ADDR_ANY;
	return to;
}

/* The whole handshake with a side by the key file. */
static void prove_by_key(struct net_rogue *r, struct net_side *to)
{
	uint8_t name[NET_NAME], key[NET_SECRET];
	uint8_t answer[sizeof(struct net_answer)];
	size_t used;

	net_rogue_hello(r, to);
	net_host_name(&to->hif->addr, &to->nif->host, name);
	net_key_secret(&to->nif->net->key, r->auth.mac, key);
	net_auth_dial(&r->auth, r->name, name, NET_KIND_KEY, key);
	net_rogue_flush(r);
	assert_true(net_rogue_recv(r, to, answer, sizeof(answer)));
	assert_int_equal(net_auth_input(&r->auth, answer, sizeof(answer),
					&used), 0);
	net_rogue_flush(r);
}

/* The name that a rogue claims: interface 5 of a board, at 127.0.0.ip. */
struct claim {
	uint16_t board;
	uint8_t ip;
	bool by_key;			/* else by the secret of the address */
};

/* Connect to a side. Returns the name. */
static struct hal_addr claim(struct net_rogue *r, struct net_side *to,
			     struct claim what)
{
	struct hal_addr named;
	struct hal_host host;

	net_rogue_dial(r, to);
	assert_true(net_host_parse(r->name, &named, &host));
	named.board = what.board;
	named.iface = 5;
	host.ip[15] = what.ip;
	net_host_name(&named, &host, r->name);
	if (what.by_key)
		prove_by_key(r, to);
	else
		assert_true(net_rogue_prove(r, to));
	return named;
}

/* A peer that is dialled by its number gets the name of a connection that comes
 * meanwhile only if that was proven by the key file. */
static void test_name_of_a_number(void **state)
{
	struct hal_addr to, named;
	struct net_rogue r;
	uint16_t port;
	int fd = net_rogue_listen(4, &port);

	to = use_directory(port);
	assert_int_equal(hal_connect(a->hif, &to, &a->peer), -FI_EAGAIN);
	claim(&r, a, (struct claim){ 1, 1, false });
	net_rogue_closed(&r, a);
	assert_int_equal(a->nif->npeers, 1);
	assert_int_equal(hal_connect(a->hif, &to, &a->peer), -FI_EAGAIN);
	named = claim(&r, a, (struct claim){ 1, 1, true });
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  hal_connect(a->hif, &to, &a->peer) == 0);
	assert_memory_equal(&a->peer->addr, &named, sizeof(named));
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	close(fd);
}

/* Connect to b. False: b has refused the name. */
static bool accepted(struct net_rogue *r, struct claim what)
{
	claim(r, b, what);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->npeers == 1 ||
			  unm_list_empty(&b->nif->conns));
	return b->nif->npeers == 1;
}

/* With a file of hosts only the boards of its other hosts are names of a peer,
 * by whichever secret. So it is with Slurm's list for connections by number;
 * connections by address, which MPI makes, need no numbers. */
static void test_boards_of_names(void **state)
{
	struct net_rogue r;
	bool good;

	use_directory(7450);
	for (unsigned i = 0; i < 12; i++) {
		bool asked = i % 2, by_key = i / 2 % 2;
		uint16_t board = (uint16_t)(i / 4);

		b->nif->net->dir->asked = asked;
		good = accepted(&r, (struct claim){ board, 1, by_key });
		assert_int_equal(good, board == 1 || (!asked && !by_key));
		net_rogue_close(&r);
		NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->npeers == 0);
	}
}

/* Slurm's list: a peer of a host that has the number of another one by its own
 * list is not the peer that is connected to by this number, whether it comes
 * before that or meanwhile. */
static void test_number_of_another_host(void **state)
{
	struct net_rogue other[3], r;
	struct hal_addr to;
	uint16_t port;
	int fd = net_rogue_listen(4, &port);

	to = use_directory(port);
	a->nif->net->dir->asked = false;
	for (uint32_t i = 0; i < 3; i++) {
		claim(&other[i], a, (struct claim){ 1, 7, i == 2 });
		NET_PAIR_DO_UNTIL(net_side_pump(a),
				  a->nif->npeers == i + 1 + (i != 0));
		assert_int_equal(hal_connect(a->hif, &to, &a->peer),
				 -FI_EAGAIN);
	}
	for (int i = 0; i < 3; i++)
		net_rogue_close(&other[i]);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->nif->npeers == 1);
	claim(&r, a, (struct claim){ 1, 1, true });
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  hal_connect(a->hif, &to, &a->peer) == 0);
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	close(fd);
}

/* ... but one of the right host is, also if it was connected by address. */
static void test_number_of_the_host(void **state)
{
	struct net_rogue r;
	struct hal_addr to = use_directory(7450);

	a->nif->net->dir->asked = false;
	claim(&r, a, (struct claim){ 1, 1, false });
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->nif->npeers == 1);
	assert_int_equal(hal_connect(a->hif, &to, &a->peer), 0);
	assert_int_equal(a->nif->npeers, 1);
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
}

/* Slurm's list: a connection by number, whose peer has not answered, holds up
 * the connection by address to the same host only. */
static void test_address_beside_a_number(void **state)
{
	struct hal_host host = a->nif->host;
	struct hal_peer *peer;
	struct hal_addr to;
	uint16_t port;
	int fd = net_rogue_listen(4, &port);

	to = use_directory(port);
	a->nif->net->dir->asked = false;
	assert_int_equal(hal_connect(a->hif, &to, &a->peer), -FI_EAGAIN);
	to.nonce = 77;
	host.id[0] ^= 1;
	host.port = port;
	assert_int_equal(hal_connect_host(a->hif, &to, &host, &peer),
			 -FI_EAGAIN);
	host.ip[15] = 7;
	assert_int_equal(hal_connect_host(a->hif, &to, &host, &peer), 0);
	hal_peer_free(peer);
	close(fd);
}

/* A listener that never answers holds a connection by number up for a bounded
 * time. */
static void test_silent_number(void **state)
{
	int fd, ret = -FI_EAGAIN;
	struct hal_addr to;
	uint16_t port;

	fd = net_rogue_listen(16, &port);
	to = use_directory(port);
	a->nif->net->dial_ns = 20 * MS;
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  (ret = hal_connect(a->hif, &to, &a->peer)) !=
			  -FI_EAGAIN);
	assert_int_equal(ret, -FI_ETIMEDOUT);
	assert_int_equal(a->nif->npeers, 0);
	close(fd);
}

static void no_log(int level, const char *line)
{
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_name_of_a_number),
		NET_PAIR_TEST(test_boards_of_names),
		NET_PAIR_TEST(test_number_of_another_host),
		NET_PAIR_TEST(test_number_of_the_host),
		NET_PAIR_TEST(test_address_beside_a_number),
		NET_PAIR_TEST(test_silent_number),
	};

	hal_log_set(no_log);
	return unit_run(tests);
}
