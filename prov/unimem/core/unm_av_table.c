/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_av_table.c - the table of an address vector, by index and by address. */
#include <stdlib.h>
#include <string.h>

#include "core/unm_av_table.h"
#include "hal/hal.h"
#include "unm_addr.h"

/* Hash board and interface only, so that an entry for any incarnation is found.
 */
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

fi_addr_t unm_av_find_exact(const struct unm_av *av,
			    const struct hal_addr *addr)
{
	uint32_t i = av->hash[unm_av_hash(av, addr)];

	for (; i != 0; i = av->entry[i - 1].next) {
		struct unm_av_entry *e = &av->entry[i - 1];

		if (e->addr.nonce == addr->nonce &&
		    unm_addr_same(&e->addr, addr))
			return i - 1;
	}
	return FI_ADDR_NOTAVAIL;
}

/* Spread the chains of a smaller table over av->hash. The order within a chain
 * is kept: the entries of a new chain all come from the same old one. */
static void unm_av_rehash(struct unm_av *av, const uint32_t *old, uint32_t n)
{
	for (uint32_t b = 0; b < n; b++) {
		uint32_t last = 0, next;

		for (uint32_t i = old[b]; i != 0; i = next) {
			next = av->entry[i - 1].next;
			av->entry[i - 1].next = last;
			last = i;
		}
		for (uint32_t i = last; i != 0; i = next) {
			struct unm_av_entry *e = &av->entry[i - 1];
			uint32_t *head = &av->hash[unm_av_hash(av, &e->addr)];

			next = e->next;
			e->next = *head;
			*head = i;
		}
	}
}

int unm_av_grow(struct unm_av *av, size_t need)
{
	uint32_t size = av->size ? av->size : UNM_AV_MIN;
	uint32_t *hash, *old = av->hash, n = av->size;
	struct unm_av_entry *entry;
	struct hal_host *host;
	uint64_t *taken;

	if (need <= av->size)
		return 0;
	if (need > UINT32_MAX / 2)
		return -FI_EINVAL;
	while (size < need)
		size *= 2;
	entry = realloc(av->entry, size * sizeof(*entry));
	if (entry == NULL)
		return -FI_ENOMEM;
	av->entry = entry;
	if (unm_addr_bytes() == sizeof(struct hal_addr_host)) {
		host = realloc(av->host, size * sizeof(*host));
		if (host == NULL)
			return -FI_ENOMEM;
		av->host = host;
	}
	taken = realloc(av->taken, size / 8);
	if (taken == NULL)
		return -FI_ENOMEM;
	memset((char *)taken + n / 8, 0, (size - n) / 8);
	av->taken = taken;
	hash = calloc(size, sizeof(*hash));
	if (hash == NULL)
		return -FI_ENOMEM;
	av->hash = hash;
	av->hash_mask = size - 1;
	av->size = size;
	unm_av_rehash(av, old, n);
	free(old);
	return 0;
}

/* Take the lowest free index. One below av->size is free. */
static uint32_t unm_av_take(struct unm_av *av)
{
	uint32_t word = av->lowest / 64, i;

	while (av->taken[word] == UINT64_MAX)
		word++;
	i = 64 * word + (uint32_t)__builtin_ctzll(~av->taken[word]);
	av->taken[word] |= UINT64_C(1) << i % 64;
	av->lowest = i + 1;
	av->valid++;
	if (i >= av->count)
		av->count = i + 1;
	return i;
}

static void unm_av_free(struct unm_av *av, uint32_t i)
{
	av->taken[i / 64] &= ~(UINT64_C(1) << i % 64);
	av->valid--;
	if (i < av->lowest)
		av->lowest = i;
}

fi_addr_t unm_av_add(struct unm_av *av, const struct hal_addr *addr,
		     const struct hal_host *host)
{
	fi_addr_t first = unm_av_find(av, addr);
	uint32_t i = unm_av_take(av);
	struct unm_av_entry *e = &av->entry[i];
	uint32_t *tail = &av->hash[unm_av_hash(av, addr)];

	e->addr = *addr;
	if (av->host != NULL)
		av->host[i] = host != NULL ? *host :
			(struct hal_host){ .port = 0 };
	e->first = first == FI_ADDR_NOTAVAIL ? i : first;
	e->next = 0;
	e->valid = true;
	while (*tail != 0)
		tail = &av->entry[*tail - 1].next;
	*tail = i + 1;
	return i;
}

void unm_av_drop(struct unm_av *av, uint32_t gone)
{
	struct unm_av_entry *e = &av->entry[gone];
	uint32_t *link = &av->hash[unm_av_hash(av, &e->addr)];

	while (*link != gone + 1)
		link = &av->entry[*link - 1].next;
	*link = e->next;
	e->valid = false;
	unm_av_free(av, gone);
	for (uint32_t i = e->next; i != 0; i = av->entry[i - 1].next)
		if (av->entry[i - 1].first == gone)
			av->entry[i - 1].first =
				unm_av_find(av, &av->entry[i - 1].addr);
}
