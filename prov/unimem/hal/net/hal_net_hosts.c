/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_hosts.c - finds the directory of this job's hosts, the place of this
 * host in it, and the addresses of its names.
 *
 * hal_net_hosts.h declares the entry points. Reading text is in hal_net_dir.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_board.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_hosts.h"
#include "util/unm_clock.h"

#define OWN_MAX		64		/* IP addresses of this host */
#define IPS_MAX		16		/* of a name */
#define RETRY_NS	UINT64_C(5000000000)	/* after a name was not found */

/* Over ip, has_ip, retry and said of hosts; not held while the name service is
 * asked. */
static struct hal_lock g_resolve;

/* The addresses and names of this host. */
struct own {
	uint8_t ip[OWN_MAX][16];
	int nips;
	char host[256];			/* gethostname(), or "" */
};

/* ---- Text -------------------------------------------------------------- */

static int read_all(int fd, char *text, size_t *len)
{
	ssize_t n;

	*len = 0;
	while (*len < NET_DIR_TEXT) {
		n = read(fd, text + *len, NET_DIR_TEXT - *len);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		*len += (size_t)n;
	}
	return -EFBIG;
}

static int read_file(const char *path, uint32_t boards, struct net_dir **dir)
{
	char *text = malloc(NET_DIR_TEXT);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = 0;
	int ret;

	ret = text == NULL ? -FI_ENOMEM : fd < 0 ? -errno :
		read_all(fd, text, &len);
	if (ret != 0)
		hal_log(0, "FI_UNIMEM_NET_HOSTS=%s: %s", path, strerror(-ret));
	else
		ret = net_dir_read(text, len, path, boards, dir);
	if (fd >= 0)
		close(fd);
	free(text);
	return ret == 0 || ret == -FI_ENOMEM ? ret : -FI_EINVAL;
}

/* ---- This host --------------------------------------------------------- */

static void find_own(struct own *own)
{
	struct ifaddrs *list;

	memset(own, 0, sizeof(*own));
	if (getifaddrs(&list) == 0) {
		for (const struct ifaddrs *a = list; a != NULL &&
		     own->nips < OWN_MAX; a = a->ifa_next)
			own->nips += net_host_ip(a->ifa_addr,
						 own->ip[own->nips]);
		freeifaddrs(list);
	}
	if (gethostname(own->host, sizeof(own->host) - 1) != 0)
		own->host[0] = '\0';
}

/* The IP addresses of a name. Returns their number, at most IPS_MAX. */
static int resolve(const char *name, uint8_t ip[IPS_MAX][16])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	int n = 0;

	if (getaddrinfo(name, NULL, &hints, &list) != 0)
		return 0;
	for (struct addrinfo *ai = list; ai != NULL && n < IPS_MAX;
	     ai = ai->ai_next)
		n += net_host_ip(ai->ai_addr, ip[n]);
	freeaddrinfo(list);
	return n;
}

static bool in_common(const uint8_t (*a)[16], int na, const uint8_t (*b)[16],
		      int nb)
{
	for (int i = 0; i < na; i++)
		for (int k = 0; k < nb; k++)
			if (memcmp(a[i], b[k], 16) == 0)
				return true;
	return false;
}

/* The first host with a name that has one of these addresses; -1: none. */
static int find_by_name(const struct net_dir *dir, const uint8_t (*ip)[16],
			int nips)
{
	uint8_t its[IPS_MAX][16];

	for (uint32_t i = 0; i < dir->nhosts; i++) {
		int n = dir->host[i].has_ip ? 0 : resolve(dir->host[i].name,
							  its);

		if (in_common((const uint8_t (*)[16])its, n, ip, nips))
			return (int)i;
	}
	return -1;
}

/* May a host that was found by name be this one? Not if the name service knows
 * only addresses of others. Many hosts have their own name at 127.0.1.1. */
