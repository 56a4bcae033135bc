/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken_dma.c - mutations of dmable memory and cDMA, see broken.h
 */
#include <string.h>

#include <sys/uio.h>

#include "hal/emu/hal_emu_types.h"
#include "broken.h"

#define QUEUE	4096

/*
 * Completions that are invented or delayed, and transfers that are not yet
 * posted. The tests that must fail post from one thread and one interface.
 */
static struct hal_dma_comp comps[QUEUE];
static unsigned comps_first, comps_last;
static struct {
	struct hal_dma dma;
	uint64_t token;
} waiting[QUEUE];
static unsigned waiting_first, waiting_last;
static unsigned long polled;

static void keep(uint64_t token, int status)
{
	comps[comps_last++ % QUEUE] = (struct hal_dma_comp){ token, status };
}

static int hand_out(struct hal_dma_comp *comp, int max)
{
	int n = 0;

	while (n < max && comps_first != comps_last)
		comp[n++] = comps[comps_first++ % QUEUE];
	return n;
}

/* ---- Posting --------------------------------------------------------- */

/* The post executes the transfer before it returns. */
static int post_inline(struct hal_if *hif, const struct hal_dma *dma,
		       uint64_t token)
{
	struct hal_dma_comp comp;
	int ret = broken_base->dma_post(hif, dma, token);

	while (ret == 0) {
		if (broken_base->dma_poll(hif, &comp, 1) == 0)
			continue;
		keep(comp.token, comp.status);
		if (comp.token == token)
			break;
	}
	return ret;
}

static int poll_kept(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = hand_out(comp, max);

	return n + broken_base->dma_poll(hif, comp + n, max - n);
}

static void install_inline(struct hal_ops *ops)
{
	ops->dma_post = post_inline;
	ops->dma_poll = poll_kept;
}

/* Complete a transfer before its bytes are moved. */
static int post_early(struct hal_if *hif, const struct hal_dma *dma,
		      uint64_t token)
{
	int ret = broken_base->dma_post(hif, dma, token);

	if (ret == 0)
		keep(token, 0);
	return ret;
}

static int poll_early(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	struct hal_dma_comp real;
	int n = hand_out(comp, max);

	if (n == 0)
		broken_base->dma_poll(hif, &real, 1);
	return n;
}

static void install_early(struct hal_ops *ops)
{
	ops->dma_post = post_early;
	ops->dma_poll = poll_early;
}

/* Accept more than dma_depth transfers. */
static int post_deep(struct hal_if *hif, const struct hal_dma *dma,
		     uint64_t token)
{
	int ret = broken_base->dma_post(hif, dma, token);

	if (ret != -FI_EAGAIN)
		return ret;
	waiting[waiting_last % QUEUE].dma = *dma;
	waiting[waiting_last++ % QUEUE].token = token;
	return 0;
}

static int poll_deep(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	while (waiting_first != waiting_last &&
	       broken_base->dma_post(hif, &waiting[waiting_first % QUEUE].dma,
				     waiting[waiting_first % QUEUE].token) == 0)
		waiting_first++;
	return broken_base->dma_poll(hif, comp, max);
}

static void install_deep(struct hal_ops *ops)
{
	ops->dma_post = post_deep;
	ops->dma_poll = poll_deep;
}

/* Accept dma_depth - 1 transfers only. */
static unsigned outstanding;

static int post_shallow(struct hal_if *hif, const struct hal_dma *dma,
			uint64_t token)
{
	int ret = -FI_EAGAIN;

	if (outstanding < hif->caps->dma_depth - 1)
		ret = broken_base->dma_post(hif, dma, token);
	outstanding += ret == 0;
	return ret;
}

static int poll_shallow(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = broken_base->dma_poll(hif, comp, max);

	outstanding -= n;
	return n;
}

static void install_shallow(struct hal_ops *ops)
{
	ops->dma_post = post_shallow;
	ops->dma_poll = poll_shallow;
}

