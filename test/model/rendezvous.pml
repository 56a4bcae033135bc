/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rendezvous.pml - long messages of two senders to one receiver; a process or
 * the connection of two processes may end at any step
 *
 * Each sender announces one message of two pieces (RTS); the receiver posts
 * receives at any time. It reads the sender's buffer if it can access it (one
 * transfer for a piece), or asks for the message (CTS, one DATA packet for a
 * piece). A sender that was asked may stop sending at any time: the receiver
 * then reads the last missing piece itself, if it can. Both data paths end with
 * FIN. A sender or the receiver is killed; one sender closes its endpoint and
 * continues to live; the receiver disconnects that sender. A program reuses
 * its buffer as soon as its operation completes or its endpoint is closed.
 * Models
 *   unm_rendezvous.c  all but multi-receive and truncation
 *   unm_send.c        unm_send_rendezvous(), unm_send_on_cts(),
 *                     unm_send_on_fin(), unm_stream_push(), unm_send_abort()
 *   unm_peer_life.c   unm_peer_tear_down()
 *   unm_progress.c    unm_peer_event(): what a peer sent before its end is
 *                     taken first
 *   util/unm_pool.h   tokens: an operation's index and generation
 *   hal_emu_dma.c     emu_dma_post(), emu_dma_poll(), emu_dma_cancel(),
 *                     emu_attach_move(), here an engine that runs when it likes
 *   docs/protocol.md, sections 7 and 9
 * Packets, and the bytes of the receive space that they name, arrive whole and
 * in order, as ring.pml and space.pml prove.
 *
 * Claims
 *   once       no operation completes twice
 *   whole      a receive that succeeds has all bytes of the message
 *   untouched  no transfer writes into a buffer that the application owns again
 *   told_true  a send that succeeds has been received
 *   heard      packets that a peer sent before its end are processed
 *   spared     a receive fails only if its own peer is dead or disconnected
 *   honest     no packet of a living peer is treated as a protocol error
 *   settled    when no step is possible, each operation has completed except
 *              receives without a message; engine and queues are empty
 *   ltl ends   and this state is reached
 *
 * Mutants, and what rejects them
 *   FIN_EARLY      whole      FIN is sent before the get is done
 *   FIN_PIECE      whole      ... when the first of its transfers is done
 *   CTS_EARLY      whole      CTS is sent during other transfers
 *   CTS_KEEPS_GOT  honest     pieces are asked for as if some had arrived
 *   DEAD_UNSEEN    whole      the process read from is not checked
 *   CLOSE_UNSEEN   whole      ... or the endpoint read from
 *   CANCEL_NOT     untouched  transfers of a removed peer are not cancelled
 *   DEAD_KEPT      once       a get from a dead peer completes when the peer
 *                             dies and when its transfer is cancelled
 *   ABORT_FIN      once       ... and once more when its FIN is not sent yet
 *   NO_GENERATION  settled    a transfer completes the operation that reuses
 *                             the slot
 *   NO_DRAIN       heard      a death is reported before the last packets
 *   STREAM_EARLY   told_true  a send completes with its last DATA packet
 *   AWAIT_RELEASE  told_true  ... or when that is released, though the receiver
 *                             reads the buffer
 *   LATE_REFUSED   honest     a piece of a message that was read breaks the
 *                             protocol
 *   UNAWAITED      untouched  a receive completes with its last piece while a
 *                             transfer into its buffer is under way
 *   OVERLAP_KEPT   whole      ... or although that transfer was cancelled after
 *                             it wrote over a piece
 *   EACCES_FATAL   spared     no CTS is sent after the kernel refused a get
 */
#define SENDERS	2
#define RECVS	2
#define OPS	2
#define PIECES	2
#define SLOTS	2			/* of the engine */

mtype = { RTS, DATA, CTS, FIN };		/* packets */
mtype = { ANNOUNCED, STREAM, STREAMED, OK, ERR, CLOSED };	/* sends */
mtype = { FREE, POSTED, DMA_WAIT, DMA, WANT_CTS, PULL, WANT_FIN };
mtype = { RUNS, READ, CANCELED, REFUSED };	/* transfers; OK, FREE */

/* ---- Between them ------------------------------------------------------ */

/* DATA: operation, generation, are the bytes the message's */
chan to_r[SENDERS] = [2] of { mtype, byte, byte, bool };
/* CTS: operation, generation; FIN: status */
chan to_s[SENDERS] = [1] of { mtype, byte, byte };
bool killed[SENDERS], closed[SENDERS];	/* the kernel knows */
bool r_ended;				/* killed */
bool left[SENDERS];			/* the receiver gave up on it */
bool intact[SENDERS];			/* the send's buffer, by its owner */

