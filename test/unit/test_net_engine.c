/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_engine.c - the module of UCX refuses addresses that were cut off,
 * prints nothing when a peer ends, receives the longest frame at once, and
 * survives the end of a peer, and closes, while a connection is made.
 *
 * An address comes from a peer that has proven its knowledge of the secret, so
 * this is about faults, not about attacks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/net/hal_net_engine.h"
#include "hal/net/hal_net_stream.h"
#include "lib/unit.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks crashes in processes that have loaded UCX. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

static const struct net_engine *engine;

#define FRAMES	20

static uint8_t frame[FRAMES][NET_FRAME_MAX];	/* the first byte: number */
static unsigned nreceived;		/* that have come, whole and in order */

static void received(void *owner, const void *data, size_t len)
{
	(void)owner;
	nreceived += nreceived < FRAMES && len == NET_FRAME_MAX &&
		memcmp(data, frame[nreceived], len) == 0;
}

static size_t most_asked;		/* bytes for which UCX has room */

/* UCX calls this one instead of that of the C library. */
ssize_t recv(int fd, void *data, size_t len, int flags)
{
	if (most_asked < len)
		most_asked = len;
	return syscall(SYS_recvfrom, fd, data, len, flags, NULL, NULL);
}

static unsigned nsent;			/* messages that had to wait */

static void sent(struct net_message *message)
{
	(void)message;
	nsent++;
}

static unsigned nfailed;

static void failed(void *peer)
{
	(void)peer;
	nfailed++;
}

static const struct net_upcalls up = { received, sent, failed };

/* Open a worker. address: NET_WORKER_MAX bytes, of which *len are set. */
static struct net_worker *open_worker(struct net_worker_conf *conf,
				      uint8_t *address, size_t *len)
{
	struct net_worker *w;

	*conf = (struct net_worker_conf){
		.device = "lo", .dead_ms = 3000, .up = &up,
		.epfd = epoll_create1(EPOLL_CLOEXEC),
	};
	*len = NET_WORKER_MAX;
	if (engine->open(conf, &w) != 0)
		return NULL;
	return engine->address(w, address, len) == 0 ? w : NULL;
}

static int load(void **state)
{
	const char *dir = getenv("FI_PROVIDER_PATH");
	char path[512];
	void *lib;

	(void)state;
	snprintf(path, sizeof(path), "%s/libunimem-net.so",
		 dir != NULL ? dir : ".libs");
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	engine = lib != NULL ? dlsym(lib, NET_ENGINE_SYMBOL) : NULL;
	return 0;
}

/* A process with a worker, whose address it writes to a descriptor. */
static pid_t start_peer(int fd)
{
	struct net_worker_conf conf;
	uint8_t address[NET_WORKER_MAX];
	pid_t pid = fork();
	size_t len;

	if (pid != 0)
		return pid;
	if (open_worker(&conf, address, &len) == NULL ||
	    write(fd, address, len) != (ssize_t)len)
		_exit(1);
	for (;;)
		pause();
}

/* The peer ends before its connection is made. UCX prints to the standard
 * output of the program, unless the user asks for that. */
