/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_hosts.c - unimem_info on every host of a job, and its answers joined.
 *
 * Entry point: hosts_show(). A process for each host, ssh unless the user names
 * another command, runs the same program there. All of them run at once. A host
 * has answered when its process ends, whoever else has the pipe open then. One
 * that does not answer in time is given up and named, and delays no other host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unimem_hosts.h"

#define MOST_HOSTS	4096
#define MOST_BYTES	(64u << 20)	/* of an answer */
/* A master process of ssh (ControlMaster) would keep the pipe open after the
 * answer, and unimem_info would wait for its end. */
#define SSH		"ssh -o BatchMode=yes -o ControlMaster=no"

struct host {
	char *name;
	pid_t pid;			/* 0: not started, or ended */
	int pidfd;			/* -1: as pid 0 */
	int fd;				/* its output; -1: ended */
	char *text;			/* the output, ended by a zero byte */
	size_t len, size;
	int status;			/* of waitpid() */
	bool late;			/* ended by us */
};

struct hosts {
	struct host *at;
	size_t count;
};

/* ---- The list -------------------------------------------------------- */

/* False, with a line, for a name that ssh would take for an option. */
static bool add_host(struct hosts *h, const char *name, size_t len)
{
	struct host *at;

	if (len == 0)
		return true;
	if (name[0] == '-' || h->count == MOST_HOSTS) {
		fprintf(stderr, "unimem_info: --all-hosts: %.*s: %s\n",
			(int)len, name, name[0] == '-' ? "no name of a host" :
			"too many hosts");
		return false;
	}
	at = reallocarray(h->at, h->count + 1, sizeof(*at));
	if (at == NULL)
		return false;
	h->at = at;
	at[h->count] = (struct host){
		.name = strndup(name, len), .pidfd = -1, .fd = -1,
	};
	return at[h->count++].name != NULL;
}

/* The first word of each line; "#" begins a comment. */
static bool read_file(struct hosts *h, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	bool good = true;
	size_t size = 0;

	if (f == NULL) {
		fprintf(stderr, "unimem_info: hosts file %s: %s\n", path,
			strerror(errno));
		return false;
	}
	while (good && getline(&line, &size, f) >= 0) {
		const char *word = line + strspn(line, " \t\r\n");

		good = add_host(h, word, strcspn(word, "# \t\r\n"));
	}
	free(line);
	fclose(f);
	return good;
}

static bool read_list(struct hosts *h, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, ", \n");

		if (!add_host(h, text, len))
			return false;
		text += len + (text[len] != '\0');
	}
	return true;
}

static bool find_hosts(struct hosts *h, const struct hosts_conf *conf)
{
	const char *file = getenv("FI_UNIMEM_NET_HOSTS");
	bool good;

	if (conf->hosts != NULL && strchr(conf->hosts, '/') == NULL) {
		good = read_list(h, conf->hosts);
	} else if (conf->hosts != NULL || file != NULL) {
		good = read_file(h, conf->hosts != NULL ? conf->hosts : file);
	} else {
		fprintf(stderr, "unimem_info: --all-hosts: give a list of "
			"hosts, or set FI_UNIMEM_NET_HOSTS\n");
		return false;
	}
	if (good && h->count == 0)
		fprintf(stderr, "unimem_info: the list of hosts is empty\n");
	return good && h->count != 0;
}

/* ---- Processes ------------------------------------------------------- */

/* The command for the shell of the other host: the path of this program, in
 * single quotes, and the options. False: no memory, or a quote in the path. */
static bool remote_command(char **out, const char *options)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0 || memchr(path, '\'', (size_t)n) != NULL) {
		fprintf(stderr, "unimem_info: its own path is not usable\n");
		return false;
	}
	return asprintf(out, "'%.*s' %s", (int)n, path, options) >= 0;
}

/* In the child: becomes the command; never returns. */
static void become(const char *rsh, const char *name, const char *command,
		   int out)
{
	char *script = NULL;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (null >= 0)
		dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	if (asprintf(&script, "exec %s \"$@\"", rsh) >= 0)
		execl("/bin/sh", "sh", "-c", script, "sh", name, command,
		      (char *)NULL);
	_exit(127);
}

