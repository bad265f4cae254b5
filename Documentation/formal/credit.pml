/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Credits, control slots, the send queue and the two FINs of a connection, as
 * af_hpsock/credit.c, msg.c and stream.c have them. selftests/vm/formal runs
 * this with Spin; close.pml has the states of a socket.
 *
 * Two ends, 0 and 1. A message is in wire[e] from when end e posts it until end
 * !e has processed it, so it takes one of the receives of !e. What one hold of
 * hps_conn.lock does is one atomic step here, and each kind of step is a process
 * of its own, taken at any time:
 *
 *	rx	hps_msg_rx_done()	complete	hps_msg_sent()
 *	writer	sendmsg(), shutdown()	reader		recvmsg(), hps_growth_read()
 *	late	hps_msg_credit_late()
 *
 * The first URGENT ends may send AHEAD, which takes no credit, when data waits for
 * one. The next waits until the peer has said, in whatever it sends, that it had
 * this one (hps_msg_urgent(), HPS_FLAG_HEARD).
 *
 * Totals modulo 2^32 become differences; on a channel that keeps order and loses
 * nothing a message may as well say what it grants as how much that is in all.
 * DATA counts in messages, not in bytes.
 *
 * Parameters, with -D: QUOTA and WINDOW of both ends, SQ slots of the send queue
 * (0: any number, completed at once) of which RESERVE are kept free of DATA,
 * UNSENT messages a writer may queue, WRITERS (1: only end 0 writes), ROOM
 * (below), URGENT, MUTE (end 0 waits for end 1's FIN), STOP (readers may stop for ever).
 * A -DBUG_* breaks a rule: then Spin has to find an error.
 */

#ifndef QUOTA
#define QUOTA	2
#endif
#ifndef WINDOW
#define WINDOW	QUOTA
#endif
#ifndef SQ
#define SQ	4
#endif
#ifndef RESERVE
#define RESERVE	2
#endif
#ifndef UNSENT
#define UNSENT	2
#endif
#ifndef WRITERS
#define WRITERS	2
#endif
#ifndef ROOM
#define ROOM	2	/* a receive buffer has room for as many more after one small */
#endif
#ifndef CTRL
#define CTRL	7	/* HPS_CTRL_SLOTS */
#endif
#ifndef MAX_CREDITS
#define MAX_CREDITS	3	/* k in credit.c */
#endif
#ifndef MAX_CTRL
#ifdef URGENT
#define MAX_CTRL	6	/* and with FIN, FINACK and URGENT */
#else
#define MAX_CTRL	5	/* and with FIN and FINACK */
#endif
#endif

mtype = { DATA, CREDIT, FIN, FINACK, AHEAD };

/* More than there are receives for, so that it is the assertion that fails. */
chan wire[2] = [WINDOW + CTRL + 1] of { mtype, byte, bit };

/* struct hps_credit, and of struct hps_link and hps_conn what matters here */
typedef end_t {
	byte left;	/* tx_granted - tx_used */
	byte told;	/* rx_told - rx_used: what the peer may still use */
	byte owed;	/* rx_ready - rx_told */
	byte window;
	bool dry;
	byte rxq;	/* buffers with DATA not read */
	byte room;	/* in the last of them */
	byte unsent;	/* messages queued that wait for a credit or a slot */
	byte sq;	/* slots taken, the oldest is bit 0 */
	byte signaled;	/* of these, which ask for a completion */
	byte credits;	/* CREDITs in wire[] */
	byte ctrl;	/* messages in wire[] that cost no credit */
	bool gated;
	bool stopped;	/* the program will not read any more */
	bool fin_queued;
	bool fin_sent;
	bool fin_rcvd;
	bool finack_owed;
	bool fin_acked;
	bit urgents;	/* AHEAD posted, modulo 2 */
	bit heard;	/* AHEAD received, modulo 2 */
	bool waits;	/* AHEAD was posted and the peer has not said that it had it */
	bool gone	/* has disconnected */
}
end_t end[2];

#if SQ
#define FREE(e)		(SQ - end[e].sq)
#else
#define FREE(e)		(RESERVE + 1)
#endif
#define DRY(e)		(end[e].told == 0)
/* hps_credit_tight() */
#define TIGHT(e)	(end[e].told <= end[e].window / 2)
/* hps_credit_due() */
#ifdef BUG_NO_URGENT
#define DUE(e)		(end[e].owed && end[e].owed >= (end[e].window + 1) / 2)
#elif defined(BUG_NOT_OWED)
#define DUE(e)		(end[e].owed >= (end[e].window + 1) / 2 || DRY(e))
#elif defined(BUG_EAGER)
#define DUE(e)		(end[e].owed)
#else
#define DUE(e)		(end[e].owed && \
			 (end[e].owed >= (end[e].window + 1) / 2 || \
			  (DRY(e) && !end[e].rxq)))
