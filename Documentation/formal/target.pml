/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reader that waits shows the peer where the bytes may go: af_hpsock/target.c and
 * invite.c, the rules for SINKAVAIL, WRITTEN, SINKCANCEL and SINKACK in protocol.rst.
 * selftests/vm/formal runs this with Spin; credits are just a delay here.
 *
 * One end sends, the other reads. The stream is of BYTES units, which are told apart by
 * their number. What one hold of hps_conn.lock does is one atomic step; the reader's device
 * is a process of its own, which writes to memory without asking anybody but the key.
 *
 * Parameters, with -D: BYTES (units of the stream), CUT (the connection may be lost at any
 * time). A -DBUG_* breaks a rule: then Spin has to find an error.
 */

#ifndef BYTES
#define BYTES	4
#endif

#define NONE	255

#ifdef BUG_NO_AT
#define FITS(at)	true
#else
#define FITS(at)	((at) == next)
#endif
#ifdef BUG_UNHEARD
#define HEARD		true
#else
#define HEARD		(heard == told)
#endif
#ifdef BUG_NO_ANSWER
#define ANSWERED	true
#else
#define ANSWERED	!asked
#endif

mtype = { DATA, WRITE, WRITTEN, FIN, SINKACK };
mtype:back = { SINKAVAIL, SINKCANCEL };
/* Of the reader's memory; INVALID: nobody writes to it any more, but there is a key still. */
mtype:state = { MINE, OFFERED, INVALID };

/* On the wire: type, unit or key, HPS_FLAG_SINK. What it completes is in "arrived". */
chan wire = [2 * BYTES + 3] of { mtype, byte, bool };
chan arrived = [2 * BYTES + 3] of { mtype, byte, bool };
chan back = [4] of { mtype:back, byte, byte };

/* The sender */
byte next;			/* unit to be posted next */
byte target = NONE;		/* key of the memory that it may write to */
bool got;			/* SINKAVAIL received, modulo 2 */
bool ack;			/* SINKACK is due */
bool fin_sent;

/* The reader */
mtype:state memory = MINE;
byte key = NONE;		/* with which the device lets the peer write */
byte keys;			/* that were made */
byte place = NONE;		/* what is in the memory that was shown */
byte rx;			/* units received */
byte taken;			/* units that the program has */
byte queue;			/* of the rest those that are in the queue */
bool told, heard;		/* SINKAVAIL sent, and heard of, modulo 2 */
bool asked;			/* SINKCANCEL is not answered */
bool fin_rcvd;
byte at_sender;			/* receives that SINKAVAIL and SINKCANCEL have taken */

bool cut, lost;

/* The program's memory is its own again. */
inline give_back()
{
	assert(key == NONE);
	memory = MINE
}

proctype sender()
{
end:	do
	/* A small send, or a large one where there is nothing to write to. */
	:: atomic { next < BYTES && !cut ->
		wire!DATA(next, got);
		next++;
#ifndef BUG_KEEP
		target = NONE
#endif
	}
	:: atomic { next < BYTES && target != NONE && !cut ->
		wire!WRITE(target, got);
		wire!WRITTEN(next, got);
		next++;
#ifndef BUG_TWICE
		target = NONE
#endif
	}
	:: atomic { next == BYTES && !fin_sent && !cut ->
		fin_sent = true;
		target = NONE;
		wire!FIN(0, got)
	}
	/* When there is a slot. */
	:: atomic { ack && !cut ->
		ack = false;
		wire!SINKACK(0, got)
	}
	od
}

proctype answers()
{
	byte k, at;

end:	do
	:: atomic { !cut && back?[SINKAVAIL, _, _] ->
		back?SINKAVAIL(k, at);
		at_sender--;
		got = !got;
		if
		:: FITS(at) && !fin_sent -> target = k
		:: else -> target = NONE
		fi;
		k = 0;
		at = 0
	}
	:: atomic { !cut && back?[SINKCANCEL, _, _] ->
		back?SINKCANCEL(k, at);
		at_sender--;
		target = NONE;
		assert(!ack);
		ack = true;
		k = 0;
		at = 0
	}
	od
}

