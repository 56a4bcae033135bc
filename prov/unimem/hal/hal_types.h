/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_types.h - the objects of the HAL, and the table of functions of a
 * backend. Part of hal.h, which includes this file.
 *
 * Structures, constants and access functions only: callers of the HAL use them
 * by the functions of hal.h, backends fill them in.
 */
#ifndef HAL_TYPES_H
#define HAL_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/fi_errno.h>

#include "hal/hal_param.h"

#define HAL_LINE	64		/* cache line, bytes */
#define HAL_PKT_MAX	56		/* longest payload in one slot */
#define HAL_PKT_WIDE	(2 * HAL_PKT_MAX)	/* ... and in two */
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
	uint16_t board;			/* 0 .. caps.boards - 1, numbered
					 * through all hosts of a job */
	uint32_t iface;			/* 1 .. caps.ifs_per_board, or
					 * HAL_IF_SERVICE */
	uint32_t uid;			/* user id of the holder, in the
					 * holder's user namespace */
	uint32_t reserved;		/* 0 */
	uint64_t nonce;			/* HAL_ADDR_ANY: any holder */
};
_Static_assert(sizeof(struct hal_addr) == 24, "address is wire format");

/*
 * Where an interface is found from another host (docs/net.md). Only processes
 * with FI_UNIMEM_NET have it. Two interfaces are on the same host if their id
 * is the same. A process that knows the secret may connect: the secret travels
 * in addresses only, and no log line or public page shows it.
 */
struct hal_host {
	uint8_t ip[16];			/* IPv6, or IPv4 mapped to IPv6 */
	uint16_t port;			/* TCP port of the control connection */
	uint8_t id[6];			/* hash of boot and network namespace */
	uint8_t secret[16];		/* random; 0 where it is not known */
};
_Static_assert(sizeof(struct hal_host) == 40, "host is wire format");

#define HAL_ADDR_HOST_VERSION	2	/* of struct hal_addr_host */

/* Address with a host, as processes exchange it: addr.version is
 * HAL_ADDR_HOST_VERSION here and HAL_ADDR_VERSION everywhere else. */
struct hal_addr_host {
	struct hal_addr addr;
	struct hal_host host;
};
_Static_assert(sizeof(struct hal_addr_host) == 64,
	       "MPICH takes addresses of up to 64 bytes");

/* ---- Capabilities ---------------------------------------------------- */

enum hal_cap_flags {
	HAL_CAP_COHERENT = 1 << 0,	/* windows to memory of every board, not
					 * only of the own */
	HAL_CAP_DMA_ANY	 = 1 << 1,	/* cDMA may reach non-dmable memory */
	HAL_CAP_EVENT	 = 1 << 2,	/* hal_if_fd() wakes a sleeper */
	HAL_CAP_ANY_BOARD = 1 << 3,	/* hal_if_open() opens interfaces of
					 * every board, not only the own */
	HAL_CAP_ALIAS	 = 1 << 4,	/* hal_alias_*() of hal_window.h work */
	HAL_CAP_WIDE	 = 1 << 5,	/* hal_pkt_send_wide() works */
};