static void test_end_is_quiet(void **state)
{
	struct net_message message = { .link = NULL };
	uint8_t address[NET_WORKER_MAX], local[NET_WORKER_MAX];
	struct net_worker_conf conf;
	struct net_worker *w;
	struct net_link *link;
	char said[256] = "";
	int pipes[2], out, keep;
	size_t len;
	ssize_t got;
	time_t end;
	pid_t pid;

	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	unsetenv("UCX_LOG_LEVEL");
	assert_int_equal(pipe(pipes), 0);
	pid = start_peer(pipes[1]);
	assert_true(pid > 0);
	got = read(pipes[0], address, sizeof(address));
	assert_true(got > 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fflush(stdout);
	keep = dup(STDOUT_FILENO);
	out = memfd_create("stdout", MFD_CLOEXEC);
	dup2(out, STDOUT_FILENO);
	w = open_worker(&conf, local, &len);
	nfailed = 0;
	end = time(NULL) + 60;
	if (w != NULL && engine->connect(w, address, (size_t)got, &pid,
					 &link) == 0) {
		if (engine->send(link, &message, "12345678", 8) < 0)
			nfailed++;
		while (nfailed == 0 && time(NULL) < end)
			engine->progress(w);
		engine->disconnect(link, NULL);
	} else if (w != NULL) {
		nfailed++;		/* the kernel refuses it at once */
	}
	if (w != NULL)
		engine->close(w);
	fflush(stdout);
	dup2(keep, STDOUT_FILENO);
	assert_true(nfailed != 0);
	assert_true(pread(out, said, sizeof(said) - 1, 0) >= 0);
	assert_string_equal(said, "");
	close(conf.epfd);
	close(keep);
	close(out);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- A peer that ends while the connection to it is made ---------------- */

#define STEPS	6			/* most steps of both sides together */

/* A process with a worker, and what it does next. */
struct side {
	struct net_worker_conf conf;
	struct net_worker *w;
	struct net_link *link;		/* NULL: not connected yet */
	struct net_message message;
	bool waits;			/* sent() is to be called */
	uint8_t address[NET_WORKER_MAX];	/* of the other side */
	size_t len;
};

static bool side_open(struct side *s, int fd)
{
	uint8_t own[NET_WORKER_MAX];
	ssize_t got;
	size_t len;

	s->w = open_worker(&s->conf, own, &len);
	if (s->w == NULL || write(fd, own, len) != (ssize_t)len)
		return false;
	got = read(fd, s->address, sizeof(s->address));
	s->len = got > 0 ? (size_t)got : 0;
	return got > 0;
}

/* Connect and send, or make progress. */
static bool side_step(struct side *s)
{
	int ret;

	if (s->link != NULL) {
		engine->progress(s->w);
		return true;
	}
	if (engine->connect(s->w, s->address, s->len, s, &s->link) != 0)
		return false;
	ret = engine->send(s->link, &s->message, frame, sizeof(frame[0]));
	s->waits = ret == 1;
	return ret >= 0;
}

/* The peer takes a step for each byte that comes, and answers it. */
static void steps_of_peer(int fd)
{
	struct side s = { .link = NULL };
	char byte;

	if (!side_open(&s, fd))
		_exit(1);
	while (read(fd, &byte, 1) == 1 && side_step(&s) &&
	       write(fd, &byte, 1) == 1)
		;
	_exit(1);
}

/* Begin with a peer, and take steps of both by the bits of schedule: 1 is a
 * step of the peer. Returns the process of the peer, or -1. */
static pid_t take_steps(struct side *s, unsigned schedule, unsigned steps)
{
	char byte = 0;
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		steps_of_peer(fds[1]);
	}
	close(fds[1]);
	if (pid < 0 || !side_open(s, fds[0]))
		return -1;
	for (unsigned i = 0; i < steps; i++)
		if (schedule >> i & 1 ? write(fds[0], &byte, 1) != 1 ||
		    read(fds[0], &byte, 1) != 1 : !side_step(s))
			return -1;
	return pid;
}

enum end {
	KILLED,				/* the peer is, and that is noticed */
	GIVEN_UP,			/* the same after the link was ended:
					 * the frame is given back */
	CLOSED,				/* link and worker are */
};

static void kill_peer(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Take the steps of one schedule, and end. Returns the exit code of this
 * process, 0: nothing was wrong. */
static int survive(unsigned schedule, unsigned steps, enum end how)
{
	struct side s = { .link = NULL };
	time_t end = time(NULL) + 60;
	pid_t pid;

	nsent = 0;
	nfailed = 0;
	pid = take_steps(&s, schedule, steps);
	if (pid < 0)
		return 2;
	if (how != KILLED && s.link != NULL)
		engine->disconnect(s.link, NULL);
	if (how != CLOSED)
		kill_peer(pid);
	if (how == KILLED && s.link == NULL && !side_step(&s))
		nfailed++;		/* the kernel refuses it at once */
	while (how != CLOSED && time(NULL) < end &&
	       (how == KILLED ? nfailed == 0 : nsent != s.waits))
		engine->progress(s.w);
	for (int i = 0; how == KILLED && i < 1000; i++)
		engine->progress(s.w);
	if (how != CLOSED && nsent != s.waits)
		return 3;
	if (how == KILLED && s.link != NULL)
		engine->disconnect(s.link, NULL);
	if (engine->close(s.w) != 0)
		return 4;
	if (how == CLOSED)
		kill_peer(pid);
	if ((nfailed != 0) != (how == KILLED))
		return 5;
	return nsent == s.waits ? 0 : 6;
}

/* Each schedule of a few steps in a process of its own, which an assertion of
 * UCX would end. */
static void each_schedule(enum end how)
{
	int status;
	pid_t pid;

	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	for (unsigned steps = 0; steps <= STEPS; steps++)
		for (unsigned i = 0; i < 1u << steps; i++) {
			pid = fork();
			if (pid == 0)
				_exit(survive(i, steps, how));
			assert_int_equal(waitpid(pid, &status, 0), pid);
			if (status != 0)
				fail_msg("schedule %#x of %u steps: status %#x",
					 i, steps, (unsigned)status);
		}
}

static void test_end_while_connecting(void **state)
{
	(void)state;
	each_schedule(KILLED);
}

static void test_end_of_given_up(void **state)
{
	(void)state;
	each_schedule(GIVEN_UP);
}

/* The peer may not have made its part of the connection. */
static void test_close_while_connecting(void **state)
{
	(void)state;
	each_schedule(CLOSED);
}

static void test_addresses_cut_off(void **state)
{
	uint8_t address[NET_WORKER_MAX + 1];
	struct net_worker_conf conf;
	struct net_worker *w;
	struct net_link *link;
	size_t len;

	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	w = open_worker(&conf, address, &len);
	assert_non_null(w);
	assert_in_range(len, 9, NET_WORKER_MAX);
	for (size_t n = 0; n <= len; n++) {
		/* of its own allocation, so that ASan sees its end */
		uint8_t *part = malloc(n + 1);
		int ret;

		assert_non_null(part);
		memcpy(part, address, n);
		ret = engine->connect(w, part, n, &link, &link);
		free(part);
		assert_int_equal(ret, n == len ? 0 : -FI_EINVAL);
		if (ret == 0)
			engine->disconnect(link, NULL);
	}
	assert_int_equal(engine->connect(w, address, len + 1, &link, &link),
			 -FI_EINVAL);
	assert_int_equal(engine->close(w), 0);
	close(conf.epfd);
}

/* Workers in one process, and links between them. */
static struct net_worker *w[3];
static struct net_worker_conf conf[3];
static uint8_t address[3][NET_WORKER_MAX];
static size_t naddress[3];
static struct net_message message[FRAMES];
static unsigned nwait;			/* frames for which sent() is called */

static void open_workers(int n)
{
	nreceived = 0;
	nsent = 0;
	nfailed = 0;
	nwait = 0;
	for (size_t i = 0; i < sizeof(frame[0]); i++)
		frame[0][i] = (uint8_t)(i * 7 + i / 256);
	for (int i = 1; i < FRAMES; i++)
		memcpy(frame[i], frame[0], sizeof(frame[0]));
	for (int i = 0; i < FRAMES; i++)
		frame[i][0] = (uint8_t)i;
	for (int i = 0; i < n; i++) {
		w[i] = open_worker(&conf[i], address[i], &naddress[i]);
		assert_non_null(w[i]);
	}
}

static void close_workers(int n)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(engine->close(w[i]), 0);
		close(conf[i].epfd);
	}
	assert_int_equal(nsent, nwait);
	assert_int_equal(nfailed, 0);
}

