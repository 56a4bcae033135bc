/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_fork.c - remoteFork() end to end: the argument, the board, the log
 * files, what may be started, nothing left behind. And what becomes of the
 * pages of processes that are killed: gsasctl shows them, and frees them.
 *
 * The processes it starts are test/multi/gsas_forked.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atomic.h"
#include "lib/gsas_forked.h"
#include "lib/gsas_processes.h"

#define FORKS	20			/* on each of two boards */
#define STATUS_BYTES	8192

/* A folder of this case, with what may be started and what may not. */
struct folder {
	char path[64];			/* the logs are here */
	char allowed[80], forked[120];
};

static void copy_file(const char *from, const char *to, mode_t mode)
{
	char buf[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	ssize_t n;

	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK(write(out, buf, (size_t)n) == n);
	CHECK(n == 0);
	close(in);
	close(out);
}

#define NAME(to, ...)	CHECK(snprintf(to, sizeof(to), __VA_ARGS__) < \
			      (int)sizeof(to))

static void make_folder(struct folder *f)
{
	char program[PATH_MAX], name[160];

	NAME(f->path, "/tmp/test_gsas_fork.XXXXXX");
	CHECK(mkdtemp(f->path) != NULL);
	CHECK(chdir(f->path) == 0);
	NAME(f->allowed, "%s/allowed", f->path);
	NAME(name, "%s/allowed-not", f->path);
	CHECK(mkdir(f->allowed, 0700) == 0 && mkdir(name, 0700) == 0);
	NAME(f->forked, "%s/gsas_forked", f->allowed);
	build_program("test/multi/gsas_forked", program, sizeof(program));
	copy_file(program, f->forked, 0700);
	NAME(name, "%s/allowed-not/gsas_forked", f->path);
	copy_file(program, name, 0700);
	NAME(name, "%s/plain", f->allowed);
	copy_file(program, name, 0600);
	NAME(name, "%s/link", f->allowed);
	CHECK(symlink("../allowed-not/gsas_forked", name) == 0);
}

/* Flat, and one folder deep. */
static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	char name[PATH_MAX];

	CHECK(dir != NULL);
	while ((d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		NAME(name, "%s/%s", path, d->d_name);
		if (unlink(name) != 0)
			remove_folder(name);
	}
	closedir(dir);
	CHECK(rmdir(path) == 0);
}

static const char *const rank_variables[] = {
	"PMI_FD", "PMI_RANK", "PMIX_NAMESPACE", "PMIX_RANK", "SLURM_PROCID",
};
#define RANK_VARIABLES	(sizeof(rank_variables) / sizeof(rank_variables[0]))

static struct proc *serve(int board, const struct folder *f)
{
	const char *options[] = { "--exec", f->allowed, "--logs", f->path,
				  NULL };

	return gsasd_start(board, options);
}

/* ---- remoteFork ---------------------------------------------------------- */

static uint64_t *word(uint64_t *page, int process, int what)
{
	return page + FORKED_TELLS + process * FORKED_WORDS + what;
}

static void await(uint64_t *page, uint64_t told)
{
	while (READ64(page + FORKED_TOLD) != told)
		procs_nap(1000);
}

/* The log has a line of each of these processes, and no other. */
static void check_log(const struct folder *f, int board, const char *what,
		      const uint64_t *pid)
{
	static char text[65536];
	char name[160], line[64];
	int lines = 0, fd;
	ssize_t n;

	NAME(name, "%s/gsas_forked-%d-std%s.log", f->path, board_number(board),
	     what);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK_MSG(fd >= 0, "%s: %s", name, strerror(errno));
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	close(fd);
	for (int i = 0; i < FORKS; i++) {
		NAME(line, "%s of %d\n", what, (int)pid[i]);
		CHECK_MSG(strstr(text, line) != NULL, "%s lacks \"%s\"", name,
			  line);
	}
	for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	CHECK_MSG(lines == FORKS, "%s has %d lines", name, lines);
}

