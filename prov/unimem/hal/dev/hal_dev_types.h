/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_types.h - the objects of the device backend: device, interface, peer,
 * transfer. Structures and access functions only; private to hal_dev*.c.
 *
 * The files, each with a header of its own, from the bottom to the top. A file
 * calls only files earlier in this list:
 *
 *   hal_dev_conf.c    the platform file; log lines for what cannot be opened
 *   hal_dev_region.c  memory that is held and mapped
 *   hal_dev_table.c   tables of holders; marks peers that are to end
 *   hal_dev_ring.c    rings of received packets
 *   hal_dev_pif.c     packetizer, queues of refused packets
 *   hal_dev_mem.c     dmable memory of this process, imported memory of peers
 *   hal_dev_engine.c  the cDMA engine, where the process has its registers
 *   hal_dev_dma.c     transfers
 *   hal_dev_peer.c    peer objects, events
 *   hal_dev_conn.c    connecting, accepting, receive space, words stored back
 *   hal_dev_mbox.c    mailbox
 *   hal_dev_echo.c    proves that the packetizer transmits
 *   hal_dev_life.c    polls peers, carries out their ends
 *   hal_dev.c         device, interfaces, service, sleep
 *
 * Registers, remote memory and the kernel device are reached through hal_mmio.h
 * only. hal_dev_wire.h defines what two interfaces exchange.
 */
#ifndef HAL_DEV_TYPES_H
#define HAL_DEV_TYPES_H

#include <sys/types.h>

#include "hal/hal_fault_point.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/hal_map.h"
#include "hal/hal_types.h"
#include "hal/dev/hal_dev_region.h"
#include "hal/dev/hal_dev_wire.h"
#include "hal/dev/hal_mmio.h"
#include "util/unm_list.h"

#define DEV_DMA_DEPTH	64	/* transfers per interface */
#define DEV_PEERS_HASH	64u	/* buckets of dev_if.hash, a power of two */

/* ---- Device ------------------------------------------------------------ */

/*
 * The backend's device object, one per process that opens the HAL, from
 * hal_get() to the last hal_put(). Its fields do not change after opening, but
 * for those that lock protects.
 */
struct hal_dev {
	struct hal hal;			/* first member: the caller's view */
	const struct hal_mmio_ops *io;	/* silicon or register model */
	struct hal_platform platform;
	struct hal_kdev_info info;	/* the driver's, of the local board */
	struct hal_mmio *mm;		/* open kernel device of the local
					 * board: holds dmable memory */
	struct hal_lock lock;		/* for mm and mems */
	struct unm_list mems;		/* dmable memory, hal_mem.list */
	struct dev_engine *engine;	/* NULL: the driver executes
					 * transfers */
	pid_t pid;			/* process that opened it */
	uint32_t space_bytes;
	_Atomic uint32_t ifs_opened;	/* interfaces opened so far: the driver
					 * begins its search there */
};

/* ---- Peers ------------------------------------------------------------- */

/* State of the HELLO that opens the outbound half. */
enum dev_hello {
	DEV_HELLO_NONE,			/* outbound half is not open */
	DEV_HELLO_UNSENT,
	DEV_HELLO_IN_PIF,		/* in the packetizer, result unknown */
	DEV_HELLO_TAKEN,		/* in the mailbox of the peer */
};

/* State of the inbound half. */
enum dev_accept {
	DEV_ACCEPT_NONE,		/* inbound half is not open */
	DEV_ACCEPT_BACK,		/* HELLO received, the sender's back
					 * page is not mapped yet */
	DEV_ACCEPT_DONE,
};

/* When an import that failed for a shortage is tried again. The waits double,
 * because a try may evict the unused imports of all peers. */
struct dev_retry {
	uint64_t at;			/* ns: next try; 0: none is due */
	uint32_t wait;			/* ns between tries; 0: none has
					 * failed */
};

/*
 * A peer of an interface: another interface that this one is connected to, in
 * one or both directions. hal_dev_peer.c allocates it at the first connect or
 * HELLO; it lives until dev_peer_free(), or until the peer ends before the
 * caller has heard of it. Only the thread that uses the interface touches it.
 *
 * An identity may have several objects: the newest, and older ones that are
 * dying or dead and whose events the caller has not taken or not freed.
 */
