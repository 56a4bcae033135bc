/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsasctl.c - shows what the services of the boards hold, and frees orphaned
 * memory: gsasctl(1). It is a client of the services and starts none.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_job.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "daemon/gsas_names.h"

#define LIST_MAX	32		/* regions of a LIST request */

static struct {
	int board;			/* -1: all */
	bool orphans;
	bool yes;
} opt = { .board = -1 };

/* The orphans that the user was shown, in the order of the boards. Only these
 * are freed: other orphans may appear while the user decides, also at the
 * address of a freed one. */
static struct {
	struct gsas_list_entry *orphan;
	size_t n;
} shown;

static struct gsas_thread *thread;
static bool unanswered;			/* some board gave an error */

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *fmt, ...)
{
	va_list ap;

	fputs("gsasctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

/* ---- Requests ------------------------------------------------------------ */

/* Do a request whose answer has len bytes of data, to be stored at into. 0,
 * -errno. */
static int request_data(struct gsas_conn *conn, struct gsas_msg *msg,
			void *into, uint32_t len, struct gsas_request *request)
{
	int ret = 0;

	msg->into = into;
	msg->len = len;
	if (len > 0)
		ret = gsas_space_wait(conn, 0, len, msg, NULL);
	msg->arg2 = msg->off;
	return ret != 0 ? ret : gsas_request_do(conn, msg, request);
}

static int get_stat(struct gsas_conn *conn, struct gsas_stat *stat)
{
	struct gsas_msg msg = { .opcode = GSAS_STAT };
	struct gsas_request request;

	return request_data(conn, &msg, stat, sizeof(*stat), &request);
}

/* List up to LIST_MAX regions from *address on, and store at *address where to
 * continue, 0: at the end. Returns the number of regions, or -errno. */
static int get_list(struct gsas_conn *conn, uint64_t *address,
		    struct gsas_list_entry *list)
{
	struct gsas_msg msg = {
		.opcode = GSAS_LIST, .address = *address, .arg1 = LIST_MAX,
	};
	struct gsas_request request;
	int ret = request_data(conn, &msg, list, LIST_MAX * sizeof(*list),
			       &request);

	if (ret != 0)
		return ret;
	*address = request.more;
	return request.result <= LIST_MAX ? (int)request.result : -EPROTO;
}

/* ---- Commands ------------------------------------------------------------ */

/* The host of a board; NULL: this process knows no hosts. */
static const char *host_of(int board)
{
	return hal_board_host(thread->hal, (uint32_t)board);
}

typedef int (*board_fn)(struct gsas_conn *conn, int board);

static bool selected(int board)
{
	return opt.board < 0 || board == opt.board;
}

/* Dial all boards of other hosts at once, so that hosts which do not answer
 * take the time of one. */
static void dial_hosts(void)
{
	for (int b = 0; b < (int)thread->boards; b++)
		if (selected(b) && !gsas_board_here(thread, b))
			(void)gsas_conn_begin(thread, b);
}

/* Call fn for each selected board that has a service. A board that gives an
 * error delays or hides no other one. Returns the number of boards for which fn
 * succeeded. */
static int each_board(board_fn fn)
{
	int found = 0;

	dial_hosts();
	for (int b = 0; b < (int)thread->boards; b++) {
		struct gsas_conn *conn;
		int ret;

		if (!selected(b))
			continue;
		ret = gsas_conn_get(thread, b, &conn);
		if (ret == -FI_ECONNREFUSED)
			continue;
		if (ret == 0)
			ret = fn(conn, b);
		if (ret == 0) {
			found++;
			continue;
		}
		fflush(stdout);
		fprintf(stderr, "gsasctl: board %d%s%s: %s\n", b,
			host_of(b) != NULL ? " on " : "",
			host_of(b) != NULL ? host_of(b) : "", strerror(-ret));
		unanswered = true;
	}
	return found;
}

static void need_service(int found)
{
	if (found > 0 || unanswered)
		return;
	if (opt.board >= 0)
		fail("board %d has no service", opt.board);
	fail("no board has a service");
}

static int show_board(struct gsas_conn *conn, int board)
{
	struct gsas_stat stat;
	int ret = get_stat(conn, &stat);

	if (ret != 0)
		return ret;
	printf("%5d %12" PRIu64 " %12" PRIu64 " %8" PRIu64 " %8" PRIu64
	       " %8" PRIu64, board, stat.pages, stat.pages_max, stat.regions,
	       stat.orphans, stat.clients - 1);
	if (host_of(board) != NULL)
		printf("  %s", host_of(board));
	putchar('\n');
	return 0;
}

static void boards(void)
{
	int found;

	printf("%5s %12s %12s %8s %8s %8s%s\n", "BOARD", "PAGES", "OF",
	       "REGIONS", "ORPHANS", "CLIENTS",
	       host_of(0) != NULL ? "  HOST" : "");
	found = each_board(show_board);
	printf("%d of %u boards have a service\n", found,
	       opt.board >= 0 ? 1 : thread->boards);
}

static void remember(const struct gsas_list_entry *e)
{
	struct gsas_list_entry *more = reallocarray(shown.orphan, shown.n + 1,
						    sizeof(*more));

	if (more == NULL)
		fail("out of memory");
	more[shown.n++] = *e;
	shown.orphan = more;
}

static void show_region(const struct gsas_list_entry *e)
{
	static const char *const modes[] = { "job", "group", "world" };
	uint64_t mode = GSAS_ATTR_MODE(e->attr);

	if (opt.orphans && e->clients != 0)
		return;
	if (opt.orphans)
		remember(e);
	printf("0x%016" PRIx64 " %10" PRIu64 " %-6s %-7s %6u %8u\n", e->address,
	       e->pages, mode < 3 ? modes[mode] : "?",
	       e->attr & GSAS_ATTR_QUEUE ? "queue" :
	       e->attr & GSAS_ATTR_OWNED ? "owned" :
	       e->attr & GSAS_ATTR_MAPPED ? "mapped" : "packets", e->job,
	       e->clients);
}

static int show_pages(struct gsas_conn *conn, int board)
{
	struct gsas_list_entry list[LIST_MAX];
	uint64_t address = 0;
	int n;

	(void)board;
	do {
		n = get_list(conn, &address, list);
		for (int i = 0; i < n; i++)
			show_region(&list[i]);
	} while (n >= 0 && address != 0);
	return n < 0 ? n : 0;
}

static void pages(void)
{
	printf("%-18s %10s %-6s %-7s %6s %8s\n", "ADDRESS", "PAGES", "MODE",
	       "KIND", "JOB", "CLIENTS");
	need_service(each_board(show_pages));
}

static int show_stat(struct gsas_conn *conn, int board)
{
	struct gsas_stat stat;
	int ret = get_stat(conn, &stat);

	if (ret != 0)
		return ret;
	printf("board %d\n", board);
	printf("  %-28s %12" PRIu64 "\n", "requests", stat.requests);
	printf("  %-28s %12" PRIu64 "\n", "refused", stat.refused);
	printf("  %-28s %12" PRIu64 "\n", "sleeps", stat.sleeps);
	printf("  %-28s %12" PRIu64 "\n", "woken", stat.wakes);
	printf("  %-28s %12" PRIu64 "\n", "programs started", stat.forks);
	printf("  %-28s %12" PRIu64 "\n", "words in queues", stat.words);
	for (unsigned i = 0; i < sizeof(stat.op) / sizeof(stat.op[0]); i++)
		if (stat.op[i] != 0 && gsas_opcode_name(i) != NULL)
			printf("  %-28s %12" PRIu64 "\n", gsas_opcode_name(i),
			       stat.op[i]);
	for (unsigned i = 1; i < GSAS_ERRORS; i++)
		if (stat.error[i] != 0)
			printf("  refused: %-19s %12" PRIu64 "\n",
			       gsas_error_name(i), stat.error[i]);
	return 0;
}

/* Free the orphan at an address. Adds the pages freed to *freed. */
static int reclaim_from(struct gsas_conn *conn, uint64_t address,
			uint64_t *freed)
{
	struct gsas_msg msg = { .opcode = GSAS_RECLAIM, .address = address };
	struct gsas_request request;
	int ret = gsas_request_do(conn, &msg, &request);

	if (ret == 0)
		*freed += request.result;
	return ret;
}

/* Show the orphans, and ask the user to confirm unless --yes was given. */
static void confirm(void)
{
	char answer[8] = "";

	opt.orphans = true;
	pages();
	if (opt.yes)
		return;
	if (!isatty(STDIN_FILENO))
		fail("nothing was freed: check this list, then add --yes");
	printf("Free all of these? [y/N] ");
	fflush(stdout);
	if (fgets(answer, sizeof(answer), stdin) == NULL ||
	    (*answer != 'y' && *answer != 'Y'))
		fail("nothing was freed");
}

/* Is an orphan still what the user was shown? 1: yes; 0; -errno. */
static int is_shown(struct gsas_conn *conn, const struct gsas_list_entry *e)
{
	struct gsas_list_entry now[LIST_MAX];
	uint64_t address = e->address;
	int n = get_list(conn, &address, now);

	if (n <= 0)
		return n;
	return now[0].address == e->address && now[0].pages == e->pages &&
	       now[0].attr == e->attr && now[0].job == e->job;
}

static int reclaim_board(struct gsas_conn *conn, int board)
{
	uint64_t freed = 0;
	int ret = 0;

	for (size_t i = 0; i < shown.n && ret == 0; i++) {
		const struct gsas_list_entry *e = &shown.orphan[i];

		if (gsas_board_of(e->address) != board)
			continue;
		ret = is_shown(conn, e);
		if (ret == 1)
			ret = reclaim_from(conn, e->address, &freed);
		/* freed meanwhile, perhaps in use again, by any user */
		if (ret == -ESTALE || ret == -EFAULT || ret == -EINVAL ||
		    ret == -EACCES)
			ret = 0;
	}
	if (ret == 0 || freed > 0)
		printf("board %d: %" PRIu64 " pages freed\n", board, freed);
	return ret;
}

static void reclaim_address(const char *text)
{
	struct gsas_conn *conn;
	uint64_t address, freed = 0;
	char *end;
	int ret;

	errno = 0;
	address = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 ||
	    address == 0)
		fail("%s: no address; gsasctl pages --orphans shows them",
		     text);
	ret = gsas_conn_of(address, &conn);
	if (ret == -FI_ECONNREFUSED)
		fail("%s: board %d has no service", text,
		     gsas_board_of(address));
	if (ret == 0)
		ret = reclaim_from(conn, address, &freed);
	if (ret != 0)
		fail("%s: %s", text, ret == -EACCES || ret == -EINVAL ?
		     "not an orphan of this user" : strerror(-ret));
	printf("%s: %" PRIu64 " pages freed\n", text, freed);
}

static void reclaim(int argc, char *argv[])
{
	if (argc == 0) {
		confirm();
		need_service(each_board(reclaim_board));
	}
	for (int i = 0; i < argc; i++)
		reclaim_address(argv[i]);
}

static void new_job(void)
{
	uint64_t key[2];

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		fail("no random numbers: %s", strerror(errno));
	printf("GSAS_JOB=%016" PRIx64 "%016" PRIx64 "\n", key[0], key[1]);
}

/* ---- Command line -------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("usage: gsasctl COMMAND [--board N]\n"
	      "The services of the GSAS environment, board by board.\n\n"
	      "  boards             boards with a service, and their memory\n"
	      "  pages [--orphans]  regions of this user; orphans only\n"
	      "  stat               requests that came, and were refused\n"
	      "  reclaim [--yes]    show this user's orphans, ask, free them\n"
	      "  reclaim ADDRESS... free these orphans\n"
	      "  new-job            print a key for GSAS_JOB\n"
	      "  --help, --version\n", out);
}

static void options(int argc, char *argv[])
{
	static const struct option longs[] = {
		{ "board", required_argument, NULL, 'b' },
		{ "orphans", no_argument, NULL, 'o' },
		{ "yes", no_argument, NULL, 'y' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	long board;
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 'b':
			board = strtol(optarg, &end, 10);
			if (!isdigit((unsigned char)optarg[0]) ||
			    *end != '\0' || board > UINT16_MAX)
				fail("--board %s: give a number", optarg);
			opt.board = (int)board;
			break;
		case 'o':
			opt.orphans = true;
			break;
		case 'y':
			opt.yes = true;
			break;
		case 'h':
			usage(stdout);
			exit(EXIT_SUCCESS);
		case 'v':
			printf("gsasctl (unimem) %s\n", PACKAGE_VERSION);
			exit(EXIT_SUCCESS);
		default:
			usage(stderr);
			exit(EXIT_FAILURE);
		}
}

static void begin(void)
{
	int ret = gsas_job_own();

	if (ret == 0)
		ret = gsas_thread_get(&thread);
	if (ret != 0)
		fail("cannot open an interface: %s", strerror(-ret));
	thread->starts = false;
	if (opt.board >= (int)thread->boards)
		fail("--board %d: there are %u boards, from 0 on", opt.board,
		     thread->boards);
}

int main(int argc, char *argv[])
{
	const char *command;

	options(argc, argv);
	command = optind < argc ? argv[optind++] : "";
	if (optind < argc && strcmp(command, "reclaim") != 0)
		fail("%s: unexpected argument; see gsasctl --help",
		     argv[optind]);
	if (strcmp(command, "new-job") == 0) {
		new_job();
		return EXIT_SUCCESS;
	}
	begin();
	if (strcmp(command, "boards") == 0)
		boards();
	else if (strcmp(command, "pages") == 0)
		pages();
	else if (strcmp(command, "stat") == 0)
		need_service(each_board(show_stat));
	else if (strcmp(command, "reclaim") == 0)
		reclaim(argc - optind, argv + optind);
	else
		fail("no command \"%s\": see gsasctl --help", command);
	return unanswered ? EXIT_FAILURE : EXIT_SUCCESS;
}
