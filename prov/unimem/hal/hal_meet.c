/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_meet.c - how the processes of a group find memory that they share, which
 * has no name of its own.
 *
 * Every process of a group listens on an abstract socket name of its own, but
 * never exchanges data there. A newcomer connects to a name, learns from the
 * kernel which process listens (SO_PEERCRED), and opens the memfds of that
 * process under /proc. So no process has to answer, and the memory vanishes
 * with the last process that has it. One process at a time joins: it binds the
 * name "gate" meanwhile. Names vanish with their process.
 *
 * Users: the register model (sim/hal_sim_join.c), and the cDMA engines of
 * emulated boards under the timing model (emu/hal_emu_engine.c).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "hal/hal_meet.h"

#define GATE_NAP_NS	100000		/* between tries to join */
#define GATE_NAPS	100000		/* 10 s */
#define BACKLOG		4096

/* ---- Names ------------------------------------------------------------- */

socklen_t hal_meet_name(void *name, const char *group, const char *what,
			uint64_t hash, uint64_t n)
{
	struct sockaddr_un *sun = name;
	int len;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	len = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
		       "unimem.%s.%u.%s.%016llx.%llx", group,
		       (unsigned)geteuid(), what, (unsigned long long)hash,
		       (unsigned long long)n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)len);
}

int hal_meet_socket(int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int hal_meet_bind(const char *group, const char *what, uint64_t hash,
		  uint64_t n)
{
	struct sockaddr_un sun;
	socklen_t len = hal_meet_name(&sun, group, what, hash, n);
	int fd = hal_meet_socket(SOCK_SEQPACKET), ret;

	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, len) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int hal_meet_gate(const char *group, uint64_t hash)
{
	const struct timespec nap = { 0, GATE_NAP_NS };
	int fd = -EADDRINUSE;

	for (int i = 0; i < GATE_NAPS; i++) {
		fd = hal_meet_bind(group, "gate", hash, 0);
		if (fd != -EADDRINUSE)
			break;
		nanosleep(&nap, NULL);
	}
	return fd;
}

int hal_meet_listen(int fd)
{
	return listen(fd, BACKLOG) != 0 ? -errno : 0;
}

void hal_meet_hang_up(int fd)
{
	int conn;

	while ((conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(conn);
}

/* ---- Memory ------------------------------------------------------------- */

int hal_meet_memory(pid_t pid, const char *prefix, hal_meet_memory_fn fn,
		    void *arg)
{
	static const char kind[] = "/memfd:";
	char path[32], text[128];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return errno == EMFILE ? -EMFILE : -ESRCH;
	while ((e = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, text,
				       sizeof(text) - 1);
		const char *name = text + sizeof(kind) - 1;

		text[n < 0 ? 0 : n] = '\0';
		if (strncmp(text, kind, sizeof(kind) - 1) == 0 &&
		    strncmp(name, prefix, strlen(prefix)) == 0)
			fn(arg, dirfd(dir), e->d_name, name + strlen(prefix));
	}
	closedir(dir);
	return 0;
}

/* Which process listens on name n? *pid is 0 if it is another user's. */
static int holder_of(int fd, const char *group, uint64_t hash, uint64_t n,
		     pid_t *pid)
{
	struct sockaddr_un sun;
	socklen_t len = hal_meet_name(&sun, group, "part", hash, n);
	struct ucred cred;

	if (connect(fd, (struct sockaddr *)&sun, len) != 0)
		return -errno;
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	*pid = cred.uid == geteuid() ? cred.pid : 0;
	return 0;
}

int hal_meet_find(const char *group, uint64_t hash, uint64_t parts,
		  int (*take)(void *arg, pid_t pid), void *arg)
{
	int found = -ESRCH, fd = -1;

	for (uint64_t n = 0; n < parts; n++) {
		pid_t pid = 0;
		int ret;

		if (fd < 0)
			fd = hal_meet_socket(SOCK_SEQPACKET);
		if (fd < 0)
			return fd;
		ret = holder_of(fd, group, hash, n, &pid);
		if (ret == -ECONNREFUSED)
			continue;
		close(fd);
		fd = -1;
		if (ret == -EAGAIN)	/* one listens, its backlog is full */
			found = -EAGAIN;
		if (ret != 0 || pid == 0)
			continue;
		ret = take(arg, pid);
		if (ret != -ESRCH)
			return ret;
	}
	if (fd >= 0)
		close(fd);
	return found;
}
