// SPDX-License-Identifier: GPL-2.0
/*
 * kfunc_set.c - registers the BPF entries, and turns their context into calls
 *
 * Apart from kfunc.c because it needs the kernel's headers. The set is
 * registered for all program types with a filter that lets in sock_ops alone:
 * 6.12 has no hook of its own for them. The filter must not look at the id, see
 * shunt_kfunc_filter().
 */
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/filter.h>

#include "shunt.h"
#include "compat/compat.h"

int shunt_kfunc_join(struct bpf_sock_ops_kern *skops, u32 busy_poll_us);
int shunt_kfunc_splice_pair(struct sock *peer, struct bpf_sock_ops_kern *skops);

/* sk is locked in these two callbacks, and in no others that we rely on. */
static bool shunt_is_established_cb(const struct bpf_sock_ops_kern *skops)
{
	return skops->is_fullsock &&
	       (skops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
		skops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB);
}

int shunt_kfunc_join(struct bpf_sock_ops_kern *skops, u32 busy_poll_us)
{
	if (!shunt_is_established_cb(skops) || busy_poll_us > SHUNT_SPIN_MAX_US)
		return -EINVAL;
	if (skops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return shunt_offer(skops->sk, busy_poll_us);
	return shunt_match(skops->sk, busy_poll_us);
}

int shunt_kfunc_splice_pair(struct sock *peer, struct bpf_sock_ops_kern *skops)
{
	int err;

	if (!peer)
		return -ENOENT;
	err = shunt_is_established_cb(skops) ?
		shunt_join_peer(skops->sk, peer) : -EINVAL;
	/* Listeners and the like come from a map without a reference. */
	if (sk_is_refcounted(peer))
		sock_gen_put(peer);
	return err;
}

BTF_KFUNCS_START(shunt_kfunc_ids)
BTF_ID_FLAGS(func, bpf_shunt_join, SHUNT_KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, bpf_sock_splice_pair, SHUNT_KF_TRUSTED_ARGS | KF_RELEASE)
BTF_KFUNCS_END(shunt_kfunc_ids)

/*
 * Unconditional: the verifier hands in the relocated id while our own set still
 * holds the old one, so "is it mine?" would let every program type in.
 */
static int shunt_kfunc_filter(const struct bpf_prog *prog, u32 kfunc_id)
{
	return prog->type == BPF_PROG_TYPE_SOCK_OPS ? 0 : -EACCES;
}

static const struct btf_kfunc_id_set shunt_kfunc_set = {
	.owner	= THIS_MODULE,
	.set	= &shunt_kfunc_ids,
	.filter	= shunt_kfunc_filter,
};

int shunt_kfunc_init(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_UNSPEC, &shunt_kfunc_set);
}
