/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_obj.h - what every libfabric object of ours has in common: users are
 * counted, closing one in use is -FI_EBUSY.
 */
#ifndef UNM_OBJ_H
#define UNM_OBJ_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

struct unm_ref {
	_Atomic int users;
};

static inline void unm_fid_init(struct fid *fid, size_t fclass,
				struct fi_ops *ops, void *context)
{
	fid->fclass = fclass;
	fid->context = context;
	fid->ops = ops;
}

static inline void unm_ref_get(struct unm_ref *ref)
{
	atomic_fetch_add_explicit(&ref->users, 1, memory_order_relaxed);
}

static inline void unm_ref_put(struct unm_ref *ref)
{
	/* pairs with the acquire in unm_ref_busy() */
	atomic_fetch_sub_explicit(&ref->users, 1, memory_order_release);
}

static inline bool unm_ref_busy(struct unm_ref *ref)
{
	/* pairs with the release in unm_ref_put() */
	return atomic_load_explicit(&ref->users, memory_order_acquire) != 0;
}

#endif /* UNM_OBJ_H */
