/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "unm_env.h"
#include "unm_ep.h"
#include "unm_log.h"
#include "unm_ops.h"

#define UNM_CQ_MAX	(1 << 24)	/* entries */

/* Half full is early enough to fail at, and to try again at the next entry. */
bool unm_cq_grow(struct unm_cq *cq)
{
	uint64_t old = cq->mask + 1;
	struct unm_cqe *ring = malloc(2 * old * sizeof(*ring));

	if (ring == NULL) {
		if (cq->tail - cq->head <= cq->mask)
			return true;
		if (!cq->overrun)
			UNM_WARN(CQ, "out of memory: completions are lost from "
				 "here on, after %" PRIu64 " that wait to be "
				 "read", old);
		cq->overrun = true;
		return false;
	}
	for (uint64_t i = cq->head; i != cq->tail; i++)
		ring[i & (2 * old - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = 2 * old - 1;
	return true;
}

void unm_cq_wake(struct unm_cq *cq)
{
	uint64_t one = 1;
	ssize_t n = write(cq->evfd, &one, sizeof(one));

	(void)n;			/* full: a wake-up is pending */
}

/* A thread may block on our descriptor from now on, or does no longer. */
static void unm_cq_waited(struct unm_cq *cq, bool waited)
{
	cq->sleepers += waited - cq->waited;
	cq->waited = waited;
}

/* We shall poll, and no longer be woken: a thread that blocks on our descriptor
 * has to look for itself. It may be the very one that calls. */
static inline void unm_cq_awake(struct unm_cq *cq)
{
	if (__builtin_expect(!cq->waited, 1))
		return;
	unm_cq_waited(cq, false);
	cq->told = true;
	unm_cq_wake(cq);
}

/* ---- Reading --------------------------------------------------------- */

static const size_t unm_cq_entry_bytes[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* The formats are prefixes of the longest one, and that is one of ours. */
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

/* There is room again: give out what was held back. */
static void unm_cq_relieve(struct unm_cq *cq)
{
	if (cq->tail - cq->head > cq->limit / 2)
		return;
	cq->choked = false;
	unm_list_for_each(pos, &cq->eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		if (ep->rx_cq == cq)
			unm_peer_allow_held(ep);
	}
}

/* Entries up to the next error; the lock is held. */
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
	if (cq->head == cq->tail)	/* begin again in the same few lines */
		cq->head = cq->tail = 0;
	if (__builtin_expect(cq->choked, 0))
		unm_cq_relieve(cq);
	if (n != 0 || count == 0)
		return n;
	return __builtin_expect(cq->overrun, 0) ? -FI_EOVERRUN : -FI_EAGAIN;
}

/*
 * Look for news before entries are read? Also where there are enough of them: a
 * reader that takes as many as it makes would never hear of anything else.
 */
static bool unm_cq_wants_news(struct unm_cq *cq, size_t count)
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
	if (unm_cq_wants_news(cq, count)) {
		unm_cq_awake(cq);
		yield = unm_poll(&cq->eps, &cq->idle);
	}
	ret = unm_cq_take(cq, buf, count, src);
	unm_unlock(cq->domain);
	if (__builtin_expect(yield, 0) && ret <= 0)
		unm_yield(&cq->idle);
	return ret;
}

static ssize_t unm_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return unm_cq_readfrom(fid, buf, count, NULL);
}

/*
 * Field by field: later libfabrics append to this structure, and before 1.5 it
 * ended at err_data, which was the provider's. Since then that is the caller's;
 * we have none to give.
 */
static void unm_cq_copy_error(struct unm_cq *cq, const struct unm_cqe *cqe,
			      struct fi_cq_err_entry *buf)
{
	buf->op_context = cqe->context;
	buf->flags = cqe->flags;
	buf->len = cqe->len;
	buf->buf = cqe->buf;
	buf->data = cqe->data;
	buf->tag = cqe->tag;
	buf->olen = cqe->olen;
	buf->err = (int)cqe->err;
	buf->prov_errno = (int)cqe->err;
	if (FI_VERSION_LT(cq->domain->fabric->fid.api_version,
			  FI_VERSION(1, 5)))
		buf->err_data = NULL;
	else
		buf->err_data_size = 0;
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
		unm_cq_awake(cq);
		unm_poll(&cq->eps, &cq->idle);
	}
	cqe = &cq->ring[cq->head & cq->mask];
	if (cq->head != cq->tail && cqe->err != 0) {
		unm_cq_copy_error(cq, cqe, buf);
		cq->head++;
		ret = 1;
		if (cq->choked)
			unm_cq_relieve(cq);
	}
	unm_unlock(cq->domain);
	return ret;
}

/* ---- Blocking -------------------------------------------------------- */

/* False: nobody woke us. */
static bool unm_cq_drain(struct unm_cq *cq)
{
	uint64_t count;

	return read(cq->evfd, &count, sizeof(count)) > 0;
}