struct dev_peer {
	struct hal_peer p;		/* first member: the caller's view */
	struct dev_peer *hash_next;	/* in dev_if.hash; newest of an identity
					 * first */
	struct dev_peer *next, **pprev;	/* in dev_if.peers */
	struct unm_list waiting;	/* in dev_if.backlog */
	struct hal_sleep sleep;		/* p.tx.sleep: written by the caller,
					 * read here; it is not shared */
	uint64_t identity;		/* stamped into the packets of the peer
					 * by its packetizer, hal_id() */
	uint64_t dest;			/* destination of its mailbox */
	uint64_t session;		/* number of this object in its
					 * interface, from 1 on */
	/* outbound half */
	struct dev_region back;		/* local page, the peer stores to it */
	struct dev_region link;		/* remote page, stored to from here */
	struct dev_region space;	/* remote receive space */
	struct dev_pkt *queue;		/* pkt_depth entries: packets that were
					 * refused or not yet sent */
	uint32_t q_first, q_last;	/* of queue; free-running */
	uint64_t retry_at;		/* ns: next try after a NACK */
	uint64_t refused_at;		/* ns: first NACK since the last ACK */
	uint32_t backoff;		/* ns between tries; 0: the last packet
					 * was acknowledged */
	bool refusal_logged;		/* logged that it refuses for long */
	uint8_t hello;			/* enum dev_hello */
	bool wake;			/* a WAKE packet is to be sent */
	bool nomem_logged;		/* logged that there is no memory for
					 * its receive space */
	bool connected_reported;	/* HAL_EV_CONNECTED was reported */
	/* inbound half */
	struct dev_region rlink;	/* local page, the peer stores to it */
	struct dev_region rspace;	/* local receive space */
	struct dev_region rback;	/* remote page, stored to from here */
	struct hal_kdev_import rspace_imp, rback_imp;	/* driver's answers to
							 * these two imports,
							 * for another try */
	uint64_t hello_back;		/* reference of rback, from the HELLO */
	struct hal_cell *cells;		/* the ring; p.rx.cells has it only
					 * while accept is DONE, because
					 * releases need rback */
	uint64_t came;			/* number of the next packet that
					 * arrives */
	struct dev_retry back_retry;	/* to import rback */
	uint8_t accept;			/* enum dev_accept */
	struct dev_retry space_retry;	/* to map rspace, which the packets in
					 * hidden wait for while at is not 0 */
	uint32_t hidden;		/* packets that came last, and that
					 * hal_rx_peek() does not find yet */
	/* the end */
	struct hal_rmem *rmems;		/* imports (hal_dev_mem.c) */
	int dying;			/* status that HAL_EV_DEAD will have, a
					 * negative fi_errno; 0: alive */
	uint64_t dying_at;		/* ns: when dying was set */
	bool gone;			/* its interface was released or its
					 * board is lost: nothing more arrives,
					 * none of its memory is accessed */
	bool disconnected;		/* disconnected from here: its packets
					 * are discarded */
	bool known;			/* the caller has a pointer to it */
	uint8_t ev_pending;		/* bit 1 << t: event t is not taken */
	int ev_status;			/* of HAL_EV_DEAD */
};

/* ---- Interfaces -------------------------------------------------------- */

/*
 * A transfer, in a slot of dev_if.dma. One piece of it is under way at a time.
 * Written by the thread of the interface, but for result.
 */
struct dev_xfer {
	struct hal_dma d;		/* as posted; rmem and peer NULL once
					 * it was cancelled */
	uint64_t token;			/* the caller's */
	uint64_t laddr, raddr;		/* global addresses of the two ends */
	uint64_t moved;			/* bytes done */
	uint64_t chunk;			/* bytes of the piece under way; 0: no
					 * piece is under way */
	uint64_t busy_since;		/* ns: when the engine was first found
					 * to be another process's; 0: it is
					 * not */
	uint32_t gen;			/* transfers of this slot so far, a part
					 * of the id at the driver */
	int status;			/* for the completion; -FI_EINPROGRESS
					 * while it runs */
	_Atomic int result;		/* of the piece: 0 under way, 1 done, or
					 * a negative fi_errno. Written by the
					 * thread that polls the engine */
	bool busy;			/* the slot is in use */
};

/* Content of the packetizer's buffer. */
enum dev_pif {
	DEV_PIF_FREE,			/* nothing whose result is unknown */
	DEV_PIF_DATA,
	DEV_PIF_HELLO,
	DEV_PIF_WAKE,
	DEV_PIF_ECHO,
};

/* State of the echo that proves that the packetizer transmits. */
enum dev_echo {
	DEV_ECHO_NONE,			/* none sent, or it arrived */
	DEV_ECHO_IN_PIF,
	DEV_ECHO_TAKEN,			/* the status shows ACK */
	DEV_ECHO_REFUSED,		/* the status shows NACK or nothing */
};

/* Counters of an interface, for dev_dump(). Packets, unless it says else. */
struct dev_stats {
	uint64_t sent;			/* written to the packetizer */
	uint64_t nacks;			/* refused */
	uint64_t queued;		/* that had to wait in dev_peer.queue */
	uint64_t resent;		/* written again after a refusal, or
					 * from the queue */
	uint64_t came;			/* read from the mailbox */
	uint64_t unknown;		/* of those: from no connected peer */
	uint64_t stored_at_end;		/* stored into a link page at its end */
	uint64_t overwritten;		/* statuses with OVERWR_BUF */
};

