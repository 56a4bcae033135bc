/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_param.h - parameters from the environment, by table.
 *
 * A table has one row per FI_UNIMEM_* variable: its name, the field that holds
 * its value, and the values that are allowed. The HAL and the provider have a
 * table each and read them with the same functions, so that every wrong value
 * is reported alike: one log line with the variable, its value and the values
 * that are allowed. hal.h includes this file for struct hal_params.
 */
#ifndef HAL_PARAM_H
#define HAL_PARAM_H

#include <stddef.h>

#include "hal/hal_export.h"

#define HAL_PARAM_PREFIX	"FI_UNIMEM_"

enum hal_param_type {
	HAL_PARAM_INT = 1,	/* int */
	HAL_PARAM_LONG,		/* long */
	HAL_PARAM_SIZE,		/* size_t; a suffix K, M or G is 2^10, 2^20 or
				 * 2^30 */
	HAL_PARAM_BOOL,		/* bool: 1 yes true on, 0 no false off */
	HAL_PARAM_STRING,	/* char[max]; if words is set, one of them */
	HAL_PARAM_WORD,		/* int: index of the value in words */
};

/* A row of a table. */
struct hal_param {
	const char *name;	/* without the prefix */
	enum hal_param_type type;
	size_t offset;		/* of the field in the caller's structure */
	long min, max;		/* inclusive; a string: max is the size of the
				 * field, 0: read elsewhere */
	const char *def;	/* default, as a user would write it; NULL: the
				 * field is left as it is */
	const char *help;	/* one line for manuals and fi_info -e */
	const char *words;	/* "one|two|three" or NULL */
};

/* Fill *out from the n rows of tab: defaults, then the environment. 0, or
 * -FI_EINVAL after one log line for each wrong variable; the fields of the
 * other variables are set in this case too. */
HAL_EXPORT int hal_param_load(const struct hal_param *tab, int n, void *out);

/* Fill *out from the defaults, then from a text of the form
 * name=value,name=value, of at most 255 characters, which is the value of
 * variable var. 0, or -FI_EINVAL after a log line for the first wrong part, at
 * which parsing ends; the defaults are set in this case too. */
HAL_EXPORT int hal_param_parse(const char *var, const char *text,
			       const struct hal_param *tab, int n, void *out);

/* Log each variable FI_UNIMEM_* of the environment that is in none of the ntabs
 * tables, once per process, with the most similar name of the tables. counts[]
 * are the numbers of their rows. */
HAL_EXPORT void hal_param_check_unknown(const struct hal_param *const tabs[],
					const int counts[], int ntabs);

/* The value of the first variable in the list names[], which NULL ends, that
 * holds a number of at least 0; else -1. Launchers pass ranks in such
 * variables. */
HAL_EXPORT long hal_param_first_number(const char *const names[]);

/* ---- The parameters of the HAL ----------------------------------------- */

/* The HAL's own table, for documentation and hal_param_check_unknown(). */
HAL_EXPORT extern const struct hal_param hal_param_table[];
HAL_EXPORT extern const int hal_param_count;

/* Values of the variables in hal_param_table, from hal_params_load(). */
struct hal_params {
	char hal[16];			/* "auto", "emu", "sim", "dev" */
	char profile[16];		/* "host", "exanode" */
	int boards;			/* number; 0: the profile's default */
	int board;			/* own board; -1: from the local rank */
	char dev[128];			/* platform file or driver node; "":
					 * the usual ones */
	char model[128];		/* figures of the timing model: a file,
					 * or "exanode"; "": no model */
	char sim[256];			/* parameters of the register model */
	char fault[256];		/* fault decorator; "": none */
	int sleep_ms;			/* longest time in which a sleeping
					 * process does not check for packets
					 * on its own; 0: it does only
					 * without membarrier(2) */
	char net[64];			/* IP address or network interface for
					 * peers on other hosts; "": none */
	char net_hosts[256];		/* file with the hosts of the job; "":
					 * what the launcher says */
	char net_key[256];		/* key file; "": the usual one */
	int net_port;			/* first TCP port that numbers
					 * determine */
	int net_dead_ms;		/* longest time in which the end of
					 * another host is not noticed */
	int net_dial_ms;		/* how long connections that end before
					 * an answer are tried again */
	int net_peers;			/* most processes on other hosts that
					 * stay connected while they are idle;
					 * 0: by the limit of descriptors */
	long seq_start;			/* number of the first packet of a link,
					 * for tests of the wrap-around */
};

/* Read FI_UNIMEM_* into *params. 0, or -FI_EINVAL after a log line for each
 * wrong variable, with its value and the values that are allowed. */
HAL_EXPORT int hal_params_load(struct hal_params *params);

#endif /* HAL_PARAM_H */
