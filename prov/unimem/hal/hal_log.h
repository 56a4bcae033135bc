/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_log.h - log lines of the HAL. Part of hal.h, which includes this file.
 */
#ifndef HAL_LOG_H
#define HAL_LOG_H

#include <stdbool.h>

#include "hal/hal_export.h"

/* Gets one log line. level: 0 error, 1 info, 2 debug. Any thread. */
typedef void (*hal_log_fn)(int level, const char *line);

/* Set the function that gets each log line of the HAL, for all threads. NULL:
 * errors go to stderr, other lines nowhere. */
HAL_EXPORT void hal_log_set(hal_log_fn fn);

/* While on, errors that the calling thread logs have level 1 instead of 0: the
 * caller repeats an attempt whose first failure was logged. This holds for one
 * thread at a time; the errors of another thread that asks for it meanwhile may
 * keep level 0. */
HAL_EXPORT void hal_log_lower(bool on);

/* Log one line of at most 511 characters; keeps errno. Any thread. */
HAL_EXPORT void hal_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* For the end of a log line about err, a negative errno: how to get more
 * descriptors if it is -EMFILE, else the text otherwise. Private to the HAL. */
const char *hal_log_advice(int err, const char *otherwise);

#endif /* HAL_LOG_H */