static void end(struct host *host)
{
	if (host->pid > 0) {
		/* is late, or has ended and may have left others behind */
		kill(-host->pid, SIGKILL);
		kill(host->pid, SIGKILL);
		waitpid(host->pid, &host->status, 0);
	}
	host->pid = 0;
	if (host->pidfd >= 0)
		close(host->pidfd);
	host->pidfd = -1;
	if (host->fd >= 0)
		close(host->fd);
	host->fd = -1;
}

static bool start(struct host *host, const char *rsh, const char *command)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	host->fd = fds[0];
	host->pid = fork();
	if (host->pid == 0)
		become(rsh, host->name, command, fds[1]);
	err = errno;
	close(fds[1]);
	if (host->pid > 0) {
		host->pidfd = pidfd_open(host->pid, 0);
		if (host->pidfd >= 0 &&
		    fcntl(host->fd, F_SETFL, O_NONBLOCK) == 0)
			return true;
		err = errno;
	}
	end(host);
	errno = err;
	return false;
}

/* Raise the soft limit of descriptors, as far as the hard one allows: each host
 * needs two, and poll(2) refuses more entries than the soft limit. */
static void allow_descriptors(size_t hosts)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max - files.rlim_cur < 2 * hosts ?
		files.rlim_max : files.rlim_cur + 2 * hosts;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

