/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long.pml - eager messages in several pieces, and a message in one packet
 * between them; the sender may end at any step
 *
 * A sender sends a LONG message of three pieces, one in a packet, between its
 * pieces or after them, and another LONG message. The receiver posts receives
 * at any time, each of which takes the first message that is there; it may
 * discard a stored message. A stored message and its buffer are reused after
 * their release. Models
 *   unm_send.c        unm_send_long(): each piece is a packet
 *   unm_long.c        all but the measurements
 *   unm_recv.c        unm_recv_message(), unm_msg_store(), unm_msg_deliver(),
 *                     unm_msg_discard()
 *   unm_rendezvous.c  unm_rendezvous_begin(), unm_recv_abort()
 *   docs/protocol.md, section 5
 * Packets, and the bytes of the receive space that they name, arrive whole and
 * in order, as ring.pml and space.pml prove.
 *
 * Claims
 *   once       no receive completes twice
 *   whole      a receive that succeeds has all pieces of one message; a stored
 *              message gets its own pieces only
 *   order      receives take the messages in the order in which they were sent
 *   honest     no piece of a correct sender is treated as a protocol error
 *   settled    when no step is possible, no receive is matched and not
 *              complete
 *   ltl ends   and this state is reached
 *
 * Mutants, and what rejects them
 *   STORE_WHOLE    order      a message is stored when its last piece has come
 *   MATCH_WHOLE    whole      a stored message is delivered as if all pieces
 *                             had come
 *   DEAD_WHOLE     whole      ... after its sender has ended
 *   FORGET_NOT     whole      pieces of a discarded message go into the buffer
 *                             of the next one
 *   LEFT_KEPT      honest     bytes that a discarded message still expects
 *                             count for the next one
 *   ABORT_NOT      settled    a receive whose sender ends in the middle is not
 *                             completed
 */
#define MESSAGES 3
#define RECVS	3
#define STORED	2			/* stored messages at once */
#define NONE	9

mtype = { INLINE, LONG, NEXT };			/* packets */
mtype = { FREE, POSTED, FILLED, OK, ERR };	/* receives */

/* message; the pieces that all of it has */
chan ring = [2] of { mtype, byte };
bool ended, sent;

#define PIECES(m)	((m) == 1 -> 1 : 3)

bool once = true, whole = true, order = true, honest = true, settled = true;

inline claim(what, cond)
{
	what = (cond);
	assert(what)
}

proctype sender()
{
	byte n = 1;
	bool between;

	{
		ring ! LONG, 0;
		do
		:: atomic { n < PIECES(0) && nfull(ring) ->
			ring ! NEXT, 0;
			n++ }
		:: atomic { !between && nfull(ring) ->
			ring ! INLINE, 1;
			between = true }
		:: n == PIECES(0) && between ->
			break
		od;
		ring ! LONG, 2;
		ring ! NEXT, 2;
		atomic { ring ! NEXT, 2; sent = true }
	} unless {
		ended
	}
}

typedef recv_t {
	mtype state;
	byte num;			/* that it matched */
	byte got[MESSAGES]		/* pieces of each that were copied */
};
typedef msg_t {
	byte num;			/* NONE: free */
	bool partial;
	byte got[MESSAGES]
};

recv_t rx[RECVS];
msg_t st[STORED];			/* oldest first */
byte posts;
byte last;				/* message matched last, + 1 */
byte left;				/* pieces of the LONG message to come */
byte long_op = NONE;			/* receive that it matched */
byte long_msg = NONE;			/* or where it is stored */
byte late = NONE;			/* STORE_WHOLE: not stored yet */
bool gone;				/* the peer was torn down */

inline complete(r, how)
{
	d_step {
		claim(once, rx[r].state != OK && rx[r].state != ERR);
		claim(whole, how != OK ||
		      rx[r].got[rx[r].num] == PIECES(rx[r].num));
		rx[r].state = how
	}
}

/* A receive takes message m. */
inline match(r, m)
{
	claim(order, m >= last);
	last = m + 1;
	rx[r].num = m;
	rx[r].state = FILLED
}

/* The first stored message is released. */
inline release()
{
	d_step {
		st[0].num = st[1].num;
		st[0].partial = st[1].partial;
		for (j : 0 .. MESSAGES - 1) {
			st[0].got[j] = st[1].got[j];
			st[1].got[j] = 0
		}
		j = 0;
		st[1].num = NONE;
		st[1].partial = false;
		if
		:: long_msg == 1 -> long_msg = 0
#ifndef FORGET_NOT
		:: long_msg == 0 -> long_msg = NONE
#endif
		:: else
		fi
	}
}

