/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_connect.c - connection messages of the emulation with one flaw each: a
 * wrong field, a wrong descriptor, a false identity, another version.
 *
 * The messages are refused. The interface still exchanges packets with a
 * correct peer, and no descriptor is leaked. Random messages are in
 * fuzz/fuzz_connection.c.
 */
#include <fcntl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>

#include "hal/emu/hal_emu_name.h"
#include "lib/connect_attempts.h"

#define PIDFS_MAGIC_NR	0x50494446	/* linux/magic.h */

/* ---- One flaw each --------------------------------------------------- */

static void flaw_magic(struct attempt *l) { l->m.head.magic++; }
static void flaw_version(struct attempt *l) { l->m.head.version++; }
static void flaw_type(struct attempt *l) { l->m.head.type = EMU_LINK; }
static void flaw_bytes(struct attempt *l) { l->m.head.bytes--; }
static void flaw_short(struct attempt *l) { l->m.head.bytes = l->len -= 8; }
static void flaw_long(struct attempt *l) { l->m.head.bytes = l->len += 8; }
static void flaw_head(struct attempt *l) { l->len = 7; }
static void flaw_empty(struct attempt *l) { l->len = 0; }
static void flaw_depth(struct attempt *l) { l->m.hello.geo.depth *= 2; }
static void flaw_space(struct attempt *l) { l->m.hello.geo.space_off += 64; }
static void flaw_to(struct attempt *l) { l->m.hello.to.iface++; }
static void flaw_stale(struct attempt *l) { l->m.hello.to.nonce++; }
static void flaw_zero(struct attempt *l) { l->m.hello.from.iface = 0; }
static void flaw_iface(struct attempt *l) { l->m.hello.from.iface = ~0u; }
static void flaw_board(struct attempt *l) { l->m.hello.from.board = 0xffff; }
static void flaw_format(struct attempt *l) { l->m.hello.from.version++; }
static void flaw_user(struct attempt *l) { l->m.hello.from.uid++; }
static void flaw_other(struct attempt *l) { l->m.hello.from.iface--; }
static void flaw_any(struct attempt *l)
{
	l->m.hello.from.nonce = HAL_ADDR_ANY;
}
static void flaw_no_fds(struct attempt *l) { attempt_close_fds(l); }
static void flaw_no_proof(struct attempt *l) { close(l->fds[--l->nfds]); }
static void flaw_more_fds(struct attempt *l) { attempt_put_fd(l, 3, dup(0)); }

static void flaw_victim(struct attempt *l)
{
	l->m.hello.from = attempts.t->addr;	/* a peer that the victim
						 * knows */
}

static void flaw_pidfd_pipe(struct attempt *l)
{
	attempt_put_fd(l, 0, attempt_pipe());
}
static void flaw_pidfd_file(struct attempt *l)
{
	attempt_put_fd(l, 0, attempt_file());
}
static void flaw_link_pipe(struct attempt *l)
{
	attempt_put_fd(l, 1, attempt_pipe());
}
static void flaw_link_file(struct attempt *l)
{
	attempt_put_fd(l, 1, attempt_file());
}
static void flaw_proof_pipe(struct attempt *l)
{
	attempt_put_fd(l, 2, attempt_pipe());
}

static void flaw_pidfd_parent(struct attempt *l)
{
	attempt_put_fd(l, 0, pidfd_open(getppid(), 0));
}

static void flaw_link_pidfd(struct attempt *l)
{
	attempt_put_fd(l, 1, pidfd_open(getpid(), 0));
}

static void flaw_link_size(struct attempt *l)
{
	attempt_put_fd(l, 1, attempt_link(l->m.hello.geo.bytes - 4096));
}

static void flaw_link_sealed(struct attempt *l)
{
	int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, l->m.hello.geo.bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	attempt_put_fd(l, 1, fd);
}

static void flaw_proof_noname(struct attempt *l)
{
	attempt_put_fd(l, 2, attempt_socket(SOCK_DGRAM));
}

/* The right name, but a socket whose creator the kernel does not record. */
static void flaw_proof_single(struct attempt *l)
{
	close(l->fds[2]);
	l->fds[2] = attempt_bind(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
				"unimem.held", &l->m.hello.from);
}

/* A socket accepted from a listener with the name: it has the name although the
 * name belongs to another socket. */
static void flaw_proof_stale(struct attempt *l)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int caller = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, "unimem.held", &l->m.hello.from, 0);

	attempt_bind(listener, "unimem.held", &l->m.hello.from);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(caller, (struct sockaddr *)&sun, len), 0);
	attempt_put_fd(l, 2, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	close(listener);
	close(caller);
}

