/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credits.pml - message credits: two senders, and a receiver that may post its
 * receives and read its completions late
 *
 * Models
 *   unm_send.c      unm_send_slow(), and unm_tx(): beyond msg_limit a send is
 *                   refused
 *   unm_peer.c      unm_peer_credit(), unm_peer_grant(),
 *                   unm_peer_must_throttle(), unm_peer_grant_throttled()
 *   unm_recv.c      unm_recv_message(), unm_msg_store(), unm_msg_release()
 *   unm_progress.c  unm_progress_peer(): credits after a burst, in steps
 *   unm_cq.c        unm_cq_take(), unm_cq_unthrottle(): a full queue withholds
 *                   credits
 * The ring is unbounded, so that only credits limit a sender. Packets arrive in
 * order, as ring.pml proves; sleep.pml proves that a back word wakes a refused
 * sender. The back word may be read late. It is a count that orders no other
 * memory: no claim would fail if it were relaxed.
 *
 * Claims
 *   ahead    a sender is at most CREDITS messages ahead of those consumed
 *   obeyed   the receiver never disconnects a sender that obeys its credits
 *   bounded  unexpected messages are bounded by FI_UNIMEM_UNEXPECTED_MAX plus
 *            the credits, completions by the size of the queue plus the credits
 *   ltl ends all messages are delivered, once there are receives for them
 *   (no invalid end state)
 *
 * Mutants, and what rejects them
 *   CREDIT_EARLY   ahead     credit for packets that are not consumed yet
 *   CREDIT_TWICE   ahead     the same credit is returned twice
 *   SPENT_LATE     obeyed    the sender sends one message beyond its limit
 *   WORD_ONLY      obeyed    the word is raised, the receiver's count is not
 *   ALWAYS_ALLOW   bounded   unexpected messages withhold no credits
 *   QUEUE_FULL     bounded   a full queue withholds no credits
 *   NOT_NOTED      deadlock  it is not recorded that credits were withheld
 *   NOT_RELIEVED   deadlock  a queue that was read returns no credits
 *   NOT_GIVEN      deadlock  withheld credits are not returned when they can be
 *   GIVEN_TO_ONE   deadlock  ... or to one sender only
 *   STEP_TOO_BIG   deadlock  credits are returned in steps of more than CREDITS
 */
#define SENDERS		2
#define MESSAGES	6		/* of each */
#define CREDITS		2		/* UNM_PEER_CREDITS */
#define MAX		2		/* FI_UNIMEM_UNEXPECTED_MAX */
#define QUEUE		2		/* entries of the completion queue */
#define TOTAL		(SENDERS * MESSAGES)

#ifdef STEP_TOO_BIG
#define STEP		(CREDITS + 1)
#else
#define STEP		(CREDITS / 2)
#endif

/* of the senders */
byte sent[SENDERS], limit[SENDERS] = CREDITS;
/* of the receiver */
byte got[SENDERS], allowed[SENDERS] = CREDITS;
byte posted, unexpected, delivered;
byte stored[SENDERS];			/* unexpected ones, by sender */
byte entries;				/* unread */
bool throttled[SENDERS], throttles;
/* shared */
byte word[SENDERS];

bool ahead = true, obeyed = true, bounded = true;

inline claim(what, cond)
{
	what = (cond);
	assert(what)
}

#ifdef QUEUE_FULL
#define HAS_ROOM	true
#else
#define HAS_ROOM	(entries < QUEUE)
#endif

#ifdef SPENT_LATE
#define MAY_SEND(s)	(sent[s] <= limit[s])
#else
#define MAY_SEND(s)	(sent[s] != limit[s])
#endif

proctype sender(byte s)
{
	do
	:: sent[s] == MESSAGES ->
		break
	:: sent[s] != MESSAGES && MAY_SEND(s) ->
		d_step {
			sent[s]++;
			claim(ahead, sent[s] - got[s] <= CREDITS)
		}
	:: sent[s] != MESSAGES && !MAY_SEND(s) ->
		/* unm_peer_credit(); asleep, or polling in vain, till then */
		word[s] > limit[s];
		limit[s] = word[s]
	od
}

inline hold(s)
{
#ifndef NOT_NOTED
	throttled[s] = true
#else
	skip
#endif
}

inline allow(s)
{
	if
#ifndef QUEUE_FULL
	:: entries >= QUEUE ->
		throttles = true;
		hold(s)
#endif
#ifndef ALWAYS_ALLOW
	:: HAS_ROOM && stored[s] > 0 && unexpected >= MAX ->
		hold(s)
#endif
	:: else ->
		throttled[s] = false;
#ifdef CREDIT_EARLY
		allowed[s] = sent[s] + CREDITS;
#elif defined(CREDIT_TWICE)
		allowed[s] = allowed[s] + CREDITS;
#elif !defined(WORD_ONLY)
		allowed[s] = got[s] + CREDITS;
#endif
#ifdef WORD_ONLY
		word[s] = got[s] + CREDITS
#else
		word[s] = allowed[s]
#endif
	fi
}

inline allow_if_held(s)
{
	if
#ifndef NOT_GIVEN
	:: throttled[s] ->
		allow(s)
#endif
	:: else
	fi
}

inline allow_held()
{
	allow_if_held(0);
#ifndef GIVEN_TO_ONE
	allow_if_held(1)
#endif
}

inline complete()
{
	delivered++;
	entries++;
	claim(bounded, entries <= QUEUE - 1 + SENDERS * CREDITS)
}

/* unm_recv_message() */
inline arrive(s)
{
	d_step {
		claim(obeyed, got[s] != allowed[s]);
		got[s]++;
		if
		:: posted > 0 ->
			posted--;
			complete()
		:: else ->
			unexpected++;
			stored[s]++;
			claim(bounded, unexpected <=
			      MAX - 1 + SENDERS * CREDITS)
		fi
	}
}

/* unm_msg_release() */
inline release(s)
{
	unexpected--;
	stored[s]--;
	if
	:: stored[s] == 0 ->
		allow_if_held(s)
	:: else
	fi;
	if
	:: entries < QUEUE && unexpected < MAX ->
		allow_held()
	:: else
	fi
}

/* unm_recv_queue(), of either sender's */
inline post()
{
	atomic {
		if
		:: stored[0] > 0 ->
			complete();
			release(0)
		:: stored[1] > 0 ->
			complete();
			release(1)
		:: unexpected == 0 ->
			posted++
		fi
	}
}

/* unm_cq_take() */
inline take()
{
	atomic {
		entries--;
		if
#ifndef NOT_RELIEVED
		:: throttles && entries <= QUEUE / 2 ->
			throttles = false;
			allow_held()
#endif
		:: else
		fi
	}
}

/* unm_progress_peer() */
inline progress(s)
{
	do
	:: sent[s] > got[s] ->
		arrive(s)
	:: got[s] > before ->
		break			/* also where there would be more */
	od;
	atomic {
		if
		:: got[s] + CREDITS - allowed[s] >= STEP ->
			allow(s)
		:: else
		fi;
		before = 0
	}
}

#define POSTED		(posted + delivered)

proctype receiver()
{
	byte before;			/* the burst */

	do
	:: atomic { sent[0] > got[0] -> before = got[0] };
		progress(0)
	:: atomic { sent[1] > got[1] -> before = got[1] };
		progress(1)
	:: POSTED < TOTAL && entries < QUEUE ->
		post()
	:: entries > 0 ->
		take()
	:: delivered == TOTAL && entries == 0 ->
		break
	od
}

init {
	atomic {
		run sender(0);
		run sender(1);
		run receiver()
	}
}

ltl ends { <> (delivered == TOTAL) }
