/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs_node.c - endpoints of child processes, see procs.h
 *
 * Opens and closes nodes, exchanges their addresses by way of the director, and
 * waits for single messages. A test owns its nodes. Memory for remote access is
 * in procs_mem.c, traffic that checks itself in procs_traffic.c.
 */
#include <string.h>

#include "lib/procs.h"

static int node_info(struct node *n, int flags)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (hints == NULL)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
	if (flags & NODE_ONESIDED)
		hints->caps |= FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = flags & NODE_SAFE ? FI_THREAD_SAFE :
		FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &n->info);
	fi_freeinfo(hints);
	return ret;
}

#define TRY(what, expr)							\
	do {								\
		err->call = what;					\
		err->ret = (int)(expr);					\
		if (err->ret != 0)					\
			goto failed;					\
	} while (0)

int node_try_open(struct node *n, int flags, struct node_error *err)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	size_t len = sizeof(n->full);

	memset(n, 0, sizeof(*n));
	if (flags & NODE_WAIT)
		cq_attr.wait_obj = FI_WAIT_UNSPEC;
	TRY("fi_getinfo", node_info(n, flags));
	TRY("fi_fabric", fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	TRY("fi_domain", fi_domain(n->fabric, n->info, &n->domain, NULL));
	TRY("fi_av_open", fi_av_open(n->domain, &av_attr, &n->av, NULL));
	TRY("fi_cq_open", fi_cq_open(n->domain, &cq_attr, &n->cq, NULL));
	TRY("fi_endpoint", fi_endpoint(n->domain, n->info, &n->ep, NULL));
	TRY("fi_ep_bind", fi_ep_bind(n->ep, &n->av->fid, 0));
	TRY("fi_ep_bind", fi_ep_bind(n->ep, &n->cq->fid,
				     FI_TRANSMIT | FI_RECV));
	TRY("fi_enable", fi_enable(n->ep));
	TRY("fi_getname", fi_getname(&n->ep->fid, &n->full, &len));
	return 0;
failed:
	node_close(n);
	return err->ret;
}

void node_open(struct node *n, int flags)
{
	struct node_error err;

	CHECK_MSG(node_try_open(n, flags, &err) == 0, "%s: %s", err.call,
		  fi_strerror(-err.ret));
}

void node_close(struct node *n)
{
	struct fid *const fid[] = {
		n->ep != NULL ? &n->ep->fid : NULL,
		n->cq != NULL ? &n->cq->fid : NULL,
		n->av != NULL ? &n->av->fid : NULL,
		n->domain != NULL ? &n->domain->fid : NULL,
		n->fabric != NULL ? &n->fabric->fid : NULL,
	};

	for (size_t i = 0; i < sizeof(fid) / sizeof(fid[0]); i++)
		if (fid[i] != NULL)
			FI(fi_close(fid[i]));
	if (n->info != NULL)
		fi_freeinfo(n->info);
	memset(n, 0, sizeof(*n));
}

fi_addr_t node_insert(struct node *n, const struct hal_addr *addr)
{
	fi_addr_t at = FI_ADDR_NOTAVAIL;

	CHECK(fi_av_insert(n->av, addr, 1, &at, 0, NULL) == 1);
	return at;
}

void node_join(struct node *n, int fd)
{
	struct hal_addr_host addr[PROCS_MAX];
	ssize_t len;

	CHECK(procs_send(fd, &n->full, sizeof(n->full)));
	len = procs_recv(fd, addr, sizeof(addr), -1);
	CHECK(len > 0 && len % sizeof(addr[0]) == 0);
	n->count = (int)(len / sizeof(addr[0]));
	n->self = -1;
	for (int i = 0; i < n->count; i++) {
		n->peer[i] = FI_ADDR_NOTAVAIL;
		if (addr[i].addr.iface == 0)
			continue;
		if (memcmp(&addr[i], &n->full, sizeof(n->full)) == 0)
			n->self = i;
		n->peer[i] = node_insert(n, &addr[i].addr);
	}
	CHECK(n->self >= 0);
}

void node_start(struct node *n, int fd, int flags)
{
	node_open(n, flags);
	node_join(n, fd);
}

/* Turn the result of reading the queue into that of node_poll(). */
static int node_given(struct node *n, ssize_t ret,
		      struct fi_cq_err_entry *error)
{
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		memset(error, 0, sizeof(*error));
		CHECK(fi_cq_readerr(n->cq, error, 0) == 1);
		n->events++;
		return -FI_EAVAIL;
	}
	CHECK_MSG(ret == 1, "fi_cq_read: %s", fi_strerror((int)-ret));
	n->events++;
	return 1;
}

int node_poll(struct node *n, struct fi_cq_tagged_entry *entry,
	      struct fi_cq_err_entry *error)
{
	return node_given(n, fi_cq_read(n->cq, entry, 1), error);
}

int node_sleep(struct node *n, struct fi_cq_tagged_entry *entry,
	       struct fi_cq_err_entry *error, int ms)
{
	return node_given(n, fi_cq_sread(n->cq, entry, 1, NULL, ms), error);
}

uint64_t node_idle(struct node *n, int fd)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	uint64_t word;

	for (;;) {
		for (int i = 0; i < 100; i++)
			CHECK_MSG(node_poll(n, &entry, &error) == 0,
				  "a completion nobody waits for");
		if (procs_recv(fd, &word, sizeof(word), 0) == sizeof(word))
			return word;
	}
}

uint64_t node_report(struct node *n, int fd, uint64_t word)
{
	procs_send_word(fd, word);
	return node_idle(n, fd);
}

/* Wait for the completion of context; no other completion may come. Returns its
 * length. */
static size_t node_await(struct node *n, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	do {
		ret = node_poll(n, &entry, &error);
		CHECK_MSG(ret >= 0, "completion in error: %s",
			  fi_strerror(error.err));
	} while (ret == 0);
	CHECK(entry.op_context == context);
	return entry.len;
}

void node_send(struct node *n, int to, const void *buf, size_t len,
	       uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_tsend(n->ep, buf, len, NULL, n->peer[to], tag,
			       (void *)buf)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	FI(ret);
	node_await(n, (void *)buf);
}

size_t node_recv(struct node *n, void *buf, size_t len, uint64_t tag)
{
	FI(fi_trecv(n->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, 0, buf));
	return node_await(n, buf);
}

void node_quiet(struct node *n, uint64_t us)
{
	uint64_t end = procs_now() + us;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	while (procs_now() < end)
		CHECK_MSG(node_poll(n, &entry, &error) == 0,
			  "a completion too many");
}

void node_expect_error(struct node *n, void *context, uint64_t flag, int err)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	while ((ret = node_poll(n, &entry, &error)) == 0)
		;
	CHECK_MSG(ret == -FI_EAVAIL, "success, not an error");
	CHECK_MSG(error.err == err, "%s, not %s", fi_strerror(error.err),
		  fi_strerror(err));
	CHECK((error.flags & flag) && error.op_context == context);
}