static int forker(int fd, void *arg)
{
	struct folder *f = arg;
	uint64_t pid[2][FORKS];
	uint64_t *page = allocSharedPage(1, (uint64_t)board_number(0));

	CHECK(page != NULL);
	CHECK(readThreadArgument() == _EMPTY_THREAD_ARGUMENT_);
	for (int i = 0; i < 2 * FORKS; i++) {
		uint64_t *at = &pid[i % 2][i / 2];

		*at = remoteFork(f->forked, (uint64_t)page,
				 (uint64_t)board_number(i % 2));
		CHECK(*at != 0);
	}
	await(page, (uint64_t)2 * FORKS);
	for (int i = 0; i < 2 * FORKS; i++) {
		uint64_t p = READ64(word(page, i, FORKED_PID));
		uint64_t board = READ64(word(page, i, FORKED_BOARD));
		int b = board_number(0) - (int)board, found = 0;

		CHECK_MSG(b == 0 || b == 1, "one ran on board %d", (int)board);
		for (int k = 0; k < FORKS; k++)
			found += pid[b][k] == p;
		CHECK_MSG(found == 1, "process %d on board %d: not what "
			  "remoteFork() said", (int)p, (int)board);
		CHECK(READ64(word(page, i, FORKED_FILES)) == 3);
		CHECK(READ64(word(page, i, FORKED_RANK)) == 0);
	}
	procs_send(fd, pid, sizeof(pid));
	procs_recv_word(fd);
	CHECK(freeSharedPage(page) == 0);
	return 0;
}

/* Children of a process that have ended, and nobody has looked. */
static int zombies(pid_t parent)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int n = 0;

	CHECK(dir != NULL);
	while ((d = readdir(dir)) != NULL) {
		char name[64], text[512], state, *at;
		int ppid;
		FILE *f;

		if (strtol(d->d_name, NULL, 10) <= 0)
			continue;
		snprintf(name, sizeof(name), "/proc/%.20s/stat", d->d_name);
		f = fopen(name, "re");
		if (f == NULL)
			continue;
		if (fgets(text, sizeof(text), f) != NULL &&
		    (at = strrchr(text, ')')) != NULL &&
		    sscanf(at + 1, " %c %d", &state, &ppid) == 2)
			n += state == 'Z' && ppid == parent;
		fclose(f);
	}
	closedir(dir);
	return n;
}

static bool lives(uint64_t pid)
{
	return kill((pid_t)pid, 0) == 0;
}

static void forks(void)
{
	struct proc *service[2], *p;
	uint64_t pid[2][FORKS];
	struct folder f;
	int extra;

	make_folder(&f);
	extra = dup(STDERR_FILENO);	/* the services have it, and keep it */
	/* and the rank of a process that would start them */
	for (size_t i = 0; i < RANK_VARIABLES; i++)
		setenv(rank_variables[i], "1", 1);
	for (int i = 0; i < 2; i++)
		service[i] = serve(i, &f);
	for (size_t i = 0; i < RANK_VARIABLES; i++)
		unsetenv(rank_variables[i]);
	close(extra);
	p = proc_start(forker, &f, board_env(0));
	CHECK(procs_recv(p->fd, pid, sizeof(pid), -1) == sizeof(pid));
	/* each ends, and is reaped: none is left, dead or alive */
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < FORKS; k++)
			while (lives(pid[i][k]))
				procs_nap(1000);
	for (int i = 0; i < 2; i++) {
		CHECK(zombies(service[i]->pid) == 0);
		check_log(&f, i, "out", pid[i]);
		check_log(&f, i, "err", pid[i]);
	}
	proc_finish(p);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
	remove_folder(f.path);
}

/* ---- What may be started ------------------------------------------------- */

static void refused(const char *path, int error)
{
	uint64_t pid = 0;
	int ret = gsas_fork(path, 1, board_number(0), &pid);

	CHECK_MSG(ret == error && pid == 0, "%.200s: %d, not %d", path, ret,
		  error);
	CHECK(remoteFork((char *)path, 1, (uint64_t)board_number(0)) == 0);
}

static int chooser(int fd, void *arg)
{
	const struct folder *f = arg;
	char path[GSAS_PATH + 16];
	uint64_t pid, argument;

	(void)fd;
	refused("/bin/true", -EPERM);
	NAME(path, "%s/allowed-not/gsas_forked", f->path);
	refused(path, -EPERM);
	NAME(path, "%s/../allowed-not/gsas_forked", f->allowed);
	refused(path, -EPERM);
	NAME(path, "%s/link", f->allowed);
	refused(path, -EPERM);
	NAME(path, "%s/none", f->allowed);
	refused(path, -ENOENT);
	refused("", -ENOENT);
	NAME(path, "%s/plain", f->allowed);
	CHECK(gsas_fork(path, 1, board_number(0), &pid) < 0);
	CHECK(gsas_fork(f->allowed, 1, board_number(0), &pid) < 0);
	memset(path, 'x', sizeof(path));
	path[GSAS_PATH] = '\0';		/* a byte too long, with its 0 */
	refused(path, -ENAMETOOLONG);
	path[0] = '/';
	path[GSAS_PATH - 1] = '\0';
	CHECK(gsas_fork(path, 1, board_number(0), &pid) < 0);
	GSAS_IS(-ENXIO, gsas_fork(f->forked, 1, 65535, &pid));
	GSAS_IS(-ENOENT, gsas_argument(&argument));
	return 0;
}

