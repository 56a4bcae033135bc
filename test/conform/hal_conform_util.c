/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_util.c - time, interfaces, events, peers and packets for the
 * conformance test, see hal_conform.h
 */
#include "conform/hal_conform.h"

/* After this many refusals in a row a call is refused for good: a backend that
 * injects faults repeats them less often. */
#define SURE_TRIES	3000

/* ---- Time and random numbers ----------------------------------------- */

uint64_t ct_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CT_SECOND + (uint64_t)ts.tv_nsec;
}

uint64_t ct_deadline(void)
{
	return ct_now() + (uint64_t)(ct_opt.patience * CT_SECOND);
}

void ct_nap(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

uint64_t ct_random(uint64_t *rng)
{
	uint64_t z = *rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void ct_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = ct_random(&seed);

		memcpy(p + i, &w, len - i < 8 ? len - i : 8);
	}
}

bool ct_filled(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = ct_random(&seed);

		if (memcmp(p + i, &w, len - i < 8 ? len - i : 8) != 0)
			return false;
	}
	return true;
}

void ct_mend_barriers(void)
{
	cpu_set_t all, one;
	pid_t pid;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pid = unit_fork();
		if (pid == 0) {
			sched_setaffinity(0, sizeof(one), &one);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

/* ---- Interfaces and events ------------------------------------------- */

static int reachable(int board)
{
	return ct_caps->flags & HAL_CAP_ANY_BOARD ? board : -1;
}

int ct_mem_alloc(int board, size_t bytes, struct hal_mem **mem, void **addr)
{
	return hal_mem_alloc(ct_hal, reachable(board), bytes, mem, addr);
}

struct ct_region ct_region(size_t bytes)
{
	struct ct_region r;
	void *addr;

	assert_int_equal(ct_mem_alloc(-1, bytes, &r.mem, &addr), 0);
	assert_int_equal(hal_mem_key(ct_hal, r.mem, &r.key), 0);
	r.addr = addr;
	r.board = (uint32_t)ct_hal->own_board;
	return r;
}

static struct ct_if *fresh_if(void)
{
	struct ct_if *ci = ct_ifs;

	while (ci < ct_ifs + CT_IFS && ci->hif != NULL)
		ci++;
	assert_true(ci < ct_ifs + CT_IFS);
	memset(ci, 0, sizeof(*ci));
	return ci;
}

/* Another program of this user may hold interface 0 all the time. */
void ct_service_taken(int ret)
{
	static bool before;		/* interface 0 was free once */

	if (ret == -FI_EBUSY && !before && getenv("UNM_ALONE") == NULL)
		skip();
	if (ret != 0)
		ct_fail("hal_if_open_service: %d", ret);
	before = true;
}

static bool waits_for_nothing(struct hal_peer *peer)
{
	(void)peer;
	return false;
}

struct ct_if *ct_open_service(int board)
{
	struct ct_if *ci = fresh_if();
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_if_open_service(ct_hal, reachable(board),
					  &ci->hif)) == -FI_EBUSY &&
	       ct_now() < end) {
		ct_step_all();
		ct_nap(1000);
	}
	ct_service_taken(ret);
	ct_host_join(ci->hif);
	return ci;
}

static bool service_is_open(void)
{
	for (int i = 0; i < CT_IFS; i++)
		if (ct_ifs[i].hif != NULL &&
		    ct_ifs[i].hif->addr.iface == HAL_IF_SERVICE)
			return true;
	return false;
}

struct ct_if *ct_open(int board)
{
	struct ct_if *ci;
	int ret;

	if (ct_opt.service && !service_is_open())
		return ct_open_service(board);
	ci = fresh_if();
	ret = hal_if_open(ct_hal, reachable(board), &ci->hif);
	if (ret != 0) {
		ci->hif = NULL;
		ct_fail("hal_if_open(board %d): %d", board, ret);
	}
	ct_host_join(ci->hif);
	/* with FI_UNIMEM_NET_PEERS: see test/check/check-hal-net.sh */
	ci->hif->peer_waits = waits_for_nothing;
	return ci;
}

void ct_step(struct ct_if *ci)
{
	int room = CT_EVENTS - (int)ci->nev;
	int n;

	hal_if_pump(ci->hif);
	if (room > 16)
		room = 16;
	n = hal_if_service(ci->hif, ci->ev + ci->nev, room);
	if (n < 0 || n > room) {
		fprintf(stderr, "hal_if_service returned %d of %d\n", n, room);
		abort();
	}
	ci->nev += n;
}

void ct_step_all(void)
{
	for (int i = 0; i < CT_IFS; i++) {
		if (ct_ifs[i].hif != NULL)
			ct_step(&ct_ifs[i]);
	}
}

void ct_step_both(struct ct_if *ci)
{
	ct_step(ci);
	if (ct_net() && ci->other != NULL && ci->other->hif != NULL)
		ct_step(ci->other);
}

