/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_refuse.c - compares one attribute that an application asks for with what
 * the provider offers, and logs the line that says why it cannot be met. The
 * callers decide which attributes are compared (unm_info.c for hints).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unm_log.h"
#include "unm_refuse.h"

#define UNM_NAMES_MAX	512		/* bytes: all capabilities */

/* True: values of this type are sets of bits; false: an enumeration. */
static bool unm_type_is_bits(int type)
{
	switch (type) {
	case FI_TYPE_CAPS:
	case FI_TYPE_OP_FLAGS:
	case FI_TYPE_MSG_ORDER:
	case FI_TYPE_MR_MODE:
	case FI_TYPE_MODE:
		return true;
	default:
		return false;
	}
}

/* libfabric's name of one value or one bit; "" if there is none. */
static void unm_name_of(int type, uint64_t value, char *name, size_t len)
{
	static const char *const rm[] = {
		"FI_RM_UNSPEC", "FI_RM_DISABLED", "FI_RM_ENABLED",
	};
	uint32_t narrow = (uint32_t)value;
	/* fi_tostr(3) reads 64 bits of these types; mr_mode is an int */
	bool wide = unm_type_is_bits(type) && type != FI_TYPE_MR_MODE;

	name[0] = '\0';
	if (type == UNM_TYPE_RM && value < 3)
		snprintf(name, len, "%s", rm[value]);
	if (type >= 0)
		fi_tostr_r(name, len, wide ? (const void *)&value : &narrow,
			   (enum fi_type)type);
	if (strcmp(name, "Unknown") == 0)
		name[0] = '\0';
}

/* Append one value or one bit to what buf holds. */
static void unm_value_add(int type, uint64_t value, char *buf, size_t len)
{
	const char *comma = buf[0] != '\0' ? ", " : "";
	size_t used = strlen(buf);
	char name[256];

	unm_name_of(type, value, name, sizeof(name));
	if (name[0] != '\0')
		snprintf(buf + used, len - used, "%s%s", comma, name);
	else if (type == UNM_TYPE_NUMBER)
		snprintf(buf + used, len - used, "%s%" PRIu64, comma, value);
	else
		snprintf(buf + used, len - used, "%s0x%" PRIx64, comma,
			 value);
}

const char *unm_value_name(int type, uint64_t value, char *buf, size_t len)
{
	buf[0] = '\0';
	if (!unm_type_is_bits(type)) {
		unm_value_add(type, value, buf, len);
		return buf;
	}
	for (int i = 0; i < 64; i++)
		if (value & UINT64_C(1) << i)
			unm_value_add(type, UINT64_C(1) << i, buf, len);
	if (value == 0)
		snprintf(buf, len, "none");
	return buf;
}

bool unm_refuse(const char *attr, int type, uint64_t asked, uint64_t offered)
{
	char a[UNM_NAMES_MAX], o[UNM_NAMES_MAX];

	if (fi_log_enabled(&g_unm_prov, FI_LOG_INFO, FI_LOG_FABRIC))
		UNM_INFO(FABRIC, "no match: %s asked %s, offered %s\n", attr,
			 unm_value_name(type, asked, a, sizeof(a)),
			 unm_value_name(type, offered, o, sizeof(o)));
	return false;
}

bool unm_check_bits(const char *attr, int type, uint64_t asked,
		    uint64_t offered)
{
	return (asked & ~offered) == 0 ||
		unm_refuse(attr, type, asked & ~offered, offered);
}

bool unm_check_most(const char *attr, uint64_t asked, uint64_t offered)
{
	return asked <= offered ||
		unm_refuse(attr, UNM_TYPE_NUMBER, asked, offered);
}

bool unm_check_same(const char *attr, int type, uint64_t asked,
		    uint64_t offered)
{
	return asked == 0 || asked == offered ||
		unm_refuse(attr, type, asked, offered);
}
