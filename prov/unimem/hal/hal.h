/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal.h - what the Unimem hardware offers, and nothing else.
 *
 * Everything above this header (provider, GSAS) reaches boards, packets, remote
 * windows and the cDMA engine through the calls declared here; docs/hal.md
 * states the laws, test/conform/hal_conform.c checks them on every backend.
 *
 * Objects
 *   hal        the process's one connection to the hardware (reference counted)
 *   hal_if     an interface: one vmbox + packetizer pair on one board
 *   hal_peer   one remote interface as seen from one of ours: an outbound half
 *              (packets and stores we send), an inbound half (what it sends us)
 *   hal_mem    dmable memory of ours; hal_rmem: dmable memory of a peer
 *
 * Conventions: sizes and offsets are bytes; errors are negative fi_errno values
 * (rdma/fi_errno.h); outputs are set on success only. Objects of one hal_if may
 * be used by one thread at a time; different interfaces are independent;
 * hal_get/hal_put are thread-safe.
 *
 * Facts: packets and identity [D 5.1, 5.2], windows [D 2.1], cDMA [D 3], what a
 * send means and what may be reordered: docs/hal.md, section 13.
 */
#ifndef HAL_H
#define HAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>

#include <rdma/fi_errno.h>

#include "hal/hal_copy.h"

#define HAL_EXPORT	__attribute__((visibility("default")))
#define HAL_LINE	64		/* cache line, bytes */
#define HAL_PKT_MAX	56		/* widest payload of any backend */
#define HAL_PKT_RESERVED 0xC0		/* from here to the empty pattern the
					 * HAL's own types */
#define HAL_PKT_EMPTY	0xCA		/* type byte no packet may carry */

struct hal;
struct hal_if;
struct hal_peer;
struct hal_mem;
struct hal_rmem;
struct hal_window;

/* ---- Addresses ------------------------------------------------------- */

#define HAL_ADDR_VERSION	1
#define HAL_ADDR_ANY		0	/* nonce: whoever holds the interface */
#define HAL_IF_SERVICE		0	/* interface: the atomic service's */
#define HAL_IF_ANY		(-1)	/* any but the atomic service's */

/*
 * An interface's address: equal bytes, equal incarnation. The nonce makes an
 * address stale once its owner is gone, so that it never reaches the next job.
 * uid is the owner's user id in the owner's own user namespace.
 */
struct hal_addr {
	uint16_t version;		/* HAL_ADDR_VERSION */
	uint16_t board;
	uint32_t iface;			/* 1 .. caps.ifs_per_board, or
					 * HAL_IF_SERVICE */
	uint32_t uid;
	uint32_t reserved;		/* 0 */
	uint64_t nonce;			/* HAL_ADDR_ANY: any incarnation */
};
_Static_assert(sizeof(struct hal_addr) == 24, "address is wire format");

/* ---- Capabilities ---------------------------------------------------- */

enum hal_cap_flags {
	HAL_CAP_COHERENT = 1 << 0,	/* windows are coherent with the CPU */
	HAL_CAP_DMA_ANY	 = 1 << 1,	/* cDMA may reach non-dmable memory */
	HAL_CAP_EVENT	 = 1 << 2,	/* hal_if_fd() can wake a sleeper */
	HAL_CAP_ANY_BOARD = 1 << 3,	/* interfaces of every board are to be
					 * had, not of the own one only */
	HAL_CAP_ALIAS	 = 1 << 4,	/* hal_window.h: shared mappings */
};

struct hal_caps {
	const char *backend;		/* "emu", "sim", "dev" */
	const char *profile;		/* "host", "exanode", "board" */
	uint32_t flags;			/* enum hal_cap_flags */
	uint32_t boards;		/* boards in the system */
	uint32_t ifs_per_board;		/* interfaces a board can hand out,
					 * beside its service's */
	uint32_t pkt_payload;		/* packet bytes after the 8-byte head */
	uint32_t pkt_depth;		/* unreleased packets per peer, 2^n */
	uint32_t space_bytes;		/* receive space per peer */
	uint32_t dma_depth;		/* outstanding per interface */
};

/* ---- Parameters ------------------------------------------------------ */

/*
 * What the environment may choose. The names, defaults and ranges are the rows
 * of hal_param.h; hal_params_load() fills this from FI_UNIMEM_* variables and
 * reports a bad value in one line on stderr through hal_log.
 */
