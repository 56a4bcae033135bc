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
 *   hal_emu_stamp.c    times of arrival, under the timing model
 *   hal_emu_engine.c   the cDMA engine of a board, under the timing model
 *   hal_emu_link.c     peer objects, and links: ring and receive space
 *   hal_emu_sleep.c    sleeping until a packet comes
 *   hal_emu_connect.c  connecting to the name of an interface
 *   hal_emu_msg.c      the handshake and the other messages
 *   hal_emu_recv.c     accepting connections, reading messages
 *   hal_emu_model.c    the timing model: transfers, sleeping
 *   hal_emu.c          device, interfaces, service
 *
 * A link is one direction between two interfaces: a sealed memfd that the
 * sender makes, with the back words, the packet ring and the receive space
 * (hal_emu_link.c). Two peers first connect over a local socket, which carries
 * the descriptors of the links; later it carries only wake-ups, imports and the
 * end of the connection. hal_emu_wire.h defines the messages.
 *
 * Unless a comment says otherwise, the objects of an interface are used by the
 * thread that uses the interface, and there are no locks.
 */
#ifndef HAL_EMU_TYPES_H
#define HAL_EMU_TYPES_H

#include <sys/types.h>

#include "hal/emu/hal_emu_wire.h"
#include "hal/hal_fault_point.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/hal_map.h"
#include "hal/hal_model.h"
#include "hal/hal_types.h"
#include "util/unm_list.h"

/* ---- Device ---------------------------------------------------------- */

/* A local dmable region, from hal_mem_alloc(), hal_mem_adopt() or
 * hal_mem_open() to hal_mem_free(); constant. */
struct hal_mem {
	struct hal_emu *emu;
	struct hal_map *map;		/* NULL: memory of hal_mem_adopt() */
	void *addr;			/* where the region is mapped ... */
	size_t len;			/* ... and its bytes */
	struct hal_key key;		/* of hal_mem_open(): the owner's, which
					 * opens nothing in this process */
	uint32_t index;			/* entry of emu->mems[] */
	uint32_t board;			/* whose memory it is */
	int fd;				/* memfd of the region; -1: of
					 * hal_mem_open() */
};

/* An entry of the table of local regions. */
struct emu_mem_slot {
	struct hal_mem *mem;		/* NULL: free */
	uint32_t gen;			/* number of regions the entry has had;
					 * a key with another one is old */
};

/* The timing model (hal_emu_model.c), from emu_board_init() to
 * emu_board_fini(). Constant, except for the engines. */
struct emu_model {
	struct hal_model figures;
	struct hal_ops ops;		/* what replaces *base */
	const struct hal_ops *base;	/* the table of the emulation */
	struct hal_lock lock;		/* guards engines */
	struct unm_list engines;	/* cDMA engines of boards that have an
					 * open interface (hal_emu_engine.c) */
};

/* The device: one per process, from hal_get() to hal_put(). Constant after it
 * is opened, except for mems, imports and ifs_opened; any thread may read
 * it. */
struct hal_emu {
	struct hal hal;			/* must be first */
	struct emu_geo geo;		/* of all links of this process */
	struct hal_lock lock;		/* guards mems, nmems, imports */
	struct emu_mem_slot *mems;	/* local dmable regions */
	uint32_t nmems;			/* entries of mems[], also free ones */
	struct unm_list imports;	/* hal_rmem.imported of all regions that
					 * interfaces of the process have
					 * imported */
	pid_t pid;			/* process that opened the device; a
					 * forked child has another */
	int pidfd;			/* of this process, sent to peers */
	_Atomic uint32_t ifs_opened;	/* by this process so far */
	long rank, nranks;		/* on this host, hal_launcher_ranks() */
	long start;			/* first interface number to try, from
					 * 0: a rank, or 0 */
	bool populate;			/* MADV_POPULATE_WRITE works */
	bool claims, demotes;		/* hal_line_can_claim(), _demote() */
	bool membarrier;		/* this process takes part in global
					 * expedited membarriers */
	bool proc_ours;			/* /proc shows this pid namespace */
	struct emu_place *place;	/* memory nodes of boards, or NULL */
	struct emu_model *model;	/* NULL: no timing model */
	uint64_t *word;			/* in a page of its own; NULL: none.
					 * Peers read it, and write the same
					 * value back (hal_emu_attach.c) */
	uint64_t word_value;		/* random value of *word */
};

/* ---- Interfaces ------------------------------------------------------ */

enum emu_src_kind {
	EMU_SRC_LISTEN = 1,		/* emu_if.listen: a connection came */
	EMU_SRC_CONN,			/* emu_conn.src: a message or the end */
	EMU_SRC_PIDFD,			/* emu_peer.pidsrc: the process ended */
	EMU_SRC_TIMER,			/* emu_if.timer: see check_later() */
};

