/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_types.h - the objects of hal/net; private to that folder.
 *
 * Peers on other hosts, beside a backend that has those of this host.
 *
 *   hal_net_auth.c	pure: proves that both sides know the secret
 *   hal_net_stream.c	pure: frames, their numbers and records
 *   hal_net_dir.c	pure: the job's hosts, and the numbers of their boards
 *   hal_net_key.c	the key file
 *   hal_net_sodium.c	HMAC, a module of its own
 *   hal_net_ucx.c	the engine, another module
 *   hal_net_stuck.c	in this module: ends its sockets to a host that is gone
 *   hal_net_load.c	loads the modules
 *   hal_net_host.c	this host: its address, its identity
 *   hal_net_hosts.c	finds the job's hosts, and this one among them
 *   hal_net_state.c	objects of peers, and their events
 *   hal_net_send.c	frames that go out
 *   hal_net_region.c	local dmable memory
 *   hal_net_dma.c	dmable memory of peers, and transfers
 *   hal_net_recv.c	frames that come
 *   hal_net_loss.c	frames that the engine has lost
 *   hal_net_silence.c	whether a host that does not answer is dead
 *   hal_net_conn.c	control connections
 *   hal_net_redial.c	those that fail before frames can be sent
 *   hal_net_meet.c	their messages after the proofs
 *   hal_net_suspend.c	closes the connections of peers that are idle
 *   hal_net_peer.c	peers as callers of the HAL use them; their ends
 *   hal_net_connect.c	connecting, by any kind of address
 *   hal_net.c		the table of functions around that of the backend
 *
 * The thread that uses an interface uses all that belongs to it.
 */
#ifndef HAL_NET_TYPES_H
#define HAL_NET_TYPES_H

#include <sys/types.h>

#include "hal/hal_packet.h"
#include "hal/net/hal_net_auth.h"
#include "hal/net/hal_net_dir.h"
#include "hal/net/hal_net_engine.h"
#include "hal/net/hal_net_key.h"
#include "hal/net/hal_net_silence.h"
#include "hal/net/hal_net_stream.h"
#include "util/unm_list.h"

#define NET_HALF_MAX	64		/* connections without proof */
#define NET_HALF_NS	UINT64_C(2000000000)	/* and how long each keeps its
						 * place if others want it */
#define NET_SPARE_MAX	32		/* free frames that are kept */
#define NET_PROGRESS	16		/* calls of the engine in a row */
#define NET_ACK_EVERY	16		/* frames of one acknowledgement */
#define NET_DONE_BYTES	(12 << 10)	/* stores of a peer, beyond which
					 * released slots do not wait: it may
					 * lack receive space (a ring of 32 KiB)
					 * for the next piece of a message */
#define NET_DONE_NS	UINT64_C(5000)	/* for which released slots wait for a
					 * frame: an MPI program answers within
					 * this time */
#define NET_GAP_NS	UINT64_C(20000)	/* between frames of a stream */

/* Additions to the HAL, from hal_net_wrap() to the close. Constant. */
struct net_hal {
	struct hal_ops ops;		/* copy of *base, see override() */
	const struct hal_ops *base;	/* table of the backend */
	const char *base_name;		/* caps.backend of the backend */
	char name[32];			/* "NAME+net" */
	pid_t pid;			/* process that opened it */
	volatile uint32_t *here;	/* 0: this is a forked child of it; the
					 * kernel clears the page */
	struct hal_host host;		/* without port and secret */
	char device[16];		/* network interface that has host.ip */
	uint64_t dead_ns;		/* FI_UNIMEM_NET_DEAD_MS */
	uint64_t dial_ns;		/* FI_UNIMEM_NET_DIAL_MS */
	uint64_t half_ns;		/* NET_HALF_NS; a test changes it */
	uint64_t drain_ns;		/* NET_DRAIN_NS, likewise */
	struct net_dir *dir;		/* the job's hosts; NULL: not known */
	struct net_key key;		/* for connections by number */
	uint32_t links_max;		/* FI_UNIMEM_NET_PEERS, or by the limit
					 * of descriptors */
	_Atomic uint32_t nlinks;	/* of all interfaces: peers with a link
					 * that is not being suspended */
	_Atomic uint32_t nreaching;	/* of all interfaces: peers with a
					 * place, net_peer.reach_by */
	_Atomic bool reach_wanted;	/* a peer was refused a place, and none
					 * was seen free since */
};

