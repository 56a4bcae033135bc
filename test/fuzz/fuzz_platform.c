/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_platform.c - fuzz target: the platform file of the device backend, any
 * bytes. It is refused with one line that names the file, or every value it
 * gives is within the limits that docs/porting.md lists.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/hal_log.h"

#include "fuzz.h"

static int fd = -1;
static struct hal_params params;
static unsigned int lines;

static void count_line(int level, const char *line)
{
	(void)level;
	lines++;
	MUST(strstr(line, params.dev) != NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fd = memfd_create("platform", MFD_CLOEXEC);
	MUST(fd >= 0);
	snprintf(params.dev, sizeof(params.dev), "/proc/self/fd/%d", fd);
	hal_log_set(count_line);
	return 0;
}

static int power_of_2(uint32_t n, uint32_t min, uint32_t max)
{
	return n >= min && n <= max && (n & (n - 1)) == 0;
}

static void check_block(const struct hal_platform_block *b)
{
	MUST(memchr(b->node, '\0', sizeof(b->node)) != NULL);
	MUST(b->base <= UINT64_MAX - UINT32_MAX);
}

static void check(const struct hal_platform *pf)
{
	char node[2 * sizeof(pf->node)];

	MUST(memchr(pf->node, '\0', sizeof(pf->node)) != NULL);
	MUST(pf->node[0] != '\0');
	MUST(pf->boards <= HAL_REG_BOARDS_MAX);
	MUST(pf->board == UINT32_MAX || pf->board < HAL_REG_BOARDS_MAX);
	MUST(pf->pkt_depth == 0 || power_of_2(pf->pkt_depth, 2, 64));
	MUST(pf->space_bytes == 0 ||
	     power_of_2(pf->space_bytes, 4096, 1u << 24));
	MUST(pf->engine <= HAL_ENGINE_SG);
	check_block(&pf->mif);
	check_block(&pf->pif);
	check_block(&pf->cdma);
	MUST(dev_platform_node(pf, pf->board, node, sizeof(node)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hal_platform pf;
	int ret;

	MUST(ftruncate(fd, 0) == 0);
	MUST(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	lines = 0;
	ret = dev_platform_probe(&params, &pf);
	MUST(ret == 0 || ret == -FI_EINVAL);
	MUST(lines == (ret != 0));
	if (ret == 0)
		check(&pf);
	return 0;
}
