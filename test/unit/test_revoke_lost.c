/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_revoke_lost.c - a revocation whose word may not have arrived: the target
 * stores the same word again, whatever else waits or is closed meanwhile. A
 * disconnected peer is not freed before the word has arrived.
 */
#include "api/unm_ep.h"
#include "api/unm_mr.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "lib/os_pair.h"
#include "rma/unm_onesided.h"
#include "rma/unm_rkey.h"

#define KEYS	3
#define KEY	70
#define LEN	64

/* Stores to one peer. A store may have to be repeated, as on a board. A new
 * value arrives at its second store at the earliest, as on another host, from
 * which an acknowledgement has to come first. */
static struct {
	struct hal_ops ops;
	const struct hal_ops *real;
	struct hal_peer *hp;
	struct hal_back *back;
	uint64_t word;			/* last value stored as REVOKED */
	bool new_word;			/* it was stored once only */
	_Atomic bool lost;		/* stores do not arrive */
	pthread_t first;		/* thread whose store was lost first */
	_Atomic int tries;
	bool second;			/* stores of other threads arrive */
	bool last;			/* restore the HAL's calls after the
					 * next store that arrives */
} way;

static void way_shut(void)
{
	way.hp->rx.back = way.back;
	way.hp->ops = way.real;
}

static void way_store(struct hal_peer *hp, int word, uint64_t val)
{
	if (hp != way.hp) {
		way.real->back_store(hp, word, val);
		return;
	}
	if (word == UNM_PEER_BACK_REVOKED) {
		way.new_word = val != way.word;
		way.word = val;
		return;
	}
	if (word < 0)
		atomic_store(&way.back->done, val);
	else
		atomic_store(&way.back->word[word], val);
}

static int way_barrier(struct hal_peer *hp)
{
	if (hp != way.hp)
		return way.real->back_barrier(hp);
	if (atomic_fetch_add(&way.tries, 1) == 0)
		way.first = pthread_self();
	if (way.new_word ||
	    (way.lost && !(way.second &&
			   !pthread_equal(way.first, pthread_self()))))
		return -FI_EAGAIN;
	way.lost = false;
	atomic_store(&way.back->word[UNM_PEER_BACK_REVOKED], way.word);
	if (way.last)
		way_shut();
	return 0;
}

static struct unm_peer *peer_of(struct ep *e, fi_addr_t addr)
{
	struct unm_peer *peer = ((struct unm_ep *)e->ep)->peer_of[addr];

	assert_non_null(peer);
	return peer;
}

static void way_open(struct unm_peer *peer)
{
	memset(&way, 0, sizeof(way));
	way.hp = peer->hp;
	way.real = peer->hp->ops;
	way.ops = *way.real;
	way.ops.back_store = way_store;
	way.ops.back_barrier = way_barrier;
	way.back = peer->hp->rx.back;
	assert_non_null(way.back);
	peer->hp->rx.back = NULL;
	peer->hp->ops = &way.ops;
}

/* ---- Two regions at once --------------------------------------------- */

struct scene {
	struct ep *a, *b, *c;		/* a and c access memory of b */
	fi_addr_t ab, cb, ba, bc;
	uint8_t *mem[KEYS];
	struct fid_mr *mr[KEYS];
};

static void write_to(struct ep *from, fi_addr_t to, int key, int err)
{
	static uint8_t one[LEN];

	memset(one, 1, sizeof(one));
	EP_OK(fi_write(from->ep, one, LEN, NULL, to, 0, KEY + key, one));
	assert_int_equal(ep_wait(from, one).err, err);
}

static uint64_t direct(struct ep *e)
{
	return ((struct unm_ep *)e->ep)->stats->tx_direct;
}

/* a caches the remote key of that region. */
static void learn_rkey(struct scene *s, int key)
{
	uint64_t was = direct(s->a);

	write_to(s->c, s->cb, key, 0);
	for (uint64_t end = ep_deadline(); direct(s->a) == was; ep_settle()) {
		write_to(s->a, s->ab, key, 0);
		ep_in_time(end, "a remote key");
	}
}

