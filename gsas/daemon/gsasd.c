/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsasd.c - the program of the atomic service of a board, gsasd(8): options,
 * limits of log lines, the loop of polling (gsas_spin.h) and sleeping, the end.
 * service/gsas_board.h serves the clients, gsas_spawn.h starts programs for
 * them, util/unm_daemon.h goes to the background.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "service/gsas_board.h"
#include "daemon/gsas_each.h"
#include "daemon/gsas_spawn.h"
#include "daemon/gsas_spin.h"
#include "util/unm_clock.h"
#include "util/unm_daemon.h"

#define LINGER_MS	1000		/* default of --linger */
#define LOG_MAX		512		/* bytes of a line of the HAL */
#define REFUSAL_BURST	32		/* lines about refusals at once, */
#define REFUSAL_MS	250		/* then one in that time */
#define REFUSAL_NS	(UINT64_C(1000000) * REFUSAL_MS)
#define REFUSAL_SPARE	4		/* spare tokens that refusals_sleep_ms()
					 * leaves for lines about single
					 * refusals */

static struct options {
	int board;
	bool all;			/* --all */
	int linger_ms;
	bool limited;			/* --pages */
	uint64_t pages, user_pages;
	unsigned children;
	const char *logs;
	unsigned nexec;
	const char *exec[GSAS_SPAWN_DIRS];
} opt = {
	.board = -1, .linger_ms = LINGER_MS,
	.children = GSAS_SPAWN_CHILDREN,
};

static struct gsas_board *volatile g_board;
static volatile sig_atomic_t g_stop;
static char g_last[LOG_MAX];		/* last error that the HAL logged */

/* ---- Log lines ----------------------------------------------------------- */

/*
 * The first refusal of each client for each reason is logged, and a process
 * that connects again is a new client. A token bucket limits the lines, or else
 * any user could fill the log. Only the thread that serves uses it.
 */
static struct {
	uint64_t full;			/* ns: when the bucket is full again */
	uint64_t omitted;		/* refusals without a line so far */
} refusals;

/* Take a token if there is one, and spare further ones. */
static bool refusal_take(unsigned spare)
{
	uint64_t now = unm_now_ns();

	if (refusals.full < now)
		refusals.full = now;
	if (refusals.full - now > (REFUSAL_BURST - 1 - spare) * REFUSAL_NS)
		return false;
	refusals.full += REFUSAL_NS;
	return true;
}

static void log_omitted(void)
{
	char line[80];

	if (refusals.omitted == 0)
		return;
	snprintf(line, sizeof(line), "refused: %" PRIu64 " more, of which "
		 "there are no lines", refusals.omitted);
	refusals.omitted = 0;
	unm_daemon_log(line);
}

static void log_board(const char *line)
{
	static const char refused[] = "refused: ";

	if (strncmp(line, refused, sizeof(refused) - 1) != 0) {
		unm_daemon_log(line);
	} else if (refusal_take(0)) {
		log_omitted();
		unm_daemon_log(line);
	} else {
		refusals.omitted++;
	}
}

static void log_hal(int level, const char *line)
{
	if (level > 0)
		return;
	snprintf(g_last, sizeof(g_last), "%s", line);
	unm_daemon_log(line);
}

/* As sd_notify(3): a datagram to a socket, which may be an abstract one */
static void notify_systemd(void)
{
	static const char ready[] = "READY=1";
	const char *name = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = name != NULL ? strlen(name) : 0;
	int fd;

	if (len < 2 || len >= sizeof(sun.sun_path))
		return;
	memcpy(sun.sun_path, name, len);
	if (name[0] == '@')
		sun.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	len += offsetof(struct sockaddr_un, sun_path);
	if (fd < 0 || sendto(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL,
			     (struct sockaddr *)&sun, (socklen_t)len) < 0)
		unm_daemon_log("cannot notify systemd that this service is "
			       "ready");
	if (fd >= 0)
		close(fd);
}

