/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_connect_crowd.c - processes that connect to an interface of the
 * emulation at the wrong time: before their earlier connection is freed, when
 * descriptors run out, in crowds, or without sending anything.
 *
 * Each attempt costs a bounded number of descriptors and delays no other
 * peer.
 */
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/connect_attempts.h"

/* ---- Two hellos that cross ------------------------------------------- */

static struct attempt short_answer(int type, int status)
{
	struct attempt l = { .len = sizeof(l.m.head), .m.head = {
		EMU_MAGIC, EMU_WIRE, (uint16_t)type, sizeof(l.m.head),
		status } };

	return l;
}

/* The victim's hello is refused, and the test connects to the victim before the
 * victim polls again. */
static int refuse_and_call(const struct hal_addr *addr, struct attempt *refusal)
{
	int conn = attempt_accept(addr), again;
	struct attempt l;
	union emu_msg m;

	attempt_send(conn, refusal);
	close(conn);
	l = attempt_hello_victim(addr);
	again = attempt_begin(&l);
	assert_int_equal(attempt_answer(again, &m), 0);
	return again;
}

/*
 * The test refused the victim's hello, or accepted it and gave up before it
 * answered, and then connects to the victim: that is a new connection, which
 * outlives the first one.
 */
static void test_refused_and_called_again(void **state)
{
	static const int why[] = { EMU_LET_GO, -EMFILE, -FI_ECONNREFUSED };
	struct hal_addr addr = attempt_addr(3);
	union emu_msg m;

	for (unsigned i = 0; i < 3; i++, addr.nonce++) {
		struct attempt l = short_answer(EMU_WELCOME, why[i]);
		int again = refuse_and_call(&addr, &l);

		assert_int_equal(attempts.dead, 2 * i + 1);
		ATTEMPTS_UNTIL(attempts.inbound == i + 1);
		attempts_exchange();
		assert_true(recv(again, &m, sizeof(m), MSG_DONTWAIT) < 0);
		close(again);
		ATTEMPTS_UNTIL(attempts.dead == 2 * i + 2);
	}
	attempts_closed();
}

/* The test had sent its hello before it refused the victim's: the hello belongs
 * to the first connection. */
static void test_refused_when_called(void **state)
{
	struct hal_addr addr = attempt_addr(3);
	struct attempt l = short_answer(EMU_WELCOME, -EMFILE);
	int again;

	l.m.hello.flags = EMU_F_CROSSED;
	l.len = l.m.head.bytes = sizeof(l.m.hello);
	again = refuse_and_call(&addr, &l);
	ATTEMPTS_UNTIL(attempts.dead == 1);
	assert_int_equal(attempts.inbound, 1);
	close(again);
	attempts_closed();
	assert_int_equal(attempts.dead, 1);
}

/* The victim refuses a hello: the answer says whether the victim has sent a
 * hello. */
static void test_refusal_reports_a_connection(void **state)
{
	for (uint32_t called = 0; called < 2; called++) {
		struct hal_addr addr = attempt_addr(1 + called);
		int conn = called ? attempt_accept(&addr) : -1, ours;
		struct attempt l = attempt_hello_victim(&addr);
		union emu_msg m = { .hello = { .flags = 0 } };

		attempt_close_fds(&l);
		ours = attempt_connect(&attempts.v->addr);
		attempt_send(ours, &l);
		assert_int_equal(attempt_answer(ours, &m), -FI_EINVAL);
		assert_int_equal(m.hello.flags, called ? EMU_F_CROSSED : 0);
		close(ours);
		if (called)
			close(conn);
	}
	ATTEMPTS_UNTIL(attempts.dead == 1);
	attempts_closed();
}

/* The victim accepts a hello and connects back over the same link: the test may
 * refuse that. */
static void test_link_is_refused(void **state)
{
	struct hal_peer *peer = NULL;
	struct hal_addr addr = attempt_addr(1);
	struct attempt l = attempt_hello_victim(&addr);
	union emu_msg m;
	int conn = attempt_begin(&l);

	assert_int_equal(attempt_answer(conn, &m), 0);
	assert_int_equal(hal_connect(attempts.v, &addr, &peer), 0);
	assert_int_equal(attempt_answer(conn, &m), 0);
	assert_int_equal(m.head.type, EMU_LINK);
	l = short_answer(EMU_LINK_OK, -EMFILE);
	attempt_send(conn, &l);
	ATTEMPTS_UNTIL(attempts.dead == 1);
	assert_int_equal(attempts.dead_status, -FI_ECONNREFUSED);
	close(conn);
	attempts_closed();
}

