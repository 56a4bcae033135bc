/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_attempts.c - unknown senders at the socket of an interface of the
 * emulation; see connect_attempts.h.
 *
 * Owns the interface under test, the interface of its regular peer, and the
 * sockets of the unknown senders.
 */
#include <fcntl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "hal/emu/hal_emu_name.h"
#include "lib/connect_attempts.h"

struct attempts attempts;

/* ---- The victim and its regular peer --------------------------------- */

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

time_t attempts_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void take_event(struct hal_if *hif, const struct hal_event *ev)
{
	bool friends = ev->peer == attempts.vt || ev->peer == attempts.tv;

	if (ev->type == HAL_EV_DEAD && friends)
		unit_fail("the regular peer is dead: %d", ev->status);
	if (ev->type == HAL_EV_INBOUND && hif == attempts.t)
		attempts.tv = ev->peer;
	if (hif == attempts.v && !friends) {
		attempts.inbound += ev->type == HAL_EV_INBOUND;
		attempts.connected += ev->type == HAL_EV_CONNECTED;
		attempts.dead += ev->type == HAL_EV_DEAD;
	}
	if (ev->type == HAL_EV_DEAD) {
		attempts.dead_status = ev->status;
		hal_peer_free(ev->peer);
	}
}

void attempts_pump(void)
{
	struct hal_if *const ifs[] = { attempts.v, attempts.t };
	struct hal_event ev[8];

	for (int i = 0; i < 2; i++) {
		int n;

		hal_if_pump(ifs[i]);
		n = hal_if_service(ifs[i], ev, 8);
		for (int k = 0; k < n; k++)
			take_event(ifs[i], &ev[k]);
	}
}

void attempts_exchange(void)
{
	struct hal_peer *const from[] = { attempts.vt, attempts.tv };
	struct hal_peer *const to[] = { attempts.tv, attempts.vt };

	for (int i = 0; i < 16; i++) {
		const struct hal_cell *cell = NULL;
		uint64_t word = ++attempts.sent, head;

		ATTEMPTS_UNTIL(hal_pkt_send(from[i & 1], hal_head(1, 0), &word,
					    1, NULL, 0) == 0);
		ATTEMPTS_UNTIL((cell = hal_rx_peek(to[i & 1], &head)) != NULL);
		assert_true(hal_cell_word(cell, 0) == word);
		hal_rx_release(to[i & 1]);
		hal_rx_flush(to[i & 1]);
	}
}

int attempts_setup(void **state)
{
	memset(&attempts, 0, sizeof(attempts));
	attempts.rng = 20260101;
	/* tests here assert that nothing wakes a sleeper */
	setenv("FI_UNIMEM_SLEEP_MS", "0", 1);
	assert_int_equal(hal_get(NULL, &attempts.hal), 0);
	if (strcmp(attempts.hal->caps.backend, "emu") != 0) {
		hal_put(attempts.hal);
		attempts.hal = NULL;
		return 0;
	}
	assert_int_equal(hal_if_open(attempts.hal, -1, &attempts.v), 0);
	assert_int_equal(hal_if_open(attempts.hal, -1, &attempts.t), 0);
	assert_int_equal(
		hal_connect(attempts.v, &attempts.t->addr, &attempts.vt), 0);
	ATTEMPTS_UNTIL(attempts.tv != NULL);
	assert_int_equal(
		hal_connect(attempts.t, &attempts.v->addr, &attempts.tv), 0);
	ATTEMPTS_UNTIL(attempts.v->ninbound == 1 && attempts.t->ninbound == 1);
	attempts_exchange();
	attempts.fds = count_fds();
	return 0;
}

int attempts_teardown(void **state)
{
	if (attempts.hal == NULL)
		return 0;
	hal_if_close(attempts.v);
	hal_if_close(attempts.t);
	hal_put(attempts.hal);
	return 0;
}

void attempts_test(void **state)
{
	unit_needs(attempts.hal != NULL);
	((CMUnitTestFunction)*state)(NULL);
}

void attempts_closed(void)
{
	ATTEMPTS_UNTIL(attempts.dead >= attempts.inbound &&
		       count_fds() == attempts.fds);
	attempts_exchange();
}

/* ---- Connection attempts --------------------------------------------- */

struct hal_addr attempt_addr(uint32_t k)
{
	struct hal_addr addr = attempts.v->addr;

	addr.iface = attempts.v->caps->ifs_per_board - k;
	addr.nonce = 4711 + k;
	return addr;
}

int attempt_bind(int fd, const char *kind, const struct hal_addr *addr)
{
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, kind, addr, 0);
	time_t end = attempts_seconds() + ATTEMPTS_PATIENCE;
	int ret;

	/* A socket of an earlier attempt has the name until the victim has
	 * received and closed its descriptor. */
	while ((ret = bind(fd, (struct sockaddr *)&sun, len)) != 0 &&
	       errno == EADDRINUSE && attempts.v != NULL &&
	       attempts_seconds() <= end)
		attempts_pump();
	assert_int_equal(ret, 0);
	return fd;
}

int attempt_socket(int type)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
	close(fds[1]);
	return fds[0];
}

int attempt_proof(const struct hal_addr *addr)
{
	return attempt_bind(attempt_socket(SOCK_DGRAM), "unimem.held", addr);
}

