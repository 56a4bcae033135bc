/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas.h - the global shared address space of Unimem, for programs that share
 * memory across boards without MPI. Link with -lgsas. Manual: gsas(7).
 *
 * An address names a byte of a board's memory: 16 bits say which board, 48 bits
 * are the offset there [D 2.2.2]. An address is a number, not a pointer: the
 * calls below access the memory of any board, and only gsas_map() gives a
 * pointer to it.
 *
 * Every call returns 0, unless its comment says otherwise, or a negative errno:
 *
 *	-EFAULT		the address was never allocated, or is of no board
 *	-ESTALE		the memory was freed
 *	-EACCES		the memory belongs to another job, which does not allow
 *			the access
 *	-EINVAL		an argument is out of range; the call needs the address
 *			of a queue, or does not allow it; the request or the
 *			queue belongs to another thread
 *	-ENXIO		there is no such board
 *	-ENOMEM		the board has no more memory
 *	-EDQUOT		the jobs of the user have used up the user's share, or a
 *			table is full
 *	-EPERM		only the service can do the operation, but the page may
 *			be mapped, or the reverse; gsas_fork(): not allowed
 *	-ENOSYS		there is no such operation on that type
 *	-EBUSY		all interfaces of the board are taken (63 threads in the
 *			exanode profile)
 *	-ECONNRESET	the board's service ended meanwhile; the operation was
 *			done or was not
 *	-ETIMEDOUT	the service is stopped; the operation was done, or was
 *			not, or will be when the service continues
 *	-ECONNREFUSED	there is no service and none could be started
 *	-EHOSTUNREACH	the host of the board does not answer (-ECONNREFUSED if
 *			that takes longer than FI_UNIMEM_NET_DIAL_MS and 10 s)
 *	-EAGAIN		see gsas_enqueue() and gsas_dequeue()
 *	-EMFILE, -ENODEV, -EPROTO
 *			the process has no more descriptors; there is no Unimem
 *			hardware; the process that answers is no atomic service
 *
 * A call that fails has changed nothing, unless stated otherwise. Outputs are
 * set on success only. Calls are thread-safe: each thread has its own
 * interface, from its first call to its end. A forked child inherits no
 * interface and takes new ones. Alignment follows [D 2.4.1]: the low bits of an
 * address are ignored.
 *
 * Order: a board serves the requests of one thread in the order of the calls.
 * Requests to different boards, and accesses to mapped memory, are ordered only
 * if the thread has the result of one before it makes the next.
 */
#ifndef GSAS_H
#define GSAS_H

#include <stddef.h>
#include <stdint.h>

#include "gsas_types.h"

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

/* The meaning of an error of these calls, whose sign is ignored, in a line of
 * text without a full stop. The text is constant. Any thread. */
GSAS_API const char *gsas_strerror(int error);

/* ---- Boards -------------------------------------------------------------- */

/* The number of boards, 1 .. 65535; the board on which this process runs. */
GSAS_API int gsas_boards(void);
GSAS_API int gsas_board(void);

/* The board to which an address belongs, from 0; -EFAULT: to none. */
GSAS_API int gsas_board_of_address(gsas_addr addr);

/* ---- Memory -------------------------------------------------------------- */

#define GSAS_HERE		(-1)	/* the board of this process */
#define GSAS_SPREAD		(-2)	/* the next board in turn */

enum gsas_flags {
	GSAS_JOB	= 0,		/* processes of this job may access */
	GSAS_GROUP_ONLY	= 1,		/* and members of the group */
	GSAS_WORLD	= 2,		/* every process may access */
	GSAS_MAPPED	= 1 << 8,	/* may be mapped: faster on the own
					 * board, and on every board where
					 * boards are coherent. Excludes
					 * gsas_read4k() and operations
					 * on more than 8 bytes,
					 * or on more than 16 aligned bytes
					 * where the processor can do these */
};

/*
 * Allocate pages of zero bytes. pages: from 1 to the free pages of the board
 * and the user; board: a number, GSAS_HERE or GSAS_SPREAD; flags: enum
 * gsas_flags; group: its name, NULL without GSAS_GROUP_ONLY. The pages stay
 * allocated until they are freed, even past the end of the job: see gsasctl(1).
 */
GSAS_API int gsas_alloc(uint64_t pages, int board, unsigned flags,
			const char *group, gsas_addr *addr);

/* Free what gsas_alloc() or gsas_queue_create() returned (the low 12 bits are
 * ignored). Any process of the job may free it. The service refuses the
 * addresses (-ESTALE) and does not allocate them again until it has passed half
 * of its 2^48 bytes of addresses. */
