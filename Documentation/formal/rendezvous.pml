/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reader that waits sets a word, at which the peer asks before it sends much:
 * af_hpsock/rendezvous.c and target.c with zcopy_sync=cas, the rules for WORD, WRITTEN,
 * SINKCANCEL and SINKACK in protocol.rst. target.pml has the same with SINKAVAIL.
 * selftests/vm/formal runs this with Spin; credits are just a delay here.
 *
 * One end sends, the other reads. The stream is of BYTES units, which are told apart by
 * their number. What one hold of hps_conn.lock does is one atomic step, but for what is
 * stored where the device may look meanwhile. The reader's device is a process of its own,
 * which asks nobody but the key, and whose swap is atomic for no processor: it looks, and
 * stores later. It may read again what it has answered already, as long as the sender has
 * not taken the answer.
 *
 * What the sender offers, because nobody waits for it, is a DATA here. That a reader shows
 * nothing more before it hears that WORD came is left out: nothing here depends on that.
 *
 * Parameters, with -D: BYTES (units of the stream, at most), PADS (messages that are counted
 * and are not of the stream), TURN (the count of messages may begin anew, as it does after
 * 2^32 that nobody waited for), CUT (the connection may be lost at any time). A -DBUG_* breaks
 * a rule: then Spin has to find an error.
 *
 * There is none for spent_at: nobody asks again for the same position, so that without that
 * rule memory is shown in vain, and no more. Likewise a swap that stores nothing would do.
 */

#ifndef BYTES
#define BYTES	3
#endif
#ifndef PADS
#define PADS	0
#endif

#define SHOWS	3
#define NONE	255

#define MAY_SEND	(next < BYTES && !fin_sent && !cut)

#ifdef BUG_NO_POSITION
#define WAITS_FOR(at)	(word != NONE)
#else
#define WAITS_FOR(at)	(word == (at))
#endif
#ifdef BUG_RECALLED
#define RECALLED	false
#else
#define RECALLED	recalled
#endif
#ifdef BUG_MOVED
#define MOVED		false
#else
#define MOVED		(asked_at != sent)
#endif
#ifdef BUG_GIVEN_UP
#define STILL_WAITS	true
#else
#define STILL_WAITS	(memory == OFFERED)
#endif
#ifdef BUG_NO_ANSWER
#define ANSWERED	true
#else
#define ANSWERED	!asked
#endif

/* SWAP and READ are no messages: the device sees to them. */
mtype = { DATA, WRITE, WRITTEN, FIN, SINKACK, PAD, SWAP, READ };
mtype:back = { WORD, SINKCANCEL };
/* Of the reader's memory; INVALID: nobody writes to it any more, but there is a key still. */
mtype:state = { MINE, OFFERED, INVALID };

/* On the wire: type, and unit, key or position. What it completes is in "arrived". */
chan wire = [2 * BYTES + PADS + 4] of { mtype, byte };
chan arrived = [BYTES + PADS + 2] of { mtype, byte };
chan back = [2] of { mtype:back };

/* The sender */
byte next;			/* unit to be posted next */
byte sent;			/* messages that are counted */
byte pads;			/* of these, PAD */
byte target = NONE;		/* key of the memory that it may write to */
bool known;			/* WORD received */
bool asking;			/* the answer is awaited */
byte asked_at;
bool recalled;			/* SINKCANCEL received meanwhile */
byte over_at = NONE;
bool ack;			/* SINKACK is due */
bool fin_sent;

/* The answer, once it is there: the word was swapped, and what is behind it */
bool answer, swapped;
byte found = NONE;

/* The reader */
mtype:state memory = MINE;
byte key = NONE;		/* with which the device lets the peer write */
byte shows;			/* memory shown so many times, with keys of that number - 1 */
byte word = NONE;		/* position for which the reader waits */
byte shown = NONE;		/* key that is behind it */
bool made;			/* REG_MR has completed, */
bool storing;			/* the word is about to be set, */
bool set;			/* and it was */
byte spent_at = NONE;
byte place = NONE;		/* what is in the memory that was shown */
byte rx;			/* units received */
byte counted;			/* messages received that are counted */
byte taken;			/* units that the program has */
byte queue;			/* of the rest those that are in the queue */
bool told;			/* WORD sent */
bool asked;			/* SINKCANCEL is not answered */
bool fin_rcvd;
byte at_sender;			/* receives that WORD and SINKCANCEL have taken */

bool swapping;			/* the device has looked, and not yet stored */
bool stored;			/* the processor has, since the word was swapped */
bool cut, lost;

/* The program's memory is its own again. */
inline give_back()
{
	assert(key == NONE);
	memory = MINE;
	made = false;
	set = false
}

/* By the processor, to what the device looks at. */
inline store(variable, value)
{
	atomic {
		assert(!swapping);
		variable = value;
		stored = swapped
	}
}

proctype sender()
{
end:	do
	/* A small send, or a large one where there is nothing to write to. */
	:: atomic { MAY_SEND ->
		wire!DATA(next);
		next++;
		sent++;
#ifndef BUG_KEEP
		target = NONE
#endif
	}
	:: atomic { MAY_SEND && target != NONE ->
		wire!WRITE(target);
		wire!WRITTEN(next);
		next++;
		sent++;
#ifndef BUG_TWICE
		target = NONE
#endif
	}
	/* A large send, which may be interrupted before there is an answer. */
	:: atomic { MAY_SEND && known && !asking && over_at != sent ->
		asking = true;
		asked_at = sent;
		recalled = false;
#ifndef BUG_ASK_TWICE
		over_at = sent;
#endif
		wire!SWAP(sent);
		wire!READ(0)
	}
	:: atomic { pads < PADS && !cut ->
		wire!PAD(0);
		pads++;
		sent++
	}
	:: atomic { !fin_sent && !cut ->
		fin_sent = true;
		wire!FIN(0)
	}
	/* When there is a slot. */
	:: atomic { ack && !cut ->
		ack = false;
		wire!SINKACK(0)
	}
	od
}