/* unm_msg_deliver() of the first stored message */
inline deliver(r)
{
	m = st[0].num;
	match(r, m);
	rx[r].got[m] = st[0].got[m];
	m = 0;
	if
#ifndef MATCH_WHOLE
	:: st[0].partial && !gone ->
		long_op = r
#ifndef DEAD_WHOLE
	:: st[0].partial && gone ->
		complete(r, ERR)
#endif
#endif
	:: else ->
		complete(r, OK)
	fi;
	release()
}

/* unm_msg_store() */
inline store(m)
{
	k = (st[0].num == NONE -> 0 : 1);
	st[k].num = m;
	st[k].partial = part;
	st[k].got[m] = 1;
	if
	:: part -> long_msg = k
	:: else
	fi;
	k = 0
}

/* The receive that is posted first; NONE: there is none. */
#define FIRST	(rx[0].state == POSTED -> 0 : (rx[1].state == POSTED -> 1 : \
		 (rx[2].state == POSTED -> 2 : NONE)))

/* unm_recv_message() */
inline arrive(m)
{
	if
	:: FIRST != NONE ->
		k = FIRST;
		match(k, m);
		rx[k].got[m] = 1;
		if
		:: part -> long_op = k
		:: else -> complete(k, OK)
		fi;
		k = 0
	:: else ->
#ifdef STORE_WHOLE
		if
		:: part -> late = m
		:: else -> store(m)
		fi
#else
		store(m)
#endif
	fi
}

/* unm_long_next() */
inline next(m)
{
	claim(honest, left > 0);
	left--;
	if
	:: long_op != NONE ->
		rx[long_op].got[m]++;
		if
		:: left == 0 ->
			complete(long_op, OK);
			long_op = NONE
		:: else
		fi
	:: long_op == NONE && long_msg != NONE ->
		claim(whole, st[long_msg].num == m);
		st[long_msg].got[m]++;
		if
		:: left == 0 ->
			st[long_msg].partial = false;
			long_msg = NONE
		:: else
		fi
	:: else ->
#ifdef STORE_WHOLE
		if
		:: late != NONE && left == 0 ->
			part = false;
			store(late);
			st[(st[1].num == NONE -> 0 : 1)].got[late] = PIECES(m);
			late = NONE
		:: else
		fi
#else
		skip
#endif
	fi
}

/* unm_recv_abort() */
inline tear_down()
{
	gone = true;
#ifndef ABORT_NOT
	if
	:: long_op != NONE ->
		complete(long_op, ERR)
	:: else
	fi;
#endif
	long_op = NONE;
	long_msg = NONE
}

#define ROOM	(st[1].num == NONE)
#define DEAD	(ended && len(ring) == 0 && !gone)

proctype receiver()
{
	byte j, k, m;
	bool part;

end:	do
	:: atomic { (ring ? [INLINE, _] || ring ? [LONG, _]) && ROOM ->
		if
		:: ring ? INLINE, m
		:: ring ? LONG, m ->
			part = true;
			claim(honest, left == 0);
			left = PIECES(m) - 1
		fi;
		arrive(m);
		part = false;
		m = 0 }
	:: atomic { ring ? [NEXT, _] ->
		ring ? NEXT, m;
		next(m);
		m = 0 }
	:: atomic { posts < RECVS ->
		rx[posts].state = POSTED;
		posts++;
		if
		:: st[0].num != NONE -> deliver(posts - 1)
		:: else
		fi }
	/* FI_DISCARD */
	:: atomic { st[0].num != NONE ->
		claim(order, st[0].num >= last);
		last = st[0].num + 1;
#ifdef LEFT_KEPT
		if
		:: st[0].partial -> left++
		:: else
		fi;
#endif
		release() }
	:: atomic { DEAD -> tear_down() }
	od
}

proctype killer()
{
	if
	:: ended = true
	:: true
	fi
}

#define OPEN(r)		(rx[r].state == FILLED)
#define ALL_ENDED	((sent || ended) && len(ring) == 0 && \
			 !OPEN(0) && !OPEN(1) && !OPEN(2))

proctype monitor()
{
	timeout;
	claim(settled, ALL_ENDED)
}

init {
	atomic {
		rx[0].state = FREE;
		rx[1].state = FREE;
		rx[2].state = FREE;
		st[0].num = NONE;
		st[1].num = NONE;
		run sender();
		run receiver();
		run killer();
		run monitor()
	}
}

ltl ends { <> (ALL_ENDED) }
