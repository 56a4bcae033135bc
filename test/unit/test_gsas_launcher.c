/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_launcher.c - processes that one launcher started have one job key,
 * and the processes of two launchers never have the same
 *
 * A child of the test takes the name of a launcher's process, as its ancestor
 * walk finds it in /proc, and starts ranks. Where mpiexec of MPICH is found, it
 * starts ranks as well.
 */
#include <fcntl.h>
#include <glob.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "client/gsas_job.h"
#include "client/gsas_launcher.h"
#include "gsas.h"
#include "lib/unit.h"

#define RANKS	3
#define ARGUMENTS	200		/* bytes of g_arguments */
#define LINE		200		/* bytes of a line of a rank */

/* Memory of the command line of this process, which /proc shows. */
static char *g_arguments;

/* A result of a rank, passed through a pipe. */
struct answer {
	bool known, ranked, split;
	uint64_t key[2];
	uint32_t rank, ranks;
};

static const char *const g_variables[] = {
	"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_PORT", "PMI_ID",
	"PMIX_NAMESPACE", "PMIX_RANK",
	"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID",
	"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
	"SLURM_RESTART_COUNT", "MPI_LOCALNRANKS", "HYDRA_JOB",
};

static int setup(void **state)
{
	for (size_t i = 0; i < sizeof(g_variables) / sizeof(char *); i++)
		unsetenv(g_variables[i]);
	return 0;
}

static void ask(struct answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->known = gsas_launcher_key(answer->key);
	answer->ranked = gsas_launcher_rank(&answer->rank, &answer->ranks);
	answer->split = gsas_launcher_split();
}

static void put(int fd, const struct answer *answer)
{
	if (write(fd, answer, sizeof(*answer)) != sizeof(*answer))
		_exit(1);
}

/* A rank answers, from below so many processes of other names. */
static void rank_run(int fd, int index, int between)
{
	char text[16];
	struct answer answer;

	for (; between > 0; between--) {
		pid_t pid;

		/* before the fork: a child inherits the name */
		prctl(PR_SET_NAME, "sh");
		pid = fork();
		if (pid != 0)
			_exit(pid < 0 || waitpid(pid, NULL, 0) != pid);
	}
	prctl(PR_SET_NAME, "rank");
	snprintf(text, sizeof(text), "%d", index);
	setenv("PMI_RANK", text, 1);
	ask(&answer);
	put(fd, &answer);
	_exit(0);
}

/* Take a name, and show the arguments behind it, between single blanks. */
static void become(const char *command)
{
	size_t name = strcspn(command, " ");
	char comm[16];

	snprintf(comm, sizeof(comm), "%.*s", (int)name, command);
	prctl(PR_SET_NAME, comm);
	memset(g_arguments, 0, ARGUMENTS);
	if (command[name] != '\0')
		snprintf(g_arguments, ARGUMENTS, "%s", command + name + 1);
	for (char *c = g_arguments; *c != '\0'; c++)
		if (*c == ' ')
			*c = '\0';
}

/* Start RANKS ranks below processes of these names, which may have arguments
 * (NULL: ends the list), and store their answers. */
static void launch(const char *const *names, struct answer *answers)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = unit_fork();
	if (pid == 0) {
		for (; *names != NULL; names++) {
			pid = fork();
			if (pid != 0)
				_exit(waitpid(pid, NULL, 0) != pid);
			become(*names);
		}
		for (int i = 0; i < RANKS; i++) {
			pid = fork();
			if (pid == 0)
				rank_run(fds[1], i, i);
			waitpid(pid, NULL, 0);
		}
		_exit(0);
	}
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(read(fds[0], &answers[i], sizeof(*answers)),
				 sizeof(*answers));
	assert_int_equal(unit_exit_code(pid), 0);
	close(fds[0]);
	close(fds[1]);
}

#define LAUNCH(answers, ...)						\
	launch((const char *const []){ __VA_ARGS__, NULL }, answers)