/* The reader's: it writes when something comes, and then completes what came. */
proctype device()
{
	mtype m;
	byte n;
	bool g;

end:	do
	:: atomic { !cut && wire?[_, _, _] ->
		wire?m(n, g);
		if
		:: m == WRITE ->
			assert(n == key && memory == OFFERED);
			place = NONE - 1
		:: else ->
			if
			/* With the units that were written before. */
			:: m == WRITTEN && place == NONE - 1 -> place = n
			:: else
			fi;
			if
			/* Send with Invalidate */
			:: m == WRITTEN -> key = NONE
			:: m == WRITTEN
			:: else
			fi;
			arrived!m(n, g)
		fi;
		m = 0;
		n = 0;
		g = 0
	}
	od
}

/* What the memory was shown for is over: with its bytes, or because others came. */
inline over()
{
	if
	:: memory == OFFERED -> memory = INVALID
	:: else
	fi
}

proctype completions()
{
	byte n;
	bool g;

end:	do
	:: atomic { arrived?[DATA, _, _] ->
		arrived?DATA(n, g);
		assert(n == rx && !fin_rcvd);
		heard = g;
		rx++;
		queue++;
		over();
		n = 0
	}
	:: atomic { arrived?[WRITTEN, _, _] ->
		arrived?WRITTEN(n, g);
		assert(n == rx && !fin_rcvd);
		/* What comes is the first that is not read, and is in its place. */
		assert(memory == OFFERED && !queue && place == n && taken == n);
		heard = g;
		rx++;
		taken++;
		place = NONE;
		over();
		n = 0
	}
	:: atomic { arrived?[FIN, _, _] ->
		arrived?FIN(n, g);
		heard = g;
		fin_rcvd = true;
		over()
	}
	:: atomic { arrived?[SINKACK, _, _] ->
		arrived?SINKACK(n, g);
		assert(asked);
		heard = g;
		asked = false;
		over()
	}
	/* LOCAL_INV */
	:: atomic { memory == INVALID && !cut ->
#ifndef BUG_KEY_STAYS
		key = NONE;
#endif
		/* The answer to SINKCANCEL may still be under way. */
		give_back()
	}
	od
}

proctype reader()
{
end:	do
	:: atomic { queue && memory == MINE ->
		queue--;
		taken++
	}
	/* It waits, and shows its memory. */
	:: atomic { !queue && memory == MINE && HEARD && !asked && !fin_rcvd && !cut &&
		    keys < 3 ->
		memory = OFFERED;
		key = keys;
		keys++;
		told = !told;
		at_sender++;
		assert(at_sender <= 2);
		back!SINKAVAIL(key, rx)
	}
	/* It waits no longer. */
	:: atomic { memory == OFFERED && !asked && !cut ->
		asked = true;
		at_sender++;
		assert(at_sender <= 2);
		back!SINKCANCEL(0, 0);
#ifdef BUG_NO_ANSWER
		memory = INVALID
#endif
	}
	od
}

/* hps_rdma_teardown() */
proctype teardown()
{
end:	atomic { cut };
	/* Drained: the device does nothing for the peer any more. */
	atomic {
		empty(arrived) ->
#ifndef BUG_PAGES_FIRST
		key = NONE;
#endif
		if
		:: memory != MINE -> give_back()
		:: else
		fi;
		key = NONE;
		lost = true
	}
}

#ifdef CUT
proctype lose()
{
	cut = true
}
#endif

init {
	atomic {
		run sender();
		run answers();
		run device();
		run completions();
		run reader();
		run teardown();
#ifdef CUT
		run lose();
#endif
	}
	/* When nothing moves any more. */
	timeout;
	assert(memory == MINE && key == NONE);
	if
	:: cut -> assert(lost)
	:: else -> assert(taken == BYTES && fin_rcvd && !asked && !ack && !at_sender)
	fi
}
