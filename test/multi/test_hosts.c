/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts.c - processes on two hosts (lib/hosts.h): messages, one-sided
 * operations, and ends. Without root, the tool ip or
 * the module libunimem-net.so the cases are skipped, except hosts_one.
 *
 * UNM_TEST_ROUNDS: connections from both sides at once, 15.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/hosts.h"

#define DEAD_MS		3000		/* default of FI_UNIMEM_NET_DEAD_MS */

static const size_t mixed[] = {
	8, 0, 4096, 40, 70000, 100, 1000, 16384, 300000, 57, 1, 1048576,
};

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

static int talk(int fd, int host)
{
	struct traffic_opt opt = { .count = 300, .lens = mixed, .nlens = 12 };
	uint64_t before = caught();

	(void)host;
	traffic_session(fd, &opt);
	CHECK(hosts_mapped("libucp"));
	CHECK_MSG(caught() == before, "handlers of signals: %llx, were %llx",
		  (unsigned long long)caught(), (unsigned long long)before);
	return 0;
}

static void together(int n, hosts_body body)
{
	struct proc *p[4];

	hosts_start(p, n, body);
	procs_join(p, n);
	for (int i = 0; i < n; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < n; i++)
		proc_finish(p[i]);
}

static void hosts_talk(void)
{
	together(2, talk);
}

static void hosts_two_each(void)
{
	together(4, talk);
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
	together(2, talk_asleep);
}

/* The network of the job is an address with a label, beside another. */
static int talk_by_label(int fd, int host)
{
	CHECK(hosts_run("ip addr add 10.79.0.%d/24 dev net0 label net0:1",
			host + 1));
	setenv("FI_UNIMEM_NET", "net0:1", 1);
	return talk(fd, host);
}

static void hosts_label(void)
{
	together(2, talk_by_label);
}

/* The network of the job has IPv6 addresses; each host has one of IPv4, too,
 * which the other one does not reach. */
static void use_ipv6(int host)
{
	CHECK(hosts_run("ip addr flush dev net0 && "
			"ip addr add 10.%d.0.1/24 dev net0 && "
			"ip addr add fd78::%d/64 dev net0 nodad", 80 + host,
			host + 1));
	setenv("FI_UNIMEM_NET", host == 0 ? "fd78::1" : "fd78::2", 1);
}

static int talk_by_ipv6(int fd, int host)
{
	use_ipv6(host);
	return talk(fd, host);
}

static void hosts_ipv6(void)
{
	hosts_need_ipv6();
	together(2, talk_by_ipv6);
}

static long crossings(void)
{
	return procs_number("UNM_TEST_ROUNDS", 15);
}

/* Both sides connect at once, again and again. */
static int talk_again(int fd, int host)
{
	static const size_t lens[] = { 8, 200 };
	struct traffic_opt opt = { .count = 4, .lens = lens, .nlens = 2 };

	(void)host;
	for (long round = crossings(); round > 0; round--) {
		traffic_session(fd, &opt);
		procs_send_word(fd, 0);
	}
	return 0;
}

