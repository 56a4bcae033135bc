/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_addr.c - converts addresses from and to text. There are two forms: the
 * provider's own (unimem://board:interface, also with a host), and a name or IP
 * address of a host with a service number, as programs for IP networks pass
 * them. For this host the second form is converted to a board and an interface
 * by unm_addr_settle(), which needs the open HAL.
 *
 * Entry points: unm_addr_parse() reads a node and a service, unm_addr_print()
 * writes an address. Address vectors are in api/unm_av.c; unm_info.c decides
 * which argument of fi_getinfo(3) is the source and which the destination.
 */
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/hal.h"
#include "unm_addr.h"
#include "unm_env.h"

/* ---- unimem:// ------------------------------------------------------- */

static const char unm_addr_scheme[] = "unimem://";

bool unm_addr_typed(const char *node)
{
	return strncmp(node, unm_addr_scheme, sizeof(unm_addr_scheme) - 1) ==
		0;
}

/* Read a decimal number of digits only, up to max; *str is moved behind it. -1:
 * there is no such number. */
static int64_t unm_addr_number(const char **str, int64_t max)
{
	int64_t val = -1;

	for (; **str >= '0' && **str <= '9' && val <= max; (*str)++)
		val = (val < 0 ? 0 : 10 * val) + **str - '0';
	return val <= max ? val : -1;
}

/* Read a nonce, 16 hexadecimal digits. */
static int unm_addr_nonce(const char **str, uint64_t *nonce)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t val = 0;

	for (int i = 0; i < 16; i++, (*str)++) {
		const char *digit = strchr(digits, **str);

		if (digit == NULL || *digit == '\0')
			return -FI_EINVAL;
		val = val << 4 | (uint64_t)(digit - digits);
	}
	if (val == HAL_ADDR_ANY)	/* is printed as no nonce */
		return -FI_EINVAL;
	*nonce = val;
	return 0;
}

/* Read the text behind an interface: [/nonce][?uid=user], then the end. */
static int unm_addr_rest(const char *str, struct hal_addr *addr)
{
	static const char uid[] = "?uid=";
	int64_t val;

	if (*str == '/') {
		str++;
		if (unm_addr_nonce(&str, &addr->nonce) != 0)
			return -FI_EINVAL;
	}
	if (strncmp(str, uid, sizeof(uid) - 1) == 0) {
		str += sizeof(uid) - 1;
		val = unm_addr_number(&str, UINT32_MAX);
		if (val < 0)
			return -FI_EINVAL;
		addr->uid = (uint32_t)val;
	}
	return *str == '\0' ? 0 : -FI_EINVAL;
}

/* Read board:interface..., whose service is ignored, or board with the
 * interface as service. */
static int unm_addr_own_form(const char *str, const char *service,
			     struct hal_addr *addr)
{
	int64_t board, iface;

	board = unm_addr_number(&str, UINT16_MAX);
	if (*str == ':') {
		str++;
		iface = unm_addr_number(&str, UNM_ADDR_IFACE_MAX);
		if (unm_addr_rest(str, addr) != 0)
			return -FI_EINVAL;
	} else {
		if (*str != '\0' || service == NULL)
			return -FI_EINVAL;
		iface = unm_addr_number(&service, UNM_ADDR_IFACE_MAX);
		if (*service != '\0')
			return -FI_EINVAL;
	}
	if (board < 0 || iface <= 0)
		return -FI_EINVAL;
	addr->board = (uint16_t)board;
	addr->iface = (uint32_t)iface;
	return 0;
}

/* ---- Hosts ----------------------------------------------------------- */

/* True: an IP address is one of this host. The unspecified address stands for
 * all of them, and all of 127.0.0.0/8 is local, though getifaddrs() lists only
 * one address of it. An IPv4 address may be mapped into IPv6. */