/* Move one byte too many. */
static int post_long(struct hal_if *hif, const struct hal_dma *dma,
		     uint64_t token)
{
	struct hal_dma longer = *dma;

	longer.len++;
	return broken_base->dma_post(hif, &longer, token);
}

static void install_long(struct hal_ops *ops)
{
	ops->dma_post = post_long;
}

/* Move one byte too few. */
static int post_short(struct hal_if *hif, const struct hal_dma *dma,
		      uint64_t token)
{
	struct hal_dma shorter = *dma;

	if (shorter.len > 4096)
		shorter.len--;
	return broken_base->dma_post(hif, &shorter, token);
}

static void install_short(struct hal_ops *ops)
{
	ops->dma_post = post_short;
}

static int post_without_check(struct hal_if *hif, const struct hal_dma *dma,
			      uint64_t token)
{
	int ret = broken_base->dma_post(hif, dma, token);

	if (ret != -FI_EINVAL)
		return ret;
	keep(token, 0);
	return 0;
}

static void install_no_check(struct hal_ops *ops)
{
	ops->dma_post = post_without_check;
	ops->dma_poll = poll_kept;
}

/* ---- Polling --------------------------------------------------------- */

static int poll_twice(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = hand_out(comp, max);

	if (n == 0)
		n = broken_base->dma_poll(hif, comp, max);
	for (int i = 0; i < n; i++) {
		if (++polled % 100 == 0)
			keep(comp[i].token, comp[i].status);
	}
	return n;
}

static void install_twice(struct hal_ops *ops)
{
	ops->dma_poll = poll_twice;
}

static int poll_lossy(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = broken_base->dma_poll(hif, comp, max), kept = 0;

	for (int i = 0; i < n; i++) {
		if (++polled % 100 != 0)
			comp[kept++] = comp[i];
	}
	return kept;
}

static void install_lossy(struct hal_ops *ops)
{
	ops->dma_poll = poll_lossy;
}

/* Do all outstanding work in one call. */
static int poll_greedy(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = 0;

	for (int i = 0; i < 1000 && n < max; i++)
		n += broken_base->dma_poll(hif, comp + n, max - n);
	return n;
}

static void install_greedy(struct hal_ops *ops)
{
	ops->dma_poll = poll_greedy;
}

/* Return more completions than the caller has space for. */
static int poll_overflow(struct hal_if *hif, struct hal_dma_comp *comp,
			 int max)
{
	(void)max;
	return broken_base->dma_poll(hif, comp, 2);
}

static void install_overflow(struct hal_ops *ops)
{
	ops->dma_poll = poll_overflow;
}

static int poll_forgets_cancelled(struct hal_if *hif,
				  struct hal_dma_comp *comp, int max)
{
	int n = broken_base->dma_poll(hif, comp, max), kept = 0;

	for (int i = 0; i < n; i++) {
		if (comp[i].status != -FI_ECANCELED)
			comp[kept++] = comp[i];
	}
	return kept;
}

static void install_forgets_cancelled(struct hal_ops *ops)
{
	ops->dma_poll = poll_forgets_cancelled;
}

static int poll_hides_cancelled(struct hal_if *hif, struct hal_dma_comp *comp,
				int max)
{
	int n = broken_base->dma_poll(hif, comp, max);

	for (int i = 0; i < n; i++)
		comp[i].status = 0;
	return n;
}

static void install_hides_cancelled(struct hal_ops *ops)
{
	ops->dma_poll = poll_hides_cancelled;
}

/* ---- Memory ---------------------------------------------------------- */

static void free_later(struct hal_mem *mem)
{
	(void)mem;			/* freed when the backend is closed */
}

static void install_free_later(struct hal_ops *ops)
{
	ops->mem_free = free_later;
}

static struct hal_key last_key;

static int remember_key(struct hal_mem *mem, struct hal_key *key)
{
	int ret = broken_base->mem_key(mem, key);

	last_key = *key;
	return ret;
}

/* Import the last key that was created, whatever key is asked for. */
static int import_anything(struct hal_peer *peer, const struct hal_key *key,
			   struct hal_rmem **rmem)
{
	(void)key;
	return broken_base->mem_import(peer, &last_key, rmem);
}

