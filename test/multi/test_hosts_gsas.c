/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_gsas.c - GSAS, libunimem-rdma and the mailbox over two hosts with
 * two boards each: the examples, and the end of services and hosts.
 *
 * Boards 0 and 1 are of host 0, boards 2 and 3 of host 1. Each case has a
 * folder with the hosts file, the key file and the log files of programs. The
 * processes of both hosts are one job, because the library has made a key of
 * the job before the director forked them. lib/hosts.h makes the hosts; their
 * bodies meet by steps in the memory that they share.
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/gsas_processes.h"
#include "lib/hosts.h"

#define HERE		0		/* boards, as host 0 sees them */
#define BESIDE		1
#define THERE		2
#define FAR		3
#define BOARDS		4
#define TEXT		4096		/* bytes of what a program writes */
#define SILENT_MAX	8		/* silent hosts, 10.78.0.10 and on */

static char g_dir[64];			/* folder of the case */
static char g_build[PATH_MAX];		/* top of the build tree */

/* Hosts that do not answer, by which a test takes seconds. */
static long silent_hosts(void)
{
	return procs_number("UNM_TEST_SILENT", 0);
}

/* ---- The folder ---------------------------------------------------------- */

static void path_of(const char *name, char path[128])
{
	CHECK(snprintf(path, 128, "%s/%s", g_dir, name) < 128);
}

static void write_file(const char *name, int mode, const char *text)
{
	char path[128];
	FILE *f;
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	CHECK(fd >= 0);
	f = fdopen(fd, "w");
	CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Director: the folder of the case, with a hosts file that ends in `more`. */
static void make_folder(const char *more)
{
	char text[1024];

	snprintf(g_dir, sizeof(g_dir), "/tmp/test_hosts_gsas.XXXXXX");
	CHECK(mkdtemp(g_dir) != NULL);
	snprintf(text, sizeof(text), "# two hosts\n10.78.0.1 boards=2\n"
		 "10.78.0.2 boards=2\n%s", more);
	write_file("hosts", 0644, text);
	write_file("key", 0600, "00112233445566778899aabbccddeeff"
		   "0123456789abcdef0123456789abcdef\n");
	build_program("", g_build, sizeof(g_build));
}

static void remove_folder(void)
{
	DIR *dir = opendir(g_dir);
	char path[400];
	struct dirent *d;

	CHECK(dir != NULL);
	while ((d = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", g_dir, d->d_name);
		if (d->d_name[0] != '.')
			unlink(path);
	}
	closedir(dir);
	CHECK(rmdir(g_dir) == 0);
}

/* ---- Steps --------------------------------------------------------------- */

enum { SERVED = 1, USED, KILLED, NOTICED, STOPPED, END };

/* This host has done a step of the case. */
static void done(int host, uint64_t step)
{
	atomic_store(&g_shared->word[host], step);
}

static void await(int host, uint64_t step)
{
	while (atomic_load(&g_shared->word[host]) < step)
		procs_nap(1000);
}

/* Run the body on both hosts to its end. */
static void together(hosts_body body)
{
	struct proc *p[2];

	hosts_start(p, 2, body);
	/* the first that fails, as the other one may wait for it */
	for (int i = 0; !p[0]->ended || !p[1]->ended; i = !i)
		if (!p[i]->ended && proc_ended(p[i], 20))
			CHECK_MSG(p[i]->status == 0, "host %d failed", i);
	remove_folder();
}

/* ---- Programs ------------------------------------------------------------ */

/* A child: the environment of its host. No program is started by need. */
static void settle(void)
{
	char path[128];

	path_of("hosts", path);
	setenv("FI_UNIMEM_NET_HOSTS", path, 1);
	path_of("key", path);
	setenv("FI_UNIMEM_NET_KEY", path, 1);
	setenv("GSASD", "/dev/null", 1);
	setenv("UNIMEM_MAILBOXD", "/dev/null", 1);
	unsetenv("FI_UNIMEM_BOARD");
	CHECK(chdir(g_dir) == 0);
}

/* Run a command of sh(1), in which %s is the top of the build tree, and store
 * what it writes. Returns its exit code. */
static int run(char text[TEXT], const char *command)
{
	char line[2 * PATH_MAX];
	size_t n;
	int status;
	FILE *f;

	CHECK(snprintf(line, sizeof(line), "exec 2>&1; %s/%s", g_build,
		       command) < (int)sizeof(line));
	f = popen(line, "re");
	CHECK(f != NULL);
	n = fread(text, 1, TEXT - 1, f);
	text[n] = '\0';
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The command succeeds, and writes this. */
static void writes(const char *command, const char *expected)
{
	char text[TEXT];
	int ret = run(text, command);

	CHECK_MSG(ret == 0 && strcmp(text, expected) == 0,
		  "%s: exit code %d: %s", command, ret, text);
}

/* Start a program of the build tree as a child that dies with this process. Its
 * output is read from *out; NULL: it is this process's. */
static pid_t start(const char *const argv[], int *out)
{
	char path[PATH_MAX + 64];
	int fds[2] = { -1, -1 };
	pid_t pid;

	CHECK(out == NULL || pipe2(fds, O_CLOEXEC) == 0);
	snprintf(path, sizeof(path), "%s/%s", g_build, argv[0]);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (out != NULL)
			dup2(fds[1], STDOUT_FILENO);
		execv(path, (char *const *)argv);
		FAIL("%s: %s", path, strerror(errno));
	}
	if (out != NULL) {
		close(fds[1]);
		*out = fds[0];
	}
	return pid;
}

static void expect_end(pid_t pid, int code)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == code,
		  "status %#x", status);
}