static bool unm_ip_is_here(const struct sockaddr *sa,
			   const struct ifaddrs *list)
{
	static const struct in6_addr any6;
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	const struct in6_addr *v6;
	size_t off, len;
	const char *ip;

	v6 = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	if (sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
		memcpy(&v4.sin_addr, &v6->s6_addr[12], sizeof(v4.sin_addr));
		sa = (const struct sockaddr *)&v4;
	}
	if (sa->sa_family == AF_INET) {
		off = offsetof(struct sockaddr_in, sin_addr);
		len = sizeof(struct in_addr);
	} else if (sa->sa_family == AF_INET6) {
		off = offsetof(struct sockaddr_in6, sin6_addr);
		len = sizeof(struct in6_addr);
	} else {
		return false;
	}
	ip = (const char *)sa + off;
	if (memcmp(ip, &any6, len) == 0 ||
	    (sa->sa_family == AF_INET && ip[0] == IN_LOOPBACKNET))
		return true;
	for (; list != NULL; list = list->ifa_next)
		if (list->ifa_addr != NULL &&
		    list->ifa_addr->sa_family == sa->sa_family &&
		    memcmp((const char *)list->ifa_addr + off, ip, len) == 0)
			return true;
	return false;
}

/* The result of resolving a host name or IP address. */
enum unm_host { UNM_HOST_NONE, UNM_HOST_HERE, UNM_HOST_OTHER };

static enum unm_host unm_host_of(const char *node, uint64_t flags)
{
	struct addrinfo hints = {
		.ai_flags = flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0,
		.ai_socktype = SOCK_DGRAM,
	};
	struct addrinfo *list, *ai;
	struct ifaddrs *own;
	bool here = false;
	char name[256] = "";

	/* a resolver need not know the name of its own host */
	if (!(flags & FI_NUMERICHOST) &&
	    gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' &&
	    strcmp(node, name) == 0)
		return UNM_HOST_HERE;
	if (getaddrinfo(node, NULL, &hints, &list) != 0)
		return UNM_HOST_NONE;
	if (getifaddrs(&own) != 0)
		own = NULL;
	for (ai = list; ai != NULL && !here; ai = ai->ai_next)
		here = unm_ip_is_here(ai->ai_addr, own);
	freeifaddrs(own);
	freeaddrinfo(list);
	return here ? UNM_HOST_HERE : UNM_HOST_OTHER;
}

/* True: the name of another host may stand for a peer. With FI_UNIMEM_HAL=dev
 * boards are hosts, but the name does not say which board a host is. The boards
 * of the emulation are all on this host. */
static bool unm_host_is_board(uint64_t flags)
{
	return !(flags & FI_SOURCE) &&
		strcmp(hal_backend(&g_unm_env.hal), "dev") == 0;
}

/* Read a host and a service number; no service is service 0. */
static int unm_addr_host_form(const char *node, const char *service,
			      uint64_t flags, struct hal_addr *addr)
{
	enum unm_host host = node == NULL ? UNM_HOST_HERE :
		unm_host_of(node, flags);
	uint32_t first, count;
	int64_t number = 0;

	if (service != NULL) {
		number = unm_addr_number(&service, UINT32_MAX);
		if (number < 0 || *service != '\0')
			return -FI_EINVAL;
	}
	if (host == UNM_HOST_OTHER && !(flags & FI_SOURCE) &&
	    hal_host_boards(&g_unm_env.hal, node, &first, &count) == 0) {
		addr->board = (uint16_t)first;
		addr->iface = (uint32_t)number;
		return number <= UNM_ADDR_IFACE_MAX ? 0 : -FI_EINVAL;
	}
	if (host == UNM_HOST_OTHER && unm_host_is_board(flags))
		number = 0;
	else if (host != UNM_HOST_HERE)
		return -FI_EINVAL;
	addr->iface = (uint32_t)number;
	if (number != 0)
		addr->reserved = UNM_ADDR_SERVICE;
	return 0;
}

/* The numbers of the boards of a host, which is this one, or one of the job's
 * directory. */
static int unm_host_boards(const char *host, uint64_t flags, uint32_t *first,
			   uint32_t *count)
{
	if (hal_host_boards(&g_unm_env.hal, host, first, count) == 0)
		return 0;
	return unm_host_of(host, flags) == UNM_HOST_HERE ?
		hal_host_boards(&g_unm_env.hal, NULL, first, count) :
		-FI_EINVAL;
}

/* The end of the host in host/board:interface..., or NULL: the text begins with
 * a board. */
static const char *unm_addr_host_end(const char *str)
{
	const char *slash = strchr(str, '/');

	if (str[0] != '[' && slash != NULL &&
	    memchr(str, ':', (size_t)(slash - str)) != NULL)
		return NULL;		/* board:interface/nonce */
	return slash;
}

/* Read host/board:interface, with the board as that host counts. An IPv6
 * address is in brackets. */