static void install_any_key(struct hal_ops *ops)
{
	ops->mem_key = remember_key;
	ops->mem_import = import_anything;
}

static int alloc_dirty(struct hal *hal, int board, size_t bytes,
		       struct hal_mem **mem, void **addr)
{
	int ret = broken_base->mem_alloc(hal, board, bytes, mem, addr);

	if (ret == 0)
		((uint8_t *)*addr)[bytes / 2] = 1;
	return ret;
}

static void install_dirty(struct hal_ops *ops)
{
	ops->mem_alloc = alloc_dirty;
}

/* Once a peer is dead, cancel transfers with other peers too. */
static bool one_ended;

static void note_end(struct hal_event *ev)
{
	one_ended |= ev->type == HAL_EV_DEAD;
}

static int poll_ended(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	int n = broken_base->dma_poll(hif, comp, max);

	for (int i = 0; i < n && one_ended; i++)
		comp[i].status = -FI_ECANCELED;
	return n;
}

static void install_others_cancelled(struct hal_ops *ops)
{
	ops->dma_poll = poll_ended;
}

/* Access ordinary memory by the peer's process id, without checking that the
 * process is still the peer. */
static int post_by_number(struct hal_if *hif, const struct hal_dma *dma,
			  uint64_t token)
{
	struct iovec local = { dma->local, dma->len };
	struct iovec remote = { (void *)(uintptr_t)dma->raddr, dma->len };
	pid_t pid;

	if (dma->rmem != NULL || !dma->peer->dma_any)
		return broken_base->dma_post(hif, dma, token);
	pid = emu_peer(dma->peer)->pid;
	if (dma->op == HAL_DMA_GET)
		process_vm_readv(pid, &local, 1, &remote, 1, 0);
	else
		process_vm_writev(pid, &local, 1, &remote, 1, 0);
	keep(token, 0);
	return 0;
}

static void install_by_number(struct hal_ops *ops)
{
	ops->dma_post = post_by_number;
	ops->dma_poll = poll_kept;
}

const struct mutation broken_dma[] = {
	{ .name = "dma-by-number", .test = "proc_exec_put",
	  .install = install_by_number },
	{ .name = "dma-from-number", .test = "proc_exec_get",
	  .install = install_by_number },
	{ "dma-inline", "dma_never_inline", .install = install_inline },
	{ "dma-early", "dma_one_completion_after_data",
	  .install = install_early },
	{ "dma-deep", "dma_depth_exact", .install = install_deep },
	{ "dma-shallow", "dma_depth_exact", .install = install_shallow },
	{ "dma-long", "dma_every_size", .install = install_long },
	{ "dma-short", "dma_every_size", .install = install_short },
	{ "dma-unchecked", "dma_bounds", .install = install_no_check },
	{ "dma-twice", "dma_one_completion_after_data",
	  .install = install_twice },
	{ "dma-lossy", "dma_one_completion_after_data",
	  .install = install_lossy },
	{ "dma-greedy", "dma_poll_is_bounded", .install = install_greedy },
	{ "dma-overflow", "dma_poll_obeys_max", .install = install_overflow },
	{ "dma-forgets-cancelled", "dma_cancelled_by_peer_close",
	  .install = install_forgets_cancelled },
	{ "dma-hides-cancelled", "dma_cancelled_by_peer_free",
	  .install = install_hides_cancelled },
	{ "dma-others-cancelled", "dma_others_go_on", .event = note_end,
	  .install = install_others_cancelled },
	{ "dma-never-cancelled", "proc_dma_peer_dies",
	  .install = install_forgets_cancelled },
	{ "key-immortal", "mem_stale_key_is_refused",
	  .install = install_free_later },
	{ "key-any", "mem_wrong_key_is_refused", .install = install_any_key },
	{ "memory-dirty", "mem_alloc_gives_clean_memory",
	  .install = install_dirty },
};
const int broken_dma_count = sizeof(broken_dma) / sizeof(broken_dma[0]);
