/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - what every fuzz target of this folder defines and may use.
 *
 * A target is one file, fuzz_<name>.c, with the two functions of libFuzzer's
 * interface. `configure --enable-fuzz` links it with libFuzzer; every other
 * build links it with fuzz_main.c, which replays the corpus and some random
 * changes of it, so that `make check` needs no clang.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called once, before the first input. Returns 0. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Run the code under test with `len` bytes; abort() if a rule is broken.
 * Returns 0: every input is kept for the corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A rule of the target: print it and abort, so that libFuzzer saves the
 * input. Unlike assert() it stays in release builds. */
#define MUST(cond)	do {						\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: broken: %s\n",		\
				__FILE__, __LINE__, #cond);		\
			abort();					\
		}							\
	} while (0)

/* ---- The input as a stream: zeros once it has been used up ------------- */

struct fuzz_input {
	const uint8_t *bytes;
	size_t len;			/* bytes that are left */
};

/* The next `n` bytes (0 to 8), the first one most significant. */
static inline uint64_t fuzz_take(struct fuzz_input *in, size_t n)
{
	uint64_t value = 0;

	for (; n > 0 && in->len > 0; n--, in->len--)
		value = value << 8 | *in->bytes++;
	return value;
}

/* Copy `n` bytes to `to`, padded with zeros. */
static inline void fuzz_copy(struct fuzz_input *in, void *to, size_t n)
{
	size_t have = n < in->len ? n : in->len;

	memcpy(to, in->bytes, have);
	memset((uint8_t *)to + have, 0, n - have);
	in->bytes += have;
	in->len -= have;
}

#endif /* FUZZ_H */
