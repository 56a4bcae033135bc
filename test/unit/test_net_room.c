/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_room.c - how many packets a peer on another host accepts.
 */
#include <rdma/fi_errno.h>

#include "hal/net/hal_net_send.h"
#include "lib/net_pair.h"

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* As many packets are accepted as hal_tx_room() says, those of two slots too,
 * and they change it. */
static void test_room(void **state)
{
	const uint64_t words[8] = { 9 };
	uint64_t depth = b->hif->caps->pkt_depth;

	net_pair_talk();
	unit_needs(b->hif->caps->pkt_wide >= sizeof(words));
	NET_PAIR_DO_UNTIL(hal_if_pump(a->hif),
			  hal_tx_done(a->peer) == hal_tx_sent(a->peer));
	assert_int_equal(hal_tx_room(a->peer), depth);
	assert_int_equal(hal_pkt_send_wide(a->peer, hal_head(1, 0), words, 1,
					   &words[1], 7 * sizeof(words[0])), 0);
	for (uint64_t room = depth - 2; room > 0; room--) {
		assert_int_equal(hal_tx_room(a->peer), room);
		assert_true(hal_tx_free(a->peer));
		assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), words,
					      1, NULL, 0), 0);
	}
	assert_int_equal(hal_tx_room(a->peer), 0);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), words, 1, NULL,
				      0), -FI_EAGAIN);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t head;

		NET_PAIR_DO_UNTIL(hal_if_pump(b->hif),
				  hal_rx_peek(b->peer, &head) != NULL);
		hal_rx_release(b->peer);
		if (i == 0)		/* the wide one */
			hal_rx_release(b->peer);
	}
	hal_rx_flush(b->peer);
	NET_PAIR_UNTIL(hal_tx_room(a->peer) != 0);
	assert_int_equal(hal_tx_room(a->peer), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_room),
	};

	return unit_run(tests);
}
