/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_nosys.c - functions for calls that are not supported, see unm_nosys.h. */
#include <rdma/fi_errno.h>

#include "unm_nosys.h"

/* Defines one function: return type, name, parameters. A function whose type
 * differs from that of its slot in libfabric's tables does not compile. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NO(ret, name, ...) ret name(__VA_ARGS__) { return -FI_ENOSYS; }

NO(int, unm_no_bind, struct fid *fid, struct fid *bfid, uint64_t flags)
NO(int, unm_no_control, struct fid *fid, int command, void *arg)
NO(int, unm_no_ops_open, struct fid *fid, const char *name, uint64_t
	flags, void **ops, void *context)
NO(int, unm_no_tostr, const struct fid *fid, char *buf, size_t len)
NO(int, unm_no_ops_set, struct fid *fid, const char *name, uint64_t
	flags, void *ops, void *context)
NO(int, unm_no_setname, fid_t fid, void *addr, size_t addrlen)
NO(int, unm_no_getpeer, struct fid_ep *ep, void *addr, size_t *addrlen)
NO(int, unm_no_connect, struct fid_ep *ep, const void *addr, const void
	*param, size_t paramlen)
NO(int, unm_no_listen, struct fid_pep *pep)
NO(int, unm_no_accept, struct fid_ep *ep, const void *param, size_t paramlen)
NO(int, unm_no_reject, struct fid_pep *pep, fid_t handle, const void
	*param, size_t paramlen)
NO(int, unm_no_shutdown, struct fid_ep *ep, uint64_t flags)
NO(int, unm_no_join, struct fid_ep *ep, const void *addr, uint64_t
	flags, struct fid_mc **mc, void *context)
NO(int, unm_no_scalable_ep, struct fid_domain *domain, struct fi_info
	*info, struct fid_ep **sep, void *context)
NO(int, unm_no_stx_ctx, struct fid_domain *domain, struct fi_tx_attr
	*attr, struct fid_stx **stx, void *context)
NO(int, unm_no_srx_ctx, struct fid_domain *domain, struct fi_rx_attr
	*attr, struct fid_ep **rx_ep, void *context)
NO(int, unm_no_query_collective, struct fid_domain *domain, enum
	fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags)
NO(int, unm_no_passive_ep, struct fid_fabric *fabric, struct fi_info
	*info, struct fid_pep **pep, void *context)
NO(int, unm_no_tx_ctx, struct fid_ep *sep, int index, struct fi_tx_attr
	*attr, struct fid_ep **tx_ep, void *context)
NO(int, unm_no_rx_ctx, struct fid_ep *sep, int index, struct fi_rx_attr
	*attr, struct fid_ep **rx_ep, void *context)
NO(int, unm_no_av_set, struct fid_av *av, struct fi_av_set_attr *attr,
	struct fid_av_set **av_set, void *context)
