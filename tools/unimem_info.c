/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_info.c - what the unimem jobs of this user are doing now.
 *
 * Every interface keeps a memfd open whose first page says who it is and what
 * its endpoint counted. We find it by the links in /proc/PID/fd and read it
 * there: the process need not answer, so this works on jobs that hang. The page
 * is read, never mapped, as its owner may be hostile.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hal/hal.h"
#include "unimem_hosts.h"
#include "unimem_memory.h"
#include "unimem_selftest.h"
#include "unimem_topology.h"
#include "core/unm_stats.h"

#define COUNTERS \
	((sizeof(struct unm_stats) - offsetof(struct unm_stats, tx_msgs)) / 8)

_Static_assert(UNM_STATS_OFFSET >= sizeof(struct hal_page_head),
	       "the head and the counters overlap");
_Static_assert(UNM_STATS_OFFSET + sizeof(struct unm_stats) <= HAL_PAGE_BYTES,
	       "the counters do not fit the page");

static const struct {
	const char *name;
	const char *help;
} counter_text[] = {
#define TEXT(name, help)	{ #name, help },
	UNM_STATS_COUNTERS(TEXT)
#undef TEXT
};
_Static_assert(sizeof(counter_text) / sizeof(counter_text[0]) == COUNTERS,
	       "a counter without text");

/* One interface: a copy of its page, and where we found it. */
struct iface {
	dev_t dev;
	ino_t ino;
	pid_t pid;		/* as we see it */
	bool owned;		/* pid is the process that opened it */
	char state;		/* of the process: R, S, D, T ... */
	char command[16];
	union {
		struct hal_page_head head;
		uint8_t bytes[HAL_PAGE_BYTES];
	} page;
	struct unm_stats stats;
	uint32_t counters;	/* valid ones in stats, 0: no endpoint */
};

struct list {
	struct iface *at;
	size_t count, size;
	unsigned hidden;	/* processes of ours we may not look into */
};

static struct {
	bool json;
	bool verbose;
	bool all;
	double wait;		/* seconds, 0: once */
	enum { SELFTEST_NO, SELFTEST_WALK, SELFTEST_WAIT } selftest;
	bool memory;
	int board;		/* of memory, -1: all */
	const char *topology;	/* file; NULL: not asked for */
	bool all_hosts;
	struct hosts_conf hosts;
} opt = { .hosts.limit = 10 };

/* ---- Reading --------------------------------------------------------- */

