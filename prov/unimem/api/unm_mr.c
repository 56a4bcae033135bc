/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mr.c - memory regions (unm_mr.h): registering, keys, binding, closing.
 *
 * Registering neither pins nor maps memory: any range of addresses is accepted,
 * mapped or not, as fi_mr(3) promises. If a part of the region has no memory
 * with the protection that its access rights need, each access by request is
 * checked before it touches memory (mr->holes). Sends and receives need no
 * region, but programs may register their buffers. The table of regions is in
 * core/unm_region.c; progress/unm_revoke.c revokes cached remote keys.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/unm_mr.h"
#include "core/unm_cntr_value.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_obj.h"
#include "core/unm_region.h"
#include "progress/unm_revoke.h"
#include "rma/unm_target.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "unm_refuse.h"
#include "util/unm_list.h"
#include "util/unm_maps.h"

#define UNM_MR_ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Addresses below UNM_LOW and from UNM_HIGH on are never memory of a
 * program. */
#define UNM_LOW		4096
#ifdef __aarch64__
#define UNM_HIGH	(UINT64_C(1) << 48)
#else
#define UNM_HIGH	(UINT64_C(1) << 47)
#endif

/* ---- Memory behind a region ------------------------------------------ */

/* True: the region contains addresses that cannot be memory. */
static bool unm_mr_has_holes(const struct unm_mr *mr)
{
	for (size_t i = 0; i < mr->count; i++) {
		uintptr_t start = (uintptr_t)mr->iov[i].iov_base;
		size_t len = mr->iov[i].iov_len;

		if (len != 0 && (start < UNM_LOW ||
				 start + (len - 1) >= UNM_HIGH))
			return true;
	}
	return false;
}

/*
 * True: all pieces are memory now, with the protection that the peers' rights
 * need. False also if the kernel does not say. A later change of the protection
 * is not noticed: then a peer's access ends the process, as an access by the
 * application would.
 */
static bool unm_mr_backed(const struct unm_mr *mr)
{
	int prot = (mr->access & FI_REMOTE_READ ? PROT_READ : 0) |
		(mr->access & FI_REMOTE_WRITE ? PROT_WRITE : 0);
	int ret = 0;

	for (size_t i = 0; prot != 0 && ret == 0 && i < mr->count; i++)
		ret = unm_maps_allow(mr->iov[i].iov_base, mr->iov[i].iov_len,
				     prot);
	if (ret != 0)
		UNM_INFO(MR, "region at %p of %" PRIu64 " bytes has not "
			 "everywhere memory that peers may %s: every access "
			 "is checked\n", mr->iov[0].iov_base, mr->len,
			 prot & PROT_WRITE ? "write" : "read");
	return ret == 0;
}

static bool unm_mr_must_check(const struct unm_mr *mr)
{
	return unm_mr_has_holes(mr) || !unm_mr_backed(mr);
}

/* ---- Binding and enabling -------------------------------------------- */

static int unm_mr_bind_ep(struct unm_mr *mr, const struct unm_ep *ep,
			  uint64_t flags)
{
	if (flags != 0)
		return -FI_EBADFLAGS;
	if (ep->domain != mr->domain)
		return -FI_EINVAL;
	if (!(mr->mode & FI_MR_ENDPOINT))
		return 0;		/* every endpoint serves the region */
	if (mr->enabled)
		return -FI_EOPBADSTATE;
	if (mr->nonce != 0)
		return -FI_EINVAL;
	mr->nonce = ep->hif->addr.nonce;
	return 0;
}

/* Bind a counter. Without FI_MR_ENDPOINT that is possible at any time, and the
 * counter counts accesses from then on. */
