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

#define OWN_MAX		64		/* IP addresses of this host */
#define IPS_MAX		16		/* of a name */

static struct hal_lock g_resolve;	/* over ip and has_ip of hosts */

/* The addresses and names of this host. */
struct own {
	uint8_t ip[OWN_MAX][16];
	int nips;
	char host[256];			/* gethostname() */
	const char *name[2];
	int nnames;
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
	const char *slurm = getenv("SLURMD_NODENAME");
	struct ifaddrs *list;

	memset(own, 0, sizeof(*own));
	if (getifaddrs(&list) == 0) {
		for (const struct ifaddrs *a = list; a != NULL &&
		     own->nips < OWN_MAX; a = a->ifa_next)
			own->nips += net_host_ip(a->ifa_addr,
						 own->ip[own->nips]);
		freeifaddrs(list);
	}
	if (slurm != NULL)
		own->name[own->nnames++] = slurm;
	else if (gethostname(own->host, sizeof(own->host) - 1) == 0)
		own->name[own->nnames++] = own->host;
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

/* Set dir->self. quiet: an absent host is no error of the user. */
static int find_self(struct net_dir *dir, const char *from, bool quiet)
{
	struct own own;
	uint32_t two[2];
	int self;

	find_own(&own);
	self = net_dir_self(dir, (const uint8_t (*)[16])own.ip, own.nips,
			    own.name, own.nnames, two);
	if (self == NET_DIR_TWICE) {
		hal_log(0, "%s: %s and %s are both this host", from,
			dir->host[two[0]].name, dir->host[two[1]].name);
		return -FI_EINVAL;
	}
	if (self == NET_DIR_NONE)
		self = find_by_name(dir, (const uint8_t (*)[16])own.ip,
				    own.nips);
	if (self < 0) {
		hal_log(quiet, "%s: none of its %u hosts is this host, by name "
			"(%s) or IP address", from, dir->nhosts,
			own.nnames != 0 ? own.name[0] : "unknown");
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

/* Was the address of a host found? Resolve its name if not. */
static bool has_ip(struct net_dir_host *host, bool v4)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t ip[IPS_MAX][16];
	int n, use = 0;

	if (host->has_ip)
		return true;
	n = resolve(host->name, ip);
	for (int i = n - 1; i >= 0; i--)	/* the first of this family */
		if ((memcmp(ip[i], mapped, sizeof(mapped)) == 0) == v4)
			use = i;
	if (n == 0)
		return false;
	memcpy(host->ip, ip[use], 16);
	host->has_ip = true;
	return true;
}

int net_hosts_ip(struct net_dir *dir, uint32_t host, bool v4, uint8_t ip[16])
{
	bool found;

	hal_lock(&g_resolve);
	found = has_ip(&dir->host[host], v4);
	if (found)
		memcpy(ip, dir->host[host].ip, 16);
	hal_unlock(&g_resolve);
	if (found)
		return 0;
	hal_log(0, "host %s has no IP address: the name service does not know "
		"it", dir->host[host].name);
	return -FI_ENODATA;
}
