// SPDX-License-Identifier: GPL-2.0
/*
 * A program of the kind the RFC describes: it finds the peer of a socket by
 * itself and hands both to bpf_sock_splice_pair().
 *
 * Each end enters itself into a sockhash under its own 4-tuple, then looks up
 * the swapped one. Whoever comes second finds the other and joins the two.
 *
 * Neighbours: bpf/kern.h at the top (kernel declarations), ../main.go (attaches
 * this and makes the connections).
 */
#include "../../../../bpf/kern.h"

char LICENSE[] SEC("license") = "GPL";

struct tuple {
	__u32 local_ip;
	__u32 remote_ip;
	__u32 local_port;	/* both in host order */
	__u32 remote_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 4096);
	__type(key, struct tuple);
	__type(value, __u64);
} socks SEC(".maps");

/* What happened, one slot a result. */
enum result {
	ESTABLISHED	= 0,	/* callbacks seen */
	ENTERED		= 1,	/* sockets entered into the sockhash */
	ALONE		= 2,	/* peer not there (yet) */
	JOINED		= 3,
	EXISTS		= 4,	/* -EEXIST */
	FAILED		= 5,	/* any other error of splice_pair */
	NOT_ENTERED	= 6,	/* the sockhash refused */
	LAST_ERROR	= 7,	/* number of the last error of either */
	RESULTS		= 8,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RESULTS);
	__type(key, __u32);
	__type(value, __u64);
} results SEC(".maps");

static __always_inline void count(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&results, &slot);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void fail(__u32 what, int err)
{
	__u32 slot = LAST_ERROR;
	__u64 *n = bpf_map_lookup_elem(&results, &slot);

	if (n)
		*n = -err;
	count(what);
}

static __always_inline void join(struct bpf_sock_ops *ctx, struct tuple *swapped)
{
	struct sock *peer;
	int err;

	peer = (struct sock *)bpf_map_lookup_elem(&socks, swapped);
	if (!peer) {
		count(ALONE);
		return;
	}
	err = bpf_sock_splice_pair(peer, bpf_cast_to_kern_ctx(ctx));
	if (!err)
		count(JOINED);
	else if (err == -EEXIST)
		count(EXISTS);
	else
		fail(FAILED, err);
}

SEC("sockops")
int rfc_splice(struct bpf_sock_ops *ctx)
{
	struct tuple own = {}, swapped = {};
	int err;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (ctx->family != AF_INET)
		return 1;
	count(ESTABLISHED);
	own.local_ip = swapped.remote_ip = ctx->local_ip4;
	own.remote_ip = swapped.local_ip = ctx->remote_ip4;
	own.local_port = swapped.remote_port = ctx->local_port;
	own.remote_port = swapped.local_port = bpf_ntohl(ctx->remote_port);
	err = bpf_sock_hash_update(ctx, &socks, &own, BPF_ANY);
	if (err) {
		fail(NOT_ENTERED, err);
		return 1;
	}
	count(ENTERED);
	join(ctx, &swapped);
	return 1;
}
