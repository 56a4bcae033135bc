/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs.c - the framework of tests with several processes, see procs.h
 *
 * Owns the table of child processes and the memory they share with the
 * director. procs_main() runs the cases, proc_*() control children. Endpoints
 * of children are in procs_node.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/proc_files.h"
#include "lib/procs.h"
#include "lib/unit_skip.h"

#define EXIT_SKIP	77
#define CASE_SECONDS	60
#define BOARDS		65535

struct procs_shared *g_shared;

static struct proc g_proc[PROCS_MAX];
static int g_nprocs;
static char g_who[48] = "director";	/* this process, in messages */
static int g_index;			/* of this child */
static pid_t g_runner;			/* director of the running case, 0: no
					 * case runs */
static int g_board;

/* ---- Verdicts ---------------------------------------------------------- */

int g_fail_fd = STDERR_FILENO;

void procs_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	char text[512];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(NULL);
	dprintf(g_fail_fd, "%s:%d: %s: %s\n", file, line, g_who, text);
	_exit(1);
}

void procs_skip(const char *fmt, ...)
{
	va_list ap;

	printf("#   skipped: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(NULL);
	_exit(EXIT_SKIP);
}

void procs_note(const char *fmt, ...)
{
	va_list ap;

	printf("#   ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

uint64_t procs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PROCS_SECOND + ts.tv_nsec / 1000;
}

void procs_nap(uint64_t us)
{
	struct timespec ts = { us / PROCS_SECOND,
			       us % PROCS_SECOND * 1000 };

	nanosleep(&ts, NULL);
}

long procs_number(const char *name, long def)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' ? strtol(text, NULL, 0) : def;
}

uint32_t procs_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 33;
}

int procs_board(void)
{
	return g_board;
}

/* ---- Cases ------------------------------------------------------------- */

/* Kill the director and its children, which are in one process group. */
static void end_case(void)
{
	kill(-g_runner, SIGKILL);
}

static void on_term(int sig)
{
	if (g_runner > 0)
		end_case();
	_exit(128 + sig);
}

/* Print the shared words and the processes of a case that hangs. */
static void tell_hang(const char *name, int seconds)
{
	struct dirent *d;
	DIR *dir = opendir("/proc");

	printf("#   %s: not done after %d s; words", name, seconds);
	for (int i = 0; i < 6; i++)
		printf(" %llu", (unsigned long long)g_shared->word[i]);
	printf("\n");
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		char path[64], line[128] = "";
		FILE *f;

		if (pid <= 0 || getpgid(pid) != g_runner)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		if (fgets(line, 60, f) != NULL)
			printf("#   still there: %s\n", line);
		fclose(f);
	}
	if (dir != NULL)
		closedir(dir);
	fflush(stdout);
}

/* Reap orphans, whose subreaper this process is. Returns true once the director
 * has ended; the director is not reaped, so that its number is not reused. */
static bool reap_orphans(void)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid == 0)
			return false;
		if (info.si_pid == g_runner)
			return true;
		waitpid(info.si_pid, NULL, 0);
	}
}

/* Wait for the end of a case. Returns the director's exit code, or 1 if the
 * case took too long or the director was killed. */
static int await_case(const struct procs_case *c)
{
	int seconds = (c->seconds != 0 ? c->seconds : CASE_SECONDS) *
		      (int)procs_number("UNM_TEST_TIME", 1);
	uint64_t end = procs_now() + (uint64_t)seconds * PROCS_SECOND;
	bool ended;
	int status;

	while (!(ended = reap_orphans()) && procs_now() < end)
		procs_nap(2000);
	if (!ended)
		tell_hang(c->name, seconds);
	/* The director is not reaped yet, so the number of its process group
	 * cannot have been reused. */
	end_case();
	waitpid(g_runner, &status, 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (!ended)
		return 1;
	if (WIFSIGNALED(status))
		printf("#   the director died of signal %d\n",
		       WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_case(const struct procs_case *c)
{
	uint64_t start = procs_now();
	int code;

	memset(g_shared, 0, sizeof(*g_shared));
	fflush(NULL);
	g_runner = fork();
	if (g_runner < 0)
		return 1;
	if (g_runner == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_IGN);
		if (unit_skips(c->name))
			procs_skip("named by UNIT_SKIP");
		if (c->run != NULL)
			c->run();
		else
			c->run_with(c->arg);
		fflush(NULL);
		_exit(0);
	}
	/* Parent and child both call setpgid(): either may run first. */
	setpgid(g_runner, g_runner);
	code = await_case(c);
	g_runner = 0;
	printf("%s %s (%.1f s)\n", code == 0 ? "ok" : code == EXIT_SKIP ?
	       "skip" : "FAILED", c->name, (procs_now() - start) / 1e6);
	fflush(stdout);
	return code;
}

/* Set the environment of libfabric and of the provider. A test that is run by
 * hand finds the provider in the build tree. */
static void environment(void)
{
	char exe[4000], value[sizeof(exe) + 16];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n > 0) {
		exe[n] = '\0';
		snprintf(value, sizeof(value), "%s/../../.libs", dirname(exe));
		setenv("FI_PROVIDER_PATH", value, 0);
	}
	setenv("FI_PROVIDER", "unimem", 1);
	g_board = 1 + (int)((unsigned)getpid() * 40503u % (BOARDS - 1));
	snprintf(value, sizeof(value), "%d", BOARDS);
	setenv("FI_UNIMEM_BOARDS", value, 1);
	snprintf(value, sizeof(value), "%d", g_board);
	setenv("FI_UNIMEM_BOARD", value, 1);
	/* Each child would scan the topology of a machine with several memory
	 * nodes: describe a small machine instead. */
	setenv("HWLOC_SYNTHETIC", "numa:1 pu:2", 0);
}

/*
 * Initialize libfabric once, before the children are forked: a system's
 * libfabric takes 0.1 s for it (some of its providers read /proc/kallsyms). The
 * provider unimem is loaded, but its getinfo() is not called, so that each
 * child still reads its own environment.
 */
static void warm_up(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	CHECK(hints != NULL && err >= 0 && null >= 0);
	dup2(null, STDERR_FILENO);	/* other providers print warnings */
	close(null);
	hints->fabric_attr->prov_name = strdup("nobody");
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0)
		fi_freeinfo(info);
	fi_freeinfo(hints);
	dup2(err, STDERR_FILENO);
	close(err);
}

