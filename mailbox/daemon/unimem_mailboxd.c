/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_mailboxd.c - the program of the mailbox of a node, unimem-mailboxd(8):
 * options, the loop, the end. mbox_client.h serves the local processes,
 * mbox_link.h the other nodes, util/unm_daemon.h goes to the background.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/mbox_name.h"
#include "daemon/mbox_client.h"
#include "util/unm_clock.h"
#include "util/unm_daemon.h"

#define LINGER_MS	1000		/* default of --linger */
#define LOG_MAX		512		/* bytes of a line of the HAL */
#define EVENTS		32		/* events of epoll read at once */
#define TAKEN_NS	UINT64_C(5000000000)	/* for the peers of a daemon
						 * that ended to notice it */
#define TAKEN_STEP_NS	10000000
#define SLEEP_MAX_MS	4		/* longest sleep if what the daemon
					 * waits for may cause no event */

static struct options {
	int board;
	int linger_ms;
} opt = { .board = -1, .linger_ms = LINGER_MS };

/* The daemon; used by its one thread. */
static struct daemon {
	struct hal *hal;
	struct mbox_hal mh;
	struct mbox_clients clients;
	int epoll;
	int listener;
	int spare;			/* descriptor to refuse connections
					 * with, when there is no other */
	bool serving;			/* begin() has returned, which reports
					 * errors of the HAL itself */
} g_d = { .epoll = -1, .listener = -1, .spare = -1 };

static volatile sig_atomic_t g_stop;
static char g_last[LOG_MAX];		/* last error that the HAL logged */

/* ---- Log lines ----------------------------------------------------------- */

static void log_hal(int level, const char *line)
{
	if (level > 0 || g_d.mh.connecting)
		return;
	snprintf(g_last, sizeof(g_last), "%s", line);
	if (g_d.serving)
		unm_daemon_log(line);
}

/* ---- Options ------------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("usage: unimem-mailboxd [--board N] [options]\n"
	      "The mailbox of a node.\n\n"
	      "  --board N        the node (default: this process's own)\n"
	      "  --auto           go to the background; end when no process\n"
	      "                   of any node has this mailbox open\n"
	      "  --linger MS      ... for so long (default: 1000)\n"
	      "  --ready-fd N     write a line to descriptor N when ready\n"
	      "  --help, --version\n", out);
}

static int number(const char *name, const char *text, uint64_t max)
{
	return (int)unm_daemon_number(name, text, 10, max);
}

static void option(int c, const char *name)
{
	switch (c) {
	case 'a':
		unm_daemon.background = true;
		break;
	case 'b':
		opt.board = number(name, optarg, UINT16_MAX - 1);
		break;
	case 'l':
		opt.linger_ms = number(name, optarg, 3600000);
		break;
	case 'r':
		unm_daemon.ready_fd = number(name, optarg, 1 << 20);
		break;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	case 'v':
		printf("unimem-mailboxd (unimem) %s\n", PACKAGE_VERSION);
		exit(EXIT_SUCCESS);
	default:
		usage(stderr);
		exit(EXIT_FAILURE);
	}
}

static void options(int argc, char *argv[])
{
	static const struct option longs[] = {
		{ "auto", no_argument, NULL, 'a' },
		{ "board", required_argument, NULL, 'b' },
		{ "linger", required_argument, NULL, 'l' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c, at = 0;

	while ((c = getopt_long(argc, argv, "", longs, &at)) != -1)
		option(c, longs[at].name);
	if (optind < argc)
		unm_daemon_fail("%s: unexpected argument; see unimem-mailboxd "
				"--help", argv[optind]);
}

/* ---- Beginning ----------------------------------------------------------- */

static void on_signal(int sig)
{
	(void)sig;
	g_stop = 1;
}

/* The signals that end the daemon are blocked, except while it sleeps. */
static void signals(sigset_t *awake)
{
	struct sigaction stop = { .sa_handler = on_signal };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, awake);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

static void add(int fd, void *tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = tag };

	if (epoll_ctl(g_d.epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		unm_daemon_fail("epoll: %s", strerror(errno));
}

/* Take the interface. It may be held by a daemon that serves, or not be free
 * yet after the end of another one. */
static void open_interface(void)
{
	const struct timespec step = { .tv_nsec = TAKEN_STEP_NS };
	uint64_t end = unm_now_ns() + TAKEN_NS;
	int ret, fd;

	while ((ret = mbox_hal_open(&g_d.mh, g_d.hal, opt.board,
				    unm_daemon_log)) == -FI_EADDRINUSE &&
	       unm_now_ns() < end) {
		fd = mbox_name_connect(g_d.hal, opt.board);
		if (fd >= 0 || fd == -EAGAIN) {
			if (fd >= 0)
				close(fd);
			unm_daemon_notify("busy");
			unm_daemon_fail("node %d has a daemon already",
					opt.board);
		}
		nanosleep(&step, NULL);
		*g_last = '\0';
	}
	if (ret == -FI_EADDRINUSE)
		unm_daemon_fail("node %d: another process holds interface %u, "
				"which is the mailbox's", opt.board,
				g_d.hal->caps.ifs_per_board);
	if (ret != 0)
		unm_daemon_fail("node %d: %s", opt.board, *g_last != '\0' ?
				g_last : strerror(-ret));
}

static void begin(void)
{
	if (hal_get(NULL, &g_d.hal) != 0)
		unm_daemon_fail("%s", *g_last != '\0' ? g_last :
				"no Unimem here");
	if (opt.board < 0)
		opt.board = g_d.hal->own_board;
	open_interface();
	g_d.listener = mbox_name_listen(g_d.hal, opt.board);
	if (g_d.listener < 0)
		unm_daemon_fail("node %d: cannot listen for local processes: "
				"%s", opt.board, g_d.listener == -EACCES ?
				"other users have all names of the socket" :
				strerror(-g_d.listener));
	g_d.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g_d.epoll < 0)
		unm_daemon_fail("epoll: %s", strerror(errno));
	add(g_d.listener, &g_d.listener);
	add(hal_if_fd(g_d.mh.hif), &g_d.mh);
	mbox_clients_init(&g_d.clients, &g_d.mh, g_d.epoll, unm_daemon_log);
	if (*g_last != '\0')		/* no error: a warning */
		unm_daemon_log(g_last);
	g_d.serving = true;
}

