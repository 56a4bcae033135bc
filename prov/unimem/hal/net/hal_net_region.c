/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_region.c - dmable memory of this process, as peers on other hosts
 * reach it: by requests, which are executed here.
 *
 * hal_net_region.h declares the entry points. Requests are executed when the
 * interface is pumped or serviced. A region is found by its key and the range
 * is checked for each request, so that a freed region is reached by nobody.
 * Memory that hal_mem_open() maps is no local region here: its key is that of
 * the process that allocated it, which executes the requests of peers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_lock.h"
#include "hal/net/hal_net_region.h"
#include "hal/net/hal_net_send.h"

_Static_assert(NET_PIECE + sizeof(struct net_access) <= NET_REC_MAX &&
	       NET_PIECE + sizeof(struct net_reply) <= NET_REC_MAX,
	       "a piece fits a frame");

/* ---- Local regions ------------------------------------------------- */

struct region {
	struct hal_mem *mem;		/* NULL: free entry */
	const struct net_hal *net;	/* of the HAL that has the memory */
	uint8_t *addr;
	uint64_t bytes;
	struct hal_key key;
};

/* All regions of the process, which has one HAL. A forked child has, beside its
 * own regions, those of its parent, whose memory is not mapped in it. */
static struct {
	struct hal_lock lock;
	const struct hal_ops *base;	/* constant while there are regions */
	struct region *tab;
	uint32_t n;
} g_regions;

void net_regions_use(const struct hal_ops *base)
{
	g_regions.base = base;
}

/* A free entry of the locked table, or NULL. */
static struct region *region_free(void)
{
	uint32_t n = g_regions.n, more = n != 0 ? 2 * n : 16;
	struct region *tab;

	for (uint32_t i = 0; i < n; i++)
		if (g_regions.tab[i].mem == NULL)
			return &g_regions.tab[i];
	tab = realloc(g_regions.tab, more * sizeof(*tab));
	if (tab == NULL)
		return NULL;
	memset(tab + n, 0, (more - n) * sizeof(*tab));
	g_regions.tab = tab;
	g_regions.n = more;
	return &tab[n];
}

/* Enter a new region in the table, or free the region. 0 or -FI_ENOMEM. */
static int region_enter(const struct hal *hal, struct hal_mem *mem, void *addr,
			uint64_t bytes)
{
	struct region *r;

	hal_lock(&g_regions.lock);
	r = region_free();
	if (r != NULL) {
		r->addr = addr;
		r->bytes = bytes;
		r->mem = mem;
		r->net = hal->net;
		g_regions.base->mem_key(mem, &r->key);
	}
	hal_unlock(&g_regions.lock);
	if (r != NULL)
		return 0;
	g_regions.base->mem_free(mem);
	return -FI_ENOMEM;
}

int net_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ret;

	ret = g_regions.base->mem_alloc(hal, board, bytes, mem, addr);
	if (ret != 0)
		return ret;
	return region_enter(hal, *mem, *addr,
			    (bytes + page - 1) & ~(page - 1));
}

int net_mem_adopt(struct hal *hal, int fd, void *addr, size_t bytes,
		  struct hal_mem **mem)
{
	int ret;

	if (g_regions.base->mem_adopt == NULL)
		return -FI_ENOSYS;
	ret = g_regions.base->mem_adopt(hal, fd, addr, bytes, mem);
	return ret != 0 ? ret : region_enter(hal, *mem, addr, bytes);
}

void net_mem_free(struct hal_mem *mem)
{
	hal_lock(&g_regions.lock);
	for (uint32_t i = 0; i < g_regions.n; i++)
		if (g_regions.tab[i].mem == mem)
			g_regions.tab[i].mem = NULL;
	hal_unlock(&g_regions.lock);
	g_regions.base->mem_free(mem);
}

void net_regions_close(const struct net_hal *net)
{
	hal_lock(&g_regions.lock);
	for (uint32_t i = 0; i < g_regions.n; i++)
		if (g_regions.tab[i].net == net)
			g_regions.tab[i].mem = NULL;
	hal_unlock(&g_regions.lock);
}

