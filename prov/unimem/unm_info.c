/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_info.c - fi_getinfo(3): builds the struct fi_info that the provider
 * offers, compares the hints with it, and returns it with the values that the
 * hints choose. A hint that cannot be met gives one line at FI_LOG_LEVEL=info,
 * with the value asked for and the one offered (unm_refuse.c). The limits are
 * in unm_offer.h; text of addresses is read by unm_addr.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal.h"
#include "unm_addr.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_log.h"
#include "unm_nic.h"
#include "unm_offer.h"
#include "unm_refuse.h"

#define UNM_ORDER	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | \
			 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | \
			 FI_ORDER_ATOMIC_WAW)
#define UNM_MODE	0
#define UNM_TAG_FORMAT	UINT64_C(0xAAAAAAAAAAAAAAAA)	/* all 64 bits */
#define UNM_RX_SIZE	1024		/* what most applications expect */

/* ---- The offer ------------------------------------------------------- */

static int unm_info_strings(struct fi_info *info)
{
	info->fabric_attr->name = strdup(UNM_NAME);
	info->domain_attr->name = strdup(UNM_NAME);
	return info->fabric_attr->name != NULL &&
		info->domain_attr->name != NULL ? 0 : -FI_ENOMEM;
}

static void unm_info_tx(struct fi_tx_attr *tx)
{
	tx->caps = UNM_CAPS_TX;
	tx->mode = UNM_MODE;
	tx->op_flags = 0;
	tx->msg_order = UNM_ORDER;
	tx->comp_order = FI_ORDER_NONE;
	tx->inject_size = UNM_INJECT_MAX;
	tx->size = g_unm_env.tx_size;
	tx->iov_limit = UNM_IOV_MAX;
	tx->rma_iov_limit = UNM_IOV_MAX;
}

static void unm_info_rx(struct fi_rx_attr *rx)
{
	rx->caps = UNM_CAPS_RX;
	rx->mode = UNM_MODE;
	rx->op_flags = 0;
	rx->msg_order = UNM_ORDER;
	rx->comp_order = FI_ORDER_NONE;
	rx->total_buffered_recv = 0;
	rx->size = g_unm_env.rx_size < UNM_RX_SIZE ? g_unm_env.rx_size :
		UNM_RX_SIZE;
	rx->iov_limit = UNM_IOV_MAX;
}

static void unm_info_domain(struct fi_domain_attr *d)
{
	d->threading = FI_THREAD_SAFE;
	d->control_progress = FI_PROGRESS_MANUAL;
	d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = FI_AV_UNSPEC;
	d->mr_mode = 0;
	d->mr_key_size = UNM_MR_KEY_BYTES;
	d->cq_data_size = UNM_CQ_DATA_BYTES;
	d->cq_cnt = 65536;
	d->ep_cnt = 4096;
	d->tx_ctx_cnt = 4096;
	d->rx_ctx_cnt = 4096;
	d->max_ep_tx_ctx = 1;
	d->max_ep_rx_ctx = 1;
	d->max_ep_stx_ctx = 0;
	d->max_ep_srx_ctx = 0;
	d->cntr_cnt = 65536;
	d->mr_iov_limit = UNM_IOV_MAX;
	d->caps = UNM_CAPS_DOMAIN;
	d->mode = UNM_MODE;
	d->max_err_data = 0;
	d->mr_cnt = UNM_MR_COUNT;
}

static struct fi_info *unm_info_offer(void)
{
	struct fi_info *info = fi_allocinfo();

	if (info == NULL)
		return NULL;
	info->nic = unm_nic_offer();
	if (info->nic == NULL || unm_info_strings(info) != 0) {
		fi_freeinfo(info);
		return NULL;
	}
	info->caps = UNM_CAPS;
	info->mode = UNM_MODE;
	info->addr_format = UNM_ADDR_FORMAT;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_UNSPEC;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->ep_attr->mem_tag_format = UNM_TAG_FORMAT;
	info->ep_attr->max_order_raw_size = SIZE_MAX;
	info->ep_attr->max_order_war_size = SIZE_MAX;
	info->ep_attr->max_order_waw_size = SIZE_MAX;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	unm_info_tx(info->tx_attr);
	unm_info_rx(info->rx_attr);
	unm_info_domain(info->domain_attr);
	/* prov_name stays NULL: libfabric fills it in */
	info->fabric_attr->prov_version = UNM_VERSION;
	return info;
}

