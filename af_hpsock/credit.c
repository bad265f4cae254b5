// SPDX-License-Identifier: GPL-2.0
/*
 * Credits: a DATA message is posted only when the peer has a receive for it
 * (SOVIA, ICS'01, section 4: w = 32, t = w / 2). So are SRCAVAIL, WRITTEN, SHRINK and
 * PAD.
 *
 * The receiver counts what it granted since the connection began and says that
 * number in every message; so a grant rides along for nothing whenever there is
 * something to send, and saying it twice does no harm. It is said in a message
 * of its own, CREDIT, when
 *
 *   - half the window is owed, or
 *   - anything is owed and the peer has used all that it knows of: at once if
 *     nothing is left to read, otherwise after a moment. Until then a reader goes
 *     on to half of the window, most of the time, where each buffer that it is
 *     through with would be one CREDIT.
 *
 * CREDIT costs no credit and so needs receives of its own at the other end. How
 * many? Let k be the number of CREDITs that the peer has not processed.
 *
 *   - The second kind is sent only when the peer has used every grant before it,
 *     and so has processed them: k was 0 at that time.
 *   - Each of the first kind grants half the window, and no more than one window
 *     is ever under way. So there are at most two of them, or one and one of the
 *     second kind.
 *   - A window that grows, which it does once for a peer that ran dry, adds one. One that
 *     shrinks adds none: a credit is granted only while less than the new window is
 *     under way, or nothing at all (hps_receives_short()).
 *   - The CREDIT that an initiator begins with adds none: until it is processed the
 *     peer sends nothing for which a credit could be returned.
 *
 * So k is 3 at most. The other messages without a credit are FIN and FINACK, each of
 * them sent once, and BUFFERS and URGENT, of each of which one is under way at a
 * time; SRCCANCEL uses the receive of FIN, which is not sent before SRCCANCEL is
 * answered. Together these are 7, HPS_CTRL_SLOTS: a credit can always be returned, and
 * a receiver-not-ready NAK is a bug. READDONE and CANCELACK have receives besides, and
 * so have SINKAVAIL, WORD, SINKCANCEL and SINKACK, see receives.c and target.c.
 * Documentation/formal proves it, in credit.pml and, with BUFFERS, in receives.pml.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "credit.h"

/**
 * hps_credit_init - of a new connection
 * @credit: zeroed
 * @max: what the window may grow to
 *
 * Context: any.
 */
void hps_credit_init(struct hps_credit *credit, u32 max)
{
	credit->window_max = max;
}

/**
 * hps_credit_begin - what it will grant in its hello
 * @credit: initialised
 * @window: receives that there will be for the peer's messages
 *
 * Context: any.
 */
void hps_credit_begin(struct hps_credit *credit, u32 window)
{
	credit->window = window;
	credit->rx_ready = window;
	credit->rx_told = window;
}

/**
 * hps_credit_hello - what the peer says in its hello
 * @credit: the connection's
 * @credits: that it grants to begin with
 * @max: more than that will never be outstanding
 *
 * Context: any.
 */
void hps_credit_hello(struct hps_credit *credit, u32 credits, u32 max)
{
	credit->tx_granted = credits;
	credit->tx_fresh = min_t(u32, credits, U16_MAX);
	credit->tx_max = max;
}

/**
 * hps_credit_granted - the peer says how much it has granted in all
 * @credit: the connection's
 * @total: modulo 2^32
 *
 * Context: any, hps_conn.lock held.
 * Return: 0, or -EPROTO if that takes back what was granted or exceeds the peer's
 * window.
 */
int hps_credit_granted(struct hps_credit *credit, u32 total)
{
	if ((s32)(total - credit->tx_granted) < 0 ||
	    total - credit->tx_used > credit->tx_max)
		return -EPROTO;
	if (total != credit->tx_granted)
		credit->tx_fresh = min_t(u32, total - credit->tx_used, U16_MAX);
	credit->tx_granted = total;
	return 0;
}

/**
 * hps_credit_spent - a message came in that is not of the stream and costs a credit
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held.
 * Return: 0, or -EPROTO if the peer had no credit for it.
 */
int hps_credit_spent(struct hps_credit *credit)
{
	if (credit->rx_used == credit->rx_told)
		return -EPROTO;
	WRITE_ONCE(credit->rx_used, credit->rx_used + 1);
	return 0;
}

/**
 * hps_credit_received - a DATA came in: was it the last that the peer could send?
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held.
 * Return: as hps_credit_spent().
 */
int hps_credit_received(struct hps_credit *credit)
{
	int err = hps_credit_spent(credit);

	if (!err && hps_credit_dry(credit))
		hps_credit_set_dry(credit, true);
	return err;
}

/**
 * hps_credit_dry - has the peer used all that it knows of?
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held or a snapshot.
 * Return: true if it can send no more DATA.
 */
bool hps_credit_dry(const struct hps_credit *credit)
{
	return READ_ONCE(credit->rx_used) == READ_ONCE(credit->rx_told);
}

/**
 * hps_credit_behind - will the peer grant anew by the time that it has read what it has?
 * @credit: the connection's
 * @least: not if it has less to read than so many messages
 *
 * As hps_credit_due() has it there, it will when it has read half of its window, if it
 * does not wait for a step in growth; and what it left us with when it last granted was no
 * more than all of its window.
 *
 * Context: any, hps_conn.lock held.
 * Return: true if it will, provided that it reads.
 */
bool hps_credit_behind(const struct hps_credit *credit, u32 least)
{
	return credit->tx_fresh >= 2 * least &&
	       hps_credit_left(credit) <= credit->tx_fresh / 2;
}

/**
 * hps_credit_tight - has the peer used half of its window or more?
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held.
 * Return: true if it has.
 */
bool hps_credit_tight(const struct hps_credit *credit)
{
	return credit->rx_told - credit->rx_used <= credit->window / 2;
}

/**
 * hps_credit_due - is it time for a message that does nothing but grant?
 * @credit: the connection's
 * @unread: there is data that nobody has read
 *
 * Context: any, hps_conn.lock held.
 * Return: true if it is to be sent now.
 */
bool hps_credit_due(const struct hps_credit *credit, bool unread)
{
	u32 owed = credit->rx_ready - credit->rx_told;

	return owed && (owed >= (credit->window + 1) / 2 ||
			(!unread && hps_credit_dry(credit)));
}

/**
 * hps_credit_late - will a CREDIT be due after a moment, even if nothing else happens?
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held.
 * Return: true if credits are owed to a peer that has none left.
 */
bool hps_credit_late(const struct hps_credit *credit)
{
	return credit->rx_ready != credit->rx_told && hps_credit_dry(credit);
}

/**
 * hps_credit_tell - grant all that is owed
 * @credit: the connection's
 *
 * Context: any, hps_conn.lock held.
 * Return: the number for the message.
 */
u32 hps_credit_tell(struct hps_credit *credit)
{
	WRITE_ONCE(credit->rx_told, credit->rx_ready);
	return credit->rx_told;
}
