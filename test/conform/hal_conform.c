/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform.c - run the conformance tests of docs/hal.md on a backend
 *
 *	hal_conform [--hal emu|fault|net|sim|dev] [--profile host|exanode]
 *		[--fault SPEC] [--test PATTERN] [--packets N]
 *		[--patience SECONDS] [--seq-start N] [--no-procs]
 *		[--passes N] [--service] [--late N] [--broken NAME] [--list]
 *
 * --hal fault     the emulation under the decorator of hal_fault.c
 * --hal net       the emulation with peers on other hosts: each interface is a
 *                 host of its own, and the network is the loopback interface
 *                 or FI_UNIMEM_NET
 * --late N        with --hal net: later frames overtake N of 1000
 * --broken NAME   puts a decorator of test/broken around the backend, which
 *                 breaks one law: the test must then fail (test/broken/run).
 *                 "list" prints the names, each with the test that must fail.
 * --passes N      kill or stop a process at the first N passes of each fault
 *                 point, 1 to 3
 * --service       the first interface of each test is interface 0 of its board
 *
 * Exit code 77 if the backend is not available. Owns the options, the HAL and
 * the interfaces of a test, the watchdog and the check for leaks.
 */
#include <getopt.h>

#include "broken/broken.h"
#include "conform/hal_conform.h"
#include "lib/proc_files.h"
#include "lib/unit_skip.h"

#define SKIPPED		77
#define FAULTS		"eagain=50,delay=20:100,dmafail=50,dmadelay=300,seed=1"

struct ct_options ct_opt = {
	.hal = "emu",
	.profile = "host",
	.fault = "",
	.patience = 20,
	.packets = 1000000,
	.passes = 3,
	.procs = true,
};
struct hal *ct_hal;
const struct hal_caps *ct_caps;
struct ct_if ct_ifs[CT_IFS];

static const char *running = "start-up";	/* test, for the watchdog */

/* Resources of this process that must be unchanged after a test. */
struct leftovers {
	int fds;			/* open descriptors */
	int memfds;			/* mappings of memfds */
	int shm;			/* names with "unimem" in /dev/shm */
};
static struct leftovers before;		/* counted by ct_setup() */

/* ---- Watchdog -------------------------------------------------------- */

/* Name the test that hangs in a call, and end the program. */
static void on_alarm(int sig)
{
	static const char text[] = "[  FAILED  ] ", why[] = ": it hangs\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDERR_FILENO, running, strlen(running)) < 0 ||
	    write(STDERR_FILENO, why, sizeof(why) - 1) < 0)
		_exit(4);
	ct_children_end();
	_exit(3);
}

static void watchdog(bool on)
{
	alarm(on ? (unsigned)(2 + 10 * ct_opt.patience) : 0);
}

/* ---- Leaks ----------------------------------------------------------- */

static struct leftovers look(void)
{
	struct leftovers l = {
		.fds = proc_self_fds(),
		.memfds = proc_self_mappings("/memfd:"),
		.shm = access("/dev/shm", R_OK) == 0 ?
			proc_names("/dev/shm", "unimem") : 0,
	};

	return l;
}

static bool left_clean(void)
{
	struct leftovers now = look();

	if (now.fds == before.fds && now.memfds == before.memfds &&
	    now.shm <= before.shm)
		return true;
	print_error("%s leaves %d descriptors, %d mapped memfds, %d names in "
		    "/dev/shm behind\n", running, now.fds - before.fds,
		    now.memfds - before.memfds, now.shm - before.shm);
	return false;
}

/* ---- Fixture --------------------------------------------------------- */