static bool is_asked(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

int procs_main(int argc, char **argv, const struct procs_case *cases, int n)
{
	int passed = 0, failed = 0, skipped = 0;

	environment();
	warm_up();
	g_shared = mmap(NULL, sizeof(*g_shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g_shared == MAP_FAILED)
		return 99;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	for (int i = 0; i < n; i++) {
		int code;

		if (!is_asked(argc, argv, cases[i].name))
			continue;
		code = run_case(&cases[i]);
		if (code == 0)
			passed++;
		else if (code == EXIT_SKIP)
			skipped++;
		else
			failed++;
	}
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed != 0 ? 1 : passed != 0 ? 0 : EXIT_SKIP;
}

/* ---- Children ---------------------------------------------------------- */

static void child_main(struct proc *p, int fd, proc_fn fn, void *arg,
		       const char *const *env)
{
	int code;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	g_index = p->index;
	snprintf(g_who, sizeof(g_who), "child %d", g_index);
	/* Libraries of other providers install handlers that exit. */
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGPIPE)
			signal(sig, SIG_DFL);
	for (int i = 0; i < g_nprocs; i++)
		if (g_proc[i].fd >= 0)
			close(g_proc[i].fd);
	for (; env != NULL && *env != NULL; env++)
		if (putenv((char *)*env) != 0)
			FAIL("no memory");
	code = fn(fd, arg);
	procs_note_waited();
	exit(code);
}

int proc_index(void)
{
	return g_index;
}

static void start(struct proc *p, proc_fn fn, void *arg,
		  const char *const *env)
{
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) == 0);
	fflush(NULL);
	p->fd = -1;
	p->ended = false;
	p->pid = fork();
	CHECK(p->pid >= 0);
	if (p->pid == 0)
		child_main(p, fd[1], fn, arg, env);
	p->fd = fd[0];
	close(fd[1]);
}

struct proc *proc_start(proc_fn fn, void *arg, const char *const *env)
{
	struct proc *p = &g_proc[g_nprocs];

	CHECK(g_nprocs < PROCS_MAX);
	p->index = g_nprocs;
	start(p, fn, arg, env);
	g_nprocs++;
	return p;
}

struct proc *proc_restart(struct proc *p, proc_fn fn, void *arg,
			  const char *const *env)
{
	CHECK(p->ended);
	g_shared->gone &= ~(UINT64_C(1) << p->index);
	start(p, fn, arg, env);
	return p;
}

void procs_forget(void)
{
	for (int i = 0; i < g_nprocs; i++)
		CHECK(g_proc[i].ended);
	g_nprocs = 0;
	g_shared->gone = 0;
}

bool proc_ended(struct proc *p, int ms)
{
	uint64_t end = procs_now() + (uint64_t)ms * 1000;

	while (!p->ended) {
		pid_t pid = waitpid(p->pid, &p->status, WNOHANG);

		CHECK_MSG(pid >= 0, "waitpid: %s", strerror(errno));
		if (pid == p->pid) {
			p->ended = true;
			close(p->fd);
			p->fd = -1;
		} else if (procs_now() >= end) {
			return false;
		} else {
			procs_nap(200);
		}
	}
	return true;
}

