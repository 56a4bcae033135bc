/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.c - two hosts for tests with several processes: network namespaces with
 * an Ethernet cable between them. hosts.h declares the entry points.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/hosts.h"

#define HOSTS_SKIPPED	77

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks crashes in processes that have loaded UCX. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

/* The same for programs that this process starts. */
static void search_no_leaks(void)
{
	const char *now = getenv("ASAN_OPTIONS");
	char text[256];

	snprintf(text, sizeof(text), "%s:detect_leaks=0", now ? now : "");
	setenv("ASAN_OPTIONS", text, 1);
}
#else
static void search_no_leaks(void) { }
#endif

bool hosts_run(const char *fmt, ...)
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

/* Frames for other hosts get the Ethernet address of their sender, and requests
 * for an Ethernet address are not answered. */
int hosts_vanish(const struct proc *p)
{
	char path[64];
	int ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)p->pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(ns >= 0);
	CHECK(hosts_run("nsenter --net=%s ip link set net0 arp off", path));
	return ns;
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
	hosts_body body = *(hosts_body *)arg;
	int self = proc_index(), host = self % 2;
	uint64_t pid;

	setenv("FI_UNIMEM_NET", "net0", 1);
	search_no_leaks();
	if (self < 2 && !new_host())
		return HOSTS_SKIPPED;
	pid = procs_exchange(fd, 1);
	if (self >= 2) {
		CHECK(same_host_as(pid));
	} else {
		CHECK(hosts_run("ip addr add 10.78.0.%d/24 dev net0 && "
				"ip link set net0 up && ip link set lo up",
				host + 1));
		while (!cable_is_up())
			procs_nap(1000);
	}
	procs_exchange(fd, 2);
	return body(fd, host);
}

/* Is the engine built? It is beside the provider in a build tree, and in
 * ../unimem where it is installed. */
static bool has_engine(void)
{
	static const char *const subs[] = { "", "../unimem/" };
	const char *dir = getenv("FI_PROVIDER_PATH");
	char path[512];
	bool has = false;

	for (int i = 0; i < 2 && !has; i++) {
		snprintf(path, sizeof(path), "%s/%slibunimem-net.so",
			 dir != NULL ? dir : ".libs", subs[i]);
		has = access(path, R_OK) == 0;
	}
	return has;
}

void hosts_need_ipv6(void)
{
	/* hosts_start() has the reason if there is no namespace or no ip(8) */
	if (hosts_run("unshare --net ip link show lo >/dev/null 2>&1") &&
	    !hosts_run("unshare --net ip addr add fd78::1/64 dev lo "
		       "2>/dev/null"))
		procs_skip("IPv6 is off");
}

void hosts_start(struct proc *p[], int n, hosts_body body)
{
	uint64_t word;

	if (!has_engine())
		procs_skip("no libunimem-net.so: built without UCX");
	for (int i = 0; i < n; i++)
		p[i] = proc_start(on_host, &body, NULL);
	for (int i = 0; i < n; i++) {
		if (procs_recv(p[i]->fd, &word, sizeof(word), -1) > 0)
			continue;
		while (!proc_ended(p[i], 1000))
			;
		if (WEXITSTATUS(p[i]->status) == HOSTS_SKIPPED)
			procs_skip("network namespaces need root");
		proc_expect(p[i], 0);
	}
	if (!hosts_run("ip link add net0 netns %d type veth peer name net0 "
		       "netns %d 2>/dev/null", p[0]->pid, p[1]->pid))
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

void hosts_exchange(struct node *n, int host)
{
	uint8_t buf[8] = { 0 };

	if (host == 0)
		node_send(n, !n->self, buf, 8, 9);
	node_recv(n, buf, 8, 9);
	if (host == 1)
		node_send(n, !n->self, buf, 8, 9);
}

int hosts_sockets(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		socklen_t len = sizeof(int);
		int domain = 0;

		n += getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ==
			0 && domain == AF_INET;
	}
	return n;
}

bool hosts_mapped(const char *name)
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
