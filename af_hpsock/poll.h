/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_POLL_H
#define HPS_POLL_H

#include <linux/poll.h>

struct file;
struct hps_conn;
struct sock;
struct socket;

__poll_t hps_poll(struct file *file, struct socket *sock, poll_table *wait);
bool hps_readable(struct sock *sk, struct hps_conn *conn);

#endif /* HPS_POLL_H */
