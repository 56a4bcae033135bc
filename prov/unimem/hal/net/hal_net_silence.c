/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_silence.c - judges whether a host that does not answer is dead.
 *
 * hal_net_silence.h declares the entry points; hal_net_conn.c calls them for
 * each control connection. Neither owns time or memory.
 */
#include <sys/socket.h>

#include "hal/net/hal_net_silence.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS	44		/* since Linux 6.15 */
#endif
#define NS_OF_MS	UINT64_C(1000000)
#define KERNEL_MS	(NET_PROBE_MS / 2)	/* the kernel's limit, beyond
						 * FI_UNIMEM_NET_DEAD_MS */
#define TICKS_MS	100		/* until its timer asks, at most */

static void set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

void net_watch(int fd, uint32_t dead_ms)
{
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, NET_PROBE_MS / 1000);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, NET_PROBE_MS / 1000);
	/* counts instead of the number of probes (TCP_KEEPCNT) */
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
		   (int)(dead_ms + KERNEL_MS));
}

/* Older kernels repeat data less often. */
void net_watch_ready(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, NET_PROBE_MS);
}

/* Data that follow each other may bring no acknowledgement that counts as one
 * (header prediction of TCP), so the later of both is the sign of life. */
void net_heard_of(struct net_heard *h, const struct tcp_info *info)
{
	h->ms = info->tcpi_last_ack_recv;
	if (info->tcpi_last_data_recv < h->ms)
		h->ms = info->tcpi_last_data_recv;
	h->unacked = info->tcpi_unacked != 0;
	h->sent_ms = info->tcpi_last_data_sent;
	h->probing = info->tcpi_probes != 0;
}

/*
 * Was the host asked after dead_ms of silence, and has had time to answer?
 * While TCP repeats data, this process waits for the next repetition and its
 * answer: the longest time between two of them (where the kernel has
 * TCP_RTO_MAX_MS), and the time of an answer.
 */
static bool asked_in_vain(const struct net_heard *h, uint32_t dead_ms)
{
	if (!h->unacked || h->ms >= dead_ms + NET_PROBE_MS + NET_GRACE_MS)
		return true;
	return h->sent_ms >= NET_GRACE_MS && h->ms >= h->sent_ms + dead_ms;
}

/*
 * A check on time follows questions of the kernel that have no answer, and one
 * more question finds a host that has just come back. A late check proves
 * nothing about the host: the whole machine may have stood still, so that the
 * kernel has asked nobody, or the connection has waited unwatched to be
 * accepted. Then the host is asked, and has the whole interval for its answer;
 * the same again if the next check is late.
 */
enum net_verdict net_silence_judge(struct net_silence *s,
				   const struct net_heard *h, uint32_t dead_ms,
				   uint64_t now, uint64_t *next)
{
	bool late;

	if (h->ms < dead_ms) {
		s->due = 0;
		s->asks = 0;
		*next = now + (dead_ms - h->ms) * NS_OF_MS;
		return NET_HEARD;
	}
	*next = s->due;
	if (now < s->due)
		return NET_HEARD;
	late = s->due == 0 ? h->ms > dead_ms + NET_LATE_MS :
		now > s->due + NET_LATE_MS * NS_OF_MS;
	if (s->due != 0 && (!late || s->asks >= NET_LATE_ASKS)) {
		if (asked_in_vain(h, dead_ms))
			return NET_SILENT;
		s->due = now + NET_GRACE_MS * NS_OF_MS;
		*next = s->due;
		return NET_HEARD;
	}
	s->asks++;
	s->due = now + (late ? NET_PROBE_MS : NET_GRACE_MS) * NS_OF_MS;
	*next = s->due;
	return NET_ASK;
}

/* The kernel's timer for questions expires at once if the time in which nothing
 * has come is longer than the new value. Beyond its own limit it ends a
 * connection then that has a question under way, however young. */
void net_ask(int fd, const struct net_heard *h, uint32_t dead_ms)
{
	if (!h->probing || h->ms + TICKS_MS < dead_ms + KERNEL_MS)
		set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, NET_PROBE_MS / 1000);
}

bool net_silent(struct net_silence *s, int fd, uint32_t dead_ms, uint64_t now,
		uint64_t *next)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	enum net_verdict verdict;
	struct net_heard h;

	*next = now + dead_ms * NS_OF_MS;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return false;
	net_heard_of(&h, &info);
	verdict = net_silence_judge(s, &h, dead_ms, now, next);
	if (verdict == NET_ASK)
		net_ask(fd, &h, dead_ms);
	return verdict == NET_SILENT;
}
