/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_squat.c - another user binds the names of our interfaces first: they are
 * opened and reached in spite of it, a number still has one holder, and where
 * that cannot be one line names the other user. docs/hal.md, 2.7.
 *
 * Needs root: the director starts the other user, and becomes an ordinary one.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/gsas_processes.h"

#define USER	65534
#define OTHER	54321
#define FORMS	4
#define NUMBER	40000			/* that no process takes by itself */
#define SECONDS	30

/* ---- The other user ----------------------------------------------------- */

/* Names to bind: forms first to last of the numbers from iface on. */
struct squat {
	const char *kind;		/* "unimem.held", "unimem" */
	unsigned iface, count;
	int first, last;
	enum { BOUND, LISTENS, FULL } how;
};

static void bind_form(const struct squat *s, unsigned iface, int k)
{
	bool dgram = strcmp(s->kind, "unimem") != 0;
	int type = dgram ? SOCK_DGRAM : SOCK_SEQPACKET, fd, len;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t room = sizeof(sun.sun_path) - 1;
	socklen_t n;

	len = snprintf(sun.sun_path + 1, room, "%s.%u.%d.%u", s->kind,
		       (unsigned)USER, board_number(0), iface);
	if (k > 0)
		len += snprintf(sun.sun_path + 1 + len, room - (size_t)len,
				".%d", k);
	n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	    (socklen_t)len;
	fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sun, n) == 0);
	if (dgram || s->how == BOUND)
		return;
	CHECK(listen(fd, s->how == FULL ? 0 : 64) == 0);
	while (s->how == FULL) {	/* until its queue takes no more */
		fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
		if (connect(fd, (struct sockaddr *)&sun, n) != 0)
			break;
	}
}

static int g_hold;			/* the other user ends when it closes */

