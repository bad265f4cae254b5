/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receives that become fewer and smaller again: SHRINK and PAD, as af_hpsock/shrink.c,
 * receives.c and msg.c have it. selftests/vm/formal runs this with Spin; receives.pml has
 * the way up, of which there is one step here, and credit.pml the credits.
 *
 * One direction: a sender, and a receiver that grows and shrinks by turns, at any time
 * that it may. What one hold of hps_conn.lock does is one atomic step. As sizes come and
 * go, each receive that is posted has its place in posted[].
 *
 * Parameters, with -D: FEW and MANY receives of the two sizes, or with NUMBER of one; CTRL
 * beyond them, ASK of which the sender uses, at any time; SPEND of its messages cost a
 * credit and are not of the stream, as a SHRINK that crosses ours; with STOP the program
 * may read no more. There is no endless run after a SHRINK without PAD, and no end of one
 * before the last PAD. A -DBUG_* breaks a rule: then Spin has to find an error.
 */

#ifndef FEW
#define FEW	2
#endif
#ifndef MANY
#define MANY	3
#endif
#ifndef CTRL
#define CTRL	1
#endif

#ifndef ASK
#define ASK	CTRL	/* of these receives the sender uses */
#endif

#ifndef SPEND
#define SPEND	0
#endif

#define SMALL	0
#ifdef NUMBER
#define LARGE	0
#else
#define LARGE	1
#endif

#ifdef BUG_PADS
#define PADS	MANY
#else
#define PADS	(MANY + CTRL)
#endif

/* What was granted may stay so for as long as the sender has nothing to send. */
#ifdef BUG_SPARES
#define AMPLE	FEW
#else
#define AMPLE	MANY
#endif

/* hps_shrink.state, without HPS_SHRINK_ */
mtype = { REST, ASKED, PADDED };
/* From the sender. */
mtype = { CONTROL, DATA, PAD, SPENT };
/* To it, each with the credits granted. */
mtype = { CREDIT, BUFFERS, SHRINK };

chan posted = [MANY + CTRL + FEW + CTRL] of { bit };
chan wire = [MANY + CTRL + 1] of { mtype, bit };
chan back = [5] of { mtype, byte };

/* The receiver. */
mtype state = REST;
bit level;		/* of what is posted from now on */
byte window = FEW;
byte told = FEW;	/* rx_told - rx_used */
byte owed;		/* rx_ready - rx_told */
byte spare = 0;		/* of this level */
byte count = FEW + CTRL;	/* buffers of this level, wherever they are */
byte held[2];		/* not read */
byte from;		/* messages still to come before the first that may be large */
byte pads;		/* still to come */
bool announce;		/* BUFFERS is to be sent */
bool stopped;		/* the program reads no more */

/* The sender. */
byte left = FEW;
byte asked;		/* control messages in wire[] */
bit size;		/* of its messages */
bool next;		/* they will be large, once from is 0 for what it sends */
byte padding;		/* PADs still to be sent */
byte spend = SPEND;

#ifdef NUMBER
#define HELD	held[SMALL]
#else
#define HELD	(held[SMALL] + held[LARGE])
#endif
#define USED	(told + owed + HELD)

/* hps_receives_short(): while it shrinks the sender has a credit whatever is not read. */
#ifdef BUG_DRY
#define SHORT	(USED < window)
#else
#define SHORT	(USED < window || \
		 (state != REST && !told && !owed && (spare || b == level)))
#endif

/* hps_receives_surplus(), for which it has one receive more */
#define ENOUGH	(window + CTRL + (state != REST))

inline grant(t)
{
	back!t(owed);
	told = told + owed;
	owed = 0
}

/* hps_receives_swap() and hps_receives_post(): @b is of that level, or 2 for none */
inline repost(b)
{
	if
	:: b == level -> posted!level
	:: else ->
		assert(spare);
		spare--;
		posted!level
	fi
}

/* hps_receives_fill() */
inline fill(b)
{
	do
	:: SHORT -> repost(b); b = 2; owed++
	:: else -> break
	od;
	if
	:: b == level && count > ENOUGH -> count--
	:: b == level && count <= ENOUGH -> spare++
	:: else
	fi;
	b = 2
}

/* Of @level, posted or not read. */
inline number()
{
	n = held[level];
#ifdef NUMBER
	n = n + len(posted);
	i = 0;
#else
	i = len(posted);
#endif
	do
	:: i ->
		posted?v;
		posted!v;
		n = n + (v == level);
		i--
	:: else -> break
	od;
	v = 0
}

/* Memory for what may be posted: no less, and in the end no more. */
inline unlock()
{
	assert(len(posted) == told + owed + CTRL);
	number();
	assert(count == spare + n);
	assert(count >= window + CTRL);
	assert(state == PADDED || count == ENOUGH);
	/* What growth.c goes by. */
	assert(state != REST || USED <= window);
	/* None that is larger is left. */
	assert(state != REST || level || n - held[level] == len(posted));
	n = 0
}