/* A descriptor in the epoll set of an interface; part of the object that an
 * event of the descriptor concerns. */
struct emu_src {
	enum emu_src_kind kind;
	int fd;				/* -1: none, not in the set */
};

/* Messages of a connection that the next service has to send. */
enum emu_todo {
	EMU_TODO_ANSWER = 1 << 0,	/* conn->answer, before any other
					 * message */
	EMU_TODO_REPLY	= 1 << 1,	/* EMU_MEM_REP to conn->reqs */
	EMU_TODO_WAKE	= 1 << 2,	/* EMU_WAKE */
};

/* Log lines that appear once per interface, because other processes can cause
 * them as often as they like; see emu_said(). */
enum emu_said {
	EMU_SAID_STARVED,	/* no descriptor is free (RLIMIT_NOFILE) */
	EMU_SAID_GONE,		/* the interface of an address is not found */
	EMU_SAID_VERSION,	/* a peer has another wire version */
	EMU_SAID_GEO,		/* a peer has another profile */
	EMU_SAID_BOARD,		/* a peer is on a board beyond caps.boards */
	EMU_SAID_LINK,		/* a peer's link cannot be mapped */
	EMU_SAID_REFUSED,	/* a peer refuses the connection */
	EMU_SAID_UNSEEN,	/* a peer's process cannot be identified */
	EMU_SAID_MUTE,		/* too many connections without a HELLO */
	EMU_SAID_FLIGHT,	/* too many descriptors in unread messages */
	EMU_SAID_SKIPPED,	/* another user holds a name of a peer */
	EMU_SAID_BLOCKED,	/* other users hold all names of a peer */
};

/*
 * A connection. The interface owns it: in eif->conns until emu_conn_close(), in
 * eif->closed_conns until emu_conns_free().
 */
struct emu_conn {
	struct emu_src src;		/* must be first */
	struct emu_if *eif;
	struct emu_peer *peer;		/* NULL: HELLO not taken, or closed */
	struct emu_conn *next, **pprev;	/* in the list that has it */
	pid_t pid;			/* process at the other end, from the
					 * kernel; 0: in no visible namespace */
	uint32_t todo;			/* bits of enum emu_todo */
	uint16_t answer;		/* EMU_WELCOME or EMU_LINK_OK: the type
					 * of EMU_TODO_ANSWER */
	bool bye;			/* EMU_BYE came */
	bool mute;			/* accepted, and no HELLO taken yet */
	bool held;			/* not in the epoll set: its HELLO stays
					 * unread until an older peer object
					 * with its address is freed */
	bool crossed;			/* its HELLO is refused, while this
					 * interface connects to that peer */
	uint8_t nreqs;			/* entries of reqs[], oldest first */
	struct hal_key *reqs;		/* [EMU_REQS_MAX] keys of EMU_MEM_REQ
					 * that are not answered; NULL: none */
};

/* Descriptors of a received message. A function that keeps one stores -1 in its
 * place; the receiver closes those that are not -1. */
struct emu_fds {
	int fd[EMU_FDS_MAX];		/* -1: none */
	int n;				/* number received; may be more than
					 * EMU_FDS_MAX, in a wrong message */
	bool lost;			/* the kernel dropped some, because this
					 * process has no free descriptors */
};

/* A region of a peer that was imported, or is being imported. In peer->rmems
 * until the last user releases it. */
struct hal_rmem {
	struct emu_peer *peer;
	struct hal_rmem *next;		/* in peer->rmems, newest first */
	struct unm_list imported;	/* in hal_emu.imports, if map is set */
	struct hal_key key;
	struct hal_map *map;		/* NULL: not imported */
	uint64_t bytes;			/* size, from the reply */
	uint32_t board;			/* whose memory it is, from the reply */
	int status;			/* -FI_EAGAIN until the reply; then 0 or
					 * the error to report */
	int refs;			/* imports and transfers that use it */
	uint64_t route_due;		/* ns, when the local engine has the
					 * route to it; 0: it has */
};

/* A peer, from emu_peer_new() to emu_peer_drop(). In the hash table of its
 * interface. */