#define MORTAL(s)	((s) == 0)	/* the other is there to be disturbed */
#define ENDED(s)	(killed[s] || closed[s])

bool once = true, whole = true, untouched = true, told_true = true;
bool heard = true, spared = true, honest = true, settled = true;

inline claim(what, cond)
{
	what = (cond);
	assert(what)
}

/* ---- Sender ------------------------------------------------------------- */

mtype tx[SENDERS];
byte tx_pieces[SENDERS];		/* sent */
#ifdef AWAIT_RELEASE
byte tx_packets[SENDERS];		/* sent, RTS and DATA */
byte released[SENDERS];			/* of these */
#endif
byte tx_op[SENDERS], tx_gen[SENDERS];	/* receiver's token */
bool received[SENDERS], fin_sent[SENDERS];	/* for claims */

#define TX_BUSY(s)	(tx[s] == ANNOUNCED || tx[s] == STREAM || \
			 tx[s] == STREAMED)

#ifdef NO_DRAIN
#define TX_HEARD(s)	true
#else
#define TX_HEARD(s)	(len(to_s[s]) == 0)
#endif

/* The application has its buffer back, and uses it. */
inline tx_complete(s, how)
{
	d_step {
		claim(once, TX_BUSY(s));
		claim(told_true, how != OK || received[s]);
		claim(heard, how != ERR || !fin_sent[s]);
		tx[s] = how;
		tx_op[s] = 0;
		tx_gen[s] = 0;
		intact[s] = false
	}
}

/* fi_close(), or the peer is given up; its own operations are gone then. */
inline tx_close(s)
{
	d_step {
		closed[s] = true;
		if
		:: TX_BUSY(s) ->
			tx[s] = CLOSED
		:: else
		fi;
		intact[s] = false
	}
}

/* unm_send_rendezvous() */
inline announce(s)
{
	intact[s] = true;
	tx[s] = ANNOUNCED;
#ifdef AWAIT_RELEASE
	tx_packets[s] = 1;
#endif
	to_r[s] ! RTS, 0, 0, true
}

proctype sender(byte s)
{
	byte status;

	{
		do
		:: atomic { TX_BUSY(s) && to_s[s] ? [FIN, _, _] ->
			to_s[s] ? FIN, status, _;
			tx_complete(s, (status == 0 -> OK : ERR));
			status = 0 }
		:: atomic { TX_BUSY(s) && to_s[s] ? [CTS, _, _] ->
			to_s[s] ? CTS, tx_op[s], tx_gen[s];
			claim(honest, tx[s] == ANNOUNCED);
			tx[s] = STREAM }
		:: atomic { tx[s] == STREAM && nfull(to_r[s]) ->
			to_r[s] ! DATA, tx_op[s], tx_gen[s], intact[s];
#ifdef AWAIT_RELEASE
			tx_packets[s]++;
#endif
			tx_pieces[s]++;
			if
			:: tx_pieces[s] == PIECES ->
#ifdef STREAM_EARLY
				tx_complete(s, OK)
#else
				tx[s] = STREAMED
#endif
			:: else
			fi }
#ifdef AWAIT_RELEASE
		:: atomic { tx[s] == STREAMED && released[s] == tx_packets[s] ->
			tx_complete(s, OK) }
#endif
		:: atomic { (r_ended || left[s]) && TX_BUSY(s) &&
			    TX_HEARD(s) ->
			tx_complete(s, ERR) }
		:: MORTAL(s) ->
			tx_close(s);
			break
		:: !TX_BUSY(s) ->
			break
		od
	} unless {
		atomic { killed[s] ->
			tx_close(s);
			closed[s] = false }
	}
}

/* ---- Receiver ----------------------------------------------------------- */

typedef op_t {
	mtype state;
	byte gen;
	byte recv;			/* the application's operation */
	byte from;
	byte next, out;			/* transfers: to post, outstanding */
	byte got;			/* pieces, posted or come */
	byte end;			/* PULL: pieces from here on were read */
	bool alone;			/* PULL: its pieces are not read */
	mtype status
};
typedef slot_t {
	mtype state;
	byte op, gen;			/* token */
	byte recv, piece;		/* where it writes */
	byte from
};

op_t op[OPS];
slot_t slot[SLOTS];
bool done[RECVS];			/* completed, the buffer not ours */
bool good[RECVS * PIECES];		/* bytes of the buffers */
byte posts;
bool unexpected[SENDERS];
bool reach[SENDERS];			/* dma_any, and not attach_off */
bool gone[SENDERS];			/* peer->hp == NULL */

