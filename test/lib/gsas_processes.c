/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_processes.c - run gsasd, jobs, and clients without libgsas, see
 * gsas_processes.h
 *
 * Owns the start of gsasd, the start of roles (which execute the test program
 * again), and the packets of clients without libgsas.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/gsas_processes.h"

#define ARGS	16			/* of gsasd */
#define EVENTS	8
#define TAG	1			/* of bare_ask() */

static int base_board;			/* role: board 0 of the test; 0: this
					 * process is the director */

int board_number(int i)
{
	return (base_board != 0 ? base_board : procs_board()) - i;
}

void boards_of_sim(void)
{
	char world[32];

	snprintf(world, sizeof(world), "world=%d", (int)getpid());
	setenv("FI_UNIMEM_HAL", "sim", 1);
	setenv("FI_UNIMEM_SIM", world, 1);
	setenv("FI_UNIMEM_BOARDS", "2", 1);
	setenv("FI_UNIMEM_BOARD", "0", 1);
	base_board = 1;
}

const char *const *board_env(int i)
{
	static char text[2][32];
	static const char *env[2][2];

	snprintf(text[i], sizeof(text[i]), "FI_UNIMEM_BOARD=%d",
		 board_number(i));
	env[i][0] = text[i];
	return env[i];
}

static void own_program(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);

	CHECK(n > 0);
	path[n] = '\0';
}

void build_program(const char *name, char *path, size_t len)
{
	char exe[4000];

	own_program(exe, sizeof(exe));
	CHECK(snprintf(path, len, "%s/../../%s", dirname(exe), name) <
	      (int)len);
}

/* ---- Services ------------------------------------------------------------ */

struct service {
	int board, ready;		/* ready: see --ready-fd of gsasd */
	const char *const *options;
};

/* Execute a program of the build tree, under UNM_EXEC if that is set. args[0]
 * and args[1] are free for that; the program's arguments follow, then NULL. */
static void become(const char *program, const char **args)
{
	const char *exec = getenv("UNM_EXEC");

	args[1] = program;
	if (exec != NULL && *exec != '\0')
		args[0] = exec;
	else
		args++;
	execvp(args[0], (char *const *)args);
	FAIL("%s: %s", args[0], strerror(errno));
}

static char gsasd_path[64];		/* of gsasd_copy(); "": no copy */

static void copy_file(const char *from, int to)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t at = 0;

	CHECK_MSG(fd >= 0 && fstat(fd, &st) == 0, "%s: %s", from,
		  strerror(errno));
	while (at < st.st_size)
		CHECK(sendfile(to, fd, &at, (size_t)(st.st_size - at)) > 0);
	close(fd);
}

void gsasd_copy(void)
{
	char from[4096], libs[4096];
	int fd;

	/* "gsasd" may be libtool's script that executes .libs/gsasd. */
	build_program(".libs/gsasd", from, sizeof(from));
	if (access(from, X_OK) != 0)
		build_program("gsasd", from, sizeof(from));
	build_program(".libs", libs, sizeof(libs));
	setenv("LD_LIBRARY_PATH", libs, 1);
	snprintf(gsasd_path, sizeof(gsasd_path), "/tmp/gsasd.XXXXXX");
	fd = mkstemp(gsasd_path);
	CHECK(fd >= 0);
	copy_file(from, fd);
	CHECK(fchmod(fd, 0755) == 0);
	close(fd);
}

void gsasd_copy_remove(void)
{
	unlink(gsasd_path);
	gsasd_path[0] = '\0';
}

