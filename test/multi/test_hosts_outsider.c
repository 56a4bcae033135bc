/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_outsider.c - what a process without the secret can do to processes
 * with peers on other hosts (lib/hosts.h): at the port of the control
 * connections, and at that of UCX, which checks nobody (docs/net.md, section
 * 6).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/hosts.h"

/* ---- Without the secret ------------------------------------------------ */

/* A TCP connection to the port of an address. */
static int dial(const struct hal_addr_host *to)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(to->host.port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&sa.sin_addr, to->host.ip + 12, 4);
	CHECK(fd >= 0);
	CHECK(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

/* The other side closes the connection within ms. */
static void is_closed(int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000 };
	char buf[256];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	CHECK_MSG(recv(fd, buf, sizeof(buf), 0) <= 0 && errno != EAGAIN,
		  "garbage got an answer, or the connection stays");
	close(fd);
}

static void knock(const struct hal_addr_host *to)
{
	static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd[100];

	for (int i = 0; i < 100; i++)
		fd[i] = dial(to);
	for (int i = 0; i < 50; i++)
		CHECK(send(fd[i], web, sizeof(web), MSG_NOSIGNAL) > 0);
	for (int i = 0; i < 100; i++) {
		errno = 0;
		is_closed(fd[i], 20000);
	}
}

/* Child 1 knows the address of child 0, but for a bit of its secret. */
static int with_or_without(int fd, int host)
{
	struct hal_addr_host addr[2], wrong;
	uint8_t buf[8] = { 0 };
	fi_addr_t to;
	struct node n;
	ssize_t ret;

	/* how long idle connections without a proof stay */
	setenv("FI_UNIMEM_NET_DIAL_MS", "1000", 1);
	node_open(&n, 0);
	CHECK(procs_send(fd, &n.full, sizeof(n.full)));
	CHECK(procs_recv(fd, addr, sizeof(addr), -1) == sizeof(addr));
	if (host == 0) {
		/* no process without the secret had UCX loaded here */
		node_idle(&n, fd);
		CHECK(hosts_mapped("libunimem-net-auth"));
		CHECK(!hosts_mapped("libucp"));
		procs_send_word(fd, 0);
		node_recv(&n, buf, 8, 7);
		CHECK(buf[0] == 0x11);	/* of the peer with the secret */
		node_report(&n, fd, 0);
		node_close(&n);
		return 0;
	}
	knock(&addr[0]);
	wrong = addr[0];
	wrong.host.secret[5] ^= 1;
	to = node_insert(&n, &wrong.addr);
	while ((ret = fi_tinject(n.ep, buf, 8, to, 7)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(ret == -FI_EACCES || ret == -FI_ECONNRESET, "%s",
		  fi_strerror((int)-ret));
	node_close(&n);
	procs_exchange(fd, 0);
	node_open(&n, 0);
	n.peer[0] = node_insert(&n, &addr[0].addr);
	buf[0] = 0x11;
	node_send(&n, 0, buf, 8, 7);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_secret(void)
{
	struct proc *p[2];

	hosts_start(p, 2, with_or_without);
	procs_join(p, 2);
	procs_recv_word(p[1]->fd);
	procs_exchange(p[0]->fd, 0);
	procs_send_word(p[1]->fd, 0);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 1; i >= 0; i--)
		proc_finish(p[i]);
}

/* ---- On the network of the job ----------------------------------------- */

#define SELF	UINT32_C(0x0a4e0001)	/* 10.78.0.1: host 0 there ... */
#define OTHER	UINT32_C(0x0a4f0001)	/* ... and in another network */

/* A connection to a port of host 0, or a negative errno. */
static int dial_at(uint32_t ip, uint16_t port)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(ip),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* The port of this host at which UCX listens, beside that of the control
 * connections. Both listen in the network of the job only. */
static uint16_t port_of_ucx(uint16_t control)
{
	FILE *f = fopen("/proc/self/net/tcp", "re");
	unsigned ip, port, state, found = 0;
	char line[256];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, " %*u: %x:%x %*x:%*x %x", &ip, &port,
			   &state) != 3 || state != 0x0a)
			continue;
		CHECK_MSG(ntohl(ip) == SELF, "port %u listens at %08x", port,
			  ntohl(ip));
		if (port != control) {
			CHECK(found == 0);
			found = port;
		}
	}
	fclose(f);
	CHECK(found != 0);
	return (uint16_t)found;
}