int attempt_connect(const struct hal_addr *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, "unimem", to, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

int attempt_link(size_t bytes)
{
	int fd;

	assert_int_equal(hal_seg_create("unimem-link", bytes, bytes, &fd), 0);
	return fd;
}

struct attempt attempt_hello(const struct hal_addr *from,
			   const struct hal_addr *to)
{
	const struct emu_geo *geo = &((struct hal_emu *)attempts.hal)->geo;
	struct attempt l;

	memset(&l, 0, sizeof(l));
	l.len = sizeof(l.m.hello);
	l.m.head = (struct emu_head){ EMU_MAGIC, EMU_WIRE, EMU_HELLO,
				      sizeof(l.m.hello), 0 };
	l.m.hello.from = *from;
	l.m.hello.to = *to;
	l.m.hello.geo = *geo;
	l.m.hello.flags = EMU_F_BARRIER;
	l.fds[0] = pidfd_open(getpid(), 0);
	l.fds[1] = attempt_link(geo->bytes);
	l.fds[2] = attempt_proof(from);
	l.nfds = 3;
	return l;
}

struct attempt attempt_hello_victim(const struct hal_addr *from)
{
	return attempt_hello(from, &attempts.v->addr);
}

void attempt_close_fds(struct attempt *l)
{
	for (int i = 0; i < l->nfds; i++)
		close(l->fds[i]);
	l->nfds = 0;
}

void attempt_put_fd(struct attempt *l, int i, int fd)
{
	if (i < l->nfds)
		close(l->fds[i]);
	else
		l->nfds = i + 1;
	l->fds[i] = fd;
}

void attempt_send(int conn, struct attempt *l)
{
	union {
		char buf[CMSG_SPACE(ATTEMPT_FDS * sizeof(int))];
		struct cmsghdr align;
	} ctl = { { 0 } };
	struct iovec iov = { &l->m, l->len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (l->nfds != 0) {
		size_t bytes = (size_t)l->nfds * sizeof(int);
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(bytes);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), l->fds, bytes);
	}
	sendmsg(conn, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	attempt_close_fds(l);
}

int attempt_answer(int conn, union emu_msg *m)
{
	time_t end = attempts_seconds() + ATTEMPTS_PATIENCE;
	ssize_t n;

	while ((n = recv(conn, m, sizeof(*m), MSG_DONTWAIT)) < 0 &&
	       errno == EAGAIN) {
		if (attempts.v != NULL)
			attempts_pump();
		else
			sched_yield();
		if (attempts_seconds() > end)
			unit_fail("no answer");
	}
	return n < (ssize_t)sizeof(m->head) ? -ECONNRESET : m->head.status;
}

int attempt_begin(struct attempt *l)
{
	int conn = attempt_connect(&attempts.v->addr);

	attempt_send(conn, l);
	return conn;
}

int attempt_ask(struct attempt *l)
{
	int conn = attempt_begin(l), ret;
	union emu_msg m;

	ret = attempt_answer(conn, &m);
	assert_true(ret != 0 || m.head.type == EMU_WELCOME);
	close(conn);
	return ret;
}

int attempt_accept(const struct hal_addr *addr)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct hal_peer *peer = NULL;
	union emu_msg m;
	int conn;

	attempt_bind(listener, "unimem", addr);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(hal_connect(attempts.v, addr, &peer), 0);
	conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(attempt_answer(conn, &m), 0);
	assert_int_equal(m.head.type, EMU_HELLO);
	close(listener);
	return conn;
}

/* ---- Random contents ------------------------------------------------- */

int attempt_pipe(void)
{
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	close(fd[1]);
	return fd[0];
}

int attempt_file(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

void attempt_any_fds(struct attempt *l)
{
	int n = (int)unit_below(&attempts.rng, ATTEMPT_FDS + 1);

	for (int i = 0; i < n; i++) {
		switch (unit_below(&attempts.rng, 6)) {
		case 0:
			attempt_put_fd(l, i, attempt_pipe());
			break;
		case 1:
			attempt_put_fd(l, i, pidfd_open(getpid(), 0));
			break;
		case 2:
			attempt_put_fd(l, i, attempt_socket(SOCK_DGRAM));
			break;
		case 3:
			attempt_put_fd(l, i, memfd_create("any", MFD_CLOEXEC));
			break;
		case 4:
			attempt_put_fd(l, i, attempt_link(4096));
			break;
		default:
			attempt_put_fd(l, i, attempt_file());
		}
	}
}

struct attempt attempt_any(void)
{
	static const size_t lens[] = {
		sizeof(struct emu_head), sizeof(struct emu_mem_msg),
		sizeof(struct emu_link_msg), sizeof(struct emu_hello),
	};
	struct attempt l;
	uint8_t *bytes = (uint8_t *)&l.m;

	memset(&l, 0, sizeof(l));
	for (size_t i = 0; i < sizeof(l.m); i++)
		bytes[i] = unit_below(&attempts.rng, 3) ? 0 :
			(uint8_t)unit_random(&attempts.rng);
	l.len = lens[unit_below(&attempts.rng, 4)];
	l.m.head = (struct emu_head){
		EMU_MAGIC, EMU_WIRE,
		(uint16_t)unit_below(&attempts.rng, EMU_BYE + 3),
		(uint32_t)l.len, -(int)unit_below(&attempts.rng, 130)};
	if (unit_below(&attempts.rng, 2))
		l.m.head.status = 0;
	if (unit_below(&attempts.rng, 2))
		l.m.link.geo = ((struct hal_emu *)attempts.hal)->geo;
	attempt_any_fds(&l);
	return l;
}
