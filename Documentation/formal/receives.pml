/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receives that grow in number and in size, as af_hpsock/receives.c, growth.c and
 * BUFFERS in msg.c have it. selftests/vm/formal runs this with Spin; credit.pml has the
 * credits by themselves.
 *
 * One direction: a sender that always has more, and a receiver with its program.
 * What one hold of hps_conn.lock does is one atomic step:
 *
 *	send	hps_msg_send()		heard	hps_msg_rx() of the sender
 *	rx	hps_msg_rx_done()	tell	hps_msg_sent() of the receiver: slots
 *	program	recvmsg(), hps_growth_work(): both have the socket's lock
 *
 * A size is a level, 0 to LEVELS - 1. Receives are used in the order in which
 * they are posted and sizes only grow, so of the posted and of the unread buffers
 * the smallest come first, and to count each size is enough. from[] is how many
 * messages are still to be received before the first that may have a size.
 *
 * Parameters, with -D: LEVELS; MAX0, MAX1, MAX2 receives that SO_RCVBUF and the
 * window allow of each size; START credits; QUOTA; CTRL receives beyond them, all
 * of which the sender may use; ONCE (FIN and FINACK of the receiver); CARRY (its
 * DATA, which grants as well); PEEK (the program may stop reading); SPENT (the sender may
 * use a credit for SHRINK); FAIL (memory may be missing). There is no endless run without messages of the sender, so it is
 * served. A -DBUG_* breaks a rule: then Spin has to find an error.
 */

#ifndef LEVELS
#define LEVELS	3
#endif
#ifndef MAX0
#define MAX0	6
#endif
#ifndef MAX1
#define MAX1	5
#endif
#ifndef MAX2
#define MAX2	4
#endif
#ifndef START
#define START	2
#endif
#ifndef QUOTA
#define QUOTA	2
#endif
#ifndef CTRL
#define CTRL	1
#endif
#ifndef ASK
#define ASK	CTRL	/* of these receives the sender uses */
#endif
#ifndef SLOTS
#define SLOTS	7	/* HPS_CTRL_SLOTS of the sender, for what the receiver says */
#endif
#ifndef MAX_CREDITS
#define MAX_CREDITS	3	/* k in credit.c */
#endif
#ifndef MAX_CTRL
#define MAX_CTRL	4	/* and with BUFFERS; FIN and FINACK are two more */
#endif

#define MIN	2	/* HPS_WINDOW_MIN */
#define NONE	9
#define EMPTY	8

mtype = { DATA, CREDIT, FIN, FINACK, BUFFERS };

/* From the sender: 0 a control message, 1 a small one, 2 + n one that fills n; EMPTY. */
chan wire = [MAX0 + CTRL + 2] of { byte };
/* To it: type, credits granted, level. */
chan back = [SLOTS + 2] of { mtype, byte, byte };

/* The receiver. */
byte posted[3];
byte held[3];
byte spare[3];
byte from[3];
byte level;
byte told = START;	/* rx_told - rx_used */
byte owed;		/* rx_ready - rx_told */
byte window = START;
byte wait;		/* with no more than so many, for a step; 0: not so */
bool filled, dry, settled, announce, work;
bool lately;		/* something was read since the work looked */
bool stopped;		/* the program looks at its data, but reads no more */
bool fin, finack;
byte credits, buffers, control;	/* in back[] */

/* The sender. */
byte left = START;
byte asked;		/* control messages in wire[] */
byte size, next;	/* of its messages, now and from tx_from on */
bool emptied;		/* it has sent SHRINK */

#define HELD	(held[0] + held[1] + held[2])
#define POSTED	(posted[0] + posted[1] + posted[2])
#define USED	(told + owed + HELD)
#define LEAST(a, b)	((a) < (b) -> (a) : (b))
#define MOST(a, b)	((a) > (b) -> (a) : (b))
#define LIMIT(n)	((n) == 0 -> MAX0 : ((n) == 1 -> MAX1 : MAX2))
#define DUE	(owed && (owed >= (window + 1) / 2 || !told))

/* hps_post_message(), of the receiver */
inline post(t)
{
	back!t(owed, level);
	told = told + owed;
	owed = 0;
	if
	:: t == DATA
	:: t == CREDIT -> credits++; control++
	:: t == BUFFERS -> buffers++; control++
	:: else -> control++
	fi;
	assert(credits <= MAX_CREDITS);
	assert(buffers <= 1);
	assert(control <= MAX_CTRL + fin + finack);
	assert(control <= SLOTS)
}

