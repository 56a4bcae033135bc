/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_left.c - how much memory is left, computed from the files of
 * control groups. The files of both versions are made by the test.
 *
 * Real groups are in test_limits.c and test_gsas_memory.c.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include "hal/hal.h"
#include "hal/hal_limit.h"
#include "lib/unit.h"
#include "util/unm_clock.h"

#define MIB	(UINT64_C(1) << 20)
#define SPARE	(UINT64_C(512) << 10)	/* bytes of a group that stay free */
#define V1	"/sys/fs/cgroup/memory"
#define V2	"/sys/fs/cgroup"
#define NONE	"9223372036854771712"	/* version 1's value for no limit */

static char g_root[64];

/* Writes a file below the test's root, and makes its folders. */
static void say(const char *path, const char *text)
{
	char name[2048];
	FILE *f;

	assert_true(snprintf(name, sizeof(name), "%s%s", g_root, path) <
		    (int)sizeof(name));
	for (char *at = name + strlen(g_root) + 1;
	     (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(name, 0700);
		*at = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void say_mib(const char *path, uint64_t mib)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(mib * MIB));
	say(path, text);
}

/* Begins with 1000 MiB of memory, 600 of them available, and no swap. */
static int begin(void **state)
{
	snprintf(g_root, sizeof(g_root), "/tmp/test_limit_left.XXXXXX");
	assert_non_null(mkdtemp(g_root));
	say("/proc/meminfo", "MemTotal:    1024000 kB\nMemFree: 1 kB\n"
	    "MemAvailable: 614400 kB\nSwapFree:          0 kB\n");
	say("/proc/self/cgroup", "0::/\n");
	hal_limit_root(g_root);
	return 0;
}

static int end(void **state)
{
	char command[128];

	hal_limit_root("");
	snprintf(command, sizeof(command), "rm -rf %s", g_root);
	return system(command);
}

/* A list of groups and the total are valid for 10 ms. */
static void wait_for_list(void)
{
	usleep(11000);
}

static void test_machine(void **state)
{
	assert_true(hal_memory_left(UINT64_MAX) == 600 * MIB);
	assert_true(hal_memory_total() == 1000 * MIB);
	say("/proc/meminfo", "MemTotal:    1024000 kB\n"
	    "MemAvailable: 614400 kB\nSwapFree:     102400 kB\n");
	assert_true(hal_memory_left(UINT64_MAX) == 700 * MIB);
	say("/proc/meminfo", "\n");
	wait_for_list();
	assert_true(hal_memory_left(UINT64_MAX) == UINT64_MAX);
	assert_true(hal_memory_total() == UINT64_MAX);
}

/* A service asks for the total at each check, and it is read once in 10 ms. */
static void test_total_is_kept(void **state)
{
	uint64_t begin, total;

	do {
		say("/proc/meminfo", "MemTotal:    1024000 kB\n");
		begin = unm_now_ns();
		hal_limit_root(g_root);
		assert_true(hal_memory_total() == 1000 * MIB);
		say("/proc/meminfo", "MemTotal:    2048000 kB\n");
		total = hal_memory_total();
	} while (unm_now_ns() - begin >= 10000000);
	assert_true(total == 1000 * MIB);
	wait_for_list();
	assert_true(hal_memory_total() == 2000 * MIB);
}

/* The group with the least memory left counts, of all on the way to the
 * root. */
static void test_version_2(void **state)
{
	say("/proc/self/cgroup", "0::/a.slice/b.scope/c\n");
	say(V2 "/a.slice/b.scope/c/memory.max", "max\n");
	say_mib(V2 "/a.slice/b.scope/c/memory.current", 1);
	say_mib(V2 "/a.slice/b.scope/memory.max", 500);
	say_mib(V2 "/a.slice/b.scope/memory.current", 100);
	say_mib(V2 "/a.slice/memory.max", 300);
	say_mib(V2 "/a.slice/memory.current", 10);
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    290 * MIB - SPARE);
	assert_true(hal_memory_total() == 300 * MIB);
	/* other processes in the tightest group */
	say_mib(V2 "/a.slice/memory.current", 295);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    5 * MIB - SPARE);
	say_mib(V2 "/a.slice/memory.current", 301);
	assert_true(hal_memory_left(UINT64_MAX) == 0);
	/* cached files, which the kernel can drop, are part of the usage */
	say(V2 "/a.slice/memory.stat", "anon 5\nactive_file 1048576\n"
	    "inactive_file 2097152\nother 7\n");
	assert_true(hal_memory_left(UINT64_MAX) ==
		    3 * MIB - SPARE);
	assert_true(hal_memory_left(0) == 0);
	/* the limit is changed while the process runs */
	say_mib(V2 "/a.slice/memory.max", 3000);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    400 * MIB - SPARE);
	say(V2 "/a.slice/b.scope/memory.max", "max\n");
	assert_true(hal_memory_left(UINT64_MAX) == 600 * MIB);
}

/* A process that runs gets its first limit, and is moved to another group. */
static void test_limit_comes_later(void **state)
{
	say("/proc/self/cgroup", "0::/a.slice/b.scope\n");
	say(V2 "/a.slice/b.scope/memory.max", "max\n");
	say_mib(V2 "/a.slice/memory.current", 30);
	say_mib(V2 "/c.slice/memory.max", 50);
	say_mib(V2 "/c.slice/memory.current", 20);
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) == 600 * MIB);
	say_mib(V2 "/a.slice/memory.max", 100);
	wait_for_list();
	assert_true(hal_memory_left(UINT64_MAX) == 70 * MIB - SPARE);
	assert_true(hal_memory_total() == 100 * MIB);
	say("/proc/self/cgroup", "0::/c.slice\n");
	wait_for_list();
	assert_true(hal_memory_total() == 50 * MIB);
	assert_int_equal(hal_limit_check("test", 30 * MIB), -FI_ENOMEM);
	assert_true(hal_memory_left(UINT64_MAX) == 30 * MIB - SPARE);
}

