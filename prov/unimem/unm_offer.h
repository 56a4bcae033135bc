/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_offer.h - the name, capabilities, modes, flags and limits that the
 * provider offers. unm_info.c compares hints with them.
 */
#ifndef UNM_OFFER_H
#define UNM_OFFER_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#define UNM_NAME		"unimem"
#define UNM_VERSION		FI_VERSION(0, 1)
#define UNM_ADDR_FORMAT		(FI_PROV_SPECIFIC | 0x756e)	/* hal_addr */
#define UNM_IOV_MAX		8
#define UNM_CQ_DATA_BYTES	8
#define UNM_MR_KEY_BYTES	8
#define UNM_MR_COUNT		(1 << 20)	/* no real limit */

/* FI_MR_* modes that a domain may be opened with. The provider needs none, so
 * fi_getinfo() returns none. */
#define UNM_MR_MODES	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
			 FI_MR_ENDPOINT)

#define UNM_CAPS_TX	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | \
			 FI_READ | FI_WRITE | FI_TRIGGER)
#define UNM_CAPS_RX	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | \
			 FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT | \
			 FI_TRIGGER)
#define UNM_CAPS_DOMAIN	(FI_LOCAL_COMM | FI_REMOTE_COMM)
#define UNM_CAPS	(UNM_CAPS_TX | UNM_CAPS_RX | UNM_CAPS_DOMAIN)
/* Offered only if the hints ask for it, because it turns completions of
 * messages from peers outside the address vector into error entries. */
#define UNM_CAPS_ASKED	FI_SOURCE_ERR

/* Flags of a send or receive: as default (op_flags of the attributes), and for
 * UNM_TX_MSG_FLAGS in fi_sendmsg() and its like. */
#define UNM_TX_OP_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define UNM_TX_MSG_FLAGS (UNM_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)
#define UNM_RX_OP_FLAGS	(FI_COMPLETION | FI_MULTI_RECV)

#define UNM_INJECT_MAX		4096	/* bytes; fits in the smallest
					 * receive space of any device */

#endif /* UNM_OFFER_H */
