/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_spawn.c - starts a program that a client of the service has named, if it
 * is below a configured directory.
 *
 * The name is resolved once, to a descriptor. The file of the descriptor is
 * checked and started, so no process can replace it in between. A script is
 * started by its name, because its interpreter opens the file again. That is no
 * loss: a user who may write below a configured directory is trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "daemon/gsas_spawn.h"

#define LOG_MODE	0644		/* permissions of log files */
#define OWN_VARS	4		/* variables set here, and the NULL */

extern char **environ;

/* A process that was started. Its pidfd becomes readable when it ends. */
struct gsas_spawn_child {
	int pidfd;			/* -1: none could be opened */
	pid_t pid;
	uint32_t uid;			/* user of the client */
};

/* ---- Configuration ------------------------------------------------------- */

int gsas_spawner_init(struct gsas_spawner *s, unsigned board, unsigned here,
		      const char *logs, void (*log)(const char *line))
{
	*s = (struct gsas_spawner){
		.board = board, .here = here, .log = log,
		.max_children = GSAS_SPAWN_CHILDREN,
	};
	s->logs = open(logs != NULL ? logs : ".",
		       O_PATH | O_DIRECTORY | O_CLOEXEC);
	return s->logs < 0 ? -errno : 0;
}

static void child_release(struct gsas_spawn_child *child)
{
	if (child->pidfd >= 0)
		close(child->pidfd);
}

void gsas_spawner_fini(struct gsas_spawner *s)
{
	while (s->ndirs > 0)
		free(s->dir[--s->ndirs]);
	while (s->nchildren > 0)
		child_release(&s->child[--s->nchildren]);
	free(s->child);
	close(s->logs);
}

int gsas_spawner_allow(struct gsas_spawner *s, const char *dir)
{
	struct stat st;
	char *real;

	if (s->ndirs == GSAS_SPAWN_DIRS)
		return -FI_EINVAL;
	real = realpath(dir, NULL);
	if (real == NULL)
		return -errno;
	if (stat(real, &st) != 0 || !S_ISDIR(st.st_mode)) {
		free(real);
		return -ENOTDIR;
	}
	if (strcmp(real, "/") == 0) {
		free(real);
		return -FI_EINVAL;
	}
	s->dir[s->ndirs++] = real;
	return 0;
}

/* Log a failure, and return the error for the client. */
static enum gsas_error failed(const struct gsas_spawner *s, const char *what,
			      const char *path, int err)
{
	char line[PATH_MAX + 128];

	snprintf(line, sizeof(line), "%s %s: %s", what, path, strerror(err));
	s->log(line);
	return err == EAGAIN || err == ENOMEM || err == EMFILE ||
	       err == ENFILE ? GSAS_E_MEMORY : GSAS_E_EXEC;
}

/* ---- Programs that are allowed ------------------------------------------- */

