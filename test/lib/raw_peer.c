/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_peer.c - a bare interface that exchanges packets with endpoints of the
 * same process; see raw_peer.h.
 *
 * Owns the table of bare interfaces. raw_step() accepts their connections and
 * notes the end of their peers.
 */
#include "lib/raw_peer.h"

#define RAWS	8
#define EVENTS	16

static struct raw raws[RAWS];

struct raw *raw_open(void)
{
	struct raw *r = raws;

	while (r->open)
		assert_true(++r < raws + RAWS);
	memset(r, 0, sizeof(*r));
	assert_int_equal(hal_get(NULL, &r->hal), 0);
	assert_int_equal(hal_if_open(r->hal, -1, &r->hif), 0);
	r->open = true;
	return r;
}

void raw_close(struct raw *r)
{
	hal_if_close(r->hif);
	hal_put(r->hal);
	r->open = false;
}

int raw_teardown(void **state)
{
	for (int i = 0; i < RAWS; i++)
		if (raws[i].open)
			raw_close(&raws[i]);
	return ep_teardown(state);
}

static void service(struct raw *r)
{
	struct hal_event ev[EVENTS];
	int n;

	hal_if_pump(r->hif);
	n = hal_if_service(r->hif, ev, EVENTS);
	for (int i = 0; i < n; i++) {
		if (ev[i].type != HAL_EV_DEAD) {
			r->peer = ev[i].peer;
			continue;
		}
		if (ev[i].peer == r->peer) {
			r->dead = true;
			r->peer = NULL;
		}
		hal_peer_free(ev[i].peer);
	}
}

void raw_step(void)
{
	for (int i = 0; i < RAWS; i++)
		if (raws[i].open)
			service(&raws[i]);
	ep_step();
}

void raw_reach(struct raw *r, struct ep *e)
{
	struct hal_addr addr;
	size_t len = sizeof(addr);

	assert_int_equal(fi_getname(&e->ep->fid, &addr, &len), 0);
	EP_OK(hal_connect(r->hif, &addr, &r->peer));
}

void raw_connect(struct raw *r, struct ep *e)
{
	raw_reach(r, e);
	assert_int_equal(hal_space_ready(r->peer,
					 r->hif->caps->space_bytes), 0);
}

fi_addr_t raw_insert(struct ep *into, struct raw *r)
{
	fi_addr_t addr;

	assert_int_equal(fi_av_insert(into->av, &r->hif->addr, 1, &addr, 0,
				      NULL), 1);
	return addr;
}

bool raw_send(struct raw *r, uint64_t head, const uint64_t *w, unsigned nw,
	      const void *data, size_t len)
{
	uint64_t end = ep_deadline();

	while (r->peer != NULL) {
		if (hal_pkt_send(r->peer, head, w, nw, data, len) == 0)
			return true;
		raw_step();
		ep_in_time(end, "raw_send");
	}
	return false;
}

bool raw_send_words(struct raw *r, uint8_t type, const uint64_t *w,
		    unsigned nw)
{
	uint64_t carried[2] = {
		unm_wire_extent_word(0, 8 * nw), hal_head(type, 0),
	};

	if (8 * nw <= r->hif->caps->pkt_payload)
		return raw_send(r, hal_head(type, 0), w, nw, NULL, 0);
	raw_space(r, 0, w, 8 * nw);
	return raw_send(r, hal_head(UNM_WIRE_CARRIED, 0), carried, 2, NULL, 0);
}

bool raw_hello_as(struct raw *r, uint16_t version, uint16_t least)
{
	const uint64_t hello = version | (uint64_t)least << 16;

	return raw_send(r, hal_head(UNM_WIRE_HELLO, 0), &hello, 1, NULL, 0);
}

bool raw_hello(struct raw *r)
{
	return raw_hello_as(r, UNM_WIRE_VERSION, UNM_WIRE_VERSION);
}

void raw_space(struct raw *r, uint32_t off, const void *src, size_t len)
{
	hal_space_write(r->peer, off, src, len);
	hal_space_barrier(r->peer);
}

const struct hal_cell *raw_next(struct raw *r, uint64_t *head)
{
	const struct hal_cell *cell = NULL;

	RAW_UNTIL(r->dead || (r->peer != NULL && r->peer->rx.cells != NULL));
	assert_false(r->dead);
	RAW_UNTIL(r->dead || (cell = hal_rx_peek(r->peer, head)) != NULL);
	assert_non_null(cell);
	/* The caller may read the packet until the ring wraps around. */
	r->second = hal_rx_second(r->peer);
	if ((hal_head_type(*head) & ~UNM_WIRE_TAGGED) == UNM_WIRE_WIDE)
		hal_rx_release(r->peer);
	hal_rx_release(r->peer);
	hal_rx_flush(r->peer);
	return cell;
}

uint64_t raw_expect(struct raw *r, uint8_t type, uint64_t *w)
{
	uint64_t head;
	const struct hal_cell *cell = raw_next(r, &head);

	memcpy(w, cell->payload, 8 * UNM_WIRE_WORDS_MAX);
	if (hal_head_type(head) == UNM_WIRE_CARRIED) {
		head = w[1];
		assert_true(w[0] >> 32 <= 8 * UNM_WIRE_WORDS_MAX);
		memcpy(w, hal_space(r->peer, (uint32_t)w[0]), w[0] >> 32);
	}
	if (hal_head_type(head) != type)
		unit_fail("%s came, not %s", unm_wire_name(
			  hal_head_type(head)), unm_wire_name(type));
	return head;
}