/* ---- Comparing hints with the offer ---------------------------------- */

static bool unm_name_is(const char *what, const char *asked)
{
	if (asked == NULL || strcasecmp(asked, UNM_NAME) == 0)
		return true;
	UNM_INFO(FABRIC, "no match: %s asked %s, offered " UNM_NAME "\n", what,
		 asked);
	return false;
}

static bool unm_match_tx(const struct fi_tx_attr *h)
{
	return h == NULL ||
		(unm_check_bits("tx caps", FI_TYPE_CAPS, h->caps, UNM_CAPS) &&
		 unm_check_bits("tx op_flags", FI_TYPE_OP_FLAGS, h->op_flags,
				UNM_TX_OP_FLAGS) &&
		 unm_check_bits("tx msg_order", FI_TYPE_MSG_ORDER,
				h->msg_order, UNM_ORDER) &&
		 unm_check_bits("tx comp_order", FI_TYPE_MSG_ORDER,
				h->comp_order, 0) &&
		 unm_check_most("tx inject_size", h->inject_size,
				UNM_INJECT_MAX) &&
		 unm_check_most("tx size", h->size, 1 << 20) &&
		 unm_check_most("tx iov_limit", h->iov_limit, UNM_IOV_MAX) &&
		 unm_check_most("tx rma_iov_limit", h->rma_iov_limit,
				UNM_IOV_MAX));
}

static bool unm_match_rx(const struct fi_rx_attr *h)
{
	return h == NULL ||
		(unm_check_bits("rx caps", FI_TYPE_CAPS, h->caps,
				UNM_CAPS | UNM_CAPS_ASKED) &&
		 unm_check_bits("rx op_flags", FI_TYPE_OP_FLAGS, h->op_flags,
				UNM_RX_OP_FLAGS) &&
		 unm_check_bits("rx msg_order", FI_TYPE_MSG_ORDER,
				h->msg_order, UNM_ORDER) &&
		 unm_check_bits("rx comp_order", FI_TYPE_MSG_ORDER,
				h->comp_order, 0) &&
		 unm_check_most("rx total_buffered_recv",
				h->total_buffered_recv, 0) &&
		 unm_check_most("rx size", h->size, g_unm_env.rx_size) &&
		 unm_check_most("rx iov_limit", h->iov_limit, UNM_IOV_MAX));
}

static bool unm_match_ep(const struct fi_ep_attr *h)
{
	return h == NULL ||
		(unm_check_same("endpoint type", FI_TYPE_EP_TYPE, h->type,
				FI_EP_RDM) &&
		 unm_check_same("protocol", FI_TYPE_PROTOCOL, h->protocol,
				FI_PROTO_UNSPEC) &&
		 unm_check_most("tx_ctx_cnt", h->tx_ctx_cnt, 1) &&
		 unm_check_most("rx_ctx_cnt", h->rx_ctx_cnt, 1) &&
		 unm_check_most("auth_key_size", h->auth_key_size, 0));
}

/* Bytes of data in an error entry: the address of a peer that is not in the
 * address vector. */
static size_t unm_err_data(uint64_t caps)
{
	return caps & FI_SOURCE_ERR ? unm_addr_bytes() : 0;
}

static bool unm_match_caps(const struct fi_info *h)
{
	if (!unm_check_bits("caps", FI_TYPE_CAPS, h->caps,
			    UNM_CAPS | UNM_CAPS_ASKED))
		return false;
	if ((h->caps & FI_SOURCE_ERR) && !(h->caps & FI_SOURCE))
		return unm_refuse("caps (FI_SOURCE_ERR without FI_SOURCE)",
				  FI_TYPE_CAPS, h->caps, UNM_CAPS);
	/* capabilities of a context must be capabilities of the endpoint */
	if (h->rx_attr != NULL &&
	    !unm_check_bits("rx caps (not among caps)", FI_TYPE_CAPS,
			    h->rx_attr->caps & UNM_CAPS_ASKED, h->caps))
		return false;
	return h->domain_attr == NULL ||
		unm_check_most("max_err_data", h->domain_attr->max_err_data,
			       unm_err_data(h->caps));
}

