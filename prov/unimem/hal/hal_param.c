/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_param.c - reads the FI_UNIMEM_* variables by table.
 *
 * It has the table of the HAL. hal_param.h declares the functions, which the
 * provider uses for its own table too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/hal_param.h"

#define NAME_MAX_LEN	64	/* longest name for which a similar one is
				 * suggested, without the prefix */
#define WARNED_MAX	64	/* unknown variables logged per process */

extern char **environ;

#define ROW(field_name, row_type, field, ...)				\
	{ .name = field_name, .type = row_type,				\
	  .offset = offsetof(struct hal_params, field), __VA_ARGS__ }

const struct hal_param hal_param_table[] = {
	ROW("HAL", HAL_PARAM_STRING, hal,
	    .max = sizeof(((struct hal_params *)0)->hal), .def = "auto",
	    .words = "auto|emu|sim|dev",
	    .help = "backend: auto takes boards if there are any, else emu"),
	ROW("PROFILE", HAL_PARAM_STRING, profile,
	    .max = sizeof(((struct hal_params *)0)->profile), .def = "host",
	    .words = "host|exanode",
	    .help = "emulation: as fast as the host can, or the prototype's "
		    "sizes and counts"),
	ROW("BOARDS", HAL_PARAM_INT, boards, .min = 0, .max = 65535,
	    .def = "0", .help = "emulated boards; 0: 1 (host) or 4 (exanode)"),
	ROW("BOARD", HAL_PARAM_INT, board, .min = -1, .max = 65534,
	    .def = "-1", .help = "this process's board; -1: from its rank"),
	ROW("DEV", HAL_PARAM_STRING, dev,
	    .max = sizeof(((struct hal_params *)0)->dev), .def = "",
	    .help = "boards: platform file, or the driver's node; empty: the "
		    "usual ones"),
	ROW("FAULT", HAL_PARAM_STRING, fault,
	    .max = sizeof(((struct hal_params *)0)->fault), .def = "",
	    .help = "faults to inject, for tests; empty: none"),
	ROW("MODEL", HAL_PARAM_STRING, model,
	    .max = sizeof(((struct hal_params *)0)->model), .def = "",
	    .help = "profile exanode: timing model, a file of figures, or "
		    "exanode for the published ones; empty: no model"),
#ifdef HAL_FAULT_POINTS
	/* read by hal_fault_point.c when the first point is passed */
	{ .name = "POINT", .type = HAL_PARAM_STRING, .max = 0, .def = NULL,
	  .help = "name:n:kill|stop|exit, where a test ends a process" },
#endif
	ROW("SIM", HAL_PARAM_STRING, sim,
	    .max = sizeof(((struct hal_params *)0)->sim), .def = "",
	    .help = "register model: name=value,... of what it is like"),
	ROW("SLEEP_MS", HAL_PARAM_INT, sleep_ms, .min = 0, .max = 3600000,
	    .def = "1000", .help = "emulation: a sleeping process checks for "
		    "packets on its own after 1 ms, then after twice as long "
		    "each time, up to so many ms; 0: not, where the "
		    "kernel has membarrier(2)"),
	ROW("NET", HAL_PARAM_STRING, net,
	    .max = sizeof(((struct hal_params *)0)->net), .def = "",
	    .help = "IP address or network interface by which processes on "
		    "other hosts are reached; empty: this host only"),
	ROW("NET_HOSTS", HAL_PARAM_STRING, net_hosts,
	    .max = sizeof(((struct hal_params *)0)->net_hosts), .def = "",
	    .help = "file with the hosts of the job, whose boards are numbered "
		    "through; empty: those of SLURM_JOB_NODELIST, else none"),
	ROW("NET_KEY", HAL_PARAM_STRING, net_key,
	    .max = sizeof(((struct hal_params *)0)->net_key), .def = "",
	    .help = "file with the key of connections between hosts by board "
		    "and interface; empty: ~/.unimem/key, if it exists"),
	ROW("NET_PORT", HAL_PARAM_INT, net_port, .min = 1024, .max = 65535,
	    .def = "7450", .help = "first TCP port of interfaces that other "
		    "hosts reach by board and interface"),
	ROW("NET_DEAD_MS", HAL_PARAM_INT, net_dead_ms, .min = 3000,
	    .max = 120000, .def = "3000", .help = "a host that does not "
		    "answer for so many ms is dead"),
	ROW("NET_DIAL_MS", HAL_PARAM_INT, net_dial_ms, .min = 100,
	    .max = 3600000, .def = "10000", .help = "connections to another "
		    "host that end before an answer are tried again for so "
		    "many ms"),
	ROW("NET_PEERS", HAL_PARAM_INT, net_peers, .min = 0, .max = 1000000,
	    .def = "0", .help = "connections to idle processes on other hosts "
		    "are closed beyond so many; 0: by the limit of "
		    "descriptors"),
	ROW("SEQ_START", HAL_PARAM_LONG, seq_start, .min = 0, .max = LONG_MAX,
	    .def = "0", .help = "first packet number of a link, for tests"),
};
const int hal_param_count = sizeof(hal_param_table) /
			    sizeof(hal_param_table[0]);

