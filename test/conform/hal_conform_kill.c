/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_kill.c - conformance tests of a process that is killed or stopped
 * at each fault point: it must neither block nor corrupt other processes, and
 * leave no resources behind
 */
#include <inttypes.h>

#include "hal/hal_fault_point.h"
#include "conform/hal_conform.h"

#define PINGS		12
#define REGION		(3u << 20)

/* Connections that must work while a process is killed. */
struct scene {
	struct ct_if *ci;
	struct ct_child *other;
	struct hal_peer *living;
	struct hal_mem *mem;
	struct hal_key key;
	uint64_t word;
};
static struct scene scene;

static void scene_open(void)
{
	void *addr;

	memset(&scene, 0, sizeof(scene));
	scene.ci = ct_open(0);
	scene.other = ct_spawn();
	scene.living = ct_connect(scene.ci, &scene.other->addr);
	assert_int_equal(ct_mem_alloc(0, REGION, &scene.mem, &addr), 0);
	assert_int_equal(hal_mem_key(ct_hal, scene.mem, &scene.key), 0);
}

/* Check that the connections of the scene work. */
static void scene_check(void)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ct_send(scene.ci, scene.living, CT_TYPE_PING,
					 ++scene.word), 0);
		assert_true(ct_recv(scene.living, CT_TYPE_PONG) == scene.word);
	}
	assert_false(scene.living->dead);
}

static void scene_close(void)
{
	scene_check();
	ct_finish(scene.other);
	hal_mem_free(ct_hal, scene.mem);
}

/* ---- The process that is killed -------------------------------------- */

struct victim {
	struct ct_child *c;
	struct hal_peer *peer;		/* NULL: not connected yet */
	bool we_first;			/* this process connects first */
	uint64_t pinged, ponged, heard;
};

/* Receive the pings and pongs of the victim, each kind in order, with their
 * bytes in the receive space. */
static void listen_to(struct victim *v)
{
	const struct hal_cell *cell;
	uint64_t head, word;

	while (v->peer != NULL && (cell = ct_peek(v->peer, &head)) != NULL) {
		word = hal_cell_word(cell, 0);
		if (hal_head_type(head) == CT_TYPE_PING) {
			assert_true(word == v->heard++);
			assert_true(ct_filled(hal_space(v->peer, word * 64), 64,
					      word));
		} else {
			assert_int_equal(hal_head_type(head), CT_TYPE_PONG);
			assert_true(word == v->ponged++);
		}
		hal_rx_release(v->peer);
		hal_rx_flush(v->peer);
	}
}

/* Find the victim among the inbound peers, if it has connected. */
static void find_peer(struct victim *v)
{
	struct hal_event ev;

	while (v->peer == NULL &&
	       ct_take_event(scene.ci, HAL_EV_INBOUND, NULL, &ev)) {
		if (ev.peer != scene.living)
			v->peer = ev.peer;
	}
}

/* Expect HAL_EV_DEAD within a second and nothing after it, and check the
 * scene. */
static void mourn(struct victim *v)
{
	struct hal_event ev;
	bool late = false;
	uint64_t since;

	ct_await_end(v->c, false);
	since = ct_now();
	/* The victim may have connected so late that the event comes now. */
	for (int i = 0; i < 20; i++)
		ct_step_all();
	find_peer(v);
	while (v->peer != NULL &&
	       !ct_take_event(scene.ci, HAL_EV_DEAD, v->peer, &ev)) {
		if (late)
			ct_fail("no HAL_EV_DEAD within a second");
		late = ct_now() > since + CT_SECOND;
		ct_step_all();
		listen_to(v);
	}
	listen_to(v);
	scene_check();
	if (v->peer != NULL)
		hal_peer_free(v->peer);
	while (ct_take_event(scene.ci, HAL_EV_CONNECTED, NULL, &ev) ||
	       ct_take_event(scene.ci, HAL_EV_INBOUND, NULL, &ev))
		;
	assert_int_equal(scene.ci->nev, 0);
}

#ifdef HAL_FAULT_POINTS

/* Send the victim a command. Returns false if it has ended. */
static bool order(struct victim *v, const char *what, const char *arg)
{
	char line[256];

	ct_tell(v->c, "%s %s", what, arg);
	if (!ct_hear(v->c, line, sizeof(line)))
		return false;
	if (strncmp(line, "ok", 2) != 0)
		print_message("told %s it says %s\n", what, line);
	find_peer(v);
	listen_to(v);
	return true;
}

