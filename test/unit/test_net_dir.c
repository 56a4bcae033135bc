/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_dir.c - the directory of a job's hosts: reading the hosts file and
 * Slurm's list, the numbers of boards, which host is this one, and the key
 * file.
 */
#include <sys/stat.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_dir.h"
#include "hal/net/hal_net_key.h"
#include "lib/unit.h"

static char said[512];
static unsigned lines;

static void listen_to(int level, const char *line)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

static int setup(void **state)
{
	lines = 0;
	said[0] = '\0';
	hal_log_set(listen_to);
	return 0;
}

static int teardown(void **state)
{
	hal_log_set(NULL);
	return 0;
}

/* Write the hosts as "name first+boards; ..." */
static void print(const struct net_dir *dir, char *text, size_t len)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < dir->nhosts && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%s%s %u+%u",
				       i != 0 ? "; " : "", dir->host[i].name,
				       dir->host[i].first, dir->host[i].boards);
}

static void check(struct net_dir *dir, const char *what, const char *hosts)
{
	char text[4096];

	print(dir, text, sizeof(text));
	if (strcmp(text, hosts) != 0)
		unit_fail("%s is %s, expected %s", what, text, hosts);
	assert_int_equal(lines, 0);
	net_dir_free(dir);
}

static void refused(int ret, const char *what, const char *why)
{
	if (ret != -FI_EINVAL || lines != 1 || strstr(said, why) == NULL)
		unit_fail("%s: result %d, %u lines, the last: %s", what, ret,
			  lines, said);
	lines = 0;
}

/* ---- Hosts file -------------------------------------------------------- */

static const struct {
	const char *text, *hosts;
} files[] = {
	{ "a", "a 0+2" },
	{ "a\nb\n", "a 0+2; b 2+2" },
	{ "# all\n\n  a boards=3 # fast\n\tb\tboards=1\r\n\r\nc",
	  "a 0+3; b 3+1; c 4+2" },
	{ "10.78.0.1\n10.78.0.2 boards=65533", "10.78.0.1 0+2; "
	  "10.78.0.2 2+65533" },
	{ "fd00::1\n::2\nnode-1.cluster_a", "fd00::1 0+2; ::2 2+2; "
	  "node-1.cluster_a 4+2" },
	{ "123\n124", "123 0+2; 124 2+2" },
	{ "a.b\na.c\nab", "a.b 0+2; a.c 2+2; ab 4+2" },
};

static const struct {
	const char *text, *why;
} bad_files[] = {
	{ "", "names no host" },
	{ "\n \n# a\n", "names no host" },
	{ "a b", "line 1: b: use: host [boards=N]" },
	{ "a\nb boards=1 2", "line 2: 2: use: host" },
	{ "a boards=0", "use 1 to 65535 boards" },
	{ "a boards=", "use 1 to 65535 boards" },
	{ "a boards=-1", "use 1 to 65535 boards" },
	{ "a boards=1x", "use 1 to 65535 boards" },
	{ "a boards=65536", "use 1 to 65535 boards" },
	{ "a boards=99999999999999999999999", "use 1 to 65535 boards" },
	{ "a Boards=1", "use: host [boards=N]" },
	{ "a\nb boards=65534", "more than 65535 boards" },
	{ "a\nb\nA", "names A twice" },
	{ "a\na-b\na.c", "names a.c twice, also as a" },
	{ "a.c\nb\nA.C", "names A.C twice" },
	{ "fd00::5\nb\nfd00:0::5", "names fd00:0::5 twice" },
	{ "10.0.0.1\n::ffff:10.0.0.1", "twice, also as 10.0.0.1" },
	{ "a/b", "no name and no IP address" },
	{ "-a", "no name and no IP address" },
	{ "a\x01", "a?: no name" },
	{ "a\nfd00::1::2", "line 2: fd00::1::2: no IP address" },
	{ "10.0.0.1:22", "no IP address" },
};

static void test_hosts_file(void **state)
{
	struct net_dir *dir;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(net_dir_read(files[i].text,
					      strlen(files[i].text), "hosts",
					      2, &dir), 0);
		check(dir, files[i].text, files[i].hosts);
	}
}

static void test_bad_hosts_file(void **state)
{
	struct net_dir *dir = NULL;
	char text[600];

	for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++) {
		refused(net_dir_read(bad_files[i].text,
				     strlen(bad_files[i].text), "hosts", 2,
				     &dir), bad_files[i].text,
			bad_files[i].why);
		assert_null(dir);
	}
	refused(net_dir_read("a\0b", 3, "hosts", 2, &dir), "a zero byte",
		"a?b: no name");
	memset(text, 'a', sizeof(text));
	refused(net_dir_read(text, NET_DIR_NAME, "hosts", 2, &dir),
		"a long name", "no name");
}

/* ---- Slurm's list ------------------------------------------------------ */

