/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - everything that depends on the kernel's version; nothing else does
 *
 * Each piece says since when the newer form is there.
 */
#ifndef SHUNT_COMPAT_H
#define SHUNT_COMPAT_H

#include <linux/btf.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/version.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "tcp_shunt needs Linux 6.12 or newer: install a newer kernel, or don't build for this one"
#endif
#ifndef CONFIG_INET
#error "tcp_shunt needs CONFIG_INET"
#endif

/*
 * A sanitizer's kernel (User-Mode Linux has no BPF JIT) may be told to do
 * without: there applications join by setsockopt(TCP_ULP) alone.
 */
#ifndef SHUNT_WITHOUT_BPF
#ifndef CONFIG_BPF_JIT
#error "tcp_shunt needs CONFIG_BPF_JIT: BPF programs call it"
#endif
#ifndef CONFIG_DEBUG_INFO_BTF_MODULES
#error "tcp_shunt needs CONFIG_DEBUG_INFO_BTF and CONFIG_DEBUG_INFO_BTF_MODULES: BPF programs find it by BTF"
#endif
#endif /* SHUNT_WITHOUT_BPF */

/* 7.1: proto.recvmsg lost addr_len, which TCP never used. */
#ifdef SHUNT_RECVMSG_ADDR_LEN
#define SHUNT_RECVMSG	shunt_recvmsg_compat
struct msghdr;
int shunt_recvmsg_compat(struct sock *sk, struct msghdr *msg, size_t len,
			 int flags, int *addr_len);

static inline int shunt_base_recvmsg(struct proto *base, struct sock *sk,
				     struct msghdr *msg, size_t len, int flags)
{
	int addr_len = 0;

	return base->recvmsg(sk, msg, len, flags, &addr_len);
}
#else
#define SHUNT_RECVMSG	shunt_recvmsg

static inline int shunt_base_recvmsg(struct proto *base, struct sock *sk,
				     struct msghdr *msg, size_t len, int flags)
{
	return base->recvmsg(sk, msg, len, flags);
}
#endif

/* 7.0: the flag is gone, arguments are trusted always. */
#ifdef KF_TRUSTED_ARGS
#define SHUNT_KF_TRUSTED_ARGS	KF_TRUSTED_ARGS
#else
#define SHUNT_KF_TRUSTED_ARGS	0
#endif

static inline struct mem_cgroup *shunt_sk_memcg(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	return sk->sk_memcg;
#else
	return NULL;
#endif
}

/* Returns when every task has left the code that it was preempted in. */
static inline void shunt_tasks_barrier(void)
{
	synchronize_rcu_tasks();
}

int shunt_compat_check(void);

#endif