void proc_expect(struct proc *p, int code)
{
	while (!proc_ended(p, 1000))
		;
	CHECK_MSG(!WIFSIGNALED(p->status), "child %d died of signal %d (%s)",
		  p->index, WTERMSIG(p->status),
		  strsignal(WTERMSIG(p->status)));
	CHECK_MSG(WEXITSTATUS(p->status) == code, "child %d: exit code %d",
		  p->index, WEXITSTATUS(p->status));
}

void proc_finish(struct proc *p)
{
	procs_send_word(p->fd, 0);
	proc_expect(p, 0);
}

void proc_signal(struct proc *p, int sig)
{
	CHECK(!p->ended && kill(p->pid, sig) == 0);
}

uint64_t proc_kill(struct proc *p)
{
	proc_signal(p, SIGKILL);
	while (!proc_ended(p, 1000))
		;
	g_shared->gone |= UINT64_C(1) << p->index;
	return procs_now();
}

void proc_stop(struct proc *p)
{
	proc_signal(p, SIGSTOP);
	proc_await_stop(p);
}

void proc_await_stop(struct proc *p)
{
	siginfo_t info;

	CHECK(waitid(P_PID, p->pid, &info, WSTOPPED | WNOWAIT) == 0);
	CHECK(info.si_code == CLD_STOPPED);
}

/* ---- Messages between director and children ----------------------------- */

bool procs_send(int fd, const void *msg, size_t len)
{
	return send(fd, msg, len, MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t procs_recv(int fd, void *msg, size_t len, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while ((n = poll(&pfd, 1, ms)) < 0 && errno == EINTR)
		;
	if (n == 0)
		return -1;
	while ((n = recv(fd, msg, len, 0)) < 0 && errno == EINTR)
		;
	return n > 0 ? n : 0;
}

void procs_send_word(int fd, uint64_t word)
{
	CHECK_MSG(procs_send(fd, &word, sizeof(word)), "the other one is gone");
}

uint64_t procs_recv_word(int fd)
{
	uint64_t word = 0;

	CHECK_MSG(procs_recv(fd, &word, sizeof(word), -1) == sizeof(word),
		  "the other one is gone");
	return word;
}

uint64_t procs_exchange(int fd, uint64_t word)
{
	procs_send_word(fd, word);
	return procs_recv_word(fd);
}

void procs_join(struct proc *const *p, int n)
{
	struct hal_addr_host addr[PROCS_MAX];

	memset(addr, 0, sizeof(addr));
	for (int i = 0; i < n; i++)
		if (p[i]->ended ||
		    procs_recv(p[i]->fd, &addr[i], sizeof(addr[i]), -1) !=
		    sizeof(addr[i]))
			addr[i].addr.iface = 0;
	for (int i = 0; i < n; i++)
		if (!p[i]->ended)
			procs_send(p[i]->fd, addr, n * sizeof(addr[0]));
}

/* ---- Names and segments in the system ----------------------------------- */

int procs_names(char *line, size_t len)
{
	char name[64], text[512];
	FILE *f = fopen("/proc/net/unix", "re");
	int n = 0;

	CHECK(f != NULL);
	snprintf(name, sizeof(name), "@unimem.%u.%d.", (unsigned)geteuid(),
		 g_board);
	while (fgets(text, sizeof(text), f) != NULL) {
		if (strstr(text, name) == NULL)
			continue;
		if (n++ == 0 && line != NULL)
			snprintf(line, len, "%s", text);
	}
	fclose(f);
	return n;
}

uint64_t procs_clean(void)
{
	uint64_t start = procs_now();
	char line[512] = "";

	while (procs_names(line, sizeof(line)) != 0) {
		CHECK_MSG(procs_now() < start + 60 * PROCS_SECOND,
			  "it is left: %s", line);
		procs_nap(1000);
	}
	return procs_now() - start;
}

/* Count the mappings and descriptors of unimem segments that a process has, and
 * store the inode numbers of the first max. */
static int each_segment(pid_t pid, uint64_t *ino, int max)
{
	char path[320], text[512];
	struct dirent *d;
	struct stat st;
	int n = 0;
	FILE *f;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(text, sizeof(text), f) != NULL) {
		unsigned long i = 0;

		if (strstr(text, "/memfd:unimem-") == NULL)
			continue;
		if (sscanf(text, "%*s %*s %*s %*s %lu", &i) == 1 && n < max)
			ino[n] = i;
		n++;
	}
	if (f != NULL)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, d->d_name);
		len = readlink(path, text, sizeof(text) - 1);
		text[len > 0 ? len : 0] = '\0';
		if (strncmp(text, "/memfd:unimem-", 14) != 0)
			continue;
		if (stat(path, &st) == 0 && n < max)
			ino[n] = st.st_ino;
		n++;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

int procs_segments(pid_t pid)
{
	return each_segment(pid, NULL, 0);
}

int procs_inodes(pid_t pid, uint64_t *ino, int max)
{
	int n = each_segment(pid, ino, max);

	return n < max ? n : max;
}

int procs_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return proc_names(path, "");
}
