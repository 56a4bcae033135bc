/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unim_dma.h - user-initiated RDMA of Unimem: buffers on any board, transfers
 * by the cDMA engine [D 3.1, 3.4]. Link with -lunimem-rdma. Manual:
 * unim_dma(3).
 *
 * The first part has the types, names and prototypes as published. The second
 * part, with the prefix unim_dma_, is an addition of this project: the same
 * with error numbers, policies, waits, an event fd, and notification of the
 * remote side. Both parts work on the same objects.
 *
 * A call of the first part that fails returns NULL, 0, DMA_FAILED or a negative
 * errno, as its comment says, and stores the reason for unim_dma_error(). A
 * call of the second part returns 0, unless its comment says otherwise, or a
 * negative errno:
 *
 *	-EINVAL		no unim_dma_init() in this process; an argument is NULL
 *			or out of range
 *	-EALREADY	the library is open
 *	-ENXIO		no such node
 *	-ENOMEM		the node, or this process, has no more memory; no
 *			thread can be made for call-backs
 *	-EDQUOT		the user's share of the node's memory is used up
 *	-EFAULT		no such buffer
 *	-ESTALE		the buffer was freed
 *	-EACCES		the buffer belongs to another job
 *	-EPERM		the memory was not allocated to be mapped
 *	-EOPNOTSUPP	the process cannot have a pointer to the buffer
 *	-ENOENT		no such transfer, or its state is not known any more
 *	-EAGAIN		2^14 transfers are under way
 *	-EIO		the engine has failed to move the data
 *	-ECONNREFUSED	the node has no service, and none could be started
 *	-EHOSTUNREACH	the host of the node does not answer
 *	-ECONNRESET	the service of the node has ended, and its memory is
 *			gone
 *	-ETIMEDOUT	the time is over; the service of the node is stopped:
 *			it has not answered for GSAS_TIMEOUT (30 s), and the
 *			buffers of the process there are lost
 *	-EPROTO		the service of the node does not follow its protocol
 *	-ELIBBAD	libgsas is of another version than this library
 *	-EBUSY, -EMFILE, -ENODEV
 *			of unim_dma_init(): no interface can be opened; a log
 *			line says why
 *
 * All calls are thread-safe. Only transfers with a call-back use a thread of
 * the library. Without one, transfers progress in the calls of submission,
 * unim_dma_status(), unim_dma_test(), unim_dma_wait(), unim_dma_poll(),
 * unim_dma_wait_notify(), and while unim_free_buf() waits. A call that sends a
 * request to a service keeps other threads waiting until the answer. A forked
 * child has none of its parent's buffers and transfers, and calls
 * unim_dma_init() for itself.
 */
#ifndef UNIM_DMA_H
#define UNIM_DMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define UNIM_API	__attribute__((visibility("default")))
#else
#define UNIM_API
#endif

/* ---- As published: types [D 3.4.1] ------------------------------------- */

/* The ID of a node: the number of its board, from 0 */
typedef uint32_t unim_node_id_t;
/* A node, valid until unim_dma_cleanup() */
typedef const struct unim_dma_node *unim_dma_node_t;
/* A buffer, as this process sees it */
typedef struct unim_dma_buffer unim_dma_buffer_t;
/* The ID of a buffer, the same for all processes of a job: the address of its
 * first byte in the global address space [D 2.2.2]. 0 is no ID. */
typedef uint64_t unim_dma_buf_id_t;
/* A transfer; programs use its ID only. */
typedef struct unim_dma_transfer unim_dma_transfer_t;
/* The ID of a transfer, unique in the system. 0 is no ID. */
typedef uint64_t unim_dma_transfer_id_t;
/* Called when a transfer has ended, completed or failed, by the submitter
 * thread of the library. It may make any call but unim_dma_cleanup(). */
typedef void (*unim_comp_cb_t)(void *);

/* The state of a transfer */
typedef enum {
	DMA_PENDING,			/* in the list, not started */
	DMA_STARTED,			/* started, not ended */
	DMA_COMPLETED,			/* ended: the data are visible */
	DMA_FAILED,			/* ended: the bytes of the destination
					 * are undefined */
} unim_dma_status_t;

/* ---- As published: functions [D 3.4.2 to 3.4.5] ------------------------ */

