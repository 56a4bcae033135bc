/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_fork.h - large blocks in a forked child (malloc_fork.c).
 */
#ifndef MALLOC_FORK_H
#define MALLOC_FORK_H

/* Have fork(2) call the handlers of malloc_fork.c. Called once, before any
 * other library registers handlers: then the child has its own memory before
 * the handlers of these libraries run there. */
void malloc_fork_register(void);

#endif /* MALLOC_FORK_H */
