/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cntr.c - fi_cntr(3): opening, reading, setting, waiting for and closing
 * counters. The state is struct unm_cntr (core/unm_cntr_value.h), which
 * operations increment (core/unm_complete.c). Reading makes progress on the
 * endpoints that are bound to the counter. Work that waits for a counter is in
 * trigger/.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/unm_cntr.h"
#include "api/unm_wait.h"
#include "core/unm_cntr_value.h"
#include "core/unm_domain_state.h"
#include "core/unm_idle.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "progress/unm_progress.h"
#include "progress/unm_sleep.h"
#include "trigger/unm_trigger.h"
#include "unm_env.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "unm_refuse.h"
#include "util/unm_list.h"

#define UNM_CNTR_YIELDS	64	/* before a sleep, because the operations that
				 * a counter counts often complete soon */

static uint64_t unm_cntr_look(struct unm_cntr *cntr, _Atomic uint64_t *word,
			      uint64_t *seen)
{
	uint64_t value;
	bool yield;

	unm_lock(cntr->domain);
	unm_wait_awake(&cntr->wait);
	yield = unm_trigger_poll(cntr->domain, unm_cntr_eps(cntr),
				 &cntr->idle);
	value = unm_cntr_get(word);
	*seen = value;
	unm_unlock(cntr->domain);
	if (yield)
		unm_idle_yield(&cntr->idle);
	return value;
}

static uint64_t unm_cntr_read(struct fid_cntr *fid)
{
	struct unm_cntr *cntr = unm_cntr(fid);

	return unm_cntr_look(cntr, &cntr->value, &cntr->seen);
}

static uint64_t unm_cntr_readerr(struct fid_cntr *fid)
{
	struct unm_cntr *cntr = unm_cntr(fid);

	return unm_cntr_look(cntr, &cntr->errors, &cntr->seen_errors);
}

/* A change by the application: work that becomes ready is started at once. */
static int unm_cntr_change(struct unm_cntr *cntr, _Atomic uint64_t *word,
			   uint64_t value, bool add)
{
	unm_lock(cntr->domain);
	unm_cntr_tick(cntr, word, add ? value : value - unm_cntr_get(word));
	unm_trigger_run(cntr->domain);
	unm_unlock(cntr->domain);
	return 0;
}

static int unm_cntr_add_op(struct fid_cntr *fid, uint64_t value)
{
	return unm_cntr_change(unm_cntr(fid), &unm_cntr(fid)->value, value,
			       true);
}

static int unm_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return unm_cntr_change(unm_cntr(fid), &unm_cntr(fid)->value, value,
			       false);
}

static int unm_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return unm_cntr_change(unm_cntr(fid), &unm_cntr(fid)->errors, value,
			       true);
}

static int unm_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return unm_cntr_change(unm_cntr(fid), &unm_cntr(fid)->errors, value,
			       false);
}

/* ---- Waiting --------------------------------------------------------- */

static int unm_cntr_reached(struct unm_cntr *cntr, uint64_t threshold,
			    uint64_t errors)
{
	if (unm_cntr_get(&cntr->value) >= threshold) {
		cntr->seen = unm_cntr_get(&cntr->value);
		return 0;
	}
	return unm_cntr_get(&cntr->errors) != errors ? -FI_EAVAIL : -FI_EAGAIN;
}

/* Many polls in a row were empty: yield, and after UNM_CNTR_YIELDS of those
 * sleep, unless the counter was opened without a wait object. */
static void unm_cntr_idle(struct unm_cntr *cntr, uint32_t turn, int64_t left)
{
	if (turn < UNM_CNTR_YIELDS || !unm_wait_sleeps(&cntr->wait)) {
		unm_unlock(cntr->domain);
		unm_idle_yield(&cntr->idle);
		unm_lock(cntr->domain);
	} else {
		unm_wait_sleep(&cntr->wait, unm_cntr_eps(cntr), left);
	}
}

