/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between the kernels this module builds for, and nothing
 * else. Debian's 6.1 carries many backports: what is asked here was compiled
 * on both, version numbers alone say little.
 */
#ifndef HPS_COMPAT_H
#define HPS_COMPAT_H

#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/sysctl.h>
#include <linux/timer.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/sock.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <net/proto_memory.h>
#endif

#include "listen.h"
#include "queue.h"
#include "sock.h"

/* Where the next byte of a program's memory is. 6.4 hid the vector. */
static inline unsigned long hps_iter_addr(const struct iov_iter *iter)
{
	if (iter_is_ubuf(iter))
		return (unsigned long)iter->ubuf + iter->iov_offset;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	return (unsigned long)iter_iov_addr(iter);
#else
	return (unsigned long)iter->iov->iov_base + iter->iov_offset;
#endif
}

/* 6.2 lets other callbacks wait for company. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define call_rcu_hurry		call_rcu
#endif

/* 6.10 put the arguments of accept() into a structure, and a result for io_uring. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static inline int hps_accept_compat(struct socket *sock, struct socket *newsock,
				    struct proto_accept_arg *arg)
{
	int err = hps_accept(sock, newsock, arg->flags, arg->kern);

	if (!err)
		arg->is_empty = !hps_queue_has_ready(sock->sk);
	return err;
}
#else
#define hps_accept_compat	hps_accept
#endif

/* 6.10 put what is called into a structure of its own. */
static inline void hps_zcopy_complete(struct ubuf_info *uarg, struct sk_buff *skb, bool success)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	uarg->ops->complete(skb, uarg, success);
#else
	uarg->callback(skb, uarg, success);
#endif
}

/* 6.5 removed sendpage; before it splice needs a method, and this one copies. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define HPS_SENDPAGE_COMPAT	.sendpage = sock_no_sendpage,
#else
#define HPS_SENDPAGE_COMPAT
#endif

/* 6.5 and 6.1.72 brought splice_eof, and with it this flag. */
#ifdef MSG_SPLICE_PAGES
#define HPS_SPLICE_EOF_COMPAT	.splice_eof = hps_splice_eof,
#else
#define HPS_SPLICE_EOF_COMPAT
#endif

/*
 * 6.5 lets a protocol say where ipv6_pinfo is; before, it is the last member.
 * And its ioctl no longer writes to user memory, so that io_uring can call it.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define HPS_PROTO_COMPAT	\
	.ipv6_pinfo_offset = offsetof(struct hps_sock, inet6),	\
	.ioctl = hps_sk_ioctl,
#else
#define HPS_PROTO_COMPAT
#endif

/* 6.6 made flags of inet's bits. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define hps_freebind(sk)		inet_test_bit(FREEBIND, sk)
#define hps_set_freebind(sk, val)	inet_assign_bit(FREEBIND, sk, val)
#else
#define hps_freebind(sk)		(inet_sk(sk)->freebind)
#define hps_set_freebind(sk, val)	(inet_sk(sk)->freebind = !!(val))
#endif

/* 6.8 made one number of two. */
static inline u32 hps_port_range(const struct sock *sk)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	return inet_sk(sk)->local_port_range;
#else
	return inet_sk(sk)->local_port_range.lo |
	       inet_sk(sk)->local_port_range.hi << 16;
#endif
}

static inline void hps_set_port_range(struct sock *sk, u16 low, u16 high)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	WRITE_ONCE(inet_sk(sk)->local_port_range, low | (u32)high << 16);
#else
	inet_sk(sk)->local_port_range.lo = low;
	inet_sk(sk)->local_port_range.hi = high;
#endif
}

/*
 * From 6.3 on a family may look at SOL_SOCKET before the core does. On all kernels
 * io_uring asks whether MSG_ZEROCOPY is understood.
 */
static inline void hps_socket_flags(struct socket *sock)
{
	set_bit(SOCK_SUPPORT_ZC, &sock->flags);
#ifdef SOCK_CUSTOM_SOCKOPT
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
#endif
}

/* 6.11 made a table constant for its handlers. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define HPS_CTL_CONST			const
#else
#define HPS_CTL_CONST
#endif

/* 6.6 no longer looks for the end of a table. Returns NULL without memory. */
static inline struct ctl_table_header *
hps_register_sysctls(struct net *net, const char *path,
		     struct ctl_table *table, size_t n)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return register_net_sysctl_sz(net, path, table, n);
