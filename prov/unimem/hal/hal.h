/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal.h - the functions of the Unimem hardware, and nothing else.
 *
 * The provider and GSAS reach boards, packets, remote windows and the cDMA
 * engine only through the calls declared here. docs/hal.md defines their laws;
 * test/conform/hal_conform.c checks these on every backend.
 *
 * Objects
 *   hal        the hardware as one process uses it (reference counted)
 *   hal_if     an interface: one mailbox and one packetizer of a board
 *   hal_peer   a remote interface as a local one sees it. The outbound half
 *              sends packets and stores to the peer, the inbound half receives
 *              what the peer sends.
 *   hal_mem    dmable memory of this process; hal_rmem: that of a peer
 *
 * Conventions: sizes and offsets are bytes; errors are negative fi_errno values
 * (rdma/fi_errno.h); outputs are set on success only. One thread at a time may
 * use a hal_if and its peers; different interfaces are independent. Any thread
 * may call hal_get() and hal_put().
 *
 * [D n] is section n of ExaNoDe deliverable D3.6: packets and identity [D 5.1,
 * 5.2], windows [D 2.1], cDMA [D 3]. docs/hal.md, section 13: what a send means
 * and what may be reordered.
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
#include "hal/hal_export.h"
#include "hal/hal_log.h"
#include "hal/hal_param.h"

#define HAL_LINE	64		/* cache line, bytes */
#define HAL_PKT_MAX	56		/* widest payload of any backend */
#define HAL_PKT_RESERVED 0xC0		/* packet types from here to
					 * HAL_PKT_EMPTY are the HAL's */
#define HAL_PKT_EMPTY	0xCA		/* no packet has this type */

struct hal;
struct hal_if;
struct hal_peer;
struct hal_mem;
struct hal_rmem;
struct hal_window;

/* ---- Addresses ------------------------------------------------------- */

#define HAL_ADDR_VERSION	1
#define HAL_ADDR_ANY		0	/* nonce: any holder of the interface */
#define HAL_IF_SERVICE		0	/* interface of the atomic service */
#define HAL_IF_ANY		(-1)	/* any interface but the service's */

/*
 * Address of an interface. Two addresses with equal bytes name the same holder
 * of the interface. The nonce is random and belongs to one holder, so that an
 * address never reaches a later holder.
 */
struct hal_addr {
	uint16_t version;		/* HAL_ADDR_VERSION */
	uint16_t board;			/* 0 .. caps.boards - 1 */
	uint32_t iface;			/* 1 .. caps.ifs_per_board, or
					 * HAL_IF_SERVICE */
	uint32_t uid;			/* user id of the holder, in the
					 * holder's user namespace */
	uint32_t reserved;		/* 0 */
	uint64_t nonce;			/* HAL_ADDR_ANY: any holder */
};
_Static_assert(sizeof(struct hal_addr) == 24, "address is wire format");

/* ---- Capabilities ---------------------------------------------------- */

enum hal_cap_flags {
	HAL_CAP_COHERENT = 1 << 0,	/* windows are coherent with the CPU */
	HAL_CAP_DMA_ANY	 = 1 << 1,	/* cDMA may reach non-dmable memory */
	HAL_CAP_EVENT	 = 1 << 2,	/* hal_if_fd() wakes a sleeper */
	HAL_CAP_ANY_BOARD = 1 << 3,	/* hal_if_open() opens interfaces of
					 * every board, not only the own */
	HAL_CAP_ALIAS	 = 1 << 4,	/* hal_alias_*() of hal_window.h work */
};

/* Set when the backend is opened, constant from then on. */
struct hal_caps {
	const char *backend;		/* "emu", "sim", "dev" */
	const char *profile;		/* "host", "exanode", "board" */
	uint32_t flags;			/* enum hal_cap_flags */
	uint32_t boards;		/* boards in the system */
	uint32_t ifs_per_board;		/* interfaces of a board, without the
					 * service's */
	uint32_t pkt_payload;		/* packet bytes after the 8-byte head */
	uint32_t pkt_depth;		/* unreleased packets per peer, 2^n */
	uint32_t space_bytes;		/* receive space per peer */
	uint32_t dma_depth;		/* transfers at once, per interface */
};

