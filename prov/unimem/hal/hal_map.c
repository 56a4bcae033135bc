/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_map.c - sealed segments of shared memory, and their mappings.
 *
 * Entry points: hal_map_get(), hal_map_hold(), hal_map_put(),
 * hal_seg_create(), hal_seg_check(), hal_seg_reserve().
 *
 * A segment is mapped once per process, however many interfaces use it. That
 * saves memory, and where both ends of a link are in one process a race
 * detector, which identifies memory by its address, sees the accesses of both.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_limit.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/hal_map.h"

#define MAPS_HASH	256
#define HUGE_BYTES	((size_t)1 << 21)
#define LIMIT_WORTH	(1u << 18)	/* bytes; smaller segments are made
					 * without hal_limit_check() */
#define RESERVE_STEP	(1u << 20)	/* bytes of one fallocate() at first */
#define RESERVE_LEAST	4096u		/* bytes of the smallest */
#define RESERVE_TRIES	1000		/* interrupted calls in a row */
#define TMPFS_MAGIC_NR	0x01021994	/* linux/magic.h */

/* All mappings of this process, by inode. */
static struct {
	struct hal_lock lock;		/* guards the table and refs */
	pid_t pid;			/* process whose mappings these are */
	struct hal_map *hash[MAPS_HASH];
} g_maps;

/* ---- Mappings -------------------------------------------------------- */

static struct hal_map **map_bucket(uint64_t ino)
{
	return &g_maps.hash[(ino ^ ino >> 8) % MAPS_HASH];
}

/* Empty the table in a forked child, which inherits none of the mappings of its
 * parent (MADV_DONTFORK). */
static void maps_check_fork(void)
{
	pid_t self = getpid();

	if (g_maps.pid == self)
		return;
	g_maps.pid = self;
	for (int i = 0; i < MAPS_HASH; i++)
		g_maps.hash[i] = NULL;
}

/* Map len bytes of a file. A large mapping begins at a multiple of HUGE_BYTES,
 * so that it gets huge pages where the system provides them for shared memory
 * (transparent_hugepage/shmem_enabled). */
static void *map_shared(int fd, size_t len)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t room, at, end;
	void *got;

	got = len < HUGE_BYTES ? MAP_FAILED :
		mmap(NULL, len + HUGE_BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (got == MAP_FAILED)
		return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	room = (uintptr_t)got;
	at = (room + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	got = mmap((void *)at, len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 0);
	end = got == MAP_FAILED ? at : (at + len + page - 1) & ~(page - 1);
	if (at != room)
		munmap((void *)room, at - room);
	munmap((void *)end, room + len + HUGE_BYTES - end);
	if (got != MAP_FAILED)
		madvise(got, len, MADV_HUGEPAGE);
	return got;
}

static int map_new(int fd, size_t len, const struct stat *st,
		   struct hal_map **out)
{
	struct hal_map *map;
	int ret;

	map = malloc(sizeof(*map));
	if (map == NULL)
		return -FI_ENOMEM;
	map->addr = map_shared(fd, len);
	if (map->addr == MAP_FAILED) {
		ret = -errno;
		goto err_free;
	}
	if (madvise(map->addr, len, MADV_DONTFORK) != 0) {
		ret = -errno;
		goto err_unmap;
	}
	map->len = len;
	map->dev = st->st_dev;
	map->ino = st->st_ino;
	map->refs = 1;
	*out = map;
	return 0;

err_unmap:
	munmap(map->addr, len);
err_free:
	free(map);
	return ret;
}

int hal_map_get(int fd, size_t len, struct hal_map **out)
{
	struct hal_map **bucket, *map;
	struct stat st;
	int ret = 0;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (st.st_size < 0 || (size_t)st.st_size != len)
		return -FI_EINVAL;
	hal_lock(&g_maps.lock);
	maps_check_fork();
	bucket = map_bucket(st.st_ino);
	for (map = *bucket; map != NULL; map = map->next) {
		if (map->ino == st.st_ino && map->dev == st.st_dev) {
			map->refs++;
			goto out;
		}
	}
	ret = map_new(fd, len, &st, &map);
	if (ret == 0) {
		map->next = *bucket;
		*bucket = map;
	}
out:
	if (ret == 0)
		*out = map;
	hal_unlock(&g_maps.lock);
	return ret;
}

struct hal_map *hal_map_hold(struct hal_map *map)
{
	hal_lock(&g_maps.lock);
	map->refs++;
	hal_unlock(&g_maps.lock);
	return map;
}

void hal_map_put(struct hal_map *map)
{
	struct hal_map **at;

	if (map == NULL)
		return;
	hal_lock(&g_maps.lock);
	maps_check_fork();
	if (--map->refs > 0)
		goto out;
	for (at = map_bucket(map->ino); *at != NULL; at = &(*at)->next) {
		if (*at == map) {
			*at = map->next;
			munmap(map->addr, map->len);
			break;
		}
	}
	/* a mapping that is not in the table is one of the parent process,
	 * and is not mapped here */
	free(map);
out:
	hal_unlock(&g_maps.lock);
}

/* ---- Segments -------------------------------------------------------- */

/* Growing a file, also a memfd, beyond RLIMIT_FSIZE raises SIGXFSZ. A library
 * must not change the disposition of a signal, so the limit is checked
 * before. */
static int check_fsize(const char *name, size_t len)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 &&
	    lim.rlim_cur != RLIM_INFINITY && len > lim.rlim_cur) {
		hal_log(0, "%s of %zu bytes exceeds the file size limit of "
			"%llu (RLIMIT_FSIZE): raise it with ulimit -f", name,
			len, (unsigned long long)lim.rlim_cur);
		return -EFBIG;
	}
	return 0;
}

