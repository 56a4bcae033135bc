/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_shim.h - the device backend over a register model with injected errors,
 * for test_dev*.c
 *
 * The shim stands between the device backend (hal/dev) and the register model
 * (hal/sim). It makes chosen calls fail, returns wrong values for chosen
 * registers, and records the order of accesses. All state is global: a test is
 * one process with one HAL, and dev_setup() resets the state.
 */
#ifndef DEV_SHIM_H
#define DEV_SHIM_H

#include "hal/dev/hal_dev.h"
#include "hal/hal.h"
#include "lib/unit.h"

extern struct hal_mmio_ops io;	/* the model's operations, some replaced */
extern struct hal *hal;		/* set by open_hal(); closed by the teardown */
extern char said[512];		/* last line that was logged */
extern unsigned lines;		/* lines logged since open_hal() */
extern unsigned errors;		/* lines of the level that users see */

/*
 * The injected errors. A test sets fields; 0 or NULL means that the shim passes
 * the model's value on, unless the comment says otherwise. The shim runs in the
 * thread of the test.
 */
extern struct lie {
	unsigned long cmd;		/* ioctl that fails */
	int skip, times, ret;		/* calls of cmd that succeed first, that
					 * fail then, and their result */
	int map_after;			/* maps that succeed before maps fail;
					 * -1: maps do not fail */
	int open_ret, probe_ret;	/* result of open(), of probe() */
	int event_ret;			/* result of event_fd() */
	int write_ret;			/* result of write() */
	uint32_t state;			/* state of each transfer read */
	uint64_t pif_status;		/* status of a packet that is not
					 * pending any more */
	uint64_t pif_or;		/* bits set in the packet status */
	uint32_t sr_or, sr_and_not;	/* bits set, then bits cleared in the
					 * DMA engine's status register */
	uint32_t cr_or;			/* bits set in its control register */
	uint32_t engine;		/* enum hal_platform_engine that probe()
					 * reports; always used */
	struct hal_kdev_info info;	/* fields that are not 0 replace those
					 * of the driver; flags are removed */
	void (*spoil)(struct hal_kdev_info *info);	/* changes the info */
	void (*import)(struct hal_kdev_import *imp);	/* changes an import */
	int prepares;			/* answers -EAGAIN, with a hold, to an
					 * import that has begun */
	struct hal_platform platform;	/* boards and space_bytes that probe()
					 * reports */
	uint32_t btt_bits;		/* width of the engine's length field */
	bool pending;			/* each packet stays pending */
	void (*pended)(void);		/* called once, after the status of a
					 * packet was read that is pending */
	int boards;			/* boards of the model; 0: two */
	const char *sim;		/* FI_UNIMEM_SIM; NULL: unchanged */
	bool note;			/* record accesses in order[] */
	bool unread;			/* stores_before_notify() reads nothing
					 * back */
	const struct hal_mmio_map *mif;	/* mailbox whose reads are recorded */
	uint64_t id, false_id;		/* identity of a sender or an owner, and
					 * the identity reported instead */
	uint64_t empty[2];		/* values that an empty mailbox reads
					 * as, alternating */
	uint64_t empty_second;		/* second half of these; 0: as the
					 * first */
	unsigned empty_for;		/* reads for which empty[] is used; 0:
					 * all reads */
	void (*first_read)(void);	/* called once, before the next read of
					 * a mailbox */
	void (*answered)(void);		/* called once, after the status of a
					 * packet was read that is not pending
					 * any more */
	void (*meanwhile)(void);	/* called once, before the next load:
					 * the backend loads a table entry to
					 * check whether a peer is alive */
} lie;

/* The accesses so far, if lie.note is set, a letter each: s store, l load, r
 * read of the mailbox lie.mif, b loads_before_store(), m
 * status_before_memory(), n stores_before_notify(). */
extern char order[256];
extern unsigned bad_drops;	/* DROP ioctls that the driver refused */

/* Inject no errors any more. */
void be_honest(void);
/* From now on, let this ioctl succeed skip times, then fail times times with
 * ret: sets these fields of lie. */
void fail_ioctl(unsigned long cmd, int skip, int times, int ret);
/* cmocka set-up and teardown. dev_setup() installs the shim, and opens nothing;
 * dev_teardown() closes the HAL. */
int dev_setup(void **state);
int dev_teardown(void **state);
/* Open the device backend over the shim. Returns 0 or a negative errno. */
int open_hal(void);
/* Close the HAL, which can be opened again. */
void close_hal(void);

/* Interfaces a and b on boards 0 and 1, connected both ways; the test holds it
 * by value, from pair() to unpair(). */
struct pair {
	struct hal_if *a, *b;		/* NULL: closed by the test */
	struct hal_peer *ab, *ba;	/* b as a peer of a, a as one of b */
	int dead_a, dead_b;		/* status of a HAL_EV_DEAD event at a,
					 * at b; 0: there was none */
};

double now(void);			/* monotonic clock, seconds */
/* Pump both interfaces, and handle their events. */
void step(struct pair *p);
/* Open the HAL and both interfaces. */
struct pair pair_open(void);
/* Open the HAL and both interfaces, and connect them. */
struct pair pair(void);
/* Close the interfaces. */
void unpair(struct pair *p);
/* Send a packet of one word; returns what hal_pkt_send() returns. */
int send_word(struct hal_peer *peer, uint64_t word);
/* If the next packet holds this word, release it and return true. */
bool next_is(struct hal_peer *peer, uint64_t word);
/* The number of holds that the model's driver keeps for an interface. */
unsigned holds(struct hal_if *hif);

/* Call step() until a condition holds. The value is false if the condition does
 * not hold within 5 seconds. */
#define until(p, what)							\
	({								\
		double end_ = now() + 5;				\
		bool is_;						\
									\
		while (!(is_ = (what)) && now() < end_)			\
			step(p);					\
		is_;							\
	})

#define DEV_TEST(f)	cmocka_unit_test_setup_teardown(f, dev_setup, \
							dev_teardown)

#endif /* DEV_SHIM_H */
