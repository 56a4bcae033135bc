/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_hold.c - a lock on the file of the network namespace, by which a process
 * shows that a process of its job lives; see gsas_hold.h.
 *
 * All users of the host can read the offsets of locks (/proc/locks). So the
 * offset is a hash of the key, from which the key cannot be computed.
 *
 * All users can also set locks on the file. F_OFD_GETLK returns any one of the
 * locks at a place, and a lock over many places may hide that of a process of
 * the job. Then the list of all locks decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/gsas_hold.h"

#define HIGH_FD		64
#define PLACES		(UINT64_C(1) << 62)
#define LOCKS_MAX	1024		/* locks read in listed() */

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

/* Does /proc/locks list a lock of this place only? true as well if it cannot be
 * known: more than LOCKS_MAX locks are not read, because any user may set so
 * many that the list takes long. */
static bool listed(int fd, uint64_t at)
{
	FILE *list = fopen("/proc/locks", "re");
	bool found = false;
	char line[160];
	struct stat st;
	int n = 0;

	if (list == NULL)
		return true;
	if (fstat(fd, &st) != 0)
		found = true;
	while (!found && fgets(line, sizeof(line), list) != NULL) {
		uint64_t inode, first, last;
		unsigned major_id, minor_id;

		found = ++n > LOCKS_MAX ||
			(sscanf(line, "%*u: OFDLCK %*s %*s %*d %x:%x:%" SCNu64
				" %" SCNu64 " %" SCNu64, &major_id, &minor_id,
				&inode, &first, &last) == 5 &&
			 major_id == major(st.st_dev) &&
			 minor_id == minor(st.st_dev) && inode == st.st_ino &&
			 first == at && last == at);
	}
	fclose(list);
	return found;
}

bool gsas_hold_held(int fd, uint32_t uid, const uint64_t key[2])
{
	struct flock lock = place(F_WRLCK, uid, key);
	off_t at = lock.l_start;

	/* EINVAL: the kernel has no such locks, so no process holds a job */
	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return errno != EINVAL;
	if (lock.l_type == F_UNLCK)
		return false;
	return lock.l_len == 1 || listed(fd, (uint64_t)at);
}