/* Set when the backend is opened, constant from then on. */
struct hal_caps {
	const char *backend;		/* "emu", "sim", "dev" */
	const char *profile;		/* "host", "exanode", "board"; with the
					 * timing model "exanode+model" */
	uint32_t flags;			/* enum hal_cap_flags */
	uint32_t boards;		/* boards in the system: of all hosts
					 * of a job */
	uint32_t ifs_per_board;		/* interfaces of a board, without the
					 * service's */
	uint32_t pkt_payload;		/* packet bytes after the 8-byte head */
	uint32_t pkt_wide;		/* the same of a wide packet, which a
					 * peer may send and which takes two
					 * slots; 0: there are none */
	uint32_t pkt_depth;		/* slots for unreleased packets per
					 * peer, 2^n */
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
 * One slot of a packet ring. In a ring the low 48 bits of head hold the number
 * of the packet's first slot plus one, so that the receiver sees in the slot
 * itself whether it is full: sender and receiver share no index, and a packet
 * costs one cache-line transfer. hal_rx_peek() replaces these bits by the
 * sender's identity.
 */
struct hal_cell {
	_Atomic uint64_t head;
	uint8_t payload[HAL_PKT_MAX];
} __attribute__((aligned(HAL_LINE)));
_Static_assert(sizeof(struct hal_cell) == HAL_LINE, "a cell is a line");

#define HAL_BACK_WORDS	6		/* words for hal_rx_back(): as many as
					 * the line of struct hal_back, which
					 * processes share, has space for. The
					 * provider uses words 0 to 4. */

/* Back words: the receiver of packets writes them, the sender reads them. */
struct hal_back {
	_Atomic uint64_t done;		/* slots the receiver has released */
	_Atomic uint64_t closed;	/* receiver's interface is closed */
	_Atomic uint64_t word[HAL_BACK_WORDS];	/* hal_rx_back(): the caller's
						 * use; provider: see
						 * UNM_PEER_BACK_LIMIT and the
						 * next macros */
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
} __attribute__((aligned(HAL_LINE)));

/* Outbound half of a peer; the fields of every send first. */
struct hal_tx {
	struct hal_cell *cells;		/* NULL: send with ops->pkt_send */
	uint64_t next;			/* number of the next slot to fill */
	uint64_t limit;			/* end of free space: next <= limit */
	uint32_t mask;			/* ring slots - 1 */
	bool open;			/* hal_connect() was called */
	struct hal_back *back;		/* local memory; the peer writes it */
	struct hal_sleep *sleep;	/* NULL: the peer is always notified */
	uint8_t *space;			/* the peer's receive space; NULL: write
					 * with ops->space_write */
	bool claims, demotes;		/* space is not NULL, and this processor
					 * has hal_line_claim(),
					 * hal_line_demote() */
};

/* Inbound half of a peer: a ring in local memory. */
struct hal_rx {
	struct hal_cell *cells;		/* NULL: not open */
	uint64_t next;			/* number of the next slot to read */
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
	const struct hal_host *host;	/* of a peer on another host, its
					 * secret 0 where the peer connected
					 * first; NULL: same host */
	uint32_t rx_slot;		/* index in hif->inbound[] */
	bool dead;			/* HAL_EV_DEAD is queued or reported */
	bool dma_any;			/* hal_dma_post() without rmem works */
	void *decorator;		/* for the use of hal_fault.c; NULL at
					 * first */
};

/* From hal_if_open() to hal_if_close(); one thread at a time may use it. */
struct hal_if {
	struct hal_peer **inbound;	/* peers with an open inbound half, to
					 * be polled with hal_rx_peek() */
	uint32_t ninbound;		/* entries of inbound[] */
	uint32_t inbound_max;		/* entries that inbound[] has memory
					 * for */
	uint32_t nlocal;		/* peers of the backend for which
					 * inbound[] has entries */
	uint32_t nremote;		/* peers on other hosts, likewise */
	const struct hal_ops *ops;
	const struct hal_caps *caps;
	struct hal *hal;
	void *user;			/* for the caller's use */
	/* The caller sets it. Does it wait for anything of this peer, of whose
	 * end it has to be notified? Connections to idle peers on other hosts
	 * may be closed unless it does (docs/net.md, section 10). NULL: it
	 * does. Any function that makes progress may call it, until
	 * hal_peer_free() of the peer returns. If it is set, slots that were
	 * released to peers on other hosts wait for a frame that carries them
	 * (section 3). */
	bool (*peer_waits)(struct hal_peer *peer);
	/* The caller sets it. Does it wait for a packet of this peer, which
	 * otherwise is idle? Such peers keep their connection while others are
	 * idle, unless they ask to close it. NULL: it does not. Called as
	 * peer_waits. */
	bool (*peer_awaited)(struct hal_peer *peer);
	void *page;			/* public page (HAL_PAGE_BYTES), which
					 * processes of this user may read */
	struct hal_addr addr;		/* of this interface */
	const struct hal_host *host;	/* for peers on other hosts; NULL: no
					 * FI_UNIMEM_NET */
	void *net;			/* for the use of hal/net */
	void *decorator;		/* for the use of hal_fault.c; NULL at
					 * first */
};

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
				 * -FI_EFAULT: raddr or local is not mapped, or
				 * without rmem the kernel has no memory for
				 * the access now; -FI_EIO */
};

