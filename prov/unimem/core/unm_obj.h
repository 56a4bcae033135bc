/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_obj.h - the common part of all libfabric objects of the provider: the
 * reference count, because fi_close() of an object in use returns -FI_EBUSY.
 */
#ifndef UNM_OBJ_H
#define UNM_OBJ_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

/* A reference count, embedded in an object. Any thread. */
struct unm_ref {
	_Atomic int users;		/* objects that use this object */
};

/* Fill in the common first part of an object; fclass: FI_CLASS_*. */
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

/* True if other objects use the object, so that it must not be closed. */
static inline bool unm_ref_busy(struct unm_ref *ref)
{
	/* pairs with the release in unm_ref_put() */
	return atomic_load_explicit(&ref->users, memory_order_acquire) != 0;
}

#endif /* UNM_OBJ_H */