/* ---- One value ------------------------------------------------------- */

static int parse_number(const char *text, bool suffix, long *out)
{
	char *end;
	long val;
	int shift = 0;

	errno = 0;
	val = strtol(text, &end, 0);
	if (end == text || errno != 0)
		return -FI_EINVAL;
	if (suffix && *end != '\0') {
		switch (*end++) {
		case 'k': case 'K':
			shift = 10;
			break;
		case 'm': case 'M':
			shift = 20;
			break;
		case 'g': case 'G':
			shift = 30;
			break;
		default:
			return -FI_EINVAL;
		}
	}
	if (*end != '\0')
		return -FI_EINVAL;
	if (shift != 0 && (val < 0 || val > LONG_MAX >> shift))
		return -FI_EINVAL;
	*out = shift != 0 ? val << shift : val;
	return 0;
}

static int parse_bool(const char *text, bool *out)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "false", "true", "off", "on",
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i & 1;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* Index of text in "one|two|three", without regard to case, or -1. */
static int find_word(const char *words, const char *text)
{
	size_t len = strlen(text);
	int at = 0;

	for (const char *w = words; ; at++) {
		size_t n = strcspn(w, "|");

		if (n == len && strncasecmp(w, text, n) == 0)
			return at;
		if (w[n] == '\0')
			return -1;
		w += n + 1;
	}
}

static int put_number(const struct hal_param *row, const char *text,
		      char *field)
{
	long val;
	int ret;

	ret = parse_number(text, row->type == HAL_PARAM_SIZE, &val);
	if (ret != 0 || val < row->min || val > row->max)
		return -FI_EINVAL;
	if (row->type == HAL_PARAM_INT)
		*(int *)field = (int)val;
	else if (row->type == HAL_PARAM_LONG)
		*(long *)field = val;
	else
		*(size_t *)field = (size_t)val;
	return 0;
}

static int put_string(const struct hal_param *row, const char *text,
		      char *field)
{
	size_t len = strlen(text);

	if (len >= (size_t)row->max ||
	    (row->words != NULL && find_word(row->words, text) < 0))
		return -FI_EINVAL;
	memcpy(field, text, len + 1);
	if (row->words != NULL)		/* the users compare in lower case */
		for (char *c = field; *c != '\0'; c++)
			*c |= *c >= 'A' && *c <= 'Z' ? 0x20 : 0;
	return 0;
}

static int put_value(const struct hal_param *row, const char *text,
		     char *field)
{
	int at;

	switch (row->type) {
	case HAL_PARAM_INT:
	case HAL_PARAM_LONG:
	case HAL_PARAM_SIZE:
		return put_number(row, text, field);
	case HAL_PARAM_BOOL:
		return parse_bool(text, (bool *)field);
	case HAL_PARAM_STRING:
		return put_string(row, text, field);
	case HAL_PARAM_WORD:
		at = find_word(row->words, text);
		if (at < 0)
			return -FI_EINVAL;
		*(int *)field = at;
		return 0;
	}
	return -FI_EINVAL;
}

/* Log that text is no value of this row. */
static void complain(const char *prefix, const struct hal_param *row,
		     const char *text)
{
	if (row->words != NULL)
		hal_log(0, "%s%s=%s: use one of %s", prefix, row->name, text,
			row->words);
	else if (row->type == HAL_PARAM_STRING)
		hal_log(0, "%s%s: longer than %ld characters", prefix,
			row->name, row->max - 1);
	else if (row->type == HAL_PARAM_BOOL)
		hal_log(0, "%s%s=%s: use 0 or 1", prefix, row->name, text);
	else
		hal_log(0, "%s%s=%s: use a number from %ld to %ld%s", prefix,
			row->name, text, row->min, row->max,
			row->type == HAL_PARAM_SIZE ?
			" (suffix K, M or G allowed)" : "");
}

/* ---- A table --------------------------------------------------------- */

/* A string may name a file or a device. In a set-id program secure_getenv()
 * ignores it, so that the caller does not choose what the program opens. */
static const char *row_env(const struct hal_param *row)
{
	char var[sizeof(HAL_PARAM_PREFIX) + NAME_MAX_LEN];

	snprintf(var, sizeof(var), HAL_PARAM_PREFIX "%s", row->name);
	return row->type == HAL_PARAM_STRING ? secure_getenv(var) : getenv(var);
}

