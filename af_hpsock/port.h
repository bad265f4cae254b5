/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PORT_H
#define HPS_PORT_H

#include <linux/types.h>

struct hps_addr;
struct in6_addr;
struct net;
struct sock;

int hps_port_bind(struct sock *sk, const struct hps_addr *addr);
int hps_port_recheck(struct sock *sk);
int hps_port_connect(struct sock *sk, const struct hps_addr *peer);
void hps_port_part(struct sock *sk);
void hps_port_share(struct sock *sk, struct sock *with);
void hps_port_name(const struct sock *sk, struct hps_addr *addr);
void hps_port_rename(struct sock *sk, const struct hps_addr *addr);
void hps_port_release(struct sock *sk);
void hps_port_close(struct sock *sk);
void hps_port_listen(struct sock *sk);
void hps_port_unlisten(struct sock *sk);
struct sock *hps_port_listener(struct net *net, const struct in6_addr *ip,
			       u16 port, int type, int dif,
			       const struct hps_addr *peer);

#endif /* HPS_PORT_H */