/* ---- Packets --------------------------------------------------------- */

/*
 * A packet is an 8-byte head and caps.pkt_payload bytes. Head: bits 0-47
 * identity of the sender, which the hardware (emulation: the receiver's HAL)
 * sets, not the sender; 48-55 flags; 56-63 type.
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
 * number plus one, so that the receiver sees in the slot itself whether it is
 * full: sender and receiver share no index, and a packet costs one cache-line
 * transfer. hal_rx_peek() replaces these bits by the sender's identity.
 */
struct hal_cell {
	_Atomic uint64_t head;
	uint8_t payload[HAL_PKT_MAX];
} __attribute__((aligned(HAL_LINE)));
_Static_assert(sizeof(struct hal_cell) == HAL_LINE, "a cell is a line");

#define HAL_BACK_WORDS	6		/* words for hal_rx_back() */

/* Back words: the receiver of packets writes them, the sender reads them. */
struct hal_back {
	_Atomic uint64_t done;		/* packets the receiver has released */
	_Atomic uint64_t closed;	/* receiver's interface is closed */
	_Atomic uint64_t word[HAL_BACK_WORDS];	/* hal_rx_back(): the caller's
						 * use; provider: credits */
} __attribute__((aligned(HAL_LINE)));
_Static_assert(sizeof(struct hal_back) == HAL_LINE, "back words are a line");

/*
 * Sleep flags of a link, on a cache line of their own: they are read at every
 * send and release, and written only around a sleep.
 */
struct hal_sleep {
	_Atomic uint32_t asleep;	/* not 0: the receiver sleeps until a
					 * packet comes; ops->wake wakes it */
	_Atomic uint32_t tx_asleep;	/* not 0: the sender sleeps until
					 * a packet is released or a word
					 * stored back */
	_Atomic uint32_t tx_closed;	/* the sender has freed this peer: its
					 * memory may hold other data now */
} __attribute__((aligned(HAL_LINE)));

/* Outbound half of a peer; the fields of every send first. */
struct hal_tx {
	struct hal_cell *cells;		/* NULL: send with ops->pkt_send */
	uint64_t next;			/* number of the next packet */
	uint64_t limit;			/* end of free space: next <= limit */
	uint32_t mask;			/* ring slots - 1 */
	bool open;			/* hal_connect() was called */
	struct hal_back *back;		/* local memory; the peer writes it */
	struct hal_sleep *sleep;	/* NULL: the peer is always notified */
	uint8_t *space;			/* the peer's receive space; NULL: write
					 * with ops->space_write */
};

/* Inbound half of a peer: a ring in local memory. */
struct hal_rx {
	struct hal_cell *cells;		/* NULL: not open */
	uint64_t next;			/* number of the next packet */
	uint64_t flushed;		/* value of next that the sender has got
					 * from hal_rx_flush() */
	uint32_t mask;			/* ring slots - 1 */
	struct hal_back *back;		/* the peer's; NULL: ops->back_store */
	struct hal_sleep *sleep;	/* NULL: the peer needs no wake-up */
	const uint8_t *space;		/* local receive space */
	uint64_t identity;		/* of the sender, set in every head */
	bool held;			/* throttled by hal_rx_hold() */
};

/*
 * A backend makes it at HAL_EV_INBOUND or hal_connect(), and frees it in
 * hal_peer_free() or hal_if_close(). The thread that uses hif may use it.
 */
struct hal_peer {
	struct hal_rx rx;
	struct hal_tx tx;
	struct hal_if *hif;
	const struct hal_ops *ops;
	void *user;			/* for the caller's use */
	struct hal_addr addr;		/* nonce set once connected */
	uint32_t rx_slot;		/* index in hif->inbound[] */
	bool dead;			/* HAL_EV_DEAD is queued or reported */
	bool dma_any;			/* hal_dma_post() without rmem works */
};

