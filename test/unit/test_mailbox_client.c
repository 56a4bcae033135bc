/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_client.c - local processes that break the protocol of the
 * mailbox daemon, or that leave messages for a full mailbox behind
 *
 * The daemon's parts of two nodes are in this process, without the library: the
 * test holds the other ends of the daemon's sockets.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib/unit.h"
#include "daemon/mbox_client.h"

#define EVENTS	64
#define LEFT	256			/* LEFT_MAX of mbox_client.c */
#define MORE	5			/* processes beyond these */
#define FDS_MAX	16			/* descriptors with a packet */

static struct hal *g_hal;
static struct mbox_hal g_a, g_b;	/* nodes; g_all serves those of g_a */
static struct mbox_clients g_all;
static int g_board;			/* of g_a; g_b has the next one */
static int g_lines;			/* log lines */

static void log_line(const char *line)
{
	g_lines++;
}

static int setup(void **state)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	assert_int_equal(hal_get(NULL, &g_hal), 0);
	assert_int_equal(mbox_hal_open(&g_a, g_hal, g_board, log_line), 0);
	assert_int_equal(mbox_hal_open(&g_b, g_hal, g_board + 1, log_line), 0);
	mbox_clients_init(&g_all, &g_a, epoll, log_line);
	g_lines = 0;
	return 0;
}

static int teardown(void **state)
{
	mbox_clients_fini(&g_all);
	close(g_all.epoll);
	mbox_hal_close(&g_a);
	mbox_hal_close(&g_b);
	hal_put(g_hal);
	return 0;
}

/* The daemon handles everything that is there. */
static void run(void)
{
	struct epoll_event ev[EVENTS];

	for (int i = 0; i < 6; i++) {
		int n = epoll_wait(g_all.epoll, ev, EVENTS, 0);

		for (int k = 0; k < n; k++)
			mbox_client_event(ev[k].data.ptr, ev[k].events);
		mbox_hal_poll(&g_a);
		mbox_clients_progress(&g_all);
		mbox_hal_poll(&g_b);
	}
}

/* A new client of the daemon. Returns the process's end. */
static int attach(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0, pair), 0);
	mbox_client_new(&g_all, pair[0]);
	return pair[1];
}

static void hello(int fd, uint32_t magic, uint32_t version, int node)
{
	struct mbox_hello msg = {
		.magic = magic, .version = version, .node = node,
	};

	assert_int_equal(send(fd, &msg, sizeof(msg), MSG_NOSIGNAL),
			 sizeof(msg));
	run();
}

static void expect_answer(int fd, int status)
{
	struct mbox_answer answer;

	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.status, status);
}

/* The daemon has closed the other end. */
static void expect_closed(int fd)
{
	char byte;

	run();
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

static int open_node(int node)
{
	struct pollfd pfd = { .fd = attach(), .events = POLLIN };

	hello(pfd.fd, MBOX_MAGIC, MBOX_VERSION, node);
	while (poll(&pfd, 1, 0) == 0)
		run();
	expect_answer(pfd.fd, 0);
	return pfd.fd;
}

/* Send a packet with n copies of a descriptor. */
static void send_copies(int fd, const void *packet, size_t len, int n,
			int other)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)packet,
			     .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (n > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		for (int i = 0; i < n; i++)
			memcpy(CMSG_DATA(cm) + (size_t)i * sizeof(int), &other,
			       sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), (ssize_t)len);
}