static void allowed(void)
{
	struct proc *service;
	struct folder f;

	make_folder(&f);
	service = serve(0, &f);
	proc_expect(proc_start(chooser, &f, board_env(0)), 0);
	CHECK(zombies(service->pid) == 0);
	gsasd_stop(service);
	remove_folder(f.path);
}

/* A service without a folder of programs starts no process. */
static int nothing(int fd, void *arg)
{
	const struct folder *f = arg;

	(void)fd;
	refused(f->forked, -EPERM);
	return 0;
}

static void none_allowed(void)
{
	struct proc *service;
	struct folder f;

	make_folder(&f);
	service = gsasd_start(0, NULL);
	proc_expect(proc_start(nothing, &f, board_env(0)), 0);
	gsasd_stop(service);
	remove_folder(f.path);
}

/* ---- How many ------------------------------------------------------------ */

#define CHILDREN	3

static int crowder(int fd, void *arg)
{
	const struct folder *f = arg;
	gsas_addr page;
	uint64_t pid[CHILDREN], extra = 0;

	(void)fd;
	GSAS(gsas_alloc(1, board_number(0), GSAS_JOB, NULL, &page));
	GSAS(gsas_write64(page + 8 * FORKED_WHAT, FORKED_STAY));
	for (int i = 0; i < CHILDREN; i++)
		GSAS(gsas_fork(f->forked, page, board_number(0), &pid[i]));
	for (int i = 0; i < 2; i++)
		GSAS_IS(-EDQUOT, gsas_fork(f->forked, page, board_number(0),
					   &extra));
	CHECK(extra == 0);
	await((uint64_t *)page, CHILDREN);
	/* one that ends makes room for one */
	CHECK(kill((pid_t)pid[1], SIGKILL) == 0);
	while (lives(pid[1]))
		procs_nap(1000);
	GSAS(gsas_fork(f->forked, page, board_number(0), &pid[1]));
	GSAS_IS(-EDQUOT, gsas_fork(f->forked, page, board_number(0), &extra));
	await((uint64_t *)page, CHILDREN + 1);
	GSAS(gsas_write64(page + 8 * FORKED_WHAT, FORKED_TELL));
	for (int i = 0; i < CHILDREN; i++)
		while (lives(pid[i]))
			procs_nap(1000);
	GSAS(gsas_free(page));
	return 0;
}

static void children(void)
{
	struct proc *service;
	struct folder f;

	make_folder(&f);
	service = gsasd_start(0, (const char *[]){
		"--exec", f.allowed, "--logs", f.path, "--children", "3", NULL,
	});
	proc_expect(proc_start(crowder, &f, board_env(0)), 0);
	gsasd_stop(service);
	remove_folder(f.path);
}

/* ---- Orphans ------------------------------------------------------------- */

/* Run gsasctl; its output, and its exit code. */
static int gsasctl(char *text, size_t len, const char *args)
{
	char program[PATH_MAX], line[PATH_MAX + 200];
	const char *exec = getenv("UNM_EXEC");
	size_t n;
	FILE *f;
	int status;

	build_program("gsasctl", program, sizeof(program));
	NAME(line, "FI_UNIMEM_BOARD=%d %s %s %s --board %d 2>&1",
	     board_number(0), exec != NULL ? exec : "", program, args,
	     board_number(0));
	f = popen(line, "r");
	CHECK(f != NULL);
	n = fread(text, 1, len - 1, f);
	text[n] = '\0';
	status = pclose(f);
	CHECK_MSG(WIFEXITED(status), "gsasctl %s: status %d", args, status);
	return WEXITSTATUS(status);
}

/* Is a region of so many pages in the list? */
static bool listed(const char *args, uint64_t address)
{
	static char text[STATUS_BYTES];
	char number[32];

	CHECK_MSG(gsasctl(text, sizeof(text), args) == 0, "gsasctl %s: %s",
		  args, text);
	snprintf(number, sizeof(number), "%llx", (unsigned long long)address);
	return strstr(text, number) != NULL;
}

