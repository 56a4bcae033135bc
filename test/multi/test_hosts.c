/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts.c - processes on several hosts: each in a network namespace of its
 * own, with an Ethernet cable (veth) between them.
 *
 * A child makes its namespace, the director lays the cable, and the child gives
 * its end an address. All of it is gone with the children. Needs root, the tool
 * ip and the module libunimem-net.so; where one is missing the cases are
 * skipped, except hosts_one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/procs.h"

#define HOSTS_SKIPPED	77

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks crashes in processes that have loaded UCX. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif
#define DEAD_MS		3000		/* default of FI_UNIMEM_NET_DEAD_MS */

static const size_t mixed[] = {
	8, 0, 4096, 40, 70000, 100, 1000, 16384, 300000, 57, 1, 1048576,
};

/* The work of a child on its host; fd is the socket to the director. */
typedef int (*body_fn)(int fd, int host);

struct place {
	body_fn body;
};

/* ---- Hosts ------------------------------------------------------------- */

static bool run(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd) == 0;
}

/* Is the other end of the cable there? */
static bool cable_is_up(void)
{
	char state[16] = "";
	int fd = open("/sys/class/net/net0/operstate", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, state, sizeof(state) - 1) < 0)
		state[0] = '\0';
	close(fd);
	return strncmp(state, "up", 2) == 0;
}

/* A network namespace, with a /sys that shows its interfaces. */
static bool new_host(void)
{
	return geteuid() == 0 && unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("sysfs", "/sys", "sysfs", 0, NULL) == 0;
}

static bool same_host_as(uint64_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && new_host() &&
		setns(fd, CLONE_NEWNET) == 0 &&
		mount("sysfs", "/sys", "sysfs", 0, NULL) == 0;
}

/* A child: makes or joins its host, then runs the body. */
static int on_host(int fd, void *arg)
{
	const struct place *place = arg;
	int self = proc_index(), host = self % 2;
	uint64_t pid;

	setenv("FI_UNIMEM_NET", "net0", 1);
	if (self < 2 && !new_host())
		return HOSTS_SKIPPED;
	pid = procs_exchange(fd, 1);
	if (self >= 2) {
		CHECK(same_host_as(pid));
	} else {
		CHECK(run("ip addr add 10.78.0.%d/24 dev net0 && "
			  "ip link set net0 up && ip link set lo up",
			  host + 1));
		while (!cable_is_up())
			procs_nap(1000);
	}
	procs_exchange(fd, 2);
	return place->body(fd, host);
}

/* Is the engine built? It is in the folder of the provider then. */
static bool has_engine(void)
{
	const char *dir = getenv("FI_PROVIDER_PATH");
	char path[512];

	snprintf(path, sizeof(path), "%s/libunimem-net.so",
		 dir != NULL ? dir : ".libs");
	return access(path, R_OK) == 0;
}

/* Start n children, of which 0 and 2 are on one host, 1 and 3 on the other.
 * They run their bodies when this returns. */
static void start(struct proc *p[], int n, struct place *place)
{
	uint64_t word;

	if (!has_engine())
		procs_skip("no libunimem-net.so: built without UCX");
	for (int i = 0; i < n; i++)
		p[i] = proc_start(on_host, place, NULL);
	for (int i = 0; i < n; i++) {
		if (procs_recv(p[i]->fd, &word, sizeof(word), -1) > 0)
			continue;
		while (!proc_ended(p[i], 1000))
			;
		if (WEXITSTATUS(p[i]->status) == HOSTS_SKIPPED)
			procs_skip("network namespaces need root");
		proc_expect(p[i], 0);
	}
	if (!run("ip link add net0 netns %d type veth peer name net0 netns %d "
		 "2>/dev/null", p[0]->pid, p[1]->pid))
		procs_skip("no ip(8), or no veth in this kernel");
	for (int k = 0; k < n; k += 2) {
		for (int i = k; i < k + 2 && i < n; i++)
			procs_send_word(p[i]->fd, (uint64_t)p[i % 2]->pid);
		for (int i = k; i < k + 2 && i < n; i++)
			procs_recv_word(p[i]->fd);
	}
	for (int i = 0; i < n; i++)
		procs_send_word(p[i]->fd, 0);
}