inline op_release(o)
{
	d_step {
		op[o].state = FREE;
		op[o].recv = 0;
		op[o].from = 0;
		op[o].next = 0;
		op[o].out = 0;
		op[o].got = 0;
		op[o].end = 0;
		op[o].alone = false;
		op[o].status = OK
	}
}

inline slot_release(e)
{
	d_step {
		slot[e].state = FREE;
		slot[e].op = 0;
		slot[e].gen = 0;
		slot[e].recv = 0;
		slot[e].piece = 0;
		slot[e].from = 0
	}
}

/* unm_rdv_complete() */
inline rx_complete(o, how)
{
	d_step {
		claim(once, !done[op[o].recv]);
		claim(whole, how != OK || (good[op[o].recv * PIECES] &&
		      good[op[o].recv * PIECES + 1]));
		claim(spared, how != ERR || ENDED(op[o].from) ||
		      gone[op[o].from]);
		received[op[o].from] = received[op[o].from] || how == OK;
		good[op[o].recv * PIECES] = false;
		good[op[o].recv * PIECES + 1] = false;
		done[op[o].recv] = true
	}
}

/* unm_recv_queue() */
inline post_recv()
{
	k = (op[0].state == FREE -> 0 : 1);
	op[k].gen++;
	op[k].recv = posts;
	op[k].state = POSTED;
	posts++;
	k = 0
}

/* A message and a receive meet: unm_rendezvous_begin() */
inline begin(o)
{
	if
	:: unexpected[0] ->
		op[o].from = 0
	:: unexpected[1] ->
		op[o].from = 1
	fi;
	unexpected[op[o].from] = false;
	op[o].end = PIECES;
	if
	:: gone[op[o].from] ->
		rx_complete(o, ERR);
		op_release(o)
	:: !gone[op[o].from] && reach[op[o].from] ->
		op[o].state = DMA_WAIT
	:: !gone[op[o].from] ->
		op[o].state = WANT_CTS
	fi
}

/* A piece of unm_rdv_post(): hal_dma_post() */
inline post_piece(o)
{
	if
	:: !reach[op[o].from] ->
		op[o].status = REFUSED;
		op[o].next = PIECES
	:: else ->
		k = (slot[0].state == FREE -> 0 : 1);
		slot[k].state = RUNS;
		slot[k].op = o;
		slot[k].gen = op[o].gen;
		slot[k].recv = op[o].recv;
		slot[k].piece = op[o].next;
		slot[k].from = op[o].from;
		k = 0;
		op[o].next++;
		op[o].out++;
		op[o].got++
	fi;
	if
	:: op[o].next == PIECES ->
		op[o].state = DMA
	:: else
	fi
}

#ifdef NO_GENERATION
#define MINE(e)		(op[slot[e].op].state == DMA_WAIT || \
			 op[slot[e].op].state == DMA)
#else
#define MINE(e)		(op[slot[e].op].state != FREE && \
			 op[slot[e].op].gen == slot[e].gen)
#endif

/* unm_stream_end() */
inline stream_end(o)
{
	rx_complete(o, OK);
	op[o].state = WANT_FIN
}

/* unm_stream_read(): the last piece that is missing */
inline stream_read(o)
{
	k = (slot[0].state == FREE -> 0 : 1);
	op[o].end--;
	slot[k].state = RUNS;
	slot[k].op = o;
	slot[k].gen = op[o].gen;
	slot[k].recv = op[o].recv;
	slot[k].piece = op[o].end;
	slot[k].from = op[o].from;
	op[o].end++;
	op[o].out = 1;
	k = 0
}

/* unm_stream_done() */
inline stream_done(o, how)
{
	if
	:: how == OK ->
		op[o].end--
	:: how != OK ->
		op[o].alone = true
	fi;
	if
#ifndef OVERLAP_KEPT
	:: how == CANCELED && op[o].got >= op[o].end ->
		rx_complete(o, ERR);
		op_release(o)
#endif
	:: (how != CANCELED || op[o].got < op[o].end) &&
	   op[o].got >= op[o].end ->
		stream_end(o)
#ifdef OVERLAP_KEPT
	:: how == CANCELED && op[o].got >= op[o].end ->
		stream_end(o)
#endif
	:: op[o].got < op[o].end
	fi
}

