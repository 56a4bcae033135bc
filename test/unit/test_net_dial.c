/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_dial.c - dials to other hosts that fail for a reason that may pass,
 * and interfaces of processes that lack something to accept them. The test has
 * some functions of the C library of its own, which the HAL calls instead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_state.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

#define MS	UINT64_C(1000000)	/* ns */

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* ---- System calls -------------------------------------------------------- */

/* A call that fails so many times with an errno. */
struct fault {
	int err, left;
	unsigned calls;
};
static struct fault g_connect, g_bind, g_socket, g_accept, g_epoll;
static struct fault g_watch;		/* of a's connections */
static bool g_bound;			/* a socket that dials has a port */

/* Does this call fail? Then errno is set. */
static bool fails(struct fault *fault)
{
	fault->calls++;
	if (fault->left == 0)
		return false;
	fault->left--;
	errno = fault->err;
	return true;
}

int socket(int domain, int type, int protocol)
{
	if (fails(&g_socket))
		return -1;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	if (fails(&g_accept))
		return -1;
	return (int)syscall(SYS_accept4, fd, from, len, flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op != EPOLL_CTL_DEL && net_pair.b.nif != NULL &&
	    fd == net_pair.b.nif->listen.fd && fails(&g_epoll))
		return -1;
	if (op == EPOLL_CTL_ADD && net_pair.a.nif != NULL &&
	    epfd == net_pair.a.nif->epfd && fails(&g_watch))
		return -1;
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

int bind(int fd, const struct sockaddr *at, socklen_t len)
{
	if (fails(&g_bind))
		return -1;
	return (int)syscall(SYS_bind, fd, at, len);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_in self = { 0 };
	socklen_t bytes = sizeof(self);

	getsockname(fd, (struct sockaddr *)&self, &bytes);
	g_bound |= to->sa_family == AF_INET && self.sin_port != 0;
	if (fails(&g_connect))
		return -1;
	return (int)syscall(SYS_connect, fd, to, len);
}

/* ---- Log ----------------------------------------------------------------- */

static char g_logged[512];
static unsigned g_lines;

static void keep_log(int level, const char *line)
{
	if (level != 0)
		return;			/* logged before */
	snprintf(g_logged, sizeof(g_logged), "%s", line);
	g_lines++;
}

static bool g_full;			/* others have all places */

static int setup(void **state)
{
	/* a test that failed may have left some */
	g_connect = g_bind = g_socket = g_accept = (struct fault){ 0 };
	g_epoll = g_watch = (struct fault){ 0 };
	g_bound = false;
	g_logged[0] = '\0';
	g_lines = 0;
	g_full = false;
	return net_pair_setup(state);
}

/* ---- Dials --------------------------------------------------------------- */

/* The network is out for a moment: the peer is connected then. */
static void test_outage(void **state)
{
	static const int errors[] = {
		ENETUNREACH, EHOSTUNREACH, ENETDOWN, ETIMEDOUT,
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		g_connect = (struct fault){ .err = errors[i], .left = 5 };
		net_pair_dial(a, b);
		NET_PAIR_UNTIL(a->connected == 1);
		assert_int_equal(a->dead, 0);
		assert_int_equal(g_connect.calls, 6);
		assert_int_equal(g_lines, 0);
		net_pair_teardown(NULL);
		assert_int_equal(net_pair_setup(NULL), 0);
	}
}

/* The same while the connection of a suspended peer is made again. */
static void test_outage_of_suspended(void **state)
{
	struct net_hal *net = net_pair.hal->net;
	uint64_t word = 1, head;

	net_pair_talk();
	net->links_max = 0;
	NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_SUSPENDED &&
		       net_peer(b->peer)->state == NET_SUSPENDED);
	net->links_max = UINT32_MAX;
	g_connect = (struct fault){ .err = EHOSTUNREACH, .left = 5 };
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	NET_PAIR_UNTIL(a->dead != 0 || hal_rx_peek(b->peer, &head) != NULL);
	assert_int_equal(a->dead, 0);
	assert_int_equal(g_connect.left, 0);
}