static void stop(pid_t pid)
{
	kill(pid, SIGTERM);
	expect_end(pid, 0);
}

/* ---- Services ------------------------------------------------------------ */

/* The services of both boards of this host. */
static pid_t serve_all(void)
{
	char exec[PATH_MAX + 32];
	const char *argv[] = { "gsasd", "--all", "--exec", exec, NULL };

	snprintf(exec, sizeof(exec), "%s/gsas/examples", g_build);
	return start(argv, NULL);
}

/* Start the service or the daemon of a board, and wait until it serves. */
static pid_t start_ready(const char *program, const char *board)
{
	const char *argv[] = { program, "--board", board, "--ready-fd", "1",
			       NULL };
	char line[8] = "";
	pid_t pid;
	int fd;

	pid = start(argv, &fd);
	CHECK_MSG(read(fd, line, sizeof(line)) > 0 &&
		  strncmp(line, "ready", 5) == 0, "%s: %.7s", program, line);
	close(fd);
	return pid;
}

static pid_t serve(int board)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", board);
	return start_ready("gsasd", number);
}

/* Wait until so many boards have services. */
static void await_boards(int n)
{
	char text[TEXT], last[64];

	snprintf(last, sizeof(last), "\n%d of %d boards have a service\n", n,
		 BOARDS);
	for (;;) {
		run(text, "gsasctl boards");
		if (strstr(text, last) != NULL)
			return;
		procs_nap(50000);
	}
}

/* ---- Examples of GSAS ---------------------------------------------------- */

static void show_boards(void)
{
	char text[TEXT];

	CHECK(run(text, "gsasctl boards") == 0);
	CHECK_MSG(strstr(text, "  HOST\n") != NULL &&
		  strstr(text, "  10.78.0.1\n") != NULL &&
		  strstr(text, "\n    3 ") != NULL &&
		  strstr(text, "  10.78.0.2\n4 of 4 boards have a service\n") !=
		  NULL, "gsasctl boards: %s", text);
}

/* The logs of what was started are where it ran: host 1's boards too. */
static void check_logs(void)
{
	char path[128], name[32];

	for (int b = 0; b < BOARDS; b++) {
		snprintf(name, sizeof(name), "%stree-%d-stdout.log",
			 "lt-", b);
		path_of(name, path);
		if (access(path, R_OK) == 0)
			continue;
		path_of(name + 3, path);
		CHECK_MSG(access(path, R_OK) == 0, "no log of board %d", b);
	}
}

