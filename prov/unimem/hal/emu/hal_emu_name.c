/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_name.c - names of interfaces, of which other users may hold some.
 *
 * An interface has two names in the abstract namespace of local sockets. The
 * first, of a datagram socket, shows which process holds the number of the
 * interface: see hal_emu_proof.c. At the second the interface listens: see
 * hal_emu_recv.c. Any user can bind any abstract name. So each name has
 * EMU_NAMES forms, numbered k. docs/hal.md, section 2, has the rule: a process
 * takes the first form that no other user holds; a process that connects tries
 * all forms in order and skips those of other users.
 *
 * The processes of one user hold at most one form of the first name, also if
 * another user releases a form meanwhile: a process that takes a form checks
 * all other forms before its bind() and again after it. If two processes take
 * different forms at the same time, at least one finds the form of the other
 * and releases its own. Because of the check before the bind(), a process that
 * tries to take a number never disturbs the one that holds it.
 *
 * The owner of a name is determined only if the name is in use. The kernel
 * shows the owners of all sockets by netlink (unix_diag). Where it does not, a
 * connection shows the owner of a socket that listens; any other name counts as
 * one of this process's user, so that a number has one holder.
 *
 * Entry points: emu_sock_name(), emu_take_number(), emu_take_any(),
 * emu_name_owner(), emu_name_listener(), emu_name_earlier().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/emu/hal_emu_name.h"

#define BACKLOG		4096
#define STATE_ESTABLISHED	1	/* net/tcp_states.h of the kernel */
#define STATE_CLOSE		7
#define STATE_LISTEN		10
#define SKIPPED_MAX	64		/* see try_skipped() */

_Static_assert(EMU_NAMES <= 10, "one digit per form");

/* Change form 0 of a name, an address of len bytes, to form k. Returns the
 * length of that. */
static socklen_t to_form(struct sockaddr_un *sun, socklen_t len, int k)
{
	char *end = (char *)sun + len;

	if (k == 0)
		return len;
	end[0] = '.';
	end[1] = (char)('0' + k);
	return len + 2;
}

socklen_t emu_sock_name(struct sockaddr_un *sun, const char *kind,
			const struct hal_addr *addr, int k)
{
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	len += (socklen_t)snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 3,
				   "%s.%u.%u.%u", kind, addr->uid, addr->board,
				   addr->iface);
	return to_form(sun, len, k);
}

static socklen_t typed_name(struct sockaddr_un *sun, int type,
			    const struct hal_addr *addr, int k)
{
	return emu_sock_name(sun, type == SOCK_DGRAM ? "unimem.held" :
			     "unimem", addr, k);
}

/* ---- Owners of all sockets, from the kernel ----------------------------- */

/* A socket that has an abstract name. */
struct named {
	int type;
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	size_t len;			/* of name, its first byte is 0 */
	uid_t uid;			/* user who made the socket */
};

typedef void (*named_fn)(const struct named *n, void *arg);

/* Call fn for one socket, unless the socket was accepted: it then has the name
 * of the socket that listened. */
static void show_one(const struct nlmsghdr *h, named_fn fn, void *arg)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	const char *at = (const char *)(m + 1);
	struct named n = { .type = m->udiag_type };
	bool owned = false;

	if (m->udiag_type != SOCK_DGRAM && m->udiag_state == STATE_ESTABLISHED)
		return;
	while (left >= sizeof(struct nlattr)) {
		const struct nlattr *a = (const struct nlattr *)at;
		size_t len = a->nla_len, step = NLMSG_ALIGN(len);

		if (len < sizeof(*a) || len > left)
			break;
		len -= sizeof(*a);
		if (a->nla_type == UNIX_DIAG_NAME && len <= sizeof(n.name)) {
			n.len = len;
			memcpy(n.name, a + 1, len);
		} else if (a->nla_type == UNIX_DIAG_UID &&
			   len == sizeof(uint32_t)) {
			memcpy(&n.uid, a + 1, len);
			owned = true;
		}
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	if (owned && n.len > 1 && n.name[0] == '\0')
		fn(&n, arg);
}

/* Call fn for the sockets in one received buffer. 1: more buffers follow; 0:
 * this was the last; -FI_EIO. */
static int show_some(const void *buf, size_t len, named_fn fn, void *arg)
{
	const struct nlmsghdr *h = buf;

	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			return -FI_EIO;
		show_one(h, fn, arg);
	}
	return 1;
}

