/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_misuse.c - bad arguments of every call: the documented error is
 * returned, and nothing is lost.
 *
 * The cases are rows of a table. After each row the two endpoints still
 * exchange a message, and the objects that were made for the row can be closed.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "lib/ep_pair.h"
#include "hal/hal.h"
#include "unm_info.h"
#include "unm_offer.h"

/* The objects that a row uses. Those of a are enabled and in use. */
struct ground {
	struct ep *a, *b;
	fi_addr_t ab, ba;
	struct fid_ep *fresh;		/* of a's domain, nothing bound */
	struct fid_eq *eq;		/* of a's fabric, no wait object */
	struct fid_cq *cq_wait;		/* of a's domain, with a wait object */
	struct fid_mr *mr;
	bool rma, atomic;		/* offered by this provider */
	union {				/* of calls that must not succeed */
		struct fid_ep *ep;
		struct fid_pep *pep;
		struct fid_av *av;
		struct fid_cq *cq;
		struct fid_eq *eq;
		struct fid_mr *mr;
		struct fid_mc *mc;
		struct fid_stx *stx;
		struct fid_cntr *cntr;
		struct fid_domain *domain;
		struct fid_av_set *av_set;
		struct fi_info *info;
		void *ops;
	} out;
	char buf[UNM_INJECT_MAX + 1];
	struct iovec iov[UNM_IOV_MAX + 1];
	struct hal_addr name;		/* b's address */
};

struct misuse {
	const char *what;
	ssize_t (*call)(struct ground *g, ssize_t *want);
};

static struct misuse misuses[300];
static size_t nmisuses;

/* A row: its name, the value that it must return, the call. Rows are executed
 * in the order of the file. */
