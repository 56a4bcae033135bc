/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_key.c - reads the key file.
 *
 * hal_net_key.h declares the entry points. The handshake that uses the key is
 * in hal_net_auth.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_key.h"

#define FILE_MAX	4096		/* bytes of a key file, at most */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int net_key_parse(const char *text, size_t len, struct net_key *key)
{
	struct net_key k = { .len = 0 };
	size_t n = 0;

	while (n < len && digit(text[n]) >= 0)
		n++;
	if (n < NET_KEY_MIN || n > NET_KEY_MAX || n % 2 != 0)
		return -FI_EINVAL;
	for (size_t i = n; i < len; i++)
		if (text[i] != ' ' && text[i] != '\n' && text[i] != '\r')
			return -FI_EINVAL;
	for (size_t i = 0; i < n; i += 2)
		k.bytes[k.len++] = (uint8_t)(digit(text[i]) << 4 |
					     digit(text[i + 1]));
	*key = k;
	explicit_bzero(&k, sizeof(k));
	return 0;
}

/* Is the file one that only this user can read and write? Logs if not. */
static int check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		hal_log(0, "key file %s: no regular file", path);
		return -FI_EINVAL;
	}
	if (st.st_uid != geteuid()) {
		hal_log(0, "key file %s belongs to user %u, not to user %u of "
			"this process: refused", path, (unsigned)st.st_uid,
			(unsigned)geteuid());
		return -FI_EINVAL;
	}
	if ((st.st_mode & 077) == 0)
		return 0;
	hal_log(0, "key file %s has mode %04o, so others may use it: refused; "
		"chmod 600 %s", path, (unsigned)st.st_mode & 07777, path);
	return -FI_EINVAL;
}

static int read_file(int fd, const char *path, struct net_key *key)
{
	char text[FILE_MAX];
	ssize_t n;
	int ret = check_file(fd, path);

	if (ret != 0)
		return ret;
	n = read(fd, text, sizeof(text));
	ret = n < 0 || n == (ssize_t)sizeof(text) ? -FI_EINVAL :
		net_key_parse(text, (size_t)n, key);
	explicit_bzero(text, sizeof(text));
	if (ret != 0)
		hal_log(0, "key file %s: use %d to %d hex digits, as openssl "
			"rand -hex 32 writes them", path, NET_KEY_MIN,
			NET_KEY_MAX);
	return ret;
}

int net_key_load(const char *path, struct net_key *key)
{
	const char *home = secure_getenv("HOME");
	bool asked = path[0] != '\0';
	char own[PATH_MAX];
	int fd, ret;

	key->len = 0;
	if (!asked) {
		if (home == NULL || home[0] == '\0')
			return 0;
		snprintf(own, sizeof(own), "%s/.unimem/key", home);
		path = own;
	}
	/* a fifo must not block the open */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && !asked && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0) {
		hal_log(0, "key file %s: %s", path, strerror(errno));
		return -FI_EINVAL;
	}
	ret = read_file(fd, path, key);
	close(fd);
	return asked ? ret : 0;
}

void net_key_secret(const struct net_key *key, net_mac_fn mac,
		    uint8_t secret[NET_SECRET])
{
	/* keyed with a fixed text, so that a key of any length gives the bytes
	 * of a secret, which are of no use elsewhere */
	static const uint8_t label[NET_SECRET] = "unimem key file";
	uint8_t out[NET_MAC];

	mac(out, label, sizeof(label), key->bytes, key->len);
	memcpy(secret, out, NET_SECRET);
	explicit_bzero(out, sizeof(out));
}
