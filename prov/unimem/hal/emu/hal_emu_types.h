/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_types.h - the objects of the emulation: device, interface, peer,
 * connection, transfer. Structures and access functions only; private to
 * hal/emu.
 *
 * The files, each with a header of its own, from the bottom to the top. A file
 * calls only files above it in this list:
 *
 *   hal_emu_event.c    epoll set and event queue of an interface
 *   hal_emu_board.c    profiles, boards, and the memory nodes they lie on
 *   hal_emu_name.c     names of interfaces: taking them, finding their owners
 *   hal_emu_proof.c    which process is at the other end of a connection
 *   hal_emu_conn.c     connection objects, sending on them
 *   hal_emu_attach.c   access to ordinary memory of peers
 *   hal_emu_alias.c    second mappings of files that peers have mapped too
 *   hal_emu_dma.c      dmable memory and cDMA transfers
 *   hal_emu_link.c     peer objects, and links: ring and receive space
 *   hal_emu_connect.c  connecting to the name of an interface
 *   hal_emu_msg.c      the handshake and the other messages
 *   hal_emu_recv.c     accepting connections, reading messages
 *   hal_emu.c          device, interfaces, service, sleep
 *
 * A link is one direction of a pair of interfaces, a sealed memfd made by its
 * sender: a page of words the receiver stores back, the packet ring, the
 * receive space. The peers reach each other first over a local socket that
 * carries the descriptors and afterwards only wake-ups, imports and the end.
 * hal_emu_wire.h defines the messages.
 */
#ifndef HAL_EMU_TYPES_H
#define HAL_EMU_TYPES_H

#include <sys/types.h>

#include "hal/emu/hal_emu_wire.h"
#include "hal/hal.h"
#include "hal/hal_lock.h"
#include "hal/hal_map.h"

/* ---- Device ---------------------------------------------------------- */

struct hal_mem {
	struct hal_emu *emu;
	struct hal_map *map;
	uint64_t secret;		/* second word of the key */
	uint32_t index, gen;
	int fd;
};

struct emu_mem_slot {
	struct hal_mem *mem;		/* NULL: free */
	uint32_t gen;			/* of the present or next region */
};

struct hal_emu {
	struct hal hal;
	struct emu_geo geo;
	struct hal_lock lock;		/* mems */
	struct emu_mem_slot *mems;
	uint32_t nmems;
	pid_t pid;
	int pidfd;			/* our own, handed to peers */
	_Atomic uint32_t ifs_opened;	/* so far, also closed ones */
	long rank, nranks;		/* local ones, -1: not told */
	long start;			/* where to look for an interface */
	bool populate;			/* MADV_POPULATE_WRITE works here */
	bool membarrier;		/* registered for global barriers */
	bool proc_ours;			/* /proc has our pid namespace */
	struct emu_place *place;	/* boards on memory nodes, or NULL */
	uint64_t *word;			/* in a page of its own, NULL: none.
					 * Peers read it, and write what is
					 * there (hal_emu_attach.c) */
	uint64_t word_value;
};

/* ---- Interfaces ------------------------------------------------------ */

/* What an event of the epoll set is about; first member of its object. */
enum emu_src_kind { EMU_SRC_LISTEN = 1, EMU_SRC_CONN, EMU_SRC_PIDFD,
		    EMU_SRC_TIMER };

struct emu_src {
	enum emu_src_kind kind;
	int fd;				/* -1: not in the set */
};

enum emu_todo {
	EMU_TODO_ANSWER = 1 << 0,	/* conn->answer could not be sent yet */
	EMU_TODO_REPLY	= 1 << 1,	/* conn->reqs wait to be answered */
	EMU_TODO_WAKE	= 1 << 2,	/* a wake-up could not be sent yet */
};

/* What is said once per interface: others can make it happen at will. */
enum emu_said {
	EMU_SAID_STARVED,	/* descriptors ran out */
	EMU_SAID_GONE,		/* a peer is not there */
	EMU_SAID_VERSION,	/* another wire version */
	EMU_SAID_GEO,		/* another profile */
	EMU_SAID_BOARD,		/* a board we do not know */
	EMU_SAID_LINK,		/* a link that cannot be mapped */
	EMU_SAID_REFUSED,	/* a peer refuses us */
	EMU_SAID_UNSEEN,	/* of a peer in another pid namespace */
	EMU_SAID_MUTE,		/* too many who say nothing */
	EMU_SAID_FLIGHT,	/* too many descriptors on their way */
	EMU_SAID_SKIPPED,	/* another user holds a name of a peer */
	EMU_SAID_BLOCKED,	/* other users hold all of them */
};

