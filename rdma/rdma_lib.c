/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_lib.c - the library of the process: init and cleanup, nodes, errors, the
 * lock, and how a call waits.
 *
 * A forked child has copies of its parent's objects, but the interface belongs
 * to the parent. Calls fail in the child until it calls unim_dma_init(), which
 * frees the copies first.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rdma_lib.h"
#include "rdma_engine.h"
#include "rdma_segment.h"
#include "rdma_thread.h"
#include "util/unm_clock.h"

#define SPINS		64		/* steps in vain before a yield */
#define YIELDS		512		/* and before a nap */
#define NAP_NS		50000

static struct rdma lib;
static _Atomic int owner;		/* process that opened the library, 0:
					 * none; read without the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int last_error;

/* ---- The lock and waiting ---------------------------------------------- */

struct rdma *rdma_enter(void)
{
	/* In a forked child a thread of the parent may hold the lock, for ever.
	 * Pairs with the release in own(): the child's lock is new. */
	if (atomic_load_explicit(&owner, memory_order_acquire) !=
	    (int)getpid())
		return NULL;
	pthread_mutex_lock(&lock);
	if (lib.ready)
		return &lib;
	pthread_mutex_unlock(&lock);
	return NULL;
}

void rdma_leave(struct rdma *r)
{
	rdma_engine_signal(r);
	pthread_mutex_unlock(&lock);
}

void rdma_pause(unsigned int idle)
{
	const struct timespec nap = { 0, NAP_NS };

	if (idle > SPINS + YIELDS)
		nanosleep(&nap, NULL);
	else if (idle > SPINS)
		sched_yield();
}

int rdma_wait_step(struct rdma_wait *wait, int timeout_ms)
{
	struct rdma *r = rdma_enter();
	bool some;

	if (r == NULL)
		return -EINVAL;
	some = rdma_engine_progress(r);
	rdma_leave(r);
	if (timeout_ms >= 0) {
		uint64_t now = unm_now_ns();

		if (wait->end == 0)
			wait->end = now + (uint64_t)timeout_ms * 1000000;
		if (now >= wait->end)
			return -ETIMEDOUT;
	}
	wait->idle = some ? 0 : wait->idle + 1;
	rdma_pause(wait->idle);
	return 0;
}

/* ---- Errors ------------------------------------------------------------ */

int rdma_fail(int error)
{
	last_error = error;
	return error;
}

int unim_dma_error(void)
{
	return last_error;
}

const char *unim_dma_strerror(int error)
{
	switch (error) {
	case 0:
		return "no error";
	case -ENOENT:
		return "no such transfer, or it ended long ago";
	case -ESTALE:
		return "the buffer was freed";
	case -EFAULT:
		return "no buffer has this address";
	case -ECONNRESET:
		return "the service of the node has ended";
	case -EDQUOT:
		return "the user's share of the node is used up";
	default:
		return strerror(error < 0 ? -error : error);
	}
}

/* ---- Nodes ------------------------------------------------------------- */

int unim_dma_nodes(void)
{
	return gsas_boards();
}

unim_dma_node_t unim_dma_get_node(unim_node_id_t id)
{
	struct rdma *r = rdma_enter();
	unim_dma_node_t node = NULL;

	if (r == NULL) {
		rdma_fail(-EINVAL);
		return NULL;
	}
	if (id < r->boards)
		node = &r->nodes[id];
	rdma_fail(node != NULL ? 0 : -ENXIO);
	rdma_leave(r);
	return node;
}

/* ---- Beginning and end ------------------------------------------------- */

/* Free all. child: in a forked child, whose copies have no effect on the
 * parent. */