int hal_param_load(const struct hal_param *tab, int n, void *out)
{
	int ret = 0;

	for (int i = 0; i < n; i++) {
		char *field = (char *)out + tab[i].offset;
		const char *text;

		if (tab[i].type == HAL_PARAM_STRING && tab[i].max == 0)
			continue;	/* listed here, read elsewhere */
		if (tab[i].def != NULL)
			put_value(&tab[i], tab[i].def, field);
		text = row_env(&tab[i]);
		if (text != NULL && *text != '\0' &&
		    put_value(&tab[i], text, field) != 0) {
			complain(HAL_PARAM_PREFIX, &tab[i], text);
			ret = -FI_EINVAL;
		}
	}
	return ret;
}

int hal_params_load(struct hal_params *params)
{
	struct hal_params loaded = { .board = -1 };
	int ret;

	ret = hal_param_load(hal_param_table, hal_param_count, &loaded);
	if (ret == 0)
		*params = loaded;
	return ret;
}

/* ---- A list in one variable -------------------------------------------- */

static int put_part(const char *var, char *part, const struct hal_param *tab,
		    int n, void *out)
{
	char *text = strchr(part, '='), prefix[NAME_MAX_LEN];

	if (text != NULL)
		*text++ = '\0';
	for (int i = 0; text != NULL && i < n; i++) {
		if (strcmp(part, tab[i].name) != 0)
			continue;
		if (put_value(&tab[i], text, (char *)out + tab[i].offset) == 0)
			return 0;
		snprintf(prefix, sizeof(prefix), "%s: ", var);
		complain(prefix, &tab[i], text);
		return -FI_EINVAL;
	}
	hal_log(0, "%s: %s%s: use name=value,... with names that fi_unimem(7) "
		"lists", var, part, text != NULL ? " is no name" : "");
	return -FI_EINVAL;
}

int hal_param_parse(const char *var, const char *spec,
		    const struct hal_param *tab, int n, void *out)
{
	char copy[256], *part, *save = NULL;
	int ret = 0;

	for (int i = 0; i < n; i++)
		if (tab[i].def != NULL)
			put_value(&tab[i], tab[i].def,
				  (char *)out + tab[i].offset);
	snprintf(copy, sizeof(copy), "%s", spec);
	for (part = strtok_r(copy, ",", &save); part != NULL && ret == 0;
	     part = strtok_r(NULL, ",", &save))
		ret = put_part(var, part, tab, n, out);
	return ret;
}

long hal_param_first_number(const char *const names[])
{
	for (; *names != NULL; names++) {
		const char *text = getenv(*names);
		long val;

		/* launchers write digits only; anything else is no rank */
		if (text != NULL && parse_number(text, false, &val) == 0 &&
		    val >= 0)
			return val;
	}
	return -1;
}

/* ---- Unknown names --------------------------------------------------- */

/* Edit distance of two names (Levenshtein), with one row of the table. */
static int distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	int row[NAME_MAX_LEN + 1];

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
		return INT_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= la; i++) {
		int diag = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= lb; j++) {
			int best = diag + (a[i - 1] != b[j - 1]);

			diag = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

/* Was this name not logged before? False also once WARNED_MAX names were. */
static bool first_time(const char *name, size_t len)
{
	static _Atomic uint32_t warned[WARNED_MAX];	/* hashes of names */
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	hash |= 1;			/* 0: free entry */
	for (int i = 0; i < WARNED_MAX; i++) {
		uint32_t seen = 0;

		/* relaxed: nothing is published but the word itself */
		if (atomic_compare_exchange_strong_explicit(&warned[i], &seen,
				hash, memory_order_relaxed,
				memory_order_relaxed))
			return true;
		if (seen == hash)
			return false;
	}
	return false;
}

static void check_one(const char *name, size_t len,
		      const struct hal_param *const tabs[], const int counts[],
		      int ntabs)
{
	char own[NAME_MAX_LEN + 1];
	const char *near = NULL;
	int best = INT_MAX;

	snprintf(own, sizeof(own), "%.*s", (int)len, name);
	for (int t = 0; t < ntabs; t++) {
		for (int i = 0; i < counts[t]; i++) {
			int d = distance(own, tabs[t][i].name);

			if (d == 0 && len <= NAME_MAX_LEN)
				return;
			if (d < best) {
				best = d;
				near = tabs[t][i].name;
			}
		}
	}
	if (!first_time(name, len))
		return;
	if (near != NULL)
		hal_log(0, HAL_PARAM_PREFIX "%s is no parameter and has no "
			"effect; did you mean " HAL_PARAM_PREFIX "%s?", own,
			near);
	else
		hal_log(0, HAL_PARAM_PREFIX "%s is no parameter and has no "
			"effect", own);
}

void hal_param_check_unknown(const struct hal_param *const tabs[],
			     const int counts[], int ntabs)
{
	static const size_t plen = sizeof(HAL_PARAM_PREFIX) - 1;

	if (environ == NULL)
		return;
	for (char **e = environ; *e != NULL; e++) {
		if (strncmp(*e, HAL_PARAM_PREFIX, plen) == 0)
			check_one(*e + plen, strcspn(*e + plen, "="), tabs,
				  counts, ntabs);
	}
}
