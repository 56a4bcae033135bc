/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unm_av.h"
#include "unm_ep.h"
#include "unm_log.h"
#include "unm_ops.h"

#define UNM_AV_MIN	64

/* Board and interface only: an entry for any incarnation is found too. */
static uint32_t unm_av_hash(const struct unm_av *av,
			    const struct hal_addr *addr)
{
	uint64_t key = (uint64_t)addr->board << 32 | addr->iface;

	return (key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & av->hash_mask;
}

static bool unm_addr_same(const struct hal_addr *entry,
			  const struct hal_addr *addr)
{
	return entry->board == addr->board && entry->iface == addr->iface &&
		entry->uid == addr->uid &&
		(entry->nonce == addr->nonce || entry->nonce == HAL_ADDR_ANY);
}

fi_addr_t unm_av_find(const struct unm_av *av, const struct hal_addr *addr)
{
	uint32_t i = av->hash[unm_av_hash(av, addr)];

	for (; i != 0; i = av->entry[i - 1].next) {
		struct unm_av_entry *e = &av->entry[i - 1];

		if (unm_addr_same(&e->addr, addr))
			return i - 1;
	}
	return FI_ADDR_NOTAVAIL;
}

static int unm_av_grow(struct unm_av *av, size_t need)
{
	uint32_t size = av->size ? av->size : UNM_AV_MIN;
	struct unm_av_entry *entry;
	uint32_t *hash;

	if (need <= av->size)
		return 0;
	if (need > UINT32_MAX / 2)
		return -FI_EINVAL;
	while (size < need)
		size *= 2;
	hash = calloc(size, sizeof(*hash));
	if (hash == NULL)
		return -FI_ENOMEM;
	entry = realloc(av->entry, size * sizeof(*entry));
	if (entry == NULL) {
		free(hash);
		return -FI_ENOMEM;
	}
	free(av->hash);
	av->hash = hash;
	av->hash_mask = size - 1;
	av->entry = entry;
	av->size = size;
	/* newest last, so that chains are in the order of insertion */
	for (uint32_t i = av->count; i-- > 0; ) {
		uint32_t *head = &hash[unm_av_hash(av, &entry[i].addr)];

		if (!entry[i].valid)
			continue;
		entry[i].next = *head;
		*head = i + 1;
	}
	return 0;
}

static fi_addr_t unm_av_add(struct unm_av *av, const struct hal_addr *addr)
{
	uint32_t i = av->count;
	struct unm_av_entry *e = &av->entry[i];
	fi_addr_t first = unm_av_find(av, addr);
	uint32_t *tail = &av->hash[unm_av_hash(av, addr)];

	e->addr = *addr;
	e->first = first == FI_ADDR_NOTAVAIL ? i : first;
	e->next = 0;
	e->valid = true;
	while (*tail != 0)
		tail = &av->entry[*tail - 1].next;
	*tail = i + 1;
	av->count++;
	return i;
}

static bool unm_addr_valid(const struct hal_addr *addr)
{
	return addr->version == HAL_ADDR_VERSION && addr->iface != 0 &&
		addr->reserved == 0;
}

static int unm_av_insert(struct fid_av *fid, const void *addr, size_t count,
			 fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct unm_av *av = unm_av(fid);
	const struct hal_addr *in = addr;
	int *errs = flags & FI_SYNC_ERR ? context : NULL;
	int done = 0;
	int ret;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	unm_lock(av->domain);
	ret = unm_av_grow(av, av->count + count);
	if (ret != 0)
		goto out;
	for (size_t i = 0; i < count; i++) {
		fi_addr_t index = FI_ADDR_NOTAVAIL;
		struct hal_addr a;

		memcpy(&a, &in[i], sizeof(a));
		if (unm_addr_valid(&a)) {
			index = unm_av_add(av, &a);
			done++;
		} else {
			UNM_INFO(AV, "address %zu of %zu is not a unimem "
				 "address\n", i, count);
		}
		if (fi_addr != NULL)
			fi_addr[i] = index;
		if (errs != NULL)
			errs[i] = index == FI_ADDR_NOTAVAIL ? FI_EINVAL : 0;
	}
	unm_list_for_each(pos, &av->eps)
		unm_peer_inserted(unm_container(pos, struct unm_ep_links,
						node)->ep);
	ret = done;
out:
	unm_unlock(av->domain);
	return ret;
}

/* Digits only, up to 16 bits; *str moves behind them. -1: no such number. */
static int unm_addr_number(const char **str)
{
	int val = -1;

	for (; **str >= '0' && **str <= '9' && val <= UINT16_MAX; (*str)++)
		val = (val < 0 ? 0 : 10 * val) + **str - '0';
	return val <= UINT16_MAX ? val : -1;
}

int unm_addr_parse(const char *str, struct hal_addr *addr)
{
	static const char scheme[] = "unimem://";
	int board, iface;

	if (strncmp(str, scheme, sizeof(scheme) - 1) != 0)
		return -FI_EINVAL;
	str += sizeof(scheme) - 1;
	board = unm_addr_number(&str);
	if (board < 0 || *str++ != ':')
		return -FI_EINVAL;
	iface = unm_addr_number(&str);
	if (iface <= 0 || *str != '\0')
		return -FI_EINVAL;
	*addr = (struct hal_addr){
		.version = HAL_ADDR_VERSION, .board = board, .iface = iface,
		.uid = geteuid(), .nonce = HAL_ADDR_ANY,
	};
	return 0;
}

static int unm_av_insertsvc(struct fid_av *fid, const char *node,
			    const char *service, fi_addr_t *fi_addr,
			    uint64_t flags, void *context)
{
	struct hal_addr addr;
	int ret;

	(void)service;
	if (node == NULL)
		return -FI_EINVAL;
	ret = unm_addr_parse(node, &addr);
	if (ret != 0) {
		UNM_INFO(AV, "%s asked, offered: unimem://board:interface\n",
			 node);
		return ret;
	}
	return unm_av_insert(fid, &addr, 1, fi_addr, flags, context);
}

static int unm_av_insertsym(struct fid_av *fid, const char *node,
			    size_t nodecnt, const char *service, size_t svccnt,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	if (nodecnt != 1 || svccnt > 1)
		return -FI_ENOSYS;
	return unm_av_insertsvc(fid, node, service, fi_addr, flags, context);
}

/* An entry leaves its chain. Later ones that had its name, all in the same
 * chain, get that of the oldest left. */
static void unm_av_drop(struct unm_av *av, uint32_t gone)
{
	struct unm_av_entry *e = &av->entry[gone];
	uint32_t *link = &av->hash[unm_av_hash(av, &e->addr)];

	while (*link != gone + 1)
		link = &av->entry[*link - 1].next;
	*link = e->next;
	e->valid = false;
	for (uint32_t i = e->next; i != 0; i = av->entry[i - 1].next)
		if (av->entry[i - 1].first == gone)
			av->entry[i - 1].first =
				unm_av_find(av, &av->entry[i - 1].addr);
}

static int unm_av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
			 uint64_t flags)
{
	struct unm_av *av = unm_av(fid);
	int ret = 0;

	if (flags != 0)
		return -FI_EBADFLAGS;
	unm_lock(av->domain);
	for (size_t i = 0; i < count; i++) {
		if (fi_addr[i] >= av->count || !av->entry[fi_addr[i]].valid) {
			ret = -FI_EINVAL;
			continue;
		}
		unm_av_drop(av, fi_addr[i]);
		unm_list_for_each(pos, &av->eps)
			unm_peer_removed(unm_container(pos,
						struct unm_ep_links,
						node)->ep, fi_addr[i]);
	}
	unm_list_for_each(pos, &av->eps)
		unm_peer_rename(unm_container(pos, struct unm_ep_links,
					      node)->ep);
	unm_unlock(av->domain);
	return ret;
}