#define MISUSE(what, want_ret, ...)					\
	static ssize_t misuse_##what(struct ground *g, ssize_t *want)	\
	{								\
		(void)g;						\
		*want = (want_ret);					\
		return (__VA_ARGS__);					\
	}								\
	__attribute__((constructor))					\
	static void misuse_add_##what(void)				\
	{								\
		if (nmisuses < sizeof(misuses) / sizeof(misuses[0]))	\
			misuses[nmisuses++] = (struct misuse){		\
				#what, misuse_##what };			\
	}

/* ---- Binding --------------------------------------------------------- */

#define BIND(fid, flags)	fi_ep_bind(g->fresh, fid, flags)

MISUSE(bind_mr, -FI_EINVAL, BIND(&g->mr->fid, 0))
MISUSE(bind_domain, -FI_EINVAL, BIND(&g->a->domain->fid, 0))
MISUSE(bind_fabric, -FI_EINVAL, BIND(&g->a->fabric->fid, 0))
MISUSE(bind_ep, -FI_EINVAL, BIND(&g->a->ep->fid, 0))
MISUSE(bind_itself, -FI_EINVAL, BIND(&g->fresh->fid, FI_RECV))
MISUSE(bind_eq_flags, -FI_EBADFLAGS, BIND(&g->eq->fid, FI_RECV))
MISUSE(bind_eq_twice, -FI_EINVAL,
       BIND(&g->eq->fid, 0), BIND(&g->eq->fid, 0))
MISUSE(bind_cq_no_flags, -FI_EINVAL, BIND(&g->a->cq->fid, 0))
MISUSE(bind_cq_selective_only, -FI_EINVAL,
       BIND(&g->a->cq->fid, FI_SELECTIVE_COMPLETION))
MISUSE(bind_cq_flags, -FI_EBADFLAGS,
       BIND(&g->a->cq->fid, FI_RECV | FI_REMOTE_READ))
MISUSE(bind_cq_twice, -FI_EINVAL,
       BIND(&g->a->cq->fid, FI_RECV), BIND(&g->cq_wait->fid, FI_RECV))
MISUSE(bind_cq_of_another_domain, -FI_EINVAL, BIND(&g->b->cq->fid, FI_RECV))
MISUSE(bind_av_of_another_domain, -FI_EINVAL, BIND(&g->b->av->fid, 0))
MISUSE(bind_av_twice, -FI_EINVAL,
       BIND(&g->a->av->fid, 0), BIND(&g->a->av->fid, 0))
MISUSE(bind_cntr_flags, -FI_EBADFLAGS,
       BIND(&g->a->txcntr->fid, FI_SELECTIVE_COMPLETION))
MISUSE(bind_cntr_of_another_domain, -FI_EINVAL,
       BIND(&g->b->txcntr->fid, FI_SEND))
MISUSE(bind_second_cntr, -FI_EINVAL,
       BIND(&g->a->txcntr->fid, FI_SEND), BIND(&g->a->rxcntr->fid, FI_SEND))
MISUSE(bind_cq_enabled, -FI_EOPBADSTATE,
       fi_ep_bind(g->a->ep, &g->a->cq->fid, FI_RECV))
MISUSE(bind_av_enabled, -FI_EOPBADSTATE,
       fi_ep_bind(g->a->ep, &g->a->av->fid, 0))
MISUSE(bind_eq_enabled, -FI_EOPBADSTATE,
       fi_ep_bind(g->a->ep, &g->eq->fid, 0))
MISUSE(bind_eq_of_another_fabric, -FI_EINVAL,
       fi_eq_open(g->b->fabric, NULL, &g->out.eq, NULL) != 0 ? 0 :
       BIND(&g->out.eq->fid, 0) + (int)fi_close(&g->out.eq->fid))
MISUSE(av_bind, -FI_ENOSYS, fi_av_bind(g->a->av, &g->eq->fid, 0))
MISUSE(domain_bind, -FI_ENOSYS,
       fi_domain_bind(g->a->domain, &g->eq->fid, 0))

/* ---- Enabling, and before it ----------------------------------------- */

MISUSE(enable_without_av, -FI_ENOAV,
       BIND(&g->a->cq->fid, FI_RECV | FI_SEND), fi_enable(g->fresh))
MISUSE(enable_without_cq, -FI_ENOCQ,
       BIND(&g->a->av->fid, 0), fi_enable(g->fresh))
MISUSE(enable_twice, -FI_EOPBADSTATE, fi_enable(g->a->ep))
MISUSE(early_send, -FI_EOPBADSTATE,
       fi_send(g->fresh, g->buf, 1, NULL, 0, NULL))
MISUSE(early_sendv, -FI_EOPBADSTATE,
       fi_sendv(g->fresh, g->iov, NULL, 1, 0, NULL))
MISUSE(early_sendmsg, -FI_EOPBADSTATE, fi_sendmsg(g->fresh,
	&(struct fi_msg){ .msg_iov = g->iov, .iov_count = 1 }, 0))
MISUSE(early_inject, -FI_EOPBADSTATE, fi_inject(g->fresh, g->buf, 1, 0))
MISUSE(early_senddata, -FI_EOPBADSTATE,
       fi_senddata(g->fresh, g->buf, 1, NULL, 1, 0, NULL))
MISUSE(early_tsend, -FI_EOPBADSTATE,
       fi_tsend(g->fresh, g->buf, 1, NULL, 0, 1, NULL))
MISUSE(early_tinjectdata, -FI_EOPBADSTATE,
       fi_tinjectdata(g->fresh, g->buf, 1, 1, 0, 1))
MISUSE(early_recv, -FI_EOPBADSTATE,
       fi_recv(g->fresh, g->buf, 1, NULL, FI_ADDR_UNSPEC, NULL))
MISUSE(early_recvv, -FI_EOPBADSTATE,
       fi_recvv(g->fresh, g->iov, NULL, 1, FI_ADDR_UNSPEC, NULL))
MISUSE(early_trecv, -FI_EOPBADSTATE,
       fi_trecv(g->fresh, g->buf, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL))
MISUSE(early_peek, -FI_EOPBADSTATE, fi_trecvmsg(g->fresh,
	&(struct fi_msg_tagged){ .addr = FI_ADDR_UNSPEC }, FI_PEEK))
MISUSE(early_cancel, -FI_ENOENT, fi_cancel(&g->fresh->fid, g))
MISUSE(early_getname, -FI_EOPBADSTATE, fi_getname(&g->fresh->fid, g->buf,
	&(size_t){ sizeof(g->buf) }))
MISUSE(early_write, g->rma ? -FI_EOPBADSTATE : -FI_ENOSYS,
       fi_write(g->fresh, g->buf, 1, NULL, 0, 0, 0, NULL))
MISUSE(early_read, g->rma ? -FI_EOPBADSTATE : -FI_ENOSYS,
       fi_read(g->fresh, g->buf, 1, NULL, 0, 0, 0, NULL))
MISUSE(early_inject_write, g->rma ? -FI_EOPBADSTATE : -FI_ENOSYS,
       fi_inject_write(g->fresh, g->buf, 1, 0, 0, 0))
MISUSE(early_atomic, g->atomic ? -FI_EOPBADSTATE : -FI_ENOSYS,
       fi_atomic(g->fresh, g->buf, 1, NULL, 0, 0, 0, FI_UINT64, FI_SUM,
		 NULL))

/* ---- Sending --------------------------------------------------------- */

#define MSG(n, to)	&(struct fi_msg){ .msg_iov = g->iov,		\
		.iov_count = (n), .addr = (to) }
#define TMSG(n, to)	&(struct fi_msg_tagged){ .msg_iov = g->iov,	\
		.iov_count = (n), .addr = (to) }
#define MANY	(UNM_IOV_MAX + 1)

MISUSE(send_to_unspec, -FI_EINVAL,
       fi_send(g->a->ep, g->buf, 1, NULL, FI_ADDR_UNSPEC, NULL))
MISUSE(inject_to_notavail, -FI_EINVAL,
       fi_inject(g->a->ep, g->buf, 1, FI_ADDR_NOTAVAIL))
MISUSE(send_to_unknown, -FI_EINVAL,
       fi_send(g->a->ep, g->buf, 1, NULL, 99, NULL))
MISUSE(tsend_to_unknown, -FI_EINVAL,
       fi_tsend(g->a->ep, g->buf, 1, NULL, UINT32_MAX, 1, NULL))
MISUSE(long_send_to_unknown, -FI_EINVAL,
       fi_send(g->a->ep, g->buf, 4096, NULL, 99, NULL))
MISUSE(sendmsg_to_unknown, -FI_EINVAL, fi_sendmsg(g->a->ep, MSG(1, 99), 0))
MISUSE(sendv_many, -FI_EINVAL,
       fi_sendv(g->a->ep, g->iov, NULL, MANY, g->ab, NULL))