/* An outage that is too long ends the peer, with its reason in the log. */
static void test_long_outage(void **state)
{
	a->nif->net->dial_ns = 100 * MS;
	g_connect = (struct fault){ .err = EHOSTUNREACH, .left = 1000 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(a->dead_status, -EHOSTUNREACH);
	assert_in_range(g_connect.calls, 4, 16);
	assert_non_null(strstr(g_logged, strerror(EHOSTUNREACH)));
	assert_int_equal(g_lines, 1);
}

/* Other errors of connect() do not pass. */
static void test_no_outage(void **state)
{
	g_connect = (struct fault){ .err = EACCES, .left = 1 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(g_connect.calls, 1);
}

/* A host that answered late is not silent: the link of its peer ends as any
 * other, although an earlier dial had no answer. */
static void test_late_answer(void **state)
{
	g_connect = (struct fault){ .err = ETIMEDOUT, .left = 1 };
	net_pair_dial(a, b);
	assert_true(net_peer(a->peer)->silent);
	NET_PAIR_UNTIL(a->connected == 1);
	a->nif->net->dead_ns = 1;	/* nobody pumps b meanwhile */
	hal_peer_free(a->peer);
	a->peer = NULL;
	assert_int_equal(net_pair.ended, 1);
	assert_int_equal(net_pair.silenced, 0);
}

/* ---- Receives ------------------------------------------------------------ */

#define OTHERS	(UINT32_MAX / 2)

static uint32_t reaching(void)
{
	return atomic_load(&((struct net_hal *)net_pair.hal->net)->nreaching) -
		(g_full ? OTHERS : 0);
}

/* Others have all places from now on, or none. */
static void others(bool full)
{
	struct net_hal *net = net_pair.hal->net;

	if (full && !g_full)
		atomic_fetch_add(&net->nreaching, OTHERS);
	else if (!full && g_full)
		atomic_fetch_sub(&net->nreaching, OTHERS);
	g_full = full;
}

/* Others have all places, and one more peer wants one. */
static void want_place(void)
{
	others(true);
	assert_false(hal_if_may_resume(a->hif));
}

/* a awaits a packet of b, and has sent nothing. */
static void await_first(void)
{
	net_pair_dial(a, b);
	hal_peer_resume(a->peer);
	hal_peer_resume(a->peer);
	assert_int_equal(reaching(), 1);
}

/* A peer that is dialled only for its awaited packets may answer late, and this
 * process may lack what it needs, for longer than FI_UNIMEM_NET_DIAL_MS. */
static void test_awaited(void **state)
{
	static const int errors[] = {
		ETIMEDOUT, ECONNRESET, EADDRNOTAVAIL, EMFILE, ENOBUFS, ENOSPC,
	};
	struct net_hal *net;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct fault *fault = errors[i] == EMFILE ? &g_socket :
			errors[i] == ENOSPC ? &g_watch : &g_connect;

		net = net_pair.hal->net;
		net->dial_ns = 1;
		*fault = (struct fault){ .err = errors[i], .left = 6 };
		await_first();
		NET_PAIR_UNTIL(a->dead != 0 || fault->left == 0);
		net->dial_ns = 10000 * MS;	/* for b to accept */
		NET_PAIR_UNTIL(a->dead != 0 || a->connected == 1);
		assert_int_equal(a->dead, 0);
		assert_int_equal(g_lines, 0);
		assert_int_equal(reaching(), 0);
		net_pair_teardown(NULL);
		assert_int_equal(net_pair_setup(NULL), 0);
	}
}

/* The same after it was suspended. */
static void test_awaited_again(void **state)
{
	struct net_hal *net = net_pair.hal->net;

	net_pair_talk();
	net->links_max = 0;
	NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_SUSPENDED &&
		       net_peer(b->peer)->state == NET_SUSPENDED);
	net->links_max = UINT32_MAX;
	net->dial_ns = 1;
	g_connect = (struct fault){ .err = ETIMEDOUT, .left = 6 };
	hal_peer_resume(a->peer);
	assert_int_equal(reaching(), 1);
	NET_PAIR_UNTIL(a->dead != 0 || g_connect.left == 0);
	net->dial_ns = 10000 * MS;		/* for b to accept */
	NET_PAIR_UNTIL(a->dead != 0 || net_peer(a->peer)->state == NET_UP);
	assert_int_equal(a->dead, 0);
	assert_int_equal(reaching(), 0);
}

