/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_net.c - peers on other hosts for the conformance test (--hal net)
 *
 * Each interface counts as a host of its own: this file writes another identity
 * into the interface's struct hal_host before anybody connects. So
 * hal_connect_host() uses the network, here the loopback interface, also inside
 * one process. Tests know addresses only: this file owns the list of the hosts
 * of all addresses that the process has met. It also closes interfaces and
 * frees peers while the other interfaces are stepped, because both wait for the
 * acknowledgements of peers (docs/hal.md, 16.6).
 */
#include "conform/hal_conform.h"

#define HOSTS		1024		/* addresses that are remembered */
#define WARM_UP_NS	(10 * CT_SECOND)

/* ---- Hosts ----------------------------------------------------------- */

static struct hal_addr_host hosts[HOSTS];	/* a ring */
static unsigned nhosts;			/* entries made so far */

void ct_host_note(const struct hal_addr *addr, const struct hal_host *host)
{
	struct hal_addr_host *at = &hosts[nhosts++ % HOSTS];

	at->addr = *addr;
	at->host = *host;
}

void ct_host_join(struct hal_if *hif)
{
	struct hal_host *host;

	if (!ct_net())
		return;
	/* the interface owns it, and nobody has read it yet */
	host = (struct hal_host *)(uintptr_t)hif->host;
	memcpy(host->id, &hif->addr.nonce, sizeof(host->id));
	ct_host_note(&hif->addr, host);
}

/*
 * The host of an address; of an address that nobody has had, that of the last
 * holder of the interface, else any host: the connection must then be refused.
 */
const struct hal_host *ct_host_of(const struct hal_addr *addr)
{
	unsigned n = nhosts < HOSTS ? nhosts : HOSTS;
	const struct hal_host *holder = NULL;

	for (unsigned i = 1; i <= n; i++) {
		const struct hal_addr_host *at = &hosts[(nhosts - i) % HOSTS];

		if (at->addr.board != addr->board ||
		    at->addr.iface != addr->iface)
			continue;
		if (at->addr.nonce == addr->nonce)
			return &at->host;
		if (holder == NULL)
			holder = &at->host;
	}
	return holder != NULL || n == 0 ? holder :
		&hosts[(nhosts - 1) % HOSTS].host;
}

int ct_hal_connect(struct hal_if *hif, const struct hal_addr *to,
		   struct hal_peer **peer)
{
	return ct_net() ? hal_connect_host(hif, to, ct_host_of(to), peer) :
		hal_connect(hif, to, peer);
}

int ct_try_answer(struct ct_if *ci, struct hal_peer *peer)
{
	uint64_t limit = ct_deadline();
	int ret = 0;

	while (!peer->tx.open && ct_now() < limit) {
		ret = hal_connect_host(ci->hif, &peer->addr, peer->host, &peer);
		if (ret != -FI_EAGAIN)
			break;
		ct_step(ci);
	}
	return ret;
}

/* ---- Ends ------------------------------------------------------------ */

static void *end(void *arg)
{
	struct ct_ending *e = arg;

	if (e->peer != NULL)
		hal_peer_free(e->peer);
	else
		hal_if_close(e->hif);
	atomic_store(&e->done, true);
	return NULL;
}

static void begin(struct ct_ending *e, struct hal_if *hif,
		  struct hal_peer *peer)
{
	e->hif = hif;
	e->peer = peer;
	atomic_store(&e->done, false);
	if (ct_net())
		e->thread = unit_thread(end, e);
	else
		end(e);
}

void ct_end_wait(struct ct_ending *e)
{
	if (!ct_net())
		return;
	while (!atomic_load(&e->done)) {
		for (int i = 0; i < CT_IFS; i++)
			if (ct_ifs[i].hif != NULL && ct_ifs[i].hif != e->hif)
				ct_step(&ct_ifs[i]);
		sched_yield();
	}
	pthread_join(e->thread, NULL);
}

void ct_close_begin(struct ct_if *ci, struct ct_ending *e)
{
	struct hal_if *hif = ci->hif;

	ci->hif = NULL;
	ci->nev = 0;
	begin(e, hif, NULL);
}

void ct_close(struct ct_if *ci)
{
	struct ct_ending e;

	ct_close_begin(ci, &e);
	ct_end_wait(&e);
}

void ct_peer_free(struct hal_peer *peer)
{
	struct ct_ending e;

	begin(&e, peer->hif, peer);
	ct_end_wait(&e);
}

/* ---- Start ----------------------------------------------------------- */

/* Is there such an event? */
static bool met(struct hal_if *hif, enum hal_event_type type)
{
	struct hal_event ev[4];
	int n = hal_if_service(hif, ev, 4);

	while (n > 0 && ev[n - 1].type != type)
		n--;
	return n > 0;
}

/* Connect two interfaces. The engine is loaded by that, and allocates what it
 * allocates once for a process. */
int ct_net_warm_up(void)
{
	uint64_t limit = ct_now() + WARM_UP_NS;
	struct hal_if *a, *b = NULL;
	struct hal_peer *peer;
	bool up = false;
	int ret;

	if (!ct_net())
		return 0;
	ret = hal_if_open(ct_hal, -1, &a);
	if (ret != 0)
		return ret;
	ret = hal_if_open(ct_hal, -1, &b);
	if (ret == 0) {
		ct_host_join(a);
		ct_host_join(b);
		ret = ct_hal_connect(a, &b->addr, &peer);
	}
	while (ret == 0 && !up) {
		hal_if_service(b, NULL, 0);
		up = met(a, HAL_EV_CONNECTED);
		if (ct_now() > limit)
			ret = -FI_ETIMEDOUT;
	}
	/* a has sent nothing after its connection was accepted */
	if (b != NULL)
		hal_if_close(b);
	hal_if_close(a);
	return ret;
}