/* Garbage for UCX: it closes the connection. */
static void garbage(uint16_t port, uint64_t *seed)
{
	uint8_t bytes[64];
	int fd = dial_at(SELF, port);

	CHECK_MSG(fd >= 0, "UCX: %s", strerror(-fd));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)procs_random(seed);
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0);
	errno = 0;
	is_closed(fd, 20000);
}

/* Child 0 is connected to child 1, which does what an outsider can do as well.
 * Start both; the result is the port of UCX on host 0, below that of its
 * control connections. */
static uint32_t meet(struct node *n, int fd, int host)
{
	uint32_t ports = 0;

	node_start(n, fd, 0);
	hosts_exchange(n, host);
	if (host == 0)
		ports = (uint32_t)n->full.host.port << 16 |
			port_of_ucx(n->full.host.port);
	return (uint32_t)node_report(n, fd, ports);
}

/* The director of two children that begin with meet(). */
static void start(struct proc *p[2], hosts_body body)
{
	uint64_t ports;

	hosts_start(p, 2, body);
	procs_join(p, 2);
	ports = procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, ports);
}

/* Both children have called node_report(): let them go on. Returns the word of
 * child 1. */
static uint64_t step(struct proc *p[2])
{
	uint64_t word = 0;

	for (int i = 0; i < 2; i++)
		word = procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		procs_send_word(p[i]->fd, 0);
	return word;
}

/* Garbage, while both exchange messages, and connections from another network
 * of host 0. */
