/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_attach.c - reading and writing ordinary memory of a peer's process.
 *
 * Entry points: emu_attach_probe(), emu_attach_ready(), emu_attach_move(),
 * emu_attach_close(). The turns of transfers are in hal_emu_dma.c. docs/hal.md,
 * section 7, has the law: a transfer reaches the address space that the peer
 * had when it connected, and no other. A process number alone does not promise
 * that: exec() keeps the number and the pidfd, and replaces the memory.
 *
 * Each HAL holds a random word, whose address and value travel in its hello.
 * - GET is one process_vm_readv() of the data and of that word behind them. The
 *   kernel looks the address space up once per call, so if the word is right,
 *   the data are of the same address space.
 * - PUT writes through /proc/PID/mem. Such a descriptor stays with the address
 *   space that it was opened on; after exec() or exit a write moves 0 bytes.
 *   The word is read through the descriptor before it is used first.
 * Neither has a window in which a transfer could reach another program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hal_emu.h"

/* ---- The word of the peer -------------------------------------------- */

/* 0: the process of that number still has the peer's word. EFAULT: it has not.
 * Else an errno: the kernel does not let us read it. */
static int word_missing(const struct emu_peer *peer)
{
	uint64_t word = 0;
	struct iovec local = { &word, sizeof(word) };
	struct iovec remote = { (void *)(uintptr_t)peer->probe_addr,
				sizeof(word) };
	ssize_t n = process_vm_readv(peer->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return errno;
	return n == (ssize_t)sizeof(word) && word == peer->probe_word ? 0 :
		EFAULT;
}

void emu_attach_probe(struct emu_peer *peer)
{
	peer->p.dma_any = (peer->p.hif->caps->flags & HAL_CAP_DMA_ANY) &&
		peer->pidsrc.fd >= 0 && peer->pid > 0 &&
		word_missing(peer) == 0;
}

/* The process runs another program, or has ended: whatever else keeps its
 * sockets open, the peer is dead. */
static int peer_replaced(struct emu_peer *peer)
{
	emu_doom(peer, -FI_ECONNRESET);
	return -FI_ECANCELED;
}

/* ---- The descriptor for PUT ------------------------------------------ */

/* Open the address space of the peer; false: not possible now, or ever. */
static bool mem_open(struct emu_peer *peer)
{
	uint64_t word = 0;
	char path[32];
	int fd;

	if (peer->mem_denied)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		/* of descriptors there may be enough next time */
		peer->mem_denied = errno != EMFILE && errno != ENFILE;
		return false;
	}
	if (pread(fd, &word, sizeof(word), (off_t)peer->probe_addr) !=
	    (ssize_t)sizeof(word) || word != peer->probe_word) {
		/* exec() came first, or /proc has other process numbers */
		close(fd);
		peer->mem_denied = true;
		return false;
	}
	peer->mem_fd = fd;
	return true;
}

void emu_attach_close(struct emu_peer *peer)
{
	if (peer->mem_fd >= 0)
		close(peer->mem_fd);
	peer->mem_fd = -1;
}

bool emu_attach_ready(struct emu_peer *peer, const struct hal_dma *d)
{
	if (!peer->p.dma_any)
		return false;
	return d->op == HAL_DMA_GET || d->len == 0 || peer->mem_fd >= 0 ||
		mem_open(peer);
}

/* ---- Transfers ------------------------------------------------------- */

/* Why did reading fail? Decides whether this peer stays reachable. */
static int get_failed(struct emu_peer *peer, int err)
{
	if (err == ESRCH || emu_pidfd_dead(peer->pidsrc.fd))
		return -FI_ECANCELED;
	if (err == ENOMEM)
		return -FI_EIO;
	if (err == EFAULT)
		err = word_missing(peer);
	if (err == 0)
		return -FI_EFAULT;	/* that address, not the peer */
	if (err == EFAULT)
		return peer_replaced(peer);
	peer->p.dma_any = false;
	return -FI_EACCES;
}

static int64_t get(struct emu_peer *peer, void *to, uint64_t from, uint64_t n)
{
	uint64_t word = 0;
	struct iovec local[] = { { to, n }, { &word, sizeof(word) } };
	struct iovec remote[] = {
		{ (void *)(uintptr_t)from, n },
		{ (void *)(uintptr_t)peer->probe_addr, sizeof(word) },
	};
	ssize_t moved;

	moved = process_vm_readv(peer->pid, local, 2, remote, 2, 0);
	if (moved <= 0)
		return get_failed(peer, moved == 0 ? EFAULT : errno);
	if ((uint64_t)moved == n + sizeof(word)) {
		if (word != peer->probe_word)
			return peer_replaced(peer);
	} else if (word_missing(peer) != 0) {
		/* stopped short of the word: exec() is for good, so that the
		 * word read later vouches for the data as well */
		return peer_replaced(peer);
	}
	/* the number may be that of a forked child, which has the word too */
	if (emu_pidfd_dead(peer->pidsrc.fd))
		return -FI_ECANCELED;
	return (uint64_t)moved < n ? moved : (int64_t)n;
}

static int64_t put(struct emu_peer *peer, const void *from, uint64_t to,
		   uint64_t n)
{
	ssize_t moved;

	/* offsets of files have a sign */
	if (to > INT64_MAX || n > INT64_MAX - to)
		return -FI_EFAULT;
	moved = pwrite(peer->mem_fd, from, n, (off_t)to);
	if (moved == 0)
		return peer_replaced(peer);
	if (moved < 0)
		return errno == ENOMEM ? -FI_EIO : -FI_EFAULT;
	return moved;
}

int64_t emu_attach_move(const struct hal_dma *d, uint64_t done, uint64_t n)
{
	struct emu_peer *peer = emu_peer(d->peer);
	uint8_t *local = (uint8_t *)d->local + done;

	if (!peer->p.dma_any)
		return -FI_EACCES;
	if (d->op == HAL_DMA_GET)
		return get(peer, local, d->raddr + done, n);
	return put(peer, local, d->raddr + done, n);
}
