/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_info.c - fi_getinfo(): offers, hints, refusals and their log lines, and
 * wrong parameters.
 *
 * Most tests call the provider that is linked in. The tests of what libfabric
 * adds call the provider that libfabric loads (FI_PROVIDER_PATH). As "test_info
 * child ..." the program is the process that logs one line about a wrong
 * parameter, which its parent reads.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_prov.h>

#include "lib/ep_pair.h"
#include "hal/hal_param.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_offer.h"
#include "unm_refuse.h"

extern struct fi_provider *fi_prov_ini(void);
static struct fi_provider *prov;

static int ask(uint32_t version, const struct fi_info *hints,
	       struct fi_info **info)
{
	*info = NULL;
	return prov->getinfo(version, NULL, NULL, 0, hints, info);
}

static struct fi_info *offer(const struct fi_info *hints)
{
	struct fi_info *info;

	assert_int_equal(ask(EP_VERSION, hints, &info), 0);
	assert_non_null(info);
	return info;
}

/* ---- The offer ------------------------------------------------------- */

static void test_trap1_no_hints_at_any_version(void **state)
{
	static const uint32_t versions[] = {
		FI_VERSION(0, 0), FI_VERSION(1, 0), FI_VERSION(1, 5),
		FI_VERSION(1, 17),
	};

	for (int i = 0; i < 4; i++) {
		struct fi_info *info;

		assert_int_equal(ask(versions[i], NULL, &info), 0);
		assert_null(info->next);	/* no entry for another endpoint
						 * type */
		assert_int_equal(info->ep_attr->type, FI_EP_RDM);
		assert_int_equal(info->fabric_attr->api_version, versions[i]);
		assert_int_equal(info->domain_attr->mr_mode, 0);
		fi_freeinfo(info);
	}
}

static void test_trap3_all_capabilities_without_asking(void **state)
{
	const uint64_t must = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
		FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM |
		FI_REMOTE_COMM | FI_RMA | FI_ATOMIC;
	struct fi_info *info = offer(NULL);

	assert_int_equal(info->caps & must, must);
	assert_int_equal(info->tx_attr->caps & ~info->caps, 0);
	assert_int_equal(info->rx_attr->caps & ~info->caps, 0);
	assert_true(info->tx_attr->msg_order & FI_ORDER_SAS);
	assert_true(info->rx_attr->msg_order & FI_ORDER_SAS);
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->cq_data_size, 8);
	assert_true(info->tx_attr->inject_size >= 64);
	assert_true(info->tx_attr->iov_limit >= 8);
	assert_true(info->rx_attr->iov_limit >= 8);
	assert_true(info->ep_attr->max_msg_size > UINT32_MAX);
	assert_int_equal(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	fi_freeinfo(info);
}

/* With a smaller size MPICH sends atomics as active messages. */
static void test_trap10_accesses_of_any_size_are_ordered(void **state)
{
	struct fi_info *info = offer(NULL);

	assert_true(info->ep_attr->max_order_raw_size == SIZE_MAX);
	assert_true(info->ep_attr->max_order_war_size == SIZE_MAX);
	assert_true(info->ep_attr->max_order_waw_size == SIZE_MAX);
	fi_freeinfo(info);
}

/* Names of the values that log lines of refusals show. */
static void test_names_of_values(void **state)
{
	static const struct {
		int type;
		uint64_t value;
		const char *name;
	} t[] = {
		{ UNM_TYPE_CLASS, FI_CLASS_CQ, "FI_CLASS_CQ" },
		{ UNM_TYPE_CLASS, FI_CLASS_AV_SET, "FI_CLASS_AV_SET" },
		{ UNM_TYPE_CLASS, 10000, "0x2710" },
		{ UNM_TYPE_WAIT, FI_WAIT_POLLFD, "FI_WAIT_POLLFD" },
		{ UNM_TYPE_WAIT, 77, "0x4d" },
		{ UNM_TYPE_CNTR, FI_CNTR_EVENTS_COMP, "FI_CNTR_EVENTS_COMP" },
		{ UNM_TYPE_TRIGGER, FI_TRIGGER_XPU, "FI_TRIGGER_XPU" },
		{ UNM_TYPE_RM, FI_RM_ENABLED, "FI_RM_ENABLED" },
		{ FI_TYPE_OP_TYPE, FI_OP_TSEND, "FI_OP_TSEND" },
		{ FI_TYPE_OP_FLAGS, FI_FENCE, "FI_FENCE" },
	};
	char name[UNM_NAMES_MAX];

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_string_equal(unm_value_name(t[i].type, t[i].value, name,
						   sizeof(name)), t[i].name);
}