/* A host that is not there ends it, but not at once after another reason to
 * dial again. */
static void test_awaited_of_no_host(void **state)
{
	a->nif->net->dial_ns = 100 * MS;
	g_connect = (struct fault){ .err = ETIMEDOUT, .left = 6 };
	await_first();
	NET_PAIR_UNTIL(g_connect.left == 0);
	g_connect = (struct fault){ .err = EHOSTUNREACH, .left = 1 };
	NET_PAIR_UNTIL(a->dead != 0 || a->connected == 1);
	assert_int_equal(a->dead, 0);
	net_pair_teardown(NULL);
	assert_int_equal(net_pair_setup(NULL), 0);
	a->nif->net->dial_ns = 100 * MS;
	g_connect = (struct fault){ .err = EHOSTUNREACH, .left = 1000 };
	await_first();
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(a->dead_status, -EHOSTUNREACH);
	assert_int_equal(reaching(), 0);
}

/* This host has lost its address: that ends it, too. */
static void test_awaited_without_address(void **state)
{
	a->nif->net->dial_ns = 100 * MS;
	g_bind = (struct fault){ .err = EADDRNOTAVAIL, .left = -1 };
	await_first();
	NET_PAIR_UNTIL(a->dead == 1);
	g_bind.left = 0;
	assert_int_equal(a->dead_status, -ENETDOWN);
	assert_int_equal(g_lines, 1);
	assert_int_equal(reaching(), 0);
}

/* Once something is to be sent, the limits of other dials hold from then on. */
static void test_awaited_then_used(void **state)
{
	uint64_t word = 1;

	a->nif->net->dial_ns = 1;
	g_connect = (struct fault){ .err = ETIMEDOUT, .left = 1000 };
	await_first();
	NET_PAIR_UNTIL(g_connect.calls == 6);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	assert_int_equal(reaching(), 0);
	hal_peer_resume(a->peer);
	assert_int_equal(reaching(), 0);
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ETIMEDOUT);
	assert_in_range(g_connect.calls, 6 + 4, 6 + 6);
}

/* Such connections take descriptors and wait for processes that compute: their
 * number is bounded. */
static void test_awaited_bound(void **state)
{
	struct net_hal *net = net_pair.hal->net;

	for (uint32_t links = 0; links < 200; links += 100) {
		net->links_max = links;
		atomic_store(&net->nreaching, 15);
		assert_true(hal_if_may_resume(a->hif));
		atomic_store(&net->nreaching, 16);
		assert_int_equal(hal_if_may_resume(a->hif), links == 100);
		atomic_store(&net->nlinks, 84);
		assert_false(hal_if_may_resume(a->hif));
		atomic_store(&net->nlinks, 0);
	}
	atomic_store(&net->nreaching, 0);
}

/* A close does not wait for a peer to which nothing was sent, be it dialled or
 * not. */
