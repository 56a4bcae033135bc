/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_ep_wake.c - adds an endpoint to the wait objects that it wakes, and wakes
 * their sleepers. */
#include <sys/epoll.h>
#include <unistd.h>

#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_WAIT_OF_EP	(2 + UNM_EP_CNTRS)

int unm_wait_add_all(struct unm_wait *w)
{
	int ret = 0;

	unm_list_for_each(pos, &w->domain->eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		ret = unm_wait_add_fd(w, hal_if_fd(ep->hif));
		if (ret != 0)
			break;
	}
	return ret;
}

/* Wait objects of what an endpoint is bound to, some NULL. */
static struct unm_wait *unm_wait_of_ep(const struct unm_ep *ep, int i)
{
	if (i == 0)
		return ep->tx_cq != NULL ? &ep->tx_cq->wait : NULL;
	if (i == 1)
		return ep->rx_cq != NULL ? &ep->rx_cq->wait : NULL;
	return ep->cntr[i - 2] != NULL ? &ep->cntr[i - 2]->wait : NULL;
}

/* All that an endpoint wakes: these, counters that any endpoint moves, and the
 * progress thread. Until fn fails. */
static int unm_wait_each(struct unm_ep *ep,
			 int (*fn)(struct unm_wait *w, struct unm_ep *ep))
{
	struct unm_wait *w = ep->domain->thread_wait;
	int ret = w != NULL ? fn(w, ep) : 0;

	for (int i = 0; ret == 0 && i < UNM_WAIT_OF_EP; i++) {
		w = unm_wait_of_ep(ep, i);
		if (w != NULL)
			ret = fn(w, ep);
	}
	unm_list_for_each(pos, &ep->domain->cntrs) {
		if (ret != 0)
			break;
		ret = fn(&unm_container(pos, struct unm_cntr,
					in_domain)->wait, ep);
	}
	return ret;
}

static int unm_wait_add(struct unm_wait *w, struct unm_ep *ep)
{
	return unm_wait_add_fd(w, hal_if_fd(ep->hif));
}

int unm_wait_add_ep(struct unm_ep *ep)
{
	return unm_wait_each(ep, unm_wait_add);
}

static int unm_wait_remove(struct unm_wait *w, struct unm_ep *ep)
{
	if (w->epfd >= 0)
		epoll_ctl(w->epfd, EPOLL_CTL_DEL, hal_if_fd(ep->hif), NULL);
	return 0;
}

/* A forked child has a copy of the descriptor, so that close() does not remove
 * it from the epoll sets: remove it explicitly. The epoll sets are shared with
 * the child, which must not change them. */
void unm_wait_remove_ep(struct unm_ep *ep)
{
	if (ep->owner == getpid())
		unm_wait_each(ep, unm_wait_remove);
}

static int unm_wait_wake_wanted(struct unm_wait *w, struct unm_ep *ep)
{
	(void)ep;
	if (w->wanted != 0)
		unm_wait_wake(w);
	return 0;
}

void unm_ep_wake_all(struct unm_ep *ep)
{
	unm_wait_each(ep, unm_wait_wake_wanted);
}

/* Internal sleepers are not woken: they wait for a completion. */
void unm_ep_signal_retry(struct unm_ep *ep)
{
	unm_trigger_again(ep->domain);
	for (int i = 0; i < UNM_WAIT_OF_EP; i++) {
		struct unm_wait *w = unm_wait_of_ep(ep, i);

		if (w != NULL && w->epfd >= 0)
			unm_wait_signal(w);
	}
}

/* A poll by one thread starts the work of the whole domain, but which of the
 * threads are asleep is not known here, so wake all. */
void unm_trigger_wake(struct unm_domain *domain)
{
	unm_trigger_again(domain);
	unm_wait_wake_progress(domain);
	unm_list_for_each(pos, &domain->eps)
		unm_ep_wake_all(unm_container(pos, struct unm_ep_links,
					      node)->ep);
}

void unm_ep_signal_recv(struct unm_ep *ep)
{
	ep->recvs_wanted = false;
	unm_ep_signal_retry(ep);
	if (unm_trigger_waits(ep->domain))
		unm_trigger_wake(ep->domain);
}

int unm_cntr_of_all(struct unm_cntr *cntr)
{
	int ret = 0;

	/* also if unm_wait_add_all() fails: the descriptors that were added are
	 * removed with their endpoints */
	if (unm_list_empty(&cntr->in_domain))
		unm_list_append(&cntr->domain->cntrs, &cntr->in_domain);
	if (!cntr->of_all)
		ret = unm_wait_add_all(&cntr->wait);
	if (ret != 0)
		return ret;
	unm_ref_get(&cntr->ref);
	if (!cntr->of_all && cntr->wait.wanted != 0)
		unm_wait_wake(&cntr->wait);	/* to poll all endpoints */
	cntr->of_all = true;
	return 0;
}