/*
 * An interface. hal_dev.c allocates it and frees it; the one thread that uses
 * the interface (law 1.2 of docs/hal.md) touches it.
 */
struct dev_if {
	struct hal_if i;		/* first member: the caller's view */
	struct hal_dev *dev;
	const struct hal_mmio_ops *io;	/* dev->io */
	struct hal_mmio *mm;		/* open kernel device that claimed it */
	struct hal_mmio_map mif, pif;	/* pages of mailbox and packetizer */
	struct hal_mmio_map *tables;	/* table of holders of each board, by
					 * its number; mm NULL: not mapped */
	struct hal_kdev_info info;	/* the driver's, of its board */
	uint64_t identity;		/* stamped into its packets */
	pid_t pid;			/* process that opened it */
	int epfd, event_fd, timer_fd, page_fd;
	struct hal_map *page_map;	/* the public page, i.page */
	/* peers */
	struct dev_peer *peers;		/* all, newest first */
	struct dev_peer *hash[DEV_PEERS_HASH];	/* by identity */
	struct dev_peer *poll_next;	/* next peer to poll; NULL: peers */
	struct dev_peer *lookup_next;	/* next peer to look up in its table;
					 * NULL: peers */
	uint64_t lookup_at;		/* ns: when the next look-up is due */
	uint64_t sessions;		/* peer objects so far */
	uint32_t npeers;		/* length of peers */
	uint32_t nevents;		/* events that are not taken */
	uint32_t ndying;		/* peers that are dying, not dead */
	uint32_t naccepting;		/* peers in DEV_ACCEPT_BACK */
	/* packetizer */
	enum dev_pif pif_holds;
	struct dev_peer *pif_peer;	/* destination of the packet in it;
					 * NULL: this interface, or a peer that
					 * was freed */
	struct dev_pkt pif_pkt;		/* copy of that packet */
	uint64_t pif_since;		/* ns: when PEND was first read for that
					 * packet; 0: not yet */
	uint64_t pif_answer;		/* HAL_PIF_ACK, HAL_PIF_NACK or 0, as
					 * the status showed last */
	bool closing;			/* in dev_if_close() */
	bool unproven;			/* no status shows yet that the packets
					 * since the last proof were
					 * transmitted */
	bool mute_logged;		/* logged that nothing is transmitted */
	bool stuck_logged;		/* logged that it cannot be cleared */
	uint8_t echo;			/* enum dev_echo */
	uint64_t echo_at;		/* ns: when the echo is due, or once it
					 * is sent, overdue; 0: not set */
	bool echo_illegal;		/* the last echo ended with ILLEGAL */
	uint8_t echoes_stuck;		/* echoes in a row without an answer
					 * that did not arrive */
	bool echo_logged;		/* logged that an echo has no answer */
	bool echoes_logged;		/* logged that so many had none */
	uint64_t echo_number;		/* payload of the last echo */
	uint64_t echo_came;		/* stats.came when the echo was sent */
	/* mailbox */
	uint64_t empty;			/* first word that an empty mailbox
					 * returns, as learnt */
	uint32_t invalid_run;		/* words read in a row that neither
					 * begin a packet nor equal empty */
	uint64_t idle_run;		/* packets in a row that changed
					 * nothing, in full batches */
	bool mbox_logged;			/* logged one of these two */
	struct unm_list backlog;	/* dev_peer.waiting of peers with
					 * packets that wait */
	bool armed;			/* between dev_arm() and dev_disarm() */
	bool signalled;			/* event_fd may be readable */
	/* transfers */
	uint32_t dma_busy;		/* slots in use */
	uint32_t dma_at;		/* slot that the next poll begins at */
	struct dev_xfer dma[DEV_DMA_DEPTH];
	bool busy_logged;		/* logged that another process has the
					 * engine */
	struct dev_stats stats;
};

static inline struct dev_if *dev_if(struct hal_if *hif)
{
	return (struct dev_if *)hif;
}

static inline struct dev_peer *dev_peer(struct hal_peer *peer)
{
	return (struct dev_peer *)peer;
}

/* The local back page, which the peer stores to; NULL: outbound half not
 * open. */
static inline struct dev_back *dev_back(struct dev_peer *peer)
{
	return peer->back.map.base;
}

/* The local link page, which the peer stores to; NULL: inbound half not
 * open. */
static inline struct dev_link *dev_rlink(struct dev_peer *peer)
{
	return peer->rlink.map.base;
}

/* Neither dead nor about to be declared dead. */
static inline bool dev_lives(const struct dev_peer *peer)
{
	return !peer->p.dead && peer->dying == 0;
}

/* No further packet of the peer arrives or is accepted. */
static inline bool dev_silent(const struct dev_peer *peer)
{
	return peer->gone || peer->disconnected;
}

#endif /* HAL_DEV_TYPES_H */