MISUSE(sendmsg_many, -FI_EINVAL,
       fi_sendmsg(g->a->ep, MSG(SIZE_MAX, g->ab), 0))
MISUSE(tsendv_many, -FI_EINVAL,
       fi_tsendv(g->a->ep, g->iov, NULL, MANY, g->ab, 1, NULL))
MISUSE(tsendmsg_many, -FI_EINVAL,
       fi_tsendmsg(g->a->ep, TMSG(MANY, g->ab), 0))
MISUSE(sendmsg_peek, -FI_EBADFLAGS,
       fi_sendmsg(g->a->ep, MSG(1, g->ab), FI_PEEK))
MISUSE(sendmsg_match_complete, -FI_EBADFLAGS,
       fi_sendmsg(g->a->ep, MSG(1, g->ab), FI_MATCH_COMPLETE))
MISUSE(tsendmsg_claim, -FI_EBADFLAGS,
       fi_tsendmsg(g->a->ep, TMSG(1, g->ab), FI_CLAIM))
MISUSE(tsendmsg_multicast, -FI_EBADFLAGS,
       fi_tsendmsg(g->a->ep, TMSG(1, g->ab), FI_MULTICAST))
MISUSE(sendmsg_unknown_flag, -FI_EBADFLAGS,
       fi_sendmsg(g->a->ep, MSG(1, g->ab), UINT64_C(1) << 60))
MISUSE(inject_too_long, -FI_EMSGSIZE,
       fi_inject(g->a->ep, g->buf, sizeof(g->buf), g->ab))
MISUSE(injectdata_too_long, -FI_EMSGSIZE,
       fi_injectdata(g->a->ep, g->buf, sizeof(g->buf), 1, g->ab))
MISUSE(tinject_too_long, -FI_EMSGSIZE,
       fi_tinject(g->a->ep, g->buf, SIZE_MAX, g->ab, 1))
MISUSE(sendmsg_inject_too_long, -FI_EMSGSIZE,
       fi_sendmsg(g->a->ep, &(struct fi_msg){
		.msg_iov = &(struct iovec){ g->buf, sizeof(g->buf) },
		.iov_count = 1, .addr = g->ab }, FI_INJECT))

/* ---- Receiving ------------------------------------------------------- */

MISUSE(recv_from_unknown, -FI_EINVAL,
       fi_recv(g->a->ep, g->buf, 1, NULL, 99, NULL))
MISUSE(trecv_from_unknown, -FI_EINVAL,
       fi_trecv(g->a->ep, g->buf, 1, NULL, UINT64_MAX - 1, 1, 0, NULL))
MISUSE(peek_from_unknown, -FI_EINVAL,
       fi_trecvmsg(g->a->ep, TMSG(0, 99), FI_PEEK))
MISUSE(recvv_many, -FI_EINVAL,
       fi_recvv(g->a->ep, g->iov, NULL, MANY, FI_ADDR_UNSPEC, NULL))
MISUSE(recvmsg_many, -FI_EINVAL,
       fi_recvmsg(g->a->ep, MSG(MANY, FI_ADDR_UNSPEC), 0))
MISUSE(trecvv_many, -FI_EINVAL, fi_trecvv(g->a->ep, g->iov, NULL, MANY,
	FI_ADDR_UNSPEC, 1, 0, NULL))
MISUSE(trecvmsg_many, -FI_EINVAL,
       fi_trecvmsg(g->a->ep, TMSG(SIZE_MAX, FI_ADDR_UNSPEC), 0))
MISUSE(multi_recv_vector, -FI_EINVAL,
       fi_recvmsg(g->a->ep, MSG(2, FI_ADDR_UNSPEC), FI_MULTI_RECV))
MISUSE(multi_recv_of_nothing, -FI_EINVAL,
       fi_recvmsg(g->a->ep, MSG(0, FI_ADDR_UNSPEC), FI_MULTI_RECV))
MISUSE(recvmsg_inject, -FI_EBADFLAGS,
       fi_recvmsg(g->a->ep, MSG(1, FI_ADDR_UNSPEC), FI_INJECT))
MISUSE(recvmsg_peek, -FI_EBADFLAGS,
       fi_recvmsg(g->a->ep, MSG(1, FI_ADDR_UNSPEC), FI_PEEK))
MISUSE(trecvmsg_multi, -FI_EBADFLAGS,
       fi_trecvmsg(g->a->ep, TMSG(1, FI_ADDR_UNSPEC), FI_MULTI_RECV))
MISUSE(trecvmsg_cq_data, -FI_EBADFLAGS,
       fi_trecvmsg(g->a->ep, TMSG(1, FI_ADDR_UNSPEC), FI_REMOTE_CQ_DATA))
MISUSE(discard_alone, -FI_EINVAL,
       fi_trecvmsg(g->a->ep, TMSG(1, FI_ADDR_UNSPEC), FI_DISCARD))
MISUSE(claim_of_nothing, -FI_EINVAL,
       fi_trecvmsg(g->a->ep, TMSG(1, FI_ADDR_UNSPEC), FI_CLAIM))
MISUSE(claim_many, -FI_EINVAL,
       fi_trecvmsg(g->a->ep, TMSG(MANY, FI_ADDR_UNSPEC), FI_CLAIM))
MISUSE(cancel_of_nothing, -FI_ENOENT, fi_cancel(&g->a->ep->fid, g))
MISUSE(cancel_of_null, -FI_ENOENT, fi_cancel(&g->a->ep->fid, NULL))