GSAS_API int gsas_free(gsas_addr addr);

/* Join a group, by its name of 1 to 16 bytes. Every process that knows the name
 * may join. */
GSAS_API int gsas_join(const char *group);

/*
 * Map memory that was allocated with GSAS_MAPPED into this process: *bytes from
 * *ptr on, at most to the end of the allocation. All threads of the process may
 * access it by loads and stores until gsas_unmap(), even if the calling thread
 * or the service ends before. Atomic operations of the processor are atomic
 * among all boards. After the memory is freed, accesses affect no other
 * allocation. -EOPNOTSUPP: the address is of another board, and boards are not
 * coherent.
 */
GSAS_API int gsas_map(gsas_addr addr, void **ptr, size_t *bytes);

/* Undo one gsas_map(): ptr is the pointer that the call stored, or points to
 * any byte of the mapping. Any thread may call it. -EINVAL: nothing is mapped
 * there. */
GSAS_API int gsas_unmap(void *ptr);

/* ---- Operations ---------------------------------------------------------- */

GSAS_API int gsas_read8(gsas_addr addr, uint8_t *value);
GSAS_API int gsas_read32(gsas_addr addr, uint32_t *value);
GSAS_API int gsas_read64(gsas_addr addr, uint64_t *value);
GSAS_API int gsas_read4k(gsas_addr addr, void *page);	/* 4096 bytes, atomic */
GSAS_API int gsas_write8(gsas_addr addr, uint8_t value);
GSAS_API int gsas_write32(gsas_addr addr, uint32_t value);
GSAS_API int gsas_write64(gsas_addr addr, uint64_t value);
GSAS_API int gsas_write128(gsas_addr addr, const uint64_t value[2]);

/* *was: the value before; NULL: not wanted. gsas_cas64() returns 1 if the value
 * before was the expected one and was replaced, 0 if it was another one, or an
 * error. */
GSAS_API int gsas_cas64(gsas_addr addr, uint64_t expected, uint64_t value,
			uint64_t *was);
GSAS_API int gsas_fad64(gsas_addr addr, int64_t summand, int64_t *was);
GSAS_API int gsas_swap64(gsas_addr addr, uint64_t value, uint64_t *was);

/*
 * Any operation of FI_ATOMIC, with libfabric's numbers (enum fi_op, enum
 * fi_datatype). It is done on count elements, each atomic by itself. operand,
 * compare, result: count elements each, NULL where form and op have none.
 * Memory that may be mapped needs an aligned address, other memory does not.
 * gsas_generic.h has calls that take the type from their arguments.
 */
GSAS_API int gsas_atomic(gsas_addr addr, enum gsas_op op, enum gsas_type type,
			 enum gsas_form form, size_t count, const void *operand,
			 const void *compare, void *result);

/* Copy any number of bytes of one allocation. Each aligned word of up to 8
 * bytes is read or written at once, more than a word is not. */
GSAS_API int gsas_get(void *dst, gsas_addr src, size_t len);
GSAS_API int gsas_put(gsas_addr dst, const void *src, size_t len);

/* ---- Waiting for other processes ----------------------------------------- */

enum gsas_compare {			/* of unsigned words: word ? value */
	GSAS_EQ,
	GSAS_NE,
	GSAS_LT,
	GSAS_LE,
	GSAS_GT,
	GSAS_GE
};

/*
 * Wait until the 64-bit word at addr compares so with value, at most ms
 * milliseconds, without limit if ms is -1. *seen: the word, NULL: not wanted.
 * Writes that were complete (their result known, or fenced) before the writer
 * changed the word are visible then. A wait of more than some microseconds
 * sleeps between reads, for a millisecond at most. -ETIMEDOUT: the comparison
 * did not become true. A value that the word has for a short time only may be
 * missed.
 */
GSAS_API int gsas_wait_until(gsas_addr addr, enum gsas_compare compare,
			     uint64_t value, int ms, uint64_t *seen);

/*
 * Put len bytes, as gsas_put(), then do op (WRITE, SUM ...) with value on the
 * 64-bit word at signal. A thread that sees the changed word sees the bytes.
 * Both addresses are on one board, in any allocations. -EINVAL: they are not.
 * If the put fails, the word is not changed; if the update fails, the bytes
 * were put.
 */
GSAS_API int gsas_put_signal(gsas_addr dst, const void *src, size_t len,
			     gsas_addr signal, enum gsas_op op, uint64_t value);

/* ---- Many at a time ------------------------------------------------------
 *
 * The operations above, started by one call and waited for by another. Only the
 * thread that started a request may wait for it. The caller keeps the memory of
 * the request and of its buffers until gsas_test() or gsas_wait() returns the
 * result. A thread may start any number of requests: if 255 of them are under
 * way on a board, a start waits for the oldest.
 */
