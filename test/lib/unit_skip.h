/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_skip.h - skips the cases that the environment variable UNIT_SKIP names,
 * as patterns of the shell for PROGRAM/CASE with spaces between them:
 * "test_rma/test_every_* test_guard/test_one_*". So the source of a test need
 * not know where it runs. check-aarch64 sets the variable from test/skips.txt,
 * for cases that qemu-user cannot run.
 */
#ifndef UNIT_SKIP_H
#define UNIT_SKIP_H

#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIT_CASES_MAX	128	/* the copy is on the stack: some programs count
				 * each allocation */

/* Returns whether UNIT_SKIP names this case of this program. */
static inline bool unit_skips(const char *name)
{
	const char *list = getenv("UNIT_SKIP");
	char full[256], pattern[256];
	int len;

	snprintf(full, sizeof(full), "%s/%s", program_invocation_short_name,
		 name);
	while (list != NULL && sscanf(list, "%255s%n", pattern, &len) == 1) {
		if (fnmatch(pattern, full, 0) == 0)
			return true;
		list += len;
	}
	return false;
}

static inline void unit_skipped(void **state)
{
	(void)state;
	skip();
}

/* Run the n tests of a group as cmocka does, but skip those that UNIT_SKIP
 * names. setup and teardown are those of the group, or NULL. Returns the number
 * of tests that failed. */
static inline int unit_run_group(const char *name,
				 const struct CMUnitTest *tests, size_t n,
				 CMFixtureFunction setup,
				 CMFixtureFunction teardown)
{
	struct CMUnitTest run[UNIT_CASES_MAX];

	if (n > UNIT_CASES_MAX) {
		fprintf(stderr, "%s: %zu tests, more than UNIT_CASES_MAX\n",
			name, n);
		return (int)n;
	}
	for (size_t i = 0; i < n; i++) {
		run[i] = tests[i];
		if (unit_skips(run[i].name)) {
			run[i].test_func = unit_skipped;
			run[i].setup_func = NULL;
			run[i].teardown_func = NULL;
		}
	}
	return _cmocka_run_group_tests(name, run, n, setup, teardown);
}

#endif /* UNIT_SKIP_H */
