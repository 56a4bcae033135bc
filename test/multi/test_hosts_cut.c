/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_cut.c - a host that does not answer any more is noticed within the
 * time that FI_UNIMEM_NET_DEAD_MS and docs/hal.md, 16.8, promise, and not much
 * earlier (lib/hosts.h): by a process that sends, by one that polls for a
 * message of a peer there, and by one that waits for it in fi_cq_sread(), for
 * NAP_MS at a time.
 *
 * Two TCP connections of the test, the yardsticks, join the same two hosts and
 * have a byte under way from the moment of the cut on, so that the kernel ends
 * each of them after a time that the test sets. The order of these ends and of
 * the provider's is the verdict. Host 1 cuts the cable just after its kernel
 * has had an answer of host 0, so that the whole time passes at host 1; at host
 * 0 up to a second of it is over. A process that had to wait for a processor
 * cannot be judged: the case is skipped.
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
/* Limits of the yardsticks, in ms around FI_UNIMEM_NET_DEAD_MS. The kernel
 * counts them from its first repetition of the byte, at least 0.2 s after the
 * cut. The provider needs from 1.1 s less to 0.2 s more, and the kernel without
 * it, which ends a connection at a question that follows its own limit, 1.1 s
 * more. */
#define EARLY		(-2000)
#define LATE		300
#define FRESH		60		/* ms since an answer */
#define SETTLE_US	500000		/* until no control message is under
					 * way, which would have TCP ask
					 * nothing */
#define POLLS		64		/* the provider examines the connection
					 * after so many polls */
#define BUSY_US		100000		/* for these polls, twice less than LATE
					 * and the first repetition leave; or
					 * half the time from the cut to the
					 * bytes of the yardsticks */
#define NAP_MS		20
/* words of g_shared */
#define CUT_AT		0		/* time of the cut, us */
#define TOOK		1		/* time to the end, of each host, us */
#define BUSY		3		/* longest such time of each host, us */

/* FI_UNIMEM_NET_DEAD_MS, and what the processes do after the cut. */
static struct plan {
	const char *ms;
	enum { SENDS, POLLS_FOR, SLEEPS } way;
} g_plan;				/* of the running case */

struct yardsticks {
	int early, late;		/* sockets */
};

static void set_option(int fd, int level, int name, int value)
{
	CHECK(setsockopt(fd, level, name, &value, sizeof(value)) == 0);
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
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
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
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	CHECK_MSG(n < 0 && errno == ETIMEDOUT, "a yardstick: %zd, %s", n,
		  strerror(errno));
	return true;
}

/* How long the control connection of the provider has heard nothing, in ms: of
 * the connections with a limit, the one that is no yardstick. */
static uint32_t silent_ms(int dead_ms)
{
	for (int s = 0; s < 256; s++) {
		socklen_t len = sizeof(int), size = sizeof(struct tcp_info);
		struct tcp_info info;
		int ms = 0;

		if (getsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len) !=
		    0 || ms == 0 || ms == dead_ms + EARLY ||
		    ms == dead_ms + LATE)
			continue;
		if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
		    info.tcpi_state == 1)	/* ESTABLISHED */
			return info.tcpi_last_ack_recv;
	}
	procs_fail(__FILE__, __LINE__, "no control connection");
}

/* A cable that is cut in silence: both sides send to an Ethernet address that
 * nobody has, host 1 first. */
static void cut(int host, int ms)
{
	if (host == 1) {
		while (silent_ms(ms) > FRESH)
			usleep(1000);
		g_shared->word[CUT_AT] = procs_now();
	}
	while (g_shared->word[CUT_AT] == 0)
		usleep(1000);
	CHECK(hosts_run("ip neigh replace 10.78.0.%d lladdr 02:00:00:00:00:99 "
			"dev net0 nud permanent", 2 - host));
}

static void pause_of(int host, uint64_t us)
{
	if (us > g_shared->word[BUSY + host])
		g_shared->word[BUSY + host] = us;
}

/* The error of the receive that node_poll() or node_sleep() has reported, or 0:
 * no message comes. */
static int error_of(int ret, const struct fi_cq_err_entry *error)
{
	CHECK(ret <= 0);
	return ret != 0 ? error->err : 0;
}