#define FLAW(f)	{ #f, flaw_##f }
static const struct flaw {
	const char *name;
	void (*make)(struct attempt *l);
} flaws[] = {
	FLAW(magic), FLAW(version), FLAW(type), FLAW(bytes), FLAW(short),
	FLAW(long), FLAW(head), FLAW(empty), FLAW(depth), FLAW(space),
	FLAW(to), FLAW(stale), FLAW(zero), FLAW(iface), FLAW(board),
	FLAW(format), FLAW(user), FLAW(other), FLAW(any), FLAW(no_fds),
	FLAW(no_proof), FLAW(more_fds), FLAW(victim), FLAW(pidfd_pipe),
	FLAW(pidfd_file), FLAW(pidfd_parent), FLAW(link_pipe),
	FLAW(link_file), FLAW(link_pidfd), FLAW(link_size), FLAW(link_sealed),
	FLAW(proof_pipe), FLAW(proof_noname), FLAW(proof_single),
	FLAW(proof_stale),
};

/* A later form of the name that proves who holds an interface is accepted only
 * while no process of this user holds an earlier form. */
static void test_later_form_of_the_name(void **state)
{
	struct hal_addr from = attempt_addr(1);
	struct sockaddr_un sun;
	struct attempt l;
	int held, later;
	socklen_t len;

	for (int k = EMU_NAMES; k > 0; k--) {
		len = emu_sock_name(&sun, "unimem.held", &from, k);
		l = attempt_hello_victim(&from);
		held = fcntl(l.fds[2], F_DUPFD_CLOEXEC, 0);
		later = attempt_socket(SOCK_DGRAM);
		assert_true(held >= 0);
		assert_int_equal(bind(later, (struct sockaddr *)&sun, len), 0);
		attempt_put_fd(&l, 2, later);
		assert_int_equal(attempt_ask(&l), -EACCES);
		close(held);
		attempts_closed();
	}
	/* not held by any process, then by its holder */
	l = attempt_hello_victim(&from);
	later = attempt_socket(SOCK_DGRAM);
	len = emu_sock_name(&sun, "unimem.held", &from, 1);
	assert_int_equal(bind(later, (struct sockaddr *)&sun, len), 0);
	attempt_put_fd(&l, 2, later);
	assert_int_equal(attempt_ask(&l), 0);
	attempts_closed();
}

static void test_one_flaw_each(void **state)
{
	struct hal_addr from = attempt_addr(1);

	for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
		struct attempt l = attempt_hello_victim(&from);

		/* without the flaw it is accepted, so the flaw is refused */
		assert_int_equal(attempt_ask(&l), 0);
		ATTEMPTS_UNTIL(attempts.dead == i + 1);
		l = attempt_hello_victim(&from);
		flaws[i].make(&l);
		if (attempt_ask(&l) >= 0)
			unit_fail("accepted: %s", flaws[i].name);
		assert_int_equal(attempts.inbound, i + 1);
		attempts_exchange();
	}
	attempts_closed();
}

/* A peer sends a message without data, but with descriptors: the peer is
 * disconnected. */
static void test_empty_message_of_a_peer(void **state)
{
	struct hal_addr from = attempt_addr(1);
	struct attempt l = attempt_hello_victim(&from);
	int conn = attempt_begin(&l);
	union emu_msg m;

	assert_int_equal(attempt_answer(conn, &m), 0);
	l = (struct attempt){ .len = 0 };
	for (int i = 0; i < 3; i++)
		attempt_put_fd(&l, i, attempt_pipe());
	attempt_send(conn, &l);
	ATTEMPTS_UNTIL(attempts.dead == 1);
	close(conn);
	attempts_closed();
}

/* ---- False identities with another process's proof -------------------- */

static void send_fd(int sock, int fd)
{
	struct attempt l = { .len = 1, .fds = { fd }, .nfds = 1 };

	attempt_send(sock, &l);
}

static int take_fd(int sock)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
			     .msg_control = &ctl,
			     .msg_controllen = sizeof(ctl) };
	int fd = -1;

	assert_int_equal(recvmsg(sock, &mh, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&mh));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(fd));
	return fd;
}

/* A process that holds an interface, and a copy of the descriptor that proves
 * it. */
static pid_t holder(const struct hal_addr *addr, int *proof)
{
	int sv[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    sv), 0);
	pid = unit_fork();
	if (pid == 0) {
		send_fd(sv[1], attempt_proof(addr));
		for (;;)
			pause();
	}
	*proof = take_fd(sv[0]);
	close(sv[0]);
	close(sv[1]);
	return pid;
}