static bool below(const struct gsas_spawner *s, const char *path)
{
	for (unsigned i = 0; i < s->ndirs; i++) {
		size_t len = strlen(s->dir[i]);

		if (strncmp(path, s->dir[i], len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

static void fd_name(int fd, char *name, size_t max)
{
	snprintf(name, max, "/proc/self/fd/%d", fd);
}

/* Check that the file of a descriptor is a program below one of the
 * directories. real: its path. */
static enum gsas_error check_file(const struct gsas_spawner *s, int fd,
				  char *real, size_t max)
{
	char name[32];
	struct stat st;
	ssize_t len;

	fd_name(fd, name, sizeof(name));
	len = readlink(name, real, max - 1);
	if (len < 0)
		return GSAS_E_PATH;
	real[len] = '\0';
	if (!below(s, real))
		return GSAS_E_EXEC;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    faccessat(AT_FDCWD, name, X_OK, AT_EACCESS) != 0)
		return GSAS_E_EXEC;
	return GSAS_OK;
}

static bool is_script(int fd)
{
	char name[32], magic[2] = "";
	int again;
	bool script;

	fd_name(fd, name, sizeof(name));
	again = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (again < 0)
		return false;
	script = read(again, magic, 2) == 2 && memcmp(magic, "#!", 2) == 0;
	close(again);
	return script;
}

/* ---- Start --------------------------------------------------------------- */

struct start {
	char **env;			/* first entries point to text */
	char text[OWN_VARS][80];	/* variables set here */
	int out, err;			/* log files */
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
};

/* Is the variable set here, or of the process that started the service and of
 * no other: for systemd, or its rank, as launchers give it? */
static bool is_own(const char *var)
{
	static const char *const own[] = {
		"FI_UNIMEM_BOARD=", "GSAS_JOB=", "GSAS_ARGUMENT=",
		"NOTIFY_SOCKET=", "PMI_FD=", "PMI_RANK=", "PMIX_NAMESPACE=",
		"PMIX_RANK=", "SLURM_PROCID=",
	};

	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strncmp(var, own[i], strlen(own[i])) == 0)
			return true;
	return false;
}

static int start_env(struct start *st, unsigned here,
		     const struct gsas_spawn *spawn)
{
	size_t n = 0, used = 0;

	while (environ[n] != NULL)
		n++;
	st->env = calloc(n + OWN_VARS, sizeof(char *));
	if (st->env == NULL)
		return -FI_ENOMEM;
	snprintf(st->text[0], sizeof(st->text[0]), "FI_UNIMEM_BOARD=%u", here);
	snprintf(st->text[1], sizeof(st->text[1]),
		 "GSAS_JOB=%016" PRIx64 "%016" PRIx64, spawn->job[0],
		 spawn->job[1]);
	snprintf(st->text[2], sizeof(st->text[2]), "GSAS_ARGUMENT=%" PRIx64,
		 spawn->argument);
	for (; used < 3; used++)
		st->env[used] = st->text[used];
	for (size_t i = 0; i < n; i++)
		if (!is_own(environ[i]))
			st->env[used++] = environ[i];
	return 0;
}

/* Open the log file of a program, NAME-BOARD-stdout.log or
 * NAME-BOARD-stderr.log, as published. -1, errno. */
static int open_log(const struct gsas_spawner *s, const char *path,
		    const char *which)
{
	const char *name = strrchr(path, '/');
	char file[NAME_MAX + 1];
	struct stat st;
	int fd, len = snprintf(file, sizeof(file), "%s-%u-%s.log",
			       name != NULL ? name + 1 : path, s->board,
			       which);

	if (len < 0 || (size_t)len >= sizeof(file)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* the name may exist and be a FIFO, which would block without a
	 * reader */
	fd = openat(s->logs, file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW |
		    O_CLOEXEC | O_NOCTTY | O_NONBLOCK, LOG_MODE);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    fcntl(fd, F_SETFL, O_APPEND) != 0) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

/* The program gets default signals, a session of its own and descriptors 0 to
 * 2. The system closes all others, because this process opens descriptors with
 * O_CLOEXEC only. */
static int start_attr(struct start *st)
{
	sigset_t all, none;
	int ret;

	sigfillset(&all);
	sigemptyset(&none);
	ret = posix_spawnattr_setflags(&st->attr, POSIX_SPAWN_SETSID |
				       POSIX_SPAWN_SETSIGDEF |
				       POSIX_SPAWN_SETSIGMASK);
	if (ret == 0)
		ret = posix_spawnattr_setsigdefault(&st->attr, &all);
	if (ret == 0)
		ret = posix_spawnattr_setsigmask(&st->attr, &none);
	if (ret == 0)
		ret = posix_spawn_file_actions_addopen(&st->actions, 0,
			"/dev/null", O_RDONLY, 0);
	if (ret == 0)
		ret = posix_spawn_file_actions_adddup2(&st->actions, st->out,
						       1);
	if (ret == 0)
		ret = posix_spawn_file_actions_adddup2(&st->actions, st->err,
						       2);
	return ret;
}

static int run(struct start *st, const char *file, const char *real,
	       uint64_t *pid)
{
	char *const argv[] = { (char *)real, NULL };
	int ret = ENOMEM;
	pid_t child;

	if (posix_spawnattr_init(&st->attr) != 0)
		return ENOMEM;
	if (posix_spawn_file_actions_init(&st->actions) == 0) {
		ret = start_attr(st);
		if (ret == 0)
			ret = posix_spawn(&child, file, &st->actions, &st->attr,
					  argv, st->env);
		posix_spawn_file_actions_destroy(&st->actions);
	}
	posix_spawnattr_destroy(&st->attr);
	if (ret == 0)
		*pid = (uint64_t)child;
	return ret;
}

static enum gsas_error start_program(const struct gsas_spawner *s, int fd,
				     const char *real,
				     const struct gsas_spawn *spawn,
				     uint64_t *pid)
{
	enum gsas_error error = GSAS_E_MEMORY;
	struct start st = { .out = -1, .err = -1 };
	char file[32];
	int ret;

	fd_name(fd, file, sizeof(file));
	st.out = open_log(s, spawn->path, "stdout");
	if (st.out >= 0)
		st.err = open_log(s, spawn->path, "stderr");
	if (st.err < 0) {
		error = failed(s, "no log file for", real, errno);
	} else if (start_env(&st, s->here, spawn) == 0) {
		ret = run(&st, is_script(fd) ? real : file, real, pid);
		error = ret == 0 ? GSAS_OK :
			failed(s, "cannot start", real, ret);
	}
	free(st.env);
	if (st.err >= 0)
		close(st.err);
	if (st.out >= 0)
		close(st.out);
	return error;
}

/* ---- Children ------------------------------------------------------------ */

/* Without a pidfd, another process or thread that gets the number of the child
 * later counts as the child until it ends as well: too many are counted, never
 * too few. */
static bool has_ended(const struct gsas_spawn_child *child)
{
	struct pollfd pfd = { .fd = child->pidfd, .events = POLLIN };

	if (child->pidfd < 0)
		return kill(child->pid, 0) != 0 && errno == ESRCH;
	return poll(&pfd, 1, 0) == 1;
}

/* Make room for one more child of a user: remove children that have ended, and
 * check the user's limit. */
static enum gsas_error child_room(struct gsas_spawner *s, uint32_t uid)
{
	unsigned live = 0, kept = 0;
	char line[96];
	void *more;

	for (unsigned i = 0; i < s->nchildren; i++) {
		if (has_ended(&s->child[i])) {
			child_release(&s->child[i]);
			continue;
		}
		live += s->child[i].uid == uid;
		s->child[kept++] = s->child[i];
	}
	s->nchildren = kept;
	if (s->max_children != 0 && live >= s->max_children) {
		snprintf(line, sizeof(line), "not started: user %u has %u "
			 "programs that clients started", uid, live);
		s->log(line);
		return GSAS_E_QUOTA;
	}
	more = realloc(s->child, (kept + 1) * sizeof(s->child[0]));
	if (more == NULL)
		return GSAS_E_MEMORY;
	s->child = more;
	return GSAS_OK;
}

/* Count a process that was started, unless it has ended already. */
static void child_add(struct gsas_spawner *s, uint32_t uid, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 || errno != ESRCH)
		s->child[s->nchildren++] = (struct gsas_spawn_child){
			.pidfd = pidfd, .pid = pid, .uid = uid,
		};
}

enum gsas_error gsas_spawner_start(void *ctx, const struct gsas_spawn *spawn,
				   uint64_t *pid)
{
	struct gsas_spawner *s = ctx;
	char real[PATH_MAX];
	enum gsas_error error;
	int fd = open(spawn->path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ?
		       failed(s, "cannot open", spawn->path, errno) :
		       GSAS_E_PATH;
	error = check_file(s, fd, real, sizeof(real));
	if (error == GSAS_OK)
		error = child_room(s, spawn->uid);
	if (error == GSAS_OK)
		error = start_program(s, fd, real, spawn, pid);
	if (error == GSAS_OK)
		child_add(s, spawn->uid, (pid_t)*pid);
	close(fd);
	return error;
}