static bool same(const struct answer *a, const struct answer *b)
{
	return a->known && b->known &&
	       memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

static void assert_one_job(const struct answer *answers)
{
	for (int i = 0; i < RANKS; i++)
		assert_true(same(&answers[0], &answers[i]));
}

static void as_hydra(void)
{
	setenv("PMI_FD", "6", 1);
	setenv("PMI_RANK", "0", 1);
	setenv("PMI_SIZE", "3", 1);
}

static void as_pmix(const char *name)
{
	setenv("PMIX_NAMESPACE", name, 1);
	setenv("PMIX_RANK", "0", 1);
}

static void as_slurm(const char *job, const char *step)
{
	setenv("SLURM_JOB_ID", job, 1);
	setenv("SLURM_STEP_ID", step, 1);
	setenv("SLURM_PROCID", "2", 1);
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
}

static void test_alone(void **state)
{
	struct answer a[RANKS];

	LAUNCH(a, "hydra_pmi_proxy");	/* no variables */
	assert_false(a[0].known || a[0].ranked);
	assert_false(gsas_launcher_evident());
	as_hydra();			/* variables, but no such ancestor */
	ask(a);
	assert_false(a[0].known || a[0].ranked);
	assert_true(gsas_launcher_evident());
}

static void test_hydra(void **state)
{
	struct answer a[RANKS], b[RANKS];

	as_hydra();
	LAUNCH(a, "mpiexec.hydra", "hydra_pmi_proxy");
	LAUNCH(b, "mpiexec.hydra", "hydra_pmi_proxy");
	assert_one_job(a);
	assert_one_job(b);
	assert_false(same(a, b));
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_true(a[i].ranked);
		assert_int_equal(a[i].rank, i);
		assert_int_equal(a[i].ranks, 3);
	}
	/* mpiexec runs on another host */
	LAUNCH(a, "sshd", "hydra_pmi_proxy");
	assert_one_job(a);
	/* ranks on other hosts have other keys */
	setenv("MPI_LOCALNRANKS", "3", 1);
	assert_false(gsas_launcher_split());
	setenv("MPI_LOCALNRANKS", "2", 1);
	assert_true(gsas_launcher_split());
	/* the proxy is hidden behind a launcher of another kind */
	LAUNCH(b, "hydra_pmi_proxy", "orted");
	assert_false(b[0].known);
}

/* mpiexec -pmi-port: other variables, and none has the number of ranks. Those
 * that an outer mpiexec has left say nothing. */
static void test_hydra_port(void **state)
{
	struct answer a[RANKS], b[RANKS];

	setenv("PMI_PORT", "host:4000", 1);
	setenv("PMI_ID", "0", 1);
	assert_true(gsas_launcher_evident());
	LAUNCH(a, "mpiexec.hydra", "hydra_pmi_proxy");
	LAUNCH(b, "mpiexec.hydra", "hydra_pmi_proxy");
	assert_one_job(a);
	assert_one_job(b);
	assert_false(same(a, b));
	as_hydra();
	LAUNCH(a, "mpiexec.hydra", "hydra_pmi_proxy");
	assert_one_job(a);
	assert_false(a[0].ranked || a[1].ranked);
}

/* HYDRA_JOB is the key on each host, if the proxy has it as an argument. */
static void test_hydra_job(void **state)
{
	struct answer a[RANKS], b[RANKS];

	as_hydra();
	setenv("MPI_LOCALNRANKS", "2", 1);
	setenv("HYDRA_JOB", "h_1_2", 1);
	LAUNCH(a, "mpiexec.hydra", "hydra_pmi_proxy --control-port h:1 "
	       "--job h_1_2 --demux poll");
	assert_one_job(a);
	assert_true(a[1].ranked && a[1].rank == 1 && !a[1].split);
	LAUNCH(b, "sshd", "hydra_pmi_proxy --control-port h:1 --job h_1_2");
	assert_true(same(a, b));
	setenv("HYDRA_JOB", "h_1_3", 1);
	LAUNCH(b, "sshd", "hydra_pmi_proxy --job h_1_3");
	assert_one_job(b);
	assert_false(same(a, b));
	/* -pmi-port; nothing else of an outer mpiexec counts */
	setenv("HYDRA_JOB", "h_1_2", 1);
	setenv("PMI_PORT", "h:4000", 1);
	setenv("PMI_ID", "0", 1);
	LAUNCH(b, "sshd", "hydra_pmi_proxy --job h_1_2");
	assert_true(same(a, b));
}