struct emu_conn {
	struct emu_src src;
	struct emu_if *eif;
	struct emu_peer *peer;		/* NULL: no hello yet */
	struct emu_conn *next, **pprev;	/* eif->conns or eif->buried */
	pid_t pid;			/* the kernel's word; 0: not visible */
	uint32_t todo;			/* enum emu_todo */
	uint16_t answer;		/* type of the answer owed */
	bool bye;			/* the peer said it closes */
	bool mute;			/* accepted, and has not said hello */
	bool held;			/* its hello waits for a free place */
	bool crossed;			/* refused, and we have called it */
	uint8_t nreqs;			/* replies owed, oldest first */
	struct hal_key *reqs;
};

/* Descriptors of a received message; who takes one puts -1 in its place. */
struct emu_fds {
	int fd[EMU_FDS_MAX];
	int n;				/* that came, also more than fit */
	bool lost;			/* some did not fit into this process */
};

struct hal_rmem {
	struct emu_peer *peer;
	struct hal_rmem *next;
	struct hal_key key;
	struct hal_map *map;		/* NULL: no reply yet */
	uint64_t bytes;
	int status;			/* -FI_EAGAIN until the reply */
	int refs;
};

struct emu_peer {
	struct hal_peer p;		/* first: the caller's view */
	struct emu_peer *hash_next;
	struct emu_peer *ev_next;	/* in the event queue */
	struct emu_conn *out, *in;	/* opened by us; by the peer */
	struct hal_map *tx_map, *rx_map;
	struct emu_src pidsrc;
	struct hal_rmem *rmems;
	uint64_t probe_addr, probe_word;
	pid_t pid;			/* the kernel's word; 0: not visible */
	int ev_status;			/* of HAL_EV_DEAD */
	uint8_t ev_pending;		/* bit per enum hal_event_type */
	bool ev_queued;
	bool starved;			/* no memory for its receive space:
					 * said once */
	bool welcomed;			/* pidsrc.fd is its own hand-over */
	bool told_out;			/* CONNECTED was reported */
	bool met_first;			/* it answered before it called us: a
					 * hello is of another relation */
	bool refused;			/* in words, not by its end */
	bool ticks;			/* it takes no part in barriers */
	uint8_t nreqs;			/* imports unanswered */
	uint32_t woken;			/* sleep of the peer we ended last */
	uint32_t space;			/* bytes of receive space taken */
	int dying;			/* status to die with, 0: lives */
};

#define EMU_DMA_DEPTH	64
#define EMU_MET_MAX	64

struct emu_dma {
	struct hal_dma d;
	uint64_t token, done;
	int status;			/* -FI_EINPROGRESS while it runs */
	bool busy;
};

struct emu_if {
	struct hal_if i;		/* first: the caller's view */
	struct hal_emu *emu;
	pid_t pid;
	int epfd;
	int page_fd;
	int spare_fd;			/* given up to refuse at EMFILE */
	int proof_fd;			/* shows that the number is ours */
	struct emu_src listen, timer;
	struct hal_map *page_map;
	struct emu_conn *conns, **conns_tail;	/* oldest first */
	struct emu_conn *buried;
	struct emu_peer **hash;
	uint32_t hash_size, npeers;
	struct emu_peer *ev_head, **ev_tail;
	uint32_t inbound_max;
	uint32_t nmute, mute_max;	/* connections that said nothing */
	uint32_t nlinks;		/* made so far */
	uint32_t nfull;			/* calls that found a full queue */
	uint32_t nticks;		/* peers without part in barriers */
	uint32_t said;			/* bit per enum emu_said */
	uint32_t nmet;
	uint64_t met[EMU_MET_MAX];	/* nonces of peers that went */
	uint32_t ntodo;			/* connections that owe something */
	uint32_t ndying;
	uint32_t sleeps;		/* number of this sleep, never 0 */
	bool armed;
	bool place_free;		/* a peer went: try held connections */
	uint32_t dma_busy, dma_at;
	struct emu_dma dma[EMU_DMA_DEPTH];
};

static inline struct emu_if *emu_if(struct hal_if *hif)
{
	return (struct emu_if *)hif;
}

static inline struct emu_peer *emu_peer(struct hal_peer *peer)
{
	return (struct emu_peer *)peer;
}

/* Was it said before? From now on it was: further ones are for debugging. */
static inline bool emu_said(struct emu_if *eif, enum emu_said what)
{
	bool before = eif->said & 1u << what;

	eif->said |= 1u << what;
	return before;
}

#endif /* HAL_EMU_TYPES_H */
