/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_refusals.c - the log lines of calls that refuse a value. The program is
 * apart from test_misuse.c, because libfabric sets the level of the log for the
 * whole process, and each call of that test would log lines.
 */
#include <rdma/fi_trigger.h>

#include "lib/ep_pair.h"

/* The lines that refuse a value of an enumeration show its name, or a number if
 * it has none, and the names of what is offered. */
static void test_refused_values_are_named(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fi_cntr_attr attr = { .events = 1 };
	struct fi_triggered_context ctx = { .event_type = FI_TRIGGER_XPU };
	struct fi_msg msg = { .context = &ctx };
	struct fi_deferred_work w = { .op_type = 99, .op.msg = (void *)&msg };
	struct unit_capture ear = unit_capture_begin();
	struct fid_cntr *cntr;
	char text[4096];
	int ret[3];

	ret[0] = fi_cntr_open(e->domain, &attr, &cntr, NULL);
	ret[1] = (int)fi_sendmsg(e->ep, &msg, FI_TRIGGER);
	ret[2] = fi_control(&e->domain->fid, FI_QUEUE_WORK, &w);
	unit_capture_end(&ear, text, sizeof(text));
	for (int i = 0; i < 3; i++)
		assert_int_equal(ret[i], -FI_ENOSYS);
	assert_non_null(strstr(text, "events FI_CNTR_EVENTS_BYTES asked, "
			       "offered: FI_CNTR_EVENTS_COMP\n"));
	assert_non_null(strstr(text, "trigger event FI_TRIGGER_XPU asked, "
			       "offered: FI_TRIGGER_THRESHOLD\n"));
	assert_non_null(strstr(text, "deferred operation 0x63 asked, offered: "
			       "FI_OP_RECV, FI_OP_SEND, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_refused_values_are_named),
	};
	struct unit_capture ear;
	struct fi_info *info;
	char text[64];

	/* the test reads lines of this level; libfabric reads the variables at
	 * its first call, and logs a lot */
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "unimem", 1);
	ear = unit_capture_begin();
	if (fi_getinfo(EP_VERSION, NULL, NULL, 0, NULL, &info) == 0)
		fi_freeinfo(info);
	unit_capture_end(&ear, text, sizeof(text));
	return unit_run(tests);
}