static void hosts_crossed(void)
{
	struct proc *p[2];

	hosts_start(p, 2, talk_again);
	for (long round = crossings(); round > 0; round--) {
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

	FI(fi_write(n->ep, &zero, 8, NULL, n->peer[0], 0, key, NULL));
	wait_one(n);
	for (uint64_t i = 0; i < 500; i++) {
		FI(fi_fetch_atomic(n->ep, &one, 1, NULL, &was, NULL, n->peer[0],
				   0, key, FI_UINT64, FI_SUM, NULL));
		wait_one(n);
		CHECK(was == i);
	}
}

static int target_or_initiator(int fd, int host)
{
	struct fid_mr *mr[KEYS];
	struct node n;
	uint8_t *mem;

	node_open(&n, NODE_ONESIDED);
	mem = malloc(LEN);
	CHECK(mem != NULL);
	if (host == 0) {
		mr[0] = node_reg(&n, mem, LEN, 1);
		mr[1] = node_reg(&n, node_alloc(&n, LEN), LEN, 2);
	}
	node_join(&n, fd);
	for (uint64_t key = 1; host == 1 && key <= KEYS; key++) {
		put_and_get(&n, mem, key);
		add_up(&n, key);
	}
	node_report(&n, fd, 0);
	for (int i = 0; host == 0 && i < KEYS; i++)
		FI(fi_close(&mr[i]->fid));
	node_close(&n);
	free(mem);
	return 0;
}

static void hosts_onesided(void)
{
	struct proc *p[2];

	hosts_start(p, 2, target_or_initiator);
	procs_join(p, 2);
	/* the target makes progress until the initiator has ended */
	for (int i = 1; i >= 0; i--)
		procs_recv_word(p[i]->fd);
	for (int i = 1; i >= 0; i--)
		proc_finish(p[i]);
}

/* ---- Ends -------------------------------------------------------------- */

/* Send until the peer has ended; report when that was noticed. */
static int survive(struct node *n, int fd)
{
	uint8_t buf[8] = { 0 };
	ssize_t ret;

	while ((ret = fi_tinject(n->ep, buf, 8, n->peer[!n->self], 1)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	CHECK_MSG(ret == -FI_ECONNRESET || ret == -FI_ESHUTDOWN, "%s",
		  fi_strerror((int)-ret));
	procs_send_word(fd, procs_now());
	procs_recv_word(fd);
	return 0;
}

static int killed_or_survivor(int fd, int host)
{
	struct node n;

	node_start(&n, fd, 0);
	hosts_exchange(&n, host);
	if (host == 0) {
		node_idle(&n, fd);
	} else {
		procs_send_word(fd, 0);
		survive(&n, fd);
	}
	node_close(&n);
	return 0;
}

static int killed_by_ipv6(int fd, int host)
{
	use_ipv6(host);
	return killed_or_survivor(fd, host);
}

static uint64_t kill_attempt(void *arg)
{
	uint64_t since, heard;
	struct proc *p[2];

	hosts_start(p, 2, arg != NULL ? killed_by_ipv6 : killed_or_survivor);
	procs_join(p, 2);
	procs_recv_word(p[1]->fd);
	since = proc_kill(p[0]);
	heard = procs_recv_word(p[1]->fd);
	proc_finish(p[1]);
	return heard > since ? heard - since : 0;
}

static void hosts_kill(void)
{
	procs_within_a_second(kill_attempt, NULL);
}

static void hosts_ipv6_kill(void)
{
	static int ipv6;

	hosts_need_ipv6();
	procs_within_a_second(kill_attempt, &ipv6);
}

/* A process that is stopped for longer than FI_UNIMEM_NET_DEAD_MS lives. */
static int stopped_or_patient(int fd, int host)
{
	struct node n;

	node_start(&n, fd, 0);
	hosts_exchange(&n, host);
	node_report(&n, fd, 0);
	hosts_exchange(&n, host);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_stopped(void)
{
	struct proc *p[2];

	hosts_start(p, 2, stopped_or_patient);
	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	proc_stop(p[0]);
	procs_nap((DEAD_MS + 1500) * UINT64_C(1000));
	proc_signal(p[0], SIGCONT);
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, 0);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

/* The sockets of UCX whose peer is taken for lost after so many probes of the
 * kernel. (Sockets of the control connections have another limit instead.) */
static int count_probes(int fd, int host, int want)
{
	uint64_t found = 0;
	struct node n;

	setenv("FI_UNIMEM_NET_DEAD_MS", "7000", 1);
	node_start(&n, fd, 0);
	hosts_exchange(&n, host);
	for (int s = 0; s < 256; s++) {
		socklen_t len = sizeof(int);
		int on = 0, limit = 0, probes = 0;

		if (getsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, &len) != 0 ||
		    on == 0 || getsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT,
					  &limit, &len) != 0 || limit != 0)
			continue;
		CHECK(getsockopt(s, IPPROTO_TCP, TCP_KEEPCNT, &probes, &len) ==
		      0);
		CHECK_MSG(probes == want,
			  "a socket of UCX ends after %d probes", probes);
		found++;
	}
	node_report(&n, fd, found);
	node_close(&n);
	return 0;
}

static int probes_of_provider(int fd, int host)
{
	return count_probes(fd, host, 8);
}

static int probes_of_user(int fd, int host)
{
	setenv("UCX_TCP_KEEPCNT", "77", 1);
	return count_probes(fd, host, 77);
}

/* Both hosts run such a process, which finds sockets of UCX. */
static void probes_found(int (*count)(int fd, int host))
{
	uint64_t found = 0;
	struct proc *p[2];

	hosts_start(p, 2, count);
	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		found += procs_recv_word(p[i]->fd);
	CHECK(found != 0);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

/* The kernel ends the sockets of UCX, too, two seconds after
 * FI_UNIMEM_NET_DEAD_MS. */
static void hosts_probes(void)
{
	probes_found(probes_of_provider);
}

/* Unless the user has set this for UCX. */
static void hosts_probes_of_the_user(void)
{
	probes_found(probes_of_user);
}

/* ---- One host ---------------------------------------------------------- */

static int talk_here(int fd, void *arg)
{
	struct traffic_opt opt = { .count = 100, .lens = mixed, .nlens = 12 };

	(void)arg;
	traffic_session(fd, &opt);
	CHECK(!hosts_mapped("libucp"));
	CHECK(!hosts_mapped("libunimem-net"));
	return 0;
}

/* A job of one host does not load the engine, also if it might. */
static void hosts_one(void)
{
	static const char *const env[] = { "FI_UNIMEM_NET=lo", NULL };
	struct proc *p[2];

	for (int i = 0; i < 2; i++)
		p[i] = proc_start(talk_here, NULL, env);
	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

static const struct procs_case cases[] = {
	PROCS_CASE(hosts_one, 0),
	PROCS_CASE(hosts_talk, 120),
	PROCS_CASE(hosts_two_each, 120),
	PROCS_CASE(hosts_label, 120),
	PROCS_CASE(hosts_ipv6, 120),
	PROCS_CASE(hosts_ipv6_kill, 0),
	PROCS_CASE(hosts_asleep, 120),
	PROCS_CASE(hosts_crossed, 120),
	PROCS_CASE(hosts_onesided, 120),
	PROCS_CASE(hosts_kill, 0),
	PROCS_CASE(hosts_stopped, 0),
	PROCS_CASE(hosts_probes, 0),
	PROCS_CASE(hosts_probes_of_the_user, 0),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
