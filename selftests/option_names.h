/* SPDX-License-Identifier: GPL-2.0 */
#ifndef OPTION_NAMES_H
#define OPTION_NAMES_H

/* The C library's headers are older than these, or in the way of the kernel's. */
#ifndef TCP_IS_MPTCP
#define TCP_IS_MPTCP		43
#endif
#ifndef IPV6_FLOWLABEL_MGR
#define IPV6_FLOWLABEL_MGR	32
#define IPV6_FLOWINFO_SEND	33
#endif

#endif /* OPTION_NAMES_H */
