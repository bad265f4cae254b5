/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes that are offered instead of sent: af_hpsock/source.c, lent.c, read.c,
 * fetch.c, wait.c, cancel.c, the rules for SRCAVAIL, READDONE, SRCCANCEL, CANCELACK and
 * FINACK in protocol.rst. selftests/vm/formal runs this with Spin; credit.pml has
 * credits, which are just a delay here, and close.pml the states.
 *
 * One end sends, the other reads: both directions are the same and meet only in that a
 * READDONE never waits for a credit. Each send is a page, whose right content is its
 * number + 1. What one hold of hps_conn.lock does is one atomic step; an RDMA Read is
 * two, the device's at the sender between them.
 *
 * With WAIT a send may also be one of several pages that are not protected. It returns when
 * they are read; or it gives up, at any time, and what was not read is copied. The program
 * then writes to all of them at once. Each page has two halves, which are read one after
 * the other, so that some of it may be taken back; and copies tell where they begin, so
 * that it is seen when the ends do not agree on what was.
 *
 * Parameters, with -D: SENDS (pages in all), OUT (zcopy_outstanding), WAIT (pages of a send
 * that waits, at most), UNREAD (the receiver's program may stop to read), CUT (the
 * connection may be lost at any time). A -DBUG_* breaks a rule: then Spin has to find an
 * error.
 */

#ifndef SENDS
#define SENDS	3
#endif
#ifndef OUT
#define OUT	2
#endif

#define WRONG	255

#ifdef BUG_NO_LIMIT
#define MAY_OFFER	true
#else
#define MAY_OFFER	(offers < OUT)
#endif
#ifdef BUG_NO_HOLD
#define MAY_POST	true
#else
#define MAY_POST	!hold
#endif
#ifdef BUG_TURN
#define MAY_QUEUE	true
#else
#define MAY_QUEUE	!turn
#endif
#ifdef BUG_FIN_TURN
#define MAY_END		true
#else
#define MAY_END		!turn
#endif
#ifdef BUG_COUNT
#define COUNTS(i)	true
#else
#define COUNTS(i)	waits[i]
#endif
#ifdef BUG_NO_REVOKE
#define MAY_RETURN	(!hold && (tried || !waited))
#else
#define MAY_RETURN	(!hold && !waited)
#endif
#ifdef BUG_FINACK_EARLY
#define ALL_READ	true
#else
#define ALL_READ	!rx_remote
#endif
#ifdef BUG_OVERTAKE
#define ALL_TOLD	true
#else
#define ALL_TOLD	(rx_told == rx_read)
#endif
#ifdef BUG_READ_LOST
#define COUNTED		true
#else
#define COUNTED		!rx_lost
#endif

/* Receives for READDONE and CANCELACK; FINACK has its own. */
#if defined(WAIT) && !defined(BUG_ONE_FEWER)
#define RECEIVES	(OUT + 1)
#else
#define RECEIVES	OUT
#endif

mtype = { SRCAVAIL, FIN, DATA, SRCCANCEL };
mtype:answer = { READDONE, FINACK, CANCELACK };
/* READ, or taken back: it may have a key still. COPY: it is queued and not lent. */
mtype:state = { FREE, QUEUED, OFFERED, READ, COPY };

chan forth = [SENDS + 2] of { mtype, byte };
chan back = [SENDS + 2] of { mtype:answer, byte };

/* The sender */
mtype:state state[SENDS];
byte content[SENDS];		/* of the page that is lent, whoever has it */
bool key[SENDS];		/* the device lets the peer read */
bool given[SENDS];		/* the page was given back */
byte sent, next;		/* pages queued, and posted */
byte offers, done_total;
byte stale;			/* pages in state READ */
byte under_way;			/* READDONE and CANCELACK */
bool fin_sent, fin_acked, shut, ended;