static struct net_link *link_to(int from, int to)
{
	struct net_link *link;

	assert_int_equal(engine->connect(w[from], address[to], naddress[to],
					 &link, &link), 0);
	return link;
}

static void send_frame(struct net_link *link, int i)
{
	int ret = engine->send(link, &message[i], frame[i], sizeof(frame[i]));

	assert_true(ret >= 0);
	nwait += ret == 1;
}

/* All of n workers make progress until so many frames have come, and all were
 * reported as sent. */
static void await_frames(int n, unsigned frames)
{
	time_t end = time(NULL) + 60;

	while ((nreceived < frames || nsent < nwait) && time(NULL) < end)
		for (int i = 0; i < n; i++)
			engine->progress(w[i]);
	assert_int_equal(nreceived, frames);
}

/* Send the longest frame from one worker to another, some times, before the
 * link is open. The other one has a link already. */
static void send_frames(void)
{
	struct net_link *link[2];

	open_workers(2);
	most_asked = 0;
	link[1] = link_to(1, 0);
	for (int n = 0; n < 1000; n++)
		engine->progress(w[n % 2]);
	link[0] = link_to(0, 1);
	for (int i = 0; i < FRAMES; i++)
		send_frame(link[0], i);
	await_frames(2, FRAMES);
	for (int i = 0; i < 2; i++)
		engine->disconnect(link[i], NULL);
	close_workers(2);
}

