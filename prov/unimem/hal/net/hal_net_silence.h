/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_silence.h - when a host that does not answer counts as dead; private
 * to hal/net.
 *
 * The kernel asks the host of an idle connection each second, also while this
 * process computes or is stopped. The process examines what the kernel knows,
 * when the silence reaches the limit of FI_UNIMEM_NET_DEAD_MS, asks once more,
 * and ends the connection if there is no answer either.
 */
#ifndef HAL_NET_SILENCE_H
#define HAL_NET_SILENCE_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

#define NET_PROBE_MS	1000		/* between questions of the kernel */
#define NET_GRACE_MS	200		/* for an answer to the last question */
#define NET_LATE_MS	300		/* a check that comes later than that
					 * proves nothing */
#define NET_LATE_ASKS	3		/* questions without an answer, after
					 * which a late check ends a connection
					 * too */

/* Figures of the kernel on a connection. */
struct net_heard {
	uint32_t ms;			/* since anything came from the host */
	bool unacked;			/* data have no acknowledgement: TCP
					 * repeats them, and asks nothing */
	uint32_t sent_ms;		/* since it sent or repeated them */
	bool probing;			/* a question of it has no answer */
};

/* State of the silence on a connection, zero at first. */
struct net_silence {
	uint64_t due;			/* ns: when the answer has to be there;
					 * 0: nothing was asked */
	uint32_t asks;			/* questions of this process since the
					 * last answer, on time and late ones;
					 * the kernel's own do not count */
};

enum net_verdict {
	NET_HEARD,			/* it lives, or may answer yet */
	NET_ASK,			/* the caller shall ask, net_ask() */
	NET_SILENT,			/* it is dead */
};

/* Have the kernel watch over a connection. It ends the connection, too, at the
 * first of its questions, one each second, that comes half a second after
 * dead_ms or later. */
void net_watch(int fd, uint32_t dead_ms);

/* Have the kernel repeat data as often as it asks. For a connection that is
 * made: a dial that is repeated so often uses up its attempts (tcp_syn_retries)
 * long before its time. */
void net_watch_ready(int fd);

/* From what the kernel reports. */
void net_heard_of(struct net_heard *h, const struct tcp_info *info);

/* Judge a connection of a host that may be silent for dead_ms. now: ns; *next:
 * when to judge again, in ns, unless it is dead. */
enum net_verdict net_silence_judge(struct net_silence *s,
				   const struct net_heard *h, uint32_t dead_ms,
				   uint64_t now, uint64_t *next);

/* Have the kernel ask the host at once, unless a question is under way and one
 * more would have the kernel end the connection at once. */
void net_ask(int fd, const struct net_heard *h, uint32_t dead_ms);

/* Examine a connection. True: its host is dead. *next: as above. */
bool net_silent(struct net_silence *s, int fd, uint32_t dead_ms, uint64_t now,
		uint64_t *next);

#endif /* HAL_NET_SILENCE_H */