/* hps_receives_apply(): with memory for @m credits at a time */
inline apply(l, w, m)
{
	window = w;
	level = l;
	number();
	/* And the one in hand. */
	count = n + (b == level);
	spare = 0;
	if
	:: count < m + CTRL ->
		spare = m + CTRL - count;
		count = m + CTRL
	:: else
	fi;
	n = 0
}

/* hps_receives_lessen(): no fewer credits than what is not read and a few more */
inline lessen()
{
#ifdef BUG_UNREAD
	n = FEW;
#else
	n = (FEW + HELD < window -> FEW + HELD : window);
#endif
	if
	:: level == SMALL -> window = n
	:: else -> apply(SMALL, n, AMPLE + 1)
	fi;
	n = 0
}

/* hps_receives_trim() */
inline trim()
{
	n = count - (window + CTRL);
	n = (spare < n -> spare : n);
	spare = spare - n;
	count = count - n;
	n = 0
}

proctype receiver()
{
	mtype t;
	byte b = 2, n, i;
	bit v, s;

end_receiver:
	do
	:: atomic {
		wire?t(s) ->
		assert(len(posted));
		posted?v;
		b = v;
		v = 0;
		if
		:: from -> from--
		:: else
		fi;
		/* The queue pair would refuse it. */
		assert(s <= b);
		if
		:: t == CONTROL -> asked--; repost(b)
		:: t == DATA ->
			assert(told);
			told--;
			held[b]++;
			b = 2;
			fill(b)
		:: t == SPENT ->
			assert(told);
			told--;
			fill(b)
		:: t == PAD ->
			assert(told);
			told--;
			assert(pads && (state == ASKED || state == PADDED));
			if
			:: state == ASKED ->
				state = PADDED;
#ifndef BUG_AT_ONCE
				lessen()
#endif
			:: else
			fi;
			pads--;
			if
			:: !pads -> state = REST; trim()
			:: else
			fi;
			fill(b)
		fi;
		b = 2;
		s = 0;
		unlock()
	   }
	:: atomic { held[SMALL] && !stopped -> held[SMALL]--; b = SMALL; fill(b); unlock() }
	:: atomic { held[LARGE] && !stopped -> held[LARGE]--; b = LARGE; fill(b); unlock() }
#ifdef STOP
	:: !stopped -> stopped = true
#endif
	:: atomic { announce && nfull(back) -> announce = false; grant(BUFFERS) }
	/* Any time is right for what is owed, and some time it has to be told. */
	:: atomic { !announce && owed && nfull(back) -> grant(CREDIT) }

	/* Grow, when what is posted or read leaves room. */
#ifdef NUMBER
	:: atomic { window < MANY && state == REST ->
		spare = spare + MANY - window;
		count = count + MANY - window;
		window = MANY;
#else
	:: atomic { level == SMALL && !announce && state == REST && USED <= MANY ->
		apply(LARGE, MANY, MANY);
		from = len(posted);
		announce = true;
#endif
		fill(b);
		unlock()
	   }
	/* Shrink, at rest. */
	:: atomic { (level != SMALL || window > FEW) && state == REST && !announce && !HELD &&
		    nfull(back) ->
		state = ASKED;
		pads = PADS;
		spare++;
		count++;
#ifdef BUG_AT_ONCE
		apply(SMALL, FEW, AMPLE);
#endif
		grant(SHRINK);
		unlock()
	   }
	od
}

/* The first large one, of those that are still to be sent. */
inline reached()
{
	if
	:: next && from <= len(wire) -> next = false; size = LARGE
	:: else
	fi
}

/* PADs go before the stream, so that it cannot keep them. */
#ifdef BUG_STARVE
#define MAY_SEND	left
#else
#define MAY_SEND	(left && !padding)
#endif

inline data()
{
	atomic {
		left--;
		reached();
		if
		:: wire!DATA(SMALL)
		:: size -> wire!DATA(LARGE)
		fi
	}
}

proctype sender()
{
	mtype t;
	byte grants;

end_sender:
	do
	:: MAY_SEND && state == REST ->
progress_data:	data()
	:: MAY_SEND && state != REST -> data()
	:: padding && left ->
progress_pad:	atomic {
		left--;
		padding--;
		reached();
		wire!PAD(SMALL);
	   }
	:: atomic { asked < ASK -> asked++; reached(); wire!CONTROL(SMALL) }
	:: atomic { spend && left -> spend--; left--; reached(); wire!SPENT(SMALL) }
	:: atomic {
		back?t(grants) ->
		left = left + grants;
		assert(left <= MANY);
		reached();
		if
		:: t == BUFFERS ->
			assert(!next);
			next = true;
			reached()
		:: t == SHRINK ->
			assert(!padding);
			padding = PADS;
			next = false;
#ifndef BUG_KEEP
			size = SMALL
#endif
		:: else
		fi;
		t = CREDIT;
		grants = 0
	   }
	od
}

init
{
	byte i;

	atomic {
		do
		:: i < FEW + CTRL -> posted!SMALL; i++
		:: else -> break
		od;
		run receiver();
		run sender()
	}
	/* When nothing moves, no PAD is missing. */
	timeout;
	assert(state == REST)
}