/* Open the library for a process of this node. node_id is the board of the
 * process (FI_UNIMEM_BOARD); where boards are emulated with coherent memory,
 * any board. 0; or a negative errno: -EALREADY, -ENXIO, -EINVAL: the process
 * is of another node; -ELIBBAD, -ENOMEM, -EBUSY, -EMFILE, -ENODEV. */
UNIM_API int unim_dma_init(unim_node_id_t node_id);

/* End the library: free all buffers that this process allocated, and all
 * objects. Transfers under way are canceled, without a call-back. No other
 * thread may be in a call. */
UNIM_API void unim_dma_cleanup(void);

/* Allocate a buffer on the node of the process, or on another node; size
 * bytes, rounded up to pages of 4096, zero. It belongs to this process, whose
 * end frees it. NULL: error. */
UNIM_API unim_dma_buffer_t *unim_alloc_buf_l(uint32_t size);
UNIM_API unim_dma_buffer_t *unim_alloc_buf_r(uint32_t size,
					     unim_dma_node_t node);

/* Free a buffer that this process allocated, or release one of unim_get_buf().
 * Waits for its transfers: for those that notify a stopped service until they
 * fail (GSAS_TIMEOUT, 30 s). NULL: no effect. Pointers to its memory end. */
UNIM_API void unim_free_buf(unim_dma_buffer_t *buf);

/* Find a buffer by its ID; any process of the job of the owner may. Each call
 * makes an object, for unim_free_buf(). Memory of gsas_alloc() is found too, of
 * other jobs of this user if its mode admits them; memory of another user is
 * never found (-EFAULT). NULL: error. */
UNIM_API unim_dma_buffer_t *unim_get_buf(unim_dma_buf_id_t id);

/* The ID of a buffer. 0: error. */
UNIM_API unim_dma_buf_id_t unim_get_buf_id(unim_dma_buffer_t *buf);

/* A pointer to the memory of a buffer, valid until unim_free_buf(). NULL: no
 * pointer; on boards those of other nodes have none, because they are Device
 * memory. */
UNIM_API void *unim_buf_get_memory(unim_dma_buffer_t *buf);

/*
 * Submit a transfer of size bytes, from offset src_off of the source to offset
 * dst_off of the destination: two buffers, or a buffer and memory of the
 * process. Transfers are started in the order of these calls and end in any.
 * comp_cb (NULL: none) is called with cb_arg at the end. The memory must stay
 * valid until then. It is copied only if it is not dmable and the engine cannot
 * reach it. Returns the ID; 0: error. Waits while 2^14 transfers are under way,
 * and makes progress meanwhile, also in a call-back. If the owner of a buffer
 * frees it before the end of the transfer, the transfer fails with -ESTALE
 * where this process has a pointer to the buffer; elsewhere it completes.
 */
UNIM_API unim_dma_transfer_id_t
unim_dma_submit_transfer(unim_dma_buffer_t *src, unim_dma_buffer_t *dst,
			 uint64_t src_off, uint64_t dst_off, uint64_t size,
			 unim_comp_cb_t comp_cb, void *cb_arg);
UNIM_API unim_dma_transfer_id_t
unim_dma_submit_transfer_from_mem(void *src, unim_dma_buffer_t *dst,
				  uint64_t src_off, uint64_t dst_off,
				  uint64_t size, unim_comp_cb_t comp_cb,
				  void *cb_arg);
UNIM_API unim_dma_transfer_id_t
unim_dma_submit_transfer_to_mem(unim_dma_buffer_t *src, void *dst,
				uint64_t src_off, uint64_t dst_off,
				uint64_t size, unim_comp_cb_t comp_cb,
				void *cb_arg);

/* The state of a transfer of this process. It is known until 2^14 later
 * transfers were submitted, or fewer by each one that has not ended meanwhile.
 * DMA_FAILED: also an ID that is not known; the reason is that of
 * unim_dma_error(). */
UNIM_API unim_dma_status_t unim_dma_status(unim_dma_transfer_id_t tID);

/* The node with this ID. NULL: error. */
UNIM_API unim_dma_node_t unim_dma_get_node(unim_node_id_t id);

/* ---- Additions: errors, nodes ------------------------------------------ */

/* The error of the last call of the first part in this thread, a negative
 * errno; 0: that call succeeded. Of unim_dma_status() also: why the transfer
 * failed. Calls of the second part return their errors and leave this one as it
 * is. */
