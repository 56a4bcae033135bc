/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_refuse.c - compares one attribute that an application asks for with what
 * the provider offers, and logs the line that says why it cannot be met. The
 * callers decide which attributes are compared (unm_info.c for hints).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>

#include "unm_log.h"
#include "unm_refuse.h"

/* Names of enumerations that fi_tostr(3) does not know, or does not know in
 * every version. */
#define UNM_NAMED(x)	[x] = #x

static const char *const unm_rm_names[] = {
	UNM_NAMED(FI_RM_UNSPEC), UNM_NAMED(FI_RM_DISABLED),
	UNM_NAMED(FI_RM_ENABLED),
};

static const char *const unm_class_names[] = {
	UNM_NAMED(FI_CLASS_UNSPEC), UNM_NAMED(FI_CLASS_FABRIC),
	UNM_NAMED(FI_CLASS_DOMAIN), UNM_NAMED(FI_CLASS_EP),
	UNM_NAMED(FI_CLASS_SEP), UNM_NAMED(FI_CLASS_RX_CTX),
	UNM_NAMED(FI_CLASS_SRX_CTX), UNM_NAMED(FI_CLASS_TX_CTX),
	UNM_NAMED(FI_CLASS_STX_CTX), UNM_NAMED(FI_CLASS_PEP),
	UNM_NAMED(FI_CLASS_INTERFACE), UNM_NAMED(FI_CLASS_AV),
	UNM_NAMED(FI_CLASS_MR), UNM_NAMED(FI_CLASS_EQ),
	UNM_NAMED(FI_CLASS_CQ), UNM_NAMED(FI_CLASS_CNTR),
	UNM_NAMED(FI_CLASS_WAIT), UNM_NAMED(FI_CLASS_POLL),
	UNM_NAMED(FI_CLASS_CONNREQ), UNM_NAMED(FI_CLASS_MC),
	UNM_NAMED(FI_CLASS_NIC), UNM_NAMED(FI_CLASS_AV_SET),
};

static const char *const unm_wait_names[] = {
	UNM_NAMED(FI_WAIT_NONE), UNM_NAMED(FI_WAIT_UNSPEC),
	UNM_NAMED(FI_WAIT_SET), UNM_NAMED(FI_WAIT_FD),
	UNM_NAMED(FI_WAIT_MUTEX_COND), UNM_NAMED(FI_WAIT_YIELD),
	UNM_NAMED(FI_WAIT_POLLFD),
};

static const char *const unm_cntr_names[] = {
	UNM_NAMED(FI_CNTR_EVENTS_COMP),
	[1] = "FI_CNTR_EVENTS_BYTES",	/* of later libfabrics */
};

static const char *const unm_trigger_names[] = {
	UNM_NAMED(FI_TRIGGER_THRESHOLD), UNM_NAMED(FI_TRIGGER_XPU),
};

/* Write the name of an entry of a table; "" if the table has none. */
static void unm_name_in(const char *const *table, size_t n, uint64_t value,
			char *name, size_t len)
{
	if (value < n && table[value] != NULL)
		snprintf(name, len, "%s", table[value]);
}

#define UNM_NAME_IN(table, value, name, len) \
	unm_name_in(table, sizeof(table) / sizeof((table)[0]), value, name, len)

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
	uint32_t narrow = (uint32_t)value;
	/* fi_tostr(3) reads 64 bits of these types; mr_mode is an int */
	bool wide = unm_type_is_bits(type) && type != FI_TYPE_MR_MODE;

	name[0] = '\0';
	if (type == UNM_TYPE_RM)
		UNM_NAME_IN(unm_rm_names, value, name, len);
	else if (type == UNM_TYPE_CLASS)
		UNM_NAME_IN(unm_class_names, value, name, len);
	else if (type == UNM_TYPE_WAIT)
		UNM_NAME_IN(unm_wait_names, value, name, len);
	else if (type == UNM_TYPE_CNTR)
		UNM_NAME_IN(unm_cntr_names, value, name, len);
	else if (type == UNM_TYPE_TRIGGER)
		UNM_NAME_IN(unm_trigger_names, value, name, len);
	else if (type >= 0)
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
