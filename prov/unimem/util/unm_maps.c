/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_maps.c - reads the mappings of this process from /proc/self/maps.
 *
 * Entry point: unm_maps_allow(). From Linux 6.11 on, ioctl(PROCMAP_QUERY)
 * returns one mapping a call. Older kernels only offer the text of the file,
 * proc_pid_maps(5), which unm_maps_allow_text() reads line by line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "util/unm_maps.h"

#define MAPS_CHUNK	4096		/* bytes of text read at once */

/* struct procmap_query of <linux/fs.h>; headers before Linux 6.11 lack it. */
struct procmap_query_v1 {
	uint64_t size;			/* of this structure */
	uint64_t query_flags;		/* 0: the mapping that covers
					 * query_addr */
	uint64_t query_addr;
	uint64_t start, end;
	uint64_t flags;
	uint64_t page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;	/* 0: not requested */
	uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct procmap_query_v1) == 104, "the kernel's size");

#define PROCMAP_QUERY_V1	_IOWR('f', 17, struct procmap_query_v1)
#define PROCMAP_READABLE	1
#define PROCMAP_WRITABLE	2

/* One mapping of the process. */
struct mapping {
	uint64_t start, end;		/* first byte, and the byte after the
					 * last one */
	int prot;			/* PROT_READ, PROT_WRITE */
};

/* ---- By ioctl ------------------------------------------------------------ */

/* Fill in *m with the mapping at an address. Returns 0; -FI_EFAULT if nothing
 * is mapped there; -FI_ENOSYS if the kernel lacks the query. */
static int maps_query(int fd, uint64_t at, struct mapping *m)
{
	struct procmap_query_v1 q = { .size = sizeof(q), .query_addr = at };

	if (ioctl(fd, PROCMAP_QUERY_V1, &q) != 0)
		return errno == ENOENT ? -FI_EFAULT : -FI_ENOSYS;
	m->start = q.start;
	m->end = q.end;
	m->prot = (q.flags & PROCMAP_READABLE ? PROT_READ : 0) |
		(q.flags & PROCMAP_WRITABLE ? PROT_WRITE : 0);
	return 0;
}

/* ---- As text ------------------------------------------------------------- */

/* A buffered reader of a file. */
struct text {
	int fd;
	ssize_t at, len;		/* next byte to read, and bytes, in buf
					 */
	char buf[MAPS_CHUNK];
};

/* The next character, or -1 at the end of the text. */
static int text_char(struct text *t)
{
	if (t->at == t->len) {
		do {
			t->len = read(t->fd, t->buf, sizeof(t->buf));
		} while (t->len < 0 && errno == EINTR);
		t->at = 0;
		if (t->len <= 0) {
			t->len = 0;
			return -1;
		}
	}
	return (unsigned char)t->buf[t->at++];
}

/* Read a hexadecimal number; *behind is the character after it. */
static uint64_t text_number(struct text *t, int *behind)
{
	uint64_t n = 0;

	for (;;) {
		int c = text_char(t);

		if (c >= '0' && c <= '9') {
			n = n << 4 | (uint64_t)(c - '0');
		} else if (c >= 'a' && c <= 'f') {
			n = n << 4 | (uint64_t)(c - 'a' + 10);
		} else {
			*behind = c;
			return n;
		}
	}
}

/* Read a line "7f00-7f80 rw-p ..." into *m. False at the end of the text, or if
 * the line has another format. */
static bool text_mapping(struct text *t, struct mapping *m)
{
	int c;

	m->start = text_number(t, &c);
	if (c != '-')
		return false;
	m->end = text_number(t, &c);
	if (c != ' ')
		return false;
	m->prot = text_char(t) == 'r' ? PROT_READ : 0;
	m->prot |= text_char(t) == 'w' ? PROT_WRITE : 0;
	do {
		c = text_char(t);
	} while (c != '\n' && c != -1);
	return c == '\n';
}

int unm_maps_allow_text(int fd, const void *start, size_t len, int prot)
{
	uint64_t at = (uintptr_t)start, last = at + (len - 1);
	struct text t = { .fd = fd };
	struct mapping m;

	if (len == 0)
		return 0;
	while (text_mapping(&t, &m)) {
		if (m.end <= at)
			continue;
		if (m.start > at)
			return -FI_EFAULT;
		if (prot & ~m.prot)
			return -FI_EACCES;
		if (m.end > last)
			return 0;
		at = m.end;
	}
	return -FI_EFAULT;
}

/* ---- Entry point --------------------------------------------------------- */

static int maps_allow(int fd, const void *start, size_t len, int prot)
{
	uint64_t at = (uintptr_t)start, last = at + (len - 1);
	struct mapping m;
	int ret;

	do {
		ret = maps_query(fd, at, &m);
		if (ret == -FI_ENOSYS)
			return unm_maps_allow_text(fd, start, len, prot);
		if (ret != 0)
			return ret;
		if (prot & ~m.prot)
			return -FI_EACCES;
		at = m.end;
	} while (at <= last);
	return 0;
}

int unm_maps_allow(const void *at, size_t len, int prot)
{
	int fd, ret;

	if (len == 0)
		return 0;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -FI_ENOSYS;
	ret = maps_allow(fd, at, len, prot);
	close(fd);
	return ret;
}