/* Has pages, and starts another one that has and is killed. */
static int parent(int fd, int index)
{
	const struct folder *f = g_role_memory;
	uint64_t board = (uint64_t)board_number(0);
	uint64_t *page = allocSharedPage(5, board);

	(void)index;
	CHECK(page != NULL);
	WRITE64(page + FORKED_WHAT, FORKED_DIE);
	CHECK(remoteFork((char *)f->forked, (uint64_t)page, board) != 0);
	await(page, 1);
	procs_send_word(fd, (uint64_t)page);
	procs_send_word(fd, READ64(word(page, 0, FORKED_PAGES)));
	procs_exchange(fd, READ64(word(page, 0, FORKED_PID)));
	return 0;
}

static void *allocate(void *arg)
{
	*(uint64_t **)arg = allocSharedPage(5, (uint64_t)board_number(0));
	return NULL;
}

/* Has pages by a thread that has ended, and does not call again. */
static int keeper(int fd, int index)
{
	uint64_t *page = NULL;
	pthread_t thread;

	(void)index;
	CHECK(pthread_create(&thread, NULL, allocate, &page) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && page != NULL);
	procs_exchange(fd, (uint64_t)page);
	return 0;
}

/* Its pages are no orphans while the process lives. */
static void kept_by_a_process(void)
{
	char text[STATUS_BYTES];
	struct proc *service, *p;
	struct folder f;
	uint64_t page;

	make_folder(&f);
	role_share(sizeof(f));
	service = serve(0, &f);
	role_new_job();
	p = role_start("keeper", 0, board_env(0));
	page = procs_recv_word(p->fd);
	for (int i = 0; i < 20; i++)	/* the thread's end is seen meanwhile */
		CHECK(!listed("pages --orphans", page));
	CHECK_MSG(gsasctl(text, sizeof(text), "reclaim --yes") == 0, "%s",
		  text);
	CHECK(listed("pages", page));
	proc_kill(p);
	while (!listed("pages --orphans", page))
		;
	/* nobody is asked here, and nobody has said yes */
	CHECK(gsasctl(text, sizeof(text), "reclaim </dev/null") != 0);
	CHECK(strstr(text, "--yes") != NULL && listed("pages", page));
	CHECK(gsasctl(text, sizeof(text), "reclaim --yes") == 0);
	CHECK(!listed("pages", page));
	gsasd_stop(service);
	remove_folder(f.path);
}

static void orphans(void)
{
	char text[STATUS_BYTES];
	struct proc *service, *p[2];
	uint64_t own[2], childs[2], pid;
	struct folder f;

	make_folder(&f);
	role_share(sizeof(f));
	memcpy(g_role_memory, &f, sizeof(f));
	service = serve(0, &f);
	for (int i = 0; i < 2; i++) {
		role_new_job();
		p[i] = role_start("parent", i, board_env(0));
		own[i] = procs_recv_word(p[i]->fd);
		childs[i] = procs_recv_word(p[i]->fd);
		CHECK(own[i] != 0 && childs[i] != 0);
		pid = procs_recv_word(p[i]->fd);
		while (lives(pid))
			procs_nap(1000);
	}
	/* the job lives as long as one of its processes */
	CHECK(!listed("pages --orphans", childs[0]));
	CHECK(listed("pages", childs[0]) && listed("pages", own[1]));
	proc_kill(p[0]);
	while (!listed("pages --orphans", own[0]))
		;			/* the service has yet to see it */
	CHECK(listed("pages --orphans", childs[0]));
	CHECK(!listed("pages --orphans", own[1]));
	CHECK_MSG(gsasctl(text, sizeof(text), "reclaim --yes") == 0, "%s",
		  text);
	for (int i = 0; i < 2; i++) {
		CHECK(listed("pages", own[i]) == (i == 1));
		CHECK(listed("pages", childs[i]) == (i == 1));
	}
	proc_finish(p[1]);
	/* one who ends and does not free is no better */
	while (!listed("pages --orphans", own[1]))
		;
	CHECK(gsasctl(text, sizeof(text), "reclaim --yes") == 0);
	CHECK(!listed("pages", own[1]) && !listed("pages", childs[1]));
	gsasd_stop(service);
	remove_folder(f.path);
}

static const struct procs_case cases[] = {
	PROCS_CASE(forks, 60),
	PROCS_CASE(allowed, 60),
	PROCS_CASE(none_allowed, 60),
	PROCS_CASE(children, 60),
	PROCS_CASE(orphans, 60),
	PROCS_CASE(kept_by_a_process, 60),
};

static const struct gsas_role roles[] = {
	{ "parent", parent },
	{ "keeper", keeper },
};

int main(int argc, char **argv)
{
	role_main(argc, argv, roles, 2);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
