/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_hold.c - a lock on the file of the network namespace, by which a process
 * shows that a process of its job lives; see gsas_hold.h.
 *
 * All users of the host can read the offsets of locks (/proc/locks). So the
 * offset is a hash of the key, from which the key cannot be computed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/gsas_hold.h"

#define HIGH_FD		64
#define PLACES		(UINT64_C(1) << 62)

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
	return h ^ h >> 31;
}

static struct flock place(short type, uint32_t uid, const uint64_t key[2])
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_len = 1,
		.l_start = (off_t)(mix(mix(mix(key[0]) ^ key[1]) ^ uid) %
				   PLACES),
	};
}

int gsas_hold_open(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), high;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

int gsas_hold_take(int fd, uint32_t uid, const uint64_t key[2])
{
	struct flock lock = place(F_RDLCK, uid, key);

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

bool gsas_hold_held(int fd, uint32_t uid, const uint64_t key[2])
{
	struct flock lock = place(F_WRLCK, uid, key);

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