struct hal_params {
	char hal[16];			/* "auto", "emu", "sim", "dev" */
	char profile[16];		/* "host", "exanode" */
	int boards;			/* 0: the profile's default */
	int board;			/* -1: from the local rank */
	char dev[128];			/* platform file, "": the usual one */
	char sim[256];			/* what the register model is like */
	char fault[256];		/* fault decorator, "" = off */
	long seq_start;			/* first packet number, wrap tests */
};

/* ---- Packets --------------------------------------------------------- */

/*
 * A packet is an 8-byte head - identity of the sender in bits 0-47, stamped by
 * the trusted side, flags in 48-55, type in 56-63 - and caps.pkt_payload bytes.
 */
#define HAL_HEAD_ID_MASK	((UINT64_C(1) << 48) - 1)

static inline uint64_t hal_head(uint8_t type, uint8_t flags)
{
	return (uint64_t)type << 56 | (uint64_t)flags << 48;
}

static inline uint8_t hal_head_type(uint64_t head)
{
	return head >> 56;
}

static inline uint8_t hal_head_flags(uint64_t head)
{
	return head >> 48;
}

/*
 * One slot of a packet ring. In a ring the low 48 bits of head hold the packet
 * number plus one, so that a slot validates itself: no index is shared, and a
 * message costs one line. The reader replaces them by the sender's identity.
 */
struct hal_cell {
	_Atomic uint64_t head;
	uint8_t payload[HAL_PKT_MAX];
} __attribute__((aligned(HAL_LINE)));
_Static_assert(sizeof(struct hal_cell) == HAL_LINE, "a cell is a line");

#define HAL_BACK_WORDS	6		/* words the receiver may store back */

/*
 * Written by the receiver of a link, read by its sender. done counts packets
 * the receiver released; word[] is the caller's (credits, for the provider).
 */
struct hal_back {
	_Atomic uint64_t done;
	_Atomic uint64_t closed;	/* receiver's interface is closed */
	_Atomic uint64_t word[HAL_BACK_WORDS];
} __attribute__((aligned(HAL_LINE)));
_Static_assert(sizeof(struct hal_back) == HAL_LINE, "back words are a line");

/* A line of its own: read at every send, written only around a sleep. */
struct hal_sleep {
	_Atomic uint32_t asleep;	/* receiver wants hal_peer_wake() */
	_Atomic uint32_t tx_asleep;	/* so does the sender, when packets are
					 * released or a word stored back */
	_Atomic uint32_t tx_closed;	/* the sender takes its memory back */
} __attribute__((aligned(HAL_LINE)));

/* Outbound half of a peer. Hot fields first; cells NULL: use ops->pkt_send. */
struct hal_tx {
	struct hal_cell *cells;
	uint64_t next;			/* number of the next packet */
	uint64_t limit;			/* next may not reach beyond */
	uint32_t mask;			/* ring slots - 1 */
	bool open;			/* hal_connect() was called */
	struct hal_back *back;		/* local memory, peer stores to it */
	struct hal_sleep *sleep;
	uint8_t *space;			/* remote window, emulation only */
};

/* Inbound half of a peer: a ring in local memory. */
struct hal_rx {
	struct hal_cell *cells;		/* NULL: nothing came yet */
	uint64_t next;			/* number of the next packet */
	uint64_t told;			/* done as the sender knows it */
	uint32_t mask;
	struct hal_back *back;		/* remote; NULL: ops->back_store */
	struct hal_sleep *sleep;
	const uint8_t *space;		/* local receive space */
	uint64_t identity;		/* stamped into every head */
	bool held;			/* by hal_rx_hold() */
};

struct hal_peer {
	struct hal_rx rx;
	struct hal_tx tx;
	struct hal_if *hif;
	const struct hal_ops *ops;
	void *user;			/* the caller's */
	struct hal_addr addr;		/* nonce resolved once connected */
	uint32_t rx_slot;		/* index in hif->inbound[] */
	bool dead;			/* told by HAL_EV_DEAD */
	bool dma_any;			/* its ordinary memory can be reached */
};

struct hal_if {
	struct hal_peer **inbound;	/* peers with an open inbound half */
	uint32_t ninbound;
	const struct hal_ops *ops;
	const struct hal_caps *caps;
	struct hal *hal;
	void *user;			/* the caller's */
	void *page;			/* public page, readable by own user */
	struct hal_addr addr;
};

