/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec_heir.c - the program that the child of hal_conform_exec.c executes
 *
 * Detects writes to the memory of the program that this process executed
 * before. The program is linked without PIE, so that area[] has the same
 * address in each process and the kernel maps it before the first instruction
 * runs: a peer that still writes to the former program's memory writes into
 * area[].
 *
 *	exec_heir where		print the address and the length of area[]
 *	exec_heir hold MS	print "ok" if no byte of area[] changes for MS
 *				milliseconds, else "error changed"; then stay
 *				until the input ends
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES	65536
#define MARK	0x5A		/* the former program uses another value */

static volatile uint8_t area[BYTES] __attribute__((aligned(4096))) =
	{ [0 ... BYTES - 1] = MARK };

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int changed(void)
{
	for (size_t i = 0; i < BYTES; i++)
		if (area[i] != MARK)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	long end;
	int bad;

	if (argc == 2 && strcmp(argv[1], "where") == 0) {
		printf("%llx %d\n", (unsigned long long)(uintptr_t)area,
		       BYTES);
		return 0;
	}
	if (argc != 3 || strcmp(argv[1], "hold") != 0)
		return 2;
	end = now_ms() + strtol(argv[2], NULL, 10);
	do
		bad = changed();
	while (!bad && now_ms() < end);
	puts(bad ? "error changed" : "ok");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