static int unm_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
			 size_t *addrlen)
{
	struct unm_av *av = unm_av(fid);
	size_t room = *addrlen;
	int ret = 0;

	unm_lock(av->domain);
	if (fi_addr >= av->count || !av->entry[fi_addr].valid) {
		ret = -FI_EINVAL;
	} else {
		memcpy(addr, &av->entry[fi_addr].addr,
		       room < sizeof(struct hal_addr) ? room :
		       sizeof(struct hal_addr));
		*addrlen = sizeof(struct hal_addr);
	}
	unm_unlock(av->domain);
	return ret;
}

static const char *unm_av_straddr(struct fid_av *fid, const void *addr,
				  char *buf, size_t *len)
{
	struct hal_addr a;
	int n;

	(void)fid;
	memcpy(&a, addr, sizeof(a));
	n = snprintf(buf, *len, "unimem://%u:%u/%016" PRIx64, a.board, a.iface,
		     a.nonce);
	*len = n + 1;
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

	if (attr == NULL)
		return -FI_EINVAL;
	/* a shared vector would have to be filled by its creator; MPICH tries
	 * one and reads its map at once */
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
		free(av);
		return ret;
	}
	attr->type = attr->type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
	av->domain = domain;
	unm_list_init(&av->eps);
	unm_ref_get(&domain->ref);
	unm_fid_init(&av->fid.fid, FI_CLASS_AV, &unm_ops_av_fid, context);
	av->fid.ops = &unm_ops_av;
	*fid = &av->fid;
	return 0;
}