UNIM_API int unim_dma_error(void);
/* A text for an error. */
UNIM_API const char *unim_dma_strerror(int error);
/* The number of nodes of the system, or a negative errno. */
UNIM_API int unim_dma_nodes(void);

/* ---- Additions: buffers ------------------------------------------------ */

/* On which node to allocate */
enum unim_dma_policy {
	UNIM_DMA_LOCAL,			/* the node of the process */
	UNIM_DMA_NODE,			/* the node that is given */
	UNIM_DMA_INTERLEAVE,		/* each allocation of the process on the
					 * next node, in turn */
	UNIM_DMA_NEAREST,		/* the node of the process, or the
					 * nearest other one that has the
					 * memory, of 16 nodes of the host, then
					 * 16 of other hosts, up to a host that
					 * does not answer; if none has, the
					 * error of the node of the process */
};

/* Allocate a buffer of size bytes as unim_alloc_buf_l(). node: for
 * UNIM_DMA_NODE only. */
UNIM_API int unim_dma_alloc(uint64_t size, enum unim_dma_policy policy,
			    unim_node_id_t node, unim_dma_buffer_t **buf);
/* As unim_get_buf(). */
UNIM_API int unim_dma_get(unim_dma_buf_id_t id, unim_dma_buffer_t **buf);
/* As unim_free_buf(). */
UNIM_API int unim_dma_free(unim_dma_buffer_t *buf);
/* The size in bytes and the node of a buffer; of NULL: 0, and UINT32_MAX. */
UNIM_API uint64_t unim_dma_buf_size(const unim_dma_buffer_t *buf);
UNIM_API unim_node_id_t unim_dma_buf_node(const unim_dma_buffer_t *buf);
/* The global address of a byte of a buffer to which this process has a pointer:
 * the ID of the buffer plus the offset. -EFAULT: no such buffer. */
UNIM_API int unim_dma_translate(const void *addr, uint64_t *global);

/* ---- Additions: transfers ---------------------------------------------- */

/* A transfer to be submitted. Zero what is not used. */
struct unim_dma_request {
	unim_dma_buffer_t *src, *dst;	/* NULL: the memory below */
	void *src_mem, *dst_mem;	/* used where src or dst is NULL */
	uint64_t src_off, dst_off, size;	/* bytes */
	unim_comp_cb_t comp_cb;		/* NULL: none */
	void *cb_arg;
	int notify;			/* not 0: when the data are visible, add
					 * 1 to the word at notify_off of dst */
	uint64_t notify_off;		/* a multiple of 8 */
};

/* Submit a transfer; *id is set before a call-back comes. -EAGAIN: 2^14 are
 * under way, call unim_dma_poll(). */
UNIM_API int unim_dma_submit(const struct unim_dma_request *request,
			     unim_dma_transfer_id_t *id);

/* Store the state of a transfer. 0; -ENOENT: it is not known (any more). */
UNIM_API int unim_dma_test(unim_dma_transfer_id_t id,
			   unim_dma_status_t *status);
/* Wait until a transfer has ended, at most timeout_ms milliseconds (-1: no
 * limit). 0: completed; -ETIMEDOUT; -ENOENT; or the reason why it failed. */
UNIM_API int unim_dma_wait(unim_dma_transfer_id_t id, int timeout_ms);

/* Progress, and store up to max IDs of transfers that ended since
 * unim_dma_event_fd() was called first, each once. An ID is dropped when the
 * state of its transfer is not known any more. Returns their number. */
UNIM_API int unim_dma_poll(unim_dma_transfer_id_t *ids, int max);
/* A descriptor that is readable while unim_dma_poll() has something to do: IDs
 * to return, or transfers under way that no thread of the library advances. The
 * library owns it. */
UNIM_API int unim_dma_event_fd(void);

/* Wait until the word at an offset of a buffer, a multiple of 8, has reached a
 * value: until its difference to the value, as a signed number, is not
 * negative. This is how the node of a buffer, or any other, learns of
 * transfers that notify: their data are visible then. 0; -ETIMEDOUT;
 * -ECONNRESET, -ESTALE: the memory is gone. */
UNIM_API int unim_dma_wait_notify(unim_dma_buffer_t *buf, uint64_t off,
				  uint64_t value, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* UNIM_DMA_H */