static void test_awaited_and_closed(void **state)
{
	struct net_hal *net = net_pair.hal->net;
	struct net_side c;
	uint64_t since;

	for (int i = 0; i < 2; i++) {
		since = unm_now_ns();
		net_side_open(&c);
		net_pair_dial(&c, b);
		net->dial_ns = 1;
		hal_peer_resume(c.peer);
		if (i == 1) {
			want_place();
			NET_PAIR_DO_UNTIL(net_side_pump(&c), reaching() == 0);
			others(false);
		}
		net->dead_ns = 30000 * MS;
		hal_if_close(c.hif);
		assert_true(unm_now_ns() - since < 20000 * MS);
		assert_int_equal(reaching(), 0);
	}
}

/* ---- Turns --------------------------------------------------------------- */

#define PLACES	16
#define SOURCES	(PLACES + 4)

static struct source {
	struct hal_host host;
	struct hal_peer *peer;		/* NULL: not connected to yet */
} g_src[SOURCES];
static unsigned g_next;			/* source whose turn is the next */

/* Connect to the sources that are awaited while there are places, as an
 * endpoint does once a second. */
static void await_sources(void)
{
	for (int i = 0; i < SOURCES && a->dead == 0; i++) {
		struct source *s = &g_src[g_next];
		struct hal_addr to = b->hif->addr;

		if (!hal_if_may_resume(a->hif))
			return;
		to.nonce += g_next + 1;
		if (s->peer == NULL)
			assert_int_equal(hal_connect_host(a->hif, &to, &s->host,
							  &s->peer), 0);
		hal_peer_resume(s->peer);
		g_next = (g_next + 1) % SOURCES;
	}
}

/* Have all sources but the last one had so many turns? Ends their pauses. */
static bool had_turns(unsigned turns)
{
	bool all = true;

	for (int i = 0; i < SOURCES - 1; i++) {
		struct net_peer *peer = net_peer(g_src[i].peer);

		all &= peer->resumes >= turns;
		peer->resume_at = 0;
	}
	return all;
}

/* Sources that never answer have all places: hosts that have vanished, to which
 * no connection is made, or processes that compute. The process of one more has
 * ended, which shows nevertheless, and each source has its turns. */
static void test_turns(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct hal_host host = b->nif->host, closed = host;
	int fd, refuses, full[4];

	for (int computes = 0; computes < 2; computes++) {
		refuses = net_rogue_listen(-1, &closed.port);
		fd = net_rogue_listen(computes ? 4 * SOURCES : 0, &host.port);
		sa.sin_port = htons(host.port);
		sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		for (int i = 0; i < 4; i++) {	/* fills the backlog of 0 */
			full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK,
					 0);
			(void)!connect(full[i], (struct sockaddr *)&sa,
				       sizeof(sa));
		}
		for (int i = 0; i < SOURCES; i++)
			g_src[i] = (struct source){
				i < SOURCES - 1 ? host : closed, NULL,
			};
		g_next = 0;
		a->nif->net->links_max = 0;
		a->nif->net->dial_ns = 50 * MS;
		NET_PAIR_DO_UNTIL({
			await_sources();
			assert_in_range(reaching(), 0, PLACES);
			net_side_pump(a);
		}, a->dead == 1);
		assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
		g_src[SOURCES - 1] = g_src[0];
		a->dead = 0;
		NET_PAIR_DO_UNTIL({
			await_sources();
			net_side_pump(a);
		}, had_turns(3));
		assert_int_equal(a->dead, 0);
		for (int i = 0; i < 4; i++)
			close(full[i]);
		close(fd);
		close(refuses);
		net_pair_teardown(NULL);
		assert_int_equal(setup(NULL), 0);
	}
}

/* A connection without an answer stays while nobody wants its place: each one
 * that is closed stays in the backlog of the peer until that accepts it. */
static void test_turn_unwanted(void **state)
{
	struct net_hal *net = net_pair.hal->net;

	net->dial_ns = 1;
	g_connect.calls = 0;			/* those of set-up */
	await_first();
	for (int i = 0; i < 100; i++) {
		assert_true(hal_if_may_resume(a->hif));
		net_side_pump(a);
	}
	assert_int_equal(reaching(), 1);
	assert_int_equal(g_connect.calls, 1);
	net->dial_ns = 10000 * MS;		/* for b to accept */
	NET_PAIR_UNTIL(a->connected == 1);
}