/* Take what has come from a host. Returns whether there may be more now. */
static bool take(struct host *host)
{
	ssize_t n;

	if (host->fd < 0)
		return false;
	if (host->size - host->len < 4096 && host->size < MOST_BYTES) {
		size_t size = host->size == 0 ? 8192 : 2 * host->size;
		char *text = realloc(host->text, size);

		if (text != NULL) {
			host->text = text;
			host->size = size;
		}
	}
	if (host->len + 1 >= host->size) {
		end(host);		/* too long an answer, no memory */
		return false;
	}
	n = read(host->fd, host->text + host->len, host->size - host->len - 1);
	if (n > 0) {
		host->len += (size_t)n;
		host->text[host->len] = '\0';
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	close(host->fd);		/* the process may live on */
	host->fd = -1;
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Fill fds with the output and the process of each host that has not ended, in
 * this order. Returns the number of these hosts. */
static size_t watched(const struct hosts *h, struct pollfd *fds)
{
	size_t live = 0;

	for (size_t i = 0; i < h->count; i++) {
		if (h->at[i].pid == 0)
			continue;
		fds[2 * live].fd = h->at[i].fd;		/* -1 is left out */
		fds[2 * live + 1].fd = h->at[i].pidfd;
		fds[2 * live].events = fds[2 * live + 1].events = POLLIN;
		live++;
	}
	return live;
}

/* fds: as watched() has filled them and poll(2) has returned them. */
static void take_all(struct hosts *h, const struct pollfd *fds)
{
	for (size_t i = 0; i < h->count; i++) {
		if (h->at[i].pid == 0)
			continue;
		if (fds[0].revents != 0)
			take(&h->at[i]);
		if (fds[1].revents != 0) {
			while (take(&h->at[i]))
				;
			end(&h->at[i]);
		}
		fds += 2;
	}
}

/* Collect all answers, for so many seconds. */
static void collect(struct hosts *h, struct pollfd *fds, double limit)
{
	uint64_t until = now_ns() + (uint64_t)(limit * 1e9), now;

	for (;;) {
		size_t live = watched(h, fds);

		now = now_ns();
		if (live == 0 || now >= until)
			break;
		if (poll(fds, 2 * live,
			 (int)((until - now) / 1000000) + 1) >= 0) {
			take_all(h, fds);
		} else if (errno != EINTR) {
			perror("unimem_info: --all-hosts: poll");
			break;
		}
	}
	for (size_t i = 0; i < h->count; i++) {
		h->at[i].late = h->at[i].pid > 0;
		end(&h->at[i]);
	}
}

/* ---- Output ---------------------------------------------------------- */

/* The exit code of unimem_info there; 2 for all that is none. */
static int code_of(const struct host *host)
{
	int code = WIFEXITED(host->status) ? WEXITSTATUS(host->status) : 2;

	return host->late || code > 1 ? 2 : code;
}

/* Why there is no answer, after what the host has said. */
static void why_not(const struct host *host, double limit, char text[80])
{
	if (host->late)
		snprintf(text, 80, "no answer in %g s", limit);
	else if (WIFEXITED(host->status))
		snprintf(text, 80, "failed with exit code %d",
			 WEXITSTATUS(host->status));
	else
		snprintf(text, 80, "ended by signal %d",
			 WTERMSIG(host->status));
}

static void print_lines(const struct host *host, int width, double limit)
{
	const char *line = host->len != 0 ? host->text : "";
	char why[80];

	while (*line != '\0') {
		size_t len = strcspn(line, "\n");

		printf("%-*s  %.*s\n", width, host->name, (int)len, line);
		line += len + (line[len] != '\0');
	}
	if (code_of(host) == 2) {
		why_not(host, limit, why);
		printf("%-*s  %s\n", width, host->name, why);
	}
}

static void json_string(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			putchar('\\');
		putchar(c < 0x20 || c > 0x7e ? '?' : c);
	}
	putchar('"');
}

/* The line of JSON in the answer, or NULL. */
static const char *json_line(const struct host *host)
{
	const char *at = host->len != 0 ? host->text : "";

	while (*at != '\0' && *at != '{') {
		at += strcspn(at, "\n");
		at += *at != '\0';
	}
	return *at == '{' ? at : NULL;
}

static void print_json(const struct host *host, double limit)
{
	const char *line = json_line(host);
	char why[80];

	printf("{\"host\":");
	json_string(host->name);
	if (code_of(host) == 2 || line == NULL) {
		why_not(host, limit, why);
		printf(",\"error\":");
		json_string(why);
	} else {
		printf(",\"answer\":%.*s", (int)strcspn(line, "\n"), line);
	}
	printf("}");
}

static int print_all(const struct hosts *h, const struct hosts_conf *conf)
{
	int width = 0, code = 1;

	for (size_t i = 0; i < h->count; i++)
		if ((int)strlen(h->at[i].name) > width)
			width = (int)strlen(h->at[i].name);
	if (conf->json)
		printf("{\"hosts\":[");
	for (size_t i = 0; i < h->count; i++) {
		int one = code_of(&h->at[i]);

		if (conf->json && i != 0)
			putchar(',');
		if (conf->json)
			print_json(&h->at[i], conf->limit);
		else
			print_lines(&h->at[i], width, conf->limit);
		code = one == 2 || code == 2 ? 2 : one == 0 ? 0 : code;
	}
	if (conf->json)
		printf("]}\n");
	return code;
}

int hosts_show(const struct hosts_conf *conf)
{
	struct pollfd *fds = NULL;
	struct hosts h = { 0 };
	char *command = NULL;
	int code = 2;

	if (!find_hosts(&h, conf) || !remote_command(&command, conf->options))
		goto out;
	fds = calloc(2 * h.count, sizeof(*fds));
	if (fds == NULL)
		goto out;
	allow_descriptors(h.count);
	for (size_t i = 0; i < h.count; i++)
		if (!start(&h.at[i], conf->rsh != NULL ? conf->rsh : SSH,
			   command)) {
			fprintf(stderr, "unimem_info: %s: %s\n", h.at[i].name,
				strerror(errno));
			h.at[i].status = 2 << 8;	/* an exit code of 2 */
		}
	collect(&h, fds, conf->limit);
	code = print_all(&h, conf);
out:
	for (size_t i = 0; i < h.count; i++) {
		free(h.at[i].name);
		free(h.at[i].text);
	}
	free(h.at);
	free(fds);
	free(command);
	return code;
}
