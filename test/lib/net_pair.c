/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_pair.c - two interfaces of one process as on different hosts, their
 * engine, and rogues; see net_pair.h.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "hal/net/hal_net_host.h"
#include "lib/net_pair.h"

struct net_pair net_pair;

/* ---- Engine ------------------------------------------------------------ */

#define FAKE_WORKERS	NET_SIDES_MAX
#define FAKE_ADDRESS	UINT64_C(0x1122334455667788)

struct fake_message {
	struct unm_list link;
	size_t len;
	uint8_t bytes[NET_FRAME_MAX];
};

struct net_worker {
	const struct net_upcalls *up;
	void *owner;
	struct unm_list queue;		/* of fake_message */
	bool settled;			/* the last call was a progress() that
					 * found nothing */
};

struct net_link {
	struct net_worker *from, *to;
};

static struct net_worker g_workers[FAKE_WORKERS];

static struct net_worker *worker_of(const void *owner)
{
	for (int i = 0; i < FAKE_WORKERS; i++)
		if (g_workers[i].owner == owner)
			return &g_workers[i];
	return NULL;
}

/* Does this call lack descriptors or memory? 0, or the error. */
static int lacks(const void *owner, int *left)
{
	if (*left == 0 || owner != net_pair.lack.of->nif)
		return 0;
	--*left;
	return net_pair.lack.memory ? -FI_ENOMEM : -FI_EMFILE;
}

static int fake_open(const struct net_worker_conf *conf,
		     struct net_worker **out)
{
	struct net_worker *w = worker_of(NULL);
	int ret = lacks(conf->owner, &net_pair.lack.open);

	if (ret != 0)
		return ret;
	assert_non_null(w);
	assert_int_equal(conf->dead_ms, 3000);
	w->up = conf->up;
	w->owner = conf->owner;
	unm_list_init(&w->queue);
	*out = w;
	return 0;
}

static int fake_close(struct net_worker *w)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&w->queue)) != NULL)
		free(unm_container(node, struct fake_message, link));
	w->owner = NULL;
	return 0;
}

static int fake_address(struct net_worker *w, void *buf, size_t *len)
{
	uint64_t address[2] = { FAKE_ADDRESS, (uint64_t)(w - g_workers) };
	int ret = lacks(w->owner, &net_pair.lack.address);

	if (ret != 0)
		return ret;
	memcpy(buf, address, sizeof(address));
	*len = sizeof(address);
	return 0;
}

static unsigned fake_progress(struct net_worker *w)
{
	struct unm_list *node = unm_list_pop(&w->queue);
	struct fake_message *m;

	w->settled = node == NULL;
	if (node == NULL)
		return 0;
	m = unm_container(node, struct fake_message, link);
	w->up->received(w->owner, m->bytes, m->len);
	free(m);
	return 1;
}

/* UCX may not wake if progress() had work at the last call. */
static int fake_arm(struct net_worker *w)
{
	assert_true(w->settled);
	return unm_list_empty(&w->queue) ? 0 : -FI_EAGAIN;
}

/* The address of a rogue is one of a worker that takes nothing. */
static int fake_connect(struct net_worker *w, const void *address, size_t len,
			void *peer, struct net_link **out)
{
	uint64_t to[2];
	int ret;

	(void)peer;
	if (len != sizeof(to))
		return -FI_EINVAL;
	memcpy(to, address, len);
	if (to[0] != FAKE_ADDRESS || to[1] > FAKE_WORKERS)
		return -FI_EINVAL;
	ret = lacks(w->owner, &net_pair.lack.connect);
	if (ret != 0)
		return ret;
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	(*out)->from = w;
	(*out)->to = to[1] < FAKE_WORKERS ? &g_workers[to[1]] : NULL;
	return 0;
}

static void fake_push(struct net_worker *to, const void *data, size_t len)
{
	struct fake_message *m = malloc(sizeof(*m));

	assert_non_null(m);
	assert_true(len <= sizeof(m->bytes));
	unm_list_init(&m->link);
	memcpy(m->bytes, data, len);
	m->len = len;
	unm_list_append(&to->queue, &m->link);
}

static int fake_send(struct net_link *link, struct net_message *message,
		     const void *data, size_t len)
{
	(void)message;
	link->from->settled = false;
	if (net_pair.lose != 0 && --net_pair.lose == 0)
		return 0;
	if (link->to != NULL && link->to->owner != NULL)
		fake_push(link->to, data, len);
	return 0;
}

static void fake_disconnect(struct net_link *link, const uint8_t *silent)
{
	net_pair.ended++;
	net_pair.silenced += silent != NULL;
	free(link);
}

