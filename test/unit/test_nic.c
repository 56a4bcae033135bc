/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nic.c - struct fid_nic of an offer: its fields, that duplicates are
 * equal and independent, and which call frees them.
 */
#include "lib/ep_pair.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_nic.h"
#include "unm_offer.h"

static struct fi_info *offer(void)
{
	struct fi_info *info;

	assert_int_equal(ep_getinfo(NULL, &info), 0);
	assert_non_null(info->nic);
	return info;
}

static struct fid_nic *dup_of(struct fid_nic *nic)
{
	struct fid_nic *dup = NULL;

	assert_int_equal(fi_control(&nic->fid, FI_DUP, &dup), 0);
	assert_non_null(dup);
	return dup;
}

static void same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a == NULL)
		return;
	assert_string_equal(a, b);
	assert_ptr_not_equal(a, b);
}

/* ---- Fields ---------------------------------------------------------- */

/* Name and address as far as the parameters determine them. */
static void test_nic_of_parameters(void **state)
{
	static const struct {
		const char *hal, *profile;
		int boards, board;
		const char *name, *address;
	} t[] = {
		/* "auto" may find boards: the backend is not known yet */
		{ "auto", "host", 0, -1, "unimem", NULL },
		{ "auto", "exanode", 0, 2, "unimem", "unimem://2" },
		{ "emu", "host", 0, -1, "unimem-emu", "unimem://0" },
		{ "emu", "host", 2, -1, "unimem-emu", NULL },
		{ "emu", "exanode", 0, -1, "unimem-emu", NULL },
		{ "sim", "host", 1, -1, "unimem-sim", "unimem://0" },
		{ "dev", "host", 0, 65534, "unimem-dev", "unimem://65534" },
	};
	struct hal_params was;

	fi_freeinfo(offer());		/* reads the parameters */
	was = g_unm_env.hal;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fid_nic *nic;

		snprintf(g_unm_env.hal.hal, 16, "%s", t[i].hal);
		snprintf(g_unm_env.hal.profile, 16, "%s", t[i].profile);
		g_unm_env.hal.boards = t[i].boards;
		g_unm_env.hal.board = t[i].board;
		nic = unm_nic_new();
		assert_non_null(nic);
		assert_int_equal(nic->fid.fclass, FI_CLASS_NIC);
		assert_string_equal(nic->device_attr->name, t[i].name);
		assert_string_equal(nic->device_attr->driver, t[i].hal);
		assert_string_equal(nic->device_attr->device_id, t[i].profile);
		assert_non_null(nic->device_attr->device_version);
		assert_int_equal(nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
		assert_int_equal(nic->link_attr->state, FI_LINK_UP);
		assert_string_equal(nic->link_attr->network_type, UNM_NAME);
		same_text(nic->link_attr->address, t[i].address);
		assert_int_equal(fi_close(&nic->fid), 0);
	}
	g_unm_env.hal = was;
}

/* Figures of a timing model are not passed off as those of the host. */
static void test_nic_names_the_model(void **state)
{
	struct hal_params was;
	struct fid_nic *nic;

	fi_freeinfo(offer());		/* reads the parameters */
	was = g_unm_env.hal;
	snprintf(g_unm_env.hal.profile, 16, "exanode");
	snprintf(g_unm_env.hal.model, 16, "exanode");
	nic = unm_nic_new();
	assert_non_null(nic);
	assert_string_equal(nic->device_attr->device_id, "exanode+model");
	assert_int_equal(fi_close(&nic->fid), 0);
	g_unm_env.hal = was;
}

static void test_nic_in_print(void **state)
{
	static const char *const lines[] = {
		"    nic:\n        fi_device_attr:\n", "name: unimem",
		"device_id: ", "driver: ", "bus_type: FI_BUS_UNKNOWN\n",
		"state: FI_LINK_UP\n", "network_type: unimem\n",
	};
	struct fi_info *info = offer();
	const char *text = fi_tostr(info, FI_TYPE_INFO);

	assert_non_null(strstr(text, "fi_fabric_attr"));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (strstr(text, lines[i]) == NULL)
			unit_fail("\"%s\" is not in: %s", lines[i], text);
	/* appends to the text, never writes beyond the buffer, terminates */
	for (size_t len = 4; len < 600; len++) {
		char buf[640];

		memset(buf, 'x', sizeof(buf));
		memcpy(buf, "abc", 4);
		assert_int_equal(info->nic->fid.ops->tostr(&info->nic->fid, buf,
							   len), 0);
		assert_memory_equal(buf, "abc", 3);
		assert_true(strnlen(buf, len) < len);
		assert_int_equal(buf[len], 'x');
	}
	fi_freeinfo(info);
}