enum net_src_kind {
	NET_SRC_BASE,			/* the backend's descriptor */
	NET_SRC_LISTEN,
	NET_SRC_CONN,
	NET_SRC_TIMER,
	NET_SRC_ENGINE,			/* descriptors of the engine */
};

/* A descriptor in the epoll set of an interface. */
struct net_src {
	enum net_src_kind kind;
	int fd;				/* -1: closed */
};

/* Control messages, after the proofs: sealed (hal_net_auth.h). */
enum net_ctl_type {
	NET_CTL_MEET = 1,		/* net_meet, address of the worker */
	NET_CTL_CROSSED,		/* the other connection is used, this
					 * one is not */
	NET_CTL_BYE,			/* net_bye: the interface is closed */
	NET_CTL_SUSPEND,		/* net_bye: proposes to close the
					 * connection, or agrees to that */
	NET_CTL_KEEP,			/* refuses that */
	NET_CTL_LEAVE,			/* net_bye: ends this connection only */
};

struct net_meet {
	struct net_ctl ctl;
	uint64_t token;			/* to be written into frames */
	uint32_t slot;			/* likewise */
	uint32_t depth, payload, space;	/* sizes, which must be equal */
};
_Static_assert(sizeof(struct net_meet) == 32, "meet is wire format");

/* Of BYE, LEAVE and SUSPEND. */
struct net_bye {
	struct net_ctl ctl;
	uint64_t sent;			/* frames that the author has sent */
	uint64_t taken;			/* and processed */
};
_Static_assert(sizeof(struct net_bye) == 24, "bye is wire format");

/* A control connection. */
struct net_conn {
	struct net_src src;		/* must be first */
	struct unm_list link;		/* in net_if.conns or .ended */
	struct net_if *nif;
	struct net_peer *peer;		/* dialled, or proven; else NULL */
	struct net_auth auth;
	bool dialled;
	bool waiting;			/* for the TCP connection */
	bool half;			/* counted in net_if.nhalf */
	bool met;			/* MEET was sent: the other side may
					 * be connected by it */
	struct net_silence silence;	/* of its host */
	uint64_t deadline;		/* ns; 0: none */
	uint64_t crowded;		/* ns: deadline while as many others
					 * have no proof as may be */
	uint64_t link_at;		/* ns: when to try again to open the
					 * link, for which descriptors or memory
					 * were lacking; 0: no link waits */
	int link_status;		/* of the last attempt to open it:
					 * -FI_EMFILE, -FI_ENOMEM */
	uint8_t worker[NET_WORKER_MAX];	/* address for that link */
	size_t nworker;
	uint8_t in[NET_CTL_MAX];
	size_t nin;
	uint8_t out[NET_CTL_MAX];
	size_t nout;
};

/* A message of the engine: a frame. */
struct net_frame {
	struct net_message m;		/* must be first */
	struct unm_list link;		/* in net_peer.queue or net_if.spare */
	struct net_if *nif;		/* NULL: the interface is closed */
	uint32_t len;			/* bytes in use */
	_Alignas(8) uint8_t bytes[NET_FRAME_MAX];
};

enum net_peer_state {
	NET_DIALLING,			/* no proof yet */
	NET_MEETING,			/* proven; its worker is not known */
	NET_UP,				/* frames can be sent */
	NET_SUSPENDING,			/* frames come; SUSPEND was sent and not
					 * answered */
	NET_SUSPENDED,			/* there is no connection, and the next
					 * frame to be sent makes one: both
					 * sides have agreed, or a peer that is
					 * reaching has no place */
};

#define NET_DONE_BIT	(1u << HAL_BACK_WORDS)