static void test_a_proof_cannot_be_handed_on(void **state)
{
	struct hal_addr mine, other;
	struct attempt l;
	pid_t pid;
	int proof;

	mine = attempt_addr(1);
	other = attempt_addr(2);
	pid = holder(&other, &proof);
	for (int i = 0; i < 2; i++) {
		/* also after listen() and connect() on it */
		if (i == 1) {
			assert_int_not_equal(listen(proof, 1), 0);
			connect(proof, &(struct sockaddr){ AF_UNSPEC },
				sizeof(struct sockaddr));
		}
		l = attempt_hello_victim(&mine);
		l.m.hello.from = other;
		attempt_put_fd(&l, 2, dup(proof));
		assert_true(attempt_ask(&l) < 0);
	}
	unit_kill(pid);
	close(proof);
	assert_int_equal(attempts.inbound, 0);
	attempts_closed();
}

/* In a child: the same name is held by another process in another network
 * namespace. */
static int pose_from_elsewhere(const struct hal_addr *from, bool elsewhere)
{
	int conn = attempt_connect(&attempts.v->addr);
	const struct hal_addr to = attempts.v->addr;
	union emu_msg m;
	struct attempt l;

	attempts.v = NULL;		/* belongs to the parent */
	if (elsewhere && unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return 77;
	l = attempt_hello(from, &to);
	attempt_send(conn, &l);
	return attempt_answer(conn, &m) == 0 ? 0 : 1;
}

static int child_code(pid_t pid)
{
	int status = 0;

	ATTEMPTS_UNTIL(waitpid(pid, &status, WNOHANG) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_names_of_other_networks(void **state)
{
	struct hal_addr from = attempt_addr(1);

	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		pid_t pid = unit_fork();
		int code;

		if (pid == 0)
			_exit(pose_from_elsewhere(&from, elsewhere));
		code = child_code(pid);
		if (code == 77)
			print_message("no network namespace to be had\n");
		else
			assert_int_equal(code, elsewhere);
		ATTEMPTS_UNTIL(attempts.dead == 1);
	}
	attempts_closed();
}

/* ---- In a pid namespace: processes outside have no number ------------- */

/* The victim, inside the namespace: it serves its interface until the parent
 * closes the socket. */
static void hear_from_inside(int fd)
{
	struct hal_event ev[8];
	struct hal_if *hif;
	struct hal *hal;
	char byte;

	if (hal_get(NULL, &hal) != 0 || hal_if_open(hal, -1, &hif) != 0 ||
	    send(fd, &hif->addr, sizeof(hif->addr), 0) < 0)
		_exit(1);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) != 0) {
		int n = hal_if_service(hif, ev, 8);

		for (int i = 0; i < n; i++)
			if (ev[i].type == HAL_EV_DEAD)
				hal_peer_free(ev[i].peer);
	}
	_exit(0);
}

/* Forks the victim; it exits with 77 if such a namespace is not permitted. */
static pid_t victim_inside(const int *sv)
{
	pid_t pid = unit_fork();
	int status;

	if (pid != 0)
		return pid;
	close(sv[0]);
	if (unshare(CLONE_NEWPID) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
		_exit(77);
	pid = fork();
	if (pid == 0)
		hear_from_inside(sv[1]);
	close(sv[1]);
	_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
	      WEXITSTATUS(status) : 1);
}

static bool has_pidfs(void)
{
	int fd = pidfd_open(getpid(), 0);
	struct statfs fs;
	bool has = fstatfs(fd, &fs) == 0 && fs.f_type == PIDFS_MAGIC_NR;

	close(fd);
	return has;
}

static int say_to(const struct hal_addr *to, const struct hal_addr *from,
		  int proof)
{
	struct attempt l = attempt_hello(from, to);
	int conn = attempt_connect(to), ret;
	union emu_msg m;

	if (proof >= 0) {
		l.m.hello.from = attempt_addr(2);
		attempt_put_fd(&l, 2, dup(proof));
	}
	attempt_send(conn, &l);
	ret = attempt_answer(conn, &m);
	close(conn);
	return ret;
}

static void test_nobody_has_a_number(void **state)
{
	struct hal_addr mine, other, to;
	int sv[2], proof;
	pid_t pid, third;

	unit_needs(has_pidfs());
	mine = attempt_addr(1);
	other = attempt_addr(2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    sv), 0);
	pid = victim_inside(sv);
	close(sv[1]);
	if (recv(sv[0], &to, sizeof(to), 0) != (ssize_t)sizeof(to)) {
		assert_int_equal(child_code(pid), 77);
		close(sv[0]);
		skip();
	}
	third = holder(&other, &proof);
	assert_int_equal(say_to(&to, &mine, -1), 0);
	assert_true(say_to(&to, &mine, proof) < 0);
	unit_kill(third);
	/* after its end the holder cannot be identified; its name is kept */
	assert_true(say_to(&to, &mine, proof) < 0);
	close(proof);
	close(sv[0]);
	assert_int_equal(child_code(pid), 0);
}

