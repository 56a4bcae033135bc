/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas.h - the global shared address space of Unimem, for programs that share
 * memory across boards without MPI. Link with -lgsas. Manual: gsas(7).
 *
 * An address names a byte of some board's memory: 16 bits say whose, 48 where
 * [D 2.2.2]. It is a number, not a pointer: memory is reached by the calls
 * below, wherever it is, and by pointers only through gsas_map().
 *
 * Every call returns 0 (or what it says), or a negative errno:
 *
 *	-EFAULT		nothing was ever allocated there, or it is of no board
 *	-ESTALE		it was freed
 *	-EACCES		somebody else's
 *	-EINVAL		an argument out of range; not a queue, or one where none
 *			may be; a request or queue of another thread's
 *	-ENXIO		no such board
 *	-ENOMEM		the board has no more memory
 *	-EDQUOT		the user's jobs have their share of it, or a table is
 *			full
 *	-EPERM		the operation has one executor and its page may be
 *			mapped, or the reverse; of gsas_fork(): not allowed
 *	-ENOSYS		no such operation on that type
 *	-EBUSY		all interfaces of the board are taken (63 threads in the
 *			exanode profile)
 *	-ECONNRESET	the board's service ended meanwhile; the operation was
 *			done or was not
 *	-ETIMEDOUT	the service is stopped; the operation was done, or was
 *			not, or will be when it goes on
 *	-ECONNREFUSED	there is no service and none could be started
 *	-EAGAIN		see gsas_enqueue() and gsas_dequeue()
 *
 * after which nothing was changed, unless stated. Outputs are set on success
 * only. Calls are thread-safe: each thread has its own interface, taken at its
 * first call and given back at its end. A forked child begins anew. Alignment
 * follows [D 2.4.1]: the low bits of an address are ignored.
 *
 * Order: requests of a thread to one board are served in the order in which
 * they were made; between boards, and of accesses to mapped memory, there is
 * none but what answers imply.
 */
#ifndef GSAS_H
#define GSAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GSAS_API	__attribute__((visibility("default")))
#else
#define GSAS_API
#endif

#define GSAS_VERSION		1
#define GSAS_PAGE		4096	/* bytes */

typedef uint64_t gsas_addr;		/* 0 is none */

/* ---- Boards -------------------------------------------------------------- */

/* How many there are, 1 .. 65535; the one this process is on. */
GSAS_API int gsas_boards(void);
GSAS_API int gsas_board(void);

/* Of an address: 0 ..; -EFAULT: of none. */
GSAS_API int gsas_board_of_address(gsas_addr addr);

/* ---- Memory -------------------------------------------------------------- */

#define GSAS_HERE		(-1)	/* the own board */
#define GSAS_SPREAD		(-2)	/* the next board in turn */

enum gsas_flags {
	GSAS_JOB	= 0,		/* for processes of this job */
	GSAS_GROUP_ONLY	= 1,		/* and members of the group */
	GSAS_WORLD	= 2,		/* everybody */
	GSAS_MAPPED	= 1 << 8,	/* may be mapped: faster where boards
					 * are coherent; no gsas_read4k(), and
					 * operations on up to 8 bytes, or 16
					 * aligned ones, only */
};

/*
 * Allocate whole pages, all zero. pages: 1 .. what board and job have; board: a
 * number, GSAS_HERE or GSAS_SPREAD; flags: enum gsas_flags; group: its name,
 * NULL without GSAS_GROUP_ONLY. They stay until they are freed, even past the
 * end of the job: see gsasctl(1).
 */
GSAS_API int gsas_alloc(uint64_t pages, int board, unsigned flags,
			const char *group, gsas_addr *addr);

/* Free what gsas_alloc() returned (low 12 bits ignored). By any process of the
 * job. Its addresses are never given out again while the service runs. */
GSAS_API int gsas_free(gsas_addr addr);

/* Belong to a group: 1 to 16 bytes of name; who knows the name is a member. */
GSAS_API int gsas_join(const char *group);

/*
 * Where memory allocated with GSAS_MAPPED is in this process: *bytes from *ptr
 * on, to the end of the allocation at most. For all threads of the process,
 * until gsas_unmap(), whichever threads and services end before. Accesses are
 * ordinary ones; atomic ones are so among all boards. -EOPNOTSUPP: boards of
 * this kind are reached by packets only. What is freed meanwhile may be written
 * to without effect on anybody else.
 */
GSAS_API int gsas_map(gsas_addr addr, void **ptr, size_t *bytes);

/* Undo one gsas_map(): ptr is what that call stored, or any byte of it. By any
 * thread. -EINVAL: nothing is mapped there. */
GSAS_API int gsas_unmap(void *ptr);

/* ---- Operations ---------------------------------------------------------- */

GSAS_API int gsas_read8(gsas_addr addr, uint8_t *value);
GSAS_API int gsas_read32(gsas_addr addr, uint32_t *value);
GSAS_API int gsas_read64(gsas_addr addr, uint64_t *value);
GSAS_API int gsas_read4k(gsas_addr addr, void *page);	/* atomic as a whole */
GSAS_API int gsas_write8(gsas_addr addr, uint8_t value);
GSAS_API int gsas_write32(gsas_addr addr, uint32_t value);
GSAS_API int gsas_write64(gsas_addr addr, uint64_t value);
GSAS_API int gsas_write128(gsas_addr addr, const uint64_t value[2]);

/* was: the value before, NULL if it is of no interest. gsas_cas64(): 1, it was
 * what was expected and is now value; 0, it was not; or an error. */