/* A completion of hal_dma_poll(), in unm_recv_dma_done() */
inline dma_comp(e)
{
	k = slot[e].op;
	if
	:: MINE(e) ->
		op[k].out--;
		if
		:: op[k].state == PULL ->
			stream_done(k, slot[e].state)
		:: op[k].state != PULL && slot[e].state != OK ->
			op[k].status = slot[e].state
		:: else
		fi
	:: else				/* its peer died meanwhile */
	fi;
	k = 0;
	slot_release(e)
}

/* Have the transfers of an operation ended? */
#ifdef FIN_EARLY
#define READ_ALL(o)	true
#elif defined(FIN_PIECE)
#define READ_ALL(o)	(op[o].out < PIECES)
#elif defined(CTS_EARLY)
#define READ_ALL(o)	(op[o].out == 0 || op[o].status == REFUSED)
#else
#define READ_ALL(o)	(op[o].out == 0)
#endif

/* unm_rdv_read() */
inline rdv_read(o)
{
	if
#ifndef EACCES_FATAL
	:: op[o].status == REFUSED ->
		reach[op[o].from] = false;
		op[o].status = OK;
#ifndef CTS_KEEPS_GOT
		op[o].got = 0;
#endif
		op[o].state = WANT_CTS
#endif
	:: op[o].status == OK ->
		rx_complete(o, OK);
		op[o].state = WANT_FIN
	:: else ->
		rx_complete(o, ERR);
		op[o].state = WANT_FIN
	fi
}

/* unm_rdv_send_control() */
inline tell(o)
{
	if
	:: op[o].state == WANT_CTS ->
		to_s[op[o].from] ! CTS, o, op[o].gen;
		op[o].state = PULL
	:: else ->
		to_s[op[o].from] ! FIN, (op[o].status == OK -> 0 : 1), 0;
		fin_sent[op[o].from] = (op[o].status == OK);
		op_release(o)
	fi
}

/* unm_recv_data() */
inline on_data(s)
{
	if
#ifndef LATE_REFUSED
	:: op[k].gen != gen || op[k].state == FREE ||
	   op[k].state == WANT_FIN
#endif
	:: else ->
		claim(honest, op[k].state == PULL && op[k].gen == gen &&
		      op[k].from == s && op[k].got < PIECES);
		if
		:: op[k].got < op[k].end ->
			claim(untouched, !done[op[k].recv]);
			good[op[k].recv * PIECES + op[k].got] = fine
		:: else
		fi;
		op[k].got++;
		if
#ifdef UNAWAITED
		:: op[k].got >= op[k].end ->
#else
		:: op[k].got >= op[k].end && op[k].out == 0 ->
#endif
			stream_end(k)
		:: else
		fi
	fi;
	k = 0;
	gen = 0;
	fine = false
}

inline packet(s)
{
	if
	:: to_r[s] ? RTS, _, _, _ ->
		unexpected[s] = true
	:: to_r[s] ? DATA, k, gen, fine ->
		on_data(s)
	fi
#ifdef AWAIT_RELEASE
	; released[s]++
#endif
}

/* emu_dma_cancel(): hal_peer_free() sees to it */
inline dma_cancel(s)
{
	d_step {
		for (k : 0 .. SLOTS - 1) {
			if
			:: slot[k].state != FREE && slot[k].from == s ->
				slot[k].state = CANCELED
			:: else
			fi
		};
		k = 0
	}
}

/* unm_recv_abort() */
inline rx_abort(s)
{
	for (k : 0 .. OPS - 1) {
		if
		:: op[k].state == FREE || op[k].state == POSTED ||
		   op[k].from != s
#ifndef ABORT_FIN
		:: op[k].state == WANT_FIN && op[k].from == s ->
			op_release(k)
#endif
#ifdef DEAD_KEPT
		:: op[k].state == DMA && op[k].from == s ->
			rx_complete(k, ERR)
#endif
		:: else ->
			rx_complete(k, ERR);
			op_release(k)
		fi
	};
	k = 0
}

/* A piece is missing. */
#define STARVES(o, s)	(op[o].state == PULL && op[o].from == s && \
			 op[o].got < op[o].end)

/* unm_peer_tear_down(): it has ended, or lives and is given up */
inline peer_gone(s)
{
	left[s] = !ENDED(s);
	claim(heard, left[s] || tx_pieces[s] < PIECES ||
	      !(STARVES(0, s) || STARVES(1, s)));
	reach[s] = false;
	gone[s] = true;
#ifndef CANCEL_NOT
	dma_cancel(s);
#endif
	rx_abort(s)
}