static void examples_of_gsas(void)
{
	writes("gsas/examples/counter 4 20",
	       "board 0: 80 of 80\nboard 1: 80 of 80\n"
	       "board 2: 80 of 80\nboard 3: 80 of 80\n");
	writes("gsas/examples/list 4 10", "40 of 40 nodes found, 0 wrong\n");
	writes("gsas/examples/tree 2",
	       "process 0: board 0\nprocess 1: board 1\n"
	       "process 2: board 2\nprocess 3: board 3\n"
	       "process 4: board 0\nprocess 5: board 1\n"
	       "process 6: board 2\n");
	check_logs();
	writes("gsas/examples/halo 4 20 10",
	       "4 members, 80 cells, 10 steps: 0 wrong\n");
}

/* ---- libunimem-rdma ------------------------------------------------------ */

/* Host 0: the policies of the allocator. This process has pointers to memory of
 * its own host. */
static void place(void)
{
	writes("rdma/examples/place 0 8",
	       "local: node 0\nnearest: node 0\ninterleaved: 1 1 1 1\n"
	       "given node 0: byte 8 found, by a pointer\n"
	       "given node 1: byte 16 found, by a pointer\n"
	       "given node 2: byte 24 found, by its ID\n"
	       "given node 3: byte 32 found, by its ID\n"
	       "node 0 still has memory\n");
}

/* Host 0: data to all four boards and back. The process that host 1 starts
 * writes into a buffer of host 0. */
static void exchange(void)
{
	const char *argv[] = { "rdma/examples/exchange", "0", "wait", NULL };
	char line[BOARDS][64], id[32], hello[16];
	pid_t program;
	FILE *f;
	int out;

	program = start(argv, &out);
	f = fdopen(out, "re");
	CHECK(f != NULL);
	for (int b = 0; b < BOARDS; b++) {
		snprintf(line[0], sizeof(line[0]),
			 "node %d: 1048576 bytes there and back\n", b);
		CHECK(fgets(line[1], sizeof(line[1]), f) != NULL);
		CHECK_MSG(strcmp(line[0], line[1]) == 0, "%s", line[1]);
	}
	CHECK(fscanf(f, "exchange --peer NODE %31s", id) == 1 &&
	      fgetc(f) == '\n');
	snprintf((char *)g_shared->bytes, sizeof(g_shared->bytes),
		 "rdma/examples/exchange --peer %d %s", FAR, id);
	done(0, USED);
	CHECK(fgets(hello, sizeof(hello), f) != NULL);
	CHECK_MSG(strcmp(hello, "hello\n") == 0, "%s", hello);
	fclose(f);
	expect_end(program, 0);
}

static int examples(int fd, int host)
{
	pid_t services;

	(void)fd;
	settle();
	if (host == 1)			/* the board of the second process */
		setenv("FI_UNIMEM_BOARD", "1", 1);
	services = serve_all();
	if (host == 0) {
		await_boards(BOARDS);
		show_boards();
		examples_of_gsas();
		place();
		exchange();
	} else {
		await(0, USED);
		writes((char *)g_shared->bytes, "");
	}
	done(host, END);
	await(!host, END);
	stop(services);
	return 0;
}

static void examples_gsas_rdma(void)
{
	make_folder("");
	together(examples);
}

/* ---- Calls --------------------------------------------------------------- */

/* Memory of a board of the other host is reached by packets, also if it can be
 * mapped there. */
static void words_and_bytes(gsas_addr there)
{
	static uint8_t out[100000], in[100000];
	uint64_t was;
	int64_t sum;
	size_t bytes;
	void *ptr;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 13 + (i >> 8));
	GSAS(gsas_put(there + 5, out, sizeof(out)));
	GSAS(gsas_get(in, there + 5, sizeof(in)));
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	GSAS(gsas_write64(there, 40));
	for (int64_t i = 0; i < 10; i++) {
		GSAS(gsas_fad64(there, 1, &sum));
		CHECK(sum == 40 + i);
	}
	CHECK(gsas_cas64(there, 50, 60, &was) == 1 && was == 50);
	GSAS_IS(-EOPNOTSUPP, gsas_map(there, &ptr, &bytes));
}

