/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_shim.h - a shim over the register model, for test_dev*.c: it makes single
 * calls fail, single registers lie, and notes the order of accesses. And two
 * interfaces of the device backend over it.
 */
#ifndef DEV_SHIM_H
#define DEV_SHIM_H

#include "hal/dev/hal_dev.h"
#include "lib/unit.h"

extern struct hal_mmio_ops io;	/* the model's, some replaced */
extern struct hal *hal;
extern char said[512];		/* the last line that was logged */
extern unsigned lines;		/* how many there were */
extern unsigned errors;		/* ... of those that users see */

/* What is not as the model does it. */
extern struct lie {
	unsigned long cmd;		/* ioctl that fails, 0: none */
	int skip, times, ret;		/* how often it does not, does, with */
	int map_after;			/* maps that work; -1: all */
	int open_ret, probe_ret;
	int event_ret;
	int write_ret;			/* 0: as the model */
	uint32_t state;			/* of transfers, 0: as the model */
	uint64_t pif_status;		/* of a packet that is over, 0: model */
	uint64_t pif_or;		/* bits that are set in it besides */
	uint32_t sr_or, sr_and_not;	/* of the engine */
	uint32_t cr_or;
	uint32_t engine;		/* enum hal_platform_engine */
	struct hal_kdev_info info;	/* fields not 0: lies; flags: which are
					 * missing */
	void (*spoil)(struct hal_kdev_info *info);
	void (*import)(struct hal_kdev_import *imp);
	struct hal_platform platform;	/* boards and space not 0: so many */
	uint32_t btt_bits;		/* of the engine, 0: the model's */
	bool pending;			/* packets are, for ever */
	int boards;			/* of the model, 0: two */
	const char *sim;		/* FI_UNIMEM_SIM, NULL: as it is */
	bool flicker;			/* table entries change all the time */
	bool note;			/* accesses, in order[] */
	bool unread;			/* what was stored is not read back */
	const struct hal_mmio_map *mif;	/* the mailbox whose reads are noted */
	uint64_t id, false_id;		/* who sent it: what is told instead */
	uint64_t empty[2];		/* what an empty mailbox reads as, not
					 * 0: in turn by empty_for reads */
	unsigned empty_for;		/* so often, then as the model; 0:
					 * always */
	void (*first_read)(void);	/* called once, before the next read of
					 * a mailbox */
	void (*meanwhile)(void);	/* called once, before the next look
					 * whether a peer lives */
} lie;

/* Accesses so far, if lie.note: s store, l load, r of the mailbox lie.mif,
 * b loads_before_store(), m status_before_memory(), n stores_before_notify().
 */
extern char order[256];
extern unsigned bad_drops;	/* holds that were dropped and not held */

void be_honest(void);
int dev_setup(void **state);
int dev_teardown(void **state);
int descriptors(void);
int open_hal(void);

struct pair {
	struct hal_if *a, *b;
	struct hal_peer *ab, *ba;
	int dead_a, dead_b;		/* status, 0: no news of an end */
};

double now(void);
void step(struct pair *p);
struct pair pair(void);
void unpair(struct pair *p);
int send_word(struct hal_peer *peer, uint64_t word);
bool next_is(struct hal_peer *peer, uint64_t word);
unsigned holds(struct hal_if *hif);	/* of its file, at the driver */

/* Until a condition holds; false: it does not within a few seconds. */
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
