/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_nosys.c - typed stubs for what is not supported (unm_ops.h). */
#include <rdma/fi_errno.h>

#include "unm_ops.h"

/* One stub: return type, name, unnamed parameters. The types come from the
 * tables below, so that a stub of the wrong shape does not compile. */
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
NO(int, unm_no_poll_open, struct fid_domain *domain, struct fi_poll_attr
	*attr, struct fid_poll **pollset)
NO(int, unm_no_stx_ctx, struct fid_domain *domain, struct fi_tx_attr
	*attr, struct fid_stx **stx, void *context)
NO(int, unm_no_srx_ctx, struct fid_domain *domain, struct fi_rx_attr
	*attr, struct fid_ep **rx_ep, void *context)
NO(int, unm_no_query_atomic, struct fid_domain *domain, enum fi_datatype
	datatype, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
NO(int, unm_no_query_collective, struct fid_domain *domain, enum
	fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags)
NO(int, unm_no_passive_ep, struct fid_fabric *fabric, struct fi_info
	*info, struct fid_pep **pep, void *context)
NO(int, unm_no_wait_open, struct fid_fabric *fabric, struct fi_wait_attr
	*attr, struct fid_wait **waitset)
NO(int, unm_no_tx_ctx, struct fid_ep *sep, int index, struct fi_tx_attr
	*attr, struct fid_ep **tx_ep, void *context)
NO(int, unm_no_rx_ctx, struct fid_ep *sep, int index, struct fi_rx_attr
	*attr, struct fid_ep **rx_ep, void *context)
NO(int, unm_no_av_set, struct fid_av *av, struct fi_av_set_attr *attr,
	struct fid_av_set **av_set, void *context)

NO(static ssize_t, unm_no_rma_read, struct fid_ep *ep, void *buf, size_t
	len, void *desc, fi_addr_t src_addr, uint64_t addr, uint64_t key, void
	*context)
NO(static ssize_t, unm_no_rma_readv, struct fid_ep *ep, const struct
	iovec *iov, void **desc, size_t count, fi_addr_t src_addr, uint64_t
	addr, uint64_t key, void *context)
NO(static ssize_t, unm_no_rma_readmsg, struct fid_ep *ep, const struct
	fi_msg_rma *msg, uint64_t flags)
NO(static ssize_t, unm_no_rma_write, struct fid_ep *ep, const void *buf,
	size_t len, void *desc, fi_addr_t dest_addr, uint64_t addr, uint64_t
	key, void *context)
NO(static ssize_t, unm_no_rma_writev, struct fid_ep *ep, const struct
	iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, uint64_t
	addr, uint64_t key, void *context)
NO(static ssize_t, unm_no_rma_writemsg, struct fid_ep *ep, const struct
	fi_msg_rma *msg, uint64_t flags)
NO(static ssize_t, unm_no_rma_inject, struct fid_ep *ep, const void
	*buf, size_t len, fi_addr_t dest_addr, uint64_t addr, uint64_t key)
NO(static ssize_t, unm_no_rma_writedata, struct fid_ep *ep, const void
	*buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr,
	uint64_t addr, uint64_t key, void *context)
NO(static ssize_t, unm_no_rma_injectdata, struct fid_ep *ep, const void
	*buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t addr,
	uint64_t key)

struct fi_ops_rma unm_ops_no_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = unm_no_rma_read,
	.readv = unm_no_rma_readv,
	.readmsg = unm_no_rma_readmsg,
	.write = unm_no_rma_write,
	.writev = unm_no_rma_writev,
	.writemsg = unm_no_rma_writemsg,
	.inject = unm_no_rma_inject,
	.writedata = unm_no_rma_writedata,
	.injectdata = unm_no_rma_injectdata,
};

NO(static ssize_t, unm_no_atomic_write, struct fid_ep *ep, const void
	*buf, size_t count, void *desc, fi_addr_t dest_addr, uint64_t addr,
	uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
NO(static ssize_t, unm_no_atomic_writev, struct fid_ep *ep, const struct
	fi_ioc *iov, void **desc, size_t count, fi_addr_t dest_addr, uint64_t
	addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void
	*context)
NO(static ssize_t, unm_no_atomic_writemsg, struct fid_ep *ep, const
	struct fi_msg_atomic *msg, uint64_t flags)
NO(static ssize_t, unm_no_atomic_inject, struct fid_ep *ep, const void
	*buf, size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op)
NO(static ssize_t, unm_no_atomic_readwrite, struct fid_ep *ep, const
	void *buf, size_t count, void *desc, void *result, void *result_desc,
	fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype
	datatype, enum fi_op op, void *context)
NO(static ssize_t, unm_no_atomic_readwritev, struct fid_ep *ep, const
	struct fi_ioc *iov, void **desc, size_t count, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, fi_addr_t dest_addr, uint64_t
	addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void
	*context)
NO(static ssize_t, unm_no_atomic_readwritemsg, struct fid_ep *ep, const
	struct fi_msg_atomic *msg, struct fi_ioc *resultv, void **result_desc,
	size_t result_count, uint64_t flags)
NO(static ssize_t, unm_no_atomic_compwrite, struct fid_ep *ep, const
	void *buf, size_t count, void *desc, const void *compare, void
	*compare_desc, void *result, void *result_desc, fi_addr_t dest_addr,
	uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
	void *context)
NO(static ssize_t, unm_no_atomic_compwritev, struct fid_ep *ep, const
	struct fi_ioc *iov, void **desc, size_t count, const struct fi_ioc
	*comparev, void **compare_desc, size_t compare_count, struct fi_ioc
	*resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr,
	uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
	void *context)
NO(static ssize_t, unm_no_atomic_compwritemsg, struct fid_ep *ep, const
	struct fi_msg_atomic *msg, const struct fi_ioc *comparev, void
	**compare_desc, size_t compare_count, struct fi_ioc *resultv, void
	**result_desc, size_t result_count, uint64_t flags)
NO(static int, unm_no_atomic_writevalid, struct fid_ep *ep, enum
	fi_datatype datatype, enum fi_op op, size_t *count)
NO(static int, unm_no_atomic_readwritevalid, struct fid_ep *ep, enum
	fi_datatype datatype, enum fi_op op, size_t *count)
NO(static int, unm_no_atomic_compwritevalid, struct fid_ep *ep, enum
	fi_datatype datatype, enum fi_op op, size_t *count)

struct fi_ops_atomic unm_ops_no_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = unm_no_atomic_write,
	.writev = unm_no_atomic_writev,
	.writemsg = unm_no_atomic_writemsg,
	.inject = unm_no_atomic_inject,
	.readwrite = unm_no_atomic_readwrite,
	.readwritev = unm_no_atomic_readwritev,
	.readwritemsg = unm_no_atomic_readwritemsg,
	.compwrite = unm_no_atomic_compwrite,
	.compwritev = unm_no_atomic_compwritev,
	.compwritemsg = unm_no_atomic_compwritemsg,
	.writevalid = unm_no_atomic_writevalid,
	.readwritevalid = unm_no_atomic_readwritevalid,
	.compwritevalid = unm_no_atomic_compwritevalid,
};
