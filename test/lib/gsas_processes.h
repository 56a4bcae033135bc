/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_processes.h - run gsasd, jobs of several processes, and clients without
 * libgsas, for multi-process tests of GSAS; extends procs.h
 *
 * gsasd runs as a child of the director, so that it ends with the case. The
 * fixture prevents libgsas from starting a gsasd by itself.
 */
#ifndef GSAS_PROCESSES_H
#define GSAS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "gsas.h"
#include "common/gsas_pkt.h"
#include "hal/hal.h"
#include "lib/procs.h"

/* Fail unless a libgsas call returns 0 or a positive value. */
#define GSAS(call)							\
	do {								\
		int gsas_ret_ = (call);					\
		if (gsas_ret_ < 0)					\
			FAIL("%s: %s", #call, fi_strerror(-gsas_ret_));	\
	} while (0)
/* Fail unless a libgsas call returns this error. */
#define GSAS_IS(error, call)						\
	do {								\
		int gsas_ret_ = (call);					\
		if (gsas_ret_ != (error))				\
			FAIL("%s: %d, not %d", #call, gsas_ret_, (error)); \
	} while (0)

/* The number of board i (0 or 1) of this test program; no other test program on
 * the machine uses it. */
int board_number(int i);
/* Director, before it starts processes: the boards of this case are two of a
 * register model of its own. */
void boards_of_sim(void);
/* The environment of a child on board i, "FI_UNIMEM_BOARD=N", for
 * proc_start(). */
const char *const *board_env(int i);

/* Store the path of a program of the build tree in path (len bytes). */
void build_program(const char *name, char *path, size_t len);

/* Director only: start gsasd for board i, and wait until it serves. options:
 * further arguments of gsasd, a list that ends with NULL, or NULL. */
struct proc *gsasd_start(int i, const char *const *options);
/* Let later calls of gsasd_start() run a copy of the program gsasd. Services
 * that run the same file share a memory budget, also with services of other
 * tests. gsasd_copy_remove() deletes the copy; the services may still run. */
void gsasd_copy(void);
void gsasd_copy_remove(void);
/* Check that gsasd is still running, end it by SIGTERM, and expect exit
 * code 0. */
void gsasd_stop(struct proc *service);

/* ---- Jobs ----------------------------------------------------------------
 *
 * A process belongs to the job that its environment named when its program was
 * executed, so forked children all belong to the job of the test. A process of
 * another job executes the test program again, in a role: a function by name.
 */
struct gsas_role {
	const char *name;
	int (*fn)(int fd, int index);	/* see proc_fn */
};

/* Call this first in main(). In a process that role_start() executed it runs
 * the role and exits; otherwise it returns. */
void role_main(int argc, char **argv, const struct gsas_role *roles, int n);

/* Director only, once: allocate zeroed memory at g_role_memory, which the
 * director, its children and all roles share. */
extern void *g_role_memory;
void role_share(size_t bytes);

/* Create a new job, to which roles that are started later belong. */
void role_new_job(void);
/* Start a role as a child of the director; env as for proc_start(). */
struct proc *role_start(const char *role, int index, const char *const *env);
/* Start a role in the place of p, which has ended; NULL: as role_start(). */
struct proc *role_restart(struct proc *p, const char *role, int index,
			  const char *const *env);

/* ---- Clients without libgsas --------------------------------------------- */

/* An interface that sends hand-made packets to one service. The test owns it,
 * from bare_open() to bare_close(). */
struct bare {
	struct hal *hal;
	struct hal_if *hif;
	struct hal_peer *peer;		/* the service; NULL: disconnected */
	bool dead;			/* the service has disconnected */
};

/* Connect to the service of a board (its number, see board_number()). */
void bare_open(struct bare *r, int board);
void bare_close(struct bare *r);
/* Send a request. Returns false if there is no credit for it now, or no
 * connection. */
bool bare_send(struct bare *r, uint8_t opcode, uint8_t tag,
	       const uint64_t w[GSAS_WORDS]);
/* Discard the answers received so far. Returns their number. */
int bare_drain(struct bare *r);
/* Send a request, and wait for the answer. Returns its error (enum gsas_error);
 * result and more may be NULL. */
uint64_t bare_ask(struct bare *r, uint8_t opcode, uint64_t address,
		  uint64_t arg1, uint64_t arg2, uint64_t *result,
		  uint64_t *more);
/* Join a new job that has no other member. */
void bare_join(struct bare *r);

#endif /* GSAS_PROCESSES_H */
