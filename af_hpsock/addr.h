/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_ADDR_H
#define HPS_ADDR_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>

/**
 * struct hps_addr - one end of a connection
 * @ip: the address; IPv4 as v4-mapped, so that one comparison serves both
 * @scope: interface of a link-local IPv6 address, else 0
 * @port: host byte order
 * @v6: the program used sockaddr_in6, and is answered in it
 */
struct hps_addr {
	struct in6_addr ip;
	u32 scope;
	u16 port;
	bool v6;
};

int hps_addr_parse(struct hps_addr *addr, const struct sockaddr *sa, int len);
int hps_addr_format(const struct hps_addr *addr, struct sockaddr *sa);
int hps_addr_to_rdma(const struct hps_addr *addr, u16 port,
		     struct sockaddr_storage *ss);
void hps_addr_from_rdma(struct hps_addr *addr,
			const struct sockaddr_storage *ss);
void hps_addr_on_link(struct hps_addr *addr, int dif);
bool hps_addr_any(const struct in6_addr *ip);
bool hps_addr_covers(const struct in6_addr *a, bool a_v6only,
		     const struct in6_addr *b, bool b_v6only);

#endif /* HPS_ADDR_H */