static const struct {
	const char *list, *hosts;
} lists[] = {
	{ "n1", "n1 0+1" },
	{ "n1,n2", "n1 0+1; n2 1+1" },
	{ "n[1-3]", "n1 0+1; n2 1+1; n3 2+1" },
	{ "n[09-10,12],login", "n09 0+1; n10 1+1; n12 2+1; login 3+1" },
	{ "r[1-2]n[1,3]-ib", "r1n1-ib 0+1; r1n3-ib 1+1; r2n1-ib 2+1; "
	  "r2n3-ib 3+1" },
	{ "n[007-007]", "n007 0+1" },
	{ "n[98-101]", "n98 0+1; n99 1+1; n100 2+1; n101 3+1" },
};

static const struct {
	const char *list, *why;
} bad_lists[] = {
	{ "", "names no host" },
	{ "n[1-", "] is missing" },
	{ "n[1,2", "] is missing" },
	{ "n[]", "no range of numbers" },
	{ "n[1,]", "no range of numbers" },
	{ "n[a-b]", "no range of numbers" },
	{ "n[3-1]", "no range of numbers" },
	{ "n[-1]", "no range of numbers" },
	{ "n[1-99999999999]", "no range of numbers" },
	{ "n[0-4000000]", "no range of numbers" },
	{ "n[0-65534],m", "more than 65535 boards" },
	{ "n[00000000000000000000000001]", "no range of numbers" },
	{ "n1,,n2", "no name" },
	{ "n]", "no name" },
	{ "n[1],n1", "names n1 twice" },
	{ "n[1]]", "no name" },
};

static void test_slurm_list(void **state)
{
	struct net_dir *dir;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		assert_int_equal(net_dir_slurm(lists[i].list, "list", 1, &dir),
				 0);
		check(dir, lists[i].list, lists[i].hosts);
	}
}

static void test_bad_slurm_list(void **state)
{
	struct net_dir *dir = NULL;
	char deep[2001];

	for (size_t i = 0; i < sizeof(bad_lists) / sizeof(bad_lists[0]); i++) {
		refused(net_dir_slurm(bad_lists[i].list, "list", 1, &dir),
			bad_lists[i].list, bad_lists[i].why);
		assert_null(dir);
	}
	/* the length of a name bounds the depth */
	for (int i = 0; i < 2000; i++)
		deep[i] = "[1]"[i % 3];
	deep[2000] = '\0';
	refused(net_dir_slurm(deep, "list", 1, &dir), "many brackets",
		"too long");
}

/* ---- Numbers ----------------------------------------------------------- */

static void test_board_of_host(void **state)
{
	static const char text[] = "a boards=1\nb boards=5\nc\nd boards=2\n";
	static const int host[] = { 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, -1, -1 };
	struct net_dir *dir;

	assert_int_equal(net_dir_read(text, strlen(text), "hosts", 3, &dir),
			 0);
	assert_int_equal(dir->boards, 11);
	for (uint32_t b = 0; b < 13; b++)
		assert_int_equal(net_dir_of_board(dir, b), host[b]);
	assert_int_equal(net_dir_of_board(dir, UINT32_MAX), -1);
	net_dir_free(dir);
}

static void test_port(void **state)
{
	assert_int_equal(net_dir_port(7450, 0, 0), 7450);
	assert_int_equal(net_dir_port(7450, 0, 63), 7513);
	assert_int_equal(net_dir_port(7450, 1, 0), 7514);
	assert_int_equal(net_dir_port(7450, 3, 5), 7647);
	assert_int_equal(net_dir_port(7450, 0, 64), 0);
	assert_int_equal(net_dir_port(65535, 0, 0), 65535);
	assert_int_equal(net_dir_port(65535, 0, 1), 0);
	assert_int_equal(net_dir_port(7450, 65534, 63), 0);
	assert_int_equal(net_dir_port(7450, UINT32_MAX, 0), 0);
}

/* ---- This host --------------------------------------------------------- */

static int self_of(const char *text, const char *ip, const char *name)
{
	const char *const names[] = { name };
	uint8_t own[1][16] = { { 0 } };
	struct net_dir *dir;
	uint32_t two[2];
	int ret;

	assert_true(net_dir_ip(ip, own[0]));
	assert_int_equal(net_dir_read(text, strlen(text), "hosts", 1, &dir),
			 0);
	ret = net_dir_self(dir, (const uint8_t (*)[16])own, 1, names, 1, two);
	net_dir_free(dir);
	return ret;
}

