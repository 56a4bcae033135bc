/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_stuck.c - ends the sockets of UCX to a host that does not answer, in
 * the module of UCX.
 *
 * UCX 1.13 sends a last message when it closes a link, and repeats the call
 * until the socket takes the message. If the host is gone and the buffer of the
 * socket is full, this lasts until the kernel gives up: some fifteen minutes.
 * hal_net_ucx.c calls net_stuck_shut() before it closes such a link.
 *
 * UCX does not name its sockets. The kernel shows the members of an epoll set
 * in /proc/self/fdinfo: those that UCX added to the set of the interface are
 * epoll sets of its own, whose members are its sockets.
 */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "hal/net/hal_net_stuck.h"

#define SILENT_MS	1000

static FILE *members(int epfd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	return fopen(path, "re");
}

/* The next member of an epoll set. */
static bool next_member(FILE *f, int *fd, unsigned long long *data)
{
	unsigned events;
	char line[128];

	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "tfd: %d events: %x data: %llx", fd, &events,
			   data) == 3)
			return true;
	return false;
}

static bool is_to(int fd, const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_storage sa;
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	socklen_t len = sizeof(sa);

	if (getpeername(fd, (struct sockaddr *)&sa, &len) != 0)
		return false;
	memcpy(&in, &sa, sizeof(in));
	memcpy(&in6, &sa, sizeof(in6));
	if (sa.ss_family == AF_INET)
		return memcmp(ip, mapped, 12) == 0 &&
			memcmp(ip + 12, &in.sin_addr, 4) == 0;
	return sa.ss_family == AF_INET6 && memcmp(ip, &in6.sin6_addr, 16) == 0;
}

static bool is_stuck(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int queued = 0;

	return ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 0 &&
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
		info.tcpi_last_ack_recv >= SILENT_MS;
}

void net_stuck_shut(int epfd, const void *event, const uint8_t ip[16])
{
	FILE *sets = members(epfd), *sockets;
	unsigned long long data;
	int set, fd;

	while (sets != NULL && next_member(sets, &set, &data)) {
		if (data != (uintptr_t)event)
			continue;
		sockets = members(set);
		while (sockets != NULL && next_member(sockets, &fd, &data))
			if (is_to(fd, ip) && is_stuck(fd))
				shutdown(fd, SHUT_RDWR);
		if (sockets != NULL)
			fclose(sockets);
	}
	if (sets != NULL)
		fclose(sets);
}