static int nap(struct node *n)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	return error_of(node_sleep(n, &entry, &error, NAP_MS), &error);
}

static int poll_once(struct node *n)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	return error_of(node_poll(n, &entry, &error), &error);
}

/* Returns 0, or the error of the send. */
static int send_once(struct node *n)
{
	uint8_t buf[8] = { 0 };
	ssize_t ret = fi_tinject(n->ep, buf, 8, n->peer[!n->self], 1);

	fi_cq_read(n->cq, NULL, 0);
	return ret == -FI_EAGAIN ? 0 : (int)-ret;
}

/* Go on in the way of the case until the end of the peer is noticed. */
static void notice(struct node *n, int host, const struct yardsticks *y)
{
	static int (*const ways[])(struct node *n) = {
		[SENDS] = send_once, [POLLS_FOR] = poll_once, [SLEEPS] = nap,
	};
	uint64_t begin = procs_now(), now;
	unsigned calls = 0;
	uint8_t buf[8];
	int err = 0;
	bool late;

	CHECK(send(y->early, "", 1, 0) == 1 && send(y->late, "", 1, 0) == 1);
	pause_of(host, (begin - g_shared->word[CUT_AT]) / 2);
	if (g_plan.way != SENDS)
		FI(fi_trecv(n->ep, buf, 8, NULL, n->peer[!n->self], 2, 0, buf));
	while (err == 0) {
		err = ways[g_plan.way](n);
		if (err == 0 && g_plan.way != SLEEPS && ++calls % POLLS != 0)
			continue;
		now = procs_now();
		pause_of(host, now - begin);
		begin = now;
	}
	late = ended(y->late);
	now = procs_now();
	pause_of(host, now - begin);
	g_shared->word[TOOK + host] = now - g_shared->word[CUT_AT];
	CHECK_MSG(err == FI_ECONNRESET || err == FI_ESHUTDOWN, "%s",
		  fi_strerror(err));
	if (g_shared->word[BUSY + host] >= BUSY_US)
		return;
	CHECK_MSG(!late, "the end comes too late");
	CHECK_MSG(ended(y->early), "the end comes too early");
}

static int cut_off(int fd, int host)
{
	int ms = atoi(g_plan.ms);
	int at = host == 0 ? listener() : -1;
	struct yardsticks y;
	struct node n;

	node_start(&n, fd, NODE_WAIT);
	hosts_exchange(&n, host);
	node_quiet(&n, SETTLE_US);
	y.late = yardstick(at, host, ms + LATE);
	y.early = yardstick(at, host, ms + EARLY);
	node_report(&n, fd, 0);
	cut(host, ms);
	procs_exchange(fd, 0);
	notice(&n, host, &y);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_cut(void *plan)
{
	struct proc *p[2];

	g_plan = *(struct plan *)plan;
	setenv("FI_UNIMEM_NET_DEAD_MS", g_plan.ms, 1);
	hosts_start(p, 2, cut_off);
	procs_join(p, 2);
	for (int step = 0; step < 3; step++) {
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < 2 && step < 2; i++)
			procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 2; i++)
		procs_note("a cut noticed after %llu ms",
			   (unsigned long long)g_shared->word[TOOK + i] / 1000);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
	for (int i = 0; i < 2; i++)
		if (g_shared->word[BUSY + i] >= BUSY_US)
			procs_skip("the machine is busy: a process waited "
				   "%llu ms for a processor",
				   (unsigned long long)
				   g_shared->word[BUSY + i] / 1000);
}

static const struct procs_case cases[] = {
	PROCS_WITH(hosts_cut_3000, 0, hosts_cut,
		   &(struct plan){ "3000", SENDS }),
	PROCS_WITH(hosts_cut_8000, 0, hosts_cut,
		   &(struct plan){ "8000", SENDS }),
	PROCS_WITH(hosts_cut_from_receiver, 0, hosts_cut,
		   &(struct plan){ "3000", POLLS_FOR }),
	PROCS_WITH(hosts_cut_from_sleeper, 0, hosts_cut,
		   &(struct plan){ "3000", SLEEPS }),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