/* HYDRA_JOB is inherited, or was set by a user: the key is made of processes
 * as without it. */
static void test_hydra_job_of_others(void **state)
{
	static const char *const proxies[] = {
		"hydra_pmi_proxy", "hydra_pmi_proxy --job h_1_3",
		"hydra_pmi_proxy --job h_1_20", "hydra_pmi_proxy --job",
		"hydra_pmi_proxy --job h_1_3 h_1_2",
		"hydra_pmi_proxy --demux h_1_2",
	};
	struct answer a[RANKS], b[RANKS], c[RANKS];

	as_hydra();
	setenv("MPI_LOCALNRANKS", "2", 1);
	setenv("HYDRA_JOB", "h_1_2", 1);
	LAUNCH(a, "hydra_pmi_proxy --job h_1_2");
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
		LAUNCH(b, "hydra_pmi_proxy --job h_1_2", "sshd", proxies[i]);
		LAUNCH(c, "hydra_pmi_proxy --job h_1_2", "sshd", proxies[i]);
		assert_one_job(b);
		assert_true(b[0].split);
		assert_false(same(a, b) || same(b, c));
	}
	setenv("HYDRA_JOB", "", 1);
	LAUNCH(b, "hydra_pmi_proxy --job");
	LAUNCH(c, "hydra_pmi_proxy --job");
	assert_one_job(b);
	assert_false(same(b, c));
	/* the nearest launcher decides */
	setenv("HYDRA_JOB", "h_1_2", 1);
	as_slurm("77", "0");
	LAUNCH(b, "hydra_pmi_proxy --job h_1_2", "slurmstepd");
	assert_true(b[0].known && b[0].ranks == 4);
	assert_false(same(a, b));
}

static void test_pmix(void **state)
{
	struct answer a, b;

	as_pmix("prterun-host-1@1");
	ask(&a);
	assert_true(a.known);
	ask(&b);
	assert_true(same(&a, &b));
	as_pmix("prterun-host-1@2");
	ask(&b);
	assert_false(same(&a, &b));
	as_pmix("prterun-host-1@1");
	setenv("OMPI_MCA_orte_hnp_uri", "1.0;tcp://10.0.0.1:4000", 1);
	ask(&b);
	assert_false(same(&a, &b));
	/* Open MPI 4 uses its names again, so they need the address */
	as_pmix("2424242");
	ask(&b);
	assert_true(b.known);
	unsetenv("OMPI_MCA_orte_hnp_uri");
	ask(&b);
	assert_false(b.known);
}

/* The same name again, by another process on this host: another job. */
static void pmix_again(const char *mpirun)
{
	struct answer a[RANKS], b[RANKS];

	setup(NULL);

	as_pmix("prterun-host-1@1");
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
	LAUNCH(a, mpirun);
	LAUNCH(b, mpirun);
	assert_one_job(a);
	assert_one_job(b);
	assert_false(same(a, b));
	assert_true(a[0].ranked && a[0].rank == 1 && a[0].ranks == 3);
	/* on several hosts the name is all that the ranks share */
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
	LAUNCH(a, "prted");
	LAUNCH(b, "prted");
	assert_true(same(a, b));
}

static void test_pmix_again(void **state)
{
	pmix_again("prterun");
	pmix_again("mpirun.openmpi");
	pmix_again("mpiexec.openmpi");
}

static void test_slurm(void **state)
{
	struct answer a, b;

	as_slurm("77", "0");
	ask(&a);
	assert_true(a.known && a.ranked);
	assert_int_equal(a.rank, 2);
	assert_int_equal(a.ranks, 4);
	ask(&b);
	assert_true(same(&a, &b));
	as_slurm("77", "1");
	ask(&b);
	assert_false(same(&a, &b));
	as_slurm("78", "0");
	ask(&b);
	assert_false(same(&a, &b));
	as_slurm("77", "0");
	setenv("SLURM_RESTART_COUNT", "1", 1);
	ask(&b);
	assert_false(same(&a, &b));
	as_slurm("77", "4294967290");	/* the shell of salloc */
	ask(&b);
	assert_false(b.known || gsas_launcher_evident());
}

