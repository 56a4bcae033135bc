/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_attempts.c - unknown senders at the socket of an interface of the
 * emulation; see connect_attempts.h.
 *
 * Owns the interface under test, the interface of its regular peer, and the
 * sockets of the unknown senders.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/connect_attempts.h"

struct knock knock;
/* ---- The victim and its friend --------------------------------------- */

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

time_t knock_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void take_event(struct hal_if *hif, const struct hal_event *ev)
{
	bool friends = ev->peer == knock.vt || ev->peer == knock.tv;

	if (ev->type == HAL_EV_DEAD && friends)
		unit_fail("a friend was given up: %d", ev->status);
	if (ev->type == HAL_EV_INBOUND && hif == knock.t)
		knock.tv = ev->peer;
	if (hif == knock.v && !friends) {
		knock.inbound += ev->type == HAL_EV_INBOUND;
		knock.connected += ev->type == HAL_EV_CONNECTED;
		knock.dead += ev->type == HAL_EV_DEAD;
	}
	if (ev->type == HAL_EV_DEAD) {
		knock.dead_status = ev->status;
		hal_peer_free(ev->peer);
	}
}

void knock_pump(void)
{
	struct hal_if *const ifs[] = { knock.v, knock.t };
	struct hal_event ev[8];

	for (int i = 0; i < 2; i++) {
		int n;

		hal_if_pump(ifs[i]);
		n = hal_if_service(ifs[i], ev, 8);
		for (int k = 0; k < n; k++)
			take_event(ifs[i], &ev[k]);
	}
}

/* Packets both ways between those who keep to the rules. */
void knock_friends(void)
{
	struct hal_peer *const from[] = { knock.vt, knock.tv };
	struct hal_peer *const to[] = { knock.tv, knock.vt };

	for (int i = 0; i < 16; i++) {
		const struct hal_cell *cell = NULL;
		uint64_t word = ++knock.sent, head;

		KNOCK_UNTIL(hal_pkt_send(from[i & 1], hal_head(1, 0), &word, 1,
					NULL, 0) == 0);
		KNOCK_UNTIL((cell = hal_rx_peek(to[i & 1], &head)) != NULL);
		assert_true(hal_cell_word(cell, 0) == word);
		hal_rx_release(to[i & 1]);
		hal_rx_flush(to[i & 1]);
	}
}

int knock_setup(void **state)
{
	(void)state;
	memset(&knock, 0, sizeof(knock));
	knock.rng = 20260101;
	assert_int_equal(hal_get(NULL, &knock.hal), 0);
	if (strcmp(knock.hal->caps.backend, "emu") != 0) {
		hal_put(knock.hal);
		knock.hal = NULL;
		return 0;
	}
	assert_int_equal(hal_if_open(knock.hal, -1, &knock.v), 0);
	assert_int_equal(hal_if_open(knock.hal, -1, &knock.t), 0);
	assert_int_equal(hal_connect(knock.v, &knock.t->addr, &knock.vt), 0);
	KNOCK_UNTIL(knock.tv != NULL);
	assert_int_equal(hal_connect(knock.t, &knock.v->addr, &knock.tv), 0);
	KNOCK_UNTIL(knock.v->ninbound == 1 && knock.t->ninbound == 1);
	knock_friends();
	knock.fds = count_fds();
	return 0;
}

int knock_teardown(void **state)
{
	(void)state;
	if (knock.hal == NULL)
		return 0;
	hal_if_close(knock.v);
	hal_if_close(knock.t);
	hal_put(knock.hal);
	return 0;
}

/* All strangers have hung up: nothing of them is left. */
void knock_gone(void)
{
	KNOCK_UNTIL(knock.dead >= knock.inbound && count_fds() == knock.fds);
	knock_friends();
}

/* ---- A stranger ------------------------------------------------------ */

/* One of the last numbers of the board, which nobody else gets to. */
struct hal_addr knock_addr(uint32_t k)
{
	struct hal_addr addr = knock.v->addr;

	addr.iface = knock.v->caps->ifs_per_board - k;
	addr.nonce = 4711 + k;
	return addr;
}

int knock_name(int fd, const char *kind, const struct hal_addr *addr)
{
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, kind, addr, 0);
	int ret;

	/* a letter that has the name may still be unread */
	while ((ret = bind(fd, (struct sockaddr *)&sun, len)) != 0 &&
	       errno == EADDRINUSE && knock.v != NULL)
		knock_pump();
	assert_int_equal(ret, 0);
	return fd;
}

int knock_half(int type)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
	close(fds[1]);
	return fds[0];
}

int knock_proof(const struct hal_addr *addr)
{
	return knock_name(knock_half(SOCK_DGRAM), "unimem.held", addr);
}