static void test_self(void **state)
{
	assert_int_equal(self_of("10.0.0.1\n10.0.0.2", "10.0.0.2", "x"), 1);
	assert_int_equal(self_of("10.0.0.1\n10.0.0.2", "10.0.0.3", "x"),
			 NET_DIR_NONE);
	assert_int_equal(self_of("::1:2\nfd00:0::5", "fd00::5", "x"), 1);
	assert_int_equal(self_of("a\nb", "::1", "B"), 1);
	assert_int_equal(self_of("a\nb.c.de", "::1", "b"), 1);
	assert_int_equal(self_of("a\nb", "::1", "b.c.de"), 1);
	assert_int_equal(self_of("a.c\nb.c", "::1", "b.d"), NET_DIR_NONE);
	assert_int_equal(self_of("ab\nb", "::1", "a"), NET_DIR_NONE);
	assert_int_equal(self_of("::1\nb", "::1", "b"), NET_DIR_TWICE);
	/* an address is no name */
	assert_int_equal(self_of("10.0.0.1\nb", "::1", "10"), NET_DIR_NONE);
}

static void test_find(void **state)
{
	static const char text[] = "a\nb.c\n10.0.0.9\nfd00::9";
	struct net_dir *dir;

	assert_int_equal(net_dir_read(text, strlen(text), "hosts", 1, &dir),
			 0);
	assert_int_equal(net_dir_find(dir, "A"), 0);
	assert_int_equal(net_dir_find(dir, "b.c"), 1);
	assert_int_equal(net_dir_find(dir, "b"), -1);
	assert_int_equal(net_dir_find(dir, "10.0.0.9"), 2);
	assert_int_equal(net_dir_find(dir, "fd00:0:0::9"), 3);
	assert_int_equal(net_dir_find(dir, "10.0.0.8"), -1);
	net_dir_free(dir);
}

/* ---- Key file ---------------------------------------------------------- */

#define HEX32	"00112233445566778899aAbBcCdDeEfF"

static void test_key_text(void **state)
{
	static const char *const bad[] = {
		"", "\n", "0011", HEX32 "0", HEX32 "x", "x" HEX32, HEX32 "\n0",
		" " HEX32, HEX32 "\n\t",
	};
	struct net_key key = { .len = 7 };
	char text[NET_KEY_MAX + 3];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(net_key_parse(bad[i], strlen(bad[i]), &key),
				 -FI_EINVAL);
	assert_int_equal(key.len, 7);
	assert_int_equal(net_key_parse(HEX32 "\n", 33, &key), 0);
	assert_int_equal(key.len, 16);
	assert_int_equal(key.bytes[1], 0x11);
	assert_int_equal(key.bytes[15], 0xff);
	assert_int_equal(net_key_parse(HEX32, 32, &key), 0);
	memset(text, 'f', sizeof(text));
	assert_int_equal(net_key_parse(text, NET_KEY_MAX, &key), 0);
	assert_int_equal(key.len, NET_KEY_MAX / 2);
	assert_int_equal(net_key_parse(text, NET_KEY_MAX + 2, &key),
			 -FI_EINVAL);
}

/* Only a file of this user that others may not use. */
static void test_key_file(void **state)
{
	char path[] = "test_net_dir.XXXXXX";
	struct net_key key;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, HEX32 "\n", 33), 33);
	for (unsigned mode = 0; mode < 0100; mode++) {
		assert_int_equal(fchmod(fd, 0600 | mode), 0);
		if (mode == 0)
			assert_int_equal(net_key_load(path, &key), 0);
		else
			refused(net_key_load(path, &key), path, "chmod 600");
		assert_int_equal(key.len, mode == 0 ? 16 : 0);
	}
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(ftruncate(fd, 31), 0);
	refused(net_key_load(path, &key), path, "hex digits");
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	refused(net_key_load(path, &key), path, "hex digits");
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 65534, 0), 0);
		refused(net_key_load(path, &key), path, "belongs to user");
	}
	close(fd);
	unlink(path);
	refused(net_key_load(path, &key), path, "No such file");
	refused(net_key_load("/dev/null", &key), path, "no regular file");
}

/* The usual key file may be missing; a bad one is not used. */
static void test_usual_key_file(void **state)
{
	char dir[] = "test_net_dir.XXXXXX", path[64];
	struct net_key key = { .len = 1 };
	FILE *f;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("HOME", dir, 1), 0);
	assert_int_equal(net_key_load("", &key), 0);
	assert_int_equal(key.len, 0);
	snprintf(path, sizeof(path), "%s/.unimem", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/.unimem/key", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(HEX32, f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(net_key_load("", &key), 0);
	assert_int_equal(key.len, 16);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(net_key_load("", &key), 0);
	assert_int_equal(key.len, 0);
	assert_int_equal(lines, 1);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
}

#define DIR_TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIR_TEST(test_hosts_file),
		DIR_TEST(test_bad_hosts_file),
		DIR_TEST(test_slurm_list),
		DIR_TEST(test_bad_slurm_list),
		DIR_TEST(test_board_of_host),
		DIR_TEST(test_port),
		DIR_TEST(test_self),
		DIR_TEST(test_find),
		DIR_TEST(test_key_text),
		DIR_TEST(test_key_file),
		DIR_TEST(test_usual_key_file),
	};

	return unit_run(tests);
}