#define SPEAKS(s)	(!gone[s] && len(to_r[s]) > 0)
#ifdef NO_DRAIN
#define GOES(s)		(!gone[s])
#else
#define GOES(s)		(!gone[s] && (!ENDED(s) || len(to_r[s]) == 0))
#endif
#define MEETS(o)	(op[o].state == POSTED && \
			 (unexpected[0] || unexpected[1]))
#define POSTS(o)	(op[o].state == DMA_WAIT && \
			 (slot[0].state == FREE || slot[1].state == FREE))
/* Of the sender that may end; of the other only to see that it is spared. */
#define READS(o)	(op[o].state == PULL && reach[op[o].from] && \
			 MORTAL(op[o].from) && \
			 !op[o].alone && op[o].out == 0 && \
			 op[o].got < op[o].end && \
			 (slot[0].state == FREE || slot[1].state == FREE))
#define IS_READ(o)	(op[o].state == DMA && READ_ALL(o))
#define TELLS(o)	((op[o].state == WANT_CTS || \
			  op[o].state == WANT_FIN) && \
			 nfull(to_s[op[o].from]))
#define COMPLETES(e)	(slot[e].state == OK || slot[e].state == CANCELED || \
			 slot[e].state == REFUSED)

/* One of two that can, in i. */
#define EITHER(can)	(can(0) || can(1)) -> \
			if :: can(0) -> i = 0 :: can(1) -> i = 1 fi

/* A step is what one thread does without looking at the others. */
proctype receiver()
{
	byte i, k, gen;
	bool fine;

	{
end:		do
		:: atomic { EITHER(SPEAKS); packet(i); i = 0 }
		:: atomic { GOES(0) -> peer_gone(0) }
		:: atomic { posts < RECVS &&
			    (op[0].state == FREE || op[1].state == FREE) ->
			post_recv() }
		:: atomic { EITHER(MEETS); begin(i); i = 0 }
		:: atomic { EITHER(POSTS); post_piece(i); i = 0 }
		:: atomic { EITHER(READS); stream_read(i); i = 0 }
		:: atomic { EITHER(COMPLETES); dma_comp(i); i = 0 }
		:: atomic { EITHER(IS_READ); rdv_read(i); i = 0 }
		:: atomic { EITHER(TELLS); tell(i); i = 0 }
		od
	} unless {
		r_ended
	}
}

/* ---- Engine ------------------------------------------------------------- */

#define MOVES(e)	(!r_ended && (slot[e].state == RUNS || \
			 slot[e].state == READ))

/* One transfer: read, write, and see whether what was read was the peer's. */
inline move(e)
{
	if
	:: slot[e].state == RUNS ->
		claim(untouched, !done[slot[e].recv]);
		good[slot[e].recv * PIECES + slot[e].piece] =
			intact[slot[e].from];
		slot[e].state = READ
	:: slot[e].state == RUNS ->	/* -FI_EACCES */
		reach[slot[e].from] = false;
		slot[e].state = REFUSED
#ifndef DEAD_UNSEEN
	:: slot[e].state == READ && killed[slot[e].from] ->
		slot[e].state = CANCELED
#endif
#ifndef CLOSE_UNSEEN
	:: slot[e].state == READ && closed[slot[e].from] ->
		slot[e].state = CANCELED
#endif
	:: else ->
		slot[e].state = OK
	fi
}

proctype engine()
{
	byte i;

end:	do
	:: atomic { EITHER(MOVES); move(i); i = 0 }
	od
}

/* ---- The end ------------------------------------------------------------ */

proctype killer()
{
	if
	:: killed[0] = true
	:: r_ended = true
	:: true
	fi
}

#define TX_ENDED(s)	(tx[s] == OK || tx[s] == ERR || tx[s] == CLOSED)
#define OP_ENDED(o)	(op[o].state == FREE || op[o].state == POSTED)
#define ALL_ENDED	(TX_ENDED(0) && TX_ENDED(1) && (r_ended || \
			 (OP_ENDED(0) && OP_ENDED(1) && \
			  slot[0].state == FREE && slot[1].state == FREE)))

proctype monitor()
{
	timeout;
	claim(settled, ALL_ENDED)
}

init {
	atomic {
		op_release(0);
		op_release(1);
		slot_release(0);
		slot_release(1);
		reach[0] = true;
		if
		:: reach[1] = true
		:: true			/* cross-memory attach is forbidden */
		fi;
		announce(0);
		announce(1);
		run sender(0);
		run sender(1);
		run receiver();
		run engine();
		run killer();
		run monitor()
	}
}

ltl ends { <> (ALL_ENDED) }