int ct_hal_open(void)
{
	struct hal_params params;
	int ret = hal_params_load(&params);

	if (ret != 0)
		return ret;
	snprintf(params.hal, sizeof(params.hal), "%s",
		 strcmp(ct_opt.hal, "fault") == 0 || ct_net() ? "emu" :
		 ct_opt.hal);
	if (ct_net() && params.net[0] == '\0')
		snprintf(params.net, sizeof(params.net), "lo");
	snprintf(params.profile, sizeof(params.profile), "%s",
		 ct_opt.profile);
	snprintf(params.fault, sizeof(params.fault), "%s", ct_opt.fault);
	if (ct_opt.dead_ms != 0)
		params.net_dead_ms = ct_opt.dead_ms;
	params.seq_start = ct_opt.seq_start;
	params.sleep_ms = 0;		/* a lost wake-up stays lost */
	ret = hal_get(&params, &ct_hal);
	if (ret != 0)
		return ret;
	if (ct_opt.broken != NULL)
		broken_wrap(ct_hal, ct_opt.broken);
	ct_caps = &ct_hal->caps;
	return 0;
}

void ct_hal_close(void)
{
	hal_put(ct_hal);
	ct_hal = NULL;
	ct_caps = NULL;
}

int ct_setup(void **state)
{
	running = *state;
	memset(ct_ifs, 0, sizeof(ct_ifs));
	watchdog(true);
	before = look();
	return ct_hal_open();
}

int ct_teardown(void **state)
{
	ct_children_end();
	for (int i = 0; i < CT_IFS; i++) {
		if (ct_ifs[i].hif != NULL)
			ct_close(&ct_ifs[i]);
	}
	if (ct_hal != NULL)
		ct_hal_close();
	watchdog(false);
	return left_clean() ? 0 : -1;
}

/* ---- Start ----------------------------------------------------------- */

static const struct {
	const char *name;
	const struct CMUnitTest *tests;
	const size_t *count;
	bool procs;
} groups[] = {
	{ "packets", ct_pkt_tests, &ct_pkt_count, false },
	{ "wide packets", ct_wide_tests, &ct_wide_count, false },
	{ "streams", ct_stream_tests, &ct_stream_count, false },
	{ "space", ct_space_tests, &ct_space_count, false },
	{ "connections", ct_conn_tests, &ct_conn_count, false },
	{ "service", ct_service_tests, &ct_service_count, false },
	{ "close", ct_close_tests, &ct_close_count, false },
	{ "sleep", ct_sleep_tests, &ct_sleep_count, false },
	{ "memory", ct_mem_tests, &ct_mem_count, false },
	{ "cdma", ct_dma_tests, &ct_dma_count, false },
	{ "shared words", ct_shared_tests, &ct_shared_count, false },
	{ "shared mappings", ct_alias_tests, &ct_alias_count, false },
	{ "processes", ct_proc_tests, &ct_proc_count, true },
	{ "processes that exec", ct_exec_tests, &ct_exec_count, true },
	{ "service of processes", ct_service_proc_tests,
	  &ct_service_proc_count, true },
	{ "shared words of processes", ct_shared_proc_tests,
	  &ct_shared_proc_count, true },
	{ "kills", ct_kill_tests, &ct_kill_count, true },
	{ "frames", ct_frames_tests, &ct_frames_count, false },
	{ "leaks", ct_leak_tests, &ct_leak_count, false },
};
#define NGROUPS		(sizeof(groups) / sizeof(groups[0]))

static int usage(void)
{
	fprintf(stderr, "usage: hal_conform [--hal NAME] [--profile NAME] "
		"[--fault SPEC] [--test PATTERN]\n\t[--packets N] [--patience "
		"SECONDS] [--seq-start N] [--no-procs] [--service]\n"
		"\t[--passes N] [--late N] [--broken NAME] [--list]\n");
	return 2;
}

static int list(void)
{
	for (size_t g = 0; g < NGROUPS; g++) {
		for (size_t i = 0; i < *groups[g].count; i++)
			printf("%s\n", groups[g].tests[i].name);
	}
	return 0;
}