GSAS_API int gsas_cas64(gsas_addr addr, uint64_t expected, uint64_t value,
			uint64_t *was);
GSAS_API int gsas_fad64(gsas_addr addr, int64_t summand, int64_t *was);
GSAS_API int gsas_swap64(gsas_addr addr, uint64_t value, uint64_t *was);

/*
 * Any operation of FI_ATOMIC, op and type by libfabric's numbers (enum fi_op,
 * enum fi_datatype): on count elements, each atomic by itself. form: 0 update,
 * 1 fetch, 2 compare. operand, compare, result: count elements, NULL where form
 * and op have none. Any address; where it may be mapped, an aligned one.
 */
GSAS_API int gsas_atomic(gsas_addr addr, int op, int type, int form,
			 size_t count, const void *operand, const void *compare,
			 void *result);

/* Any number of bytes, within one allocation; aligned words of up to 8 bytes
 * are each read or written at once. */
GSAS_API int gsas_get(void *dst, gsas_addr src, size_t len);
GSAS_API int gsas_put(gsas_addr dst, const void *src, size_t len);

/* ---- Many at a time ------------------------------------------------------
 *
 * The same, started and waited for later by the thread that started it. The
 * request is the caller's memory and stays, as do the buffers named, until
 * gsas_test() or gsas_wait() told of its end. As many as one likes: beyond what
 * a board takes (255 for each thread) a start waits for the oldest.
 */
struct gsas_req {
	uint64_t opaque[12];
};

GSAS_API int gsas_read64_start(gsas_addr addr, uint64_t *value,
			       struct gsas_req *req);
GSAS_API int gsas_write64_start(gsas_addr addr, uint64_t value,
				struct gsas_req *req);
/* *done: 1 or 0, as gsas_cas64() returns */
GSAS_API int gsas_cas64_start(gsas_addr addr, uint64_t expected,
			      uint64_t value, uint64_t *was, int *done,
			      struct gsas_req *req);
GSAS_API int gsas_fad64_start(gsas_addr addr, int64_t summand, int64_t *was,
			      struct gsas_req *req);
GSAS_API int gsas_swap64_start(gsas_addr addr, uint64_t value, uint64_t *was,
			       struct gsas_req *req);
GSAS_API int gsas_get_start(void *dst, gsas_addr src, size_t len,
			    struct gsas_req *req);
GSAS_API int gsas_put_start(gsas_addr dst, const void *src, size_t len,
			    struct gsas_req *req);

/* 0: done; -EINPROGRESS: not yet (gsas_test() only); else its error. */
GSAS_API int gsas_test(struct gsas_req *req);
GSAS_API int gsas_wait(struct gsas_req *req);

/*
 * Posted: no request to wait for. Errors are told by the next gsas_fence().
 * gsas_update64_post(): op on a 64-bit unsigned word.
 */
GSAS_API int gsas_write64_post(gsas_addr addr, uint64_t value);
GSAS_API int gsas_update64_post(gsas_addr addr, int op, uint64_t operand);

/* All of this thread's requests to a board (-1: to all) are done. The error of
 * the first posted one that failed since the last fence, or 0. */
GSAS_API int gsas_fence(int board);

/* ---- Queues: remote enqueue ---------------------------------------------- */

struct gsas_queue_handle;

/*
 * A queue of 64-bit words on a board. quota: words it may hold, 1 .. 2^24;
 * buffer: words it grows by, a power of two, 8 .. 4096. flags and group: who
 * may enqueue, as for gsas_alloc() without GSAS_MAPPED; processes of this job
 * dequeue. gsas_free() ends it with what is inside.
 */
GSAS_API int gsas_queue_create(uint64_t quota, uint32_t buffer, int board,
			       unsigned flags, const char *group,
			       gsas_addr *addr);

/* For the calling thread only, as are the calls below. One that is open already
 * is opened once more, and the same. */
GSAS_API int gsas_queue_open(gsas_addr addr, struct gsas_queue_handle **q);
GSAS_API void gsas_queue_close(struct gsas_queue_handle *q);

/* Put a word in. It waits for the service with the first word, and when as many
 * words as the thread's window has (64 at most) were not acknowledged yet. 0:
 * it will be there, in the order of this thread's. -EAGAIN: the queue has no
 * place; nothing was put in. -EDQUOT: as many threads put words in as it may
 * hold. -ESTALE: it was freed, and with it what was inside. */
GSAS_API int gsas_enqueue(struct gsas_queue_handle *q, uint64_t word);

/* Take the oldest word out. -EAGAIN: there is none. */
GSAS_API int gsas_dequeue(struct gsas_queue_handle *q, uint64_t *word);

/* The same, waiting for one, so many milliseconds at most; -1: without limit.
 * -ETIMEDOUT: there was none. */
GSAS_API int gsas_dequeue_wait(struct gsas_queue_handle *q, uint64_t *word,
			       int ms);

/* ---- Processes ----------------------------------------------------------- */

#define GSAS_PATH		4000	/* bytes of a file name, with its 0 */

/*
 * Start a program on a board, in this job. What it may be is the service's to
 * say: gsasd(8). Its output goes to NAME-BOARD-stdout.log and
 * NAME-BOARD-stderr.log. *pid: its number there.
 * -ENOENT: no such file; -EPERM: not allowed; -ENAMETOOLONG.
 */
GSAS_API int gsas_fork(const char *path, uint64_t arg, int board,
		       uint64_t *pid);

/* What gsas_fork() gave this process. -ENOENT: it was not started so. */
GSAS_API int gsas_argument(uint64_t *arg);

#ifdef __cplusplus
}
#endif

#endif /* GSAS_H */
