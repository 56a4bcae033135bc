/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_import.c - the cache of imported regions of a peer's dmable memory.
 *
 * unm_import.h describes it. hal_mem_import() of the HAL maps the memory.
 */
#include <stdlib.h>

#include "core/unm_peer.h"
#include "hal/hal.h"
#include "rma/unm_import.h"
#include "util/unm_list.h"

/* The cached import of a key, or NULL. */
static struct unm_import *unm_import_find(const struct unm_peer *peer,
					  const struct hal_key *key)
{
	unm_list_for_each(pos, &peer->imports) {
		struct unm_import *imp = unm_container(pos, struct unm_import,
						       link);

		if (imp->key.word[0] == key->word[0] &&
		    imp->key.word[1] == key->word[1])
			return imp;
	}
	return NULL;
}

/* Take an import out of the cache, and free it if it has no user. */
static void unm_import_drop(struct unm_peer *peer, struct unm_import *imp)
{
	if (imp->rmem != NULL)
		hal_mem_release(peer->hp, imp->rmem);
	imp->rmem = NULL;
	unm_list_remove(&imp->link);
	peer->nimports--;
	if (imp->refs == 0)
		free(imp);
}

/* Make space for another import, by releasing the unused import that was used
 * least recently. False if all UNM_IMPORTS_MAX are in use. */
static bool unm_import_room(struct unm_peer *peer)
{
	struct unm_list *pos = peer->imports.prev;

	if (peer->nimports < UNM_IMPORTS_MAX)
		return true;
	for (; pos != &peer->imports; pos = pos->prev) {
		struct unm_import *imp = unm_container(pos, struct unm_import,
						       link);

		if (imp->refs == 0) {
			unm_import_drop(peer, imp);
			return true;
		}
	}
	return false;
}

/* Import a region. A failed import is cached, too. NULL: nothing was added, and
 * *ret is the negative fi_errno. */
static struct unm_import *unm_import_new(struct unm_peer *peer,
					 const struct hal_key *key, int *ret)
{
	struct unm_import *imp = NULL;

	*ret = -FI_ENOMEM;
	if (unm_import_room(peer))
		imp = calloc(1, sizeof(*imp));
	if (imp == NULL)
		return NULL;
	imp->status = hal_mem_import(peer->hp, key, &imp->rmem);
	if (imp->status == -FI_EAGAIN) {
		*ret = -FI_EAGAIN;
		free(imp);
		return NULL;
	}
	imp->key = *key;
	unm_list_append(&peer->imports, &imp->link);
	peer->nimports++;
	if (imp->status == 0)
		hal_mem_window(peer->hp, imp->rmem, &imp->win);
	return imp;
}

int unm_import_get(struct unm_peer *peer, const struct hal_key *key,
		   struct unm_import **out)
{
	struct unm_import *imp = unm_import_find(peer, key);
	int ret;

	if (imp == NULL) {
		imp = unm_import_new(peer, key, &ret);
		if (imp == NULL)
			return ret;
	}
	if (imp->status != 0)
		return imp->status;
	if (peer->imports.next != &imp->link) {
		unm_list_remove(&imp->link);
		unm_list_append(peer->imports.next, &imp->link);
	}
	imp->refs++;
	imp->idle = 0;
	*out = imp;
	return 0;
}

void unm_import_put(struct unm_import *imp)
{
	if (--imp->refs == 0 && imp->rmem == NULL)
		free(imp);
}

void unm_import_evict_idle(struct unm_peer *peer, uint64_t now_us)
{
	unm_list_for_each_safe(pos, tmp, &peer->imports) {
		struct unm_import *imp = unm_container(pos, struct unm_import,
						       link);

		if (imp->refs != 0)
			continue;
		if (imp->idle == 0)
			imp->idle = now_us;
		else if (now_us - imp->idle >= UNM_IMPORT_US)
			unm_import_drop(peer, imp);
	}
}

void unm_import_release_all(struct unm_peer *peer)
{
	unm_list_for_each_safe(pos, tmp, &peer->imports)
		unm_import_drop(peer, unm_container(pos, struct unm_import,
						    link));
}

void unm_import_free_all(struct unm_peer *peer)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&peer->imports)) != NULL)
		free(unm_container(node, struct unm_import, link));
}
