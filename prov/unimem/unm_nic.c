/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_nic.c - fi_nic(3): describes the network interface behind an answer of
 * fi_getinfo(3), by the parameters alone: fi_getinfo() opens no HAL backend, so
 * facts that only the backend knows (which backend is found, the board of this
 * rank) are left out.
 *
 * All answers share one struct fid_nic, which exists until the provider is
 * unloaded: a fi_dupinfo() that runs out of memory closes the object of the
 * original (seen in libfabric 1.17), and the application closes it again.
 * fi_dupinfo() makes copies with FI_DUP; each part of a copy is allocated
 * separately, as libfabric does it, and fi_close() frees the copy.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_env.h"
#include "unm_nic.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "util/unm_list.h"

/* ---- Parts ----------------------------------------------------------- */

static struct fid_nic *unm_nic_of(const struct fid *fid)
{
	return unm_container(fid, struct fid_nic, fid);
}

static void unm_nic_free(struct fid_nic *nic)
{
	if (nic->device_attr != NULL) {
		free(nic->device_attr->name);
		free(nic->device_attr->device_id);
		free(nic->device_attr->device_version);
		free(nic->device_attr->vendor_id);
		free(nic->device_attr->driver);
		free(nic->device_attr->firmware);
	}
	if (nic->link_attr != NULL) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
}

/* Copy a string, which may be NULL. False: no memory. */
static bool unm_nic_text(char **to, const char *from)
{
	*to = from != NULL ? strdup(from) : NULL;
	return from == NULL || *to != NULL;
}

static bool unm_nic_device(struct fi_device_attr *to,
			   const struct fi_device_attr *from)
{
	return unm_nic_text(&to->name, from->name) &&
		unm_nic_text(&to->device_id, from->device_id) &&
		unm_nic_text(&to->device_version, from->device_version) &&
		unm_nic_text(&to->vendor_id, from->vendor_id) &&
		unm_nic_text(&to->driver, from->driver) &&
		unm_nic_text(&to->firmware, from->firmware);
}

static bool unm_nic_link(struct fi_link_attr *to,
			 const struct fi_link_attr *from)
{
	to->mtu = from->mtu;
	to->speed = from->speed;
	to->state = from->state;
	return unm_nic_text(&to->address, from->address) &&
		unm_nic_text(&to->network_type, from->network_type);
}

static struct fi_ops unm_ops_nic;

/* Copy an object; parts that the original lacks are zero. NULL: no memory. */
static struct fid_nic *unm_nic_dup(const struct fid_nic *from)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (nic == NULL)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &unm_ops_nic;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr == NULL || nic->bus_attr == NULL ||
	    nic->link_attr == NULL)
		goto nomem;
	if (from->bus_attr != NULL)
		*nic->bus_attr = *from->bus_attr;
	if (from->device_attr != NULL &&
	    !unm_nic_device(nic->device_attr, from->device_attr))
		goto nomem;
	if (from->link_attr != NULL &&
	    !unm_nic_link(nic->link_attr, from->link_attr))
		goto nomem;
	return nic;
nomem:
	unm_nic_free(nic);
	return NULL;
}

/* ---- Operations ------------------------------------------------------ */

static _Atomic(struct fid_nic *) unm_nic_shared;

static int unm_nic_close(struct fid *fid)
{
	struct fid_nic *nic = unm_nic_of(fid);

	/* the pointer is only compared, so no order is needed */
	if (nic != atomic_load_explicit(&unm_nic_shared, memory_order_relaxed))
		unm_nic_free(nic);
	return 0;
}

static int unm_nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic *nic;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	nic = unm_nic_dup(unm_nic_of(fid));
	if (nic == NULL)
		return -FI_ENOMEM;
	*(struct fid_nic **)arg = nic;	/* the argument of fi_dupinfo() */
	return 0;
}

/* Append to the text in the buffer, as far as it fits. */
__attribute__((format(printf, 3, 4)))
static void unm_nic_add(char *buf, size_t len, const char *fmt, ...)
{
	size_t used = strnlen(buf, len);
	va_list ap;

	va_start(ap, fmt);
	if (used < len)
		vsnprintf(buf + used, len - used, fmt, ap);
	va_end(ap);
}

static void unm_nic_line(char *buf, size_t len, const char *name,
			 const char *value)
{
	unm_nic_add(buf, len, "            %s: %s\n", name,
		    value != NULL ? value : "(null)");
}