bool ct_take_event(struct ct_if *ci, enum hal_event_type type,
		   struct hal_peer *peer, struct hal_event *ev)
{
	for (unsigned i = 0; i < ci->nev; i++) {
		if (ci->ev[i].type != type ||
		    (peer != NULL && ci->ev[i].peer != peer))
			continue;
		*ev = ci->ev[i];
		ci->nev--;
		memmove(ci->ev + i, ci->ev + i + 1,
			(ci->nev - i) * sizeof(ci->ev[0]));
		return true;
	}
	return false;
}

unsigned ct_count_events(struct ct_if *ci, enum hal_event_type type,
			 struct hal_peer *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ci->nev; i++)
		n += ci->ev[i].type == type &&
		     (peer == NULL || ci->ev[i].peer == peer);
	return n;
}

struct hal_event ct_wait_event(struct ct_if *ci, enum hal_event_type type,
			       struct hal_peer *peer)
{
	uint64_t end = ct_deadline();
	struct hal_event ev = { 0 };

	while (!ct_take_event(ci, type, peer, &ev)) {
		if (ct_now() > end)
			ct_fail("no event of type %d came", (int)type);
		ct_step_all();
	}
	return ev;
}

/* ---- Peers ----------------------------------------------------------- */

bool ct_same_addr(const struct hal_addr *a, const struct hal_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int ct_try_connect(struct ct_if *ci, const struct hal_addr *to,
		   struct hal_peer **peer)
{
	uint64_t end = ct_deadline();
	int ret;

	for (;;) {
		ret = ct_hal_connect(ci->hif, to, peer);
		if (ret != -FI_EAGAIN)
			return ret;
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step_all();
	}
}

struct hal_peer *ct_connect(struct ct_if *ci, const struct hal_addr *to)
{
	struct hal_peer *peer = NULL;
	int ret = ct_try_connect(ci, to, &peer);

	if (ret != 0)
		ct_fail("hal_connect to %u:%u: %d", to->board, to->iface, ret);
	assert_non_null(peer);
	return peer;
}

struct hal_peer *ct_inbound_from(struct ct_if *ci, const struct hal_addr *from)
{
	uint64_t end = ct_deadline();

	for (;;) {
		for (unsigned i = 0; i < ci->nev; i++) {
			struct hal_event ev = ci->ev[i];

			if (ev.type == HAL_EV_INBOUND &&
			    ct_same_addr(&ev.peer->addr, from)) {
				assert_true(ct_take_event(ci, ev.type, ev.peer,
							  &ev));
				return ev.peer;
			}
		}
		if (ct_now() > end)
			ct_fail("no inbound peer %u:%u came", from->board,
				from->iface);
		ct_step_all();
	}
}

void ct_join(struct ct_pair *p)
{
	struct hal_peer *seen;

	p->ab = ct_connect(p->a, &p->b->hif->addr);
	seen = ct_inbound_from(p->b, &p->a->hif->addr);
	p->ba = ct_connect(p->b, &p->a->hif->addr);
	assert_ptr_equal(seen, p->ba);
	ct_wait_event(p->a, HAL_EV_CONNECTED, p->ab);
	ct_wait_event(p->b, HAL_EV_CONNECTED, p->ba);
	ct_wait_event(p->a, HAL_EV_INBOUND, p->ab);
	p->a->other = p->b;
	p->b->other = p->a;
}

void ct_part(struct ct_pair *p)
{
	p->a->other = NULL;
	p->b->other = NULL;
}

struct ct_pair ct_pair(int board_a, int board_b)
{
	struct ct_pair p = { .a = ct_open(board_a), .b = ct_open(board_b) };

	ct_join(&p);
	return p;
}

void ct_expect_refused(struct ct_if *ci, const struct hal_addr *to)
{
	struct hal_peer *peer = NULL;
	struct hal_event ev;
	int ret = ct_try_connect(ci, to, &peer);

	if (ret != 0) {
		assert_int_equal(ret, -FI_ECONNREFUSED);
		assert_null(peer);
		return;
	}
	ev = ct_wait_event(ci, HAL_EV_DEAD, peer);
	assert_int_equal(ev.status, -FI_ECONNREFUSED);
	assert_int_equal(ct_count_events(ci, HAL_EV_CONNECTED, peer), 0);
	assert_true(peer->dead);
	hal_peer_free(peer);
}

void ct_expect_death(struct ct_if *ci, struct hal_peer *peer, uint64_t since)
{
	struct hal_event ev = { 0 };
	bool late = false;

	while (!ct_take_event(ci, HAL_EV_DEAD, peer, &ev)) {
		if (late)
			ct_fail("no HAL_EV_DEAD within a second");
		late = ct_now() > since + CT_SECOND;
		ct_step_all();
	}
	/* close_has_a_status checks which one */
	assert_true(ev.status == -FI_ECONNRESET ||
		    ev.status == -FI_ESHUTDOWN);
	assert_true(peer->dead);
}

/* ---- Packets --------------------------------------------------------- */

int ct_send(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
	    uint64_t word)
{
	uint64_t end = ct_deadline();
	int ret;

	for (;;) {
		ret = hal_pkt_send(peer, hal_head(type, 0), &word, 1, NULL, 0);
		if (ret != -FI_EAGAIN)
			return ret;
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step(ci);
	}
}

int ct_send_once(struct ct_if *ci, struct hal_peer *peer, uint8_t type,
		 uint64_t word)
{
	int tries = ct_faulty() ? SURE_TRIES : 1;
	int ret = -FI_EAGAIN;

	while (ret == -FI_EAGAIN && tries-- > 0) {
		ret = hal_pkt_send(peer, hal_head(type, 0), &word, 1, NULL, 0);
		if (ret == -FI_EAGAIN)
			hal_if_pump(ci->hif);
	}
	return ret;
}

/* An inbound half exists only once the peer's first packet can be there. */
const struct hal_cell *ct_peek(struct hal_peer *peer, uint64_t *head)
{
	return peer->rx.cells == NULL ? NULL : hal_rx_peek(peer, head);
}

const struct hal_cell *ct_next_packet(struct ct_if *ci, struct hal_peer **peer,
				      uint64_t *head)
{
	struct hal_if *hif = ci->hif;

	for (uint32_t i = 0; i < hif->ninbound; i++) {
		struct hal_peer *p = hif->inbound[ci->turn++ % hif->ninbound];
		const struct hal_cell *cell = ct_peek(p, head);

		if (cell != NULL) {
			*peer = p;
			return cell;
		}
	}
	return NULL;
}

const struct hal_cell *ct_await(struct hal_peer *peer, uint64_t *head)
{
	uint64_t end = ct_deadline();
	const struct hal_cell *cell;

	while ((cell = ct_peek(peer, head)) == NULL) {
		if (ct_now() > end)
			ct_fail("no packet came from %u:%u", peer->addr.board,
				peer->addr.iface);
		ct_step_all();
	}
	return cell;
}

uint64_t ct_recv(struct hal_peer *peer, uint8_t type)
{
	uint64_t head, word;
	const struct hal_cell *cell = ct_await(peer, &head);

	assert_int_equal(hal_head_type(head), type);
	word = hal_cell_word(cell, 0);
	hal_rx_release(peer);
	hal_rx_flush(peer);
	return word;
}

unsigned ct_drain(struct hal_peer *peer)
{
	uint64_t head;
	unsigned n = 0;

	while (ct_peek(peer, &head) != NULL) {
		hal_rx_release(peer);
		n++;
	}
	hal_rx_flush(peer);
	return n;
}

/* ---- Streams --------------------------------------------------------- */

struct shape {
	uint64_t head;
	uint64_t w[HAL_PKT_MAX / 8];
	uint8_t data[HAL_PKT_MAX];
	unsigned nw;
	size_t len;
};

/* Packet number s->next of a stream; its first word is its number. */
static void stream_shape(const struct ct_stream *s, uint32_t payload,
			 struct shape *sh)
{
	uint64_t rng = s->seed ^ s->next * UINT64_C(0x2545f4914f6cdd1d);
	uint64_t r = ct_random(&rng);

	sh->head = hal_head(CT_TYPE_STREAM + (r & 7), r >> 8);
	sh->nw = 1 + (r >> 16) % (payload / 8);
	sh->len = (r >> 32) % (payload - 8 * sh->nw + 1);
	sh->w[0] = s->next;
	for (unsigned i = 1; i < sh->nw; i++)
		sh->w[i] = ct_random(&rng);
	ct_fill(sh->data, sh->len, rng);
}

int ct_stream_send(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload)
{
	struct shape sh;
	int ret;

	stream_shape(s, payload, &sh);
	ret = hal_pkt_send(peer, sh.head, sh.w, sh.nw, sh.data, sh.len);
	if (ret == 0)
		s->next++;
	return ret;
}

int ct_stream_take(struct hal_peer *peer, struct ct_stream *s,
		   uint32_t payload)
{
	struct shape sh;
	uint64_t head;
	const struct hal_cell *cell = ct_peek(peer, &head);

	if (cell == NULL)
		return 0;
	stream_shape(s, payload, &sh);
	if (hal_cell_word(cell, 0) != s->next) {
		snprintf(s->error, sizeof(s->error),
			 "packet %llu came where %llu was due",
			 (unsigned long long)hal_cell_word(cell, 0),
			 (unsigned long long)s->next);
		return -1;
	}
	if ((head & ~HAL_HEAD_ID_MASK) != sh.head ||
	    (head & HAL_HEAD_ID_MASK) != peer->rx.identity ||
	    memcmp(cell->payload, sh.w, 8 * sh.nw) != 0 ||
	    memcmp(cell->payload + 8 * sh.nw, sh.data, sh.len) != 0) {
		snprintf(s->error, sizeof(s->error),
			 "packet %llu has a wrong head or content",
			 (unsigned long long)s->next);
		return -1;
	}
	hal_rx_release(peer);
	s->next++;
	return 1;
}