/* ---- Remote memory --------------------------------------------------- */

MISUSE(write_to_unknown, g->rma ? -FI_EINVAL : -FI_ENOSYS,
       fi_write(g->a->ep, g->buf, 1, NULL, 99, 0, 0, NULL))
MISUSE(read_from_unspec, g->rma ? -FI_EINVAL : -FI_ENOSYS,
       fi_read(g->a->ep, g->buf, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL))
MISUSE(writev_many, g->rma ? -FI_EINVAL : -FI_ENOSYS,
       fi_writev(g->a->ep, g->iov, NULL, MANY, g->ab, 0, 0, NULL))
MISUSE(readv_many, g->rma ? -FI_EINVAL : -FI_ENOSYS,
       fi_readv(g->a->ep, g->iov, NULL, MANY, g->ab, 0, 0, NULL))
MISUSE(inject_write_too_long, g->rma ? -FI_EMSGSIZE : -FI_ENOSYS,
       fi_inject_write(g->a->ep, g->buf, sizeof(g->buf), g->ab, 0, 0))
MISUSE(writemsg_flags, g->rma ? -FI_EBADFLAGS : -FI_ENOSYS,
       fi_writemsg(g->a->ep, &(struct fi_msg_rma){ .msg_iov = g->iov,
		.iov_count = 1, .addr = g->ab,
		.rma_iov = &(struct fi_rma_iov){ 0, 1, 0 },
		.rma_iov_count = 1 }, FI_PEEK))
MISUSE(atomic_to_unknown, g->atomic ? -FI_EINVAL : -FI_ENOSYS,
       fi_atomic(g->a->ep, g->buf, 1, NULL, 99, 0, 0, FI_UINT64, FI_SUM,
		 NULL))

/* ---- Address vectors ------------------------------------------------- */

#define AV(...)	fi_av_open(g->a->domain,				\
		&(struct fi_av_attr){ __VA_ARGS__ }, &g->out.av, NULL)

MISUSE(av_no_attr, -FI_EINVAL,
       fi_av_open(g->a->domain, NULL, &g->out.av, NULL))
MISUSE(av_type, -FI_EINVAL, AV(.type = 9))
MISUSE(av_named, -FI_ENOSYS, AV(.type = FI_AV_TABLE, .name = "shared"))
MISUSE(av_named_read, -FI_ENOSYS, AV(.type = FI_AV_TABLE,
	.name = "FI_NAMED_AV_0\n", .flags = FI_READ))
MISUSE(av_read, -FI_ENOSYS, AV(.flags = FI_READ))
MISUSE(av_event, -FI_ENOSYS, AV(.flags = FI_EVENT))
MISUSE(av_rx_ctx_bits, -FI_ENOSYS, AV(.rx_ctx_bits = 1))
MISUSE(av_count, -FI_EINVAL, AV(.count = SIZE_MAX))
MISUSE(insert_flags, -FI_EBADFLAGS,
       fi_av_insert(g->a->av, &g->name, 1, NULL, FI_EVENT, NULL))
MISUSE(insert_user_id, -FI_EBADFLAGS,
       fi_av_insert(g->a->av, &g->name, 1, NULL, FI_AV_USER_ID, NULL))
MISUSE(insert_null, -FI_EINVAL,
       fi_av_insert(g->a->av, NULL, 1, NULL, 0, NULL))
MISUSE(insert_too_many, -FI_EINVAL,
       fi_av_insert(g->a->av, &g->name, SIZE_MAX, NULL, 0, NULL))
MISUSE(insert_zeros, 0, fi_av_insert(g->a->av,
	(char[sizeof(struct hal_addr)]){ 0 }, 1, NULL, 0, NULL))
MISUSE(insertsvc_flags, -FI_EBADFLAGS, fi_av_insertsvc(g->a->av,
	"unimem://0:1", NULL, NULL, FI_EVENT, NULL))
MISUSE(insertsvc_null, -FI_EINVAL,
       fi_av_insertsvc(g->a->av, NULL, "1", NULL, 0, NULL))
MISUSE(insertsvc_both, 1,
       fi_av_insertsvc(g->a->av, "unimem://0:1", "1", NULL, 0, NULL))
MISUSE(insertsvc_word, -FI_EINVAL,
       fi_av_insertsvc(g->a->av, "unimem://0", "one", NULL, 0, NULL))
MISUSE(insertsym_null, -FI_EINVAL,
       fi_av_insertsym(g->a->av, NULL, 1, NULL, 1, NULL, 0, NULL))
MISUSE(insertsym_too_many, -FI_EINVAL, fi_av_insertsym(g->a->av,
	"unimem://0", SIZE_MAX, "1", SIZE_MAX, NULL, 0, NULL))
MISUSE(remove_unknown, -FI_EINVAL,
       fi_av_remove(g->a->av, &(fi_addr_t){ 99 }, 1, 0))
MISUSE(remove_notavail, -FI_EINVAL,
       fi_av_remove(g->a->av, &(fi_addr_t){ FI_ADDR_NOTAVAIL }, 1, 0))
MISUSE(remove_flags, -FI_EBADFLAGS,
       fi_av_remove(g->a->av, &g->ab, 1, FI_EVENT))