static int run_service(int fd, void *arg)
{
	const struct service *s = arg;
	const char *args[ARGS] = { NULL, NULL, "--board", NULL, "--ready-fd" };
	char path[4096], board[16], ready[16];
	int n = 6;

	(void)fd;
	if (gsasd_path[0] != '\0')
		snprintf(path, sizeof(path), "%s", gsasd_path);
	else
		build_program("gsasd", path, sizeof(path));
	snprintf(board, sizeof(board), "%d", s->board);
	args[3] = board;
	/* it stays open in gsasd */
	CHECK(fcntl(s->ready, F_SETFD, 0) == 0);
	snprintf(ready, sizeof(ready), "%d", s->ready);
	args[5] = ready;
	for (const char *const *o = s->options; o != NULL && *o != NULL; o++) {
		CHECK(n < ARGS - 1);
		args[n++] = *o;
	}
	become(path, args);
	return 1;
}

struct proc *gsasd_start(int i, const char *const *options)
{
	struct service s = { .board = board_number(i), .options = options };
	struct proc *p;
	char line[16] = "";
	ssize_t n;
	int fds[2];

	setenv("GSASD", "/dev/null", 1);	/* libgsas starts none */
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	s.ready = fds[1];
	p = proc_start(run_service, &s, board_env(i));
	close(fds[1]);
	do
		n = read(fds[0], line, sizeof(line) - 1);
	while (n < 0 && errno == EINTR);
	CHECK_MSG(n > 0, "gsasd ended");
	CHECK_MSG(strcmp(line, "ready\n") == 0, "gsasd: %s", line);
	close(fds[0]);
	return p;
}

void gsasd_stop(struct proc *service)
{
	CHECK_MSG(!proc_ended(service, 0), "gsasd ended");
	proc_signal(service, SIGTERM);
	proc_expect(service, 0);
}

/* ---- Jobs ---------------------------------------------------------------- */

#define ROLE	"--role"		/* NAME INDEX BOARD FD MEMORY BYTES */

void *g_role_memory;
static int role_fd = -1;
static size_t role_bytes;

void role_share(size_t bytes)
{
	role_fd = memfd_create("test", 0);
	CHECK(role_fd >= 0 && ftruncate(role_fd, (off_t)bytes) == 0);
	role_bytes = bytes;
	g_role_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			     role_fd, 0);
	CHECK(g_role_memory != MAP_FAILED);
}

void role_main(int argc, char **argv, const struct gsas_role *roles, int n)
{
	long number[5];

	if (argc != 8 || strcmp(argv[1], ROLE) != 0)
		return;
	for (int i = 0; i < 5; i++)
		number[i] = strtol(argv[3 + i], NULL, 10);
	base_board = (int)number[1];
	g_role_memory = mmap(NULL, (size_t)number[4], PROT_READ | PROT_WRITE,
			     MAP_SHARED, (int)number[3], 0);
	CHECK(g_role_memory != MAP_FAILED);
	for (int i = 0; i < n; i++)
		if (strcmp(roles[i].name, argv[2]) == 0)
			exit(roles[i].fn((int)number[2], (int)number[0]));
	FAIL("no role %s", argv[2]);
}

void role_new_job(void)
{
	uint64_t key[2];
	char text[40];

	CHECK(getrandom(key, sizeof(key), 0) == sizeof(key));
	snprintf(text, sizeof(text), "%016llx%016llx",
		 (unsigned long long)key[0], (unsigned long long)key[1]);
	setenv("GSAS_JOB", text, 1);
}

struct role {
	const char *name;
	int index;
};

static int run_role(int fd, void *arg)
{
	const struct role *r = arg;
	/* dup(): the new descriptor stays open in the new program. */
	const long value[5] = {
		r->index, board_number(0), dup(fd), role_fd, (long)role_bytes,
	};
	const char *args[ARGS] = { NULL, NULL, ROLE, r->name };
	char path[4096], number[5][24];

	for (int i = 0; i < 5; i++) {
		snprintf(number[i], sizeof(number[i]), "%ld", value[i]);
		args[4 + i] = number[i];
	}
	own_program(path, sizeof(path));
	become(path, args);
	return 1;
}

struct proc *role_restart(struct proc *p, const char *role, int index,
			  const char *const *env)
{
	struct role r = { role, index };

	return p == NULL ? proc_start(run_role, &r, env) :
			   proc_restart(p, run_role, &r, env);
}