/* ---- Serving ------------------------------------------------------------- */

/* Without a free descriptor the connection is closed at once, so that it does
 * not end every sleep. */
static void accept_client(void)
{
	int fd = accept4(g_d.listener, NULL, NULL,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		mbox_client_new(&g_d.clients, fd);
		return;
	}
	if (errno != EMFILE && errno != ENFILE)
		return;
	close(g_d.spare);
	fd = accept4(g_d.listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	g_d.spare = open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void handle(const struct epoll_event *ev, int n)
{
	for (int i = 0; i < n; i++) {
		void *tag = ev[i].data.ptr;

		if (tag == &g_d.listener)
			accept_client();
		else if (tag != &g_d.mh)	/* the HAL is always polled */
			mbox_client_event(tag, ev[i].events);
	}
}

/* How long until the daemon ends, as nobody uses it: ms; -1: it does not. */
static int life_ms(void)
{
	if (!unm_daemon.background)
		return -1;
	return mbox_clients_life_ms(&g_d.clients, unm_now_ns(), opt.linger_ms);
}

/* The longest sleep in which no event is missed. Not armed: something came. */
static int sleep_ms(int life, bool armed)
{
	if (!armed || mbox_hal_wants(&g_d.mh))
		return 0;
	if (!mbox_clients_retry(&g_d.clients) &&
	    (g_d.hal->caps.flags & HAL_CAP_EVENT))
		return life;
	return life >= 0 && life < SLEEP_MAX_MS ? life : SLEEP_MAX_MS;
}

static bool poll_once(void)
{
	bool some = mbox_hal_poll(&g_d.mh);

	return mbox_clients_progress(&g_d.clients) || some;
}

/* Sleep until an event comes, and handle it. */
static void sleep_once(int life, const sigset_t *awake)
{
	struct epoll_event ev[EVENTS];
	bool armed;
	int ms, n;

	mbox_hal_sleep(&g_d.mh, true);
	armed = hal_if_arm(g_d.mh.hif) == 0;
	/* a peer that released packets before mbox_hal_sleep() sends no event:
	 * try the sends that wait once more */
	mbox_hal_announce(&g_d.mh);
	ms = mbox_clients_progress(&g_d.clients) ? 0 : sleep_ms(life, armed);
	/* and the engine for other hosts need not wake for what was sent */
	if (armed && g_d.mh.hif->host != NULL && hal_if_arm(g_d.mh.hif) != 0)
		ms = 0;
	n = epoll_pwait(g_d.epoll, ev, EVENTS, ms, awake);
	if (armed)
		hal_if_disarm(g_d.mh.hif);
	mbox_hal_sleep(&g_d.mh, false);
	handle(ev, n);
}

static void serve(const sigset_t *awake)
{
	struct epoll_event ev[EVENTS];
	int life;

	while (!g_stop) {
		if (poll_once()) {
			handle(ev, epoll_pwait(g_d.epoll, ev, EVENTS, 0,
					       awake));
			continue;
		}
		life = life_ms();
		if (life == 0)
			return;
		sleep_once(life, awake);
	}
}

/* New connections are refused from here on; a process that gets no answer to
 * its hello starts another daemon. */
static void end(void)
{
	uint64_t discarded;
	char line[120];

	close(g_d.listener);
	mbox_clients_fini(&g_d.clients);
	mbox_hal_close(&g_d.mh);
	discarded = g_d.mh.discarded + g_d.clients.discarded;
	if (discarded != 0) {
		snprintf(line, sizeof(line), "the daemon ends; it has "
			 "discarded %llu messages that no process has read",
			 (unsigned long long)discarded);
		unm_daemon_log(line);
	}
	hal_put(g_d.hal);
	close(g_d.epoll);
	close(g_d.spare);
}

int main(int argc, char *argv[])
{
	sigset_t awake;

	unm_daemon.name = "unimem-mailboxd";
	options(argc, argv);
	g_d.spare = unm_daemon_descriptors();
	if (unm_daemon.background)
		unm_daemon_fork();
	hal_log_set(log_hal);
	signals(&awake);
	begin();
	/* keep no file system busy */
	if (unm_daemon.background && chdir("/") != 0)
		unm_daemon_log("cannot leave the working directory");
	unm_daemon_notify("ready");
	serve(&awake);
	end();
	return EXIT_SUCCESS;
}