/* Sources that compute have all places and ask for their connections again and
 * again: none of them wants another place. One more source gets the place of
 * one of them, and nothing is closed once it has it. */
static void test_one_turn_for_one(void **state)
{
	struct net_hal *net = net_pair.hal->net;
	struct hal_host host = b->nif->host;
	int fd = net_rogue_listen(4 * PLACES, &host.port);
	struct hal_addr to = b->hif->addr;

	net->links_max = 0;
	net->dial_ns = 1;
	for (int i = 0; i < PLACES; i++) {
		to.nonce++;
		assert_int_equal(hal_connect_host(a->hif, &to, &host,
						  &g_src[i].peer), 0);
	}
	for (int n = 0; n < 100; n++) {
		for (int i = 0; i < PLACES; i++)
			assert_true(hal_peer_resume(g_src[i].peer));
		net_side_pump(a);
		assert_int_equal(reaching(), PLACES);
	}
	assert_false(hal_if_may_resume(a->hif));
	for (int n = 0; n < 100; n++)
		net_side_pump(a);
	assert_int_equal(reaching(), PLACES - 1);
	atomic_store(&net->reach_wanted, true);	/* by one that got the place */
	for (int n = 0; n < 100; n++)
		net_side_pump(a);
	assert_int_equal(reaching(), PLACES - 1);
	assert_false(atomic_load(&net->reach_wanted));
	close(fd);
}

/* Data that are to be sent do not wait for a turn, nor for a pause. */
static void test_turn_over_and_used(void **state)
{
	struct net_hal *net = net_pair.hal->net;
	uint64_t word = 1, head;

	net->dial_ns = 1;
	await_first();
	want_place();
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  net_peer(a->peer)->state == NET_SUSPENDED);
	assert_int_equal(reaching(), 0);
	others(false);
	net_peer(a->peer)->resume_at = UINT64_MAX;
	hal_peer_resume(a->peer);
	assert_int_equal(net_peer(a->peer)->state, NET_SUSPENDED);
	net->dial_ns = 10000 * MS;		/* for b to accept */
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	NET_PAIR_UNTIL(b->peer != NULL && hal_rx_peek(b->peer, &head) != NULL);
	assert_int_equal(a->connected, 1);
	assert_int_equal(a->dead, 0);
}

/* A source that has proven itself, and then computes, may rely on the
 * connection: that stays when its turn is over. Only once it has ended does the
 * source have to wait for its next turn. */
static void test_turn_of_proven(void **state)
{
	struct net_hal *net = net_pair.hal->net;
	uint8_t hello[sizeof(struct net_hello)];
	struct hal_host host = b->nif->host;
	int fd = net_rogue_listen(4, &host.port);
	struct net_peer *peer;
	struct net_rogue r;
	size_t used;

	net_host_name(&b->hif->addr, &host, r.name);
	assert_int_equal(hal_connect_host(a->hif, &b->hif->addr, &host,
					  &a->peer), 0);
	peer = net_peer(a->peer);
	net->dial_ns = 1;
	hal_peer_resume(a->peer);
	NET_PAIR_DO_UNTIL(net_side_pump(a), (r.fd = (int)syscall(
		SYS_accept4, fd, NULL, NULL, 0)) >= 0);
	net_rogue_accept(&r, &host);
	assert_true(net_rogue_recv(&r, a, hello, sizeof(hello)));
	assert_int_equal(net_auth_input(&r.auth, hello, sizeof(hello), &used),
			 0);
	net_rogue_flush(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), peer->state == NET_MEETING);
	want_place();
	NET_PAIR_DO_UNTIL(net_side_pump(a), reaching() == 0);
	assert_int_equal(peer->state, NET_MEETING);
	assert_non_null(peer->conn);
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), peer->state != NET_MEETING);
	assert_int_equal(peer->state, NET_SUSPENDED);
	close(fd);
	peer->resume_at = 0;
	assert_false(hal_peer_resume(a->peer));
	others(false);
	assert_true(hal_peer_resume(a->peer));
	assert_int_equal(reaching(), 1);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
}

