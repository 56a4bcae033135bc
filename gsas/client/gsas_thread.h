/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_thread.h - the client side of GSAS: what a thread has. Private to
 * libgsas.
 *
 *   thread	has an interface of its own, from its first call to its end;
 *		nobody else touches it, so nothing here has a lock
 *   connection	the way to the service of one board, made at first need and anew
 *		when that service ended
 *   request	one call of the program that goes there and back, in memory of
 *		the program
 *
 *   gsas_thread.c	beginning and end, waiting, fork
 *   gsas_conn.c	connections: begin, send, answers, end of a service
 *   gsas_request.c	what becomes of an answer; gsas_bulk.c: of many
 *   gsas_window.c	segments mapped by this thread; gsas_map.c: by programs
 *   gsas_watch.c	whose service's process ended
 *   gsas_job.c		the job's key, groups
 */
#ifndef GSAS_THREAD_H
#define GSAS_THREAD_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/hal.h"
#include "gsas.h"
#include "common/gsas_pkt.h"
#include "common/gsas_yield.h"

struct gsas_conn;
struct gsas_segment_map;

/* ---- Trips --------------------------------------------------------------- */

enum gsas_kind {
	GSAS_KIND_ONE,		/* one request */
	GSAS_KIND_BULK,		/* several, gsas_bulk.c */
};

/*
 * What a struct gsas_req holds. Written by the thread that started it, only;
 * one that has ended refers to nothing.
 */
struct gsas_request {
	int32_t status;		/* -FI_EINPROGRESS, 0, or its error */
	int32_t error;		/* BULK: of the first part that has one */
	uint64_t owner;		/* number of its thread */
	uint8_t kind;		/* enum gsas_kind */
	bool put;		/* BULK */
	uint16_t parts;		/* BULK: under way */
	uint32_t bytes;		/* of *out */
	void *out;		/* for the result, NULL: nobody wants it */
	int *done;		/* CAS64 has two: this, and the third word */
	uint64_t result, more;	/* words of the response */
	uint64_t address;	/* BULK: all of it, and what is not sent yet */
	uint64_t whole, left;
	uint8_t *at;
};
_Static_assert(sizeof(struct gsas_request) <= sizeof(struct gsas_req),
	       "opaque to programs");

/* A request to be sent. */
struct gsas_msg {
	uint8_t opcode;
	uint64_t address, arg1, arg2;
	/* data of the answer: how much, where it comes to in our receive space
	 * and goes from there */
	void *into;
	uint32_t len, off;
	/* units of both spaces that are its own until it is answered */
	uint64_t local, remote;
};

/* ---- Lanes --------------------------------------------------------------- */

/* What a tag stands for while it is under way. */
struct gsas_tag {
	struct gsas_request *request; /* NULL: the tag is free */
	void *into;
	uint32_t len, off;
	uint64_t local, remote;
	uint8_t opcode;
};

/*
 * Each of the two receive spaces is shared out in 64 units, a bit for each, the
 * lowest first: so a thread that asks for little takes little memory.
 */
#define GSAS_UNITS	64
#define GSAS_GROUPS	16	/* of a process */

struct gsas_conn {
	struct hal_peer *peer;	/* NULL: not connected */
	struct gsas_thread *thread;
	uint16_t board;
	bool broken;		/* what it says is nonsense: not any more */
	bool posted;		/* requests, since the last fence */
	bool lost;		/* and the service ended since */
	bool full;		/* the thread waits for room for a packet */
	bool probed;		/* a request was sent to see if it lives */
	int gone;		/* error of calls that find it ended */
	uint64_t quiet;		/* ns of waiting in which nothing came */
	int status;		/* why it ended, the last time */
	uint32_t life;		/* connections so far */
	uint32_t groups;	/* of gsas_job.c that this service knows */
	uint32_t group[GSAS_GROUPS];	/* their numbers there, 0: none */
	struct gsas_request ignored;	/* of queues: its result is ignored */
	struct gsas_request *bulk; /* not yet sent as a whole: comes first */
	uint64_t local, remote;	/* free units */
	uint32_t unit;		/* bytes; the same in both spaces */
	uint32_t ready;		/* bytes of the service's receive space that
				 * can be written */
	uint16_t nfree;		/* tags */
	uint8_t free[GSAS_TAGS];
	struct gsas_tag tag[GSAS_TAGS + 1];
};

/* ---- Threads ------------------------------------------------------------- */

/*
 * What the shortest path looks at, in pages of its own that a forked child
 * finds zero: a child has no mapping of ours, and no interface.
 */
#define GSAS_HOT	1024	/* granules: 1 GiB that is accessed at random */

