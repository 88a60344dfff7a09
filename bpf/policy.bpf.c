// SPDX-License-Identifier: GPL-2.0
/*
 * The policy: decides for each TCP connection of a cgroup whether it is joined.
 *
 * It runs once at each end when the handshake completes. The first rule that
 * matches wins; a socket that no rule matches is left alone. Both ends run the
 * same rules and must come to the same answer, so a rule speaks of the client
 * and the server of a connection and never of "my" end.
 *
 * The rules are written before the program is attached and frozen. A new policy
 * is a new program with maps of its own, put in place by replacing the program
 * of the cgroup's link.
 *
 * Neighbours: policy.h (the maps' contents), kern.h (kernel declarations),
 * internal/bpfstate (loads and attaches this).
 */
#include "kern.h"
#include "policy.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHUNT_MAX_RULES);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct shunt_rule);
} shunt_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SHUNT_MAX_RULES + 1);
	__type(key, __u32);
	__type(value, struct shunt_counter);
} shunt_counters SEC(".maps");

struct endpoint {
	__u32 addr[4];
	__u32 port;
};

/* A connection as both of its ends see it. */
struct flow {
	struct endpoint client;
	struct endpoint server;
	__u8 family;
};

static __always_inline void set_v4(struct endpoint *e, __u32 addr)
{
	e->addr[0] = 0;
	e->addr[1] = 0;
	e->addr[2] = 0;
	e->addr[3] = addr;
}

/*
 * IPv4 over an IPv6 socket. A child of a dual-stack listener may show its
 * mapped address or none at all; an established IPv6 peer is never "::".
 */
static __always_inline int is_mapped(const struct bpf_sock_ops *ctx)
{
	__u32 third = ctx->remote_ip6[2];

	if (ctx->remote_ip6[0] || ctx->remote_ip6[1])
		return 0;
	if (third == bpf_htonl(0xffff))
		return 1;
	return !third && !ctx->remote_ip6[3];
}

static __always_inline void read_v6(struct endpoint *local,
				    struct endpoint *remote,
				    const struct bpf_sock_ops *ctx)
{
	local->addr[0] = ctx->local_ip6[0];
	local->addr[1] = ctx->local_ip6[1];
	local->addr[2] = ctx->local_ip6[2];
	local->addr[3] = ctx->local_ip6[3];
	remote->addr[0] = ctx->remote_ip6[0];
	remote->addr[1] = ctx->remote_ip6[1];
	remote->addr[2] = ctx->remote_ip6[2];
	remote->addr[3] = ctx->remote_ip6[3];
}

static __always_inline int read_flow(struct flow *f,
				     const struct bpf_sock_ops *ctx, int active)
{
	struct endpoint *local = active ? &f->client : &f->server;
	struct endpoint *remote = active ? &f->server : &f->client;

	if (ctx->family == AF_INET6 && !is_mapped(ctx)) {
		f->family = FAMILY_6;
		read_v6(local, remote, ctx);
	} else if (ctx->family == AF_INET || ctx->family == AF_INET6) {
		f->family = FAMILY_4;
		set_v4(local, ctx->local_ip4);
		set_v4(remote, ctx->remote_ip4);
	} else {
		return -EINVAL;
	}
	local->port = ctx->local_port;
	/* Unlike local_port this one is in network order, in 32 bits. */
	remote->port = bpf_ntohl(ctx->remote_port);
	return 0;
}

static __always_inline int same_addr(const struct endpoint *a,
				     const struct endpoint *b)
{
	return a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1] &&
	       a->addr[2] == b->addr[2] && a->addr[3] == b->addr[3];
}

/*
 * Traffic of a host with itself: 127/8 at both ends, or one address at both
 * ends, which is how ::1 and a host talking to its own address look.
 */
static __always_inline int is_loopback(const struct flow *f)
{
	const __u32 net = bpf_htonl(0xff000000), lo = bpf_htonl(0x7f000000);

	if (same_addr(&f->client, &f->server))
		return 1;
	return f->family == FAMILY_4 && (f->client.addr[3] & net) == lo &&
	       (f->server.addr[3] & net) == lo;
}

static __always_inline int end_matches(const struct shunt_rule *r,
				       const struct endpoint *e)
{
	if (e->port < r->port_min || e->port > r->port_max)
		return 0;
	return (e->addr[0] & r->mask[0]) == r->addr[0] &&
	       (e->addr[1] & r->mask[1]) == r->addr[1] &&
	       (e->addr[2] & r->mask[2]) == r->addr[2] &&
	       (e->addr[3] & r->mask[3]) == r->addr[3];
}

static __always_inline int rule_matches(const struct shunt_rule *r,
					const struct flow *f, int loopback)
{
	if (r->family && r->family != f->family)
		return 0;
	if (r->scope == SCOPE_LOOPBACK && !loopback)
		return 0;
	if (r->end != END_CLIENT && end_matches(r, &f->server))
		return 1;
	return r->end != END_SERVER && end_matches(r, &f->client);
}

/* The index of the first rule that matches, or SHUNT_MAX_RULES. */
static __always_inline __u32 find_rule(const struct flow *f)
{
	int loopback = is_loopback(f);

	for (__u32 i = 0; i < SHUNT_MAX_RULES; i++) {
		__u32 key = i;
		struct shunt_rule *r = bpf_map_lookup_elem(&shunt_rules, &key);

		if (!r || r->action == ACTION_NONE)
			break;
		if (rule_matches(r, f, loopback))
			return i;
	}
	return SHUNT_MAX_RULES;
}

static __always_inline void count_refusal(struct shunt_counter *c, int err)
{
	switch (err) {
	case -ENOENT:
		c->refused[REFUSED_ENOENT]++;
		break;
	case -EEXIST:
		c->refused[REFUSED_EEXIST]++;
		break;
	case -EINVAL:
		c->refused[REFUSED_EINVAL]++;
		break;
	case -ENOMEM:
		c->refused[REFUSED_ENOMEM]++;
		break;
	case -ENOSPC:
		c->refused[REFUSED_ENOSPC]++;
		break;
	default:
		c->refused[REFUSED_OTHER]++;
	}
}

static __always_inline void established(struct bpf_sock_ops *ctx, int active)
{
	struct shunt_counter *c;
	struct shunt_rule *r;
	struct flow f = {};
	__u32 index;
	int err;

	if (read_flow(&f, ctx, active))
		return;
	index = find_rule(&f);
	c = bpf_map_lookup_elem(&shunt_counters, &index);
	if (!c)
		return;
	c->matched++;
	r = bpf_map_lookup_elem(&shunt_rules, &index);
	if (!r || r->action != ACTION_ALLOW)
		return;
	err = bpf_shunt_join(bpf_cast_to_kern_ctx(ctx), r->busy_poll_us);
	if (err)
		count_refusal(c, err);
	else if (active)
		c->offered++;
	else
		c->joined++;
}

SEC("sockops")
int shunt_policy(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		established(ctx, 1);
	else if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		established(ctx, 0);
	return 1;
}
