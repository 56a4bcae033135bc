/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_nic.h - the network interface card of an offer. */
#ifndef UNM_NIC_H
#define UNM_NIC_H

#include <rdma/fabric.h>

/* As the parameters say (unm_env_load() was called). NULL: no memory. All
 * offers have the same one; closing it does nothing. Thread-safe. */
struct fid_nic *unm_nic_offer(void);
/* One that fi_close() frees. */
struct fid_nic *unm_nic_new(void);
/* No call is made any more: the shared one goes. */
void unm_nic_fini(void);

#endif /* UNM_NIC_H */
