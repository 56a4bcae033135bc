/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_target.c - executes peers' requests on the memory regions of this
 * process: the target's side of docs/protocol.md, section 10. The initiator's
 * side is unm_request.c.
 *
 * A posted request (put, atomic) is executed when its packet is read, and
 * counted. A refused posted request holds the count until the peer has released
 * the packet with the reason. Results are sent at once if the peer has free
 * space; else they wait in peer->answers and are sent in order. unm_target.c
 * also sends remote keys (section 11); progress/unm_revoke.c revokes them.
 */

#include "core/unm_buf.h"
#include "core/unm_complete.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_region.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "op/gsas_op.h"
#include "rma/unm_mem.h"
#include "rma/unm_target.h"
#include "unm_env.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

/* Most answers to one peer that wait, and most bytes of copies in them. A peer
 * that obeys the limits of section 10 stays below both. */
#define UNM_ANSWERS_MAX	(4 * 32768)
#define UNM_ANSWER_BYTES (8u << 20)
#define UNM_ANSWER_BURST 16	/* most messages to one peer in a row */
/* bytes of memory checked in a row; not less than one part of a result */
#define UNM_CHECK_STEP	(256u << 10)

/* An answer to a peer that waits to be sent: an object of ep->answer_pool, in
 * peer->answers or, REFUSED, in peer->nacks. */
struct unm_answer {
	struct unm_pool_node node;
	struct unm_list link;		/* in peer->answers or peer->nacks */
	struct unm_list in_mr;		/* GET: in mr->users */
	struct unm_mr *mr;		/* GET: region that the result is read
					 * from; else NULL */
	uint8_t type;			/* UNM_WIRE_RESULT, _RKEY, _REFUSED */
	uint8_t buf_class;		/* size class of buf */
	uint8_t count;			/* entries of iov */
	bool last;			/* GET: no request of the operation
					 * follows */
	void *buf;			/* FETCH, COMPARE: copy of the result
					 * in ep->buf_pool; else NULL */
	uint64_t w[UNM_WIRE_WORDS_MAX];	/* words of the message */
	uint64_t len, sent;		/* RESULT: bytes, and bytes sent */
	uint64_t checked;		/* bytes from the first one on that are
					 * known to be readable */
	struct iovec iov[UNM_IOV_MAX];	/* RESULT: memory of its bytes */
};

uint32_t unm_answer_size(void)
{
	return sizeof(struct unm_answer);
}

/* ---- Answers --------------------------------------------------------- */

/* A new answer without bytes, in no list. NULL if there is no memory for it:
 * then the peer is disconnected. */
static struct unm_answer *unm_answer_new(struct unm_peer *peer, uint8_t type)
{
	struct unm_ep *ep = peer->ep;
	struct unm_answer *an = NULL;

	if (peer->nanswers < UNM_ANSWERS_MAX)
		an = unm_pool_alloc(&ep->answer_pool);
	if (an == NULL) {
		unm_peer_fail(peer, "no memory for answers to it", type);
		return NULL;
	}
	peer->nanswers++;
	an->type = type;
	an->mr = NULL;
	an->buf = NULL;
	an->count = 0;
	an->len = 0;
	an->sent = 0;
	an->checked = UINT64_MAX;
	unm_list_init(&an->in_mr);
	unm_list_init(&an->link);
	return an;
}

static void unm_answer_release(struct unm_peer *peer, struct unm_answer *an)
{
	struct unm_ep *ep = peer->ep;

	unm_list_remove(&an->link);
	unm_list_remove(&an->in_mr);
	if (an->buf != NULL) {
		unm_pool_release(&ep->buf_pool[an->buf_class], an->buf);
		peer->answer_bytes -= an->len;
	}
	unm_pool_release(&ep->answer_pool, an);
	peer->nanswers--;
}

