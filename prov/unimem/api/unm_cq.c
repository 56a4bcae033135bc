/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cq.c - fi_cq(3): opening, reading, waiting for and closing completion
 * queues.
 *
 * The state is struct unm_cq (core/unm_cq_ring.h). Operations push completions
 * to its ring in core/unm_complete.c; this file takes them out. Reading makes
 * progress on the endpoints that are bound to the queue. The domain's lock
 * protects a queue. Sleeping is in progress/unm_sleep.c.
 *
 * Entry points: unm_cq_open(), unm_cq_trywait(), unm_cq_removed(). libfabric
 * calls the rest through its tables.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/unm_cq.h"
#include "api/unm_wait.h"
#include "core/unm_av_table.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_idle.h"
#include "core/unm_obj.h"
#include "core/unm_peer.h"
#include "core/unm_wake.h"
#include "progress/unm_progress.h"
#include "progress/unm_sleep.h"
#include "trigger/unm_trigger.h"
#include "unm_env.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "util/unm_list.h"

#define UNM_CQ_MAX	(1 << 24)	/* entries */

/* ---- Reading --------------------------------------------------------- */

static const size_t unm_cq_entry_bytes[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* Each format is a prefix of FI_CQ_FORMAT_TAGGED, and that is a prefix of
 * struct unm_cqe, so reading copies the first bytes of an entry. */
#define UNM_CQ_SAME(a, b)	\
	(offsetof(struct fi_cq_tagged_entry, a) == offsetof(struct unm_cqe, b))
_Static_assert(UNM_CQ_SAME(op_context, context) && UNM_CQ_SAME(flags, flags) &&
	       UNM_CQ_SAME(len, len) && UNM_CQ_SAME(buf, buf) &&
	       UNM_CQ_SAME(data, data) && UNM_CQ_SAME(tag, tag),
	       "an entry is copied as it is");

static inline void unm_cq_copy(const struct unm_cqe *cqe, void *buf,
			       size_t bytes)
{
	if (bytes == sizeof(struct fi_cq_tagged_entry))
		memcpy(buf, cqe, sizeof(struct fi_cq_tagged_entry));
	else
		memcpy(buf, cqe, bytes);
}

/* Operations that the full queue refused are possible now: report that to
 * threads that would retry them, and to those that would start work. */
static void unm_cq_retry(struct unm_cq *cq)
{
	cq->refused = false;
	unm_list_for_each(pos, &cq->eps)
		unm_ep_signal_retry(unm_container(pos, struct unm_ep_links,
						  node)->ep);
	if (unm_trigger_waits(cq->domain))
		unm_trigger_wake(cq->domain);
}

/* Entries were read from a queue that had been full: report that refused
 * operations are possible, and once the queue is half empty, send the message
 * credits that were withheld from peers. */
static void unm_cq_unthrottle(struct unm_cq *cq)
{
	if (!unm_cq_full(cq)) {
		cq->peeks = 0;
		if (cq->refused)
			unm_cq_retry(cq);
	}
	if (cq->tail - cq->head > cq->limit / 2)
		return;
	cq->throttles = false;
	unm_list_for_each(pos, &cq->eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		if (ep->rx_cq == cq)
			unm_peer_grant_throttled(ep);
	}
}

/* If the source of an unread completion was removed from the vector, set it to
 * the next index of the same address, or to FI_ADDR_NOTAVAIL. An entry for any
 * incarnation may have named several peers, one after the other, and a
 * completion does not record its peer, so the index of one incarnation is not
 * taken. An error entry has no source; its data, if any, takes the next place
 * in the ring. */
static void unm_cq_rename(struct unm_cq *cq, const struct unm_av *av)
{
	for (uint64_t i = cq->head; i != cq->tail; i++) {
		struct unm_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->err != 0)
			i += cqe->err_bytes != 0;
		else if (cqe->src < av->count && cqe->vector == av->number &&
			 !av->entry[cqe->src].valid)
			cqe->src = unm_av_find(av, &av->entry[cqe->src].addr);
	}
}

