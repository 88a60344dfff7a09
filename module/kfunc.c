// SPDX-License-Identifier: GPL-2.0
/*
 * kfunc.c - the BPF entries, and nothing else
 *
 * The only file that is built with debug information, so that the module's BTF
 * holds these functions' types and no others. The verifier wants the arguments
 * to be the kernel's own struct sock and struct bpf_sock_ops_kern: declared but
 * not defined here, they resolve to vmlinux's. With any other kernel header
 * included, a module whose BTF is not deduplicated has its own copies, and
 * programs are refused ("expected pointer to STRUCT ..."). What they call is in
 * kfunc_set.c.
 */
#include <linux/btf.h>
#include <linux/btf_ids.h>

struct sock;
struct bpf_sock_ops_kern;

int shunt_kfunc_join(struct bpf_sock_ops_kern *skops, u32 busy_poll_us);
int shunt_kfunc_splice_pair(struct sock *peer, struct bpf_sock_ops_kern *skops);

__bpf_kfunc_start_defs();

/**
 * bpf_shunt_join - join this connection if both its ends are on this machine
 * @skops: the context, by bpf_cast_to_kern_ctx()
 * @busy_poll_us: how long this end's receives spin before they sleep, 0 to
 *	10000 microseconds; 0 leaves it to SO_BUSY_POLL and net.core.busy_read
 *
 * For sock_ops programs, in BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB and
 * BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB; call it in both. On the active side it
 * offers the socket, on the passive side it joins the two. Kernel 6.12.
 *
 * Return: 0; -ENOENT if the other end was not offered (it is remote, or its
 * program did not call); -EEXIST if the socket is offered, joined or has another
 * ULP; -EINVAL if it can't be joined (another callback, not plain TCP, MPTCP,
 * TCP_REPAIR, a kernel socket, a filter, a signed connection) or the budget is
 * out of range; -ENOSPC if too many offers wait; -ENOMEM.
 */
__bpf_kfunc int bpf_shunt_join(struct bpf_sock_ops_kern *skops, u32 busy_poll_us)
{
	return shunt_kfunc_join(skops, busy_poll_us);
}

/**
 * bpf_sock_splice_pair - join this socket with @peer, the connection's other end
 * @peer: a socket found by the program, in a sockhash; the reference is taken
 * @skops: the context, by bpf_cast_to_kern_ctx()
 *
 * The call of the RFC "tcp: opportunistic loopback splice for BPF-paired
 * sockets". @peer is attached a moment later, from process context; until then
 * the bytes go by TCP. If it turns out not to be the other end of this very
 * connection, both stay plain TCP. Kernel 6.12.
 *
 * Return: 0; -EEXIST if either end is joined already; -EINVAL if one of them
 * can't be joined; -ENOENT without a socket; -ENOMEM.
 */
__bpf_kfunc int bpf_sock_splice_pair(struct sock *peer,
				     struct bpf_sock_ops_kern *skops)
{
	return shunt_kfunc_splice_pair(peer, skops);
}

__bpf_kfunc_end_defs();