/* ---- Options ------------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("usage: gsasd [--board N | --all] [options]\n"
	      "The atomic service of a board of the GSAS environment.\n\n"
	      "  --board N        the board (default: this process's own)\n"
	      "  --all            every board of this host, a process each\n"
	      "  --exec DIR       clients may start programs below DIR; may\n"
	      "                   be repeated (default: none)\n"
	      "  --children N     most of these programs that live at a time,\n"
	      "                   for each user (default: 256; 0: no limit)\n"
	      "  --logs DIR       folder for their output (default: .)\n"
	      "  --pages N        most pages of 4096 bytes to allocate\n"
	      "                   (default: half of the memory, together\n"
	      "                   with the other boards of this host)\n"
	      "  --user-pages N   the same for each user (default: no limit)\n"
	      "  --auto           go to the background; end when no client is\n"
	      "                   connected and no page is allocated\n"
	      "  --linger MS      ... for so long (default: 1000)\n"
	      "  --ready-fd N     write a line to descriptor N when ready\n"
	      "  --help, --version\n", out);
}

static uint64_t number(const char *name, const char *text, uint64_t max)
{
	return unm_daemon_number(name, text, 0, max);
}

static void option(int c, const char *name)
{
	switch (c) {
	case 'A':
		opt.all = true;
		break;
	case 'a':
		unm_daemon.background = true;
		break;
	case 'b':
		opt.board = (int)number(name, optarg, UINT16_MAX - 1);
		break;
	case 'c':
		opt.children = (unsigned)number(name, optarg, INT32_MAX);
		break;
	case 'e':
		if (opt.nexec == GSAS_SPAWN_DIRS)
			unm_daemon_fail("--exec: %d directories at most",
					GSAS_SPAWN_DIRS);
		opt.exec[opt.nexec++] = optarg;
		break;
	case 'g':
		opt.logs = optarg;
		break;
	case 'l':
		opt.linger_ms = (int)number(name, optarg, 3600000);
		break;
	case 'p':
		opt.pages = number(name, optarg, UINT64_MAX);
		opt.limited = true;
		break;
	case 'r':
		unm_daemon.ready_fd = (int)number(name, optarg, 1 << 20);
		break;
	case 'u':
		opt.user_pages = number(name, optarg, UINT64_MAX);
		break;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	case 'v':
		printf("gsasd (unimem) %s\n", PACKAGE_VERSION);
		exit(EXIT_SUCCESS);
	default:
		usage(stderr);
		exit(EXIT_FAILURE);
	}
}

static void options(int argc, char *argv[])
{
	static const struct option longs[] = {
		{ "all", no_argument, NULL, 'A' },
		{ "auto", no_argument, NULL, 'a' },
		{ "board", required_argument, NULL, 'b' },
		{ "children", required_argument, NULL, 'c' },
		{ "exec", required_argument, NULL, 'e' },
		{ "logs", required_argument, NULL, 'g' },
		{ "linger", required_argument, NULL, 'l' },
		{ "pages", required_argument, NULL, 'p' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "user-pages", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c, at = 0;

	while ((c = getopt_long(argc, argv, "", longs, &at)) != -1)
		option(c, longs[at].name);
	if (optind < argc)
		unm_daemon_fail("%s: unexpected argument; see gsasd --help",
				argv[optind]);
	if (opt.all && (opt.board >= 0 || unm_daemon.background ||
			unm_daemon.ready_fd >= 0))
		unm_daemon_fail("--all: not with --board, --auto or "
				"--ready-fd");
}

/* GSAS_EXEC_PATH: directories with colons between them */
static void allow_listed(struct gsas_spawner *spawner, const char *list)
{
	char *copy = strdup(list), *save = copy, *dir;

	while (copy != NULL && (dir = strsep(&save, ":")) != NULL)
		if (*dir != '\0' && gsas_spawner_allow(spawner, dir) != 0)
			unm_daemon_fail("GSAS_EXEC_PATH: %s: not a directory, "
					"or the root, or one too many", dir);
	free(copy);
}

static void allow(struct gsas_spawner *spawner, const struct hal *hal)
{
	const char *list = secure_getenv("GSAS_EXEC_PATH");
	unsigned board = (unsigned)opt.board;
	int ret = gsas_spawner_init(spawner, board,
				    board - hal->first_board, opt.logs,
				    unm_daemon_log);

	if (ret != 0)
		unm_daemon_fail("--logs %s: %s",
				opt.logs != NULL ? opt.logs : ".",
				strerror(-ret));
	spawner->max_children = opt.children;
	for (unsigned i = 0; i < opt.nexec; i++) {
		ret = gsas_spawner_allow(spawner, opt.exec[i]);
		if (ret != 0)
			unm_daemon_fail("--exec %s: %s", opt.exec[i],
					ret == -FI_EINVAL ?
					"not the root directory" :
					strerror(-ret));
	}
	if (opt.nexec == 0 && unm_daemon.background && list != NULL)
		allow_listed(spawner, list);
}

/* ---- Serving ------------------------------------------------------------- */

static void on_signal(int sig)
{
	(void)sig;
	g_stop = 1;
	if (g_board != NULL)
		gsas_board_wake(g_board);
}

