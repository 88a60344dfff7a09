/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What our BPF programs need from the kernel and its modules, declared by hand.
 *
 * The context of a sock_ops program is UAPI, so no kernel structure is read and
 * no dump of kernel types is carried along. The kfuncs are found by name when a
 * program is loaded; their argument types only have to have the right names.
 *
 * Neighbours: policy.bpf.c uses this, and so does the RFC-style test program
 * under test/vm/rfc.
 */
#ifndef SHUNT_BPF_KERN_H
#define SHUNT_BPF_KERN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

/* Address families and errors as the kernel's ABI has them. */
#define AF_INET		2
#define AF_INET6	10

#define ENOENT		2
#define ENOMEM		12
#define EEXIST		17
#define EINVAL		22
#define ENOSPC		28

/*
 * Only ever passed by pointer. They have a body because the loader compares
 * kinds as well as names: a forward declaration is not a struct to it.
 */
struct sock {
	int opaque;
};

struct bpf_sock_ops_kern {
	int opaque;
};

/* From the kernel itself. */
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* From tcp_shunt: a program that calls these loads only while it is loaded. */
extern int bpf_shunt_join(struct bpf_sock_ops_kern *skops,
			  __u32 busy_poll_us) __ksym;
extern int bpf_sock_splice_pair(struct sock *peer,
				struct bpf_sock_ops_kern *skops) __ksym;

#endif
