/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_log.h - log lines of libgsas. Private to libgsas; docs/logging.md has
 * the rules.
 */
#ifndef GSAS_LOG_H
#define GSAS_LOG_H

/* Log one line to stderr, with "gsas: " in front; nothing if GSAS_LOG is 0. */
void gsas_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* GSAS_LOG_H */