static void scene_open(struct scene *s)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };

	memset(s, 0, sizeof(*s));
	s->a = ep_open(&want);
	s->b = ep_open(&want);
	s->c = ep_open(&want);
	s->ab = ep_insert(s->a, s->b);
	s->cb = ep_insert(s->c, s->b);
	s->ba = ep_insert(s->b, s->a);
	s->bc = ep_insert(s->b, s->c);
	for (int i = 0; i < KEYS; i++) {
		s->mem[i] = os_alloc(s->b, OS_DMABLE, LEN);
		s->mr[i] = os_reg(s->b, s->mem[i], LEN, OS_ALL, KEY + i);
		learn_rkey(s, i);
	}
	/* b connects to its peers, so that it knows them by fi_addr_t */
	EP_OK(fi_inject(s->b->ep, NULL, 0, s->ba));
	EP_OK(fi_inject(s->b->ep, NULL, 0, s->bc));
}

struct closer {
	struct fid_mr *mr;
	pthread_t thread;
};

static void *closes(void *arg)
{
	struct closer *c = arg;

	return (void *)(intptr_t)fi_close(&c->mr->fid);
}

static void start(struct closer *c, struct fid_mr *mr)
{
	c->mr = mr;
	c->thread = unit_thread(closes, c);
}

static void join(struct closer *c)
{
	void *ret;

	pthread_join(c->thread, &ret);
	assert_null(ret);
}

static void until_told(struct hal_back *back, uint32_t region)
{
	uint64_t end = ep_deadline();

	while ((uint32_t)atomic_load(&back->word[UNM_PEER_BACK_REVOKED]) !=
	       region) {
		sched_yield();
		ep_in_time(end, "a revocation");
	}
}

/*
 * The first region's fi_close() waits for c, which is inside; a was notified of
 * that revocation. The second region's word to a is lost, and the thread that
 * closes the first region stores it again: the value of the second.
 */
static void test_two_regions(void **state)
{
	struct closer first, second;
	struct unm_peer *inside;
	struct unm_mr *mr[2];
	struct scene s;
	uint64_t end;

	scene_open(&s);
	mr[0] = (struct unm_mr *)s.mr[0];
	mr[1] = (struct unm_mr *)s.mr[1];
	inside = peer_of(s.c, s.cb);
	assert_true(unm_guard_enter(inside));
	way_open(peer_of(s.b, s.ba));
	start(&first, s.mr[0]);
	until_told(way.back, mr[0]->number);
	write_to(s.a, s.ab, 2, 0);	/* a checks REVOKED */
	way.lost = true;
	way.tries = 0;
	way.second = true;
	start(&second, s.mr[1]);
	for (end = ep_deadline(); way.lost || way.tries < 2; sched_yield())
		ep_in_time(end, "the word again");
	unm_guard_leave(inside);
	join(&first);
	join(&second);
	for (int i = 0; i < KEYS; i++)
		memset(s.mem[i], 0, LEN);
	write_to(s.a, s.ab, 2, 0);	/* a checks REVOKED again */
	write_to(s.a, s.ab, 0, FI_EKEYREJECTED);
	write_to(s.a, s.ab, 1, FI_EKEYREJECTED);
	for (int i = 0; i < LEN; i++)
		assert_int_equal(s.mem[0][i] | s.mem[1][i] << 1 |
				 s.mem[2][i] << 2, 4);
	way_shut();
	assert_int_equal(fi_close(&s.mr[2]->fid), 0);
}

/* ---- Disconnected peers ---------------------------------------------- */

static void test_dropped_when_it_knows(void **state)
{
	struct unm_peer *peer;
	struct scene s;
	uint64_t was;

	scene_open(&s);
	peer = peer_of(s.b, s.ba);
	way_open(peer);
	way.lost = true;
	unm_peer_disconnect(peer);
	was = direct(s.a);
	EP_FOR_US(1000)
		ep_poll(s.b);
	/* not notified, so not freed: fi_close() of a region waits for it */
	assert_non_null(peer->hp);
	assert_true(way.tries > 2);
	way.last = true;
	way.lost = false;
	ep_poll(s.b);
	assert_null(peer->hp);
	fi_write(s.a->ep, &was, sizeof(was), NULL, s.ab, 0, KEY, NULL);
	assert_int_equal(direct(s.a), was);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(fi_close(&s.mr[i]->fid), 0);
	ep_teardown(NULL);
}

UNIT_MAIN(
	EP_TEST(test_two_regions),
	EP_TEST(test_dropped_when_it_knows),
)
