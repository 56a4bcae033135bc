/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_host.c - the IP address by which other hosts reach this process, and
 * identity of the host.
 *
 * hal_net_host.h declares the entry points.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_host.h"
#include "util/unm_random.h"

/* ---- Identity ------------------------------------------------------ */

/* Hash of the boot and the network namespace: two processes with the same can
 * meet by the sockets of the emulation. */
static int host_id(uint8_t id[6])
{
	char boot[64] = "";
	uint64_t hash = 0;
	struct stat st;
	ssize_t n;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, boot, sizeof(boot) - 1);
	close(fd);
	if (n <= 0 || stat("/proc/self/ns/net", &st) != 0)
		return -errno;
	for (ssize_t i = 0; i < n; i++)
		hash = unm_mix(hash + (uint8_t)boot[i] + 1);
	hash = unm_mix(hash ^ unm_mix(st.st_ino));
	memcpy(id, &hash, 6);
	return 0;
}

/* ---- Address ------------------------------------------------------- */

bool net_host_ip(const struct sockaddr *sa, uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (sa != NULL && sa->sa_family == AF_INET) {
		memcpy(ip, mapped, 12);
		memcpy(ip + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
		return true;
	}
	if (sa != NULL && sa->sa_family == AF_INET6) {
		memcpy(ip, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
		return !IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)ip);
	}
	return false;
}

/* The interface of an address. An IPv4 address may have a label of its own,
 * INTERFACE:LABEL, which getifaddrs() returns instead, and which no other
 * program takes for an interface. */
static void device_of(const struct ifaddrs *a, char device[16])
{
	snprintf(device, 16, "%.*s", (int)strcspn(a->ifa_name, ":"),
		 a->ifa_name);
}

/* How well does text mean this address of this interface? 0: not; 1: it is the
 * interface of an address with a label; 2: it is the interface, the label or
 * the address. */
static int is_meant(const char *text, const struct ifaddrs *a,
		    const uint8_t ip[16])
{
	char device[16];
	uint8_t want[16] = { [10] = 0xff, [11] = 0xff };

	if (inet_pton(AF_INET, text, want + 12) == 1 ||
	    inet_pton(AF_INET6, text, want) == 1)
		return memcmp(want, ip, 16) == 0 ? 2 : 0;
	device_of(a, device);
	return strcmp(text, a->ifa_name) == 0 ? 2 : strcmp(text, device) == 0;
}

int net_host_find(const char *net, struct hal_host *host, char device[16])
{
	struct ifaddrs *list;
	int ret, best = 0, rank;	/* what is meant, then IPv4, then the
					 * first */
	uint8_t ip[16];

	memset(host, 0, sizeof(*host));
	ret = host_id(host->id);
	if (ret == 0 && getifaddrs(&list) != 0)
		ret = -errno;
	if (ret != 0) {
		hal_log(0, "FI_UNIMEM_NET=%s: cannot read this host's identity "
			"and addresses: %s", net, strerror(-ret));
		return -FI_EINVAL;
	}
	for (const struct ifaddrs *a = list; a != NULL; a = a->ifa_next) {
		if (!net_host_ip(a->ifa_addr, ip))
			continue;
		rank = 2 * is_meant(net, a, ip);
		if (rank != 0 && a->ifa_addr->sa_family == AF_INET)
			rank++;
		if (rank <= best)
			continue;
		memcpy(host->ip, ip, 16);
		device_of(a, device);
		best = rank;
	}
	freeifaddrs(list);
	if (best != 0)
		return 0;
	hal_log(0, "FI_UNIMEM_NET=%s: this host has no such address and no "
		"network interface of that name with an address: see ip addr",
		net);
	return -FI_EINVAL;
}

bool net_host_first(const char *device, struct hal_host *host)
{
	bool ipv6 = net_host_ipv6(host), found = false;
	struct hal_host first;
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return false;
	for (const struct ifaddrs *a = list; a != NULL && !found;
	     a = a->ifa_next)
		found = strcmp(a->ifa_name, device) == 0 &&
			net_host_ip(a->ifa_addr, first.ip) &&
			net_host_ipv6(&first) == ipv6;
	freeifaddrs(list);
	if (found)
		memcpy(host->ip, first.ip, sizeof(first.ip));
	return found;
}

socklen_t net_host_sockaddr(const uint8_t ip[16], uint16_t port,
			    struct sockaddr_storage *sa)
{
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

	memset(sa, 0, sizeof(*sa));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)ip)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip + 12, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, ip, 16);
	return sizeof(*in6);
}

/* ---- Names --------------------------------------------------------- */

#define HOST_PART	(NET_NAME - sizeof(struct hal_addr))
_Static_assert(HOST_PART == offsetof(struct hal_host, secret),
	       "a name is an address without its secret");

void net_host_name(const struct hal_addr *addr, const struct hal_host *host,
		   uint8_t name[NET_NAME])
{
	memcpy(name, addr, sizeof(*addr));
	memcpy(name + sizeof(*addr), host, HOST_PART);
}

bool net_host_parse(const uint8_t name[NET_NAME], struct hal_addr *addr,
		    struct hal_host *host)
{
	memset(host, 0, sizeof(*host));
	memcpy(addr, name, sizeof(*addr));
	memcpy(host, name + sizeof(*addr), HOST_PART);
	return addr->version == HAL_ADDR_VERSION && addr->reserved == 0 &&
		addr->nonce != HAL_ADDR_ANY && host->port != 0;
}

bool net_host_ipv6(const struct hal_host *host)
{
	return !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)host->ip);
}

const char *net_host_text(const struct hal_host *host, char text[64])
{
	if (net_host_ipv6(host))
		inet_ntop(AF_INET6, host->ip, text, 64);
	else
		inet_ntop(AF_INET, host->ip + 12, text, 64);
	return text;
}