/* Send one message. 0; another value: it was not sent, and waits. */
static int unm_answer_send(struct unm_peer *peer, uint64_t head,
			   const uint64_t *w, unsigned nw,
			   const struct unm_part *part)
{
	int ret = unm_peer_send(peer, head, w, nw, part, part != NULL);

	/* no event reports that a connection can be set up: keep polling */
	if (ret == -FI_EAGAIN && !peer->hello_sent)
		peer->ep->must_poll = true;
	/* if the peer's process ended, progress finds that after it has read
	 * the peer's last packets */
	if (ret != 0 && ret != -FI_EAGAIN && ret != -FI_ECONNREFUSED &&
	    ret != -FI_ECONNRESET)
		unm_peer_fail(peer, "no way to answer it", -ret);
	return ret;
}

/* Check that all pieces are accessible memory. 0 or -FI_EFAULT. */
static int unm_target_present(struct unm_domain *domain,
			      const struct iovec *iov, size_t count,
			      uint64_t access)
{
	/* dmable memory exists for certain, and unm_mr_present() may fail on
	 * memory that a driver maps */
	if (count == 1 && unm_mem_find(domain, iov->iov_base,
				       iov->iov_len) != NULL)
		return 0;
	return unm_mr_present(iov, count, access);
}

/* End a result after the bytes that were sent so far; err: negative fi_errno.
 */
static void unm_answer_cut(struct unm_answer *an, int err)
{
	unm_list_remove(&an->in_mr);
	an->mr = NULL;
	an->w[1] = (uint64_t)-err;
	an->len = an->sent;
}

/*
 * Check the memory from which the next parts of a result are read. The peer
 * chooses the length of the result, so at most UNM_CHECK_STEP bytes are checked
 * in a call.
 */
static void unm_answer_check(struct unm_peer *peer, struct unm_answer *an)
{
	uint64_t skip = an->checked, left = an->len - skip;
	int ret = 0;

	if (left > UNM_CHECK_STEP)
		left = UNM_CHECK_STEP;
	an->checked += left;
	for (size_t i = 0; i < an->count && left != 0 && ret == 0; i++) {
		struct iovec piece = an->iov[i];

		if (skip >= piece.iov_len) {
			skip -= piece.iov_len;
			continue;
		}
		piece.iov_base = (char *)piece.iov_base + skip;
		piece.iov_len -= skip;
		skip = 0;
		if (piece.iov_len > left)
			piece.iov_len = left;
		left -= piece.iov_len;
		ret = unm_target_present(peer->ep->domain, &piece, 1,
					 FI_REMOTE_READ);
	}
	if (ret != 0)
		unm_answer_cut(an, ret);
}

/* Most bytes of one RESULT. Its words and bytes are in one extent of receive
 * space. */
static uint64_t unm_result_max(const struct unm_ep *ep)
{
	return ep->piece_max - 8 * UNM_WIRE_WORDS_MAX;
}

/* Send the next part of a result. 0 if it was sent. */
static int unm_answer_part(struct unm_peer *peer, struct unm_answer *an)
{
	uint64_t max = unm_result_max(peer->ep), left;
	struct unm_part part = { an->iov, an->count, an->sent, 0 };
	uint8_t more;
	int ret;

	if (an->checked < an->len && an->checked - an->sent < max)
		unm_answer_check(peer, an);
	left = an->len - an->sent;
	part.len = left < max ? left : max;
	more = part.len < left ? UNM_WIRE_MORE : 0;
	ret = unm_answer_send(peer, hal_head(UNM_WIRE_RESULT, more), an->w, 2,
			      part.len != 0 ? &part : NULL);
	if (ret == 0)
		an->sent += part.len;
	return ret;
}

/* Release an answer that was sent; report a get to the counters. */
static void unm_answer_over(struct unm_peer *peer, struct unm_answer *an)
{
	if (an->mr != NULL && an->last)
		unm_complete_target(peer, an->mr, FI_REMOTE_READ, an->last,
				    NULL);
	unm_answer_release(peer, an);
}