/* The receiver */
byte rx_first, rx_next;		/* pages in the queue */
byte rx_remote;			/* of these, SRCAVAIL */
byte rx_told, rx_read;		/* READDONE posted, and due */
bool fin_rcvd, finack_sent, rx_shut, rx_lost;

bool cut;			/* the queue pairs are in error */

hidden byte j, n;		/* for one step */

#ifdef WAIT
/* The sender */
bool waits[SENDS];		/* hps_lent.waited */
byte waited;			/* of these, pages that were not given back: tx_waited */
bool turn, hold, cancelling;	/* tx_turn, tx_hold, tx_cancelling */
byte cancel;			/* offers that it wants back: tx_cancel */
byte first, rest;		/* page of the send that waits, and that was taken back */
bool half[SENDS + 1];		/* the copy is of the second half */
byte last = SENDS;		/* page where the stream ends */
bool asked;			/* FIN or SRCCANCEL is under way */
bool looking;			/* at an answer, whose receive is not posted again */

/* The receiver */
bool remote[SENDS];		/* hps_buf.remote */
bool rx_half;			/* of the first page in the queue was read */
byte rx_avail;			/* halves in the queue that can be had */
byte rx_cancel;			/* offers that the peer wants back */
bool rx_cancelled;		/* CANCELACK is due */
bool rx_done;			/* a half of the first of them was read */

#define REMOTE(i)	remote[i]
/* Halves that have come, or stayed. */
#define RX_BYTES	(2 * rx_next + (rx_first == rx_next && rx_half))
#else
#define REMOTE(i)	true
#define last		SENDS
#define turn		false
#define hold		false
#define looking		false
#endif
#ifdef UNREAD
bool away;			/* the program that reads */
#else
#define away		false
#endif

inline give_back(i)
{
	assert(!given[i]);
	assert(!key[i]);
	given[i] = true;
	if
	:: state[i] == READ -> stale--
	:: else
	fi;
	state[i] = FREE;
#ifdef WAIT
	if
	:: waits[i] -> waited--
	:: else ->
		/* Somebody else has it now. */
		content[i] = WRONG
	fi
#else
	/* Somebody else has it now. */
	content[i] = WRONG
#endif
}

/* j: the first page from there on in that state. */
inline find(i, s)
{
	j = i;
	do
	:: j < SENDS && state[j] != s -> j++
	:: else -> break
	od
}

inline answer(type, number)
{
	under_way++;
	assert(under_way <= RECEIVES);
	back!type(number)
}

/* Its receive is posted again, but what may be posted now is so first. */
inline answered()
{
#ifdef WAIT
	looking = true
#else
	under_way--
#endif
}

/* FIN and SRCCANCEL have one receive. */
inline ask(type, number)
{
#ifdef WAIT
	assert(!asked);
	asked = true;
#endif
	forth!type(number)
}

#ifdef WAIT
/* Likewise, of those that a send waits for. */
inline find_waited(s)
{
	j = first;
	do
	:: j < sent && !(waits[j] && state[j] == s) -> j++
	:: else -> break
	od
}

/* A send that waits has up to WAIT pages. Of those behind the first some are copied. */
inline wait_queue()
{
	turn = true;
	first = sent;
	do
	:: sent < SENDS && sent < first + WAIT ->
		content[sent] = sent + 1;
		waits[sent] = true;
		state[sent] = QUEUED;
		if
		:: waited++
		:: sent > first ->
			given[sent] = true;
			state[sent] = COPY
#ifdef BUG_MIXED
		:: sent > first -> waits[sent] = false
#endif
		fi;
		sent++
	:: sent > first -> break
	od;
	rest = sent
}

/* From page j on nothing was sent. */
inline take_back()
{
	rest = j;
	if
	:: j < next -> next = j
	:: else
	fi;
	do
	:: j < sent ->
		if
		:: state[j] == QUEUED -> give_back(j)
		:: state[j] == OFFERED && waits[j] ->
			offers--;
			stale++;
			state[j] = READ
		:: state[j] == COPY -> state[j] = FREE
		:: else
		fi;
		j++
	:: else -> break
	od
}