proctype answers()
{
end:	do
	:: atomic { !cut && back?[WORD] ->
		back?WORD;
		at_sender--;
		known = true
	}
	:: atomic { !cut && back?[SINKCANCEL] ->
		back?SINKCANCEL;
		at_sender--;
		target = NONE;
		recalled = true;
#ifndef BUG_ASK_AGAIN
		over_at = sent;
#endif
		assert(known && !ack);
		ack = true
	}
	:: atomic { !cut && answer ->
		assert(asking);
		if
		:: swapped && !RECALLED && !MOVED ->
			/* After FIN nothing is sent there. */
			assert(!stored || fin_sent);
			target = found
		:: else
		fi;
		asking = false;
		answer = false;
		swapped = false;
		stored = false;
		found = NONE
	}
	od
}

/* The reader's: it does what comes, and completes what is a message. */
proctype device()
{
	mtype m;
	byte n;

end:	do
	:: atomic { !cut && !swapping && wire?[_, _] ->
		wire?m(n);
		if
		:: m == SWAP ->
			if
			:: WAITS_FOR(n) ->
				assert(memory == OFFERED && set);
				swapping = true
			:: else
			fi
		:: m == READ ->
			answer = true;
			if
			:: swapped -> found = shown
			:: else
			fi
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
			arrived!m(n)
		fi;
		m = 0;
		n = 0
	}
	:: atomic { swapping ->
		swapping = false;
		word = NONE;
		swapped = true
	}
	/* What it has answered got lost, and it is asked once more. */
	:: atomic { answer && swapped && found != shown && !cut ->
		found = shown
	}
	od
}

/* What the memory was shown for is over: with its bytes, or because others came. */
inline over()
{
	if
	:: memory == OFFERED ->
		memory = INVALID;
#ifndef BUG_STALE
		if
		:: set -> store(word, NONE)
		:: else
		fi
#endif
	:: else
	fi
}

proctype completions()
{
	byte n;

end:	do
	:: atomic { arrived?[DATA, _] ->
		arrived?DATA(n);
		assert(n == rx && !fin_rcvd);
		rx++;
		counted++;
		queue++;
		over();
		n = 0
	}
	:: atomic { arrived?[WRITTEN, _] ->
		arrived?WRITTEN(n);
		assert(n == rx && !fin_rcvd);
		/* What comes is the first that is not read, and is in its place. */
		assert(memory == OFFERED && set && !queue && place == n && taken == n);
		rx++;
		counted++;
		taken++;
		place = NONE;
		over();
		n = 0
	}
	:: atomic { arrived?[PAD, _] ->
		arrived?PAD(n);
		counted++
	}
	:: atomic { arrived?[FIN, _] ->
		arrived?FIN(n);
		fin_rcvd = true;
		over()
	}
	:: atomic { arrived?[SINKACK, _] ->
		arrived?SINKACK(n);
		assert(asked);
		asked = false;
		over()
	}
	/* REG_MR: the word is set if the reader has not given up. */
	:: atomic { memory != MINE && !made && !cut ->
		made = true;
#ifndef BUG_EARLY
		key = shows - 1;
#endif
		if
		:: STILL_WAITS ->
			storing = true
		:: else
		fi
	};
	if
	:: storing ->
#ifndef BUG_ORDER
		store(shown, shows - 1);
#endif
		atomic {
			store(word, counted);
			spent_at = counted;
			set = true
		};
#ifdef BUG_ORDER
		store(shown, shows - 1);
#endif
#ifdef BUG_EARLY
		key = shows - 1;
#endif
		storing = false
	:: else
	fi
	/* LOCAL_INV */
	:: atomic { memory == INVALID && made && !cut ->
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
	/* It waits, and shows its memory; the first time the word is told of. */
	:: atomic { !queue && memory == MINE && ANSWERED && !fin_rcvd && !cut &&
		    spent_at != counted && shows < SHOWS ->
		memory = OFFERED;
		shows++;
		if
		:: !told ->
			told = true;
			at_sender++;
			assert(at_sender <= 2);
			back!WORD
		:: else
		fi
	}
	/* It waits no longer, and the peer does not know that it did; */
	:: atomic { memory == OFFERED && !made && !cut ->
		memory = INVALID
	}
	/* or may know. */
	:: atomic { memory == OFFERED && set && !storing && !asked && !cut ->
		asked = true;
		at_sender++;
		assert(at_sender <= 2);
		back!SINKCANCEL;
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
		empty(arrived) && !storing ->
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

#ifdef TURN
proctype turn()
{
end:	atomic {
		empty(wire) && empty(arrived) && empty(back) && !asking && !ack && !asked &&
		memory == MINE && sent == counted && !fin_sent && !cut ->
		sent = 0;
		counted = 0
	}
}
#endif

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
#ifdef TURN
		run turn();
#endif
#ifdef CUT
		run lose();
#endif
	}
	/* When nothing moves any more. */
	timeout;
	assert(memory == MINE && key == NONE);
	if
	:: cut -> assert(lost)
	:: else -> assert(taken == next && fin_rcvd && !asked && !ack && !at_sender && !asking)
	fi
}