MISUSE(lookup_unknown, -FI_EINVAL, fi_av_lookup(g->a->av, 99, g->buf,
	&(size_t){ sizeof(g->buf) }))
MISUSE(av_set, -FI_ENOSYS, fi_av_set(g->a->av,
	&(struct fi_av_set_attr){ .count = 1 }, &g->out.av_set, NULL))

/* ---- Queues and counters --------------------------------------------- */

#define CQ(...)	fi_cq_open(g->a->domain,				\
		&(struct fi_cq_attr){ __VA_ARGS__ }, &g->out.cq, NULL)

static struct fi_cq_err_entry entry;	/* for reads of a queue without
					 * errors */
static uint32_t type;

MISUSE(cq_format, -FI_ENOSYS, CQ(.format = 99))
MISUSE(cq_wait, -FI_ENOSYS, CQ(.wait_obj = 99))
MISUSE(cq_cond, -FI_ENOSYS,
       CQ(.wait_obj = FI_WAIT_FD, .wait_cond = FI_CQ_COND_THRESHOLD))
MISUSE(cq_flags, -FI_EINVAL, CQ(.flags = FI_MORE))
MISUSE(cq_size, -FI_EINVAL, CQ(.size = SIZE_MAX))
MISUSE(cq_read_nothing, -FI_EAGAIN, fi_cq_read(g->a->cq, g->buf, 1))
MISUSE(cq_readfrom_nothing, -FI_EAGAIN,
       fi_cq_readfrom(g->a->cq, g->buf, 1, NULL))
MISUSE(cq_readerr_nothing, -FI_EAGAIN, fi_cq_readerr(g->a->cq, &entry, 0))
MISUSE(cq_sread_no_wait, -FI_ENOSYS,
       fi_cq_sread(g->a->cq, g->buf, 1, NULL, 0))
MISUSE(cq_sreadfrom_no_wait, -FI_ENOSYS,
       fi_cq_sreadfrom(g->a->cq, g->buf, 1, NULL, NULL, 0))
MISUSE(cq_signal_no_wait, -FI_ENOSYS, fi_cq_signal(g->a->cq))
MISUSE(cq_getwait_no_wait, -FI_ENOSYS,
       fi_control(&g->a->cq->fid, FI_GETWAIT, g->buf))
MISUSE(cq_read_of_an_error, -FI_EAVAIL,
       fi_recv(g->a->ep, g->buf, 1, NULL, FI_ADDR_UNSPEC, g),
       fi_cancel(&g->a->ep->fid, g), fi_cq_read(g->a->cq, g->buf, 1))
MISUSE(cq_read_of_it_again, -FI_EAVAIL, fi_cq_read(g->a->cq, g->buf, 1))
MISUSE(cq_readerr_of_it, 1, fi_cq_readerr(g->a->cq, &entry, 0))
MISUSE(trywait_ep, -FI_EINVAL,
       fi_trywait(g->a->fabric, &(struct fid *){ &g->a->ep->fid }, 1))
MISUSE(trywait_no_wait, -FI_EINVAL,
       fi_trywait(g->a->fabric, &(struct fid *){ &g->a->cq->fid }, 1))
MISUSE(eq_wait, -FI_ENOSYS, fi_eq_open(g->a->fabric,
	&(struct fi_eq_attr){ .wait_obj = 99 }, &g->out.eq, NULL))
MISUSE(eq_flags, -FI_EINVAL, fi_eq_open(g->a->fabric,
	&(struct fi_eq_attr){ .flags = FI_WRITE | FI_READ }, &g->out.eq,
	NULL))
MISUSE(eq_read_nothing, -FI_EAGAIN,
       fi_eq_read(g->eq, &type, g->buf, 64, 0))
MISUSE(eq_read_flags, -FI_EINVAL,
       fi_eq_read(g->eq, &type, g->buf, 64, FI_CLAIM))
MISUSE(eq_readerr_nothing, -FI_EAGAIN, fi_eq_readerr(g->eq,
	&(struct fi_eq_err_entry){ 0 }, 0))
MISUSE(eq_sread_no_wait, -FI_ENOSYS,
       fi_eq_sread(g->eq, &type, g->buf, 64, 0, 0))
MISUSE(eq_write_read_only, -FI_EINVAL,
       fi_eq_write(g->eq, FI_NOTIFY, g->buf, 8, 0))
MISUSE(cntr_events, -FI_ENOSYS, fi_cntr_open(g->a->domain,
	&(struct fi_cntr_attr){ .events = 99 }, &g->out.cntr, NULL))
MISUSE(cntr_wait_obj, -FI_ENOSYS, fi_cntr_open(g->a->domain,
	&(struct fi_cntr_attr){ .wait_obj = 99 }, &g->out.cntr, NULL))
MISUSE(cntr_flags, -FI_EINVAL, fi_cntr_open(g->a->domain,
	&(struct fi_cntr_attr){ .flags = FI_MORE }, &g->out.cntr, NULL))

/* ---- Regions --------------------------------------------------------- */

MISUSE(mr_no_pieces, -FI_EINVAL, fi_mr_regv(g->a->domain, g->iov, 0, FI_SEND,
	0, 5, 0, &g->out.mr, NULL))
MISUSE(mr_flags, -FI_EBADFLAGS, fi_mr_reg(g->a->domain, g->buf, 8, FI_SEND, 0,
	5, FI_PEEK, &g->out.mr, NULL))
