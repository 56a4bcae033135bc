/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev.h - the device backend's own structures; private to hal_dev*.c.
 *
 *   hal_dev.c         device and interfaces: opening, service, sleeping
 *   hal_dev_util.c    clock, random numbers
 *   hal_dev_conf.c    the platform file
 *   hal_dev_pif.c     packetizer, queues of packets that wait
 *   hal_dev_ring.c    rings of received packets
 *   hal_dev_mbox.c    mailbox
 *   hal_dev_echo.c    does the packetizer transmit
 *   hal_dev_conn.c    connecting and accepting, receive space, words back
 *   hal_dev_table.c   which peers are alive, marks of those that end
 *   hal_dev_peer.c    peers: lists, events
 *   hal_dev_life.c    peers: polling, ends
 *   hal_dev_region.c  memory held and mapped
 *   hal_dev_mem.c     dmable memory, routes to that of peers
 *   hal_dev_dma.c     transfers
 *   hal_dev_engine.c  the cDMA engine where its registers are ours
 *   hal_mmio_dev.c    accesses, barriers and system calls on the silicon
 *   hal_dev_bus.c     a load that survives a bus error
 *
 * One direction of a pair of interfaces, from A to B: packets go by A's
 * packetizer into B's mailbox, whose reader sorts them into one ring per
 * sender. Beside them there are pages that the other side reaches by remote
 * stores: A's back page (on A's board, written by B), B's link page and receive
 * space (on B's board, written by A). A allocates all three, so that it may
 * send before B has looked, and tells B the first two in a HELLO packet; the
 * third is told in the link page.
 */
#ifndef HAL_DEV_H
#define HAL_DEV_H

#include <sys/types.h>

#include "hal/hal.h"
#include "hal/hal_map.h"
#include "hal/dev/hal_mmio.h"

#define DEV_WIRE	1u		/* raise when a layout below changes */
#define DEV_DEPTH_MAX	64u		/* packets per peer */
#define DEV_DMA_DEPTH	64
#define DEV_PEERS_HASH	64u
#define DEV_PAGE	4096u		/* link and back pages, tables */

/* ---- What travels ------------------------------------------------------ */

/*
 * Packet types of the HAL, HAL_PKT_RESERVED and up.
 * HELLO: payload = nonce of the receiver, reference of the sender's back page,
 * reference of the link page; flags = DEV_WIRE << 4 | log2(depth). The secret
 * of both pages is the receiver's nonce. WAKE carries nothing. ECHO: from an
 * interface to itself; payload = a number (hal_dev_echo.c).
 */
enum dev_pkt_type {
	DEV_PKT_HELLO = HAL_PKT_RESERVED,
	DEV_PKT_WAKE,
	DEV_PKT_ECHO,
};

struct dev_pkt {
	uint64_t w[HAL_PKT_WORDS];
};
_Static_assert(sizeof(struct dev_pkt) == 32, "a packet is 256 bits");

/* Link page: written by the sender, read by the receiver, whose memory it is.
 * magic and wire stay where they are in all versions. */
#define DEV_LINK_MAGIC	UINT32_C(0x4b4c4e55)	/* "UNLK" */
struct dev_link {
	uint32_t magic;
	uint32_t wire;			/* DEV_WIRE */
	uint64_t first;			/* number of the first packet */
	uint64_t space_bytes;
	uint64_t space_secret;
	_Atomic uint64_t space_ref;	/* 0: none yet */
	/* the end: packets from last on did not go by mailbox, they are here */
	uint64_t last;
	_Atomic uint64_t end;		/* 1 + number after the last; 0: none */
	uint64_t session;		/* of the sender's peer object, not 0 */
	struct dev_pkt words[DEV_DEPTH_MAX];
};
_Static_assert(sizeof(struct dev_link) <= DEV_PAGE, "a link is a page");
_Static_assert(offsetof(struct dev_link, words) == 64, "wire format");

/* Back page: written by the receiver, read by the sender, whose memory it is.
 * answer stays where it is in all versions. */
struct dev_back {
	_Atomic uint64_t answer;	/* enum dev_answer */
	uint64_t reserved[7];
	struct hal_back back;		/* closed: the session that ended */
};
_Static_assert(sizeof(struct dev_back) == 128, "wire format");

enum dev_answer {
	DEV_ANSWER_NONE = 0,
	DEV_ANSWER_WELCOME = 1,
	DEV_ANSWER_VERSION = 2,		/* another DEV_WIRE, depth or space */
	DEV_ANSWER_FAILED = 3,		/* no memory */
};

/* ---- Device ------------------------------------------------------------ */

struct hal_dev {
	struct hal hal;
	const struct hal_mmio_ops *io;
	struct hal_platform platform;
	struct hal_kdev_info info;	/* of the own board */
	struct hal_mmio *mm;		/* holds memory and the engine */
	struct hal_lock lock;		/* mm, mems */
	struct hal_mem *mems;
	struct dev_engine *engine;	/* NULL: transfers by the kernel */
	pid_t pid;
	uint32_t space_bytes;
	_Atomic uint32_t ifs_opened;	/* so far: where to look for one */
};

/* ---- Memory ------------------------------------------------------------ */

/* A region we hold and have mapped. */
struct dev_region {
	struct hal_mmio *mm;		/* NULL: none */
	struct hal_mmio_map map;
	uint64_t ref;
	uint32_t hold;			/* with mm NULL: of an import that
					 * goes on, or 0 */
};

struct hal_mem {
	struct hal_dev *dev;
	struct hal_mem *next, **pprev;
	struct dev_region region;
	uint64_t secret;
	uint64_t bytes;
};

/* A peer's region and its route. With refs 0 it is kept for the next import,
 * which only asks whether it is still there. While its route is being set up
 * (asked), hold is what the driver gave for that, or 0. */
struct hal_rmem {
	struct dev_peer *peer;
	struct hal_rmem *next;
	struct hal_key key;
	uint64_t bytes;
	uint32_t hold;
	int refs;
	bool asked;
	uint64_t asked_at;		/* ns; when it was asked for last */
};

static inline uint64_t dev_ref_gaddr(uint64_t ref)
{
	return ref & HAL_GADDR_MASK;
}

/* ---- Peers ------------------------------------------------------------- */

enum dev_hello {
	DEV_HELLO_NONE,			/* outbound half not open */
	DEV_HELLO_UNSENT,
	DEV_HELLO_IN_PIF,
	DEV_HELLO_TAKEN,		/* it is in the peer's mailbox */
};

enum dev_accept {
	DEV_ACCEPT_NONE,		/* inbound half not open */
	DEV_ACCEPT_BACK,		/* back page to be mapped */
	DEV_ACCEPT_DONE,
};

struct dev_peer {
	struct hal_peer p;		/* first: the caller's view */
	struct dev_peer *hash_next;	/* newest of an identity first */
	struct dev_peer *next, **pprev;	/* all of the interface */
	struct dev_peer *log_next;	/* in the interface's backlog */
	struct hal_sleep sleep;		/* tx: what the caller marked */
	uint64_t identity;		/* stamped into its packets */
	uint64_t dest;			/* of its mailbox */
	uint64_t session;		/* which of our objects, from 1 on */
	/* outbound */
	struct dev_region back;		/* our page it stores to */
	struct dev_region link;		/* its pages we store to */
	struct dev_region space;
	struct dev_pkt *queue;		/* refused or not tried, pkt_depth */
	uint32_t q_first, q_last;	/* free-running */
	uint64_t retry_at;		/* ns; back-off after a NACK */
	uint64_t refused_at;		/* ns; the first since an ACK */
	uint32_t backoff;		/* ns; 0: the last one was taken */
	bool refusal_told;		/* that it takes none for long */
	uint8_t hello;			/* enum dev_hello */
	bool wake;			/* WAKE to be sent */
	bool in_backlog;
	bool starved;			/* no memory for its receive space:
					 * said once */
	bool told_out;			/* CONNECTED was reported */
	/* inbound */
	struct dev_region rlink;	/* our page it stores to */
	struct dev_region rspace;	/* and our receive space for it */
	struct dev_region rback;	/* its page we store to */
	uint64_t hello_back;		/* reference of rback */
	struct hal_cell *cells;		/* the ring; p.rx.cells once accepted,
					 * when releases can be told */
	uint64_t came;			/* number of the next packet to come */
	uint64_t back_at;		/* ns; when to import rback again */
	uint32_t back_wait;		/* ns; back-off, 0: none so far */
	uint8_t accept;			/* enum dev_accept */
	/* the end */
	struct hal_rmem *rmems;
	int dying;			/* status to die with, 0: lives */
	uint64_t dying_at;		/* ns; since when */
	bool gone;			/* its interface is, or its board:
					 * nothing comes, nothing of it is
					 * accessed */
	bool cut;			/* by us: nothing more is taken */
	bool known;			/* the caller has the object */
	uint8_t ev_pending;		/* bit per enum hal_event_type */
	int ev_status;			/* of HAL_EV_DEAD */
};

/* ---- Interfaces -------------------------------------------------------- */

struct dev_xfer {
	struct hal_dma d;
	uint64_t token;
	uint64_t laddr, raddr;		/* global addresses */
	uint64_t moved;			/* bytes done */
	uint64_t chunk;			/* bytes under way, 0: none */
	uint64_t busy_since;		/* ns; when the engine was found to be
					 * another's, 0: it was not */
	uint32_t gen;			/* of this slot, in transfer ids */
	int status;			/* -FI_EINPROGRESS while it runs */
	_Atomic int result;		/* of the chunk, 1: done; whoever polls
					 * the engine stores it */
	bool busy;
};

enum dev_pif {
	DEV_PIF_FREE,
	DEV_PIF_DATA,
	DEV_PIF_HELLO,
	DEV_PIF_WAKE,
	DEV_PIF_ECHO,
};

/* Where the echo is that proves the packetizer to transmit. */
enum dev_echo {
	DEV_ECHO_NONE,
	DEV_ECHO_IN_PIF,
	DEV_ECHO_TAKEN,			/* by the status: it was acknowledged */
	DEV_ECHO_REFUSED,		/* by the status */
};

struct dev_stats {
	uint64_t sent, nacks, queued, resent, came, strange, last_words;
	uint64_t overwritten;		/* packets that met another's writes */
};

struct dev_if {
	struct hal_if i;		/* first: the caller's view */
	struct hal_dev *dev;
	const struct hal_mmio_ops *io;
	struct hal_mmio *mm;
	struct hal_mmio_map mif, pif;
	struct hal_mmio_map *tables;	/* who holds what, by board */
	struct hal_kdev_info info;
	uint64_t identity;
	pid_t pid;
	int epfd, event_fd, timer_fd, page_fd;
	struct hal_map *page_map;
	/* peers */
	struct dev_peer *peers;
	struct dev_peer *hash[DEV_PEERS_HASH];
	struct dev_peer *look, *life;	/* next one to look at, to check */
	uint64_t life_at;		/* ns; when to check the next */
	uint64_t sessions;		/* peer objects so far */
	uint32_t npeers, inbound_max;
	uint32_t nevents, ndying, naccepting;
	/* packetizer */
	enum dev_pif pif_holds;
	struct dev_peer *pif_peer;	/* NULL: it was freed meanwhile */
	struct dev_pkt pif_pkt;
	uint64_t pif_since;		/* ns; when PEND was found to last,
					 * 0: it was not */
	uint64_t pif_answer;		/* ACK, NACK or 0: of the last packet */
	bool unproven;			/* no status shows that what was sent
					 * was transmitted */
	bool mute_told;			/* that nothing is */
	bool stuck_told;		/* that it cannot be cleared */
	uint8_t echo;			/* enum dev_echo */
	uint64_t echo_at;		/* ns; when it is due, or overdue */
	uint64_t echo_number;
	uint64_t echo_came;		/* stats.came when it was sent */
	/* mailbox */
	uint64_t empty;			/* first word of an empty one */
	uint32_t nonsense;		/* words in a row that are no packet's
					 * and not that one */
	uint64_t strange_run;		/* packets in a row of nobody's */
	bool mbox_told;			/* that either is without end */
	struct dev_peer *backlog, **backlog_tail;
	bool armed;
	bool signalled;			/* event_fd may be readable */
	/* transfers */
	uint32_t dma_busy, dma_at;
	struct dev_xfer dma[DEV_DMA_DEPTH];
	bool busy_told;			/* that another has the engine */
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

/* Our page that a peer stores to, or NULL. */
static inline struct dev_back *dev_back(struct dev_peer *peer)
{
	return peer->back.map.base;
}

static inline struct dev_link *dev_rlink(struct dev_peer *peer)
{
	return peer->rlink.map.base;
}

static inline bool dev_lives(const struct dev_peer *peer)
{
	return !peer->p.dead && peer->dying == 0;
}

/* Nothing more can come of it. */
static inline bool dev_silent(const struct dev_peer *peer)
{
	return peer->gone || peer->cut;
}

/* hal_dev.c */
int dev_open_with(const struct hal_ops *ops, const struct hal_mmio_ops *io,
		  const struct hal_params *params, struct hal **hal);

/* hal_dev_util.c */
uint64_t dev_now(void);				/* ns */
uint64_t dev_random(void);			/* never 0 */

/* hal_dev_conf.c */
int dev_platform_probe(const struct hal_params *params,
		       struct hal_platform *platform);
const char *dev_platform_file(const struct hal_params *params);
int dev_platform_node(const struct hal_platform *platform, uint32_t board,
		      char *out, size_t room);
/* Says why a board's device cannot be opened; returns the HAL's error. */
int dev_explain_open(const struct hal_dev *dev, uint32_t board, int err);
void dev_explain_map(const struct hal_dev *dev, enum hal_kdev_block which,
		     int err);

/* hal_dev_pif.c */
bool dev_pif_idle(struct dev_if *dif, unsigned looks);
bool dev_pif_ready(struct dev_if *dif);		/* with looks enough to send */
void dev_echo_put(struct dev_if *dif, uint64_t number);
bool dev_hello_send(struct dev_peer *peer);
int dev_pkt_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len);
void dev_wake(struct hal_peer *hp);
void dev_last_words(struct dev_peer *peer);
void dev_wake_now(struct dev_peer *peer);
void dev_backlog_add(struct dev_peer *peer);
void dev_backlog_remove(struct dev_peer *peer);
void dev_backlog_run(struct dev_if *dif);

/* hal_dev_echo.c */
void dev_echo_run(struct dev_if *dif);

/* hal_dev_mbox.c */
unsigned dev_mbox_run(struct dev_if *dif, unsigned max);
/* Learn what an empty mailbox reads as; -FI_EIO after a line. */
int dev_mbox_learn(struct dev_if *dif);

/* hal_dev_ring.c */
int dev_ring_new(struct dev_peer *peer, uint64_t first, uint32_t depth);
void dev_ring_push(struct dev_peer *peer, const uint64_t w[HAL_PKT_WORDS]);
int dev_rx_pending(struct dev_if *dif);

/* hal_dev_conn.c */
int dev_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp);
void dev_hello_came(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS]);
void dev_accept_back(struct dev_peer *peer);
bool dev_space_map(struct dev_peer *peer);
int dev_space_ready(struct hal_peer *hp, uint32_t bytes);
void dev_space_write(struct hal_peer *hp, uint32_t off, const void *src,
		     size_t len);
