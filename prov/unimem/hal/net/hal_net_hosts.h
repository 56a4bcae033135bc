/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_hosts.h - finds the directory of this job's hosts (hal_net_dir.h),
 * the place of this host in it, and the addresses of its names; private to the
 * HAL.
 */
#ifndef HAL_NET_HOSTS_H
#define HAL_NET_HOSTS_H

#include "hal/hal_param.h"
#include "hal/net/hal_net_dir.h"

/*
 * Read the directory that FI_UNIMEM_NET_HOSTS names, else Slurm's list of the
 * job's hosts, and find this host in it. *dir is NULL if there is none, or only
 * this host is in it; dir->self, dir->asked and, if this host's line has
 * boards=, params->boards are set. 0; -FI_EINVAL after a log line; -FI_ENOMEM.
 */
int net_hosts_open(struct hal_params *params, struct net_dir **dir);

/* The host with this name or address; -1: none. May wait for the name service,
 * if the text is not one of the directory's. */
int net_hosts_find(const struct net_dir *dir, const char *name);

/* The IP address of a host, IPv4 if v4 and there is one. Waits for the name
 * service when it is called for the first time for a host with a name, and
 * again some seconds after a name was not found. 0; -FI_ENODATA, after one log
 * line for each host. Any thread. */
int net_hosts_ip(struct net_dir *dir, uint32_t host, bool v4, uint8_t ip[16]);

#endif /* HAL_NET_HOSTS_H */