/* hps_cancel() */
inline give_up()
{
	n = 0;
	j = 0;
	do
	:: j < sent ->
		n = n + (state[j] == OFFERED && COUNTS(j));
		j++
	:: else -> break
	od;
	cancel = n;
	if
	:: n ->
#ifdef BUG_NO_ANSWER
		find_waited(OFFERED);
		take_back()
#else
		hold = true
#endif
	:: else ->
		find_waited(QUEUED);
		take_back()
	fi
}

/*
 * It returns. What was taken back is queued as a copy, unless shutdown(2) came meanwhile:
 * then the stream ends there.
 */
inline wait_end()
{
	j = first;
	do
	:: j < sent && waits[j] ->
		assert(!key[j]);
		content[j] = WRONG;
		if
		:: j >= rest -> state[j] = COPY
		:: else
		fi;
		j++
	:: j < sent && !waits[j] -> j++
	:: else -> break
	od;
	if
	:: true
	:: rest < sent && sent == SENDS -> last = rest
	fi;
	turn = false
}

/* A send that waits */
proctype waiter()
{
	bool tried;

end:	do
	/* Nobody reads, a signal has come, or the time is over. */
	:: atomic { turn && waited && !tried && !shut && !looking ->
		tried = true;
		give_up()
	}
	/* When there is a slot. */
	:: atomic { cancel && !cancelling && !shut && !cut && !looking ->
		cancelling = true;
		ask(SRCCANCEL, cancel)
	}
	:: atomic { turn && MAY_RETURN && !looking ->
		tried = false;
		wait_end()
	}
	od
}
#endif

/* send(2), and what it posts */
proctype sender()
{
end:	do
	:: atomic { sent < SENDS && MAY_QUEUE && !shut && !cut && !looking ->
		if
#ifdef WAIT
		:: !turn -> wait_queue()
#endif
		:: true ->
			state[sent] = QUEUED;
			content[sent] = sent + 1;
			sent++
		fi
	}
	od
	/* close(2): FIN follows by itself. */
}

/* In order, so many at a time. */
proctype offer()
{
end:	do
	:: atomic { next < SENDS && state[next] == QUEUED && MAY_POST && !shut && !cut &&
		    MAY_OFFER ->
		key[next] = true;
		state[next] = OFFERED;
		offers++;
		forth!SRCAVAIL(next);
#ifdef BUG_FREE_SENT
		key[next] = false;
		give_back(next);
#endif
		next++
	}
#ifdef WAIT
	:: atomic { next < last && state[next] == COPY && MAY_POST && !shut && !cut ->
		state[next] = FREE;
		forth!DATA(2 * next + half[next]);
		next++
	}
#endif
	:: atomic { next == last && !fin_sent && MAY_END && !shut && !cut ->
		fin_sent = true;
		ask(FIN, 0)
	}
	od
}

/* The program, its threads and children write wherever they like. */
proctype program()
{
	byte i;

	do
	:: i < SENDS ->
		atomic {
			if
#ifdef BUG_NO_PROTECT
			:: state[i] != FREE -> content[i] = WRONG
#endif
			/* Copy on write: the page that is lent stays. */
			:: true
			fi;
			i++
		}
	:: else -> break
	od
}