/* Has an address of the hints the length of those of this process? */
static bool unm_addrlen_is(const char *what, size_t len)
{
	if (len == unm_addr_bytes())
		return true;
	if (len == sizeof(struct hal_addr) ||
	    len == sizeof(struct hal_addr_host))
		UNM_WARN(FABRIC, "no match: %s of %zu bytes is of a process %s "
			 "FI_UNIMEM_NET: all processes of a job must have it, "
			 "or none", what, len, len == sizeof(struct hal_addr)
			 ? "without" : "with");
	else
		unm_refuse(what, UNM_TYPE_NUMBER, len, unm_addr_bytes());
	return false;
}

/* The source address of the hints: an interface, by its number or by a service
 * number, and without a nonce. */
static bool unm_match_src(const void *src, size_t len)
{
	struct hal_addr addr;
	struct hal_host host;
	char text[80];

	if (src == NULL)
		return true;
	if (!unm_addrlen_is("src_addrlen", len))
		return false;
	unm_addr_import(src, &addr, &host);
	if (unm_addr_takes(&addr))
		return true;
	unm_addr_print(&addr, text, sizeof(text));
	UNM_INFO(FABRIC, "no match: src_addr asked %s, offered any interface "
		 "of this user by number\n", text);
	return false;
}

bool unm_info_offered(const struct fi_info *info)
{
	return unm_match_caps(info) &&
		unm_match_src(info->src_addr, info->src_addrlen) &&
		unm_match_ep(info->ep_attr) &&
		unm_match_tx(info->tx_attr) && unm_match_rx(info->rx_attr);
}

/* A value of libfabric 2: the application makes control and data calls under
 * the same threading rules. The provider behaves the same with and without
 * it. */
#define UNM_PROGRESS_UNIFIED	3	/* FI_PROGRESS_CONTROL_UNIFIED */

static bool unm_match_modes(const struct fi_domain_attr *h)
{
	/* these modes say how the application behaves or what it accepts: only
	 * unknown values are refused */
	if (h->threading > FI_THREAD_ENDPOINT)
		return unm_refuse("threading", FI_TYPE_THREADING, h->threading,
				  FI_THREAD_SAFE);
	if ((unsigned)h->control_progress > UNM_PROGRESS_UNIFIED)
		return unm_refuse("control_progress", FI_TYPE_PROGRESS,
				  h->control_progress, FI_PROGRESS_MANUAL);
	if (h->data_progress > FI_PROGRESS_MANUAL)
		return unm_refuse("data_progress", FI_TYPE_PROGRESS,
				  h->data_progress, FI_PROGRESS_MANUAL);
	if (h->resource_mgmt > FI_RM_ENABLED)
		return unm_refuse("resource_mgmt", UNM_TYPE_RM,
				  h->resource_mgmt, FI_RM_ENABLED);
	if (h->av_type > FI_AV_TABLE)
		return unm_refuse("av_type", FI_TYPE_AV_TYPE, h->av_type,
				  FI_AV_TABLE);
	return true;
}

/* Any mr_mode bits are accepted, because they say what the application is able
 * to do. FI_MR_BASIC and FI_MR_SCALABLE, of old versions of the API, must be
 * the only bit (fi_mr(3)). */
static bool unm_match_mr(const struct fi_domain_attr *h)
{
	unsigned mode = h->mr_mode;
	unsigned old = mode & (FI_MR_BASIC | FI_MR_SCALABLE);

	if (old != 0 && (mode & (mode - 1)) != 0)
		return unm_refuse("mr_mode (an old one with others)",
				  FI_TYPE_MR_MODE, mode, old);
	return unm_check_most("mr_key_size", h->mr_key_size,
			      UNM_MR_KEY_BYTES) &&
		unm_check_most("mr_iov_limit", h->mr_iov_limit,
			       UNM_IOV_MAX) &&
		unm_check_most("mr_cnt", h->mr_cnt, UNM_MR_COUNT);
}

