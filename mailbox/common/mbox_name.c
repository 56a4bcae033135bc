/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_name.c - the abstract socket at which the daemon of a node listens.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/mbox_name.h"

#define BACKLOG	64			/* connections that are not accepted */

/* FNV-1a */
static uint32_t checksum(uint32_t sum, const char *text)
{
	for (; *text != '\0'; text++)
		sum = (sum ^ (unsigned char)*text) * UINT32_C(16777619);
	return sum;
}

/* Returns the length of the address. */
static socklen_t name(const struct hal *hal, int node, int form,
		      struct sockaddr_un *sun)
{
	uint32_t sum = UINT32_C(2166136261);
	int len;

	sum = checksum(checksum(sum, hal->params.sim), hal->params.dev);
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	/* the first byte is 0: an abstract name */
	len = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
		       "unimem.mailbox.%u.%s.%s.%08x.%d.%d",
		       (unsigned)geteuid(), hal->caps.backend,
		       hal->caps.profile, sum, node, form);
	if (len > (int)sizeof(sun->sun_path) - 2)
		len = sizeof(sun->sun_path) - 2;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)len;
}

int mbox_name_listen(const struct hal *hal, int node)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	for (int form = 0; form < MBOX_NAME_FORMS; form++) {
		struct sockaddr_un sun;
		socklen_t len = name(hal, node, form, &sun);

		ret = bind(fd, (struct sockaddr *)&sun, len) == 0 ? 0 : -errno;
		if (ret != -EADDRINUSE)
			break;
	}
	if (ret == 0 && listen(fd, BACKLOG) != 0)
		ret = -errno;
	if (ret == 0)
		return fd;
	close(fd);
	return ret == -EADDRINUSE ? -EACCES : ret;
}

/* Returns a descriptor, or a negative errno. -EACCES: another user listens;
 * -EAGAIN: whoever listens has a full queue. */
static int connect_form(const struct hal *hal, int node, int form)
{
	struct ucred peer = { .pid = 0 };
	struct sockaddr_un sun;
	socklen_t len = name(hal, node, form, &sun), size = sizeof(peer);
	/* another user may listen and never accept: do not block */
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int ret;

	if (fd < 0)
		return -errno;
	do {
		ret = connect(fd, (struct sockaddr *)&sun, len);
	} while (ret != 0 && errno == EINTR);
	if (ret != 0)
		ret = -errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		ret = -errno;
	else if (peer.uid != geteuid())
		ret = -EACCES;
	else if (fcntl(fd, F_SETFL, 0) != 0)
		ret = -errno;
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

int mbox_name_connect(const struct hal *hal, int node)
{
	unsigned taken = 0, full = 0;

	for (int form = 0; form < MBOX_NAME_FORMS; form++) {
		int fd = connect_form(hal, node, form);

		if (fd == -EACCES)
			taken++;
		else if (fd == -EAGAIN)
			full++;
		else if (fd != -ECONNREFUSED)
			return fd;
	}
	if (full != 0)
		return -EAGAIN;
	return taken == MBOX_NAME_FORMS ? -EACCES : -ECONNREFUSED;
}