/* Send answers, at most UNM_ANSWER_BURST. Returns the number of messages sent.
 */
static int unm_answers_push(struct unm_peer *peer)
{
	int done = 0;

	while (!unm_list_empty(&peer->answers) && done < UNM_ANSWER_BURST) {
		struct unm_answer *an = unm_container(peer->answers.next,
						struct unm_answer, link);
		int ret;

		if (an->type == UNM_WIRE_RESULT)
			ret = unm_answer_part(peer, an);
		else
			ret = unm_answer_send(peer, hal_head(an->type, 0),
					      an->w, unm_wire_words(an->type,
								    0), NULL);
		if (ret != 0)
			break;
		if (an->sent == an->len)
			unm_answer_over(peer, an);
		done++;
	}
	return done;
}

/* Send an answer after those that wait. */
static void unm_answer_queue(struct unm_peer *peer, struct unm_answer *an)
{
	unm_list_append(&peer->answers, &an->link);
	unm_answers_push(peer);
	if (!unm_list_empty(&peer->answers))
		unm_peer_schedule(peer);
}

/* Send a result without bytes; err: negative fi_errno. */
static void unm_answer_error(struct unm_peer *peer, uint64_t token, int err)
{
	struct unm_answer *an = unm_answer_new(peer, UNM_WIRE_RESULT);

	if (an == NULL)
		return;
	an->w[0] = token;
	an->w[1] = (uint64_t)-err;
	unm_answer_queue(peer, an);
}

/* ---- Refusals of posted requests ------------------------------------- */

void unm_target_report_executed(struct unm_peer *peer)
{
	uint64_t count = peer->posted_got;

	if (!unm_list_empty(&peer->nacks))
		count = unm_container(peer->nacks.next, struct unm_answer,
				      link)->w[0] - 1;
	if (count == peer->posted_reported)
		return;
	peer->posted_reported = count;
	hal_rx_back(peer->hp, UNM_PEER_BACK_APPLIED, count);
}

/* Refuse the posted request that was counted last; err: negative fi_errno. */
static void unm_target_refuse(struct unm_peer *peer, int err)
{
	struct unm_answer *an = unm_answer_new(peer, UNM_WIRE_REFUSED);

	if (an == NULL)
		return;
	an->w[0] = peer->posted_got;
	an->w[1] = (uint64_t)-err;
	unm_list_append(&peer->nacks, &an->link);
	unm_peer_schedule(peer);
}

/* Send the oldest refusal. When the peer has released its packet, release the
 * refusal, so that the count of executed requests passes it. Returns 1 if
 * either was done, else 0. */
static int unm_nacks_push(struct unm_peer *peer)
{
	struct unm_answer *an = unm_container(peer->nacks.next,
					      struct unm_answer, link);

	if (peer->refused_packet == 0) {
		if (unm_answer_send(peer, hal_head(UNM_WIRE_REFUSED, 0),
				    an->w, 2, NULL) != 0)
			return 0;
		peer->refused_packet = hal_tx_sent(peer->hp);
		return 1;
	}
	if (hal_tx_done(peer->hp) < peer->refused_packet)
		return 0;
	peer->refused_packet = 0;
	unm_answer_release(peer, an);
	unm_target_report_executed(peer);
	return 1;
}

int unm_target_progress(struct unm_peer *peer)
{
	int done = 0;

	if (!unm_list_empty(&peer->answers))
		done += unm_answers_push(peer);
	if (!unm_list_empty(&peer->nacks))
		done += unm_nacks_push(peer);
	return done;
}

void unm_target_abort(struct unm_peer *peer)
{
	struct unm_list *lists[] = { &peer->answers, &peer->nacks };

	for (int i = 0; i < 2; i++)
		while (!unm_list_empty(lists[i]))
			unm_answer_release(peer, unm_container(lists[i]->next,
						struct unm_answer, link));
}