static bool unm_match_domain(const struct fi_domain_attr *h)
{
	return h == NULL ||
		(unm_name_is("domain", h->name) && unm_match_modes(h) &&
		 unm_match_mr(h) &&
		 unm_check_bits("domain caps", FI_TYPE_CAPS, h->caps,
				UNM_CAPS_DOMAIN) &&
		 unm_check_most("cq_data_size", h->cq_data_size,
				UNM_CQ_DATA_BYTES) &&
		 unm_check_most("ep_cnt", h->ep_cnt, 4096) &&
		 unm_check_most("cq_cnt", h->cq_cnt, 65536) &&
		 unm_check_most("cntr_cnt", h->cntr_cnt, 65536) &&
		 unm_check_most("max_ep_tx_ctx", h->max_ep_tx_ctx, 1) &&
		 unm_check_most("max_ep_rx_ctx", h->max_ep_rx_ctx, 1) &&
		 unm_check_most("max_ep_stx_ctx", h->max_ep_stx_ctx, 0) &&
		 unm_check_most("max_ep_srx_ctx", h->max_ep_srx_ctx, 0) &&
		 unm_check_most("domain tx_ctx_cnt", h->tx_ctx_cnt, 4096) &&
		 unm_check_most("domain rx_ctx_cnt", h->rx_ctx_cnt, 4096) &&
		 unm_check_most("domain auth_key_size", h->auth_key_size, 0));
}

/* With FI_SOURCE, node and service name the local address, and the one of the
 * hints is ignored (fi_getinfo(3)). */
static bool unm_match_hints(const struct fi_info *h, uint64_t flags)
{
	if (h == NULL)
		return true;
	if (h->fabric_attr != NULL &&
	    !unm_name_is("fabric", h->fabric_attr->name))
		return false;
	if (h->addr_format != FI_FORMAT_UNSPEC &&
	    h->addr_format != UNM_ADDR_FORMAT)
		return unm_refuse("addr_format", FI_TYPE_ADDR_FORMAT,
				  h->addr_format, UNM_ADDR_FORMAT);
	return unm_match_caps(h) &&
		((flags & FI_SOURCE) ||
		 unm_match_src(h->src_addr, h->src_addrlen)) &&
		unm_match_ep(h->ep_attr) &&
		unm_match_tx(h->tx_attr) && unm_match_rx(h->rx_attr) &&
		unm_match_domain(h->domain_attr);
}

/* ---- The answer ------------------------------------------------------ */

/* The capabilities of the answer. FI_MSG, FI_RMA and so on without a direction
 * mean all directions (fi_getinfo(3)). */
static uint64_t unm_answer_caps(uint64_t caps)
{
	const uint64_t msg = FI_SEND | FI_RECV;
	const uint64_t rma = FI_READ | FI_WRITE | FI_REMOTE_READ |
		FI_REMOTE_WRITE;

	if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & msg))
		caps |= msg;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & rma))
		caps |= rma;
	return caps | UNM_CAPS_DOMAIN;
}

/* Return the values that the hints choose, because applications compare them
 * (MPICH aborts if threading is not the value that it asked for). */
static void unm_answer(struct fi_info *info, const struct fi_info *h)
{
	if (h == NULL)
		return;
	if (h->caps != 0)
		info->caps = unm_answer_caps(h->caps);
	info->handle = h->handle;
	if (h->tx_attr != NULL) {
		info->tx_attr->op_flags = h->tx_attr->op_flags;
		if (h->tx_attr->size != 0)
			info->tx_attr->size = h->tx_attr->size;
	}
	if (h->rx_attr != NULL) {
		info->rx_attr->op_flags = h->rx_attr->op_flags;
		if (h->rx_attr->size != 0)
			info->rx_attr->size = h->rx_attr->size;
	}
	info->tx_attr->caps = info->caps & UNM_CAPS_TX;
	info->rx_attr->caps = info->caps & (UNM_CAPS_RX | UNM_CAPS_ASKED);
	info->domain_attr->max_err_data = unm_err_data(info->caps);
	if (h->domain_attr == NULL)
		return;
	if (h->domain_attr->control_progress != FI_PROGRESS_UNSPEC)
		info->domain_attr->control_progress =
			h->domain_attr->control_progress;
	if (h->domain_attr->data_progress != FI_PROGRESS_UNSPEC)
		info->domain_attr->data_progress =
			h->domain_attr->data_progress;
	if (h->domain_attr->threading != FI_THREAD_UNSPEC)
		info->domain_attr->threading = h->domain_attr->threading;
	if (h->domain_attr->resource_mgmt != FI_RM_UNSPEC)
		info->domain_attr->resource_mgmt =
			h->domain_attr->resource_mgmt;
	if (h->domain_attr->av_type != FI_AV_UNSPEC)
		info->domain_attr->av_type = h->domain_attr->av_type;
}