void dev_space_barrier(struct hal_peer *hp);
int dev_back_barrier(struct hal_peer *hp);
void dev_back_store(struct hal_peer *hp, int word, uint64_t val);

/* hal_dev_peer.c */
struct dev_peer *dev_peer_of(struct dev_if *dif, uint64_t identity);
struct dev_peer *dev_peer_find(struct dev_if *dif, const struct hal_addr *addr);
int dev_peer_new(struct dev_if *dif, const struct hal_addr *addr,
		 uint64_t identity, struct dev_peer **peer);
void dev_peer_drop(struct dev_peer *peer);
void dev_peer_forget(struct dev_peer *peer);	/* in a forked child */
int dev_inbound_reserve(struct dev_if *dif);
void dev_event(struct dev_peer *peer, enum hal_event_type type, int status);
int dev_take_events(struct dev_if *dif, struct hal_event *ev, int max);

/* hal_dev_table.c */
void dev_doom(struct dev_peer *peer, int status);
void dev_cut(struct dev_peer *peer);
void dev_cut_all(struct dev_if *dif);
bool dev_late(const struct dev_peer *peer);
int dev_holder(struct dev_if *dif, uint32_t board, uint32_t iface,
	       struct hal_kdev_entry *entry);
int dev_holds(struct dev_peer *peer);
void dev_gone(struct dev_peer *peer);
int dev_stored(struct dev_peer *peer, const struct hal_mmio_map *map);

