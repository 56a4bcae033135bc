/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu.h - the emulation's own structures; private to hal*.c.
 *
 *   hal_emu.c       device and interfaces: names, service, events, sleeping
 *   hal_emu_board.c profiles, boards and where their memory lies
 *   hal_emu_sock.c  connections between interfaces: names, descriptors, ends
 *   hal_emu_msg.c   what is said on them: the handshake, imports
 *   hal_emu_name.c  names of interfaces, and who holds them
 *   hal_emu_proof.c who is at their other ends
 *   hal_emu_link.c  links: the memory packets and stores travel through
 *   hal_emu_dma.c   dmable memory and cDMA
 *   hal_emu_attach.c ordinary memory of peers
 *   hal_emu_alias.c memory that peers have mapped from the same file
 *   hal_map.c       one mapping per segment and process
 *
 * A link is one direction of a pair of interfaces, a sealed memfd made by its
 * sender: a page of words the receiver stores back, the packet ring, the
 * receive space. The peers reach each other first over a local socket that
 * carries the descriptors and afterwards only wake-ups, imports and the end.
 */
#ifndef HAL_EMU_H
#define HAL_EMU_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "hal/hal.h"
#include "hal/hal_backend.h"
#include "hal/hal_limit.h"
#include "hal/hal_lock.h"
#include "hal/hal_map.h"

/* ---- Device ---------------------------------------------------------- */

#define EMU_MEMS_MAX	4096		/* dmable regions of a process */

/* Geometry of a link; both ends must have the same. */
struct emu_geo {
	uint32_t depth;			/* ring slots, 2^n */
	uint32_t payload;		/* packet bytes after the head */
	uint32_t space_off;		/* where the receive space starts */
	uint32_t space_bytes;
	uint32_t bytes;			/* of the whole link */
};

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

/* ---- Messages on connections ----------------------------------------- */

#define EMU_MAGIC	UINT32_C(0x6d696e55)	/* "Unim" */
#define EMU_WIRE	3		/* raise when a layout changes */
#define EMU_FDS_MAX	3
#define EMU_NAMES	4		/* forms of each name */
#define EMU_REQS_MAX	16		/* imports asked for and unanswered */
#define EMU_ANSWERS_MAX	64		/* answered and not fetched, more than
					 * who fetches them all ever leaves */

enum emu_msg_type {
	EMU_HELLO = 1,		/* sender to receiver: own pidfd, link, proof */
	EMU_WELCOME,		/* its answer: own pidfd, or a refusal */
	EMU_LINK,		/* the reverse direction: link */
	EMU_LINK_OK,		/* its answer */
	EMU_WAKE,		/* packets came after hal_if_arm() */
	EMU_MEM_REQ,		/* may I have the region of this key */
	EMU_MEM_REP,		/* its answer: region */
	EMU_BYE,		/* closing on purpose */
};

/* The same in all versions, so that two of them can say what they are. */
struct emu_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t bytes;			/* of the whole message */
	int32_t status;			/* 0 or negative errno */
};

#define EMU_F_BARRIER	1		/* registered for global membarriers */
#define EMU_F_CROSSED	2		/* welcome: I have called you, too */

/* Status of a welcome: I took your hello and freed you before I could say so.
 * A welcome that refuses may end after its head, which is no flags. */
#define EMU_LET_GO	(-FI_ECONNRESET)

/* Hello, and welcome, where first means nothing. */
struct emu_hello {
	struct emu_head head;
	struct hal_addr from, to;
	struct emu_geo geo;
	uint32_t flags;
	uint64_t first;			/* number of the first packet */
	uint64_t probe_addr, probe_word;
};
_Static_assert(sizeof(struct emu_hello) == 112, "hello is wire format");

struct emu_link_msg {
	struct emu_head head;
	struct emu_geo geo;
	uint32_t reserved;
	uint64_t first;
};
_Static_assert(sizeof(struct emu_link_msg) == 48, "link is wire format");

struct emu_mem_msg {
	struct emu_head head;
	struct hal_key key;
	uint64_t bytes;			/* reply: size of the region */
};
_Static_assert(sizeof(struct emu_mem_msg) == 40, "mem is wire format");