/* From hal_if_open() to hal_if_close(); one thread at a time may use it. */
struct hal_if {
	struct hal_peer **inbound;	/* peers with an open inbound half, to
					 * be polled with hal_rx_peek() */
	uint32_t ninbound;		/* entries of inbound[] */
	const struct hal_ops *ops;
	const struct hal_caps *caps;
	struct hal *hal;
	void *user;			/* for the caller's use */
	void *page;			/* public page (HAL_PAGE_BYTES), which
					 * processes of this user may read */
	struct hal_addr addr;		/* of this interface */
};

#include "hal/hal_page.h"

/* ---- Events ---------------------------------------------------------- */

enum hal_event_type {
	HAL_EV_INBOUND = 1,	/* the peer has connected: the inbound half is
				 * open and in hif->inbound[] */
	HAL_EV_CONNECTED,	/* the peer has accepted our connection; addr
				 * has its nonce */
	HAL_EV_DEAD,		/* its process ended or closed the interface:
				 * read the packets that are there, then
				 * call hal_peer_free() */
};

struct hal_event {
	enum hal_event_type type;
	int status;		/* HAL_EV_DEAD: reason, negative fi_errno */
	struct hal_peer *peer;
};

/* ---- cDMA ------------------------------------------------------------ */

enum hal_dma_op { HAL_DMA_GET = 1, HAL_DMA_PUT };

/*
 * One transfer between local memory and memory of a peer. The local memory must
 * stay valid until hal_dma_poll() reports the completion.
 */
struct hal_dma {
	enum hal_dma_op op;
	struct hal_peer *peer;
	struct hal_rmem *rmem;	/* dmable memory of the peer; NULL: ordinary
				 * memory of its process: peer->dma_any */
	uint64_t raddr;		/* offset in rmem; without rmem an address in
				 * the process of the peer */
	void *local;
	uint64_t len;		/* bytes, may be 0 */
};

struct hal_dma_comp {
	uint64_t token;		/* from hal_dma_post() */
	int status;		/* 0; -FI_ECANCELED: the peer ended, closed, or
				 * called exec(); -FI_EACCES: this process may
				 * no longer access the peer's memory;
				 * -FI_EFAULT: raddr or local is not mapped;
				 * -FI_EIO */
};

/* Key of a dmable region, to be sent in messages; its words are opaque. */
struct hal_key {
	uint64_t word[2];
};

/* ---- Backend table --------------------------------------------------- */

/* The functions of a backend, which the inline functions below call; these
 * define what each does. A comment here says when an entry may be NULL. */
struct hal_ops {
	const char *name;
	int (*open)(const struct hal_params *params, struct hal **hal);
	void (*close)(struct hal *hal);
	/* number: HAL_IF_ANY, HAL_IF_SERVICE, or an interface's number */
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
	/* hal_process.h; NULL: the platform does not know processes */
	int (*peer_process)(struct hal_peer *peer, uint64_t *id);
	void (*wake)(struct hal_peer *peer);
	/* called only where tx.cells, tx.space or rx.back is NULL */
	int (*pkt_send)(struct hal_peer *peer, uint64_t head,
			const uint64_t *w, unsigned nw,
			const void *data, size_t len);
	int (*space_ready)(struct hal_peer *peer, uint32_t bytes);
	void (*space_write)(struct hal_peer *peer, uint32_t off,
			    const void *src, size_t len);
	void (*space_barrier)(struct hal_peer *peer);
	void (*back_store)(struct hal_peer *peer, int word, uint64_t val);
	int (*back_barrier)(struct hal_peer *peer);
	void (*pump)(struct hal_if *hif);	/* NULL: nothing to do */
	/* dmable memory and cDMA */
	int (*mem_alloc)(struct hal *hal, int board, size_t bytes,
			 struct hal_mem **mem, void **addr);
	void (*mem_free)(struct hal_mem *mem);
	int (*mem_key)(struct hal_mem *mem, struct hal_key *key);
	int (*mem_import)(struct hal_peer *peer, const struct hal_key *key,
			  struct hal_rmem **rmem);
	void (*mem_release)(struct hal_rmem *rmem);
	/* NULL: the processor cannot access imported memory */
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

/* First member of every backend's device object. One per process, from the
 * first hal_get() to the last hal_put(); constant except for refs. */
struct hal {
	const struct hal_ops *ops;
	struct hal_caps caps;
	struct hal_params params;
	int own_board;			/* 0 .. caps.boards - 1 */
	int refs;			/* users; under the lock of hal.c */
};

/* ---- Process and interfaces ------------------------------------------ */

/* Name of the backend that the parameters select. "auto" is "dev" if this host
 * has boards, else "emu". Opens nothing. */
HAL_EXPORT const char *hal_backend(const struct hal_params *params);

/* Take a reference to the HAL of this process; the first call opens it with
 * params (NULL: those of hal_params_load()), later calls ignore params. 0;
 * -FI_EINVAL, -FI_ENODEV, -FI_ENOMEM or -FI_EMFILE after a log line. Any
 * thread. */
HAL_EXPORT int hal_get(const struct hal_params *params, struct hal **hal);

/* Release a reference; the last one closes the HAL, whose interfaces must be
 * closed already. Any thread. */
HAL_EXPORT void hal_put(struct hal *hal);

/* Open a free interface of a board (-1: the own board). Starts no thread. The
 * emulation makes one system call for each number that is in use. -FI_EBUSY: no
 * interface is free; -FI_EINVAL: no such board, or not the own board although
 * HAL_CAP_ANY_BOARD is missing; -FI_EMFILE, -FI_ENOMEM. Errors are logged. */
static inline int hal_if_open(struct hal *hal, int board, struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_ANY, hif);
}