/* hal_dev_life.c */
void dev_peer_free(struct hal_peer *hp);
void dev_look_around(struct dev_if *dif);
void dev_bury(struct dev_if *dif);

/* hal_dev_region.c */
int dev_region_alloc(struct hal_mmio *mm, uint32_t board, uint64_t bytes,
		     uint64_t secret, uint64_t to, struct dev_region *region);
int dev_region_import(struct hal_mmio *mm, uint64_t ref, uint64_t secret,
		      struct dev_region *region, struct hal_kdev_import *imp);
void dev_region_abandon(struct hal_mmio *mm, struct dev_region *region);
void dev_region_drop(struct dev_region *region);
void dev_hold_drop(struct hal_mmio *mm, uint32_t hold);

/* hal_dev_mem.c */
int dev_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);
void dev_mem_free(struct hal_mem *mem);
int dev_mem_key(struct hal_mem *mem, struct hal_key *key);
int dev_mem_gaddr(struct hal_dev *dev, const void *addr, uint64_t len,
		  uint64_t *gaddr);
int dev_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **rmem);
void dev_mem_release(struct hal_rmem *rmem);
void dev_routes_trim(struct dev_if *dif);
void dev_rmems_free(struct dev_peer *peer);

/* hal_dev_dma.c */
int dev_dma_post(struct hal_if *hif, const struct hal_dma *dma,
		 uint64_t token);
int dev_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);
void dev_dma_cancel(struct dev_if *dif, struct dev_peer *peer);

/* hal_dev_engine.c */
int dev_engine_open(struct hal_dev *dev);
void dev_engine_close(struct hal_dev *dev);
int dev_engine_start(struct hal_dev *dev, struct dev_xfer *x, uint64_t src,
		     uint64_t dst, uint64_t max);
void dev_engine_poll(struct hal_dev *dev);
void dev_engine_cancel(struct hal_dev *dev, struct dev_xfer *x);

#endif /* HAL_DEV_H */
