/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_map.c - pointers into shared memory for programs: gsas_map() and
 * gsas_unmap().
 *
 * The mappings of a thread (gsas_window.c) end with its interface. A pointer of
 * a program is valid until gsas_unmap(), even if the thread or the service ends
 * before. So the first gsas_map() in a segment makes a second mapping of the
 * segment, which belongs to the process; later calls share that mapping. All
 * these mappings are in one list, under gsas_lock().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/gsas_job.h"
#include "client/gsas_thread.h"
#include "client/gsas_window.h"
#include "util/unm_map_again.h"

/* A mapping of the process; the last gsas_unmap() frees it. */
struct process_map {
	struct process_map *next;
	uint64_t base;			/* global address of the segment */
	uint64_t key[2];		/* of the segment, unique */
	struct hal *hal;		/* one reference */
	struct hal_mem *mem;		/* on a board; NULL: an mremap() */
	uint8_t *memory;		/* where it is mapped */
	size_t bytes;			/* size of the segment */
	uint64_t refs;			/* calls of gsas_map() not yet undone */
};

static struct process_map *maps;
static int maps_pid;			/* process that made the mappings */

/* In a forked child: empty the list, because the child has none of its parent's
 * mappings (MADV_DONTFORK). */
static void drop_inherited(void)
{
	int pid = (int)getpid();

	if (pid == maps_pid)
		return;
	while (maps != NULL) {
		struct process_map *map = maps;

		maps = map->next;
		free(map);
	}
	maps_pid = pid;
}

static struct process_map *map_find(const struct gsas_segment_map *s)
{
	struct process_map *map = maps;

	while (map != NULL && (map->base != s->base ||
			       memcmp(map->key, s->key, sizeof(map->key))))
		map = map->next;
	return map;
}

/* Map the segment once more, independent of the thread and its interface. On
 * boards the driver has to know of the mapping, because it uses the memory
 * again after the last one. The emulation finds the region by the import of the
 * thread. */
static int map_new(const struct gsas_segment_map *s, struct process_map **out)
{
	const struct hal_key key = { { s->key[0], s->key[1] } };
	struct process_map *map = calloc(1, sizeof(*map));
	void *at;
	int ret;

	if (map == NULL)
		return -FI_ENOMEM;
	ret = hal_get(NULL, &map->hal);
	if (ret != 0)
		goto free_map;
	ret = hal_mem_open(map->hal, &key, &map->mem, &at);
	if (ret == -FI_ENOSYS) {
		at = unm_map_again(s->memory, s->bytes);
		ret = at != NULL ? 0 : -FI_ENOMEM;
	}
	if (ret != 0)
		goto put_hal;
	map->base = s->base;
	memcpy(map->key, s->key, sizeof(map->key));
	map->memory = at;
	map->bytes = s->bytes;
	map->next = maps;
	maps = map;
	*out = map;
	return 0;

put_hal:
	hal_put(map->hal);
free_map:
	free(map);
	return ret == -FI_EKEYREJECTED ? -ESTALE : ret;
}

static void map_free(struct process_map *map)
{
	if (map->mem != NULL)
		hal_mem_free(map->hal, map->mem);
	else
		munmap(map->memory, map->bytes);
	hal_put(map->hal);
	free(map);
}

int gsas_map(gsas_addr addr, void **ptr, size_t *bytes)
{
	struct process_map *map;
	const struct gsas_segment_map *s;
	struct gsas_thread *t;
	uint64_t left;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = gsas_window_map(t, addr, &s);
	if (ret != 0)
		return ret;
	left = gsas_segments_left(&t->segments, addr, UINT64_MAX);
	if (left == 0)
		return -ESTALE;
	gsas_lock();
	drop_inherited();
	map = map_find(s);
	if (map == NULL)
		ret = map_new(s, &map);
	if (ret == 0) {
		map->refs++;
		*ptr = map->memory + (addr - s->base);
		*bytes = left;
	}
	gsas_unlock();
	return ret;
}

int gsas_unmap(void *ptr)
{
	struct process_map **at = &maps, *map;

	gsas_lock();
	drop_inherited();
	while ((map = *at) != NULL &&
	       (uintptr_t)ptr - (uintptr_t)map->memory >= map->bytes)
		at = &map->next;
	if (map != NULL && --map->refs == 0) {
		*at = map->next;
		map_free(map);
	}
	gsas_unlock();
	return map != NULL ? 0 : -FI_EINVAL;
}
