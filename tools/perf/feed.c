// SPDX-License-Identifier: GPL-2.0
/*
 * What a sender of many messages does with its memory: one buffer or several in turn, left
 * alone or written to before each send, copied by send(2) or not (MSG_ZEROCOPY).
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>
#include <linux/hpsock.h>

#include "perf.h"

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY	60
#endif

struct feed {
	int fd;
	uint32_t size;
	uint32_t at;		/* the buffer whose turn it is */
	uint8_t fill;
	void **buf;		/* opt.buffers, the first the run's if nobody writes to it */
	uint32_t *until;	/* the number of the send after the last one of each */
	uint32_t sent;		/* sends with MSG_ZEROCOPY */
	uint32_t done;		/* of these, complete */
};

/* A kernel that has no SO_ZEROCOPY for other families than IP leaves it to ours. */
static void want_zerocopy(int fd)
{
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) &&
	    setsockopt(fd, SOL_HPSOCK, HPSOCK_ZEROCOPY, &on, sizeof(on)))
		err(1, "SO_ZEROCOPY");
}

/* Take what the error queue says; false if it says nothing. */
static bool completed(struct feed *feed)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	const struct sock_extended_err *ee;
	struct cmsghdr *cmsg;

	if (recvmsg(feed->fd, &msg, MSG_ERRQUEUE) < 0) {
		if (errno == EAGAIN)
			return false;
		err(1, "the error queue");
	}
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		errx(1, "the error queue is not about a send");
	ee = (const void *)CMSG_DATA(cmsg);
	if (ee->ee_errno || ee->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
		errx(1, "the error queue is not about a send");
	feed->done = ee->ee_data + 1;
	return true;
}

/* Until so many sends are complete. */
static void await(struct feed *feed, uint32_t until)
{
	struct pollfd poller = { .fd = feed->fd };

	while ((int32_t)(feed->done - until) < 0)
		if (!completed(feed) && poll(&poller, 1, -1) < 0)
			err(1, "poll");
}

static void send_zerocopy(struct feed *feed, const char *p, size_t len)
{
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(feed->fd, p, len, MSG_ZEROCOPY);
		if (n >= 0) {
			feed->sent++;
			continue;
		}
		if (errno != ENOBUFS || feed->done == feed->sent)
			err(1, "send");
		await(feed, feed->done + 1);
		n = 0;
	}
	while (feed->done != feed->sent && completed(feed))
		;
}

/* To send messages of that size; @out has one, and threads may share it. */
struct feed *feed_new(int fd, void *out, uint32_t size)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		err(1, "memory");
	feed->fd = fd;
	feed->size = size;
	feed->buf = calloc(opt.buffers, sizeof(*feed->buf));
	feed->until = calloc(opt.buffers, sizeof(*feed->until));
	if (!feed->buf || !feed->until)
		err(1, "memory");
	feed->buf[0] = opt.rewrite ? alloc_buf(size) : out;
	for (uint32_t i = 1; i < opt.buffers; i++)
		feed->buf[i] = alloc_buf(size);
	if (opt.zerocopy)
		want_zerocopy(fd);
	return feed;
}

/* One message. */
void feed_send(struct feed *feed)
{
	void *buf = feed->buf[feed->at];

	if (opt.rewrite) {
		if (opt.zerocopy)
			await(feed, feed->until[feed->at]);
		memset(buf, ++feed->fill, feed->size);
	}
	if (opt.zerocopy)
		send_zerocopy(feed, buf, feed->size);
	else
		send_all(feed->fd, buf, feed->size);
	feed->until[feed->at] = feed->sent;
	feed->at = (feed->at + 1) % opt.buffers;
}

/* The peer has everything. */
void feed_free(struct feed *feed)
{
	await(feed, feed->sent);
	for (uint32_t i = !opt.rewrite; i < opt.buffers; i++)
		free(feed->buf[i]);
	free(feed->buf);
	free(feed->until);
	free(feed);
}