/* Open the interface of this number, 1 to caps.ifs_per_board. -FI_EADDRINUSE: a
 * process has it, or some peer has not yet learnt that its last holder ended;
 * -FI_EACCES: other users hold all its names; -FI_EINVAL: no such number; other
 * errors as hal_if_open(). */
static inline int hal_if_open_number(struct hal *hal, int board, int number,
				     struct hal_if **hif)
{
	return number < 1 || number > (int)hal->caps.ifs_per_board ?
	       -FI_EINVAL : hal->ops->if_open(hal, board, number, hif);
}

/*
 * Open interface 0 of a board, which is reserved for the board's atomic service
 * [D 2.2.3], so that clients know its number. Otherwise it is an interface like
 * any other. -FI_EBUSY, with a log line at level 1 only: the board has a
 * service, or some peer has not yet learnt that the last one ended; -FI_EACCES:
 * this process may not be the service (emulation: other users hold all names);
 * -FI_ENOSYS: the board's driver has no service; other errors as hal_if_open().
 */
static inline int hal_if_open_service(struct hal *hal, int board,
				      struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_SERVICE, hif);
}

/* Close an interface. Its peers get HAL_EV_DEAD, and can still read the packets
 * that were sent. Outstanding transfers end without a completion; every peer
 * object of the interface is freed. */
static inline void hal_if_close(struct hal_if *hif)
{
	hif->ops->if_close(hif);
}

/*
 * Accept connections, detect ended peers, and send what was blocked. Stores up
 * to max events and returns their number. This is a system call: call it every
 * 20 us or so and while sends are blocked, not for each message.
 */
static inline int hal_if_service(struct hal_if *hif, struct hal_event *ev,
				 int max)
{
	return hif->ops->service(hif, ev, max);
}

/* A descriptor that becomes readable when hal_if_service() has work, or when a
 * packet comes after hal_if_arm(). The interface owns it. */
static inline int hal_if_fd(struct hal_if *hif)
{
	return hif->ops->fd(hif);
}

/* Make hal_if_fd() readable at the next packet, and at the next release or
 * stored word of peers marked with hal_tx_sleep(). 0: armed, the caller may
 * sleep; -FI_EAGAIN: not armed, because there is a packet of a peer that is not
 * held, or work for hal_if_service(). */
static inline int hal_if_arm(struct hal_if *hif)
{
	return hif->ops->arm(hif);
}

/* End what hal_if_arm() began. Does nothing if the interface is not armed. */
static inline void hal_if_disarm(struct hal_if *hif)
{
	hif->ops->disarm(hif);
}

/* ---- Peers ----------------------------------------------------------- */