#define HAL_PAGE_BYTES	4096		/* size of hal_if.page */
#define HAL_PAGE_MAGIC	UINT32_C(0x50694e55)	/* "UNiP" */
#define HAL_PAGE_NAME	"unimem-page"	/* the memfd a monitor looks for */

/* Start of a public page, written once; the caller's part follows it. */
struct hal_page_head {
	_Atomic uint32_t magic;		/* HAL_PAGE_MAGIC, written last */
	uint16_t version;		/* HAL_ADDR_VERSION */
	uint16_t board;
	uint32_t iface;
	uint32_t pid;			/* in the owner's pid namespace */
	uint64_t nonce;
	char backend[8];
	char profile[16];
	uint8_t reserved[16];
};
_Static_assert(sizeof(struct hal_page_head) == 64, "page head is a line");

/* ---- Events ---------------------------------------------------------- */

enum hal_event_type {
	HAL_EV_INBOUND = 1,	/* peer opened its half towards us */
	HAL_EV_CONNECTED,	/* peer accepted ours, addr is resolved */
	HAL_EV_DEAD,		/* process died or interface closed: drain
				 * inbound packets, then hal_peer_free() */
};

struct hal_event {
	enum hal_event_type type;
	int status;		/* DEAD: why, negative fi_errno */
	struct hal_peer *peer;
};

/* ---- cDMA ------------------------------------------------------------ */

enum hal_dma_op { HAL_DMA_GET = 1, HAL_DMA_PUT };

/*
 * One transfer between local memory and a peer's. With rmem the remote side is
 * dmable and raddr an offset into it; without, raddr is an address in the
 * peer's process and needs peer->dma_any. local must stay valid until then.
 */
struct hal_dma {
	enum hal_dma_op op;
	struct hal_peer *peer;
	struct hal_rmem *rmem;
	uint64_t raddr;
	void *local;
	uint64_t len;
};

struct hal_dma_comp {
	uint64_t token;
	int status;		/* 0, -FI_ECANCELED (peer died, closed, ran
				 * exec()), -FI_EACCES (the peer's memory
				 * cannot be reached any more), -FI_EFAULT (one
				 * of the two addresses cannot), -FI_EIO */
};

/* Key of a dmable region as it travels in messages; opaque. */
struct hal_key {
	uint64_t word[2];
};

/* ---- Backend table --------------------------------------------------- */

struct hal_ops {
	const char *name;
	int (*open)(const struct hal_params *params, struct hal **hal);
	void (*close)(struct hal *hal);
	/* number: HAL_IF_ANY, HAL_IF_SERVICE, or that of the interface */
	int (*if_open)(struct hal *hal, int board, int number,
		       struct hal_if **hif);
	void (*if_close)(struct hal_if *hif);
	int (*service)(struct hal_if *hif, struct hal_event *ev, int max);
	int (*fd)(struct hal_if *hif);
	int (*arm)(struct hal_if *hif);
	void (*disarm)(struct hal_if *hif);
	int (*connect)(struct hal_if *hif, const struct hal_addr *to,
		       struct hal_peer **peer);
	void (*peer_free)(struct hal_peer *peer);
	/* hal_process.h; NULL: not known */
	int (*peer_process)(struct hal_peer *peer, uint64_t *id);
	void (*wake)(struct hal_peer *peer);
	/* needed where tx.cells, tx.space or rx.back are NULL */
	int (*pkt_send)(struct hal_peer *peer, uint64_t head,
			const uint64_t *w, unsigned nw,
			const void *data, size_t len);
	int (*space_ready)(struct hal_peer *peer, uint32_t bytes);
	void (*space_write)(struct hal_peer *peer, uint32_t off,
			    const void *src, size_t len);
	void (*space_barrier)(struct hal_peer *peer);
	void (*back_store)(struct hal_peer *peer, int word, uint64_t val);
	int (*back_barrier)(struct hal_peer *peer);
	void (*pump)(struct hal_if *hif);
	/* dmable memory and cDMA */
	int (*mem_alloc)(struct hal *hal, int board, size_t bytes,
			 struct hal_mem **mem, void **addr);
	void (*mem_free)(struct hal_mem *mem);
	int (*mem_key)(struct hal_mem *mem, struct hal_key *key);
	int (*mem_import)(struct hal_peer *peer, const struct hal_key *key,
			  struct hal_rmem **rmem);
	void (*mem_release)(struct hal_rmem *rmem);
	/* NULL: by transfers only */
	void *(*mem_window)(struct hal_rmem *rmem, uint64_t *bytes);
	/* hal_window.h; NULL: no HAL_CAP_ALIAS */
	int (*alias_key)(const void *addr, uint64_t len, uint32_t access,
			 struct hal_key *key);
	int (*alias_open)(const struct hal_key *key, uint64_t len,
			  uint32_t access, struct hal_window *win);
	void (*alias_close)(struct hal *hal, const struct hal_window *win);
	int (*dma_post)(struct hal_if *hif, const struct hal_dma *dma,
			uint64_t token);
	int (*dma_poll)(struct hal_if *hif, struct hal_dma_comp *comp, int max);
	void (*dump)(struct hal_if *hif, FILE *out);
};