static int unm_addr_on_host(const char *str, const char *service,
			    uint64_t flags, struct hal_addr *addr)
{
	const char *end = unm_addr_host_end(str);
	size_t len = (size_t)(end - str);
	uint32_t first, count;
	char host[256];

	if (unm_addr_own_form(end + 1, service, addr) != 0)
		return -FI_EINVAL;
	if (len >= 2 && str[0] == '[' && end[-1] == ']') {
		str++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(host))
		return -FI_EINVAL;
	memcpy(host, str, len);
	host[len] = '\0';
	if (unm_host_boards(host, flags, &first, &count) != 0 ||
	    addr->board >= count || first + addr->board > UINT16_MAX)
		return -FI_EINVAL;
	addr->board = (uint16_t)(first + addr->board);
	return 0;
}

/* ---- As programs exchange them ----------------------------------------- */

size_t unm_addr_bytes(void)
{
	return g_unm_env.hal.net[0] != '\0' ? sizeof(struct hal_addr_host) :
		sizeof(struct hal_addr);
}

void unm_addr_export(const struct hal_addr *addr, const struct hal_host *host,
		     void *out)
{
	struct hal_addr_host both = { .addr = *addr };

	if (unm_addr_bytes() == sizeof(both)) {
		both.addr.version = HAL_ADDR_HOST_VERSION;
		if (host != NULL)
			both.host = *host;
	}
	memcpy(out, &both, unm_addr_bytes());
}

void unm_addr_import(const void *in, struct hal_addr *addr,
		     struct hal_host *host)
{
	struct hal_addr_host both = { .addr = { .version = 0 } };
	bool hosts = unm_addr_bytes() == sizeof(both);

	/* an address of the other form has fewer bytes */
	memcpy(&both, in, sizeof(both.addr));
	if (hosts && both.addr.version == HAL_ADDR_HOST_VERSION)
		memcpy(&both, in, sizeof(both));
	if (hosts && both.addr.version == HAL_ADDR_HOST_VERSION)
		both.addr.version = HAL_ADDR_VERSION;
	else if (hosts && both.addr.version == HAL_ADDR_VERSION)
		both.addr.version = HAL_ADDR_HOST_VERSION;
	*addr = both.addr;
	*host = both.host;
}

/* ---- Both forms ------------------------------------------------------ */

int unm_addr_parse(const char *node, const char *service, uint64_t flags,
		   struct hal_addr *addr)
{
	struct hal_addr a = {
		.version = HAL_ADDR_VERSION, .uid = geteuid(),
		.nonce = HAL_ADDR_ANY,
	};
	const char *str;
	int ret;

	if (node != NULL && unm_addr_typed(node)) {
		str = node + sizeof(unm_addr_scheme) - 1;
		ret = unm_addr_host_end(str) == NULL ?
			unm_addr_own_form(str, service, &a) :
			unm_addr_on_host(str, service, flags, &a);
	} else {
		ret = unm_addr_host_form(node, service, flags, &a);
	}
	/* the HAL chooses the nonce of a local address */
	if (ret == 0 && (flags & FI_SOURCE) && !unm_addr_takes(&a))
		ret = -FI_EINVAL;
	if (ret == 0)
		*addr = a;
	return ret;
}

bool unm_addr_takes(const struct hal_addr *addr)
{
	return addr->version == HAL_ADDR_VERSION &&
		addr->uid == geteuid() && addr->nonce == HAL_ADDR_ANY &&
		(addr->reserved == 0 ||
		 addr->reserved == UNM_ADDR_SERVICE) &&
		(addr->iface != 0 || addr->board == 0);
}

void unm_addr_settle(const struct hal *hal, struct hal_addr *addr)
{
	if (addr->reserved != UNM_ADDR_SERVICE || addr->iface == 0)
		return;
	addr->reserved = 0;
	addr->board = (uint16_t)hal->own_board;
	addr->iface = (addr->iface - 1) % hal->caps.ifs_per_board + 1;
}

int unm_addr_print(const struct hal_addr *addr, char *buf, size_t len)
{
	char nonce[20] = "", uid[20] = "";

	if (addr->nonce != HAL_ADDR_ANY)
		snprintf(nonce, sizeof(nonce), "/%016" PRIx64, addr->nonce);
	if (addr->uid != geteuid())
		snprintf(uid, sizeof(uid), "?uid=%u", addr->uid);
	return snprintf(buf, len, "%s%u:%u%s%s", unm_addr_scheme, addr->board,
			addr->iface, nonce, uid);
}