/*
 * Open the outbound half to an interface. Packets and stores may be sent at
 * once; HAL_EV_CONNECTED or HAL_EV_DEAD follows. If the peer has connected
 * first, its object is returned, and so it is for a second call.
 * -FI_EAGAIN: the peer cannot accept now, try again; -FI_ECONNREFUSED: no
 * process holds that interface; -FI_EACCES: only other users do; -FI_EINVAL: no
 * valid address; -FI_EMFILE, -FI_ENOMEM.
 */
static inline int hal_connect(struct hal_if *hif, const struct hal_addr *to,
			      struct hal_peer **peer)
{
	return hif->ops->connect(hif, to, peer);
}

/* Free a peer, after HAL_EV_DEAD or at any time before. Its outstanding
 * transfers complete with -FI_ECANCELED in later calls of hal_dma_poll(). */
static inline void hal_peer_free(struct hal_peer *peer)
{
	peer->ops->peer_free(peer);
}

#include "hal/hal_fault_point.h"

/*
 * Send one packet: nw 8-byte words, then len bytes of data, 8 * nw + len <=
 * caps.pkt_payload. head is from hal_head(). Never blocks. 0: the packet is
 * accepted; the peer gets packets in the order of their acceptance, and all of
 * them unless it dies, which HAL_EV_DEAD reports. -FI_EAGAIN: nothing was sent,
 * because the peer has no free slot now.
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
		/* done is the peer's: a wrong value must not let next run more
		 * than one ring ahead */
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
	/* the sleeper issues the processor's fence for both, see hal_if_arm();
	 * this is the compiler's */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&tx->sleep->asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
	return 0;
}

/* Number of packets that the peer has released; compare hal_tx_sent(). */
static inline uint64_t hal_tx_done(struct hal_peer *peer)
{
	/* pairs with the release in hal_rx_flush() */
	return atomic_load_explicit(&peer->tx.back->done,
				    memory_order_acquire);
}

/* Number of packets sent so far, from the same start as hal_tx_done(): the next
 * packet is released when hal_tx_done() exceeds the present value. */
static inline uint64_t hal_tx_sent(const struct hal_peer *peer)
{
	return peer->tx.next;
}

/* Ask this peer for a wake-up when it releases packets or stores a word back
 * (on), or no longer. Call before hal_if_arm(); after hal_if_arm() check
 * hal_tx_done() and hal_tx_back() once more, and then sleep. */
static inline void hal_tx_sleep(struct hal_peer *peer, bool on)
{
	if (peer->tx.sleep != NULL)
		/* ordered by the barrier in hal_if_arm() */
		atomic_store_explicit(&peer->tx.sleep->tx_asleep, on,
				      memory_order_relaxed);
}

/* Does the peer sleep until a packet comes? The answer may be out of date. */
static inline bool hal_tx_wakes(const struct hal_peer *peer)
{
	return peer->tx.sleep == NULL ||
		/* a hint orders nothing */
		atomic_load_explicit(&peer->tx.sleep->asleep,
				     memory_order_relaxed) != 0;
}

