// SPDX-License-Identifier: BSD-2-Clause
/*
 * gauge.c - read where a virtual machine's host has put two cores.
 *
 * Prints the time that a cache line takes from one core to the other and back,
 * read in 35 ms. The host may move virtual cores at any time, and each figure
 * of two processes depends on their places. lib_gate.py therefore runs this
 * program before and after each measurement, and compares readings only with
 * each other; lib_exanode.py compares them with a rough limit. The figure that
 * is published is that of raw_limits.c. unm_handover.c measures.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "unm_handover.h"
#include "unm_proc.h"
#include "unm_stat.h"

static void echo_main(void *arg)
{
	unm_handover_echo(arg);
}

int main(int argc, char **argv)
{
	struct unm_pair pair = { .core = { 0, 1 }, .pass_s = 0.005 };
	struct unm_handover *h;
	pid_t pid;

	unm_pair_options(&pair, argc, argv);
	h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (h == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("gauge");
		return 1;
	}
	pid = unm_child(echo_main, h, pair.core[1]);
	unm_row("handover", UNM_LINE,
		unm_handover_quick_ns(h, pair.pass_s * UNM_PASSES), "ns");
	unm_child_end(pid);
	return 0;
}