/* A host that is not there ends the peer although others want its place. */
static void test_turn_of_no_host(void **state)
{
	a->nif->net->dial_ns = 100 * MS;
	g_connect = (struct fault){ .err = EHOSTUNREACH, .left = -1 };
	await_first();
	NET_PAIR_DO_UNTIL({
		want_place();
		net_side_pump(a);
		others(false);
		if (a->dead == 0) {
			net_peer(a->peer)->resume_at = 0;
			hal_peer_resume(a->peer);
		}
	}, a->dead == 1);
	assert_int_equal(a->dead_status, -EHOSTUNREACH);
	assert_int_equal(reaching(), 0);
}

/* ---- Ports --------------------------------------------------------------- */

/* Each dial leaves the choice of its port to connect(), which needs one only
 * for this destination. */
static void test_port_of_destination(void **state)
{
	net_pair_talk();
	assert_true(g_connect.calls != 0);
	assert_false(g_bound);
}

/* All ports are in use for a moment. */
static void test_no_port(void **state)
{
	g_bind = (struct fault){ .err = EADDRINUSE, .left = 3 };
	g_connect = (struct fault){ .err = EADDRNOTAVAIL, .left = 3 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->connected == 1);
	assert_int_equal(a->dead, 0);
	assert_int_equal(g_bind.left + g_connect.left, 0);
	assert_int_equal(g_lines, 0);
}

/* ---- Descriptors --------------------------------------------------------- */

/* A process that has no descriptor to dial for long: the reason is logged. */
static void test_no_descriptor_to_dial(void **state)
{
	a->nif->net->dial_ns = 100 * MS;
	g_socket = (struct fault){ .err = EMFILE, .left = 1000 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->dead == 1);
	g_socket.left = 0;
	assert_int_equal(a->dead_status, -EMFILE);
	assert_in_range(g_socket.calls, 4, 16);
	assert_non_null(strstr(g_logged, "ulimit -n"));
	assert_int_equal(g_lines, 1);
}

/* ... or none to accept: the connection waits, and a sleeper is woken only now
 * and then to try again. */
static void test_no_descriptor_to_accept(void **state)
{
	struct pollfd pfd = { hal_if_fd(b->hif), POLLIN, 0 };
	uint64_t since;

	g_accept = (struct fault){ .err = EMFILE, .left = 4 };
	since = unm_now_ns();
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(g_accept.calls == 1);
	assert_int_equal(g_lines, 1);
	assert_non_null(strstr(g_logged, "ulimit -n"));
	while (g_accept.left != 0) {
		NET_PAIR_DO_UNTIL(net_side_pump(b), hal_if_arm(b->hif) == 0);
		assert_int_equal(poll(&pfd, 1, NET_PAIR_PATIENCE * 1000), 1);
		hal_if_disarm(b->hif);
		net_side_pump(b);
	}
	assert_true(unm_now_ns() - since >= 3 * 99 * MS);
	NET_PAIR_UNTIL(a->connected == 1);
	assert_int_equal(a->dead, 0);
	assert_int_equal(g_lines, 1);
}

/* A connection that ends leaves its descriptor to the next. */
static void test_descriptor_of_another(void **state)
{
	struct net_rogue r;

	net_rogue_dial(&r, b);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->nhalf == 1);
	g_accept = (struct fault){ .err = EMFILE, .left = 1 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(g_accept.left == 0);
	b->nif->accept_at = UINT64_MAX;
	net_rogue_close(&r);
	NET_PAIR_UNTIL(a->connected == 1);
}