void unm_cq_removed(const struct unm_av *av)
{
	unm_list_for_each(pos, &av->domain->cqs)
		unm_cq_rename(unm_container(pos, struct unm_cq, in_domain),
			      av);
}

/* Copy up to count entries, until the next error entry. The domain is
 * locked. */
static ssize_t unm_cq_take(struct unm_cq *cq, void *buf, size_t count,
			   fi_addr_t *src)
{
	size_t bytes = unm_cq_entry_bytes[cq->format];
	size_t n = 0;

	while (n < count && cq->head != cq->tail) {
		struct unm_cqe *cqe = &cq->ring[cq->head & cq->mask];

		if (cqe->err != 0)
			break;
		unm_cq_copy(cqe, (char *)buf + n * bytes, bytes);
		if (src != NULL)
			src[n] = cqe->src;
		cq->head++;
		n++;
	}
	if (n == 0 && cq->head != cq->tail && count != 0)
		return -FI_EAVAIL;
	if (cq->head == cq->tail)	/* reuse the cache lines at the begin of
					 * the ring */
		cq->head = cq->tail = 0;
	if (__builtin_expect(cq->throttles, 0))
		unm_cq_unthrottle(cq);
	if (n != 0 || count == 0)
		return n;
	return __builtin_expect(cq->overrun, 0) ? -FI_EOVERRUN : -FI_EAGAIN;
}

/*
 * True: make progress before entries are read. That is needed if the queue
 * holds fewer entries than the caller asks for. It is also done in each 32nd
 * call, because an application that completes as many operations as it reads
 * would make no progress otherwise.
 */
static bool unm_cq_needs_progress(struct unm_cq *cq, size_t count)
{
	return cq->tail - cq->head < count || count == 0 ||
		(++cq->reads & 31) == 0;
}

static ssize_t unm_cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			       fi_addr_t *src)
{
	struct unm_cq *cq = unm_cq(fid);
	bool yield = false;
	ssize_t ret;

	unm_lock(cq->domain);
	if (unm_cq_needs_progress(cq, count)) {
		unm_wait_awake(&cq->wait);
		yield = unm_trigger_poll(cq->domain, &cq->eps, &cq->idle);
	}
	ret = unm_cq_take(cq, buf, count, src);
	unm_unlock(cq->domain);
	if (__builtin_expect(yield, 0) && ret <= 0)
		unm_idle_yield(&cq->idle);
	return ret;
}

static ssize_t unm_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return unm_cq_readfrom(fid, buf, count, NULL);
}

/*
 * Return the data of an error entry. Before API version 1.5 the structure ended
 * at err_data, which pointed to the provider's buffer. Since 1.5 the caller
 * passes a buffer of err_data_size bytes, or gets the provider's if that is 0.
 */
static void unm_cq_copy_err_data(struct unm_cq *cq, size_t bytes,
				 struct fi_cq_err_entry *buf)
{
	if (FI_VERSION_LT(cq->domain->fabric->fid.api_version,
			  FI_VERSION(1, 5))) {
		buf->err_data = bytes != 0 ? cq->err_data : NULL;
		return;
	}
	if (buf->err_data_size == 0) {
		if (bytes != 0)
			buf->err_data = cq->err_data;
		return;
	}
	if (buf->err_data_size > bytes)
		buf->err_data_size = bytes;
	if (bytes != 0)
		memcpy(buf->err_data, cq->err_data, buf->err_data_size);
}

/* Fields are set one by one, because later versions of libfabric append fields
 * to this structure. */