/* What comes to the sender. */
proctype answers()
{
	byte total;

end:	do
	:: atomic { !cut && !shut && !looking && back?[READDONE, _] ->
		back?READDONE(total);
		answered();
		assert(total == done_total + 1 && offers);
		total = 0;
		find(0, OFFERED);
		assert(j < SENDS);
		done_total++;
		offers--;
		state[j] = READ;
		stale++;
		/* By the message, or by a LOCAL_INV that takes its time. */
		if
		:: true ->
#ifndef BUG_KEY_STAYS
			key[j] = false;
#endif
			give_back(j)
		:: true
		fi
	}
	:: atomic { !cut && !shut && !looking && back?[FINACK, _] ->
		back?FINACK(total);
		fin_acked = true;
		assert(fin_sent && !turn && !rx_remote);
		/* Nothing is under way: the connection may end. */
		shut = true
	}
	/* In the order in which they were posted. */
	:: atomic { stale && !shut && !cut && !looking ->
		find(0, READ);
		key[j] = false;
		give_back(j)
	}
#ifdef WAIT
	:: atomic { !cut && !shut && !looking && back?[CANCELACK, _] ->
		back?CANCELACK(total);
		answered();
		assert(cancelling && total < 2);
		find_waited(OFFERED);
		if
		:: j < sent -> half[j] = total
		:: else ->
			assert(!total);
			find_waited(QUEUED)
		fi;
		take_back();
		total = 0;
		cancel = 0;
		cancelling = false;
		hold = false;
		assert(2 * next + half[next] == RX_BYTES)
	}
	:: atomic { looking ->
		looking = false;
		under_way--
	}
#endif
	od
}

/* hps_rdma_teardown() */
proctype teardown()
{
	byte i;

end:	atomic { shut || cut; shut = true };
	/* The queue pair is drained: the device does nothing for the peer any more. */
	cut = true;
#ifndef BUG_PAGES_FIRST
	atomic {
		do
		:: i < SENDS -> key[i] = false; i++
		:: else -> break
		od;
		i = 0
	};
#endif
	atomic {
		do
		:: i < SENDS ->
			if
#ifndef BUG_TWICE
			:: state[i] == FREE || state[i] == COPY
#endif
			:: state[i] != FREE && state[i] != COPY -> give_back(i)
#ifdef BUG_TWICE
			:: state[i] == FREE && i < sent -> give_back(i)
			:: state[i] == FREE && i >= sent
#endif
			fi;
			i++
		:: else -> break
		od;
		i = 0
	};
	atomic {
#if defined(WAIT) && !defined(BUG_HOLD_STAYS)
		hold = false;
#endif
		ended = true
	}
}

#ifdef WAIT
/* The last rx_cancel offers, if there are as many, and all behind them. */
inline rx_give_back()
{
	n = rx_remote - (rx_remote < rx_cancel -> rx_remote : rx_cancel);
	j = rx_first;
	do
	:: j < rx_next && !(remote[j] && !n) ->
		n = n - remote[j];
		j++
	:: else -> break
	od;
	rx_done = (j < rx_next && j == rx_first && rx_half);
	n = 2 * (rx_next - j) - rx_done;
	assert(n <= rx_avail);
	rx_avail = rx_avail - n;
	do
	:: rx_next > j ->
		rx_next--;
		rx_remote = rx_remote - remote[rx_next]
	:: else -> break
	od;
#ifdef BUG_PART
	rx_done = 0;
#endif
	rx_cancel = 0;
	rx_cancelled = true
}
#endif

