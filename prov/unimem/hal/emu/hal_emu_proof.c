/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_proof.c - who is at the other end.
 *
 * An interface has a second name, and a socket bound to it that travels with
 * every hello: whoever has made a socket of that name holds the interface. The
 * name lives as long as one such descriptor does, also on its way. So nobody
 * else can take the number while a hello of its last holder is unread, and
 * what the receiver finds is true whenever it looks.
 *
 * The socket is one end of a pair of datagram sockets: what the kernel says of
 * its maker is said for ever. A listening socket is that of whoever called
 * listen() last, and those who were handed it may; an accepted one keeps the
 * name when its listener is gone and the name is somebody else's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hal/emu/hal_emu_name.h"
#include "hal/emu/hal_emu_proof.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77		/* Linux 6.5 */
#endif
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71		/* Linux 5.14 */
#endif
#define PIDFS_MAGIC_NR	0x50494446	/* linux/magic.h, Linux 6.9 */

/* ---- Processes ------------------------------------------------------- */

/* The process at the other end of a socket, if the kernel tells: pidfd. */
int emu_peer_pidfd(int sock, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;		/* close-on-exec by birth */
	if (errno == ENOPROTOOPT && pid > 0)
		fd = pidfd_open(pid, 0);
	else
		fd = -1;
	return fd >= 0 ? fd : -errno;
}

/* Its number in the pid namespace of /proc, 0: none. -ESRCH: it ended; -ENOENT:
 * there is no telling; -FI_EMFILE: not now; -FI_EINVAL: no pidfd. */
static int pidfd_pid(int pidfd)
{
	char path[48], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return -FI_EMFILE;
	if (fd < 0)
		/* no procfs; one of a namespace beyond our reach is one too */
		return pidfd_send_signal(pidfd, 0, NULL, 0) == 0 ||
		       errno == ESRCH || errno == EPERM || errno == EINVAL ?
		       -ENOENT : -FI_EINVAL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "\nPid:");
	if (at == NULL)
		return -FI_EINVAL;
	n = strtol(at + 5, NULL, 10);
	return n >= 0 ? (int)n : -ESRCH;
}

/* Are numbers of processes in /proc those of our own pid namespace? */
bool emu_proc_ours(const struct hal_emu *emu)
{
	return pidfd_pid(emu->pidfd) == emu->pid;
}

enum same { SAME_NO, SAME_YES, SAME_UNKNOWN, SAME_STARVED };

/* Are two pidfds of one process? Before pidfs there is no telling. */
static enum same same_pidfds(int a, int b)
{
	struct statfs fs;
	struct stat sa, sb;

	if (fstatfs(a, &fs) != 0 || fs.f_type != PIDFS_MAGIC_NR ||
	    fstat(a, &sa) != 0 || fstat(b, &sb) != 0)
		return SAME_UNKNOWN;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino ? SAME_YES :
	       SAME_NO;
}

static bool starved(int fd)
{
	return fd == -EMFILE || fd == -ENFILE;
}

/* Processes of other pid namespaces have no number here. */
static enum same same_makers(int a, int b)
{
	enum same same = SAME_UNKNOWN;
	int pa, pb;

	/* ended and reaped, a process has no pidfd: none then, or both */
	pa = emu_peer_pidfd(a, 0);
	pb = emu_peer_pidfd(b, 0);
	if (pa >= 0 && pb < 0) {
		close(pa);
		pa = emu_peer_pidfd(a, 0);
	}
	if (starved(pa) || starved(pb))
		same = SAME_STARVED;
	else if (pa >= 0 && pb >= 0)
		same = same_pidfds(pa, pb);
	else if (pa >= 0 || pb >= 0)
		same = SAME_NO;
	if (pa >= 0)
		close(pa);
	if (pb >= 0)
		close(pb);
	return same;
}

static int told(struct emu_if *eif, enum same same)
{
	if (same == SAME_UNKNOWN)
		hal_log(emu_said(eif, EMU_SAID_UNSEEN) ? 2 : 1,
			"a peer in another pid namespace is taken at its "
			"word: the kernel does not tell (before Linux 6.9), "
			"or it has ended");
	if (same == SAME_STARVED)
		return -FI_EMFILE;
	return same == SAME_NO ? -FI_EACCES : 0;
}

