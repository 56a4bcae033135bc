/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_processes.h - what the tests of GSAS as a whole share, with procs.h: the
 * services of their boards, their jobs, and clients that break every rule.
 *
 * gsasd runs as a child of the director, so that it ends with the case. Clients
 * have no way to start one by themselves.
 */
#ifndef GSAS_PROCESSES_H
#define GSAS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "gsas.h"
#include "common/gsas_pkt.h"
#include "hal/hal.h"
#include "lib/procs.h"

/* A libgsas call that has to succeed. */
#define GSAS(call)							\
	do {								\
		int gsas_ret_ = (call);					\
		if (gsas_ret_ < 0)					\
			FAIL("%s: %s", #call, fi_strerror(-gsas_ret_));	\
	} while (0)
/* ... or to say why not. */
#define GSAS_IS(error, call)						\
	do {								\
		int gsas_ret_ = (call);					\
		if (gsas_ret_ != (error))				\
			FAIL("%s: %d, not %d", #call, gsas_ret_, (error)); \
	} while (0)

/* Two boards that are this test's own. */
int board_number(int i);
/* "FI_UNIMEM_BOARD=N", for proc_start(). */
const char *const *board_env(int i);

/* Where a program of the build tree is. */
void build_program(const char *name, char *path, size_t len);

/* In a director: run gsasd for a board until it serves; options: more of its
 * arguments, ends with NULL. */
struct proc *gsasd_start(int i, const char *const *options);
/* Services from now on run a copy of gsasd, which nobody else runs: services of
 * one program share a memory budget, also with those of other tests. The file
 * goes with gsasd_copy_remove(), which may come as soon as they run. */
void gsasd_copy(void);
void gsasd_copy_remove(void);
/* It lives, is the same process, and ends when it is told to. */
void gsasd_stop(struct proc *service);

/* ---- Jobs ----------------------------------------------------------------
 *
 * A process belongs to the job it finds in its environment when it is started:
 * forked children are of one job, the test's. Those of another one are programs
 * of their own, this one started anew for a role.
 */
struct gsas_role {
	const char *name;
	int (*fn)(int fd, int index);	/* as proc_fn */
};

/* First thing in main(): in a process that has a role, all there is. */
void role_main(int argc, char **argv, const struct gsas_role *roles, int n);

/* In a director, once: zeroed memory that roles see as well, g_role_memory. */
extern void *g_role_memory;
void role_share(size_t bytes);

/* Roles from now on belong to a new job. */
void role_new_job(void);
struct proc *role_start(const char *role, int index, const char *const *env);

/* ---- Bare clients -------------------------------------------------------- */

/* An interface that talks to one service by packets of the test's making. */
struct bare {
	struct hal *hal;
	struct hal_if *hif;
	struct hal_peer *peer;
	bool dead;			/* the service let go of us */
};

void bare_open(struct bare *r, int board);
void bare_close(struct bare *r);
/* Send; false: it cannot take it now. */
bool bare_send(struct bare *r, uint8_t opcode, uint8_t tag,
	       const uint64_t w[GSAS_WORDS]);
/* Drop what was answered; how many. */
int bare_drain(struct bare *r);
/* Send and wait for the answer: its error. */
uint64_t bare_ask(struct bare *r, uint8_t opcode, uint64_t address,
		  uint64_t arg1, uint64_t arg2, uint64_t *result,
		  uint64_t *more);
/* Belong to a job nobody else is in. */
void bare_join(struct bare *r);

#endif /* GSAS_PROCESSES_H */
