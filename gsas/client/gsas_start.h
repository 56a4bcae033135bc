/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_start.h - start the service of an emulated board at first use. On a
 * device the system starts it. Private to libgsas.
 */
#ifndef GSAS_START_H
#define GSAS_START_H

/*
 * Run "gsasd --board N --auto" and wait until the service is ready or has
 * failed. The service is no child of this process and has none of its
 * descriptors. It is no error if another process starts the service at the same
 * time. 0; -FI_ECONNREFUSED: failed, the reason is logged; -errno.
 */
int gsas_start_service(unsigned board);

#endif /* GSAS_START_H */