/* In the layout that libfabric uses for fi_info -v. */
static int unm_nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = unm_nic_of(fid);
	const struct fi_device_attr *d = nic->device_attr;
	const struct fi_link_attr *l = nic->link_attr;

	unm_nic_add(buf, len, "    nic:\n");
	if (d != NULL) {
		unm_nic_add(buf, len, "        fi_device_attr:\n");
		unm_nic_line(buf, len, "name", d->name);
		unm_nic_line(buf, len, "device_id", d->device_id);
		unm_nic_line(buf, len, "device_version", d->device_version);
		unm_nic_line(buf, len, "vendor_id", d->vendor_id);
		unm_nic_line(buf, len, "driver", d->driver);
		unm_nic_line(buf, len, "firmware", d->firmware);
	}
	if (nic->bus_attr != NULL) {
		unm_nic_add(buf, len, "        fi_bus_attr:\n");
		unm_nic_line(buf, len, "bus_type", "FI_BUS_UNKNOWN");
	}
	if (l != NULL) {
		unm_nic_add(buf, len, "        fi_link_attr:\n");
		unm_nic_line(buf, len, "address", l->address);
		unm_nic_add(buf, len, "            mtu: %zu\n", l->mtu);
		unm_nic_add(buf, len, "            speed: %zu\n", l->speed);
		unm_nic_line(buf, len, "state", l->state == FI_LINK_UP ?
			     "FI_LINK_UP" : l->state == FI_LINK_DOWN ?
			     "FI_LINK_DOWN" : "FI_LINK_UNKNOWN");
		unm_nic_line(buf, len, "network_type", l->network_type);
	}
	return 0;
}

static struct fi_ops unm_ops_nic = {
	.size = sizeof(struct fi_ops),
	.close = unm_nic_close,
	.bind = unm_no_bind,
	.control = unm_nic_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_nic_tostr,
	.ops_set = unm_no_ops_set,
};

/* ---- The shared object ----------------------------------------------- */

/* The board of this process, if the parameters determine it; else -1. */
static int unm_nic_board(const struct hal_params *params)
{
	bool one = params->boards == 1 ||
		(params->boards == 0 && strcmp(params->hal, "emu") == 0 &&
		 strcmp(params->profile, "host") == 0);


	if (params->net[0] != '\0')
		return -1;		/* may be numbered through all hosts */
	return params->board >= 0 ? params->board : one ? 0 : -1;
}

struct fid_nic *unm_nic_new(void)
{
	const struct hal_params *params = &g_unm_env.hal;
	bool found = strcmp(params->hal, "auto") == 0;
	int board = unm_nic_board(params);
	char name[32], address[32], version[16], profile[32];
	struct fi_device_attr device = {
		.name = name, .device_id = profile,
		.device_version = version, .driver = (char *)params->hal,
	};
	struct fi_bus_attr bus = { .bus_type = FI_BUS_UNKNOWN };
	struct fi_link_attr link = {
		.address = board >= 0 ? address : NULL, .state = FI_LINK_UP,
		.network_type = UNM_NAME,
	};
	struct fid_nic nic = {
		.device_attr = &device, .bus_attr = &bus, .link_attr = &link,
	};

	snprintf(name, sizeof(name), UNM_NAME "%s%s", found ? "" : "-",
		 found ? "" : params->hal);
	/* as hal_caps.profile, before the HAL is open */
	snprintf(profile, sizeof(profile), "%s%s", params->profile,
		 params->model[0] != '\0' ? "+model" : "");
	snprintf(address, sizeof(address), "unimem://%d", board);
	snprintf(version, sizeof(version), "%u.%u", FI_MAJOR(UNM_VERSION),
		 FI_MINOR(UNM_VERSION));
	return unm_nic_dup(&nic);
}

struct fid_nic *unm_nic_offer(void)
{
	struct fid_nic *none = NULL, *nic;

	/* pairs with the release below */
	nic = atomic_load_explicit(&unm_nic_shared, memory_order_acquire);
	if (nic != NULL)
		return nic;
	nic = unm_nic_new();
	if (nic == NULL)
		return NULL;
	/* pairs with the acquire above; if another thread was first, use its
	 * object */
	if (atomic_compare_exchange_strong_explicit(&unm_nic_shared, &none, nic,
						    memory_order_release,
						    memory_order_acquire))
		return nic;
	unm_nic_free(nic);
	return none;
}

void unm_nic_fini(void)
{
	struct fid_nic *nic = atomic_exchange_explicit(&unm_nic_shared, NULL,
						       memory_order_relaxed);

	if (nic != NULL)
		unm_nic_free(nic);
}