static int unm_mr_bind_cntr(struct unm_mr *mr, struct unm_cntr *cntr,
			    uint64_t flags)
{
	int ret;

	if (flags != FI_REMOTE_WRITE)
		return -FI_EBADFLAGS;
	if (!(mr->domain->info->caps & FI_RMA_EVENT)) {
		UNM_INFO(MR, "a counter for a region asked of a domain without "
			 "FI_RMA_EVENT: ask fi_getinfo() for it\n");
		return -FI_ENOSYS;
	}
	if (cntr->domain != mr->domain || mr->remote_cntr != NULL)
		return -FI_EINVAL;
	if ((mr->mode & FI_MR_ENDPOINT) && mr->enabled)
		return -FI_EOPBADSTATE;
	ret = unm_cntr_of_all(cntr);
	if (ret != 0)
		return ret;
	mr->remote_cntr = cntr;
	/* direct access is not counted */
	ret = unm_mr_revoke(mr, "fi_mr_bind()");
	if (ret != 0) {
		mr->remote_cntr = NULL;
		unm_ref_put(&cntr->ref);
	}
	return ret;
}

static int unm_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct unm_mr *mr = unm_container(fid, struct unm_mr, fid.fid);
	char name[UNM_NAMES_MAX];
	int ret;

	unm_lock(mr->domain);
	switch (bfid->fclass) {
	case FI_CLASS_EP:
		ret = unm_mr_bind_ep(mr, unm_ep(unm_container(bfid,
					struct fid_ep, fid)), flags);
		break;
	case FI_CLASS_CNTR:
		ret = unm_mr_bind_cntr(mr, unm_container(bfid,
					struct unm_cntr, fid.fid), flags);
		break;
	default:
		UNM_INFO(MR, "binding %s asked, offered: ep, cntr\n",
			 unm_value_name(UNM_TYPE_CLASS, bfid->fclass, name,
					sizeof(name)));
		ret = -FI_EINVAL;
		break;
	}
	unm_unlock(mr->domain);
	return ret;
}

static int unm_mr_enable(struct unm_mr *mr)
{
	int ret = 0;

	unm_lock(mr->domain);
	if ((mr->mode & FI_MR_ENDPOINT) && mr->nonce == 0) {
		UNM_INFO(MR, "region enabled, bound to no endpoint: "
			 "FI_MR_ENDPOINT asks for fi_mr_bind() first\n");
		ret = -FI_EOPBADSTATE;
	} else {
		mr->fid.key = mr->key;
		mr->enabled = true;
	}
	unm_unlock(mr->domain);
	return ret;
}

/* ---- Raw keys: the same 8 bytes, little-endian ----------------------- */

static int unm_mr_raw_attr(const struct unm_mr *mr,
			   const struct fi_mr_raw_attr *attr)
{
	uint64_t raw = htole64(mr->key);
	size_t room;

	if (attr->flags != 0)
		return -FI_EBADFLAGS;
	if (!mr->enabled)
		return -FI_EOPBADSTATE;
	if (attr->key_size == NULL)
		return -FI_EINVAL;
	room = *attr->key_size;
	*attr->key_size = sizeof(raw);
	if (room < sizeof(raw))
		return -FI_ETOOSMALL;
	if (attr->raw_key == NULL)
		return -FI_EINVAL;
	memcpy(attr->raw_key, &raw, sizeof(raw));
	if (attr->base_addr != NULL)
		*attr->base_addr = mr->base;
	return 0;
}

static int unm_mr_map_raw(const struct fi_mr_map_raw *map)
{
	uint64_t raw;

	if (map->flags != 0)
		return -FI_EBADFLAGS;
	if (map->raw_key == NULL || map->key == NULL ||
	    map->key_size != sizeof(raw))
		return -FI_EINVAL;
	memcpy(&raw, map->raw_key, sizeof(raw));
	*map->key = le64toh(raw);
	return 0;
}