/* A link that is given up before it is open carries its frames, unless its host
 * is silent: then they are given back at once. One without frames is gone.
 * Another one of the worker is not disturbed. */
static void test_disconnect_while_connecting(void **state)
{
	/* 192.0.2.1, of no socket of this test */
	static const uint8_t silent[16] = { [10] = 0xFF, [11] = 0xFF,
		[12] = 192, [14] = 2, [15] = 1 };
	struct net_link *link, *other;

	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	open_workers(3);
	other = link_to(0, 2);
	engine->disconnect(link_to(0, 2), NULL);
	link = link_to(0, 1);
	for (int i = 0; i < 3; i++)
		send_frame(link, i);
	engine->disconnect(link, NULL);
	await_frames(3, 3);
	for (int i = 3; i < FRAMES; i++)
		send_frame(other, i);
	await_frames(3, FRAMES);
	engine->disconnect(other, NULL);
	link = link_to(0, 1);
	send_frame(link, 0);
	assert_int_equal(nsent + 1, nwait);
	engine->disconnect(link, silent);
	assert_int_equal(nsent, nwait);
	close_workers(3);
}

/* UCX receives a frame, and what it adds, in one segment; a user who sets the
 * length of segments gets these. */
static void test_longest_frame(void **state)
{
	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	unsetenv("UCX_TCP_RX_SEG_SIZE");
	unsetenv("UCX_RX_SEG_SIZE");
	send_frames();
	assert_in_range(most_asked, NET_FRAME_MAX + 64, NET_FRAME_MAX + 8192);
	setenv("UCX_TCP_RX_SEG_SIZE", "16k", 1);
	send_frames();
	assert_in_range(most_asked, 16384, 16384 + 64);
	unsetenv("UCX_TCP_RX_SEG_SIZE");
}

/* Limits that a user sets for the messages of other programs: by these, UCX
 * would not send the empty messages at once that open a link. */
static void test_limits_of_the_user(void **state)
{
	static const char *const limit[][2] = {
		{ "UCX_ZCOPY_THRESH", "0" },
		{ "UCX_RNDV_THRESH", "0" },
	};

	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	for (size_t i = 0; i < sizeof(limit) / sizeof(*limit); i++) {
		setenv(limit[i][0], limit[i][1], 1);
		print_message("%s=%s\n", limit[i][0], limit[i][1]);
		send_frames();
		unsetenv(limit[i][0]);
	}
}

static int without_limits(void **state)
{
	(void)state;
	unsetenv("UCX_ZCOPY_THRESH");
	unsetenv("UCX_RNDV_THRESH");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest_frame),
		cmocka_unit_test_teardown(test_limits_of_the_user,
					  without_limits),
		cmocka_unit_test(test_end_is_quiet),
		cmocka_unit_test(test_end_while_connecting),
		cmocka_unit_test(test_end_of_given_up),
		cmocka_unit_test(test_close_while_connecting),
		cmocka_unit_test(test_disconnect_while_connecting),
		cmocka_unit_test(test_addresses_cut_off),
	};

	return unit_run_with(tests, load, NULL);
}
