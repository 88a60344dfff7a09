// SPDX-License-Identifier: GPL-2.0
/*
 * compat.c - what this kernel must have at run time, and call shapes of old
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/module.h>

#include "../shunt.h"
#include "compat.h"

#ifdef SHUNT_RECVMSG_ADDR_LEN
int shunt_recvmsg_compat(struct sock *sk, struct msghdr *msg, size_t len,
			 int flags, int *addr_len)
{
	return shunt_recvmsg(sk, msg, len, flags);
}
#endif

/* kfuncs are called by JIT-compiled programs only; bpf_jit_enable=0 is the CLI's. */
int shunt_compat_check(void)
{
#if !defined(CONFIG_CGROUP_BPF) && !defined(SHUNT_WITHOUT_BPF)
	pr_err("tcp_shunt: this kernel has no BPF for cgroups (CONFIG_CGROUP_BPF): it can't be told what to join\n");
	return -EOPNOTSUPP;
#endif
	return 0;
}