MISUSE(mr_same_key, -FI_ENOKEY, fi_mr_reg(g->a->domain, g->buf, 8, FI_SEND, 0,
	77, 0, &g->out.mr, NULL))

/* ---- Options --------------------------------------------------------- */

#define GETOPT(level, name, room)	fi_getopt(&g->a->ep->fid, level,\
		name, g->buf, &(size_t){ room })
#define SETOPT(level, name, len)	fi_setopt(&g->a->ep->fid, level,\
		name, g->buf, len)

MISUSE(getopt_level, -FI_ENOPROTOOPT, GETOPT(99, FI_OPT_MIN_MULTI_RECV, 8))
MISUSE(getopt_name, -FI_ENOPROTOOPT, GETOPT(FI_OPT_ENDPOINT, 99, 8))
MISUSE(getopt_room, -FI_ETOOSMALL,
       GETOPT(FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, 7))
MISUSE(getopt_p2p_room, -FI_ETOOSMALL,
       GETOPT(FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, 3))
MISUSE(getopt_buffered_min, -FI_ENOPROTOOPT,
       GETOPT(FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, 8))
MISUSE(getopt_buffered_limit, -FI_ENOPROTOOPT,
       GETOPT(FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, 8))
MISUSE(getopt_xpu, -FI_EOPNOTSUPP,
       GETOPT(FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, 64))
MISUSE(setopt_level, -FI_ENOPROTOOPT, SETOPT(99, FI_OPT_MIN_MULTI_RECV, 8))
MISUSE(setopt_name, -FI_ENOPROTOOPT, SETOPT(FI_OPT_ENDPOINT, 99, 8))
MISUSE(setopt_size, -FI_EINVAL,
       SETOPT(FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, 4))
MISUSE(setopt_read_only, -FI_ENOPROTOOPT,
       SETOPT(FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, 8))
MISUSE(setopt_buffered_min, -FI_ENOPROTOOPT,
       SETOPT(FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, 8))
MISUSE(setopt_buffered_limit, -FI_ENOPROTOOPT,
       SETOPT(FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, 8))
MISUSE(setopt_p2p, -FI_EOPNOTSUPP, fi_setopt(&g->a->ep->fid, FI_OPT_ENDPOINT,
	FI_OPT_FI_HMEM_P2P, &(int){ FI_HMEM_P2P_REQUIRED }, sizeof(int)))
MISUSE(setopt_p2p_size, -FI_EINVAL,
       SETOPT(FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, 8))

/* ---- Unsupported commands and extensions ----------------------------- */

