/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_hosts.c - fuzz target: the hosts file, Slurm's list of hosts, and the
 * key file, any bytes. Each is refused with one line (the key: without), or its
 * names are valid, and its boards are numbered without gaps.
 */
#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_dir.h"
#include "hal/net/hal_net_key.h"

#include "fuzz.h"

static unsigned int lines;

static void count_line(int level, const char *line)
{
	(void)level;
	lines++;
	MUST(strncmp(line, "input", 5) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	hal_log_set(count_line);
	return 0;
}

static void check(struct net_dir *dir, int ret)
{
	uint32_t boards = 0;

	MUST(ret == 0 || ret == -FI_EINVAL);
	MUST(lines == (ret != 0));
	MUST((dir != NULL) == (ret == 0));
	lines = 0;
	if (dir == NULL)
		return;
	MUST(dir->nhosts > 0 && dir->boards <= NET_DIR_BOARDS);
	for (uint32_t i = 0; i < dir->nhosts; i++) {
		const struct net_dir_host *host = &dir->host[i];

		MUST(memchr(host->name, '\0', sizeof(host->name)) != NULL);
		MUST(host->name[0] != '\0' && host->name[0] != '-');
		MUST(strpbrk(host->name, " \t\r\n/[],#") == NULL);
		MUST(host->first == boards && host->boards > 0);
		boards += host->boards;
		MUST(net_dir_of_board(dir, host->first) == (int)i);
		MUST(net_dir_of_board(dir, boards - 1) == (int)i);
	}
	MUST(boards == dir->boards);
	MUST(net_dir_of_board(dir, boards) == -1);
	net_dir_free(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct net_dir *dir = NULL;
	struct net_key key;
	char *text = malloc(len + 1);
	int ret;

	MUST(text != NULL);
	if (len != 0)
		memcpy(text, bytes, len);
	text[len] = '\0';
	ret = net_dir_read(text, len, "input", (uint32_t)(1 + len % 5), &dir);
	check(dir, ret);
	dir = NULL;
	ret = net_dir_slurm(text, "input", (uint32_t)(1 + len % 5), &dir);
	check(dir, ret);
	if (net_key_parse(text, len, &key) == 0)
		MUST(key.len >= NET_KEY_MIN / 2 && key.len <= NET_KEY_MAX / 2);
	free(text);
	return 0;
}