/* The region of a HAL with a key, in the locked table, or NULL. */
static struct region *region_of(const struct net_hal *net,
				const struct hal_key *key)
{
	for (uint32_t i = 0; i < g_regions.n; i++) {
		struct region *r = &g_regions.tab[i];

		if (r->mem != NULL && r->net == net &&
		    r->key.word[0] == key->word[0] &&
		    r->key.word[1] == key->word[1])
			return r;
	}
	return NULL;
}

/* Copy between a region and a message, under the lock, so that the region is
 * not freed meanwhile. 0, -FI_EKEYREJECTED, -FI_EINVAL. */
static int region_move(const struct net_peer *peer, const struct net_access *a,
		       void *to, const void *from)
{
	struct region *r;
	int ret = 0;

	hal_lock(&g_regions.lock);
	r = region_of(peer->nif->net, &a->key);
	if (r == NULL)
		ret = -FI_EKEYREJECTED;
	else if (a->off > r->bytes || a->len > r->bytes - a->off)
		ret = -FI_EINVAL;
	else if (to != NULL)
		memcpy(to, r->addr + a->off, a->len);
	else
		memcpy(r->addr + a->off, from, a->len);
	hal_unlock(&g_regions.lock);
	return ret;
}

/* ---- Requests of peers --------------------------------------------- */

static void answer(struct net_peer *peer, enum net_rec_type type, uint64_t arg,
		   int status, uint64_t off)
{
	struct net_reply reply = { .status = status, .off = off };
	uint8_t *at = net_rec_add(peer, type, 0, arg, sizeof(reply));

	if (at != NULL)
		memcpy(at, &reply, sizeof(reply));
	net_later(peer);
}

/* Frames that a peer has not acknowledged: packets, stores and transfers are
 * bounded on both sides, so a peer that has more sends requests and takes no
 * answers. They may take NET_FRAME_MAX each: 33 MiB. */
#define UNACKED_MAX	512

static bool takes_no_answers(const struct net_peer *peer)
{
	return peer->s.sent - peer->s.acked + peer->nqueue > UNACKED_MAX;
}

static int on_import(struct net_peer *peer, const struct net_rec *rec,
		     const uint8_t *data)
{
	struct hal_key key;
	struct region *r;
	uint64_t bytes = 0;

	if (rec->len != sizeof(key) || takes_no_answers(peer))
		return -EPROTO;
	memcpy(&key, data, sizeof(key));
	hal_lock(&g_regions.lock);
	r = region_of(peer->nif->net, &key);
	if (r != NULL)
		bytes = r->bytes;
	hal_unlock(&g_regions.lock);
	answer(peer, NET_IMPORTED, rec->arg,
	       bytes != 0 ? 0 : -FI_EKEYREJECTED, bytes);
	return 0;
}

static int on_get(struct net_peer *peer, const struct net_rec *rec,
		  const uint8_t *data)
{
	struct net_reply reply = { .status = 0 };
	struct net_access a;
	uint8_t *at;

	if (rec->len != sizeof(a))
		return -EPROTO;
	memcpy(&a, data, sizeof(a));
	if (a.len > NET_PIECE || takes_no_answers(peer))
		return -EPROTO;
	at = net_rec_add(peer, NET_GOT, 0, rec->arg,
			 (uint32_t)(sizeof(reply) + a.len));
	if (at == NULL)
		return 0;
	reply.status = region_move(peer, &a, at + sizeof(reply), NULL);
	if (reply.status != 0)
		memset(at + sizeof(reply), 0, a.len);
	memcpy(at, &reply, sizeof(reply));
	net_later(peer);
	return 0;
}

static int on_put(struct net_peer *peer, const struct net_rec *rec,
		  const uint8_t *data)
{
	struct net_access a;

	if (rec->len < sizeof(a))
		return -EPROTO;
	memcpy(&a, data, sizeof(a));
	if (a.len != rec->len - sizeof(a))
		return -EPROTO;
	answer(peer, NET_DONE, rec->arg,
	       region_move(peer, &a, NULL, data + sizeof(a)), 0);
	return 0;
}

int net_region_record(struct net_peer *peer, const struct net_rec *rec,
		      const uint8_t *data)
{
	switch (rec->type) {
	case NET_IMPORT:
		return on_import(peer, rec, data);
	case NET_GET:
		return on_get(peer, rec, data);
	case NET_PUT:
		return on_put(peer, rec, data);
	default:
		return -EPROTO;
	}
}
