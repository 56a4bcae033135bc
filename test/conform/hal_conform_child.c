/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_child.c - the child process of the conformance test: this
 * program again, started with --child.
 *
 * Commands, one line each, answered by "ok ..." or "error ...":
 *
 *	connect ADDR	connect to the test; the peer of the other commands
 *	pose ADDR ADDR	claim to be the first, send pings to the second
 *	burst N		send N pings with words 0 .. N-1, each naming 64 bytes
 *			of receive space
 *	stream N	take part in ct_stream_both()
 *	take N		take part in ct_space_take()
 *	alloc BYTES	dmable memory on the local board and ordinary memory;
 *			answers the key's words and the ordinary address
 *	fill SEED	fill both; check SEED: check both
 *	transfer KEY KEY BYTES	put to and get from the test's memory
 *	sync N		take part in ct_sync_game()
 *	window N	take part in ct_window_take(), in that dmable memory
 *	add KEY KEY N	take part in ct_window_add()
 *	sleep		sleep between pings from now on
 *	fork		fork a process that stays; answers its pid
 *	grab		open and close interfaces as fast as possible, until the
 *			next command
 *	serve		open interface 0, then close the other one; answers
 *			the new address
 *	become ADDR BYTES	ordinary memory at that address, filled
 *	exec MS PATH	replace this process by exec_heir, which checks its
 *			memory for MS milliseconds
 *	shut		close the interface and stay
 *	close		close the interface and exit
 *	die		SIGKILL itself
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/prctl.h>

#include "conform/hal_conform.h"

#define GRABS		16
#define OLD_MARK	0x3C	/* contents of memory, before the process
				 * executes exec_heir, which has memory at the
				 * same address */

struct role {
	struct ct_if *ci;
	struct hal_peer *peer;
	bool sleeps, shut, leave;
	struct hal_mem *mem;
	uint8_t *dmable, *ordinary;
	size_t bytes;
};

/* ---- Addresses as text ----------------------------------------------- */

/* The words of an address, and with --hal net those of its host. */
static unsigned addr_words(void)
{
	return (ct_net() ? sizeof(struct hal_addr_host) :
		sizeof(struct hal_addr)) / 8;
}

void ct_addr_format(const struct hal_addr *addr, char *text)
{
	struct hal_addr_host full = { .addr = *addr };
	uint64_t w[sizeof(full) / 8];

	if (ct_net())
		full.host = *ct_host_of(addr);
	memcpy(w, &full, sizeof(full));
	for (unsigned i = 0, at = 0; i < addr_words(); i++)
		at += (unsigned)snprintf(text + at, CT_ADDR_TEXT - at,
					 "%s%" PRIx64, i == 0 ? "" : ".", w[i]);
}

bool ct_addr_parse(const char *text, struct hal_addr *addr)
{
	struct hal_addr_host full;
	uint64_t w[sizeof(full) / 8];
	char *next;

	for (unsigned i = 0; i < addr_words(); i++) {
		w[i] = strtoull(text, &next, 16);
		if (next == text)
			return false;
		text = *next == '.' ? next + 1 : next;
	}
	memcpy(&full, w, 8 * addr_words());
	if (ct_net())
		ct_host_note(&full.addr, &full.host);
	*addr = full.addr;
	return true;
}

/* ---- Pings ----------------------------------------------------------- */

/*
 * Answer a ping if there is one. The ping is released before it is answered, so
 * that two processes that ping each other with full rings do not wait for each
 * other. Packets of other types are left for the next command.
 */
static bool answer_one(struct role *r)
{
	struct hal_peer *peer = NULL;
	uint64_t head, word;
	const struct hal_cell *cell = ct_next_packet(r->ci, &peer, &head);

	if (cell == NULL || hal_head_type(head) != CT_TYPE_PING)
		return false;
	word = hal_cell_word(cell, 0);
	hal_rx_release(peer);
	hal_rx_flush(peer);
	if (ct_try_answer(r->ci, peer) != 0)
		return true;
	ct_send(r->ci, peer, CT_TYPE_PONG, word);
	return true;
}

