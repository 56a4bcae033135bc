/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_stats.h - counters of one endpoint, in the public page of its interface.
 *
 * unimem_info reads them there, also while the process hangs. They are always
 * counted: a counter costs one addition to a cache line that no other processor
 * writes. The thread that holds the domain's lock writes them.
 */
#ifndef UNM_STATS_H
#define UNM_STATS_H

#include <stdint.h>

#define UNM_STATS_OFFSET	64	/* in hal_if.page, after its head */
#define UNM_STATS_VERSION	7

/* name, what it counts */
#define UNM_STATS_COUNTERS(X) \
	X(tx_msgs, "messages sent") \
	X(tx_bytes, "payload bytes sent") \
	X(rx_msgs, "messages received") \
	X(rx_bytes, "payload bytes received") \
	X(tx_inline, "messages sent in a packet") \
	X(tx_wide, "messages sent in a packet of two slots") \
	X(tx_eager, "messages sent through receive space") \
	X(tx_demoted, "messages of all kinds moved by cldemote") \
	X(tx_long, "messages sent through receive space in pieces") \
	X(tx_rendezvous, "messages sent by rendezvous") \
	X(tx_stream, "rendezvous streamed through receive space") \
	X(rx_attach, "rendezvous read by cross-memory attach") \
	X(rx_dmable, "rendezvous read from dmable memory") \
	X(tx_bounce, "rendezvous sent from a bounce buffer") \
	X(rx_bounce, "rendezvous read into a bounce buffer") \
	X(rx_unexpected, "messages without a posted receive") \
	X(again_packet, "sends refused: packet ring full") \
	X(tx_backlog, "sends deferred: the peer released nothing") \
	X(again_credit, "sends refused: no message credit") \
	X(again_space, "sends refused: receive space full") \
	X(again_op, "sends refused: too many in flight") \
	X(again_queue, "operations refused: completion queue full") \
	X(tx_onesided, "operations on peers' memory") \
	X(tx_onesided_bytes, "bytes of these operations") \
	X(tx_direct, "operations on peers' memory executed directly") \
	X(rkey_hits, "remote keys and imported memory found in the cache") \
	X(tx_requests, "requests sent to peers") \
	X(rx_requests, "requests of peers executed") \
	X(rkeys, "remote keys received from peers") \
	X(rkey_misses, "cache entries requested: they were not there") \
	X(rkey_evicted, "cache entries evicted because the cache was full") \
	X(rkey_stale, "cache entries dropped: regions closed, memory freed") \
	X(aliases, "remote keys of memory that is mapped here as well") \
	X(revokes, "revocations of local regions sent to peers") \
	X(polls, "calls of progress without work, counted in steps of 16") \
	X(yields, "times the processor was yielded while idle") \
	X(services, "checks of connections and dead peers") \
	X(sleeps, "sleeps on the event descriptor") \
	X(peers, "peers connected") \
	X(deaths, "peers lost") \
	/* gauges, refreshed periodically, see unm_gauge.c */ \
	X(posted, "receives posted") \
	X(unexpected, "unexpected messages stored") \
	X(unexpected_bytes, "bytes of memory that these take") \
	X(inflight, "sends in flight") \
	X(transfers, "receives in transfer") \
	X(credits_min, "fewest message credits left towards a peer") \
	X(rkey_entries, "entries of the cache of remote keys, of all peers") \
	X(rkey_bytes, "bytes of memory that these entries map") \
	X(oldest_us, "age of the oldest send or transfer under way, us") \
	X(oldest_recv_us, "age of the oldest receive posted, us")

/* The layout in the page. A monitor reads the fields without a lock. */
struct unm_stats {
	uint32_t version;		/* UNM_STATS_VERSION */
	uint32_t count;			/* counters that follow */
#define UNM_STATS_FIELD(name, help)	uint64_t name;
	UNM_STATS_COUNTERS(UNM_STATS_FIELD)
#undef UNM_STATS_FIELD
};

#endif /* UNM_STATS_H */