union emu_msg {
	struct emu_head head;
	struct emu_hello hello;
	struct emu_link_msg link;
	struct emu_mem_msg mem;
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

/* hal_emu.c */
int emu_watch(struct emu_if *eif, struct emu_src *src);
void emu_unwatch(struct emu_if *eif, struct emu_src *src);
void emu_event(struct emu_peer *peer, enum hal_event_type type, int status);
void emu_doom(struct emu_peer *peer, int status);

/* hal_emu_board.c */
int emu_board_init(struct hal_emu *emu);
void emu_board_fini(struct hal_emu *emu);
void emu_board_place(struct hal_emu *emu, uint32_t board,
		     const struct hal_map *map);

/* hal_emu_link.c */
struct emu_peer *emu_peer_find(struct emu_if *eif, const struct hal_addr *addr);
int emu_peer_new(struct emu_if *eif, const struct hal_addr *addr,
		 struct emu_peer **peer);
void emu_peer_drop(struct emu_peer *peer);
void emu_peer_free(struct hal_peer *hp);
int emu_link_make(struct emu_peer *peer, int *fd);
void emu_link_unmake(struct emu_peer *peer);
int emu_link_take(struct emu_peer *peer, int fd, uint64_t first);
int emu_space_ready(struct hal_peer *hp, uint32_t bytes);
int emu_rx_pending(struct emu_if *eif);

/* hal_emu_sock.c */
int emu_sock_connect(struct emu_if *eif, const struct hal_addr *to,
		     struct emu_conn **conn);
void emu_not_there(struct emu_if *eif, const struct hal_addr *to);
bool emu_accept(struct emu_if *eif);
bool emu_conn_input(struct emu_conn *conn);
void emu_conn_drain(struct emu_conn *conn);
void emu_unhold(struct emu_if *eif);
void emu_conn_spoke(struct emu_conn *conn);
void emu_conn_close(struct emu_conn *conn);
int emu_conn_send(struct emu_conn *conn, union emu_msg *msg, size_t len,
		  int type, int status, const int *fds, int nfds);
int emu_peer_watch(struct emu_peer *peer, int fd, bool handed);
bool emu_pidfd_dead(int pidfd);
void emu_todo_set(struct emu_conn *conn, enum emu_todo what);
void emu_todo_clear(struct emu_conn *conn, uint32_t what);
void emu_wake(struct hal_peer *hp);

/* hal_emu_msg.c */
int emu_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp);
int emu_take_message(struct emu_conn *conn, const union emu_msg *m,
		     size_t len, struct emu_fds *fds);
void emu_conn_todo(struct emu_conn *conn);
int emu_hello_check(struct emu_conn *conn, const struct emu_hello *m,
		    size_t len, const struct emu_fds *fds);
bool emu_hello_hold(struct emu_conn *conn, const struct emu_hello *m);
void emu_refuse(struct emu_conn *conn, int type, int status);

/*
 * hal_emu_name.c
 *
 * emu_sock_name: form k, 0 to EMU_NAMES - 1, of a name of an interface; kind is
 * "unimem" (where it listens) or "unimem.held" (who holds it).
 * emu_take_number, emu_take_any: hold an interface and listen; as hal_if_open()
 * and its like.
 * emu_name_owner: whose is a name that is in use, of a socket of that type
 * (SOCK_SEQPACKET for "unimem", SOCK_DGRAM for "unimem.held")? *uid is set if
 * it is another user's.
 * emu_name_listener: 0, or -FI_EACCES: a connected socket's other end is
 * another user's; *uid is set.
 * emu_name_earlier: does our user hold a form of "unimem.held" before form k?
 */
enum emu_owner { EMU_OWNER_OURS, EMU_OWNER_OTHER };

socklen_t emu_sock_name(struct sockaddr_un *sun, const char *kind,
			const struct hal_addr *addr, int k);
int emu_take_number(struct emu_if *eif, uint32_t number);
int emu_take_any(struct emu_if *eif);
enum emu_owner emu_name_owner(int type, const struct hal_addr *addr, int k,
			      uid_t *uid);
int emu_name_listener(int fd, uid_t *uid);
bool emu_name_earlier(struct emu_if *eif, const struct hal_addr *addr, int k);

/* hal_emu_proof.c */
int emu_proof_open(struct emu_if *eif);
int emu_proof_check(const struct emu_conn *conn, const struct hal_addr *addr,
		    int fd);
int emu_peer_pidfd(int sock, pid_t pid);
bool emu_proc_ours(const struct hal_emu *emu);
int emu_pidfd_check(const struct emu_conn *conn, int pidfd);
int emu_peer_process(struct hal_peer *hp, uint64_t *id);

/* hal_emu_dma.c */
int emu_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);
void emu_mem_free(struct hal_mem *mem);
int emu_mem_key(struct hal_mem *mem, struct hal_key *key);
int emu_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **rmem);
void emu_mem_release(struct hal_rmem *rmem);
void *emu_mem_window(struct hal_rmem *rmem, uint64_t *bytes);
void emu_mem_reply(struct emu_peer *peer, const struct emu_mem_msg *msg,
		   const struct emu_fds *fds);
int emu_mem_lookup(struct hal_emu *emu, const struct hal_key *key, int *fd,
		   uint64_t *bytes);
void emu_rmems_free(struct emu_peer *peer);
int emu_dma_post(struct hal_if *hif, const struct hal_dma *dma,
		 uint64_t token);
int emu_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);
void emu_dma_cancel(struct emu_peer *peer);

/*
 * hal_emu_attach.c
 *
 * emu_attach_open, emu_attach_close: make and remove this process's word.
 * emu_attach_probe: set peer->p.dma_any, from the facts of its hello.
 * emu_attach_move: copy n bytes from offset done of a transfer on; the number
 * of bytes copied, > 0, or a negative status of struct hal_dma_comp.
 */
void emu_attach_open(struct hal_emu *emu);
void emu_attach_close(struct hal_emu *emu);
void emu_attach_probe(struct emu_peer *peer);
int64_t emu_attach_move(const struct hal_dma *d, uint64_t done, uint64_t n);

/* hal_emu_alias.c: as hal_window.h says. */
int emu_alias_key(const void *addr, uint64_t len, uint32_t access,
		  struct hal_key *key);
int emu_alias_open(const struct hal_key *key, uint64_t len, uint32_t access,
		   struct hal_window *win);
void emu_alias_close(struct hal *hal, const struct hal_window *win);

#endif /* HAL_EMU_H */