/* Drop the packets that each dead peer left, then free it. */
static void bury(struct role *r)
{
	struct hal_event ev;
	uint64_t head;

	while (ct_take_event(r->ci, HAL_EV_DEAD, NULL, &ev)) {
		while (ct_peek(ev.peer, &head) != NULL)
			hal_rx_release(ev.peer);
		if (ev.peer == r->peer)
			r->peer = NULL;
		hal_peer_free(ev.peer);
	}
	r->ci->nev = 0;
}

/* Sleep, for longer than the parent is patient: a wake-up that is lost fails
 * the parent's test. */
static void doze(struct role *r)
{
	struct pollfd pfd[2] = {
		{ .fd = hal_if_fd(r->ci->hif), .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	if (hal_if_arm(r->ci->hif) != 0)
		return;
	poll(pfd, 2, (int)(3 * ct_opt.patience * 1000));
	hal_if_disarm(r->ci->hif);
}

/* ---- Commands -------------------------------------------------------- */

static void say(const char *error)
{
	printf("%s%s\n", error == NULL ? "ok" : "error ", error ? error : "");
	fflush(stdout);
}

static void cmd_connect(struct role *r, const char *arg)
{
	struct hal_addr addr;
	int ret = -FI_EINVAL;

	if (ct_addr_parse(arg, &addr))
		ret = ct_try_connect(r->ci, &addr, &r->peer);
	if (ret == 0)
		say(NULL);
	else
		printf("error connect %d\n", ret);
	fflush(stdout);
}

/* Write a false identity into packets, as far as the backend permits. */
static void cmd_pose(struct role *r, const char *arg)
{
	const char *to = strchr(arg, ' ');
	struct hal_addr addr;

	if (to == NULL || !ct_addr_parse(arg, &r->ci->hif->addr) ||
	    !ct_addr_parse(to + 1, &addr)) {
		say("arguments");
		return;
	}
	for (int i = 0; i < 5; i++) {
		r->peer = NULL;
		if (ct_try_connect(r->ci, &addr, &r->peer) == 0)
			ct_send(r->ci, r->peer, CT_TYPE_PING, 1000000);
		for (int k = 0; k < 100; k++) {
			ct_step(r->ci);
			ct_nap(20);
		}
		bury(r);
	}
	say(NULL);
}

static void cmd_burst(struct role *r, const char *arg)
{
	unsigned long n = strtoul(arg, NULL, 10);
	int ret = r->peer == NULL ? -FI_EINVAL :
		hal_space_ready(r->peer, UINT32_MAX);
	uint8_t buf[64];

	for (unsigned long i = 0; i < n && ret == 0; i++) {
		ct_fill(buf, sizeof(buf), i);
		hal_space_write(r->peer, 64 * i, buf, sizeof(buf));
		hal_space_barrier(r->peer);
		HAL_FAULT_POINT(HAL_FAULT_POINT_SPACE);
		ret = ct_send(r->ci, r->peer, CT_TYPE_PING, i);
	}
	say(ret == 0 ? NULL : "send");
}

static void cmd_alloc(struct role *r, const char *arg)
{
	struct hal_key key;
	void *addr;

	r->bytes = strtoul(arg, NULL, 10);
	r->ordinary = malloc(r->bytes);
	if (r->ordinary == NULL ||
	    hal_mem_alloc(ct_hal, -1, r->bytes, &r->mem, &addr) != 0 ||
	    hal_mem_key(ct_hal, r->mem, &key) != 0) {
		say("alloc");
		return;
	}
	r->dmable = addr;
	printf("ok %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", key.word[0],
	       key.word[1], (uint64_t)(uintptr_t)r->ordinary);
	fflush(stdout);
}

static void cmd_fill(struct role *r, const char *arg)
{
	uint64_t seed = strtoull(arg, NULL, 10);

	ct_fill(r->dmable, r->bytes, seed);
	ct_fill(r->ordinary, r->bytes, seed + 1);
	say(NULL);
}

static void cmd_check(struct role *r, const char *arg)
{
	uint64_t seed = strtoull(arg, NULL, 10);

	say(!ct_filled(r->dmable, r->bytes, seed) ? "dmable" :
	    !ct_filled(r->ordinary, r->bytes, seed + 1) ? "ordinary" : NULL);
}

/* Put local memory to that of the test, then get it back; needs "alloc". */
static void cmd_transfer(struct role *r, const char *arg)
{
	struct hal_dma d = { .op = HAL_DMA_PUT, .peer = r->peer,
			     .local = r->dmable };
	struct hal_key key;
	int ret;

	if (r->peer == NULL ||
	    sscanf(arg, "%" SCNx64 " %" SCNx64 " %" SCNu64, &key.word[0],
		   &key.word[1], &d.len) != 3 || d.len > r->bytes) {
		say("arguments");
		return;
	}
	ret = ct_import(r->peer, &key, &d.rmem);
	if (ret == 0)
		ret = ct_dma_run(r->ci, &d);
	d.op = HAL_DMA_GET;
	if (ret == 0)
		ret = ct_dma_run(r->ci, &d);
	if (d.rmem != NULL)
		hal_mem_release(r->peer, d.rmem);
	say(ret == 0 ? NULL : "transfer");
}

/* Commands with N rounds that need the peer. */
static bool game(struct role *r, const char *name, const char *arg)
{
	uint64_t rounds = strtoull(arg, NULL, 10);
	struct hal_key key;

	if (strcmp(name, "sync") == 0)
		say(r->peer == NULL ? "not connected" :
		    ct_sync_game(r->ci, r->peer, rounds));
	else if (strcmp(name, "window") == 0)
		say(r->peer == NULL || r->bytes < CT_WINDOW_BYTES ?
		    "arguments" :
		    ct_window_take(r->ci, r->peer, r->dmable, rounds));
	else if (strcmp(name, "add") == 0)
		say(r->peer == NULL ||
		    sscanf(arg, "%" SCNx64 " %" SCNx64 " %" SCNu64,
			   &key.word[0], &key.word[1], &rounds) != 3 ?
		    "arguments" : ct_window_add(r->peer, &key, rounds));
	else
		return false;
	return true;
}

/* Fork a process that inherits all descriptors. */
static void cmd_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	printf("ok %d\n", (int)pid);
	fflush(stdout);
}

static void cmd_become(const char *arg)
{
	uint64_t addr, bytes;
	void *want, *got;

	if (sscanf(arg, "%" SCNx64 " %" SCNu64, &addr, &bytes) != 2) {
		say("arguments");
		return;
	}
	want = (void *)(uintptr_t)addr;
	got = mmap(want, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		   MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == want)
		memset(got, OLD_MARK, bytes);
	say(got == want ? NULL : "that address is taken");
}

static void cmd_exec(const char *arg)
{
	const char *path = strchr(arg, ' ');
	char ms[16];

	if (path != NULL && path - arg < (long)sizeof(ms)) {
		snprintf(ms, sizeof(ms), "%.*s", (int)(path - arg), arg);
		execl(path + 1, path + 1, "hold", ms, (char *)NULL);
	}
	say("exec");
}

static void cmd_grab(void)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	struct hal_if *got[GRABS];
	int n = 0;

	say(NULL);
	while (poll(&pfd, 1, 0) == 0) {
		if (n < GRABS && hal_if_open(ct_hal, -1, &got[n]) == 0)
			n++;
		else
			while (n > 0)
				hal_if_close(got[--n]);
	}
	while (n > 0)
		hal_if_close(got[--n]);
}