static void send_pings(struct victim *v)
{
	uint64_t end = ct_deadline();

	if (v->peer == NULL || v->peer->dead ||
	    (!v->peer->tx.open &&
	     ct_try_connect(scene.ci, &v->peer->addr, &v->peer) != 0))
		return;
	while (v->pinged < PINGS) {
		if (ct_send(scene.ci, v->peer, CT_TYPE_PING, v->pinged) != 0)
			return;
		v->pinged++;
	}
	while (v->ponged < v->pinged && !v->peer->dead) {
		if (ct_now() > end)
			ct_fail("neither an answer nor the news of its end");
		ct_ended(v->c);
		ct_step_all();
		listen_to(v);
	}
}

/* The victim has connected. Over a network that takes time; on one host this
 * process may not have polled for the connection yet. */
static void await_peer(struct victim *v)
{
	uint64_t end = ct_deadline();

	while (v->peer == NULL && !ct_ended(v->c) && ct_now() < end) {
		ct_step_all();
		find_peer(v);
	}
}

/* Let the victim execute each command until it ends. A command may succeed or
 * not. */
static void live(struct victim *v)
{
	char addr[CT_ADDR_TEXT], transfer[128];

	ct_addr_format(&scene.ci->hif->addr, addr);
	snprintf(transfer, sizeof(transfer), "%" PRIx64 " %" PRIx64 " %u",
		 scene.key.word[0], scene.key.word[1], REGION);
	if (v->we_first &&
	    ct_try_connect(scene.ci, &v->c->addr, &v->peer) != 0)
		v->peer = NULL;
	if (v->we_first)
		send_pings(v);
	if (!order(v, "connect", addr) || !order(v, "burst", "10"))
		return;
	await_peer(v);
	send_pings(v);
	if (order(v, "alloc", "3145728"))
		order(v, "transfer", transfer);
	ct_tell(v->c, "close");
}

/* The fault points of the HAL. Those of the provider are in test_kill.c. */
static const enum hal_fault_point points[] = {
	HAL_FAULT_POINT_CLAIMED, HAL_FAULT_POINT_COPIED,
	HAL_FAULT_POINT_PUBLISHED, HAL_FAULT_POINT_CREDIT,
	HAL_FAULT_POINT_SPACE, HAL_FAULT_POINT_BOUND,
	HAL_FAULT_POINT_HELLO_SENT, HAL_FAULT_POINT_ACCEPTED,
	HAL_FAULT_POINT_MAPPED, HAL_FAULT_POINT_DMA_HALF,
	HAL_FAULT_POINT_CLOSING,
};

/* The fault points of the register model; test_regs_points.c tests them
 * more. */
static const enum hal_fault_point sim_points[] = {
	HAL_FAULT_POINT_SIM_ENTERED, HAL_FAULT_POINT_SIM_DECIDED,
	HAL_FAULT_POINT_SIM_MOVED, HAL_FAULT_POINT_SIM_UNANSWERED,
	HAL_FAULT_POINT_SIM_STORING, HAL_FAULT_POINT_SIM_MAKING,
	HAL_FAULT_POINT_SIM_HOLDING, HAL_FAULT_POINT_SIM_LETTING,
	HAL_FAULT_POINT_SIM_FREEING, HAL_FAULT_POINT_SIM_CLAIMED,
	HAL_FAULT_POINT_SIM_RELEASED,
};

static unsigned stops;

static void stopped(struct ct_child *c)
{
	stops++;
	/* scene.living is NULL while the scene is set up. */
	if (scene.living != NULL)
		scene_check();
	kill(c->pid, SIGCONT);
}