static const struct net_engine engine = {
	.abi = NET_ENGINE_ABI, .name = "lists", .open = fake_open,
	.close = fake_close, .address = fake_address,
	.progress = fake_progress, .arm = fake_arm, .connect = fake_connect,
	.send = fake_send, .disconnect = fake_disconnect,
};

static void toy_mac(uint8_t mac[NET_MAC], const uint8_t *key, size_t nkey,
		    const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint64_t h = 1;

	for (size_t i = 0; i < nkey; i++)
		h = (h ^ key[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < len; i++)
		h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < NET_MAC; i++)
		mac[i] = (uint8_t)((h >> 8 * (i % 8)) + i);
}

static bool toy_equal(const uint8_t a[NET_MAC], const uint8_t b[NET_MAC])
{
	return memcmp(a, b, NET_MAC) == 0;
}

static const struct net_crypto crypto = {
	.abi = NET_ENGINE_ABI, .mac = toy_mac, .equal = toy_equal,
};

unsigned net_pair_frames(const struct net_side *s)
{
	struct net_worker *w = s->nif->worker;
	unsigned n = 0;

	if (w != NULL)
		unm_list_for_each(pos, &w->queue)
			n++;
	return n;
}

void net_pair_frame(struct net_side *to, const void *frame, size_t len)
{
	const struct net_worker *w = to->nif->worker;

	if (w != NULL)
		w->up->received(w->owner, frame, len);
}

/* ---- Interfaces -------------------------------------------------------- */

int64_t net_pair_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

int net_pair_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void take_event(struct net_side *s, const struct hal_event *ev)
{
	s->inbound += ev->type == HAL_EV_INBOUND;
	s->connected += ev->type == HAL_EV_CONNECTED;
	if (s->peer == NULL)
		s->peer = ev->peer;
	if (ev->type != HAL_EV_DEAD)
		return;
	s->dead++;
	s->dead_status = ev->status;
	if (s->peer == ev->peer)
		s->peer = NULL;
	hal_peer_free(ev->peer);
}

void net_side_pump(struct net_side *s)
{
	struct hal_event ev[8];
	int n;

	hal_if_pump(s->hif);
	n = hal_if_service(s->hif, ev, 8);
	for (int i = 0; i < n; i++)
		take_event(s, &ev[i]);
}

void net_pair_pump(void)
{
	net_side_pump(&net_pair.a);
	net_side_pump(&net_pair.b);
}

static bool waits_for_nothing(struct hal_peer *peer)
{
	(void)peer;
	return false;
}

/* Open an interface that is on another host than the one before. */
static int side_open(struct net_side *s)
{
	((struct net_hal *)net_pair.hal->net)->host.id[0]++;
	if (hal_if_open(net_pair.hal, -1, &s->hif) != 0)
		return -1;
	s->nif = s->hif->net;
	s->hif->peer_waits = waits_for_nothing;
	s->nif->crypto = &crypto;
	s->nif->engine = &engine;
	return 0;
}

void net_side_open(struct net_side *s)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(side_open(s), 0);
}

int net_pair_setup(void **state)
{
	uint64_t rng = net_pair.rng;

	(void)state;
	memset(&net_pair, 0, sizeof(net_pair));
	net_pair.rng = rng != 0 ? rng : 20261123;
	setenv("FI_UNIMEM_NET", "lo", 1);
	if (hal_get(NULL, &net_pair.hal) != 0) {
		net_pair.hal = NULL;
		return 0;
	}
	return side_open(&net_pair.a) != 0 || side_open(&net_pair.b) != 0;
}

int net_pair_teardown(void **state)
{
	(void)state;
	if (net_pair.hal == NULL)
		return 0;
	/* a close waits for acknowledgements, but one thread has both sides */
	net_pair.a.nif->net->dead_ns = 1;
	hal_if_close(net_pair.a.hif);
	hal_if_close(net_pair.b.hif);
	hal_put(net_pair.hal);
	return 0;
}

void net_pair_test(void **state)
{
	unit_needs(net_pair.hal != NULL);
	((CMUnitTestFunction)*state)(NULL);
}

void net_pair_dial(struct net_side *from, const struct net_side *to)
{
	assert_int_equal(hal_connect_host(from->hif, &to->hif->addr,
					  to->hif->host, &from->peer), 0);
}