/* A peer on another host. */
struct net_peer {
	struct hal_peer p;		/* must be first */
	struct hal_back back;		/* p.tx.back */
	struct hal_sleep sleep;		/* p.rx.sleep: the backend writes it,
					 * nobody reads it */
	struct hal_host host;		/* p.host */
	uint8_t secret[NET_SECRET];	/* of the address; not in host */
	bool secret_known;		/* by net_connect_host() */
	bool by_key;			/* dialled by board and interface: the
					 * secret is not known, and the nonce of
					 * p.addr may not be known yet */
	struct net_if *nif;
	struct unm_list link;		/* in net_if.peers */
	struct unm_list active;		/* in net_if.active, unless it is dead
					 * or suspended */
	struct unm_list event;		/* in net_if.events */
	struct unm_list dirty;		/* in net_if.dirty: something to send */
	uint32_t slot;			/* in net_if.slot[] */
	enum net_peer_state state;
	struct net_conn *conn;		/* NULL: ended */
	struct net_link *out;		/* the engine's; NULL: none */
	bool counted;			/* in net_hal.nlinks */
	bool met;			/* it was in state NET_UP: session is
					 * set */
	bool reaching;			/* it is to be connected for its awaited
					 * packets only: nothing waits to be
					 * sent */
	uint64_t reach_by;		/* ns: end of its turn, after which it
					 * gives its place in net_hal.nreaching
					 * to a peer that wants it; 0: it has no
					 * place */
	bool link_failed;		/* in NET_SUSPENDING: the engine says
					 * so */
	bool resume_asked;		/* in NET_SUSPENDING: hal_peer_resume()
					 * was called */
	bool contested;			/* begun_anew(): another object of
					 * the peer seems to be there */
	uint8_t session[NET_SECRET];
	uint64_t suspend_at;		/* ns: when to propose it again */
	uint8_t keeps;			/* refusals since the last data */
	uint64_t ack_seq;		/* frame whose acknowledgement a
					 * proposal waits for */
	uint64_t ack_by;		/* ns: the proposals to awaited peers
					 * wait for it until then */
	uint8_t resumes;		/* turns of calls of hal_peer_resume()
					 * since the last data */
	uint64_t resume_at;		/* ns: such calls do nothing before */
	uint64_t token;			/* of frames that come */
	uint64_t to_token;		/* of frames that go out */
	uint32_t to_slot;
	struct net_stream s;
	struct net_frame *cur;		/* is being filled; NULL: empty */
	struct unm_list queue;		/* full frames, while the state is not
					 * NET_UP */
	uint32_t nqueue;		/* and their number */
	uint64_t rx_fill;		/* number of the next slot to fill */
	uint32_t back_dirty;		/* bit n: word n is to be sent;
					 * NET_DONE_BIT: released slots */
	uint64_t done_sent;		/* released slots that the peer knows */
	uint64_t done_at;		/* ns: the first one was released that
					 * it does not know */
	uint64_t came_at;		/* ns: its last numbered frame came */
	bool stream;			/* several came before this process
					 * last sent a frame */
	uint64_t stored;		/* bytes that it stored since a frame
					 * last released all that had come */
	uint32_t back_known;		/* bit n: word n was stored before */
	uint64_t back_val[HAL_BACK_WORDS];
	uint64_t back_seq;		/* number of the frame that has the last
					 * word */
	uint64_t asked;			/* of the last frame with NET_F_ASK */
	uint64_t ask_seq;		/* last frame that asks for an
					 * acknowledgement */
	bool ack_due;			/* send one at once */
	/* of hal_net_loss.c */
	uint64_t gap_ns;		/* time for which a frame is missing,
					 * plus 1; 0: none is */
	uint64_t gap_seen;		/* ns: when it was last checked */
	uint64_t gap_taken;		/* s.taken then */
	uint64_t ask_acked;		/* the peer has to acknowledge it */
	uint64_t ask_at;		/* ns: when to ask for that; 0: not */
	uint32_t asks;			/* questions without an answer */
	bool silent;			/* its last connection has ended because
					 * its host did not answer */
	int tries;			/* dials that ended without an answer */
	uint64_t dial_by;		/* ns: dial again until then; 0: no
					 * limit runs, because it is dialled
					 * for a receive; unused while tries is
					 * 0 */
	uint64_t redial;		/* ns: when to dial again; 0: not; 1: at
					 * once, see net_if.dial_due */
	int dying;			/* 0, or the status of HAL_EV_DEAD */
	uint64_t dead_by;		/* ns: when it is dead at the latest */
	const char *lost;		/* for the log: what ended without BYE
					 * or LEAVE; NULL: nothing did, or it
					 * was never met */
	int lost_status;		/* negative errno; 0: it was closed */
	int bye;			/* BYE or LEAVE came, and bye_sent is
					 * set: status of the end; else 0 */
	uint64_t bye_sent;
	uint8_t ev_pending;		/* bit n: event n */
	int ev_status;
	struct hal_rmem *rmems;		/* imports */
	uint32_t pieces;		/* of transfers, not answered */
};