int unm_mr_domain_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	switch (command) {
	case FI_MAP_RAW_MR:
		return arg != NULL ? unm_mr_map_raw(arg) : -FI_EINVAL;
	case FI_UNMAP_KEY:		/* mapping allocated nothing */
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/*
 * FI_REFRESH: the application mapped or unmapped pages of the region. The whole
 * region is checked again, whichever pages the call names. Peers that access
 * the region through their own mapping of shared memory have their keys
 * revoked, and ask again which memory it is.
 */
static int unm_mr_refresh(struct unm_mr *mr, const struct fi_mr_modify *modify)
{
	bool holes;
	int ret = 0;

	if (modify->flags != 0)
		return -FI_EBADFLAGS;
	if (modify->attr.mr_iov == NULL && modify->attr.iov_count != 0)
		return -FI_EINVAL;
	holes = unm_mr_must_check(mr);
	unm_lock(mr->domain);
	mr->holes = holes;
	if (mr->exported)
		ret = unm_mr_revoke(mr, "fi_mr_refresh()");
	/* also on -FI_EBUSY: no peer that asks from now on may be sent the key
	 * of the old memory */
	mr->identified = false;
	mr->shared = false;
	unm_unlock(mr->domain);
	return ret;
}

static int unm_mr_control(struct fid *fid, int command, void *arg)
{
	struct unm_mr *mr = unm_container(fid, struct unm_mr, fid.fid);

	switch (command) {
	case FI_ENABLE:
		return unm_mr_enable(mr);
	case FI_GET_RAW_MR:
		return arg != NULL ? unm_mr_raw_attr(mr, arg) : -FI_EINVAL;
	case FI_REFRESH:
		return arg != NULL ? unm_mr_refresh(mr, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

/* ---- Closing --------------------------------------------------------- */

static void unm_mr_unref(struct unm_mr *mr)
{
	if (mr->remote_cntr != NULL)
		unm_ref_put(&mr->remote_cntr->ref);
	mr->remote_cntr = NULL;
	unm_ref_put(&mr->domain->ref);
}

/*
 * Close a region in a forked child, whose copy no peer accesses. If a thread of
 * the parent held the lock at the fork, the lock is never released in the
 * child: then the table may be half changed, and the region stays in it.
 */
static void unm_mr_close_copy(struct unm_mr *mr)
{
	struct unm_domain *domain = mr->domain;

	if (domain->locked && pthread_mutex_trylock(&domain->lock) != 0) {
		unm_mr_unref(mr);
		return;
	}
	unm_mr_leave(mr);
	unm_unlock(domain);
	unm_mr_unref(mr);
	free(mr);
}

static int unm_mr_close(struct fid *fid)
{
	struct unm_mr *mr = unm_container(fid, struct unm_mr, fid.fid);
	int ret;

	if (mr->owner != getpid()) {
		unm_mr_close_copy(mr);
		return 0;
	}
	unm_lock(mr->domain);
	ret = unm_mr_revoke(mr, "fi_close()");
	if (ret != 0) {
		unm_unlock(mr->domain);
		return ret;
	}
	unm_mr_leave(mr);
	unm_mr_end_streams(mr);
	unm_unlock(mr->domain);
	unm_mr_unref(mr);
	free(mr);
	return 0;
}

static struct fi_ops unm_ops_mr_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_mr_close,
	.bind = unm_mr_bind,
	.control = unm_mr_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

/* ---- Registering ----------------------------------------------------- */

/* The mr_mode as bits: FI_MR_BASIC of old APIs stands for three bits, and
 * FI_MR_SCALABLE for none. */
static int unm_mr_mode(const struct unm_domain *domain)
{
	int mode = domain->info->domain_attr->mr_mode;

	if (mode == FI_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return mode & UNM_MR_MODES;
}

/* type: of the values, for unm_value_name() */
static int unm_mr_refuse(const char *what, int type, uint64_t asked,
			 uint64_t offered, int err)
{
	char a[UNM_NAMES_MAX], o[UNM_NAMES_MAX];

	UNM_INFO(MR, "region refused: %s asked %s, offered %s\n", what,
		 unm_value_name(type, asked, a, sizeof(a)),
		 unm_value_name(type, offered, o, sizeof(o)));
	return -err;
}

static int unm_mr_check(const struct unm_domain *domain,
			const struct fi_mr_attr *attr, uint64_t flags)
{
	uint64_t event = domain->info->caps & FI_RMA_EVENT;
	uint32_t api = domain->fabric->fid.api_version;

	if (flags & ~event)
		return unm_mr_refuse("flags", FI_TYPE_OP_FLAGS, flags,
				     event, FI_EBADFLAGS);
	if (attr->mr_iov == NULL || attr->iov_count == 0 ||
	    attr->iov_count > UNM_IOV_MAX)
		return unm_mr_refuse("iov_count", UNM_TYPE_NUMBER,
				     attr->iov_count, UNM_IOV_MAX, FI_EINVAL);
	if (attr->access & ~UNM_MR_ACCESS)
		return unm_mr_refuse("access", FI_TYPE_CAPS, attr->access,
				     UNM_MR_ACCESS, FI_EINVAL);
	if (attr->offset != 0)
		return unm_mr_refuse("offset", UNM_TYPE_NUMBER,
				     attr->offset, 0, FI_EINVAL);
	/* the field does not exist before API version 1.5 */
	if (FI_VERSION_GE(api, FI_VERSION(1, 5)) && attr->auth_key_size != 0)
		return unm_mr_refuse("auth_key_size", UNM_TYPE_NUMBER,
				     attr->auth_key_size, 0, FI_EINVAL);
	return 0;
}

/* Copy the vector of the region. -FI_EINVAL: a piece exceeds the address space,
 * or the sum of the lengths exceeds 64 bits. */
static int unm_mr_set_pieces(struct unm_mr *mr, const struct fi_mr_attr *attr)
{
	for (size_t i = 0; i < attr->iov_count; i++) {
		uintptr_t start = (uintptr_t)attr->mr_iov[i].iov_base;
		size_t len = attr->mr_iov[i].iov_len;

		if (len != 0 && len - 1 > UINTPTR_MAX - start)
			return unm_mr_refuse("iov_len", UNM_TYPE_NUMBER,
					     len, UINTPTR_MAX - start,
					     FI_EINVAL);
		if (len > UINT64_MAX - mr->len)
			return unm_mr_refuse("length of all",
					     UNM_TYPE_NUMBER, len,
					     UINT64_MAX - mr->len, FI_EINVAL);
		mr->iov[i] = attr->mr_iov[i];
		mr->len += len;
	}
	mr->count = attr->iov_count;
	return 0;
}

static int unm_mr_construct(struct unm_mr *mr, struct unm_domain *domain,
			    const struct fi_mr_attr *attr)
{
	bool draw;
	int ret;

	mr->domain = domain;
	mr->owner = getpid();
	mr->mode = unm_mr_mode(domain);
	mr->access = attr->access;
	unm_list_init(&mr->users);
	ret = unm_mr_set_pieces(mr, attr);
	if (ret != 0)
		return ret;
	mr->holes = unm_mr_must_check(mr);
	if (mr->mode & FI_MR_VIRT_ADDR)
		mr->base = (uintptr_t)mr->iov[0].iov_base;
	draw = mr->mode & FI_MR_PROV_KEY;
	mr->key = attr->requested_key;
	mr->enabled = !(mr->mode & FI_MR_ENDPOINT);
	ret = unm_mr_enter(mr, draw);
	if (ret != 0)
		return ret;
	mr->fid.key = mr->enabled || !draw ? mr->key : FI_KEY_NOTAVAIL;
	return 0;
}

static int unm_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			  uint64_t flags, struct fid_mr **out)
{
	struct unm_domain *domain;
	struct unm_mr *mr;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN || attr == NULL)
		return -FI_EINVAL;
	domain = unm_container(fid, struct unm_domain, fid.fid);
	ret = unm_mr_check(domain, attr, flags);
	if (ret != 0)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -FI_ENOMEM;
	unm_fid_init(&mr->fid.fid, FI_CLASS_MR, &unm_ops_mr_fid,
		     attr->context);
	ret = unm_mr_construct(mr, domain, attr);
	if (ret != 0) {
		free(mr);
		return ret;
	}
	unm_ref_get(&domain->ref);
	*out = &mr->fid;
	return 0;
}

static int unm_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		       uint64_t access, uint64_t offset,
		       uint64_t requested_key, uint64_t flags,
		       struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access,
		.offset = offset, .requested_key = requested_key,
		.context = context,
	};

	return unm_mr_regattr(fid, &attr, flags, mr);
}

static int unm_mr_reg(struct fid *fid, const void *buf, size_t len,
		      uint64_t access, uint64_t offset, uint64_t requested_key,
		      uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return unm_mr_regv(fid, &iov, 1, access, offset, requested_key, flags,
			   mr, context);
}

struct fi_ops_mr unm_ops_mr = {
	.size = sizeof(struct fi_ops_mr),
	.reg = unm_mr_reg,
	.regv = unm_mr_regv,
	.regattr = unm_mr_regattr,
};
