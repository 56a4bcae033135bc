/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_param.c - fuzz target: values of FI_UNIMEM_* variables and the lists
 * name=value,... inside some of them. The first byte selects a row of the
 * table or the list form, the rest is the text. A value is refused, or stored
 * within the row's range; a refusal leaves the default.
 */
#include <limits.h>
#include <stdbool.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/hal_param.h"

#include "fuzz.h"

struct values {
	int i;
	long l;
	size_t s;
	bool b;
	char any[16], word[16];
	int at;
	uint8_t end;			/* what a string must not reach */
};

#define ROW(n, t, f, lo, hi, d, w)					\
	{ .name = n, .type = t, .offset = offsetof(struct values, f),	\
	  .min = lo, .max = hi, .def = d, .words = w, .help = "" }

/* One row of every type. */
static const struct hal_param rows[] = {
	ROW("I", HAL_PARAM_INT, i, -7, 1 << 20, "5", NULL),
	ROW("L", HAL_PARAM_LONG, l, 0, LONG_MAX, "6", NULL),
	ROW("S", HAL_PARAM_SIZE, s, 1, LONG_MAX, "4K", NULL),
	ROW("B", HAL_PARAM_BOOL, b, 0, 1, "1", NULL),
	ROW("ANY", HAL_PARAM_STRING, any, 0, 16, "none", NULL),
	ROW("WORD", HAL_PARAM_STRING, word, 0, 16, "one", "one|two|three"),
	ROW("AT", HAL_PARAM_WORD, at, 0, 0, "b", "a|b|c"),
};

#define ROWS	(int)(sizeof(rows) / sizeof(rows[0]))

static void no_log(int level, const char *line)
{
	(void)level;
	MUST(strlen(line) > 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	hal_log_set(no_log);
	return 0;
}

static void check(const struct values *v)
{
	MUST(v->i >= -7 && v->i <= 1 << 20);
	MUST(v->l >= 0);
	MUST(v->s >= 1 && v->s <= LONG_MAX);
	MUST(memchr(v->any, '\0', sizeof(v->any)) != NULL);
	MUST(strcmp(v->word, "one") == 0 || strcmp(v->word, "two") == 0 ||
	     strcmp(v->word, "three") == 0);
	MUST(v->at >= 0 && v->at <= 2);
	MUST(v->end == 0xa5);
}

static void check_defaults(const struct values *v)
{
	MUST(v->i == 5 && v->l == 6 && v->s == 4096 && v->b);
	MUST(strcmp(v->any, "none") == 0 && strcmp(v->word, "one") == 0);
	MUST(v->at == 1);
}

static void one_variable(const struct hal_param *row, const char *text)
{
	struct values v = { .end = 0xa5 };
	char name[32];
	int ret;

	snprintf(name, sizeof(name), HAL_PARAM_PREFIX "%s", row->name);
	setenv(name, text, 1);
	ret = hal_param_load(rows, ROWS, &v);
	unsetenv(name);
	MUST(ret == 0 || ret == -FI_EINVAL);
	check(&v);
	if (ret != 0)
		check_defaults(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = { "FI_UNIMEM_FUZZED", NULL };
	struct values v = { .end = 0xa5 };
	char text[300] = "";
	int ret;

	if (len == 0)
		return 0;
	memcpy(text, bytes + 1, len - 1 < sizeof(text) - 1 ? len - 1 :
	       sizeof(text) - 1);
	if (bytes[0] < ROWS) {
		one_variable(&rows[bytes[0]], text);
	} else if (bytes[0] == ROWS) {
		setenv(names[0], text, 1);
		MUST(hal_param_first_number(names) >= -1);
		unsetenv(names[0]);
	} else {
		ret = hal_param_parse("FI_UNIMEM_LIST", text, rows, ROWS, &v);
		MUST(ret == 0 || ret == -FI_EINVAL);
		check(&v);
	}
	return 0;
}
