/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_av.c - fi_av(3): opening and closing address vectors, inserting, removing
 * and looking up addresses. The table of addresses is struct unm_av
 * (core/unm_av_table.c), under the domain's lock. unm_addr.c reads and writes
 * addresses as text; core/unm_peer.c maps indices to peers.
 */
#include <stdlib.h>
#include <string.h>

#include "api/unm_av.h"
#include "api/unm_cq.h"
#include "core/unm_av_table.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_obj.h"
#include "core/unm_peer.h"
#include "hal/hal.h"
#include "msg/unm_recv.h"
#include "trigger/unm_trigger.h"
#include "unm_addr.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "util/unm_list.h"

#define UNM_AV_FLAGS	(FI_MORE | FI_SYNC_ERR)	/* of fi_av_insert() */

static bool unm_addr_valid(const struct hal_addr *addr)
{
	return addr->version == HAL_ADDR_VERSION && addr->iface != 0 &&
		addr->reserved == 0;
}

/* The addresses of an insertion: the caller's array, or consecutive interfaces
 * of consecutive boards, or consecutive service numbers. */
struct unm_av_src {
	const void *array;
	struct hal_addr first;		/* if array is NULL */
	size_t ifaces;			/* interfaces of each board */
	size_t count;			/* number of addresses */
};

/* The i-th address; not valid (iface 0) beyond the last board or interface. */
static struct hal_addr unm_av_nth(const struct unm_av_src *src, size_t i,
				  struct hal_host *host)
{
	struct hal_addr a;
	size_t board, iface;

	if (src->array != NULL) {
		unm_addr_import((const char *)src->array +
				i * unm_addr_bytes(), &a, host);
		return a;
	}
	*host = (struct hal_host){ .port = 0 };
	a = src->first;
	board = a.board + i / src->ifaces;
	iface = a.iface + i % src->ifaces;
	a.board = (uint16_t)board;
	a.iface = (uint32_t)iface;
	if (board > UINT16_MAX || (iface > UNM_ADDR_IFACE_MAX &&
				   a.reserved != UNM_ADDR_SERVICE))
		a.iface = 0;
	return a;
}

/* Report the result of one address: its index, or FI_ADDR_NOTAVAIL and an
 * error. */
static void unm_av_tell(fi_addr_t *fi_addr, int *errs, size_t i,
			fi_addr_t index, int err)
{
	if (fi_addr != NULL)
		fi_addr[i] = index;
	if (errs != NULL)
		errs[i] = err;
}

/* Report an error of the whole call, for each address. */
static int unm_av_none(fi_addr_t *fi_addr, int *errs, size_t count, int ret)
{
	for (size_t i = 0; i < count; i++)
		unm_av_tell(fi_addr, errs, i, FI_ADDR_NOTAVAIL, -ret);
	return ret;
}

/* Report address i, which is not valid. False: it has the other form, so that
 * nobody knows where the next addresses are; they are reported, too. */
static bool unm_av_refuse(const struct unm_av_src *src, size_t i,
			  const struct hal_addr *a, fi_addr_t *fi_addr,
			  int *errs)
{
	unm_av_tell(fi_addr, errs, i, FI_ADDR_NOTAVAIL, FI_EINVAL);
	if (a->version != HAL_ADDR_HOST_VERSION) {
		UNM_INFO(AV, "address %zu of %zu is not a unimem address\n", i,
			 src->count);
		return true;
	}
	UNM_WARN(AV, "address %zu of %zu is of a process %s FI_UNIMEM_NET: all "
		 "processes of a job must have it, or none", i, src->count,
		 unm_addr_bytes() == sizeof(*a) ? "with" : "without");
	while (++i < src->count)
		unm_av_tell(fi_addr, errs, i, FI_ADDR_NOTAVAIL, FI_EINVAL);
	return false;
}