/* Key of a dmable region, to be sent in messages; its words are opaque. */
struct hal_key {
	uint64_t word[2];
};

/* ---- Backend table --------------------------------------------------- */

/* The functions of a backend, which the inline functions of hal.h call; these
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
	/* NULL: no peers on other hosts */
	int (*connect_host)(struct hal_if *hif, const struct hal_addr *to,
			    const struct hal_host *host,
			    struct hal_peer **peer);
	void (*peer_free)(struct hal_peer *peer);
	/* hal_process.h; NULL: the platform does not know processes */
	int (*peer_process)(struct hal_peer *peer, uint64_t *id);
	void (*wake)(struct hal_peer *peer);
	/* NULL: the backend does not suspend peers */
	bool (*resume)(struct hal_peer *peer);
	/* NULL if resume is */
	bool (*may_resume)(struct hal_if *hif);
	/* called only where tx.cells, tx.space or rx.back is NULL; a wide
	 * packet has more than caps.pkt_payload bytes */
	int (*pkt_send)(struct hal_peer *peer, uint64_t head,
			const uint64_t *w, unsigned nw,
			const void *data, size_t len);
	int (*space_ready)(struct hal_peer *peer, uint32_t bytes);
	/* NULL: the memory stays until the peer is freed */
	void (*space_trim)(struct hal_peer *peer, uint32_t bytes);
	void (*space_write)(struct hal_peer *peer, uint32_t off,
			    const void *src, size_t len);
	void (*space_barrier)(struct hal_peer *peer);
	void (*back_store)(struct hal_peer *peer, int word, uint64_t val);
	int (*back_barrier)(struct hal_peer *peer);
	void (*pump)(struct hal_if *hif);	/* NULL: nothing to do */
	/* dmable memory and cDMA */
	int (*mem_alloc)(struct hal *hal, int board, size_t bytes,
			 struct hal_mem **mem, void **addr);
	/* NULL: dmable memory is the HAL's own only */
	int (*mem_adopt)(struct hal *hal, int fd, void *addr, size_t bytes,
			 struct hal_mem **mem);
	void (*mem_free)(struct hal_mem *mem);
	int (*mem_key)(struct hal_mem *mem, struct hal_key *key);
	/* NULL: imports have windows instead */
	int (*mem_open)(struct hal *hal, const struct hal_key *key,
			struct hal_mem **mem, void **addr);
	/* is this range inside one dmable region of this process, allocated,
	 * adopted or opened? hal/net asks, for transfers with other hosts */
	bool (*mem_covers)(struct hal *hal, const void *addr, uint64_t len);
	int (*mem_import)(struct hal_peer *peer, const struct hal_key *key,
			  struct hal_rmem **rmem);
	void (*mem_release)(struct hal_rmem *rmem);
	uint64_t (*mem_bytes)(const struct hal_rmem *rmem);
	/* NULL: the processor cannot access imported memory; returns NULL where
	 * it cannot access this region */
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
	uint32_t first_board;		/* of the boards that the backend has */
	uint32_t far_boards;		/* boards of other hosts, which it does
					 * not have: of caps.boards */
	int refs;			/* users; under the lock of hal.c */
	void *net;			/* for the use of hal/net */
};

/* Is this a board of this host? Else it is on another host, or there is none of
 * this number. */
static inline bool hal_board_here(const struct hal *hal, uint32_t board)
{
	return board >= hal->first_board && board - hal->first_board <
		hal->caps.boards - hal->far_boards;
}

#endif /* HAL_TYPES_H */
