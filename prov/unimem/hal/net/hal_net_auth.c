/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_auth.c - the handshake that proves knowledge of an address's secret.
 *
 * hal_net_auth.h describes it and declares the entry points. docs/net.md,
 * section 4, says against whom it protects.
 */
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "hal/hal_types.h"
#include "hal/net/hal_net_auth.h"

/* Use of an HMAC with the secret: a proof, the key of the messages that its
 * author sends, or the secret of the session. */
enum role {
	ACCEPTOR = 'A', DIALLER = 'D', ACCEPTOR_KEY = 'a', DIALLER_KEY = 'd',
	SESSION = 's',
};

/* The bytes that a proof covers. */
struct claim {
	uint8_t role;			/* enum role, of the author */
	uint8_t kind;			/* enum net_kind */
	uint8_t dial_nonce[NET_NONCE];
	uint8_t accept_nonce[NET_NONCE];
	uint8_t from[NET_NAME];
	uint8_t to[NET_NAME];
};

/* The proof of this side, or the one to be expected of the other. */
static void prove(const struct net_auth *a, enum role author, bool dialled,
		  uint8_t proof[NET_MAC])
{
	struct claim c;

	c.role = (uint8_t)author;
	c.kind = a->kind;
	memcpy(c.dial_nonce, dialled ? a->nonce : a->other, NET_NONCE);
	memcpy(c.accept_nonce, dialled ? a->other : a->nonce, NET_NONCE);
	memcpy(c.from, dialled ? a->self : a->peer, NET_NAME);
	memcpy(c.to, dialled ? a->peer : a->self, NET_NAME);
	a->mac(proof, a->secret, NET_SECRET, &c, sizeof(c));
}

static bool proven(const struct net_auth *a, enum role author, bool dialled,
		   const uint8_t got[NET_MAC])
{
	uint8_t want[NET_MAC];

	prove(a, author, dialled, want);
	return a->equal(want, got);
}

/* Both sides know the secret. It is of no more use here. */
static void done(struct net_auth *a, bool dialled)
{
	uint8_t next[NET_MAC];

	prove(a, SESSION, dialled, next);
	memcpy(a->next, next, NET_SECRET);
	explicit_bzero(next, sizeof(next));
	prove(a, dialled ? DIALLER_KEY : ACCEPTOR_KEY, dialled, a->seal_key);
	prove(a, dialled ? ACCEPTOR_KEY : DIALLER_KEY, dialled, a->open_key);
	explicit_bzero(a->secret, NET_SECRET);
	explicit_bzero(a->key, NET_SECRET);
	a->nsealed = 0;
	a->nopened = 0;
	a->state = NET_AUTH_DONE;
}

static int fail(struct net_auth *a, int ret)
{
	a->state = NET_AUTH_FAILED;
	return ret;
}

/* May `to`, which the dialler has called its peer, mean the interface of this
 * name? By the key file, board and interface suffice. */
static bool means(uint8_t kind, const uint8_t to[NET_NAME],
		  const uint8_t name[NET_NAME])
{
	struct hal_addr want, have;

	if (kind != NET_KIND_KEY)
		return memcmp(to, name, NET_NAME) == 0;
	memcpy(&want, to, sizeof(want));
	memcpy(&have, name, sizeof(have));
	return want.version == have.version && want.board == have.board &&
		want.iface == have.iface &&
		(want.nonce == HAL_ADDR_ANY || want.nonce == have.nonce);
}

/* ---- Beginning ----------------------------------------------------- */

void net_auth_dial(struct net_auth *a, const uint8_t self[NET_NAME],
		   const uint8_t peer[NET_NAME], enum net_kind kind,
		   const uint8_t secret[NET_SECRET])
{
	struct net_hello hello = {
		.magic = NET_MAGIC, .version = NET_WIRE,
		.bytes = sizeof(hello), .kind = kind,
	};

	a->state = NET_AUTH_ANSWER;
	a->kind = kind;
	memcpy(a->self, self, NET_NAME);
	memcpy(a->peer, peer, NET_NAME);
	memcpy(a->secret, secret, NET_SECRET);
	memcpy(hello.from, self, NET_NAME);
	memcpy(hello.to, peer, NET_NAME);
	memcpy(hello.nonce, a->nonce, NET_NONCE);
	memcpy(a->out, &hello, sizeof(hello));
	a->nout = sizeof(hello);
	a->nin = 0;
}

void net_auth_accept(struct net_auth *a, const uint8_t self[NET_NAME],
		     const uint8_t secret[NET_SECRET], const uint8_t *key)
{
	a->has_key = key != NULL;
	if (a->has_key)
		memcpy(a->key, key, NET_SECRET);
	a->state = NET_AUTH_HELLO;
	a->kind = NET_KIND_ADDRESS;
	memcpy(a->self, self, NET_NAME);
	memcpy(a->secret, secret, NET_SECRET);
	a->nin = 0;
	a->nout = 0;
}

/* ---- Messages ------------------------------------------------------ */

/* May the author of a HELLO try to prove itself? 0, or a negative errno. */
static int check_hello(const struct net_auth *a, const struct net_hello *hello)
{
	static const uint8_t zero[7];

	if (hello->version != NET_WIRE || hello->bytes != sizeof(*hello))
		return -EPROTONOSUPPORT;
	if (hello->kind > NET_KIND_SESSION ||
	    memcmp(hello->zero, zero, 7) != 0 ||
	    !means(hello->kind, hello->to, a->self) ||
	    memcmp(hello->from, a->self, NET_NAME) == 0)
		return -FI_ECONNREFUSED;
	return hello->kind == NET_KIND_KEY && !a->has_key ? -FI_EACCES : 0;
}

