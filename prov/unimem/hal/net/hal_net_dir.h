/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_dir.h - the directory of a job's hosts: their names, and the boards
 * of each, which are numbered through all hosts.
 *
 * Pure: it reads text, and opens and resolves nothing. hal_net_hosts.c finds
 * the text and the addresses of names. docs/net.md describes the hosts file.
 */
#ifndef HAL_NET_DIR_H
#define HAL_NET_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_DIR_NAME	254		/* bytes of a name, with its end */
#define NET_DIR_BOARDS	65535		/* boards of all hosts, at most */
#define NET_DIR_TEXT	(4u << 20)	/* bytes of a hosts file, at most */
#define NET_DIR_IFS	64		/* interfaces of a board with a port
					 * that its number determines */
#define NET_DIR_NONE	(-1)		/* net_dir_self() */
#define NET_DIR_TWICE	(-2)

struct net_dir_host {
	char name[NET_DIR_NAME];	/* name or IP address, as written */
	uint8_t ip[16];			/* IPv6, or IPv4 mapped; valid if
					 * has_ip */
	bool has_ip;			/* the name is an IP address, or was
					 * resolved */
	bool said;			/* that it has none was logged */
	uint64_t retry;			/* ns: when to resolve the name again */
	uint32_t first;			/* number of its first board */
	uint32_t boards;		/* and how many it has, at least 1 */
};

/* From net_dir_read() or net_dir_slurm() to net_dir_free(). Constant, but for
 * what resolving names changes, which is under the lock of hal_net_hosts.c. */
struct net_dir {
	struct net_dir_host *host;	/* [nhosts] */
	uint32_t nhosts;		/* at least 1 */
	uint32_t self;			/* index of this host; the caller of
					 * net_dir_self() sets it */
	uint32_t boards;		/* of all hosts */
	bool asked;			/* the user named it by
					 * FI_UNIMEM_NET_HOSTS; else it is
					 * Slurm's; set by net_hosts_open() */
};

/*
 * Read a hosts file of len bytes, which `from` names in log lines: a line a
 * host, "name-or-address [boards=N]", comments from # on. boards: number of
 * boards of a host without boards=. 0; -FI_EINVAL after one log line;
 * -FI_ENOMEM.
 */
int net_dir_read(const char *text, size_t len, const char *from,
		 uint32_t boards, struct net_dir **dir);

/* Read a list of hosts as Slurm writes it in SLURM_JOB_NODELIST, for example
 * "login,rack[1-2]n[01-16,20]"; else as net_dir_read(). */
int net_dir_slurm(const char *list, const char *from, uint32_t boards,
		  struct net_dir **dir);

void net_dir_free(struct net_dir *dir);

/* The host whose name or address, as written, is one of this host: addresses
 * ip[nips], names name[nnames]. NET_DIR_NONE: no host; NET_DIR_TWICE: two of
 * them, at other[0] and other[1]. */
int net_dir_self(const struct net_dir *dir, const uint8_t (*ip)[16], int nips,
		 const char *const *name, int nnames, uint32_t other[2]);

/* The host with this name or address, as written; -1: none. */
int net_dir_find(const struct net_dir *dir, const char *name);

/* The host that has a board; -1: there is no such board. */
int net_dir_of_board(const struct net_dir *dir, uint32_t board);

/* Read an IP address. False: text is none. */
bool net_dir_ip(const char *text, uint8_t ip[16]);

/* The TCP port of an interface, of the board of this number on its host. base:
 * FI_UNIMEM_NET_PORT. 0: no port is determined by these numbers. */
uint16_t net_dir_port(int base, uint32_t board, uint32_t iface);

#endif /* HAL_NET_DIR_H */