struct emu_peer {
	struct hal_peer p;		/* must be first */
	struct emu_peer *hash_next;
	struct unm_list event;		/* in eif->events, while ev_pending is
					 * not 0 */
	struct emu_conn *out;		/* opened by this process, or NULL */
	struct emu_conn *in;		/* opened by the peer, or NULL */
	struct hal_map *tx_map, *rx_map;	/* links; NULL: half not open */
	struct emu_src pidsrc;		/* pidfd of the peer's process */
	struct hal_rmem *rmems;		/* imported regions */
	uint64_t probe_addr, probe_word;	/* address and value of the
						 * peer's hal_emu.word */
	pid_t pid;			/* as emu_conn.pid */
	int ev_status;			/* status of HAL_EV_DEAD */
	uint8_t ev_pending;		/* queued events: bit number is enum
					 * hal_event_type */
	bool starved;			/* the last emu_space_ready() found no
					 * memory, which was logged */
	bool welcomed;			/* pidsrc.fd came from the peer itself,
					 * not from the listening socket */
	bool connected;			/* HAL_EV_CONNECTED is queued */
	bool met_first;			/* the peer answered before it connected
					 * to us: a HELLO from this address is
					 * of a later peer object */
	bool refused;			/* by a message of the peer, not by the
					 * end of the connection */
	bool ticks;			/* the peer takes no part in barriers: a
					 * timer ends each sleep after 1 ms, see
					 * emu_arm() */
	uint8_t nreqs;			/* imports that are not answered */
	uint32_t woken;			/* number of the peer's sleep that the
					 * last EMU_WAKE ended */
	uint32_t space;			/* receive space allocated, bytes */
	int dying;			/* status for HAL_EV_DEAD at the end of
					 * this service, or when the last packet
					 * has arrived; 0: alive */
	struct emu_timed *timed;	/* hal_emu_stamp.h; NULL: no timing
					 * model, or no half open */
};

#define EMU_DMA_DEPTH	64		/* transfers of an interface */
#define EMU_MET_MAX	64		/* freed peers that are remembered */

/* A transfer, from emu_dma_post() until its completion is stored. */
struct emu_dma {
	struct hal_dma d;
	uint64_t token;			/* of the caller */
	uint64_t done;			/* bytes moved so far */
	int status;			/* -FI_EINPROGRESS until it ends */
	bool busy;			/* false: the entry is free */
};

/* An interface, from emu_if_open() to emu_if_close(). */
struct emu_if {
	struct hal_if i;		/* must be first */
	struct hal_emu *emu;
	pid_t pid;			/* process that opened it; in a forked
					 * child getpid() differs */
	int epfd;			/* epoll set, for hal_if_fd() */
	int page_fd;			/* memfd of the public page */
	int spare_fd;			/* closed when no descriptor is free, to
					 * accept and refuse; -1: none */
	int proof_fd;			/* socket that proves who holds the
					 * number (hal_emu_proof.c) */
	struct emu_src listen, timer;
	struct hal_map *page_map;
	struct emu_conn *conns, **conns_tail;	/* oldest first */
	struct emu_conn *closed_conns;	/* closed, freed after this service */
	struct emu_peer **hash;		/* peers by address */
	uint32_t hash_size;		/* 2^n, or 0 */
	uint32_t npeers;		/* in hash[] */
	struct unm_list events;		/* emu_peer.event of peers with queued
					 * events */
	uint32_t nmute, mute_max;	/* connections with mute set, and how
					 * many are allowed */
	uint32_t nlinks;		/* links made so far */
	uint32_t nfull;			/* connects that found a full queue */
	uint32_t nticks;		/* peers with ticks set, plus 1 if this
					 * process has no membarrier */
	uint32_t said;			/* logged: bits of enum emu_said */
	uint32_t nmet;			/* peers freed so far */
	uint64_t met[EMU_MET_MAX];	/* nonces of the last of them */
	uint32_t ntodo;			/* connections with todo not 0 */
	uint32_t ndying;		/* peers with dying set, not dead yet */
	uint32_t sleeps;		/* number of the present or last sleep,
					 * never 0 while armed */
	bool armed;			/* between hal_if_arm() and disarm */
	uint64_t check_at;		/* ns, when the timer expires, or did;
					 * 0: it was never set */
	uint64_t check_ns;		/* from arming to then; 0: the least */
	uint64_t check_taken;		/* packets taken when last armed */
	bool closing;			/* in emu_if_close() */
	bool place_free;		/* a peer was freed: the next service
					 * tries connections with held set */
	struct emu_times *times;	/* hal_emu_stamp.h; NULL: no timing
					 * model */
	uint32_t dma_busy;		/* entries of dma[] in use */
	uint32_t dma_at;		/* next entry for emu_dma_poll() */
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

#define EMU_LINK_CLOSED_OFF	320	/* bytes; a line that no send reads */

/* The word of a link that is 1 once its sender has freed the peer: what this
 * process reads of the sender's memory may be other data. */
static inline _Atomic uint32_t *emu_link_closed(const struct hal_map *link)
{
	return (_Atomic uint32_t *)((uint8_t *)link->addr +
				    EMU_LINK_CLOSED_OFF);
}

/* Was this line logged before? Notes that it is logged now. The caller logs
 * repetitions at a lower level, or not at all. */
static inline bool emu_said(struct emu_if *eif, enum emu_said what)
{
	bool before = eif->said & 1u << what;

	eif->said |= 1u << what;
	return before;
}

#endif /* HAL_EMU_TYPES_H */