/* hps_msg_credit(); there may be no slot, then tell() comes by */
inline credit()
{
	if
	:: announce -> announce = false; post(BUFFERS)
	:: !announce && DUE -> post(CREDIT)
	:: true
	fi
}

/* hps_receives_swap() and hps_receives_post() */
inline repost(b)
{
	if
	:: b == level -> posted[level]++
	:: else ->
#ifdef BUG_SPARES
		if
		:: spare[0] -> spare[0]--; posted[0]++
		:: !spare[0] && spare[1] -> spare[1]--; posted[1]++
		:: !spare[0] && !spare[1] ->
			assert(spare[2]);
			spare[2]--; posted[2]++
		fi
#else
		assert(spare[level]);
		spare[level]--;
		posted[level]++
#endif
	fi
}

/* hps_receives_fill() */
#define SHORT	(USED < window && (!wait || USED < wait))
inline fill(b)
{
	do
	:: SHORT ->
		repost(b);
		b = NONE;
		owed++
	:: else -> break
	od;
	if
	:: b == level -> spare[b]++
	:: else
	fi;
	b = NONE
}

/* What is posted, and memory for what may be: neither less nor more. */
inline unlock()
{
	assert(POSTED == told + owed + CTRL);
	assert(USED <= window);
	assert(spare[level] + held[level] + posted[level] == window + CTRL)
}

/*
 * hps_receives_lack(). In a settled state as well, the work may copy aside what nobody
 * reads, hps_growth_relieve(): to the rules here a program that reads, as long as SO_RCVBUF
 * has room, which is in bytes and no part of this.
 */
inline lack()
{
	dry = true;
	work = work || !settled || wait
}

#define SMALLEST(a)	(a[0] -> 0 : (a[1] -> 1 : 2))

proctype rx()
{
	byte v, b = NONE;

end_rx:	do
	:: atomic {
		wire?v ->
		assert(POSTED);
		b = SMALLEST(posted);
		posted[b]--;
		if
		:: from[1] -> from[1]--
		:: else
		fi;
		if
		:: from[2] -> from[2]--
		:: else
		fi;
		if
		:: v == 0 ->
			asked--;
			repost(b)
		:: v == EMPTY ->
			assert(told);	/* violation_overrun */
			told--;
			/* hps_receives_spent() */
			fill(b);
#ifndef BUG_SPENT
			if
			:: !told && !owed && HELD -> lack()
			:: else
			fi
#endif
		:: else ->
			/* The queue pair would refuse it. */
			assert(v <= b + 2);
			assert(told);	/* violation_overrun */
			told--;
			dry = dry || !told;
			/* hps_receives_hold() */
			held[b]++;
			filled = filled || (v == b + 2 && b == level);
			if
			:: dry -> lack()
			:: else
			fi;
			/* hps_conn_join() */
			if
			:: HELD > 1 && (v == 1 || told <= window / 2) ->
				held[b]--;
				fill(b)
			:: true
			fi
		fi;
		b = NONE;
		v = 0;
		credit();
		unlock()
	   }
	od
}

/* A slot has become free, or the receiver says something else. */
proctype tell()
{
end_tell:
	do
	:: atomic { announce -> announce = false; post(BUFFERS); unlock() }
	:: atomic { !announce && DUE -> post(CREDIT); unlock() }
#ifdef CARRY
	:: atomic { owed && len(back) < CARRY -> post(DATA); unlock() }
#endif
#ifdef ONCE
	:: atomic { !fin -> fin = true; post(FIN); unlock() }
	:: atomic { !finack -> finack = true; post(FINACK); unlock() }
#endif
	od
}

/* Where the step to the next size would lead, and what has to be free for it. */
#ifdef BUG_ONE_STEP
#define STEP	(filled && level + 1 < LEVELS)
#else
#define STEP	(filled && level + 1 < LEVELS && !from[level])
#endif
#define BEYOND	LIMIT(level + 1)
#define ROOM	LEAST(MIN, BEYOND - 1)
#ifdef BUG_USED
#define FITS	true
#else
#define FITS	(USED + ROOM <= BEYOND)
#endif

/* hps_receives_apply() */
inline apply()
{
	if
	:: to != level ->
#ifndef BUG_SPARES
		spare[level] = 0;
#endif
#ifdef BUG_FROM
		from[to] = told + owed;
#else
		from[to] = POSTED;
#endif
		level = to;
#ifndef BUG_FULL
		filled = false;
#endif
		announce = true;
		spare[to] = target + CTRL
	:: else ->
		spare[to] = spare[to] + target - window
	fi;
	window = target;
	wait = 0;
	settled = false;
	lately = false;
	dry = false;
	fill(none);
	credit();
	unlock()
}

