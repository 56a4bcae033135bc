/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_mailbox_cuse.c - unimem-mailbox-cuse(8): the mailboxes of all nodes as
 * character devices /dev/Unimem/mailboxA, B ... [D 3.2.2].
 *
 * Options, beginning, signals and end; cuse_device.c has the devices. Signals
 * that end the daemon are blocked and come by a signalfd, as an event of its
 * loop.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cuse/cuse_device.h"
#include "hal/hal.h"
#include "unimem/mailbox.h"
#include "util/unm_daemon.h"

#define CUSE		"/dev/cuse"
#define DIR_MAX		32		/* bytes of --name */
#define NODES_MAX	1000		/* a session of libfuse takes one of the
					 * 1024 keys of pthreads */

static struct {
	const char *dir;		/* below /dev */
	struct cuse_devices all;
	struct cuse_source signals;	/* a signalfd */
	bool stop;
	bool serving;			/* threads may run */
	char last[400];			/* line of the HAL before that */
} g_c = { .dir = "Unimem" };

/* The HAL's reason why there is no Unimem ends in the daemon's line. */
static void log_hal(int level, const char *line)
{
	if (level > 0)
		return;
	if (g_c.serving)
		unm_daemon_log(line);
	else
		snprintf(g_c.last, sizeof(g_c.last), "%s", line);
}

/* ---- Options ------------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("usage: unimem-mailbox-cuse [--board N] [options]\n"
	      "The mailboxes of all nodes as character devices.\n\n"
	      "  --board N        the local node (default: the process's)\n"
	      "  --name DIR       the devices are in /dev/DIR (default:\n"
	      "                   Unimem)\n"
	      "  --ready-fd N     write a line to descriptor N when ready\n"
	      "  --help, --version\n", out);
}

/* The library takes the local node from the environment. */
static void set_board(const char *text)
{
	uint64_t board = unm_daemon_number("board", text, 10, UINT16_MAX - 1);
	char number[16];

	snprintf(number, sizeof(number), "%u", (unsigned)board);
	setenv("FI_UNIMEM_BOARD", number, 1);
}

static void set_name(const char *text)
{
	size_t len = strlen(text), good = 0;

	while (isalnum((unsigned char)text[good]) || text[good] == '-' ||
	       text[good] == '_')
		good++;
	if (len == 0 || len > DIR_MAX || good != len)
		unm_daemon_fail("--name %s: give up to %d letters, digits, - "
				"and _", text, DIR_MAX);
	g_c.dir = text;
}

static void option(int c)
{
	switch (c) {
	case 'b':
		set_board(optarg);
		break;
	case 'n':
		set_name(optarg);
		break;
	case 'r':
		unm_daemon.ready_fd =
			(int)unm_daemon_number("ready-fd", optarg, 10, 1 << 20);
		break;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	case 'v':
		printf("unimem-mailbox-cuse (unimem) %s\n", PACKAGE_VERSION);
		exit(EXIT_SUCCESS);
	default:
		usage(stderr);
		exit(EXIT_FAILURE);
	}
}

static void options(int argc, char *argv[])
{
	static const struct option longs[] = {
		{ "board", required_argument, NULL, 'b' },
		{ "name", required_argument, NULL, 'n' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		option(c);
	if (optind < argc)
		unm_daemon_fail("%s: unexpected argument; see "
				"unimem-mailbox-cuse --help", argv[optind]);
}

/* ---- Beginning ----------------------------------------------------------- */

static int open_mailbox(int node)
{
	return mailbox_open(node, O_CLOEXEC | O_NONBLOCK);
}

static void on_signal(struct cuse_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	g_c.stop = true;
}

/* Before any thread is started: all inherit the blocked signals. */
static int signal_fd(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t ends;
	int fd;

	sigaction(SIGPIPE, &ignore, NULL);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		unm_daemon_fail("signalfd: %s", strerror(errno));
	return fd;
}

static void add_device(int node)
{
	int fd = open(CUSE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	char name[CUSE_NAME_MAX];
	int ret;

	if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO))
		unm_daemon_fail(CUSE ": %s; load the kernel's module cuse",
				strerror(errno));
	if (fd < 0)
		unm_daemon_fail(CUSE ": %s", strerror(errno));
	cuse_device_name(name, g_c.dir, node);
	ret = cuse_devices_add(&g_c.all, node, name, fd);
	if (ret != 0)
		unm_daemon_fail("/dev/%s: %s", name, strerror(-ret));
}

static void step(void)
{
	int ret = cuse_devices_step(&g_c.all, -1);

	if (ret < 0)
		unm_daemon_fail("epoll: %s", strerror(-ret));
}

static void begin(int signals)
{
	int own = mailbox_node(), nodes = mailbox_nodes(), ret, fd;

	if (own < 0 || nodes < 0)
		unm_daemon_fail("%s", *g_c.last != '\0' ? g_c.last :
				"no Unimem here");
	if (nodes > NODES_MAX)
		unm_daemon_fail("%d nodes: devices of at most %d nodes can be "
				"made", nodes, NODES_MAX);
	ret = cuse_devices_init(&g_c.all, own, open_mailbox, unm_daemon_log);
	g_c.signals.handle = on_signal;
	if (ret == 0)
		ret = cuse_loop_add(g_c.all.epoll, &g_c.signals, signals,
				    EPOLLIN);
	if (ret != 0)
		unm_daemon_fail("epoll: %s", strerror(-ret));
	fd = open_mailbox(own);
	if (fd < 0)
		unm_daemon_fail("the mailbox of node %d: %s", own,
				strerror(-fd));
	cuse_devices_watch(&g_c.all, fd);
	g_c.serving = true;
	for (int node = 0; node < nodes; node++)
		add_device(node);
}

int main(int argc, char *argv[])
{
	int signals, spare;

	unm_daemon.name = "unimem-mailbox-cuse";
	options(argc, argv);
	spare = unm_daemon_descriptors();
	if (spare >= 0)
		close(spare);
	hal_log_set(log_hal);
	signals = signal_fd();
	begin(signals);
	while (g_c.all.waiting != 0 && !g_c.all.lost && !g_c.stop)
		step();
	if (g_c.all.waiting == 0)
		unm_daemon_notify("ready");
	while (!g_c.all.lost && !g_c.stop)
		step();
	if (g_c.all.lost)
		unm_daemon_notify("a device cannot be made");
	/* a thread that still opens a mailbox is not waited for */
	if (!cuse_devices_fini(&g_c.all))
		_exit(g_c.all.lost ? EXIT_FAILURE : EXIT_SUCCESS);
	close(signals);
	return g_c.all.lost ? EXIT_FAILURE : EXIT_SUCCESS;
}
