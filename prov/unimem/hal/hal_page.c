/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_page.c - makes the public page of an interface, for the backends.
 *
 * Entry point: hal_page_open(). hal_page.h defines the page.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hal_log.h"
#include "hal/hal_map.h"
#include "hal/hal_page.h"
#include "hal/hal_types.h"

int hal_page_open(struct hal_if *hif, int *fd, struct hal_map **map)
{
	struct hal_page_head *head;
	int ret;

	ret = hal_seg_create(HAL_PAGE_NAME, HAL_PAGE_BYTES, HAL_PAGE_BYTES,
			     fd);
	if (ret != 0)
		return ret;
	ret = hal_map_get(*fd, HAL_PAGE_BYTES, map);
	if (ret != 0) {
		hal_log(0, "cannot map a page: %s", strerror(-ret));
		close(*fd);
		return ret;
	}
	head = (*map)->addr;
	/* A forked child may still count in the page by mistake. That does less
	 * harm than the signal that it would get without the page. */
	madvise(head, HAL_PAGE_BYTES, MADV_DOFORK);
	hif->page = head;
	head->version = HAL_ADDR_VERSION;
	head->board = hif->addr.board;
	head->iface = hif->addr.iface;
	head->pid = (uint32_t)getpid();
	head->nonce = hif->addr.nonce;
	strncpy(head->backend, hif->caps->backend, sizeof(head->backend) - 1);
	strncpy(head->profile, hif->caps->profile, sizeof(head->profile) - 1);
	/* A monitor that copies the page before this ignores its copy. */
	atomic_store_explicit(&head->magic, HAL_PAGE_MAGIC,
			      memory_order_release);
	return 0;
}