static ssize_t unm_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
				fi_addr_t *src, const void *cond, int timeout)
{
	struct unm_cq *cq = unm_cq(fid);
	uint64_t end = unm_now_us() + (uint64_t)timeout * 1000;
	bool yield;
	ssize_t ret;

	(void)cond;
	if (cq->wait == FI_WAIT_NONE)
		return -FI_ENOSYS;
	unm_lock(cq->domain);
	cq->sleepers++;
	for (;;) {
		int64_t left = -1;

		unm_awake_list(&cq->eps);
		yield = unm_cq_wants_news(cq, count) &&
			unm_poll(&cq->eps, &cq->idle);
		ret = unm_cq_take(cq, buf, count, src);
		if (ret != -FI_EAGAIN || cq->signalled)
			break;
		if (timeout >= 0) {
			left = (int64_t)(end - unm_now_us());
			if (left <= 0)
				break;
			left = (left + 999) / 1000;
		}
		if (yield) {
			unm_wait(cq->domain, &cq->eps, cq->epfd, left);
			if (!cq->signalled)
				unm_cq_drain(cq);
		}
		unm_lock_pass(cq->domain);
	}
	unm_cq_awake(cq);
	if (--cq->sleepers == 0) {
		unm_cq_drain(cq);
		cq->signalled = false;
	}
	if (cq->sleepers != 0 || cq->told)	/* it was for them, too */
		unm_cq_wake(cq);
	unm_leave_list(&cq->eps);
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

	if (cq->wait == FI_WAIT_NONE)
		return -FI_ENOSYS;
	unm_lock(cq->domain);
	cq->signalled = true;
	unm_cq_wake(cq);
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

/* Safe to block on the queue's descriptor? (fi_trywait) */
int unm_cq_trywait(struct unm_cq *cq)
{
	bool woken;
	int ret = 0;

	unm_lock(cq->domain);
	woken = unm_cq_drain(cq) || cq->waited || cq->told;
	cq->signalled = false;
	cq->told = false;
	unm_cq_waited(cq, false);
	if (cq->head != cq->tail)
		ret = -FI_EAGAIN;
	else
		ret = unm_arm_list(&cq->eps);
	if (ret == 0) {
		unm_cq_waited(cq, true);
	} else if (woken) {		/* perhaps it was for another thread */
		cq->told = true;
		unm_cq_wake(cq);
	}
	unm_unlock(cq->domain);
	return ret;
}

static int unm_cq_control(struct fid *fid, int command, void *arg)
{
	struct unm_cq *cq = unm_container(fid, struct unm_cq, fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (cq->wait == FI_WAIT_NONE)
			return -FI_ENOSYS;
		*(int *)arg = cq->epfd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = cq->wait;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int unm_cq_close(struct fid *fid)
{
	struct unm_cq *cq = unm_container(fid, struct unm_cq, fid.fid);

	if (unm_ref_busy(&cq->ref))
		return -FI_EBUSY;
	free(cq->ring);
	if (cq->epfd >= 0)
		close(cq->epfd);
	if (cq->evfd >= 0)
		close(cq->evfd);
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

/* The descriptor a sleeper waits on: an epoll set of its endpoints' and one for
 * signals. */
static int unm_cq_wait_open(struct unm_cq *cq)
{
	struct epoll_event ev = { .events = EPOLLIN };

	cq->epfd = epoll_create1(EPOLL_CLOEXEC);
	cq->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->epfd < 0 || cq->evfd < 0 ||
	    epoll_ctl(cq->epfd, EPOLL_CTL_ADD, cq->evfd, &ev) != 0) {
		int ret = -errno;

		UNM_WARN(CQ, "cannot make a wait object: %s (ulimit -n?)",
			 fi_strerror(-ret));
		return ret;
	}
	return 0;
}

static int unm_cq_check(const struct fi_cq_attr *attr)
{
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_ENOSYS;
	if (attr->wait_obj != FI_WAIT_NONE &&
	    attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_FD) {
		UNM_INFO(CQ, "wait object %d asked, offered: none, unspec, "
			 "fd\n", attr->wait_obj);
		return -FI_ENOSYS;
	}
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
	cq->epfd = -1;
	cq->evfd = -1;
	cq->mask = size - 1;
	cq->ring = malloc(size * sizeof(*cq->ring));
	ret = -FI_ENOMEM;
	if (cq->ring == NULL)
		goto free_cq;
	cq->wait = attr->wait_obj;
	if (cq->wait != FI_WAIT_NONE) {
		ret = unm_cq_wait_open(cq);
		if (ret != 0)
			goto free_wait;
	}
	cq->domain = domain;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ?
		FI_CQ_FORMAT_CONTEXT : attr->format;
	attr->format = cq->format;
	attr->size = size;
	unm_list_init(&cq->eps);
	unm_ref_get(&domain->ref);
	unm_fid_init(&cq->fid.fid, FI_CLASS_CQ, &unm_ops_cq_fid, context);
	cq->fid.ops = &unm_ops_cq;
	*fid = &cq->fid;
	return 0;
free_wait:
	if (cq->epfd >= 0)
		close(cq->epfd);
	if (cq->evfd >= 0)
		close(cq->evfd);
	free(cq->ring);
free_cq:
	free(cq);
	return ret;
}