/* slurmstepd is hidden, and srun gives variables of PMI or PMIx as well. */
static void test_slurm_hidden(void **state)
{
	struct answer a, b;

	as_slurm("77", "5");
	ask(&a);
	as_pmix("slurm.pmix.77.5");
	setenv("PMIX_RANK", "2", 1);
	ask(&b);
	assert_true(same(&a, &b));
	assert_true(b.ranked && b.rank == 2 && b.ranks == 4);
	/* variables of another step, and of a launcher that srun started */
	as_pmix("slurm.pmix.77.50");
	setenv("PMIX_RANK", "2", 1);
	ask(&b);
	assert_false(b.known || b.ranked);
	as_pmix("slurm.pmix.77.5");
	setenv("PMIX_RANK", "1", 1);
	ask(&b);
	assert_false(b.known || b.ranked);
	unsetenv("PMIX_NAMESPACE");
	as_hydra();
	setenv("PMI_RANK", "2", 1);
	ask(&b);
	assert_false(b.known);
	setenv("PMI_JOBID", "77.5", 1);
	ask(&b);
	assert_true(same(&a, &b));
	setenv("PMI_RANK", "0", 1);
	ask(&b);
	assert_false(b.known);
}

/* ---- The log line -------------------------------------------------------- */

/* Lines with a text that this test writes in another role, which uses the key
 * of its job twice. */
static int log_lines(void)
{
	char self[4096] = "", line[512];
	int lines = 0;
	FILE *out;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	setenv("SELF", self, 1);
	out = popen("unset GSAS_JOB; \"$SELF\" key 2>&1", "re");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out) != NULL)
		lines += strstr(line, "nothing names its job") != NULL;
	assert_int_equal(pclose(out), 0);
	return lines;
}

static void test_log(void **state)
{
	assert_int_equal(log_lines(), 0);
	as_slurm("77", "0");
	assert_int_equal(log_lines(), 0);
	as_hydra();			/* it cannot be known */
	assert_int_equal(log_lines(), 1);
}

/* The nearest launcher decides, not the one whose variables are inherited. */
static void test_nested(void **state)
{
	struct answer a[RANKS], b[RANKS];

	as_slurm("77", "0");
	as_hydra();
	LAUNCH(a, "slurmstepd", "hydra_pmi_proxy");
	LAUNCH(b, "slurmstepd", "hydra_pmi_proxy");
	assert_one_job(a);
	assert_false(same(a, b));
	LAUNCH(a, "hydra_pmi_proxy", "slurmstepd");
	LAUNCH(b, "hydra_pmi_proxy", "slurmstepd");
	assert_true(same(a, b));
	assert_int_equal(a[0].ranks, 4);
	as_pmix("x");
	LAUNCH(a, "slurmstepd", "prted");
	assert_true(a[0].known);
	assert_false(same(a, b));
	LAUNCH(a, "sh");		/* it cannot be known */
	assert_false(a[0].known || a[0].ranked);
}

/* ---- mpiexec of MPICH ---------------------------------------------------- */

/* Store the path of mpiexec.hydra: UNM_MPIEXEC, or where quickstart installs
 * MPICH. false: there is none. */
static bool find_mpiexec(char *path, size_t len)
{
	const char *named = getenv("UNM_MPIEXEC"), *home = getenv("HOME");
	glob_t found;
	bool any;

	if (named != NULL) {
		snprintf(path, len, "%s", named);
		return access(path, X_OK) == 0;
	}
	snprintf(path, len, "%s/.cache/unimem/mpich-*/bin/mpiexec.hydra",
		 home != NULL ? home : "");
	any = glob(path, 0, NULL, &found) == 0;
	if (any)
		snprintf(path, len, "%s", found.gl_pathv[0]);
	globfree(&found);
	return any;
}

/*
 * Run this test as 2 ranks, the second below a shell, and read their lines:
 * the key, then HYDRA_JOB if it is set. On
 * a busy machine the ranks may end before mpiexec passes the end of its input
 * on, and then it fails (SIGPIPE): so its input is open all the time.
 */
