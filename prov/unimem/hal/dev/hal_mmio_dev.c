/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_mmio_dev.c - hal_mmio.h for the silicon: volatile accesses of exactly one
 * width, barriers of the processor, system calls of the kernel device.
 *
 * On aarch64 registers and remote memory are mapped as Device memory: accesses
 * are aligned, stay in program order within a map and are not merged; stores
 * are posted. An access of 16 bytes is one LDP or STP. A mailbox needs it to be
 * one access on the bus [docs/hal.md, 13]. That these cores do so on their
 * 128-bit bus is an assumption; docs/porting.md, section 5, describes the
 * symptom if they do not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_bus.h"

/* An open kernel device. */
struct dev_mmio {
	struct hal_mmio m;		/* first member: the caller's view */
	struct hal_platform platform;	/* copy; map() needs the blocks */
	pid_t pid;			/* process that opened it */
	int fd;				/* the kernel device */
	int event_fd;			/* of event_fd(); -1: none */
};

static struct dev_mmio *dev_mmio(struct hal_mmio *mm)
{
	return (struct dev_mmio *)mm;
}

/* ---- The machine ------------------------------------------------------- */

#if defined(__aarch64__)

static void wide_load(const volatile void *from, uint64_t w[2])
{
	__asm__ volatile("ldp %0, %1, [%2]" : "=&r"(w[0]), "=&r"(w[1])
			 : "r"(from) : "memory");
}

static void wide_store(volatile void *to, const uint64_t w[2])
{
	__asm__ volatile("stp %0, %1, [%2]" : : "r"(w[0]), "r"(w[1]), "r"(to)
			 : "memory");
}

#define WIDE_WORKS	true
/* Complete earlier stores as far as the interconnect. */
#define barrier_stores()	__asm__ volatile("dsb st" : : : "memory")
/* Complete earlier loads before any later access. */
#define barrier_loads()		__asm__ volatile("dsb ld" : : : "memory")

#elif defined(__x86_64__)

static void wide_load(const volatile void *from, uint64_t w[2])
{
	__asm__ volatile("movdqa (%1), %%xmm0\n\tmovdqu %%xmm0, (%0)"
			 : : "r"(w), "r"(from) : "xmm0", "memory");
}

static void wide_store(volatile void *to, const uint64_t w[2])
{
	__asm__ volatile("movdqu (%0), %%xmm0\n\tmovdqa %%xmm0, (%1)"
			 : : "r"(w), "r"(to) : "xmm0", "memory");
}

#define WIDE_WORKS	true
#define barrier_stores()	__asm__ volatile("mfence" : : : "memory")
#define barrier_loads()		__asm__ volatile("lfence" : : : "memory")

#else	/* no access of 16 bytes; no board has such a processor */

static void wide_load(const volatile void *from, uint64_t w[2])
{
	const volatile uint64_t *p = from;

	w[0] = p[0];
	w[1] = p[1];
}

static void wide_store(volatile void *to, const uint64_t w[2])
{
	volatile uint64_t *p = to;

	p[0] = w[0];
	p[1] = w[1];
}

/* mmio_open() fails, so that nothing here is called. */
#define WIDE_WORKS	false
#define barrier_stores()	((void)0)
#define barrier_loads()		((void)0)

#endif

/* ---- Kernel device ----------------------------------------------------- */

static int mmio_open(const struct hal_platform *pf, uint32_t board,
		     struct hal_mmio **out)
{
	struct dev_mmio *dm;
	char name[96];
	int ret;

	if (!WIDE_WORKS)
		return -ENOTSUP;
	ret = dev_platform_node(pf, board, name, sizeof(name));
	if (ret != 0)
		return ret;
	dm = calloc(1, sizeof(*dm));
	if (dm == NULL)
		return -ENOMEM;
	dm->fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (dm->fd < 0) {
		ret = -errno;
		free(dm);
		return ret;
	}
	dm->m.ops = &hal_mmio_dev_ops;
	dm->m.board = board;
	dm->platform = *pf;
	dm->pid = getpid();
	dm->event_fd = -1;
	dev_bus_open();
	*out = &dm->m;
	return 0;
}

static void mmio_close(struct hal_mmio *mm)
{
	struct dev_mmio *dm = dev_mmio(mm);

	if (dm->event_fd >= 0)
		close(dm->event_fd);
	close(dm->fd);
	dev_bus_close();
	free(dm);
}