/* Is this the pidfd of who is at the other end? */
int emu_pidfd_check(const struct emu_conn *conn, int pidfd)
{
	enum same same = SAME_UNKNOWN;
	int pid = pidfd_pid(pidfd), fd;

	if (pid == -FI_EINVAL || pid == -FI_EMFILE)
		return pid;
	if (pid == -ESRCH)		/* and is told so at once */
		return 0;
	if (conn->eif->emu->proc_ours && pid >= 0 && pid != conn->pid)
		return -FI_EACCES;
	if (conn->eif->emu->proc_ours && pid > 0)
		return 0;
	fd = emu_peer_pidfd(conn->src.fd, conn->pid);
	if (starved(fd))
		same = SAME_STARVED;
	if (fd >= 0) {
		same = same_pidfds(fd, pidfd);
		close(fd);
	}
	return told(conn->eif, same);
}

/* ---- That of a peer -------------------------------------------------- */

static bool sock_is(int fd, int opt, int want)
{
	socklen_t len = sizeof(int);
	int val;

	return getsockopt(fd, SOL_SOCKET, opt, &val, &len) == 0 && val == want;
}

/* In another network namespace the same name may have another holder. */
static bool same_net(int a, int b)
{
	socklen_t la = sizeof(uint64_t), lb = sizeof(uint64_t);
	uint64_t ca = 0, cb = 0;

	if (getsockopt(a, SOL_SOCKET, SO_NETNS_COOKIE, &ca, &la) != 0)
		/* not told: an older kernel, or qemu-user, which asks for an
		 * int */
		return errno == ENOPROTOOPT || errno == EINVAL;
	return getsockopt(b, SOL_SOCKET, SO_NETNS_COOKIE, &cb, &lb) == 0 &&
	       ca == cb;
}

/* Which form of the name of an interface a socket has; -1: none. */
static int form_of(int fd, const struct hal_addr *addr)
{
	struct sockaddr_un want, sun;
	socklen_t len = sizeof(sun);

	memset(&sun, 0, sizeof(sun));
	if (getsockname(fd, (struct sockaddr *)&sun, &len) != 0)
		return -1;
	for (int k = 0; k < EMU_NAMES; k++)
		if (emu_sock_name(&want, "unimem.held", addr, k) == len &&
		    memcmp(&sun, &want, len) == 0)
			return k;
	return -1;
}

/* Does this socket show that who is at the other end holds an interface? */
int emu_proof_check(const struct emu_conn *conn, const struct hal_addr *addr,
		    int fd)
{
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	int k;

	if (!sock_is(fd, SO_DOMAIN, AF_UNIX) ||
	    !sock_is(fd, SO_TYPE, SOCK_DGRAM) ||
	    !same_net(conn->src.fd, fd))
		return -FI_EACCES;
	k = form_of(fd, addr);
	if (k < 0 || emu_name_earlier(conn->eif, addr, k))
		return -FI_EACCES;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 ||
	    cred.uid != geteuid() || cred.pid != conn->pid)
		return -FI_EACCES;
	if (cred.pid > 0)
		return 0;
	return told(conn->eif, same_makers(conn->src.fd, fd));
}

/* ---- What a process is known by ------------------------------------------ */

int emu_peer_process(struct hal_peer *hp, uint64_t *id)
{
	const struct emu_peer *peer = emu_peer(hp);
	struct statfs fs;
	struct stat st;
	int fd;

	if (hp->dead || peer->pidsrc.fd < 0)
		return -FI_ECONNRESET;
	if (fstatfs(peer->pidsrc.fd, &fs) == 0 &&
	    fs.f_type == PIDFS_MAGIC_NR && fstat(peer->pidsrc.fd, &st) == 0)
		*id = st.st_ino;
	else if (peer->pid > 0)
		*id = (uint64_t)peer->pid;
	else
		return -FI_ENOSYS;	/* in another pid namespace */
	fd = fcntl(peer->pidsrc.fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -FI_EMFILE : fd;
}