static void signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal };
	struct sigaction child = {
		.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT,
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGCHLD, &child, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

/* How long to sleep, in ms; -1: until an event; 0: with --auto, the service has
 * been unused for --linger and ends. */
static int sleep_ms(const struct gsas_board *board, uint64_t *empty_since)
{
	uint64_t now, end;

	if (!unm_daemon.background)
		return -1;
	if (!gsas_board_empty(board)) {
		*empty_since = 0;
		return -1;
	}
	now = unm_now_ns();
	if (*empty_since == 0)
		*empty_since = now;
	end = *empty_since + (uint64_t)opt.linger_ms * 1000000;
	return now >= end ? 0 : (int)((end - now) / 1000000) + 1;
}

/* Log the number of refusals without a line, when refusals have become rare: no
 * later refusal may come that would log it. Returns how long to sleep: ms, or
 * less to call this again. */
static int refusals_sleep_ms(int ms)
{
	if (refusals.omitted != 0 && refusal_take(REFUSAL_SPARE))
		log_omitted();
	if (refusals.omitted == 0 || (ms >= 0 && ms < REFUSAL_MS))
		return ms;
	return REFUSAL_MS;
}

static void serve(struct gsas_board *board)
{
	uint64_t empty_since = 0;

	while (!g_stop) {
		int ms;

		if (gsas_spin(board, gsas_board_poll))
			continue;
		ms = sleep_ms(board, &empty_since);
		if (ms == 0)
			return;
		gsas_board_sleep(board, refusals_sleep_ms(ms));
	}
}

static struct gsas_board *open_board(struct gsas_spawner *spawner)
{
	struct gsas_board_attr attr = {
		.board = opt.board, .max_pages = opt.pages,
		.max_user_pages = opt.user_pages, .spawn = gsas_spawner_start,
		.spawn_ctx = spawner, .log = log_board,
	};
	struct gsas_board *board;
	int ret;

	if (!opt.limited) {
		attr.budget = hal_memory_total() / 2;
		attr.max_pages = attr.budget >> GSAS_PAGE_SHIFT;
	}
	ret = gsas_board_open(&attr, &board);

	if (ret == -FI_EBUSY) {
		unm_daemon_notify("busy");
		unm_daemon_fail("board %d has a service already", opt.board);
	}
	if (ret == -FI_EINVAL)
		unm_daemon_fail("board %d: %s", opt.board, *g_last != '\0' ?
				g_last : "there is no such board");
	if (ret != 0)
		unm_daemon_fail("board %d: %s", opt.board, *g_last != '\0' ?
				g_last : strerror(-ret));
	return board;
}

/*
 * Keep other processes of the same user from reading or writing the pages of
 * jobs by /proc/PID/mem or as a debugger, and keep the pages out of core files.
 * Not with the backend "sim": its processes find each other's files in /proc.
 */
static void forbid_debuggers(const struct hal *hal)
{
	if (strcmp(hal->caps.backend, "sim") != 0 &&
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		unm_daemon_fail("cannot be hidden from debuggers: %s",
				strerror(errno));
}

static struct hal *open_hal(void)
{
	struct hal *hal;

	if (hal_get(NULL, &hal) != 0)
		unm_daemon_fail("%s", *g_last != '\0' ? g_last :
				"no Unimem here");
	return hal;
}

/* --all: a process for each board goes on from here. Where boards are not
 * emulated each is a host. */
static void each_board(void)
{
	struct hal *hal = open_hal();
	unsigned first = hal->first_board;
	unsigned boards = hal->caps.boards - hal->far_boards;

	if (!(hal->caps.flags & HAL_CAP_ANY_BOARD)) {
		first = (unsigned)hal->own_board;
		boards = 1;
	}
	hal_put(hal);
	opt.board = (int)gsas_each_board(first, boards, notify_systemd,
					 unm_daemon_log);
}

int main(int argc, char *argv[])
{
	struct gsas_spawner spawner;
	struct gsas_board *board;
	struct hal *hal;
	int spare;

	unm_daemon.name = "gsasd";
	options(argc, argv);
	spare = unm_daemon_descriptors();
	if (spare >= 0)
		close(spare);
	if (unm_daemon.background)
		unm_daemon_fork();
	hal_log_set(log_hal);
	if (opt.all)
		each_board();
	signals();
	hal = open_hal();
	forbid_debuggers(hal);
	if (opt.board < 0)
		opt.board = hal->own_board;
	allow(&spawner, hal);
	board = open_board(&spawner);
	g_board = board;
	unm_daemon_notify("ready");
	if (!unm_daemon.background && !opt.all)	/* a unit of systemd may have
						 * started this process */
		notify_systemd();
	serve(board);
	log_omitted();
	g_board = NULL;			/* on_signal() wakes no board now */
	gsas_board_close(board);
	gsas_spawner_fini(&spawner);
	hal_put(hal);
	return EXIT_SUCCESS;
}