/* First member of every backend's device object. */
struct hal {
	const struct hal_ops *ops;
	struct hal_caps caps;
	struct hal_params params;
	int own_board;
	int refs;
};

/* ---- Process and interfaces ------------------------------------------ */

/* Read FI_UNIMEM_* into *params. 0, or -FI_EINVAL after one line that names the
 * variable, its value and what is allowed. */
HAL_EXPORT int hal_params_load(struct hal_params *params);

/* The backend that the parameters choose, by name; nothing is opened, but
 * "auto" looks whether there are boards. */
HAL_EXPORT const char *hal_backend(const struct hal_params *params);

/* The process's HAL, opened at first use. params NULL: hal_params_load().
 * Errors: -FI_EINVAL, -FI_ENODEV, -FI_ENOMEM, each with one line logged. */
HAL_EXPORT int hal_get(const struct hal_params *params, struct hal **hal);
HAL_EXPORT void hal_put(struct hal *hal);

/* Where the HAL's one-line messages go; NULL: stderr. level 0 error, 1 info. */
typedef void (*hal_log_fn)(int level, const char *line);
HAL_EXPORT void hal_log_set(hal_log_fn fn);
HAL_EXPORT void hal_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Take a free interface of a board (-1: the process's own). Takes no thread; on
 * the emulation a system call for each number it finds taken. -FI_EBUSY: the
 * board has no free one; -FI_EINVAL: no such board, or another than the own
 * where HAL_CAP_ANY_BOARD is missing; -FI_EMFILE, -FI_ENOMEM: limits. */
static inline int hal_if_open(struct hal *hal, int board, struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_ANY, hif);
}

/* Take the interface of that number, 1 to caps.ifs_per_board. -FI_EADDRINUSE:
 * somebody has it, or the end of its last holder is not known to all yet;
 * -FI_EACCES: other users hold all its names; -FI_EINVAL: no such number; and
 * as above. */
static inline int hal_if_open_number(struct hal *hal, int board, int number,
				     struct hal_if **hif)
{
	return number < 1 || number > (int)hal->caps.ifs_per_board ?
	       -FI_EINVAL : hal->ops->if_open(hal, board, number, hif);
}

/*
 * Take interface 0 of a board, its atomic service's [D 2.2.3]: one like any
 * other, but that there is one, whoever has the rest, and that who looks for
 * the service knows its number. -FI_EBUSY: the board has a service, or its last
 * one's end is not known to all yet (told at level 1: another one is as good);
 * -FI_EACCES, -FI_ENOSYS: not for this process (other users hold all its
 * names), not by this board's driver; and as above.
 */
static inline int hal_if_open_service(struct hal *hal, int board,
				      struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_SERVICE, hif);
}

/* Give it back: peers see HAL_EV_DEAD after they drained what was sent;
 * outstanding transfers are dropped, every peer object is freed. */
static inline void hal_if_close(struct hal_if *hif)
{
	hif->ops->if_close(hif);
}

/*
 * House-keeping: new peers, deaths, wake-ups. Makes a system call; call it by
 * clock (some 20 us) and when something is stuck, never per message. Returns
 * the number of events stored (0 .. max).
 */
static inline int hal_if_service(struct hal_if *hif, struct hal_event *ev,
				 int max)
{
	return hif->ops->service(hif, ev, max);
}

