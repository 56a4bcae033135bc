/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_proof.c - which process is at the other end of a connection.
 *
 * Entry points: emu_proof_check(), emu_pidfd_check(), emu_peer_pidfd(),
 * emu_proc_ours(), emu_peer_process().
 *
 * An interface has a proof socket, bound to the name "unimem.held" of its
 * number (hal_emu_name.c). Each HELLO carries a descriptor of the proof socket:
 * the process that has made a socket of that name holds the interface. The name
 * is in use as long as one such descriptor exists, also in an unread message.
 * So no other process can take the number while a HELLO of its last holder is
 * unread, and the check may come at any time after the HELLO was sent.
 *
 * The proof socket is one end of a pair of datagram sockets: the kernel reports
 * the process that made the pair as SO_PEERCRED, which never changes. Other
 * sockets prove nothing. For a listening socket the kernel reports the last
 * process that called listen(), which any process with a descriptor can do. An
 * accepted socket keeps the name also when its listener is closed and another
 * process has the name.
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

int emu_peer_pidfd(int sock, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;		/* the kernel sets close-on-exec */
	if (errno == ENOPROTOOPT && pid > 0)
		fd = pidfd_open(pid, 0);
	else
		fd = -1;
	return fd >= 0 ? fd : -errno;
}

/* The number of a pidfd's process in the pid namespace of /proc; 0: it has none
 * there. -ESRCH: it has ended; -ENOENT: not known; -FI_EMFILE: no free
 * descriptor for the check; -FI_EINVAL: this is no pidfd. */
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
		/* without /proc: each of these results shows a pidfd, EINVAL
		 * one of a pid namespace that is not below ours */
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

bool emu_proc_ours(const struct hal_emu *emu)
{
	return pidfd_pid(emu->pidfd) == emu->pid;
}

/* Are two processes the same? SAME_STARVED: no free descriptor to find out. */
enum same { SAME_NO, SAME_YES, SAME_UNKNOWN, SAME_STARVED };

/* Are two pidfds of one process? Not known before pidfs. */
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

/* Does the kernel report the same process for two sockets? For processes of
 * other pid namespaces, which have no number here. */
static enum same same_makers(int a, int b)
{
	enum same same = SAME_UNKNOWN;
	int pa, pb;

	/* A process that has ended and was reaped has no pidfd. If it ended
	 * between the two calls, repeat the first one: then both fail. */
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

/* 0, -FI_EACCES or -FI_EMFILE for an answer; logs SAME_UNKNOWN, which counts as
 * the same process. */
static int same_result(struct emu_if *eif, enum same same)
{
	if (same == SAME_UNKNOWN)
		hal_log(emu_said(eif, EMU_SAID_UNSEEN) ? 2 : 1,
			"the process of a peer in another pid namespace is "
			"not verified: the kernel does not identify it "
			"(before Linux 6.9), or it has ended");
	if (same == SAME_STARVED)
		return -FI_EMFILE;
	return same == SAME_NO ? -FI_EACCES : 0;
}

int emu_pidfd_check(const struct emu_conn *conn, int pidfd)
{
	enum same same = SAME_UNKNOWN;
	int pid = pidfd_pid(pidfd), fd;

	if (pid == -FI_EINVAL || pid == -FI_EMFILE)
		return pid;
	if (pid == -ESRCH)		/* the epoll set reports its end */
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
	return same_result(conn->eif, same);
}

/* ---- The proof socket of a peer -------------------------------------- */

static bool sock_is(int fd, int opt, int want)
{
	socklen_t len = sizeof(int);
	int val;

	return getsockopt(fd, SOL_SOCKET, opt, &val, &len) == 0 && val == want;
}

/* Are two sockets of one network namespace? In another one the same name may
 * have another holder. */
static bool same_net(int a, int b)
{
	socklen_t la = sizeof(uint64_t), lb = sizeof(uint64_t);
	uint64_t ca = 0, cb = 0;

	if (getsockopt(a, SOL_SOCKET, SO_NETNS_COOKIE, &ca, &la) != 0)
		/* not known: an older kernel, or qemu-user, which expects an
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
	return same_result(conn->eif, same_makers(conn->src.fd, fd));
}

/* ---- Identity of a process ----------------------------------------------- */

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
