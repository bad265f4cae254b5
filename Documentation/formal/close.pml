/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a connection ends: the states of af_hpsock/conn_life.c and conn_rx.c,
 * shutdown() and close() of close.c, FIN and FINACK, reset, orphans, the teardown of rdma.c.
 * selftests/vm/formal runs this with Spin; credit.pml has the flow control.
 *
 * Two ends, 0 and 1. What one hold of hps_conn.lock does is one atomic step.
 * wire[e] has what end e posted and end !e has not looked at. Credits and send
 * slots are just a delay here: a message that is due is posted at any time
 * later, by pump().
 *
 * Parameters, with -D: WRITES messages each program writes at most, ABRUPT
 * (programs may close at any time, leaving data unread, and shut down reading),
 * STAY (programs may stop doing anything). Without ABRUPT a program closes after
 * the end of the stream. A -DBUG_* breaks a rule: then Spin has to find an error.
 */

#ifndef WRITES
#define WRITES	2
#endif

mtype = { DATA, FIN, FINACK };
mtype:tcp = { ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, CLOSING, LAST_ACK,
	      CLOSE };

chan wire[2] = [WRITES + 2] of { mtype };

typedef end_t {
	mtype:tcp state;
	bool fin_queued;
	bool fin_sent;
	bool fin_acked;
	bool fin_rcvd;
	bool finack_owed;
	bool rcv_shut;		/* RCV_SHUTDOWN, by the program */
	bool closing;		/* the program is in close() or past it */
	bool orphan;
	bool resetting;		/* hps_conn_reset() waits for what was sent */
	bool stopped;
	bool shut;		/* hps_conn_shut() */
	bool cut;		/* the queue pair is in error, the peer will see */
	bool lost;		/* a message will never complete */
	bool reported;
	bool ended;		/* hps_conn_end() */
	bool err;		/* of hps_conn_end(): not closed in good order */
	bool excused;		/* both programs were through before close() */
	bool reset;		/* it waited till all was delivered, as it was */
	byte written;
	byte unsent;
	byte rxq;
	byte read;
	byte came		/* messages, read or not */
}
end_t end[2];

#define FINISHED(e)	(end[e].fin_rcvd && end[e].fin_acked)
#define WAITS(e)	(end[e].state == FIN_WAIT1 || end[e].state == FIN_WAIT2)

/* hps_conn_delivered() */
#define DELIVERED(e)	(!end[e].unsent && (!end[e].fin_queued || end[e].fin_sent))

/* Of an end that resets the connection. */
inline check_delivered(e)
{
	if
#ifdef BUG_RESET_AT_ONCE
	:: true ->
#else
	:: DELIVERED(e) ->
#endif
		end[e].shut = true;
		end[e].reset = !end[e].lost && !end[1 - e].cut
	:: else
	fi
}

/* hps_conn_reset() */
inline begin_reset(e)
{
	if
	:: end[e].shut || end[e].resetting
	:: else ->
		end[e].resetting = true;
		check_delivered(e)
	fi
}

/* hps_conn_check_finished() */
inline check_finished(e)
{
	if
	:: end[e].resetting -> check_delivered(e)
	:: !end[e].resetting && FINISHED(e) ->
		if
		:: end[e].state != CLOSE ->
			assert(end[e].state != ESTABLISHED &&
			       end[e].state != CLOSE_WAIT);
			end[e].state = CLOSE
		:: else
		fi;
#ifdef BUG_EARLY_SHUT
		end[e].shut = true
#else
		if
		:: !end[e].finack_owed && !end[e].lost -> end[e].shut = true
		:: else
		fi
#endif
	:: else
	fi
}

/* hps_conn_deaf() */
#define DEAF(e)		(end[e].orphan || (end[e].rcv_shut && WAITS(e)))

/* The drain lets all be seen that came before the end. */
proctype rx(byte e)
{
	mtype t;

end_rx:	do
	:: atomic {
		!end[e].ended && len(wire[1 - e]) -> wire[1 - e]?t;
		end[e].came = end[e].came + (t == DATA);
		if
		:: end[e].reported
		:: else ->
			if
			:: t == DATA ->
				assert(!end[e].fin_rcvd);
				if
				:: end[e].orphan -> begin_reset(e)
				:: !end[e].orphan && DEAF(e) ->
					end[e].shut = true;
					end[e].reported = true;
					end[e].state = CLOSE
				:: else -> end[e].rxq++
				fi
			:: t == FIN ->
				assert(!end[e].fin_rcvd);
				end[e].fin_rcvd = true;
				end[e].finack_owed = true;
				if
				:: end[e].state == ESTABLISHED ->
					end[e].state = CLOSE_WAIT
				:: end[e].state == FIN_WAIT1 ->
#ifdef BUG_NO_CLOSING
					skip
#else
					end[e].state = CLOSING
#endif
				:: else -> assert(end[e].state == FIN_WAIT2)
				fi;
				check_finished(e)
			:: t == FINACK ->
				assert(end[e].fin_sent && !end[e].fin_acked);
				end[e].fin_acked = true;
				if
				:: end[e].state == FIN_WAIT1 ->
					assert(!end[e].fin_rcvd);
					end[e].state = FIN_WAIT2
				:: else
				fi;
				check_finished(e)
			fi
		fi;
		t = 0
	   }
	od
}

/* A send that meets a queue pair in error is lost, and its end told of that. */
inline post(e, t)
{
	if
	:: end[1 - e].cut -> end[e].lost = true
	:: else -> wire[e]!t
	fi
}

