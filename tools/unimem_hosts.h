/* SPDX-License-Identifier: BSD-2-Clause */
/* unimem_hosts.h - unimem_info --all-hosts; see unimem_hosts.c. */
#ifndef UNIMEM_HOSTS_H
#define UNIMEM_HOSTS_H

#include <stdbool.h>

/* The hosts, and the command for each of them. Strings belong to the caller. */
struct hosts_conf {
	const char *hosts;		/* "a,b"; or, with a slash, the path of
					 * a hosts file; NULL: the file that
					 * FI_UNIMEM_NET_HOSTS names */
	const char *rsh;		/* shell command that runs HOST COMMAND;
					 * NULL: ssh */
	double limit;			/* seconds that a host has to answer */
	const char *options;		/* of unimem_info on each host */
	bool json;			/* they ask for JSON */
};

/*
 * Run unimem_info on every host and print the answers in the order of the
 * hosts: each line behind the name of its host, or one JSON object. 0: there
 * are interfaces; 1: there are none; 2: a host has not answered, or has failed,
 * which its lines say, or there is no list of hosts.
 */
int hosts_show(const struct hosts_conf *conf);

#endif /* UNIMEM_HOSTS_H */
