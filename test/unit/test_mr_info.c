/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mr_info.c - the mr_mode that fi_getinfo() offers: to each program the
 * mode that it asks for, in the terms of the API version that it was written
 * for.
 */
#include <rdma/providers/fi_prov.h>

#include "lib/ep_pair.h"
#include "unm_info.h"
#include "unm_offer.h"

extern struct fi_provider *fi_prov_ini(void);

static struct fi_info *ask(uint32_t version, const struct fi_info *hints)
{
	struct fi_info *info = NULL;

	assert_int_equal(fi_prov_ini()->getinfo(version, NULL, NULL, 0, hints,
						&info), 0);
	assert_non_null(info);
	return info;
}

#define VAP	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define OURS	(VAP | FI_MR_ENDPOINT)

/* The mr_mode that each program asks for at its API version, and the mode that
 * it gets. The provider needs no mode bit; old APIs spell this differently. */
static const struct {
	const char *who;
	uint32_t version;
	int asked, given;
} consumers[] = {
	{ "MPICH", FI_VERSION(1, 17), 0, 0 },
	{ "MPICH, its variables", FI_VERSION(1, 17), VAP, 0 },
	{ "MPICH, one variable", FI_VERSION(1, 17), FI_MR_PROV_KEY, 0 },
	{ "MPICH 4.2", FI_VERSION(1, 17), FI_MR_ENDPOINT | FI_MR_HMEM, 0 },
	{ "at version 0", 0, 0, 0 },
	{ "at version 0", 0, FI_MR_BASIC, FI_MR_BASIC },
	{ "Open MPI", FI_VERSION(1, 5), VAP, 0 },
	{ "Open MPI", FI_VERSION(1, 5), FI_MR_BASIC, FI_MR_BASIC },
	{ "Open MPI", FI_VERSION(1, 5), FI_MR_SCALABLE, FI_MR_SCALABLE },
	{ "SOS", FI_VERSION(1, 5), 0, 0 },
	{ "SOS", FI_VERSION(1, 5), FI_MR_RMA_EVENT, 0 },
	{ "SOS", FI_VERSION(1, 5), OURS, 0 },
	{ "GASNet", FI_VERSION(1, 5), OURS & ~FI_MR_PROV_KEY, 0 },
	{ "fi_pingpong", FI_VERSION(1, 17), FI_MR_LOCAL | VAP, 0 },
	{ "fi_info", FI_VERSION(1, 17), ~(FI_MR_BASIC | FI_MR_SCALABLE), 0 },
	{ "unspecific", FI_VERSION(1, 4), FI_MR_UNSPEC, FI_MR_SCALABLE },
	{ "unspecific", FI_VERSION(1, 0), FI_MR_UNSPEC, FI_MR_SCALABLE },
};

static void test_trap1_registration_as_each_consumer_asks(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	for (size_t i = 0; i < sizeof(consumers) / sizeof(consumers[0]); i++) {
		const struct fi_domain_attr *d;

		hints->domain_attr->mr_mode = consumers[i].asked;
		info = ask(consumers[i].version, hints);
		d = info->domain_attr;
		if (d->mr_mode != consumers[i].given)
			unit_fail("%s asks 0x%x, gets 0x%x", consumers[i].who,
				  consumers[i].asked, d->mr_mode);
		assert_int_equal(info->mode, 0);
		assert_int_equal(d->mr_key_size, 8);
		assert_int_equal(d->mr_iov_limit, UNM_IOV_MAX);
		assert_true(d->mr_cnt >= 65536);
		fi_freeinfo(info);
	}
	/* no domain attributes */
	free(hints->domain_attr);
	hints->domain_attr = NULL;
	info = ask(EP_VERSION, hints);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Every combination of mode bits, at every API version. */
static void test_every_registration_mode(void **state)
{
	static const uint32_t versions[] = {
		0, FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5),
		FI_VERSION(1, 6), FI_VERSION(1, 9), FI_VERSION(1, 17),
		FI_VERSION(1, 18), FI_VERSION(1, 20), FI_VERSION(1, 22),
		FI_VERSION(2, 0), FI_VERSION(2, 1), FI_VERSION(2, 5),
	};
	const int old = FI_MR_BASIC | FI_MR_SCALABLE;
	struct fi_info *hints = fi_allocinfo(), *info;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		for (int mode = 0; mode < 2 * FI_MR_COLLECTIVE; mode++) {
			bool names = versions[i] != 0 &&
				FI_VERSION_LT(versions[i], FI_VERSION(1, 5));
			int want = mode == FI_MR_BASIC ||
				mode == FI_MR_SCALABLE ? mode :
				names ? FI_MR_SCALABLE : 0;
			/* the modes of old APIs cannot be combined */
			bool fits = !(mode & old) || want == mode;
			int ret;

			info = NULL;
			hints->domain_attr->mr_mode = mode;
			ret = fi_prov_ini()->getinfo(versions[i], NULL, NULL,
						     0, hints, &info);
			if (ret != (fits ? 0 : -FI_ENODATA) || (fits &&
			    info->domain_attr->mr_mode != want))
				unit_fail("version 0x%x, hint 0x%x: %d, 0x%x",
					  versions[i], mode, ret, info != NULL ?
					  info->domain_attr->mr_mode : 0);
			fi_freeinfo(info);
		}
	fi_freeinfo(hints);
}

/* As MPICH's first call and fi_info do: no hints. */
static void test_trap1_no_hints(void **state)
{
	static const uint32_t versions[] = { 0, FI_VERSION(1, 0),
		FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 17) };

	for (int i = 0; i < 5; i++) {
		struct fi_info *info = ask(versions[i], NULL);

		assert_int_equal(info->domain_attr->mr_mode, 0);
		fi_freeinfo(info);
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_trap1_no_hints),
	cmocka_unit_test(test_trap1_registration_as_each_consumer_asks),
	cmocka_unit_test(test_every_registration_mode),
)
