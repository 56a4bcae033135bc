/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_spawn.h - FORK in the service [D 2.2.8, 2.3.5]: starts programs below
 * configured directories, with their argument, job and board in the
 * environment.
 */
#ifndef GSAS_SPAWN_H
#define GSAS_SPAWN_H

#include "service/gsas_service.h"

#define GSAS_SPAWN_DIRS	32
#define GSAS_SPAWN_CHILDREN 256		/* of a user at a time, by default */

struct gsas_spawn_child;

/* Owned by gsasd's main(). After the set-up only the thread of the service that
 * starts programs uses it. */
struct gsas_spawner {
	unsigned board;
	unsigned here;			/* number of the board on its host */
	int logs;			/* folder of the log files */
	unsigned ndirs;
	char *dir[GSAS_SPAWN_DIRS];	/* real paths, without a last slash */
	unsigned max_children;		/* of a user that live; 0: no limit */
	unsigned nchildren;		/* entries of child[] */
	struct gsas_spawn_child *child;	/* started, and not yet found to have
					 * ended */
	void (*log)(const char *line);	/* logs why a start failed */
};

/* here: number of the board on its host, for FI_UNIMEM_BOARD. logs: folder of
 * log files; NULL: the working directory. log may be called by any thread. 0,
 * -errno. */
int gsas_spawner_init(struct gsas_spawner *s, unsigned board, unsigned here,
		      const char *logs, void (*log)(const char *line));
void gsas_spawner_fini(struct gsas_spawner *s);

/* Programs below dir may be started. 0; -errno: there is no such folder;
 * -FI_ENOMEM; -FI_EINVAL: it is the root, or there are too many. */
int gsas_spawner_allow(struct gsas_spawner *s, const char *dir);

/* Start a program: the spawn function of struct gsas_service_attr, with a
 * struct gsas_spawner as ctx. Call it by one thread at a time. GSAS_E_QUOTA:
 * max_children programs of the user live. */
enum gsas_error gsas_spawner_start(void *ctx, const struct gsas_spawn *spawn,
				   uint64_t *pid);

#endif /* GSAS_SPAWN_H */