/* ---- Duplicates ------------------------------------------------------ */

static void test_duplicates_are_equal_and_apart(void **state)
{
	struct fi_info *info = offer(), *dup = fi_dupinfo(info), *third;
	const struct fid_nic *a = info->nic, *b = dup->nic;

	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	assert_int_equal(b->fid.fclass, FI_CLASS_NIC);
	same_text(a->device_attr->name, b->device_attr->name);
	same_text(a->device_attr->device_id, b->device_attr->device_id);
	same_text(a->device_attr->device_version,
		  b->device_attr->device_version);
	same_text(a->device_attr->vendor_id, b->device_attr->vendor_id);
	same_text(a->device_attr->driver, b->device_attr->driver);
	same_text(a->device_attr->firmware, b->device_attr->firmware);
	same_text(a->link_attr->address, b->link_attr->address);
	same_text(a->link_attr->network_type, b->link_attr->network_type);
	assert_int_equal(a->link_attr->state, b->link_attr->state);
	assert_ptr_not_equal(a->bus_attr, b->bus_attr);
	assert_int_equal(a->bus_attr->bus_type, b->bus_attr->bus_type);
	/* the first is freed, the second is duplicated and freed */
	fi_freeinfo(info);
	third = fi_dupinfo(dup);
	fi_freeinfo(dup);
	assert_string_equal(third->nic->link_attr->network_type, UNM_NAME);
	fi_freeinfo(third);
}

/* An offer with a fid_nic can be passed as hints and to open objects. */
static void test_nic_in_hints(void **state)
{
	struct fi_info *first = offer(), *again;
	struct ep *e = ep_open(NULL);
	struct fid_ep *ep;

	assert_int_equal(ep_getinfo(first, &again), 0);
	assert_non_null(again->nic);
	fi_freeinfo(first);
	assert_int_equal(fi_endpoint(e->domain, again, &ep, NULL), 0);
	fi_freeinfo(again);
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* libfabric copies each part with the provider's operations: its copies must be
 * freed in the same way, also if parts are missing. */
static void test_copies_made_by_others(void **state)
{
	struct fi_info *info = offer();

	for (int parts = 0; parts < 8; parts++) {
		struct fid_nic *nic = calloc(1, sizeof(*nic)), *dup;

		nic->fid = info->nic->fid;
		if (parts & 1)
			nic->device_attr = calloc(1,
						  sizeof(*nic->device_attr));
		if (parts & 2)
			nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
		if (parts & 4)
			nic->link_attr = calloc(1, sizeof(*nic->link_attr));
		if (parts & 1)
			nic->device_attr->firmware = strdup("first");
		if (parts & 4)
			nic->link_attr->mtu = 7;
		dup = dup_of(nic);
		assert_int_equal(fi_close(&nic->fid), 0);
		/* consumers do not check whether a part is NULL */
		assert_non_null(dup->bus_attr);
		if (parts & 1)
			assert_string_equal(dup->device_attr->firmware,
					    "first");
		else
			assert_null(dup->device_attr->firmware);
		assert_int_equal(dup->link_attr->mtu, parts & 4 ? 7 : 0);
		assert_int_equal(fi_close(&dup->fid), 0);
	}
	assert_int_equal(fi_control(&info->nic->fid, FI_ENABLE, NULL),
			 -FI_ENOSYS);
	fi_freeinfo(info);
}

UNIT_MAIN(
	EP_TEST(test_nic_of_parameters),
	EP_TEST(test_nic_names_the_model),
	EP_TEST(test_nic_in_print),
	EP_TEST(test_duplicates_are_equal_and_apart),
	EP_TEST(test_nic_in_hints),
	EP_TEST(test_copies_made_by_others),
)