/* Part of an interface for other hosts: hal_if.net. */
struct net_if {
	struct hal_if *hif;
	struct net_hal *net;
	const struct hal_ops *base;
	const struct hal_ops *peer_ops;	/* of peers on other hosts */
	/* calls of hal_net_conn.c: both proofs are good; a message has come
	 * (negative: it ends the connection) */
	void (*proven)(struct net_conn *conn);
	int (*control)(struct net_conn *conn);
	struct hal_host host;		/* with port and secret */
	int epfd;
	struct net_src base_src, listen, timer, engine_src;
	bool listening;			/* listen is in the epoll set */
	bool said_full;			/* a connection that could not be
					 * accepted was logged */
	bool said_start;		/* an engine that did not start was
					 * logged */
	uint64_t accept_at;		/* ns: nothing is accepted before, for
					 * want of a descriptor or memory; 0:
					 * there is no want */
	struct unm_list conns, ended;
	uint32_t nhalf;			/* connections without proof */
	uint64_t check;			/* ns: when to check the hosts of the
					 * connections again */
	struct unm_list peers, events, dirty;
	struct unm_list active;		/* peers that need calls now and then,
					 * the least recently used first */
	bool dial_due;			/* a peer has redial set to the past */
	bool lingers;			/* in net_linger(), or BYE or LEAVE
					 * follows: no peer is suspended */
	struct net_peer **slot;		/* by number; NULL: free */
	uint32_t nslots, npeers;
	uint32_t ndying;
	const struct net_crypto *crypto;	/* NULL: not loaded */
	const struct net_engine *engine;	/* NULL: no proof was good */
	struct net_worker *worker;	/* NULL: no peer was proven yet */
	struct unm_list spare;		/* free frames */
	uint32_t nspare;
	uint64_t nframes;		/* frames of peers */
	uint64_t idle_since;		/* ns: first arm after the last of these
					 * frames; 0: never armed */
	uint64_t idle_frames;		/* nframes then */
	uint64_t nstrange;		/* frames of nobody */
	bool said;			/* a refusal was logged */
	bool said_silent;		/* a silent host was logged */
	bool child;			/* net_forked(), and the peers ended */
	bool refused;			/* one of hal_net_connect.c was */
	struct net_dma *dma;		/* [caps->dma_depth] */
	uint32_t base_dma;		/* transfers that the backend has */
	uint32_t ndma;			/* transfers that hal/net has */
	uint32_t dma_done;		/* of these, those to be reported */
};

static inline struct net_if *net_if(struct hal_if *hif)
{
	return hif->net;
}

static inline struct net_peer *net_peer(struct hal_peer *peer)
{
	return (struct net_peer *)peer;
}

/* Is this a forked child of the process that opened the interface? It has
 * copies of the sockets, and UCX does not work in it. */
static inline bool net_forked(const struct net_if *nif)
{
	return *nif->net->here == 0;
}

/* Let the engine carry a bounded number of messages. Each call of the engine is
 * a system call or more, so none follows a call that has brought frames: the
 * caller processes these first. */
static inline void net_progress(struct net_if *nif)
{
	uint64_t before = nif->nframes;

	if (net_forked(nif))
		return;
	for (int i = 0; nif->worker != NULL && i < NET_PROGRESS &&
	     nif->engine->progress(nif->worker) != 0 &&
	     nif->nframes == before; i++)
		;
}

#endif /* HAL_NET_TYPES_H */