/* ---- Remote keys ----------------------------------------------------- */

/* True if the region is a shared mapping that peers may have mapped as well:
 * then mr->share_key names its memory. The HAL is asked once a region. */
static bool unm_target_shared(struct unm_ep *ep, struct unm_mr *mr)
{
	uint32_t access = (mr->access & FI_REMOTE_READ ? HAL_ALIAS_READ : 0) |
		(mr->access & FI_REMOTE_WRITE ? HAL_ALIAS_WRITE : 0);

	if (!mr->identified)
		mr->shared = g_unm_env.alias && !mr->holes && mr->len != 0 &&
			hal_alias_key(ep->hif->hal, mr->iov[0].iov_base,
				      mr->len, access, &mr->share_key) == 0;
	mr->identified = true;
	return mr->shared;
}

/* Send RKEY: the remote key, by which the peer may access the region itself.
 */
static void unm_target_send_rkey(struct unm_peer *peer, uint64_t key,
				 struct unm_mr *mr)
{
	struct unm_ep *ep = peer->ep;
	const struct hal_key *key_of = NULL;
	struct unm_mem_seg *seg = NULL;
	uint32_t reach = UNM_REACH_REQUEST;
	struct unm_answer *an;

	if (ep->closing)		/* fi_close() has revoked all remote
					 * keys, and would not revoke this */
		return;
	an = unm_answer_new(peer, UNM_WIRE_RKEY);
	if (an == NULL)
		return;
	memset(an->w, 0, sizeof(an->w));
	/* Direct accesses are not counted, and need contiguous memory. Where
	 * accesses are counted, only requests are allowed. */
	if (mr->count == 1 && mr->remote_cntr == NULL &&
	    ep->rem_rd_cntr == NULL && ep->rem_wr_cntr == NULL) {
		seg = unm_mem_find(ep->domain, mr->iov[0].iov_base, mr->len);
		if (seg != NULL)
			key_of = &seg->key;
		else if (unm_target_shared(ep, mr))
			key_of = &mr->share_key;
		mr->exported |= key_of == &mr->share_key;
		reach = (seg != NULL ? UNM_REACH_DMABLE : key_of != NULL ?
			 UNM_REACH_SHARED : UNM_REACH_ATTACH) |
			(mr->access & FI_REMOTE_READ ? UNM_REACH_READ : 0) |
			(mr->access & FI_REMOTE_WRITE ? UNM_REACH_WRITE : 0);
	}
	mr->rkey_sent = true;
	peer->rkeys_sent = true;
	an->w[0] = key;
	an->w[1] = (uint64_t)mr->number << 32 | reach;
	/* While fi_close() of the region waits, the epoch is one that differs
	 * from every recent epoch. The peer then ignores this RKEY, even if
	 * it has not seen all revocations yet, and asks again. */
	an->w[2] = peer->epoch ^ (uint32_t)mr->closing << 31;
	an->w[3] = mr->base;
	an->w[4] = mr->len;
	an->w[5] = (uintptr_t)mr->iov[0].iov_base;
	if (seg != NULL)
		an->w[5] -= (uintptr_t)seg->base;
	if (key_of != NULL) {
		an->w[6] = key_of->word[0];
		an->w[7] = key_of->word[1];
	}
	unm_answer_queue(peer, an);
}

/* ---- Requests -------------------------------------------------------- */

/*
 * Find the memory of a request: *out is the region, iov and *count the pieces
 * of the request's len bytes. The rest of the request's range is checked as
 * well. access: FI_REMOTE_READ, FI_REMOTE_WRITE or both. Returns 0 or the
 * negative fi_errno with which the request is refused.
 */
static int unm_target_find(struct unm_peer *peer, const struct unm_wire_msg *m,
			   uint64_t len, uint64_t access, struct unm_mr **out,
			   struct iovec *iov, size_t *count)
{
	size_t unit = m->type == UNM_WIRE_ATOMIC || m->type >= UNM_WIRE_FETCH ?
		gsas_type_size(m->how.type) : 1;
	struct unm_mr *mr;
	int ret;

