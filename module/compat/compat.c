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

/* kfuncs are called by JIT-compiled programs only. */
int shunt_compat_check(void)
{
	if (!IS_ENABLED(CONFIG_BPF_SYSCALL) || !IS_ENABLED(CONFIG_CGROUP_BPF)) {
		pr_err("tcp_shunt: this kernel has no BPF for cgroups (CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF): it can't be told what to join\n");
		return -EOPNOTSUPP;
	}
	if (!IS_ENABLED(CONFIG_BPF_JIT)) {
		pr_err("tcp_shunt: this kernel has no BPF JIT (CONFIG_BPF_JIT): programs can't call the module\n");
		return -EOPNOTSUPP;
	}
	return 0;
}