/* Send a word, and receive it. */
static void pass(struct net_side *from, struct net_side *to, uint64_t word)
{
	const struct hal_cell *cell = NULL;
	uint64_t head;

	NET_PAIR_UNTIL(hal_pkt_send(from->peer, hal_head(1, 0), &word, 1, NULL,
				    0) == 0);
	NET_PAIR_UNTIL((cell = hal_rx_peek(to->peer, &head)) != NULL);
	assert_true(hal_cell_word(cell, 0) == word);
	hal_rx_release(to->peer);
	hal_rx_flush(to->peer);
}

void net_pair_talk(void)
{
	struct net_side *a = &net_pair.a, *b = &net_pair.b;

	net_pair_dial(a, b);
	net_pair_dial(b, a);
	NET_PAIR_UNTIL(a->hif->ninbound != 0 && b->hif->ninbound != 0);
	for (uint64_t i = 0; i < 16; i++) {
		pass(a, b, i);
		pass(b, a, i << 32);
	}
}

/* ---- Rogues ------------------------------------------------------------ */

static struct sockaddr_in lo_at(uint16_t port)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	return sa;
}

int net_rogue_listen(int backlog, uint16_t *port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in sa = lo_at(0);
	socklen_t len = sizeof(sa);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

void net_rogue_dial(struct net_rogue *r, const struct net_side *to)
{
	struct sockaddr_in sa = lo_at(to->nif->host.port);
	struct hal_host host = to->nif->host;
	struct hal_addr addr = to->hif->addr;

	memset(r, 0, sizeof(*r));
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(r->fd >= 0);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	addr.nonce = unit_random(&net_pair.rng) | 1;
	host.id[5] ^= 0xff;
	net_host_name(&addr, &host, r->name);
}

static void begin(struct net_rogue *r)
{
	r->auth.mac = toy_mac;
	r->auth.equal = toy_equal;
	for (int i = 0; i < NET_NONCE; i++)
		r->auth.nonce[i] = (uint8_t)unit_random(&net_pair.rng);
}

void net_rogue_accept(struct net_rogue *r, const struct hal_host *host)
{
	begin(r);
	net_auth_accept(&r->auth, r->name, host->secret, NULL);
}

void net_rogue_hello(struct net_rogue *r, const struct net_side *to)
{
	uint8_t name[NET_NAME];

	net_host_name(&to->hif->addr, &to->nif->host, name);
	begin(r);
	net_auth_dial(&r->auth, r->name, name, NET_KIND_ADDRESS,
		      to->nif->host.secret);
}

/* The other side may have closed the connection. */
void net_rogue_send(struct net_rogue *r, const void *data, size_t len)
{
	(void)!send(r->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void net_rogue_flush(struct net_rogue *r)
{
	net_rogue_send(r, r->auth.out, r->auth.nout);
	r->auth.nout = 0;
}

bool net_rogue_recv(struct net_rogue *r, struct net_side *from, void *data,
		    size_t len)
{
	ssize_t n = -1;
	size_t at = 0;

	while (at < len) {
		NET_PAIR_DO_UNTIL(net_side_pump(from),
				  (n = recv(r->fd, (uint8_t *)data + at,
					    len - at, MSG_DONTWAIT)) >= 0 ||
				  errno != EAGAIN);
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

bool net_rogue_prove(struct net_rogue *r, struct net_side *to)
{
	uint8_t answer[sizeof(struct net_answer)];
	size_t used;

	net_rogue_hello(r, to);
	net_rogue_flush(r);
	if (!net_rogue_recv(r, to, answer, sizeof(answer)) ||
	    net_auth_input(&r->auth, answer, sizeof(answer), &used) != 0)
		return false;
	net_rogue_flush(r);
	return true;
}

void net_rogue_close(struct net_rogue *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void net_rogue_closed(struct net_rogue *r, struct net_side *by)
{
	uint8_t byte;

	while (net_rogue_recv(r, by, &byte, 1))
		;
	net_rogue_close(r);
}

size_t net_rogue_meet(struct net_rogue *r, uint8_t msg[NET_CTL_MAX])
{
	const struct hal_caps *caps = net_pair.a.hif->caps;
	const uint64_t address[2] = { FAKE_ADDRESS, FAKE_WORKERS };
	struct net_meet meet = {
		.ctl.type = NET_CTL_MEET, .token = 4711, .slot = 1,
		.depth = caps->pkt_depth, .payload = caps->pkt_payload,
		.space = caps->space_bytes,
	};

	memset(msg, 0, NET_CTL_MAX);
	memcpy(msg, &meet, sizeof(meet));
	memcpy(msg + sizeof(meet), address, sizeof(address));
	return net_auth_seal(&r->auth, msg, sizeof(meet) + sizeof(address));
}