	ret = unm_mr_find(peer->ep->domain, m->key, &mr);
	if (ret == 0 && !unm_mr_serves(mr, peer->ep->hif->addr.nonce))
		ret = -FI_EKEYREJECTED;
	/* check the whole range before a byte of it is accessed */
	if (ret == 0 && len > UINT64_MAX - m->rest)
		ret = -FI_EINVAL;
	if (ret == 0)
		ret = unm_mr_reach(mr, m->addr, len + m->rest, access, iov,
				   count);
	for (size_t i = 0; ret == 0 && i < *count; i++)
		if (iov[i].iov_len % unit != 0)
			ret = -FI_EINVAL;	/* an element in two
						 * pieces */
	if (ret == 0 && m->rest != 0)
		ret = unm_mr_reach(mr, m->addr, len, access, iov, count);
	/* unm_answer_check() checks the memory of a get, step by step */
	if (ret == 0 && (mr->holes || m->check) && m->type != UNM_WIRE_GET)
		ret = unm_target_present(peer->ep->domain, iov, *count,
					 access);
	if (ret == 0)
		*out = mr;
	return ret;
}

static int unm_target_put(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	bool data = m->type == UNM_WIRE_PUT_DATA;
	struct unm_target_data entry = { m->data, m->earlier + m->nbytes };
	struct iovec iov[UNM_IOV_MAX];
	struct unm_mr *mr;
	size_t count;
	int ret;

	if (data && peer->msgs_got++ == peer->granted)
		return -FI_EINVAL;
	if (m->earlier > UINT64_MAX - m->nbytes)
		return -FI_EINVAL;
	peer->posted_got++;
	ret = unm_target_find(peer, m, m->nbytes, FI_REMOTE_WRITE, &mr, iov,
			      &count);
	if (ret != 0) {
		unm_target_refuse(peer, ret);
		return 0;
	}
	unm_iov_fill(iov, count, 0, m->bytes, m->nbytes);
	if (m->rest == 0)
		unm_complete_target(peer, mr, FI_REMOTE_WRITE, !m->more,
				    data ? &entry : NULL);
	if (m->ask_rkey)
		unm_target_send_rkey(peer, m->key, mr);
	return 0;
}

/* Send the result of a GET now. False: it is not one message, other answers
 * wait before it, its memory is to be checked, or the peer takes no packet. */
static bool unm_target_get_now(struct unm_peer *peer,
			       const struct unm_wire_msg *m, struct unm_mr *mr,
			       const struct iovec *iov, size_t count)
{
	struct unm_part part = { iov, count, 0, (uint32_t)m->len };
	uint64_t w[2] = { m->token, 0 };
	bool last = !m->more;

	if (!unm_list_empty(&peer->answers) || mr->holes || m->check ||
	    m->len > unm_result_max(peer->ep) ||
	    unm_answer_send(peer, hal_head(UNM_WIRE_RESULT, 0), w, 2,
			    m->len != 0 ? &part : NULL) != 0)
		return false;
	if (last)
		unm_complete_target(peer, mr, FI_REMOTE_READ, last, NULL);
	return true;
}

/* Send the result of a GET after the answers that wait, in as many messages as
 * it needs. */
static void unm_target_get_queue(struct unm_peer *peer,
				 const struct unm_wire_msg *m,
				 struct unm_mr *mr, const struct iovec *iov,
				 size_t count)
{
	struct unm_answer *an = unm_answer_new(peer, UNM_WIRE_RESULT);

	if (an == NULL)
		return;
	an->w[0] = m->token;
	an->w[1] = 0;
	for (size_t i = 0; i < count; i++)
		an->iov[i] = iov[i];
	an->count = count;
	an->len = m->len;
	an->last = !m->more;
	an->checked = mr->holes || m->check ? 0 : UINT64_MAX;
	an->mr = mr;
	unm_list_append(&mr->users, &an->in_mr);
	unm_answer_queue(peer, an);
}