static int unm_av_add_all(struct unm_av *av, const struct unm_av_src *src,
			  fi_addr_t *fi_addr, int *errs)
{
	int done = 0;

	for (size_t i = 0; i < src->count; i++) {
		struct hal_host host;
		struct hal_addr a = unm_av_nth(src, i, &host);

		unm_addr_settle(av->domain->hal, &a);
		if (unm_addr_valid(&a)) {
			unm_av_tell(fi_addr, errs, i,
				    unm_av_add(av, &a, &host), 0);
			done++;
		} else if (!unm_av_refuse(src, i, &a, fi_addr, errs)) {
			break;
		}
	}
	unm_list_for_each(pos, &av->eps)
		unm_peer_inserted(unm_container(pos, struct unm_ep_links,
						node)->ep);
	return done;
}

static int unm_av_insert_src(struct unm_av *av, const struct unm_av_src *src,
			     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	int *errs = flags & FI_SYNC_ERR ? context : NULL;
	int ret;

	unm_lock(av->domain);
	ret = unm_av_grow(av, av->valid + src->count);
	if (ret == 0)
		ret = unm_av_add_all(av, src, fi_addr, errs);
	else
		unm_av_none(fi_addr, errs, src->count, ret);
	unm_unlock(av->domain);
	return ret;
}

static int unm_av_insert(struct fid_av *fid, const void *addr, size_t count,
			 fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct unm_av_src src = { .array = addr, .count = count };

	if (flags & ~UNM_AV_FLAGS)
		return -FI_EBADFLAGS;
	if (count == 0)
		return 0;
	if (addr == NULL || count > UINT32_MAX)
		return -FI_EINVAL;
	return unm_av_insert_src(unm_av(fid), &src, fi_addr, flags, context);
}

/* ---- Names ----------------------------------------------------------- */

static int unm_av_insertsym(struct fid_av *fid, const char *node,
			    size_t nodecnt, const char *service, size_t svccnt,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct unm_av_src src = { .ifaces = svccnt };
	int *errs = flags & FI_SYNC_ERR ? context : NULL;

	if (flags & ~UNM_AV_FLAGS)
		return -FI_EBADFLAGS;
	/* more boards or interfaces than can exist */
	if (node == NULL || nodecnt > UINT16_MAX + 1 ||
	    svccnt > UNM_ADDR_IFACE_MAX)
		return -FI_EINVAL;
	src.count = nodecnt * svccnt;
	if (src.count == 0)
		return 0;
	if (unm_addr_parse(node, service, 0, &src.first) != 0 ||
	    src.first.iface == 0) {
		UNM_INFO(AV, "node %s service %s asked, offered: "
			 "unimem://board:interface, or unimem://board or a "
			 "host of the job and an interface as service\n", node,
			 service != NULL ? service : "none");
		return unm_av_none(fi_addr, errs, src.count, -FI_EINVAL);
	}
	/* a nonce or another host has no successor */
	if (src.count != 1 && (src.first.nonce != HAL_ADDR_ANY ||
			       (nodecnt != 1 && !unm_addr_typed(node))))
		return unm_av_none(fi_addr, errs, src.count, -FI_EINVAL);
	return unm_av_insert_src(unm_av(fid), &src, fi_addr, flags, context);
}

static int unm_av_insertsvc(struct fid_av *fid, const char *node,
			    const char *service, fi_addr_t *fi_addr,
			    uint64_t flags, void *context)
{
	return unm_av_insertsym(fid, node, 1, service, 1, fi_addr, flags,
				context);
}

/* ---- Removal, lookup ------------------------------------------------- */