static void unm_cq_take_error(struct unm_cq *cq, const struct unm_cqe *cqe,
			      struct fi_cq_err_entry *buf)
{
	buf->op_context = cqe->context;
	buf->flags = cqe->flags;
	buf->len = cqe->len;
	buf->buf = cqe->buf;
	buf->data = cqe->data;
	buf->tag = cqe->tag;
	buf->olen = cqe->olen;
	buf->err = cqe->err;
	buf->prov_errno = cqe->err;
	if (cqe->err_bytes != 0)	/* valid until the next error */
		memcpy(cq->err_data, &cq->ring[++cq->head & cq->mask],
		       cqe->err_bytes);
	unm_cq_copy_err_data(cq, cqe->err_bytes, buf);
	cq->head++;
}

static ssize_t unm_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			      uint64_t flags)
{
	struct unm_cq *cq = unm_cq(fid);
	const struct unm_cqe *cqe;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	unm_lock(cq->domain);
	if (cq->head == cq->tail) {
		unm_wait_awake(&cq->wait);
		unm_trigger_poll(cq->domain, &cq->eps, &cq->idle);
	}
	cqe = &cq->ring[cq->head & cq->mask];
	if (cq->head != cq->tail && cqe->err != 0) {
		unm_cq_take_error(cq, cqe, buf);
		ret = 1;
		if (cq->throttles)
			unm_cq_unthrottle(cq);
	}
	unm_unlock(cq->domain);
	return ret;
}

/* ---- Blocking -------------------------------------------------------- */

/* True: fi_cq_signal() was called since this thread began to wait, or before,
 * when no thread was waiting. */
static bool unm_cq_signalled(struct unm_cq *cq, uint32_t before)
{
	bool kept = cq->signalled;

	cq->signalled = false;
	return kept || cq->signals != before;
}

/* This thread stops polling: wake the threads that still sleep on the queue or
 * its endpoints, so that they poll. */
static void unm_cq_leave(struct unm_cq *cq)
{
	if (cq->wait.wanted != 0)
		unm_wait_wake(&cq->wait);
	unm_poll_end(&cq->eps);
}

static ssize_t unm_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
				fi_addr_t *src, const void *cond, int timeout)
{
	struct unm_cq *cq = unm_cq(fid);
	uint64_t end = unm_wait_end(timeout);
	uint32_t signals;
	ssize_t ret;

	(void)cond;
	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	unm_lock(cq->domain);
	cq->readers++;
	signals = cq->signals;
	for (;;) {
		int64_t left;
		bool yield;

		unm_poll_begin(&cq->eps);
		yield = unm_cq_needs_progress(cq, count) &&
			unm_trigger_poll(cq->domain, &cq->eps, &cq->idle);
		ret = unm_cq_take(cq, buf, count, src);
		if (ret != -FI_EAGAIN || unm_cq_signalled(cq, signals))
			break;
		left = unm_wait_left(end, timeout);
		if (left == 0)
			break;
		if (yield)
			unm_wait_idle(&cq->wait, &cq->eps, &cq->idle, left);
		unm_lock_pass(cq->domain);
	}
	cq->readers--;
	unm_cq_leave(cq);
	unm_unlock(cq->domain);
	return ret;
}