#define UNKNOWN(object)							\
MISUSE(control_##object, -FI_ENOSYS, fi_control(OBJECT_##object, 999, NULL)) \
MISUSE(ops_##object, -FI_ENOSYS,					\
       fi_open_ops(OBJECT_##object, "nonsense", 0, &g->out.ops, NULL))	\
MISUSE(set_ops_##object, -FI_ENOSYS,					\
       fi_set_ops(OBJECT_##object, "nonsense", 0, NULL, NULL))
#define OBJECT_fabric	&g->a->fabric->fid
#define OBJECT_domain	&g->a->domain->fid
#define OBJECT_ep	&g->a->ep->fid
#define OBJECT_av	&g->a->av->fid
#define OBJECT_cq	&g->a->cq->fid
#define OBJECT_eq	&g->eq->fid
#define OBJECT_cntr	&g->a->txcntr->fid
#define OBJECT_mr	&g->mr->fid
UNKNOWN(fabric)
UNKNOWN(domain)
UNKNOWN(ep)
UNKNOWN(av)
UNKNOWN(cq)
UNKNOWN(eq)
UNKNOWN(cntr)
UNKNOWN(mr)
MISUSE(alias_of_neither, -FI_EINVAL, fi_ep_alias(g->a->ep, &g->out.ep, 0))
MISUSE(alias_of_both, -FI_EINVAL,
       fi_ep_alias(g->a->ep, &g->out.ep, FI_TRANSMIT | FI_RECV))
MISUSE(alias_flags, -FI_EBADFLAGS,
       fi_ep_alias(g->a->ep, &g->out.ep, FI_TRANSMIT | FI_PEEK))
MISUSE(bind_to_fabric, -FI_ENOSYS,
       g->a->fabric->fid.ops->bind(&g->a->fabric->fid, &g->eq->fid, 0))
MISUSE(bind_to_cq, -FI_ENOSYS,
       g->a->cq->fid.ops->bind(&g->a->cq->fid, &g->a->cq->fid, 0))

/* ---- Connections, contexts ------------------------------------------- */

MISUSE(setname, -FI_ENOSYS,
       fi_setname(&g->a->ep->fid, &g->name, sizeof(g->name)))
MISUSE(getname_room, -FI_ETOOSMALL,
       fi_getname(&g->a->ep->fid, NULL, &(size_t){ 0 }))
MISUSE(getpeer, -FI_ENOSYS, fi_getpeer(g->a->ep, g->buf, &(size_t){ 64 }))
MISUSE(connect, -FI_ENOSYS, fi_connect(g->a->ep, &g->name, NULL, 0))
MISUSE(accept, -FI_ENOSYS, fi_accept(g->a->ep, NULL, 0))
MISUSE(listen, -FI_ENOSYS, g->a->ep->cm->listen((struct fid_pep *)g->a->ep))
MISUSE(reject, -FI_ENOSYS, g->a->ep->cm->reject((struct fid_pep *)g->a->ep,
	NULL, NULL, 0))
MISUSE(shutdown, -FI_ENOSYS, fi_shutdown(g->a->ep, 0))
MISUSE(join, -FI_ENOSYS, fi_join(g->a->ep, &g->name, 0, &g->out.mc, NULL))
MISUSE(passive_ep, -FI_ENOSYS,
       fi_passive_ep(g->a->fabric, g->a->info, &g->out.pep, NULL))
MISUSE(scalable_ep, -FI_ENOSYS,
       fi_scalable_ep(g->a->domain, g->a->info, &g->out.ep, NULL))
MISUSE(stx, -FI_ENOSYS,
       fi_stx_context(g->a->domain, NULL, &g->out.stx, NULL))
MISUSE(srx, -FI_ENOSYS,
       fi_srx_context(g->a->domain, NULL, &g->out.ep, NULL))
MISUSE(tx_context, -FI_ENOSYS,
       fi_tx_context(g->a->ep, 0, NULL, &g->out.ep, NULL))
MISUSE(rx_context, -FI_ENOSYS,
       fi_rx_context(g->a->ep, 0, NULL, &g->out.ep, NULL))
MISUSE(collective, -FI_ENOSYS, fi_query_collective(g->a->domain, FI_BARRIER,
	&(struct fi_collective_attr){ 0 }, 0))

/* ---- Opening --------------------------------------------------------- */

/* An endpoint of a changed offer. */
#define EP_WITH(change)	__extension__ ({				\
		struct fi_info *info = fi_dupinfo(g->a->info);		\
		int with_ret;						\
		info->change;						\
		with_ret = fi_endpoint(g->a->domain, info, &g->out.ep,	\
				       NULL);				\
		fi_freeinfo(info);					\
		with_ret;						\
	})
/* fi_getinfo() with the same change in the hints. */
#define HINT_WITH(change)	__extension__ ({			\
		struct fi_info *info = fi_dupinfo(g->a->info);		\
		int with_ret;						\
		info->change;						\
		with_ret = ep_getinfo(info, &g->out.info);		\
		fi_freeinfo(info);					\
		with_ret;						\
	})

MISUSE(ep_no_info, -FI_EINVAL,
       fi_endpoint(g->a->domain, NULL, &g->out.ep, NULL))
MISUSE(ep_type, -FI_ENOPROTOOPT, EP_WITH(ep_attr->type = FI_EP_MSG))
MISUSE(ep_shared_tx, -FI_EINVAL,
       EP_WITH(ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT))
MISUSE(ep_shared_rx, -FI_EINVAL,
       EP_WITH(ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT))
MISUSE(ep_inject, -FI_EINVAL,
       EP_WITH(tx_attr->inject_size = UNM_INJECT_MAX + 1))
MISUSE(ep_source_err, -FI_EINVAL, EP_WITH(caps = FI_MSG | FI_SOURCE_ERR))
MISUSE(ep_caps, -FI_EINVAL, EP_WITH(caps |= FI_VARIABLE_MSG))
MISUSE(domain_no_info, -FI_EINVAL,
       fi_domain(g->a->fabric, NULL, &g->out.domain, NULL))
MISUSE(domain_flags, -FI_EBADFLAGS, fi_domain2(g->a->fabric, g->a->info,
	&g->out.domain, FI_MORE, NULL))
MISUSE(info_shared_av, -FI_ENODATA, HINT_WITH(caps |= FI_SHARED_AV))
MISUSE(info_domain_shared_av, -FI_ENODATA,
       HINT_WITH(domain_attr->caps |= FI_SHARED_AV))
MISUSE(info_type, -FI_ENODATA, HINT_WITH(ep_attr->type = FI_EP_DGRAM))
MISUSE(info_srx, -FI_ENODATA,
       HINT_WITH(ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT))
MISUSE(info_collective, -FI_ENODATA, HINT_WITH(caps |= FI_COLLECTIVE))

/* ---- Closing --------------------------------------------------------- */

MISUSE(close_av, -FI_EBUSY, fi_close(&g->a->av->fid))
MISUSE(close_cq, -FI_EBUSY, fi_close(&g->a->cq->fid))
MISUSE(close_cntr, -FI_EBUSY, fi_close(&g->a->rxcntr->fid))
MISUSE(close_domain, -FI_EBUSY, fi_close(&g->a->domain->fid))
MISUSE(close_fabric, -FI_EBUSY, fi_close(&g->a->fabric->fid))
MISUSE(close_bound_eq, -FI_EBUSY,
       BIND(&g->eq->fid, 0), fi_close(&g->eq->fid))
MISUSE(close_bound_cq, -FI_EBUSY,
       BIND(&g->cq_wait->fid, FI_RECV), fi_close(&g->cq_wait->fid))

/* ---- All rows -------------------------------------------------------- */

static void prepare(struct ground *g)
{
	struct ep_want want = { .cntrs = true };
	struct fi_eq_attr no_wait = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr wait = { .wait_obj = FI_WAIT_FD };
	struct ep_pair p = ep_pair(&want);
	size_t len = sizeof(g->name);

	*g = (struct ground){ .a = p.a, .b = p.b, .ab = p.ab, .ba = p.ba };
	g->rma = (g->a->info->caps & FI_RMA) != 0;
	g->atomic = (g->a->info->caps & FI_ATOMIC) != 0;
	assert_int_equal(fi_getname(&g->b->ep->fid, &g->name, &len), 0);
	for (int i = 0; i < MANY; i++)
		g->iov[i] = (struct iovec){ g->buf, 1 };
	assert_int_equal(fi_eq_open(g->a->fabric, &no_wait, &g->eq, NULL), 0);
	assert_int_equal(fi_cq_open(g->a->domain, &wait, &g->cq_wait, NULL),
			 0);
	assert_int_equal(fi_mr_reg(g->a->domain, g->buf, 8, FI_SEND, 0, 77, 0,
				   &g->mr, NULL), 0);
}

static void clear(struct ground *g)
{
	EP_CLOSE(&g->mr->fid, &g->cq_wait->fid, &g->eq->fid);
}

/* A message each way, and no other completion. */
static void alive(struct ground *g, const char *after)
{
	char in[2] = { 0 }, out[2] = { 3, 4 };

	EP_OK(fi_trecv(g->b->ep, &in[0], 1, NULL, g->ba, 1, 0, &in[0]));
	EP_OK(fi_tsend(g->a->ep, &out[0], 1, NULL, g->ab, 1, &out[0]));
	EP_OK(fi_recv(g->a->ep, &in[1], 1, NULL, g->ab, &in[1]));
	EP_OK(fi_send(g->b->ep, &out[1], 1, NULL, g->ba, &out[1]));
	ep_received(g->b, &in[0]);
	ep_received(g->a, &in[1]);
	ep_sent(g->a, &out[0]);
	ep_sent(g->b, &out[1]);
	assert_memory_equal(in, out, 2);
	if (g->a->ncomp != 0 || g->b->ncomp != 0)
		unit_fail("%s: a completion too much", after);
}

static void test_every_call_with_bad_input(void **state)
{
	static struct ground g;

	prepare(&g);
	alive(&g, "nothing");
	assert_true(nmisuses > 150 && nmisuses < 300);
	for (size_t i = 0; i < nmisuses; i++) {
		ssize_t want, ret;
		uint64_t end = ep_deadline();

		if (getenv("MISUSE_TRACE") != NULL)
			print_message("%s\n", misuses[i].what);
		assert_int_equal(fi_endpoint(g.a->domain, g.a->info, &g.fresh,
					     NULL), 0);
		memset(&g.out, 0, sizeof(g.out));
		do {			/* the peer may refuse it for now */
			ret = misuses[i].call(&g, &want);
			if (ret == want || ret != -FI_EAGAIN)
				break;
			ep_step();
			ep_in_time(end, misuses[i].what);
		} while (true);
		if (ret != want)
			unit_fail("%s: %zd (%s), not %zd (%s)",
				  misuses[i].what, ret,
				  fi_strerror((int)-ret), want,
				  fi_strerror((int)-want));
		if (fi_close(&g.fresh->fid) != 0)
			unit_fail("%s: its endpoint does not close",
				  misuses[i].what);
		if (strncmp(misuses[i].what, "cq_read_of", 10) != 0)
			alive(&g, misuses[i].what);
	}
	ep_quiet(g.a);
	ep_quiet(g.b);
	clear(&g);
}

/* Options, on an endpoint that is not enabled and on one that is. */
static void test_options(void **state)
{
	struct ep_want early = { .disabled = true };

	for (int i = 0; i < 2; i++) {
		struct ep *e = ep_open(i == 0 ? &early : NULL);
		struct fid *fid = &e->ep->fid;
		size_t val, len;
		int p2p;

		for (size_t min = 0; min < 3; min++) {
			val = min == 2 ? SIZE_MAX : 1000 * min;
			assert_int_equal(fi_setopt(fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &val,
					sizeof(val)), 0);
			val = 5;
			len = sizeof(val);
			assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &val, &len), 0);
			assert_int_equal(len, sizeof(val));
			assert_int_equal(val, min == 2 ? SIZE_MAX :
					 1000 * min);
		}
		len = 0;
		assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT,
				FI_OPT_MIN_MULTI_RECV, NULL, &len),
				-FI_ETOOSMALL);
		assert_int_equal(len, sizeof(val));
		len = 64;
		assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT,
				FI_OPT_CM_DATA_SIZE, &val, &len), 0);
		assert_int_equal(val, 0);
		assert_int_equal(len, sizeof(val));
		p2p = FI_HMEM_P2P_DISABLED;
		assert_int_equal(fi_setopt(fid, FI_OPT_ENDPOINT,
				FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), 0);
		p2p = FI_HMEM_P2P_ENABLED;
		len = sizeof(p2p);
		assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT,
				FI_OPT_FI_HMEM_P2P, &p2p, &len), 0);
		assert_int_equal(p2p, FI_HMEM_P2P_DISABLED);
	}
}

/* An event queue is in use as long as an endpoint is bound to it. */
static void test_event_queue_of_an_endpoint(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_eq *eq;
	struct fid_ep *ep;

	assert_int_equal(fi_eq_open(e->fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	EP_CLOSE(&ep->fid, &eq->fid);
}

UNIT_MAIN(
	EP_TEST(test_every_call_with_bad_input),
	EP_TEST(test_options),
	EP_TEST(test_event_queue_of_an_endpoint),
)