/* A signal that interrupts fallocate() undoes that call, so memory is reserved
 * in steps. Each interrupted call halves the step, down to a page: signals may
 * come more often than a large step takes. */
int hal_seg_reserve(int fd, size_t from, size_t to)
{
	size_t step = RESERVE_STEP;
	int tries = 0;

	while (from < to) {
		size_t n = to - from < step ? to - from : step;

		if (fallocate(fd, 0, (off_t)from, (off_t)n) == 0) {
			from += n;
			tries = 0;
		} else if (errno != EINTR || ++tries > RESERVE_TRIES) {
			return errno == ENOSPC ? -FI_ENOMEM : -errno;
		} else if (step > RESERVE_LEAST) {
			step /= 2;
		}
	}
	return 0;
}

static int seg_fill(int fd, const char *name, size_t len, size_t ready)
{
	int ret;

	ret = check_fsize(name, len);
	if (ret == 0 && ready >= LIMIT_WORTH)
		ret = hal_limit_check(name, ready);
	if (ret != 0)
		return ret;
	if (ftruncate(fd, (off_t)len) != 0)
		ret = -errno;
	else
		ret = hal_seg_reserve(fd, 0, ready);
	if (ret == 0 && fcntl(fd, F_ADD_SEALS,
			      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		ret = -errno;
	if (ret != 0)
		hal_log(0, "cannot get %zu bytes of shared memory for %s: %s",
			len, name, strerror(-ret));
	return ret;
}

int hal_seg_create(const char *name, size_t len, size_t ready, int *out)
{
	int fd, ret;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		ret = -errno;
		hal_log(0, "cannot create %s: %s%s", name, strerror(-ret),
			hal_log_advice(ret, ""));
		return ret;
	}
	ret = seg_fill(fd, name, len, ready);
	if (ret != 0) {
		close(fd);
		return ret;
	}
	*out = fd;
	return 0;
}

/* A descriptor that came from a peer may be of any file. A sealed memfd of the
 * right size cannot be truncated while it is mapped here; on tmpfs it has pages
 * of the ordinary size. */
int hal_seg_check(int fd, size_t len)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) !=
			 (F_SEAL_SHRINK | F_SEAL_GROW))
		return -FI_EINVAL;
	if (fstat(fd, &st) != 0 || st.st_size < 0 ||
	    (size_t)st.st_size != len)
		return -FI_EINVAL;
	if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC_NR)
		return -FI_EINVAL;
	return 0;
}