/* Start the other user, who holds all of that; then become an ordinary one. */
static pid_t squat(const struct squat *s, int n)
{
	const char *hal = getenv("FI_UNIMEM_HAL");
	int ready[2], hold[2];
	char byte;
	pid_t pid;

	if (hal != NULL && strcmp(hal, "emu") != 0)
		procs_skip("boards have no names of sockets");
	if (getuid() != 0)
		procs_skip("only root can be two users");
	CHECK(pipe(ready) == 0 && pipe(hold) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(setresuid(OTHER, OTHER, OTHER) == 0);
		for (int i = 0; i < n; i++)
			for (unsigned j = 0; j < s[i].count; j++)
				for (int k = s[i].first; k <= s[i].last; k++)
					bind_form(&s[i], s[i].iface + j, k);
		CHECK(write(ready[1], "", 1) == 1);
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	g_hold = hold[1];
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	CHECK(setresgid(USER, USER, USER) == 0 &&
	      setresuid(USER, USER, USER) == 0);
	return pid;
}

static void squatter_ends(pid_t pid)
{
	close(g_hold);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* ---- Us ----------------------------------------------------------------- */

static char g_line[512];		/* the last line at level 0 */
static int g_lines;

static void take_line(int level, const char *line)
{
	if (level > 0)
		return;
	snprintf(g_line, sizeof(g_line), "%s", line);
	g_lines++;
}

/* So many lines since the last call, the last of which names the other user. */
static void expect_lines(int n)
{
	char uid[16];

	snprintf(uid, sizeof(uid), "user %u", (unsigned)OTHER);
	CHECK_MSG(g_lines == n, "%d lines, not %d: %s", g_lines, n, g_line);
	CHECK_MSG(n == 0 || strstr(g_line, uid) != NULL, "%s", g_line);
	g_lines = 0;
}

static struct hal *hal_here(void)
{
	struct hal *hal;

	hal_log_set(take_line);
	CHECK(setenv("FI_UNIMEM_BOARD", board_env(0)[0] +
		     strlen("FI_UNIMEM_BOARD="), 1) == 0);
	CHECK(hal_get(NULL, &hal) == 0);
	return hal;
}

/* Of number, or any (0), or the service. */
static int open_if(struct hal *hal, int number, struct hal_if **hif)
{
	return number == HAL_IF_SERVICE ?
	       hal_if_open_service(hal, board_number(0), hif) :
	       number < 0 ? hal_if_open(hal, board_number(0), hif) :
	       hal_if_open_number(hal, board_number(0), number, hif);
}

static void service(struct hal_if *hif, struct hal_peer *out)
{
	struct hal_event ev[8];
	int n;

	hal_if_pump(hif);
	n = hal_if_service(hif, ev, 8);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			CHECK_MSG(ev[i].peer != out, "dead: %d", ev[i].status);
}

/* A packet from one to the other, by this address; then all is let go. */
static void reach(struct hal_if *from, struct hal_if *to,
		  const struct hal_addr *addr)
{
	uint64_t end = procs_now() + SECONDS * PROCS_SECOND;
	const struct hal_cell *cell = NULL;
	uint64_t word = procs_now(), head;
	struct hal_peer *out;
	int ret;

	do {
		ret = hal_connect(from, addr, &out);
		service(from, NULL);
		service(to, NULL);
	} while (ret == -FI_EAGAIN && procs_now() < end);
	CHECK_MSG(ret == 0, "connect: %d", ret);
	while (hal_pkt_send(out, hal_head(1, 0), &word, 1, NULL, 0) != 0)
		CHECK(procs_now() < end);
	while (cell == NULL) {
		CHECK_MSG(procs_now() < end, "nothing came");
		service(from, out);
		service(to, NULL);
		for (uint32_t i = 0; i < to->ninbound && cell == NULL; i++) {
			cell = hal_rx_peek(to->inbound[i], &head);
			if (cell == NULL)
				continue;
			CHECK(hal_cell_word(cell, 0) == word);
			hal_rx_release(to->inbound[i]);
			hal_rx_flush(to->inbound[i]);
		}
	}
}

static struct hal_addr typed(const struct hal_if *hif)
{
	struct hal_addr addr = hif->addr;

	addr.nonce = HAL_ADDR_ANY;
	return addr;
}

/* It is reached, and reaches others, by exact and by typed addresses. */
static void meets(struct hal *hal, struct hal_if *a)
{
	struct hal_if *b[4];
	struct hal_addr addr = typed(a);

	for (int i = 0; i < 4; i++)
		CHECK(open_if(hal, -1, &b[i]) == 0);
	reach(b[0], a, &a->addr);
	reach(b[1], a, &addr);
	reach(a, b[2], &b[2]->addr);
	addr = typed(b[3]);
	reach(a, b[3], &addr);
	for (int i = 0; i < 4; i++)
		hal_if_close(b[i]);
}

/* ---- Names that are held ------------------------------------------------ */

#define BOTH(n, c, from, to, h)						\
	{ "unimem.held", n, c, from, to, h }, { "unimem", n, c, from, to, h }

/* The number is ours all the same, and only once. lines: what is said. */
static void taken(int number, int lines)
{
	struct hal *hal = hal_here();
	struct hal_if *a, *none;
	int ret = open_if(hal, number, &a);

	CHECK_MSG(ret == 0, "%d: %s", ret, g_line);
	expect_lines(lines);
	meets(hal, a);
	expect_lines(0);
	CHECK(open_if(hal, number, &none) == (number == HAL_IF_SERVICE ?
	      -FI_EBUSY : -FI_EADDRINUSE));
	g_lines = 0;
	hal_if_close(a);
	/* and again, once all hellos were read */
	CHECK(open_if(hal, number, &a) == 0);
	hal_if_close(a);
	hal_put(hal);
}

#define HELD(name, number, lines, ...)					\
	static void held_##name(void)					\
	{								\
		static const struct squat s[] = { __VA_ARGS__ };	\
									\
		squat(s, (int)(sizeof(s) / sizeof(s[0])));		\
		taken(number, lines);					\
	}

HELD(proof, NUMBER, 1, { "unimem.held", NUMBER, 1, 0, 0, BOUND })
HELD(bound, NUMBER, 1, { "unimem", NUMBER, 1, 0, 0, BOUND })
HELD(listens, NUMBER, 1, { "unimem", NUMBER, 1, 0, 0, LISTENS })
HELD(full, NUMBER, 1, { "unimem", NUMBER, 1, 0, 0, FULL })
HELD(both, NUMBER, 1, BOTH(NUMBER, 1, 0, 0, LISTENS))
HELD(most, NUMBER, 1, BOTH(NUMBER, 1, 0, FORMS - 2, LISTENS))
HELD(between, NUMBER, 1, BOTH(NUMBER, 1, 0, 0, LISTENS),
     BOTH(NUMBER, 1, 2, 2, LISTENS))
HELD(later, NUMBER, 0, BOTH(NUMBER, 1, 1, FORMS - 1, LISTENS))
HELD(service, HAL_IF_SERVICE, 1, BOTH(HAL_IF_SERVICE, 1, 0, 1, BOUND))

/* Nothing to be done about it: one line says who it is. */
static void refused(int number, int connects)
{
	struct hal *hal = hal_here();
	struct hal_if *a, *b;
	struct hal_peer *peer;
	struct hal_addr addr;

	CHECK(open_if(hal, number, &a) == -FI_EACCES);
	expect_lines(1);
	CHECK(open_if(hal, -1, &b) == 0);
	addr = typed(b);
	addr.iface = (uint32_t)number;
	CHECK(hal_connect(b, &addr, &peer) == connects);
	if (connects == -FI_EACCES)
		expect_lines(1);
	hal_if_close(b);
	hal_put(hal);
}

static void all_held(void)
{
	static const struct squat s[] = {
		{ "unimem.held", NUMBER, 1, 0, FORMS - 1, BOUND },
	};

	squat(s, 1);
	refused(NUMBER, -FI_ECONNREFUSED);
}

static void all_held_of_the_service(void)
{
	static const struct squat s[] = {
		{ "unimem", HAL_IF_SERVICE, 1, 0, FORMS - 1, LISTENS },
	};

	squat(s, 1);
	refused(HAL_IF_SERVICE, -FI_EACCES);
}

/* Nobody of ours is there: a full queue is not waited for. */
static void full_and_nobody(void)
{
	static const struct squat s[] = {
		{ "unimem", NUMBER, 1, 0, 0, FULL },
	};
	struct hal_peer *peer;
	struct hal_addr addr;
	struct hal_if *b;
	struct hal *hal;

	squat(s, 1);
	hal = hal_here();
	CHECK(open_if(hal, -1, &b) == 0);
	addr = typed(b);
	addr.iface = NUMBER;
	CHECK(hal_connect(b, &addr, &peer) == -FI_ECONNREFUSED);
	hal_if_close(b);
	hal_put(hal);
}

/* All numbers of a small board: each is taken in spite of it, once. */
static void whole_board_held(void)
{
	static const struct squat s[] = { BOTH(1, 63, 0, 0, LISTENS) };
	struct hal_if *a[63], *none;
	struct hal *hal;

	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	squat(s, 2);
	hal = hal_here();
	for (int i = 0; i < 63; i++) {
		CHECK(open_if(hal, -1, &a[i]) == 0);
		expect_lines(1);
		for (int j = 0; j < i; j++)
			CHECK(a[j]->addr.iface != a[i]->addr.iface);
	}
	CHECK(open_if(hal, -1, &none) == -FI_EBUSY);
	reach(a[0], a[62], &a[62]->addr);
	reach(a[62], a[0], &a[0]->addr);
	for (int i = 0; i < 63; i++)
		hal_if_close(a[i]);
	hal_put(hal);
}

/* ---- The other user ends ------------------------------------------------ */

/* The holder keeps its number, is reached, and reaches who never met it. */
static void gone(void)
{
	static const struct squat s[] = { BOTH(5, 1, 0, 1, LISTENS) };
	struct hal_if *a, *fill[62], *none;
	struct hal *hal;
	pid_t pid;

	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	pid = squat(s, 2);
	hal = hal_here();
	CHECK(open_if(hal, 5, &a) == 0);
	expect_lines(1);
	meets(hal, a);
	squatter_ends(pid);
	CHECK(open_if(hal, 5, &none) == -FI_EADDRINUSE);
	for (int i = 0; i < 62; i++)
		CHECK(open_if(hal, -1, &fill[i]) == 0);
	CHECK(open_if(hal, -1, &none) == -FI_EBUSY);
	for (int i = 0; i < 62; i++)
		hal_if_close(fill[i]);
	meets(hal, a);
	hal_if_close(a);
	CHECK(open_if(hal, 5, &a) == 0);
	meets(hal, a);
	hal_if_close(a);
	hal_put(hal);
}

/* ---- A kernel that does not show whose a socket is ---------------------- */

static void hide_owners(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		procs_skip("no filter of system calls");
}

/* One that listens is skipped; any other may be ours, and is left. */
static void owners_hidden(void)
{
	static const struct squat s[] = {
		{ "unimem", NUMBER, 1, 0, 0, LISTENS },
		{ "unimem.held", NUMBER + 1, 1, 0, 0, BOUND },
	};
	struct hal_if *none;
	struct hal *hal;

	squat(s, 2);
	hide_owners();
	taken(NUMBER, 1);
	hal = hal_here();
	CHECK(open_if(hal, NUMBER + 1, &none) == -FI_EADDRINUSE);
	hal_put(hal);
}

/* ---- All laws, the names of the last board held once -------------------- */

/* Copy a file to standard error, which may be open for appending: sendfile(2)
 * refuses such a file. */
static void show(int fd)
{
	char buf[4096];
	ssize_t n;

	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		CHECK(write(STDERR_FILENO, buf, (size_t)n) == n);
	CHECK(n == 0);
}

static void conformance(void)
{
	static const struct squat s[] = { BOTH(0, 64, 0, 0, LISTENS) };
	char path[4096], board[16], boards[16];
	int status, out;
	pid_t pid;

	squat(s, 2);
	build_program("test/conform/hal_conform", path, sizeof(path));
	if (access(path, X_OK) != 0)
		procs_skip("an ordinary user may not run %s", path);
	snprintf(board, sizeof(board), "%d", board_number(0));
	snprintf(boards, sizeof(boards), "%d", board_number(0) + 1);
	setenv("FI_UNIMEM_BOARD", board, 1);
	setenv("FI_UNIMEM_BOARDS", boards, 1);
	out = memfd_create("out", MFD_CLOEXEC);
	CHECK(out >= 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		execl(path, path, "--hal", "emu", "--service", "--profile",
		      "exanode", "--packets", "2000", NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		show(out);
	CHECK_MSG(status == 0, "hal_conform: wait status %#x", status);
}

/* ---- GSAS --------------------------------------------------------------- */

static void need_gsasd(void)
{
	char path[4096];

	build_program("gsasd", path, sizeof(path));
	if (access(path, X_OK) != 0)
		procs_skip("an ordinary user may not run %s", path);
	setenv("GSASD", path, 1);
}

/* Clients of one job: both start a service if there is none. */
static int client(int fd, void *arg)
{
	int index = proc_index();
	gsas_addr own, at;
	uint64_t value;

	(void)arg;
	GSAS(gsas_alloc(1, board_number(0), 0, NULL, &own));
	GSAS(gsas_write64(own, 5 + (uint64_t)index));
	procs_send_word(fd, own);
	at = procs_recv_word(fd);	/* of the other */
	GSAS(gsas_read64(at, &value));
	CHECK(value == 5 + (uint64_t)!index);
	procs_exchange(fd, 0);
	GSAS(gsas_free(own));		/* or the service stays */
	return 0;
}

static void gsas_meet(void)
{
	struct proc *p[2];
	uint64_t at[2];

	for (int i = 0; i < 2; i++)
		p[i] = proc_start(client, NULL, board_env(0));
	for (int i = 0; i < 2; i++)
		at[i] = procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, at[!i]);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
	procs_forget();
}

static void gsas_meets(void)
{
	static const struct squat s[] = {
		BOTH(HAL_IF_SERVICE, 1, 0, 0, LISTENS),
	};

	squat(s, 2);
	need_gsasd();
	gsas_meet();
}

static int barred(int fd, void *arg)
{
	gsas_addr at;
	char line[1024];
	FILE *f = tmpfile();
	size_t n;

	(void)fd;
	CHECK(f != NULL && dup2(fileno(f), STDERR_FILENO) >= 0);
	CHECK(gsas_alloc(1, board_number(0), 0, NULL, &at) ==
	      *(const int *)arg);
	rewind(f);
	n = fread(line, 1, sizeof(line) - 1, f);
	line[n] = '\0';
	dup2(STDOUT_FILENO, STDERR_FILENO);
	CHECK_MSG(strstr(line, "user 54321") != NULL, "%s", line);
	CHECK_MSG(strstr(line, "already") == NULL, "%s", line);
	return 0;
}

static void is_barred(int ret)
{
	need_gsasd();
	proc_expect(proc_start(barred, &ret, board_env(0)), 0);
	procs_forget();
}

static void gsas_barred(void)
{
	static const struct squat s[] = {
		{ "unimem.held", HAL_IF_SERVICE, 1, 0, FORMS - 1, BOUND },
	};

	squat(s, 1);
	is_barred(-FI_ECONNREFUSED);
}

static void gsas_barred_listens(void)
{
	static const struct squat s[] = {
		BOTH(HAL_IF_SERVICE, 1, 0, FORMS - 1, LISTENS),
	};

	squat(s, 2);
	is_barred(-FI_EACCES);
}

PROCS_MAIN(
	PROCS_CASE(held_proof, 0),
	PROCS_CASE(held_bound, 0),
	PROCS_CASE(held_listens, 0),
	PROCS_CASE(held_full, 0),
	PROCS_CASE(held_both, 0),
	PROCS_CASE(held_most, 0),
	PROCS_CASE(held_between, 0),
	PROCS_CASE(held_later, 0),
	PROCS_CASE(held_service, 0),
	PROCS_CASE(all_held, 0),
	PROCS_CASE(all_held_of_the_service, 0),
	PROCS_CASE(full_and_nobody, 0),
	PROCS_CASE(whole_board_held, 0),
	PROCS_CASE(gone, 0),
	PROCS_CASE(owners_hidden, 0),
	PROCS_CASE(conformance, 200),
	PROCS_CASE(gsas_meets, 0),
	PROCS_CASE(gsas_barred, 0),
	PROCS_CASE(gsas_barred_listens, 0),
)