static void mpiexec(const char *path, const char *option, char lines[2][LINE])
{
	static const char command[] = "unset GSAS_JOB; \"$MPIEXEC\" $OPTION "
		"-n 1 \"$SELF\" rank : -n 1 sh -c '\"$SELF\" rank; :' "
		"</proc/self/fd/$IN";
	char self[4096] = "", number[12];
	int in[2];
	FILE *out;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(fcntl(in[1], F_SETFD, FD_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", in[0]);
	setenv("IN", number, 1);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	setenv("SELF", self, 1);
	setenv("MPIEXEC", path, 1);
	setenv("OPTION", option, 1);
	out = popen(command, "re");
	assert_non_null(out);
	for (int i = 0; i < 2; i++)
		assert_non_null(fgets(lines[i], sizeof(lines[i]), out));
	assert_int_equal(pclose(out), 0);
	close(in[0]);
	close(in[1]);
}

static void test_mpiexec(void **state)
{
	char path[4096], first[2][LINE], second[2][LINE], third[2][LINE];

	if (!find_mpiexec(path, sizeof(path))) {
		print_message("skipped: no mpiexec.hydra of MPICH\n");
		skip();
	}
	mpiexec(path, "", first);
	mpiexec(path, "", second);
	mpiexec(path, "-pmi-port", third);
	assert_string_equal(first[0], first[1]);
	assert_string_equal(second[0], second[1]);
	assert_string_equal(third[0], third[1]);
	assert_string_not_equal(first[0], second[0]);
	assert_string_not_equal(first[0], third[0]);
}

/*
 * Two proxies below processes that are not mpiexec, as on two other hosts: an
 * mpiexec that gives HYDRA_JOB (mpich-patches/hydra-job.patch) gives both ranks
 * one key.
 */
static void test_mpiexec_hosts(void **state)
{
	static const char script[] = "#!/bin/sh\nwhile [ \"$1\" = -x ]; do "
		"shift; done\nshift\nsh -c \"$*; :\"\nexit\n";
	char path[4096], launcher[] = "/tmp/test_gsas_launcher.XXXXXX";
	char option[256], lines[2][LINE];
	int fd;

	if (!find_mpiexec(path, sizeof(path))) {
		print_message("skipped: no mpiexec.hydra of MPICH\n");
		skip();
	}
	fd = mkstemp(launcher);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	snprintf(option, sizeof(option), "-launcher ssh -launcher-exec %s "
		 "-hosts 192.0.2.1:1,192.0.2.2:1", launcher);
	mpiexec(path, option, lines);
	unlink(launcher);
	if (strchr(lines[0], ' ') != NULL)
		assert_string_equal(lines[0], lines[1]);
	else
		assert_string_not_equal(lines[0], lines[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_alone, setup),
		cmocka_unit_test_setup(test_hydra, setup),
		cmocka_unit_test_setup(test_hydra_port, setup),
		cmocka_unit_test_setup(test_hydra_job, setup),
		cmocka_unit_test_setup(test_hydra_job_of_others, setup),
		cmocka_unit_test_setup(test_pmix, setup),
		cmocka_unit_test_setup(test_pmix_again, setup),
		cmocka_unit_test_setup(test_slurm, setup),
		cmocka_unit_test_setup(test_slurm_hidden, setup),
		cmocka_unit_test_setup(test_nested, setup),
		cmocka_unit_test_setup(test_log, setup),
		cmocka_unit_test_setup(test_mpiexec, setup),
		cmocka_unit_test_setup(test_mpiexec_hosts, setup),
	};

	const char *job;

	if (argc > 1 && strcmp(argv[1], "key") == 0) {
		uint64_t key[2];

		return gsas_job_key(key) != 0 || gsas_job_key(key) != 0;
	}
	if (argc > 1 && strcmp(argv[1], "rank") == 0) {
		/* gsas.h makes the linker take the constructor that set it */
		(void)gsas_board();
		job = getenv("HYDRA_JOB");
		printf("%s%s%s\n", getenv("GSAS_JOB"), job != NULL ? " " : "",
		       job != NULL ? job : "");
		return 0;
	}
	if (argc == 1) {		/* start again, with an argument */
		char self[4096] = "", room[ARGUMENTS + 1] = "";

		memset(room, '-', ARGUMENTS);
		if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
			execl(self, argv[0], room, NULL);
		return 1;
	}
	g_arguments = argv[1];
	return unit_run(tests);
}
