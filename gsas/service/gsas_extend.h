/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_extend.h - the other operations from 64 up (gsas_extend.c).
 */
#ifndef GSAS_EXTEND_H
#define GSAS_EXTEND_H

#include "service/gsas_call.h"

enum gsas_error gsas_serve_join(struct gsas_call *call);
enum gsas_error gsas_serve_group(struct gsas_call *call);
enum gsas_error gsas_serve_name(struct gsas_call *call);
enum gsas_error gsas_serve_fence(struct gsas_call *call);
enum gsas_error gsas_serve_update(struct gsas_call *call);
enum gsas_error gsas_serve_atomic(struct gsas_call *call);
enum gsas_error gsas_serve_get(struct gsas_call *call);
enum gsas_error gsas_serve_put(struct gsas_call *call);
enum gsas_error gsas_serve_map(struct gsas_call *call);
enum gsas_error gsas_serve_stat(struct gsas_call *call);
enum gsas_error gsas_serve_numbers(struct gsas_call *call);
enum gsas_error gsas_serve_list(struct gsas_call *call);
enum gsas_error gsas_serve_reclaim(struct gsas_call *call);

/* Fill in the counters that are not kept up to date, and return all. */
struct gsas_stat *gsas_stat_read(struct gsas_service *service);

#endif /* GSAS_EXTEND_H */