/* A descriptor that becomes readable when hal_if_service has something to do or
 * a packet came after hal_if_arm(). Owned by the interface. */
static inline int hal_if_fd(struct hal_if *hif)
{
	return hif->ops->fd(hif);
}

/* Ask to be woken by the next packet, and by what peers marked with
 * hal_tx_sleep() before release or store back. 0: armed, sleeping on
 * hal_if_fd() is safe; -FI_EAGAIN: something is there already, of peers that
 * are not held, and it is not armed. */
static inline int hal_if_arm(struct hal_if *hif)
{
	return hif->ops->arm(hif);
}

static inline void hal_if_disarm(struct hal_if *hif)
{
	hif->ops->disarm(hif);
}

/* ---- Peers ----------------------------------------------------------- */

/*
 * Open the outbound half towards an interface. Packets and stores may be sent
 * at once, before the peer has looked; HAL_EV_CONNECTED or HAL_EV_DEAD follows.
 * If the peer opened its half first, the same object is returned.
 * -FI_EAGAIN: it cannot take a connection now, try again; -FI_ECONNREFUSED:
 * nobody holds that interface; -FI_EACCES: other users do; limits as above.
 */
static inline int hal_connect(struct hal_if *hif, const struct hal_addr *to,
			      struct hal_peer **peer)
{
	return hif->ops->connect(hif, to, peer);
}

/* Forget a peer (after HAL_EV_DEAD, or to give up on it). Its outstanding
 * transfers complete with -FI_ECANCELED first, from hal_dma_poll(). */
static inline void hal_peer_free(struct hal_peer *peer)
{
	peer->ops->peer_free(peer);
}

/* Fault points: where a test may stop or kill the process. */
#include "hal/hal_fault_point.h"

/*
 * Send one packet: nw 8-byte words, then len bytes of data. All or nothing,
 * never blocks, never drops. 0: accepted, order per peer kept; -FI_EAGAIN: this
 * peer cannot take it now. 8 * nw + len <= caps.pkt_payload. A dead peer's
 * packets go nowhere; its owner learns by HAL_EV_DEAD.
 */