static void lib_free(struct rdma *r, bool child)
{
	if (r->port != NULL)
		gsas_port_close(r->port);
	unm_list_for_each_safe(pos, tmp, &r->buffers)
		free(unm_container(pos, struct unim_dma_buffer, list));
	unm_list_for_each_safe(pos, tmp, &r->segments)
		rdma_segment_free(r, unm_container(pos, struct rdma_segment,
						   list), child);
	unm_list_for_each_safe(pos, tmp, &r->callbacks)
		free(unm_container(pos, struct rdma_callback, list));
	for (uint32_t i = 0; r->slot != NULL && i < RDMA_SLOTS; i++)
		free(r->slot[i].callback);
	if (r->bounce != NULL)
		hal_mem_free(r->hal, r->bounce);
	if (r->hal != NULL)
		hal_put(r->hal);
	if (r->event_fd >= 0)
		close(r->event_fd);
	if (!child)			/* its waiter is of the parent */
		pthread_cond_destroy(&r->wake);
	free(r->slot);
	free(r->nodes);
	*r = (struct rdma){ .event_fd = -1 };
}

static void lists_init(struct rdma *r)
{
	unm_list_init(&r->buffers);
	unm_list_init(&r->segments);
	unm_list_init(&r->pending);
	unm_list_init(&r->blocked);
	unm_list_init(&r->notifying);
	unm_list_init(&r->callbacks);
	unm_list_init(&r->ended);
}

/* May the process be on this node? Not on one of another host; and without
 * windows pointers reach the memory of the own board only. */
static int check_node(const struct hal *hal, unim_node_id_t node)
{
	uint32_t any = HAL_CAP_ANY_BOARD | HAL_CAP_COHERENT;

	if (node >= hal->caps.boards)
		return -ENXIO;
	if ((int)node == hal->own_board ||
	    ((hal->caps.flags & any) == any && hal_board_here(hal, node)))
		return 0;
	hal_log(0, "unim_dma_init(%u): this process is of board %d "
		"(FI_UNIMEM_BOARD)%s", node, hal->own_board,
		hal_board_here(hal, node) ? "" : ", and that board of another "
		"host");
	return -EINVAL;
}

static int lib_open(struct rdma *r, unim_node_id_t node)
{
	int ret = hal_get(NULL, &r->hal);

	if (ret == 0)
		ret = check_node(r->hal, node);
	if (ret == 0)
		ret = gsas_port_open(PACKAGE_VERSION, (int)node, &r->port);
	if (ret != 0)
		return ret;
	r->node = node;
	r->boards = r->hal->caps.boards;
	r->turn = node;
	r->slot = calloc(RDMA_SLOTS, sizeof(r->slot[0]));
	r->nodes = calloc(r->boards, sizeof(r->nodes[0]));
	if (r->slot == NULL || r->nodes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->boards; i++)
		r->nodes[i].id = i;
	return 0;
}

/*
 * Make this process the owner. A forked child frees its copies of the parent's
 * objects first, and makes the lock anew. One thread does it, with the owner
 * set to -pid; others wait for it.
 */
static void own(int pid)
{
	int was;

	/* pairs with the release below: the lock is new */
	while ((was = atomic_load_explicit(&owner, memory_order_acquire)) !=
	       pid) {
		if (was == -pid) {
			sched_yield();
			continue;
		}
		if (!atomic_compare_exchange_strong_explicit(&owner, &was,
				was == 0 ? pid : -pid, memory_order_acquire,
				memory_order_relaxed) || was == 0)
			continue;
		pthread_mutex_init(&lock, NULL);
		if (lib.ready)
			lib_free(&lib, true);
		atomic_store_explicit(&owner, pid, memory_order_release);
	}
}

int unim_dma_init(unim_node_id_t node_id)
{
	int pid = (int)getpid(), ret;

	own(pid);
	pthread_mutex_lock(&lock);
	if (lib.ready) {
		pthread_mutex_unlock(&lock);
		return rdma_fail(-EALREADY);
	}
	lib = (struct rdma){ .event_fd = -1, .lock = &lock };
	lists_init(&lib);
	pthread_cond_init(&lib.wake, NULL);
	ret = lib_open(&lib, node_id);
	if (ret != 0)
		lib_free(&lib, false);
	lib.ready = ret == 0;
	lib.pid = pid;
	pthread_mutex_unlock(&lock);
	return rdma_fail(ret);
}

void unim_dma_cleanup(void)
{
	struct rdma *r = rdma_enter();

	if (r == NULL)
		return;
	rdma_thread_end(r);
	lib_free(r, false);
	pthread_mutex_unlock(&lock);
}