#endif
/* hps_credit_late() */
#define LATE(e)		(end[e].owed && DRY(e))

/* hps_post_signal(): who may do without a completion */
#ifdef BUG_SIGNAL_SLOT
#define SILENT(e)	(end[e].unsent > 1 && end[e].left > 1)
#elif defined(BUG_SIGNAL_CREDIT)
#define SILENT(e)	(end[e].unsent > 1 && FREE(e) > RESERVE + 1)
#else
#define SILENT(e)	(end[e].unsent > 1 && end[e].left > 1 && \
			 FREE(e) > RESERVE + 1)
#endif

inline signal(e, t)
{
	if
	:: t == DATA && SILENT(e)
	:: true ->	/* signal_every */
		end[e].signaled = end[e].signaled | (1 << end[e].sq)
	fi;
	end[e].sq++
}

/* hps_post_message(): grants whatever is owed */
inline post(e, t)
{
	assert(FREE(e) > 0 && !end[e].gone);
	end[e].told = end[e].told + end[e].owed;
	assert(end[e].told <= end[e].window);
	wire[e]!t(end[e].owed, end[e].heard);
	end[e].owed = 0;
	if
	:: t == DATA
	:: else ->
		end[e].ctrl++;
		if
		:: t == CREDIT -> end[e].credits++
		:: else
		fi
	fi;
	/* No receiver-not-ready: every message has a receive of the peer's. */
	assert(len(wire[e]) <= end[1 - e].told + end[1 - e].owed + CTRL);
	/* Even if the peer had used all its credits. */
	assert(end[e].ctrl <= CTRL);
	assert(end[e].ctrl <= MAX_CTRL);
	assert(end[e].credits <= MAX_CREDITS);
#if SQ
	signal(e, t)
#endif
}

#define CAN_CONTROL(e)	(FREE(e) > 0 && !end[e].gated)
#ifdef BUG_OVERRUN
#define CAN_SEND(e)	(FREE(e) > RESERVE && !end[e].gated)
#else
#define CAN_SEND(e)	(FREE(e) > RESERVE && !end[e].gated && end[e].left > 0)
#endif

#ifdef BUG_FIN_FIRST
#define CAN_FIN(e)	(end[e].fin_queued && !end[e].fin_sent && CAN_CONTROL(e))
#else
#define CAN_FIN(e)	(end[e].fin_queued && !end[e].fin_sent && \
			 CAN_CONTROL(e) && !end[e].unsent)
#endif

/* hps_stream_push() */
inline push(e)
{
	if
	:: end[e].finack_owed && CAN_CONTROL(e) ->
		end[e].finack_owed = false;
		post(e, FINACK)
	:: else
	fi;
	do
	:: end[e].unsent && CAN_SEND(e) ->
		post(e, DATA);
		end[e].left--;
		end[e].unsent--
	:: else -> break
	od;
	if
	:: CAN_FIN(e) ->
		end[e].fin_sent = true;
		post(e, FIN)
	:: else
	fi
}

#ifdef BUG_FIN_CREDIT
#define CAN_CREDIT(e)	CAN_CONTROL(e)
#else
#define CAN_CREDIT(e)	(CAN_CONTROL(e) && !end[e].fin_rcvd)
#endif

/* hps_msg_credit() */
inline credit(e)
{
	if
	:: DUE(e) && CAN_CREDIT(e) -> post(e, CREDIT)
	:: else
	fi
}