struct gsas_hot_segment {
	uint64_t granule;	/* address >> GSAS_SEGMENT_SHIFT, plus 1 */
	uintptr_t delta;	/* address + delta is where it is */
	uintptr_t words;	/* so is words + 4 * (address >> PAGE_SHIFT)
				 * its page's word */
	uint64_t pad;
};

struct gsas_hot {
	struct gsas_hot_segment segment[GSAS_HOT];
	bool live;		/* false: in a forked child */
};

struct gsas_thread {
	struct hal *hal;
	struct hal_if *hif;
	struct gsas_hot *hot;
	bool wiped;		/* hot is, by the system, in a child */
	int pid;		/* looked at where it is not */
	bool windows;		/* this platform has any */
	bool starts;		/* a service where there is none */
	uint64_t number;	/* of threads so far; never used again */
	uint32_t boards;
	struct gsas_conn **conn;	/* by board; NULL: never used */
	uint32_t *used;		/* boards of connections that are there */
	uint32_t nused;
	struct gsas_segment_map *segment;	/* by address */
	uint32_t nsegments, max_segments;
	struct gsas_queue_handle *queues;
	/* waiting */
	uint32_t polls;		/* in vain, since gsas_wait_begin() */
	struct gsas_yield yield;
	bool wants_room;	/* for a packet: nobody wakes us for that */
	uint64_t next_service;	/* ns */
	uint64_t deadline;	/* ns: no sleep is longer; 0: none */
	uint64_t quiet_limit;	/* ns without an answer; 0: none */
	uint64_t last_look;	/* ns: at connections that are quiet */
};

extern _Thread_local struct gsas_hot *gsas_hot
	__attribute__((tls_model("initial-exec")));

/* The calling thread's, made at first use. 0; -FI_EBUSY, -FI_ENOMEM,
 * -FI_EMFILE, -FI_EINVAL, -FI_ENODEV: one line said why. */
int gsas_thread_get(struct gsas_thread **thread);

/* Look at everything once. Returns whether something came. */
bool gsas_thread_progress(struct gsas_thread *t);

/* Wait a little for something to come: spin, give the processor away, sleep.
 * Begins anew, with spinning, after gsas_wait_begin(). */
void gsas_wait_step(struct gsas_thread *t);
static inline void gsas_wait_begin(struct gsas_thread *t)
{
	t->polls = 0;
}

/* By clock: peers that came and went. */
void gsas_thread_service(struct gsas_thread *t);
uint64_t gsas_now_ns(void);

/* One line on stderr. */
void gsas_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- gsas_conn.c --------------------------------------------------------- */

/* The connection to a board, connected and joined, with all requests before it
 * sent. 0, -ENXIO, -FI_ECONNREFUSED, -FI_EACCES, -FI_ENOMEM ... */
int gsas_conn_get(struct gsas_thread *t, int board, struct gsas_conn **conn);

/* That of an address; -FI_EFAULT: of no board. */
int gsas_conn_of(struct gsas_thread *t, uint64_t address,
		 struct gsas_conn **conn);

/*
 * Send a request; waits for a tag, and for room, if it must. request NULL:
 * posted. 0: it is under way; -FI_ECONNRESET: it is not.
 */
int gsas_conn_send(struct gsas_conn *conn, const struct gsas_msg *msg,
		   struct gsas_request *request);
/* The same without waiting: -FI_EAGAIN. A connection that has ended is no harm:
 * what waits may find it so. */
int gsas_conn_try_send(struct gsas_conn *conn, const struct gsas_msg *msg,
		       struct gsas_request *request);

/* Answers. Returns whether there were any. */
bool gsas_conn_poll(struct gsas_conn *conn);
/* The service ended; what it answered before counts. */
void gsas_conn_end(struct gsas_conn *conn, int status);
/* So much more time has gone by with nothing from the service: a connection on
 * which something is waited for ends at the limit, with -FI_ETIMEDOUT. */
void gsas_conn_quiet(struct gsas_conn *conn, uint64_t ns, uint64_t limit);
/* End what is under way, and forget the peer. */
void gsas_conn_close(struct gsas_conn *conn);

/* Units for so many bytes of a space, a page at most (no space is smaller); 0:
 * not now. *off: where they are. */
uint64_t gsas_space_take(uint64_t *free, uint32_t unit, uint32_t bytes,
			 uint32_t *off);
/* The same, waiting, for in bytes in the service's space, at *at, and for out
 * in ours, at msg->off; 0: none. -FI_ECONNRESET. */
int gsas_space_wait(struct gsas_conn *conn, uint32_t in, uint32_t out,
		    struct gsas_msg *msg, uint32_t *at);