static int unm_target_get(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct iovec iov[UNM_IOV_MAX];
	struct unm_mr *mr;
	size_t count;
	int ret;

	if (m->nbytes != 0 || m->rest != 0)
		return -FI_EINVAL;
	ret = unm_target_find(peer, m, m->len, FI_REMOTE_READ, &mr, iov,
			      &count);
	if (ret != 0) {
		unm_answer_error(peer, m->token, ret);
		return 0;
	}
	if (!unm_target_get_now(peer, m, mr, iov, count))
		unm_target_get_queue(peer, m, mr, iov, count);
	if (m->ask_rkey && !peer->failed)
		unm_target_send_rkey(peer, m->key, mr);
	return 0;
}

/* The rights that an atomic needs, which are also the events it counts as: a
 * fetch or compare that can change memory is a read and a write. */
static uint64_t unm_atomic_access(const struct unm_wire_msg *m)
{
	if (m->type == UNM_WIRE_ATOMIC)
		return FI_REMOTE_WRITE;
	if (m->how.op == GSAS_OP_READ)
		return FI_REMOTE_READ;
	return FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* Check that the operation of an atomic exists and that the request has the
 * bytes of its operands. Returns the bytes of all elements, or 0 if not. */
static uint64_t unm_atomic_check(const struct unm_wire_msg *m)
{
	enum gsas_form form = m->type == UNM_WIRE_ATOMIC ? GSAS_FORM_UPDATE :
		m->type == UNM_WIRE_FETCH ? GSAS_FORM_FETCH :
		GSAS_FORM_COMPARE;
	uint64_t len = (uint64_t)gsas_type_size(m->how.type) * m->how.count;
	uint64_t nbytes = m->type == UNM_WIRE_COMPARE ? 2 * len :
		m->how.op == GSAS_OP_READ ? 0 : len;

	if (!gsas_op_valid(m->how.op, m->how.type, form) ||
	    m->nbytes != nbytes || len > UNM_WIRE_EAGER_LIMIT)
		return 0;
	return len;
}

/*
 * An atomic READ of 128 bits stores on machines without a 16-byte load, and a
 * region that peers may only read can be mapped read-only. Return -FI_EFAULT
 * then, so that the store does not raise SIGSEGV; else 0.
 */
static int unm_atomic_storable(struct unm_peer *peer,
			       const struct unm_wire_msg *m,
			       const struct iovec *iov, size_t count)
{
	bool stores = false;

	for (size_t i = 0; m->how.op == GSAS_OP_READ && i < count; i++)
		stores |= gsas_op_read_stores(m->how.type,
					      (uintptr_t)iov[i].iov_base);
	return stores ? unm_target_present(peer->ep->domain, iov, count,
					   FI_REMOTE_WRITE) : 0;
}

/* Execute an atomic on len bytes; no element is in two pieces. result: space
 * for the elements' old values, or NULL. */
static void unm_atomic_apply(const struct unm_wire_msg *m,
			     const struct iovec *iov, size_t count,
			     uint64_t len, uint8_t *result)
{
	const uint8_t *cmp = m->type == UNM_WIRE_COMPARE ? m->bytes : NULL;
	const uint8_t *src = (const uint8_t *)m->bytes + (cmp ? len : 0);
	size_t unit = gsas_type_size(m->how.type);
	uint64_t at = 0;

	for (size_t i = 0; i < count; at += iov[i++].iov_len)
		gsas_op_apply(m->how.op, m->how.type, iov[i].iov_len / unit,
			      iov[i].iov_base, src + at,
			      cmp ? cmp + at : NULL,
			      result ? result + at : NULL);
}

/* Send the result of a FETCH or COMPARE now, or queue a copy of it. */
static void unm_target_fetched(struct unm_peer *peer, uint64_t token,
			       const uint8_t *bytes, uint64_t len)
{
	struct iovec iov = { (void *)bytes, len };
	struct unm_part part = { &iov, 1, 0, len };
	uint64_t w[2] = { token, 0 };
	struct unm_pool_node *node;
	struct unm_answer *an;

	if (unm_list_empty(&peer->answers) &&
	    unm_answer_send(peer, hal_head(UNM_WIRE_RESULT, 0), w, 2,
			    &part) == 0)
		return;
	an = unm_answer_new(peer, UNM_WIRE_RESULT);
	if (an == NULL)
		return;
	node = peer->answer_bytes + len > UNM_ANSWER_BYTES ? NULL :
		unm_buf_alloc(peer->ep, len, &an->buf_class);
	if (node == NULL) {
		unm_answer_release(peer, an);
		unm_peer_fail(peer, "no memory for answers to it", len);
		return;
	}
	memcpy(node + 1, bytes, len);
	an->buf = node;
	peer->answer_bytes += len;
	an->w[0] = token;
	an->w[1] = 0;
	an->iov[0] = (struct iovec){ node + 1, len };
	an->count = 1;
	an->len = len;
	unm_answer_queue(peer, an);
}

static int unm_target_atomic(struct unm_peer *peer,
			     const struct unm_wire_msg *m)
{
	bool posted = m->type == UNM_WIRE_ATOMIC;
	uint64_t access = unm_atomic_access(m);
	uint64_t len = unm_atomic_check(m);
	uint8_t result[UNM_WIRE_EAGER_LIMIT];
	struct iovec iov[UNM_IOV_MAX];
	struct unm_mr *mr;
	size_t count;
	int ret;

	if (len == 0)
		return -FI_EINVAL;
	peer->posted_got += posted;
	ret = unm_target_find(peer, m, len, access, &mr, iov, &count);
	if (ret == 0)
		ret = unm_atomic_storable(peer, m, iov, count);
	if (ret != 0) {
		if (posted)
			unm_target_refuse(peer, ret);
		else
			unm_answer_error(peer, m->token, ret);
		return 0;
	}
	unm_atomic_apply(m, iov, count, len, posted ? NULL : result);
	if (m->rest == 0)
		unm_complete_target(peer, mr, access, !m->more, NULL);
	if (!posted)
		unm_target_fetched(peer, m->token, result, len);
	if (m->ask_rkey)
		unm_target_send_rkey(peer, m->key, mr);
	return 0;
}

int unm_target_request(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	peer->ep->stats->rx_requests++;
	switch (m->type) {
	case UNM_WIRE_PUT:
	case UNM_WIRE_PUT_DATA:
		return unm_target_put(peer, m);
	case UNM_WIRE_GET:
		return unm_target_get(peer, m);
	default:
		return unm_target_atomic(peer, m);
	}
}

/* ---- Closing --------------------------------------------------------- */

void unm_mr_end_streams(struct unm_mr *mr)
{
	unm_list_for_each_safe(pos, tmp, &mr->users) {
		struct unm_answer *an = unm_container(pos, struct unm_answer,
						      in_mr);

		unm_answer_cut(an, -FI_EKEYREJECTED);
	}
}

bool unm_target_revoke_all(struct unm_peer *peer)
{
	if (!peer->rkeys_sent)
		return true;
	/* The word has to stay the same until it arrives: each new value to a
	 * peer on another host is not known to have arrived before a round
	 * trip. */
	if (!peer->revoked_all) {
		peer->epoch += 2;
		peer->revoking = 0;
		peer->revoked_all = true;
	}
	if (hal_rx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED,
			     (uint64_t)peer->epoch << 32 | peer->revoking) != 0)
		return false;
	peer->rkeys_sent = false;
	return true;
}