/* Read a small file of /proc as a string; its length or -1. */
static ssize_t read_proc(int dir, const char *name, char *buf, size_t size)
{
	ssize_t n;
	int fd;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/* The process's name and state, and whether it is the page's owner. */
static void read_process(int dir, struct iface *it)
{
	char buf[4096];
	const char *p;
	long pid = -1;

	it->state = '?';
	strncpy(it->command, "?", sizeof(it->command));
	if (read_proc(dir, "comm", buf, sizeof(buf)) > 0)
		snprintf(it->command, sizeof(it->command), "%.*s",
			 (int)strcspn(buf, "\n"), buf);
	if (read_proc(dir, "status", buf, sizeof(buf)) <= 0)
		return;
	p = strstr(buf, "\nState:");
	if (p != NULL)
		it->state = p[strspn(p + 7, " \t") + 7];
	/* the last of these numbers is the pid in the innermost namespace */
	p = strstr(buf, "\nNSpid:");
	for (p = p != NULL ? p + 7 : ""; *p == ' ' || *p == '\t'; ) {
		char *end;

		pid = strtol(p, &end, 10);
		p = end;
	}
	it->owned = pid == (long)it->page.head.pid;
}

/* Text of a foreign page, printable and ended. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

/* Read the page behind dir/fd/name; false: it is none that we know. */
static bool read_page(int fds, const char *name, struct iface *it)
{
	struct hal_page_head *head = &it->page.head;
	struct stat st;
	ssize_t n = 0;
	int fd;

	fd = openat(fds, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= HAL_PAGE_BYTES)
		n = pread(fd, it->page.bytes, HAL_PAGE_BYTES, 0);
	close(fd);
	if (n != HAL_PAGE_BYTES)
		return false;
	if (atomic_load_explicit(&head->magic, memory_order_relaxed) !=
	    HAL_PAGE_MAGIC)
		return false;
	it->dev = st.st_dev;
	it->ino = st.st_ino;
	clean(head->backend, sizeof(head->backend));
	clean(head->profile, sizeof(head->profile));
	memcpy(&it->stats, it->page.bytes + UNM_STATS_OFFSET,
	       sizeof(it->stats));
	if (head->version == HAL_ADDR_VERSION &&
	    it->stats.version == UNM_STATS_VERSION)
		it->counters = it->stats.count < COUNTERS ?
			       it->stats.count : COUNTERS;
	return true;
}

/* Forked children hold the same page: keep it once, with its owner. */
static void list_add(struct list *list, const struct iface *it)
{
	for (size_t i = 0; i < list->count; i++) {
		struct iface *old = &list->at[i];

		if (old->dev == it->dev && old->ino == it->ino) {
			if (!old->owned)
				*old = *it;
			return;
		}
	}
	if (list->count == list->size) {
		size_t size = list->size ? 2 * list->size : 16;
		struct iface *at = reallocarray(list->at, size, sizeof(*at));

		if (at == NULL) {
			fprintf(stderr, "unimem_info: out of memory\n");
			exit(2);
		}
		list->at = at;
		list->size = size;
	}
	list->at[list->count++] = *it;
}

static void scan_process(struct list *list, int proc, const char *pid)
{
	static const char want[] = "/memfd:" HAL_PAGE_NAME;
	struct dirent *entry;
	struct stat st;
	DIR *fds = NULL;
	int dir, fd;

	dir = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	if (fstat(dir, &st) != 0 || (!opt.all && st.st_uid != geteuid()))
		goto close_dir;
	fd = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds = fd < 0 ? NULL : fdopendir(fd);
	if (fds == NULL) {
		list->hidden += errno == EACCES || errno == EPERM;
		if (fd >= 0)
			close(fd);
		goto close_dir;
	}
	while ((entry = readdir(fds)) != NULL) {
		struct iface it = { .pid = (pid_t)strtol(pid, NULL, 10) };
		char link[sizeof(want)];
		ssize_t n;

		n = readlinkat(fd, entry->d_name, link, sizeof(link) - 1);
		if (n != sizeof(want) - 1 || memcmp(link, want, n) != 0)
			continue;
		if (!read_page(fd, entry->d_name, &it))
			continue;
		read_process(dir, &it);
		list_add(list, &it);
	}
	closedir(fds);
close_dir:
	close(dir);
}

static int by_place(const void *left, const void *right)
{
	const struct iface *a = left, *b = right;

	if (a->page.head.board != b->page.head.board)
		return a->page.head.board < b->page.head.board ? -1 : 1;
	if (a->page.head.iface != b->page.head.iface)
		return a->page.head.iface < b->page.head.iface ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Every interface of this user, by board and number. 0 or an errno. */
static int scan(struct list *list)
{
	struct dirent *entry;
	DIR *proc;

	list->count = 0;
	list->hidden = 0;
	proc = opendir("/proc");
	if (proc == NULL)
		return errno;
	while ((entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			scan_process(list, dirfd(proc), entry->d_name);
	closedir(proc);
	qsort(list->at, list->count, sizeof(*list->at), by_place);
	return 0;
}

/* ---- Printing -------------------------------------------------------- */

static uint64_t counter(const struct iface *it, uint32_t i)
{
	uint64_t val;

	memcpy(&val, (const char *)&it->stats +
	       offsetof(struct unm_stats, tx_msgs) + 8 * i, 8);
	return val;
}

/* "-" where the endpoint's counters are not there. */
static const char *cell(char buf[32], const struct iface *it, uint64_t val)
{
	static const char unit[] = " KMGTPE";
	int u = 0;

	if (it->counters < COUNTERS)
		return "-";
	for (; val > 999999; val /= 1000)
		u++;
	snprintf(buf, 32, u ? "%" PRIu64 "%c" : "%" PRIu64, val, unit[u]);
	return buf;
}

static const char *age(char buf[32], const struct iface *it, uint64_t us)
{
	if (it->counters < COUNTERS || us == 0)
		return "-";
	if (us < 10000)
		snprintf(buf, 32, "%" PRIu64 "us", us);
	else if (us < 10000000)
		snprintf(buf, 32, "%" PRIu64 "ms", us / 1000);
	else
		snprintf(buf, 32, "%" PRIu64 "s", us / 1000000);
	return buf;
}

/* The activity of an interface since it was last read: it explains a hang. */
static const char *doing(const struct iface *it, const struct list *before)
{
	const struct unm_stats *now = &it->stats, *old = NULL;

	for (size_t i = 0; i < before->count; i++)
		if (before->at[i].ino == it->ino &&
		    before->at[i].dev == it->dev)
			old = &before->at[i].stats;
	if (old == NULL || it->counters < COUNTERS)
		return "";
	if (now->tx_msgs != old->tx_msgs || now->rx_msgs != old->rx_msgs)
		return " moving";
	if (now->tx_bytes != old->tx_bytes || now->rx_bytes != old->rx_bytes)
		return " moving";
	return now->polls != old->polls || now->sleeps != old->sleeps ?
	       " polling" : " silent";
}

static void print_row(const struct iface *it, const struct list *before)
{
	const struct unm_stats *s = &it->stats;
	char place[32], b[10][32];

	snprintf(place, sizeof(place), "%u:%u", it->page.head.board,
		 it->page.head.iface);
	printf("%-9s %7ld%c %c %-15s %5s %6s %6s %7s %6s %6s %7s %7s %8s %8s"
	       "%s\n",
	       place, (long)it->pid, it->owned ? ' ' : '*', it->state,
	       it->command, cell(b[0], it, s->peers),
	       cell(b[1], it, s->posted), cell(b[2], it, s->unexpected),
	       cell(b[3], it, s->inflight), cell(b[4], it, s->transfers),
	       cell(b[5], it, s->credits_min), age(b[6], it, s->oldest_us),
	       age(b[7], it, s->oldest_recv_us), cell(b[8], it, s->tx_msgs),
	       cell(b[9], it, s->rx_msgs),
	       doing(it, before));
}

static void print_counters(const struct iface *it)
{
	if (it->page.head.version != HAL_ADDR_VERSION)
		printf("    made by another version (%u, this is %u)\n",
		       it->page.head.version, HAL_ADDR_VERSION);
	else if (it->counters == 0 && it->page.head.iface == HAL_IF_SERVICE)
		printf("    the board's atomic service\n");
	else if (it->counters == 0)
		printf("    no endpoint of the provider uses this interface\n");
	for (uint32_t i = 0; i < it->counters; i++)
		printf("    %-16s %20" PRIu64 "  %s\n", counter_text[i].name,
		       counter(it, i), counter_text[i].help);
}

/* Boards, endpoints, backends and profiles in one line. */
static void print_head(const struct list *list)
{
	const struct hal_page_head *first = &list->at[0].page.head;
	unsigned boards = 0;
	bool mixed = false;

	for (size_t i = 0; i < list->count; i++) {
		const struct hal_page_head *h = &list->at[i].page.head;

		boards += i == 0 ||
			  h->board != list->at[i - 1].page.head.board;
		mixed |= strcmp(h->backend, first->backend) != 0 ||
			 strcmp(h->profile, first->profile) != 0;
	}
	printf("%zu interface%s on %u board%s, backend %s, profile %s%s\n",
	       list->count, list->count == 1 ? "" : "s", boards,
	       boards == 1 ? "" : "s", first->backend, first->profile,
	       mixed ? ", and others" : "");
}

static void print_table(const struct list *list,
			const struct list *before)
{
	bool orphan = false;

	print_head(list);
	printf("%-9s %7s  %s %-15s %5s %6s %6s %7s %6s %6s %7s %7s %8s %8s"
	       "%s\n",
	       "BOARD:IF", "PID", "S", "COMMAND", "PEERS", "POSTED", "UNEXP",
	       "SENDING", "RDV_IN", "CREDIT", "OLDEST", "WAITED", "SENT",
	       "RECEIVED",
	       opt.wait != 0 ? " DOING" : "");
	for (size_t i = 0; i < list->count; i++) {
		print_row(&list->at[i], before);
		orphan |= !list->at[i].owned;
		if (opt.verbose)
			print_counters(&list->at[i]);
	}
	if (orphan)
		printf("* not the owner: the process that opened the interface "
		       "is gone or not visible,\n"
		       "  a child of it still holds it\n");
}

/* A JSON string; clean() and comm leave at most quotes to escape. */
static void json_text(const char *name, const char *text)
{
	printf("\"%s\":\"", name);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(isprint((unsigned char)*text) ? *text : '?');
	}
	printf("\",");
}

static void print_json(const struct list *list)
{
	printf("{\"hidden_processes\":%u,\"interfaces\":[", list->hidden);
	for (size_t i = 0; i < list->count; i++) {
		const struct iface *it = &list->at[i];
		const struct hal_page_head *h = &it->page.head;

		printf("%s{\"board\":%u,\"iface\":%u,\"pid\":%ld,",
		       i ? "," : "", h->board, h->iface, (long)it->pid);
		printf("\"owner\":%s,\"version\":%u,\"state\":\"%c\",",
		       it->owned ? "true" : "false", h->version, it->state);
		printf("\"nonce\":\"%016" PRIx64 "\",", h->nonce);
		json_text("command", it->command);
		json_text("backend", h->backend);
		json_text("profile", h->profile);
		printf("\"counters\":{");
		for (uint32_t c = 0; c < it->counters; c++)
			printf("%s\"%s\":%" PRIu64, c ? "," : "",
			       counter_text[c].name, counter(it, c));
		printf("}}");
	}
	printf("]}\n");
}

/* One look; 0: interfaces were found, 1: there are none. */
static int show(struct list *list, const struct list *before)
{
	int err;

	err = scan(list);
	if (err != 0) {
		fprintf(stderr, "unimem_info: /proc: %s\n", strerror(err));
		exit(2);
	}
	if (opt.json)
		print_json(list);
	else if (list->count != 0)
		print_table(list, before);
	else
		printf("no unimem job of %s is running here\n",
		       opt.all ? "any user" : "this user");
	if (list->hidden != 0 && !opt.json)
		printf("(%u process%s could not be looked into)\n",
		       list->hidden, list->hidden == 1 ? "" : "es");
	return list->count == 0;
}

/* ---- Command line ---------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("usage: unimem_info [-ajv] [-w seconds]\n"
	      "       unimem_info --all-hosts[=HOSTS] [-ajv]\n"
	      "  -a, --all       processes of every user one may look into\n"
	      "  -j, --json      one JSON object a look\n"
	      "  -v, --verbose   every counter of each endpoint\n"
	      "  -w, --watch N   look again every N seconds\n"
	      "  --memory        memory of the boards by owner; with =N, of\n"
	      "                  board N\n"
	      "  --topology FILE write the machine with its boards to an XML\n"
	      "                  file of hwloc\n"
	      "  --selftest      walk to every board instead; with =wait, be\n"
	      "                  the partner of such a walk\n"
	      "  --all-hosts[=HOSTS]\n"
	      "                  on each of these hosts: a,b or ./FILE\n"
	      "                  (FI_UNIMEM_NET_HOSTS)\n"
	      "  --rsh COMMAND   how to run a command there (ssh)\n"
	      "  --limit N       seconds that a host has to answer (10)\n"
	      "  -h, --help      this text\n"
	      "  -V, --version   version of the tool\n"
	      "Exit code: 0 interfaces found, 1 none, 2 error.\n",
	      out);
}

/* Exits for a bad number. name: of the option. */
static double parse_seconds(const char *name, const char *text)
{
	char *end;
	double val = strtod(text, &end);

	if (end == text || *end != '\0' || !(val >= 0.01 && val <= 86400)) {
		fprintf(stderr, "unimem_info: %s %s: use a number of seconds "
			"from 0.01 to 86400\n", name, text);
		exit(2);
	}
	return val;
}

/* Exits for anything but "wait". */
static int parse_selftest(const char *text)
{
	if (text == NULL)
		return SELFTEST_WALK;
	if (strcmp(text, "wait") == 0)
		return SELFTEST_WAIT;
	fprintf(stderr, "unimem_info: --selftest=%s: use --selftest or "
		"--selftest=wait\n", text);
	exit(2);
}

/* The board of --memory=N; without N: -1. */
static int parse_board(const char *text)
{
	long board;
	char *end;

	if (text == NULL)
		return -1;
	board = strtol(text, &end, 10);
	if (isdigit((unsigned char)*text) && *end == '\0' && board < 65535)
		return (int)board;
	fprintf(stderr, "unimem_info: --memory=%s: give the number of a "
		"board\n", text);
	exit(2);
}

/* Options of unimem_info on each host. Exits if others were given. */
static void parse_hosts(void)
{
	static char options[8];

	if (opt.wait != 0 || opt.memory || opt.selftest != SELFTEST_NO ||
	    opt.topology != NULL) {
		fprintf(stderr, "unimem_info: --all-hosts goes with -a, -j and "
			"-v only\n");
		exit(2);
	}
	if (opt.all || opt.json || opt.verbose)
		snprintf(options, sizeof(options), "-%s%s%s",
			 opt.all ? "a" : "", opt.json ? "j" : "",
			 opt.verbose ? "v" : "");
	opt.hosts.options = options;
	opt.hosts.json = opt.json;
}

static const struct option longs[] = {
	{ "all-hosts", optional_argument, NULL, 'H' },
	{ "rsh", required_argument, NULL, 'R' },
	{ "limit", required_argument, NULL, 'L' },
	{ "all", no_argument, NULL, 'a' },
	{ "json", no_argument, NULL, 'j' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "watch", required_argument, NULL, 'w' },
	{ "memory", optional_argument, NULL, 'm' },
	{ "selftest", optional_argument, NULL, 's' },
	{ "topology", required_argument, NULL, 't' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "ajvw:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'a':
			opt.all = true;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'w':
			opt.wait = parse_seconds("-w", optarg);
			break;
		case 'm':
			opt.memory = true;
			opt.board = parse_board(optarg);
			break;
		case 's':
			opt.selftest = parse_selftest(optarg);
			break;
		case 't':
			opt.topology = optarg;
			break;
		case 'H':
			opt.all_hosts = true;
			opt.hosts.hosts = optarg;
			break;
		case 'R':
			opt.hosts.rsh = optarg;
			break;
		case 'L':
			opt.hosts.limit = parse_seconds("--limit", optarg);
			break;
		case 'h':
			usage(stdout);
			exit(0);
		case 'V':
			puts("unimem_info " PACKAGE_VERSION);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc) {
		usage(stderr);
		exit(2);
	}
	if (opt.all_hosts)
		parse_hosts();
}

int main(int argc, char **argv)
{
	struct list lists[2] = { 0 };
	struct timespec pause;
	int ret, now = 0;

	parse(argc, argv);
	if (opt.topology != NULL)
		return topology_write(opt.topology);
	if (opt.all_hosts)
		return hosts_show(&opt.hosts);
	if (opt.memory)
		return memory_show(opt.board, opt.json);
	if (opt.selftest != SELFTEST_NO)
		return selftest(opt.selftest == SELFTEST_WAIT);
	pause.tv_sec = (time_t)opt.wait;
	pause.tv_nsec = (long)((opt.wait - (double)pause.tv_sec) * 1e9);
	for (;;) {
		ret = show(&lists[now], &lists[!now]);
		now = !now;
		if (fflush(stdout) != 0)
			return 2;
		if (opt.wait == 0)
			break;
		nanosleep(&pause, NULL);
		if (!opt.json)
			putchar('\n');
	}
	free(lists[0].at);
	free(lists[1].at);
	return ret;
}
