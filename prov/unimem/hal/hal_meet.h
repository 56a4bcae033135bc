/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_meet.h - how the processes of a group find memory that they share
 * (hal_meet.c); private to the HAL.
 *
 * A group has a name ("sim") and a number, hash; processes of different users
 * are in different groups. Functions return a negative errno on failure.
 */
#ifndef HAL_MEET_H
#define HAL_MEET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Fill in a struct sockaddr_un with an abstract name of a group. Returns the
 * length of the address. */
socklen_t hal_meet_name(void *sun, const char *group, const char *what,
			uint64_t hash, uint64_t n);

/* A local socket that does not block. */
int hal_meet_socket(int type);

/* A socket (SOCK_SEQPACKET) bound to a name; -EADDRINUSE: a process has the
 * name. A process joins as "part" of a number of its own. */
int hal_meet_bind(const char *group, const char *what, uint64_t hash,
		  uint64_t n);

/* Become the process that joins, until the socket that is returned is closed.
 * -EADDRINUSE: another process needs more than ten seconds to join. */
int hal_meet_gate(const char *group, uint64_t hash);

/* Let other processes find this one by a bound socket. */
int hal_meet_listen(int fd);

/* Close connections of processes that have found this one: they have learnt
 * from the kernel what they need. */
void hal_meet_hang_up(int fd);

/* Call take() for the processes with the first parts names, until it returns
 * anything but -ESRCH; returns that. -ESRCH: there is none. -EAGAIN: there may
 * be one. */
int hal_meet_find(const char *group, uint64_t hash, uint64_t parts,
		  int (*take)(void *arg, pid_t pid), void *arg);

/* Descriptor entry, in directory dir, is a memfd; rest is its name behind the
 * prefix, and what /proc adds to it. */
typedef void (*hal_meet_memory_fn)(void *arg, int dir, const char *entry,
				   const char *rest);

/* Call fn for each memfd of a process whose name begins with a prefix. -ESRCH:
 * its descriptors are not to be seen. */
int hal_meet_memory(pid_t pid, const char *prefix, hal_meet_memory_fn fn,
		    void *arg);

#endif /* HAL_MEET_H */