static bool may_be_self(const struct net_dir_host *host, const struct own *own)
{
	static const uint8_t v6[16] = { [15] = 1 };
	static const uint8_t v4[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	uint8_t its[IPS_MAX][16];
	int n = host->has_ip ? 0 : resolve(host->name, its);

	for (int i = 0; i < n; i++)
		if (memcmp(its[i], v6, sizeof(v6)) == 0 ||
		    memcmp(its[i], v4, sizeof(v4)) == 0)
			return true;
	return n == 0 || in_common((const uint8_t (*)[16])its, n,
				   (const uint8_t (*)[16])own->ip, own->nips);
}

/* The line of this host by its addresses and a name; NET_DIR_NONE, or
 * NET_DIR_TWICE after a log line. */
static int find_named(const struct net_dir *dir, const char *from,
		      const struct own *own, const char *name)
{
	uint32_t two[2];
	int self;

	self = net_dir_self(dir, (const uint8_t (*)[16])own->ip, own->nips,
			    &name, name != NULL && name[0] != '\0', two);
	if (self == NET_DIR_TWICE)
		hal_log(0, "%s: %s and %s are both this host", from,
			dir->host[two[0]].name, dir->host[two[1]].name);
	return self < 0 || may_be_self(&dir->host[self], own) ? self :
		NET_DIR_NONE;
}

/* Set dir->self. quiet: an absent host is no error of the user. */
static int find_self(struct net_dir *dir, const char *from, bool quiet)
{
	struct own own;
	int self;

	find_own(&own);
	self = find_named(dir, from, &own, own.host);
	/* Hydra gives all hosts the environment of mpiexec, so the variable
	 * may name another host */
	if (self == NET_DIR_NONE)
		self = find_named(dir, from, &own, getenv("SLURMD_NODENAME"));
	if (self == NET_DIR_TWICE)
		return -FI_EINVAL;
	if (self == NET_DIR_NONE)
		self = find_by_name(dir, (const uint8_t (*)[16])own.ip,
				    own.nips);
	if (self < 0) {
		hal_log(quiet, "%s: none of its %u hosts is this host, by name "
			"(%s) or IP address", from, dir->nhosts,
			own.host[0] != '\0' ? own.host : "unknown");
		return -FI_EINVAL;
	}
	dir->self = (uint32_t)self;
	return 0;
}

/* ---- Directory --------------------------------------------------------- */

int net_hosts_open(struct hal_params *params, struct net_dir **dir)
{
	const char *slurm = getenv("SLURM_JOB_NODELIST");
	bool asked = params->net_hosts[0] != '\0';
	uint32_t boards = hal_board_count(params);
	struct net_dir *found = NULL;
	int ret;

	*dir = NULL;
	if (asked)
		ret = read_file(params->net_hosts, boards, &found);
	else if (slurm != NULL)
		ret = net_dir_slurm(slurm, "SLURM_JOB_NODELIST", boards,
				    &found);
	else
		return 0;
	if (ret == 0 && (asked || found->nhosts > 1))
		ret = find_self(found, asked ? params->net_hosts :
				"SLURM_JOB_NODELIST", !asked);
	if (ret == 0 && asked)
		params->boards = (int)found->host[found->self].boards;
	if (ret == 0 && found->nhosts > 1) {
		found->asked = asked;
		*dir = found;
		return 0;
	}
	net_dir_free(found);
	return asked || ret == -FI_ENOMEM ? ret : 0;
}

int net_hosts_find(const struct net_dir *dir, const char *name)
{
	int found = net_dir_find(dir, name), n;
	uint8_t ip[IPS_MAX][16];

	if (found >= 0)
		return found;
	n = resolve(name, ip);
	for (uint32_t i = 0; i < dir->nhosts && n != 0; i++)
		if (dir->host[i].has_ip &&
		    in_common((const uint8_t (*)[16])ip, n,
			      (const uint8_t (*)[16])&dir->host[i].ip, 1))
			return (int)i;
	return n != 0 ? find_by_name(dir, (const uint8_t (*)[16])ip, n) : -1;
}

/* Ask the name service for the address of a host, of this family if it can be.
 * False: it has none. */
static bool find_ip(const char *name, bool v4, uint8_t out[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t ip[IPS_MAX][16];
	int n, use = 0;

	n = resolve(name, ip);
	for (int i = n - 1; i >= 0; i--)	/* the first of this family */
		if ((memcmp(ip[i], mapped, sizeof(mapped)) == 0) == v4)
			use = i;
	if (n == 0)
		return false;
	memcpy(out, ip[use], 16);
	return true;
}

/* Keep what the name service has answered. */
static void keep_ip(struct net_dir_host *host, bool found, const uint8_t ip[16])
{
	hal_lock(&g_resolve);
	if (found && !host->has_ip)
		memcpy(host->ip, ip, 16);
	host->has_ip |= found;
	if (!host->has_ip) {
		hal_log(host->said, "host %s has no IP address: the name "
			"service does not know it", host->name);
		host->said = true;
		host->retry = unm_now_ns() + RETRY_NS;
	}
	hal_unlock(&g_resolve);
}

static bool known_ip(struct net_dir_host *host, uint8_t ip[16], bool *ask)
{
	bool found;

	hal_lock(&g_resolve);
	found = host->has_ip;
	if (found)
		memcpy(ip, host->ip, 16);
	*ask = !found && host->retry <= unm_now_ns();
	hal_unlock(&g_resolve);
	return found;
}

int net_hosts_ip(struct net_dir *dir, uint32_t host, bool v4, uint8_t ip[16])
{
	struct net_dir_host *h = &dir->host[host];
	bool ask, found = known_ip(h, ip, &ask);

	if (ask) {		/* another thread may ask at the same time */
		found = find_ip(h->name, v4, ip);
		keep_ip(h, found, ip);
	}
	return found ? 0 : -FI_ENODATA;
}