/* Call fn for each socket of this network namespace that has an abstract name.
 * Negative errno: the kernel does not show them, or not all. */
static int show_all(named_fn fn, void *arg)
{
	struct {
		struct nlmsghdr h;
		struct unix_diag_req r;
	} ask = {
		.h = { .nlmsg_len = sizeof(ask), .nlmsg_seq = 1,
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.r = { .sdiag_family = AF_UNIX,
		       .udiag_states = 1 << STATE_ESTABLISHED |
				1 << STATE_CLOSE | 1 << STATE_LISTEN,
		       .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	union {
		struct nlmsghdr align;
		char bytes[16384];
	} buf;
	int fd, ret = 1;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return -errno;
	if (sendto(fd, &ask, sizeof(ask), 0, (struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		ret = -errno;
	while (ret == 1) {
		socklen_t from = sizeof(kernel);
		ssize_t n = recvfrom(fd, &buf, sizeof(buf), MSG_DONTWAIT,
				     (struct sockaddr *)&kernel, &from);

		if (n < 0 && errno != EINTR)
			ret = -errno;
		else if (n == 0)
			ret = -FI_EIO;
		else if (n > 0 && kernel.nl_pid == 0)
			ret = show_some(&buf, (size_t)n, fn, arg);
	}
	close(fd);
	return ret;
}

/* ---- Owner of one name -------------------------------------------------- */

struct wanted {
	int type;
	const char *name;
	size_t len;
	bool found;
	uid_t uid;
};

static void take_wanted(const struct named *n, void *arg)
{
	struct wanted *w = arg;

	if (n->type == w->type && n->len == w->len &&
	    memcmp(n->name, w->name, w->len) == 0) {
		w->found = true;
		w->uid = n->uid;
	}
}

int emu_name_listener(int fd, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	*uid = cred.uid;
	return cred.uid == geteuid() ? 0 : -FI_EACCES;
}

/* Does another user, *uid, listen at this name? Connects to find out, for
 * kernels that do not show the owner. */
static bool other_listens(const struct sockaddr_un *sun, socklen_t len,
			  uid_t *uid)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	bool other;

	if (fd < 0)
		return false;
	other = connect(fd, (const struct sockaddr *)sun, len) == 0 &&
		emu_name_listener(fd, uid) == -FI_EACCES;
	close(fd);
	return other;
}

enum emu_owner emu_name_owner(int type, const struct hal_addr *addr, int k,
			      uid_t *uid)
{
	struct sockaddr_un sun;
	socklen_t len = typed_name(&sun, type, addr, k);
	struct wanted w = {
		.type = type, .name = sun.sun_path,
		.len = len - offsetof(struct sockaddr_un, sun_path),
	};

	if (show_all(take_wanted, &w) == 0 || w.found) {
		if (!w.found || w.uid == geteuid())
			return EMU_OWNER_OURS;
		*uid = w.uid;
		return EMU_OWNER_OTHER;
	}
	return type == SOCK_SEQPACKET && other_listens(&sun, len, uid) ?
	       EMU_OWNER_OTHER : EMU_OWNER_OURS;
}

/* ---- One holder of a number --------------------------------------------- */

/*
 * Does a process of this user hold one of the forms 0 to last, except form k,
 * of the name "unimem.held" of a number? connect() on eif->proof_fd fails with
 * ECONNREFUSED if no socket has the name; only if one has is the owner
 * determined. The socket stays shut down, also if it gets connected.
 */
static bool our_user_holds(struct emu_if *eif, const struct hal_addr *addr,
			   int last, int k)
{
	struct sockaddr_un sun;
	socklen_t len = typed_name(&sun, SOCK_DGRAM, addr, 0);
	uid_t uid;

	for (int j = 0; j <= last; j++) {
		if (j == k ||
		    (connect(eif->proof_fd, (struct sockaddr *)&sun,
			     to_form(&sun, len, j)) != 0 &&
		     errno == ECONNREFUSED))
			continue;
		if (emu_name_owner(SOCK_DGRAM, addr, j, &uid) ==
		    EMU_OWNER_OURS)
			return true;
	}
	return false;
}

bool emu_name_earlier(struct emu_if *eif, const struct hal_addr *addr, int k)
{
	return k > 0 && our_user_holds(eif, addr, k - 1, k);
}

/* Does a process of this user hold a form other than k? */
static bool held_elsewhere(struct emu_if *eif, const struct hal_addr *addr,
			   int k)
{
	return our_user_holds(eif, addr, EMU_NAMES - 1, k);
}

/* ---- Taking ------------------------------------------------------------- */

/* Effort to be made where a form of a name is in use. */
enum effort {
	EFFORT_FIRST,		/* give up: the caller tries another number */
	EFFORT_ALL,		/* determine the owner, which is slow, and skip
				 * forms of other users */
};

/* Bind form k of a name. 1: another user, *uid, holds it; -FI_EADDRINUSE: this
 * user holds it, or with EFFORT_FIRST any user; other errors. */
static int bind_form(int fd, int type, const struct hal_addr *addr, int k,
		     enum effort effort, uid_t *uid)
{
	struct sockaddr_un sun;
	socklen_t len = typed_name(&sun, type, addr, k);

	if (bind(fd, (struct sockaddr *)&sun, len) == 0)
		return 0;
	if (errno != EADDRINUSE || effort == EFFORT_FIRST)
		return -errno;
	return emu_name_owner(type, addr, k, uid) == EMU_OWNER_OTHER ? 1 :
	       -FI_EADDRINUSE;
}

int emu_name_socket(struct emu_if *eif)
{
	int fds[2];

	eif->proof_fd = -1;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	close(fds[1]);
	shutdown(fds[0], SHUT_RDWR);	/* no process can send to it */
	eif->proof_fd = fds[0];
	return 0;
}

/* Replace the socket by one without a name, so that its name becomes free.
 * Returns ret, or the error. */
static int renew_proof(struct emu_if *eif, int ret)
{
	int err;

	close(eif->proof_fd);
	err = emu_name_socket(eif);
	return err != 0 ? err : ret;
}

/* Take the number with eif->proof_fd. -FI_EADDRINUSE: another process holds it,
 * or a HELLO of its last holder is still unread. -FI_EACCES: other users hold
 * all forms, *uid the last one. */
static int take_proof(struct emu_if *eif, const struct hal_addr *addr,
		      enum effort effort, uid_t *uid)
{
	for (int k = 0; k < EMU_NAMES; k++) {
		int ret;

		if (held_elsewhere(eif, addr, k))
			return -FI_EADDRINUSE;
		ret = bind_form(eif->proof_fd, SOCK_DGRAM, addr, k, effort,
				uid);
		if (ret < 0)
			return ret;
		if (ret == 0)
			return held_elsewhere(eif, addr, k) ?
			       renew_proof(eif, -FI_EADDRINUSE) : 0;
	}
	return -FI_EACCES;
}

/* Listen at the name of the number. -FI_EADDRINUSE: a process of a build that
 * has no proof sockets holds the number. */
static int take_name(struct emu_if *eif, const struct hal_addr *addr,
		     enum effort effort, uid_t *uid)
{
	int ret = 1;

	for (int k = 0; k < EMU_NAMES && ret == 1; k++)
		ret = bind_form(eif->listen.fd, SOCK_SEQPACKET, addr, k,
				effort, uid);
	if (ret != 0)
		return ret < 0 ? ret : -FI_EACCES;
	HAL_FAULT_POINT(HAL_FAULT_POINT_BOUND);
	return listen(eif->listen.fd, BACKLOG) != 0 ? -errno : 0;
}

/* Take a number, and listen. *uid is another user who holds a form of a name,
 * if one does, else the user of this process. */
static int take_one(struct emu_if *eif, uint32_t iface, enum effort effort,
		    uid_t *uid)
{
	struct hal_addr addr = eif->i.addr;
	uid_t self = geteuid();
	int ret;

	*uid = self;
	addr.iface = iface;
	ret = take_proof(eif, &addr, effort, uid);
	if (ret != 0)
		return ret;
	eif->i.addr.iface = iface;
	ret = take_name(eif, &addr, effort, uid);
	if (ret == 0 && *uid != self)
		hal_log(0, "user %u holds a name of interface %u:%u, which is "
			"skipped", (unsigned)*uid, addr.board, iface);
	return ret == -FI_EADDRINUSE || ret == -FI_EACCES ?
	       renew_proof(eif, ret) : ret;
}

static void cannot_take(const struct emu_if *eif, int ret)
{
	hal_log(0, "cannot take an interface of board %u: %s",
		eif->i.addr.board, strerror(-ret));
}

int emu_take_number(struct emu_if *eif, uint32_t number)
{
	uid_t uid;
	int ret = take_one(eif, number, EFFORT_ALL, &uid);

	if (ret == -FI_EADDRINUSE && number == HAL_IF_SERVICE) {
		hal_log(1, "board %u has an atomic service already",
			eif->i.addr.board);
		return -FI_EBUSY;
	}
	if (ret == -FI_EADDRINUSE)
		hal_log(0, "interface %u:%u is in use: wait for its holder to "
			"end, or choose another number",
			eif->i.addr.board, number);
	else if (ret == -FI_EACCES && uid != geteuid())
		hal_log(0, "user %u holds all names of interface %u:%u: "
			"processes of that user must end first, or this user's "
			"run in a network namespace of their own",
			(unsigned)uid, eif->i.addr.board, number);
	else if (ret != 0)
		cannot_take(eif, ret);
	return ret;
}

/* ---- Any number --------------------------------------------------------- */

/* Numbers of a board of which other users hold a name. */
struct skipped {
	const struct hal_addr *addr;
	uint32_t ifs, n;
	uint32_t number[SKIPPED_MAX];
	uid_t uid;
};

static void take_skipped(const struct named *n, void *arg)
{
	struct skipped *s = arg;
	char text[sizeof(n->name)];
	unsigned uid, board, iface;

	if (n->uid == geteuid() || s->n == SKIPPED_MAX)
		return;
	memcpy(text, n->name + 1, n->len - 1);
	text[n->len - 1] = '\0';
	if (sscanf(text, n->type == SOCK_DGRAM ? "unimem.held.%u.%u.%u" :
		   "unimem.%u.%u.%u", &uid, &board, &iface) != 3 ||
	    uid != s->addr->uid || board != s->addr->board || iface == 0 ||
	    iface > s->ifs)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->number[i] == iface)
			return;
	s->uid = n->uid;
	s->number[s->n++] = iface;
}

/* No number has all its names free: try the numbers of which another user holds
 * a form of a name. */
static int try_skipped(struct emu_if *eif, uint32_t ifs)
{
	struct skipped s = { .addr = &eif->i.addr, .ifs = ifs };
	uid_t uid;

	show_all(take_skipped, &s);
	for (uint32_t i = 0; i < s.n; i++) {
		int ret = take_one(eif, s.number[i], EFFORT_ALL, &uid);

		if (ret != -FI_EADDRINUSE && ret != -FI_EACCES)
			return ret;
	}
	if (s.n != 0)
		hal_log(0, "user %u holds names of interfaces of board %u",
			(unsigned)s.uid, eif->i.addr.board);
	return -FI_EADDRINUSE;
}

/* The search for a free number starts at a number that no other local rank
 * starts at, if each opens as many interfaces as this process. */
int emu_take_any(struct emu_if *eif)
{
	struct hal_emu *emu = eif->emu;
	uint32_t ifs = emu->hal.caps.ifs_per_board;
	int ret = -FI_EADDRINUSE;
	uint32_t k, start;
	uid_t uid;

	/* relaxed: a counter orders nothing */
	k = atomic_fetch_add_explicit(&emu->ifs_opened, 1,
				      memory_order_relaxed);
	start = (uint32_t)emu->start +
		k * (uint32_t)(emu->nranks > 0 ? emu->nranks : 1);
	for (uint32_t i = 0; i < ifs && ret == -FI_EADDRINUSE; i++)
		ret = take_one(eif, (start + i) % ifs + 1, EFFORT_FIRST, &uid);
	if (ret == -FI_EADDRINUSE)
		ret = try_skipped(eif, ifs);
	if (ret == -FI_EADDRINUSE) {
		hal_log(0, "board %u has no free interface (%u of %u in use): "
			"start fewer processes per board, set FI_UNIMEM_BOARDS"
			"%s", eif->i.addr.board, ifs, ifs,
			ifs < 65535 ? ", or use FI_UNIMEM_PROFILE=host" : "");
		return -FI_EBUSY;
	}
	if (ret != 0)
		cannot_take(eif, ret);
	return ret;
}