/* Before hps_conn.lock is dropped: hps_conn_check_finished(), and what must hold. */
inline unlock(e)
{
	assert(end[e].told + end[e].owed + end[e].rxq == end[e].window);
	assert(end[e].left <= WINDOW);
	/* The last send always asks for a completion. */
	assert(!end[e].sq || end[e].signaled >> (end[e].sq - 1));
	if
	:: end[e].fin_rcvd && end[e].fin_acked && !end[e].finack_owed &&
	   !end[e].sq && !end[e].gone ->
		/* Nothing that the peer has said is lost. */
		assert(!len(wire[1 - e]));
		end[e].gone = true
	:: else
	fi
}

/* hps_receives_consumed(), but for hps_msg_credit() */
inline consumed(e)
{
	end[e].owed++
}

/* hps_conn_rx_data(): a small message is joined to the one before, any is when
   the peer is about to run out; here room is counted in messages. */
inline rx_data(e)
{
	assert(end[e].told > 0);	/* violation_overrun */
	assert(!end[e].fin_rcvd);	/* violation_state */
	end[e].told--;
	end[e].dry = end[e].dry || DRY(e);
#ifdef BUG_GRANT_EARLY
	end[e].owed++;
#endif
	if
	:: end[e].rxq && end[e].room ->	/* small */
		end[e].room--;
#ifndef BUG_JOIN_KEEP
		consumed(e);
#endif
		credit(e)
	:: end[e].rxq && end[e].room == ROOM && TIGHT(e) ->	/* large */
		end[e].room = 0;
		consumed(e);
		credit(e)
	:: true ->
		end[e].rxq++;
		if
		:: end[e].room = 0
		:: end[e].room = ROOM
		fi
	fi
}

proctype rx(byte e)
{
	mtype t;
	byte grant;
	bit heard;

end_rx:	do
	:: atomic {
		wire[1 - e]?t(grant, heard) ->
		/* hps_msg_check() */
		end[e].left = end[e].left + grant;
		grant = 0;
		/* hps_msg_heard() */
		assert(heard == end[e].urgents || end[e].waits);
		if
		:: heard == end[e].urgents -> end[e].waits = false
		:: else
		fi;
		heard = 0;
		end[e].gated = false;
		if
		:: t == DATA -> rx_data(e)
		:: t == CREDIT ->
			end[1 - e].credits--;
			end[1 - e].ctrl--
		:: t == FIN ->
			assert(!end[e].fin_rcvd);
			assert(!end[1 - e].unsent);
			end[1 - e].ctrl--;
			end[e].fin_rcvd = true;
			end[e].finack_owed = true
		:: t == FINACK ->
			assert(end[e].fin_sent && !end[e].fin_acked);
			end[1 - e].ctrl--;
			end[e].fin_acked = true
		:: t == AHEAD ->
			assert(!end[e].fin_rcvd);
			end[1 - e].ctrl--;
			end[e].heard = 1 - end[e].heard
		fi;
		t = 0;
		push(e);
		credit(e);
		unlock(e)
	   }
	od
}

/* hps_msg_sent(): retires the slots up to the first that asked for it */
proctype complete(byte e)
{
end_complete:
	do
	:: atomic {
		end[e].signaled ->
		do
		:: end[e].signaled & 1 -> break
		:: else ->
			end[e].signaled = end[e].signaled >> 1;
			end[e].sq--
		od;
		end[e].signaled = end[e].signaled >> 1;
		end[e].sq--;
#ifndef BUG_NO_RETRY
		push(e);
		credit(e);
#endif
		unlock(e)
	   }
	od
}

#define CAN_WRITE(e)	(e < WRITERS && end[e].unsent < UNSENT && \
			 !end[e].fin_queued)
#define CAN_SHUT(e)	(!end[e].fin_queued)

/* A client that speaks only when spoken to: end 0 writes nothing, not even FIN. */
#ifdef MUTE
#define SPEAKS(e)	(e == 1 || end[e].fin_rcvd)
#else
#define SPEAKS(e)	true
#endif