static void queue_there(void)
{
	struct gsas_queue_handle *q;
	gsas_addr addr;
	uint64_t word;

	GSAS(gsas_queue_create(100, 8, THERE, GSAS_JOB, NULL, &addr));
	GSAS(gsas_queue_open(addr, &q));
	for (uint64_t i = 0; i < 150; i++) {
		GSAS(gsas_enqueue(q, i));
		GSAS(gsas_dequeue_wait(q, &word, -1));
		CHECK(word == i);
	}
	gsas_queue_close(q);
	GSAS(gsas_free(addr));
}

static void here_is_mapped(void)
{
	gsas_addr here;
	size_t bytes;
	void *ptr;

	GSAS(gsas_alloc(1, HERE, GSAS_JOB | GSAS_MAPPED, NULL, &here));
	GSAS(gsas_map(here, &ptr, &bytes));
	GSAS(gsas_write64(here, 3));
	CHECK(*(volatile uint64_t *)ptr == 3);
	GSAS(gsas_unmap(ptr));
	GSAS(gsas_free(here));
}

static void client(void)
{
	gsas_addr there, far, page;
	uint64_t word;
	int ret;

	CHECK(gsas_boards() == BOARDS && gsas_board() == HERE);
	here_is_mapped();
	GSAS(gsas_alloc(30, THERE, GSAS_JOB | GSAS_MAPPED, NULL, &there));
	words_and_bytes(there);
	GSAS(gsas_alloc(30, FAR, GSAS_JOB, NULL, &far));
	words_and_bytes(far);
	queue_there();
	done(0, USED);
	await(1, KILLED);		/* the service of board 2 */
	while ((ret = gsas_read64(there, &word)) == 0)
		;
	CHECK_MSG(ret == -ECONNRESET, "%d", ret);
	/* from here no other one is started there */
	GSAS_IS(-ECONNREFUSED, gsas_read64(there, &word));
	GSAS_IS(-ECONNREFUSED, gsas_alloc(1, THERE, GSAS_JOB, NULL, &page));
	GSAS(gsas_write64(far, 1));
	done(0, NOTICED);
	if (silent_hosts() == 0)
		return;
	await(1, STOPPED);		/* the service of board 3 */
	GSAS_IS(-ETIMEDOUT, gsas_read64(far, &word));
	here_is_mapped();
}

static int calls(int fd, int host)
{
	pid_t low, high;
	int status;

	(void)fd;
	settle();
	if (silent_hosts() != 0)	/* a busy machine answers in time */
		setenv("GSAS_TIMEOUT", "5000", 1);
	low = serve(host == 0 ? HERE : THERE);
	high = serve(host == 0 ? BESIDE : FAR);
	done(host, SERVED);
	await(!host, SERVED);
	if (host == 0) {
		client();
		done(0, END);
		stop(low);
		stop(high);
		return 0;
	}
	await(0, USED);
	kill(low, SIGKILL);
	CHECK(waitpid(low, &status, 0) == low);
	done(1, KILLED);
	await(0, NOTICED);
	if (silent_hosts() != 0) {
		kill(high, SIGSTOP);
		CHECK(waitpid(high, &status, WUNTRACED) == high);
		done(1, STOPPED);
	}
	await(0, END);
	kill(high, SIGKILL);
	CHECK(waitpid(high, &status, 0) == high);
	return 0;
}

static void gsas_calls(void)
{
	make_folder("");
	together(calls);
}

/* ---- Clients that compute ------------------------------------------------ */

#define IDLE	5			/* clients */

static _Atomic int g_idle;		/* those that have their answers */

/* A client that has its answers, and calls nothing until the service has
 * ended. */
static void *idle_client(void *arg)
{
	gsas_addr addr;
	uint64_t word;

	GSAS(gsas_alloc(1, HERE, GSAS_JOB, NULL, &addr));
	GSAS(gsas_write64(addr, 77));
	GSAS(gsas_read64(addr, &word));
	atomic_fetch_add(&g_idle, 1);
	await(0, STOPPED);
	CHECK(gsas_read64(addr, &word) != 0);
	return arg;
}