static int sends_garbage(int fd, int host)
{
	uint64_t seed = 11;
	uint16_t control, ucx;
	uint32_t ports;
	struct node n;

	if (host == 0)
		CHECK(hosts_run("ip addr add 10.79.0.1/32 dev lo"));
	else
		CHECK(hosts_run("ip route add 10.79.0.1 via 10.78.0.1"));
	ports = meet(&n, fd, host);
	control = (uint16_t)(ports >> 16);
	ucx = (uint16_t)ports;
	for (int i = 0; i < 20; i++) {
		if (host == 1) {
			garbage(ucx, &seed);
			CHECK(dial_at(OTHER, ucx) == -ECONNREFUSED);
			CHECK(dial_at(OTHER, control) == -ECONNREFUSED);
		}
		hosts_exchange(&n, host);
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_outsider(void)
{
	struct proc *p[2];

	start(p, sends_garbage);
	step(p);
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* ---- Idle connections to UCX -------------------------------------------- */

#define DESCRIPTORS	200		/* of the process on host 0 */
#define IDLE		(2 * DESCRIPTORS)	/* connections, at most */
#define LONG		70000

/* A long message there and one back, each byte of which is checked. */
static void exchange_long(struct node *n, int host)
{
	static uint8_t buf[LONG];

	for (int turn = 0; turn < 2; turn++) {
		if (turn == host) {
			for (int i = 0; i < LONG; i++)
				buf[i] = (uint8_t)(i * 31 + host);
			node_send(n, !n->self, buf, LONG, 9);
		} else {
			memset(buf, 0, LONG);
			CHECK(node_recv(n, buf, LONG, 9) == LONG);
			for (int i = 0; i < LONG; i++)
				CHECK(buf[i] == (uint8_t)(i * 31 + !host));
		}
	}
}

/* The descriptors of this process */
static int descriptors(void)
{
	int count = 0;

	for (int i = 0; i < DESCRIPTORS; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

/*
 * Child 1 opens connections to the port of UCX and sends nothing, until child 0
 * has no descriptor left. Messages between both go on. Once the connections are
 * closed, so are their descriptors. Child 1 reports whether UCX accepts others
 * then.
 */
static int floods(int fd, int host)
{
	struct rlimit lim = { DESCRIPTORS, DESCRIPTORS };
	int idle[IDLE], count = 0, later = 0, before;
	uint32_t ports;
	struct node n;

	if (host == 0)
		CHECK(setrlimit(RLIMIT_NOFILE, &lim) == 0);
	ports = meet(&n, fd, host);
	before = descriptors();
	node_report(&n, fd, 0);		/* child 1 has opened none yet */
	while (host == 1 && count < IDLE) {
		idle[count] = dial_at(SELF, (uint16_t)ports);
		if (idle[count] < 0)
			break;
		count++;
	}
	/* UCX 1.13 closes its listener when there are no more */
	while (host == 0 && descriptors() < DESCRIPTORS - 1)
		fi_cq_read(n.cq, NULL, 0);
	node_report(&n, fd, (uint64_t)count);
	for (int i = 0; i < 50; i++)
		exchange_long(&n, host);
	while (count > 0)
		close(idle[--count]);
	while (host == 0 && descriptors() > before)
		fi_cq_read(n.cq, NULL, 0);
	node_report(&n, fd, 0);
	if (host == 1)
		later = dial_at(SELF, (uint16_t)ports);
	node_report(&n, fd, later >= 0);
	hosts_exchange(&n, host);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void outsider_floods(void)
{
	struct proc *p[2];

	start(p, floods);
	step(p);
	procs_note("%d idle connections to UCX take all descriptors",
		   (int)step(p));
	step(p);
	procs_note("UCX accepts connections afterwards: %s",
		   step(p) ? "yes" : "no");
	step(p);
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* ---- The protocol of UCX ------------------------------------------------ */

#define MAGIC	UINT64_C(0xcafebabe12345678)	/* begins each connection */
#define PUT	33		/* kind of a message: bytes for memory */

static bool g_random;			/* random bytes follow MAGIC */

/* The first bytes on a connection: a put of 8 bytes to a word that child 0
 * shares with its director. */
static void speak(int fd)
{
	struct __attribute__((packed)) {
		uint64_t magic;
		uint8_t kind;
		uint32_t length;	/* of the head, which is next */
		uint64_t address, bytes;
		uint32_t number;
		uint64_t value;
	} put = {
		MAGIC, PUT, 20, (uint64_t)(uintptr_t)&g_shared->word[0], 8, 1,
		1,
	};
	uint64_t seed = 7;

	for (size_t i = 8; g_random && i < sizeof(put); i++)
		((uint8_t *)&put)[i] = (uint8_t)procs_random(&seed);
	CHECK(send(fd, &put, sizeof(put), MSG_NOSIGNAL) == sizeof(put));
}

/* Child 1 speaks as UCX does, and then notices the end of child 0 if that has
 * ended. */
static int speaks(int fd, int host)
{
	struct rlimit none = { 0, 0 };
	uint8_t buf[8] = { 0 };
	uint32_t ports;
	struct node n;
	ssize_t ret;

	if (host == 0) {		/* no trace of an abort() */
		setenv("UCX_HANDLE_ERRORS", "none", 1);
		CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
	}
	ports = meet(&n, fd, host);
	if (host == 1)
		speak(dial_at(SELF, (uint16_t)ports));
	if (node_report(&n, fd, 0) != 0) {
		while ((ret = fi_tinject(n.ep, buf, 8, n.peer[0], 1)) == 0 ||
		       ret == -FI_EAGAIN)
			fi_cq_read(n.cq, NULL, 0);
		CHECK_MSG(ret == -FI_ECONNRESET || ret == -FI_ESHUTDOWN, "%s",
			  fi_strerror((int)-ret));
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

/* The next word of a child. False: it has ended. */
static bool next_word(struct proc *p)
{
	uint64_t word;

	return !proc_ended(p, 0) &&
		procs_recv(p->fd, &word, sizeof(word), -1) == sizeof(word);
}

/* Send a word to a child. False: it has ended. */
static bool let_go(struct proc *p)
{
	uint64_t word = 0;

	return !proc_ended(p, 0) && procs_send(p->fd, &word, sizeof(word));
}

/* Shows what happens, which depends on UCX: the only verdict is that child 1
 * goes on. UCX may end child 0 at any time, also after it has been waited
 * for. */
static void outsider_speaks(void *random)
{
	struct proc *p[2];
	bool ended = false;

	g_random = random != NULL;
	start(p, speaks);
	procs_recv_word(p[1]->fd);
	for (int i = 0; i < 100 && !ended; i++)
		ended = proc_ended(p[0], 50);
	procs_send_word(p[1]->fd, ended);
	if (!ended)
		ended = !next_word(p[0]) || !let_go(p[0]) || !next_word(p[0]) ||
			!let_go(p[0]);
	procs_recv_word(p[1]->fd);
	proc_finish(p[1]);
	while (!proc_ended(p[0], 1000))
		;
	if (!ended && !WIFSIGNALED(p[0]->status))
		proc_expect(p[0], 0);
	ended = ended || WIFSIGNALED(p[0]->status);
	procs_note("a process that speaks as UCX has %s the memory, and has %s",
		   g_shared->word[0] != 0 ? "changed" : "not changed",
		   ended ? "ended the process" : "not ended the process");
}

static const struct procs_case cases[] = {
	PROCS_CASE(hosts_secret, 120),
	PROCS_CASE(hosts_outsider, 0),
	PROCS_CASE(outsider_floods, 0),
	PROCS_WITH(outsider_puts, 0, outsider_speaks, NULL),
	PROCS_WITH(outsider_random, 0, outsider_speaks, "random"),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