/* Run one victim with one fault point armed. Returns whether it was reached. */
static bool one_life(enum hal_fault_point p, unsigned pass, const char *action,
		     bool we_first)
{
	struct victim v = { .we_first = we_first };
	char point[64];
	int status = 0;

	snprintf(point, sizeof(point), "%s:%u:%s", hal_fault_point_name(p),
		 pass, action);
	stops = 0;
	v.c = ct_spawn_try(point, stopped, &status);
	if (v.c != NULL) {
		live(&v);
		mourn(&v);
		status = ct_reap(v.c);
	} else {
		scene_check();
	}
	if (strcmp(action, "stop") == 0) {
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			ct_fail("%s: wait status %x", point, status);
		if (v.heard != 10 || v.ponged != PINGS)
			ct_fail("%s: %" PRIu64 " pings, %" PRIu64 " pongs",
				point, v.heard, v.ponged);
		return stops != 0;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return true;
}

static void all_of(const enum hal_fault_point *list, unsigned n,
		   unsigned npasses, const char *action)
{
	static const unsigned passes[] = { 1, 2, 7 };

	for (unsigned i = 0; i < n; i++) {
		unsigned reached = 0;

		for (unsigned k = 0; k < npasses; k++) {
			reached += one_life(list[i], passes[k], action, false);
			reached += one_life(list[i], passes[k], action, true);
		}
		if (reached == 0)
			ct_fail("nobody passes the point %s",
				hal_fault_point_name(list[i]));
	}
}

static void every_point(const char *action)
{
	scene_open();
	all_of(points, CT_COUNT(points), ct_opt.passes, action);
	if (strcmp(ct_opt.hal, "sim") == 0)
		all_of(sim_points, CT_COUNT(sim_points), 1, action);
	scene_close();
}

static void kill_at_every_point(void **state)
{
	every_point("kill");
}

static void stop_at_every_point(void **state)
{
	every_point("stop");
}

/* An invalid FI_UNIMEM_POINT ends the process: otherwise nothing would be
 * tested. */
static void points_are_checked(void **state)
{
	static const char *const bad[] = { "nosuch:1:kill", "bound", "bound:1",
		"bound:0:kill", "bound:x:kill", "bound:1:stab",
		"bound:1:kill:1", "claimed:9:kill,bound:1" };
	int status = 0;

	assert_null(ct_spawn_try("claimed:9:stop,bound:1:exit", NULL, &status));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 86);
	for (unsigned i = 0; i < CT_COUNT(bad); i++) {
		assert_null(ct_spawn_try(bad[i], NULL, &status));
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 87);
	}
}

#else

static void points_are_checked(void **state)
{
	skip();				/* needs --enable-fault-points */
}

static void kill_at_every_point(void **state)
{
	skip();				/* needs --enable-fault-points */
}

static void stop_at_every_point(void **state)
{
	skip();				/* needs --enable-fault-points */
}

#endif

/* Kill a process at random times during a stream in each direction. */
static void kill_at_random(void **state)
{
	uint32_t payload = ct_caps->pkt_payload;
	uint64_t rng = 5;

	scene_open();
	for (int round = 0; round < (ct_net() ? 12 : 60); round++) {
		struct victim v = { .c = ct_spawn() };
		struct ct_stream out = { .seed = 2 }, in = { .seed = 1 };
		char addr[CT_ADDR_TEXT];
		uint64_t end;
		int ret = 0;

		ct_addr_format(&scene.ci->hif->addr, addr);
		ct_ask(v.c, NULL, 0, "connect %s", addr);
		v.peer = ct_connect(scene.ci, &v.c->addr);
		ct_tell(v.c, "stream 1000000000");
		end = ct_now() + ct_random(&rng) % (CT_SECOND / 50);
		while (ct_now() < end && ret >= 0) {
			ct_stream_send(v.peer, &out, payload);
			ret = ct_stream_take(v.peer, &in, payload);
			hal_rx_flush(v.peer);
			if (ret == 0)
				ct_step_all();
		}
		kill(v.c->pid, SIGKILL);
		ct_await_end(v.c, true);
		/* Its last packet may arrive together with HAL_EV_DEAD. */
		end = ct_deadline();
		while (ret >= 0) {
			bool dead = v.peer->dead;

			if (ct_now() > end)
				ct_fail("round %d: no news of its end", round);
			ct_step_all();
			ret = ct_stream_take(v.peer, &in, payload);
			hal_rx_flush(v.peer);
			if (ret == 0 && dead)
				break;
		}
		if (ret < 0)
			ct_fail("round %d: %s", round, in.error);
		mourn(&v);
		ct_reap(v.c);
	}
	scene_close();
}

const struct CMUnitTest ct_kill_tests[] = {
	CT_TEST(kill_at_every_point),
	CT_TEST(stop_at_every_point),
	CT_TEST(kill_at_random),
	CT_TEST(points_are_checked),
};
const size_t ct_kill_count = CT_COUNT(ct_kill_tests);
