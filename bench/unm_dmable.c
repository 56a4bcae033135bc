// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_dmable.c - dmable memory for an MPI that does not know of it, by
 * LD_PRELOAD.
 *
 * It takes the place of fi_fabric(), notes the domain that MPI opens, and gets
 * memory from it by fi_unimem_mem(3). MPI_Alloc_mem() then returns such memory,
 * and with UNM_DMABLE_RECV=1 the receives into which MPI has its active
 * messages written (FI_MULTI_RECV) are posted with such memory, too: their
 * completions name the place of each message, and MPICH reads the messages
 * there. Over another provider nothing changes. For MPICH (its MPI_Info is an
 * int), and a domain that is used by one thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_unimem.h>

#define TWINS	64			/* most receive buffers */

static struct fid_domain *domain;
static struct fi_unimem_mem_ops *mem;

/* The tables of the provider, with one function replaced in each. */
static struct fi_ops_fabric fabric_ops;
static struct fi_ops_domain domain_ops;
static struct fi_ops_msg msg_ops;
static struct fi_ops_fabric *fabric_was;
static struct fi_ops_domain *domain_was;
static struct fi_ops_msg *msg_was;

/* A receive buffer of MPI, and the dmable memory that is posted for it. */
static struct {
	void *own, *twin;
} twins[TWINS];

static void *dmable(size_t bytes)
{
	void *addr;

	if (mem == NULL || mem->alloc(domain, bytes, 4096, 0, &addr) != 0)
		return NULL;
	return addr;
}

/* ---- Receives of active messages -------------------------------------- */

static void *twin_of(void *own, size_t bytes)
{
	for (int i = 0; i < TWINS; i++) {
		if (twins[i].own == NULL) {
			twins[i].own = own;
			twins[i].twin = dmable(bytes);
		}
		if (twins[i].own == own)
			return twins[i].twin != NULL ? twins[i].twin : own;
	}
	return own;
}

static ssize_t post(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct fi_msg m = *msg;
	struct iovec iov;

	if ((flags & FI_MULTI_RECV) && msg->iov_count == 1) {
		iov = msg->msg_iov[0];
		iov.iov_base = twin_of(iov.iov_base, iov.iov_len);
		m.msg_iov = &iov;
	}
	return msg_was->recvmsg(ep, &m, flags);
}

static int endpoint(struct fid_domain *dom, struct fi_info *info,
		    struct fid_ep **ep, void *context)
{
	int ret = domain_was->endpoint(dom, info, ep, context);

	if (ret == 0) {
		msg_was = (*ep)->msg;
		msg_ops = *msg_was;
		msg_ops.recvmsg = post;
		(*ep)->msg = &msg_ops;
	}
	return ret;
}

/* ---- The domain -------------------------------------------------------- */

static int open_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **dom, void *context)
{
	const char *recv = getenv("UNM_DMABLE_RECV");
	int ret = fabric_was->domain(fabric, info, dom, context);

	if (ret != 0 || mem != NULL ||
	    fi_open_ops(&(*dom)->fid, FI_UNIMEM_MEM, 0, (void **)&mem, NULL))
		return ret;
	domain = *dom;
	if (recv != NULL && recv[0] == '1') {
		domain_was = domain->ops;
		domain_ops = *domain_was;
		domain_ops.endpoint = endpoint;
		domain->ops = &domain_ops;
	}
	return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	int (*next)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	int ret;

	*(void **)&next = dlsym(RTLD_NEXT, "fi_fabric");
	ret = next(attr, fabric, context);
	if (ret == 0) {
		fabric_was = (*fabric)->ops;
		fabric_ops = *fabric_was;
		fabric_ops.domain = open_domain;
		(*fabric)->ops = &fabric_ops;
	}
	return ret;
}

/* ---- MPI_Alloc_mem, MPI_Free_mem ---------------------------------------- */

int MPI_Alloc_mem(long bytes, int info, void *buf)
{
	int (*next)(long, int, void *);
	void *addr = dmable((size_t)bytes);

	if (addr != NULL) {
		*(void **)buf = addr;
		return 0;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "MPI_Alloc_mem");
	return next(bytes, info, buf);
}

int MPI_Free_mem(void *buf)
{
	struct fi_unimem_mem_attr attr;
	int (*next)(void *);

	if (mem != NULL && mem->query(domain, buf, &attr) == 0)
		return mem->free(domain, buf) == 0 ? 0 : 1;
	*(void **)&next = dlsym(RTLD_NEXT, "MPI_Free_mem");
	return next(buf);
}