/* ... also outside of hal_if_service(), and if no peer is left, which would
 * wake a sleeper now and then. */
static void test_descriptor_of_freed(void **state)
{
	struct pollfd pfd = { hal_if_fd(b->hif), POLLIN, 0 };
	struct net_side c;

	net_pair_talk();
	net_side_open(&c);
	g_accept = (struct fault){ .err = EMFILE, .left = 1 };
	net_pair_dial(&c, b);
	NET_PAIR_DO_UNTIL(net_side_pump(b), g_accept.left == 0);
	b->nif->net->dead_ns = 1;
	b->nif->accept_at = UINT64_MAX;
	hal_peer_free(b->peer);
	b->peer = NULL;
	NET_PAIR_DO_UNTIL(, hal_if_arm(b->hif) == 0);
	assert_int_equal(poll(&pfd, 1, NET_PAIR_PATIENCE * 1000), 1);
	hal_if_disarm(b->hif);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->nhalf == 1);
	hal_if_close(c.hif);
}

/* The listener cannot be polled again for want of memory in the kernel. */
static void test_no_memory_to_listen(void **state)
{
	struct pollfd pfd = { hal_if_fd(b->hif), POLLIN, 0 };

	g_accept = (struct fault){ .err = EMFILE, .left = 1 };
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(g_accept.left == 0);
	g_epoll = (struct fault){ .err = ENOMEM, .left = 2 };
	NET_PAIR_UNTIL(g_epoll.left == 0);
	while (!b->nif->listening) {
		NET_PAIR_DO_UNTIL(, hal_if_arm(b->hif) == 0);
		assert_int_equal(poll(&pfd, 1, NET_PAIR_PATIENCE * 1000), 1);
		hal_if_disarm(b->hif);
		net_side_pump(b);
	}
	NET_PAIR_UNTIL(a->connected == 1);
}

/* A peer that has dialled was connected, whatever notices its end first. */
static void test_answers_one_that_ends(void **state)
{
	struct hal_peer *peer = NULL;
	uint64_t word = 7, head;

	net_pair_dial(a, b);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	NET_PAIR_UNTIL(b->peer != NULL && hal_rx_peek(b->peer, &head) != NULL);
	net_peer_dying(net_peer(b->peer), -FI_ECONNRESET);
	assert_int_equal(hal_connect_host(b->hif, &a->hif->addr, a->hif->host,
					  &peer), -FI_EAGAIN);
	assert_null(peer);
	NET_PAIR_UNTIL(b->dead == 1);
	assert_int_equal(b->dead_status, -FI_ECONNRESET);
}

#define TEST(f)								\
	{ #f, net_pair_test, setup, net_pair_teardown, (void *)f }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_outage),
		TEST(test_outage_of_suspended),
		TEST(test_long_outage),
		TEST(test_no_outage),
		TEST(test_late_answer),
		TEST(test_awaited),
		TEST(test_awaited_again),
		TEST(test_awaited_of_no_host),
		TEST(test_awaited_without_address),
		TEST(test_awaited_then_used),
		TEST(test_awaited_bound),
		TEST(test_awaited_and_closed),
		TEST(test_turns),
		TEST(test_turn_unwanted),
		TEST(test_one_turn_for_one),
		TEST(test_turn_over_and_used),
		TEST(test_turn_of_proven),
		TEST(test_turn_of_no_host),
		TEST(test_port_of_destination),
		TEST(test_no_port),
		TEST(test_no_descriptor_to_dial),
		TEST(test_no_descriptor_to_accept),
		TEST(test_descriptor_of_another),
		TEST(test_descriptor_of_freed),
		TEST(test_no_memory_to_listen),
		TEST(test_answers_one_that_ends),
	};

	hal_log_set(keep_log);
	return unit_run(tests);
}
