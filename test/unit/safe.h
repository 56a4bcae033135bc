/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * safe.h - threads that run every operation at once on two endpoints: the
 * structures and functions that test_safe.c (set-up, threads, final checks) and
 * safe_acts.c (the operations) share.
 */
#ifndef SAFE_H
#define SAFE_H

#include "lib/ep_xfer.h"
#include "lib/os_pair.h"

#define THREADS	8
#define SHOTS	4			/* operations of a thread under way */
#define RECVS	4			/* receives posted for any sender's
					 * message */
#define LEN_MAX	20000
#define SLOTS	4096			/* atomics use the words before, puts
					 * from here */
#define KEY	7			/* key of the first side's region */
#define OWN_KEY	100			/* key of the first thread's own
					 * region */
#define OWN_LEN	4096
#define OPEN	0x3C			/* first bytes of an open region */
#define CLOSED	0xA5			/* first bytes of a closed one */
#define NOBODY	(UINT64_C(1) << 63)	/* bit of tags that are never sent */
#define HANG_US	(UINT64_C(100000000) * (UNIT_SLOW ? 5 : 1))

/* offsets of words in a side's region */
enum { SUM_AT = 0, TICKET_AT = 64, SWAP_AT = 128 };
enum { SND, RCV, WR, RD, CNTRS };

/* Threads do not assert: they note the first check that failed. */
#define CHECK(s, cond)	do {						\
		const char *fine = NULL;				\
		if (!(cond))						\
			atomic_compare_exchange_strong(&(s)->wrong,	\
				&fine, __FILE__ ": " #cond);		\
	} while (0)

/* ---- Shared state -------------------------------------------------------- */

enum half_state { IDLE, POSTED, ENDING, ENDED };

/* One expected completion: its state and the values that it reported. The
 * operation's context points to it. */
struct half {
	struct fi_context2 ctx;
	_Atomic enum half_state state;
	int err;
	uint64_t flags, len, data;
};

enum kind { TAGGED, MESSAGE, PUT, INJECT, SUM, TICKET, SWAP, LONELY, REGION,
	    STRANGE, GUEST, KINDS };

/* One operation of a thread. */
struct shot {
	struct half tx, rx;
	enum kind kind;
	bool busy;
	int step, form, from;
	uint64_t id, tag, src, cmp, was;
	size_t len, slot;
	fi_addr_t to;			/* the usual index, or one of its own */
	struct fid_mr *mr;
	uint8_t out[LEN_MAX], in[LEN_MAX];
};

/* A receive of any sender's message. */
struct catch {
	struct half rx;
	uint8_t in[LEN_MAX];
};

struct side {
	struct ep *e;
	fi_addr_t to;			/* index of the other side in its
					 * vector */
	struct fid_cntr *cntr[CNTRS];
	uint8_t *mem;
	struct fid_mr *mr;
	uint64_t *injected;		/* expected words in mem at the end */
	_Atomic uint64_t begun[CNTRS], failed[CNTRS];
	_Atomic uint64_t sent, got;	/* messages for any receive */
	_Atomic uint64_t sum, tickets, swaps;
	_Atomic uint8_t *taken;		/* by ticket: how often drawn */
};

struct hand;

struct stage {
	struct side side[2];
	struct hand *hand;		/* array of THREADS */
	uint32_t ops;
	uint64_t end;
	_Atomic uint64_t posted, remote, entries;
	_Atomic uint64_t cancels, canceled;
	_Atomic int working, alive;
	_Atomic(const char *) wrong;	/* first failed check, or NULL */
};

struct hand {
	struct stage *s;
	int index;
	pthread_t thread;
	uint64_t rng;
	uint32_t ids, injects;
	struct shot shot[SHOTS];
	struct catch catch[RECVS];
	uint8_t *own[2];		/* memory of own regions, by side */
	bool own_busy;
	uint64_t guess[2];		/* last known value to swap, by side */
	/* by number of the operation: remote CQ data sent (due) and received
	 * (arrived) */
	uint8_t *due;
	_Atomic uint8_t *arrived;
};

static inline bool goes_on(struct stage *s)
{
	CHECK(s, ep_now() < s->end);
	return s->wrong == NULL;
}

static inline uint32_t below(struct hand *h, uint32_t n)
{
	return unit_below(&h->rng, n);
}

static inline struct side *side_from(struct hand *h, const struct shot *x)
{
	return &h->s->side[x->from];
}

static inline struct side *side_to(struct hand *h, const struct shot *x)
{
	return &h->s->side[!x->from];
}

static inline uint64_t key_to(const struct shot *x)
{
	return KEY + !x->from;
}

/* A number that no other operation has. */
static inline uint64_t fresh_id(struct hand *h)
{
	return (uint64_t)h->index << 32 | h->ids++;
}

/* Notes that the target has to receive this number, once, as CQ data. */
static inline uint64_t due_id(struct hand *h, uint64_t id)
{
	h->due[(uint32_t)id] = 1;
	return id;
}

static inline size_t injected_at(void)
{
	return SLOTS + (size_t)THREADS * SHOTS * LEN_MAX;
}

static inline bool all_bytes(const uint8_t *p, size_t len, uint8_t byte)
{
	return p[0] == byte && memcmp(p, p + 1, len - 1) == 0;
}

/* ---- test_safe.c --------------------------------------------------------- */

/* Expect one more completion, of the operation with this context. */
void safe_arm(struct hand *h, struct half *half);
/* Returns true if no completion is expected or it has come; then it must be a
 * success with these flags. */
bool safe_over(struct hand *h, struct half *half, uint64_t flags);
/* Read a queue or counter, or sleep on one: this makes progress. */
void safe_progress(struct hand *h);
/* Counts the remote CQ data id, which the target has received. */
void safe_arrived(struct stage *s, uint64_t id);

#define TRY(h, call)	do {						\
		ssize_t try_ret;					\
		while ((try_ret = (call)) == -FI_EAGAIN &&		\
		       goes_on((h)->s))					\
			safe_progress(h);				\
		CHECK((h)->s, try_ret == 0);				\
	} while (0)

#define UNTIL(h, cond)	do {						\
		while (!(cond) && goes_on((h)->s))			\
			safe_progress(h);				\
	} while (0)

/* ---- safe_acts.c --------------------------------------------------------- */

struct act {
	void (*begin)(struct hand *h, struct shot *x);
	bool (*end)(struct hand *h, struct shot *x);	/* true: complete */
	int weight;
};
extern const struct act safe_acts[KINDS];

void safe_cancel(struct stage *s, struct side *d, struct half *half);
/* The receives of any sender's message: check them and post them again; cancel
 * them. */
void safe_post_catches(struct hand *h);
void safe_close_catches(struct hand *h);

#endif /* SAFE_H */
