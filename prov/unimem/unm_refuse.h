/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_refuse.h - checks of what an application asks for against what the
 * provider offers. Each check returns true if the request can be met, else it
 * logs one line at FI_LOG_LEVEL=info that names the attribute and both values,
 * by the names of libfabric's constants (fi_tostr(3)), and returns false.
 */
#ifndef UNM_REFUSE_H
#define UNM_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* Types of values to print, in addition to those of enum fi_type. */
#define UNM_TYPE_NUMBER	(-1)		/* decimal */
#define UNM_TYPE_RM	(-2)		/* enum fi_resource_mgmt */
#define UNM_TYPE_CLASS	(-3)		/* FI_CLASS_ of an object */
#define UNM_TYPE_WAIT	(-4)		/* enum fi_wait_obj */
#define UNM_TYPE_CNTR	(-5)		/* enum fi_cntr_events */
#define UNM_TYPE_TRIGGER (-6)		/* enum fi_trigger_event */

#define UNM_NAMES_MAX	512		/* bytes of text: all capabilities */

/* Every bit asked for must be offered. The line names the bits that are not. */
bool unm_check_bits(const char *attr, int type, uint64_t asked,
		    uint64_t offered);
/* The number asked for must be at most the number offered. */
bool unm_check_most(const char *attr, uint64_t asked, uint64_t offered);
/* The value asked for must be the one offered, or 0, which asks for nothing. */
bool unm_check_same(const char *attr, int type, uint64_t asked,
		    uint64_t offered);
/* Log the line without a comparison. Returns false. */
bool unm_refuse(const char *attr, int type, uint64_t asked, uint64_t offered);

/* The name of a value, or of each bit in it, in buf. A value or bit that
 * libfabric has no name for is a hexadecimal number. Returns buf. */
const char *unm_value_name(int type, uint64_t value, char *buf, size_t len);

#endif /* UNM_REFUSE_H */