static void cmd_serve(struct role *r)
{
	struct hal_if *hif = NULL;
	char text[CT_ADDR_TEXT];
	int ret = hal_if_open_service(ct_hal, -1, &hif);

	if (ret == 0) {
		ct_host_join(hif);
		ct_close(r->ci);
		r->ci->hif = hif;
		r->peer = NULL;
		ct_addr_format(&hif->addr, text);
		printf("ok %s\n", text);
	} else {
		printf("error serve %d\n", ret);
	}
	fflush(stdout);
}

static void cmd_shut(struct role *r)
{
	ct_close(r->ci);
	r->shut = true;
	say(NULL);
}

/* Commands that change the process: fork, exec and the like. */
static bool process(const char *name, const char *arg)
{
	if (strcmp(name, "fork") == 0)
		cmd_fork();
	else if (strcmp(name, "become") == 0)
		cmd_become(arg);
	else if (strcmp(name, "exec") == 0)
		cmd_exec(arg);
	else if (strcmp(name, "die") == 0)
		raise(SIGKILL);
	else
		return false;
	return true;
}

static void command(struct role *r, char *line)
{
	char *arg = strchr(line, ' ');

	if (arg != NULL)
		*arg++ = '\0';
	else
		arg = line + strlen(line);
	if (strcmp(line, "connect") == 0)
		cmd_connect(r, arg);
	else if (strcmp(line, "pose") == 0)
		cmd_pose(r, arg);
	else if (strcmp(line, "burst") == 0)
		cmd_burst(r, arg);
	else if (strcmp(line, "stream") == 0)
		say(r->peer == NULL ? "not connected" :
		    ct_stream_both(r->ci, r->peer, strtoull(arg, NULL, 10), 1,
				   2));
	else if (strcmp(line, "take") == 0)
		say(r->peer == NULL ? "not connected" :
		    ct_space_take(r->ci, r->peer, strtoull(arg, NULL, 10)));
	else if (strcmp(line, "alloc") == 0)
		cmd_alloc(r, arg);
	else if (strcmp(line, "fill") == 0)
		cmd_fill(r, arg);
	else if (strcmp(line, "check") == 0)
		cmd_check(r, arg);
	else if (strcmp(line, "transfer") == 0)
		cmd_transfer(r, arg);
	else if (strcmp(line, "sleep") == 0)
		say((r->sleeps = true, NULL));
	else if (strcmp(line, "grab") == 0)
		cmd_grab();
	else if (strcmp(line, "serve") == 0)
		cmd_serve(r);
	else if (strcmp(line, "shut") == 0)
		cmd_shut(r);
	else if (strcmp(line, "close") == 0)
		r->leave = true;
	else if (!process(line, arg) && !game(r, line, arg))
		say("no such command");
}

