/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_page.h - the public page of an interface: part of hal.h, which includes
 * this file.
 *
 * hal_page_open() makes the page as a memfd of the name HAL_PAGE_NAME and maps
 * it as hal_if.page. Monitors of the same user find the memfd in /proc/PID/fd
 * and read it (tools/unimem_info.c). The caller of the HAL fills the part after
 * the head.
 */
#ifndef HAL_PAGE_H
#define HAL_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define HAL_PAGE_BYTES	4096		/* size of hal_if.page */
#define HAL_PAGE_MAGIC	UINT32_C(0x50694e55)	/* "UNiP" */
#define HAL_PAGE_NAME	"unimem-page"

/* Start of a public page. hal_if_open() writes it once, magic last and with
 * release semantics. A reader (unimem_info) copies the page by pread() and
 * ignores a copy without the magic. */
struct hal_page_head {
	_Atomic uint32_t magic;		/* HAL_PAGE_MAGIC */
	uint16_t version;		/* HAL_ADDR_VERSION */
	uint16_t board;			/* board and iface: of the address */
	uint32_t iface;
	uint32_t pid;			/* in the holder's pid namespace */
	uint64_t nonce;			/* of the interface's address */
	char backend[8];		/* hal_caps.backend, cut to 7 letters */
	char profile[16];		/* hal_caps.profile */
	uint8_t reserved[16];		/* 0 */
};
_Static_assert(sizeof(struct hal_page_head) == 64, "page head is a line");

struct hal_if;
struct hal_map;

/* Make the page of an interface whose address and caps are set, and set
 * hif->page. The backend closes *fd and puts *map when it closes the interface.
 * 0; a negative errno after a log line. Private to the HAL. */
int hal_page_open(struct hal_if *hif, int *fd, struct hal_map **map);

#endif /* HAL_PAGE_H */
