/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_secure.c - a set-id program that needs a service does not start a
 * program that the caller names in the environment.
 *
 * The test copies itself into a folder, gives the copy another group and the
 * set-group-ID bit, and starts the copy with a GSASD and a PATH that lead to a
 * script which leaves a mark. Without the bit the script is run, which shows
 * that it can be found. The test is skipped if the caller has no second group,
 * or if the kernel ignores the bit (nosuid, no_new_privs).
 *
 * Where gsasd is installed, a copy starts it. Such a service ends by itself,
 * and after each case the test waits for that.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "gsas.h"
#include "hal/hal_param.h"
#include "lib/unit.h"

#define PLAIN	20			/* exit codes of the copy */
#define SECURE	21
#define CHOSEN	22			/* a string of the caller was used */

#define END_MS	20000			/* for the end of a service */

static char g_dir[64], g_copy[80], g_mark[80], g_script[80];
static char g_board[16];		/* board of the copies */

/* The main function of the copy. */
static int role(void)
{
	struct hal_params params;
	gsas_addr addr;

	/* The board has no service: one is started, or not. A page that is not
	 * freed would keep the service running. */
	if (gsas_alloc(1, GSAS_HERE, GSAS_JOB, NULL, &addr) == 0)
		(void)gsas_free(addr);
	if (getauxval(AT_SECURE) == 0)
		return PLAIN;
	setenv("FI_UNIMEM_DEV", "/caller", 1);
	if (hal_params_load(&params) != 0 ||
	    strcmp(params.dev, "/caller") == 0)
		return CHOSEN;
	return SECURE;
}

static void copy_self(void)
{
	char buf[65536];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(g_copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		assert_int_equal(write(out, buf, (size_t)n), n);
	close(in);
	close(out);
}

static void write_script(void)
{
	FILE *file = fopen(g_script, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\necho \"$@\" >>%s\n", g_mark);
	fclose(file);
	assert_int_equal(chmod(g_script, 0755), 0);
}

/* Is the process /proc/NAME a service of the board that a copy started? */
static bool is_service(const char *name)
{
	char path[300], want[64], text[4200];
	int fd, len;
	ssize_t n;

	len = snprintf(want, sizeof(want), "gsasd%c--auto%c--board%c%s%c", 0, 0,
		       0, g_board, 0);
	snprintf(path, sizeof(path), "/proc/%s/cmdline", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && memmem(text, (size_t)n, want, (size_t)len) != NULL;
}

static bool service_lives(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	bool lives = false;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL)
		lives |= d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
			 is_service(d->d_name);
	closedir(dir);
	return lives;
}

static bool service_ends(void)
{
	for (int ms = 0; ms < END_MS && service_lives(); ms += 10)
		usleep(10000);
	return !service_lives();
}

static int setup(void **state)
{
	snprintf(g_board, sizeof(g_board), "%d", (int)(getpid() % 30000));
	snprintf(g_dir, sizeof(g_dir), "/tmp/test_gsas_secure.XXXXXX");
	assert_non_null(mkdtemp(g_dir));
	snprintf(g_copy, sizeof(g_copy), "%s/copy", g_dir);
	snprintf(g_mark, sizeof(g_mark), "%s/mark", g_dir);
	snprintf(g_script, sizeof(g_script), "%s/gsasd", g_dir);
	copy_self();
	write_script();
	return 0;
}

static int teardown(void **state)
{
	bool ends = service_ends();

	if (!ends)
		print_error("a service of board %s is left\n", g_board);
	unlink(g_copy);
	unlink(g_mark);
	unlink(g_script);
	return rmdir(g_dir) != 0 || !ends ? -1 : 0;
}

/* A group for the copy other than the caller's. -1: none. */
static gid_t other_group(void)
{
	gid_t groups[256];
	int n;

	if (geteuid() == 0)
		return getegid() + 1;
	n = getgroups(256, groups);
	for (int i = 0; i < n; i++)
		if (groups[i] != getegid())
			return groups[i];
	return (gid_t)-1;
}

/* Starts the copy, with GSASD, or with PATH if gsasd is NULL. Returns its exit
 * code. */
static int start_copy(const char *gsasd)
{
	pid_t pid;

	unlink(g_mark);
	pid = unit_fork();
	if (pid == 0) {
		unsetenv("FI_UNIMEM_HAL");	/* the emulation */
		setenv("FI_UNIMEM_BOARDS", "30000", 1);
		setenv("FI_UNIMEM_BOARD", g_board, 1);
		if (gsasd != NULL)
			setenv("GSASD", gsasd, 1);
		else if (unsetenv("GSASD") == 0)
			setenv("PATH", g_dir, 1);
		execl(g_copy, g_copy, "role", (char *)NULL);
		_exit(1);
	}
	return unit_exit_code(pid);
}

static void test_plain_finds_it(void **state)
{
	assert_int_equal(chmod(g_copy, 0755), 0);
	assert_int_equal(start_copy(g_script), PLAIN);
	assert_int_equal(access(g_mark, F_OK), 0);
	if (access(GSAS_BINDIR "/gsasd", F_OK) == 0) {
		print_message("skip plain_finds_it_in_path\n");
		return;
	}
	assert_int_equal(start_copy(NULL), PLAIN);
	assert_int_equal(access(g_mark, F_OK), 0);
}

/* The copy starts a service, and leaves nothing that keeps it running. */
static void test_service_ends(void **state)
{
	const char *gsasd = getenv("GSASD");

	if (gsasd == NULL || access(gsasd, X_OK) != 0) {
		print_message("skipped: GSASD names no program\n");
		skip();
	}
	assert_int_equal(chmod(g_copy, 0755), 0);
	assert_int_equal(start_copy(gsasd), PLAIN);
	assert_true(service_lives());	/* for another second */
	assert_true(service_ends());
}

static void test_secure_does_not(void **state)
{
	gid_t gid = other_group();
	int code;

	if (gid == (gid_t)-1) {
		print_message("skipped: the caller has one group only\n");
		skip();
	}
	assert_int_equal(chown(g_copy, (uid_t)-1, gid), 0);
	assert_int_equal(chmod(g_copy, 02755), 0);
	for (int named = 0; named < 2; named++) {
		code = start_copy(named ? g_script : NULL);
		if (code == PLAIN) {
			print_message("skipped: set-group-ID has no effect\n");
			skip();
		}
		assert_int_equal(code, SECURE);
		assert_int_not_equal(access(g_mark, F_OK), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain_finds_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_secure_does_not, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_service_ends, setup,
						teardown),
	};

	if (argc > 1 && strcmp(argv[1], "role") == 0)
		return role();
	return unit_run(tests);
}
