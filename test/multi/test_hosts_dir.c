/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts_dir.c - peers on another host by board and interface: the
 * directory of the job's hosts, the ports that numbers determine, and the key
 * file. Two hosts are two network namespaces (lib/hosts.h), each with two
 * boards; the processes use the second board of their host.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/hosts.h"

#define ROUNDS		20
#define KEY		"00112233445566778899aabbccddeeff"
#define OTHER_KEY	"00112233445566778899aabbccddee00"

/* Set by the director of a case, for its children. */
static const char *g_client_key;	/* of host 1; NULL: none */
static const char *g_server_key;	/* of host 0 */
static mode_t g_mode = 0600;		/* of the key file */

/* ---- Environment ------------------------------------------------------- */

/* Set a variable to the path of a file with this text. The file has no name and
 * lasts until the process ends. */
static void set_file(const char *name, const char *text, mode_t mode)
{
	int fd = memfd_create(name, 0);
	size_t len = strlen(text);
	char path[64];

	CHECK(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	CHECK(fchmod(fd, mode) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv(name, path, 1);
}

static void set_host(int host)
{
	const char *key = host == 0 ? g_server_key : g_client_key;

	setenv("FI_UNIMEM_BOARDS", "2", 1);
	setenv("FI_UNIMEM_BOARD", "1", 1);
	setenv("HOME", "/nonexistent", 1);	/* has no key */
	set_file("FI_UNIMEM_NET_HOSTS", "10.78.0.1\n10.78.0.2 # the other\n",
		 0644);
	if (key != NULL)
		set_file("FI_UNIMEM_NET_KEY", key, g_mode);
}

/* ---- Endpoints --------------------------------------------------------- */

/* Open an endpoint, and get the addresses of both. */
static void open_both(struct node *n, int fd, int host,
		      struct hal_addr_host addr[2])
{
	node_open(n, 0);
	CHECK(procs_send(fd, &n->full, sizeof(n->full)));
	CHECK(procs_recv(fd, addr, 2 * sizeof(addr[0]), -1) ==
	      2 * sizeof(addr[0]));
	n->self = host;
	n->count = 2;
	for (int i = 0; i < 2; i++) {
		CHECK_MSG(addr[i].addr.board == 2 * i + 1, "board %u of host "
			  "%d", addr[i].addr.board, i);
		CHECK(addr[i].host.port == 7450 + 64 + addr[i].addr.iface);
	}
}

/* Insert an address as users type it, in turn with the board of the job and
 * with the host and its board. */
static fi_addr_t insert_typed(struct node *n, const struct hal_addr *addr)
{
	static bool by_host;
	fi_addr_t at = FI_ADDR_NOTAVAIL;
	char text[64];

	if (by_host && addr->board < 4)
		snprintf(text, sizeof(text), "unimem://10.78.0.%d/%d:%u",
			 1 + addr->board / 2, addr->board % 2, addr->iface);
	else
		snprintf(text, sizeof(text), "unimem://%u:%u", addr->board,
			 addr->iface);
	by_host = !by_host;
	CHECK(fi_av_insertsvc(n->av, text, NULL, &at, 0, NULL) == 1);
	return at;
}

/* Send one message, and return the error of its completion, positive; 0: it was
 * delivered. (A message that was only sent may be lost with a holder whose end
 * has not been read yet.) */
static int send_one(struct node *n, fi_addr_t to)
{
	static uint8_t buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = 7,
	};
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	ssize_t ret;

	while ((ret = fi_tsendmsg(n->ep, &msg, FI_COMPLETION |
				  FI_DELIVERY_COMPLETE)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	if (ret != 0)
		return (int)-ret;
	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	return ret == 1 ? 0 : error.err;
}

static void both(int (*body)(int fd, int host), int rounds)
{
	struct proc *p[2];

	hosts_start(p, 2, body);
	for (int round = 0; round < rounds; round++) {
		procs_join(p, 2);
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < 2; i++)
			procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* ---- Connecting -------------------------------------------------------- */

/* Host 1 connects by the number, host 0 by the whole address. */
static int typed_or_whole(int fd, int host)
{
	struct hal_addr_host addr[2];
	uint8_t buf[8] = { 0 };
	struct node n;

	set_host(host);
	open_both(&n, fd, host, addr);
	if (host == 1) {
		n.peer[0] = insert_typed(&n, &addr[0].addr);
		node_send(&n, 0, buf, 8, 7);
		CHECK(node_recv(&n, buf, 8, 9) == 8);
		/* the whole address is the same peer */
		n.peer[0] = node_insert(&n, &addr[0].addr);
		node_send(&n, 0, buf, 8, 8);
	} else {
		CHECK(node_recv(&n, buf, 8, 7) == 8);
		n.peer[1] = node_insert(&n, &addr[1].addr);
		node_send(&n, 1, buf, 8, 9);
		CHECK(node_recv(&n, buf, 8, 8) == 8);
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_typed(void)
{
	g_client_key = g_server_key = KEY;
	both(typed_or_whole, 1);
}

/* Both sides connect at once: one by the number, or both. */
static int typed_at_once(int fd, int host)
{
	struct hal_addr_host addr[2];
	uint8_t in[8] = { 0 }, out[8] = { 0 };
	struct node n;

	set_host(host);
	for (int round = 0; round < ROUNDS; round++) {
		open_both(&n, fd, host, addr);
		n.peer[!host] = round % 3 == host ?
			node_insert(&n, &addr[!host].addr) :
			insert_typed(&n, &addr[!host].addr);
		node_send(&n, !host, out, 8, 7);
		CHECK(node_recv(&n, in, 8, 7) == 8);
		node_report(&n, fd, 0);
		node_close(&n);
	}
	return 0;
}

static void hosts_typed_at_once(void)
{
	g_client_key = g_server_key = KEY;
	both(typed_at_once, ROUNDS);
}

/* The number of an interface stands for its present holder. */
static int holder_or_client(int fd, int host)
{
	struct hal_addr_host addr[2];
	uint8_t buf[8] = { 0 };
	struct node n;
	int err;

	set_host(host);
	open_both(&n, fd, host, addr);
	if (host == 1)
		n.peer[0] = insert_typed(&n, &addr[0].addr);
	for (int round = 0; round < 3; round++) {
		/* the end of the last holder may be noticed by a send */
		while (host == 1 && (err = send_one(&n, n.peer[0])) != 0)
			CHECK_MSG(round > 0, "%s", fi_strerror(err));
		if (host == 0)
			CHECK(node_recv(&n, buf, 8, 7) == 8);
		node_report(&n, fd, 0);
		if (host == 0) {
			node_close(&n);
			node_open(&n, 0);
			CHECK(n.addr.iface == addr[0].addr.iface);
		}
		node_report(&n, fd, 0);
	}
	node_close(&n);
	return 0;
}

static void hosts_next_holder(void)
{
	struct proc *p[2];

	g_client_key = g_server_key = KEY;
	hosts_start(p, 2, holder_or_client);
	procs_join(p, 2);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		for (int i = 0; i < 2; i++)
			procs_send_word(p[i]->fd, 0);
	}
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* Nobody, no such interface, no such board. */
static int finds_nobody(int fd, int host)
{
	struct hal_addr nobody = { .board = 1, .iface = 60 };
	struct hal_addr high = { .board = 1, .iface = 64 };
	struct hal_addr far = { .board = 4, .iface = 1 };
	struct hal_addr_host addr[2];
	struct node n;

	set_host(host);
	open_both(&n, fd, host, addr);
	if (host == 1) {
		CHECK(send_one(&n, insert_typed(&n, &nobody)) ==
		      FI_ECONNREFUSED);
		CHECK(send_one(&n, insert_typed(&n, &high)) == FI_EINVAL);
		CHECK(send_one(&n, insert_typed(&n, &far)) == FI_EINVAL);
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_nobody(void)
{
	g_client_key = g_server_key = KEY;
	both(finds_nobody, 1);
}

/* ---- Keys -------------------------------------------------------------- */

/* The number is refused, the whole address is not. */
static int refused_by_key(int fd, int host)
{
	struct hal_addr_host addr[2];
	uint8_t buf[8] = { 0 };
	struct node n;
	int err;

	set_host(host);
	open_both(&n, fd, host, addr);
	if (host == 1) {
		err = send_one(&n, insert_typed(&n, &addr[0].addr));
		CHECK_MSG(err == FI_EACCES, "%s", fi_strerror(err));
		n.peer[0] = node_insert(&n, &addr[0].addr);
		node_send(&n, 0, buf, 8, 8);
	} else {
		CHECK(node_recv(&n, buf, 8, 8) == 8);
	}
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void hosts_wrong_key(void)
{
	g_client_key = OTHER_KEY;
	g_server_key = KEY;
	both(refused_by_key, 1);
}

static void hosts_no_key(void)
{
	g_client_key = NULL;
	g_server_key = KEY;
	both(refused_by_key, 1);
	procs_forget();
	g_client_key = KEY;
	g_server_key = NULL;
	both(refused_by_key, 1);
}

static int refuses_file(int fd, int host)
{
	struct node_error err;
	struct node n;

	set_host(host);
	CHECK(node_try_open(&n, 0, &err) == -FI_EINVAL);
	(void)fd;
	return 0;
}

/* A key file that others may read is no key. */
static void hosts_open_key(void)
{
	struct proc *p[2];

	g_client_key = g_server_key = KEY;
	g_mode = 0644;
	hosts_start(p, 2, refuses_file);
	for (int i = 0; i < 2; i++)
		proc_expect(p[i], 0);
}

/* ---- One host ---------------------------------------------------------- */

/* The board and interface to which fi_getinfo() resolves a node. */
static void resolves(const char *node, const char *service, unsigned board,
		     unsigned iface)
{
	struct fi_info *info = NULL;
	struct hal_addr addr;
	int ret;

	ret = fi_getinfo(FI_VERSION(1, 17), node, service, 0, NULL, &info);
	CHECK_MSG(ret == 0, "%s: %s", node, fi_strerror(-ret));
	CHECK(info->dest_addrlen == sizeof(struct hal_addr_host));
	memcpy(&addr, info->dest_addr, sizeof(addr));
	CHECK_MSG(addr.version == HAL_ADDR_HOST_VERSION &&
		  addr.board == board && addr.iface == iface, "%s is %u:%u",
		  node, addr.board, addr.iface);
	fi_freeinfo(info);
}

static void resolve_names(void)
{
	static const char *const bad[] = {
		"unimem://198.51.100.1/5:9", "unimem://127.0.0.1/2:9",
		"unimem://198.51.100.2/0:9", "unimem:///0:9", "unimem://[]/0:9",
		"198.51.100.2",
	};
	struct fi_info *info = NULL;

	resolves("unimem://198.51.100.1/4:9", NULL, 4, 9);
	resolves("unimem://198.51.100.1/4", "9", 4, 9);
	resolves("unimem://127.0.0.1/1:9", NULL, 6, 9);
	resolves("unimem://6:9", NULL, 6, 9);
	resolves("198.51.100.1", "9", 0, 9);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret = fi_getinfo(FI_VERSION(1, 17), bad[i], "9", 0, NULL,
				     &info);

		CHECK_MSG(ret == -FI_ENODATA, "%s: %s", bad[i],
			  fi_strerror(-ret));
	}
}

/* An address without a host, which has no byte behind it, is refused. */
static void insert_short(struct node *n)
{
	struct hal_addr *addr = malloc(sizeof(*addr));
	fi_addr_t at = 0;

	CHECK(addr != NULL);
	*addr = n->addr;
	addr->version = HAL_ADDR_VERSION;
	CHECK(fi_av_insert(n->av, addr, 1, &at, 0, NULL) == 0);
	CHECK(at == FI_ADDR_NOTAVAIL);
	free(addr);
}

/* One address that is none does not keep the valid ones out. */
static void insert_garbage(struct node *n)
{
	struct hal_addr_host addr[3] = { n->full, n->full, n->full };
	fi_addr_t at[3];

	for (uint8_t version = 0; version < 6; version += 5) {
		addr[1].addr.version = version;
		CHECK(fi_av_insert(n->av, addr, 3, at, 0, NULL) == 2);
		CHECK(at[1] == FI_ADDR_NOTAVAIL && at[2] != FI_ADDR_NOTAVAIL);
	}
}

static int talk_here(int fd, void *arg)
{
	static const size_t lens[] = { 8, 0, 4096, 70000 };
	struct traffic_opt opt = { .count = 100, .lens = lens, .nlens = 4 };
	struct hal_addr addr;
	struct node n;

	(void)arg;
	set_file("FI_UNIMEM_NET_HOSTS", "198.51.100.1 boards=5\n127.0.0.1\n",
		 0644);
	setenv("HOME", "/nonexistent", 1);	/* has no key */
	node_open(&n, 0);
	addr = n.addr;
	insert_short(&n);
	insert_garbage(&n);
	node_close(&n);
	CHECK(addr.board == 6);
	resolve_names();
	traffic_session(fd, &opt);
	CHECK(!hosts_mapped("libucp"));
	CHECK(!hosts_mapped("libunimem-net"));
	return 0;
}

/* Processes of one host, beside another that nobody reaches, do not load the
 * engine. */
static void hosts_one_of_two(void)
{
	static const char *const env[] = {
		"FI_UNIMEM_NET=lo", "FI_UNIMEM_BOARDS=2", "FI_UNIMEM_BOARD=1",
		NULL,
	};
	struct proc *p[2];

	for (int i = 0; i < 2; i++)
		p[i] = proc_start(talk_here, NULL, env);
	procs_join(p, 2);
	for (int i = 0; i < 2; i++)
		procs_recv_word(p[i]->fd);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

/* ---- Both forms of addresses ------------------------------------------- */

/* Insert addresses of the other form: none is taken, and standard error gets
 * one line, which names the parameter and says whether the other process has
 * it. */
static void insert_other_form(struct node *n, const void *addr, int count,
			      const char *whose)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), ret;
	fi_addr_t at[2] = { 0, 0 };
	char text[512], want[128];
	ssize_t len;

	g_fail_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	CHECK(fd >= 0 && g_fail_fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	ret = fi_av_insert(n->av, addr, (size_t)count, at, 0, NULL);
	CHECK(dup2(g_fail_fd, STDERR_FILENO) >= 0);
	CHECK(ret == 0);
	for (int i = 0; i < count; i++)
		CHECK(at[i] == FI_ADDR_NOTAVAIL);
	len = pread(fd, text, sizeof(text) - 1, 0);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	CHECK(len > 0);
	text[len] = '\0';
	snprintf(want, sizeof(want), "address 0 of %d is of a process %s "
		 "FI_UNIMEM_NET: all processes of a job must have it, or none",
		 count, whose);
	CHECK_MSG(strstr(text, want) != NULL && strchr(text, '\n') == NULL,
		  "not one line \"%s\" but: %s", want, text);
	close(fd);
}

/* A process with hosts in its addresses meets one without them, or the other
 * way round. */
static int meets_the_other(int fd, void *with)
{
	struct hal_addr_host full[2];
	struct hal_addr addr[2];
	struct node n;

	(void)fd;
	node_open(&n, 0);
	CHECK(n.addr.version == (with != NULL ? HAL_ADDR_HOST_VERSION :
				 HAL_ADDR_VERSION));
	for (int i = 0; i < 2; i++) {
		addr[i] = n.addr;
		addr[i].version = HAL_ADDR_VERSION;
		full[i] = n.full;
		full[i].addr.version = HAL_ADDR_HOST_VERSION;
	}
	for (int count = 1; count <= 2; count++)
		insert_other_form(&n, with != NULL ? (void *)addr : full,
				  count, with != NULL ? "without" : "with");
	node_close(&n);
	return 0;
}

static void hosts_other_form(void)
{
	static const char *const with[] = { "FI_UNIMEM_NET=lo", NULL };
	static const char *const without[] = { NULL };

	proc_expect(proc_start(meets_the_other, (void *)with, with), 0);
	procs_forget();
	proc_expect(proc_start(meets_the_other, NULL, without), 0);
}

/* ---- Finding this host ------------------------------------------------- */

/* A process with these variables is on this board; -1: it cannot start. */
struct start {
	const char *env[4];
	const char *hosts;		/* of FI_UNIMEM_NET_HOSTS, or NULL */
	int board;
};

static int is_on_board(int fd, void *arg)
{
	const struct start *s = arg;
	struct node_error err;
	struct node n;
	int ret;

	(void)fd;
	setenv("FI_UNIMEM_BOARDS", "2", 1);
	setenv("FI_UNIMEM_BOARD", "1", 1);
	setenv("HOME", "/nonexistent", 1);	/* has no key */
	if (s->hosts != NULL)
		set_file("FI_UNIMEM_NET_HOSTS", s->hosts, 0600);
	ret = node_try_open(&n, 0, &err);
	if (s->board < 0)
		CHECK_MSG(ret == -FI_EINVAL, "%s: %s", err.call,
			  fi_strerror(-ret));
	else
		CHECK_MSG(ret == 0 && n.addr.board == s->board, "board %u",
			  n.addr.board);
	if (ret == 0)
		node_close(&n);
	return 0;
}

static void hosts_start_up(void)
{
	static const struct start starts[] = {
		{ { "FI_UNIMEM_NET=lo" }, NULL, 1 },
		{ { "FI_UNIMEM_NET=lo", "SLURM_JOB_NODELIST=n[1-3]",
		    "SLURMD_NODENAME=n2" }, NULL, 3 },
		{ { "FI_UNIMEM_NET=lo", "SLURM_JOB_NODELIST=n[1-3]",
		    "SLURMD_NODENAME=n2" }, "n1\nn3 boards=4\nn2", 7 },
		{ { "SLURM_JOB_NODELIST=n[1-3]", "SLURMD_NODENAME=n2" }, NULL,
		  1 },
		{ { "FI_UNIMEM_NET=lo", "SLURM_JOB_NODELIST=n2",
		    "SLURMD_NODENAME=n2" }, NULL, 1 },
		{ { "FI_UNIMEM_NET=lo" }, "127.0.0.1 boards=3", 1 },
		{ { "FI_UNIMEM_NET=lo" }, "198.51.100.1\n198.51.100.2", -1 },
		{ { "FI_UNIMEM_NET=lo", "SLURMD_NODENAME=n2" },
		  "127.0.0.1\nn2", 1 },
		{ { "FI_UNIMEM_NET=lo" }, "127.0.0.1 boards=1\n198.51.100.1",
		  -1 },
		{ { "FI_UNIMEM_NET=lo" }, "127.0.0.1 boards", -1 },
		{ { "FI_UNIMEM_NET=lo", "FI_UNIMEM_NET_HOSTS=/nonexistent" },
		  NULL, -1 },
		{ { "FI_UNIMEM_NET=lo", "FI_UNIMEM_HAL=sim" },
		  "127.0.0.1\n198.51.100.1", -1 },
		{ { NULL }, "127.0.0.1\n198.51.100.1", -1 },
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct proc *p = proc_start(is_on_board, (void *)&starts[i],
					    starts[i].env);

		proc_expect(p, 0);
		procs_forget();
	}
}

static const struct procs_case cases[] = {
	PROCS_CASE(hosts_one_of_two, 0),
	PROCS_CASE(hosts_other_form, 0),
	PROCS_CASE(hosts_start_up, 0),
	PROCS_CASE(hosts_typed, 120),
	PROCS_CASE(hosts_typed_at_once, 120),
	PROCS_CASE(hosts_next_holder, 120),
	PROCS_CASE(hosts_nobody, 120),
	PROCS_CASE(hosts_wrong_key, 120),
	PROCS_CASE(hosts_no_key, 120),
	PROCS_CASE(hosts_open_key, 120),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
