/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_proc.c - processes that share buffers of <unimem/unim_dma.h>: one
 * finds the buffer of another, and learns of its data; a process or a service
 * is killed in the middle; memory is returned.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/gsas_processes.h"
#include "unimem/unim_dma.h"

#define MIB		(UINT64_C(1) << 20)
#define WAIT_MS		60000
#define KILLS		20
#define KILLS_SIM	5		/* the register model is slow */
#define BUFFERS		40

static void open_on(int i)
{
	GSAS(unim_dma_init((unim_node_id_t)board_number(i)));
}

static unim_dma_buffer_t *alloc_on(int i, uint64_t bytes)
{
	unim_dma_buffer_t *buf;

	GSAS(unim_dma_alloc(bytes, UNIM_DMA_NODE,
			    (unim_node_id_t)board_number(i), &buf));
	return buf;
}

static unim_dma_buffer_t *get(int fd)
{
	unim_dma_buffer_t *buf;

	GSAS(unim_dma_get(procs_recv_word(fd), &buf));
	return buf;
}

/* ---- Memory by owner --------------------------------------------------- */

/* Run unimem_info with an option, and store its output. Returns its exit
 * code. */
static int info(const char *option, char *text, size_t len)
{
	const char *exec = getenv("UNM_EXEC");
	char program[4096], command[4200];
	size_t n;
	int status;
	FILE *f;

	build_program("unimem_info", program, sizeof(program));
	snprintf(command, sizeof(command), "%s %s %s --json",
		 exec != NULL ? exec : "", program, option);
	f = popen(command, "re");
	CHECK(f != NULL);
	n = fread(text, 1, len - 1, f);
	text[n] = '\0';
	status = pclose(f);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Store the output of "unimem_info --memory" for a board. */
static void memory_of(int i, char *text, size_t len)
{
	char option[32];

	snprintf(option, sizeof(option), "--memory=%d", board_number(i));
	CHECK(info(option, text, len) == 0);
}

/* Does the process own so many regions on a board, as unimem_info says? */
static bool owns(int i, pid_t pid, int regions)
{
	char text[4096], want[64];

	memory_of(i, text, sizeof(text));
	snprintf(want, sizeof(want), "{\"process\":%d,\"regions\":%d,",
		 (int)pid, regions);
	return strstr(text, want) != NULL;
}

static void await_empty(int i)
{
	char text[4096];

	do {
		procs_nap(5000);
		memory_of(i, text, sizeof(text));
	} while (strstr(text, "\"regions\":0,\"bytes\":0,") == NULL ||
		 strstr(text, "process") != NULL);
}

/* ---- Two processes ----------------------------------------------------- */

/* Buffers on both boards; learn of the data in the first one. */
static int owner(int fd, void *arg)
{
	unim_dma_buffer_t *local, *remote;
	uint8_t *at;

	(void)arg;
	open_on(0);
	local = alloc_on(0, 2 * MIB);
	remote = alloc_on(1, MIB);
	at = unim_buf_get_memory(local);
	CHECK(at != NULL);
	procs_send_word(fd, unim_get_buf_id(local));
	procs_send_word(fd, unim_get_buf_id(remote));
	for (uint64_t round = 1; round <= 10; round++) {
		GSAS(unim_dma_wait_notify(local, 2 * MIB - 8, round, WAIT_MS));
		for (uint64_t i = 0; i < MIB; i++)
			CHECK(at[i] == (uint8_t)(i * round));
		procs_send_word(fd, round);
	}
	unim_dma_cleanup();
	return 0;
}

static int writer(int fd, void *arg)
{
	struct unim_dma_request q = {
		.size = MIB, .notify = 1, .notify_off = 2 * MIB - 8,
	};
	unim_dma_transfer_id_t id;
	unim_dma_buffer_t *mine;
	uint8_t *at;

	(void)arg;
	open_on(1);
	q.dst = get(fd);
	q.src = get(fd);
	mine = alloc_on(1, MIB);
	at = unim_buf_get_memory(mine);
	CHECK(at != NULL);
	for (uint64_t round = 1; round <= 10; round++) {
		for (uint64_t i = 0; i < MIB; i++)
			at[i] = (uint8_t)(i * round);
		id = unim_dma_submit_transfer(mine, q.src, 0, 0, MIB, NULL,
					      NULL);
		GSAS(unim_dma_wait(id, WAIT_MS));
		GSAS(unim_dma_submit(&q, &id));
		GSAS(unim_dma_wait(id, WAIT_MS));
		procs_recv_word(fd);
	}
	unim_dma_cleanup();
	return 0;
}

static void exchange(void)
{
	struct proc *service[2], *a, *b;

	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
	a = proc_start(owner, NULL, board_env(0));
	b = proc_start(writer, NULL, board_env(1));
	for (int i = 0; i < 2; i++)
		procs_send_word(b->fd, procs_recv_word(a->fd));
	for (int i = 0; i < 10; i++)
		procs_send_word(b->fd, procs_recv_word(a->fd));
	proc_expect(a, 0);
	proc_expect(b, 0);
	for (int i = 0; i < 2; i++) {
		await_empty(i);
		gsasd_stop(service[i]);
	}
}

static void exchange_sim(void)
{
	boards_of_sim();
	exchange();
}

/* ---- Kills ------------------------------------------------------------- */

/* Own buffers on both boards, and move data between them until killed. */
static int mover(int fd, void *arg)
{
	unim_dma_buffer_t *buf[BUFFERS];
	uint64_t seed = (uint64_t)getpid();

	(void)arg;
	open_on(0);
	for (int i = 0; i < BUFFERS; i++)
		buf[i] = alloc_on(i % 2, i < 2 ? MIB : 4096);
	procs_send_word(fd, unim_get_buf_id(buf[0]));
	procs_send_word(fd, unim_get_buf_id(buf[1]));
	for (;;) {
		uint64_t from = procs_random(&seed) % 2;

		CHECK(unim_dma_submit_transfer(buf[from], buf[1 - from], 0, 0,
					       MIB, NULL, NULL) != 0);
	}
}

/* Write to buffers of another process until they are gone. */
static int intruder(int fd, void *arg)
{
	unim_dma_buffer_t *theirs[2], *mine;
	unim_dma_transfer_id_t id;
	int ret = 0, gone = 0;

	(void)arg;
	open_on(1);
	theirs[0] = get(fd);
	theirs[1] = get(fd);
	mine = alloc_on(1, MIB);
	procs_send_word(fd, 1);
	while (ret == 0) {
		for (int i = 0; i < 2 && ret == 0; i++) {
			id = unim_dma_submit_transfer(mine, theirs[i], 0, 0,
						      MIB, NULL, NULL);
			CHECK(id != 0);
			ret = unim_dma_wait(id, WAIT_MS);
			gone = i;
		}
	}
	CHECK_MSG(ret == -ESTALE, "%s", unim_dma_strerror(ret));
	CHECK(unim_dma_status(id) == DMA_FAILED);
	CHECK(unim_get_buf(unim_get_buf_id(theirs[gone])) == NULL);
	CHECK_MSG(unim_dma_error() == -ESTALE, "%d", unim_dma_error());
	/* its own memory is as it was */
	GSAS(unim_dma_wait(unim_dma_submit_transfer(mine, mine, 0, MIB / 2,
						    MIB / 2, NULL, NULL),
			   WAIT_MS));
	unim_dma_cleanup();
	return 0;
}

/* The owner of buffers is killed while it and another process use them. */
static void kill_owners(int kills)
{
	struct proc *service[2], *a, *b;

	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
	for (int round = 0; round < kills; round++) {
		a = proc_start(mover, NULL, board_env(0));
		b = proc_start(intruder, NULL, board_env(1));
		for (int i = 0; i < 2; i++)
			procs_send_word(b->fd, procs_recv_word(a->fd));
		procs_recv_word(b->fd);
		for (int i = 0; i < 2; i++)
			CHECK(owns(i, a->pid, BUFFERS / 2));
		procs_nap((uint64_t)round * 500);
		proc_kill(a);
		proc_expect(b, 0);
		for (int i = 0; i < 2; i++)
			await_empty(i);
	}
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

static void killed_owner(void)
{
	kill_owners(KILLS);
}

static void killed_owner_sim(void)
{
	boards_of_sim();
	kill_owners(KILLS_SIM);
}

/* Transfers to a board whose service is killed end, and the other board is
 * not concerned. */
static int survivor(int fd, void *arg)
{
	enum { N = 100 };
	unim_dma_buffer_t *a, *b;
	unim_dma_transfer_id_t id[N];
	int failed = 0, ret;

	(void)arg;
	open_on(0);
	a = alloc_on(0, MIB);
	b = alloc_on(1, MIB);
	procs_send_word(fd, 1);
	while (failed == 0) {
		for (int i = 0; i < N; i++)
			id[i] = unim_dma_submit_transfer(a, b, 0, 0, MIB,
							 NULL, NULL);
		for (int i = 0; i < N; i++) {
			CHECK(id[i] != 0);
			ret = unim_dma_wait(id[i], WAIT_MS);
			CHECK_MSG(ret == 0 || ret == -ECONNRESET, "%d", ret);
			CHECK(unim_dma_status(id[i]) ==
			      (ret == 0 ? DMA_COMPLETED : DMA_FAILED));
			failed += ret != 0;
		}
	}
	GSAS(unim_dma_wait(unim_dma_submit_transfer(a, a, 0, MIB / 2, MIB / 2,
						    NULL, NULL), WAIT_MS));
	/* no service is started (GSASD): there is no memory there */
	CHECK(unim_alloc_buf_r(4096, unim_dma_get_node((unim_node_id_t)
						board_number(1))) == NULL);
	CHECK_MSG(unim_dma_error() == -ECONNREFUSED, "%d", unim_dma_error());
	unim_free_buf(b);
	unim_free_buf(a);
	unim_dma_cleanup();
	return 0;
}

static void killed_service(void)
{
	struct proc *service[2], *p;

	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
	p = proc_start(survivor, NULL, board_env(0));
	procs_recv_word(p->fd);
	procs_nap(20000);
	proc_kill(service[1]);
	proc_expect(p, 0);
	gsasd_stop(service[0]);
}

/* One service is stopped, and unimem_info shows the memory of board i. On a
 * machine that hardly runs, the service of board i also answers too late: try
 * longer time-outs, up to ten seconds. */
static void shows_board(int i)
{
	char text[65536], want[32], timeout[16];

	snprintf(want, sizeof(want), "\"board\":%d,", board_number(i));
	for (int ms = 300;; ms *= 2) {
		CHECK_MSG(ms < 10000, "no board %d: %s", board_number(i), text);
		snprintf(timeout, sizeof(timeout), "%d", ms);
		setenv("GSAS_TIMEOUT", timeout, 1);
		CHECK(info("--memory", text, sizeof(text)) == 2);
		if (strstr(text, want) != NULL)
			break;
	}
	unsetenv("GSAS_TIMEOUT");
}

/* A stopped service does not hide the memory of the boards after it. */
static void stopped_service(void)
{
	struct proc *service[2];

	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, NULL);
	for (int i = 0; i < 2; i++) {
		CHECK(kill(service[i]->pid, SIGSTOP) == 0);
		shows_board(1 - i);
		CHECK(kill(service[i]->pid, SIGCONT) == 0);
	}
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

/* ---- Policies, forks --------------------------------------------------- */

static int node_of(const unim_dma_buffer_t *buf)
{
	return board_number(0) - (int)unim_dma_buf_node(buf);
}

/* Board 0 has 100 pages, board 1, which is the nearest, has many. */
static int chooser(int fd, void *arg)
{
	const char *hal = getenv("FI_UNIMEM_HAL");
	unim_dma_buffer_t *buf;
	int there[2] = { 0 };

	(void)fd;
	(void)arg;
	open_on(0);
	for (int i = 0; i < 5; i++) {
		GSAS(unim_dma_alloc(30 * 4096, UNIM_DMA_NEAREST, 0, &buf));
		CHECK(node_of(buf) == (i < 3 ? 0 : 1));
	}
	GSAS(unim_dma_alloc(4096, UNIM_DMA_NEAREST, 0, &buf));
	CHECK(node_of(buf) == 0);
	GSAS_IS(-ENOMEM, unim_dma_alloc(30 * 4096, UNIM_DMA_LOCAL, 0, &buf));
	/* no node has as much, and most have no service at all */
	GSAS_IS(-ENOMEM, unim_dma_alloc(UINT64_C(1) << 44, UNIM_DMA_NEAREST, 0,
					&buf));
	GSAS(unim_dma_alloc(4096, UNIM_DMA_INTERLEAVE, 0, &buf));
	there[0] += node_of(buf) == 0;
	unim_dma_cleanup();
	/* there a process is of one board */
	if (hal != NULL && (strcmp(hal, "sim") == 0 ||
			    strcmp(hal, "dev") == 0))
		return 0;
	open_on(1);
	for (int i = 0; i < 2; i++) {
		GSAS(unim_dma_alloc(4096, UNIM_DMA_INTERLEAVE, 0, &buf));
		there[node_of(buf)]++;
	}
	CHECK(there[0] == 2 && there[1] == 1);
	unim_dma_cleanup();
	return 0;
}

static void policies(void)
{
	static const char *const options[] = { "--pages", "100", NULL };
	struct proc *service[2];

	service[0] = gsasd_start(0, options);
	service[1] = gsasd_start(1, NULL);
	proc_expect(proc_start(chooser, NULL, board_env(0)), 0);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
}

static void policies_sim(void)
{
	boards_of_sim();
	policies();
}

static void no_call(void *arg)
{
	(void)arg;
}

static void *opener(void *arg)
{
	int ret = unim_dma_init((unim_node_id_t)board_number(0));

	CHECK_MSG(ret == 0 || ret == -EALREADY, "%d", ret);
	atomic_fetch_add((_Atomic int *)arg, ret == 0);
	return NULL;
}

/* Several threads open the library at once: one of them does. */
static void open_at_once(void)
{
	pthread_t thread[4];
	_Atomic int opened = 0;

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, opener, &opened) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	CHECK(atomic_load(&opened) == 1);
}

/* In a forked child calls fail until it opens the library for itself, which
 * does not concern the parent. */
static int forker(int fd, void *arg)
{
	unim_dma_buffer_t *buf, *other;
	int status;
	pid_t pid;

	(void)fd;
	(void)arg;
	open_on(0);
	buf = alloc_on(0, MIB);
	CHECK(unim_dma_submit_transfer(buf, buf, 0, MIB / 2, MIB / 2, no_call,
				       NULL) != 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		GSAS_IS(-EINVAL, unim_dma_alloc(1, UNIM_DMA_LOCAL, 0, &other));
		CHECK(unim_dma_status(1) == DMA_FAILED);
		open_at_once();
		other = alloc_on(0, MIB);
		GSAS(unim_dma_wait(unim_dma_submit_transfer(other, other, 0,
				   MIB / 2, MIB / 2, no_call, NULL), WAIT_MS));
		unim_dma_cleanup();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	GSAS(unim_dma_wait(unim_dma_submit_transfer(buf, buf, 0, MIB / 2,
						    MIB / 2, NULL, NULL),
			   WAIT_MS));
	unim_free_buf(buf);
	unim_dma_cleanup();
	return 0;
}

static void forks(void)
{
	struct proc *service = gsasd_start(0, NULL);

	proc_expect(proc_start(forker, NULL, board_env(0)), 0);
	await_empty(0);
	gsasd_stop(service);
}

PROCS_MAIN(
	PROCS_CASE(exchange, 60),
	PROCS_CASE(exchange_sim, 60),
	PROCS_CASE(killed_owner, 120),
	PROCS_CASE(killed_owner_sim, 120),
	PROCS_CASE(killed_service, 60),
	PROCS_CASE(stopped_service, 60),
	PROCS_CASE(policies, 60),
	PROCS_CASE(policies_sim, 60),
	PROCS_CASE(forks, 60),
)