static bool fail_watch;

/* Replaces libc's: the kernel's limit of watched descriptors is reached. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	int type;
	socklen_t len = sizeof(type);

	if (fail_watch && op == EPOLL_CTL_ADD &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

/* A hello of a known peer that can not be accepted now leaves nothing half
 * open. */
static void test_known_and_not_taken(void **state)
{
	struct hal_addr addr = attempt_addr(3);
	struct attempt l;
	int conn = attempt_accept(&addr);

	l = attempt_hello_victim(&addr);
	fail_watch = true;
	assert_int_equal(attempt_ask(&l), -ENOSPC);
	fail_watch = false;
	assert_int_equal(attempts.inbound, 0);
	l = attempt_hello_victim(&addr);
	assert_int_equal(attempt_ask(&l), 0);
	ATTEMPTS_UNTIL(attempts.dead == 1);
	assert_int_equal(attempts.inbound, 1);
	close(conn);
	attempts_closed();
}

/* ---- Few descriptors ------------------------------------------------- */

/* Sets the limit of open descriptors; 0: the original one. */
static void allow_fds(rlim_t n)
{
	static struct rlimit was;
	struct rlimit few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
	if (was.rlim_cur == 0)
		was = few;
	few.rlim_cur = n != 0 ? n : was.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* Sets up the interfaces again, with that limit of open descriptors. */
static void set_up_with_fds(rlim_t n)
{
	attempts_teardown(NULL);
	allow_fds(n);
	attempts_setup(NULL);
	allow_fds(0);
}

/* An attempt is refused while this process has so many free descriptors. */
static void refused_with_free_fds(struct attempt *l, int nfree)
{
	int conn = attempt_begin(l), fill[256], n = 0;
	union emu_msg m;

	allow_fds(200);
	while ((fill[n] = dup(conn)) >= 0)
		n++;
	while (nfree-- > 0)
		close(fill[--n]);
	assert_int_equal(attempt_answer(conn, &m), -EMFILE);
	while (n > 0)
		close(fill[--n]);
	allow_fds(0);
	close(conn);
	assert_int_equal(attempts.inbound, 0);
	attempts_closed();
}

/* Without a descriptor to accept with, the peer gets an answer before the
 * connection is closed. */
static void test_no_descriptor_to_accept(void **state)
{
	struct hal_addr from = attempt_addr(1);
	struct attempt l = attempt_hello_victim(&from);

	refused_with_free_fds(&l, 0);
}

/* Without a free descriptor the sender of an attempt cannot be identified: all
 * attempts are refused. */
static void test_no_descriptor_to_check_with(void **state)
{
	struct hal_addr from = attempt_addr(1);
	struct attempt l = attempt_hello_victim(&from);

	attempt_put_fd(&l, 0, pidfd_open(getppid(), 0));
	/* descriptors to accept with, and for those in the hello */
	refused_with_free_fds(&l, 4);
}

static bool fail_send;
static int flight_lines;

/* Replaces libc's: this user has too many descriptors in messages. */
ssize_t sendmsg(int fd, const struct msghdr *mh, int flags)
{
	if (fail_send && mh->msg_controllen != 0) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, mh, flags);
}

static void count_flight(int level, const char *line)
{
	flight_lines += level == 0 && strstr(line, "ulimit -n") != NULL;
}

/* A peer that cannot be connected to for lack of descriptors is connected to
 * later; one log line names the reason. */
static void test_descriptors_on_their_way(void **state)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct hal_peer *peer = NULL;
	struct hal_addr addr = attempt_addr(3);

	attempt_bind(listener, "unimem", &addr);
	assert_int_equal(listen(listener, 5), 0);
	hal_log_set(count_flight);
	fail_send = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hal_connect(attempts.v, &addr, &peer),
				 -FI_EAGAIN);
	fail_send = false;
	hal_log_set(NULL);
	assert_int_equal(flight_lines, 1);
	assert_int_equal(hal_connect(attempts.v, &addr, &peer), 0);
	hal_peer_free(peer);
	close(listener);
	attempts_closed();
}