static int mmio_ioctl(struct hal_mmio *mm, unsigned long cmd, void *arg)
{
	struct dev_mmio *dm = dev_mmio(mm);
	int ret;

	if (dm->pid != getpid())
		return -EPERM;
	do {
		ret = ioctl(dm->fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static ssize_t mmio_write(struct hal_mmio *mm, const void *buf, size_t len)
{
	ssize_t ret;

	do {
		ret = write(dev_mmio(mm)->fd, buf, len);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

static ssize_t mmio_read(struct hal_mmio *mm, void *buf, size_t len)
{
	ssize_t ret;

	do {
		ret = read(dev_mmio(mm)->fd, buf, len);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

static int mmio_event_fd(struct hal_mmio *mm)
{
	struct dev_mmio *dm = dev_mmio(mm);
	struct hal_kdev_event event = { 0 };
	int ret;

	event.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event.fd < 0)
		return -errno;
	ret = mmio_ioctl(mm, HAL_KDEV_IO_EVENT, &event);
	if (ret != 0) {
		close(event.fd);
		return ret;
	}
	dm->event_fd = event.fd;
	return event.fd;
}

/* ---- Maps -------------------------------------------------------------- */

/* The block of a map offset that another node offers; NULL: the kernel device
 * maps it. */
static const struct hal_platform_block *block_of(const struct hal_platform *pf,
						 uint64_t off)
{
	const struct hal_platform_block *block = NULL;

	switch (off >> HAL_KDEV_OFF_SHIFT) {
	case HAL_KDEV_MIF:
		block = &pf->mif;
		break;
	case HAL_KDEV_PIF:
		block = &pf->pif;
		break;
	case HAL_KDEV_CDMA:
		block = &pf->cdma;
		break;
	}
	return block != NULL && block->node[0] != '\0' ? block : NULL;
}

/* Map len bytes of a file, beginning skip bytes after off; off is page
 * aligned. */
static int map_fd(int fd, uint64_t off, uint64_t skip, size_t len, int prot,
		  struct hal_mmio_map *map)
{
	uint8_t *at;
	int ret;

	at = mmap(NULL, skip + len, prot, MAP_SHARED, fd, (off_t)off);
	if (at == MAP_FAILED)
		return -errno;
	if (madvise(at, skip + len, MADV_DONTFORK) != 0) {
		ret = -errno;
		munmap(at, skip + len);
		return ret;
	}
	map->impl = at;
	map->base = at + skip;
	map->len = len;
	return 0;
}

/* Map a page of a block that another node offers. An offset of a UIO node is
 * the number of one of its maps, which must be mapped from its start. */
static int map_block(const struct hal_platform_block *block, uint64_t inner,
		     size_t len, struct hal_mmio_map *map)
{
	bool uio = strncmp(block->node, "/dev/uio", 8) == 0;
	int fd, ret;

	fd = open(block->node, O_RDWR | O_CLOEXEC | O_SYNC);
	if (fd < 0)
		return -errno;
	ret = map_fd(fd, uio ? block->base : block->base + inner,
		     uio ? inner : 0, len, PROT_READ | PROT_WRITE, map);
	close(fd);
	return ret;
}

static int mmio_map(struct hal_mmio *mm, uint64_t off, size_t len,
		    struct hal_mmio_map *map)
{
	struct dev_mmio *dm = dev_mmio(mm);
	const struct hal_platform_block *block = block_of(&dm->platform, off);
	bool table = off >> HAL_KDEV_OFF_SHIFT == HAL_KDEV_TABLE;
	uint64_t inner = off & ((UINT64_C(1) << HAL_KDEV_OFF_SHIFT) - 1);
	int ret;

	memset(map, 0, sizeof(*map));
	if (block != NULL)
		ret = map_block(block, inner, len, map);
	else
		ret = map_fd(dm->fd, off, 0, len, table ? PROT_READ :
			     PROT_READ | PROT_WRITE, map);
	if (ret != 0)
		return ret;
	map->ops = mm->ops;
	map->mm = mm;
	return 0;
}

static void mmio_unmap(struct hal_mmio_map *map)
{
	uint8_t *start = map->impl;

	/* A forked child has not inherited the map. */
	if (dev_mmio(map->mm)->pid == getpid())
		munmap(start, (size_t)((uint8_t *)map->base - start) +
		       map->len);
	memset(map, 0, sizeof(*map));
}

/* ---- Registers --------------------------------------------------------- */

static volatile void *reg(const struct hal_mmio_map *map, uint64_t off)
{
	return (volatile uint8_t *)map->base + off;
}

static uint32_t mmio_read32(const struct hal_mmio_map *map, uint32_t off)
{
	return *(volatile uint32_t *)reg(map, off);
}

static void mmio_write32(const struct hal_mmio_map *map, uint32_t off,
			 uint32_t val)
{
	*(volatile uint32_t *)reg(map, off) = val;
}

static uint64_t mmio_read64(const struct hal_mmio_map *map, uint32_t off)
{
	return *(volatile uint64_t *)reg(map, off);
}

static void mmio_write64(const struct hal_mmio_map *map, uint32_t off,
			 uint64_t val)
{
	*(volatile uint64_t *)reg(map, off) = val;
}

static void mmio_read128(const struct hal_mmio_map *map, uint32_t off,
			 uint64_t w[2])
{
	wide_load(reg(map, off), w);
}

static void mmio_write128(const struct hal_mmio_map *map, uint32_t off,
			  const uint64_t w[2])
{
	wide_store(reg(map, off), w);
}

/* ---- Remote memory ----------------------------------------------------- */

static void mmio_store(struct hal_mmio_map *map, uint64_t off, const void *src,
		       size_t len)
{
	volatile uint8_t *to = reg(map, off);
	const uint8_t *from = src;

	if (len == 0)
		return;
	map->last = (off + len - 1) & ~UINT64_C(7);
	while (len != 0 && (uintptr_t)to & 7) {
		*to++ = *from++;
		len--;
	}
	while (len >= 8) {
		uint64_t w[2];
		size_t n = len >= 16 && !((uintptr_t)to & 15) ? 16 : 8;

		memcpy(w, from, n);
		if (n == 16)
			wide_store(to, w);
		else
			*(volatile uint64_t *)to = w[0];
		to += n;
		from += n;
		len -= n;
	}
	while (len-- != 0)
		*to++ = *from++;
}

static void mmio_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
		      size_t len)
{
	const volatile uint8_t *from = reg(map, off);
	uint8_t *to = dst;

	while (len != 0 && (uintptr_t)from & 7) {
		*to++ = *from++;
		len--;
	}
	while (len >= 8) {
		uint64_t w = *(const volatile uint64_t *)from;

		memcpy(to, &w, 8);
		to += 8;
		from += 8;
		len -= 8;
	}
	while (len-- != 0)
		*to++ = *from++;
}

/* ---- Barriers ---------------------------------------------------------- */

/* A load from the place of the last store completes all stores before it. */
static int mmio_stores_before_notify(const struct hal_mmio_map *map)
{
	int ret;

	barrier_stores();
	ret = dev_bus_load(reg(map, map->last));
	barrier_loads();
	return ret;
}

static void mmio_memory_before_start(struct hal_mmio *mm)
{
	(void)mm;
	barrier_stores();
}

static void mmio_status_before_memory(struct hal_mmio *mm)
{
	(void)mm;
	barrier_loads();
}

static void mmio_loads_before_store(struct hal_mmio *mm)
{
	(void)mm;
	barrier_loads();
}

const struct hal_mmio_ops hal_mmio_dev_ops = {
	.backend = "dev",
	.profile = "board",
	.probe = dev_platform_probe,
	.open = mmio_open,
	.close = mmio_close,
	.ioctl = mmio_ioctl,
	.write = mmio_write,
	.read = mmio_read,
	.event_fd = mmio_event_fd,
	.map = mmio_map,
	.unmap = mmio_unmap,
	.read32 = mmio_read32,
	.write32 = mmio_write32,
	.read64 = mmio_read64,
	.write64 = mmio_write64,
	.read128 = mmio_read128,
	.write128 = mmio_write128,
	.store = mmio_store,
	.load = mmio_load,
	.stores_before_notify = mmio_stores_before_notify,
	.memory_before_start = mmio_memory_before_start,
	.status_before_memory = mmio_status_before_memory,
	.loads_before_store = mmio_loads_before_store,
};
