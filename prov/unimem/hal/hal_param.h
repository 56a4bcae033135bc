/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_param.h - parameters from the environment, by table.
 *
 * One row per FI_UNIMEM_* variable: how it is spelt, where it goes, what it may
 * be. The HAL has its table below; the provider has its own and reads it with
 * the same functions, so that every bad value is reported alike: one line that
 * names the variable, its value and what is allowed.
 */
#ifndef HAL_PARAM_H
#define HAL_PARAM_H

#include "hal/hal.h"

#define HAL_PARAM_PREFIX	"FI_UNIMEM_"

enum hal_param_type {
	HAL_PARAM_INT = 1,	/* int */
	HAL_PARAM_LONG,		/* long */
	HAL_PARAM_SIZE,		/* size_t, with suffix K, M or G (2^10 ...) */
	HAL_PARAM_BOOL,		/* bool: 1 yes true on, 0 no false off */
	HAL_PARAM_STRING,	/* char[max]; one of words, if given */
	HAL_PARAM_WORD,		/* int: position in words */
};

struct hal_param {
	const char *name;	/* without the prefix */
	enum hal_param_type type;
	size_t offset;		/* of the field in the caller's structure */
	long min, max;		/* inclusive; a string: max is its array size */
	const char *def;	/* as a user would write it; NULL: all zero */
	const char *help;	/* one line for manuals and fi_info -e */
	const char *words;	/* "one|two|three" or NULL */
};

/* The HAL's own table, for documentation and hal_param_check_unknown(). */
HAL_EXPORT extern const struct hal_param hal_param_table[];
HAL_EXPORT extern const int hal_param_count;

/* Fill *out from defaults and environment. 0, or -FI_EINVAL after one line for
 * each bad variable; the other fields are then set all the same. */
HAL_EXPORT int hal_param_load(const struct hal_param *tab, int n, void *out);

/* The same from one text of the form name=value,name=value (at most 255
 * characters); var is the variable the line names. Out is filled from defaults
 * even if the text is bad. */
HAL_EXPORT int hal_param_parse(const char *var, const char *text,
			       const struct hal_param *tab, int n, void *out);

/* Warn, once per process and variable, of each FI_UNIMEM_* that is a row of
 * none of the ntabs tables; the line names the most similar right name. */
HAL_EXPORT void hal_param_check_unknown(const struct hal_param *const tabs[],
					const int counts[], int ntabs);

/* First of the variables of that list (NULL at its end) that holds a number of
 * at least 0, or -1. Launchers tell ranks in such variables. */
HAL_EXPORT long hal_param_first_number(const char *const names[]);

#endif /* HAL_PARAM_H */