/* Parse the command line. Returns -1 to run the tests, else the exit code. */
static int options(int argc, char **argv, bool *child)
{
	static const struct option opts[] = {
		{ "hal", 1, NULL, 'h' }, { "profile", 1, NULL, 'p' },
		{ "fault", 1, NULL, 'f' }, { "test", 1, NULL, 't' },
		{ "packets", 1, NULL, 'n' }, { "patience", 1, NULL, 'w' },
		{ "seq-start", 1, NULL, 's' }, { "no-procs", 0, NULL, '1' },
		{ "broken", 1, NULL, 'b' }, { "list", 0, NULL, 'l' },
		{ "service", 0, NULL, '0' }, { "passes", 1, NULL, 'm' },
		{ "late", 1, NULL, 'e' }, { "child", 0, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 'h': ct_opt.hal = optarg; break;
		case 'p': ct_opt.profile = optarg; break;
		case 'f': ct_opt.fault = optarg; break;
		case 't': ct_opt.filter = optarg; break;
		case 'n': ct_opt.packets = atol(optarg); break;
		case 'w': ct_opt.patience = atof(optarg); break;
		case 'm': ct_opt.passes = (unsigned)atol(optarg); break;
		case 's': ct_opt.seq_start = atol(optarg); break;
		case 'e': ct_opt.late = atol(optarg); break;
		case '1': ct_opt.procs = false; break;
		case '0': ct_opt.service = true; break;
		case 'b': ct_opt.broken = optarg; break;
		case 'l': return list();
		case 'c': *child = true; break;
		default: return usage();
		}
	}
	if (optind != argc || ct_opt.packets < 1000 || ct_opt.patience <= 0 ||
	    ct_opt.passes < 1 || ct_opt.passes > 3)
		return usage();
	if (strcmp(ct_opt.hal, "fault") == 0 && !ct_faulty())
		ct_opt.fault = FAULTS;
	if (ct_opt.broken != NULL && strcmp(ct_opt.broken, "list") == 0) {
		broken_list();
		return 0;
	}
	if (ct_opt.broken != NULL && !broken_exists(ct_opt.broken))
		return usage();
	return -1;
}

/* Check that the backend is available. It also allocates here what it allocates
 * once for a process, so that no test seems to leak that. */
static int warm_up(void)
{
	struct hal_if *hif;
	int ret = ct_hal_open();

	if (ret == -FI_ENODEV) {
		fprintf(stderr, "hal_conform: no backend %s: skipped\n",
			ct_opt.hal);
		return SKIPPED;
	}
	if (ret != 0) {
		fprintf(stderr, "hal_conform: hal_get: %d\n", ret);
		return 1;
	}
	if (ct_opt.broken != NULL && !broken_applies(ct_hal, ct_opt.broken)) {
		fprintf(stderr, "hal_conform: %s breaks no law of %s: "
			"skipped\n", ct_opt.broken, ct_opt.hal);
		ct_hal_close();
		return SKIPPED;
	}
	if (hal_if_open(ct_hal, -1, &hif) == 0)
		hal_if_close(hif);
	ret = ct_net_warm_up();
	ct_hal_close();
	if (ret == -FI_ECONNREFUSED) {
		fprintf(stderr, "hal_conform: no engine for other "
			"hosts: skipped\n");
		return SKIPPED;
	}
	if (ret != 0)
		fprintf(stderr, "hal_conform: the engine for other hosts: %d\n",
			ret);
	return ret != 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_alarm };
	bool child = false;
	int ret, failed = 0;

	ct_opt.via = getenv("UNM_EXEC");
	ct_opt.self = ct_opt.via != NULL ? argv[0] : "/proc/self/exe";
	ret = options(argc, argv, &child);
	if (ret >= 0)
		return ret;
	signal(SIGPIPE, SIG_IGN);
	if (child)
		return ct_child_main();
	sigaction(SIGALRM, &act, NULL);
	ret = warm_up();
	if (ret != 0)
		return ret;
	if (ct_opt.filter != NULL)
		cmocka_set_test_filter(ct_opt.filter);
	for (size_t g = 0; g < NGROUPS; g++) {
		if (ct_opt.service && (groups[g].tests == ct_service_tests ||
				       groups[g].tests ==
				       ct_service_proc_tests))
			continue;	/* these tests open interface 0 */
		if (!groups[g].procs || ct_opt.procs)
			failed += unit_run_group(groups[g].name,
				groups[g].tests, *groups[g].count, NULL, NULL);
	}
	return failed != 0;
}