/*
 * The mr_mode of the answer: the bits that the provider requires of the
 * application, which are none. FI_MR_BASIC and FI_MR_SCALABLE are choices and
 * returned as chosen. API versions before 1.5 know only these two, and "none"
 * is FI_MR_SCALABLE there. MPICH passes version 0 and expects 0.
 */
static int unm_answer_mr_mode(uint32_t version, const struct fi_info *h)
{
	int asked = h != NULL && h->domain_attr != NULL ?
		h->domain_attr->mr_mode : 0;

	if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
		return asked;
	if (h != NULL && version != 0 &&
	    FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return FI_MR_SCALABLE;
	return 0;
}

static int unm_set_addr(const struct hal_addr *addr,
			const struct hal_host *host, void **dst,
			size_t *dstlen)
{
	*dst = malloc(unm_addr_bytes());
	if (*dst == NULL)
		return -FI_ENOMEM;
	unm_addr_export(addr, host, *dst);
	*dstlen = unm_addr_bytes();
	return 0;
}

static void unm_log_node(const char *node, const char *service,
			 const char *offered)
{
	UNM_INFO(FABRIC, "no match: node %s service %s asked, offered: %s\n",
		 node != NULL ? node : "none",
		 service != NULL ? service : "none", offered);
}

/* The local address of the answer: of node and service with FI_SOURCE, else of
 * the hints, else one with iface 0: then an interface is chosen when the
 * endpoint is opened. */
static int unm_answer_src(struct fi_info *info, const char *node,
			  const char *service, uint64_t flags,
			  const struct fi_info *h)
{
	struct hal_addr addr = {
		.version = HAL_ADDR_VERSION, .uid = geteuid(),
	};
	struct hal_host host;

	if (flags & FI_SOURCE) {
		if (unm_addr_parse(node, service, flags, &addr) != 0) {
			unm_log_node(node, service, "unimem://board:interface,"
				     " unimem://board or this host and a "
				     "number as service, to take that "
				     "interface");
			return -FI_ENODATA;
		}
	} else if (h != NULL && h->src_addr != NULL) {
		unm_addr_import(h->src_addr, &addr, &host);	/* checked */
	}
	return unm_set_addr(&addr, NULL, &info->src_addr, &info->src_addrlen);
}

/* The peer's address of the answer: of node and service without FI_SOURCE. If
 * these are NULL or name the local address, that of the hints; else none. */
static int unm_answer_dest(struct fi_info *info, const char *node,
			   const char *service, uint64_t flags,
			   const struct fi_info *h)
{
	struct hal_addr addr = { .iface = 0 };
	struct hal_host host;

	if (!(flags & FI_SOURCE) && (node != NULL || service != NULL)) {
		if (unm_addr_parse(node, service, flags, &addr) != 0) {
			unm_log_node(node, service, "unimem://board:interface, "
				     "unimem://board or a host of the job and "
				     "a number as service, of a peer");
			return -FI_ENODATA;
		}
		if (node == NULL && addr.iface == 0)
			return 0;	/* service 0 names no peer */
		return unm_set_addr(&addr, NULL, &info->dest_addr,
				    &info->dest_addrlen);
	}
	if (h == NULL || h->dest_addr == NULL)
		return 0;
	if (!unm_addrlen_is("dest_addrlen", h->dest_addrlen))
		return -FI_ENODATA;
	unm_addr_import(h->dest_addr, &addr, &host);
	return unm_set_addr(&addr, &host, &info->dest_addr,
			    &info->dest_addrlen);
}

int unm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct fi_info *offer;
	int ret;

	ret = unm_env_load();
	if (ret != 0)
		return -FI_ENODATA;
	if (!unm_match_hints(hints, flags))
		return -FI_ENODATA;
	offer = unm_info_offer();
	if (offer == NULL)
		return -FI_ENOMEM;
	unm_answer(offer, hints);
	offer->domain_attr->mr_mode = unm_answer_mr_mode(version, hints);
	ret = unm_answer_src(offer, node, service, flags, hints);
	if (ret == 0)
		ret = unm_answer_dest(offer, node, service, flags, hints);
	if (ret != 0) {
		fi_freeinfo(offer);
		return ret;
	}
	offer->fabric_attr->api_version = version;
	*info = offer;
	return 0;
}
