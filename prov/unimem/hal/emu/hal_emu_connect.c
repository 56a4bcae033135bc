/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_connect.c - connecting to the name of an interface.
 *
 * Entry points: emu_sock_connect(), emu_not_there(). hal_emu_name.c defines the
 * names and their forms; the handshake that follows is in hal_emu_msg.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_connect.h"
#include "hal/emu/hal_emu_name.h"

#define FULL_ROUND	64		/* full_of_others() examines one of so
					 * many calls */

/* Was the holder of this address a peer, among those freed last? */
static bool was_met(const struct emu_if *eif, const struct hal_addr *addr)
{
	for (uint32_t i = 0; i < EMU_MET_MAX && i < eif->nmet; i++)
		if (eif->met[i] == addr->nonce)
			return true;
	return false;
}

/* The end of a former peer is nothing unusual. Where there never was a
 * connection, the processes may be in different network namespaces. */
void emu_not_there(struct emu_if *eif, const struct hal_addr *to)
{
	/* callers try to connect to a service to find out if it runs */
	bool quiet = (to->iface == HAL_IF_SERVICE &&
		      to->nonce == HAL_ADDR_ANY) ||
		     was_met(eif, to) || emu_said(eif, EMU_SAID_GONE);

	hal_log(quiet, "interface %u:%u is not found: its process has ended, "
		"or is in another network namespace (all processes of a job "
		"must share one)", to->board, to->iface);
}

/* A socket to connect with, or a negative errno after a log line. */
static int caller_open(const struct hal_addr *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int ret;

	if (fd >= 0)
		return fd;
	ret = -errno;
	hal_log(0, "cannot connect to interface %u:%u: %s%s",
		to->board, to->iface, strerror(-ret), hal_log_advice(ret, ""));
	return ret;
}

/* Connect to form k of the name of an interface. -FI_EACCES: *uid is another
 * user, who listens there; or *uid is that of this process, and the system does
 * not permit the connection. */
static int connect_form(int fd, const struct hal_addr *to, int k, uid_t *uid)
{
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, "unimem", to, k);

	if (connect(fd, (struct sockaddr *)&sun, len) == 0)
		return emu_name_listener(fd, uid);
	*uid = geteuid();
	return errno == EINTR ? -FI_EAGAIN :
	       errno == EPERM ? -FI_EACCES : -errno;
}

/*
 * Connect to the first form of the name that another user does not hold.
 * -FI_EACCES: other users hold all of them. -FI_EAGAIN: the queues of the forms
 * in *full are full, bit k for form k. *uid is the last other user found.
 */
static int connect_forms(const struct hal_addr *to, int *fd, unsigned *full,
			 uid_t *uid)
{
	int ret = -FI_ECONNREFUSED, others = 0;
	uid_t who;

	for (int k = 0; k < EMU_NAMES; k++) {
		ret = connect_form(*fd, to, k, &who);
		if (ret == -FI_EAGAIN)
			*full |= 1u << k;
		if (ret == -FI_EAGAIN || ret == -FI_ECONNREFUSED)
			continue;
		if (ret != -FI_EACCES || who == geteuid())
			return ret;
		*uid = who;
		others++;
		close(*fd);
		*fd = caller_open(to);
		if (*fd < 0)
			return *fd;
	}
	if (others == EMU_NAMES)
		return -FI_EACCES;
	return *full != 0 ? -FI_EAGAIN : -FI_ECONNREFUSED;
}

/* Are all full queues those of other users, who may never accept? Finding the
 * owners is slow where there are many sockets, so only one of FULL_ROUND calls
 * does; the other calls return false. */
static bool full_of_others(struct emu_if *eif, const struct hal_addr *to,
			   unsigned full, uid_t *uid)
{
	if (eif->nfull++ % FULL_ROUND != 0)
		return false;
	for (int k = 0; k < EMU_NAMES; k++)
		if ((full & 1u << k) &&
		    emu_name_owner(SOCK_SEQPACKET, to, k, uid) !=
		    EMU_OWNER_OTHER)
			return false;
	return true;
}

/* Log that user uid holds a name of a peer. */
static void log_skipped(struct emu_if *eif, const struct hal_addr *to, int ret,
			uid_t uid)
{
	if (ret == -FI_EACCES)
		hal_log(emu_said(eif, EMU_SAID_BLOCKED), "user %u holds all "
			"names of interface %u:%u: it cannot be reached",
			(unsigned)uid, to->board, to->iface);
	else
		hal_log(emu_said(eif, EMU_SAID_SKIPPED) ? 2 : 1, "user %u "
			"holds a name of interface %u:%u, which is skipped",
			(unsigned)uid, to->board, to->iface);
}

int emu_sock_connect(struct emu_if *eif, const struct hal_addr *to,
		     struct emu_conn **conn)
{
	int fd = caller_open(to), ret;
	uid_t self = geteuid(), uid = self;
	unsigned full = 0;

	if (fd < 0)
		return fd;
	ret = connect_forms(to, &fd, &full, &uid);
	if (ret == -FI_EAGAIN && full_of_others(eif, to, full, &uid))
		ret = -FI_ECONNREFUSED;
	if (uid != self)
		log_skipped(eif, to, ret, uid);
	if (ret == 0)
		ret = emu_conn_new(eif, fd, conn);
	else if (ret == -FI_ECONNREFUSED)
		emu_not_there(eif, to);
	if (ret != 0 && fd >= 0)
		close(fd);
	return ret;
}