/* Of a request that is not sent after all. */
void gsas_space_undo(struct gsas_conn *conn, const struct gsas_msg *msg);
/* Store into the service's. 0, -FI_ENOMEM, -FI_ECONNRESET. */
int gsas_space_put(struct gsas_conn *conn, uint32_t off, const void *src,
		   uint32_t len);

/* ---- gsas_request.c ------------------------------------------------------ */

int gsas_errno(uint64_t error);		/* of enum gsas_error */

void gsas_request_begin(struct gsas_request *request, struct gsas_thread *t,
			enum gsas_kind kind);
/* The answer came, or there will be none: error says why. */
void gsas_request_answer(struct gsas_conn *conn, const struct gsas_tag *tag,
			 int error, uint64_t result, uint64_t more);
/* Wait for it. Its status. */
int gsas_request_wait(struct gsas_thread *t, struct gsas_request *request);
/* Send and wait: request->result, request->more. */
int gsas_request_do(struct gsas_conn *conn, const struct gsas_msg *msg,
		    struct gsas_request *request);

/* ---- gsas_bulk.c --------------------------------------------------------- */

/* Send what can be sent of conn->bulk. Returns whether something was. */
bool gsas_bulk_progress(struct gsas_conn *conn);
/* No more of it is sent. */
void gsas_bulk_end(struct gsas_conn *conn, int error);
void gsas_bulk_answer(struct gsas_request *request, int error);

/* ---- gsas_window.c ------------------------------------------------------- */

/*
 * Where an address is in this process: *at, or NULL if it is reached by packets
 * (which then tell what is wrong with it, if anything is). 0, or what kept us
 * from asking.
 */
int gsas_window_find(struct gsas_thread *t, uint64_t address, void **at);
/* The same for a queue, which is no memory for operations. */
int gsas_window_queue(struct gsas_thread *t, uint64_t address, void **at);
/* The mapped segment of an address, for gsas_map(); or why it cannot be
 * mapped. */
struct gsas_window {
	uint64_t base, bytes;	/* the segment's */
	uint64_t key[2];
	uint8_t *memory;	/* mapped by this thread */
};
int gsas_window_map(struct gsas_thread *t, uint64_t address,
		    struct gsas_window *win);
/* Bytes from an address found above to the end of its allocation, max at most;
 * 0: it was freed meanwhile. */
uint64_t gsas_window_left(const struct gsas_thread *t, uint64_t address,
			  uint64_t max);
/* Something was found freed there: let go of what no page is left of. */
void gsas_window_freed(struct gsas_thread *t, uint64_t address);
/* Those of a connection, which ends. */
void gsas_window_release(struct gsas_conn *conn);
/* The thread ends: it unmaps its segments next. */
void gsas_window_end(struct gsas_thread *t);

/* ---- gsas_watch.c -------------------------------------------------------- */

/*
 * Store 0 in the words of a mapped segment when the process of its service
 * ends, until gsas_watch_remove(), which comes before the segment is unmapped.
 * By any thread. 0 (*watch NULL: the platform does not know); -FI_ECONNRESET:
 * the process has ended; -FI_EAGAIN: the system gives no thread; -FI_EMFILE,
 * -FI_ENOMEM.
 */
struct gsas_watch;
int gsas_watch_add(struct hal_peer *peer, uint8_t *memory, uint64_t bytes,
		   struct gsas_watch **watch);
void gsas_watch_remove(struct gsas_watch *watch);	/* NULL: nothing */

/* ---- gsas_alloc.c, gsas_job.c, gsas_queue_client.c ----------------------- */

/* The connection to ask for memory, and its attributes as they travel. */
int gsas_alloc_conn(struct gsas_thread *t, int board, unsigned flags,
		    const char *group, struct gsas_conn **conn,
		    uint64_t *attr);

/* 0; or why there is none, one line said so. */
int gsas_job_key(uint64_t key[2]);
/* From now on one of this process's own, whatever GSAS_JOB says: for tools,
 * which own nothing and keep nobody's pages from being orphans. 0, -errno. */
int gsas_job_own(void);

/* The lock of the process: the names of groups, and gsas_map.c. Never held
 * while anything is waited for. */
void gsas_lock(void);
void gsas_unlock(void);

/* The process's number of a group; each connection makes those it does not know
 * known. -FI_EINVAL, -EDQUOT. */
int gsas_group_index(const char *name, uint32_t *index);
uint32_t gsas_group_count(void);
void gsas_group_name(uint32_t index, uint64_t name[2]);

/* Told under tag 0: more words were granted for a queue, or the error for which
 * there will be none. */
void gsas_queue_notified(struct gsas_conn *conn, uint64_t address, int error,
			 uint64_t words);
/* The thread ends. */
void gsas_queue_end(struct gsas_thread *t);

#endif /* GSAS_THREAD_H */
