/* SPDX-License-Identifier: BSD-2-Clause */
/* procs_mem.c - allocate and register memory that peers access, see procs.h */
#include "fi_ext_unimem.h"
#include "lib/procs.h"

void *node_alloc(struct node *n, size_t len)
{
	struct fi_unimem_mem_ops *ops;
	void *mem = NULL;

	FI(fi_open_ops(&n->domain->fid, FI_UNIMEM_MEM, 0, (void **)&ops,
		       NULL));
	FI(ops->alloc(n->domain, len, 4096, 0, &mem));
	return mem;
}

struct fid_mr *node_reg(struct node *n, void *mem, size_t len, uint64_t key)
{
	struct fid_mr *mr;

	FI(fi_mr_reg(n->domain, mem, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		     key, 0, &mr, NULL));
	return mr;
}
