/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_nic.h - fi_nic(3): the network interface that fi_getinfo(3) describes. */
#ifndef UNM_NIC_H
#define UNM_NIC_H

#include <rdma/fabric.h>

/* The description for fi_getinfo(3), made from the parameters; unm_env_load()
 * was called. All calls return the same object, and fi_close() on it does
 * nothing. NULL: no memory. Thread-safe. */
struct fid_nic *unm_nic_offer(void);
/* A new object with the same content, which fi_close() frees. NULL: no
 * memory. */
struct fid_nic *unm_nic_new(void);
/* Free the shared object. Called when libfabric unloads the provider. */
void unm_nic_fini(void);

#endif /* UNM_NIC_H */