static ssize_t unm_cq_sread(struct fid_cq *fid, void *buf, size_t count,
			    const void *cond, int timeout)
{
	return unm_cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int unm_cq_signal(struct fid_cq *fid)
{
	struct unm_cq *cq = unm_cq(fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	unm_lock(cq->domain);
	cq->signals++;
	if (cq->readers == 0)
		cq->signalled = true;
	unm_wait_signal(&cq->wait);
	unm_wait_wake(&cq->wait);
	unm_unlock(cq->domain);
	return 0;
}

static const char *unm_cq_strerror(struct fid_cq *fid, int prov_errno,
				   const void *err_data, char *buf, size_t len)
{
	const char *str = fi_strerror(prov_errno);

	(void)fid;
	(void)err_data;
	if (buf != NULL && len != 0) {
		strncpy(buf, str, len - 1);
		buf[len - 1] = '\0';
		return buf;
	}
	return str;
}

static struct fi_ops_cq unm_ops_cq = {
	.size = sizeof(struct fi_ops_cq),
	.read = unm_cq_read,
	.readfrom = unm_cq_readfrom,
	.readerr = unm_cq_readerr,
	.sread = unm_cq_sread,
	.sreadfrom = unm_cq_sreadfrom,
	.signal = unm_cq_signal,
	.strerror = unm_cq_strerror,
};

/* ---- Opening, closing, waiting from outside --------------------------- */

bool unm_cq_readable(struct unm_cq *cq)
{
	return cq->head != cq->tail;
}

int unm_cq_trywait(struct unm_cq *cq)
{
	int ret;

	unm_lock(cq->domain);
	ret = unm_wait_try(&cq->wait, unm_cq_readable(cq), &cq->eps);
	unm_unlock(cq->domain);
	return ret;
}

static int unm_cq_control(struct fid *fid, int command, void *arg)
{
	struct unm_cq *cq = unm_container(fid, struct unm_cq, fid.fid);

	return unm_wait_control(&cq->wait, command, arg);
}

static int unm_cq_close(struct fid *fid)
{
	struct unm_cq *cq = unm_container(fid, struct unm_cq, fid.fid);

	if (unm_ref_busy(&cq->ref))
		return -FI_EBUSY;
	unm_wait_close(&cq->wait);
	if (unm_lock_close(cq->domain, cq->owner)) {
		unm_list_remove(&cq->in_domain);
		unm_unlock(cq->domain);
	}
	free(cq->ring);
	unm_ref_put(&cq->domain->ref);
	free(cq);
	return 0;
}

static struct fi_ops unm_ops_cq_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_cq_close,
	.bind = unm_no_bind,
	.control = unm_cq_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

static int unm_cq_check(const struct fi_cq_attr *attr)
{
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_ENOSYS;
	if (attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_obj != FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EINVAL;
	if (attr->size > UNM_CQ_MAX) {
		UNM_INFO(CQ, "%zu entries asked, offered: %d\n", attr->size,
			 UNM_CQ_MAX);
		return -FI_EINVAL;
	}
	return 0;
}

int unm_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **fid, void *context)
{
	struct unm_domain *domain = unm_domain(domain_fid);
	struct fi_cq_attr none = { 0 };
	struct unm_cq *cq;
	size_t size = 64, want;
	int ret;

	if (attr == NULL)
		attr = &none;
	ret = unm_cq_check(attr);
	if (ret != 0)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return -FI_ENOMEM;
	want = attr->size ? attr->size : (size_t)g_unm_env.cq_size;
	while (size < want)
		size *= 2;
	cq->limit = size;
	unm_idle_set(&cq->idle.spin, (uint32_t)g_unm_env.spin);
	cq->mask = size - 1;
	cq->ring = malloc(size * sizeof(*cq->ring));
	ret = -FI_ENOMEM;
	if (cq->ring == NULL)
		goto free_cq;
	cq->domain = domain;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ?
		FI_CQ_FORMAT_CONTEXT : attr->format;
	unm_list_init(&cq->eps);
	unm_fid_init(&cq->fid.fid, FI_CLASS_CQ, &unm_ops_cq_fid, context);
	cq->fid.ops = &unm_ops_cq;
	ret = unm_wait_open(&cq->wait, &cq->fid.fid, domain, attr->wait_obj,
			    attr->wait_set);
	if (ret != 0)
		goto free_ring;
	attr->format = cq->format;
	attr->size = size;
	cq->owner = getpid();
	unm_lock(domain);
	unm_list_append(&domain->cqs, &cq->in_domain);
	unm_unlock(domain);
	unm_ref_get(&domain->ref);
	*fid = &cq->fid;
	return 0;
free_ring:
	free(cq->ring);
free_cq:
	free(cq);
	return ret;
}
