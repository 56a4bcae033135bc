/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_cut.c - a host that does not answer any more is noticed within the
 * time that FI_UNIMEM_NET_DEAD_MS and docs/hal.md, 16.8, promise, and not much
 * earlier (lib/hosts.h).
 *
 * The test does not measure time, because a slow machine delays everything. Two
 * TCP connections of the test, the yardsticks, join the same two hosts and are
 * cut together with the provider's connection. The kernel ends them as it ends
 * that one: at the first of its probes, one each second, that finds the silence
 * longer than the limit of the connection. One yardstick has a shorter limit
 * than the provider, and the other a longer one, so the order
 * of the three ends is the verdict. Three times FI_UNIMEM_NET_DEAD_MS is later
 * than the later one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/hosts.h"

#define PORT		7001		/* of yardsticks, on host 0 */
#define HALF		500		/* limit of the provider, in ms, beyond
					 * FI_UNIMEM_NET_DEAD_MS */
/* Between the limits of the provider and of each yardstick, in ms. The last
 * answers on two connections are up to a second apart, and so are the limit of
 * a connection and the probe that ends it. */
#define APART		2500
#define EARLY_FROM	5000		/* with less there is no earlier
					 * yardstick: it would need a limit of
					 * a few seconds */
/* Polls of the provider after the later yardstick has ended, in which a process
 * that had to wait for a processor still notices the end in time. */
#define POLLS		100000

struct yardsticks {
	int early, late;		/* sockets, or -1 */
};

static void set_option(int fd, int level, int name, int value)
{
	CHECK(setsockopt(fd, level, name, &value, sizeof(value)) == 0);
}

/* Have the kernel end a connection after this time without an answer. */
static void limit(int fd, int ms)
{
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

/* One side of a connection to the port of host 0, with this limit: accepted on
 * host 0, which listens at fd, dialled on host 1. */
static int yardstick(int fd, int host, int ms)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(UINT32_C(0x0a4e0001)),
	};

	if (host == 0) {
		fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		CHECK(fd >= 0);
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	}
	limit(fd, ms);
	return fd;
}

static int listener(void)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	CHECK(listen(fd, 2) == 0);
	return fd;
}

/* Has the kernel ended this connection? */
static bool ended(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return false;
	CHECK_MSG(errno == ETIMEDOUT, "a yardstick: %s", strerror(errno));
	return true;
}

/* Send until the end of the peer is noticed. */
static void notice(struct node *n, const struct yardsticks *y)
{
	uint8_t buf[8] = { 0 };
	bool late = false;
	long polls = 0;
	ssize_t ret;

	while ((ret = fi_tinject(n->ep, buf, 8, n->peer[!n->self], 1)) == 0 ||
	       ret == -FI_EAGAIN) {
		fi_cq_read(n->cq, NULL, 0);
		late = late || ended(y->late);
		CHECK_MSG(!late || ++polls < POLLS, "the end comes too late");
	}
	CHECK_MSG(ret == -FI_ECONNRESET || ret == -FI_ESHUTDOWN, "%s",
		  fi_strerror((int)-ret));
	CHECK_MSG(y->early < 0 || ended(y->early), "the end comes too early");
}

/* A cable that is cut in silence: both sides send to an Ethernet address that
 * nobody has. */
static int cut_off(int fd, int host)
{
	int ms = atoi(getenv("FI_UNIMEM_NET_DEAD_MS"));
	int at = host == 0 ? listener() : -1;
	struct yardsticks y = { -1, -1 };
	struct node n;

	node_start(&n, fd, 0);
	hosts_exchange(&n, host);
	y.late = yardstick(at, host, ms + HALF + APART);
	if (ms >= EARLY_FROM)
		y.early = yardstick(at, host, ms + HALF - APART);
	node_report(&n, fd, 0);
	CHECK(hosts_run("ip neigh replace 10.78.0.%d lladdr 02:00:00:00:00:99 "
			"dev net0 nud permanent", 2 - host));
	notice(&n, &y);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_cut(void *ms)
{
	struct proc *p[2];
	uint64_t since;

	setenv("FI_UNIMEM_NET_DEAD_MS", ms, 1);
	hosts_start(p, 2, cut_off);
	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	since = procs_now();
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 2; i++) {
		procs_recv_word(p[i]->fd);
		procs_note("a cut noticed after %llu ms",
			   (unsigned long long)(procs_now() - since) / 1000);
	}
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

int main(int argc, char **argv)
{
	static const struct procs_case cases[] = {
		PROCS_WITH(hosts_cut_3000, 0, hosts_cut, "3000"),
		PROCS_WITH(hosts_cut_8000, 0, hosts_cut, "8000"),
	};

	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