static inline __attribute__((always_inline))
int hal_pkt_send(struct hal_peer *peer, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len)
{
	struct hal_tx *tx = &peer->tx;
	struct hal_cell *cell;

	if (__builtin_expect(tx->cells == NULL, 0))
		return peer->ops->pkt_send(peer, head, w, nw, data, len);
	if (__builtin_expect(tx->next == tx->limit, 0)) {
		/* pairs with the release of done in hal_rx_flush() */
		tx->limit = tx->mask + 1 +
			atomic_load_explicit(&tx->back->done,
					     memory_order_acquire);
		/* a limit the peer made up must not let us lap the ring */
		if (tx->limit - tx->next - 1 > tx->mask) {
			tx->limit = tx->next;
			return -FI_EAGAIN;
		}
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_CLAIMED);
	cell = &tx->cells[tx->next & tx->mask];
	for (unsigned i = 0; i < nw; i++)
		__builtin_memcpy(cell->payload + 8 * i, &w[i], 8);
	hal_copy_small(cell->payload + 8 * nw, data, len);
	HAL_FAULT_POINT(HAL_FAULT_POINT_COPIED);
	tx->next++;
	/* publishes the payload; pairs with the acquire in hal_rx_peek() */
	atomic_store_explicit(&cell->head,
			      head | (tx->next & HAL_HEAD_ID_MASK),
			      memory_order_release);
	HAL_FAULT_POINT(HAL_FAULT_POINT_PUBLISHED);
	/* no fence: a sleeper issues it for us, see hal_if_arm() */
	if (__builtin_expect(atomic_load_explicit(&tx->sleep->asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
	return 0;
}

/* Packets the peer has released, counted from the first one we sent. */
static inline uint64_t hal_tx_done(struct hal_peer *peer)
{
	/* pairs with the release in hal_rx_flush() */
	return atomic_load_explicit(&peer->tx.back->done,
				    memory_order_acquire);
}

/* Packets sent so far: the next one is released once done exceeds this. */
static inline uint64_t hal_tx_sent(const struct hal_peer *peer)
{
	return peer->tx.next;
}

/* About to sleep (or awake again): this peer shall wake us when it releases
 * packets or stores a word back. Call before hal_if_arm(), then look again. */
static inline void hal_tx_sleep(struct hal_peer *peer, bool on)
{
	if (peer->tx.sleep != NULL)
		/* ordered by the barrier in hal_if_arm() */
		atomic_store_explicit(&peer->tx.sleep->tx_asleep, on,
				      memory_order_relaxed);
}

/* Does the receiver want to be woken by the next packet? A hint. */
static inline bool hal_tx_wakes(const struct hal_peer *peer)
{
	return peer->tx.sleep == NULL ||
		/* as the look in hal_pkt_send(): orders nothing */
		atomic_load_explicit(&peer->tx.sleep->asleep,
				     memory_order_relaxed) != 0;
}

/* A word the receiver stored back to us with hal_rx_back(). */
static inline uint64_t hal_tx_back(struct hal_peer *peer, int word)
{
	/* pairs with the release in hal_rx_back() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_acquire);
}

/*
 * The next packet of an inbound half, or NULL. *head has the identity stamped.
 * The payload may be written by a hostile peer at any time: read each word once
 * (hal_cell_word) and check it.
 */
static inline const struct hal_cell *hal_rx_peek(struct hal_peer *peer,
						 uint64_t *head)
{
	struct hal_rx *rx = &peer->rx;
	struct hal_cell *cell = &rx->cells[rx->next & rx->mask];
	/* pairs with the release of head in hal_pkt_send() */
	uint64_t h = atomic_load_explicit(&cell->head, memory_order_acquire);

	if ((h & HAL_HEAD_ID_MASK) != ((rx->next + 1) & HAL_HEAD_ID_MASK))
		return NULL;
	*head = (h & ~HAL_HEAD_ID_MASK) | rx->identity;
	return cell;
}

static inline uint64_t hal_cell_word(const struct hal_cell *cell, unsigned i)
{
	return ((const volatile uint64_t *)cell->payload)[i];
}

/* The packet last peeked at, and the receive space it names, are consumed. */
static inline void hal_rx_release(struct hal_peer *peer)
{
	peer->rx.next++;
}

/* This peer's packets can not be taken now (or can again): who sleeps need not
 * be woken by them, nor be kept awake by those that are there. Not while armed;
 * before arming, look at those that are held no more. */
static inline void hal_rx_hold(struct hal_peer *peer, bool on)
{
	peer->rx.held = on;
}

/* The sender sleeps until we release or store something: wake it. */
static inline void hal_rx_wake(struct hal_peer *peer)
{
	struct hal_sleep *sleep = peer->rx.sleep;

	/* no fence: the sleeper issues it for us, see hal_if_arm() */
	if (__builtin_expect(sleep != NULL &&
			     atomic_load_explicit(&sleep->tx_asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
}

/* Tell the sender what was released since the last flush: once per burst. */
static inline void hal_rx_flush(struct hal_peer *peer)
{
	struct hal_rx *rx = &peer->rx;

	if (rx->told == rx->next)
		return;
	rx->told = rx->next;
	HAL_FAULT_POINT(HAL_FAULT_POINT_CREDIT);
	if (rx->back != NULL)
		/* slots may be reused; pairs with hal_pkt_send, hal_tx_done */
		atomic_store_explicit(&rx->back->done, rx->next,
				      memory_order_release);
	else
		peer->ops->back_store(peer, -1, rx->next);
	hal_rx_wake(peer);
}

/* Store a word where the sender finds it with hal_tx_back(). */
static inline void hal_rx_back(struct hal_peer *peer, int word, uint64_t val)
{
	if (peer->rx.back != NULL)
		/* pairs with the acquire in hal_tx_back() */
		atomic_store_explicit(&peer->rx.back->word[word], val,
				      memory_order_release);
	else
		peer->ops->back_store(peer, word, val);
	hal_rx_wake(peer);
}

/*
 * The same in one order with hal_tx_back_sync(): of two peers that each store a
 * word and then look at the other's, one at least sees the other's store. Wakes
 * nobody. On a board this takes a round trip: the word is stored, and then read
 * back. 0; -FI_EAGAIN: not known to be there, it may come and may not: store it
 * again, until 0 or HAL_EV_DEAD.
 */
static inline int hal_rx_back_sync(struct hal_peer *peer, int word,
				   uint64_t val)
{
	if (peer->rx.back == NULL) {
		peer->ops->back_store(peer, word, val);
		return peer->ops->back_barrier(peer);
	}
	/* the one order of sequential consistency is the point */
	atomic_store_explicit(&peer->rx.back->word[word], val,
			      memory_order_seq_cst);
	return 0;
}

static inline uint64_t hal_tx_back_sync(struct hal_peer *peer, int word)
{
	/* pairs with the store in hal_rx_back_sync() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_seq_cst);
}

/* Backends without a ring in memory fetch their packets here. */
static inline void hal_if_pump(struct hal_if *hif)
{
	if (hif->ops->pump != NULL)
		hif->ops->pump(hif);
}

/* Exchange the places of two peers in hif->inbound[]. */
static inline void hal_if_promote(struct hal_if *hif, uint32_t a, uint32_t b)
{
	struct hal_peer *peer = hif->inbound[a];

	hif->inbound[a] = hif->inbound[b];
	hif->inbound[a]->rx_slot = a;
	hif->inbound[b] = peer;
	peer->rx_slot = b;
}

static inline void hal_peer_wake(struct hal_peer *peer)
{
	peer->ops->wake(peer);
}

/* ---- Remote window: the receive space a peer keeps for us ------------- */

/* Make sure the first bytes of the space can be written: memory is taken by
 * need. Call before the first hal_space_write() beyond. 0, -FI_ENOMEM. */
static inline int hal_space_ready(struct hal_peer *peer, uint32_t bytes)
{
	return peer->ops->space_ready(peer, bytes);
}

/* Posted stores of len bytes at off; the range lies in caps.space_bytes. */
static inline void hal_space_write(struct hal_peer *peer, uint32_t off,
				   const void *src, size_t len)
{
	if (peer->tx.space != NULL)
		__builtin_memcpy(peer->tx.space + off, src, len);
	else
		peer->ops->space_write(peer, off, src, len);
}

/* Orders the stores above before the packet that names them. In the emulation
 * the packet's own release does it. */
static inline void hal_space_barrier(struct hal_peer *peer)
{
	if (peer->tx.space == NULL)
		peer->ops->space_barrier(peer);
}

/* Receive space a peer wrote for us; valid until the packet is released. */
static inline const void *hal_space(struct hal_peer *peer, uint32_t off)
{
	return peer->rx.space + off;
}

/* ---- dmable memory and cDMA ------------------------------------------ */

static inline int hal_mem_alloc(struct hal *hal, int board, size_t bytes,
				struct hal_mem **mem, void **addr)
{
	return hal->ops->mem_alloc(hal, board, bytes, mem, addr);
}

static inline void hal_mem_free(struct hal *hal, struct hal_mem *mem)
{
	hal->ops->mem_free(mem);
}

static inline int hal_mem_key(struct hal *hal, struct hal_mem *mem,
			      struct hal_key *key)
{
	return hal->ops->mem_key(mem, key);
}

/* Make a peer's region reachable. -FI_EAGAIN: its route is being set up, call
 * again; -FI_EKEYREJECTED: no such region, or of an older generation. */
static inline int hal_mem_import(struct hal_peer *peer,
				 const struct hal_key *key,
				 struct hal_rmem **rmem)
{
	return peer->ops->mem_import(peer, key, rmem);
}

static inline void hal_mem_release(struct hal_peer *peer, struct hal_rmem *rmem)
{
	peer->ops->mem_release(rmem);
}

/*
 * Start a transfer. Never completes inline, never calls back; an accepted token
 * yields exactly one completion from hal_dma_poll(), its data visible before.
 * -FI_EAGAIN: caps.dma_depth transfers are outstanding; -FI_EINVAL: bad range;
 * -FI_EACCES: no rmem, and this process may not access the peer's memory so.
 * Completions may come in any order.
 */
static inline int hal_dma_post(struct hal_if *hif, const struct hal_dma *dma,
			       uint64_t token)
{
	return hif->ops->dma_post(hif, dma, token);
}

/* Advance transfers by a bounded amount; returns completions stored. */
static inline int hal_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp,
			       int max)
{
	return hif->ops->dma_poll(hif, comp, max);
}

static inline void hal_dump(struct hal_if *hif, FILE *out)
{
	hif->ops->dump(hif, out);
}

#include "hal/hal_window.h"

#endif /* HAL_H */
