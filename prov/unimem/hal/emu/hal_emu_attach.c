/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_attach.c - reading and writing ordinary memory of a peer's process.
 *
 * Entry points: emu_attach_open(), emu_attach_close(), emu_attach_probe(),
 * emu_attach_move(). hal_emu_dma.c schedules the transfers. docs/hal.md,
 * section 7, has the law: a transfer accesses the address space that the peer
 * had when it connected, and no other. A process number does not ensure that:
 * exec() keeps the number and the pidfd, and replaces the memory.
 *
 * Each HAL has a random word in a page of its own at a random address, and
 * sends both in its HELLO and WELCOME. The page lies where the kernel puts no
 * program, library, heap or stack: another program has memory there only if it
 * maps that one of 2^26 to 2^33 pages itself. Forked children do not inherit
 * the page.
 * - GET is one process_vm_readv() of the data and then of the word. The kernel
 *   finds the address space once per call, so if the word is right, the data
 *   are of the same address space.
 * - PUT is one process_vm_writev() of the same word, to its own address, and
 *   then of the data. The kernel writes the pieces in order and stops at the
 *   first that it cannot write: without that page no data are written.
 * So nothing can change between a check and the copy, and no descriptor is
 * needed. /proc/PID/mem, which belongs to an address space, is not used: the
 * kernel writes through it also to memory mapped read-only or PROT_NONE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hal/emu/hal_emu_attach.h"
#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_event.h"

#define TRIES		16	/* random addresses per range */

/* ---- The word of this process ---------------------------------------- */

/* Ranges above the lowest addresses and below two thirds of the address space,
 * where the kernel puts programs. First for 47 bits and more, then for 39
 * bits. */
static const struct range {
	uint64_t from, bytes;		/* bytes: a power of 2 */
} ranges[] = {
	{ UINT64_C(0x180000000000), UINT64_C(1) << 45 },
	{ UINT64_C(0x0800000000), UINT64_C(1) << 38 },
};

static void *map_at(uintptr_t at, size_t page)
{
	void *want = (void *)at, *got;

	/* a hint and a check of the result, because some tools do not know
	 * MAP_FIXED_NOREPLACE */
	got = mmap(want, page, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		   MAP_ANONYMOUS, -1, 0);
	if (got == MAP_FAILED)
		return NULL;
	if (got == want && madvise(got, page, MADV_DONTFORK) == 0)
		return got;
	munmap(got, page);
	return NULL;
}

void emu_attach_open(struct hal_emu *emu)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t rnd[2];

	for (int i = 0; i < 2 * TRIES && emu->word == NULL; i++) {
		const struct range *r = &ranges[i / TRIES];

		if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd))
			continue;
		emu->word_value = rnd[0];
		emu->word = map_at((uintptr_t)(r->from + (rnd[1] &
				   (r->bytes - 1) & ~(uint64_t)(page - 1))),
				   page);
	}
	if (emu->word != NULL)
		*emu->word = emu->word_value;
	else
		hal_log(1, "no page at a random address: other processes do "
			"not reach ordinary memory of this one");
}

void emu_attach_close(struct hal_emu *emu)
{
	/* a forked child does not have the page, and may have mapped another
	 * one there */
	if (emu->word != NULL && emu->pid == getpid())
		munmap(emu->word, (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- The word of the peer -------------------------------------------- */

/* Read the word of the peer. 0: process peer->pid has it; EFAULT: it does not;
 * another errno: this process may not read the memory of that process. */
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

/* The process runs another program or has ended. The peer is dead, also if its
 * sockets are still open. */
static int peer_replaced(struct emu_peer *peer)
{
	emu_mark_dying(peer, -FI_ECONNRESET);
	return -FI_ECANCELED;
}

/* ---- Transfers ------------------------------------------------------- */

/* The status of a transfer that failed with errno err. Clears dma_any if the
 * kernel forbids the access, and marks a peer whose process was replaced. */
static int failed(struct emu_peer *peer, int err)
{
	if (err == ESRCH || emu_pidfd_dead(peer->pidsrc.fd))
		return -FI_ECANCELED;
	if (err == EFAULT)
		err = word_missing(peer);
	/* that address, or the kernel has no memory now; not the peer */
	if (err == 0 || err == ENOMEM)
		return -FI_EFAULT;
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
	int err;

	moved = process_vm_readv(peer->pid, local, 2, remote, 2, 0);
	if (moved <= 0)
		return failed(peer, moved == 0 ? EFAULT : errno);
	if ((uint64_t)moved == n + sizeof(word)) {
		if (word != peer->probe_word)
			return peer_replaced(peer);
	} else {
		/* The kernel stopped before the word. exec() replaces the
		 * memory for good, so if the word is read now, the data that
		 * were read before are of the same address space. */
		err = word_missing(peer);
		if (err != 0)
			return failed(peer, err);
	}
	return (uint64_t)moved < n ? moved : (int64_t)n;
}

static int64_t put(struct emu_peer *peer, const void *from, uint64_t to,
		   uint64_t n)
{
	uint64_t word = peer->probe_word;
	struct iovec local[] = {
		{ &word, sizeof(word) }, { (void *)(uintptr_t)from, n },
	};
	struct iovec remote[] = {
		{ (void *)(uintptr_t)peer->probe_addr, sizeof(word) },
		{ (void *)(uintptr_t)to, n },
	};
	ssize_t moved;

	moved = process_vm_writev(peer->pid, local, 2, remote, 2, 0);
	if (moved <= 0)
		return failed(peer, moved == 0 ? EFAULT : errno);
	moved -= (ssize_t)sizeof(word);
	return moved > 0 ? moved : -FI_EFAULT;
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