/* ---- Listeners ------------------------------------------------------- */

/* The victim connects to the test; returns the test's answer to its hello. */
static int call_us(const struct hal_addr *addr, struct attempt *l)
{
	unsigned connected = attempts.connected, dead = attempts.dead;
	int conn = attempt_accept(addr);

	attempt_send(conn, l);
	ATTEMPTS_UNTIL(attempts.connected > connected || attempts.dead > dead);
	connected = attempts.connected - connected;
	close(conn);
	ATTEMPTS_UNTIL(attempts.dead == dead + 1);
	return connected != 0 ? 0 : attempts.dead_status;
}

static struct attempt welcome(const struct hal_addr *from)
{
	struct attempt l = attempt_hello_victim(from);

	l.m.head.type = EMU_WELCOME;
	close(l.fds[2]);
	close(l.fds[1]);
	l.nfds = 1;
	return l;
}

static void flaw_from(struct attempt *l) { l->m.hello.from.nonce++; }
static void flaw_is_hello(struct attempt *l) { l->m.head.type = EMU_HELLO; }
static void flaw_status(struct attempt *l) { l->m.head.status = 5; }

static const struct flaw answers[] = {
	FLAW(magic), FLAW(version), FLAW(type), FLAW(bytes), FLAW(short),
	FLAW(long), FLAW(head), FLAW(empty), FLAW(iface), FLAW(any),
	FLAW(from), FLAW(is_hello), FLAW(status), FLAW(no_fds),
	FLAW(pidfd_pipe), FLAW(pidfd_parent), FLAW(link_pipe),
};

static void test_bad_answers(void **state)
{
	struct hal_addr addr = attempt_addr(3);
	struct attempt l = welcome(&addr);

	assert_int_equal(call_us(&addr, &l), 0);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		addr.nonce++;
		l = welcome(&addr);
		answers[i].make(&l);
		if (call_us(&addr, &l) >= 0)
			unit_fail("accepted: %s", answers[i].name);
		attempts_exchange();
	}
	attempts_closed();
}

/* ---- Versions -------------------------------------------------------- */

/* One line was logged, which names both versions and the remedy. */
static void one_line(struct unit_capture *ear)
{
	char text[4096], both[64];
	int n = unit_capture_end(ear, text, sizeof(text));

	snprintf(both, sizeof(both), "version %d of the emulation, this "
		 "process version %d", EMU_WIRE + 1, EMU_WIRE);
	if (n != 1 || strstr(text, both) == NULL ||
	    strstr(text, "use one unimem build") == NULL)
		unit_fail("it said: %s", text);
}

/* A process of another build connects: both sides log the versions, once. */
static void test_other_version_connects(void **state)
{
	struct unit_capture ear;
	struct hal_addr from = attempt_addr(1);
	union emu_msg m;

	ear = unit_capture_begin();
	for (int i = 0; i < 3; i++) {
		struct attempt l = attempt_hello_victim(&from);
		int conn;

		l.m.head.version = EMU_WIRE + 1;
		conn = attempt_begin(&l);
		/* the answer has all that the other side needs to log the
		 * same */
		assert_int_equal(attempt_answer(conn, &m), -EPROTONOSUPPORT);
		assert_int_equal(m.head.magic, EMU_MAGIC);
		assert_int_equal(m.head.type, EMU_WELCOME);
		assert_int_equal(m.head.version, EMU_WIRE);
		close(conn);
	}
	one_line(&ear);
	attempts_closed();
}

static void test_other_version_answers(void **state)
{
	struct unit_capture ear;
	struct hal_addr addr = attempt_addr(3);

	ear = unit_capture_begin();
	for (int i = 0; i < 3; i++, addr.nonce++) {
		struct attempt l = welcome(&addr);

		/* the same when the other side refuses */
		attempt_close_fds(&l);
		l.len = l.m.head.bytes = sizeof(l.m.head);
		l.m.head.status = -EPROTONOSUPPORT;
		l.m.head.version = EMU_WIRE + 1;
		assert_int_equal(call_us(&addr, &l), -FI_ECONNREFUSED);
	}
	one_line(&ear);
	attempts_closed();
}

UNIT_MAIN(
	ATTEMPTS_TEST(test_one_flaw_each),
	ATTEMPTS_TEST(test_empty_message_of_a_peer),
	ATTEMPTS_TEST(test_later_form_of_the_name),
	ATTEMPTS_TEST(test_a_proof_cannot_be_handed_on),
	ATTEMPTS_TEST(test_names_of_other_networks),
	ATTEMPTS_TEST(test_nobody_has_a_number),
	ATTEMPTS_TEST(test_bad_answers),
	ATTEMPTS_TEST(test_other_version_connects),
	ATTEMPTS_TEST(test_other_version_answers),
)