#else
	return register_net_sysctl(net, path, table);
#endif
}

#ifndef TCP_IS_MPTCP
#define TCP_IS_MPTCP	43	/* 6.4 */
#endif

/* 6.12 can ask for less than it used to deliver. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define HPS_STAMP_FILTER	SOF_TIMESTAMPING_OPT_RX_FILTER
#else
#define HPS_STAMP_FILTER	0
#endif

/* 6.16 renamed it. */
#ifndef from_timer
#define from_timer	timer_container_of
#endif

/*
 * Where pages can be protected: on the page tables of x86-64, and on kernels that
 * selftests/mm_protect has been run on. User Mode Linux calls itself x86-64, too.
 */
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#define HPS_PROTECT_ARCH_OK	1
#else
#define HPS_PROTECT_ARCH_OK	0
#endif

#if HPS_PROTECT_ARCH_OK && LINUX_VERSION_MAJOR == 6 && !defined(CONFIG_PREEMPT_RT) && \
	(LINUX_VERSION_PATCHLEVEL == 1 || LINUX_VERSION_PATCHLEVEL == 12)
#define HPS_PROTECT_WORKS

#include <linux/mm.h>
#include <linux/pagevec.h>
#include <linux/rmap.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)

#define HPS_VM_NEWER		(VM_SHADOW_STACK | VM_DROPPABLE)
#define hps_folio_mapcount	folio_mapcount
#define hps_try_share		folio_try_share_anon_rmap_pte

/* What pte_mkwrite() does to a VMA that is no shadow stack. */
static inline pte_t hps_pte_mkwrite(pte_t pte)
{
	return pte_clear_saveddirty(pte_mkwrite_novma(pte));
}

/*
 * A page of an anonymous folio, which is locked, is mapped by one PTE and nothing else. Where
 * another process splits a mapping of the whole folio the PTEs are counted before that is not
 * counted any more, so it is looked at in this order. A new one of the whole would be the
 * copy of another.
 */
static inline bool hps_mapped_once(struct folio *folio, struct page *page)
{
	if (folio_test_large(folio) && folio_entire_mapcount(folio))
		return false;
	/* Pairs with folio_remove_rmap_pmd() after folio_add_anon_rmap_ptes(). */
	smp_rmb();
	return !atomic_read(&page->_mapcount);
}

/* Have this processor put the references of its lists; the caller has one. */
static inline void hps_lru_drain(struct folio *folio)
{
	struct folio_batch batch;

	folio_batch_init(&batch);
	folio_get(folio);
	folio_batch_add(&batch, folio);
	folio_batch_release(&batch);
}

#else

#define HPS_VM_NEWER		VM_NONE
#define hps_pte_mkwrite			pte_mkwrite

static inline int hps_try_share(struct folio *folio, struct page *page)
{
	return page_try_share_anon_rmap(page);
}

/* 6.1 does not export folio_mapcount(). This is it, for anonymous folios. */
static inline int hps_folio_mapcount(struct folio *folio)
{
	int i, nr = folio_nr_pages(folio), sum;

	if (!folio_test_large(folio))
		return atomic_read(&folio->_mapcount) + 1;
	sum = folio_entire_mapcount(folio);
	for (i = 0; i < nr; i++)
		sum += atomic_read(&folio_page(folio, i)->_mapcount) + 1;
	return folio_test_double_map(folio) ? sum - nr : sum;
}

/* As above */
static inline bool hps_mapped_once(struct folio *folio, struct page *page)
{
	if (folio_test_large(folio) &&
	    (folio_entire_mapcount(folio) || folio_test_double_map(folio)))
		return false;
	/* Pairs with what __split_huge_pmd_locked() does at its end. */
	smp_rmb();
	return !atomic_read(&page->_mapcount);
}

static inline void hps_lru_drain(struct folio *folio)
{
	struct pagevec vec;

	pagevec_init(&vec);
	folio_get(folio);
	pagevec_add(&vec, &folio->page);
	pagevec_release(&vec);
}

#endif
#endif

#endif /* HPS_COMPAT_H */