static int unm_av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
			 uint64_t flags)
{
	struct unm_av *av = unm_av(fid);
	int ret = 0;

	if (flags != 0)
		return -FI_EBADFLAGS;
	unm_lock(av->domain);
	unm_trigger_await(av->domain);
	for (size_t i = 0; i < count; i++) {
		if (fi_addr[i] >= av->count || !av->entry[fi_addr[i]].valid) {
			ret = -FI_EINVAL;
			continue;
		}
		unm_av_drop(av, fi_addr[i]);
		unm_trigger_removed(av, fi_addr[i]);
		unm_list_for_each(pos, &av->eps)
			unm_peer_removed(unm_container(pos,
						struct unm_ep_links,
						node)->ep, fi_addr[i]);
	}
	unm_list_for_each(pos, &av->eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		unm_recv_removed(ep, unm_peer_resolve_removed(ep));
	}
	unm_cq_removed(av);
	unm_unlock(av->domain);
	return ret;
}

static int unm_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
			 size_t *addrlen)
{
	struct unm_av *av = unm_av(fid);
	uint8_t name[sizeof(struct hal_addr_host)];
	size_t room = *addrlen;
	int ret = 0;

	unm_lock(av->domain);
	if (fi_addr >= av->count || !av->entry[fi_addr].valid) {
		ret = -FI_EINVAL;
	} else {
		*addrlen = unm_addr_bytes();
		if (room > *addrlen)
			room = *addrlen;
		unm_addr_export(&av->entry[fi_addr].addr,
				unm_av_host(av, fi_addr), name);
		if (room != 0)
			memcpy(addr, name, room);
	}
	unm_unlock(av->domain);
	return ret;
}

/* The text that unm_addr_parse() reads; it names the user only if that is not
 * the user of this process. */
static const char *unm_av_straddr(struct fid_av *fid, const void *addr,
				  char *buf, size_t *len)
{
	struct hal_addr a;
	struct hal_host host;

	(void)fid;
	unm_addr_import(addr, &a, &host);
	*len = (size_t)unm_addr_print(&a, buf, *len) + 1;
	return buf;
}

static struct fi_ops_av unm_ops_av = {
	.size = sizeof(struct fi_ops_av),
	.insert = unm_av_insert,
	.insertsvc = unm_av_insertsvc,
	.insertsym = unm_av_insertsym,
	.remove = unm_av_remove,
	.lookup = unm_av_lookup,
	.straddr = unm_av_straddr,
	.av_set = unm_no_av_set,
};

static int unm_av_close(struct fid *fid)
{
	struct unm_av *av = unm_container(fid, struct unm_av, fid.fid);

	if (unm_ref_busy(&av->ref))
		return -FI_EBUSY;
	free(av->entry);
	free(av->host);
	free(av->taken);
	free(av->hash);
	unm_ref_put(&av->domain->ref);
	free(av);
	return 0;
}

static struct fi_ops unm_ops_av_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_av_close,
	.bind = unm_no_bind,
	.control = unm_no_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **fid, void *context)
{
	struct unm_domain *domain = unm_domain(domain_fid);
	struct unm_av *av;
	int ret;

	if (attr == NULL || attr->type > FI_AV_TABLE)
		return -FI_EINVAL;
	/* a shared vector would have to be filled by the process that creates
	 * it; MPICH tries to open one and reads its map at once */
	if (attr->name != NULL || (attr->flags & FI_READ)) {
		UNM_INFO(AV, "shared address vector asked, offered: none\n");
		return -FI_ENOSYS;
	}
	if (attr->flags & ~FI_SYMMETRIC || attr->rx_ctx_bits != 0)
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (av == NULL)
		return -FI_ENOMEM;
	ret = unm_av_grow(av, attr->count ? attr->count : UNM_AV_MIN);
	if (ret != 0) {
		free(av->entry);
		free(av->host);
		free(av->taken);
		free(av);
		return ret;
	}
	attr->type = attr->type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
	av->domain = domain;
	unm_list_init(&av->eps);
	unm_ref_get(&domain->ref);
	unm_lock(domain);
	av->number = ++domain->av_number;
	unm_unlock(domain);
	unm_fid_init(&av->fid.fid, FI_CLASS_AV, &unm_ops_av_fid, context);
	av->fid.ops = &unm_ops_av;
	*fid = &av->fid;
	return 0;
}