static void test_trap3_prov_name_is_left_to_libfabric(void **state)
{
	struct fi_info *info = offer(NULL), *hints;
	struct unit_capture ear;
	char text[64];
	int ret;

	assert_null(info->fabric_attr->prov_name);
	assert_string_equal(info->fabric_attr->name, "unimem");
	assert_string_equal(info->domain_attr->name, "unimem");
	fi_freeinfo(info);

	hints = fi_allocinfo();
	hints->fabric_attr->prov_name = strdup("unimem");
	ear = unit_capture_begin();	/* log lines of layers that refuse
					 * unimem */
	ret = fi_getinfo(EP_VERSION, NULL, NULL, 0, hints, &info);
	unit_capture_end(&ear, text, sizeof(text));
	assert_int_equal(ret, 0);
	assert_string_equal(info->fabric_attr->prov_name, "unimem");
	assert_null(info->next);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* An offer can be passed as hints, as it is and with mode bits. */
static void test_the_offer_as_hints(void **state)
{
	struct fi_info *first = offer(NULL), *again;

	again = offer(first);
	assert_int_equal(again->caps, first->caps);
	assert_int_equal(again->tx_attr->size, first->tx_attr->size);
	assert_int_equal(again->rx_attr->size, first->rx_attr->size);
	fi_freeinfo(again);
	first->mode = FI_CONTEXT | FI_CONTEXT2 | FI_LOCAL_MR | FI_RX_CQ_DATA;
	first->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
		FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	again = offer(first);
	assert_int_equal(again->caps, first->caps);
	assert_int_equal(again->mode, 0);
	fi_freeinfo(again);
	fi_freeinfo(first);
}

/* FI_PROGRESS_CONTROL_UNIFIED of libfabric 2, which these headers do not
 * define. It is not valid for data progress. */
static void test_unified_progress_of_later_libfabrics(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->domain_attr->control_progress = (enum fi_progress)3;
	info = offer(hints);
	assert_int_equal(info->domain_attr->control_progress, 3);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	fi_freeinfo(info);
	hints->domain_attr->data_progress = (enum fi_progress)3;
	assert_int_equal(ask(EP_VERSION, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* FI_UNIMEM_RX_SIZE bounds the offered size. */
static void test_sizes_are_those_of_the_parameters(void **state)
{
	int was = g_unm_env.rx_size;
	struct fi_info *info, *again;

	g_unm_env.rx_size = 100;
	info = offer(NULL);
	assert_int_equal(info->rx_attr->size, 100);
	assert_int_equal(ask(EP_VERSION, info, &again), 0);
	assert_int_equal(again->rx_attr->size, 100);
	g_unm_env.rx_size = was;
	fi_freeinfo(again);
	fi_freeinfo(info);
}

/* Trap 2: MPICH compares what it gets with what it asked for. */
static void test_trap2_hints_are_echoed(void **state)
{
	static const enum fi_threading threads[] = {
		FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
		FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
	};
	static const enum fi_av_type avs[] = { FI_AV_TABLE, FI_AV_MAP };
	struct fi_info *hints = fi_allocinfo(), *info;
	char handle;

	for (int i = 0; i < 10; i++) {
		hints->domain_attr->threading = threads[i / 2];
		hints->domain_attr->av_type = avs[i & 1];
		hints->domain_attr->resource_mgmt = i & 1 ? FI_RM_ENABLED :
			FI_RM_DISABLED;
		hints->tx_attr->op_flags = i & 1 ? FI_COMPLETION :
			FI_DELIVERY_COMPLETE;
		hints->rx_attr->op_flags = FI_COMPLETION;
		hints->tx_attr->size = 100 + i;
		hints->rx_attr->size = 200 + i;
		hints->handle = (fid_t)&handle;
		info = offer(hints);
		assert_int_equal(info->domain_attr->threading,
				 threads[i / 2]);
		assert_int_equal(info->domain_attr->av_type, avs[i & 1]);
		assert_int_equal(info->domain_attr->resource_mgmt,
				 hints->domain_attr->resource_mgmt);
		assert_int_equal(info->tx_attr->op_flags,
				 hints->tx_attr->op_flags);
		assert_int_equal(info->rx_attr->op_flags, FI_COMPLETION);
		assert_true(info->tx_attr->size >= hints->tx_attr->size);
		assert_true(info->rx_attr->size >= hints->rx_attr->size);
		assert_ptr_equal(info->handle, hints->handle);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void test_capabilities_as_asked(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_TAGGED;
	info = offer(hints);
	assert_int_equal(info->caps & (FI_TAGGED | FI_SEND | FI_RECV),
			 FI_TAGGED | FI_SEND | FI_RECV);
	assert_false(info->caps & (FI_MSG | FI_DIRECTED_RECV | FI_MULTI_RECV));
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_SEND;
	info = offer(hints);
	assert_false(info->caps & FI_RECV);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- Refused --------------------------------------------------------- */

/* A hint, its name, and the words by which the log line of its refusal names
 * the field. */
static struct bad {
	void (*set)(struct fi_info *h);
	const char *what, *says;
} bad[80];
static size_t nbad;

/* Add the hint that set_##name makes to bad[]. */
#define BAD(name, words)						\
	static void set_##name(struct fi_info *h);			\
	__attribute__((constructor))					\
	static void add_##name(void)					\
	{								\
		bad[nbad++] = (struct bad){ set_##name, #name, words };	\
	}
#define SET(name, field, value)						\
	BAD(name, #field)						\
	static void set_##name(struct fi_info *h)			\
	{								\
		h->field = value;					\
	}
SET(type_msg, ep_attr->type, FI_EP_MSG)
SET(type_dgram, ep_attr->type, FI_EP_DGRAM)
SET(caps, caps, FI_MSG | FI_COLLECTIVE)
SET(caps_of_later_libfabrics, caps, FI_MSG | UINT64_C(1) << 42)
SET(domain_auth_key, domain_attr->auth_key_size, 16)
SET(tx_caps, tx_attr->caps, FI_COLLECTIVE)
SET(rx_caps, rx_attr->caps, FI_VARIABLE_MSG)
SET(tx_op_flags, tx_attr->op_flags, FI_MATCH_COMPLETE)
SET(rx_op_flags, rx_attr->op_flags, FI_PEEK)
SET(tx_order, tx_attr->msg_order, UINT64_C(1) << 62)
SET(inject, tx_attr->inject_size, UNM_INJECT_MAX + 1)
SET(tx_iov, tx_attr->iov_limit, UNM_IOV_MAX + 1)
SET(rx_iov, rx_attr->iov_limit, UNM_IOV_MAX + 1)
SET(rx_size, rx_attr->size, SIZE_MAX)
SET(tx_size, tx_attr->size, SIZE_MAX)
SET(addr_format, addr_format, FI_SOCKADDR_IN)
SET(threading, domain_attr->threading, 99)
SET(av_type, domain_attr->av_type, 99)
SET(control_progress, domain_attr->control_progress, 99)
SET(data_progress, domain_attr->data_progress, 99)
SET(resource_mgmt, domain_attr->resource_mgmt, 99)
SET(cq_data_size, domain_attr->cq_data_size, 9)
SET(tx_ctx_cnt, ep_attr->tx_ctx_cnt, 2)
SET(rx_ctx_cnt, ep_attr->rx_ctx_cnt, 2)
SET(shared_ctx, ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT)
SET(protocol, ep_attr->protocol, FI_PROTO_RXM)
SET(ep_cnt, domain_attr->ep_cnt, SIZE_MAX)
SET(auth_key, ep_attr->auth_key_size, 16)
SET(rx_order, rx_attr->msg_order, FI_ORDER_RAW)
SET(tx_comp_order, tx_attr->comp_order, FI_ORDER_STRICT)
SET(rx_comp_order, rx_attr->comp_order, FI_ORDER_DATA)
SET(rma_iov, tx_attr->rma_iov_limit, UNM_IOV_MAX + 1)
SET(buffered_recv, rx_attr->total_buffered_recv, 1)
SET(domain_caps, domain_attr->caps, FI_SHARED_AV)
SET(cq_cnt, domain_attr->cq_cnt, 65537)
SET(cntr_cnt, domain_attr->cntr_cnt, 65537)
SET(tx_ctx_cnt_all, domain_attr->tx_ctx_cnt, 4097)
SET(rx_ctx_cnt_all, domain_attr->rx_ctx_cnt, 4097)
SET(max_ep_tx_ctx, domain_attr->max_ep_tx_ctx, 2)
SET(max_ep_rx_ctx, domain_attr->max_ep_rx_ctx, 2)
SET(max_ep_stx_ctx, domain_attr->max_ep_stx_ctx, 1)
SET(max_ep_srx_ctx, domain_attr->max_ep_srx_ctx, 1)
SET(max_err_data, domain_attr->max_err_data, 1)
SET(mr_basic, domain_attr->mr_mode, FI_MR_BASIC | FI_MR_VIRT_ADDR)
SET(mr_scalable, domain_attr->mr_mode, FI_MR_SCALABLE | FI_MR_RMA_EVENT)
SET(mr_both, domain_attr->mr_mode, FI_MR_SCALABLE | FI_MR_BASIC)
SET(mr_key_size, domain_attr->mr_key_size, 9)
SET(mr_iov_limit, domain_attr->mr_iov_limit, UNM_IOV_MAX + 1)
SET(mr_cnt, domain_attr->mr_cnt, SIZE_MAX)
SET(source_err, caps, FI_MSG | FI_SOURCE_ERR)
SET(rx_source_err, rx_attr->caps, FI_SOURCE_ERR)

BAD(fabric, "fabric asked 10.0.0.0/8")
static void set_fabric(struct fi_info *h)
{
	h->fabric_attr->name = strdup("10.0.0.0/8");
}

BAD(domain, "domain asked eth0")
static void set_domain(struct fi_info *h)
{
	h->domain_attr->name = strdup("eth0");
}

static void set_src(struct fi_info *h, uint32_t board, uint32_t iface,
		    uint64_t nonce)
{
	struct hal_addr a = { .version = HAL_ADDR_VERSION, .board = board,
			      .iface = iface, .uid = geteuid(),
			      .nonce = nonce };

	h->src_addr = malloc(sizeof(a));
	memcpy(h->src_addr, &a, sizeof(a));
	h->src_addrlen = sizeof(a);
}

BAD(src_nonce, "src_addr asked unimem://0:9/0000000000000007, offered")
static void set_src_nonce(struct fi_info *h)
{
	set_src(h, 0, 9, 7);
}

BAD(src_addrlen, "src_addrlen")
static void set_src_addrlen(struct fi_info *h)
{
	h->src_addr = calloc(1, 16);
	h->src_addrlen = 16;
}

BAD(src_board, "src_addr asked unimem://1:0")
static void set_src_board(struct fi_info *h)
{
	set_src(h, 1, 0, 0);
}

BAD(dest_addrlen, "dest_addrlen")
static void set_dest_addrlen(struct fi_info *h)
{
	h->dest_addr = calloc(1, 3);
	h->dest_addrlen = 3;
}

/* One line, "asked ..., offered ...", and -FI_ENODATA. */
static void test_refusals_are_logged_in_one_line(void **state)
{
	assert_in_range(nbad, 50, sizeof(bad) / sizeof(bad[0]));
	for (size_t i = 0; i < nbad; i++) {
		struct fi_info *hints = fi_allocinfo(), *info;
		const char *field = strrchr(bad[i].says, '>');
		struct unit_capture ear;
		char text[4096];
		int ret, said;

		field = field != NULL ? field + 1 : bad[i].says;
		bad[i].set(hints);
		ear = unit_capture_begin();
		ret = ask(EP_VERSION, hints, &info);
		said = unit_capture_end(&ear, text, sizeof(text));
		if (ret != -FI_ENODATA || said != 1 ||
		    strstr(text, field) == NULL ||
		    strstr(text, "asked") == NULL ||
		    strstr(text, "offered") == NULL)
			unit_fail("%s: %d, said: \"%s\"", bad[i].what, ret,
				  text);
		fi_freeinfo(hints);
	}
}

/* The values in such a line are the names of libfabric's constants, and numbers
 * where there is no name. Of bit masks it names the bits that are not
 * offered. */
static void test_refusals_name_values(void **state)
{
	static const struct {
		void (*set)(struct fi_info *h);
		const char *says;
	} t[] = {
		{ set_type_msg, "endpoint type asked FI_EP_MSG, offered "
		  "FI_EP_RDM\n" },
		{ set_caps, "caps asked FI_COLLECTIVE, offered FI_MSG, " },
		{ set_caps_of_later_libfabrics,
		  "caps asked 0x40000000000, offered FI_MSG, " },
		{ set_tx_op_flags, "tx op_flags asked FI_MATCH_COMPLETE, "
		  "offered FI_" },
		{ set_rx_order, "rx msg_order asked FI_ORDER_RAW, offered "
		  "FI_ORDER_SAS, " },
		{ set_protocol, "protocol asked FI_PROTO_RXM, offered "
		  "FI_PROTO_UNSPEC\n" },
		{ set_addr_format, "addr_format asked FI_SOCKADDR_IN, offered "
		  "Provider specific\n" },
		{ set_threading, "threading asked 0x63, offered "
		  "FI_THREAD_SAFE\n" },
		{ set_av_type, "av_type asked 0x63, offered FI_AV_TABLE\n" },
		{ set_data_progress, "data_progress asked 0x63, offered "
		  "FI_PROGRESS_MANUAL\n" },
		{ set_resource_mgmt, "resource_mgmt asked 0x63, offered "
		  "FI_RM_ENABLED\n" },
		{ set_mr_basic, "asked FI_MR_BASIC, FI_MR_VIRT_ADDR, offered "
		  "FI_MR_BASIC\n" },
		{ set_tx_comp_order, "offered none\n" },
		{ set_inject, "tx inject_size asked 4097, offered 4096\n" },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fi_info *hints = fi_allocinfo(), *info;
		struct unit_capture ear;
		char text[4096];

		t[i].set(hints);
		ear = unit_capture_begin();
		ask(EP_VERSION, hints, &info);
		unit_capture_end(&ear, text, sizeof(text));
		if (strstr(text, t[i].says) == NULL)
			unit_fail("\"%s\" is not in \"%s\"", t[i].says, text);
		fi_freeinfo(hints);
	}
}

/* ---- Addresses and sources ------------------------------------------- */

/* FI_SOURCE_ERR is offered only if hints ask for it and for FI_SOURCE, because
 * it turns completions into errors. */
static void test_source_err_on_request_only(void **state)
{
	struct fi_info *hints, *info = offer(NULL);

	assert_false(info->caps & FI_SOURCE_ERR);
	assert_false(info->rx_attr->caps & FI_SOURCE_ERR);
	assert_int_equal(info->domain_attr->max_err_data, 0);
	hints = info;
	hints->caps |= FI_SOURCE_ERR;
	hints->domain_attr->max_err_data = sizeof(struct hal_addr);
	info = offer(hints);
	assert_true(info->caps & FI_SOURCE_ERR);
	assert_true(info->rx_attr->caps & FI_SOURCE_ERR);
	assert_false(info->tx_attr->caps & FI_SOURCE_ERR);
	assert_int_equal(info->domain_attr->max_err_data,
			 sizeof(struct hal_addr));
	fi_freeinfo(hints);
	hints = info;			/* the offer as hints */
	info = offer(hints);
	assert_true(info->caps & FI_SOURCE_ERR);
	fi_freeinfo(info);
	hints->domain_attr->max_err_data++;
	assert_int_equal(ask(EP_VERSION, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_err_data = 0;
	hints->caps &= ~FI_SOURCE;
	assert_int_equal(ask(EP_VERSION, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_destination_in_hints(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct hal_addr a = { .version = 1, .iface = 9, .nonce = 5 };

	hints->dest_addr = malloc(sizeof(a));
	memcpy(hints->dest_addr, &a, sizeof(a));
	hints->dest_addrlen = sizeof(a);
	info = offer(hints);
	assert_int_equal(info->dest_addrlen, sizeof(a));
	assert_memory_equal(info->dest_addr, &a, sizeof(a));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* The local interface (src_addr), in hints as in an offer. */
static void test_source_in_hints(void **state)
{
	struct fi_info *hints, *info = NULL;

	assert_int_equal(prov->getinfo(EP_VERSION, NULL, "9228", FI_SOURCE,
				       NULL, &hints), 0);
	assert_int_equal(prov->getinfo(EP_VERSION, "unimem://0:7", NULL, 0,
				       hints, &info), 0);
	assert_memory_equal(info->src_addr, hints->src_addr,
			    sizeof(struct hal_addr));
	assert_int_equal(((struct hal_addr *)info->dest_addr)->iface, 7);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- Parameters ------------------------------------------------------ */

/* As fi_info -e: every parameter, with an explanation and its default. */
static void test_parameters_are_known_to_libfabric(void **state)
{
	static const char *const own[] = {
		"EAGER_MAX", "ATTACH", "STREAM_US", "UNEXPECTED_MAX",
		"TX_SIZE", "RX_SIZE", "CQ_SIZE", "SPIN", "SERVICE_US",
		"STATS",
	};
	struct fi_param *params;
	int count, found = 0;

	assert_int_equal(fi_getparams(&params, &count), 0);
	for (int k = 0; k < 10 + hal_param_count; k++) {
		char name[80];
		int i;

		snprintf(name, sizeof(name), "FI_UNIMEM_%s", k < 10 ? own[k] :
			 hal_param_table[k - 10].name);
		for (i = 0; i < count; i++)
			if (strcmp(params[i].name, name) == 0)
				break;
		if (i == count)
			unit_fail("%s is not known", name);
		assert_non_null(strstr(params[i].help_string, "(default: "));
		found++;
	}
	assert_true(found > 14);
	fi_freeparams(params);
}

/* Runs this program again with a setting. Returns its exit code, and in text
 * its log lines. */
static int child(const char *setting, const char *what, char *text,
		 size_t size)
{
	char self[512], line[1024];
	const char *via = getenv("UNM_EXEC");	/* an emulator */
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *out;
	size_t len;

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(line, sizeof(line), "env -u FI_LOG_LEVEL %s %s '%s' child %s "
		 "2>&1", setting, via != NULL ? via : "", self, what);
	out = popen(line, "re");
	assert_non_null(out);
	len = fread(text, 1, size - 1, out);
	text[len] = '\0';
	return WEXITSTATUS(pclose(out));
}

static void test_mistakes_in_parameters_are_logged_in_one_line(void **state)
{
	static const struct {
		const char *setting, *what, *says;
		bool fails;
	} t[] = {
		{ "A=1", "domain", "", false },
		/* with any backend: fi_getinfo() opens none */
		{ "FI_UNIMEM_HAL=auto", "info", "", false },
		{ "FI_UNIMEM_HAL=dev", "info", "", false },
		{ "FI_UNIMEM_HAL=dev FI_UNIMEM_DEV=/dev/none", "info", "",
		  false },
		{ "FI_UNIMEM_HAL=sim", "info", "", false },
		{ "FI_UNIMEM_EAGER_MAX=x", "info", "FI_UNIMEM_EAGER_MAX=x",
		  true },
		{ "FI_UNIMEM_EAGER_MAX=17K", "info", "0 to 16384", true },
		{ "FI_UNIMEM_TX_SIZE=12k", "info", "FI_UNIMEM_TX_SIZE=12k",
		  true },
		{ "FI_UNIMEM_ATTACH=maybe", "info", "use 0 or 1", true },
		{ "FI_UNIMEM_EGER_MAX=1", "info",
		  "did you mean FI_UNIMEM_EAGER_MAX", false },
		{ "FI_UNIMEM_PROFIL=exanode", "domain",
		  "did you mean FI_UNIMEM_PROFILE", false },
		{ "FI_UNIMEM_PROFILE=fast", "info", "host|exanode", true },
		{ "FI_UNIMEM_PROFILE=fast", "domain", "host|exanode", true },
		{ "FI_UNIMEM_BOARD=3", "domain", "FI_UNIMEM_BOARD=3", true },
		{ "FI_UNIMEM_PROFILE=exanode FI_UNIMEM_BOARD=4", "domain",
		  "FI_UNIMEM_BOARD=4", true },
		{ "FI_UNIMEM_PROFILE=exanode", "64", "no free interface",
		  true },
		/* other jobs on this machine use some of them as well */
		{ "FI_UNIMEM_PROFILE=exanode", "3", "", false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char text[4096];
		int ret = child(t[i].setting, t[i].what, text, sizeof(text));

		if (ret != (t[i].fails ? 1 : 0) ||
		    strstr(text, t[i].says) == NULL ||
		    unit_lines(text) != (t[i].says[0] != '\0'))
			unit_fail("%s %s: exit %d, said: \"%s\"",
				  t[i].setting, t[i].what, ret, text);
	}
}

/* The emulation's boards are all on this host. Boards of hardware are hosts of
 * their own, which a node may name. */
static void test_other_hosts_may_be_boards(void **state)
{
	static const struct {
		const char *setting, *what;
		int code;
	} t[] = {
		{ "FI_UNIMEM_HAL=dev", "node:192.0.2.1", 0 },
		{ "FI_UNIMEM_HAL=dev", "node:127.0.0.1", 0 },
		{ "FI_UNIMEM_HAL=dev", "node:g00n13s.invalid", 1 },
		{ "FI_UNIMEM_HAL=dev", "from:192.0.2.1", 1 },
		{ "FI_UNIMEM_HAL=emu", "node:192.0.2.1", 1 },
		{ "FI_UNIMEM_HAL=sim", "node:192.0.2.1", 1 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char text[4096];
		int code = child(t[i].setting, t[i].what, text, sizeof(text));

		if (code != t[i].code)
			unit_fail("%s %s: exit %d, said: \"%s\"",
				  t[i].setting, t[i].what, code, text);
	}
}

/* ---- The child ------------------------------------------------------- */

static unsigned opened;		/* files, by the linked provider */

/* Replaces the C library's: opening a backend begins with it. */
int open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	opened++;
	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int access(const char *name, int mode)
{
	opened++;
	return (int)syscall(SYS_faccessat, AT_FDCWD, name, mode);
}

int socket(int domain, int type, int protocol)
{
	opened++;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int memfd_create(const char *name, unsigned flags)
{
	opened++;
	return (int)syscall(SYS_memfd_create, name, flags);
}

static int open_interfaces(long n)
{
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	int ret;

	if (prov->getinfo(EP_VERSION, NULL, NULL, 0, NULL, &info) != 0 ||
	    prov->fabric(info->fabric_attr, &fabric, NULL) != 0)
		return 1;
	ret = fi_domain(fabric, info, &domain, NULL);
	if (ret == 0 && n != 0)
		ret = fi_av_open(domain, &av_attr, &av, NULL) != 0 ||
			fi_cq_open(domain, NULL, &cq, NULL) != 0;
	for (long i = 0; i < n && ret == 0; i++) {
		struct fid_ep *ep;

		ret = fi_endpoint(domain, info, &ep, NULL);
		if (ret == 0 &&
		    (fi_ep_bind(ep, &av->fid, 0) != 0 ||
		     fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) != 0 ||
		     fi_enable(ep) != 0))
			return 2;
	}
	_exit(ret != 0);		/* closing is tested elsewhere */
}

/* 0: the host is accepted, and if it is this one an interface is named. */
static int ask_node(const char *node, uint64_t flags)
{
	bool here = strncmp(node, "127.", 4) == 0;
	const struct hal_addr *a;
	struct fi_info *info;
	int ret;

	if (prov->getinfo(EP_VERSION, node, "7", flags, NULL, &info) != 0)
		return 1;
	a = flags & FI_SOURCE ? info->src_addr : info->dest_addr;
	ret = (a->iface == 0) == here ? 2 : 0;
	fi_freeinfo(info);
	return ret;
}

static int child_main(const char *what)
{
	struct fi_info *info;

	if (strncmp(what, "node:", 5) == 0)
		return ask_node(what + 5, 0);
	if (strncmp(what, "from:", 5) == 0)
		return ask_node(what + 5, FI_SOURCE);

	if (strcmp(what, "info") == 0) {
		int ret = ask(EP_VERSION, NULL, &info);

		fi_freeinfo(info);
		return ret != 0 ? 1 : opened != 0 ? 3 : 0;
	}
	return open_interfaces(strtol(what, NULL, 10));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trap1_no_hints_at_any_version),
		cmocka_unit_test(test_trap3_all_capabilities_without_asking),
		cmocka_unit_test(test_trap10_accesses_of_any_size_are_ordered),
		cmocka_unit_test(test_names_of_values),
		cmocka_unit_test(test_trap3_prov_name_is_left_to_libfabric),
		cmocka_unit_test(test_the_offer_as_hints),
		cmocka_unit_test(test_trap2_hints_are_echoed),
		cmocka_unit_test(test_unified_progress_of_later_libfabrics),
		cmocka_unit_test(test_sizes_are_those_of_the_parameters),
		cmocka_unit_test(test_capabilities_as_asked),
		cmocka_unit_test(test_refusals_are_logged_in_one_line),
		cmocka_unit_test(test_refusals_name_values),
		cmocka_unit_test(test_source_err_on_request_only),
		cmocka_unit_test(test_destination_in_hints),
		cmocka_unit_test(test_source_in_hints),
		cmocka_unit_test(test_parameters_are_known_to_libfabric),
		cmocka_unit_test(
			test_mistakes_in_parameters_are_logged_in_one_line),
		cmocka_unit_test(test_other_hosts_may_be_boards),
	};
	struct unit_capture ear;
	struct fi_info *info;
	char text[64];
	int ret;

	if (argc == 3 && strcmp(argv[1], "child") == 0) {
		opened = 0;
		prov = fi_prov_ini();
		return child_main(argv[2]);
	}
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "unimem", 1);
	/* libfabric reads these at its first call, and logs a lot */
	ear = unit_capture_begin();
	ret = fi_getinfo(EP_VERSION, NULL, NULL, 0, NULL, &info);
	unit_capture_end(&ear, text, sizeof(text));
	if (ret != 0) {
		printf("libfabric does not find the provider: "
		       "FI_PROVIDER_PATH?\n");
		return 1;
	}
	fi_freeinfo(info);
	/* after that call, because libfabric drops earlier definitions */
	prov = fi_prov_ini();
	return unit_run(tests);
}