/* Send a packet with n descriptors. */
static void send_fds(int fd, const void *packet, size_t len, int n)
{
	int other = eventfd(0, EFD_CLOEXEC);

	send_copies(fd, packet, len, n, other);
	close(other);
	run();
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* ---- Tests -------------------------------------------------------------- */

static void test_hello(void **state)
{
	int fd = attach(), before = descriptors();

	close(fd);			/* without a hello */
	run();
	assert_int_equal(descriptors(), before - 2);
	assert_int_equal(g_all.living, 0);
	fd = attach();
	hello(fd, MBOX_MAGIC + 1, MBOX_VERSION, g_board);
	expect_closed(fd);
	fd = attach();
	assert_int_equal(send(fd, "hello", 5, 0), 5);
	expect_closed(fd);
	fd = attach();
	hello(fd, MBOX_MAGIC, MBOX_VERSION + 1, g_board);
	expect_answer(fd, -EPROTO);
	close(fd);
	for (int node = -2; node < 0; node++) {
		fd = attach();
		hello(fd, MBOX_MAGIC, MBOX_VERSION, node);
		expect_answer(fd, -EINVAL);
		close(fd);
	}
	fd = attach();
	hello(fd, MBOX_MAGIC, MBOX_VERSION, (int)g_hal->caps.boards);
	expect_answer(fd, -EINVAL);
	close(fd);
	assert_int_equal(g_all.living, 0);
	assert_int_equal(descriptors(), before - 2);
}

/* Whatever a packet carries, the daemon keeps no descriptor of it. */
static void test_descriptors(void **state)
{
	struct mailbox_action_t act = { .action = 'r', .opcode = 20 };
	uint64_t bytes[40] = { 0 };
	int before = descriptors();

	for (int n = 0; n <= FDS_MAX; n++) {
		int local = open_node(g_board), remote = open_node(g_board + 1);

		/* the first descriptor is no socket: no answer is sent */
		send_fds(local, &act, sizeof(act), n);
		send_fds(remote, bytes, MBOX_MESSAGE, n);
		send_fds(remote, bytes, MBOX_MESSAGE, n);
		close(local);
		close(remote);
		run();
		local = open_node(g_board);
		send_fds(local, bytes, sizeof(bytes), n);
		close(local);
		remote = open_node(g_board + 1);
		send_fds(remote, bytes, sizeof(bytes), n);
		close(remote);
		run();
		while (mbox_hal_first(&g_b, 0) != NULL)
			mbox_hal_take(mbox_hal_first(&g_b, 0));
		/* the link with the other node stays */
		if (n == 0)
			before = descriptors();
		assert_int_equal(descriptors(), before);
	}
}

static void test_empty_packet(void **state)
{
	int fd = open_node(g_board);

	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	expect_closed(fd);
}

static void test_other_user(void **state)
{
	int pair[2];
	char byte;

	if (geteuid() != 0)
		skip();			/* cannot be another user */
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(seteuid(0), 0);
	mbox_client_new(&g_all, pair[0]);
	assert_int_equal(g_all.living, 0);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
	close(pair[1]);
}

/* Processes that write to a full mailbox and end. */
static void test_left(void **state)
{
	uint64_t msg = UINT64_C(3) << 60;
	struct mbox_entry *entry;
	int before = 0, got = 0;

	for (int i = 0; i < MBOX_WINDOW + LEFT + MORE; i++) {
		int fd = open_node(g_board + 1);

		msg++;
		assert_int_equal(send(fd, &msg, sizeof(msg), 0), sizeof(msg));
		close(fd);
		run();
		assert_int_equal(g_all.living, 0);
		if (i == MBOX_WINDOW + LEFT - 1)
			before = descriptors();
	}
	assert_int_equal(g_lines, MORE);
	assert_int_equal(descriptors(), before);
	for (int idle = 0; idle < 100; idle++) {
		run();
		while ((entry = mbox_hal_first(&g_b, 3)) != NULL) {
			mbox_hal_take(entry);
			got++;
			idle = 0;
		}
	}
	assert_int_equal(got, MBOX_WINDOW + LEFT);
	assert_int_equal(g_all.discarded, MORE);
	assert_int_equal(g_lines, MORE);
}

/* The daemon ends while messages of an ended process wait. */
static void test_discarded(void **state)
{
	uint64_t msg = UINT64_C(3) << 60;
	int fd = open_node(g_board + 1);

	for (int i = 0; i < MBOX_WINDOW + MORE; i++)
		assert_int_equal(send(fd, &msg, sizeof(msg), 0), sizeof(msg));
	close(fd);
	for (int i = 0; i < 10; i++)
		run();
	assert_int_equal(mbox_clients_left(&g_all), 1);
	assert_true(mbox_hal_holds(&g_b));
	assert_false(mbox_hal_holds(&g_a));
	mbox_clients_fini(&g_all);
	assert_int_equal(g_all.discarded, MORE);
	assert_int_equal(mbox_clients_left(&g_all), 0);
}

/* A daemon that is used does not end. An unused one waits ten times as long for
 * the reader of messages, and again after each message that could be sent on: a
 * slow reader gets all. */
static void test_life(void **state)
{
	const uint64_t second = UINT64_C(1000000000);
	uint64_t msg = UINT64_C(3) << 60;
	int fd = open_node(g_board + 1);

	assert_int_equal(mbox_clients_life_ms(&g_all, 1, 1000), -1);
	for (int i = 0; i < MBOX_WINDOW + 2; i++)
		assert_int_equal(send(fd, &msg, sizeof(msg), 0), sizeof(msg));
	close(fd);
	while (g_b.arrivals < MBOX_WINDOW || mbox_clients_left(&g_all) == 0)
		run();
	assert_int_equal(mbox_clients_life_ms(&g_all, 1, 1000), 10001);
	run();				/* nothing is sent on */
	assert_int_equal(mbox_clients_life_ms(&g_all, 9 * second, 1000), 1001);
	mbox_hal_take(mbox_hal_first(&g_b, 3));
	while (g_b.arrivals < MBOX_WINDOW + 1)
		run();
	assert_int_equal(mbox_clients_life_ms(&g_all, 9 * second, 1000), 10001);
	mbox_hal_take(mbox_hal_first(&g_b, 3));
	while (mbox_clients_left(&g_all) != 0)
		run();
	assert_int_equal(mbox_clients_life_ms(&g_all, 9 * second, 1000), 1001);
	assert_int_equal(mbox_clients_life_ms(&g_all, 10 * second, 1000), 0);
}

/* An action is done once the daemon has a descriptor for its answer. */
static void test_no_descriptor(void **state)
{
	struct mailbox_action_t act = { .action = 'u', .opcode = 2 };
	int fd = open_node(g_board), pair[2], free_fd = dup(fd);
	struct rlimit limit, none;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0, pair), 0);
	send_copies(fd, &act, sizeof(act), 1, pair[1]);
	close(pair[1]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = (rlim_t)free_fd;	/* below it, all are in use */
	close(free_fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	run();
	assert_true(mbox_clients_retry(&g_all));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	run();
	expect_answer(pair[0], -ENOENT);
	assert_false(mbox_clients_retry(&g_all));
	close(pair[0]);
	close(fd);
}

/* An action of a process that the daemon does not see. */
static void test_no_process(void **state)
{
	const char owner = 0;
	struct mbox_origin origin = { .owner = &owner, .event_fd = -1 };
	struct mailbox_action_t act = { .action = 's', .val = SIGUSR1 };
	struct mbox_regs regs;

	mbox_regs_init(&regs);
	assert_int_equal(mbox_regs_act(&regs, &act, &origin), -ESRCH);
	act.action = 'e';
	assert_int_equal(mbox_regs_act(&regs, &act, &origin), -ESRCH);
	act.action = 'r';
	assert_int_equal(mbox_regs_act(&regs, &act, &origin), 0);
}

/* A link of g_b to g_a, by which g_a gets messages. */
static struct mbox_link *link_in(void)
{
	struct mbox_link *link;
	int ret;

	while ((ret = mbox_link_get(&g_b, g_board, &link)) == -FI_EAGAIN)
		run();
	assert_int_equal(ret, 0);
	while (mbox_link_opened(link) != 0)
		run();
	return link;
}

/* The reader of several opcodes gets the oldest message first. */
static void test_oldest_first(void **state)
{
	struct mailbox_action_t act = { .action = 'r' };
	struct mbox_link *link = link_in();
	int fd = open_node(g_board);
	uint64_t msg;

	for (uint64_t i = 0; i < 2 * MBOX_WINDOW; i++) {
		msg = (i % 2 == 0 ? UINT64_C(5) : UINT64_C(1)) << 60 | i;
		assert_int_equal(mbox_link_send(link, msg), 0);
		run();
	}
	for (unsigned i = 0; i < 2; i++) {
		act.opcode = i == 0 ? 1 : 5;
		assert_int_equal(send(fd, &act, sizeof(act), 0), sizeof(act));
	}
	run();
	for (uint64_t i = 0; i < 2 * MBOX_WINDOW; i++) {
		assert_int_equal(recv(fd, &msg, sizeof(msg), 0), sizeof(msg));
		assert_int_equal(msg & UINT32_MAX, i);
	}
	close(fd);
}

int main(void)
{
#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_hello), TEST(test_descriptors),
		TEST(test_empty_packet), TEST(test_other_user),
		TEST(test_left), TEST(test_oldest_first),
		TEST(test_discarded), TEST(test_life),
		TEST(test_no_descriptor), TEST(test_no_process),
	};
	const char *hal = getenv("FI_UNIMEM_HAL");

	if (hal != NULL && strcmp(hal, "sim") == 0) {
		setenv("FI_UNIMEM_BOARDS", "2", 1);
	} else {
		g_board = (int)(getpid() % 30000) * 2;
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	unsetenv("FI_UNIMEM_BOARD");
	return unit_run(tests);
}