struct gsas_req {
	uint64_t opaque[12];
};

GSAS_API int gsas_read64_start(gsas_addr addr, uint64_t *value,
			       struct gsas_req *req);
GSAS_API int gsas_write64_start(gsas_addr addr, uint64_t value,
				struct gsas_req *req);
/* *done: 1 or 0, the return value of gsas_cas64() */
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

/* 0: the request is done; -EINPROGRESS: it is not (gsas_test() only); any other
 * value: its error. */
GSAS_API int gsas_test(struct gsas_req *req);
GSAS_API int gsas_wait(struct gsas_req *req);

/* Wait for all of count requests. Returns the first error in the order of the
 * array, or 0. -EINVAL: one of them belongs to another thread; no request was
 * waited for. */
GSAS_API int gsas_wait_all(struct gsas_req *req, size_t count);

/*
 * Wait for any of count requests that these calls have not reported before; or
 * test them once. Returns the result of that request, and stores its number in
 * the array at *index. If *index is count, the error is that of the call:
 * -ENOENT: all requests were reported before; -EINVAL: one of them belongs to
 * another thread; -EINPROGRESS: none is done (gsas_test_any()).
 */
GSAS_API int gsas_wait_any(struct gsas_req *req, size_t count, size_t *index);
GSAS_API int gsas_test_any(struct gsas_req *req, size_t count, size_t *index);

/*
 * Posted operations: the caller has nothing to wait for, and the next
 * gsas_fence() returns their errors. gsas_update64_post() does op on an
 * unsigned 64-bit word.
 */
GSAS_API int gsas_write64_post(gsas_addr addr, uint64_t value);
GSAS_API int gsas_update64_post(gsas_addr addr, enum gsas_op op,
				uint64_t operand);

/* Wait until all requests of this thread to a board (-1: to all boards) are
 * done. Returns the error of the first posted request that failed since the
 * last fence, or 0. */
GSAS_API int gsas_fence(int board);

/*
 * Many elements by one call, faster than a call for each: the places of the
 * elements are found and fetched ahead of their use.
 *
 * gsas_gather() copies count elements of len bytes from the addresses src[0],
 * src[1] ... to dst, one behind the other; gsas_scatter() copies them from src
 * to the addresses. The strided calls copy elements whose beginnings are a
 * stride apart, in bytes, on both sides. Each element is copied as by
 * gsas_get() or gsas_put(), in no order. After an error some elements were
 * copied.
 */
GSAS_API int gsas_gather(void *dst, const gsas_addr *src, size_t len,
			 size_t count);
GSAS_API int gsas_scatter(const gsas_addr *dst, const void *src, size_t len,
			  size_t count);
GSAS_API int gsas_get_strided(void *dst, size_t dst_stride, gsas_addr src,
			      size_t src_stride, size_t len, size_t count);
GSAS_API int gsas_put_strided(gsas_addr dst, size_t dst_stride, const void *src,
			      size_t src_stride, size_t len, size_t count);

/* As gsas_update64_post(addr[i], op, operand[i]) for each i below count, in
 * order. The next gsas_fence() returns the error of an address, and the other
 * updates are executed. If the call itself fails (the service has ended), the
 * updates before the failing one were executed or posted, later ones not. */
GSAS_API int gsas_update64_batch(const gsas_addr *addr, enum gsas_op op,
				 const uint64_t *operand, size_t count);

/* ---- Queues: remote enqueue ---------------------------------------------- */

struct gsas_queue_handle;

/*
 * Create a queue of 64-bit words on a board. quota: words that it may hold,
 * 1 .. 2^24; buffer: words by which it grows, a power of two, 8 .. 4096. flags
 * and group say which processes may enqueue, as for gsas_alloc(), without
 * GSAS_MAPPED. Only processes of this job dequeue. gsas_free() removes the
 * queue and the words in it.
 */
GSAS_API int gsas_queue_create(uint64_t quota, uint32_t buffer, int board,
			       unsigned flags, const char *group,
			       gsas_addr *addr);

/* Open a queue. Only the calling thread may use *q. If it has the queue open
 * already, *q is the same handle, and needs one more gsas_queue_close(). */
GSAS_API int gsas_queue_open(gsas_addr addr, struct gsas_queue_handle **q);
GSAS_API void gsas_queue_close(struct gsas_queue_handle *q);

