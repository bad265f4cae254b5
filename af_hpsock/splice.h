/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SPLICE_H
#define HPS_SPLICE_H

#include <linux/types.h>

struct pipe_inode_info;
struct socket;

ssize_t hps_splice_read(struct socket *sock, loff_t *ppos,
			struct pipe_inode_info *pipe, size_t len,
			unsigned int flags);
void hps_splice_eof(struct socket *sock);

#endif /* HPS_SPLICE_H */