/* The secret to which a good HELLO refers. 0, -FI_ECONNREFUSED. */
static int find_secret(struct net_auth *a, const struct net_hello *hello)
{
	if (hello->kind == NET_KIND_KEY)
		memcpy(a->secret, a->key, NET_SECRET);
	if (hello->kind == NET_KIND_SESSION &&
	    (a->session == NULL ||
	     !a->session(a->owner, hello->from, a->secret)))
		return -FI_ECONNREFUSED;
	return 0;
}

/* Answer a HELLO. A refusal says why: the dialler does not try again then. */
static int on_hello(struct net_auth *a)
{
	struct net_answer answer = { .magic = NET_MAGIC, .version = NET_WIRE };
	struct net_hello hello;
	int ret;

	memcpy(&hello, a->in, sizeof(hello));
	if (hello.magic != NET_MAGIC)
		return fail(a, -EPROTO);
	ret = check_hello(a, &hello);
	if (ret == 0)
		ret = find_secret(a, &hello);
	if (ret == 0) {
		a->kind = hello.kind;
		memcpy(answer.name, a->self, NET_NAME);
		memcpy(a->peer, hello.from, NET_NAME);
		memcpy(a->other, hello.nonce, NET_NONCE);
		memcpy(answer.nonce, a->nonce, NET_NONCE);
		prove(a, ACCEPTOR, false, answer.proof);
		a->state = NET_AUTH_PROOF;
	}
	answer.status = (int16_t)ret;
	memcpy(a->out, &answer, sizeof(answer));
	a->nout = sizeof(answer);
	return ret == 0 ? 0 : fail(a, ret);
}

static int on_answer(struct net_auth *a)
{
	struct net_answer answer;

	memcpy(&answer, a->in, sizeof(answer));
	if (answer.magic != NET_MAGIC)
		return fail(a, -EPROTO);
	if (answer.version != NET_WIRE)
		return fail(a, -EPROTONOSUPPORT);
	if (answer.status != 0)
		return fail(a, answer.status == -EPROTONOSUPPORT ||
			    answer.status == -FI_EACCES ? answer.status :
			    -FI_ECONNREFUSED);
	if (!means(a->kind, a->peer, answer.name))
		return fail(a, -FI_ECONNREFUSED);
	memcpy(a->peer, answer.name, NET_NAME);
	memcpy(a->other, answer.nonce, NET_NONCE);
	if (!proven(a, ACCEPTOR, true, answer.proof))
		return fail(a, -FI_EACCES);
	prove(a, DIALLER, true, a->out);
	a->nout = NET_MAC;
	done(a, true);
	return 0;
}

static int on_proof(struct net_auth *a)
{
	if (!proven(a, DIALLER, false, a->in))
		return fail(a, -FI_EACCES);
	done(a, false);
	return 0;
}

static size_t wanted(const struct net_auth *a)
{
	switch (a->state) {
	case NET_AUTH_HELLO:
		return sizeof(struct net_hello);
	case NET_AUTH_ANSWER:
		return sizeof(struct net_answer);
	case NET_AUTH_PROOF:
		return NET_MAC;
	default:
		return 0;
	}
}

static int on_message(struct net_auth *a)
{
	a->nin = 0;
	switch (a->state) {
	case NET_AUTH_HELLO:
		return on_hello(a);
	case NET_AUTH_ANSWER:
		return on_answer(a);
	default:
		return on_proof(a);
	}
}

int net_auth_input(struct net_auth *a, const void *data, size_t len,
		   size_t *used)
{
	const uint8_t *from = data;
	uint32_t magic = NET_MAGIC;
	size_t n;
	int ret;

	*used = 0;
	while (*used < len && a->state < NET_AUTH_DONE) {
		n = wanted(a) - a->nin;
		if (n > len - *used)
			n = len - *used;
		memcpy(a->in + a->nin, from + *used, n);
		a->nin += n;
		*used += n;
		/* garbage ends at its first bytes */
		if (a->state != NET_AUTH_PROOF &&
		    memcmp(a->in, &magic, a->nin < 4 ? a->nin : 4) != 0)
			return fail(a, -EPROTO);
		if (a->nin < wanted(a))
			continue;
		ret = on_message(a);
		if (ret != 0)
			return ret;
		/* the answer goes out before more is read */
		if (a->nout != 0 && a->state < NET_AUTH_DONE)
			break;
	}
	return a->state == NET_AUTH_FAILED ? -EPROTO : 0;
}

/* ---- Sealed messages ----------------------------------------------- */

size_t net_auth_seal(struct net_auth *a, void *msg, size_t len)
{
	struct net_ctl ctl;

	memcpy(&ctl, msg, sizeof(ctl));
	ctl.bytes = (uint16_t)(len + NET_MAC);
	ctl.number = ++a->nsealed;
	memcpy(msg, &ctl, sizeof(ctl));
	a->mac((uint8_t *)msg + len, a->seal_key, NET_MAC, msg, len);
	return len + NET_MAC;
}

int net_auth_open(struct net_auth *a, const void *msg)
{
	uint8_t want[NET_MAC];
	struct net_ctl ctl;
	size_t len;

	memcpy(&ctl, msg, sizeof(ctl));
	if (ctl.bytes < sizeof(ctl) + NET_MAC)
		return -EPROTO;
	len = ctl.bytes - (size_t)NET_MAC;
	a->mac(want, a->open_key, NET_MAC, msg, len);
	if (!a->equal(want, (const uint8_t *)msg + len) ||
	    ctl.number != a->nopened + 1)
		return -FI_EACCES;
	a->nopened++;
	return (int)len;
}