/* Sends a hello of a peer that connects again, with this proof. */
static int call_again(const struct hal_addr *from, int proof)
{
	const struct hal_addr other = attempt_addr(7);
	struct attempt l = attempt_hello_victim(&other);

	l.m.hello.from = *from;
	attempt_put_fd(&l, 2, proof);
	return attempt_begin(&l);
}

#define AGAIN	100

/* A process that connects again waits until its earlier connection is freed.
 * Connections of another process are refused at once. Of too many attempts the
 * oldest are closed. */
static void test_called_again_and_again(void **state)
{
	struct hal_event ev = { 0 };
	int conn[AGAIN], proof, dead = 0;
	struct hal_addr from;
	union emu_msg m;
	struct attempt l;

	set_up_with_fds(256);
	from = attempt_addr(1);
	l = attempt_hello_victim(&from);
	proof = dup(l.fds[2]);
	assert_int_equal(attempt_ask(&l), 0);
	while (ev.type != HAL_EV_DEAD || ev.peer == attempts.vt)
		hal_if_service(attempts.v, &ev, 1);
	for (int i = 0; i < 10; i++) {
		conn[0] = call_again(&from, attempt_socket(SOCK_DGRAM));
		assert_true(attempt_answer(conn[0], &m) < 0);
		close(conn[0]);
	}
	for (int i = 0; i < AGAIN; i++) {
		conn[i] = call_again(&from, dup(proof));
		attempts_pump();
	}
	attempts_exchange();
	for (int i = 0; i < AGAIN; i++)
		dead += recv(conn[i], &m, sizeof(m), MSG_DONTWAIT) == 0 ||
			errno == ECONNRESET;
	assert_int_equal(dead, AGAIN - 256 / 4);
	hal_peer_free(ev.peer);
	assert_int_equal(attempt_answer(conn[AGAIN - 256 / 4], &m), 0);
	for (int i = 0; i < AGAIN; i++)
		close(conn[i]);
	close(proof);
	attempts.inbound--;		/* the loop above saw its HAL_EV_DEAD,
					 * and it is freed */
	attempts_closed();
}

/* ---- Silence --------------------------------------------------------- */

#define SILENT	200

/* Connections without a message use at most a quarter of the descriptors. */
static void test_silence(void **state)
{
	int conn[SILENT], spoken, ended = 0;
	struct hal_addr from;
	union emu_msg m;
	struct attempt l;

	set_up_with_fds(256);
	from = attempt_addr(1);
	l = attempt_hello_victim(&from);
	spoken = attempt_begin(&l);
	assert_int_equal(attempt_answer(spoken, &m), 0);
	for (int i = 0; i < SILENT; i++) {
		conn[i] = attempt_connect(&attempts.v->addr);
		attempts_pump();
	}
	attempts_exchange();
	for (int i = 0; i < SILENT; i++) {
		bool end = recv(conn[i], &m, sizeof(m), MSG_DONTWAIT) == 0;

		/* the oldest first */
		assert_int_equal(end, i < SILENT - 256 / 4);
		ended += end;
	}
	assert_int_equal(ended, SILENT - 256 / 4);
	/* a connection that has sent a message stays */
	assert_true(recv(spoken, &m, sizeof(m), MSG_DONTWAIT) < 0);
	for (int i = 0; i < SILENT; i++)
		close(conn[i]);
	close(spoken);
	attempts_closed();
}

UNIT_MAIN(
	ATTEMPTS_TEST(test_refused_and_called_again),
	ATTEMPTS_TEST(test_refused_when_called),
	ATTEMPTS_TEST(test_refusal_reports_a_connection),
	ATTEMPTS_TEST(test_link_is_refused),
	ATTEMPTS_TEST(test_known_and_not_taken),
	ATTEMPTS_TEST(test_no_descriptor_to_accept),
	ATTEMPTS_TEST(test_no_descriptor_to_check_with),
	ATTEMPTS_TEST(test_descriptors_on_their_way),
	ATTEMPTS_TEST(test_called_again_and_again),
	ATTEMPTS_TEST(test_silence),
)