/* Execute the commands that have arrived. Returns false at the end of the
 * input. */
static bool commands(struct role *r)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	char line[256];
	size_t n = 0;

	while (poll(&pfd, 1, 0) > 0) {
		for (n = 0; n < sizeof(line) - 1; n++) {
			if (read(STDIN_FILENO, line + n, 1) != 1)
				return false;
			if (line[n] == '\n')
				break;
		}
		line[n] = '\0';
		command(r, line);
	}
	return true;
}

static void serve(struct role *r)
{
	for (unsigned long i = 0; !r->leave; i++) {
		if (!r->shut) {
			if (answer_one(r))
				continue;
			ct_step(r->ci);
			bury(r);
		}
		if ((i % 16 == 0 || r->sleeps) && !commands(r))
			break;
		if (r->sleeps && !r->shut)
			doze(r);
		else
			sched_yield();
	}
}

int ct_child_main(void)
{
	char text[CT_ADDR_TEXT];
	struct role r = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ct_hal_open() != 0)
		return 2;
	r.ci = ct_open(-1);
	ct_addr_format(&r.ci->hif->addr, text);
	printf("%s\n", text);
	fflush(stdout);
	serve(&r);
	if (r.mem != NULL)
		hal_mem_free(ct_hal, r.mem);
	free(r.ordinary);
	if (!r.shut)
		ct_close(r.ci);
	ct_hal_close();
	return 0;
}
