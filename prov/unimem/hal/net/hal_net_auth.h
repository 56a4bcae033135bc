/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_auth.h - how two interfaces on different hosts prove to each other
 * that they know the secret of the address that one of them connects to.
 *
 * Pure: it reads and writes bytes, opens nothing, and knows no engine. The
 * caller carries the bytes over a TCP connection (hal_net_conn.c). docs/net.md
 * defines the messages.
 *
 *	dialler				acceptor
 *	HELLO  both names, nonce ->
 *				<-	ANSWER  nonce, proof of the acceptor
 *	PROOF  of the dialler ->
 *
 * A proof is HMAC-SHA256, with the secret of the acceptor's address as key, of
 * the role of its author, both nonces and both names. A dialler that knows only
 * board and interface names these in HELLO, ANSWER brings the whole name, and
 * the key comes from the key file. Nothing else is read from a connection
 * before its proof was checked.
 *
 * Messages after the proofs are sealed: each has a number and an HMAC. The keys
 * come from the same exchange, one for each direction, so that nobody between
 * the hosts can change, repeat, reorder or insert a message.
 *
 * From the same exchange both sides have the secret of their session. It never
 * travels. With it either side connects again after both have closed their
 * connection, also the side that does not know the other's address secret, and
 * proves that its object of the peer is still the same.
 */
#ifndef HAL_NET_AUTH_H
#define HAL_NET_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_MAGIC	UINT32_C(0x4e6d6955)	/* "UimN" */
#define NET_WIRE	6		/* raise when a message changes */
#define NET_MAC		32		/* bytes of a proof */
#define NET_NONCE	32
#define NET_SECRET	16
#define NET_NAME	48		/* struct hal_addr, and struct hal_host
					 * without its secret */
#define NET_CTL_MAX	1536		/* bytes of a sealed message */

/* Which secret a HELLO refers to. */
enum net_kind {
	NET_KIND_ADDRESS = 0,		/* that of the acceptor's address */
	NET_KIND_KEY,			/* that of the key file; the dialler's
					 * name of the acceptor may lack the
					 * nonce */
	NET_KIND_SESSION,		/* of the session that both sides have
					 * already, by an earlier connection */
};

/* First message of the dialler. */
struct net_hello {
	uint32_t magic;			/* NET_MAGIC */
	uint16_t version;		/* NET_WIRE */
	uint16_t bytes;			/* of this message */
	uint8_t from[NET_NAME];
	uint8_t to[NET_NAME];
	uint8_t nonce[NET_NONCE];
	uint8_t kind;			/* enum net_kind */
	uint8_t zero[7];
};
_Static_assert(sizeof(struct net_hello) == 144, "hello is wire format");

/* Answer of the acceptor. Not 0 in status: refused, the rest means nothing. */
struct net_answer {
	uint32_t magic;			/* NET_MAGIC */
	uint16_t version;		/* NET_WIRE */
	int16_t status;			/* 0, or a negative fi_errno */
	uint8_t name[NET_NAME];		/* the acceptor's */
	uint8_t nonce[NET_NONCE];
	uint8_t proof[NET_MAC];
};
_Static_assert(sizeof(struct net_answer) == 120, "answer is wire format");

/* Start of a sealed message. Its last NET_MAC bytes are the HMAC of all bytes
 * before. */
struct net_ctl {
	uint16_t type;			/* enum net_ctl_type */
	uint16_t bytes;			/* of the message with its HMAC */
	uint32_t number;		/* of the message in its direction, from
					 * 1 */
};
_Static_assert(sizeof(struct net_ctl) == 8, "head is wire format");

/* HMAC-SHA256 of len bytes. */
typedef void (*net_mac_fn)(uint8_t mac[NET_MAC],
			   const uint8_t *key, size_t nkey,
			   const void *data, size_t len);
/* Are two proofs equal? Takes the same time whatever they contain. */
typedef bool (*net_equal_fn)(const uint8_t a[NET_MAC],
			     const uint8_t b[NET_MAC]);