/* The clients are on host 1. The service of host 0 waits for all of them
 * together, at most FI_UNIMEM_NET_DEAD_MS. */
static int idle(int fd, int host)
{
	pthread_t thread[IDLE];
	uint64_t begin;
	pid_t service;

	(void)fd;
	settle();
	setenv("FI_UNIMEM_NET_DEAD_MS", "5000", 1);
	if (host == 1) {
		await(0, SERVED);
		for (int i = 0; i < IDLE; i++)
			CHECK(pthread_create(&thread[i], NULL, idle_client,
					     NULL) == 0);
		while (atomic_load(&g_idle) < IDLE)
			usleep(1000);
		done(1, USED);
		for (int i = 0; i < IDLE; i++)
			CHECK(pthread_join(thread[i], NULL) == 0);
		return 0;
	}
	service = serve(HERE);
	done(0, SERVED);
	await(1, USED);
	begin = procs_now();
	stop(service);
	CHECK(procs_now() - begin < 15 * PROCS_SECOND);
	done(0, STOPPED);
	return 0;
}

static void gsas_idle(void)
{
	make_folder("");
	together(idle);
}

/* ---- Users --------------------------------------------------------------- */

/* Host 1: the process gets another user number. It keeps the key that it has
 * loaded as the first user. */
static void as_other_user(void)
{
	CHECK(setresgid(65534, 65534, 65534) == 0 &&
	      setresuid(65534, 65534, 65534) == 0);
}

/* A thread of that process. Its interface is opened by its first call, so this
 * interface belongs to the other user. */
static void *calls_of_other_user(void *arg)
{
	gsas_addr addr;
	uint64_t word;

	GSAS_IS(-EACCES, gsas_read64(atomic_load(&g_shared->word[2]), &word));
	/* nor does the service know it as a user of its own */
	GSAS_IS(-EACCES, gsas_alloc(1, HERE, GSAS_JOB, NULL, &addr));
	return arg;
}

/* The key stands for one user, who has the same number on all hosts: a process
 * that knows the key, but has another user number, may access nothing. */