/*
 * hps_growth_look(): plan, allocate without hps_conn.lock, apply. A program that
 * reads is waited for, until the work finds that it has read nothing since it last
 * looked; or the program is known not to be worth it.
 */
inline grow(reading)
{
	atomic {
		target = 0;
		to = level;
		if
		:: !filled && !dry && !wait
		:: (filled || dry || wait) && STEP && FITS ->
			to = level + 1;
			target = LEAST(BEYOND, USED + QUOTA)
		:: (filled || dry || wait) && !(STEP && FITS) ->
			/* With nothing unread the peer has credits left. */
			if
			:: STEP && !HELD -> wait = BEYOND - ROOM; lately = reading
#ifdef BUG_WAIT
			:: STEP && HELD -> wait = BEYOND - ROOM
#else
			:: STEP && HELD && reading ->
				wait = BEYOND - ROOM;
				lately = true;
#ifndef BUG_ALONE
				work = true
#endif
			:: STEP && HELD && !reading && wait && lately ->
#ifndef BUG_LATELY
				lately = false;
#endif
				work = true
#endif
#ifdef BUG_STAY
			:: else
#else
			:: !STEP || HELD && (reading || !wait || !lately) ->
				wait = 0;
				lately = false
#endif
			fi;
			target = LEAST(LIMIT(level), window * 2);
			settled = target <= window && !wait;
			if
			:: dry && !wait && !settled
			:: !wait && (!dry || settled) ->
				target = 0;
				filled = false;
				dry = false
			:: wait -> target = 0
			fi;
			fill(none);
			credit()
		fi;
		unlock()
	}
	if
	:: atomic { target -> apply(); target = 0; to = 0 }
#ifdef FAIL
	:: atomic {
		target ->
		filled = false;
		dry = false;
		wait = 0;
		settled = LEAST(LIMIT(level), window * 2) <= window;
		fill(none);
		credit();
		unlock();
		target = 0;
		to = 0
	   }
#endif
	:: atomic { !target -> to = 0 }
	fi
}

inline read()
{
	b = SMALLEST(held);
	held[b]--;
	fill(b);
	credit();
	unlock()
}

/* How much one recvmsg() takes is up to it. */
proctype program()
{
	byte target, to, b = NONE, none = NONE;

end_program:
	do
	:: atomic { HELD && !stopped -> read() }
		do
		:: atomic { HELD -> read() }
		:: break
		od;
		grow(true)
	:: atomic { work -> work = false }
		grow(false)
#ifdef PEEK
	:: atomic { !stopped -> stopped = true }
#endif
	od
}

/* tx_from is reached */
inline reached()
{
	if
	:: next != size && from[next] <= len(wire) -> size = next
	:: else
	fi
}

proctype send()
{
end_send:
	do
	:: left ->
progress:	atomic {
		left--;
		reached();
		if
		:: wire!1
		:: wire!(size + 2)
		fi;
		/* No receiver-not-ready */
		assert(len(wire) <= POSTED)
	   }
	:: atomic {
		asked < ASK ->
		asked++;
		wire!0;
		assert(len(wire) <= POSTED)
	   }
#ifdef SPENT
	:: atomic {
		left && !emptied ->
		emptied = true;
		left--;
		reached();
		wire!EMPTY;
		assert(len(wire) <= POSTED)
	   }
#endif
	od
}

proctype heard()
{
	mtype t;
	byte n, grant;

end_heard:
	do
	:: atomic {
		back?t(grant, n) ->
		left = left + grant;
		assert(left <= MAX0);	/* violation_credit */
		reached();
		if
		:: t == CREDIT -> credits--; control--
		:: t == BUFFERS ->
			buffers--;
			control--;
			assert(next == size);	/* violation_buffers */
			next = n;
			reached()
		:: t == DATA
		:: else -> control--
		fi;
		t = 0;
		n = 0;
		grant = 0
	   }
	od
}

/*
 * A sender without credit waits for a program that does not read, and of which
 * SO_RCVBUF does not allow more; control messages do not count.
 */
init
{
	atomic {
		posted[0] = START + CTRL;
		run rx();
		run tell();
		run program();
		run send();
		run heard()
	}
	timeout ->
	assert(stopped && !told && !owed && HELD >= LIMIT(level))
}