#ifdef BUG_UNHEARD
#define CAN_URGENT(e)	(e < URGENT && end[e].unsent && !CAN_SEND(e) && CAN_CONTROL(e))
#else
#define CAN_URGENT(e)	(e < URGENT && end[e].unsent && !CAN_SEND(e) && \
			 CAN_CONTROL(e) && !end[e].waits)
#endif

proctype writer(byte e)
{
end_writer:
	do
#ifdef URGENT
	:: atomic {
		CAN_URGENT(e) ->
		end[e].waits = true;
		end[e].urgents = 1 - end[e].urgents;
		post(e, AHEAD);
		unlock(e)
	   }
#endif
	:: atomic {
		CAN_WRITE(e) && SPEAKS(e) ->
		end[e].unsent++;
		push(e);
		unlock(e)
	   }
	:: atomic {
		CAN_SHUT(e) && SPEAKS(e) ->
		end[e].fin_queued = true;
		push(e);
		unlock(e)
	   }
	od
}

proctype reader(byte e)
{
end_reader:
	do
	:: atomic {
		end[e].rxq && !end[e].stopped ->
		end[e].rxq--;
		if
		:: end[e].rxq
		:: else -> end[e].room = 0
		fi;
#ifndef BUG_GRANT_EARLY
		consumed(e);
#endif
		credit(e);
		unlock(e)
	   }
		/* hps_growth_read(), which memory limits may prevent */
progress:	if
		:: atomic {
			end[e].dry && end[e].window < WINDOW ->
			if
			:: 2 * end[e].window <= WINDOW ->
				end[e].owed = end[e].owed + end[e].window;
				end[e].window = 2 * end[e].window
			:: else ->
				end[e].owed = end[e].owed + WINDOW - end[e].window;
				end[e].window = WINDOW
			fi;
#ifndef BUG_DRY
			end[e].dry = false;
#endif
			credit(e);
			unlock(e)
		   }
		:: true
		fi
#ifdef STOP
	:: atomic { !end[e].stopped -> end[e].stopped = true }
#endif
	od
}

#if !defined(BUG_NO_URGENT) && !defined(BUG_NO_TIMER)
/* The timer, which is armed as long as there is something for it to do. */
proctype late(byte e)
{
end_late:
	do
	:: atomic { LATE(e) && CAN_CREDIT(e) -> post(e, CREDIT); unlock(e) }
	od
}
#endif

/*
 * What is true when nothing moves any more. A completion is outstanding nowhere:
 * then hps_probe_timer() may ask after the peer. Whoever still has something to
 * send waits for a program that does not read, none of whose buffers is free;
 * without such a program everything was read and both ends are in CLOSE.
 */
#define STUCK(e)	(end[1 - e].stopped && end[1 - e].rxq == end[1 - e].window)
#define REST(e)		(!end[e].sq && !len(wire[e]) && \
			 (end[e].stopped || !end[e].rxq) && \
			 (STUCK(e) || (end[e].fin_acked && !end[e].unsent)))

init
{
	byte i;

	atomic {
		for (i : 0 .. 1) {
			end[i].window = QUOTA;
			end[i].told = QUOTA;
			end[i].left = QUOTA
		}
		/* hps_msg_established() */
		end[1].gated = true;
#ifndef BUG_NO_FIRST
		post(0, CREDIT);
#endif
		for (i : 0 .. 1) {
			run rx(i);
			run complete(i);
			run writer(i);
			run reader(i)
		}
#if !defined(BUG_NO_URGENT) && !defined(BUG_NO_TIMER)
		run late(0);
		run late(1);
#endif
		i = 0
	}
	timeout ->
	assert(REST(0) && REST(1));
	assert(STUCK(0) || STUCK(1) || (end[0].gone && end[1].gone))
}

/*
 * As long as end 0 has something to send, end 1 reads again and again; as order
 * is kept, every byte gets its turn. With weak fairness, and readers that do not
 * stop.  reader[8] is reader(1).
 */
#ifdef SERVED
ltl served { [] (end[0].unsent -> <> (reader[8]@progress)) }
#endif
