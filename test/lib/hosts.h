/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.h - two hosts for tests with several processes: network namespaces with
 * an Ethernet cable (veth) between them.
 *
 * A child makes its namespace, the director lays the cable, and the child gives
 * its end an address: 10.78.0.1 on host 0, 10.78.0.2 on host 1. All of it is
 * gone with the children. Needs root, the tool ip and the module
 * libunimem-net.so; the case is skipped where one is missing.
 */
#ifndef TEST_HOSTS_H
#define TEST_HOSTS_H

#include "lib/procs.h"

/* The work of a child on its host (0 or 1), with FI_UNIMEM_NET set; fd is the
 * socket to the director. Returns the exit code of the child. */
typedef int (*hosts_body)(int fd, int host);

/* Director only: start n children (2 to PROCS_MAX). Those with an even index
 * are on host 0, those with an odd one on host 1. They run body when this
 * returns. */
void hosts_start(struct proc *p[], int n, hosts_body body);

/* Director only, before hosts_start(): skip the case where network namespaces
 * have no IPv6. */
void hosts_need_ipv6(void);

/*
 * Director only: cut off the host of child p in silence. No frame of this host
 * reaches the other one from now on, so that the FIN and the RST of its sockets
 * are lost when its processes are killed. Returns a descriptor, which keeps the
 * network namespace, and so the interface of the other host. Close it once the
 * survivors have noticed.
 */
int hosts_vanish(const struct proc *p);

/* Run a command, which is a format of printf(3), by sh(1). False: it failed. */
bool hosts_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Child 0 or 1 of two: send a message of 8 bytes to the other child and receive
 * one. Both are connected then. */
void hosts_exchange(struct node *n, int host);

/* The number of IPv4 sockets of this process. */
int hosts_sockets(void);

/* Has this process mapped a file whose path contains name? */
bool hosts_mapped(const char *name);

#endif /* TEST_HOSTS_H */