/* Put a word into the queue. 0: the service will put it in, in the order of
 * this thread's calls. -EAGAIN: the queue is full, and nothing was put in.
 * -EDQUOT: as many threads put words in as the queue has places. -ESTALE: the
 * queue was freed, with the words in it. The call waits for the service at the
 * first word, and while the thread's whole window (64 words at most) has not
 * been acknowledged. */
GSAS_API int gsas_enqueue(struct gsas_queue_handle *q, uint64_t word);

/* Take the oldest word out of the queue. -EAGAIN: the queue is empty. */
GSAS_API int gsas_dequeue(struct gsas_queue_handle *q, uint64_t *word);

/* Take the oldest word out of the queue, and wait at most ms milliseconds for
 * one, without limit if ms is -1. -ETIMEDOUT: the queue stayed empty, or the
 * service is stopped. */
GSAS_API int gsas_dequeue_wait(struct gsas_queue_handle *q, uint64_t *word,
			       int ms);

/* ---- Teams: barriers and symmetric memory -------------------------------- */

/*
 * A team: processes of one job, with numbers from 0, that meet at barriers.
 * All members make the calls below, in the same order. A time, ms, is in
 * milliseconds; -1: without limit. One thread at a time uses a team.
 *
 * -ETIMEDOUT: a member did not come in time. -ECONNRESET: a member has ended,
 * has closed the team, or had a time-out. Then the team is broken: all later
 * barriers return -ECONNRESET, to all members, and the members close it.
 */
struct gsas_team;
struct gsas_symmetric;

#define GSAS_TEAM_MAX		65536	/* members */

/*
 * Open a team and wait until all members have opened it. name: 1 to 16 bytes,
 * the same for all members; teams of a job that exist at the same time have
 * different names. board: the number of the board with the page that the
 * members share, the same for all members. index: of this member; members:
 * their number, the same for all. Both -1: those that the launcher (mpirun,
 * srun) gives; -ENOENT: it gives none.
 */
GSAS_API int gsas_team_open(const char *name, int board, int index,
			    int members, int ms, struct gsas_team **team);

/* Leave a team. Does not wait. The last member that closes it frees the page
 * that the members share. The team is no longer valid, also after an error. */
GSAS_API int gsas_team_close(struct gsas_team *team);

/* The number of this member; the number of members. */
GSAS_API int gsas_team_index(const struct gsas_team *team);
GSAS_API int gsas_team_members(const struct gsas_team *team);

/* Wait until all members have called this. The requests that the members'
 * calling threads had made before, posted ones too, are executed then. Returns
 * the error of a posted request, as gsas_fence(), but after the barrier; if the
 * barrier fails, a later fence returns that error. */
GSAS_API int gsas_team_barrier(struct gsas_team *team, int ms);

/*
 * Allocate symmetric memory: pages on the board of each member, as by
 * gsas_alloc(), flags without GSAS_GROUP_ONLY. All members wait for each other,
 * but posted requests are not waited for: their errors are those of the next
 * fence or barrier. If it fails for one member, it fails for all, and nothing
 * is allocated. -EINVAL: members differ in pages. An ms below -1 fails for this
 * member only, which may call again.
 */
GSAS_API int gsas_team_alloc(struct gsas_team *team, uint64_t pages,
			     unsigned flags, int ms,
			     struct gsas_symmetric **mem);

/* The address of a byte in a member's part of symmetric memory: the same offset
 * is at the same place in each part. 0: there is no such member or offset. Any
 * thread. */
GSAS_API gsas_addr gsas_symmetric_at(const struct gsas_symmetric *mem,
				     int member, uint64_t offset);

/* Free symmetric memory: gsas_team_barrier(), then each member frees its part,
 * also if the barrier fails. *mem is no longer valid. -EINVAL: ms is below -1;
 * nothing is freed. */
GSAS_API int gsas_team_free(struct gsas_team *team, struct gsas_symmetric *mem,
			    int ms);

/* ---- Processes ----------------------------------------------------------- */

#define GSAS_PATH		4000	/* bytes of a file name, with its 0 */

/*
 * Start a program on a board, in this job. The service decides which programs
 * are allowed: gsasd(8). Their output is written to NAME-BOARD-stdout.log and
 * NAME-BOARD-stderr.log. *pid: the process id on that board.
 * -ENOENT: no such file; -EPERM: not allowed; -ENAMETOOLONG.
 */
GSAS_API int gsas_fork(const char *path, uint64_t arg, int board,
		       uint64_t *pid);

/* The argument that gsas_fork() gave this process. -ENOENT: gsas_fork() did not
 * start it. */
GSAS_API int gsas_argument(uint64_t *arg);

#ifdef __cplusplus
}
#endif

#endif /* GSAS_H */