/* Word 0 .. HAL_BACK_WORDS - 1 that the peer stored with hal_rx_back(). */
static inline uint64_t hal_tx_back(struct hal_peer *peer, int word)
{
	/* pairs with the release in hal_rx_back() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_acquire);
}

/*
 * The next packet of an inbound half, or NULL if none has come. *head has the
 * sender's identity. A hostile peer may change the payload at any time: read
 * each word once, with hal_cell_word(), and check the copy.
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

/* Word i of a packet's payload, read exactly once. */
static inline uint64_t hal_cell_word(const struct hal_cell *cell, unsigned i)
{
	return ((const volatile uint64_t *)cell->payload)[i];
}

/* Release the packet that hal_rx_peek() returned, and the receive space that
 * the packet names. hal_rx_flush() notifies the sender. */
static inline void hal_rx_release(struct hal_peer *peer)
{
	peer->rx.next++;
}

/* Throttle (on) or resume this peer. While throttled its packets stay in the
 * ring, wake no sleeper, and do not keep hal_if_arm() from succeeding. Call
 * this only while the interface is not armed. After resuming, poll the peer's
 * ring before arming. */
static inline void hal_rx_hold(struct hal_peer *peer, bool on)
{
	peer->rx.held = on;
}

/* Wake the peer if it sleeps until packets are released or a word is stored. */
static inline void hal_rx_wake(struct hal_peer *peer)
{
	struct hal_sleep *sleep = peer->rx.sleep;

	/* after the store of what wakes; the sleeper issues the processor's
	 * fence for both, see hal_if_arm() */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(sleep != NULL &&
			     atomic_load_explicit(&sleep->tx_asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
}

/* Notify the sender of all packets released so far. One call per burst of
 * packets saves cache-line transfers. */
static inline void hal_rx_flush(struct hal_peer *peer)
{
	struct hal_rx *rx = &peer->rx;

	if (rx->flushed == rx->next)
		return;
	rx->flushed = rx->next;
	HAL_FAULT_POINT(HAL_FAULT_POINT_CREDIT);
	if (rx->back != NULL)
		/* slots may be reused; pairs with hal_pkt_send, hal_tx_done */
		atomic_store_explicit(&rx->back->done, rx->next,
				      memory_order_release);
	else
		peer->ops->back_store(peer, -1, rx->next);
	hal_rx_wake(peer);
}

/* Store word 0 .. HAL_BACK_WORDS - 1, which the sender reads with
 * hal_tx_back(), and wake a sleeping sender. */
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
 * Store a word in one total order with hal_tx_back_sync(): if two peers each
 * store a word and then read the word of the other, at least one of them reads
 * the new value. Wakes no sleeper. On a board this is a round trip: the word is
 * stored and read back. 0: stored; -FI_EAGAIN: not known whether it is stored,
 * so call again until 0 or HAL_EV_DEAD.
 */
static inline int hal_rx_back_sync(struct hal_peer *peer, int word,
				   uint64_t val)
{
	if (peer->rx.back == NULL) {
		peer->ops->back_store(peer, word, val);
		return peer->ops->back_barrier(peer);
	}
	/* seq_cst: one total order with the load in hal_tx_back_sync() */
	atomic_store_explicit(&peer->rx.back->word[word], val,
			      memory_order_seq_cst);
	return 0;
}

/* Read a word that the peer stored with hal_rx_back_sync(). */
static inline uint64_t hal_tx_back_sync(struct hal_peer *peer, int word)
{
	/* pairs with the store in hal_rx_back_sync() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_seq_cst);
}

/* Fetch packets into the rings, where the hardware does not write them there.
 * Call before polling the peers of inbound[]. */
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

/* Wake the peer if it sleeps. */
static inline void hal_peer_wake(struct hal_peer *peer)
{
	peer->ops->wake(peer);
}

/* ---- Remote window: the receive space of a peer ----------------------- */

/* Allocate the first bytes of the peer's receive space, if they are not yet.
 * Call before a hal_space_write() beyond what was allocated. 0, -FI_ENOMEM. */
static inline int hal_space_ready(struct hal_peer *peer, uint32_t bytes)
{
	return peer->ops->space_ready(peer, bytes);
}

/* Store len bytes at offset off of the peer's receive space, without waiting
 * for them to arrive; off + len <= caps.space_bytes. */
static inline void hal_space_write(struct hal_peer *peer, uint32_t off,
				   const void *src, size_t len)
{
	if (peer->tx.space != NULL)
		__builtin_memcpy(peer->tx.space + off, src, len);
	else
		peer->ops->space_write(peer, off, src, len);
}

/* Make the stores above visible to the peer before packets that are sent after
 * this call. In the emulation the release of the packet does that. */
static inline void hal_space_barrier(struct hal_peer *peer)
{
	if (peer->tx.space == NULL)
		peer->ops->space_barrier(peer);
}

/* Local receive space that the peer wrote; valid until the packet that names it
 * is released. */
static inline const void *hal_space(struct hal_peer *peer, uint32_t off)
{
	return peer->rx.space + off;
}

/* Print the state of an interface and of its peers, for people to read. */
static inline void hal_dump(struct hal_if *hif, FILE *out)
{
	hif->ops->dump(hif, out);
}

#include "hal/hal_dma.h"
#include "hal/hal_window.h"

#endif /* HAL_H */