static int users(int fd, int host)
{
	gsas_addr addr;
	pthread_t thread;
	uint64_t word;
	pid_t service;

	(void)fd;
	settle();
	if (host == 1) {
		await(0, USED);
		/* loads the key file and the modules for other hosts, which the
		 * other user may not be able to read */
		GSAS(gsas_read64(atomic_load(&g_shared->word[2]), &word));
		as_other_user();
		CHECK(pthread_create(&thread, NULL, calls_of_other_user,
				     NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		done(1, END);
		return 0;
	}
	service = serve(HERE);
	GSAS(gsas_alloc(1, HERE, GSAS_JOB, NULL, &addr));
	GSAS(gsas_write64(addr, 77));
	atomic_store(&g_shared->word[2], addr);
	done(0, USED);
	await(1, END);
	stop(service);
	return 0;
}

static void gsas_users(void)
{
	make_folder("");
	CHECK(chmod(g_dir, 0755) == 0);
	together(users);
}

/* ---- Teams --------------------------------------------------------------- */

#define TEAM_MS		60000

/* Members 0 and 2 are on host 0, members 1 and 3 on host 1. */
static int member(int fd, int host)
{
	int self = proc_index();
	struct gsas_team *team;
	pid_t service = 0;

	settle();
	if (self < 2)
		service = serve(host == 0 ? HERE : THERE);
	procs_exchange(fd, 0);
	GSAS(gsas_team_open("hosts", THERE, self, 4, TEAM_MS, &team));
	if (self == 1)
		procs_nap(500000);	/* members check each other meanwhile */
	GSAS(gsas_team_barrier(team, TEAM_MS));
	procs_exchange(fd, 0);
	if (self == 3)
		pause();
	/* member 1 finds that member 3 has ended, and all learn of it */
	GSAS_IS(-ECONNRESET, gsas_team_barrier(team, TEAM_MS));
	procs_exchange(fd, 0);
	if (service != 0)
		stop(service);
	return 0;
}

static void gsas_teams(void)
{
	struct proc *p[4];

	make_folder("");
	hosts_start(p, 4, member);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			if (round < 2 || i != 3)
				procs_recv_word(p[i]->fd);
		if (round == 1)
			proc_kill(p[3]);
		for (int i = 0; i < 4; i++)
			if (round < 1 || i != 3)
				procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 3; i++)
		proc_expect(p[i], 0);
	remove_folder();
}

/* ---- Hosts that do not answer -------------------------------------------- */

static int ask_silent(int fd, int host)
{
	long silent = silent_hosts();
	char text[TEXT], last[64];
	gsas_addr addr;
	uint64_t took;

	(void)fd;
	if (host != 0) {
		await(0, END);
		return 0;
	}
	settle();
	CHECK(hosts_run("ip route add unreachable 10.78.0.9"));
	/* nobody has this Ethernet address */
	for (long i = 0; i < silent; i++)
		CHECK(hosts_run("ip neigh replace 10.78.0.%ld lladdr "
				"02:00:00:00:00:99 dev net0 nud permanent",
				10 + i));
	took = procs_now();
	CHECK(run(text, "gsasctl boards") == 1);
	took = procs_now() - took;
	CHECK_MSG(strstr(text, "board 4 on 10.78.0.9: No route to host\n") !=
		  NULL, "%s", text);
	snprintf(last, sizeof(last), "0 of %ld boards have a service\n",
		 BOARDS + 1 + 2 * silent);
	CHECK_MSG(strstr(text, last) != NULL, "%s", text);
	procs_note("gsasctl boards took %llu ms",
		   (unsigned long long)took / 1000);
	/* one board after the other, each takes FI_UNIMEM_NET_DIAL_MS */
	CHECK(silent < 4 || took < (uint64_t)silent * 10 * PROCS_SECOND);
	GSAS_IS(-EHOSTUNREACH, gsas_alloc(1, BOARDS, GSAS_JOB, NULL, &addr));
	done(0, END);
	return 0;
}

static void gsas_silent(void)
{
	long silent = silent_hosts();
	char more[512] = "10.78.0.9 boards=1\n";

	CHECK(silent <= SILENT_MAX);
	if (silent == 0)
		procs_note("one host without a route; hosts that do not answer "
			   "take seconds: set UNM_TEST_SILENT");
	for (long i = 0; i < silent; i++)
		snprintf(more + strlen(more), sizeof(more) - strlen(more),
			 "10.78.0.%ld boards=2\n", 10 + i);
	make_folder(more);
	together(ask_silent);
}

/* ---- The mailbox --------------------------------------------------------- */

static int messages(int fd, int host)
{
	char number[16], text[TEXT];
	pid_t daemon;

	(void)fd;
	settle();
	setenv("FI_UNIMEM_BOARD", "1", 1);	/* of its host */
	snprintf(number, sizeof(number), "%d", host == 0 ? BESIDE : FAR);
	daemon = start_ready("unimem-mailboxd", number);
	done(host, SERVED);
	await(!host, SERVED);
	if (host == 0) {
		CHECK(run(text, "mailbox/examples/ping 3 50") == 0);
		CHECK_MSG(strstr(text, "50 of 50 messages came back\n") != NULL,
			  "%s", text);
		/* no daemon on board 2, and none is started there */
		CHECK(run(text, "mailbox/examples/ping 2 1") == 1);
		CHECK_MSG(strstr(text, "start unimem-mailboxd there") != NULL,
			  "%s", text);
	} else {
		writes("mailbox/examples/ping listen 50", "");
	}
	done(host, END);
	await(!host, END);
	stop(daemon);
	return 0;
}

static void mailbox_ping(void)
{
	make_folder("");
	together(messages);
}

PROCS_MAIN(
	PROCS_CASE(examples_gsas_rdma, 300),
	PROCS_CASE(gsas_calls, 120),
	PROCS_CASE(gsas_idle, 120),
	PROCS_CASE(gsas_users, 120),
	PROCS_CASE(gsas_teams, 120),
	PROCS_CASE(gsas_silent, 120),
	PROCS_CASE(mailbox_ping, 120),
)