static int unm_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct unm_cntr *cntr = unm_cntr(fid);
	uint64_t end = unm_wait_end(timeout);
	uint64_t errors;
	int ret;

	unm_lock(cntr->domain);
	errors = unm_cntr_get(&cntr->errors);
	for (uint32_t turn = 0; ; ) {
		struct unm_list *eps = unm_cntr_eps(cntr);
		int64_t left;
		bool yield;

		unm_poll_begin(eps);
		yield = unm_trigger_poll(cntr->domain, eps, &cntr->idle);
		ret = unm_cntr_reached(cntr, threshold, errors);
		if (ret != -FI_EAGAIN)
			break;
		ret = -FI_ETIMEDOUT;
		left = unm_wait_left(end, timeout);
		if (left == 0)
			break;
		if (yield)
			unm_cntr_idle(cntr, turn++, left);
		unm_lock_pass(cntr->domain);
	}
	if (cntr->wait.wanted != 0)
		unm_wait_wake(&cntr->wait);
	unm_poll_end(unm_cntr_eps(cntr));
	unm_unlock(cntr->domain);
	return ret;
}

int unm_cntr_trywait(struct unm_cntr *cntr)
{
	int ret;

	unm_lock(cntr->domain);
	ret = unm_wait_try(&cntr->wait, unm_cntr_changed(cntr),
			   unm_cntr_eps(cntr));
	unm_unlock(cntr->domain);
	return ret;
}

static struct fi_ops_cntr unm_ops_cntr = {
	.size = sizeof(struct fi_ops_cntr),
	.read = unm_cntr_read,
	.readerr = unm_cntr_readerr,
	.add = unm_cntr_add_op,
	.set = unm_cntr_set,
	.wait = unm_cntr_wait,
	.adderr = unm_cntr_adderr,
	.seterr = unm_cntr_seterr,
};

/* ---- Opening, closing ------------------------------------------------ */

static int unm_cntr_close(struct fid *fid)
{
	struct unm_cntr *cntr = unm_container(fid, struct unm_cntr, fid.fid);

	if (unm_ref_busy(&cntr->ref))
		return -FI_EBUSY;
	if (unm_lock_close(cntr->domain, cntr->owner)) {
		unm_list_remove(&cntr->in_domain);
		unm_unlock(cntr->domain);
	}
	unm_wait_close(&cntr->wait);
	unm_ref_put(&cntr->domain->ref);
	free(cntr);
	return 0;
}

static int unm_cntr_control(struct fid *fid, int command, void *arg)
{
	struct unm_cntr *cntr = unm_container(fid, struct unm_cntr, fid.fid);

	return unm_wait_control(&cntr->wait, command, arg);
}

static struct fi_ops unm_ops_cntr_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_cntr_close,
	.bind = unm_no_bind,
	.control = unm_cntr_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **fid, void *context)
{
	struct unm_domain *domain = unm_domain(domain_fid);
	struct fi_cntr_attr none = { .events = FI_CNTR_EVENTS_COMP };
	char name[UNM_NAMES_MAX];
	struct unm_cntr *cntr;
	int ret;

	if (attr == NULL)
		attr = &none;
	if (attr->events != FI_CNTR_EVENTS_COMP) {
		UNM_INFO(CNTR, "events %s asked, offered: "
			 "FI_CNTR_EVENTS_COMP\n",
			 unm_value_name(UNM_TYPE_CNTR, attr->events, name,
					sizeof(name)));
		return -FI_ENOSYS;
	}
	if (attr->flags != 0)
		return -FI_EINVAL;
	cntr = calloc(1, sizeof(*cntr));
	if (cntr == NULL)
		return -FI_ENOMEM;
	cntr->domain = domain;
	cntr->owner = getpid();
	unm_idle_set(&cntr->idle.spin, (uint32_t)g_unm_env.spin);
	unm_list_init(&cntr->eps);
	unm_list_init(&cntr->works);
	unm_list_init(&cntr->in_domain);
	unm_fid_init(&cntr->fid.fid, FI_CLASS_CNTR, &unm_ops_cntr_fid, context);
	cntr->fid.ops = &unm_ops_cntr;
	ret = unm_wait_open(&cntr->wait, &cntr->fid.fid, domain,
			    attr->wait_obj, attr->wait_set);
	if (ret != 0) {
		free(cntr);
		return ret;
	}
	unm_ref_get(&domain->ref);
	*fid = &cntr->fid;
	return 0;
}
