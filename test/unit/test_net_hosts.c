/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_hosts.c - which line of the hosts file is this host, addresses that
 * the name service does not know, and labels of addresses.
 *
 * The name of this host and the name service are those of the test.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <rdma/fi_errno.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_hosts.h"
#include "lib/unit.h"

static const char *hostname = "n1";
static const char *resolved[4];		/* name, address, name, address */
static unsigned asked, lines;

int gethostname(char *name, size_t len)
{
	snprintf(name, len, "%s", hostname);
	return 0;
}

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **out)
{
	struct {
		struct addrinfo ai;
		struct sockaddr_in in;
	} *found;

	(void)service;
	(void)hints;
	asked++;
	for (int i = 0; i < 4; i += 2) {
		if (resolved[i] == NULL || strcmp(resolved[i], name) != 0)
			continue;
		found = calloc(1, sizeof(*found));
		assert_non_null(found);
		found->in.sin_family = AF_INET;
		assert_int_equal(inet_pton(AF_INET, resolved[i + 1],
					   &found->in.sin_addr), 1);
		found->ai.ai_addr = (struct sockaddr *)&found->in;
		*out = &found->ai;
		return 0;
	}
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

static void count_lines(int level, const char *line)
{
	(void)line;
	lines += level == 0;
}

/* The directory of a hosts file with this text; NULL: it is refused. */
static struct net_dir *directory(const char *text)
{
	char path[] = "test_net_hosts.XXXXXX";
	struct hal_params params = { .boards = 1 };
	struct net_dir *dir = NULL;
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	snprintf(params.net_hosts, sizeof(params.net_hosts), "%s", path);
	ret = net_hosts_open(&params, &dir);
	unlink(path);
	assert_int_equal(ret, dir != NULL ? 0 : -FI_EINVAL);
	return dir;
}

/* The line of this host, from 0; -1: none. */
static int line_of(const char *text, const char *slurm)
{
	struct net_dir *dir;
	int self;

	unsetenv("SLURMD_NODENAME");
	if (slurm != NULL)
		setenv("SLURMD_NODENAME", slurm, 1);
	dir = directory(text);
	self = dir != NULL ? (int)dir->self : -1;
	net_dir_free(dir);
	return self;
}

static void test_which_line(void **state)
{
	/* Hydra has copied the variable of the first host */
	assert_int_equal(line_of("n2\nn1", "n2"), 1);
	assert_int_equal(line_of("n2\nn1", NULL), 1);
	assert_int_equal(line_of("n2\n127.0.0.1", "n2"), 1);
	assert_int_equal(line_of("n3\nn2", "n2"), 1);
	assert_int_equal(line_of("n3\nn4", "n2"), -1);
}

/* A line found by name is not this host if its address is another's. */
static void test_address_of_the_line(void **state)
{
	resolved[0] = "n2";
	resolved[1] = "192.0.2.7";
	assert_int_equal(line_of("n3\nn2", "n2"), -1);
	resolved[2] = "n3";
	resolved[3] = "127.0.0.1";
	assert_int_equal(line_of("n3\nn2", "n2"), 0);
	resolved[0] = "n1";
	assert_int_equal(line_of("n2\nn1", "n2"), 0);
	resolved[1] = "127.0.1.1";
	assert_int_equal(line_of("n2\nn1", "n2"), 1);
	memset(resolved, 0, sizeof(resolved));
}

/* The list of Slurm, which the user did not ask for. */
static void test_list_of_slurm(void **state)
{
	struct hal_params params = { .boards = 1 };
	struct net_dir *dir;

	setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
	assert_int_equal(net_hosts_open(&params, &dir), 0);
	assert_non_null(dir);
	assert_int_equal(dir->self, 0);
	assert_false(dir->asked);
	net_dir_free(dir);
	dir = directory("n1\nn2");
	assert_true(dir->asked);
	net_dir_free(dir);
	unsetenv("SLURM_JOB_NODELIST");
}

/* A name that is not found costs one question in some seconds, and one line. */
static void test_unknown_name(void **state)
{
	struct net_dir *dir;
	uint8_t ip[16];

	dir = directory("n1\nn2");
	assert_non_null(dir);
	asked = lines = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(net_hosts_ip(dir, 1, true, ip), -FI_ENODATA);
	assert_int_equal(asked, 1);
	resolved[0] = "n2";
	resolved[1] = "192.0.2.7";
	dir->host[1].retry = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(net_hosts_ip(dir, 1, true, ip), 0);
	assert_int_equal(ip[15], 7);
	assert_int_equal(asked, 2);
	assert_int_equal(lines, 1);
	net_dir_free(dir);
	memset(resolved, 0, sizeof(resolved));
}

/* ---- Labels -------------------------------------------------------------- */

#define NO_NAMESPACE	77

/* An address of the interface lo, or with a label, lo:1. */
static bool add_address(const char *name, uint32_t ip)
{
	struct ifreq req = { .ifr_ifindex = 0 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	in.sin_addr.s_addr = htonl(ip);
	memcpy(&req.ifr_addr, &in, sizeof(in));
	ret = ioctl(fd, SIOCSIFADDR, &req);
	close(fd);
	return ret == 0;
}

/* Otherwise lo gets the address ::1. */
static void without_ipv6(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/all/disable_ipv6",
		      O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;			/* there is none */
	if (write(fd, "1", 1) != 1)
		perror("disable_ipv6");
	close(fd);
}

/* Alone on a host with such addresses. */
static int find_alias(void)
{
	static const char *const texts[] = { "lo:1", "lo", "10.78.0.1" };
	struct hal_host host;
	char device[16];

	if (unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return NO_NAMESPACE;
	without_ipv6();
	if (!add_address("lo:1", 0x0a4e0001))
		return 1;
	for (int i = 0; i < 3; i++)
		if (net_host_find(texts[i], &host, device) != 0 ||
		    strcmp(device, "lo") != 0 || host.ip[12] != 10)
			return 2 + i;
	if (net_host_first("lo", &host))
		return 7;
	/* the address without a label is meant now, as to UCX */
	if (!add_address("lo", 0x0a4f0001) ||
	    net_host_find("lo", &host, device) != 0 || host.ip[13] != 0x4f)
		return 5;
	if (net_host_find("lo:1", &host, device) != 0 || host.ip[13] != 0x4e)
		return 6;
	return net_host_first(device, &host) && host.ip[13] == 0x4f ? 0 : 8;
}

/* UCX gets the name of the interface, of which a label is no part. */
static void test_label(void **state)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		_exit(find_alias());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unit_needs(WEXITSTATUS(status) != NO_NAMESPACE);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_line),
		cmocka_unit_test(test_address_of_the_line),
		cmocka_unit_test(test_list_of_slurm),
		cmocka_unit_test(test_unknown_name),
		cmocka_unit_test(test_label),
	};

	hal_log_set(count_lines);
	return unit_run(tests);
}
