// SPDX-License-Identifier: GPL-2.0
/*
 * splice(2) out of a socket, and the end of a sendfile(2) into one.
 *
 * Out of a socket the bytes are copied into pages of the pipe's own. The receive
 * buffers are credits of the peer once they are read, and a pipe may keep what it
 * has for as long as it likes. Into a socket bytes come by sendmsg(): from 6.5 on with
 * MSG_SPLICE_PAGES, for which send.c has the pages sent from where they are; before that
 * by sock_no_sendpage() (compat.h), and are copied.
 */
#include <linux/fs.h>
#include <linux/pipe_fs_i.h>
#include <linux/splice.h>

#include "recv.h"
#include "send.h"
#include "sock.h"
#include "splice.h"

/*
 * A reader whose bytes go to a pipe, which its caller has locked. @last is the
 * page this call put there last: nobody else has seen it, so it may be added to.
 */
struct hps_splice {
	struct hps_reader reader;
	struct pipe_inode_info *pipe;
	struct pipe_buffer *last;
};

static int hps_splice_page(struct hps_splice *splice)
{
	struct pipe_inode_info *pipe = splice->pipe;
	struct pipe_buffer buf = {
		.ops = &nosteal_pipe_buf_ops,
		/* Charged to the reader, as what it writes to a pipe. */
		.page = alloc_page(GFP_KERNEL_ACCOUNT),
	};
	ssize_t err;

	if (!buf.page)
		return -ENOMEM;
	/* Frees the page if it fails. */
	err = add_to_pipe(pipe, &buf);
	if (err)
		return err;
	splice->last = &pipe->bufs[(pipe->head - 1) & (pipe->ring_size - 1)];
	return 0;
}

static ssize_t hps_splice_take(struct hps_reader *reader, void *from,
			       size_t len)
{
	struct hps_splice *splice = container_of(reader, struct hps_splice,
						 reader);
	size_t done, n;
	int err;

	for (done = 0; done < len; done += n) {
		if (!splice->last || splice->last->len == PAGE_SIZE) {
			err = hps_splice_page(splice);
			if (err)
				return done ?: err;
		}
		n = min_t(size_t, len - done, PAGE_SIZE - splice->last->len);
		memcpy(page_address(splice->last->page) + splice->last->len,
		       from + done, n);
		splice->last->len += n;
	}
	return done;
}

/**
 * hps_splice_read - proto_ops.splice_read
 * @sock: the socket
 * @ppos: 0, sockets have no position
 * @pipe: where to, locked, with room for @len bytes in full pages
 * @len: bytes
 * @flags: SPLICE_F_*, which are about the pipe alone, as on TCP
 *
 * Takes what is there, whatever SO_RCVLOWAT says, and waits if that is nothing.
 *
 * Context: process, may sleep.
 * Return: bytes, 0 at the end of the stream, -ESPIPE, -ENOMEM, or what
 * hps_recvmsg() returns.
 */
ssize_t hps_splice_read(struct socket *sock, loff_t *ppos,
			struct pipe_inode_info *pipe, size_t len,
			unsigned int flags)
{
	struct hps_splice splice = {
		.reader.take = hps_splice_take,
		.reader.len = len,
		.reader.target = 1,
		.pipe = pipe,
	};
	struct sock *sk = sock->sk;
	ssize_t ret;

	if (*ppos)
		return -ESPIPE;
	lock_sock(sk);
	splice.reader.timeo = sock_rcvtimeo(sk, sock->file->f_flags &
						O_NONBLOCK);
	ret = hps_recv(sk, &splice.reader);
	release_sock(sk);
	return ret;
}

/**
 * hps_splice_eof - proto_ops.splice_eof: sendfile() has met the end of the file
 * @sock: the socket
 *
 * sendfile() sets MSG_MORE but for the last page. What was held back because of that has
 * nothing to wait for any more.
 *
 * Context: process.
 */
void hps_splice_eof(struct socket *sock)
{
	lock_sock(sock->sk);
	if (!hps_sk(sock->sk)->cork)
		hps_send_flush(sock->sk);
	release_sock(sock->sk);
}
