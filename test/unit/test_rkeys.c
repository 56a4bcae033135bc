/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rkeys.c - an initiator with cached remote keys of many regions of a
 * peer: each access uses the right key, also when regions close and keys are
 * evicted, and the cost does not grow with their number.
 *
 * The cost is a number of instructions: a child does the accesses and its
 * parent steps through them (ptrace), so that no clock decides.
 */
#include <sys/ptrace.h>

#include "lib/os_pair.h"
#include "api/unm_ep.h"

#define FEW		8
#define MANY		1000	/* the default: 2,048 entries of a peer */
#define BEYOND		3000
#define ACCESSES	20
#define WORD		sizeof(uint64_t)

/* How applications choose keys. */
enum keys { COUNTED, SHIFTED, DRAWN, KEYS };

static uint64_t key_of(enum keys keys, uint64_t i)
{
	uint64_t rng = i + 1;

	switch (keys) {
	case COUNTED:
		return i;
	case SHIFTED:
		return i << 48;
	default:
		return unit_random(&rng);
	}
}

struct crowd {
	struct os_pair p;
	enum keys keys;
	int n;
	struct fid_mr *mr[BEYOND];
};

/* Regions of a word each, in dmable memory. */
static void crowd_open(struct crowd *c, enum keys keys, int n)
{
	memset(c, 0, sizeof(*c));
	c->p = os_open(OS_DMABLE, BEYOND * WORD);
	c->keys = keys;
	c->n = n;
	for (int i = 0; i < n; i++)
		c->mr[i] = os_reg(c->p.b, c->p.mem + i * WORD, WORD, OS_ALL,
				  key_of(keys, i));
}

static void crowd_close(struct crowd *c)
{
	for (int i = 0; i < c->n; i++)
		assert_int_equal(fi_close(&c->mr[i]->fid), 0);
	os_close(&c->p);
}

static void put(struct crowd *c, int i, uint64_t value)
{
	EP_OK(fi_inject_write(c->p.a->ep, &value, WORD, c->p.ab, 0,
			      key_of(c->keys, i)));
	c->p.nwr++;
}

static uint64_t word(const struct crowd *c, int i)
{
	uint64_t value;

	memcpy(&value, c->p.mem + i * WORD, WORD);
	return value;
}

/* Caches the remote key of each region, from the first on. */
static void learn(struct crowd *c)
{
	for (int i = 0; i < c->n; i++)
		put(c, i, 0);
	os_all_done(&c->p);
	ep_settle();
}

/* ---- The right key ------------------------------------------------------- */

/* Accesses to all regions in turn, some of which are closed and opened again
 * with the same key at the next word. */
static void each_finds_its_region(enum keys keys, int n)
{
	static struct crowd c;
	uint64_t rng = 9, direct;

	crowd_open(&c, keys, n);
	learn(&c);
	direct = os_direct(&c.p);
	for (int round = 1; round < 5; round++) {
		for (int i = 0; i < n; i++)
			put(&c, i, 1000000 * round + i);
		os_all_done(&c.p);
		for (int i = 0; i < n; i++)
			assert_int_equal(word(&c, i), 1000000 * round + i);
		for (int k = 0; k < n / 4; k++) {
			int i = (int)unit_below(&rng, n);

			assert_int_equal(fi_close(&c.mr[i]->fid), 0);
			c.mr[i] = os_reg(c.p.b, c.p.mem + i * WORD, WORD,
					 OS_ALL, key_of(keys, i));
		}
		ep_settle();
	}
	if (n <= MANY)			/* beyond that most keys are evicted */
		assert_true(os_direct(&c.p) >= direct + n);
	crowd_close(&c);
}

static void test_each_access_finds_its_region(void **state)
{
	static const int counts[] = { 1, FEW, 16, 17, MANY, BEYOND };

	unit_needs(os_goes(OS_DMABLE));
	for (int keys = 0; keys < KEYS; keys++)
		for (int i = 0; i < 6; i++)
			each_finds_its_region(keys, counts[i]);
}

/* ---- The cost ------------------------------------------------------------ */

/* The child: caches the keys, then makes accesses between two stops. Not with
 * put(), which reads the clock: when the kernel changes the clock during a
 * stepped call, the call begins again. */
static int accesses(enum keys keys, int n)
{
	static struct crowd c;
	uint64_t direct, value = 1;
	bool failed = false;

	crowd_open(&c, keys, n);
	learn(&c);
	direct = os_direct(&c.p);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		return 77;
	raise(SIGSTOP);
	for (int i = 0; i < ACCESSES; i++)
		failed |= fi_inject_write(c.p.a->ep, &value, WORD, c.p.ab, 0,
					  key_of(keys, i * 7 % n)) != 0;
	raise(SIGSTOP);
	return !failed && os_direct(&c.p) == direct + ACCESSES ? 0 : 1;
}

/* Instructions of one access; 0: a child may not be traced here. */
static uint64_t cost(enum keys keys, int n)
{
	uint64_t steps = 0;
	int status;
	pid_t pid = unit_fork();

	if (pid == 0) {
		alarm(120);
		_exit(accesses(keys, n));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 0;
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	do {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL),
				 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		steps++;
	} while (WSTOPSIG(status) == SIGTRAP);
	assert_int_equal(WSTOPSIG(status), SIGSTOP);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	assert_int_equal(unit_exit_code(pid), 0);
	return steps / ACCESSES;
}

static void test_the_cost_does_not_grow(void **state)
{
	unit_needs(os_goes(OS_DMABLE));
	for (int keys = 0; keys < KEYS; keys++) {
		uint64_t few = cost(keys, FEW), many = cost(keys, MANY);

		if (few == 0 || many == 0) {
			print_message("skip: ptrace() of a child is not "
				      "allowed here\n");
			skip();
		}
		print_message("instructions of a put: %llu with %d remote "
			      "keys, %llu with %d\n",
			      (unsigned long long)few, FEW,
			      (unsigned long long)many, MANY);
		/* hash chains may be a little longer */
		assert_true(many <= few + few / 8);
	}
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_each_access_finds_its_region),
	EP_TEST_INSIDE(test_the_cost_does_not_grow),
)