/* ---- Messages ---------------------------------------------------------- */

/* The signals that have a handler, as the kernel shows them. */
static uint64_t caught(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long mask = 0;
	char line[128];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "SigCgt: %llx", &mask);
	fclose(f);
	return mask & 0x7fffffff;	/* not those of the C library */
}

static bool has_mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		found |= strstr(line, name) != NULL;
	fclose(f);
	return found;
}

static int talk(int fd, int host)
{
	struct traffic_opt opt = { .count = 300, .lens = mixed, .nlens = 12 };
	uint64_t before = caught();

	(void)host;
	traffic_session(fd, &opt);
	CHECK(has_mapped("libucp"));
	CHECK_MSG(caught() == before, "handlers of signals: %llx, were %llx",
		  (unsigned long long)caught(), (unsigned long long)before);
	return 0;
}

static void together(int n, struct place *place)
{
	struct proc *p[4];

	start(p, n, place);
	procs_join(p, n);
	for (int i = 0; i < n; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < n; i++)
		proc_finish(p[i]);
}

static void hosts_talk(void)
{
	together(2, &(struct place){ .body = talk });
}

static void hosts_two_each(void)
{
	together(4, &(struct place){ .body = talk });
}

static int talk_asleep(int fd, int host)
{
	struct traffic_opt opt = {
		.count = 100, .lens = mixed, .nlens = 12, .sleeps = true,
	};
	struct traffic *t;
	struct node n;

	(void)host;
	node_start(&n, fd, NODE_WAIT);
	t = traffic_new(&n, &opt);
	while (traffic_step(t))
		;
	node_report(&n, fd, 0);
	traffic_free(t);
	node_close(&n);
	return 0;
}

static void hosts_asleep(void)
{
	together(2, &(struct place){ .body = talk_asleep });
}

/* Both sides connect at once, again and again. */
static int talk_again(int fd, int host)
{
	static const size_t lens[] = { 8, 200 };
	struct traffic_opt opt = { .count = 4, .lens = lens, .nlens = 2 };

	(void)host;
	for (int round = 0; round < 40; round++) {
		traffic_session(fd, &opt);
		procs_send_word(fd, 0);
	}
	return 0;
}

static void hosts_crossed(void)
{
	struct proc *p[2];

	start(p, 2, &(struct place){ .body = talk_again });
	for (int round = 0; round < 40; round++) {
		procs_join(p, 2);
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < 2; i++)
			procs_send_word(p[i]->fd, 0);
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
	}
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* ---- One-sided operations ---------------------------------------------- */

#define LEN	(600u << 10)
#define KEYS	2			/* ordinary memory, dmable memory */

static void wait_one(struct node *n)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	CHECK_MSG(ret == 1, "%s", fi_strerror(error.err));
}

static void put_and_get(struct node *n, uint8_t *buf, uint64_t key)
{
	static const size_t lens[] = { 1, 8, 100, 5000, 70000, LEN };

	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
		size_t len = lens[k];

		for (size_t i = 0; i < len; i++)
			buf[i] = (uint8_t)(i * 7 + (i >> 8) + k + key);
		FI(fi_write(n->ep, buf, len, NULL, n->peer[0], LEN - len, key,
			    NULL));
		wait_one(n);
		memset(buf, 0, len);
		FI(fi_read(n->ep, buf, len, NULL, n->peer[0], LEN - len, key,
			   NULL));
		wait_one(n);
		for (size_t i = 0; i < len; i++)
			CHECK_MSG(buf[i] == (uint8_t)(i * 7 + (i >> 8) + k +
						      key),
				  "%zu bytes of key %d: byte %zu", len,
				  (int)key, i);
	}
}

static void add_up(struct node *n, uint64_t key)
{
	uint64_t one = 1, was = 0, zero = 0;
