/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lost.c - receives that name a peer which dies: each ends once, and other
 * receives stay posted (docs/protocol.md, section 9).
 */
#include "lib/procs.h"

#define CONFIRM_US	200000		/* nothing more comes for so long */

/* Send 8 bytes with a tag, or without one if tag is NO_TAG. The queue of the
 * receiver may be full. */
#define NO_TAG	UINT64_MAX

static void inject(struct node *n, fi_addr_t to, const void *buf, uint64_t tag)
{
	ssize_t ret;

	while ((ret = tag == NO_TAG ? fi_inject(n->ep, buf, 8, to) :
		fi_tinject(n->ep, buf, 8, to, tag)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	FI(ret);
}

/* ---- Directed receives ------------------------------------------------- */

#define NRECVS	20			/* half of them directed */
#define NOTHERS	4			/* other receives that name the peer */

/* Receives of other kinds that name a peer; their buffer is shared. */
static void post_others(struct node *n, fi_addr_t from, struct fi_context2 *ctx)
{
	static uint8_t buf[4096];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg multi = { .msg_iov = &iov, .iov_count = 1, .addr = from,
				.context = &ctx[3] };

	FI(fi_recv(n->ep, buf, 8, NULL, from, &ctx[0]));
	FI(fi_trecv(n->ep, buf, 8, NULL, from, 0, ~UINT64_C(0), &ctx[1]));
	FI(fi_trecv(n->ep, buf, 8, NULL, from, 6, 0, &ctx[2]));
	FI(fi_recvmsg(n->ep, &multi, FI_MULTI_RECV | FI_COMPLETION));
}

/* Each of the receives ends once, in any order. */
static void expect_all(struct node *n, const struct fi_context2 *ctx, int step,
		       int count)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	uint64_t ended = 0;
	int ret;

	for (int i = 0; i < count; i++) {
		long k;

		while ((ret = node_poll(n, &entry, &error)) == 0)
			;
		CHECK_MSG(ret == -FI_EAVAIL && error.err == FI_ECONNRESET &&
			  (error.flags & FI_RECV), "%s", ret == 1 ? "success" :
			  fi_strerror(error.err));
		k = (struct fi_context2 *)error.op_context - ctx;
		CHECK_MSG(k >= 0 && k < count * step && k % step == step - 1,
			  "receive %ld", k);
		CHECK_MSG(!(ended >> k & 1), "receive %ld ends twice", k);
		ended |= UINT64_C(1) << k;
	}
}

/* Each call that would wait for the dead peer says so. */
static void receives_fail(struct node *n, fi_addr_t from)
{
	static uint8_t buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg multi = { .msg_iov = &iov, .iov_count = 1, .addr = from };
	struct fi_msg_tagged look = { .addr = from, .tag = 5, .context = buf };

	CHECK(fi_recv(n->ep, buf, 8, NULL, from, NULL) == -FI_ECONNRESET);
	CHECK(fi_trecv(n->ep, buf, 8, NULL, from, 5, 0, NULL) ==
	      -FI_ECONNRESET);
	CHECK(fi_recvmsg(n->ep, &multi, FI_MULTI_RECV) == -FI_ECONNRESET);
	FI(fi_trecvmsg(n->ep, &look, FI_PEEK | FI_COMPLETION));
	node_expect_error(n, buf, FI_RECV, FI_ECONNRESET);
}

/* The dead peer's address has a second index: calls that name it fail, also
 * after the first index was removed. */
static void removed_index_fails(struct node *n, fi_addr_t *first)
{
	struct hal_addr_host addr;
	size_t len = sizeof(addr);
	fi_addr_t second;

	FI(fi_av_lookup(n->av, *first, &addr, &len));
	second = node_insert(n, &addr.addr);
	receives_fail(n, second);
	FI(fi_av_remove(n->av, first, 1, 0));
	receives_fail(n, second);
}

static int director_of_receives(int fd, void *arg)
{
	struct fi_context2 ctx[NRECVS], other[NOTHERS], gone;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	uint8_t buf[NRECVS][8];
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	node_send(&n, 1, buf, 8, 1);
	node_recv(&n, buf, 8, 99);
	for (int i = 0; i < NRECVS; i++)
		FI(fi_trecv(n.ep, buf[i], 8, NULL, i & 1 ? n.peer[1] :
			    FI_ADDR_UNSPEC, 5, 0, &ctx[i]));
	FI(fi_trecv(n.ep, buf[0], 8, NULL, n.peer[1], 5, 0, &gone));
	FI(fi_cancel(&n.ep->fid, &gone));
	node_expect_error(&n, &gone, FI_RECV, FI_ECANCELED);
	procs_exchange(fd, 0);
	expect_all(&n, ctx, 2, NRECVS / 2);
	receives_fail(&n, n.peer[1]);
	node_quiet(&n, CONFIRM_US);
	for (int i = 1; i < NRECVS; i += 2)
		CHECK(fi_cancel(&n.ep->fid, &ctx[i]) == -FI_ENOENT);
	/* of a peer that dies before this process has sent to it */
	post_others(&n, n.peer[3], other);
	procs_exchange(fd, 0);
	expect_all(&n, other, 1, NOTHERS);
	receives_fail(&n, n.peer[3]);
	removed_index_fails(&n, &n.peer[1]);
	removed_index_fails(&n, &n.peer[3]);
	/* Connections with the other peers still work. */
	procs_send_word(fd, 0);
	for (int i = 0; i < NRECVS; i += 2) {
		while (node_poll(&n, &entry, &error) == 0)
			;
		CHECK(entry.op_context == &ctx[i] && entry.len == 8);
	}
	node_quiet(&n, CONFIRM_US);
	node_close(&n);
	return 0;
}

/* The director of receives has not connected to this one, but is connected. */
static int caller(int fd, void *arg)
{
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	inject(&n, n.peer[0], g_shared->bytes, 99);
	node_idle(&n, fd);
	return 1;
}

static int giver(int fd, void *arg)
{
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	node_idle(&n, fd);
	for (int i = 0; i < NRECVS / 2; i++)
		node_send(&n, 0, g_shared->bytes, 8, 5);
	node_close(&n);
	return 0;
}

static void directed(void)
{
	struct proc *p[4] = { proc_start(director_of_receives, NULL, NULL),
			      proc_start(giver, NULL, NULL),
			      proc_start(giver, NULL, NULL),
			      proc_start(caller, NULL, NULL) };

	procs_join(p, 4);
	procs_recv_word(p[0]->fd);
	proc_kill(p[1]);
	procs_exchange(p[0]->fd, 0);
	proc_kill(p[3]);
	procs_exchange(p[0]->fd, 0);
	procs_send_word(p[2]->fd, 0);
	proc_expect(p[0], 0);
	proc_expect(p[2], 0);
}

/* Messages that came before the peer died are received afterwards. A buffer for
 * several messages takes what is there, and ends then. If *arg is true, the end
 * may be noticed before anything is sent to the peer; otherwise a send comes
 * first. */
static int heir(int fd, void *arg)
{
	uint8_t buf[4096];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_context2 ctx;
	struct fi_msg multi = { .msg_iov = &iov, .iov_count = 1,
				.context = &ctx };
	struct fi_msg_tagged look = { .tag = 7, .context = &ctx };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct node n;
	ssize_t ret;

	node_start(&n, fd, 0);
	multi.addr = look.addr = n.peer[1];
	do {
		FI(fi_trecvmsg(n.ep, &look, FI_PEEK | FI_COMPLETION));
		while ((ret = node_poll(&n, &entry, &error)) == 0)
			;
		CHECK(ret == 1 || error.err == FI_ENOMSG);
	} while (ret != 1);
	if (*(bool *)arg)
		node_report(&n, fd, 0);
	else
		procs_exchange(fd, 0);
	/* the messages are taken before the end is reported */
	while ((ret = fi_tinject(n.ep, buf, 8, n.peer[1], 1)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(ret == -FI_ECONNRESET, "%s", fi_strerror((int)-ret));
	FI(fi_trecv(n.ep, buf, 8, NULL, n.peer[1], 7, 0, &ctx));
	CHECK(node_poll(&n, &entry, &error) == 1 && entry.op_context == &ctx);
	CHECK(fi_trecv(n.ep, buf, 8, NULL, n.peer[1], 7, 0, &ctx) ==
	      -FI_ECONNRESET);
	FI(fi_recvmsg(n.ep, &multi, FI_MULTI_RECV | FI_COMPLETION));
	CHECK(node_poll(&n, &entry, &error) == 1 && entry.op_context == &ctx &&
	      !(entry.flags & FI_MULTI_RECV));
	while ((ret = node_poll(&n, &entry, &error)) == 0)
		;
	CHECK(ret == -FI_EAVAIL && error.op_context == &ctx &&
	      error.err == FI_ECONNRESET && (error.flags & FI_MULTI_RECV));
	node_quiet(&n, CONFIRM_US);
	node_close(&n);
	return 0;
}

static int testator(int fd, void *arg)
{
	uint8_t buf[8] = { 0 };
	struct node n;

	(void)arg;
	node_start(&n, fd, 0);
	inject(&n, n.peer[0], buf, 7);
	inject(&n, n.peer[0], buf, NO_TAG);
	node_report(&n, fd, 0);
	return 1;
}

static void stored(void *arg)
{
	struct proc *p[2] = { proc_start(heir, arg, NULL),
			      proc_start(testator, NULL, NULL) };

	procs_join(p, 2);
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	proc_kill(p[1]);
	procs_send_word(p[0]->fd, 0);
	proc_expect(p[0], 0);
}

/* A peer that closes its endpoint has not died: receives that name it stay. */
static int patient(int fd, void *arg)
{
	struct fi_context2 ctx[2];
	uint8_t buf[8] = { 0 };
	struct node n;
	ssize_t ret;

	(void)arg;
	node_start(&n, fd, 0);
	node_send(&n, 1, buf, 8, 1);
	FI(fi_trecv(n.ep, buf, 8, NULL, n.peer[1], 5, 0, &ctx[0]));
	procs_exchange(fd, 0);
	while ((ret = fi_tinject(n.ep, buf, 8, n.peer[1], 1)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	CHECK_MSG(ret == -FI_ECONNRESET, "%s", fi_strerror((int)-ret));
	FI(fi_trecv(n.ep, buf, 8, NULL, n.peer[1], 5, 0, &ctx[1]));
	node_quiet(&n, CONFIRM_US);
	for (int i = 0; i < 2; i++) {
		FI(fi_cancel(&n.ep->fid, &ctx[i]));
		node_expect_error(&n, &ctx[i], FI_RECV, FI_ECANCELED);
	}
	node_close(&n);
	return 0;
}

/* It lives on if *arg is true. */
static int closer(int fd, void *arg)
{
	uint8_t buf[8];
	struct node n;

	node_start(&n, fd, 0);
	node_recv(&n, buf, 8, 1);
	node_report(&n, fd, 0);
	node_close(&n);
	if (*(bool *)arg)
		procs_exchange(fd, 0);
	return 0;
}

static void closed_in_order(void *arg)
{
	bool lives = *(bool *)arg;
	struct proc *p[2] = { proc_start(patient, NULL, NULL),
			      proc_start(closer, &lives, NULL) };

	procs_join(p, 2);
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	procs_send_word(p[1]->fd, 0);
	if (lives)
		procs_recv_word(p[1]->fd);
	else
		proc_expect(p[1], 0);
	procs_send_word(p[0]->fd, 0);
	proc_expect(p[0], 0);
	if (lives)
		proc_finish(p[1]);
}

/* ---- Peers that come again ---------------------------------------------- */

/* A receive that names an address of any incarnation outlives the first one,
 * and gets the message of the next. */
static int namer(int fd, void *arg)
{
	struct hal_addr_host all[2];
	uint8_t buf[8] = { 0 };
	struct fi_context2 ctx;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct node n;
	fi_addr_t to;
	ssize_t ret;

	(void)arg;
	node_open(&n, 0);
	CHECK(procs_send(fd, &n.full, sizeof(n.full)));
	CHECK(procs_recv(fd, all, sizeof(all), -1) == sizeof(all));
	all[1].addr.nonce = HAL_ADDR_ANY;
	to = node_insert(&n, &all[1].addr);
	inject(&n, to, buf, 62);
	FI(fi_trecv(n.ep, buf, 8, NULL, to, 63, 0, &ctx));
	procs_exchange(fd, 0);
	while ((ret = fi_tinject(n.ep, buf, 8, to, 64)) == 0 ||
	       ret == -FI_EAGAIN)
		fi_cq_read(n.cq, NULL, 0);
	node_quiet(&n, CONFIRM_US);
	procs_exchange(fd, 0);
	while (node_poll(&n, &entry, &error) == 0)
		;
	CHECK(entry.op_context == &ctx && buf[0] == 3);
	node_close(&n);
	return 0;
}

/* Of the two incarnations the first has a message, the second sends one. */
static int named(int fd, void *arg)
{
	struct hal_addr_host all[2];
	uint8_t buf[8] = { 3 };
	struct node n;

	(void)arg;
	node_open(&n, 0);
	CHECK(procs_send(fd, &n.full, sizeof(n.full)));
	CHECK(procs_recv(fd, all, sizeof(all), -1) == sizeof(all));
	if (g_shared->word[7]++ == 0) {
		node_recv(&n, buf, 8, 62);
		node_report(&n, fd, 0);
		return 1;
	}
	n.peer[0] = node_insert(&n, &all[0].addr);
	inject(&n, n.peer[0], buf, 63);
	node_report(&n, fd, 0);
	node_close(&n);
	return 0;
}

static void any_incarnation(void)
{
	const char *const env[] = { "MPI_LOCALRANKID=4712", NULL };
	struct proc *p[2] = { proc_start(namer, NULL, NULL),
			      proc_start(named, NULL, env) };
	struct hal_addr_host all[2];

	for (int i = 0; i < 2; i++)
		CHECK(procs_recv(p[i]->fd, &all[i], sizeof(all[i]), -1) > 0);
	for (int i = 0; i < 2; i++)
		CHECK(procs_send(p[i]->fd, all, sizeof(all)));
	procs_recv_word(p[0]->fd);
	procs_recv_word(p[1]->fd);
	proc_kill(p[1]);
	procs_exchange(p[0]->fd, 0);
	proc_restart(p[1], named, NULL, env);
	CHECK(procs_recv(p[1]->fd, &all[1], sizeof(all[1]), -1) > 0);
	CHECK(procs_send(p[1]->fd, all, sizeof(all)));
	procs_recv_word(p[1]->fd);
	procs_send_word(p[0]->fd, 0);
	proc_expect(p[0], 0);
	proc_finish(p[1]);
}

/* ---- An exact address beside a name for all ------------------------------ */

/* The exact address is inserted after the address of any incarnation, so
 * receives that name it stay posted when the peer dies. They end when the other
 * address is removed, and later ones are refused. */
static int renamer(int fd, void *arg)
{
	struct fi_context2 ctx[NOTHERS];
	struct hal_addr_host addr;
	size_t len = sizeof(addr);
	fi_addr_t name, exact;
	struct hal_addr any;
	uint8_t buf[8];
	struct node n;

	node_start(&n, fd, 0);
	FI(fi_av_lookup(n.av, n.peer[1], &addr, &len));
	FI(fi_av_remove(n.av, &n.peer[1], 1, 0));
	any = addr.addr;
	any.nonce = HAL_ADDR_ANY;
	name = node_insert(&n, &any);
	exact = node_insert(&n, &addr.addr);
	if (*(bool *)arg) {
		n.peer[1] = name;
		node_send(&n, 1, buf, 8, 1);
	}
	node_recv(&n, buf, 8, 99);
	post_others(&n, exact, ctx);
	procs_exchange(fd, 0);
	node_quiet(&n, CONFIRM_US);
	FI(fi_av_remove(n.av, &name, 1, 0));
	expect_all(&n, ctx, 1, NOTHERS);
	receives_fail(&n, exact);
	CHECK(fi_tinject(n.ep, buf, 8, exact, 1) == -FI_ECONNRESET);
	node_quiet(&n, CONFIRM_US);
	node_close(&n);
	return 0;
}

static void name_removed(void *arg)
{
	struct proc *p[2] = { proc_start(renamer, arg, NULL),
			      proc_start(caller, NULL, NULL) };

	procs_join(p, 2);
	procs_recv_word(p[0]->fd);
	proc_kill(p[1]);
	procs_send_word(p[0]->fd, 0);
	proc_expect(p[0], 0);
}

PROCS_MAIN(
	PROCS_CASE(directed, 0),
	PROCS_WITH(stored, 0, stored, &(bool){ true }),
	PROCS_WITH(stored_unnoticed, 0, stored, &(bool){ false }),
	PROCS_WITH(closed_in_order, 0, closed_in_order, &(bool){ true }),
	PROCS_WITH(closed_and_ended, 0, closed_in_order, &(bool){ false }),
	PROCS_CASE(any_incarnation, 0),
	PROCS_WITH(name_of_receiver, 0, name_removed, &(bool){ false }),
	PROCS_WITH(name_of_sender, 0, name_removed, &(bool){ true }),
)
