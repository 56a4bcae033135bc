/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_model.c - fuzz target: the file of figures of the timing model, any
 * bytes. It is refused with one line that names the file, or every figure is
 * within the limits that hal_model.c lists.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/hal_model.h"

#include "fuzz.h"

#define SECOND	UINT64_C(1000000000)

static int fd = -1;
static char path[64];
static unsigned int lines;

static void count_line(int level, const char *line)
{
	(void)level;
	lines++;
	MUST(strstr(line, path) != NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fd = memfd_create("model", MFD_CLOEXEC);
	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	hal_log_set(count_line);
	return 0;
}

static void check(const struct hal_model *m)
{
	MUST(strcmp(m->path, path) == 0);
	MUST(m->packet_latency <= SECOND / 10);
	MUST(m->packet_gap <= SECOND / 10000);
	MUST(m->store_latency <= SECOND / 10);
	MUST(m->fifo_depth >= 2 && m->fifo_depth <= 64);
	MUST((m->fifo_depth & (m->fifo_depth - 1)) == 0);
	MUST(m->store_latency <= m->load_round_trip);
	MUST(m->load_round_trip <= SECOND);
	MUST(m->store_time >= 1 && m->store_time <= SECOND / 1000);
	MUST(m->line_time >= 1 && m->line_time <= SECOND / 1000);
	MUST(m->store_queue >= 1 && m->store_queue <= 64);
	MUST(m->dma_setup <= SECOND && m->route_registration <= SECOND);
	MUST(m->dma_bandwidth >= 1000000);
	MUST(m->dma_bandwidth <= 1000 * SECOND);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hal_model model;
	int ret;

	MUST(ftruncate(fd, 0) == 0);
	MUST(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	lines = 0;
	ret = hal_model_load(path, &model);
	MUST(ret == 0 || ret == -FI_EINVAL);
	MUST(lines == (ret != 0));
	if (ret == 0)
		check(&model);
	return 0;
}