/* Copy the secret of the session with the interface of this name. False: the
 * acceptor has no session with it. */
typedef bool (*net_session_fn)(void *owner, const uint8_t name[NET_NAME],
			       uint8_t secret[NET_SECRET]);

enum net_auth_state {
	NET_AUTH_HELLO,			/* acceptor: waits for HELLO */
	NET_AUTH_ANSWER,		/* dialler: waits for ANSWER */
	NET_AUTH_PROOF,			/* acceptor: waits for PROOF */
	NET_AUTH_DONE,			/* the peer has proven its knowledge */
	NET_AUTH_FAILED,
};

/* One side of one connection, from net_auth_dial() or net_auth_accept(). */
struct net_auth {
	enum net_auth_state state;
	net_mac_fn mac;
	net_equal_fn equal;
	net_session_fn session;		/* acceptor; NULL: has no sessions */
	void *owner;			/* of session */
	uint8_t self[NET_NAME];		/* name of this side */
	uint8_t peer[NET_NAME];		/* name of the other; the acceptor: set
					 * by HELLO, the dialler: by ANSWER;
					 * proven in NET_AUTH_DONE */
	uint8_t kind;			/* enum net_kind; the acceptor: set by
					 * HELLO */
	uint8_t secret[NET_SECRET];	/* of the acceptor's address, of the key
					 * file, or of the session */
	uint8_t key[NET_SECRET];	/* acceptor: the latter, if has_key */
	bool has_key;
	uint8_t nonce[NET_NONCE];	/* of this side */
	uint8_t other[NET_NONCE];	/* of the other side */
	uint8_t in[sizeof(struct net_hello)];	/* part of a message */
	size_t nin;
	uint8_t out[sizeof(struct net_hello)];	/* to be sent */
	size_t nout;			/* the caller sets it to 0 */
	/* in NET_AUTH_DONE: */
	uint8_t seal_key[NET_MAC];	/* of messages that this side sends */
	uint8_t open_key[NET_MAC];	/* of those that it receives */
	uint8_t next[NET_SECRET];	/* secret of the session, if this
					 * connection begins one */
	uint32_t nsealed, nopened;	/* numbers of the last ones */
};

/* Begin as the dialler of a peer; out has HELLO. mac, equal and nonce of *a are
 * set by the caller, here and below, and session by an acceptor. kind: of the
 * secret. */
void net_auth_dial(struct net_auth *a, const uint8_t self[NET_NAME],
		   const uint8_t peer[NET_NAME], enum net_kind kind,
		   const uint8_t secret[NET_SECRET]);

/* Begin as the acceptor of an unknown peer. key: the secret of the key file;
 * NULL: there is none. */
void net_auth_accept(struct net_auth *a, const uint8_t self[NET_NAME],
		     const uint8_t secret[NET_SECRET], const uint8_t *key);

/*
 * Read up to len bytes; *used is set to how many were taken, which ends at the
 * last byte of the handshake. The bytes in out have to be sent afterwards, also
 * after a failure. 0: see state. -EPROTO: no such message; -EPROTONOSUPPORT:
 * another version; -FI_EACCES: a proof is wrong, or the acceptor has no key
 * file; -FI_ECONNREFUSED: the HELLO names another interface, or a session that
 * the acceptor does not have, or the acceptor refused.
 */
int net_auth_input(struct net_auth *a, const void *data, size_t len,
		   size_t *used);

/*
 * Seal the message of len bytes at msg, which begins with struct net_ctl and
 * has place for NET_MAC bytes more: sets ctl.bytes, ctl.number and the HMAC.
 * The messages of a connection are sent in the order in which they are sealed.
 * Returns the bytes of the whole message.
 */
size_t net_auth_seal(struct net_auth *a, void *msg, size_t len);

/*
 * Check a message of ctl.bytes bytes. Returns the bytes before the HMAC;
 * -EPROTO: too short; -FI_EACCES: the HMAC is wrong, or the number is not the
 * next one.
 */
int net_auth_open(struct net_auth *a, const void *msg);

#endif /* HAL_NET_AUTH_H */