/* What comes to the receiver. */
proctype receiver()
{
	byte i;

end:	do
	:: atomic { forth?SRCAVAIL(i) ->
		assert(i == rx_next && !fin_rcvd);
#ifdef WAIT
		assert(RX_BYTES == 2 * i && !rx_cancel && !rx_cancelled);
		remote[i] = true;
		rx_avail = rx_avail + 2;
#endif
		rx_remote++;
		rx_next++;
		i = 0
	}
#ifdef WAIT
	:: atomic { forth?DATA(i) ->
		assert(RX_BYTES == i && !fin_rcvd && !rx_cancel && !rx_cancelled);
		rx_avail = rx_avail + 2 - i % 2;
		remote[i / 2] = false;
		rx_next++;
		i = 0
	}
	:: atomic { forth?SRCCANCEL(i) ->
		asked = false;
		assert(i && !fin_rcvd && !rx_cancel && !rx_cancelled);
		rx_cancel = i;
		i = 0;
#ifdef BUG_UNDER_WAY
		rx_give_back()
#endif
	}
	:: atomic { rx_cancelled && !cut && ALL_TOLD ->
		rx_cancelled = false;
		answer(CANCELACK, rx_done)
	}
#endif
	:: atomic { forth?FIN(i) ->
#ifdef WAIT
		asked = false;
#endif
		fin_rcvd = true
	}
	:: atomic { fin_rcvd && !finack_sent && !cut && ALL_READ ->
		back!FINACK(0);
		finack_sent = true;
		break
	}
	/* hps_conn_lose() */
	:: atomic { cut && empty(forth) ->
		if
		:: rx_remote -> rx_lost = true
		:: else
		fi;
#ifdef WAIT
		/* From the first SRCAVAIL on. */
		j = rx_first;
		do
		:: j < rx_next && !remote[j] -> j++
		:: else -> break
		od;
		n = 2 * (rx_next - j) - (j < rx_next && j == rx_first && rx_half);
		assert(n <= rx_avail);
		rx_avail = rx_avail - n;
#ifndef BUG_LOST_TWICE
		/* There is nothing to be given back any more. */
		rx_cancel = 0;
#endif
#endif
		break
	}
	od
}

/* A page, or a half of one, was read. */
inline took()
{
#ifdef WAIT
	if
	:: COUNTED ->
		assert(rx_avail);
		rx_avail--
	/* hps_conn_lose() has done so. */
	:: else
	fi;
	rx_half = !rx_half;
	if
	:: rx_half
	:: else ->
		rx_first++;
		rx_remote--;
		rx_read++
	fi
#else
	rx_first++;
	rx_remote--;
	rx_read++
#endif
}

/* A reader, or who comes in its place: one at a time. */
proctype reader()
{
	byte i, value;

end:	do
	:: atomic { rx_first < rx_next && REMOTE(rx_first) && !away && !cut ->
		i = rx_first
	};
		/* The peer's device looks for the key, and reads. */
		atomic {
			if
			:: !cut ->
				assert(key[i]);
				value = content[i]
			:: cut -> value = 0
			fi
		};
		atomic {
			if
			:: value ->
				assert(value == i + 1);
				took()
			:: else
			fi;
			i = 0;
			value = 0
		}
#ifdef WAIT
	/* A copy is here, whatever becomes of the connection. */
	:: atomic { rx_first < rx_next && !remote[rx_first] && !away ->
		rx_avail = rx_avail - 2 + rx_half;
		rx_half = false;
		rx_first++
	}
	/* Nobody reads now. */
	:: atomic { rx_cancel -> rx_give_back() }
#endif
	:: atomic { rx_told < rx_read && !cut ->
		/* When there is a slot. */
		rx_told++;
		answer(READDONE, rx_told)
	}
	od
}

#ifdef CUT
proctype lose()
{
	cut = true
}
#endif

#ifdef UNREAD
proctype leave()
{
	away = true
}
#endif

init {
	atomic {
		run sender();
		run offer();
#ifdef WAIT
		run waiter();
#else
		run program();
#endif
		run answers();
		run teardown();
		run receiver();
		run reader();
#ifdef CUT
		run lose();
#endif
#ifdef UNREAD
		run leave();
#endif
	}
	/* When nothing moves any more. */
	timeout;
	byte i;

	/* A send that waits has returned. */
	assert(!turn);
	if
	:: away
	:: else ->
		assert(ended);
		/* Without a loss all was read. */
#ifndef CUT
#ifdef WAIT
		assert(rx_first == rx_next && RX_BYTES == 2 * last + half[last]);
#else
		assert(rx_first == SENDS);
#endif
#endif
		do
		:: i < SENDS ->
			/* Every page was given back. */
			assert(given[i] || i >= sent);
			i++
		:: else -> break
		od
	fi
}