struct proc *role_start(const char *role, int index, const char *const *env)
{
	return role_restart(NULL, role, index, env);
}

/* ---- Bare clients -------------------------------------------------------- */

static void look(struct bare *r)
{
	struct hal_event ev[EVENTS];
	int n;

	hal_if_pump(r->hif);
	n = hal_if_service(r->hif, ev, EVENTS);
	for (int i = 0; i < n; i++) {
		if (ev[i].type != HAL_EV_DEAD)
			continue;
		if (ev[i].peer == r->peer) {
			r->dead = true;
			r->peer = NULL;
		}
		hal_peer_free(ev[i].peer);
	}
}

void bare_open(struct bare *r, int board)
{
	struct hal_addr to = {
		.version = HAL_ADDR_VERSION,
		.board = (uint16_t)board,
		.iface = HAL_IF_SERVICE,
		.uid = (uint32_t)geteuid(),
	};
	int ret;

	memset(r, 0, sizeof(*r));
	GSAS(hal_get(NULL, &r->hal));
	GSAS(hal_if_open(r->hal, -1, &r->hif));
	while ((ret = hal_connect(r->hif, &to, &r->peer)) == -FI_EAGAIN)
		look(r);
	GSAS(ret);
	GSAS(hal_space_ready(r->peer, r->hif->caps->space_bytes));
}

void bare_close(struct bare *r)
{
	hal_if_close(r->hif);
	hal_put(r->hal);
}

bool bare_send(struct bare *r, uint8_t opcode, uint8_t tag,
	       const uint64_t w[GSAS_WORDS])
{
	if (r->peer == NULL)
		return false;
	if (hal_pkt_send(r->peer, hal_head(opcode, tag), w, GSAS_WORDS, NULL,
			 0) == 0)
		return true;
	look(r);
	return false;
}

/* Receive the next answer. Returns false if there is none. */
static bool answer(struct bare *r, uint64_t *head, uint64_t w[GSAS_WORDS])
{
	const struct hal_cell *cell;

	hal_if_pump(r->hif);
	if (r->peer == NULL || r->peer->rx.cells == NULL)
		return false;
	cell = hal_rx_peek(r->peer, head);
	if (cell == NULL)
		return false;
	for (unsigned i = 0; i < GSAS_WORDS; i++)
		w[i] = hal_cell_word(cell, i);
	hal_rx_release(r->peer);
	hal_rx_flush(r->peer);
	return true;
}

int bare_drain(struct bare *r)
{
	uint64_t head, w[GSAS_WORDS];
	int n = 0;

	while (answer(r, &head, w))
		n++;
	if (n == 0)
		look(r);
	return n;
}

uint64_t bare_ask(struct bare *r, uint8_t opcode, uint64_t address,
		  uint64_t arg1, uint64_t arg2, uint64_t *result,
		  uint64_t *more)
{
	const uint64_t ask[GSAS_WORDS] = { address, arg1, arg2 };
	uint64_t head, w[GSAS_WORDS];

	while (!bare_send(r, opcode, TAG, ask))
		CHECK_MSG(!r->dead, "the service disconnected");
	do {
		for (int i = 0; !answer(r, &head, w); i++) {
			CHECK_MSG(!r->dead, "the service disconnected");
			if (i < 100)
				continue;
			i = 0;
			look(r);
			procs_nap(10);
		}
	} while (hal_head_flags(head) != TAG);	/* skip grants: tag 0 */
	CHECK(hal_head_type(head) == opcode);
	if (result != NULL)
		*result = w[1];
	if (more != NULL)
		*more = w[2];
	return w[0];
}

void bare_join(struct bare *r)
{
	uint64_t key[2];

	CHECK(getrandom(key, sizeof(key), 0) == sizeof(key));
	CHECK(bare_ask(r, GSAS_JOIN, key[0], key[1], 0, NULL, NULL) ==
	      GSAS_OK);
}
