/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_stats.h - counters of one endpoint, in its interface's public page, where
 * unimem_info reads them also when the process hangs. Always on: each is one
 * add to a line of our own.
 */
#ifndef UNM_STATS_H
#define UNM_STATS_H

#include <stdint.h>

#define UNM_STATS_OFFSET	64	/* in hal_if.page, after its head */
#define UNM_STATS_VERSION	3

/* name, what it counts */
#define UNM_STATS_COUNTERS(X) \
	X(tx_msgs, "messages sent") \
	X(tx_bytes, "payload bytes sent") \
	X(rx_msgs, "messages received") \
	X(rx_bytes, "payload bytes received") \
	X(tx_inline, "messages sent in a packet") \
	X(tx_eager, "messages sent through receive space") \
	X(tx_rendezvous, "messages sent by rendezvous") \
	X(tx_stream, "rendezvous streamed through receive space") \
	X(rx_attach, "rendezvous read by cross-memory attach") \
	X(rx_dmable, "rendezvous read from dmable memory") \
	X(rx_unexpected, "messages nobody waited for") \
	X(again_packet, "sends refused: packet ring full") \
	X(tx_backlog, "sends that waited for a peer that took nothing") \
	X(again_credit, "sends refused: no message credit") \
	X(again_space, "sends refused: receive space full") \
	X(again_op, "sends refused: too many in flight") \
	X(again_queue, "operations refused: completion queue full") \
	X(tx_onesided, "operations on peers' memory") \
	X(tx_onesided_bytes, "bytes they moved") \
	X(tx_direct, "of these, done without the peer") \
	X(tx_requests, "requests sent for the others") \
	X(rx_requests, "requests of peers executed") \
	X(routes, "routes to peers' regions learned") \
	X(aliases, "of these, to memory that is mapped here as well") \
	X(revokes, "routes to our regions revoked") \
	X(polls, "empty calls of progress, 16 for each look at the clock") \
	X(yields, "processor given away while idle") \
	X(services, "looks at connections and deaths") \
	X(sleeps, "sleeps on the event descriptor") \
	X(peers, "peers connected") \
	X(deaths, "peers lost") \
	/* levels, refreshed by clock, see unm_gauge.c */ \
	X(posted, "receives posted") \
	X(unexpected, "unexpected messages held") \
	X(unexpected_bytes, "memory they take") \
	X(inflight, "sends in flight") \
	X(transfers, "receives in transfer") \
	X(credits_min, "fewest message credits left towards a peer") \
	X(oldest_us, "age of the oldest send or transfer under way, us") \
	X(oldest_recv_us, "age of the oldest receive posted, us")

struct unm_stats {
	uint32_t version;		/* UNM_STATS_VERSION */
	uint32_t count;			/* counters that follow */
#define UNM_STATS_FIELD(name, help)	uint64_t name;
	UNM_STATS_COUNTERS(UNM_STATS_FIELD)
#undef UNM_STATS_FIELD
};

#endif /* UNM_STATS_H */