#ifdef BUG_FIN_FIRST
#define CAN_FIN(e)	(end[e].fin_queued && !end[e].fin_sent)
#else
#define CAN_FIN(e)	(end[e].fin_queued && !end[e].fin_sent && !end[e].unsent)
#endif

#ifdef BUG_RESET_FINACK
#define CAN_FINACK(e)	end[e].finack_owed
#else
#define CAN_FINACK(e)	(end[e].finack_owed && !end[e].resetting)
#endif

/* hps_stream_push(), and the completion */
proctype pump(byte e)
{
end_pump:
	do
	:: atomic {
		!end[e].shut && CAN_FINACK(e) ->
		end[e].finack_owed = false;
#ifndef BUG_NO_FINACK
		post(e, FINACK);
#endif
		check_finished(e)
	   }
	:: atomic {
		!end[e].shut && end[e].unsent ->
		end[e].unsent--;
		post(e, DATA);
		check_finished(e)
	   }
	:: atomic {
		!end[e].shut && CAN_FIN(e) ->
		end[e].fin_sent = true;
		post(e, FIN);
		check_finished(e)
	   }
	od
}

/* hps_rdma_teardown(), begun here or by what the peer did */
proctype teardown(byte e)
{
end_teardown:
	atomic { end[e].shut || end[1 - e].cut -> end[e].shut = true }
	/* rdma_disconnect() */
	end[e].cut = true;
	/* ib_drain_qp(), hps_conn_end() */
#ifdef BUG_NO_DRAIN
	atomic {
#else
	atomic {
		!len(wire[1 - e]) ->
#endif
		end[e].ended = true;
		end[e].err = !FINISHED(e);
		end[e].state = CLOSE;
		end[e].reported = true
	}
}

/* hps_stream_fin() in the right states; the state does not wait for the post */
inline stream_fin(e)
{
	if
	:: end[e].state == ESTABLISHED ->
		end[e].fin_queued = true;
		end[e].state = FIN_WAIT1
	:: end[e].state == CLOSE_WAIT ->
		end[e].fin_queued = true;
		end[e].state = LAST_ACK
	:: else
	fi
}

/* Both FINs are here or go before a reset: what close() finds unread comes too late. */
#define PARTED(e)	(end[e].fin_rcvd && end[e].fin_queued)
/* hps_close_fin(): the program did not take all that came */
#ifdef BUG_UNREAD
#define RESETS(e)	false
#else
#define RESETS(e)	end[e].rxq
#endif
#define EOF(e)		(!end[e].rxq && (end[e].fin_rcvd || end[e].ended))
#ifdef ABRUPT
#define CAN_CLOSE(e)	true
#else
#define CAN_CLOSE(e)	EOF(e)
#endif

proctype program(byte e)
{
end_program:
	do
	:: atomic {
		end[e].written < WRITES && !end[e].fin_queued && !end[e].reported ->
		end[e].written++;
		end[e].unsent++
	   }
	:: atomic { end[e].rxq -> end[e].rxq--; end[e].read++ }
	/* hps_shutdown(): SHUT_WR */
	:: atomic { !end[e].fin_queued -> stream_fin(e) }
#ifdef ABRUPT
	:: atomic { !end[e].rcv_shut -> end[e].rcv_shut = true }
#endif
#ifdef STAY
	:: atomic { end[e].stopped = true; break }
#endif
	/* hps_close() */
	:: atomic { CAN_CLOSE(e) -> end[e].closing = true; end[e].rcv_shut = true }
#ifndef BUG_CLOSE_RACE
		atomic {
#endif
		if
		:: RESETS(e) ->
			atomic {
				end[e].excused = PARTED(e);
				end[e].orphan = true;
				begin_reset(e)
			}
		:: else -> atomic { end[e].excused = PARTED(e); stream_fin(e) }
		fi
#ifndef BUG_CLOSE_RACE
		}
#endif
		end[e].orphan = true;
		break
	od
}

/* hps_conn_idle_timer(): an orphan's time is up, which is when nothing else moves. */
#ifdef BUG_NO_TIMER
#define OVERDUE(e)	false
#else
#define OVERDUE(e)	(end[e].orphan && !end[e].shut)
#endif

/*
 * At the end. Data that was written and that the peer's program has not read was
 * not lost silently: a writer that is still there learns of an error when the
 * reader has closed, unless both had said by then that they are through.
 */
#define TOLD(e)		(end[e].written == end[1 - e].read || end[e].err || \
			 end[e].closing || !end[1 - e].closing || \
			 end[1 - e].excused)

/* A reset does not overtake what was sent before it. */
#define IN_ORDER(e)	(!end[e].reset || end[e].written == end[1 - e].came)

init
{
	byte i;

	atomic {
		for (i : 0 .. 1) {
			end[i].state = ESTABLISHED;
			run rx(i);
			run pump(i);
			run teardown(i);
			run program(i)
		}
		i = 0
	}
#ifdef STAY
	do
	:: atomic {
		timeout ->
		if
		:: OVERDUE(0) -> end[0].shut = true
		:: OVERDUE(1) -> end[1].shut = true
		:: else -> break
		fi
	   }
	od;
	/* Nobody waits for ever for a socket that was closed. */
	assert(!(end[0].closing || end[1].closing) ||
	       (end[0].ended && end[1].ended));
#else
	timeout ->
	/* Both ends have come to CLOSE, without any timer. */
	assert(end[0].ended && end[1].ended);
#ifndef ABRUPT
	assert(!end[0].err && !end[1].err);
	assert(end[0].written == end[1].read && end[1].written == end[0].read);
#endif
#endif
	assert(TOLD(0) && TOLD(1));
	assert(IN_ORDER(0) && IN_ORDER(1))
}