static struct rlimit g_had;	/* before no_descriptors() */

static void no_descriptors(void)
{
	struct rlimit none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &g_had), 0);
	none = g_had;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void descriptors(void)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &g_had), 0);
}

/* Without a descriptor the groups cannot be listed. No empty list is valid for
 * 10 ms then: the limit counts as soon as files can be read again. */
static void test_no_descriptor(void **state)
{
	uint64_t left;

	say("/proc/self/cgroup", "0::/a.slice\n");
	say_mib(V2 "/a.slice/memory.max", 100);
	say_mib(V2 "/a.slice/memory.current", 30);
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) == 70 * MIB - SPARE);
	wait_for_list();
	no_descriptors();
	left = hal_memory_left(UINT64_MAX);
	descriptors();
	assert_true(left == UINT64_MAX);
	assert_true(hal_memory_left(UINT64_MAX) == 70 * MIB - SPARE);
}

/* Without a descriptor the last total counts. */
static void test_no_descriptor_total(void **state)
{
	uint64_t total;

	assert_true(hal_memory_total() == 1000 * MIB);
	/* the list of groups is new, the total of the last list is old */
	wait_for_list();
	assert_true(hal_memory_left(UINT64_MAX) == 600 * MIB);
	no_descriptors();
	total = hal_memory_total();
	descriptors();
	assert_true(total == 1000 * MIB);
}

static void test_version_1(void **state)
{
	say("/proc/self/cgroup", "9:name=systemd:/x\n8:pids:/memory:/y\n"
	    "4:hugetlb,memory:/box/inner\n1:cpu:/\n0::/\n");
	say(V1 "/box/inner/memory.limit_in_bytes", NONE);
	say_mib(V1 "/box/memory.limit_in_bytes", 64);
	say_mib(V1 "/box/memory.usage_in_bytes", 24);
	say(V1 "/memory.limit_in_bytes", NONE);
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    40 * MIB - SPARE);
	assert_true(hal_memory_total() == 64 * MIB);
	/* memory and swap have one limit in version 1 */
	say("/proc/meminfo", "MemTotal:    1024000 kB\n"
	    "MemAvailable: 614400 kB\nSwapFree:     102400 kB\n");
	say_mib(V1 "/box/memory.memsw.limit_in_bytes", 70);
	say_mib(V1 "/box/memory.memsw.usage_in_bytes", 24);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    46 * MIB - SPARE);
}

/* In a container the path that the kernel reports does not exist; the
 * container's group is the root of its file system. */
static void test_container(void **state)
{
	char path[1000];

	memset(path, 'a', sizeof(path));
	for (int i = 100; i < (int)sizeof(path); i += 100)
		path[i] = '/';
	memcpy(path, "0::/", 4);
	path[sizeof(path) - 1] = '\0';
	say("/proc/self/cgroup", path);
	say_mib(V2 "/memory.max", 80);
	say_mib(V2 "/memory.current", 30);
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    50 * MIB - SPARE);
	say("/proc/self/cgroup", "0::/../..\n");
	hal_limit_root(g_root);
	assert_true(hal_memory_left(UINT64_MAX) ==
		    50 * MIB - SPARE);
}

/* The last 512 KiB of a group are left to the process's stack and heap: a
 * process that uses up its group is killed by the kernel. */
static void test_spare(void **state)
{
	say_mib(V2 "/memory.max", 80);
	say_mib(V2 "/memory.current", 30);
	hal_limit_root(g_root);
	assert_int_equal(hal_limit_check("test", 50 * MIB - SPARE + 1),
			 -FI_ENOMEM);
	assert_int_equal(hal_limit_check("test", 50 * MIB - SPARE), 0);
	/* cached files may provide the spare bytes */
	say(V2 "/memory.stat", "active_file 524288\n");
	assert_int_equal(hal_limit_check("test", 50 * MIB), 0);
	/* nothing left but spare bytes */
	say(V2 "/memory.stat", "active_file 0\n");
	say_mib(V2 "/memory.current", 80);
	assert_true(hal_memory_left(0) == 0);
}

/* Malformed lines of /proc/self/cgroup name no group. */
static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"", "\n", ":", "::", "4:memory", "10::/box\n", "4:xmemory:/box",
		"4:memory,:", "4:memoryx,cpu:/box\n",
	};

	say_mib(V1 "/box/memory.limit_in_bytes", 1);
	say_mib(V1 "/box/memory.usage_in_bytes", 1);
	say_mib(V2 "/box/memory.max", 1);
	say_mib(V2 "/box/memory.current", 1);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		say("/proc/self/cgroup", lines[i]);
		hal_limit_root(g_root);
		assert_true(hal_memory_left(UINT64_MAX) == 600 * MIB);
	}
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_MAIN(
	TEST(test_machine),
	TEST(test_total_is_kept),
	TEST(test_version_2),
	TEST(test_limit_comes_later),
	TEST(test_no_descriptor),
	TEST(test_no_descriptor_total),
	TEST(test_version_1),
	TEST(test_container),
	TEST(test_spare),
	TEST(test_nonsense),
)