int knock_dial(const struct hal_addr *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, "unimem", to, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

int knock_link(size_t bytes)
{
	int fd;

	assert_int_equal(hal_seg_create("unimem-link", bytes, bytes, &fd), 0);
	return fd;
}

/* A hello with nothing wrong in it. */
struct letter knock_hello(const struct hal_addr *from,
			   const struct hal_addr *to)
{
	const struct emu_geo *geo = &((struct hal_emu *)knock.hal)->geo;
	struct letter l;

	memset(&l, 0, sizeof(l));
	l.len = sizeof(l.m.hello);
	l.m.head = (struct emu_head){ EMU_MAGIC, EMU_WIRE, EMU_HELLO,
				      sizeof(l.m.hello), 0 };
	l.m.hello.from = *from;
	l.m.hello.to = *to;
	l.m.hello.geo = *geo;
	l.m.hello.flags = EMU_F_BARRIER;
	l.fds[0] = pidfd_open(getpid(), 0);
	l.fds[1] = knock_link(geo->bytes);
	l.fds[2] = knock_proof(from);
	l.nfds = 3;
	return l;
}

void knock_burn(struct letter *l)
{
	for (int i = 0; i < l->nfds; i++)
		close(l->fds[i]);
	l->nfds = 0;
}

void knock_put(struct letter *l, int i, int fd)
{
	if (i < l->nfds)
		close(l->fds[i]);
	else
		l->nfds = i + 1;
	l->fds[i] = fd;
}

/* Sent or not (the other end may have hung up); its descriptors are closed. */
void knock_post(int conn, struct letter *l)
{
	union {
		char buf[CMSG_SPACE(KNOCK_FDS * sizeof(int))];
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
	knock_burn(l);
}

/* What comes back: its status, or that the other end hung up. Descriptors that
 * come with it are dropped. */
int knock_answer(int conn, union emu_msg *m)
{
	time_t end = knock_seconds() + KNOCK_PATIENCE;
	ssize_t n;

	while ((n = recv(conn, m, sizeof(*m), MSG_DONTWAIT)) < 0 &&
	       errno == EAGAIN) {
		if (knock.v != NULL)
			knock_pump();
		else
			sched_yield();
		if (knock_seconds() > end)
			unit_fail("no answer");
	}
	return n < (ssize_t)sizeof(m->head) ? -ECONNRESET : m->head.status;
}

int knock_say(struct letter *l)
{
	int conn = knock_dial(&knock.v->addr), ret;
	union emu_msg m;

	knock_post(conn, l);
	ret = knock_answer(conn, &m);
	assert_true(ret != 0 || m.head.type == EMU_WELCOME);
	close(conn);
	return ret;
}

/* Listen at a number, and the victim calls: the connection with its hello. */
int knock_called(const struct hal_addr *addr)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct hal_peer *peer = NULL;
	union emu_msg m;
	int conn;

	knock_name(listener, "unimem", addr);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(hal_connect(knock.v, addr, &peer), 0);
	conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(knock_answer(conn, &m), 0);
	assert_int_equal(m.head.type, EMU_HELLO);
	close(listener);
	return conn;
}

/* ---- Anything at all ------------------------------------------------- */

int knock_pipe(void)
{
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	close(fd[1]);
	return fd[0];
}

int knock_file(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

void knock_any_fds(struct letter *l)
{
	int n = (int)unit_below(&knock.rng, KNOCK_FDS + 1);

	for (int i = 0; i < n; i++) {
		switch (unit_below(&knock.rng, 6)) {
		case 0:
			knock_put(l, i, knock_pipe());
			break;
		case 1:
			knock_put(l, i, pidfd_open(getpid(), 0));
			break;
		case 2:
			knock_put(l, i, knock_half(SOCK_DGRAM));
			break;
		case 3:
			knock_put(l, i, memfd_create("any", MFD_CLOEXEC));
			break;
		case 4:
			knock_put(l, i, knock_link(4096));
			break;
		default:
			knock_put(l, i, knock_file());
		}
	}
}

/* A message of a known type, with anything in it. */
struct letter knock_any(void)
{
	static const size_t lens[] = {
		sizeof(struct emu_head), sizeof(struct emu_mem_msg),
		sizeof(struct emu_link_msg), sizeof(struct emu_hello),
	};
	struct letter l;
	uint8_t *bytes = (uint8_t *)&l.m;

	memset(&l, 0, sizeof(l));
	for (size_t i = 0; i < sizeof(l.m); i++)
		bytes[i] = unit_below(&knock.rng, 3) ? 0 :
			(uint8_t)unit_random(&knock.rng);
	l.len = lens[unit_below(&knock.rng, 4)];
	l.m.head = (struct emu_head){ EMU_MAGIC, EMU_WIRE,
		(uint16_t)unit_below(&knock.rng, EMU_BYE + 3), (uint32_t)l.len,
		-(int)unit_below(&knock.rng, 130) };
	if (unit_below(&knock.rng, 2))
		l.m.head.status = 0;
	if (unit_below(&knock.rng, 2))
		l.m.link.geo = ((struct hal_emu *)knock.hal)->geo;
	knock_any_fds(&l);
	return l;
}
